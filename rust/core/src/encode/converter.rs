//! Converts a stream from one dialect to another by sending a parser's events to an encoder.
//!
//! An error is written immediately in the target's own form, and is also available as `error`.

use crate::dialect::Dialect;
use crate::encode::common::carrier;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::encode_context::Options;
use crate::encode::common::encoder::Encoder;
use crate::encode::common::finish::EndingError;
use crate::encode::common::held_calls::HeldCalls;
use crate::encode::common::held_calls::HoldDecision;
use crate::encode::common::held_calls::holds;
use crate::encode::common::tool_ids::ToolIds;
use crate::encode::common::tool_ids::with_call_id;
use crate::encode::encoder;
use crate::encode::transcript;
use crate::encode::transcript::Transcripts;
use crate::model::config::Config;
use crate::model::delta::Completeness;
use crate::model::delta::InputEnd;
use crate::model::event::Event;
use crate::model::event::Sink;
use crate::model::event::WireFact;
use crate::model::fault::Class;
use crate::model::fault::Fault;
use crate::model::limits::LimitName;
use crate::model::limits::as_len;
use crate::model::loss_log::LossLog;
use crate::model::output::Diagnostic;
use crate::model::small_map::Map;
use crate::model::small_map::Set;
use crate::model::spec::Code;
use crate::pipeline::array_body::WINDOW;
use crate::pipeline::parser::Parser;
use crate::pipeline::parser::up_to;
use std::mem;
use std::sync::Arc;

/// The reason why a conversion is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Source and target have the same dialect.
    SameDialect,
    /// There is no encoder for the target.
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
    /// Maximum number of bytes to read before the dialect is detected. The number is limited because these bytes may
    /// have to be stored.
    most: usize,
    /// Input that was stored because the dialect is unknown. All of it is stored in one buffer, so that an unfinished
    /// event can be parsed in place at the end.
    stored: Vec<u8>,
    /// Number of stored bytes that were parsed.
    parsed: usize,
}

/// Receives the parser's events and passes them to the encoder.
#[derive(Debug)]
struct EncoderSink {
    target: Dialect,
    /// True if the detected dialect of the source is also the target's dialect.
    same: bool,
    encoder: Box<dyn Encoder>,
    /// The held calls, or `None` if servers of the source's dialect run only calls that are marked as run by the
    /// provider. Before the dialect is detected, nothing is held.
    held: Option<HeldCalls>,
    context: EncodeContext,
    /// Byte offset and ordinal of the current payload.
    position: (u64, u64),
    lost: LossLog,
    /// True if the policy raises an exception for conversion losses.
    raises: bool,
    /// Error that ends the conversion, because the policy raises an exception for a loss or the upstream contradicted
    /// what was already written. The error is stored until the parser raises it.
    refusal: Option<Fault>,
    stopped: bool,
    /// The upstream's error, if the policy continues after it.
    upstream_error: Option<EndingError>,
    /// Number of carriers written for signatures of text parts and calls. Each carrier is a separate part.
    carriers: u32,
    /// The renamed calls, or `None` if the converter keeps ids that the target's API rejects.
    tool_ids: Option<ToolIds>,
    transcripts: Transcripts,
    /// Part numbers of the tool results that have arrived only in pieces, which are not written.
    partial_results: Set<u32>,
    /// For each choice, the number of characters in its text so far. Characters are counted only if carriers are
    /// written.
    text_ends: Map<i32, i64>,
}

/// Targets that have no member for content that another provider signed or encrypted.
const CARRYING: [&str; 4] = ["chat", "responses", "anthropic", "gemini"];

impl Sink for EncoderSink {
    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Diagnostic { .. } => self.lost.parser_count += 1,
            _ if self.stopped || self.same => {}
            // The result that follows contains the whole output.
            Event::ToolResultDelta { part, .. } => _ = self.partial_results.insert(*part),
            Event::UpstreamError {
                code,
                kind,
                message,
                ..
            } => self.upstream_error = Some(EndingError::upstream(*code, *kind, message)),
            event => self.take(event),
        }
    }

    fn refusal(&mut self) -> Option<Fault> {
        self.refusal.take()
    }

    fn at(&mut self, offset: u64, ordinal: u64) {
        self.position = (offset, ordinal);
    }

    fn faulted(&mut self) {
        self.raises = false;
    }

    fn cut(&mut self) {
        self.context.cut = true;
    }

    fn record_fact(&mut self, fact: WireFact<'_>) {
        if let WireFact::RequestTools(tools) = fact
            && let Some(held) = &mut self.held
        {
            held.add_client_tools(tools);
        }
    }

    fn dialect_detected(&mut self, dialect: &'static str) {
        self.context.source = dialect;
        self.same = dialect == self.target.name();
        self.held = self.held.take().filter(|_| holds(dialect));
    }
}

