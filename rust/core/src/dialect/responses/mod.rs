//! Decodes OpenAI Responses and OpenResponses streams, and complete `response` bodies, into wire deltas.
//!
//! Events are dispatched by their type. `_spec/dialects.json` contains most event and member names.

pub(crate) mod audio;
pub(crate) mod calls;
pub(crate) mod content;
pub(crate) mod content_index;
pub(crate) mod duplicate_keys;
pub(crate) mod edits;
pub(crate) mod item_content;
pub(crate) mod items;
pub(crate) mod name_sets;
pub(crate) mod payload_kind;
pub(crate) mod read;
pub(crate) mod readers;
pub(crate) mod response;
pub(crate) mod sequence;
pub(crate) mod spec_tables;
pub(crate) mod text;

use crate::dialect::anomalies::Anomalies;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::Incoming;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::decode_context::Payload;
use crate::dialect::decoder::Decoder;
use crate::dialect::payload::HeldPayload;
use crate::dialect::responses::audio::Audio;
use crate::dialect::responses::content_index::Purpose;
use crate::dialect::responses::duplicate_keys::ValueKind;
use crate::dialect::responses::duplicate_keys::report_duplicates;
use crate::dialect::responses::items::Items;
use crate::dialect::responses::name_sets::Slots;
use crate::dialect::responses::name_sets::is_empty_array;
pub(crate) use crate::dialect::responses::payload_kind::SHAPES;
use crate::dialect::responses::payload_kind::find_error;
use crate::dialect::responses::payload_kind::is_whole;
use crate::dialect::responses::read::Reader;
use crate::dialect::responses::readers::Readers;
use crate::dialect::responses::sequence::Sequence;
use crate::dialect::responses::sequence::number;
use crate::dialect::responses::spec_tables::FACTS;
use crate::dialect::responses::spec_tables::Kind as EventKind;
use crate::dialect::responses::spec_tables::OFFICIAL_KEEP_ALIVE;
use crate::dialect::responses::text::Texts;
use crate::dialect::upstream_error::UpstreamErrorFields;
use crate::dialect::upstream_error::is_blank_error;
use crate::dialect::upstream_error::is_truthy_blank;
use crate::fastpath::items::ItemTemplates;
use crate::fastpath::items::template::LearnableDelta;
use crate::fastpath::items::template::Target;
use crate::fastpath::items::template::Varying;
use crate::fastpath::items::template::is_small;
use crate::fastpath::text_mark::mark;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::Scanner;
use crate::json::duplicate_keys::may_repeat;
use crate::json::members::Document;
use crate::json::members::Member;
use crate::json::members::Object;
use crate::json::members::first_item;
use crate::json::members::string;
use crate::model::config::Config;
use crate::model::event::WireFact;
use crate::model::fault::Fault;
use crate::model::spec::Code;
use crate::model::unmodelled::Unmodelled;
use crate::sse::WholeEvents;

/// Decodes the payloads of one stream. The choice is always 0, because a response has only one choice.
#[derive(Debug)]
pub(crate) struct Responses {
    items: Items,
    audio: Audio,
    sequence: Sequence,
    /// True once the response's start event has been emitted.
    start_reported: bool,
    /// True if the policy treats a new response id as a restart.
    restarts: bool,
    /// Hash of the most recent response id.
    id: Option<u64>,
    /// Type name and kind of the previous event. The type name and the kind are cached, because consecutive events
    /// usually have the same type.
    last: Option<(&'static str, &'static EventKind)>,
    /// A failure event without an error, held until the next event.
    failure: Option<Box<HeldPayload>>,
    ended: bool,
    templates: ItemTemplates,
    readers: Readers,
}

impl Responses {
    pub(crate) fn new(config: &Config) -> Responses {
        Responses {
            items: Items::default(),
            audio: Audio::default(),
            sequence: Sequence::default(),
            start_reported: false,
            restarts: config.policy.switches.restart_on_new_stream_id,
            id: None,
            last: None,
            failure: None,
            ended: false,
            templates: ItemTemplates::default(),
            readers: Readers::default(),
        }
    }

    /// Returns the kind of an event with this type name, or `None` if the type is unknown.
    #[inline]
    fn kind(&mut self, name: &str) -> Option<EventKind> {
        if let Some((last, kind)) = &self.last
            && *last == name
        {
            return Some(**kind);
        }
        let (name, kind) = FACTS.kinds.get_key_value(name)?;
        self.last = Some((*name, kind));
        Some(*kind)
    }

