//! Decodes Anthropic Messages streams, and complete `type: message` bodies, into wire deltas.
//!
//! Handles the events of a stream in order. The module `message` decodes the message itself; `blocks` and `block`
//! decode its content blocks. The assembler determines which call a fragment belongs to.

pub(crate) mod block;
pub(crate) mod blocks;
pub(crate) mod call_delta;
pub(crate) mod fields;
pub(crate) mod message;
pub(crate) mod payload_kind;
pub(crate) mod plain_delta;
pub(crate) mod unknown_block;

use crate::dialect::anomalies::Anomalies;
use crate::dialect::anomalies::Pointer;
use crate::dialect::anomalies::report_duplicate_keys;
use crate::dialect::anomalies::report_wide_integer;
use crate::dialect::anthropic::block::Block;
use crate::dialect::anthropic::blocks::Blocks;
use crate::dialect::anthropic::fields::FACTS;
use crate::dialect::anthropic::fields::check;
use crate::dialect::anthropic::fields::extra_fields;
use crate::dialect::anthropic::fields::is_read;
use crate::dialect::anthropic::fields::type_of;
use crate::dialect::anthropic::fields::unknown_members;
pub(crate) use crate::dialect::anthropic::payload_kind::SHAPES;
use crate::dialect::anthropic::payload_kind::is_tail;
use crate::dialect::anthropic::payload_kind::reports_error;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::Incoming;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::decode_context::Payload;
use crate::dialect::decode_context::unknown;
use crate::dialect::decoder::Decoder;
use crate::dialect::upstream_error::UpstreamErrorFields;
use crate::dialect::upstream_error::is_blank_error;
use crate::dialect::upstream_error::is_notice;
use crate::dialect::upstream_error::is_stated;
use crate::fastpath::items::ItemTemplates;
use crate::json::Kind;
use crate::json::Text;
use crate::json::duplicate_keys::may_repeat;
use crate::json::duplicate_keys::may_repeat_in;
use crate::json::extra_fields::ExtraFields;
use crate::json::members::Document;
use crate::json::members::Member;
use crate::json::members::Object;
use crate::model::config::Config;
use crate::model::fault::Fault;
use crate::model::spec::Code;
use crate::model::unmodelled::MembersOf;
use crate::model::unmodelled::Unmodelled;
use crate::sse::WholeEvents;

/// Decodes the payloads of one stream, which always has exactly one choice.
#[derive(Debug)]
pub(crate) struct Anthropic {
    blocks: Blocks,
    id: Option<String>,
    started: bool,
    /// True if a block was streamed. If blocks were streamed, a complete message only repeats those blocks.
    streamed: bool,
    /// True once the finish reason has been emitted.
    reason: bool,
    /// The stop reason in `message_start`, if any. The reason is used if no later event contains a stop reason.
    reported_at_start: Option<String>,
    ended: bool,
    templates: ItemTemplates,
}

impl Anthropic {
    pub(crate) fn new(config: &Config) -> Anthropic {
        Anthropic {
            blocks: Blocks::new(config),
            id: None,
            started: false,
            streamed: false,
            reason: false,
            reported_at_start: None,
            ended: false,
            templates: ItemTemplates::default(),
        }
    }

