//! Reads an event that a relay wrapped in the data of another event, such as `data: data: {…}`.
//!
//! Some relays pass each line that they receive on as a `data` line of their own, including its field name
//! (<https://github.com/openclaw/openclaw/issues/96497>).

use std::borrow::Cow;

/// Maximum number of events around one payload.
const MOST_LEVELS: usize = 4;

/// An event whose lines are the data of another event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NestedEvent<'a> {
    /// The value of the last `event` line, if there is one.
    pub(crate) event: Option<&'a [u8]>,
    /// The values of the `data` lines, joined by line feeds. `None` if the event has no `data` line.
    pub(crate) data: Option<Cow<'a, [u8]>>,
}

/// Returns the innermost event in the data of an event, or `None` if the data is not itself an event.
///
/// Data is an event if each of its lines is blank, a comment, or a field, and at least one line is a field. A JSON
/// document never begins like that. An error message may do so; therefore, the values of all fields except `data` must
/// have the form that relays send: a word or a number.
pub(crate) fn nested_event(data: &[u8]) -> Option<NestedEvent<'_>> {
    let mut found = unwrap(data)?;
    for _ in 1..MOST_LEVELS {
        let inner = match &found.data {
            Some(Cow::Borrowed(data)) => unwrap(data),
            // Relays that repeat a prefix send one line.
            Some(Cow::Owned(_)) | None => None,
        };
        match inner {
            Some(inner) => {
                found = NestedEvent {
                    event: inner.event.or(found.event),
                    data: inner.data,
                }
            }
            None => break,
        }
    }
    Some(found)
}

fn unwrap(data: &[u8]) -> Option<NestedEvent<'_>> {
    if !matches!(
        data.trim_ascii_start().first(),
        Some(b'd' | b'e' | b'i' | b'r')
    ) {
        return None; // nearly every payload ends here
    }
    let (mut found, mut has_fields) = (NestedEvent::default(), false);
    for line in data.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
        if line.is_empty() || line.starts_with(b":") {
            continue;
        }
        let colon = line
            .iter()
            .take(FIELD.len())
            .position(|byte| *byte == b':')?;
        let (name, value) = line.split_at(colon);
        let value = value.get(1..).unwrap_or_default().trim_ascii_start();
        match name {
            // A list of the values would take several times the memory of short lines.
            b"data" => match &mut found.data {
                None => found.data = Some(Cow::Borrowed(value)),
                Some(Cow::Owned(joined)) => {
                    joined.push(b'\n');
                    joined.extend_from_slice(value);
                }
                Some(Cow::Borrowed(first)) => {
                    let mut joined = Vec::with_capacity(data.len());
                    joined.extend_from_slice(first);
                    joined.push(b'\n');
                    joined.extend_from_slice(value);
                    found.data = Some(Cow::Owned(joined));
                }
            },
            b"event" if is_word(value) => found.event = Some(value),
            b"id" if is_word(value) => {}
            b"retry" if value.iter().all(u8::is_ascii_digit) => {}
            _ => return None,
        }
        has_fields = true;
    }
    has_fields.then_some(found)
}

/// The longest field name with its colon.
const FIELD: &[u8] = b"event:";

fn is_word(value: &[u8]) -> bool {
    value
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || b"._-:/".contains(byte))
}
