//! Decodes one chunk in this order: the members that describe the response, the choices, and the usage.

use crate::dialect::anomalies::Anomalies;
use crate::dialect::anomalies::Pointer;
use crate::dialect::chat::Chat;
use crate::dialect::chat::KeptChunk;
use crate::dialect::chat::choice::ChoiceState;
use crate::dialect::chat::choice::Reading;
use crate::dialect::chat::read::Chunk;
use crate::dialect::chat::read::TypedValue;
use crate::dialect::chat::read::is_numbered;
use crate::dialect::chat::readers::check_chunk;
use crate::dialect::chat::readers::has_counts;
use crate::dialect::chat::readers::is_filled;
use crate::dialect::chat::readers::lacks_object;
use crate::dialect::chat::usage;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::decode_context::Payload;
use crate::dialect::upstream_error::UpstreamErrorFields;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::Text;
use crate::json::extra_fields::ExtraFields;
use crate::json::members::Member;
use crate::json::members::Slot;
use crate::json::members::find;
use crate::json::members::integer;
use crate::json::members::is_string;
use crate::json::members::members;
use crate::json::members::present;
use crate::json::members::string;
use crate::json::members::text;
use crate::model::event::WireFact;
use crate::model::fault::Class;
use crate::model::fault::Fault;
use crate::model::limits::LimitName;
use crate::model::output::Output;
use crate::model::spec::Code;
use crate::model::unmodelled::ChunkFacts;
use crate::model::unmodelled::Unmodelled;
use std::borrow::Cow;
use std::mem;

