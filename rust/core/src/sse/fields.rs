//! Stateless helpers for the framer. The helpers handle line endings, field names and values, `retry` digits, and UTF-8
//! decoding.

use memchr::memchr_iter;
use memchr::memchr2;
use std::borrow::Cow;

/// Capacity in bytes above which a buffer is freed once its event has been processed.
const KEEP_CAPACITY: usize = 64 * 1024;

pub(crate) const DATA: &[u8] = b"data:";

/// Value of a `retry` line, parsed digit by digit for any number of digits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Digits {
    value: u64,
    any: bool,
    bad: bool,
}

impl Digits {
    pub(crate) fn extend(&mut self, piece: &[u8]) {
        for &byte in piece {
            let next = self
                .value
                .saturating_mul(10)
                .saturating_add(u64::from(byte & 15));
            // A time that does not fit in a signed 64-bit number is invalid.
            self.bad |= !byte.is_ascii_digit() || next > i64::MAX as u64;
            self.any = true;
            if self.bad {
                return;
            }
            self.value = next;
        }
    }

    pub(crate) fn value(&self) -> Option<u64> {
        (self.any && !self.bad).then_some(self.value)
    }
}

/// Splits the text before its next line ending. Returns `None` if there is no line ending.
#[inline]
pub(crate) fn split_line(remaining: &[u8]) -> Option<(&[u8], &[u8])> {
    remaining.split_at_checked(memchr2(b'\n', b'\r', remaining)?)
}

/// If the line has this field name, returns its value without the leading space. Otherwise, returns `None`.
#[inline]
pub(crate) fn value_of<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    match line.strip_prefix(name)? {
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        [] => Some(&[]),
        _ => None,
    }
}

/// Splits the value of an event, id, or retry line from a data line that follows without a line ending.
///
/// In a correct stream, the values of these fields never contain the beginning of a data line with a document. If a
/// value contains the beginning of a data line, a line ending is missing. Returns the value and, if a data line
/// follows, the data of that line.
pub(crate) fn split_joined(value: &[u8]) -> (&[u8], Option<&[u8]>) {
    // A value rarely contains a colon, so searching for colons takes less time than searching for the whole name.
    let names = memchr_iter(b':', value).filter_map(|colon| {
        let at = (colon + 1).checked_sub(DATA.len())?;
        let line = value.get(at..)?;
        line.starts_with(DATA).then_some((at, line))
    });
    for (at, line) in names {
        let Some(data) = value_of(line, b"data") else {
            continue;
        };
        let own = value.get(..at).unwrap_or_default();
        let blanks = data.iter().take_while(|byte| is_blank(Some(byte))).count();
        if matches!(data.get(blanks), Some(b'{' | b'[')) {
            let after = own.iter().rev().take_while(|byte| is_blank(Some(byte)));
            let (own, _) = own.split_at(own.len() - after.count());
            return (own, Some(data));
        }
    }
    (value, None)
}

/// Names of the fields in an event stream.
const NAMES: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];

pub(crate) fn begins_name(head: &[u8]) -> bool {
    NAMES.iter().any(|name| name.starts_with(head))
}

/// Returns true if an incomplete line is a field or a comment, or may become one.
pub(crate) fn may_be_field(line: &[u8]) -> bool {
    let is_field = |name: &&[u8]| {
        let value = line.strip_prefix(*name);
        value.is_some_and(|value| value.starts_with(b":"))
    };
    line.starts_with(b":") || begins_name(line) || NAMES.iter().any(is_field)
}

/// Splits the bytes after their leading blanks. Returns only the first blank, and the bytes after all leading blanks.
pub(crate) fn split_blanks(bytes: &[u8]) -> (&[u8], &[u8]) {
    let blanks = bytes.iter().take_while(|byte| is_blank(Some(byte))).count();
    let (blanks, others) = bytes.split_at(blanks);
    (blanks.get(..1).unwrap_or_default(), others)
}

pub(crate) fn is_blank(byte: Option<&u8>) -> bool {
    matches!(byte, Some(b' ' | b'\t'))
}

pub(crate) fn all_blank(text: &[u8]) -> bool {
    text.iter().all(|byte| is_blank(Some(byte)))
}

/// Returns true if the line ends with a closing bracket, like the last line of a JSON document.
pub(crate) fn ends_document(line: &[u8]) -> bool {
    matches!(line.last(), Some(b'}' | b']'))
}

#[inline]
pub(crate) fn give_back(buffer: &mut Vec<u8>) {
    if buffer.capacity() > KEEP_CAPACITY {
        *buffer = Vec::new();
    }
    buffer.clear();
}

/// Returns true if the input ends inside a UTF-8 sequence.
pub(crate) fn ends_inside_a_sequence(text: &[u8]) -> bool {
    let tail = text.get(text.len().saturating_sub(3)..).unwrap_or(text);
    (0..tail.len())
        .filter_map(|start| tail.get(start..))
        .any(|end| {
            std::str::from_utf8(end)
                .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        })
}

/// Decodes UTF-8, and replaces each maximal invalid part with U+FFFD. The returned flag is true if any part was
/// replaced.
pub fn decode_utf8(bytes: &[u8]) -> (Cow<'_, str>, bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Cow::Borrowed(text), false),
        Err(_) => (String::from_utf8_lossy(bytes), true),
    }
}