    fn object(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        event: &Object<'_>,
        payload: Payload<'_>,
    ) -> ParseResult {
        let fields = &FACTS.fields;
        let misread_before = wire.out.misread_count();
        let slots = Slots::of(&FACTS.event_fields, &event.members);
        let sent = slots.get(fields.kind).and_then(string);
        let sent = sent.filter(|kind| !kind.is_empty());
        let name = sent.as_deref().or(payload.event).unwrap_or_default();
        let kind = self.kind(name);
        if matches!(kind, Some(EventKind::KeepAlive)) {
            if name != OFFICIAL_KEEP_ALIVE {
                wire.out.leave_out("keep_alive");
            }
            return Ok(());
        }
        if !payload.tail {
            let number = number(slots.get(fields.sequence_number));
            let mark = || {
                let varying = varying(event, &slots);
                let marked = varying.and_then(|varying| varying.mark(payload.text));
                marked.unwrap_or_else(|| mark(payload.text.as_bytes()))
            };
            if self.sequence.is_replayed(wire.out, number, mark)? {
                return Ok(());
            }
        }
        if self.failure.is_some() {
            let upstream_error = find_error(event, &slots, name, kind, payload);
            return self.after_failure(wire, upstream_error, payload);
        }
        let step = kind.filter(|kind| kind.is_part_of_response());
        if step.is_none() && is_whole(event) {
            return self.body(wire, event, payload);
        }
        if event.wide_integer {
            wire.out.diagnose(Code::NUMERIC_OVERFLOW, None, "")?;
        }
        if slots.repeated || event.nested().is_some_and(|nested| nested.may_repeat) {
            report_duplicates(wire.out, &event.members, ValueKind::Event)?;
        }
        if let Some(upstream_error) = find_error(event, &slots, name, kind, payload) {
            let is_end = matches!(kind, Some(EventKind::Terminal(_)));
            if is_end && !payload.tail && slots.present(fields.response).is_none() {
                let DecodeContext { assembler, out } = wire;
                let (assembler, out) = (&mut **assembler, &mut **out);
                let around = DecodeContext { assembler, out };
                self.before_error(event, Reader::new(around, event, &slots))?;
            }
            return self.report_error(wire, &upstream_error, payload);
        }
        if slots.get(fields.error).is_some_and(is_truthy_blank) {
            wire.out.mark_misread("empty_error");
        }
        if name.starts_with("response.") && !payload.tail && wire.out.wants_wire_facts() {
            self.readers.event(wire.out, name, event, payload.text);
        }
        let reports = !payload.tail && wire.out.wants_wire_facts();
        let is_reported = reports && step.is_some_and(|step| !step.is_written(name));
        if is_reported {
            report_event(wire, payload);
        }
        let mut reader = Reader::new(
            DecodeContext {
                assembler: &mut *wire.assembler,
                out: &mut *wire.out,
            },
            event,
            &slots,
        );
        let known = match step {
            Some(EventKind::Terminal(status)) => return self.end(event, reader, status, payload),
            Some(EventKind::TextDelta(facts)) if payload.tail => {
                Texts::recovered(&mut reader, facts)?;
                true
            }
            Some(_) if payload.tail => true,
            Some(step) => self.step(event, &mut reader, step)?,
            None => false,
        };
        let quiet = reader.notes.is_empty();
        reader.report()?;
        if is_reported && known {
            wire.out.keep(Unmodelled::ItemEnd);
        }
        let is_misread = wire.out.wants_wire_facts() && wire.out.misread_count() != misread_before;
        // If clients misread an event, they may store a different item at the index for which a template was learned.
        if self.items.texts.take_renamed() || is_misread {
            self.templates.forget();
        }
        if known {
            let learns = quiet && !payload.tail && !(is_misread || is_reported);
            if let Some(step) = step.filter(|step| step.is_delta() && learns) {
                self.learn(wire, event, &slots, step, payload)?;
            }
            return Ok(());
        }
        if !is_reported && sent.is_none() && !name.starts_with("response.") {
            // No client can read an event without a type: openai-node and the AI SDK raise an exception.
            wire.out.leave_out("no_event_type");
            return unknown(wire, None, payload);
        }
        let is_kept = matches!(step, Some(EventKind::ItemAdded | EventKind::Part { .. }));
        if reports && !(is_reported || is_kept) {
            report_event(wire, payload);
        }
        unknown(wire, sent.as_deref(), payload)?;
        if reports {
            wire.out.keep(Unmodelled::ItemEnd);
        }
        Ok(())
    }

