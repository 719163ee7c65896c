//! Merges the members of several JSON objects: arguments that arrive as objects, and provider metadata.
//!
//! `ObjectMerge` merges arguments. For each key, a new string that begins with the previous string replaces the
//! previous string, any other string is appended, and a value of another type replaces the previous value. `RawMembers`
//! keeps the last value of each key. A merge takes time proportional to the size of the new object; the whole text is
//! built only on demand.

use crate::assemble::part::canonical_json::canonical;
use crate::assemble::part::canonical_json::is_whole;
use crate::json::Raw;
use crate::json::Scan;
use crate::json::Scanner;
use crate::json::Text;
use crate::json::write_string;
use crate::model::lazy_box::blank;
use std::borrow::Cow;
use std::collections::HashMap;

/// Returns the key of each member and the JSON text of its value, in order. A repeated key appears once, at its first
/// position and with its last value.
fn members(raw: &str) -> Vec<(Cow<'_, str>, &str)> {
    let mut found: Vec<(Cow<'_, str>, &str)> = Vec::with_capacity(FEW);
    // The text was already validated, so `read` cannot fail. A failure would only end the list.
    let _ = read(raw, |key, text| found.push((key, text)));
    let is_repeated = |at: usize, key: &str| found.iter().take(at).any(|(other, _)| other == key);
    let mut keys = found.iter().enumerate();
    if found.len() <= FEW && !keys.any(|(at, (key, _))| is_repeated(at, key)) {
        return found;
    }
    let mut keyed = Keyed::default();
    for (key, text) in found {
        *keyed.slot(key) = text;
    }
    keyed.members
}

fn read<'a>(raw: &'a str, mut each: impl FnMut(Cow<'a, str>, &'a str)) -> Scan<()> {
    let mut scanner = Scanner::of_validated(raw);
    scanner.enter_object()?;
    while let Some(key) = scanner.next_key()? {
        let Raw { text, .. } = scanner.skip()?;
        each(key.name(), text);
    }
    Ok(())
}

/// Maximum number of keys that are searched linearly.
const FEW: usize = 16;

/// A map from keys to values, in the order in which the keys first appeared.
#[derive(Clone, Debug)]
struct Keyed<K, V> {
    members: Vec<(K, V)>,
    /// The position of each key, once there are too many keys to search linearly.
    positions: HashMap<String, usize>,
}

impl<K, V> Default for Keyed<K, V> {
    fn default() -> Self {
        Keyed {
            members: Vec::new(),
            positions: HashMap::new(),
        }
    }
}

impl<K: AsRef<str>, V: Default> Keyed<K, V> {
    fn slot(&mut self, key: impl AsRef<str> + Into<K>) -> &mut V {
        let position = match self.position(key.as_ref()) {
            Some(position) => position,
            None => {
                let position = self.members.len();
                if position == FEW {
                    let known = self.members.iter().map(|(key, _)| key.as_ref().to_owned());
                    self.positions = known.zip(0..).collect();
                }
                if position >= FEW {
                    self.positions.insert(key.as_ref().to_owned(), position);
                }
                self.members.push((key.into(), V::default()));
                position
            }
        };
        // The lookup cannot panic, because the member was just found or inserted.
        #[allow(clippy::indexing_slicing)]
        &mut self.members[position].1
    }

    fn position(&self, key: &str) -> Option<usize> {
        if self.members.len() > FEW {
            return self.positions.get(key).copied();
        }
        self.members
            .iter()
            .position(|(known, _)| known.as_ref() == key)
    }

    fn has(&self, key: &str) -> bool {
        self.position(key).is_some()
    }

    fn known(&mut self, key: &str) -> Option<&mut V> {
        let position = self.position(key)?;
        self.members.get_mut(position).map(|(_, value)| value)
    }

    fn get(&self, key: &str) -> Option<&V> {
        let position = self.position(key)?;
        self.members.get(position).map(|(_, value)| value)
    }
}

/// The value of a member: the characters of a string, or the JSON text of any other value.
#[derive(Clone, Debug)]
enum Value {
    Wire(String),
    /// The text of a string and its length in characters. The length is stored so that adding a piece takes time
    /// proportional to the piece.
    Pieces(String, usize),
}

