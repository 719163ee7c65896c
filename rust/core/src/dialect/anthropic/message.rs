//! Decodes the events that concern the whole message: `message_start`, `message_delta`, complete messages, the usage,
//! and the stop reason.

use crate::dialect::anomalies::Anomalies;
use crate::dialect::anomalies::Pointer;
use crate::dialect::anthropic::Anthropic;
use crate::dialect::anthropic::block::Block;
use crate::dialect::anthropic::blocks::StartBlock;
use crate::dialect::anthropic::fields::FACTS;
use crate::dialect::anthropic::fields::check;
use crate::dialect::anthropic::fields::extra_fields;
use crate::dialect::anthropic::fields::is_blank;
use crate::dialect::anthropic::keep_members;
use crate::dialect::anthropic::leave;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::decode_context::Payload;
use crate::json::Kind;
use crate::json::members::Member;
use crate::json::members::Object;
use crate::json::members::find;
use crate::json::members::items;
use crate::json::members::present;
use crate::json::members::string;
use crate::model::fault::Fault;
use crate::model::spec::Code;
use crate::model::unmodelled::MembersOf;

impl Anthropic {
    /// Handles `message_start`. The first `message_start` starts the message, even if content arrived before it.
    ///
    /// A later `message_start` with another id restarts the response: the gateway has retried the request with another
    /// upstream, and the output of the first attempt is dropped (`stream_restarted`). Clients do not expect a restart:
    /// anthropic-python joins both attempts, and @anthropic-ai/sdk raises. Nothing is dropped if the first message
    /// already has a stop reason, if one of its calls is final and may already be running, or if the new id is missing
    /// or equal to the first id. The new blocks then belong to the first message (`message_repeated`), except blocks
    /// that repeat earlier blocks.
    pub(crate) fn message_start<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        event: &Object<'a>,
        payload: Payload<'a>,
        notes: &mut Anomalies<'a>,
    ) -> ParseResult {
        let message = notes.opened(event, &event.members, Pointer::ROOT, "message");
        let members = message.as_ref().map(|message| message.members.as_slice());
        let members = members.unwrap_or_default();
        let at = Pointer::ROOT.member("message");
        let id = notes.a_text(members, at, "id");
        let id = notes.clean(id);
        // Content arrived before this event. The event is treated as the start of the current message, because that
        // message has no id yet.
        let adopts = self.started && self.id.is_none() && !self.reason;
        if adopts {
            wire.out.mark_misread("late_start"); // clients start over at a `message_start`
            self.blocks.start_late();
        } else if self.started {
            let reported = wire.assembler.has_reported_call(0);
            if self.reason || id.is_empty() || self.id.as_deref() == Some(&id) || reported {
                // Do not restart: the message is repeated, or the client may already have executed calls of the earlier
                // message.
                wire.out.diagnose(Code::MESSAGE_REPEATED, None, &id)?;
                let model = find(members, "model").and_then(string);
                let sent = |word: &&str| !word.trim().is_empty();
                let (own_id, model) = (Some(&*id).filter(sent), model.as_deref().filter(sent));
                wire.assembler
                    .started(wire.out, own_id, model, None, None)?;
                if id.is_empty() || self.id.as_deref() != Some(&id) {
                    return Ok(());
                }
                self.blocks.open_index = None; // the block that was open is repeated
                self.templates.forget();
                return wire.assembler.message_repeated(wire.out, 0);
            }
            wire.assembler.restart(wire.out, 0)?;
            self.blocks.begin();
            self.id = Some(id.clone().into_owned());
        }
        check(wire, "message", members);
        let modelled = &FACTS.message_fields;
        keep(
            wire,
            MembersOf::Message,
            members,
            modelled,
            MembersOf::StartUsage,
        );
        let mut extra = extra_fields(&event.members, &FACTS.event_fields);
        extra.extend(&extra_fields(members, &FACTS.message_fields).members);
        if self.started && !adopts {
            leave(wire, &extra)?;
        } else {
            let model = notes.a_text(members, at, "model");
            let model = notes.clean(model);
            let [id, model] = [&id, &model].map(|word| Some(word.as_ref()));
            let sent = |word: Option<&'_ str>| word.is_some_and(|word| !word.is_empty());
            let (id, model) = (id.filter(|_| sent(id)), model.filter(|_| sent(model)));
            self.start(wire, &extra, id, model)?;
        }
        let reason = notes.a_text(members, at, "stop_reason");
        self.reported_at_start = match is_blank(&reason) {
            true => None,
            false => Some(notes.clean(reason).into_owned()),
        };
        let held = content(members, at, notes).into_iter();
        let held = held.map(|(_, block)| StartBlock {
            raw: block.raw.text.to_owned(),
            event: payload.event.map(str::to_owned),
        });
        let held: Vec<StartBlock> = held.collect();
        if !held.is_empty() {
            wire.out.mark_misread("content_at_start"); // clients would keep these and the streamed blocks
        }
        self.blocks.hold(held);
        usage(wire, event, members, at, notes, "start_usage")
    }

    /// Ends the block that is still open, and discards the fast-path templates of its deltas.
    pub(crate) fn end_blocks(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        self.templates.forget();
        self.blocks.end(wire)
    }

    pub(crate) fn message_delta<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        event: &Object<'a>,
        notes: &mut Anomalies<'a>,
    ) -> ParseResult {
        self.begin(wire)?;
        self.end_blocks(wire)?;
        check(wire, "message_delta", &event.members);
        let delta = notes.opened(event, &event.members, Pointer::ROOT, "delta");
        let at = Pointer::ROOT.member("delta");
        let mut extra = extra_fields(&event.members, &FACTS.event_fields);
        let modelled = &FACTS.event_fields;
        keep(
            wire,
            MembersOf::End,
            &event.members,
            modelled,
            MembersOf::EndUsage,
        );
        if let Some(delta) = &delta {
            let modelled = &FACTS.message_delta_fields;
            keep(
                wire,
                MembersOf::Delta,
                &delta.members,
                modelled,
                MembersOf::EndUsage,
            );
            extra.extend(&extra_fields(&delta.members, &FACTS.message_delta_fields).members);
            // Some gateways put the usage next to the `stop_reason`.
            usage(wire, event, &delta.members, at, notes, "")?;
            check(wire, "end", &delta.members);
        }
        leave(wire, &extra)?;
        usage(
            wire,
            event,
            &event.members,
            Pointer::ROOT,
            notes,
            "end_usage",
        )?;
        let usage = event.get("usage").and_then(|raw| event.open(raw));
        if !usage.is_some_and(|usage| usage.has("output_tokens")) {
            notes.mark_misread("no_usage"); // clients take the token count from `message_delta`
        }
        let is_finished = match &delta {
            Some(delta) => self.finish(wire, &delta.members, at, notes)?,
            None => false,
        };
        if !is_finished && self.finish(wire, &event.members, Pointer::ROOT, notes)? {
            notes.mark_misread("other_member"); // clients look only in `delta`
        }
        Ok(())
    }

    /// Decodes a complete message, which replaces or repeats the streamed message.
    pub(crate) fn whole_message<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        message: &Object<'a>,
        payload: Payload<'a>,
        notes: &mut Anomalies<'a>,
    ) -> ParseResult {
        wire.out.mark_misread("not_streamed"); // clients do not support a complete message as an event
        let (members, at) = (&message.members, Pointer::ROOT);
        let extra = extra_fields(members, &FACTS.message_fields);
        let modelled = &FACTS.message_fields;
        keep(
            wire,
            MembersOf::Message,
            members,
            modelled,
            MembersOf::StartUsage,
        );
        if self.started {
            leave(wire, &extra)?;
        } else {
            let mut word = |key| {
                let word = notes.a_text(members, at, key);
                Some(notes.clean(word)).filter(|word| !word.is_empty())
            };
            let (id, model) = (word("id"), word("model"));
            self.start(wire, &extra, id.as_deref(), model.as_deref())?;
        }
        let list = at.member("content");
        for (index, (position, object)) in (0..).zip(content(members, at, notes)) {
            let block = Block {
                at: list.item(position),
                ..Block::new(&object, payload.event)
            };
            if self.streamed {
                self.blocks.restate(wire, &block, index, notes)?;
            } else {
                self.blocks.whole_block(wire, &block, index, notes)?;
            }
        }
        usage(wire, message, members, at, notes, "")?;
        self.finish(wire, members, at, notes)?;
        notes.report(wire)?;
        self.done(wire)
    }

    /// Emits the stop reason that `holder` contains. Returns false if `holder` contains no stop reason.
    fn finish<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        holder: &[Member<'a>],
        at: Pointer<'_>,
        notes: &mut Anomalies<'a>,
    ) -> Result<bool, Fault> {
        let reason = notes.a_text(holder, at, "stop_reason");
        if is_blank(&reason) {
            return Ok(false);
        }
        self.blocks.finish(wire)?;
        self.reason = true;
        let reason = notes.clean(reason);
        wire.assembler.finish(wire.out, 0, &reason)?;
        Ok(true)
    }
}

