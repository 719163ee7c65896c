//! Defines a received payload and its position in the input.

use crate::model::event::WireFact;
use crate::model::fault::Fault;
use crate::model::fault::RAW_HEAD;
use crate::model::output::Output;
use crate::sse::decode_utf8;
use std::borrow::Cow;

/// A frame, a payload outside any SSE field, or an unfinished payload at the end of the input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocatedPayload<'a> {
    pub(crate) event: &'a [u8],
    pub(crate) data: &'a [u8],
    pub(crate) offset: u64,
    pub(crate) ordinal: u64,
    pub(crate) stray: bool,
}

impl<'a> LocatedPayload<'a> {
    pub(crate) fn locate(&self, fault: Fault) -> Fault {
        if fault.placed {
            return fault;
        }
        let mut fault = fault.at(self.offset, self.ordinal).with_raw(self.data);
        fault.event_type = self.event_name().map(Cow::into_owned);
        fault
    }

    /// Records this payload as the current payload for the repair stage.
    #[inline]
    pub(crate) fn show(&self, out: &mut Output<'_>) {
        out.record_fact(WireFact::Payload {
            event: self.event,
            data: self.data,
        });
    }

    /// Returns the event name, or `None` if the name is empty or the default, `message`.
    pub(crate) fn event_name(&self) -> Option<Cow<'a, str>> {
        match self.event {
            b"" | b"message" => None,
            name => Some(decode_utf8(name).0),
        }
    }
}

/// A stored payload with its position in the input.
#[derive(Clone, Debug)]
pub(crate) struct HeldPayload {
    event: Vec<u8>,
    data: Vec<u8>,
    offset: u64,
    ordinal: u64,
    stray: bool,
}

impl HeldPayload {
    pub(crate) fn of(arrival: LocatedPayload<'_>) -> HeldPayload {
        HeldPayload {
            event: arrival.event.to_vec(),
            data: arrival.data.to_vec(),
            offset: arrival.offset,
            ordinal: arrival.ordinal,
            stray: arrival.stray,
        }
    }

    /// Stores the position of an already processed payload, and the beginning of its data, for use in a fault.
    pub(crate) fn shown(arrival: LocatedPayload<'_>) -> HeldPayload {
        let data = arrival.data.get(..RAW_HEAD).unwrap_or(arrival.data);
        HeldPayload::of(LocatedPayload { data, ..arrival })
    }

    pub(crate) fn arrival(&self) -> LocatedPayload<'_> {
        LocatedPayload {
            event: &self.event,
            data: &self.data,
            offset: self.offset,
            ordinal: self.ordinal,
            stray: self.stray,
        }
    }
}

/// The place in the stream where a document was found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DocumentContext {
    /// True if the document is outside any SSE field.
    pub(crate) stray: bool,
    /// True if this is the first document of the stream.
    pub(crate) first: bool,
    pub(crate) one_line: bool,
}