    /// Learns a template from a delta that contains only text or arguments, ids, and small indexes.
    fn learn(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        event: &Object<'_>,
        slots: &Slots<'_>,
        step: EventKind,
        payload: Payload<'_>,
    ) -> ParseResult {
        if !self.templates.should_learn() {
            return Ok(());
        }
        let fields = &FACTS.fields;
        let is_empty = |field| slots.present(field).is_none_or(|raw| raw.text == "\"\"");
        let (text_kind, position, tool) = match step {
            EventKind::TextDelta(facts) if is_empty(facts.member) => return Ok(()),
            EventKind::TextDelta(facts) => (Some(facts.text_kind), Some(facts.position), None),
            EventKind::ArgumentDelta(Some(tool)) => (None, None, Some(tool)),
            EventKind::ArgumentDelta(None) if slots.get(fields.name).is_none() => {
                (None, None, None)
            }
            _ => return Ok(()),
        };
        let Some(varying) = varying(event, slots) else {
            return Ok(());
        };
        let number = slots.get(fields.sequence_number);
        let max = wire.out.config.limits.max_tool_index;
        let within = |raw: Raw<'_>| {
            let number = raw.text.parse().unwrap_or(u64::MAX);
            is_small(raw) && max.is_none_or(|max| number <= max)
        };
        let index = slots.present(fields.output_index);
        let sub = position.and_then(|position| slots.present(position));
        let plain =
            index.is_none_or(within) && sub.is_none_or(is_small) && number.is_none_or(is_small);
        let flat = |member: &Member<'_>| match member.raw.kind {
            Kind::Object => false,
            Kind::Array => is_empty_array(member.raw),
            _ => true,
        };
        if !plain || slots.others || may_repeat(&event.members) || !event.members.iter().all(flat) {
            return Ok(());
        }
        let around = DecodeContext {
            assembler: &mut *wire.assembler,
            out: &mut *wire.out,
        };
        let mut reader = Reader::new(around, event, slots);
        let mut item_address = reader.item_address(position)?;
        if let Some(text_kind) = text_kind {
            let sent = item_address.sub;
            item_address = self.items.texts.with_position(
                item_address,
                &mut reader.wire,
                text_kind,
                Purpose::Delta,
            );
            if item_address.sub != sent {
                return Ok(()); // repair rewrites the index, so no template may match
            }
        }
        let address = item_address.address();
        let learnable = LearnableDelta {
            target: match text_kind {
                Some(text_kind) => Target::Part(text_kind.at(address)),
                None => Target::Call(address, tool),
            },
            varying,
        };
        self.templates.learn(payload.event, payload.text, learnable);
        Ok(())
    }

    /// Decodes one event of a response. Returns false if the event concerns an item or part of unknown type, and must
    /// be emitted as unknown.
    #[inline]
    fn step<'a>(
        &mut self,
        event: &Object<'a>,
        reader: &mut Reader<'_, '_, 'a>,
        kind: EventKind,
    ) -> Result<bool, Fault> {
        match kind {
            EventKind::TextDelta(facts) => self.items.texts.delta(event, reader, facts)?,
            EventKind::ArgumentDelta(tool) => calls::delta(event, reader, tool)?,
            EventKind::TextValue(facts) => self.items.texts.value(event, reader, facts)?,
            EventKind::ArgumentValue(member) => calls::value(event, reader, member)?,
            EventKind::ItemAdded => return self.items.added(event, reader),
            EventKind::ItemDone => self.items.done(event, reader)?,
            EventKind::Part { summary, closes } => {
                return self.items.texts.part(event, reader, summary, closes);
            }
            EventKind::Annotation => self.items.texts.annotation(event, reader)?,
            EventKind::Opening => self.opening(event, reader)?,
            EventKind::Progress => return calls::progress(event, reader),
            EventKind::AudioDelta(member) => {
                return self.audio.delta(&mut reader.wire, event, member);
            }
            EventKind::ResultDelta => return self.items.result_delta(event, reader),
            EventKind::KeepAlive
            | EventKind::Error
            | EventKind::Contentless
            | EventKind::Terminal(_) => {}
        }
        Ok(true)
    }

    fn other(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        raw: Raw<'_>,
        payload: Payload<'_>,
    ) -> ParseResult {
        let mut scanner = Scanner::new(payload.text, None);
        if scanner.skip().is_ok() && scanner.wide_integer() {
            wire.out.diagnose(Code::NUMERIC_OVERFLOW, None, "")?;
        }
        // Some gateways send an error object in an array.
        let lone = first_item(raw).and_then(Object::of);
        let lone = lone.and_then(|object| object.get("error"));
        let lone = lone.filter(|raw| !is_blank_error(*raw));
        let named = payload.event.is_some_and(|name| FACTS.is_error(name));
        let error = lone.or_else(|| named.then_some(raw));
        if self.failure.is_some() {
            let upstream_error = error.map(UpstreamErrorFields::of_value);
            return self.after_failure(wire, upstream_error, payload);
        }
        match error {
            Some(error) => self.report_error(wire, &UpstreamErrorFields::of_value(error), payload),
            None => {
                wire.out.leave_out("no_event_type");
                unknown(wire, None, payload)
            }
        }
    }

    fn report_error(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        upstream_error: &UpstreamErrorFields<'_>,
        payload: Payload<'_>,
    ) -> ParseResult {
        self.ended = true;
        Anomalies::default().report_error(wire, upstream_error, payload)
    }
}

