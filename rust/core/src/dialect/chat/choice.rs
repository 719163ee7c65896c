//! Decodes one choice of a Chat chunk: its content, its calls, a complete message, and the finish reason, in this
//! order.
//!
//! The unknown members of a chunk are attached as metadata to the first event that the chunk causes, unless this event
//! is a call event. Call events contain only the metadata of their call. If a chunk causes only call events, the
//! chunk's metadata is added to the last event of the choice.

use crate::assemble::part::object_merge::Growth;
use crate::dialect::anomalies::Anomalies;
use crate::dialect::anomalies::Pointer;
use crate::dialect::chat::calls;
use crate::dialect::chat::content;
use crate::dialect::chat::content::ContentPiece;
use crate::dialect::chat::content::concat;
use crate::dialect::chat::payload_kind::legacy_text;
use crate::dialect::chat::read;
use crate::dialect::chat::read::Choice;
use crate::dialect::chat::read::Delta;
use crate::dialect::chat::read::TypedValue;
use crate::dialect::chat::readers::RUNS_CALLS;
use crate::dialect::chat::readers::Readers;
use crate::dialect::chat::readers::has_members;
use crate::dialect::chat::readers::is_filled;
use crate::dialect::chat::readers::is_other_role;
use crate::dialect::chat::reasoning;
use crate::dialect::chat::reasoning::Block;
use crate::dialect::chat::reasoning::Details;
use crate::dialect::chat::reasoning::DividedThought;
use crate::dialect::chat::reasoning::Progress;
use crate::dialect::chat::reasoning::ThinkingBlocks;
use crate::dialect::chat::reasoning::Thought;
use crate::dialect::chat::reasoning::WholeDetails;
use crate::dialect::chat::side_calls::SideCalls;
use crate::dialect::chat::usage;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::think_tags;
use crate::dialect::think_tags::Think;
use crate::dialect::think_tags::is_white;
use crate::dialect::upstream_error::UpstreamErrorFields;
use crate::fastpath::chat::learn;
use crate::fastpath::chat::learn::DeltaTally;
use crate::fastpath::chat::template::LearnableChunk;
use crate::json::Key;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::Text;
use crate::json::extra_fields::ExtraFields;
use crate::json::members::Member;
use crate::json::members::find;
use crate::json::members::present;
use crate::json::members::text;
use crate::model::delta::Channel;
use crate::model::delta::Fragment;
use crate::model::fault::Fault;
use crate::model::finish_words::meaning;
use crate::model::lazy_box::LazyBox;
use crate::model::lazy_box::blank;
use crate::model::output::Output;
use crate::model::small_map::Numbered;
use crate::model::spec;
use crate::model::spec::Code;
use crate::model::unmodelled::ChoiceFacts;
use crate::model::unmodelled::ReasoningFacts;
use crate::model::unmodelled::Unmodelled;
use std::borrow::Cow;
use std::collections::HashSet;
use std::mem;
use std::sync::LazyLock;

/// Words that gateways send as the finish reason of a choice that has not finished.
static ABSENT_REASONS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| spec::words(spec::fact("chat", "absent_reasons")));

/// Properties of a chunk that affect how its choices are decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// True if the chunk follows a broken document. In a chunk that follows a broken document, only text, finish
    /// reasons, usage, and errors are decoded.
    pub(crate) tail: bool,
    /// True if the chunk id differs from that of the previous chunk and the policy restarts a choice on a new id.
    pub(crate) new_id: bool,
    /// True if the member `object` is `chat.completion`, so that the chunk is a complete response.
    pub(crate) body: bool,
    /// True if the member `object` is `chat.completion.chunk` or absent.
    pub(crate) typed: bool,
    /// True if the fast path may learn a template from the chunk.
    pub(crate) learns: bool,
    /// True if a flag in the delta marks its content as reasoning.
    pub(crate) thought: bool,
}

/// The error in a decoded choice, and the data from which the fast path can learn a template. The error and the data
/// are optional.
#[derive(Debug, Default)]
pub(crate) struct ChoiceResult<'a> {
    pub(crate) upstream_error: Option<UpstreamErrorFields<'a>>,
    pub(crate) learnable: Option<LearnableChunk<'a>>,
}

/// The accumulated text and reasoning of a choice that streams `message` instead of `delta`.
#[derive(Debug)]
pub(crate) struct MessageDeltas {
    text: Progress,
    reasoning: Progress,
    /// True once the diagnostic for repeated text has been emitted.
    reported: bool,
}

impl MessageDeltas {
    fn new() -> Box<MessageDeltas> {
        Box::new(MessageDeltas {
            text: Progress::from(1),
            reasoning: Progress::from(1),
            reported: false,
        })
    }

    fn report(&mut self, wire: &mut DecodeContext<'_, '_>, again: bool) -> ParseResult {
        if again {
            wire.out.mark_misread("text_again"); // clients would append the repetition
        }
        if again && !self.reported {
            self.reported = true;
            wire.out
                .diagnose(Code::AMBIGUOUS_CUMULATIVE, None, "repeated")?;
        }
        Ok(())
    }
}

/// Members of a choice that are not kept. An event already contains such a member, or a client would read it as content
/// or as a call if repair wrote it next to an empty delta.
const NOT_KEPT: [&str; 6] = [
    "text",
    "content",
    "tool_calls",
    "toolCalls",
    "tool_call",
    "function_call",
];

/// The unknown members of a choice and of its delta, as JSON objects, or empty strings if there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct KeptMembers {
    choice: String,
    delta: String,
}

blank!(KeptMembers);

