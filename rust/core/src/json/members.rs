//! Splits a payload into its members, and finds the members and items of values that are stored as raw text.
//!
//! All decoders use these functions to find values, distinguish kinds, and unescape strings. If a key is duplicated,
//! the last value is used. The objects and lists that the decoder reads (`Place`) are split while the payload is
//! validated, so that they are not scanned again.

use crate::json::Key;
use crate::json::Kind;
use crate::json::Number;
use crate::json::Raw;
use crate::json::Scan;
use crate::json::Scanner;
use crate::json::Text;
use crate::json::text::has_backslash;
use std::borrow::Cow;

/// Typical size of a member in bytes, and the largest initial capacity.
///
/// Without an initial capacity, a vector starts with four members and is moved each time it grows. With a larger
/// initial capacity, the allocator could not use its fast path.
const MEMBER: usize = 24;
const MAX_INITIAL_MEMBERS: usize = 1024 / size_of::<Member<'_>>();

/// The value of a member that may be absent.
pub(crate) type Slot<'a> = Option<Raw<'a>>;

/// One member of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'a> {
    pub(crate) key: Key<'a>,
    pub(crate) raw: Raw<'a>,
}

/// A complete, validated payload. An object is split into its members.
#[derive(Debug)]
pub(crate) enum Document<'a> {
    Object(Object<'a>),
    /// An array, a string, a number, `true`, `false`, or `null`.
    Other(Raw<'a>),
}

/// An object and its members in wire order.
#[derive(Clone, Debug)]
pub(crate) struct Object<'a> {
    pub(crate) raw: Raw<'a>,
    pub(crate) members: Vec<Member<'a>>,
    /// True if the object contains an integer outside -2^63 to 2^64-1. The flag is set only for complete payloads.
    pub(crate) wide_integer: bool,
    /// The objects and lists inside this object that are already split. `None` if no such value exists.
    pub(crate) nested: Option<Box<Nested<'a>>>,
}

impl<'a> Object<'a> {
    /// Splits an object into its members. Returns `None` if the value is not an object.
    pub(crate) fn of(raw: Raw<'a>) -> Option<Object<'a>> {
        (raw.kind == Kind::Object).then(|| Object {
            raw,
            members: members(raw),
            wide_integer: false,
            nested: None,
        })
    }

    pub(crate) fn nested(&self) -> Option<&Nested<'a>> {
        self.nested.as_deref()
    }

    /// Splits a value inside this object. Returns `None` if the value is not an object.
    pub(crate) fn open(&self, raw: Raw<'a>) -> Option<Cow<'_, Object<'a>>> {
        let known = self.nested().and_then(|nested| nested.object(raw));
        known
            .map(Cow::Borrowed)
            .or_else(|| Object::of(raw).map(Cow::Owned))
    }

    /// Returns the items of an array inside this object. The result is empty if the value is not an array.
    pub(crate) fn items(&self, raw: Raw<'a>) -> Cow<'_, [Raw<'a>]> {
        let known = self.nested().and_then(|nested| nested.items(raw));
        known.map_or_else(|| Cow::Owned(items(raw)), Cow::Borrowed)
    }

    pub(crate) fn get(&self, name: &str) -> Slot<'a> {
        find(&self.members, name)
    }

    /// Returns the member with this name unless it is null.
    pub(crate) fn present(&self, name: &str) -> Slot<'a> {
        present(self.get(name))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns the member with this name if it is an object.
    pub(crate) fn object(&self, name: &str) -> Option<Object<'a>> {
        self.get(name).and_then(Object::of)
    }

    /// Returns the text of the member with this name if it is a string. Unpaired surrogates are replaced.
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

/// Parses one complete payload, without splitting nested values.
pub(crate) fn document(text: &str, max_depth: Option<u64>) -> Scan<Document<'_>> {
    split(text, max_depth, Flat)
}

