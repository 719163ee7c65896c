//! Buffers the current block until it can produce an event, and enforces the limit on buffered input.
//!
//! A block is usually parsed only when it is complete, because the parser would have to copy the bytes of an incomplete
//! block.

use crate::model::fault::Fault;
use crate::model::limits::LimitName;
use crate::pipeline::array_body::Body;
use crate::pipeline::parser::Parser;
use crate::repair::Repairer;
use crate::repair::block_facts::ParseResult;
use crate::repair::read_buffer::Read;

/// Maximum size, in bytes, of an oversized block that is parsed to find out whether it contains another error. Parsing
/// copies the block, so a larger block is only probed without copying.
const MOST_COPIED: usize = 1 << 19;

impl Repairer {
    /// Returns how many bytes of the current block have arrived.
    pub(crate) fn size(&self, read: &Read<'_, '_>) -> usize {
        self.block.len() + read.block().len()
    }

    /// Returns how many bytes are buffered for each byte of the current block. A payload on several lines is buffered
    /// twice: as it arrived, because it may have to pass unchanged, and with its lines joined.
    fn copies(&self) -> usize {
        if self.splitter.is_joined() { 2 } else { 1 }
    }

    /// Returns how many bytes are buffered for the current block.
    pub(crate) fn buffered(&self, read: &Read<'_, '_>) -> usize {
        self.size(read).saturating_mul(self.copies())
    }

    /// Adds `piece` to the current block. If the buffered bytes exceed the limit, rewrites and sends the held blocks,
    /// or returns an error.
    pub(crate) fn keep(&mut self, read: &mut Read<'_, '_>, piece: &[u8]) -> ParseResult {
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

    /// Splits `piece` at the limit on buffered bytes. Returns `None` if the whole piece fits or the block is not
    /// buffered.
    fn cut<'p>(&self, read: &Read<'_, '_>, piece: &'p [u8]) -> Option<(&'p [u8], &'p [u8])> {
        if self.sink.block.misread {
            return None; // the block is parsed as it arrives and not buffered
        }
        let kept = self.buffered(read) + self.held.size(read);
        piece
            .split_at_checked(self.max_buffered.saturating_sub(kept) / self.copies())
            .filter(|(_, beyond)| !beyond.is_empty())
    }

    fn make_room(&mut self, read: &mut Read<'_, '_>) -> ParseResult {
        if self.sink.block.misread {
            return Ok(());
        }
        let is_known = self.sink.encoder.is_some();
        if is_known && !self.held.is_empty() {
            return self.give_up_held(read);
        }
        // The bytes within the limit may cause another error or show that the block must be rewritten. Parsing would
        // copy these bytes, so a large block is only probed.
        let begin = self.parser.total() - self.parsed_bytes as u64;
        if self.size(read) <= MOST_COPIED {
            self.catch_up(read)?;
            if self.sink.block.misread {
                return self.write_begun(read);
            }
        }
        self.gather(read);
        let unread = self.block.get(self.parsed_bytes..).unwrap_or_default();
        if let Err(fault) = self.parser.probe(&[unread]) {
            self.parser.give_up();
            return Err(fault);
        }
        let fault = Fault::limit(LimitName::max_event_bytes, self.max_buffered as u64);
        Err(fault.at(begin, self.parser.payloads()))
    }

    /// Rewrites and sends the held blocks, because they exceed the limit.
    fn give_up_held(&mut self, read: &mut Read<'_, '_>) -> ParseResult {
        self.held.keep(read);
        self.sink.report_once("held_too_long", self.held.bytes())?;
        self.rewrite(read)
    }

    /// Parses the complete payloads of the current block. Other bytes stay unparsed, because the parser would have to
    /// copy them. `is_ready` is true if the bytes so far end with a complete payload.
    pub(crate) fn read_early(&mut self, read: &mut Read<'_, '_>, is_ready: bool) -> ParseResult {
        if self.sink.block.misread {
            return self.catch_up(read); // the block is not buffered here, so parsing makes no second copy
        }
        match self.parser.body() {
            Body::Array => {
                self.read_unread(read, Parser::elements_in)?;
                if self.sink.block.misread {
                    return self.catch_up(read);
                }
                // Unparsed bytes of an unfinished element also count toward the limits.
                let unread = self.size(read) - self.parsed_bytes;
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

    /// Parses all bytes of the current block that have arrived.
    pub(crate) fn catch_up(&mut self, read: &mut Read<'_, '_>) -> ParseResult {
        self.read_unread(read, |_, unread| unread.len())
    }

    /// Parses some of the unparsed bytes of the current block. `taken` receives these bytes, and returns how many of
    /// them to parse.
    fn read_unread(
        &mut self,
        read: &mut Read<'_, '_>,
        taken: impl FnOnce(&mut Parser, &[u8]) -> usize,
    ) -> ParseResult {
        if self.parsed_bytes < self.block.len() {
            self.gather(read);
        }
        let came = self.block.len();
        let unread = match self
            .block
            .get(self.parsed_bytes..)
            .filter(|unread| !unread.is_empty())
        {
            Some(unread) => unread,
            None => read
                .block()
                .get(self.parsed_bytes - came..)
                .unwrap_or_default(),
        };
        let taken = taken(&mut self.parser, unread);
        let unread = unread.get(..taken).unwrap_or(unread);
        self.parsed_bytes += unread.len();
        self.parser.feed(unread, &mut self.sink)
    }
}