/// The decoder's state for one choice.
#[derive(Debug)]
pub(crate) struct ChoiceState {
    pub(crate) index: i32,
    pub(crate) think: Option<Box<Think>>,
    pub(crate) details: Progress,
    pub(crate) blocks: ThinkingBlocks,
    /// JSON values of the `audio` member. At the end of the stream, these values are attached to the last event of the
    /// choice.
    pub(crate) audio: Vec<String>,
    pub(crate) audio_size: Growth,
    /// True if files or annotations arrived in deltas. A complete message only repeats the files and annotations, so
    /// those in the message are ignored.
    pub(crate) attached: bool,
    /// True once repeated reasoning has been reported. Repeated reasoning is reported only once, because a gateway that
    /// repeats reasoning repeats it in every chunk.
    pub(crate) repeat_reported: bool,
    /// Names of the members that contained the most recent reasoning. The names are recorded only for repair.
    reasoning_fields: Vec<&'static str>,
    /// The half of a surrogate pair at the end of the last `reasoning_details`, as a JSON escape. The half is
    /// recorded only for repair.
    pub(crate) half: Option<String>,
    /// True if `reasoning_fields` or `kept` has changed since the last chunk, or if `message` is streamed from now on. A
    /// template that was learned before no longer describes the effect of a chunk.
    pub(crate) outdates_templates: bool,
    /// The unknown members of the last choice and its delta. The members are recorded only for repair.
    kept: LazyBox<KeptMembers>,
    /// True once the choice has text, reasoning, a file, or a call. A restart clears this flag.
    pub(crate) has_text: bool,
    /// True once a delta contained a `tool_use` call. A later delta without a type may continue the `tool_use` call.
    pub(crate) uses_tool: bool,
    pub(crate) legacy_form: LegacyForm,
    pub(crate) side_calls: SideCalls,
    /// The value is present if the choice streams `message` instead of `delta`.
    pub(crate) messages: Option<Box<MessageDeltas>>,
    pub(crate) readers: Readers,
}

impl Numbered for ChoiceState {
    type Number = i32;

    fn number(&self) -> i32 {
        self.index
    }
}

impl ChoiceState {
    pub(crate) fn new(index: i32, inline_reasoning: bool) -> ChoiceState {
        ChoiceState {
            index,
            think: inline_reasoning.then(Box::default),
            details: Progress::default(),
            blocks: ThinkingBlocks::default(),
            audio: Vec::new(),
            audio_size: Growth::default(),
            attached: false,
            repeat_reported: false,
            reasoning_fields: Vec::new(),
            half: None,
            outdates_templates: false,
            kept: LazyBox::default(),
            has_text: false,
            uses_tool: false,
            legacy_form: LegacyForm::Unknown,
            side_calls: SideCalls::default(),
            messages: None,
            readers: Readers::default(),
        }
    }

