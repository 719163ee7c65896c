//! Types that all decoders share: the destination of wire deltas, and a payload with its context. Every dialect uses
//! this module.

use crate::assemble::Assembler;
use crate::dialect::payload::LocatedPayload;
use crate::model::fault::Fault;
use crate::model::output::Output;
use memchr::memchr2;

pub(crate) type ParseResult = Result<(), Fault>;

/// The beginnings of an event-name line and a data line, in the form that most servers write.
pub(crate) const EVENT: &str = "event: ";
pub(crate) const DATA: &str = "data: ";

/// The destination of wire deltas.
#[derive(Debug)]
pub(crate) struct DecodeContext<'w, 'o> {
    pub(crate) assembler: &'w mut Assembler,
    pub(crate) out: &'w mut Output<'o>,
}

/// A payload, with its event name and its position in the input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload<'a> {
    pub(crate) text: &'a str,
    pub(crate) event: Option<&'a str>,
    /// True if the payload follows a broken document. In a payload that follows a broken document, only text, finish
    /// reasons, usage, and errors are decoded.
    pub(crate) tail: bool,
    /// Byte offset of `text` in the original payload after trimming.
    pub(crate) start: usize,
    /// Number of line endings that were missing before `text` in the original payload.
    pub(crate) joins: usize,
    /// True if no payload with content preceded this one.
    pub(crate) first: bool,
    /// The original payload, and its position in the input.
    pub(crate) arrival: LocatedPayload<'a>,
}

/// Input that may match a template learned from an earlier payload.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Incoming<'p> {
    /// One payload, and the event name of its frame.
    Payload { event: &'p [u8], data: &'p [u8] },
    /// The raw lines of the event, followed by the rest of the input.
    Lines(&'p [u8]),
}

/// The bytes that must follow a payload if a template is to match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Here,
    /// The line ending, followed by the blank line that ends the event.
    BlankLine,
}

impl Ending {
    #[inline]
    pub(crate) fn length(self, remaining: &[u8]) -> Option<usize> {
        match (self, remaining) {
            (Ending::Here, []) => Some(0),
            (Ending::BlankLine, [b'\n', b'\n', ..]) => Some(2),
            (Ending::BlankLine, [b'\r', b'\n', b'\r', b'\n', ..]) => Some(4),
            _ => None,
        }
    }
}

/// Emits an unrecognized payload as unknown data.
pub(crate) fn unknown(wire: &mut DecodeContext<'_, '_>, payload: Payload<'_>) -> ParseResult {
    wire.assembler
        .unknown(wire.out, payload.event, payload.text.as_bytes())
}

/// Returns the event name (empty if there is none) and the input after `data: `. If the lines have a different form,
/// returns `None`.
#[inline]
pub(crate) fn one_line_of_data(remaining: &[u8]) -> Option<(&[u8], &[u8])> {
    if let Some(payload) = remaining.strip_prefix(DATA.as_bytes()) {
        return Some((b"", payload));
    }
    let named = remaining.strip_prefix(EVENT.as_bytes())?;
    let (event, payload) = named.split_at_checked(memchr2(b'\n', b'\r', named)?)?;
    let payload = payload.strip_prefix(b"\n")?.strip_prefix(DATA.as_bytes())?;
    Some((event, payload))
}