/// The place of a value in a payload. The place determines which nested values the decoder reads.
///
/// A place must not contain itself, because values are split recursively.
pub(crate) trait Place: Copy {
    /// Returns the place of the value of a member, if the decoder reads the value as an object or array.
    fn child(self, key: Key<'_>) -> Option<Self>;

    /// Returns the place of the items, if the decoder reads an array at this place.
    fn item(self) -> Option<Self>;

    /// Returns true if the decoder reads the members of an object at this place and two of them may have the same key.
    ///
    /// This method is not called for the payload itself.
    fn may_repeat(self, members: &[Member<'_>]) -> bool;
}

/// A payload whose nested values are not split.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flat;

impl Place for Flat {
    fn child(self, _key: Key<'_>) -> Option<Flat> {
        None
    }

    fn item(self) -> Option<Flat> {
        None
    }

    fn may_repeat(self, _members: &[Member<'_>]) -> bool {
        false
    }
}

/// Maximum number of objects to split, and maximum number of lists to split. Further values are scanned again when they
/// are read.
const KEPT: usize = 64;

/// Initial capacities, sufficient for most payloads, objects and lists.
const OBJECTS: usize = 8;
const MEMBERS: usize = 8;
const ITEMS: usize = 4;

/// Nested objects and lists of a payload, already split into members and items.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nested<'a> {
    objects: Vec<Object<'a>>,
    lists: Vec<(Raw<'a>, Vec<Raw<'a>>)>,
    /// True if one of the objects may have a duplicate key, or if there are too many objects to check.
    pub(crate) may_repeat: bool,
}

impl<'a> Nested<'a> {
    pub(crate) fn object(&self, raw: Raw<'a>) -> Option<&Object<'a>> {
        let mut objects = self.objects.iter();
        objects.find(|known| is_same(known.raw, raw))
    }

    pub(crate) fn items(&self, raw: Raw<'a>) -> Option<&[Raw<'a>]> {
        let mut lists = self.lists.iter();
        let known = lists.find(|(list, _)| is_same(*list, raw));
        known.map(|(_, items)| items.as_slice())
    }

    fn with_room() -> Box<Nested<'a>> {
        Box::new(Nested {
            objects: Vec::with_capacity(OBJECTS),
            ..Nested::default()
        })
    }

    fn is_full(&self) -> bool {
        self.objects.len() >= KEPT || self.lists.len() >= KEPT
    }
}

/// Returns true if both values are the same span of the payload. Equal text at another place in the payload is not the
/// same span.
fn is_same(one: Raw<'_>, other: Raw<'_>) -> bool {
    std::ptr::eq(one.text, other.text)
}

/// Parses one complete payload, and splits the nested values that `root` selects.
pub(crate) fn split<'a>(
    text: &'a str,
    max_depth: Option<u64>,
    root: impl Place,
) -> Scan<Document<'a>> {
    let mut scanner = Scanner::new(text, max_depth);
    let kind = scanner.kind()?;
    if kind != Kind::Object {
        let raw = scanner.skip()?;
        scanner.finish()?;
        return Ok(Document::Other(raw));
    }
    let mut splitter = Splitter {
        scanner,
        nested: None,
    };
    let members = splitter.members(root, ROOT_MEMBERS)?;
    let Splitter {
        mut scanner,
        nested,
    } = splitter;
    scanner.finish()?;
    Ok(Document::Object(Object {
        raw: Raw { text, kind },
        members,
        wide_integer: scanner.wide_integer(),
        nested,
    }))
}

/// Initial capacity for the members of a payload, sufficient for most events.
const ROOT_MEMBERS: usize = 12;

struct Splitter<'a> {
    scanner: Scanner<'a>,
    nested: Option<Box<Nested<'a>>>,
}