impl Chat {
    /// Decodes the members of a chunk. Returns the first error in a choice, or `None`. `around`: the other members of
    /// the envelope, if the chunk is in an envelope.
    pub(crate) fn chunk<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        chunk: &Chunk<'a>,
        around: &[Member<'a>],
        payload: Payload<'_>,
        notes: &mut Anomalies<'a>,
    ) -> Result<Option<UpstreamErrorFields<'a>>, Fault> {
        let before = wire.out.diagnostic_count();
        let mut fresh = self.last_seen.fresh(&chunk.other_members);
        if !around.is_empty() {
            fresh = self.last_seen.fresh(around).and(&fresh);
        }
        if !fresh.is_empty() {
            self.cache.clear();
        }
        let groq = find(&chunk.other_members, "x_groq").filter(|raw| raw.kind == Kind::Object);
        let usage = present(chunk.usage);
        if wire.out.wants_wire_facts() {
            let groq_usage = groq.and_then(|groq| find(&members(groq), "usage"));
            self.keep(wire.out, chunk, groq_usage);
        }
        // True if a later chunk that matches a template learned from this chunk would affect only the choice in that
        // chunk.
        let plain = self.started
            && fresh.is_empty()
            && present(chunk.error).is_none()
            && usage.is_none_or(|raw| raw.kind == Kind::Object)
            && groq.is_none()
            && !chunk.wide_integer
            && chunk.duplicates.is_empty()
            && !payload.tail
            && payload.event.is_none()
            && matches!(&chunk.choices, Some(TypedValue::Read(choices, _)) if choices.len() == 1);
        if !self.started {
            self.started = true;
            start(wire, chunk, notes, payload.tail, fresh.text().as_deref())?;
            fresh = ExtraFields::default();
        } else if wire.assembler.lacks_start_fields() {
            complete_start(wire, chunk, payload.tail)?;
        }
        let untyped = lacks_object(chunk);
        let reading = Reading {
            tail: payload.tail,
            new_id: !payload.tail && self.id_changed(wire, chunk),
            body: is_string(chunk.object, "chat.completion"),
            typed: chunk.object.is_none() || is_string(chunk.object, "chat.completion.chunk"),
            thought: false,
            // During repair, the fast path does not learn a template from a chunk without `object`, because repair must
            // add `object` to every chunk that lacks this member.
            learns: plain && self.cache.should_learn() && !(untyped && wire.out.wants_wire_facts()),
        };
        let mut upstream_error = None;
        check_chunk(chunk, notes);
        if chunk.usage.is_some_and(has_counts) {
            self.counted_before = wire.out.position().1 + 1;
        }
        if untyped {
            wire.out.record_fact(WireFact::Untyped);
        }
        if let Some(raw) = chunk.odd_choices {
            notes.unless_null(raw, Pointer::ROOT.member("choices"));
        }
        match &chunk.choices {
            Some(TypedValue::Read(choices, raw)) => {
                let keys = numbered_keys(*raw);
                for (position, choice) in choices.iter().enumerate() {
                    let all = Pointer::ROOT.member("choices");
                    let key = keys.get(position).map(Cow::as_ref);
                    let at = match (raw.kind, key) {
                        (Kind::Object, Some(key)) => all.member(key),
                        (Kind::Object, None) => all,
                        _ => all.item(position),
                    };
                    let TypedValue::Read(choice, _) = choice else {
                        notes.shape(choice.raw(), at);
                        continue;
                    };
                    let state = self.choice(wire, choice.index, position, notes, at)?;
                    let index = state.index;
                    let taken = state.take(wire, choice, &mut fresh, notes, at, reading)?;
                    if mem::take(&mut state.outdates_templates) {
                        self.cache.clear();
                    }
                    upstream_error = upstream_error.or(taken.upstream_error);
                    let clean = wire.out.diagnostic_count() == before
                        && !(notes.is_odd() && wire.out.wants_wire_facts());
                    if let Some(mut learnable) = taken.learnable.filter(|_| clean) {
                        learnable.padding(chunk.obfuscation);
                        if let Some(usage) = usage {
                            learnable.counts(usage);
                        }
                        self.cache.learn(payload.text, index, learnable);
                    }
                }
            }
            Some(TypedValue::Other(raw)) => {
                notes.unless_null(*raw, Pointer::ROOT.member("choices"))
            }
            None => {}
        }
        notes.report(wire)?;
        if let Some(text) = fresh.text() {
            let lowest = self.lowest.unwrap_or(0);
            wire.assembler.choice_metadata(wire.out, lowest, &text)?;
        }
        if let Some(groq) = groq {
            usage::take(
                wire,
                find(&members(groq), "usage"),
                notes,
                Pointer::ROOT.member("x_groq"),
            )?;
        }
        usage::take(wire, chunk.usage, notes, Pointer::ROOT)?;
        Ok(upstream_error)
    }

    /// Records the unknown members of a chunk for the repair stage, and whether the chunk has choices, a finish reason,
    /// or usage. `groq_usage`: the usage in `x_groq`.
    fn keep(&mut self, out: &mut Output<'_>, chunk: &Chunk<'_>, groq_usage: Slot<'_>) {
        let choices = match &chunk.choices {
            Some(TypedValue::Read(choices, _)) => choices.as_slice(),
            _ => &[],
        };
        // If a choice was added for the calls of the chunk, it is the last choice.
        let sent = choices.len() - usize::from(chunk.has_added_choice);
        let choices = choices.get(..sent).unwrap_or_default();
        let read = || {
            choices.iter().filter_map(|choice| match choice {
                TypedValue::Read(choice, _) => Some(choice),
                TypedValue::Other(_) => None,
            })
        };
        let finishes =
            read().any(|choice| present(choice.finish_reason.or(choice.finish_camel)).is_some());
        let usages = read().map(|choice| choice.usage);
        let mut usages = usages.chain([chunk.usage, groq_usage]);
        let counts = usages.any(is_filled);
        let is_same = self.kept.has_choice != choices.is_empty()
            && self.kept.members.is_empty()
            && chunk.other_members.is_empty();
        if is_same && !finishes && !counts {
            return;
        }
        let extra = ExtraFields::of(chunk.other_members.clone());
        let kept = KeptChunk {
            members: extra.text().unwrap_or_default(),
            has_choice: !choices.is_empty(),
        };
        let changes = kept != self.kept;
        if changes {
            self.cache.clear(); // a template applies only to chunks with the same members
            self.kept = kept;
        }
        if changes || finishes || counts {
            out.keep(Unmodelled::Chunk(ChunkFacts {
                members: &self.kept.members,
                has_choice: self.kept.has_choice,
                finishes,
                counts,
            }));
        }
    }

    /// Returns true if the policy restarts a choice on a new id and the chunk's id differs from that of the previous
    /// chunk (AM10).
    fn id_changed(&mut self, wire: &DecodeContext<'_, '_>, chunk: &Chunk<'_>) -> bool {
        if !wire.out.config.policy.switches.restart_on_new_stream_id {
            return false;
        }
        let Some(id) = present(chunk.id)
            .and_then(string)
            .filter(|id| !id.is_empty())
        else {
            return false;
        };
        let changed = self.last_id.as_deref().is_some_and(|last| last != id);
        self.last_id = Some(id.into_owned());
        changed
    }

    /// Returns the state of the choice with the index `sent`. If the index of the element is missing or invalid, its
    /// position in the list is used instead.
    fn choice<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        sent: Slot<'a>,
        position: usize,
        notes: &mut Anomalies<'a>,
        at: Pointer<'_>,
    ) -> Result<&mut ChoiceState, Fault> {
        let sent = present(sent);
        let number = sent
            .and_then(integer)
            .and_then(|number| i32::try_from(number).ok());
        let number = number.filter(|number| *number >= 0);
        if let Some(raw) = sent.filter(|_| number.is_none()) {
            notes.shape(raw, at.member("index"));
        }
        if number.is_none() {
            notes.mark_misread("no_index"); // clients store choices by index
        }
        let index = number
            .or_else(|| i32::try_from(position).ok())
            .unwrap_or(i32::MAX);
        let known = self.choices.position(index);
        let limit = wire.out.config.limits.max_choices;
        let is_full = |count: usize| limit.is_some_and(|limit| count as u64 >= limit);
        let at = match known {
            Some(at) => at,
            None if wire.out.config.policy.switches.merge_choices && !self.choices.is_empty() => {
                // AM11: the request asked for one choice, so every other index refers to the first choice.
                wire.out.mark_misread("choice_merged");
                if !self.merged.contains(&index) && !is_full(self.merged.len()) {
                    self.merged.insert(index);
                    wire.out
                        .diagnose(Code::CHOICES_MERGED, None, &index.to_string())?;
                }
                0
            }
            None => {
                if let Some(limit) = limit.filter(|_| is_full(self.choices.len())) {
                    return Err(Fault::limit(LimitName::max_choices, limit));
                }
                let inline_reasoning = wire.out.config.policy.inline_reasoning;
                let position = self.choices.push(ChoiceState::new(index, inline_reasoning));
                let lowest = self.lowest.unwrap_or(index);
                self.lowest = Some(lowest.min(index));
                // Open the choice now, so that it is closed even if it has no output.
                wire.assembler
                    .text(wire.out, index, Text::default(), None)?;
                position
            }
        };
        // The lookup cannot fail, because the choice was just found or added.
        self.choices
            .get_mut(at)
            .ok_or_else(|| Fault::new(Class::Internal, "internal"))
    }
}

