//! Defines a payload as it arrived, with its position in the input.

use crate::model::event::WireFact;
use crate::model::fault::Fault;
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

    /// Records this payload as the current one for the repair stage.
    #[inline]
    pub(crate) fn show(&self, out: &mut Output<'_>) {
        out.record_fact(WireFact::Payload {
            event: self.event,
            data: self.data,
        });
    }

    /// Returns the event name, or `None` if it is empty or the default, `message`.
    pub(crate) fn event_name(&self) -> Option<Cow<'a, str>> {
        match self.event {
            b"" | b"message" => None,
            name => Some(decode_utf8(name).0),
        }
    }
}

/// Where a document was found in its stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DocumentContext {
    /// True if the document is outside any SSE field.
    pub(crate) stray: bool,
    /// True if this is the first document of the stream.
    pub(crate) first: bool,
    pub(crate) one_line: bool,
}