impl<'a> Splitter<'a> {
    #[inline]
    fn members(&mut self, place: impl Place, room: usize) -> Scan<Vec<Member<'a>>> {
        let mut members = Vec::with_capacity(room);
        self.scanner.enter_object()?;
        while let Some(key) = self.scanner.next_key()? {
            let inner = match self.scanner.kind()? {
                Kind::Object | Kind::Array => place.child(key),
                _ => None,
            };
            let raw = match inner {
                Some(inner) => self.value(inner)?,
                None => self.scanner.skip()?,
            };
            members.push(Member { key, raw });
        }
        Ok(members)
    }

    /// Splits the object or array at the cursor, and returns its text.
    fn value(&mut self, place: impl Place) -> Scan<Raw<'a>> {
        let kind = self.scanner.kind()?;
        let nested = self.nested.get_or_insert_with(Nested::with_room);
        if nested.is_full() {
            nested.may_repeat = true;
            return self.scanner.skip();
        }
        let start = self.scanner.pos();
        match (kind, place.item()) {
            (Kind::Object, _) => {
                let members = self.members(place, MEMBERS)?;
                let raw = self.scanner.passed(start, kind);
                let nested = self.nested.get_or_insert_default();
                nested.may_repeat |= place.may_repeat(&members);
                nested.objects.push(Object {
                    raw,
                    members,
                    wide_integer: false,
                    nested: None,
                });
                Ok(raw)
            }
            (Kind::Array, Some(inner)) => {
                let mut items = Vec::with_capacity(ITEMS);
                self.scanner.enter_array()?;
                while self.scanner.next_item()? {
                    items.push(match self.scanner.kind()? {
                        Kind::Object => self.value(inner)?,
                        _ => self.scanner.skip()?,
                    });
                }
                let raw = self.scanner.passed(start, kind);
                let nested = self.nested.get_or_insert_default();
                nested.lists.push((raw, items));
                Ok(raw)
            }
            _ => self.scanner.skip(),
        }
    }
}