    /// Decodes an event or a complete message. `delta`: the member `delta` of the event, already parsed.
    fn object<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        object: &Object<'a>,
        delta: Option<&Object<'a>>,
        payload: Payload<'a>,
    ) -> ParseResult {
        if object.wide_integer {
            wire.out.diagnose(Code::NUMERIC_OVERFLOW, None, "")?;
        }
        let certain =
            !may_repeat(&object.members) && object.nested().is_none_or(|nested| !nested.may_repeat);
        if !certain && may_repeat_in(payload.text) {
            report_duplicate_keys(wire, payload.text, &[], is_read)?;
        }
        let mut notes = Anomalies::default();
        let sent = type_of(&object.members);
        let kind = match payload.event {
            // The event name replaces a missing type, unless the name is `message`, the default for an event without a
            // name.
            Some(name) if sent.is_empty() && name != "message" && FACTS.is_event(name) => name,
            _ => sent.as_ref(),
        };
        let error = object.present("error");
        let has_error = error.filter(|raw| !is_blank_error(*raw)).is_some();
        if kind == "error"
            || payload.event == Some("error")
            || (!FACTS.is_event(kind) && error.is_some_and(is_stated))
            || (!(FACTS.is_event(kind) || payload.event.is_some_and(is_notice))
                && (has_error || reports_error(object)))
        {
            if payload.event != Some("error") {
                // Clients raise an exception only if the name of the event is `error`.
                let is_good = sent == "error" && error.is_some_and(|raw| raw.kind == Kind::Object);
                name(wire, "error", is_good);
            }
            let upstream_error = match error {
                Some(error) => UpstreamErrorFields::of_value(error),
                None => UpstreamErrorFields::of_members(&object.members, object.raw),
            };
            self.flush(wire)?;
            return notes.report_error(wire, &upstream_error, payload);
        }
        let is_typed = !sent.is_empty();
        if let Some(wanted) = FACTS.needs_name(kind, payload.event.filter(|_| is_typed)) {
            name(wire, wanted, is_typed);
        }
        if !payload.tail || is_tail(kind) {
            self.event(wire, kind, object, delta, payload, &mut notes)?;
        }
        notes.report(wire)
    }

    fn event<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        kind: &str,
        object: &Object<'a>,
        delta: Option<&Object<'a>>,
        payload: Payload<'a>,
        notes: &mut Anomalies<'a>,
    ) -> ParseResult {
        let extra = |object: &Object<'a>| extra_fields(&object.members, &FACTS.event_fields);
        match kind {
            "content_block_delta" => {
                check(wire, kind, &object.members);
                let Some(delta) = delta else {
                    let at = Pointer::ROOT.member("delta");
                    let Some(raw) = object.get("delta") else {
                        return Ok(());
                    };
                    notes.unless_null(raw, at);
                    if payload.tail || raw.kind != Kind::String {
                        return Ok(());
                    }
                    self.begin(wire)?;
                    let index = self.blocks.index(wire, object)?;
                    return self.blocks.bare_delta(wire, raw, index);
                };
                self.begin(wire)?;
                let block = Block {
                    object: delta,
                    at: Pointer::ROOT.member("delta"),
                    event: payload.event,
                    extra: extra(object),
                };
                let index = self.blocks.index(wire, object)?;
                if self
                    .blocks
                    .delta(wire, &block, index, payload.tail, notes)?
                {
                    return Ok(());
                }
                unknown(wire, payload)
            }
            "content_block_start" => {
                let inner = notes.opened(object, &object.members, Pointer::ROOT, "content_block");
                let Some(inner) = inner else {
                    wire.out.mark_misread("not_opened"); // clients expect a block at this index
                    return Ok(());
                };
                self.begin(wire)?;
                self.streamed = true;
                let block = Block {
                    object: &inner,
                    at: Pointer::ROOT.member("content_block"),
                    event: payload.event,
                    extra: extra(object),
                };
                let index = self.blocks.index(wire, object)?;
                self.templates.forget();
                self.blocks.start(wire, &block, index, notes)
            }
            "content_block_stop" => {
                let index = self.blocks.index(wire, object)?;
                self.templates.forget(); // the templates belong to the block that ends here
                self.blocks.stop(wire, index, &extra(object))
            }
            "message_delta" => self.message_delta(wire, object, notes),
            "message_start" => {
                check(wire, kind, &object.members);
                self.message_start(wire, object, payload, notes)
            }
            "message_stop" => {
                self.begin(wire)?;
                self.end_blocks(wire)?;
                keep_members(wire, MembersOf::Stop, &object.members, &FACTS.event_fields);
                leave(wire, &extra(object))?;
                notes.report(wire)?;
                self.done(wire)
            }
            "message" => self.whole_message(wire, object, payload, notes),
            "ping" => Ok(()),
            _ => other_event(wire, payload),
        }
    }

    /// Starts the message if there was no `message_start`, so that even a message without output is closed.
    #[inline]
    fn begin(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        if self.started {
            return Ok(());
        }
        wire.out.miss_opening(); // without `message_start`, clients have no message or raise
        self.start(wire, &ExtraFields::default(), None, None)
    }

    fn start(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        extra: &ExtraFields<'_>,
        id: Option<&str>,
        model: Option<&str>,
    ) -> ParseResult {
        self.started = true;
        self.id = id.map(str::to_owned);
        let DecodeContext { assembler, out } = wire;
        assembler.started(out, id, model, None, extra.text().as_deref())?;
        assembler.text(out, 0, Text::default(), None)
    }

    fn done(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        self.blocks.finish(wire)?;
        if let Some(reason) = self.reported_at_start.take().filter(|_| !self.reason) {
            wire.out.mark_misread("reason_at_start"); // clients take the stop reason from `message_delta`
            let DecodeContext { assembler, out } = &mut *wire;
            assembler.finish(out, 0, &reason)?;
        }
        wire.assembler.done(wire.out)?;
        self.ended = true;
        Ok(())
    }
}

