//! Where wire deltas go, and what a payload is beside its members. What every decoder works with; knows no dialect.

use crate::assemble::Assembler;
use crate::fault::Fault;
use crate::out::Out;

pub(crate) type Step = Result<(), Fault>;

/// The beginning of a data line, as nearly everybody writes it.
pub(crate) const DATA: &[u8] = b"data: ";

/// Where wire deltas go.
#[derive(Debug)]
pub(crate) struct Wire<'w, 'o> {
    pub(crate) assembler: &'w mut Assembler,
    pub(crate) out: &'w mut Out<'o>,
}

/// A payload and what is known of it beside its members.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload<'a> {
    pub(crate) text: &'a str,
    /// The name of its event, if it has one.
    pub(crate) event: Option<&'a str>,
    /// What stands behind a broken document: trusted for text, finish, usage and errors only.
    pub(crate) tail: bool,
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
pub(crate) fn unknown(wire: &mut Wire<'_, '_>, payload: Payload<'_>) -> Step {
    wire.assembler
        .unknown(wire.out, payload.event, payload.text.as_bytes())
}