    pub(crate) fn take<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        choice: &Choice<'a>,
        fresh: &mut ExtraFields<'a>,
        notes: &mut Anomalies<'a>,
        at: Pointer<'_>,
        reading: Reading,
    ) -> Result<ChoiceResult<'a>, Fault> {
        let delta = object(choice.delta.as_ref(), notes, at.member("delta"));
        let message = object(choice.message.as_ref(), notes, at.member("message"));
        let finish = finish(choice, notes, at);
        notes.report(wire)?;
        if delta.is_some_and(|(_, raw)| raw.kind == Kind::String && is_filled(Some(raw))) {
            let at = at.member("delta");
            wire.out.diagnose(Code::SHAPE, None, &at.text())?; // a string is decoded as text
        }
        if let Some((delta, _)) = delta {
            self.readers
                .begin(wire.out, self.index, delta, reading.typed);
        }
        let upstream_error = UpstreamErrorFields::of_choice(choice.error).or_else(|| {
            let delta = delta.map(|(delta, _)| delta)?;
            UpstreamErrorFields::of_choice(find(&delta.other_members, "error"))
        });
        // The members are not recorded if the choice has an error, because the error that repair writes contains the
        // whole payload.
        if wire.out.wants_wire_facts() && upstream_error.is_none() {
            self.keep_members(
                wire.out,
                choice,
                delta
                    .map(|(delta, _)| delta)
                    .filter(|delta| !is_of_other_role(delta)),
                finish.is_some(),
            );
            let lacks_delta = present(choice.delta.as_ref().map(TypedValue::raw)).is_none();
            if lacks_delta
                && reading.typed
                && legacy_text(choice).is_none()
                && !self.kept.is_blank()
            {
                // Repair rewrites the chunk with the recorded members, because the chunk has no delta. The new delta
                // also contains the role.
                self.readers
                    .begin(wire.out, self.index, &Delta::default(), true);
            }
        }
        let mut pending_metadata = PendingMetadata {
            chunk: fresh,
            own: ExtraFields::default(),
            text: None,
        };
        if let Some(text) = legacy_text(choice) {
            let mut rest = choice.other_members.clone();
            rest.retain(|member| !member.key.is("text"));
            pending_metadata.own.extend(&rest);
            let pieces = content::read(Some(text), notes, at.member("text"));
            self.content(
                wire,
                pieces,
                &mut pending_metadata,
                finish.is_some(),
                reading,
            )?;
            notes.report(wire)?;
        } else {
            pending_metadata.own.extend(&choice.other_members);
        }
        let mut learnable = None;
        let other_role = delta.and_then(|(delta, _)| delta.role.filter(|raw| is_other_role(*raw)));
        if let Some(role) = other_role {
            notes.shape(role, at.member("delta").member("role"));
            notes.mark_misread("other_role"); // clients add the content to the answer
            notes.report(wire)?;
        }
        let is_left_out = delta.is_some_and(|(delta, _)| is_of_other_role(delta));
        if let Some((delta, _)) = delta.filter(|(_, raw)| !is_left_out && has_members(*raw)) {
            self.readers.delta(delta, reading.typed, notes);
            let role = delta.role.is_some_and(|raw| raw.kind == Kind::String);
            if reading.new_id && self.has_text && role {
                wire.assembler.restart(wire.out, self.index)?;
                self.side_calls.restart(wire)?;
                self.think = self.think.take().map(|_| Box::default());
                self.details = Progress::default();
                self.blocks = ThinkingBlocks::default();
                self.has_text = false;
                self.uses_tool = false;
                self.legacy_form = LegacyForm::Unknown;
                self.messages = None;
            }
            let closes = finish.is_some()
                || choice.beside_chunk.is_some()
                || (choice.beside.as_ref()).is_some_and(|beside| beside.has_calls());
            learnable = self
                .delta(
                    wire,
                    delta,
                    &mut pending_metadata,
                    notes,
                    at.member("delta"),
                    closes,
                    reading,
                )?
                .filter(|_| other_role.is_none());
        }
        let root = Pointer::ROOT;
        let beside = [(&choice.beside, at), (&choice.beside_chunk, root)];
        let beside = beside.into_iter().filter(|_| !is_left_out);
        let mut reads_message = false;
        let mut beside: Vec<_> = beside
            .filter_map(|(beside, at)| Some((&**beside.as_ref()?, at)))
            .collect();
        if !beside.is_empty() {
            notes.mark_misread("other_member"); // clients look for content and calls only in the delta
            learnable = None;
        }
        if let Some((message, raw)) = message.filter(|(_, raw)| !reading.tail && has_members(*raw))
        {
            // Some gateways repeat every delta, or all earlier deltas, in `message`.
            let absent = !matches!(&choice.delta, Some(TypedValue::Read(..)))
                && choice.delta.as_ref().is_none_or(
                    |walk| matches!(walk, TypedValue::Other(raw) if raw.kind == Kind::Null),
                );
            let mirrors = choice
                .delta
                .as_ref()
                .is_some_and(|delta| delta.raw().text == raw.text);
            reads_message = true;
            if absent && self.continues(message, finish.is_some(), reading) {
                let at = at.member("message");
                self.delta(
                    wire,
                    message,
                    &mut pending_metadata,
                    notes,
                    at,
                    false,
                    reading,
                )?;
            } else if absent || reading.body || (finish.is_some() && !mirrors) {
                if delta.is_none() {
                    pending_metadata.own.extend(&message.other_members);
                } else if self.readers.is_new(message, self.has_text) {
                    notes.mark_misread("not_streamed"); // clients read only deltas
                }
                self.message(
                    wire,
                    message,
                    &mut pending_metadata,
                    notes,
                    at.member("message"),
                    mem::take(&mut beside).into_iter().last(),
                )?;
            } else {
                reads_message = false;
            }
            learnable = None;
        }
        let closes = finish.is_some() || choice.beside_chunk.is_some();
        for (beside, at) in beside {
            self.delta(
                wire,
                beside,
                &mut pending_metadata,
                notes,
                at,
                closes,
                reading,
            )?;
        }
        if !is_left_out
            && !reading.tail
            && self.compare_others(wire, choice, delta, message, reads_message)?
        {
            learnable = None;
        }
        let unattached = pending_metadata.own.text();
        let has_lists = !is_left_out && delta.is_some_and(|(delta, _)| has_own_lists(delta));
        let has_chunk_members = finish.is_some() && !pending_metadata.chunk.is_empty();
        if (unattached.is_some() || has_lists || has_chunk_members)
            && wire.out.wants_wire_facts()
            && upstream_error.is_none()
        {
            wire.out
                .keep(Unmodelled::ChoiceWithoutEvent { choice: self.index });
        }
        if let Some(text) = unattached {
            let held = mem::take(&mut self.audio_size);
            wire.assembler.hold(wire.out, held.released())?;
            wire.assembler
                .choice_metadata(wire.out, self.index, &text)?;
        }
        if present(choice.usage).is_some() || present(choice.error).is_some() || finish.is_some() {
            learnable = None;
        }
        usage::take(wire, choice.usage, notes, at)?;
        if let Some((raw_reason, lone)) = finish {
            if let Some(think) = &mut self.think {
                emit_released(wire, self.index, think.flush(), None)?;
            }
            notes.lone |= lone;
            notes.report(wire)?;
            let reason = meaning("chat", &raw_reason);
            let runs = reason.is_some_and(|reason| RUNS_CALLS.contains(&reason));
            self.side_calls.settle(wire, self.index)?;
            self.readers.end(wire.out, runs);
            wire.assembler.finish(wire.out, self.index, &raw_reason)?;
        }
        Ok(ChoiceResult {
            upstream_error,
            learnable,
        })
    }

    /// Stores the calls that a payload contains in unusual places, unless they repeat the calls in the usual place.
    /// Returns true if an unusual place of the payload contains calls. `reads_message`: false if the message is not
    /// decoded.
    fn compare_others(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        choice: &Choice<'_>,
        delta: Option<Object<'_, '_>>,
        message: Option<Object<'_, '_>>,
        reads_message: bool,
    ) -> Result<bool, Fault> {
        let notes = &mut Anomalies::default(); // anomalies in other places are not reported
        let limit = wire.out.config.limits.max_tool_index;
        let (mut used, mut left) = (Vec::new(), Vec::new());
        let delta = delta.map(|(delta, _)| delta);
        let message = message.map(|(message, _)| message);
        for (place, is_read) in [(delta, true), (message, reads_message)] {
            let Some(place) = place else { continue };
            left.extend(calls::further_calls(place, limit, notes));
            if !is_read {
                left.extend(calls::main_calls(place, limit, notes));
            }
        }
        for place in &choice.side {
            left.extend(calls::main_calls(place, limit, notes));
        }
        if left.is_empty() {
            return Ok(false);
        }
        let message = message.filter(|_| reads_message);
        let beside = [choice.beside.as_deref(), choice.beside_chunk.as_deref()];
        for place in [delta, message].into_iter().chain(beside).flatten() {
            used.extend(calls::main_calls(place, limit, notes));
        }
        let used: HashSet<_> = used.iter().map(calls::call_content).collect();
        for fragment in &left {
            if !used.contains(&calls::call_content(fragment)) {
                self.side_calls.add(wire, self.index, fragment)?;
            }
        }
        Ok(true)
    }

    /// Clears the record of the choice's unknown members, because the next payload contains no such members.
    pub(crate) fn forget_members(&mut self, out: &mut Output<'_>) {
        if !self.kept.is_blank() {
            *self.kept = KeptMembers::default();
            out.keep(Unmodelled::ChoiceMembers(ChoiceFacts {
                choice: self.index,
                members: "",
                delta: "",
                finishes: false,
            }));
        }
    }

    /// Records the unknown members of a choice and its delta for the repair stage.
    fn keep_members(
        &mut self,
        out: &mut Output<'_>,
        choice: &Choice<'_>,
        delta: Option<&Delta<'_>>,
        finishes: bool,
    ) {
        let rest = delta.map_or(&[][..], |delta| &delta.other_members);
        let has_lists = delta.is_some_and(has_own_lists);
        let has_any = has_lists || !(choice.other_members.is_empty() && rest.is_empty());
        if !has_any && self.kept.is_blank() {
            return;
        }
        let uses_tool = delta.is_some_and(|delta| {
            calls::is_tool_use(delta) || (self.uses_tool && calls::continues_tool_use(delta))
        });
        let calls = delta.and_then(calls::other_calls).map(|(name, _)| name);
        let of_choice = |member: &&Member<'_>| {
            member.raw.kind != Kind::Null && !NOT_KEPT.iter().any(|name| member.key.is(name))
        };
        let of_delta = |member: &&Member<'_>| {
            let is_call = calls.is_some_and(|name| member.key.is(name))
                || (uses_tool && calls::is_of_tool_use(member))
                || (member.raw.kind == Kind::Array && calls::is_call_list(member));
            member.raw.kind != Kind::Null && !is_call
        };
        let others = rest.iter().filter(of_delta).copied();
        let lists = delta.into_iter().flat_map(own_lists);
        let text = |members| ExtraFields::of(members).text().unwrap_or_default();
        let kept = KeptMembers {
            choice: text(
                choice
                    .other_members
                    .iter()
                    .filter(of_choice)
                    .copied()
                    .collect(),
            ),
            delta: text(others.chain(lists).collect()),
        };
        let changes = kept != *self.kept;
        if changes {
            self.outdates_templates = true;
            *self.kept = kept;
        }
        if changes || !self.kept.is_blank() {
            out.keep(Unmodelled::ChoiceMembers(ChoiceFacts {
                choice: self.index,
                members: &self.kept.choice,
                delta: &self.kept.delta,
                finishes,
            }));
        }
    }

    /// Returns true if `message` must be decoded as a delta. Four kinds of message are not decoded as deltas: a
    /// complete body, a message after streamed deltas, a first message that ends the choice, and a last message that
    /// repeats the whole text.
    fn continues(&mut self, message: &Delta<'_>, is_final: bool, reading: Reading) -> bool {
        if reading.body || (self.messages.is_none() && (is_final || self.has_text)) {
            return false;
        }
        self.outdates_templates |= self.messages.is_none();
        let seen = &self.messages.get_or_insert_with(MessageDeltas::new).text;
        let content = message.content.and_then(text);
        !(is_final && content.is_some_and(|content| seen.repeated_by(&content)))
    }

    /// Emits the text that the `<think>` splitter holds back, and the collected audio. This method is called before the
    /// stream closes.
    pub(crate) fn flush(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        if let Some(think) = &mut self.think {
            emit_released(wire, self.index, think.end(), None)?;
        }
        self.side_calls.settle(wire, self.index)?;
        if !self.audio.is_empty() {
            let text = format!("{{\"audio\":[{}]}}", mem::take(&mut self.audio).join(","));
            let held = mem::take(&mut self.audio_size);
            wire.assembler.hold(wire.out, held.released())?;
            wire.assembler
                .choice_metadata(wire.out, self.index, &text)?;
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn delta<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        delta: &Delta<'a>,
        pending_metadata: &mut PendingMetadata<'_, 'a>,
        notes: &mut Anomalies<'a>,
        at: Pointer<'_>,
        finishes: bool,
        reading: Reading,
    ) -> Result<Option<LearnableChunk<'a>>, Fault> {
        let uses_tool =
            calls::is_tool_use(delta) || (self.uses_tool && calls::continues_tool_use(delta));
        let other_calls = calls::other_calls(delta);
        if uses_tool || other_calls.is_some() {
            let is_other = |member: &&Member<'_>| {
                let is_call = other_calls.is_some_and(|(name, _)| member.key.is(name));
                !(is_call || (uses_tool && calls::is_of_tool_use(member)))
            };
            let others = delta.other_members.iter().filter(is_other);
            pending_metadata
                .own
                .extend(&others.copied().collect::<Vec<_>>());
        } else {
            pending_metadata.own.extend(&delta.other_members);
        }
        let closes = finishes
            || is_filled(delta.tool_calls.as_ref().map(TypedValue::raw))
            || is_filled(other_calls.map(|(_, raw)| raw))
            || is_filled(delta.function_call.as_ref().map(TypedValue::raw));
        // The state of the choice decides what the delta of a streamed `message` adds, and whether a member other than
        // `tool_calls` contains a new call, a repeated call, or a piece of the preceding call.
        let has_other_calls = uses_tool
            || other_calls.is_some()
            || calls::continues_tool_use(delta)
            || present(delta.function_call.as_ref().map(TypedValue::raw)).is_some();
        let learns = reading.learns && self.messages.is_none() && !has_other_calls;
        let metadata = if learns {
            pending_metadata.own.text()
        } else {
            None
        };
        let mut tally = DeltaTally::default();
        if !reading.tail {
            let mut thought = reasoning::read(delta, notes, at);
            notes.report(wire)?;
            if let Some(messages) = &mut self.messages {
                let has_details = |details: &Details<'_>| !details.text.is_empty();
                let is_plain = thought.details.as_ref().is_some_and(has_details);
                let texts = thought.blocks.iter_mut();
                let texts: Vec<_> = texts.map(|block| mem::take(&mut block.text)).collect();
                if thought.text.is_none() && !is_plain {
                    thought.text = Some(concat(texts)).filter(|text| !text.is_empty());
                }
                if let Some(text) = &mut thought.text {
                    let (new, again) = messages.reasoning.next(text);
                    *text = new;
                    messages.report(wire, again)?;
                }
            }
            pending_metadata.own.extend(&thought.extra);
            if learns && thought.has_content() {
                tally.add(learn::of_thought(&thought, self.repeat_reported).filter(|_| !closes));
            }
            self.thought(wire, thought, pending_metadata, closes)?;
        }
        let pieces = content::read(delta.content, notes, at.member("content"));
        let is_thought = !delta.other_members.is_empty() && reasoning::is_thought(delta);
        if is_thought && pieces.iter().any(ContentPiece::is_shown) {
            notes.mark_misread("other_member"); // clients read the reasoning as text
        }
        if learns && !pieces.is_empty() {
            tally.add(learn::of_text(delta.content).filter(|_| !is_thought && !closes));
        }
        let reading = Reading {
            thought: is_thought,
            ..reading
        };
        self.content(wire, pieces, pending_metadata, closes, reading)?;
        if reading.tail {
            notes.report(wire)?;
            return Ok(None);
        }
        if self.attachments(wire, delta, pending_metadata, notes, at)? {
            tally.add(None);
        }
        notes.report(wire)?;
        let mut fragments = fragments(
            wire,
            &mut self.legacy_form,
            Some((self.index, &mut self.side_calls)),
            delta,
            notes,
            at,
        )?;
        if fragments.is_empty() && (uses_tool || calls::has_list(delta)) {
            fragments = calls::tool_uses(delta, uses_tool, notes, at);
            self.uses_tool |= !fragments.is_empty();
        }
        notes.report(wire)?;
        if fragments.is_empty() {
            return Ok(tally.only().map(|learnable| LearnableChunk {
                metadata,
                ..learnable
            }));
        }
        self.has_text = true;
        if let Some(think) = &mut self.think {
            emit_released(wire, self.index, think.flush(), None)?;
        }
        for fragment in &fragments {
            wire.assembler.call(wire.out, self.index, fragment)?;
        }
        if learns {
            tally.add(match &delta.tool_calls {
                Some(TypedValue::Read(entries, raw))
                    if fragments.len() == 1 && raw.kind == Kind::Array =>
                {
                    match entries.as_slice() {
                        [TypedValue::Read(call, _)] => learn::of_call(call),
                        _ => None,
                    }
                }
                _ => None,
            });
        }
        Ok(tally.only().map(|learnable| LearnableChunk {
            metadata,
            ..learnable
        }))
    }

    /// Emits the content of a delta. `closes`: true if the delta ends the choice or contains a call. Only a delta that
    /// ends the choice or contains a call may repeat earlier text. Such a delta may repeat the whole text of the choice
    /// (AM9).
    fn content(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        mut pieces: Vec<ContentPiece<'_>>,
        pending_metadata: &mut PendingMetadata<'_, '_>,
        closes: bool,
        reading: Reading,
    ) -> ParseResult {
        if let Some(messages) = &mut self.messages {
            for piece in &mut pieces {
                if let ContentPiece::Shown(text) = piece {
                    let (new, again) = messages.text.next(text);
                    *text = new;
                    messages.report(wire, again)?;
                }
            }
            pieces.retain(|piece| !matches!(piece, ContentPiece::Shown(text) if text.is_empty()));
        }
        if reading.thought {
            content::think(&mut pieces);
        }
        if reading.tail {
            pieces.retain(ContentPiece::is_shown);
        }
        if let [ContentPiece::Shown(text)] = pieces.as_slice()
            && closes
            && self.restates(wire, Channel::Text, text)
        {
            return wire.out.diagnose(Code::CONTENT_RESTATED, None, "");
        }
        pieces
            .into_iter()
            .try_for_each(|piece| self.piece(wire, piece, Some(pending_metadata)))
    }

    /// Returns true if a text repeats all text of its channel and the policy drops a repetition of the whole text
    /// (AM9).
    fn restates(&self, wire: &DecodeContext<'_, '_>, channel: Channel, text: &Text<'_>) -> bool {
        wire.out.config.policy.switches.drop_restated_content
            && wire.assembler.restates(self.index, channel, text)
    }
}

