//! One stream, bytes of one dialect to bytes of the same: what needs no repair passes as it is, the rest is rewritten.
//!
//! The parser judges every block (`block`), and the dialect's own encoder writes along into a scratch. As long as the
//! judgement is "as sent", the bytes go out and the scratch is thrown away; from the first block that is not, the scratch
//! goes out instead, to the end. Knows blocks, verdicts and the order of the output; no frame, no event's meaning.
//!
//! A block is held, with those behind it, while the parser owes something: a call that was announced may yet turn out to
//! be none. What the encoder needs of the wire to go on behind passed bytes stands in `encode::passed`.

mod hand;
mod pieces;
mod read;

use std::mem;
use std::sync::Arc;

use crate::arrival::Arrival;
use crate::behind_error::{BehindError, is_beside};
use crate::block::{Place, Splitter};
use crate::config::Config;
use crate::delta::Completeness;
use crate::dialect::Dialect;
use crate::encode::finish::Trouble;
use crate::encode::job::Options;
use crate::event::Sink;
use crate::fault::{Class, Fault, Where};
use crate::limits::as_len;
use crate::out::Diagnostic;
use crate::parser::Parser;
use crate::spec::Code;
use hand::Hand;
use read::Read;

/// No event of theirs says that an answer is over.
const UNMARKED: [&str; 1] = ["gemini"];

type Step = Result<(), Fault>;

/// Repairs one stream.
#[derive(Debug)]
pub struct Repairer {
    parser: Parser,
    hand: Hand,
    splitter: Splitter,
    /// The bytes of the block at hand that came with earlier reads.
    block: Vec<u8>,
    /// Blocks that wait, each with what would be written instead.
    held: Vec<Held>,
    /// The last whole block went out as it was, or waits.
    last_out: bool,
    /// The upstream's own error has passed.
    behind_error: Option<Box<BehindError>>,
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

#[derive(Debug)]
struct Held {
    block: Vec<u8>,
    scratch: Vec<u8>,
}

impl Repairer {
    /// `dialect`: `None` finds it out.
    pub fn new(
        dialect: Option<Dialect>,
        config: impl Into<Arc<Config>>,
        options: Options,
    ) -> Repairer {
        let config = config.into();
        let mut hand = Hand::new(options, &config);
        if let Some(dialect) = dialect {
            hand.speaks(dialect.name());
        }
        Repairer {
            max_diagnostics: as_len(config.limits.max_diagnostics),
            parser: Parser::new(dialect, config),
            hand,
            splitter: Splitter::default(),
            block: Vec::new(),
            held: Vec::new(),
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
            if !(self.is_between(&read) && self.swift(&mut read)) {
                self.piece(&mut read);
            }
        }
        if !self.over {
            self.block.extend_from_slice(read.block());
        }
        read.finish()
    }

    /// The input has ended: appends the last bytes.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        let mut read = Read::new(&[], out);
        if !self.over && self.behind_error.is_none() {
            let result = self.parser.close(&mut self.hand);
            if let Err(fault) = result.and_then(|()| self.last(&mut read)) {
                self.failed(&mut read, fault);
            }
        }
        self.over = true;
    }

    /// What the end of the input leaves.
    fn last(&mut self, read: &mut Read<'_, '_>) -> Step {
        self.finish();
        if self.hand.rendering || self.hand.touched {
            return self.render(read);
        }
        if self.hand.emptied {
            self.repaired = true;
            self.block.clear();
        }
        self.pass(read);
        Ok(())
    }

    // Blocks

    /// Nothing is under way but the answer, and as sent so far.
    #[inline]
    fn is_between(&self, read: &Read<'_, '_>) -> bool {
        read.is_between()
            && self.block.is_empty()
            && self.held.is_empty()
            && !(self.hand.rendering || self.ended || self.behind_error.is_some())
    }

