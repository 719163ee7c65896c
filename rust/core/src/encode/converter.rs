//! A stream in one dialect as a stream in another: a parser, and an encoder as the sink of its events.
//!
//! Whatever goes wrong upstream becomes the target's own ending, at once, and is kept as `error`. Knows no dialect's wire.

use crate::dialect::Dialect;
use crate::encode::common::carrier;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::encode_context::Options;
use crate::encode::common::encoder::Encoder;
use crate::encode::common::finish::EndingError;
use crate::encode::encoder;
use crate::model::config::Config;
use crate::model::delta::Completeness;
use crate::model::delta::InputEnd;
use crate::model::event::Event;
use crate::model::event::Sink;
use crate::model::fault::Class;
use crate::model::fault::Fault;
use crate::model::limits::LimitName;
use crate::model::limits::as_len;
use crate::model::loss_log::LossLog;
use crate::model::output::Diagnostic;
use crate::model::spec::Code;
use crate::pipeline::array_body::WINDOW;
use crate::pipeline::parser::Parser;
use crate::pipeline::parser::up_to;
use std::mem;
use std::sync::Arc;

/// Why a conversion is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The source speaks the target's dialect already.
    SameDialect,
    /// The target cannot be written.
    NoEncoder,
}

/// Converts one stream.
#[derive(Debug)]
pub struct Converter {
    parser: Parser,
    flow: EncoderSink,
    over: bool,
    error: Option<Fault>,
    max_diagnostics: usize,
    /// How many bytes may come before the dialect is known: a caller may have to keep them.
    most: usize,
}

/// The encoder as a sink.
#[derive(Debug)]
struct EncoderSink {
    target: Dialect,
    /// The source turned out to speak the target's dialect.
    same: bool,
    encoder: Box<dyn Encoder>,
    job: EncodeContext,
    /// Where the payload at hand stands.
    place: (u64, u64),
    lost: LossLog,
    /// A loss is a fault, as the policy has it.
    raises: bool,
    /// Why nothing more is taken: such a loss, or what went out cannot be mended. Until the parser was told.
    refusal: Option<Fault>,
    stopped: bool,
    /// The upstream's error, where a policy let it pass.
    complaint: Option<EndingError>,
    /// How many carriers of a call's signature were written, each as a part of its own.
    carriers: u32,
}

/// The targets that have no member for what other providers sign or encrypt.
const CARRYING: [&str; 4] = ["chat", "responses", "anthropic", "gemini"];

impl Sink for EncoderSink {
    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Diagnostic { .. } => self.lost.said += 1,
            _ if self.stopped || self.same => {}
            Event::UpstreamError {
                code,
                kind,
                message,
                ..
            } => self.complaint = Some(EndingError::upstream(*code, *kind, message)),
            event => {
                let other = self.job.as_written(event);
                let event = other.as_ref().unwrap_or(event);
                if !self.job.carries() || !self.carried(event) {
                    self.encoder.event(&mut self.job, event);
                }
                self.tell();
                if self.job.broken {
                    self.stop(|| Fault::new(Class::Lifecycle, "lifecycle"));
                }
            }
        }
    }

    fn refusal(&mut self) -> Option<Fault> {
        self.refusal.take()
    }

    fn at(&mut self, offset: u64, ordinal: u64) {
        self.place = (offset, ordinal);
    }

    fn doomed(&mut self) {
        self.raises = false;
    }

    fn cut(&mut self) {
        self.job.cut = true;
    }

    fn speaks(&mut self, dialect: &'static str) {
        self.job.source = dialect;
        self.same = dialect == self.target.name();
    }
}