/// How `function_call` relates to `tool_calls` in one choice.
///
/// `Unknown` becomes `Repeated` or `Own` when the first name arrives. `Repeated` becomes `Own` when the name of another
/// call arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LegacyForm {
    /// No `function_call` has contained a name yet.
    Unknown,
    /// `function_call` repeats a call in `tool_calls`. If `function_call` and `tool_calls` were both decoded, the call
    /// would run twice.
    Repeated,
    /// `function_call` is a separate call.
    Own,
}

/// Returns the call fragments in a delta or a message. The fragment in `function_call` comes last. This fragment is
/// omitted if it repeats a call in `tool_calls`.
///
/// `streamed`: `None` for a complete message. For a delta, `streamed` contains the choice index and the stored calls of
/// the choice, because the `function_call` of a delta may repeat a call from an earlier delta.
pub(crate) fn fragments<'a>(
    wire: &mut DecodeContext<'_, '_>,
    form: &mut LegacyForm,
    streamed: Option<(i32, &mut SideCalls)>,
    delta: &Delta<'a>,
    notes: &mut Anomalies<'a>,
    at: Pointer<'_>,
) -> Result<Vec<Fragment<'a>>, Fault> {
    let limit = wire.out.config.limits.max_tool_index;
    let mut out = match &delta.tool_calls {
        Some(TypedValue::Read(entries, raw)) => {
            let at = at.member("tool_calls");
            calls::fragments(entries, raw.kind == Kind::Array, limit, notes, at)
        }
        Some(TypedValue::Other(raw)) => {
            notes.unless_null(*raw, at.member("tool_calls"));
            Vec::new()
        }
        None => Vec::new(),
    };
    if let Some((member, raw)) = calls::other_calls(delta) {
        notes.mark_misread("other_member");
        let at = at.member(member);
        out = calls::fragments(&read::calls(raw), raw.kind == Kind::Array, limit, notes, at);
    }
    match &delta.function_call {
        Some(TypedValue::Read(function, _)) => {
            let legacy = calls::legacy(function, notes, at.member("function_call"));
            if legacy.name.is_some() && *form != LegacyForm::Own {
                let before = *form;
                let repeats = calls::is_repeated(&legacy, &out)
                    || (streamed.as_ref())
                        .is_some_and(|(index, _)| wire.assembler.mirrors_call(*index, &legacy));
                *form = if repeats {
                    LegacyForm::Repeated
                } else {
                    LegacyForm::Own
                };
                if *form == LegacyForm::Repeated && before == LegacyForm::Unknown {
                    wire.out
                        .diagnose(Code::ANNOUNCED_AGAIN, None, "function_call")?;
                }
            }
            if *form == LegacyForm::Repeated {
                notes.mark_misread("call_in_both_forms");
                if let Some((_, side_calls)) = streamed {
                    side_calls.add_legacy(wire, &legacy, &out)?;
                }
            } else {
                out.push(legacy);
            }
        }
        Some(TypedValue::Other(raw)) => notes.unless_null(*raw, at.member("function_call")),
        None => {}
    }
    Ok(out)
}

