//! The pipeline of one stream: bytes, frames, payloads, wire deltas, events.
//!
//! Holds what outlives a read and lends it to the stages (`payload_pipeline`, `end_of_stream`); keeps the cap of the whole
//! stream. After a fault or the end nothing is taken any more.

use crate::assemble::Assembler;
use crate::dialect::Dialect;
use crate::dialect::keep_alive_anywhere;
use crate::model::config::Config;
use crate::model::delta::Completeness;
use crate::model::delta::InputEnd;
use crate::model::event::Sink;
use crate::model::fault::Fault;
use crate::model::lazy_box::LazyBox;
use crate::model::limits::LimitName;
use crate::model::output::Diagnostic;
use crate::model::output::EventFilter;
use crate::model::output::Ledger;
use crate::model::output::Output;
use crate::model::policy::DuplicatePayload;
use crate::pipeline::array_body::ArrayBody;
use crate::pipeline::array_body::Body;
use crate::pipeline::frame_receiver::FrameReceiver;
use crate::pipeline::payload_pipeline::PayloadPipeline;
use crate::pipeline::text_calls::TextCalls;
use crate::pipeline::undetected::DialectWatch;
use crate::sse::Framer;
use crate::sse::WholeEvents;
use std::borrow::Cow;
use std::iter;
use std::mem;
use std::sync::Arc;

/// How much of a body is kept until its first payload.
const HEAD: usize = 512;

type Step = Result<(), Fault>;

/// Reads one stream.
#[derive(Debug)]
pub struct Parser {
    /// Shared by streams that were made with the same one.
    config: Arc<Config>,
    ledger: Ledger,
    framer: Framer,
    stage: PayloadPipeline,
    /// Where a policy asks for it.
    text_calls: Option<Box<TextCalls>>,
    /// `None`: the body is no array.
    array: Option<Box<ArrayBody>>,
    /// Bytes fed so far.
    total: u64,
    /// What begins there is not known as it stands.
    unknown: u64,
    over: bool,
}

impl Parser {
    /// `None` detects the dialect.
    pub fn new(dialect: Option<Dialect>, config: impl Into<Arc<Config>>) -> Parser {
        Parser::with_caching(dialect, config, true)
    }

    /// Without caching every payload is read in full; the result is the same.
    #[doc(hidden)]
    pub fn with_caching(
        dialect: Option<Dialect>,
        config: impl Into<Arc<Config>>,
        caching: bool,
    ) -> Parser {
        let config = config.into();
        let mut assembler = Assembler::new(&config);
        if let Some(dialect) = dialect {
            assembler.speak(dialect.name());
        }
        let drops = config.policy.switches.duplicate_payload == DuplicatePayload::Drop;
        Parser {
            framer: Framer::new(&config.limits, true),
            ledger: Ledger::default(),
            stage: PayloadPipeline {
                dialect,
                chat: None,
                other: dialect.and_then(|dialect| dialect.decoder(&config)),
                keep_alive: dialect.map_or_else(keep_alive_anywhere, Dialect::keep_alive),
                wrapped: dialect.map_or(&[], Dialect::wrapped_names),
                assembler,
                head: Vec::new(),
                seen: false,
                done: false,
                late: false,
                last: drops.then_some(None),
                caching,
                swift: false,
                waiting: LazyBox::default(),
                watch: dialect.map(|dialect| Box::new(DialectWatch::new(dialect))),
                undecided: None,
                lines: false,
                framed: false,
                array: false,
            },
            text_calls: TextCalls::new(&config).map(Box::new),
            array: Some(Box::new(ArrayBody::new())),
            total: 0,
            unknown: u64::MAX,
            config,
            over: false,
        }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, input: &[u8], sink: &mut dyn Sink) -> Step {
        if self.over {
            return Ok(());
        }
        let result = self.take(input, sink);
        self.over = result.is_err();
        if self.over {
            return self.release(sink).and(result);
        }
        result
    }

    /// Nothing more comes: text that is held leaves as it is.
    fn release(&mut self, sink: &mut dyn Sink) -> Step {
        let Some(stage) = &mut self.text_calls else {
            return Ok(());
        };
        let mut out = Output::new(&self.config, &mut self.ledger, sink);
        stage.end(&mut out);
        let told = out.tell_left_out();
        out.taken(told)
    }

