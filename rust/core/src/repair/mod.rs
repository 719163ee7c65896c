//! One stream, bytes of one dialect to bytes of the same: what needs no repair passes as it is, the rest is rewritten.
//!
//! The parser judges every block (`block`), and the dialect's own encoder writes along into a scratch. As long as the
//! judgement is "as sent", the bytes go out and the scratch is thrown away; from the first block that is not, the scratch
//! goes out instead, to the end. A block that lacks nothing but the right name of its event, or the answer's opening before
//! it, passes with that put in, and those behind it are judged as ever. Knows blocks, verdicts and the order of the output;
//! no frame, no event's meaning.
//!
//! A block is held, with those behind it, while the parser owes something: a call that was announced may yet turn out to
//! be none. What the encoder needs of the wire to go on behind passed bytes is in `encode::common::passed_through`.

pub(crate) mod ending;
pub(crate) mod held_blocks;
pub(crate) mod own_error;
pub(crate) mod partial_event;
pub(crate) mod pending_deltas;
pub(crate) mod read_buffer;
pub(crate) mod repair_sink;
pub(crate) mod verdict;
pub(crate) mod wire_facts;

use crate::dialect::Dialect;
use crate::dialect::reads_empty;
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
use crate::pipeline::after_error::is_beside;
use crate::pipeline::array_body::Body;
use crate::pipeline::parser::Parser;
use crate::repair::held_blocks::HeldBlocks;
use crate::repair::read_buffer::Read;
use crate::repair::repair_sink::RepairSink;
use crate::repair::verdict::Step;
use crate::sse::WholeEvents;
use crate::sse::block_splitter::Place;
use crate::sse::block_splitter::Splitter;
use crate::sse::block_splitter::has_fields;
use crate::sse::block_splitter::put_name;
use crate::sse::block_splitter::put_opening;
use std::mem;
use std::sync::Arc;

/// Repairs one stream.
#[derive(Debug)]
pub struct Repairer {
    parser: Parser,
    hand: RepairSink,
    splitter: Splitter,
    /// The bytes of the block at hand that came with earlier reads.
    block: Vec<u8>,
    /// How many bytes of it were read.
    seen: usize,
    /// How much of the input is kept at most.
    most: usize,
    /// The block at hand is the first that was not known as it stood.
    is_first: bool,
    held: HeldBlocks,
    /// The last whole block went out as it was, or waits.
    last_out: bool,
    /// The upstream's own error has passed.
    behind_error: Option<Box<AfterError>>,
    /// How many payloads there were when the block began.
    ordinal: u64,
    /// The answer's end went out or passed.
    ended: bool,
    /// Nothing is read any more.
    over: bool,
    repaired: bool,
    error: Option<Fault>,
    max_diagnostics: usize,
}

impl Repairer {
    /// `dialect`: `None` finds it out.
    pub fn new(
        dialect: Option<Dialect>,
        config: impl Into<Arc<Config>>,
        options: Options,
    ) -> Repairer {
        let config = config.into();
        let mut hand = RepairSink::new(options, &config);
        if let Some(dialect) = dialect {
            hand.speaks(dialect.name());
        }
        Repairer {
            max_diagnostics: as_len(config.limits.max_diagnostics),
            most: as_len(config.limits.max_event_bytes),
            parser: Parser::new(dialect, config),
            hand,
            splitter: Splitter::default(),
            block: Vec::new(),
            seen: 0,
            is_first: true,
            held: HeldBlocks::default(),
            last_out: true,
            behind_error: None,
            ordinal: 0,
            ended: false,
            over: false,
            repaired: false,
            error: None,
        }
    }