impl EncoderSink {
    /// Writes an event that holds what only its provider can use, with a carrier of that in its place. False, and nothing
    /// was done, if it holds none, or the target has a member of its own for it.
    fn carried(&mut self, event: &Event<'_>) -> bool {
        let target = self.target.name();
        if !CARRYING.contains(&target) {
            return false;
        }
        let encrypts =
            |text: &str| target == "responses" || (target == "anthropic" && text.is_empty());
        if let Event::ReasoningDone {
            part,
            text,
            kind,
            item_id,
            choice,
            ..
        } = *event
        {
            let Some(carrier) = carrier::of_reasoning(self.job.source, event) else {
                return false;
            };
            let encrypts = encrypts(text);
            let event = Event::ReasoningDone {
                part,
                text,
                kind: if text.is_empty() { "summary" } else { kind },
                item_id,
                signature: Some(carrier.as_str()).filter(|_| !encrypts),
                encrypted_content: Some(carrier.as_str()).filter(|_| encrypts),
                choice,
                metadata: None,
            };
            self.encoder.event(&mut self.job, &event);
            return true;
        }
        let Event::ToolCall {
            choice, metadata, ..
        } = *event
        else {
            return false;
        };
        let Some((carrier, alone)) = carrier::of_call(self.job.source, event) else {
            return false;
        };
        self.carriers += 1;
        let part = u32::MAX - self.carriers;
        let encrypts = encrypts("");
        for event in [
            Event::ReasoningStarted {
                part,
                kind: "summary",
                item_id: None,
                choice,
                metadata: None,
            },
            Event::ReasoningDone {
                part,
                text: "",
                kind: "summary",
                item_id: None,
                signature: Some(carrier.as_str()).filter(|_| !encrypts),
                encrypted_content: Some(carrier.as_str()).filter(|_| encrypts),
                choice,
                metadata: None,
            },
        ] {
            self.encoder.event(&mut self.job, &event);
        }
        let mut call = *event;
        if let Event::ToolCall { metadata: kept, .. } = &mut call {
            *kept = metadata.filter(|_| !alone);
        }
        self.encoder.event(&mut self.job, &call);
        true
    }

    /// Says the losses that were noted. Where they are faults, the first is all that is said.
    #[inline]
    fn tell(&mut self) {
        while let Some(id) = self.job.losses.next() {
            if !self.raises {
                self.lost.add(Code::NOT_CARRIED, id, self.place);
            } else {
                self.stop(|| Fault::of_code(Code::NOT_CARRIED, id));
            }
        }
    }

    /// For the first reason that there is.
    fn stop(&mut self, why: impl FnOnce() -> Fault) {
        if !mem::replace(&mut self.stopped, true) {
            self.refusal = Some(why());
        }
    }
}

impl Converter {
    /// `source`: `None` finds it out.
    pub fn new(
        source: Option<Dialect>,
        target: Dialect,
        config: impl Into<Arc<Config>>,
        options: Options,
    ) -> Result<Converter, Refusal> {
        if source == Some(target) {
            return Err(Refusal::SameDialect);
        }
        let config = config.into();
        let mut job = EncodeContext::new(options, &config.known_call_ids);
        job.source = source.map_or("", Dialect::name);
        let flow = EncoderSink {
            target,
            same: false,
            encoder: encoder(target.name()).ok_or(Refusal::NoEncoder)?,
            job,
            place: (0, 0),
            lost: LossLog::default(),
            raises: config.policy.raises(Code::NOT_CARRIED),
            refusal: None,
            stopped: false,
            complaint: None,
            carriers: 0,
        };
        Ok(Converter {
            max_diagnostics: as_len(config.limits.max_diagnostics),
            most: as_len(config.limits.max_event_bytes),
            parser: Parser::new(source, config),
            flow,
            over: false,
            error: None,
        })
    }

    /// Takes the next bytes; appends those of the target. Nothing once the ending was written.
    pub fn feed(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
        if self.over {
            return Ok(());
        }
        mem::swap(&mut self.flow.job.writer.bytes, out);
        let result = self.take(input);
        let taken = if result.is_err() || self.flow.same {
            self.end(result)
        } else {
            Ok(())
        };
        mem::swap(&mut self.flow.job.writer.bytes, out);
        taken
    }

    fn take(&mut self, input: &[u8]) -> Result<(), Fault> {
        if self.parser.dialect().is_some() {
            return self.parser.feed(input, &mut self.flow);
        }
        let total = usize::try_from(self.parser.total()).unwrap_or(usize::MAX);
        let room = self.most.saturating_sub(total);
        let (fits, beyond) = input.split_at_checked(room).unwrap_or((input, &[]));
        self.parser.feed(fits, &mut self.flow)?;
        if beyond.is_empty() || self.flow.same {
            return Ok(());
        }
        if self.parser.dialect().is_none() {
            return Err(self.too_much());
        }
        self.parser.feed(beyond, &mut self.flow)
    }

