//! Parses the bytes of one stream into events: framing, payloads, wire deltas, assembly.
//!
//! Stores the state that is kept between reads, and passes it to the stages (`payload_pipeline`, `end_of_stream`).
//! Enforces the limit on the bytes of the stream. Input after a fault or after the end is ignored.

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
use crate::pipeline::array_body::UnfinishedElement;
use crate::pipeline::array_body::WINDOW;
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

type ParseResult = Result<(), Fault>;

/// Parser of one stream.
#[derive(Debug)]
pub struct Parser {
    /// Configuration, shared by all streams that were created with this `Arc`.
    config: Arc<Config>,
    ledger: Ledger,
    framer: Framer,
    stage: PayloadPipeline,
    /// The text-call filter, if the policy enables it.
    text_calls: Option<Box<TextCalls>>,
    /// Splitter of an array body. `None` once the body is known to be an event stream.
    array: Option<Box<ArrayBody>>,
    /// Bytes fed so far.
    total: u64,
    /// Offset of an event that is known to match no template, so that the event is not matched again.
    unknown: u64,
    over: bool,
}

impl Parser {
    /// Creates a parser. If `dialect` is `None`, the dialect is detected.
    pub fn new(dialect: Option<Dialect>, config: impl Into<Arc<Config>>) -> Parser {
        Parser::with_caching(dialect, config, true)
    }

