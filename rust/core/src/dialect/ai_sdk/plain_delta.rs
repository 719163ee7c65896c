//! Fast path for AI SDK deltas that contain only their type, id, and text. Most payloads contain only these members.
//!
//! The module `part` decodes all other deltas, and would produce the same result for a plain delta.

use crate::json::Kind;
use crate::json::Raw;
use crate::json::Text;
use crate::json::members::Object;
use crate::json::members::text;

/// A plain delta and the names of its members.
#[derive(Debug)]
pub(crate) struct PlainDelta<'a> {
    pub(crate) kind: &'a str,
    pub(crate) id_key: &'a str,
    pub(crate) id: &'a str,
    pub(crate) text_key: &'a str,
    pub(crate) text: Text<'a>,
}

impl<'a> PlainDelta<'a> {
    /// Returns the plain delta in an object. Returns `None` if the object has other members, escaped keys, or an empty
    /// text.
    pub(crate) fn of(object: &Object<'a>) -> Option<PlainDelta<'a>> {
        if object.members.len() != 3 || object.wide_integer {
            return None;
        }
        let (mut kind, mut id, mut delta) = (None, None, None);
        for member in &object.members {
            if member.key.escaped {
                return None;
            }
            let key = member.key.raw;
            let slot = match key {
                "type" => &mut kind,
                "id" | "toolCallId" => &mut id,
                "delta" | "text" | "inputTextDelta" => &mut delta,
                _ => return None,
            };
            *slot = Some((key, member.raw));
        }
        // The object has three members, and they fill three different slots, so no key is duplicated.
        let ((_, kind), (id_key, id), (text_key, delta)) = (kind?, id?, delta?);
        let text = text(delta).filter(|text| !text.is_empty())?;
        Some(PlainDelta {
            kind: plain(kind)?,
            id_key,
            id: plain(id)?,
            text_key,
            text,
        })
    }
}

/// Returns a string that has no escapes and begins with a visible character, so that it cannot be blank.
fn plain(raw: Raw<'_>) -> Option<&str> {
    let inner = raw.text.get(1..raw.text.len().saturating_sub(1))?;
    let (first, rest) = inner.as_bytes().split_first()?;
    let fits = raw.kind == Kind::String && first.is_ascii_graphic() && *first != b'\\';
    (fits && !rest.contains(&b'\\')).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::members::Document;
    use crate::json::members::document;

    fn piece(text: &str) -> Option<(String, String, String)> {
        let Ok(Document::Object(object)) = document(text, None) else {
            return None;
        };
        let piece = PlainDelta::of(&object)?;
        let (kind, id) = (piece.kind.to_owned(), piece.id.to_owned());
        Some((kind, id, piece.text.into_whole().0.into_owned()))
    }

    #[test]
    fn only_plain_text_takes_the_fast_path() {
        let found = piece(r#"{"id":"0","type":"text-delta","delta":"a\n"}"#);
        assert_eq!(
            found,
            Some(("text-delta".to_owned(), "0".to_owned(), "a\n".to_owned()))
        );
        for other in [
            r#"{"id":"0","type":"text-delta","delta":""}"#,
            r#"{"id":0,"type":"text-delta","delta":"a"}"#,
            r#"{"id":" ","type":"text-delta","delta":"a"}"#,
            r#"{"id":"0","type":"text-delta","delta":["a"]}"#,
            r#"{"id":"0","id":"0","delta":"a"}"#,
            r#"{"id":"0","type":"text-delta","delta":"a","x":1}"#,
            r#"{"\u0069d":"0","type":"text-delta","delta":"a"}"#,
            r#"{"id":"\u0030","type":"text-delta","delta":"a"}"#,
            r#"{"id":"0","type":"text-delta","delta":"a","text":"b"}"#,
        ] {
            assert_eq!(piece(other), None, "{other}");
        }
    }
}