type Object<'c, 'a> = (&'c Delta<'a>, Raw<'a>);

/// Returns a delta or message and its raw text, or `None` if it is not an object. A value of another type, except null,
/// is recorded as an anomaly.
fn object<'c, 'a>(
    walk: Option<&'c TypedValue<'a, Box<Delta<'a>>>>,
    notes: &mut Anomalies<'a>,
    at: Pointer<'_>,
) -> Option<Object<'c, 'a>> {
    match walk? {
        TypedValue::Read(value, raw) => Some((value, *raw)),
        TypedValue::Other(raw) => {
            notes.unless_null(*raw, at);
            None
        }
    }
}

/// Returns the finish reason, and whether it contained a lone surrogate. Returns `None` if `finish_reason` and
/// `finishReason` are absent, blank, or a word such as `null`.
fn finish<'a>(
    choice: &Choice<'a>,
    notes: &mut Anomalies<'a>,
    at: Pointer<'_>,
) -> Option<(Cow<'a, str>, bool)> {
    for (slot, name) in [
        (choice.finish_reason, "finish_reason"),
        (choice.finish_camel, "finishReason"),
    ] {
        let Some(raw) = present(slot) else { continue };
        match text(raw).map(Text::into_whole) {
            Some((reason, _)) if reason.trim_matches(is_white).is_empty() => {}
            Some((reason, _)) if ABSENT_REASONS.contains(&reason.as_ref()) => {
                notes.mark_misread("finish_word"); // clients treat the word as a finish reason
            }
            found @ Some(_) => {
                if name != "finish_reason" {
                    notes.mark_misread("other_member");
                }
                return found;
            }
            None => notes.shape(raw, at.member(name)),
        }
    }
    None
}

