//! Short strings that were made before. Half the pieces of an answer are words that it had already: a string that is
//! found costs a tenth of a new one, and its memory is there but once. Knows no events.
//!
//! All streams share them, so that an open one holds none: a call borrows them and gives them back at its end. A call that
//! runs while another has them does without.

use std::ptr::null;
use std::sync::{Mutex, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// So many are kept; one that meets another in its place takes it.
const KEPT: usize = 1 << u8::BITS;

#[derive(Debug, Default)]
struct Slot {
    key: u64,
    string: Option<Py<PyString>>,
}

type Slots = Box<[Slot; KEPT]>;

/// Where they are.
enum Store {
    /// Nobody has asked for them.
    New,
    Here(Slots),
    Lent,
}

static SHELF: Mutex<Store> = Mutex::new(Store::New);

/// Something else instead of what is there. Nobody holds the lock for longer than that.
fn exchange(store: Store) -> Store {
    let mut there = SHELF.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::replace(&mut there, store)
}

/// The strings, for one call.
#[derive(Debug)]
pub(crate) struct StringCache {
    slots: Option<Slots>,
}

impl StringCache {
    pub(crate) fn borrow() -> StringCache {
        let slots = match exchange(Store::Lent) {
            Store::New => Some(Box::new(std::array::from_fn(|_| Slot::default()))),
            Store::Here(slots) => Some(slots),
            Store::Lent => None,
        };
        StringCache { slots }
    }

    /// `text` as a string, the one of the last time if it is still there.
    #[inline]
    pub(crate) fn get(&mut self, py: Python<'_>, text: &str) -> Py<PyString> {
        let (Some(key), Some(slots)) = (key(text.as_bytes()), &mut self.slots) else {
            return string(py, text);
        };
        let Some(slot) = slots.get_mut(usize::from(place(key))) else {
            return string(py, text);
        };
        if let Some(string) = slot.string.as_ref().filter(|_| slot.key == key) {
            return string.clone_ref(py);
        }
        let string = string(py, text);
        slot.key = key;
        if let Some(old) = slot.string.replace(string.clone_ref(py)) {
            old.drop_ref(py);
        }
        string
    }
}

impl Drop for StringCache {
    fn drop(&mut self) {
        if let Some(slots) = self.slots.take() {
            exchange(Store::Here(slots));
        }
    }
}

/// A new string. Of ASCII, which most pieces are, the interpreter makes one from Latin-1 at half the price: it need not
/// look for the ends of characters.
#[inline]
fn string(py: Python<'_>, text: &str) -> Py<PyString> {
    if !text.is_ascii() {
        return PyString::new(py, text).unbind();
    }
    let (start, length) = (text.as_ptr().cast(), text.len() as ffi::Py_ssize_t);
    // SAFETY: `start` points to `length` bytes, which are only read. The result is a new reference to a string or null,
    // on which `from_owned_ptr` panics, as `PyString::new` does.
    unsafe {
        let made = ffi::PyUnicode_DecodeLatin1(start, length, null());
        Bound::from_owned_ptr(py, made)
            .cast_into_unchecked()
            .unbind()
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
