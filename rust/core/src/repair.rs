//! One stream, bytes of one dialect to bytes of the same: what needs no repair passes as it is, the rest is rewritten.
//!
//! The parser judges every block (`block`), and the dialect's own encoder writes along into a scratch. As long as the
//! judgement is "as sent", the bytes go out and the scratch is thrown away; from the first block that is not, the scratch
//! goes out instead, to the end. Knows blocks, verdicts and the order of the output; no frame, no event's meaning.
//!
//! A block is held, with those behind it, while the parser owes something: a call that was announced may yet turn out to
//! be none. What the encoder needs of the wire to go on behind passed bytes stands in `encode::passed`.

mod hand;

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

/// No event of theirs says that an answer is over.
const UNMARKED: [&str; 1] = ["gemini"];

type Step = Result<(), Fault>;

/// Repairs one stream.
#[derive(Debug)]
pub struct Repairer {
    parser: Parser,
    hand: Hand,
    splitter: Splitter,
    /// The output that was not handed out yet.
    sent: Vec<u8>,
    /// The bytes of the block at hand.
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
            sent: Vec::new(),
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

    /// Takes the next bytes; appends those that may go out, repaired. After an ending of ours there are none.
    pub fn feed(&mut self, input: &[u8], out: &mut Vec<u8>) {
        mem::swap(&mut self.sent, out);
        let mut rest = input;
        while let Some((piece, place)) = self.splitter.next(&mut rest) {
            if !self.over {
                self.piece(piece, place);
            }
        }
        mem::swap(&mut self.sent, out);
    }

    /// The input has ended: appends the last bytes.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        mem::swap(&mut self.sent, out);
        if !self.over && self.behind_error.is_none() {
            let result = self.parser.close(&mut self.hand);
            if let Err(fault) = result.and_then(|()| self.last()) {
                self.failed(fault);
            }
        }
        self.over = true;
        mem::swap(&mut self.sent, out);
    }

    /// What the end of the input leaves.
    fn last(&mut self) -> Step {
        self.finish();
        if self.hand.rendering || self.hand.touched {
            return self.render();
        }
        if self.hand.emptied {
            self.repaired = true;
            self.block.clear();
        }
        self.pass();
        Ok(())
    }

    // Blocks

    fn piece(&mut self, piece: &[u8], place: Place) {
        if place == Place::Behind {
            return self.behind(piece);
        }
        self.block.extend_from_slice(piece);
        let ends = place == Place::End;
        if let Some(behind) = &mut self.behind_error {
            if behind.passes(piece, ends) {
                self.go_out();
            } else if ends {
                self.block.clear();
            }
            return;
        }
        let result = self.parser.feed(piece, &mut self.hand);
        if let Err(fault) = result.and_then(|()| self.taken(ends)) {
            self.failed(fault);
        }
    }

    fn taken(&mut self, ends: bool) -> Step {
        if ends {
            if self.parser.standing() == Completeness::Complete {
                self.finish();
            }
            self.judge()?;
            self.begin_block();
        } else if self.hand.touched && !self.hand.rendering {
            self.render()?;
        }
        Ok(())
    }

    /// The rest of the line end of the last block.
    fn behind(&mut self, piece: &[u8]) {
        if self.behind_error.is_none()
            && let Err(fault) = self.parser.feed(piece, &mut self.hand)
        {
            return self.failed(fault);
        }
        if let Some(last) = self.held.last_mut() {
            last.block.extend_from_slice(piece);
        } else if self.last_out {
            self.sent.extend_from_slice(piece);
        }
    }

    fn begin_block(&mut self) {
        self.block.clear();
        self.ordinal = self.parser.payloads();
        self.hand.begin_block();
    }

    /// The block is whole: as sent, to be left out, or the first to be written anew.
    fn judge(&mut self) -> Step {
        let hand = &self.hand;
        self.last_out = false;
        let says = hand.brought || hand.counts;
        if hand.touched || (hand.emptied && says && !self.ended) {
            return self.render();
        }
        if hand.emptied {
            self.repaired = true;
        } else if hand.rendering {
            if !self.passes_behind_repair() {
                return self.flush();
            }
            self.hand.forget();
            self.go_out();
        } else if self.parser.payloads() == self.ordinal && self.held.is_empty() {
            self.go_out(); // a comment, or blank lines: nothing waits for them
        } else if self.parser.owes() || self.hand.holds() {
            self.last_out = true;
            self.held.push(Held {
                block: mem::take(&mut self.block),
                scratch: mem::take(&mut self.hand.job.writer.bytes),
            });
        } else {
            self.pass();
        }
        Ok(())
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
    fn pass(&mut self) {
        for held in self.held.drain(..) {
            self.sent.extend_from_slice(&held.block);
        }
        let numbered = self.ordinal != self.parser.payloads();
        self.hand.pass(numbered);
        self.go_out();
    }

    fn go_out(&mut self) {
        self.sent.append(&mut self.block);
        self.last_out = true;
    }

    /// From here on what the encoder writes goes out.
    fn render(&mut self) -> Step {
        self.repaired = true;
        if self.ended && !self.hand.rendering && self.hand.job.writer.bytes.is_empty() {
            return Ok(()); // behind the end that passed: there is nothing to go on with
        }
        self.hand.rendering = true;
        for held in self.held.drain(..) {
            self.sent.extend_from_slice(&held.scratch);
        }
        self.flush()
    }

    fn flush(&mut self) -> Step {
        self.sent.append(&mut self.hand.job.writer.bytes);
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
    fn failed(&mut self, fault: Fault) {
        self.over = true;
        let is_upstream = fault.class == Class::Upstream;
        let trouble = Trouble::of(&fault);
        self.hand.place = (fault.byte_offset, fault.event_ordinal);
        self.error = Some(fault);
        if is_upstream && self.hand.encoder.is_none() {
            return self.pass(); // an error before anything else: no dialect to say it in but its own
        }
        if self.hand.encoder.is_none() || self.ended {
            return;
        }
        self.ended = true;
        self.hand.doomed();
        let as_sent = !(self.hand.touched || self.hand.rendering);
        if as_sent && is_upstream {
            self.pass();
            self.over = false;
            let source = self.hand.job.source;
            self.behind_error = Some(Box::new(BehindError::new(source)));
            return self.begin_block();
        }
        if as_sent && self.parser.has_ended() {
            return self.pass(); // the wire itself has said that it breaks off (AI SDK: `abort`)
        }
        if !self.hand.job.broken {
            let reported = self.hand.reported.take().filter(|_| is_upstream);
            self.write_end(Some(reported.unwrap_or(trouble)));
        }
        // Nothing is raised any more.
        _ = self.render();
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
