//! Examines and consumes complete events outside `feed`, for callers that process events individually.

use crate::model::fault::Fault;
use crate::sse::BOM;
use crate::sse::Framer;
use crate::sse::Item;
use crate::sse::Line;
use crate::sse::Receiver;
use crate::sse::WholeEvents;
use crate::sse::fields::give_back;
use crate::sse::fields::is_blank;

/// Number of bytes that are probed at a time.
const PROBE: usize = 1 << 16;

impl Framer {
    /// Returns the fault that the next bytes would cause, if any. The bytes are not consumed.
    pub(crate) fn probe<'b>(&self, next: impl Iterator<Item = &'b [u8]>) -> Result<(), Fault> {
        let mut pieces = next.flat_map(|bytes| bytes.chunks(PROBE)).peekable();
        if pieces.peek().is_none() {
            return Ok(()); // a copy of the framer would also copy the open event
        }
        let mut framer = self.clone();
        for piece in pieces {
            framer.feed(piece, &mut |_: Item<'_>| Ok(()))?;
            framer.forget();
        }
        Ok(())
    }

    /// Discards the bytes of the open event. The number of these bytes and the kind of the last line are kept.
    fn forget(&mut self) {
        give_back(&mut self.data);
        if is_blank(self.head.first()) {
            self.head.truncate(1);
        }
        if self.has_stray {
            give_back(&mut self.seldom.stray);
        }
    }

    /// Consumes the complete events that `on` recognizes at the start of the input. While an event is open, consumes
    /// nothing.
    pub(crate) fn take_whole<R: Receiver>(
        &mut self,
        input: &[u8],
        on: &mut R,
    ) -> Result<WholeEvents, Fault> {
        let inside = self.line != Line::None || usize::from(self.bom) < BOM.len();
        if inside || !self.is_clear() {
            return Ok(WholeEvents::default());
        }
        let room = input.get(..self.max_event).unwrap_or(input);
        let taken = on.take_whole_events(room, self.offset, self.ordinal)?;
        if taken.events > 0 {
            self.after_cr = false;
            self.keep_tail(input.get(..taken.bytes).unwrap_or_default());
            self.offset += taken.bytes as u64;
            self.ordinal += taken.events as u64;
        }
        Ok(taken)
    }
}
