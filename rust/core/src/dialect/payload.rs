//! One payload as it arrives, and where it stands.

use crate::model::event::WireFact;
use crate::model::fault::Fault;
use crate::model::output::Output;
use crate::sse::decode_utf8;
use std::borrow::Cow;

/// A frame or a stray payload, or what the end of the input left of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlacedPayload<'a> {
    pub(crate) event: &'a [u8],
    pub(crate) data: &'a [u8],
    pub(crate) offset: u64,
    pub(crate) ordinal: u64,
    pub(crate) stray: bool,
}

impl<'a> PlacedPayload<'a> {
    pub(crate) fn place(&self, fault: Fault) -> Fault {
        if fault.placed {
            return fault;
        }
        let mut fault = fault.at(self.offset, self.ordinal).with_raw(self.data);
        fault.event_type = self.event_name().map(Cow::into_owned);
        fault
    }

    /// Tells that this is the payload at hand, as it came.
    #[inline]
    pub(crate) fn show(&self, out: &mut Output<'_>) {
        out.sign(WireFact::Payload {
            event: self.event,
            data: self.data,
        });
    }

    /// The name of the event, unless it is the usual one.
    pub(crate) fn event_name(&self) -> Option<Cow<'a, str>> {
        match self.event {
            b"" | b"message" => None,
            name => Some(decode_utf8(name).0),
        }
    }
}

/// How a document stood in its stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DocumentContext {
    /// Outside of any field.
    pub(crate) stray: bool,
    /// Nothing came before it.
    pub(crate) first: bool,
    pub(crate) one_line: bool,
}
