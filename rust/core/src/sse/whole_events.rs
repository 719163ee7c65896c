//! Events outside of `feed`, for who judges them one by one. Layer 2.

use crate::model::fault::Fault;
use crate::sse::BOM;
use crate::sse::Framer;
use crate::sse::Item;
use crate::sse::Line;
use crate::sse::Receiver;
use crate::sse::WholeEvents;
use crate::sse::fields::give_back;

/// How much of an event is tried at a time.
const PROBE: usize = 1 << 16;

impl Framer {
    /// The fault that such a beginning of an event would be. Nothing is kept of it.
    pub(crate) fn probe(&self, event: &[u8]) -> Result<(), Fault> {
        let mut framer = self.clone();
        for piece in event.chunks(PROBE) {
            framer.feed(piece, &mut |_: Item<'_>| Ok(()))?;
            give_back(&mut framer.data);
        }
        Ok(())
    }

    /// Takes the whole events that an input begins with, as far as `on` knows them as they stand; none inside of an event.
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
        let taken = on.whole(room, self.offset, self.ordinal)?;
        if taken.events > 0 {
            self.after_cr = false;
            self.keep_tail(input.get(..taken.bytes).unwrap_or_default());
            self.offset += taken.bytes as u64;
            self.ordinal += taken.events as u64;
        }
        Ok(taken)
    }
}