impl Default for Value {
    fn default() -> Value {
        Value::Wire(String::new())
    }
}

impl Value {
    fn length(&self) -> usize {
        match self {
            Value::Wire(text) => text.chars().count(),
            Value::Pieces(_, length) => *length,
        }
    }
}

/// The members merged so far, by key.
#[derive(Clone, Debug, Default)]
pub struct ObjectMerge {
    members: Keyed<String, Value>,
    /// The approximate size of the merged text in characters, which counts towards the limits on arguments.
    pub size: usize,
}

impl ObjectMerge {
    pub fn new(first: &str) -> ObjectMerge {
        let mut merge = ObjectMerge {
            size: 2,
            ..ObjectMerge::default()
        };
        merge.add(first);
        merge
    }

    /// Merges one more object, given as JSON text.
    pub fn add(&mut self, raw: &str) {
        for (key, text) in members(raw) {
            if !self.members.has(&key) {
                self.size += key.chars().count() + 4;
            }
            let value = self.members.slot(key);
            self.size -= value.length();
            match (inside(text), &mut *value) {
                (None, _) => *value = Value::Wire(text.to_owned()),
                (Some(inner), Value::Pieces(before, length)) => {
                    let (piece, _) = Text::unescape(inner).into_whole();
                    let more = piece.chars().count();
                    if piece.starts_with(before.as_str()) {
                        *before = piece.into_owned();
                        *length = more;
                    } else {
                        before.push_str(&piece);
                        *length += more;
                    }
                }
                (Some(inner), Value::Wire(_)) => {
                    let piece = Text::unescape(inner).into_whole().0.into_owned();
                    let length = piece.chars().count();
                    *value = Value::Pieces(piece, length);
                }
            }
            self.size += value.length();
        }
    }

    /// Returns true if the other object has equal members. Takes time proportional to the size of the other object.
    pub fn has_same_members(&self, raw: &str) -> bool {
        if !is_whole(raw.as_bytes()) {
            return false;
        }
        let others = members(raw);
        others.len() == self.members.members.len()
            && others
                .iter()
                .all(|(key, text)| self.members.get(key).is_some_and(|value| same(value, text)))
    }

    /// Returns the members as compact JSON, in the order in which they first appeared.
    pub fn text(&self) -> String {
        let mut out = String::from("{");
        for (position, (key, value)) in self.members.members.iter().enumerate() {
            if position > 0 {
                out.push(',');
            }
            write_string(&mut out, key);
            out.push(':');
            match value {
                Value::Wire(text) => out.push_str(text),
                Value::Pieces(text, _) => write_string(&mut out, text),
            }
        }
        out.push('}');
        out
    }
}

fn same(value: &Value, text: &str) -> bool {
    match value {
        Value::Pieces(pieces, _) => inside(text)
            .is_some_and(|inner| Text::unescape(inner).into_whole().0 == pieces.as_str()),
        // To limit the time, a value of more than twice the length counts as different, even if it is equal JSON.
        Value::Wire(wire) => {
            wire == text
                || (wire.chars().count() <= 2 * text.chars().count()
                    && canonical(wire) == canonical(text))
        }
    }
}

/// Returns the text between the quotes of a JSON string, or `None` for another value.
fn inside(text: &str) -> Option<&str> {
    text.strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
}

/// A change in the size of stored members, for `max_text_bytes`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Growth {
    pub bytes: i64,
    /// The number of values that are stored separately. A single object is stored as one text, so it has no such
    /// values.
    pub entries: i64,
}

impl Growth {
    /// Returns the opposite of this change.
    pub fn released(self) -> Growth {
        Growth {
            bytes: -self.bytes,
            entries: -self.entries,
        }
    }
}

/// The members of several raw JSON objects. The value of a key is the last one received that is not null.
#[derive(Clone, Debug, Default)]
pub struct RawMembers {
    /// The JSON text of the first object, as `text` returns it. Usually, there is only one object.
    first: Option<Box<str>>,
    /// The members, once there are several objects.
    members: Option<Box<Keyed<String, String>>>,
    size: usize,
}