/// Returns the members of an object, in order. The result is empty if the value is not an array.
pub(crate) fn members(raw: Raw<'_>) -> Vec<Member<'_>> {
    let room = (raw.text.len() / MEMBER).min(MAX_INITIAL_MEMBERS);
    let mut out = Vec::with_capacity(if raw.kind == Kind::Object { room } else { 0 });
    let mut scanner = Scanner::of_validated(raw.text);
    if raw.kind == Kind::Object && scanner.enter_object().is_ok() {
        while let Ok(Some(key)) = scanner.next_key() {
            let Ok(raw) = scanner.skip() else { break };
            out.push(Member { key, raw });
        }
    }
    out
}

/// Returns the items of an array. The result is empty if the value is not an array.
pub(crate) fn items(raw: Raw<'_>) -> Vec<Raw<'_>> {
    let mut out = Vec::new();
    let mut scanner = Scanner::of_validated(raw.text);
    if raw.kind == Kind::Array && scanner.enter_array().is_ok() {
        while let Ok(true) = scanner.next_item() {
            let Ok(raw) = scanner.skip() else { break };
            out.push(raw);
        }
    }
    out
}

/// Returns the first item of an array, or `None` if the array is empty or the value is not an array.
pub(crate) fn first_item(raw: Raw<'_>) -> Slot<'_> {
    let mut scanner = Scanner::of_validated(raw.text);
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

/// Returns true if the member is `true`, or the string `"true"`, which some gateways send instead.
pub(crate) fn is_set(slot: Slot<'_>) -> bool {
    slot.is_some_and(|raw| match raw.kind {
        Kind::True => true,
        Kind::String => string(raw).is_some_and(|word| word.eq_ignore_ascii_case("true")),
        _ => false,
    })
}

/// Returns true if the member is this string. `word` must not contain a backslash.
pub(crate) fn is_string(slot: Slot<'_>, word: &str) -> bool {
    let Some(raw) = slot.filter(|raw| raw.kind == Kind::String) else {
        return false;
    };
    let inner = raw.text.get(1..raw.text.len().saturating_sub(1));
    let inner = inner.unwrap_or_default();
    // An escape is longer than the character that it represents.
    inner == word
        || (inner.len() > word.len()
            && has_backslash(inner.as_bytes())
            && string(raw).is_some_and(|text| text == word))
}

/// Returns the last member with this name in an object that is stored as raw text.
pub(crate) fn member_of<'a>(raw: Raw<'a>, name: &str) -> Slot<'a> {
    let mut found = None;
    let mut scanner = Scanner::of_validated(raw.text);
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

/// Returns the text of a string, with unpaired surrogates replaced. Returns `None` if the value is not an object.
pub(crate) fn string(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    text(raw).map(|text| text.into_whole().0)
}

/// Returns the text of a string, or `None` if the value is not a string. Surrogate halves at the ends of the text are
/// stored separately.
pub(crate) fn text(raw: Raw<'_>) -> Option<Text<'_>> {
    match raw.kind {
        Kind::String => raw
            .text
            .get(1..raw.text.len().saturating_sub(1))
            .map(Text::unescape),
        _ => None,
    }
}

/// Returns the value as a 64-bit integer, even if a gateway sent it as `1.0` or `"1"`. Otherwise returns `None`.
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
    use crate::json::duplicate_keys::may_repeat;

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

    /// The four places: the payload, its member `l`, the items of the list in `l`, and the member `o` of these items.
    #[derive(Clone, Copy)]
    enum Here {
        Root,
        List,
        Item,
        Leaf,
    }

    impl Place for Here {
        fn child(self, key: Key<'_>) -> Option<Here> {
            match self {
                Here::Root if key.is("l") => Some(Here::List),
                Here::Item if key.is("o") => Some(Here::Leaf),
                _ => None,
            }
        }

        fn item(self) -> Option<Here> {
            matches!(self, Here::List).then_some(Here::Item)
        }

        fn may_repeat(self, members: &[Member<'_>]) -> bool {
            may_repeat(members)
        }
    }

    fn payload(text: &str) -> Object<'_> {
        match split(text, None, Here::Root) {
            Ok(Document::Object(object)) => object,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn objects_and_lists_that_are_read_are_split() {
        let whole = payload(r#"{"l":[{"o":{"a":1},"x":{"y":2}},3],"x":{"o":{}}}"#);
        let nested = whole.nested().unwrap();
        let list = whole.get("l").unwrap();
        let [item, number] = nested.items(list).unwrap() else {
            panic!("two items");
        };
        assert_eq!(number.text, "3");
        let item = nested.object(*item).unwrap();
        assert_eq!(item.names(), ["o", "x"]);
        let inner = nested.object(item.get("o").unwrap()).unwrap();
        assert_eq!(inner.get("a").map(|raw| raw.text), Some("1"));
        assert!(nested.object(item.get("x").unwrap()).is_none());
        assert!(nested.object(whole.get("x").unwrap()).is_none());
        assert!(!nested.may_repeat);
        assert!(payload(r#"{"x":{"l":[]}}"#).nested().is_none());
    }

    #[test]
    fn duplicate_keys_where_members_are_read() {
        for (text, expected) in [
            (r#"{"l":[{"a":1,"a":2}]}"#, true),
            (r#"{"l":[{"o":{"a":1,"\u0061":2}}]}"#, true),
            (r#"{"l":[{"x":{"a":1,"a":2}}]}"#, false),
            (r#"{"l":{"a":1,"a":2}}"#, true),
        ] {
            assert_eq!(
                payload(text).nested().unwrap().may_repeat,
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn no_more_than_a_few_are_split() {
        let items = |count: usize| format!("{{\"l\":[{}]}}", vec!["{}"; count].join(","));
        let (few, many) = (items(KEPT), items(KEPT + 1));
        assert!(!payload(&few).nested().unwrap().may_repeat);
        let many = payload(&many);
        let nested = many.nested().unwrap();
        let last = nested.items(many.get("l").unwrap()).unwrap().last();
        assert!(nested.may_repeat && nested.object(*last.unwrap()).is_none());
    }

    #[test]
    fn what_is_not_json_is_rejected() {
        for text in [r#"{"l":[{"o":{"a"}}]}"#, r#"{"l":[{},]}"#, r#"{"l":[}"#] {
            assert!(split(text, None, Here::Root).is_err(), "{text}");
        }
        let deep = split(r#"{"l":[{"o":{}}]}"#, Some(3), Here::Root);
        assert!(deep.is_err());
    }
}