/// Records the unknown members of an object, and all members of its usage, for the repair stage.
fn keep(
    wire: &mut DecodeContext<'_, '_>,
    of: MembersOf,
    holder: &[Member<'_>],
    modelled: &[&str],
    usage_of: MembersOf,
) {
    if !wire.out.wants_wire_facts() {
        return;
    }
    keep_members(wire, of, holder, modelled);
    if let Some(usage) = find(holder, "usage").and_then(Object::of) {
        keep_members(wire, usage_of, &usage.members, &[]);
    }
}

/// Returns the blocks of a message, each with its position in the list.
fn content<'a>(
    message: &[Member<'a>],
    at: Pointer<'_>,
    notes: &mut Anomalies<'a>,
) -> Vec<(usize, Object<'a>)> {
    let Some(raw) = present(find(message, "content")) else {
        return Vec::new();
    };
    let at = at.member("content");
    if raw.kind != Kind::Array {
        notes.shape(raw, at);
        return Vec::new();
    }
    let mut out = Vec::new();
    for (position, item) in items(raw).into_iter().enumerate() {
        match Object::of(item) {
            Some(object) => out.push((position, object)),
            None => notes.unless_null(item, at.item(position)),
        }
    }
    out
}

/// Merges a usage object. Usage objects are cumulative, so a missing count keeps its earlier value. `checked`: the key
/// in `client_members` whose requirements the object must meet. `payload`: the payload that contains `holder`.
fn usage<'a>(
    wire: &mut DecodeContext<'_, '_>,
    payload: &Object<'a>,
    holder: &[Member<'a>],
    at: Pointer<'_>,
    notes: &mut Anomalies<'a>,
    checked: &str,
) -> ParseResult {
    match notes.opened(payload, holder, at, "usage") {
        Some(usage) => {
            check(wire, checked, &usage.members);
            let counts = FACTS.counts.read_members(usage.raw, &usage.members);
            wire.assembler.merge_usage(wire.out, counts)
        }
        None => Ok(()),
    }
}