/// Metadata for the first event of a choice in a chunk.
pub(crate) struct PendingMetadata<'c, 'a> {
    /// Metadata of the chunk, shared by all choices of the chunk. This metadata is attached to the first event of any
    /// choice.
    pub(crate) chunk: &'c mut ExtraFields<'a>,
    /// Metadata of the choice, and of its delta and message. If a key occurs at several levels, the value at the
    /// innermost level is used.
    pub(crate) own: ExtraFields<'a>,
    pub(crate) text: Option<String>,
}

impl PendingMetadata<'_, '_> {
    /// Returns the metadata for the next event as a JSON object, or `None` if it is empty.
    pub(crate) fn text(&mut self) -> Option<&str> {
        if self.text.is_none() && !(self.chunk.is_empty() && self.own.is_empty()) {
            self.text = self.chunk.and(&self.own).text();
        }
        self.text.as_deref()
    }

    /// Clears the metadata after it has been attached to an event.
    pub(crate) fn mark_attached(&mut self) {
        if self.text.take().is_some() {
            *self.chunk = ExtraFields::default();
            self.own = ExtraFields::default();
        }
    }
}

impl ChoiceState {
    /// Emits the reasoning of a delta: its text, its signature, and the content of `reasoning_details`. `closes`: as in
    /// `content`. If `closes` is true, the delta may repeat the whole reasoning of the choice (AM9).
    pub(crate) fn thought<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        thought: Thought<'a>,
        pending_metadata: &mut PendingMetadata<'_, 'a>,
        closes: bool,
    ) -> ParseResult {
        let Thought {
            mut text,
            mut repeated,
            names,
            details,
            signature,
            blocks,
            ..
        } = thought;
        let kind = if blocks.is_empty() { "raw" } else { "thinking" };
        let mut begins_again = false;
        if let Some(details) = details.as_ref().filter(|details| !details.text.is_empty()) {
            if text.is_some() {
                repeated = true;
            } else {
                let doubtful = self.details.is_doubtful(&details.text);
                let (mut new, again) = self.details.next(&details.text);
                if let Some(messages) = self.messages.as_mut().filter(|_| !new.is_empty()) {
                    let (unseen, seen) = messages.reasoning.next(&new);
                    new = unseen;
                    messages.report(wire, seen)?;
                }
                repeated |= again;
                begins_again = again;
                if doubtful {
                    let reading = if again { "repeated" } else { "appended" };
                    wire.out
                        .diagnose(Code::AMBIGUOUS_CUMULATIVE, None, reading)?;
                }
                text = Some(new);
            }
        }
        let mut divided = if blocks.is_empty() {
            DividedThought {
                text: text.unwrap_or_default(),
                ..DividedThought::default()
            }
        } else {
            let shown = wire.assembler.open_reasoning(self.index);
            self.blocks.divide(blocks, text, shown)
        };
        repeated |= divided.repeated;
        let mut whole = divided.whole();
        if closes && !whole.is_empty() && self.restates(wire, Channel::Reasoning, &whole) {
            wire.out.mark_misread("text_again");
            divided.clear();
            (whole, repeated) = (Text::default(), true);
        }
        // Repeated details are not kept unless they are sealed, because clients would append the repeated text.
        let is_kept = |details: &&Details<'_>| !begins_again || details.is_sealed();
        let kept = details.as_ref().filter(is_kept);
        self.keep_reasoning(wire.out, names, kept, !whole.is_empty());
        if !whole.is_empty() {
            self.has_text = true;
            if let Some(think) = &mut self.think {
                think.field(&whole.body);
            }
        }
        for block in divided.ended {
            self.end_block(wire, block, Some(&mut *pending_metadata))?;
        }
        if !divided.text.is_empty() {
            let metadata = pending_metadata.text();
            wire.assembler
                .reasoning(wire.out, self.index, kind, divided.text, metadata)?;
            pending_metadata.mark_attached();
        }
        if let Some(details) = &details {
            self.attributes(wire, details)?;
        }
        if signature.is_some() {
            self.signature(wire, signature.as_deref())?;
        }
        if repeated && !self.repeat_reported {
            self.repeat_reported = true;
            wire.out.diagnose(Code::REASONING_REPEATED, None, "")?;
        }
        Ok(())
    }

    /// Emits the remaining text of a reasoning block, and its signature or encrypted content.
    pub(crate) fn end_block(
        &self,
        wire: &mut DecodeContext<'_, '_>,
        block: Block<'_>,
        pending_metadata: Option<&mut PendingMetadata<'_, '_>>,
    ) -> ParseResult {
        let (assembler, index) = (&mut wire.assembler, self.index);
        if !block.text.is_empty() {
            let mut pending_metadata = pending_metadata;
            let metadata = pending_metadata.as_mut().and_then(|pending| pending.text());
            assembler.reasoning(wire.out, index, "thinking", block.text, metadata)?;
            if let Some(pending_metadata) = pending_metadata {
                pending_metadata.mark_attached();
            }
        }
        let (signature, encrypted) = (block.signature.as_deref(), block.encrypted.as_deref());
        assembler.end_reasoning(wire.out, index, signature, encrypted)
    }

    /// Records which members contained the reasoning of a delta. The repair stage uses this record.
    pub(crate) fn keep_reasoning(
        &mut self,
        out: &mut Output<'_>,
        names: Vec<&'static str>,
        details: Option<&Details<'_>>,
        has_text: bool,
    ) {
        if !out.wants_wire_facts() {
            return;
        }
        let changes = has_text && names != self.reasoning_fields;
        if changes {
            self.reasoning_fields = names;
            self.outdates_templates = true;
        }
        let details = details.map(|details| details.with_whole_characters(&mut self.half));
        let is_empty = |details: &WholeDetails<'_>| !details.has_text;
        let has_text = has_text && !details.as_ref().is_some_and(is_empty);
        if changes || details.is_some() {
            out.keep(Unmodelled::Reasoning(ReasoningFacts {
                choice: self.index,
                fields: changes.then_some(self.reasoning_fields.as_slice()),
                details: details.as_ref().map(|details| details.json.as_ref()),
                has_text,
            }));
        }
    }

    /// Emits the signature, the encrypted content, and the JSON of `reasoning_details`. A client must send these values
    /// back in a later turn.
    pub(crate) fn attributes(
        &self,
        wire: &mut DecodeContext<'_, '_>,
        details: &Details<'_>,
    ) -> ParseResult {
        let (signature, encrypted) = (details.signature.as_deref(), details.encrypted.as_deref());
        let raw = Some(details.raw.text);
        wire.assembler
            .reasoning_attributes(wire.out, self.index, signature, encrypted, raw)
    }

    pub(crate) fn signature(
        &self,
        wire: &mut DecodeContext<'_, '_>,
        signature: Option<&str>,
    ) -> ParseResult {
        wire.assembler
            .reasoning_attributes(wire.out, self.index, signature, None, None)
    }

    pub(crate) fn piece(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        piece: ContentPiece<'_>,
        pending_metadata: Option<&mut PendingMetadata<'_, '_>>,
    ) -> ParseResult {
        let index = self.index;
        if let ContentPiece::Unread(raw) = piece {
            return wire.assembler.unknown(wire.out, None, raw.text.as_bytes());
        }
        if let ContentPiece::Signature(signature) = piece {
            return self.signature(wire, Some(&signature));
        }
        self.has_text = true;
        if let ContentPiece::File(file) = piece {
            self.attached = true;
            let (media_type, data, url) = file.fields();
            return wire
                .assembler
                .file(wire.out, index, media_type, data, url, file.metadata());
        }
        match (piece, &mut self.think) {
            (ContentPiece::Shown(text), Some(think)) => {
                return emit_released(wire, index, think.feed(&text), pending_metadata);
            }
            (piece, _) => {
                let mut pending_metadata = pending_metadata;
                let metadata = pending_metadata
                    .as_mut()
                    .and_then(|pending_metadata| pending_metadata.text());
                match piece {
                    ContentPiece::Shown(text) => {
                        wire.assembler.text(wire.out, index, text, metadata)?
                    }
                    ContentPiece::Thought(text) => wire
                        .assembler
                        .reasoning(wire.out, index, "raw", text, metadata)?,
                    ContentPiece::Refused(text) => {
                        wire.assembler.refusal(wire.out, index, text, metadata)?
                    }
                    ContentPiece::File(_)
                    | ContentPiece::Signature(_)
                    | ContentPiece::Unread(_) => {}
                }
                if let Some(pending_metadata) = pending_metadata {
                    pending_metadata.mark_attached();
                }
            }
        }
        Ok(())
    }
}

