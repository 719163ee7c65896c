//! Finds members and items of a value that was scanned as raw text, and splits a payload into its members.
//!
//! Every decoder uses these functions to find values, distinguish kinds and unescape strings. If a key is duplicated,
//! the last value is used.

use crate::json::Key;
use crate::json::Kind;
use crate::json::Number;
use crate::json::Raw;
use crate::json::Scan;
use crate::json::Scanner;
use crate::json::Text;
use crate::json::text::has_backslash;
use std::borrow::Cow;

/// Initial capacity for members, sufficient for most events.
const USUAL: usize = 12;

/// Initial capacity for members of an object inside an event.
const USUAL_NESTED: usize = 4;

/// Typical size of a member in bytes, and the largest initial capacity. A vector that grows on demand starts with four
/// members and is moved each time. With a larger capacity, the allocator's fast path would not be used.
const MEMBER: usize = 24;
const MOST: usize = 1024 / size_of::<Member<'_>>();

/// A value that may be absent.
pub(crate) type Slot<'a> = Option<Raw<'a>>;

/// One member of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'a> {
    pub(crate) key: Key<'a>,
    pub(crate) raw: Raw<'a>,
}

/// A complete payload that was validated; an object is split into its members.
#[derive(Debug)]
pub(crate) enum Document<'a> {
    Object(Object<'a>),
    /// An array, a string, a number or a literal.
    Other(Raw<'a>),
}

/// An object and its members in wire order.
#[derive(Clone, Debug)]
pub(crate) struct Object<'a> {
    pub(crate) raw: Raw<'a>,
    pub(crate) members: Vec<Member<'a>>,
    /// True if the object contains an integer outside 64 bits; set only for complete payloads.
    pub(crate) wide_integer: bool,
}

impl<'a> Object<'a> {
    /// Returns the object, or `None` for any other value.
    pub(crate) fn of(raw: Raw<'a>) -> Option<Object<'a>> {
        (raw.kind == Kind::Object).then(|| Object {
            raw,
            members: members(raw),
            wide_integer: false,
        })
    }

    pub(crate) fn get(&self, name: &str) -> Slot<'a> {
        find(&self.members, name)
    }

    /// Returns a member unless it is null.
    pub(crate) fn present(&self, name: &str) -> Slot<'a> {
        present(self.get(name))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns a member if it is an object.
    pub(crate) fn object(&self, name: &str) -> Option<Object<'a>> {
        self.get(name).and_then(Object::of)
    }

    /// Returns the text of a string member, with unpaired surrogates replaced.
    pub(crate) fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(string)
    }

    /// Returns the names of all members, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = self.members.iter();
        let mut names: Vec<String> = names.map(|member| member.key.name().into_owned()).collect();
        names.sort();
        names.dedup();
        names
    }
}

/// Parses one complete payload.
pub(crate) fn document(text: &str, max_depth: Option<u64>) -> Scan<Document<'_>> {
    let mut scanner = Scanner::new(text, max_depth);
    let kind = scanner.kind()?;
    if kind != Kind::Object {
        let raw = scanner.skip()?;
        scanner.finish()?;
        return Ok(Document::Other(raw));
    }
    let mut members = Vec::with_capacity(USUAL);
    scanner.enter_object()?;
    while let Some(key) = scanner.next_key()? {
        let raw = scanner.skip()?;
        members.push(Member { key, raw });
    }
    scanner.finish()?;
    Ok(Document::Object(Object {
        raw: Raw { text, kind },
        members,
        wide_integer: scanner.wide_integer(),
    }))
}

/// Returns the members of an object that was scanned as raw text, in order; empty for a value of any other type.
pub(crate) fn members(raw: Raw<'_>) -> Vec<Member<'_>> {
    let room = (raw.text.len() / MEMBER).min(MOST);
    let mut out = Vec::with_capacity(if raw.kind == Kind::Object { room } else { 0 });
    let mut scanner = Scanner::again(raw.text);
    if raw.kind == Kind::Object && scanner.enter_object().is_ok() {
        while let Ok(Some(key)) = scanner.next_key() {
            let Ok(raw) = scanner.skip() else { break };
            out.push(Member { key, raw });
        }
    }
    out
}

/// Parses the object at the cursor of a text that was already validated. `value` consumes the value of each key and
/// returns it, so that a decoder can read nested values in the same pass.
#[inline]
pub(crate) fn object_at<'a>(
    scanner: &mut Scanner<'a>,
    mut value: impl FnMut(Key<'a>, &mut Scanner<'a>) -> Scan<Raw<'a>>,
) -> Scan<Object<'a>> {
    let kind = scanner.kind()?;
    let start = scanner.pos();
    let mut members = Vec::with_capacity(USUAL_NESTED);
    scanner.enter_object()?;
    while let Some(key) = scanner.next_key()? {
        let raw = value(key, scanner)?;
        members.push(Member { key, raw });
    }
    Ok(Object {
        raw: scanner.passed(start, kind),
        members,
        wide_integer: false,
    })
}