impl EncoderSink {
    /// Writes an event, or holds it.
    fn take(&mut self, event: &Event<'_>) {
        if let Event::ToolResult { part, .. } = event {
            self.partial_results.remove(part);
        }
        match self.held.as_mut().map(|held| held.take(event)) {
            None | Some(HoldDecision::Write) => self.write(event),
            Some(HoldDecision::Wait) => {}
            Some(HoldDecision::Release) => self.release(),
            Some(HoldDecision::ReleaseFirst) => {
                self.release();
                self.write(event);
            }
        }
    }

    /// Adapts an event to the target, passes it to the encoder, and reports the losses.
    fn write(&mut self, event: &Event<'_>) {
        if self.stopped {
            return;
        }
        if self.context.source == "chat"
            && let Some((choice, text)) = self.transcripts.take(event)
        {
            for event in transcript::events(&text, choice) {
                self.write(&event);
            }
        }
        let held = self.held.as_ref();
        let executed = held.and_then(|held| held.as_executed(event));
        let event = executed.as_ref().unwrap_or(event);
        let target_id = match &mut self.tool_ids {
            Some(tool_ids) => tool_ids.target_id(event, &mut self.context.mint),
            None => None,
        };
        let renamed = target_id.as_deref().map(|id| with_call_id(event, id));
        let event = renamed.as_ref().unwrap_or(event);
        let other = self.context.as_written(event);
        let event = other.as_ref().unwrap_or(event);
        if !self.context.carries() || !self.carried(event) {
            self.encoder.event(&mut self.context, event);
        }
        self.report_losses();
        if self.context.broken {
            self.stop(|| Fault::new(Class::Lifecycle, "lifecycle"));
        }
    }

    /// Writes the held events in order.
    fn release(&mut self) {
        let events = self.held.as_mut().map(HeldCalls::release);
        for held in events.unwrap_or_default() {
            held.each(|event| self.write(event));
        }
    }

    /// Writes an event with a carrier in place of the data that only its provider can use. Returns false, and writes
    /// nothing, if the event has no such data or the target has a member for such data.
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
            let Some(carrier) = carrier::of_reasoning(self.context.source, event) else {
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
            self.encoder.event(&mut self.context, &event);
            return true;
        }
        match *event {
            Event::TextDone {
                text,
                choice,
                metadata,
                ..
            } => {
                let start = self.text_ends.get(&choice).copied().unwrap_or(0);
                let end = start + i64::try_from(text.chars().count()).unwrap_or(i64::MAX - start);
                self.text_ends.insert(choice, end);
                let made = carrier::of_text(self.context.source, metadata, (start, end));
                let Some((carrier, alone)) = made else {
                    return false;
                };
                let mut bare = *event;
                if let Event::TextDone { metadata: kept, .. } = &mut bare {
                    *kept = metadata.filter(|_| !alone);
                }
                self.encoder.event(&mut self.context, &bare);
                self.write_carrier(choice, &carrier, encrypts(""));
                true
            }
            Event::ToolCall {
                choice, metadata, ..
            } => {
                let Some((carrier, alone)) = carrier::of_call(self.context.source, event) else {
                    return false;
                };
                self.write_carrier(choice, &carrier, encrypts(""));
                let mut bare = *event;
                if let Event::ToolCall { metadata: kept, .. } = &mut bare {
                    *kept = metadata.filter(|_| !alone);
                }
                self.encoder.event(&mut self.context, &bare);
                true
            }
            _ => false,
        }
    }

    /// Writes a reasoning part that consists only of a carrier.
    fn write_carrier(&mut self, choice: i32, carrier: &str, encrypts: bool) {
        self.carriers += 1;
        let part = u32::MAX - self.carriers;
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
                signature: Some(carrier).filter(|_| !encrypts),
                encrypted_content: Some(carrier).filter(|_| encrypts),
                choice,
                metadata: None,
            },
        ] {
            self.encoder.event(&mut self.context, &event);
        }
    }

    /// Reports the recorded losses. If the policy raises an exception for losses, only the first loss is reported.
    #[inline]
    fn report_losses(&mut self) {
        while let Some(id) = self.context.losses.next() {
            if !self.raises {
                self.lost.add(Code::NOT_CARRIED, id, self.position);
            } else {
                self.stop(|| Fault::of_code(Code::NOT_CARRIED, id));
            }
        }
    }

    /// Stops the conversion with an error. Only the first error is kept.
    fn stop(&mut self, why: impl FnOnce() -> Fault) {
        if !mem::replace(&mut self.stopped, true) {
            self.refusal = Some(why());
        }
    }
}

