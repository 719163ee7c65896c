//! Caches short strings, because half of the pieces in a response are words that have occurred before.
//!
//! Looking up a cached string takes a tenth of the time needed to create one, and equal strings share memory. All
//! streams share the cache, so that open streams do not keep strings alive. Each call borrows the cache and returns it
//! at the end. If another call has borrowed the cache, the current call runs without the cache.

use std::ptr::null;
use std::sync::{Mutex, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Number of slots. A new string replaces the string that is already in the same slot.
const KEPT: usize = 1 << u8::BITS;

#[derive(Debug, Default)]
struct Slot {
    key: u64,
    string: Option<Py<PyString>>,
}

type Slots = Box<[Slot; KEPT]>;

/// State of the shared cache.
enum Store {
    /// The slots have not been created yet.
    New,
    Here(Slots),
    InUse,
}

static SLOTS: Mutex<Store> = Mutex::new(Store::New);

/// Stores a value and returns the old one. The lock is held only during this exchange.
fn exchange(store: Store) -> Store {
    let mut there = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::replace(&mut there, store)
}

/// The cache, borrowed for one call.
#[derive(Debug)]
pub(crate) struct StringCache {
    slots: Option<Slots>,
}

impl StringCache {
    pub(crate) fn borrow() -> StringCache {
        let slots = match exchange(Store::InUse) {
            Store::New => Some(Box::new(std::array::from_fn(|_| Slot::default()))),
            Store::Here(slots) => Some(slots),
            Store::InUse => None,
        };
        StringCache { slots }
    }

    /// Returns `text` as a Python string, from the cache if possible.
    #[inline]
    pub(crate) fn get(&mut self, py: Python<'_>, text: &str) -> Py<PyString> {
        let (Some(key), Some(slots)) = (key(text.as_bytes()), &mut self.slots) else {
            return string(py, text);
        };
        let Some(slot) = slots.get_mut(usize::from(slot_index(key))) else {
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

/// Creates a new string. Most pieces are ASCII, and decoding ASCII as Latin-1 takes half the time, because the
/// interpreter does not have to look for character boundaries.
#[inline]
pub(crate) fn string(py: Python<'_>, text: &str) -> Py<PyString> {
    if !text.is_ascii() {
        return PyString::new(py, text).unbind();
    }
    let (start, length) = (text.as_ptr().cast(), text.len() as ffi::Py_ssize_t);
    // SAFETY: `start` points to `length` bytes, which are only read. The result is either a new reference to a string
    // or null. For null, `from_owned_ptr` panics, as `PyString::new` does.
    unsafe {
        let made = ffi::PyUnicode_DecodeLatin1(start, length, null());
        Bound::from_owned_ptr(py, made)
            .cast_into_unchecked()
            .unbind()
    }
}

/// Packs the bytes and their length into a key, or returns `None` if there are more than seven bytes.
///
/// Two texts have the same key only if they are equal.
#[inline]
fn key(text: &[u8]) -> Option<u64> {
    let bytes = match *text {
        [] => 0,
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c] => u64::from(u32::from_le_bytes([a, b, c, 0])),
        _ => {
            // The two halves may overlap, but have equal bytes where they do.
            let (first, last) = (text.first_chunk()?, text.last_chunk()?);
            let tail_start = text
                .len()
                .checked_sub(4)
                .filter(|tail_start| *tail_start < 4)?;
            u64::from(u32::from_le_bytes(*first))
                | u64::from(u32::from_le_bytes(*last)) << (8 * tail_start)
        }
    };
    Some(bytes | (text.len() as u64) << 56)
}

#[inline]
fn slot_index(key: u64) -> u8 {
    // Multiply by 2^64 divided by the golden ratio, so that the high bits depend on all bytes.
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}
