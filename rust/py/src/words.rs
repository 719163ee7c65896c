//! Short strings that were made before. Half the pieces of an answer are words that it had already: a string that is
//! found costs a tenth of a new one, and its memory is there but once. Knows no events.

use pyo3::prelude::*;
use pyo3::types::PyString;

/// So many are kept of one stream; one that meets another in its place takes it.
const KEPT: usize = 1 << u8::BITS;

#[derive(Debug, Default)]
struct Slot {
    key: u64,
    string: Option<Py<PyString>>,
}

/// The strings of one stream.
#[derive(Debug, Default)]
pub(crate) struct Words {
    /// Made at the first use.
    slots: Option<Box<[Slot; KEPT]>>,
}

impl Words {
    /// `text` as a string, the one of the last time if it is still there.
    #[inline]
    pub(crate) fn get(&mut self, py: Python<'_>, text: &str) -> Py<PyString> {
        let Some(key) = key(text.as_bytes()) else {
            return PyString::new(py, text).unbind();
        };
        let slots = self
            .slots
            .get_or_insert_with(|| Box::new(std::array::from_fn(|_| Slot::default())));
        let Some(slot) = slots.get_mut(usize::from(place(key))) else {
            return PyString::new(py, text).unbind();
        };
        if let Some(string) = slot.string.as_ref().filter(|_| slot.key == key) {
            return string.clone_ref(py);
        }
        let string = PyString::new(py, text).unbind();
        slot.key = key;
        if let Some(old) = slot.string.replace(string.clone_ref(py)) {
            old.drop_ref(py);
        }
        string
    }
}

/// The bytes and how many they are, if that fits: equal keys, equal texts.
#[inline]
fn key(text: &[u8]) -> Option<u64> {
    let bytes = match *text {
        [] => 0,
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c] => u64::from(u32::from_le_bytes([a, b, c, 0])),
        _ => {
            // Where the halves overlap they are the same.
            let (first, last) = (text.first_chunk()?, text.last_chunk()?);
            let behind = text.len().checked_sub(4).filter(|behind| *behind < 4)?;
            u64::from(u32::from_le_bytes(*first))
                | u64::from(u32::from_le_bytes(*last)) << (8 * behind)
        }
    };
    Some(bytes | (text.len() as u64) << 56)
}

#[inline]
fn place(key: u64) -> u8 {
    // 2^64 over the golden ratio: the high bits depend on all bytes.
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}
