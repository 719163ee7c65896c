//! The block at hand, as long as nothing can come of it: it is kept, and read when it has ended, so that there is one copy
//! of it. And how much of the input may be kept.
//!
//! Knows no verdict.

use crate::model::fault::Fault;
use crate::model::limits::LimitName;
use crate::pipeline::array_body::Body;
use crate::pipeline::parser::Parser;
use crate::repair::Repairer;
use crate::repair::read_buffer::Read;
use crate::repair::verdict::Step;

impl Repairer {
    /// How long the block at hand is so far.
    pub(crate) fn size(&self, read: &Read<'_, '_>) -> usize {
        self.block.len() + read.block().len()
    }

    /// Takes more of the block at hand, as far as a cap lets it be kept: what waits before it makes room, if that is why.
    pub(crate) fn keep(&mut self, read: &mut Read<'_, '_>, piece: &[u8]) -> Step {
        let mut rest = piece;
        while let Some((fits, beyond)) = self.cut(read, rest) {
            read.take(fits.len());
            self.read_early(read, false)?;
            self.make_room(read)?;
            rest = beyond;
        }
        read.take(rest.len());
        Ok(())
    }

    /// The bytes that may be kept, and those beyond them; `None` where all may.
    fn cut<'p>(&self, read: &Read<'_, '_>, piece: &'p [u8]) -> Option<(&'p [u8], &'p [u8])> {
        if self.hand.block.touched {
            return None; // it is read as it comes, and not kept
        }
        let kept = self.size(read) + self.held.size(read);
        piece
            .split_at_checked(self.most.saturating_sub(kept))
            .filter(|(_, beyond)| !beyond.is_empty())
    }

    fn make_room(&mut self, read: &mut Read<'_, '_>) -> Step {
        if self.hand.block.touched {
            return Ok(());
        }
        let is_known = self.hand.encoder.is_some();
        if is_known && self.size(read) < self.most && !self.held.is_empty() {
            return self.give_up_held(read);
        }
        let begin = self.parser.total() - self.seen as u64;
        self.gather(read);
        let unread = self.block.get(self.seen..).unwrap_or_default();
        if let Err(fault) = self.parser.probe(&[unread]) {
            self.parser.give_up();
            return Err(fault);
        }
        let fault = Fault::limit(LimitName::max_event_bytes, self.most as u64);
        Err(fault.at(begin, self.parser.payloads()))
    }

    /// What waits takes too much: it goes out as it is written anew, without what may yet come of it.
    fn give_up_held(&mut self, read: &mut Read<'_, '_>) -> Step {
        self.held.keep(read);
        self.hand.explain_held(self.held.bytes())?;
        self.render(read)
    }

    /// Reads the payloads that end before the block at hand does. The parser would keep a copy of all other bytes.
    /// `is_ready`: one ends with the bytes that were taken.
    pub(crate) fn read_early(&mut self, read: &mut Read<'_, '_>, is_ready: bool) -> Step {
        if self.hand.block.touched {
            return self.catch_up(read); // nothing of it is kept here
        }
        match self.parser.body() {
            Body::Array => {
                self.read_unread(read, Parser::elements_in)?;
                if self.hand.block.touched {
                    return self.catch_up(read);
                }
                // They are not read before their element ends, and count all the same.
                let unread = self.size(read) - self.seen;
                self.parser.count(unread)
            }
            Body::Undecided => self.read_unread(read, |parser, unread| {
                let all = is_ready || parser.may_open_array(unread);
                if all { unread.len() } else { 0 }
            }),
            Body::Events if is_ready => self.catch_up(read),
            Body::Events => Ok(()),
        }
    }

    /// Reads the block at hand as far as it came.
    pub(crate) fn catch_up(&mut self, read: &mut Read<'_, '_>) -> Step {
        self.read_unread(read, |_, unread| unread.len())
    }

    /// Reads the next bytes of the block at hand; `taken` returns how many of the unread ones.
    fn read_unread(
        &mut self,
        read: &mut Read<'_, '_>,
        taken: impl FnOnce(&mut Parser, &[u8]) -> usize,
    ) -> Step {
        if self.seen < self.block.len() {
            self.gather(read);
        }
        let came = self.block.len();
        let unread = match self
            .block
            .get(self.seen..)
            .filter(|unread| !unread.is_empty())
        {
            Some(unread) => unread,
            None => read.block().get(self.seen - came..).unwrap_or_default(),
        };
        let taken = taken(&mut self.parser, unread);
        let unread = unread.get(..taken).unwrap_or(unread);
        self.seen += unread.len();
        self.parser.feed(unread, &mut self.hand)
    }
}