    fn take(&mut self, input: &[u8], sink: &mut dyn Sink) -> Step {
        let Parser {
            config,
            ledger,
            framer,
            stage,
            text_calls,
            array,
            total,
            unknown,
            ..
        } = self;
        let limit = config.limits.max_stream_bytes;
        let room = limit.map_or(usize::MAX, |limit| {
            usize::try_from(limit.saturating_sub(*total)).unwrap_or(usize::MAX)
        });
        let taken = input.get(..room).unwrap_or(input);
        *total += taken.len() as u64;
        if !stage.seen && stage.head.len() < HEAD {
            let more = taken.get(..HEAD - stage.head.len()).unwrap_or(taken);
            stage.head.extend_from_slice(more);
        }
        let mut gate = FrameReceiver {
            stage,
            out: Output::new(config, ledger, sink).filtered(filter(text_calls)),
            unknown: *unknown,
        };
        match array {
            None => framer.feed(taken, &mut gate)?,
            Some(body) if body.body == Body::Array => gate.elements(body, taken)?,
            Some(body) => {
                if let Some(known) = body.decide(taken) {
                    if body.body == Body::Array {
                        gate.elements(body, &known)?;
                    } else {
                        *array = None;
                        framer.feed(&known, &mut gate)?;
                    }
                }
            }
        }
        match limit.filter(|_| taken.len() < input.len()) {
            Some(limit) => Err(self.too_long(limit)),
            None => Ok(()),
        }
    }

    /// Takes the whole events that an input begins with, where they are known as they stand: one, or several that are
    /// nothing but the next pieces of what is under way.
    pub(crate) fn whole(
        &mut self,
        input: &[u8],
        sink: &mut dyn Sink,
    ) -> Result<WholeEvents, Fault> {
        if self.over || self.array.is_some() || !self.stage.swift {
            return Ok(WholeEvents::default());
        }
        let room = self
            .config
            .limits
            .max_stream_bytes
            .map_or(usize::MAX, |limit| {
                usize::try_from(limit.saturating_sub(self.total)).unwrap_or(usize::MAX)
            });
        let mut gate = FrameReceiver {
            stage: &mut self.stage,
            out: Output::new(&self.config, &mut self.ledger, sink)
                .filtered(filter(&mut self.text_calls)),
            unknown: u64::MAX,
        };
        let input = input.get(..room).unwrap_or(input);
        let result = self.framer.take_whole(input, &mut gate);
        self.over = result.is_err();
        let taken = result?;
        if taken.events == 0 {
            self.unknown = self.framer.offset();
        }
        self.total += taken.bytes as u64;
        Ok(taken)
    }

    /// How many bytes were fed.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// What the body is.
    pub(crate) fn body(&self) -> Body {
        self.array.as_ref().map_or(Body::Events, |array| array.body)
    }

    /// Whether the body may be an array, with these bytes, which come next.
    pub(crate) fn may_open_array(&self, next: &[u8]) -> bool {
        let array = self.array.as_ref();
        array.is_some_and(|array| array.may_open(next))
    }