impl Converter {
    /// Creates a converter. If `source` is `None`, the dialect is detected.
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
        let tool_ids = options.tool_id_form.map(ToolIds::new);
        let mut context = EncodeContext::new(options, &config.known_call_ids);
        context.source = source.map_or("", Dialect::name);
        context.target = target.name();
        let flow = EncoderSink {
            target,
            same: false,
            encoder: encoder(target.name()).ok_or(Refusal::NoEncoder)?,
            held: source
                .is_none_or(|source| holds(source.name()))
                .then(|| HeldCalls::new(config.tools.as_deref())),
            context,
            position: (0, 0),
            lost: LossLog::default(),
            raises: config.policy.raises(Code::NOT_CARRIED),
            refusal: None,
            stopped: false,
            upstream_error: None,
            carriers: 0,
            tool_ids,
            transcripts: Transcripts::default(),
            partial_results: Set::default(),
            text_ends: Map::default(),
        };
        Ok(Converter {
            max_diagnostics: as_len(config.limits.max_diagnostics),
            most: as_len(config.limits.max_event_bytes),
            parser: Parser::new(source, config),
            flow,
            over: false,
            error: None,
            stored: Vec::new(),
            parsed: 0,
        })
    }

    /// Reads the next bytes and appends the converted bytes. Appends nothing after the ending was written.
    pub fn feed(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
        if self.over {
            return Ok(());
        }
        mem::swap(&mut self.flow.context.writer.bytes, out);
        let result = self.take(input);
        let taken = if result.is_err() || self.flow.same {
            self.end(result)
        } else {
            Ok(())
        };
        mem::swap(&mut self.flow.context.writer.bytes, out);
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

    /// Stores the next input, which does not complete a payload. The dialect must be unknown.
    pub fn store(&mut self, piece: &[u8]) {
        if !self.over {
            self.stored.extend_from_slice(piece);
        }
    }

    /// Parses the stored input that was not parsed yet, and `piece`, which completes a payload. The input stays stored
    /// as long as the dialect is unknown, because the source may be in the target dialect.
    pub fn feed_stored(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
        let mut stored = mem::take(&mut self.stored);
        let result = if self.parsed == stored.len() {
            let result = self.feed(piece, out);
            if self.keeps_stored() {
                stored.extend_from_slice(piece);
            }
            result
        } else {
            stored.extend_from_slice(piece);
            self.feed(stored.get(self.parsed..).unwrap_or_default(), out)
        };
        if self.keeps_stored() {
            self.parsed = stored.len();
            self.stored = stored;
        }
        result
    }

    /// Returns true if the source is, or may be, in the target dialect, so that the stored input is needed for repair.
    fn keeps_stored(&self) -> bool {
        self.flow.same || !(self.over || self.parser.dialect().is_some())
    }

    /// Returns the whole input, and removes it, after a call was refused because the source is in the target dialect.
    pub fn take_stored(&mut self) -> Vec<u8> {
        mem::take(&mut self.stored)
    }

    /// Ends the conversion and appends the ending, because too many bytes arrived before the dialect was detected.
    /// `piece` is the next input, which does not complete a payload and is not copied.
    pub fn overflow(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
        if self.over {
            return Ok(());
        }
        mem::swap(&mut self.flow.context.writer.bytes, out);
        let stored = mem::take(&mut self.stored);
        let result = self.refuse(&[stored.get(self.parsed..).unwrap_or_default(), piece]);
        let taken = self.end(result);
        mem::swap(&mut self.flow.context.writer.bytes, out);
        taken
    }

    /// Returns the error for too many bytes, or an error in the bytes that fit within the limit.
    fn refuse(&mut self, unread: &[&[u8]]) -> Result<(), Fault> {
        let total = usize::try_from(self.parser.total()).unwrap_or(usize::MAX);
        let mut rest: Vec<_> = up_to(unread, self.most.saturating_sub(total)).collect();
        let mut window = WINDOW; // this many bytes are enough to detect an array body
        for piece in &mut rest {
            let (head, tail) = piece.split_at_checked(window).unwrap_or((piece, &[]));
            window -= head.len();
            *piece = tail;
            self.parser.feed(head, &mut self.flow)?;
        }
        self.parser.probe(&rest)?;
        Err(self.too_much())
    }

    /// Ends the input and appends the last bytes, including the ending.
    pub fn close(&mut self, input: InputEnd, out: &mut Vec<u8>) -> Result<(), Refusal> {
        if self.over {
            return Ok(());
        }
        mem::swap(&mut self.flow.context.writer.bytes, out);
        let unread = self.stored.get(self.parsed..).unwrap_or_default();
        let result = self.parser.close_after(unread, input, &mut self.flow);
        let taken = self.end(result);
        mem::swap(&mut self.flow.context.writer.bytes, out);
        taken
    }

    /// Ends the conversion and appends the ending, because a limit that only the caller can measure was exceeded.
    pub fn exceed(&mut self, name: LimitName, out: &mut Vec<u8>) -> Result<(), Refusal> {
        if self.over {
            return Ok(());
        }
        mem::swap(&mut self.flow.context.writer.bytes, out);
        let unread = self.stored.get(self.parsed..).unwrap_or_default();
        let result = self.parser.exceed_after(unread, name, &mut self.flow);
        let taken = self.end(result);
        mem::swap(&mut self.flow.context.writer.bytes, out);
        taken
    }

    /// Writes the ending, unless the encoder has already written it.
    fn end(&mut self, result: Result<(), Fault>) -> Result<(), Refusal> {
        self.over = true;
        self.error = result.err();
        let flow = &mut self.flow;
        if flow.same {
            return Err(Refusal::SameDialect);
        }
        self.stored = Vec::new();
        if flow.context.broken {
            return Ok(());
        }
        if let Some(fault) = &self.error {
            flow.position = (fault.byte_offset, fault.event_ordinal);
        }
        flow.raises = false;
        flow.release();
        if flow.context.broken {
            let (offset, ordinal) = flow.position;
            let refusal = flow.refusal.take().map(|fault| fault.at(offset, ordinal));
            self.error = self.error.take().or(refusal);
            return Ok(());
        }
        let cut = || {
            let cut = self.parser.completeness() == Completeness::Truncated;
            cut.then(|| EndingError::named(Class::Truncated.name()))
        };
        self.parser.assumed_ends(flow);
        if !flow.partial_results.is_empty() {
            flow.context.losses.note("server_tool");
        }
        let ending_error = self.error.as_ref().map(EndingError::of);
        let ending_error = ending_error
            .or_else(|| flow.upstream_error.take())
            .or_else(cut);
        flow.encoder.end(&mut flow.context, ending_error);
        flow.report_losses();
        Ok(())
    }

    /// Returns the error that ended the conversion, if any. The ending that reports the error has already been written.
    pub fn error(&self) -> Option<&Fault> {
        self.error.as_ref()
    }

    /// Returns the target id and the source id of every renamed call, in order.
    pub fn tool_ids(&self) -> &[(String, String)] {
        self.flow.tool_ids.as_ref().map_or(&[], ToolIds::renamed)
    }

    /// Returns the dialect of the source once it is detected.
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

    /// Returns the parser's stored diagnostics, with the conversion losses inserted in order.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let parsed = self.parser.diagnostics();
        self.flow.lost.merged_with(parsed, self.max_diagnostics)
    }

    /// Returns the number of diagnostics that were not stored.
    pub fn diagnostics_dropped(&self) -> u64 {
        self.flow.lost.count() - self.diagnostics().len() as u64
    }

    /// Ignores all further input, because an earlier method call failed and may have left an inconsistent state.
    pub fn give_up(&mut self) {
        self.over = true;
        self.parser.give_up();
    }
}