    /// Takes blocks that are known as they stand; false if there are none.
    #[inline]
    fn swift(&mut self, read: &mut Read<'_, '_>) -> bool {
        let result = self.parser.whole(read.rest(), &mut self.hand);
        let result = match result {
            Ok(taken) if taken.events == 0 => return false,
            Ok(taken) => {
                read.take(taken.bytes);
                self.splitter.skip();
                self.judge(read)
            }
            Err(fault) => Err(fault),
        };
        match result {
            Ok(()) => self.begin_block(read),
            Err(fault) => self.failed(read, fault),
        }
        true
    }

    fn piece(&mut self, read: &mut Read<'_, '_>) {
        let mut rest = read.rest();
        let Some((piece, place)) = self.splitter.next(&mut rest) else {
            return;
        };
        read.take(piece.len());
        if place == Place::Behind {
            return self.behind(read, piece);
        }
        let ends = place == Place::End;
        if let Some(behind) = &mut self.behind_error {
            if behind.passes(piece, ends) {
                self.go_out(read);
            } else if ends {
                self.leave_out(read);
            }
            return;
        }
        let result = self.parser.feed(piece, &mut self.hand);
        if let Err(fault) = result.and_then(|()| self.taken(read, ends)) {
            self.failed(read, fault);
        }
    }

    fn taken(&mut self, read: &mut Read<'_, '_>, ends: bool) -> Step {
        if ends {
            if self.parser.standing() == Completeness::Complete {
                self.finish();
            }
            self.judge(read)?;
            self.begin_block(read);
        } else if self.hand.touched && !self.hand.rendering {
            self.render(read)?;
        }
        Ok(())
    }

    /// The rest of the line end of the last block.
    fn behind(&mut self, read: &mut Read<'_, '_>, piece: &[u8]) {
        if self.behind_error.is_none()
            && let Err(fault) = self.parser.feed(piece, &mut self.hand)
        {
            return self.failed(read, fault);
        }
        if let Some(last) = self.held.last_mut() {
            last.block.extend_from_slice(piece);
        } else if self.last_out {
            return read.pass();
        }
        read.begin_block();
    }

    fn begin_block(&mut self, read: &mut Read<'_, '_>) {
        self.leave_out(read);
        self.ordinal = self.parser.payloads();
        self.hand.begin_block();
    }

    /// The block is whole: as sent, to be left out, or the first to be written anew.
    fn judge(&mut self, read: &mut Read<'_, '_>) -> Step {
        let hand = &self.hand;
        self.last_out = false;
        let says = hand.brought || hand.counts;
        if hand.touched || (hand.emptied && says && !self.ended) {
            return self.render(read);
        }
        if hand.emptied {
            self.repaired = true;
        } else if hand.rendering {
            if !self.passes_behind_repair() {
                return self.flush(read);
            }
            self.hand.forget();
            self.go_out(read);
        } else if self.parser.payloads() == self.ordinal && self.held.is_empty() {
            self.go_out(read); // a comment, or blank lines: nothing waits for them
        } else if self.parser.owes() || self.hand.holds() {
            self.last_out = true;
            self.hold(read);
        } else {
            self.pass(read);
        }
        Ok(())
    }

    fn hold(&mut self, read: &mut Read<'_, '_>) {
        self.hand.write_pieces();
        let mut block = mem::take(&mut self.block);
        block.extend_from_slice(read.block());
        self.held.push(Held {
            block,
            scratch: mem::take(&mut self.hand.job.writer.bytes),
        });
    }

    /// Whether the block, sent right behind one that was not, can go out as it is.
    fn passes_behind_repair(&self) -> bool {
        let hand = &self.hand;
        if self.parser.payloads() == self.ordinal {
            return true;
        }
        if self.ended || hand.counts || self.parser.owes() {
            return false;
        }
        if !hand.brought {
            return is_beside(hand.job.source, &hand.payload);
        }
        hand.plain
    }

    /// The block goes out as it was sent, and those that waited before it.
    fn pass(&mut self, read: &mut Read<'_, '_>) {
        for mut held in self.held.drain(..) {
            read.write(&mut held.block);
        }
        let numbered = self.ordinal != self.parser.payloads();
        self.hand.pass(numbered);
        self.go_out(read);
    }

    fn go_out(&mut self, read: &mut Read<'_, '_>) {
        read.write(&mut self.block);
        read.pass();
        self.last_out = true;
    }

