//! The first part of an event at the end of a read: it waits for the rest, so that the event is looked at once.
//!
//! A short one only, on one line of data: nothing could come of it before the rest is there. Knows no verdict.

use std::mem;

use memchr::memchr2;

use super::read::Read;
use super::{Repairer, Step};
use crate::block::Place;
use crate::sse::Taken;
use crate::wire::one_line_of_data;

/// The longest that waits.
const MOST: usize = 2048;

impl Repairer {
    /// What is left of the read waits; false, and nothing was done, if it is more, or something else.
    #[inline]
    pub(super) fn keep_part(&mut self, read: &mut Read<'_, '_>) -> bool {
        let mut rest = read.rest();
        let is_line = || {
            one_line_of_data(rest).is_some_and(|(_, data)| memchr2(b'\n', b'\r', data).is_none())
        };
        if rest.len() > MOST || !self.parser.has_room(MOST) || !is_line() {
            return false;
        }
        read.take(rest.len());
        self.splitter.next(&mut rest);
        self.part = true;
        true
    }

    /// More of an event whose first part waits.
    pub(super) fn more_of_part(&mut self, read: &mut Read<'_, '_>) {
        let mut rest = read.rest();
        let Some((piece, place)) = self.splitter.next(&mut rest) else {
            return;
        };
        read.take(piece.len());
        self.block.extend_from_slice(piece);
        read.begin_block();
        let ends = place == Place::End;
        if !ends && self.block.len() <= MOST {
            return;
        }
        let block = mem::take(&mut self.block);
        let known = if ends {
            self.parser.whole(&block, &mut self.hand)
        } else {
            Ok(Taken::default())
        };
        self.block = block;
        let result = match known {
            Ok(Taken { events: 0, .. }) => self.catch_up().and_then(|()| self.taken(read, ends)),
            Ok(taken) => {
                self.part = false;
                let result = self.known(read, taken.events);
                self.ordinal = self.parser.payloads();
                result
            }
            Err(fault) => Err(fault),
        };
        if let Err(fault) = result {
            self.failed(read, fault);
        }
    }

    /// What waits is read as far as it came.
    pub(super) fn catch_up(&mut self) -> Step {
        if !mem::take(&mut self.part) {
            return Ok(());
        }
        let block = mem::take(&mut self.block);
        let result = self.parser.feed(&block, &mut self.hand);
        self.block = block;
        result
    }
}
