//! Reads citations of web pages from annotations, which are flat in Responses and under `url_citation` in Chat.
//!
//! An Anthropic citation applies to its whole text block. Other kinds of annotations cannot be represented in other
//! dialects.

use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Object;
use crate::json::members::find;
use crate::json::members::integer;
use crate::json::members::items;
use std::borrow::Cow;

/// One cited page. A field is `None` if the source did not send it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Citation<'a> {
    pub(crate) url: Cow<'a, str>,
    pub(crate) title: Option<Cow<'a, str>>,
    pub(crate) start: Option<i64>,
    pub(crate) end: Option<i64>,
}

impl<'a> Citation<'a> {
    /// Moves the citation to its position in a longer text, in which the cited text begins at `start`.
    pub(crate) fn shifted(self, start: i64) -> Citation<'a> {
        let moved = |index: Option<i64>| index.map(|index| index.saturating_add(start));
        Citation {
            start: moved(self.start),
            end: moved(self.end),
            ..self
        }
    }

    /// Reads an annotation. `length` is the number of characters in the text, or `None` if the target has a separate
    /// form for citations without a position.
    fn read(raw: Raw<'a>, length: Option<i64>) -> Option<Citation<'a>> {
        let object = Object::of(raw)?;
        let kind = object.string("type");
        if kind.as_deref() == Some("web_search_result_location") {
            return Some(Citation {
                url: object.string("url").filter(|url| !url.is_empty())?,
                title: object.string("title"),
                start: length.map(|_| 0),
                end: length,
            });
        }
        if kind.as_deref() != Some("url_citation") {
            return None;
        }
        let facts = object.object("url_citation").unwrap_or(object);
        let index = |name| find(&facts.members, name).and_then(integer);
        // A citation without a position gets an empty range at the end of the text.
        let range = index("start_index").zip(index("end_index"));
        let range = range.or(length.zip(length));
        Some(Citation {
            url: facts.string("url").filter(|url| !url.is_empty())?,
            title: facts.string("title"),
            start: range.map(|(start, _)| start),
            end: range.map(|(_, end)| end),
        })
    }
}

/// Returns the citations among the annotations of a text part with `length` characters, and whether there were other
/// annotations.
pub(crate) fn citations(annotations: &str, length: Option<i64>) -> (Vec<Citation<'_>>, bool) {
    let all = items(Raw {
        text: annotations,
        kind: Kind::Array,
    });
    let count = all.len();
    let cited: Vec<Citation<'_>> = all
        .into_iter()
        .filter_map(|raw| Citation::read(raw, length))
        .collect();
    let others = cited.len() < count;
    (cited, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_and_nested() {
        let text = r#"[{"type":"url_citation","url":"u","start_index":-0,"end_index":1.0},
            {"type":"url_citation","url_citation":{"url":"v","title":"t","end_index":7}},
            {"type":"file_citation","url":"w"},{"type":"url_citation"},3]"#;
        let (cited, others) = citations(text, None);
        assert!(others);
        assert_eq!(cited.len(), 2);
        assert_eq!((cited[0].start, cited[0].end), (Some(0), Some(1)));
        assert_eq!((cited[1].start, cited[1].end), (None, None));
        assert_eq!(cited[1].title.as_deref(), Some("t"));
        assert_eq!((cited[1].url.as_ref(), cited[1].end), ("v", None));
        let (cited, _) = citations(text, Some(9));
        assert_eq!((cited[1].start, cited[1].end), (Some(9), Some(9)));
    }

    #[test]
    fn a_citation_of_the_whole_text() {
        let text =
            r#"[{"type":"web_search_result_location","url":"u","title":"t","cited_text":"c"}]"#;
        assert_eq!(citations(text, None).0[0].start, None);
        let (cited, others) = citations(text, Some(5));
        assert!(!others);
        assert_eq!((cited[0].start, cited[0].end), (Some(0), Some(5)));
        assert_eq!(cited[0].title.as_deref(), Some("t"));
    }
}