impl Decoder for Anthropic {
    fn decode(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        document: &Document<'_>,
        payload: Payload<'_>,
    ) -> ParseResult {
        match document {
            Document::Object(object) => {
                if self.decode_plain(wire, object, payload)? {
                    return Ok(());
                }
                let delta = object.get("delta").and_then(|raw| object.open(raw));
                self.object(wire, object, delta.as_deref(), payload)
            }
            Document::Other(raw) if payload.event == Some("error") => {
                report_wide_integer(wire, *raw)?;
                self.flush(wire)?;
                Anomalies::default().report_error(
                    wire,
                    &UpstreamErrorFields::of_value(*raw),
                    payload,
                )
            }
            Document::Other(_) => other_event(wire, payload),
        }
    }

    #[inline]
    fn match_template(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        incoming: Incoming<'_>,
    ) -> Result<usize, Fault> {
        if !self.blocks.is_plain() {
            return Ok(0);
        }
        let Some(found) = self.templates.find(incoming) else {
            return Ok(0);
        };
        wire.out.advance_offset(found.before);
        self.templates.append_match(wire, &found)?;
        Ok(found.length)
    }

    fn row(&mut self, wire: &mut DecodeContext<'_, '_>, lines: &[u8], most: usize) -> WholeEvents {
        if !self.blocks.is_plain() {
            return WholeEvents::default();
        }
        self.templates.row(wire, lines, most, None, |_, _| {})
    }

    /// Handles the `[DONE]` that some gateways send. The marker ends the message only after a stop reason.
    fn marker(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        if self.reason || self.reported_at_start.is_some() {
            wire.out.mark_misread("done_marker"); // clients wait for `message_stop`
            return self.done(wire);
        }
        Ok(())
    }

    fn text(&mut self, wire: &mut DecodeContext<'_, '_>, payload: Payload<'_>) -> ParseResult {
        self.flush(wire)?;
        Anomalies::default().report_error(
            wire,
            &UpstreamErrorFields::of_text(payload.text),
            payload,
        )
    }

    fn flush(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        self.blocks.finish(wire)?;
        if !self.reason && !self.blocks.ends_with_answer() {
            // The latest block is not an answer, so the provider was still running a tool. The response is therefore
            // truncated, even if the policy accepts a missing terminal marker.
            wire.assembler.cut();
        }
        Ok(())
    }

    fn ended(&self) -> bool {
        self.ended
    }
}

/// Renames an event to the name by which clients recognize it. If the event's data does not have the form that clients
/// expect, marks the event for rewriting instead.
#[cold]
fn name(wire: &mut DecodeContext<'_, '_>, name: &'static str, is_good: bool) {
    if is_good {
        wire.out.rename(name);
    } else {
        wire.out.mark_misread("event_name");
    }
}

/// Emits a payload of an unknown type, which repair passes through.
fn other_event(wire: &mut DecodeContext<'_, '_>, payload: Payload<'_>) -> ParseResult {
    wire.out.keep(Unmodelled::OtherEvent {
        event: payload.event,
        payload: payload.text,
    });
    unknown(wire, payload)
}

/// Records the unknown members of one object for the repair stage.
fn keep_members(
    wire: &mut DecodeContext<'_, '_>,
    of: MembersOf,
    holder: &[Member<'_>],
    modelled: &[&str],
) {
    if wire.out.wants_wire_facts() {
        let members = &unknown_members(holder, modelled);
        wire.out.keep(Unmodelled::Members { of, members });
    }
}

/// Emits metadata that no other event contains. The assembler attaches the metadata to the last event of the choice.
fn leave(wire: &mut DecodeContext<'_, '_>, extra: &ExtraFields<'_>) -> ParseResult {
    match extra.text() {
        Some(metadata) => wire.assembler.choice_metadata(wire.out, 0, &metadata),
        None => Ok(()),
    }
}
