//! Citations of web pages, out of the annotations of a text: flat as in Responses, or nested as in Chat Completions.
//!
//! Anything else that an annotation can be has no place in other dialects.

use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Object;
use crate::json::members::find;
use crate::json::members::integer;
use crate::json::members::items;
use std::borrow::Cow;

/// One cited page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Citation<'a> {
    pub(crate) url: Cow<'a, str>,
    pub(crate) title: Option<Cow<'a, str>>,
    pub(crate) start: Option<i64>,
    pub(crate) end: Option<i64>,
}

impl<'a> Citation<'a> {
    fn read(raw: Raw<'a>) -> Option<Citation<'a>> {
        let object = Object::of(raw)?;
        if object.string("type").as_deref() != Some("url_citation") {
            return None;
        }
        let facts = object.object("url_citation").unwrap_or(object);
        let index = |name| find(&facts.members, name).and_then(integer);
        Some(Citation {
            url: facts.string("url").filter(|url| !url.is_empty())?,
            title: facts.string("title"),
            start: index("start_index"),
            end: index("end_index"),
        })
    }
}

/// The citations among the annotations, and whether there were others.
pub(crate) fn citations(annotations: &str) -> (Vec<Citation<'_>>, bool) {
    let all = items(Raw {
        text: annotations,
        kind: Kind::Array,
    });
    let count = all.len();
    let cited: Vec<Citation<'_>> = all.into_iter().filter_map(Citation::read).collect();
    let others = cited.len() < count;
    (cited, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_and_nested() {
        let text = r#"[{"type":"url_citation","url":"u","start_index":-0,"end_index":1.5},
            {"type":"url_citation","url_citation":{"url":"v","title":"t","end_index":7}},
            {"type":"file_citation","url":"w"},{"type":"url_citation"},3]"#;
        let (cited, others) = citations(text);
        assert!(others);
        assert_eq!(cited.len(), 2);
        assert_eq!((cited[0].start, cited[0].end), (Some(0), None));
        assert_eq!(cited[1].title.as_deref(), Some("t"));
        assert_eq!((cited[1].url.as_ref(), cited[1].end), ("v", Some(7)));
    }
}