/// Emits the text and reasoning that the `<think>` splitter has released, and reports the anomalies that the splitter
/// found.
pub(crate) fn emit_released(
    wire: &mut DecodeContext<'_, '_>,
    index: i32,
    pieces: Vec<think_tags::ThinkPiece>,
    mut pending_metadata: Option<&mut PendingMetadata<'_, '_>>,
) -> ParseResult {
    for piece in pieces {
        match piece {
            think_tags::ThinkPiece::Orphan => {
                wire.assembler.retype_text(wire.out, index)?;
                wire.out.diagnose(Code::ORPHAN_THINK_CLOSE, None, "")?;
            }
            think_tags::ThinkPiece::Repeated => {
                wire.out.diagnose(Code::REASONING_REPEATED, None, "")?
            }
            think_tags::ThinkPiece::Lone => wire.out.diagnose(Code::LONE_SURROGATE, None, "")?,
            think_tags::ThinkPiece::Text(text) => {
                let metadata = pending_metadata
                    .as_mut()
                    .and_then(|pending_metadata| pending_metadata.text());
                wire.assembler.text(wire.out, index, text, metadata)?;
                pending_metadata
                    .iter_mut()
                    .for_each(|pending_metadata| pending_metadata.mark_attached());
            }
            think_tags::ThinkPiece::Reasoning(text) => {
                let metadata = pending_metadata
                    .as_mut()
                    .and_then(|pending_metadata| pending_metadata.text());
                wire.assembler
                    .reasoning(wire.out, index, "raw", text, metadata)?;
                pending_metadata
                    .iter_mut()
                    .for_each(|pending_metadata| pending_metadata.mark_attached());
            }
        }
    }
    Ok(())
}

