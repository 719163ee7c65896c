//! Sets of member names. Lookups must be fast, because every member of every event is looked up.

use crate::json::Key;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Member;
use crate::json::members::Slot;
use crate::json::members::present;

/// A set of names, grouped by length, because few names have the same length. Each entry is the first eight bytes of a
/// name, the name, and its number.
#[derive(Debug, Default)]
pub(crate) struct Names {
    by_length: Vec<Vec<(u64, &'static str, u32)>>,
}

/// A name in the set, and its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    at: usize,
}

/// Maximum number of names in `Slots`.
const SLOTS: usize = 32;

/// The members of one object, indexed by the numbers of their names. If a key is duplicated, the last member is used.
#[derive(Debug, Default)]
pub(crate) struct Slots<'a> {
    slots: [Slot<'a>; SLOTS],
    /// True if the object has a member that is not in the set and is neither null nor `[]`.
    pub(crate) others: bool,
    /// True if a key in the set is duplicated.
    pub(crate) repeated: bool,
}

impl<'a> Slots<'a> {
    #[inline]
    pub(crate) fn of(names: &Names, members: &[Member<'a>]) -> Slots<'a> {
        let mut out = Slots::default();
        for member in members {
            let number = names.number_of(member.key).map(|number| number as usize);
            match number.and_then(|number| out.slots.get_mut(number)) {
                Some(slot) => out.repeated |= slot.replace(member.raw).is_some(),
                None => out.others |= has_information(member.raw),
            }
        }
        out
    }

    #[inline]
    pub(crate) fn get(&self, field: Field) -> Slot<'a> {
        self.slots.get(field.at).copied().flatten()
    }

    #[inline]
    pub(crate) fn present(&self, field: Field) -> Slot<'a> {
        present(self.get(field))
    }
}

/// A bit set with the numbers of all names that occur in one object.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyBits(u64);

impl Names {
    /// Builds a set of at most 64 names, because `KeyBits` has 64 bits.
    pub(crate) fn of(names: impl IntoIterator<Item = &'static str>) -> Names {
        let mut out = Names::default();
        let mut count = 0;
        for name in names {
            if out.number(name).is_some() {
                continue;
            }
            if out.by_length.len() <= name.len() {
                out.by_length.resize_with(name.len() + 1, Vec::new);
            }
            if let Some(row) = out.by_length.get_mut(name.len()) {
                row.push((head(name.as_bytes()), name, count));
                count += 1;
            }
        }
        debug_assert!(count <= 64, "a set of names is too large");
        out
    }

    #[inline]
    fn number(&self, name: &str) -> Option<u32> {
        let row = self.by_length.get(name.len())?;
        let first = head(name.as_bytes());
        let same = |known: &str| name.len() <= 8 || known == name;
        let mut row = row.iter();
        let found = row.find(|(head, known, _)| *head == first && same(known));
        found.map(|(_, _, number)| *number)
    }

    /// Returns the field with this name. If the set does not contain the name, the field matches no member.
    pub(crate) fn field(&self, name: &'static str) -> Field {
        let number = self.number(name).map(|number| number as usize);
        debug_assert!(number.is_some_and(|at| at < SLOTS), "{name} is no field");
        let at = number.unwrap_or(SLOTS);
        Field { name, at }
    }

    #[inline]
    fn number_of(&self, key: Key<'_>) -> Option<u32> {
        if key.escaped {
            self.number(&key.name())
        } else {
            self.number(key.raw)
        }
    }

    pub(crate) fn has(&self, key: Key<'_>) -> bool {
        self.number_of(key).is_some()
    }

    /// Records a member. Returns true if the key is in the set and the object already had a member with this key.
    #[inline]
    pub(crate) fn note(&self, seen_bits: &mut KeyBits, key: Key<'_>) -> bool {
        let number = self.number_of(key);
        let bit = number.and_then(|number| 1_u64.checked_shl(number));
        let bit = bit.unwrap_or_default();
        let again = seen_bits.0 & bit != 0;
        seen_bits.0 |= bit;
        again
    }
}

/// Returns true unless the value is null or `[]`. Some gateways send an empty `logprobs` with every delta.
#[inline]
pub(crate) fn has_information(raw: Raw<'_>) -> bool {
    raw.kind != Kind::Null && !is_empty_array(raw)
}

#[inline]
pub(crate) fn is_empty_array(raw: Raw<'_>) -> bool {
    let blank = |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let inner = raw.text.get(1..raw.text.len().saturating_sub(1));
    raw.kind == Kind::Array && inner.is_some_and(|inner| inner.bytes().all(blank))
}

/// Returns the first eight bytes as an integer, padded with zeros.
#[inline]
fn head(name: &[u8]) -> u64 {
    if let Some(first) = name.first_chunk::<8>() {
        return u64::from_le_bytes(*first);
    }
    let bytes = name.iter().rev();
    bytes.fold(0, |head, byte| head << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::members::Document;
    use crate::json::members::document;

    #[test]
    fn members_are_found_by_their_names() {
        let names = Names::of(["type", "item", "sequence_number", "sequence_other_", "item"]);
        let text = r#"{"type":1,"\u0069tem":2,"sequence_number":3,"other":[ ],"x":null,"type":4}"#;
        let Ok(Document::Object(object)) = document(text, None) else {
            panic!("an object");
        };
        let slots = Slots::of(&names, &object.members);
        let found = |name| slots.get(names.field(name)).map(|raw| raw.text);
        assert_eq!(found("type"), Some("4"));
        assert_eq!(found("item"), Some("2"));
        assert_eq!(found("sequence_number"), Some("3"));
        assert_eq!(found("sequence_other_"), None);
        assert!(slots.repeated && !slots.others);
        let Ok(Document::Object(object)) = document(r#"{"deep":{}}"#, None) else {
            panic!("an object");
        };
        let slots = Slots::of(&names, &object.members);
        assert!(!slots.repeated && slots.others);
    }
}