    /// Creates a parser, with or without template caching. Caching does not affect the result.
    #[doc(hidden)]
    pub fn with_caching(
        dialect: Option<Dialect>,
        config: impl Into<Arc<Config>>,
        caching: bool,
    ) -> Parser {
        let config = config.into();
        let mut assembler = Assembler::new(&config);
        if let Some(dialect) = dialect {
            assembler.set_dialect(dialect.name());
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
                fast_path: false,
                waiting: LazyBox::default(),
                watch: dialect.map(|dialect| Box::new(DialectWatch::new(dialect))),
                undecided: None,
                last_message: None,
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

    /// Parses the next bytes, and passes the events to `sink`. After a fault, releases the text that was held.
    pub fn feed(&mut self, input: &[u8], sink: &mut dyn Sink) -> ParseResult {
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

    /// Ends the text-call filter, and releases the text that it holds.
    fn release(&mut self, sink: &mut dyn Sink) -> ParseResult {
        let Some(stage) = &mut self.text_calls else {
            return Ok(());
        };
        let mut out = Output::new(&self.config, &mut self.ledger, sink);
        stage.end(&mut out);
        let reported = out.report_left_out();
        out.taken(reported)
    }

    fn take(&mut self, input: &[u8], sink: &mut dyn Sink) -> ParseResult {
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
        stage.keep_head(taken);
        let mut receiver = FrameReceiver {
            stage,
            out: Output::new(config, ledger, sink).filtered(filter(text_calls)),
            unknown: *unknown,
        };
        let result = match array {
            None => framer.feed(taken, &mut receiver),
            Some(body) if body.body == Body::Array => {
                receiver.elements(body, taken, UnfinishedElement::Continues)
            }
            Some(body) => match body.decide(taken) {
                Some(known) if body.body == Body::Array => {
                    receiver.elements(body, &known, UnfinishedElement::Continues)
                }
                Some(known) => {
                    *array = None;
                    framer.feed(&known, &mut receiver)
                }
                None => Ok(()),
            },
        };
        result.map_err(|fault| stage.explain_limit(&config.limits, fault, iter::empty()))?;
        match limit.filter(|_| taken.len() < input.len()) {
            Some(limit) => Err(self.too_long(limit)),
            None => Ok(()),
        }
    }

    /// Consumes complete events at the start of the input, without splitting the events into lines.
    ///
    /// The consumed events are either one event that matches a template, or several events that only continue the
    /// current text.
    pub(crate) fn take_whole_events(
        &mut self,
        input: &[u8],
        sink: &mut dyn Sink,
    ) -> Result<WholeEvents, Fault> {
        if self.over || self.array.is_some() || !self.stage.fast_path {
            return Ok(WholeEvents::default());
        }
        let room = self
            .config
            .limits
            .max_stream_bytes
            .map_or(usize::MAX, |limit| {
                usize::try_from(limit.saturating_sub(self.total)).unwrap_or(usize::MAX)
            });
        let mut receiver = FrameReceiver {
            stage: &mut self.stage,
            out: Output::new(&self.config, &mut self.ledger, sink)
                .filtered(filter(&mut self.text_calls)),
            unknown: u64::MAX,
        };
        let input = input.get(..room).unwrap_or(input);
        let result = self.framer.take_whole(input, &mut receiver);
        self.over = result.is_err();
        let taken = result?;
        if taken.events == 0 {
            self.unknown = self.framer.offset();
        }
        self.total += taken.bytes as u64;
        Ok(taken)
    }

    /// Returns the number of bytes fed.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the kind of body, as far as the first bytes show.
    pub(crate) fn body(&self) -> Body {
        self.array.as_ref().map_or(Body::Events, |array| array.body)
    }

    /// Returns true if the body may still be an array, given these next bytes. The bytes are not consumed.
    pub(crate) fn may_open_array(&self, next: &[u8]) -> bool {
        let array = self.array.as_ref();
        array.is_some_and(|array| array.may_open(next))
    }

    /// Returns the fault that these next bytes would cause, without consuming them. The bytes must not complete a
    /// payload.
    pub(crate) fn probe(&self, next: &[&[u8]]) -> ParseResult {
        let limit = self.config.limits.max_stream_bytes;
        let room = limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.total));
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let taken = up_to(next, room);
        let result = match &self.array {
            None => self.framer.probe(taken),
            Some(array) if array.body == Body::Array => Ok(()),
            Some(array) => self.framer.probe(iter::once(array.held()).chain(taken)),
        };
        result.map_err(|fault| {
            self.stage
                .explain_limit(&self.config.limits, fault, up_to(next, room))
        })?;
        let size: usize = next.iter().map(|piece| piece.len()).sum();
        match limit.filter(|_| size > room) {
            Some(limit) => Err(self.too_long(limit)),
            None => Ok(()),
        }
    }

    /// Returns the offset of the end of the last array element that ends in these bytes, or 0 if no element ends in
    /// them.
    pub(crate) fn elements_in(&mut self, next: &[u8]) -> usize {
        self.array.as_mut().map_or(0, |array| array.ends_in(next))
    }

    /// Returns a fault if `more` additional bytes exceed the stream limit. Input after the fault is ignored.
    pub(crate) fn count(&mut self, more: usize) -> ParseResult {
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

    /// Ends the input. Reports open calls and blocks, and whether the stream is complete.
    pub fn close(&mut self, input: InputEnd, sink: &mut dyn Sink) -> ParseResult {
        self.close_after(&[], input, sink)
    }

    /// Parses the last bytes of the input, and ends the input. Where possible, these bytes are parsed in place, because
    /// an unfinished event may be as long as the limit allows, and the caller still holds its bytes.
    pub(crate) fn close_after(
        &mut self,
        last: &[u8],
        input: InputEnd,
        sink: &mut dyn Sink,
    ) -> ParseResult {
        if mem::replace(&mut self.over, true) {
            return Ok(());
        }
        let result = self.finish(last, input, sink);
        self.release(sink).and(result)
    }

    fn finish(&mut self, last: &[u8], input: InputEnd, sink: &mut dyn Sink) -> ParseResult {
        let limit = self.config.limits.max_stream_bytes;
        if limit.is_some_and(|limit| self.total + last.len() as u64 > limit) {
            return self.take(last, sink); // returns a fault
        }
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
        *total += last.len() as u64;
        stage.keep_head(last);
        let mut receiver = FrameReceiver {
            stage,
            out: Output::new(config, ledger, sink).filtered(filter(text_calls)),
            unknown: u64::MAX,
        };
        let mut rest = Cow::Borrowed(last);
        if let Some(array) = array.as_deref_mut() {
            if array.body == Body::Undecided {
                rest = match array.decide(last) {
                    Some(known) => known,
                    // The body is too short to be anything except an event stream.
                    None => Cow::Owned(array.give_up()),
                };
            }
            if array.body == Body::Array {
                let result = receiver.elements(array, &rest, UnfinishedElement::IsCut);
                let FrameReceiver { stage, mut out, .. } = receiver;
                result
                    .map_err(|fault| stage.explain_limit(&config.limits, fault, iter::empty()))?;
                return stage.close_array(&mut out, array, *total, input);
            }
        }
        let result = framer.finish(&rest, &mut receiver);
        let FrameReceiver { stage, mut out, .. } = receiver;
        let pending =
            result.map_err(|fault| stage.explain_limit(&config.limits, fault, iter::empty()))?;
        stage.close(&mut out, &pending, input)
    }

    /// Parses the last bytes before a limit that only the caller can measure was exceeded, and returns the fault. The
    /// bytes must not complete a payload. They are not copied, except the first ones, which may open an array.
    pub(crate) fn exceed_after(
        &mut self,
        last: &[u8],
        name: LimitName,
        sink: &mut dyn Sink,
    ) -> ParseResult {
        if self.over {
            return Ok(());
        }
        let (head, rest) = last.split_at_checked(WINDOW).unwrap_or((last, &[]));
        self.feed(head, sink)?;
        if let Err(fault) = self.probe(&[rest]) {
            self.over = true;
            return self.release(sink).and(Err(fault));
        }
        self.total += rest.len() as u64;
        self.exceed(name)
    }

    /// Returns the fault for a limit that only the caller can measure. Later input is ignored.
    pub fn exceed(&mut self, name: LimitName) -> ParseResult {
        if mem::replace(&mut self.over, true) {
            return Ok(());
        }
        let limit = self.config.limits.value(name).unwrap_or_default();
        Err(Fault::limit(name, limit).at(self.total, self.payloads()))
    }

    /// Stops the parser because a call into the parser did not finish. Later input is ignored.
    pub fn give_up(&mut self) {
        self.over = true;
    }

    /// Returns true after a fault or `close`. Later input is ignored.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Returns the dialect, once detected.
    pub fn dialect(&self) -> Option<Dialect> {
        self.stage.dialect
    }

    /// Returns true if consumed input has not produced all of its events yet.
    ///
    /// True if the dialect is undetected, text is held back, or a call is in progress.
    pub(crate) fn has_pending(&self) -> bool {
        let is_undetected = self.stage.dialect.is_none() && self.payloads() > 0;
        let holds = self.text_calls.as_ref().is_some_and(|stage| stage.holds());
        self.stage.undecided.is_some()
            || is_undetected
            || holds
            || self.stage.assembler.has_pending()
    }

    /// Returns the number of payloads dispatched.
    pub(crate) fn payloads(&self) -> u64 {
        let elements = self.array.as_ref().map_or(0, |array| array.ordinal);
        self.framer.ordinal() + elements
    }

    /// Returns true if the dialect's terminal marker was read, even if the response is incomplete.
    pub(crate) fn has_ended(&self) -> bool {
        self.stage.done
    }

    /// Returns the completeness of the response so far.
    pub(crate) fn completeness_so_far(&self) -> Completeness {
        self.stage.assembler.completeness()
    }

    /// Returns the recorded diagnostics.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        self.ledger.diagnostics()
    }

    /// Returns the number of diagnostics dropped because of the limit.
    pub fn diagnostics_dropped(&self) -> u64 {
        self.ledger.dropped()
    }

    /// Returns the completeness of the response. The completeness is `open` until the terminal marker, the end of the
    /// input or a fault.
    pub fn completeness(&self) -> Completeness {
        match self.stage.assembler.completeness() {
            Completeness::Open if self.over => Completeness::Truncated,
            known => known,
        }
    }

    /// Emits the `Finished` events of choices without a finish reason, if the policy accepts a stream without an end as
    /// complete. The `Finished` events of choices without a finish reason are not emitted during parsing.
    pub(crate) fn assumed_ends(&self, sink: &mut dyn Sink) {
        self.stage.assembler.assumed_ends(sink);
    }

    /// Returns the arguments emitted so far for the call with part number `part`, or `None` if there is no such call.
    pub fn shown_arguments(&self, part: u32) -> Option<Cow<'_, str>> {
        self.stage.assembler.shown_arguments(part)
    }

    /// Emits events from which the response so far can be rebuilt. An open part is closed with the text received so
    /// far.
    pub fn snapshot(&self, sink: &mut dyn Sink) {
        match &self.text_calls {
            None => self.stage.assembler.snapshot(sink),
            Some(stage) => self.stage.assembler.snapshot(&mut stage.shown(sink)),
        }
    }

    /// Returns false if the snapshot cannot contain calls. This check takes far less time than the snapshot itself.
    pub fn may_show_calls(&self) -> bool {
        self.text_calls.is_some() || self.stage.assembler.may_show_calls()
    }
}

/// Yields the first `room` bytes of these pieces.
pub(crate) fn up_to<'b>(pieces: &[&'b [u8]], mut room: usize) -> impl Iterator<Item = &'b [u8]> {
    pieces.iter().map(move |piece| {
        let taken = piece.get(..room).unwrap_or(piece);
        room -= taken.len();
        taken
    })
}

/// Returns the text-call filter as a trait object.
fn filter(stage: &mut Option<Box<TextCalls>>) -> Option<&mut dyn EventFilter> {
    stage
        .as_deref_mut()
        .map(|stage| stage as &mut dyn EventFilter)
}