    fn too_much(&self) -> Fault {
        let limit = Fault::limit(LimitName::max_event_bytes, self.most as u64);
        limit.at(0, self.parser.payloads())
    }

    /// Ends a source of which more came than may be kept before the dialect is known: appends the ending. `unread` is what
    /// comes next; it completes no payload, and is not copied.
    pub fn overflow(&mut self, unread: &[&[u8]], out: &mut Vec<u8>) -> Result<(), Refusal> {
        if self.over {
            return Ok(());
        }
        mem::swap(&mut self.flow.job.writer.bytes, out);
        let result = self.refuse(unread);
        let taken = self.end(result);
        mem::swap(&mut self.flow.job.writer.bytes, out);
        taken
    }

    /// The fault of bytes that are too many, or the one before it.
    fn refuse(&mut self, unread: &[&[u8]]) -> Result<(), Fault> {
        let total = usize::try_from(self.parser.total()).unwrap_or(usize::MAX);
        let mut rest: Vec<_> = up_to(unread, self.most.saturating_sub(total)).collect();
        if let Some(first) = rest.first_mut() {
            // With so much it is known whether the body is an array.
            let (head, tail) = first.split_at_checked(WINDOW).unwrap_or((first, &[]));
            *first = tail;
            self.parser.feed(head, &mut self.flow)?;
        }
        self.parser.probe(&rest)?;
        Err(self.too_much())
    }

    /// The input has ended: appends the last bytes, an honest ending where it was cut.
    pub fn close(&mut self, input: InputEnd, out: &mut Vec<u8>) -> Result<(), Refusal> {
        if self.over {
            return Ok(());
        }
        mem::swap(&mut self.flow.job.writer.bytes, out);
        let result = self.parser.close(input, &mut self.flow);
        let taken = self.end(result);
        mem::swap(&mut self.flow.job.writer.bytes, out);
        taken
    }

    /// A cap was passed that only the caller can measure: appends the ending.
    pub fn exceed(&mut self, name: LimitName, out: &mut Vec<u8>) -> Result<(), Refusal> {
        if self.over {
            return Ok(());
        }
        mem::swap(&mut self.flow.job.writer.bytes, out);
        let result = self.parser.exceed(name);
        let taken = self.end(result);
        mem::swap(&mut self.flow.job.writer.bytes, out);
        taken
    }

    /// Writes the ending, unless the encoder did.
    fn end(&mut self, result: Result<(), Fault>) -> Result<(), Refusal> {
        self.over = true;
        self.error = result.err();
        let flow = &mut self.flow;
        if flow.same {
            return Err(Refusal::SameDialect);
        }
        if flow.job.broken {
            return Ok(());
        }
        if let Some(fault) = &self.error {
            flow.place = (fault.byte_offset, fault.event_ordinal);
        }
        let cut = || {
            let cut = self.parser.completeness() == Completeness::Truncated;
            cut.then(|| EndingError::named(Class::Truncated.name()))
        };
        self.parser.assumed_ends(flow);
        let trouble = self.error.as_ref().map(EndingError::of);
        let trouble = trouble.or_else(|| flow.complaint.take()).or_else(cut);
        flow.encoder.end(&mut flow.job, trouble);
        flow.raises = false;
        flow.tell();
        Ok(())
    }

    /// What went wrong upstream, if anything did; its ending is written.
    pub fn error(&self) -> Option<&Fault> {
        self.error.as_ref()
    }

    /// The dialect of the source, as soon as it is known.
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
        self.flow.lost.among(parsed, self.max_diagnostics)
    }

    /// How many diagnostics were not kept.
    pub fn diagnostics_dropped(&self) -> u64 {
        self.flow.lost.count() - self.diagnostics().len() as u64
    }

    /// A call broke half way: nothing is taken any more.
    pub fn give_up(&mut self) {
        self.over = true;
        self.parser.give_up();
    }
}
