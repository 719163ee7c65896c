//! The result of applying one argument fragment, and functions that examine a single fragment.

use crate::json::Automaton;
use crate::model::spec::Code;
use std::borrow::Cow;

/// The effect of a fragment on the argument text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The fragment extended the text.
    Grew,
    /// The text was replaced.
    Replaced,
    /// The text is unchanged.
    Kept,
    /// The fragment is held back until later fragments show whether it is a repetition.
    Held,
    /// The text is complete, so the fragment, or the rest of it, does not belong to the text.
    Overflow,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushResult<'a> {
    pub change: Change,
    /// Code of the diagnostic that reports the repair, if any.
    pub code: Option<Code>,
    /// The bytes of the fragment that follow the complete value. The field is empty unless `change` is `Overflow`.
    pub spill: Cow<'a, [u8]>,
}

pub const fn plainly<'a>(change: Change) -> PushResult<'a> {
    PushResult {
        change,
        code: None,
        spill: Cow::Borrowed(&[]),
    }
}

pub fn repaired<'a>(change: Change, code: Option<Code>) -> PushResult<'a> {
    PushResult {
        change,
        code,
        spill: Cow::Borrowed(&[]),
    }
}

pub fn overflow(spill: Cow<'_, [u8]>) -> PushResult<'_> {
    PushResult {
        change: Change::Overflow,
        code: None,
        spill,
    }
}

pub fn alone(piece: &[u8]) -> Automaton {
    let mut automaton = Automaton::new();
    automaton.feed(piece);
    automaton
}

pub fn is_object(piece: &[u8]) -> bool {
    alone(piece).is_complete_object()
}

pub fn trim(data: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let start = data
        .iter()
        .position(|byte| !blank(byte))
        .unwrap_or(data.len());
    let end = data
        .iter()
        .rposition(|byte| !blank(byte))
        .map_or(start, |at| at + 1);
    data.get(start..end).unwrap_or_default()
}

/// Returns true if the piece is an empty JSON object, with or without whitespace.
pub fn is_empty_object(piece: &[u8]) -> bool {
    let inside = trim(piece).strip_prefix(b"{");
    inside.is_some_and(|inside| trim(inside) == b"}")
}

/// Minimum number of bytes by which the capacity of a text buffer grows.
const ROOM: usize = 32;

/// Appends a fragment. The capacity grows by a quarter instead of doubling, because many streams may be open at the
/// same time.
#[inline]
pub fn extend(text: &mut Vec<u8>, piece: &[u8]) {
    if text.capacity() - text.len() < piece.len() {
        make_room(text, piece.len());
    }
    text.extend_from_slice(piece);
}

#[cold]
fn make_room(text: &mut Vec<u8>, more: usize) {
    text.reserve_exact(more.max(text.len() / 4).max(ROOM));
}