    /// Returns the fault that these bytes are, which come next and complete no payload. None of them is kept.
    pub(crate) fn probe(&self, next: &[&[u8]]) -> Step {
        let limit = self.config.limits.max_stream_bytes;
        let room = limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.total));
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let taken = up_to(next, room);
        match &self.array {
            None => self.framer.probe(taken)?,
            Some(array) if array.body == Body::Array => {}
            Some(array) => self.framer.probe(iter::once(array.held()).chain(taken))?,
        }
        let size: usize = next.iter().map(|piece| piece.len()).sum();
        match limit.filter(|_| size > room) {
            Some(limit) => Err(self.too_long(limit)),
            None => Ok(()),
        }
    }

    /// How many of these bytes, which come next, belong to array elements that end in them.
    pub(crate) fn elements_in(&mut self, next: &[u8]) -> usize {
        self.array.as_mut().map_or(0, |array| array.ends_in(next))
    }

    /// Returns the fault that so many more bytes are. Nothing is taken any more after it.
    pub(crate) fn count(&mut self, more: usize) -> Step {
        let limit = self.config.limits.max_stream_bytes;
        match limit.filter(|limit| self.total + more as u64 > *limit) {
            Some(limit) => {
                self.over = true;
                Err(self.too_long(limit))
            }
            None => Ok(()),
        }
    }

    fn too_long(&self, limit: u64) -> Fault {
        Fault::limit(LimitName::max_stream_bytes, limit).at(limit, self.payloads())
    }

    /// The end of the input: says what is open, and whether all of it came.
    pub fn close(&mut self, input: InputEnd, sink: &mut dyn Sink) -> Step {
        if mem::replace(&mut self.over, true) {
            return Ok(());
        }
        let result = self.finish(input, sink);
        self.release(sink).and(result)
    }

    fn finish(&mut self, input: InputEnd, sink: &mut dyn Sink) -> Step {
        let Parser {
            config,
            ledger,
            framer,
            stage,
            text_calls,
            array,
            total,
            ..
        } = self;
        let mut gate = FrameReceiver {
            stage,
            out: Output::new(config, ledger, sink).filtered(filter(text_calls)),
            unknown: u64::MAX,
        };
        match array {
            Some(array) if array.body == Body::Array => {
                return gate.stage.close_array(&mut gate.out, array, *total, input);
            }
            // Too short to be anything else.
            Some(array) => framer.feed(&array.give_up(), &mut gate)?,
            None => {}
        }
        let FrameReceiver { stage, mut out, .. } = gate;
        stage.close(&mut out, &framer.finish(), input)
    }

    /// A cap was passed that only the caller can measure: the fault of it. Nothing is taken any more.
    pub fn exceed(&mut self, name: LimitName) -> Step {
        if mem::replace(&mut self.over, true) {
            return Ok(());
        }
        let limit = self.config.limits.value(name).unwrap_or_default();
        Err(Fault::limit(name, limit).at(self.total, self.payloads()))
    }

    /// A call broke half way: nothing is taken any more.
    pub fn give_up(&mut self) {
        self.over = true;
    }

    /// After a fault or `close` nothing is taken any more.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// The dialect, as soon as it is known.
    pub fn dialect(&self) -> Option<Dialect> {
        self.stage.dialect
    }

    /// Something was taken that no event has shown yet: payloads that tell no dialect, a call under way.
    pub(crate) fn owes(&self) -> bool {
        let untold = self.stage.dialect.is_none() && self.payloads() > 0;
        let holds = self.text_calls.as_ref().is_some_and(|stage| stage.holds());
        self.stage.undecided.is_some() || untold || holds || self.stage.assembler.owes()
    }

    /// How many payloads were dispatched.
    pub(crate) fn payloads(&self) -> u64 {
        let elements = self.array.as_ref().map_or(0, |array| array.ordinal);
        self.framer.ordinal() + elements
    }

    /// The dialect's own end was read, whatever the answer came to.
    pub(crate) fn has_ended(&self) -> bool {
        self.stage.done
    }

    /// How far the answer came, also before the end.
    pub(crate) fn standing(&self) -> Completeness {
        self.stage.assembler.completeness()
    }

    /// The diagnostics that were kept.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        self.ledger.diagnostics()
    }

    /// How many diagnostics were not kept.
    pub fn diagnostics_dropped(&self) -> u64 {
        self.ledger.dropped()
    }

    /// How far the answer can be trusted to be all of it; open until the end or a fault.
    pub fn completeness(&self) -> Completeness {
        match self.stage.assembler.completeness() {
            _ if !self.over => Completeness::Open,
            Completeness::Open => Completeness::Truncated,
            known => known,
        }
    }

    /// The ends of choices without a reason, where a policy reads a stream without an end as ended: no event tells them.
    pub(crate) fn assumed_ends(&self, sink: &mut dyn Sink) {
        self.stage.assembler.assumed_ends(sink);
    }

    /// The argument text of a call of the wire as far as deltas showed it; `None` if there is no such call.
    pub fn shown_arguments(&self, part: u32) -> Option<Cow<'_, str>> {
        self.stage.assembler.shown_arguments(part)
    }

    /// The close events that rebuild the answer, with what is open as far as it came.
    pub fn snapshot(&self, sink: &mut dyn Sink) {
        match &self.text_calls {
            None => self.stage.assembler.snapshot(sink),
            Some(stage) => self.stage.assembler.snapshot(&mut stage.shown(sink)),
        }
    }
}

/// The first bytes of these pieces.
pub(crate) fn up_to<'b>(pieces: &[&'b [u8]], mut room: usize) -> impl Iterator<Item = &'b [u8]> {
    pieces.iter().map(move |piece| {
        let taken = piece.get(..room).unwrap_or(piece);
        room -= taken.len();
        taken
    })
}

/// The stage as a filter.
fn filter(stage: &mut Option<Box<TextCalls>>) -> Option<&mut dyn EventFilter> {
    stage
        .as_deref_mut()
        .map(|stage| stage as &mut dyn EventFilter)
}