    fn leave_out(&mut self, read: &mut Read<'_, '_>) {
        self.block.clear();
        read.begin_block();
    }

    /// From here on what the encoder writes goes out.
    fn render(&mut self, read: &mut Read<'_, '_>) -> Step {
        self.repaired = true;
        self.hand.write_pieces();
        if self.ended && !self.hand.rendering && self.hand.job.writer.bytes.is_empty() {
            return Ok(()); // behind the end that passed: there is nothing to go on with
        }
        self.hand.rendering = true;
        for mut held in self.held.drain(..) {
            read.write(&mut held.scratch);
        }
        self.flush(read)
    }

    fn flush(&mut self, read: &mut Read<'_, '_>) -> Step {
        self.hand.write_pieces();
        read.write(&mut self.hand.job.writer.bytes);
        self.hand.tell()
    }

    // The end

    /// The answer is over, whole or as far as it came.
    fn finish(&mut self) {
        if self.ended || self.hand.encoder.is_none() {
            return;
        }
        self.ended = true;
        let completeness = self.parser.standing();
        let reported = self.hand.reported.take();
        let mut trouble = reported.clone();
        if trouble.is_none() && completeness == Completeness::Assumed {
            if !self.hand.has_reason() {
                // Everything is closed, but nothing says that this is all: a reader must not take it for it.
                let (offset, ordinal) = self.hand.place;
                let fault = Fault::truncated(Where::BetweenEvents, Vec::new());
                self.error = Some(fault.at(offset, ordinal));
                trouble = Some(Trouble::named(Class::Truncated.name()));
            } else if !UNMARKED.contains(&self.hand.job.source) {
                self.hand.touched = true; // the end is missing
            }
        }
        self.hand.touched |= trouble.is_some() && reported.is_none();
        self.write_end(trouble);
    }

    fn write_end(&mut self, trouble: Option<Trouble>) {
        let cut = self.parser.standing() == Completeness::Truncated;
        let cut = cut.then(|| Trouble::named(Class::Truncated.name()));
        self.hand.end(trouble.or(cut));
    }

    /// What went wrong ends the answer; as sent, where the upstream itself said so.
    fn failed(&mut self, read: &mut Read<'_, '_>, fault: Fault) {
        self.over = true;
        let is_upstream = fault.class == Class::Upstream;
        let trouble = Trouble::of(&fault);
        self.hand.place = (fault.byte_offset, fault.event_ordinal);
        self.error = Some(fault);
        if is_upstream && self.hand.encoder.is_none() {
            return self.pass(read); // an error before anything else: no dialect to say it in but its own
        }
        if self.hand.encoder.is_none() || self.ended {
            return;
        }
        self.ended = true;
        self.hand.doomed();
        let as_sent = !(self.hand.touched || self.hand.rendering);
        if as_sent && is_upstream {
            self.pass(read);
            self.over = false;
            let source = self.hand.job.source;
            self.behind_error = Some(Box::new(BehindError::new(source)));
            return self.begin_block(read);
        }
        if as_sent && self.parser.has_ended() {
            return self.pass(read); // the wire itself has said that it breaks off (AI SDK: `abort`)
        }
        if !self.hand.job.broken {
            let reported = self.hand.reported.take().filter(|_| is_upstream);
            self.write_end(Some(reported.unwrap_or(trouble)));
        }
        // Nothing is raised any more.
        _ = self.render(read);
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

impl Hand {
    /// Says the losses of what was written. Where they are faults, the first is all that is said.
    fn tell(&mut self) -> Step {
        while let Some(id) = self.job.losses.next() {
            if self.raises {
                while self.job.losses.next().is_some() {}
                let (offset, ordinal) = self.place;
                let arrival = Arrival {
                    event: &self.event_name,
                    data: &self.payload,
                    offset,
                    ordinal,
                    stray: false,
                };
                return Err(arrival.place(Fault::of_code(Code::NOT_CARRIED, id)));
            }
            self.lost.add(id, self.place);
        }
        Ok(())
    }
}
