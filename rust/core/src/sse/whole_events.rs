//! Examines and consumes complete events outside `feed`, for callers that check events one by one.

use crate::model::fault::Fault;
use crate::sse::BOM;
use crate::sse::Framer;
use crate::sse::Item;
use crate::sse::Line;
use crate::sse::Receiver;
use crate::sse::WholeEvents;
use crate::sse::fields::DATA;
use crate::sse::fields::give_back;
use crate::sse::fields::is_blank;
use crate::sse::fields::value_of;
use crate::sse::frame::Pending;
use memchr::memchr2;

/// Number of bytes that are probed at a time.
pub(crate) const PROBE: usize = 1 << 16;

impl Framer {
    /// Ends the input with a line that has no line ending, without copying the line. Returns `None`, and takes nothing,
    /// unless the line begins an event and is a data line or begins a stray payload.
    pub(crate) fn finish_with<'f>(
        &'f mut self,
        line: &'f [u8],
    ) -> Result<Option<Pending<'f>>, Fault> {
        let is_between = self.line == Line::None && self.is_clear();
        if !is_between || memchr2(b'\n', b'\r', line).is_some() {
            return Ok(None);
        }
        let line = match usize::from(self.bom) {
            0 => line.strip_prefix(&BOM).unwrap_or(line),
            bom if bom == BOM.len() => line,
            _ => return Ok(None),
        };
        let at = self.offset;
        let data = value_of(line, b"data").filter(|_| line.starts_with(DATA));
        if let Some(value) = data {
            self.open_block(at);
            self.check_event(value.len(), at)?;
            (self.line, self.data_offset) = (Line::Data, at);
        } else if self.begin_stray(line, at) {
            self.check_event(line.len(), at)?;
            self.line = Line::Stray;
        } else {
            return Ok(None);
        }
        self.line_offset = at;
        self.offset += line.len() as u64;
        self.keep_tail(line);
        Ok(Some(Pending {
            data,
            stray: data.is_none().then_some(line),
            ..self.finish()
        }))
    }

    /// Returns the fault that the next bytes would cause, if any, without consuming them.
    pub(crate) fn probe<'b>(&self, next: impl Iterator<Item = &'b [u8]>) -> Result<(), Fault> {
        let mut framer = self.clone();
        for piece in next.flat_map(|bytes| bytes.chunks(PROBE)) {
            framer.feed(piece, &mut |_: Item<'_>| Ok(()))?;
            framer.forget();
        }
        Ok(())
    }

    /// Drops the bytes of the open event, but keeps their number and the kind of the last line.
    pub(crate) fn forget(&mut self) {
        give_back(&mut self.data);
        if is_blank(self.head.first()) {
            self.head.truncate(1);
        }
        if self.has_stray {
            give_back(&mut self.seldom.stray);
        }
    }

    /// Consumes those complete events at the start of the input that `on` recognizes. Consumes no event while one is
    /// open.
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
