//! Repairs one stream: accepts bytes in one dialect and returns bytes in the same dialect. Blocks that clients
//! interpret correctly pass through unchanged, and all other blocks are rewritten.
//!
//! A block is the bytes of one server-sent event. The parser processes every block, and an encoder for the same dialect
//! writes the resulting events into a buffer. As long as blocks pass unchanged, their original bytes are sent and the
//! encoder's output is discarded. Once a block cannot pass, the encoder's output is sent instead until the end of the
//! stream. Some blocks only lack an event name, a member, the response's opening event, or a role. The missing bytes are
//! added to such a block, which then passes, and later blocks are checked as usual. This file decides which blocks pass,
//! are held, or are rewritten, without parsing frames or interpreting events.
//!
//! A block is held, together with the blocks after it, as long as later input can change the block's interpretation.
//! For example, an announced call may still be retracted. `encode::common::passed_through` stores facts about the
//! blocks that passed through, which the encoder needs to continue the output.

pub(crate) mod block_facts;
pub(crate) mod chunk_type;
pub(crate) mod ending;
pub(crate) mod held_blocks;
pub(crate) mod own_error;
pub(crate) mod partial_event;
pub(crate) mod payload_edits;
pub(crate) mod pending_deltas;
pub(crate) mod read_buffer;
pub(crate) mod repair_sink;
pub(crate) mod wire_facts;

use crate::dialect::Dialect;
use crate::encode::common::encode_context::Options;
use crate::model::config::Config;
use crate::model::delta::Completeness;
use crate::model::delta::InputEnd;
use crate::model::event::Sink;
use crate::model::fault::Fault;
use crate::model::limits::LimitName;
use crate::model::limits::as_len;
use crate::model::output::Diagnostic;
use crate::pipeline::after_error::AfterError;
use crate::pipeline::after_error::is_contentless;
use crate::pipeline::array_body::Body;
use crate::pipeline::parser::Parser;
use crate::repair::block_facts::ParseResult;
use crate::repair::chunk_type::put_chunk_type;
use crate::repair::held_blocks::HeldBlocks;
use crate::repair::read_buffer::Read;
use crate::repair::repair_sink::RepairSink;
use crate::sse::WholeEvents;
use crate::sse::block_splitter::PiecePosition;
use crate::sse::block_splitter::Splitter;
use crate::sse::block_splitter::drop_comments;
use crate::sse::block_splitter::has_fields;
use crate::sse::block_splitter::put_name;
use crate::sse::block_splitter::put_opening;
use std::mem;
use std::sync::Arc;

/// What happens to further input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FurtherInput {
    /// Further input is parsed, and repaired where necessary.
    Repaired,
    /// Further input passes unchanged, because the dialect is unknown.
    Passed,
    /// Further input is ignored, because the ending was written.
    Ignored,
}

/// Repairs the bytes of one response, without changing its dialect.
#[derive(Debug)]
pub struct Repairer {
    parser: Parser,
    sink: RepairSink,
    splitter: Splitter,
    /// Bytes of the current block that arrived in earlier reads.
    block: Vec<u8>,
    /// Number of bytes of the current block that were already parsed.
    parsed_bytes: usize,
    /// Maximum number of input bytes to buffer.
    max_buffered: usize,
    /// True until the end of the first block.
    is_first: bool,
    held: HeldBlocks,
    /// True if the last complete block was sent unchanged or is held.
    last_out: bool,
    /// `Some` after an error from the upstream has passed through.
    after_error: Option<Box<AfterError>>,
    /// Number of payloads before the current block.
    ordinal: u64,
    /// True if the end of the response was written or passed through.
    ended: bool,
    further_input: FurtherInput,
    repaired: bool,
    error: Option<Fault>,
    max_diagnostics: usize,
}

impl Repairer {
    /// Creates a repairer. If `dialect` is `None`, the dialect is detected.
    pub fn new(
        dialect: Option<Dialect>,
        config: impl Into<Arc<Config>>,
        options: Options,
    ) -> Repairer {
        Repairer::with_caching(dialect, config, options, true)
    }