/// Returns the keys of an object whose keys are numbers and whose values are choices. Returns no keys if the object is
/// a choice itself.
fn numbered_keys(choices: Raw<'_>) -> Vec<Cow<'_, str>> {
    if choices.kind != Kind::Object {
        return Vec::new();
    }
    let entries = members(choices);
    match is_numbered(&entries) {
        true => entries.iter().map(|entry| entry.key.name()).collect(),
        false => Vec::new(),
    }
}

/// Returns the time at which the response was created.
fn created(chunk: &Chunk<'_>) -> Option<i64> {
    let number = present(chunk.created).filter(|raw| raw.kind == Kind::Number)?;
    integer(number)
}

/// Sets the fields that the start event lacked. `tail`: as in `start`.
fn complete_start(wire: &mut DecodeContext<'_, '_>, chunk: &Chunk<'_>, tail: bool) -> ParseResult {
    let word = |slot: Slot<'_>| {
        let word = present(slot).and_then(string)?;
        Some(word.into_owned()).filter(|word| !word.trim().is_empty())
    };
    let id = word(chunk.id).filter(|_| !tail);
    let model = word(chunk.model);
    wire.assembler.started(
        wire.out,
        id.as_deref(),
        model.as_deref(),
        created(chunk),
        None,
    )
}

/// Emits the start event of the response, using the first chunk. `tail`: true if the chunk follows a broken document.
/// The id of a chunk after a broken document is omitted, because it may be the id of another response.
fn start<'a>(
    wire: &mut DecodeContext<'_, '_>,
    chunk: &Chunk<'a>,
    notes: &mut Anomalies<'a>,
    tail: bool,
    metadata: Option<&str>,
) -> ParseResult {
    let mut word = |slot: Slot<'a>| {
        let (word, lone) = present(slot).and_then(text)?.into_whole();
        notes.lone |= lone;
        Some(word).filter(|word| !word.is_empty())
    };
    let id = if tail { None } else { word(chunk.id) };
    let model = word(chunk.model);
    wire.assembler.started(
        wire.out,
        id.as_deref(),
        model.as_deref(),
        created(chunk),
        metadata,
    )
}