/// Returns the lists in a delta that are kept unchanged, even though events contain most of their content.
fn own_lists<'a>(delta: &Delta<'a>) -> impl Iterator<Item = Member<'a>> + use<'a> {
    let lists = [("annotations", delta.annotations), ("images", delta.images)];
    let lists = lists.into_iter().filter_map(|(raw, slot)| {
        let is_list = |value: &Raw<'_>| value.kind == Kind::Array && has_members(*value);
        let key = Key {
            raw,
            escaped: false,
        };
        slot.filter(is_list).map(|raw| Member { key, raw })
    });
    let audio = present(delta.audio).map(|raw| Member {
        key: Key {
            raw: "audio",
            escaped: false,
        },
        raw,
    });
    lists.chain(audio)
}

fn has_own_lists(delta: &Delta<'_>) -> bool {
    own_lists(delta).next().is_some()
}

/// Returns true if the delta does not belong to the answer. Some gateways run tools themselves and stream the results,
/// or send the prompt back. Only the assistant calls tools, so a delta with calls has the wrong role, unless a
/// `tool_call_id` shows that the delta contains the result of a call.
fn is_of_other_role(delta: &Delta<'_>) -> bool {
    delta.role.is_some_and(is_other_role)
        && (!delta.has_calls() || is_filled(find(&delta.other_members, "tool_call_id")))
}
