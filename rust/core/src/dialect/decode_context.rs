//! Where wire deltas go, and what a payload is beside its members. What every decoder works with; knows no dialect.

use crate::assemble::Assembler;
use crate::dialect::payload::PlacedPayload;
use crate::model::fault::Fault;
use crate::model::output::Output;
use memchr::memchr2;

pub(crate) type Step = Result<(), Fault>;

/// The beginning of the line with an event's name, and of a data line, as nearly everybody writes them.
pub(crate) const EVENT: &str = "event: ";
pub(crate) const DATA: &str = "data: ";

/// Where wire deltas go.
#[derive(Debug)]
pub(crate) struct DecodeContext<'w, 'o> {
    pub(crate) assembler: &'w mut Assembler,
    pub(crate) out: &'w mut Output<'o>,
}

/// A payload and what is known of it beside its members.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload<'a> {
    pub(crate) text: &'a str,
    /// The name of its event, if it has one.
    pub(crate) event: Option<&'a str>,
    /// What stands behind a broken document: trusted for text, finish, usage and errors only.
    pub(crate) tail: bool,
    /// What it came in.
    pub(crate) arrival: PlacedPayload<'a>,
}

/// A payload that may be like one before it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Incoming<'p> {
    /// By itself, with the name of its frame.
    Payload { event: &'p [u8], data: &'p [u8] },
    /// The lines of its event as they stand, and what follows them.
    Lines(&'p [u8]),
}

/// What has to follow a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Here,
    /// The ends of its line and of its event.
    BlankLine,
}

impl Ending {
    #[inline]
    pub(crate) fn length(self, rest: &[u8]) -> Option<usize> {
        match (self, rest) {
            (Ending::Here, []) => Some(0),
            (Ending::BlankLine, [b'\n', b'\n', ..]) => Some(2),
            (Ending::BlankLine, [b'\r', b'\n', b'\r', b'\n', ..]) => Some(4),
            _ => None,
        }
    }
}

/// What no decoder knows.
pub(crate) fn unknown(wire: &mut DecodeContext<'_, '_>, payload: Payload<'_>) -> Step {
    wire.assembler
        .unknown(wire.out, payload.event, payload.text.as_bytes())
}

/// The name of an event, if that comes first, and what follows the beginning of its data line.
#[inline]
pub(crate) fn one_line_of_data(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    if let Some(payload) = rest.strip_prefix(DATA.as_bytes()) {
        return Some((b"", payload));
    }
    let named = rest.strip_prefix(EVENT.as_bytes())?;
    let (event, payload) = named.split_at_checked(memchr2(b'\n', b'\r', named)?)?;
    let payload = payload.strip_prefix(b"\n")?.strip_prefix(DATA.as_bytes())?;
    Some((event, payload))
}