/// Returns the items of an array that was scanned as raw text; empty for a value of any other type.
pub(crate) fn items(raw: Raw<'_>) -> Vec<Raw<'_>> {
    let mut out = Vec::new();
    let mut scanner = Scanner::again(raw.text);
    if raw.kind == Kind::Array && scanner.enter_array().is_ok() {
        while let Ok(true) = scanner.next_item() {
            let Ok(raw) = scanner.skip() else { break };
            out.push(raw);
        }
    }
    out
}

/// Returns the first item of an array.
pub(crate) fn first_item(raw: Raw<'_>) -> Slot<'_> {
    let mut scanner = Scanner::again(raw.text);
    if raw.kind != Kind::Array || scanner.enter_array().is_err() || scanner.next_item() != Ok(true)
    {
        return None;
    }
    scanner.skip().ok()
}

/// Returns the last member with this name.
pub(crate) fn find<'a>(members: &[Member<'a>], name: &str) -> Slot<'a> {
    members
        .iter()
        .rev()
        .find(|member| member.key.is(name))
        .map(|member| member.raw)
}

/// Returns a value unless it is null.
pub(crate) fn present(slot: Slot<'_>) -> Slot<'_> {
    slot.filter(|raw| raw.kind != Kind::Null)
}

/// Returns true if the member is this string. `word` must not contain a backslash.
pub(crate) fn is_string(slot: Slot<'_>, word: &str) -> bool {
    let Some(raw) = slot.filter(|raw| raw.kind == Kind::String) else {
        return false;
    };
    let inner = raw.text.get(1..raw.text.len().saturating_sub(1));
    let inner = inner.unwrap_or_default();
    // An escape is longer than the character that it stands for.
    inner == word
        || (inner.len() > word.len()
            && has_backslash(inner.as_bytes())
            && string(raw).is_some_and(|text| text == word))
}

/// Returns the last member with this name of an object that was scanned as raw text.
pub(crate) fn member_of<'a>(raw: Raw<'a>, name: &str) -> Slot<'a> {
    let mut found = None;
    let mut scanner = Scanner::again(raw.text);
    if raw.kind == Kind::Object && scanner.enter_object().is_ok() {
        while let Ok(Some(key)) = scanner.next_key() {
            let Ok(raw) = scanner.skip() else { break };
            if key.is(name) {
                found = Some(raw);
            }
        }
    }
    found
}

/// Returns the text of a string, with unpaired surrogates replaced.
pub(crate) fn string(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    text(raw).map(|text| text.into_whole().0)
}

/// Returns the text of a string, with surrogate halves at its ends kept separate.
pub(crate) fn text(raw: Raw<'_>) -> Option<Text<'_>> {
    match raw.kind {
        Kind::String => raw
            .text
            .get(1..raw.text.len().saturating_sub(1))
            .map(Text::unescape),
        _ => None,
    }
}

/// Returns an integer, even if a gateway wrote it as `1.0` or `"1"`.
pub(crate) fn integer(raw: Raw<'_>) -> Option<i64> {
    match raw.kind {
        Kind::Number => Number { raw: raw.text }.integral(),
        Kind::String => {
            let text = string(raw)?;
            let all = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            all.then(|| text.parse().ok()).flatten()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_split_into_its_members() {
        let text = r#"{"a":1,"\u0062":{"c":"x"},"a":"2","n":null}"#;
        let Ok(Document::Object(object)) = document(text, None) else {
            panic!("an object");
        };
        assert_eq!(object.string("a").as_deref(), Some("2"));
        assert_eq!(object.get("a").and_then(integer), Some(2));
        assert_eq!(object.names(), ["a", "b", "n"]);
        assert!(object.has("n") && object.present("n").is_none());
        let inner = object.object("b").and_then(|inner| inner.string("c"));
        assert_eq!(inner.as_deref(), Some("x"));
        let found = |name| member_of(object.raw, name).map(|raw| raw.text);
        assert_eq!(found("a"), Some("\"2\""));
        assert_eq!(found("b"), Some("{\"c\":\"x\"}"));
        assert_eq!(found("c"), None);
        assert!(is_string(object.get("a"), "2"));
        for (text, word, same) in [
            (r#""stop""#, "stop", true),
            (r#""\u0073top""#, "stop", true),
            (r#""stops""#, "stop", false),
            (r#""sto\n""#, "stop", false),
            ("1", "1", false),
        ] {
            let Ok(Document::Other(raw)) = document(text, None) else {
                panic!("a scalar");
            };
            assert_eq!(is_string(Some(raw), word), same, "{text}");
        }
        assert!(matches!(document("[1]", None), Ok(Document::Other(_))));
        assert!(document("{\"a\":1}}", None).is_err());
    }
}
