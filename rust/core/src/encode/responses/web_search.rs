//! Writes the web searches that a provider ran as the items that OpenAI sends for its own searches.
//!
//! A search is open until its result arrives. Other output may come before the result.

use crate::encode::common::encode_context::Call;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::writer::Writer;
use crate::encode::responses::hosted_items::WebSearch;
use crate::encode::responses::items::Items;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Document;
use crate::json::members::Object;
use crate::json::members::document;
use crate::json::members::items as elements;
use crate::json::members::members;

/// The name that Anthropic and the AI SDK use for their search.
const TOOL: &str = "web_search";
/// Members of a call's or a result's metadata that the type of the item expresses.
const EXPRESSED: [&str; 2] = ["type", "toolName"];
/// Members of a page that an item can represent.
const OF_PAGE: [&str; 2] = ["type", "url"];

/// Returns true if the provider runs this call as a web search.
pub(crate) fn is_search(provider_executed: bool, name: &str) -> bool {
    provider_executed && name == TOOL
}

/// Returns the query of a web search that the provider runs, or `None` for any other call.
pub(crate) fn query(call: &Call<'_>) -> Option<String> {
    if !is_search(call.provider_executed, call.name) || call.custom || call.state != "complete" {
        return None;
    }
    let Ok(Document::Object(arguments)) = document(call.arguments, None) else {
        return None;
    };
    let query = arguments.string("query")?;
    (!query.is_empty()).then(|| query.into_owned())
}

/// Returns true if the metadata has members that the item of a search does not express.
pub(crate) fn has_others(metadata: Option<&str>) -> bool {
    let metadata = Raw {
        text: metadata.unwrap_or("{}"),
        kind: Kind::Object,
    };
    let is_other = |name: &str| !EXPRESSED.contains(&name);
    let mut members = members(metadata).into_iter();
    members.any(|member| is_other(&member.key.name()))
}

/// Returns the pages of a result as a JSON list without brackets, and whether the result contains anything else.
fn pages(output: &str) -> (String, bool) {
    if !output.starts_with('[') {
        return (String::new(), true);
    }
    let mut to = Writer::default();
    let mut lost = false;
    for element in elements(Raw {
        text: output,
        kind: Kind::Array,
    }) {
        let page = Object::of(element);
        let url = page.as_ref().and_then(|page| page.string("url"));
        let (Some(page), Some(url)) = (page, url.filter(|url| !url.is_empty())) else {
            lost = true;
            continue;
        };
        let is_other = |name: &str| !OF_PAGE.contains(&name);
        let mut members = page.members.iter();
        lost |= members.any(|member| is_other(&member.key.name()));
        let mark = if to.bytes.is_empty() { "" } else { "," };
        to.raw(mark).raw("{\"type\":\"url\",\"url\":");
        to.string(&url).raw("}");
    }
    (to.into_text(), lost)
}

impl Items {
    /// Returns true if a search with this call id has no result.
    pub(crate) fn has_search(&self, call_id: &str) -> bool {
        self.hosted.searches_of_call.contains_key(call_id)
    }

    /// Writes the events of a search that has begun.
    pub(crate) fn start_search(
        &mut self,
        context: &mut EncodeContext,
        call_id: &str,
        query: String,
    ) {
        let index = self.take_index(context, None);
        let id = context.mint.make("ws");
        let search = WebSearch { id, query };
        self.open_hosted(context, index, &search.item("in_progress", ""));
        for kind in [
            "response.web_search_call.in_progress",
            "response.web_search_call.searching",
        ] {
            self.report_progress(context, kind, (&search.id, index));
        }
        self.hosted.searches.insert(index, search);
        let indexes = self.hosted.searches_of_call.slot(call_id.to_owned());
        indexes.push_back(index);
    }

    /// Writes the end of the first search with this call id, and records a loss if the result has content that the item
    /// cannot represent.
    pub(crate) fn end_search(
        &mut self,
        context: &mut EncodeContext,
        call_id: &str,
        output: &str,
        is_error: bool,
    ) {
        let indexes = self.hosted.searches_of_call.get_mut(&call_id.to_owned());
        let Some(indexes) = indexes else {
            return;
        };
        let first = indexes.pop_front();
        if indexes.is_empty() {
            self.hosted.searches_of_call.remove(call_id);
        }
        let search = first.and_then(|index| Some((index, self.hosted.searches.remove(&index)?)));
        let Some((index, search)) = search else {
            return;
        };
        let (item, lost) = if is_error {
            (search.item("failed", ""), output != "null")
        } else {
            let kind = "response.web_search_call.completed";
            self.report_progress(context, kind, (&search.id, index));
            let (sources, lost) = pages(output);
            (search.item("completed", &sources), lost)
        };
        self.finish_hosted(context, index, item);
        if lost {
            context.losses.note("server_tool");
        }
    }

    /// Ends the searches without a result as incomplete, up to the output index `before`, if there is one.
    pub(crate) fn end_searches(&mut self, context: &mut EncodeContext, before: Option<i64>) {
        while let Some(first) = self.hosted.searches.first_entry() {
            if before.is_some_and(|before| *first.key() >= before) {
                return;
            }
            let (index, search) = first.remove_entry();
            self.finish_hosted(context, index, search.item("incomplete", ""));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_result() {
        let page = "{\"type\":\"url\",\"url\":\"u\"}";
        for (output, sources, lost) in [
            ("[]", "", false),
            (
                "[{\"type\":\"web_search_result\",\"url\":\"u\"}]",
                page,
                false,
            ),
            ("[{\"url\":\"u\",\"page_age\":null}]", page, true),
            ("[{\"url\":\"\"},3,{\"url\":\"u\"}]", page, true),
            ("{\"url\":\"u\"}", "", true),
            ("null", "", true),
        ] {
            assert_eq!(pages(output), (sources.to_owned(), lost), "{output}");
        }
    }

    #[test]
    fn metadata_that_the_item_does_not_express() {
        assert!(!has_others(None));
        assert!(!has_others(Some("{\"type\":\"x\",\"toolName\":\"y\"}")));
        assert!(has_others(Some("{\"type\":\"x\",\"caller\":{}}")));
    }
}
