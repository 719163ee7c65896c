//! Writes the result of OpenAI's web search in the form of `mapWebSearchOutput` of @ai-sdk/openai, because clients treat
//! a call without a result as unfinished.

use crate::encode::common::part_details::Call;
use crate::encode::common::part_details::CallResult;
use crate::encode::common::writer::Writer;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Object;
use std::borrow::Cow;

/// Type of OpenAI's item.
const ITEM: &str = "web_search_call";

/// Returns the result of a call, or `None` if the call is not a search of OpenAI or its status is unknown.
pub(crate) fn search_result<'c>(source: &str, call: &'c Call<'_>) -> Option<CallResult<'c>> {
    if source != "responses" {
        return None;
    }
    let item = Object::of(Raw {
        text: call.metadata.as_deref()?,
        kind: Kind::Object,
    })?;
    let status = item.string("status")?;
    if item.string("type")? != ITEM {
        return None;
    }
    let mut to = Writer::default();
    let is_error = status != "completed";
    if is_error {
        to.raw("{\"status\":").string(&status).raw("}");
    } else {
        write_action(&mut to, item.object("action").as_ref());
    }
    Some(CallResult {
        call_id: Cow::Borrowed(&call.call_id),
        output: Cow::Owned(to.into_text()),
        is_error,
    })
}

/// Writes the action of a completed search. The pages are next to the action.
fn write_action(to: &mut Writer, action: Option<&Object<'_>>) {
    let kind = action.and_then(|action| action.string("type"));
    let (kind, members): (&str, &[&str]) = match kind.as_deref() {
        Some("search") => ("search", &["query", "queries"]),
        Some("open_page") => ("openPage", &["url"]),
        Some("find_in_page") => ("findInPage", &["url", "pattern"]),
        _ => {
            to.raw("{}");
            return;
        }
    };
    let member = |name: &str| action.and_then(|action| action.present(name));
    to.raw("{\"action\":{\"type\":").string(kind);
    for name in members {
        if let Some(value) = member(name) {
            to.raw(",\"").raw(name).raw("\":").raw(value.text);
        }
    }
    to.raw("}");
    if kind == "search"
        && let Some(sources) = member("sources")
    {
        to.raw(",\"sources\":").raw(sources.text);
    }
    to.raw("}");
}