/// Returns the values of a delta that may be different in the next event of the same type. Returns `None` if `delta` is
/// not a string.
fn varying<'a>(event: &Object<'a>, slots: &Slots<'a>) -> Option<Varying<'a>> {
    let fields = &FACTS.fields;
    let text = |raw: &Raw<'_>| raw.kind == Kind::String;
    Some(Varying {
        text: slots.get(fields.delta).filter(text)?,
        padding: event.get("obfuscation").filter(text),
        number: slots
            .get(fields.sequence_number)
            .filter(|raw| is_small(*raw)),
        object: None,
        blanks: false,
    })
}

/// Reports an event that the encoder does not write itself to the repair stage.
fn report_event(wire: &mut DecodeContext<'_, '_>, payload: Payload<'_>) {
    wire.out.keep(Unmodelled::ItemEvent {
        event: payload.event,
        payload: payload.text,
    });
}

/// Emits the payload as unknown content, under the type or name of its event.
fn unknown(
    wire: &mut DecodeContext<'_, '_>,
    name: Option<&str>,
    payload: Payload<'_>,
) -> ParseResult {
    let name = name.or(payload.event).filter(|name| *name != "message");
    let raw = payload.text.as_bytes();
    wire.assembler.unknown(wire.out, name, raw)
}

impl Decoder for Responses {
    fn decode(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        document: &Document<'_>,
        payload: Payload<'_>,
    ) -> ParseResult {
        match document {
            Document::Object(event) => self.object(wire, event, payload),
            Document::Other(raw) => self.other(wire, *raw, payload),
        }
    }

    #[inline]
    fn match_template(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        incoming: Incoming<'_>,
    ) -> Result<usize, Fault> {
        if self.items.texts.waiting() || self.failure.is_some() {
            return Ok(0);
        }
        let Some(found) = self.templates.find(incoming) else {
            return Ok(0);
        };
        wire.out.advance_offset(found.before);
        let number = found.number.map(i128::from);
        let mark = || found.mark();
        if !self.sequence.is_replayed(wire.out, number, mark)? {
            self.templates.append_match(wire, &found)?;
        }
        Ok(found.length)
    }

    fn row(&mut self, wire: &mut DecodeContext<'_, '_>, lines: &[u8], most: usize) -> WholeEvents {
        if self.items.texts.waiting() || self.failure.is_some() {
            return WholeEvents::default();
        }
        let (templates, sequence) = (&mut self.templates, &mut self.sequence);
        let taken = templates.row(wire, lines, most, sequence.next(), |number, marks| {
            sequence.go_on(number, marks);
        });
        if let Some(next) = sequence.next().filter(|_| taken.events > 0) {
            wire.out
                .record_fact(WireFact::Sequence(i128::from(next) - 1));
        }
        taken
    }

    /// Ignores `[DONE]`, because the OpenResponses specification sends it after the terminal event. Clients stop
    /// reading at `[DONE]`, so repair drops a `[DONE]` that comes before the terminal event.
    fn marker(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        wire.out.leave_out("done_marker");
        self.report_failure(wire)
    }

    fn text(&mut self, wire: &mut DecodeContext<'_, '_>, payload: Payload<'_>) -> ParseResult {
        let upstream_error = UpstreamErrorFields::of_text(payload.text);
        self.after_failure(wire, Some(upstream_error), payload)
    }

    /// Marks the stream as truncated if its last item cannot end a response, such as a call that the provider runs. The
    /// stream is truncated even if the policy accepts a missing terminal marker.
    fn flush(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        self.report_failure(wire)?;
        self.audio.leave(wire)?;
        if !self.ended && !self.items.ends_with_answer {
            wire.assembler.cut();
        }
        Ok(())
    }

    fn ended(&self) -> bool {
        self.ended
    }
}