impl RawMembers {
    /// Adds the members of one object. Returns the change in the size of the stored members.
    pub fn add(&mut self, raw: &str) -> Growth {
        let before = self.held();
        self.merge(raw);
        let after = self.held();
        Growth {
            bytes: after.bytes - before.bytes,
            entries: after.entries - before.entries,
        }
    }

    /// Returns the size of all stored members, as the growth from an empty state.
    pub fn held(&self) -> Growth {
        Growth {
            bytes: signed(self.size),
            entries: signed(self.count()),
        }
    }

    fn count(&self) -> usize {
        self.members.as_ref().map_or(0, |keyed| keyed.members.len())
    }

    fn merge(&mut self, raw: &str) {
        let more = members(raw);
        if self.first.is_none() && self.members.is_none() {
            if is_written(raw, &more) {
                self.size += raw.chars().count() - 1;
                self.first = Some(raw.into());
                return;
            }
            let sizes = more
                .iter()
                .map(|(key, text)| key.chars().count() + 4 + text.chars().count());
            self.size += sizes.sum::<usize>();
            self.first = written(&more).map(String::into_boxed_str);
            return;
        }
        let mut size = self.size;
        let members = self.several();
        for (key, text) in more {
            let Some(value) = members.known(&key) else {
                size += key.chars().count() + 4 + text.chars().count();
                text.clone_into(members.slot(key));
                continue;
            };
            // A null does not replace a value, and an equal value changes nothing.
            if text == "null" || value == text {
                continue;
            }
            size -= value.chars().count();
            size += text.chars().count();
            text.clone_into(value);
        }
        self.size = size;
    }

    pub fn put(&mut self, key: &str, text: String) {
        *self.several().slot(key) = text;
    }

    /// Returns the table of members. If there was only one object, splits it into members first.
    fn several(&mut self) -> &mut Keyed<String, String> {
        let first = self.first.take();
        self.members.get_or_insert_with(|| {
            let known = first.as_deref().map(members).unwrap_or_default();
            let mut keyed = Keyed::default();
            keyed.members.reserve(known.len());
            for (key, text) in known {
                *keyed.slot(key) = text.to_owned();
            }
            Box::new(keyed)
        })
    }

    pub fn text(&self) -> Option<String> {
        match &self.members {
            Some(keyed) => written(&keyed.members),
            None => self.first.as_deref().map(str::to_owned),
        }
    }
}

blank!(RawMembers);

/// Returns the members as the text of a JSON object, or `None` if there are none.
fn written(members: &[(impl AsRef<str>, impl AsRef<str>)]) -> Option<String> {
    if members.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(written_length(members));
    out.push('{');
    for (position, (key, text)) in members.iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        write_string(&mut out, key.as_ref());
        out.push(':');
        out.push_str(text.as_ref());
    }
    out.push('}');
    Some(out)
}

/// Returns the length of the text that `written` returns if no key needs escapes.
fn written_length(members: &[(impl AsRef<str>, impl AsRef<str>)]) -> usize {
    let lengths = members.iter();
    let lengths = lengths.map(|(key, text)| key.as_ref().len() + text.as_ref().len() + 4);
    1 + lengths.sum::<usize>()
}

/// Returns true if `written` would return exactly `raw`, the text of an object with these members. The result is true
/// only if no key contains escapes, no key is repeated, and no whitespace separates members.
fn is_written(raw: &str, members: &[(Cow<'_, str>, &str)]) -> bool {
    let plain = |(key, _): &(Cow<'_, str>, &str)| matches!(key, Cow::Borrowed(_));
    !members.is_empty() && members.iter().all(plain) && raw.len() == written_length(members)
}

fn signed(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_keys_are_found_like_few() {
        let mut keyed: Keyed<String, usize> = Keyed::default();
        for round in 0..2 {
            for number in 0..3 * FEW {
                *keyed.slot(format!("key {number}")) += number + round;
                assert!(!keyed.has(&format!("key {}", number + 3 * FEW)));
            }
        }
        assert_eq!(keyed.members.len(), 3 * FEW);
        for number in 0..3 * FEW {
            assert_eq!(keyed.get(&format!("key {number}")), Some(&(2 * number + 1)));
        }
    }
}
