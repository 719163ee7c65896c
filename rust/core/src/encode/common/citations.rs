//! Reads citations of web pages from annotations, which are flat in Responses and under `url_citation` in Chat, and
//! citations of uploaded files from those of Anthropic.
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
    /// The text of the page, which OpenRouter sends.
    pub(crate) content: Option<Cow<'a, str>>,
}

/// One cited document that was uploaded as a file. Only Anthropic sends such a citation for a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CitedFile<'a> {
    pub(crate) id: Cow<'a, str>,
    pub(crate) name: Option<Cow<'a, str>>,
}

/// One annotation of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Annotation<'a> {
    Page(Citation<'a>),
    File(CitedFile<'a>),
    /// An annotation that no other dialect can represent.
    Other,
}

/// Types of Anthropic citations that refer to a document.
const DOCUMENT_LOCATIONS: [&str; 3] = ["char_location", "page_location", "content_block_location"];

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

    /// Reads a citation of a page. `length` is the number of characters in the text, or `None` if the target has a
    /// separate form for citations without a position.
    fn read(object: Object<'a>, kind: &str, length: Option<i64>) -> Option<Citation<'a>> {
        let of_whole_text = match kind {
            "web_search_result_location" => object.string("url").filter(|url| !url.is_empty()),
            "search_result_location" => object.string("source").filter(|url| is_address(url)),
            _ => None,
        };
        if let Some(url) = of_whole_text {
            return Some(Citation {
                url,
                title: object.string("title"),
                start: length.map(|_| 0),
                end: length,
                content: None,
            });
        }
        if kind != "url_citation" {
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
            content: facts.string("content"),
        })
    }
}

impl<'a> Annotation<'a> {
    fn read(raw: Raw<'a>, length: Option<i64>) -> Annotation<'a> {
        let object = Object::of(raw);
        let Some((object, kind)) = object.and_then(|object| {
            let kind = object.string("type")?;
            Some((object, kind))
        }) else {
            return Annotation::Other;
        };
        if DOCUMENT_LOCATIONS.contains(&kind.as_ref()) {
            let id = object.string("file_id").filter(|id| !id.is_empty());
            return id.map_or(Annotation::Other, |id| {
                let name = object.string("document_title");
                Annotation::File(CitedFile { id, name })
            });
        }
        Citation::read(object, &kind, length).map_or(Annotation::Other, Annotation::Page)
    }
}

/// Returns true if the source of a search result is the address of a web page.
pub(crate) fn is_address(source: &str) -> bool {
    source.starts_with("http://") || source.starts_with("https://")
}

/// Reads the annotations of a text part with `length` characters. `length` is `None` if the target has a separate form
/// for citations without a position.
pub(crate) fn annotations(list: &str, length: Option<i64>) -> impl Iterator<Item = Annotation<'_>> {
    let all = items(Raw {
        text: list,
        kind: Kind::Array,
    });
    all.into_iter()
        .map(move |raw| Annotation::read(raw, length))
}

/// Returns the cited pages among the annotations of a text part with `length` characters, and whether there were other
/// annotations.
pub(crate) fn citations(list: &str, length: Option<i64>) -> (Vec<Citation<'_>>, bool) {
    let mut cited = Vec::new();
    let mut others = false;
    for annotation in annotations(list, length) {
        match annotation {
            Annotation::Page(citation) => cited.push(citation),
            Annotation::File(_) | Annotation::Other => others = true,
        }
    }
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

    #[test]
    fn a_search_result_is_a_page_if_its_source_is_an_address() {
        let text = r#"[{"type":"search_result_location","source":"https://a","title":null},
            {"type":"search_result_location","source":"ftp://a","title":"t"}]"#;
        let (cited, others) = citations(text, Some(5));
        assert!(others);
        assert_eq!(
            (cited[0].url.as_ref(), cited[0].end),
            ("https://a", Some(5))
        );
    }

    #[test]
    fn a_document_is_a_file_if_it_has_an_id() {
        let text = r#"[{"type":"page_location","file_id":"f","document_title":"t"},
            {"type":"char_location","file_id":null},{"type":"x","file_id":"f"}]"#;
        let read: Vec<Annotation<'_>> = annotations(text, None).collect();
        let file = CitedFile {
            id: Cow::Borrowed("f"),
            name: Some(Cow::Borrowed("t")),
        };
        assert_eq!(
            read,
            [Annotation::File(file), Annotation::Other, Annotation::Other]
        );
    }
}