    /// Takes the next bytes. Those that may go out, repaired: what is appended to `out`, and behind it what is given back, a
    /// part of the input that passes as it is. After an ending of ours there are none.
    pub fn feed<'i>(&mut self, input: &'i [u8], out: &mut Vec<u8>) -> &'i [u8] {
        let mut read = Read::new(input, out);
        while !self.over && !read.rest().is_empty() {
            if self.is_between(&read) {
                self.swift(&mut read);
            }
            if self.over || read.rest().is_empty() {
                break;
            }
            self.piece(&mut read);
        }
        if !self.over {
            self.block.extend_from_slice(read.block());
            self.held.keep(&mut read);
        }
        read.finish()
    }

    /// The input has ended: appends the last bytes.
    pub fn close(&mut self, input: InputEnd, out: &mut Vec<u8>) {
        let mut read = Read::new(&[], out);
        if !self.over && self.behind_error.is_none() {
            let result = self.catch_up(&mut read);
            let result = result.and_then(|()| self.parser.close(input, &mut self.hand));
            if let Err(fault) = result.and_then(|()| self.last(&mut read)) {
                self.failed(&mut read, fault);
            }
        }
        self.over = true;
    }

    /// A cap was passed that only the caller can measure: appends the ending.
    pub fn exceed(&mut self, name: LimitName, out: &mut Vec<u8>) {
        let mut read = Read::new(&[], out);
        if !self.over && self.behind_error.is_none() {
            let result = self.catch_up(&mut read);
            if let Err(fault) = result.and_then(|()| self.parser.exceed(name)) {
                self.failed(&mut read, fault);
            }
        }
        self.over = true;
    }

    // Blocks

    /// Nothing is under way but the answer, and as sent so far.
    #[inline]
    fn is_between(&self, read: &Read<'_, '_>) -> bool {
        read.is_between() && self.block.is_empty() && self.is_alone()
    }

    /// What was sent before the block at hand went out, as sent.
    #[inline]
    fn is_alone(&self) -> bool {
        self.held.is_empty() && !(self.hand.rendering || self.ended || self.behind_error.is_some())
    }

    /// Takes the blocks that are known as they stand.
    #[inline]
    fn swift(&mut self, read: &mut Read<'_, '_>) {
        let mut any = false;
        loop {
            let result = self.parser.whole(read.rest(), &mut self.hand);
            let result = match result {
                Ok(WholeEvents { events: 0, .. }) => break,
                Ok(taken) => {
                    read.take(taken.bytes);
                    self.known(read, taken.events)
                }
                Err(fault) => Err(fault),
            };
            any = true;
            if let Err(fault) = result {
                self.failed(read, fault);
                break;
            }
            if read.rest().is_empty() || !self.is_between(read) {
                break;
            }
        }
        if any {
            self.splitter.skip();
            self.ordinal = self.parser.payloads();
        }
    }

    /// Takes so many blocks, which mostly are nothing but pieces of texts.
    #[inline]
    fn known(&mut self, read: &mut Read<'_, '_>, events: usize) -> Step {
        if self.hand.block.quiet && !(self.parser.owes() || self.hand.holds()) {
            self.hand.pass_pieces();
            self.go_out(read);
        } else {
            self.ordinal = self.parser.payloads() - events as u64;
            self.judge(read)?;
            self.leave_out(read);
        }
        self.hand.begin_block();
        Ok(())
    }

    fn piece(&mut self, read: &mut Read<'_, '_>) {
        let mut rest = read.rest();
        let Some((piece, place)) = self.splitter.next(&mut rest) else {
            return;
        };
        if place == Place::Behind {
            read.take(piece.len());
            return self.behind(read, piece);
        }
        let ends = place == Place::End;
        if self.behind_error.is_some() {
            read.take(piece.len());
            return self.piece_behind_error(read, ends);
        }
        let result = self.keep(read, piece);
        let result = result.and_then(|()| self.read_on(read, place));
        if let Err(fault) = result {
            self.failed(read, fault);
        }
    }

    /// Reads the block at hand, if something may come of it.
    fn read_on(&mut self, read: &mut Read<'_, '_>, place: Place) -> Step {
        let ends = place == Place::End;
        if ends && self.seen == 0 && !self.block.is_empty() && self.is_alone() {
            self.gather(read);
            let taken = self.parser.whole(&self.block, &mut self.hand)?;
            if taken.events > 0 {
                self.known(read, taken.events)?;
                self.ordinal = self.parser.payloads();
                return Ok(());
            }
        }
        if ends {
            self.catch_up(read)?;
            if self.parser.standing() == Completeness::Complete {
                self.finish();
            }
            self.judge(read)?;
            self.begin_block(read);
            return Ok(());
        }
        self.read_early(read, place == Place::Ready)?;
        if self.hand.block.touched {
            if self.hand.rendering {
                self.flush(read)?; // its end may be that of the stream
            } else {
                self.render(read)?;
            }
            self.leave_out(read); // it cannot pass any more
        }
        Ok(())
    }

    /// Another block behind the upstream's own error: it is looked at when it is whole.
    fn piece_behind_error(&mut self, read: &mut Read<'_, '_>, ends: bool) {
        let size = self.size(read);
        if ends {
            self.gather(read);
        }
        let (block, most) = (&self.block, self.most);
        let Some(behind) = &mut self.behind_error else {
            return;
        };
        if size > most {
            behind.spoil();
        }
        if !ends {
            if behind.is_spoilt() {
                self.leave_out(read);
            }
        } else if behind.passes(block) {
            self.go_out(read);
        } else {
            self.last_out = false;
            self.leave_out(read);
        }
    }

    /// The rest of the line end of the last block.
    fn behind(&mut self, read: &mut Read<'_, '_>, piece: &[u8]) {
        if self.behind_error.is_none()
            && let Err(fault) = self.parser.feed(piece, &mut self.hand)
        {
            return self.failed(read, fault);
        }
        if !self.held.is_empty() {
            self.held.block(&mut self.block, read);
        } else if self.last_out {
            read.pass();
        } else {
            read.begin_block();
        }
    }

    fn begin_block(&mut self, read: &mut Read<'_, '_>) {
        self.leave_out(read);
        self.is_first = false;
        self.ordinal = self.parser.payloads();
        self.hand.begin_block();
    }

    /// The block is whole: as sent, to be left out, or the first to be written anew.
    fn judge(&mut self, read: &mut Read<'_, '_>) -> Step {
        if self.parser.body() == Body::Array {
            self.hand.block.mend(); // also what stands between two elements
        } else if self.is_read_empty(read) {
            self.last_out = false;
            self.repaired = true;
            let begin = self.parser.total() - self.block.len() as u64;
            self.hand.at(begin, self.parser.payloads());
            return self.hand.tell_once("empty_event", &self.block);
        }
        let hand = &self.hand;
        self.last_out = false;
        let says = hand.block.brought || hand.block.counts;
        if hand.block.touched || (hand.block.emptied && says && !self.ended) {
            self.explain(read)?;
            return self.render(read);
        }
        if hand.block.emptied {
            self.repaired = true;
            if hand.block.reason().is_some() {
                self.gather(read);
                self.hand.tell_once("empty_event", &self.block)?;
            }
        } else if hand.rendering {
            if !self.passes_behind_repair() {
                return self.flush(read);
            }
            self.put_roles(read)?;
            self.hand.forget();
            self.go_out(read);
        } else if self.parser.payloads() == self.ordinal && self.held.is_empty() {
            self.go_out(read); // a comment, or blank lines: nothing waits for them
        } else {
            self.mend(read)?;
            if self.parser.owes() || self.hand.holds() {
                self.last_out = true;
                self.hold(read);
            } else {
                self.pass(read);
            }
        }
        Ok(())
    }

    /// The block has fields and no data, which openai-python reads as JSON. No client of any dialect needs it.
    fn is_read_empty(&mut self, read: &mut Read<'_, '_>) -> bool {
        if self.parser.payloads() != self.ordinal || !reads_empty(self.parser.dialect()) {
            return false;
        }
        self.gather(read);
        has_fields(&self.block)
    }

    /// Gives the block that is to pass the name and the opening that readers want.
    fn mend(&mut self, read: &mut Read<'_, '_>) -> Step {
        if let Some(why) = self.hand.block.unopened {
            self.repaired = true;
            self.hand.write_opening(None);
            self.gather(read);
            self.hand.tell_opening(why, &self.block)?;
            let opening = mem::take(&mut self.hand.opening);
            put_opening(&mut self.block, &opening, self.is_first);
        }
        self.put_roles(read)?;
        if let Some(name) = self.hand.block.name {
            self.repaired = true;
            self.gather(read);
            self.hand.tell_once("event_name", &self.block)?;
            put_name(&mut self.block, name);
        }
        Ok(())
    }

    /// Puts chunks with the roles that the block lacks before it.
    fn put_roles(&mut self, read: &mut Read<'_, '_>) -> Step {
        if !self.hand.is_roleless() {
            return Ok(());
        }
        self.repaired = true;
        self.gather(read);
        self.hand.tell_once("role_missing", &self.block)?;
        let roles = self.hand.roles();
        put_opening(&mut self.block, &roles, self.is_first);
        Ok(())
    }

    /// What was sent last does not go out at once.
    fn waits(&self) -> bool {
        !self.held.is_empty() || self.parser.owes() || self.hand.holds()
    }

    fn hold(&mut self, read: &mut Read<'_, '_>) {
        self.hand.write_pieces();
        self.held.block(&mut self.block, read);
        self.seen = 0;
        self.held.instead(&mut self.hand.job.writer.bytes);
    }

    /// Whether the block, sent right behind one that was not, can go out as it is.
    fn passes_behind_repair(&self) -> bool {
        let hand = &self.hand;
        if self.parser.payloads() == self.ordinal {
            return true;
        }
        if self.ended || hand.block.counts || self.parser.owes() {
            return false;
        }
        if !hand.block.brought {
            return is_beside(hand.job.source, &hand.payload);
        }
        hand.block.plain
    }

    /// The block goes out as it was sent, and those that waited before it.
    fn pass(&mut self, read: &mut Read<'_, '_>) {
        self.held.pass(read);
        let numbered = self.ordinal != self.parser.payloads();
        self.hand.pass(numbered);
        self.go_out(read);
    }

    fn go_out(&mut self, read: &mut Read<'_, '_>) {
        read.write(&mut self.block);
        read.pass();
        self.seen = 0;
        self.last_out = true;
    }

    fn leave_out(&mut self, read: &mut Read<'_, '_>) {
        self.block.clear();
        self.seen = 0;
        read.begin_block();
    }

    /// Says why the block does not pass, if it is the first that does not.
    fn explain(&mut self, read: &mut Read<'_, '_>) -> Step {
        if self.hand.explained {
            return Ok(());
        }
        self.gather(read);
        self.hand.explain(&self.block)
    }

    /// The block at hand in one piece, for what may have to show it.
    fn gather(&mut self, read: &mut Read<'_, '_>) {
        self.block.extend_from_slice(read.block());
        read.begin_block();
    }

    /// From here on what the encoder writes goes out.
    fn render(&mut self, read: &mut Read<'_, '_>) -> Step {
        self.repaired = true;
        self.hand.write_pieces();
        if self.ended && !self.hand.rendering && self.hand.job.writer.bytes.is_empty() {
            return Ok(()); // behind the end that passed: there is nothing to go on with
        }
        self.hand.render();
        self.held.render(read);
        self.flush(read)
    }

    fn flush(&mut self, read: &mut Read<'_, '_>) -> Step {
        self.hand.write_pieces();
        read.write(&mut self.hand.job.writer.bytes);
        if self.hand.job.losses.is_next() {
            self.gather(read);
        }
        self.hand.tell(&self.block)
    }

    // What it came to

    /// Nothing that is fed has any effect.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Something was written anew, added or left out.
    pub fn repaired(&self) -> bool {
        self.repaired
    }

    /// What went wrong upstream, if anything did; its ending is written, or passed.
    pub fn error(&self) -> Option<&Fault> {
        self.error.as_ref()
    }

    /// What the stream speaks, as soon as that is known.
    pub fn dialect(&self) -> Option<Dialect> {
        self.parser.dialect()
    }

    /// How far the answer can be trusted to be all of it.
    pub fn completeness(&self) -> Completeness {
        self.parser.completeness()
    }

    /// The close events that rebuild the answer, with what is open as far as it came.
    pub fn snapshot(&self, sink: &mut dyn Sink) {
        self.parser.snapshot(sink);
    }

    /// The diagnostics that are kept: the parser's, and the losses where they happened.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let parsed = self.parser.diagnostics();
        self.hand.lost.among(parsed, self.max_diagnostics)
    }

    /// How many diagnostics were not kept.
    pub fn diagnostics_dropped(&self) -> u64 {
        self.hand.lost.count() - self.diagnostics().len() as u64
    }

    /// A call broke half way: nothing is taken any more.
    pub fn give_up(&mut self) {
        self.over = true;
        self.parser.give_up();
    }
}