    /// Creates a repairer, with or without template caching. Caching does not affect the result.
    #[doc(hidden)]
    pub fn with_caching(
        dialect: Option<Dialect>,
        config: impl Into<Arc<Config>>,
        options: Options,
        caching: bool,
    ) -> Repairer {
        let config = config.into();
        let mut sink = RepairSink::new(options, &config);
        if let Some(dialect) = dialect {
            sink.dialect_detected(dialect.name());
        }
        Repairer {
            max_diagnostics: as_len(config.limits.max_diagnostics),
            max_buffered: as_len(config.limits.max_event_bytes),
            parser: Parser::with_caching(dialect, config, caching),
            sink,
            splitter: Splitter::default(),
            block: Vec::new(),
            parsed_bytes: 0,
            is_first: true,
            held: HeldBlocks::default(),
            last_out: true,
            after_error: None,
            ordinal: 0,
            ended: false,
            further_input: FurtherInput::Repaired,
            repaired: false,
            error: None,
        }
    }

    /// Repairs the next bytes. The output consists of the bytes appended to `out`, followed by the returned slice of
    /// the input, which passes unchanged. There is no more output after the repairer has written an ending.
    pub fn feed<'i>(&mut self, input: &'i [u8], out: &mut Vec<u8>) -> &'i [u8] {
        let mut read = Read::new(input, out);
        while self.is_repairing() && !read.unread().is_empty() {
            if self.is_between(&read) {
                self.pass_plain_blocks(&mut read);
            }
            if !self.is_repairing() || read.unread().is_empty() {
                break;
            }
            self.handle_piece(&mut read);
        }
        match self.further_input {
            FurtherInput::Repaired => {
                self.block.extend_from_slice(read.block());
                self.held.keep(&mut read);
            }
            FurtherInput::Passed => {
                read.take(read.unread().len());
                read.pass();
            }
            FurtherInput::Ignored => self.drop_unread(!read.unread().is_empty()),
        }
        read.finish()
    }

    /// Ends the input and appends the last bytes to `out`.
    pub fn close(&mut self, input: InputEnd, out: &mut Vec<u8>) {
        let mut read = Read::new(&[], out);
        if self.is_repairing() && self.after_error.is_none() {
            let unread = self.block.get(self.parsed_bytes..).unwrap_or_default();
            let result = self.parser.close_after(unread, input, &mut self.sink);
            self.parsed_bytes = self.block.len();
            if let Err(fault) = result.and_then(|()| self.last(&mut read)) {
                self.failed(&mut read, fault);
            }
        }
        self.further_input = FurtherInput::Ignored;
    }

    /// Ends the stream because a limit that only the caller can measure was exceeded, and appends the ending.
    pub fn exceed(&mut self, name: LimitName, out: &mut Vec<u8>) {
        let mut read = Read::new(&[], out);
        if self.is_repairing() && self.after_error.is_none() {
            let unread = self.block.get(self.parsed_bytes..).unwrap_or_default();
            let result = self.parser.exceed_after(unread, name, &mut self.sink);
            self.parsed_bytes = self.block.len();
            if let Err(fault) = result {
                self.failed(&mut read, fault);
            }
        }
        self.further_input = FurtherInput::Ignored;
    }

    /// If the stream ended with an error before its dialect was known, records that input was dropped without a
    /// replacement. If the dialect is known, an ending was written instead of the input, or the original ending passed
    /// through.
    pub(crate) fn drop_unread(&mut self, any: bool) {
        self.repaired |= any && self.sink.encoder.is_none() && self.error.is_some();
    }

    fn is_repairing(&self) -> bool {
        self.further_input == FurtherInput::Repaired
    }

    // Blocks

    /// Returns true if no byte of the current block has arrived and `is_alone` is true.
    #[inline]
    fn is_between(&self, read: &Read<'_, '_>) -> bool {
        read.is_between() && self.block.is_empty() && self.is_alone()
    }

    /// Returns true if no earlier block is held, rewriting has not started, and the response has not ended.
    #[inline]
    fn is_alone(&self) -> bool {
        self.held.is_empty() && !(self.sink.rewriting || self.ended || self.after_error.is_some())
    }

    /// Passes or checks the complete blocks that the parser's fast path recognizes.
    #[inline]
    fn pass_plain_blocks(&mut self, read: &mut Read<'_, '_>) {
        let mut any = false;
        loop {
            let result = self.parser.take_whole_events(read.unread(), &mut self.sink);
            let result = match result {
                Ok(WholeEvents { events: 0, .. }) => break,
                Ok(taken) => {
                    read.take(taken.bytes);
                    self.handle_matched_blocks(read, taken.events)
                }
                Err(fault) => Err(fault),
            };
            any = true;
            if let Err(fault) = result {
                self.failed(read, fault);
                break;
            }
            if read.unread().is_empty() || !self.is_between(read) {
                break;
            }
        }
        if any {
            self.splitter.skip();
            self.ordinal = self.parser.payloads();
        }
    }

    /// Handles blocks that the fast path recognized. Blocks that contain only pieces of text pass without further
    /// checks, unless earlier input is undecided. `events` is the number of blocks.
    #[inline]
    fn handle_matched_blocks(&mut self, read: &mut Read<'_, '_>, events: usize) -> ParseResult {
        if self.sink.block.quiet && !self.is_undecided() {
            self.sink.pass_pieces();
            self.send_block(read);
        } else {
            self.ordinal = self.parser.payloads() - events as u64;
            self.decide(read)?;
            self.discard_block(read);
        }
        self.sink.begin_block();
        Ok(())
    }

    fn handle_piece(&mut self, read: &mut Read<'_, '_>) {
        let mut rest = read.unread();
        let Some((piece, position)) = self.splitter.next(&mut rest) else {
            return;
        };
        if position == PiecePosition::LineEnd {
            read.take(piece.len());
            return self.read_line_end(read, piece);
        }
        let ends = position == PiecePosition::End;
        if self.after_error.is_some() {
            read.take(piece.len());
            return self.piece_after_error(read, ends);
        }
        let result = self.keep(read, piece);
        let result = result.and_then(|()| self.read_on(read, position));
        if let Err(fault) = result {
            self.failed(read, fault);
        }
    }

    /// Parses the bytes of the current block that have arrived, and decides whether a complete block passes.
    fn read_on(&mut self, read: &mut Read<'_, '_>, position: PiecePosition) -> ParseResult {
        let ends = position == PiecePosition::End;
        if ends && self.parsed_bytes == 0 && !self.block.is_empty() && self.is_alone() {
            self.gather(read);
            let taken = self.parser.take_whole_events(&self.block, &mut self.sink)?;
            if taken.events > 0 {
                self.handle_matched_blocks(read, taken.events)?;
                self.ordinal = self.parser.payloads();
                return Ok(());
            }
        }
        if ends {
            self.catch_up(read)?;
            if self.parser.completeness_so_far() == Completeness::Complete {
                self.finish();
            }
            self.decide(read)?;
            self.begin_block(read);
            return Ok(());
        }
        self.read_early(read, position == PiecePosition::Ready)?;
        if self.sink.block.misread {
            self.write_begun(read)?;
        }
        Ok(())
    }

    /// Writes the events of an incomplete block that must be rewritten, without waiting for the end of the block.
    pub(crate) fn write_begun(&mut self, read: &mut Read<'_, '_>) -> ParseResult {
        if self.sink.rewriting {
            self.flush(read)?; // write now, because the stream may end here
        } else {
            self.rewrite(read)?;
        }
        self.discard_block(read); // the block can no longer pass
        Ok(())
    }

    /// Handles a piece of a block that follows an error from the upstream. Once the block is complete, it passes or is
    /// dropped.
    fn piece_after_error(&mut self, read: &mut Read<'_, '_>, ends: bool) {
        let buffered = self.buffered(read);
        if ends {
            self.gather(read);
        }
        let (block, max_buffered) = (&self.block, self.max_buffered);
        let Some(after_error) = &mut self.after_error else {
            return;
        };
        if buffered > max_buffered {
            after_error.mark_too_long();
        }
        if !ends {
            if after_error.is_too_long() {
                self.discard_block(read);
            }
        } else if after_error.passes(block) {
            self.send_block(read);
        } else {
            self.last_out = false;
            self.discard_block(read);
        }
    }

    /// Handles the LF of the CRLF that ended the previous block, if the LF arrives in a later read.
    fn read_line_end(&mut self, read: &mut Read<'_, '_>, piece: &[u8]) {
        if self.after_error.is_none()
            && let Err(fault) = self.parser.feed(piece, &mut self.sink)
        {
            return self.failed(read, fault);
        }
        if !self.last_out {
            read.begin_block();
        } else if self.held.is_empty() {
            read.pass();
        } else {
            self.held.hold(&mut self.block, read);
        }
    }

    fn begin_block(&mut self, read: &mut Read<'_, '_>) {
        self.discard_block(read);
        self.is_first = false;
        self.ordinal = self.parser.payloads();
        self.sink.begin_block();
    }

    /// Decides what happens to a complete block: it passes, is held, is dropped, or is rewritten.
    fn decide(&mut self, read: &mut Read<'_, '_>) -> ParseResult {
        // google-genai parses even lines that are not data as JSON, and raises an exception for them.
        if self.parser.payloads() != self.ordinal || self.parser.dialect() != Some(Dialect::Gemini)
        {
            return self.decide_without_comments(read, 0);
        }
        self.gather(read);
        let comments = drop_comments(&mut self.block);
        if comments.any {
            self.repaired = true;
            let begin = self.parser.total() - comments.size as u64;
            self.sink.at(begin, self.parser.payloads());
            self.sink.report_once("other_lines", &[])?;
        }
        let dropped = comments.size - self.block.len();
        self.decide_without_comments(read, dropped)?;
        self.last_out &= !comments.last; // the LF of its line ending may follow
        Ok(())
    }

    /// Decides what happens to a block from which comments that clients would misread were removed. `dropped` is the
    /// number of removed bytes.
    fn decide_without_comments(&mut self, read: &mut Read<'_, '_>, dropped: usize) -> ParseResult {
        self.sink.open_choices();
        if self.parser.body() == Body::Array {
            self.sink.block.mend(); // clients also misread the bytes between two elements
        } else if self.is_read_empty(read) {
            self.last_out = false;
            self.repaired = true;
            let begin = self.parser.total() - (self.block.len() + dropped) as u64;
            self.sink.at(begin, self.parser.payloads());
            return self.sink.report_once("empty_event", &self.block);
        }
        if !(self.sink.rewriting || self.is_undecided()) && self.sink.has_waiting_calls() {
            self.sink.block.mark_misread("calls_mixed");
        }
        if let Some(why) = self.sink.block.edits.reason()
            && !self.sink.rewriting
        {
            self.gather(read);
            if !self.sink.block.edits.fit(&self.block) {
                self.sink.block.mark_misread(why);
            }
        }
        let sink = &self.sink;
        self.last_out = false;
        let has_facts = sink.block.has_events || sink.block.counts;
        if sink.block.misread || (sink.block.emptied && has_facts && !self.ended) {
            self.report_rewrite_reason(read)?;
            return self.rewrite(read);
        }
        if sink.block.emptied {
            self.repaired = true;
            if let Some(why) = sink.block.reason() {
                self.gather(read);
                self.sink.report_once(why, &self.block)?;
            }
        } else if sink.rewriting {
            if !self.passes_after_repair() {
                return self.flush(read);
            }
            self.put_object(read)?;
            self.put_roles(read)?;
            self.sink.forget();
            self.send_block(read);
        } else if self.parser.payloads() == self.ordinal && self.held.is_empty() {
            self.send_block(read); // the block has only comments or blank lines
        } else {
            self.mend(read)?;
            if self.is_undecided() {
                self.last_out = true;
                self.hold(read);
            } else {
                self.pass(read);
            }
        }
        Ok(())
    }

    /// Returns true if the block has fields but no data. No client needs a block without data, and openai-python and
    /// the AI SDK would parse the empty data as JSON.
    fn is_read_empty(&mut self, read: &mut Read<'_, '_>) -> bool {
        if self.parser.payloads() != self.ordinal {
            return false;
        }
        self.gather(read);
        has_fields(&self.block)
    }

    /// Adds missing data that clients require to a block that will pass: the `object` member, an event name, an opening
    /// event, and roles.
    fn mend(&mut self, read: &mut Read<'_, '_>) -> ParseResult {
        self.put_object(read)?;
        self.put_edits(read)?;
        if let Some(name) = self.sink.block.name {
            self.repaired = true;
            self.gather(read);
            self.sink.report_once("event_name", &self.block)?;
            put_name(&mut self.block, name);
        }
        if let Some(why) = self.sink.block.unopened {
            self.repaired = true;
            self.sink.write_opening(None);
            self.gather(read);
            self.sink.report_opening(why, &self.block)?;
            let opening = mem::take(&mut self.sink.opening);
            put_opening(&mut self.block, &opening, self.is_first);
        }
        self.put_roles(read)
    }

    /// Adds the `object` member to the chunk in the block if it is missing.
    fn put_object(&mut self, read: &mut Read<'_, '_>) -> ParseResult {
        if !self.sink.block.untyped {
            return Ok(());
        }
        self.repaired = true;
        self.gather(read);
        self.sink.report_once("no_object", &self.block)?;
        put_chunk_type(&mut self.block);
        Ok(())
    }

    /// Applies the edits of the block's payload.
    fn put_edits(&mut self, read: &mut Read<'_, '_>) -> ParseResult {
        if self.sink.block.edits.reason().is_none() {
            return Ok(());
        }
        self.repaired = true;
        self.gather(read);
        let sent = self.block.clone();
        let created = self.sink.context.options.created;
        let edits = mem::take(&mut self.sink.block.edits);
        for why in edits.apply(&mut self.block, created) {
            self.sink.report_once(why, &sent)?;
        }
        Ok(())
    }

    /// Inserts, before the block, chunks with the roles that the block lacks.
    fn put_roles(&mut self, read: &mut Read<'_, '_>) -> ParseResult {
        if !self.sink.is_roleless() {
            return Ok(());
        }
        self.repaired = true;
        self.gather(read);
        self.sink.report_once("role_missing", &self.block)?;
        let roles = self.sink.roles();
        put_opening(&mut self.block, &roles, self.is_first);
        Ok(())
    }

    /// Returns true if earlier blocks are held or the current block must be held.
    fn waits(&self) -> bool {
        !self.held.is_empty() || self.is_undecided()
    }

    /// Returns true if later input may change the interpretation of the blocks so far.
    #[inline]
    fn is_undecided(&self) -> bool {
        self.parser.has_pending() || self.sink.holds()
    }

    fn hold(&mut self, read: &mut Read<'_, '_>) {
        self.sink.write_pieces();
        self.held.hold(&mut self.block, read);
        self.parsed_bytes = 0;
        self.held
            .add_replacement(&mut self.sink.context.writer.bytes);
    }

    /// Returns true if the current block can be sent unchanged although an earlier block was rewritten.
    fn passes_after_repair(&self) -> bool {
        let sink = &self.sink;
        if self.parser.payloads() == self.ordinal {
            return true;
        }
        if self.ended || sink.block.counts || self.parser.has_pending() {
            return false;
        }
        if !sink.block.has_events {
            return is_contentless(sink.context.source, &sink.payload);
        }
        sink.block.plain
    }

    /// Passes the held blocks and the current block through unchanged.
    fn pass(&mut self, read: &mut Read<'_, '_>) {
        self.pass_held(read);
        self.send_block(read);
    }

    pub(crate) fn pass_held(&mut self, read: &mut Read<'_, '_>) {
        self.held.pass(read);
        let numbered = self.ordinal != self.parser.payloads();
        self.sink.pass(numbered);
    }

    fn send_block(&mut self, read: &mut Read<'_, '_>) {
        read.write(&mut self.block);
        read.pass();
        self.parsed_bytes = 0;
        self.last_out = true;
    }

    fn discard_block(&mut self, read: &mut Read<'_, '_>) {
        self.block.clear();
        self.parsed_bytes = 0;
        read.begin_block();
    }

    /// Reports why the block cannot pass, unless this reason was already reported.
    fn report_rewrite_reason(&mut self, read: &mut Read<'_, '_>) -> ParseResult {
        let Some(why) = self.sink.new_reason() else {
            return Ok(());
        };
        self.gather(read);
        self.sink.report_once(why, &self.block)
    }

    /// Moves the current block's bytes from this read to `block`, so that all bytes of the block are in one buffer.
    fn gather(&mut self, read: &mut Read<'_, '_>) {
        self.block.extend_from_slice(read.block());
        read.begin_block();
    }

    /// Starts rewriting, so that the encoder's output is sent from now on.
    fn rewrite(&mut self, read: &mut Read<'_, '_>) -> ParseResult {
        self.repaired = true;
        self.sink.write_pieces();
        if self.ended && !self.sink.rewriting && self.sink.context.writer.bytes.is_empty() {
            return Ok(()); // the original ending has passed through; nothing follows it
        }
        self.sink.start_rewriting();
        self.held.send_replacement(read);
        self.flush(read)
    }

    fn flush(&mut self, read: &mut Read<'_, '_>) -> ParseResult {
        self.sink.write_pieces();
        read.write(&mut self.sink.context.writer.bytes);
        if self.sink.context.losses.is_next() {
            self.gather(read);
        }
        self.sink.report_losses(&self.block)
    }

    // Results

    /// Returns true if further input has no effect.
    pub fn is_over(&self) -> bool {
        self.further_input == FurtherInput::Ignored
    }

    /// Returns true if anything was rewritten, added or dropped.
    pub fn repaired(&self) -> bool {
        self.repaired
    }

    /// Returns the error that ended the stream, if any. The ending that reports the error has already been written or
    /// passed through.
    pub fn error(&self) -> Option<&Fault> {
        self.error.as_ref()
    }

    /// Returns the dialect of the stream once it is known.
    pub fn dialect(&self) -> Option<Dialect> {
        self.parser.dialect()
    }

    /// Returns the completeness of the response.
    pub fn completeness(&self) -> Completeness {
        self.parser.completeness()
    }

    /// Emits closing events from which the response can be rebuilt. The closing events of open parts contain the text
    /// received so far.
    pub fn snapshot(&self, sink: &mut dyn Sink) {
        self.parser.snapshot(sink);
    }

    /// Returns the parser's stored diagnostics, with the repairer's diagnostics inserted in order.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let parsed = self.parser.diagnostics();
        self.sink.lost.merged_with(parsed, self.max_diagnostics)
    }

    /// Returns the number of diagnostics that were not stored.
    pub fn diagnostics_dropped(&self) -> u64 {
        self.sink.lost.count() - self.diagnostics().len() as u64
    }

    /// Ignores all further input, because an earlier method call failed and may have left an inconsistent state.
    pub fn give_up(&mut self) {
        self.further_input = FurtherInput::Ignored;
        self.parser.give_up();
    }
}
