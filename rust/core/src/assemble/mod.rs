//! Combines the wire deltas of one stream into parts and tool calls, emits their events, and determines whether the
//! response is complete.
//!
//! Decoders call the methods of `Assembler`, one for each kind of wire delta. The assembler contains no code for a
//! specific dialect. `by_evidence` decides which call a fragment belongs to, `arguments` repairs argument text, and
//! `close_calls` closes calls. `items` contains the methods for parts and calls that the stream opens and closes
//! explicitly. All events and diagnostics are emitted through `Output`.

pub(crate) mod append;
pub(crate) mod append_items;
pub(crate) mod attachments;
pub(crate) mod choice;
pub(crate) mod choices;
pub(crate) mod end;
pub(crate) mod finish_reason;
pub(crate) mod item_deltas_calls;
pub(crate) mod item_lists;
pub(crate) mod items;
pub(crate) mod late_text;
pub(crate) mod lost_beginning;
pub(crate) mod part;
pub(crate) mod records;
pub(crate) mod resolve;
pub(crate) mod rule_context;
pub(crate) mod settings;
pub(crate) mod snapshot;
pub(crate) mod terminal_message;

use crate::assemble::choice::CallComparison;
use crate::assemble::choice::Choice;
use crate::assemble::choice::leave;
use crate::assemble::choices::Choices;
use crate::assemble::part::attachment::Attachments;
use crate::assemble::part::call_events;
use crate::assemble::part::item_text;
use crate::assemble::part::object_merge::Growth;
use crate::assemble::part::text_parts::Attributes;
use crate::assemble::part::text_parts::Channel;
use crate::assemble::part::text_parts::TextParts;
use crate::assemble::records::ErrorRecord;
use crate::assemble::records::StartRecord;
use crate::assemble::records::UsageRecord;
pub use crate::assemble::resolve::route_cache::Appended;
use crate::assemble::resolve::route_cache::ChangeCounter;
pub use crate::assemble::resolve::route_cache::PieceRun;
pub use crate::assemble::resolve::route_cache::RouteCache;
use crate::assemble::resolve::route_fragment;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
use crate::assemble::rule_context::Shared;
use crate::assemble::settings::Settings;
use crate::json::Text;
use crate::model::config::Config;
use crate::model::delta::Completeness;
use crate::model::delta::Fragment;
use crate::model::delta::Message;
use crate::model::event::Usage;
use crate::model::event::WireFact;
use crate::model::fault::Class;
use crate::model::fault::Fault;
use crate::model::finish_words::is_alias;
use crate::model::finish_words::meaning;
use crate::model::lazy_box::LazyBox;
use crate::model::output::Output;
use crate::model::policy::CloseCallsAt;
use crate::model::spec;
use crate::model::spec::Code;
use serde_json::Value;

/// Assembles the parts and calls of one stream from wire deltas.
#[derive(Debug, Default)]
pub struct Assembler {
    dialect: &'static str,
    shared: Shared,
    choices: Choices,
    /// Counts the operations on choices, except those that only append a piece to an open part or call.
    turn: ChangeCounter,
    attached: LazyBox<Attachments>,
    started: Option<Box<StartRecord>>,
    usage: Option<Box<UsageRecord>>,
    error: Option<Box<ErrorRecord>>,
    end_on_wire: EndOnWire,
    /// The stream has ended, so later deltas are ignored.
    over: bool,
    completeness: Completeness,
    /// Size of the last payload or member that was emitted as `Unknown`, until the caller resets it.
    pub(crate) unknown_size: usize,
}

/// What the stream has indicated about its end so far, in addition to terminal markers and finish reasons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EndOnWire {
    #[default]
    Unstated,
    /// The dialect has no terminal marker, and the response is complete if the input ends here.
    Whole,
    /// The upstream reported that its stream broke off. The response is truncated even if every part and call was
    /// closed.
    BrokenOff,
}

/// A choice, borrowed for one delta together with the context that the rules need.
pub(crate) struct ChoiceContext<'a, 'o> {
    choice: &'a mut Choice,
    ctx: RuleContext<'a, 'o>,
}

impl Assembler {
    pub fn new(config: &Config) -> Assembler {
        Assembler {
            dialect: "",
            shared: Shared::new(Settings::of(config)),
            ..Assembler::default()
        }
    }

    #[inline]
    fn at<'a, 'o>(
        &'a mut self,
        out: &'a mut Output<'o>,
        index: i32,
    ) -> Result<ChoiceContext<'a, 'o>, Fault> {
        self.turn.pass();
        let mut ctx = RuleContext {
            shared: &mut self.shared,
            out,
        };
        let position = match self.choices.position(index) {
            Some(position) => position,
            None => {
                ctx.count_choice()?;
                let mode = ctx.switches().content_mode;
                let choice = Choice::new(index, TextParts::new(index, mode));
                let position = self.choices.add(choice);
                ctx.out.record_fact(WireFact::Choice(index));
                position
            }
        };
        let choice = self.choices.turn(position);
        // The lookup cannot fail, because the choice was just found or inserted.
        let choice = choice.ok_or_else(|| Fault::new(Class::Internal, "internal"))?;
        Ok(ChoiceContext { choice, ctx })
    }

    // The response

    /// Emits `ResponseStarted` with the fields of the first chunk and stores them for the snapshot. When called again,
    /// only sets the id, model and creation time that the snapshot still lacks.
    pub fn started(
        &mut self,
        out: &mut Output<'_>,
        id: Option<&str>,
        model: Option<&str>,
        created: Option<i64>,
        metadata: Option<&str>,
    ) -> ParseResult {
        if self.over {
            return Ok(());
        }
        match &mut self.started {
            Some(record) => record.complete(id, model, created),
            None => {
                let record = StartRecord::new(id, model, created, metadata);
                out.emit(&record.event());
                self.started = Some(Box::new(record));
            }
        }
        Ok(())
    }

    /// Returns true if the start event was emitted without an id, model or creation time that a later payload may
    /// contain.
    pub fn lacks_start_fields(&self) -> bool {
        self.started
            .as_ref()
            .is_some_and(|record| record.lacks_fields())
    }

    /// Returns the metadata of the `ResponseStarted` event, or `None` if the event has no metadata or was not emitted
    /// yet.
    pub fn start_metadata(&self) -> Option<&str> {
        self.started.as_ref()?.metadata()
    }

    /// Stores token counts, which replace earlier counts unless every new count is absent or zero. Counts are never
    /// summed.
    pub fn usage(&mut self, out: &mut Output<'_>, usage: Usage<'_>) -> ParseResult {
        let record = UsageRecord::new(usage);
        if !self.over && (self.usage.is_none() || !record.is_blank()) {
            if !record.is_blank() {
                out.record_fact(WireFact::Counted);
                self.shared.counted_at = Some((out.position().1, self.shared.documents));
            }
            self.usage = Some(Box::new(record));
        }
        Ok(())
    }

    /// Returns true if a token count that is not zero has been received.
    pub fn has_counts(&self) -> bool {
        self.usage.as_ref().is_some_and(|usage| !usage.is_blank())
    }

    /// Merges token counts that arrive in several payloads. Each count that is present replaces the earlier value;
    /// values are never summed.
    pub fn merge_usage(&mut self, out: &mut Output<'_>, usage: Usage<'_>) -> ParseResult {
        if self.over {
            return Ok(());
        }
        let more = self.usage.get_or_insert_default().merge(usage);
        let mut ctx = RuleContext {
            shared: &mut self.shared,
            out,
        };
        ctx.spend_growth(more)
    }

    /// Sets the dialect, which determines whether calls may lack an id and what a finish reason means.
    pub fn set_dialect(&mut self, dialect: &'static str) {
        self.dialect = dialect;
        let facts = spec::dialects().get(dialect);
        let is_set = |fact| {
            facts
                .and_then(|facts| facts.get(fact))
                .and_then(Value::as_bool)
                == Some(true)
        };
        self.shared.ids_optional = is_set("ids_optional");
        self.shared.reason_required = is_set("reason_required");
    }

    /// Returns true if the stream has ended, so that later deltas are ignored.
    fn is_over(&self) -> bool {
        self.over
    }

    /// Emits an `Unknown` event for a payload or member that the decoder does not recognize.
    pub fn unknown(
        &mut self,
        out: &mut Output<'_>,
        event: Option<&str>,
        raw: &[u8],
    ) -> ParseResult {
        self.unknown_size = raw.len();
        out.unknown(event, raw);
        Ok(())
    }

    // Text

    /// Appends a piece of text to the open text part. If no text part is open, opens one.
    #[inline]
    pub fn text(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        text: Text<'_>,
        metadata: Option<&str>,
    ) -> ParseResult {
        self.textual(out, choice, Channel::Text, "raw", text, metadata)
    }

    /// Appends a piece of reasoning to the open reasoning part. If no reasoning part is open, opens one.
    pub fn reasoning(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        kind: &'static str,
        text: Text<'_>,
        metadata: Option<&str>,
    ) -> ParseResult {
        self.textual(out, choice, Channel::Reasoning, kind, text, metadata)
    }

    /// Appends a piece of a refusal to the open refusal part. If no refusal part is open, opens one.
    pub fn refusal(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        text: Text<'_>,
        metadata: Option<&str>,
    ) -> ParseResult {
        self.textual(out, choice, Channel::Refusal, "raw", text, metadata)
    }

    #[inline]
    fn textual(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        channel: Channel,
        kind: &'static str,
        text: Text<'_>,
        metadata: Option<&str>,
    ) -> ParseResult {
        if self.over {
            return Ok(());
        }
        let ChoiceContext { choice, mut ctx } = self.at(out, index)?;
        let mut carried = false;
        if !text.is_empty() {
            call_events::flush_unstarted(ctx.out, choice, None);
            let textual = &mut choice.textual;
            carried = textual.push(&mut ctx, channel, kind, text, metadata)?;
        }
        match metadata {
            Some(metadata) if !carried => leave(&mut ctx, choice, metadata),
            _ => Ok(()),
        }
    }

    /// Returns true if `text` equals all text of the choice and the channel so far, and this text arrived in at least
    /// two pieces (AM9).
    pub fn restates(&self, choice: i32, channel: Channel, text: &Text<'_>) -> bool {
        let choice = self.choices.find(choice);
        choice.is_some_and(|choice| choice.textual.restates(channel, text))
    }

    /// Returns true if this `function_call` fragment, which has a name, repeats a call from `tool_calls`.
    pub fn mirrors_call(&mut self, choice: i32, fragment: &Fragment<'_>) -> bool {
        let text = fragment.arguments.clone().map(|text| text.into_whole().0);
        let arguments = fragment.object_arguments.or(text.as_deref());
        let arguments = arguments.unwrap_or_default().as_bytes();
        let name = fragment.name.as_deref().unwrap_or_default();
        let choice = self.choices.turn_to(choice);
        choice.is_some_and(|choice| choice.mirrors(name, arguments))
    }

    /// Compares a call that arrived outside a delta's `tool_calls` with the calls of the choice.
    pub fn compare_call(
        &mut self,
        choice: i32,
        id: Option<&str>,
        name: &str,
        arguments: &str,
    ) -> CallComparison {
        let choice = self.choices.turn_to(choice);
        choice.map_or(CallComparison::Own, |choice| {
            choice.compare(id, name, arguments.as_bytes())
        })
    }

    /// Turns the open text part into reasoning: the text part closes with empty text, and the text that it contained is
    /// emitted as reasoning.
    pub fn retype_text(&mut self, out: &mut Output<'_>, index: i32) -> ParseResult {
        if self.over {
            return Ok(());
        }
        let ChoiceContext { choice, mut ctx } = self.at(out, index)?;
        choice.textual.retype(&mut ctx)
    }

    /// Adds attributes to the open reasoning part of the choice. If no reasoning part is open, the next reasoning part
    /// gets the attributes. `details` is the text of a JSON array.
    pub fn reasoning_attributes(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        signature: Option<&str>,
        encrypted_content: Option<&str>,
        details: Option<&str>,
    ) -> ParseResult {
        if self.over {
            return Ok(());
        }
        let ChoiceContext { choice, mut ctx } = self.at(out, index)?;
        let attributes = Attributes {
            signature: signature.map(str::to_owned),
            encrypted_content: encrypted_content.map(str::to_owned),
            details: details.into_iter().map(str::to_owned).collect(),
        };
        choice.textual.attribute(&mut ctx, attributes)
    }

    /// Returns the text of the open reasoning part of the choice, or an empty string if none is open.
    pub fn open_reasoning(&self, choice: i32) -> &str {
        let part = self.choices.find(choice);
        let part = part.and_then(|choice| choice.textual.current());
        let part = part.filter(|part| part.channel == Channel::Reasoning);
        part.map_or("", |part| part.text.as_str())
    }

    /// Closes the open reasoning part of the choice with these attributes. If no reasoning part is open, or if the
    /// attributes include encrypted content, adds a reasoning part that has the attributes but no text.
    pub fn end_reasoning(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        signature: Option<&str>,
        encrypted_content: Option<&str>,
    ) -> ParseResult {
        if self.over {
            return Ok(());
        }
        let ChoiceContext { choice, mut ctx } = self.at(out, index)?;
        call_events::flush_unstarted(ctx.out, choice, None);
        let attributes = Attributes {
            signature: signature.map(str::to_owned),
            encrypted_content: encrypted_content.map(str::to_owned),
            details: Vec::new(),
        };
        choice.textual.end_reasoning(&mut ctx, attributes)
    }

    /// Adds annotations to the open text part. If no text part is open, the next text part gets the annotations. `list`
    /// is the text of a JSON array.
    pub fn annotations(&mut self, out: &mut Output<'_>, index: i32, list: &str) -> ParseResult {
        if self.over {
            return Ok(());
        }
        let ChoiceContext { choice, mut ctx } = self.at(out, index)?;
        choice.textual.annotate(&mut ctx, list)
    }

    // Calls

    /// Applies one fragment of a tool call to the call that it belongs to.
    #[inline]
    pub fn call(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        fragment: &Fragment<'_>,
    ) -> ParseResult {
        if self.over {
            return Ok(());
        }
        self.shared.called_at = (out.position().1, self.shared.documents);
        let ChoiceContext { choice, mut ctx } = self.at(out, index)?;
        if !choice.closed {
            return route_fragment::take_fragment(&mut ctx, choice, fragment);
        }
        let text = fragment.arguments.as_ref();
        let has_content = fragment.id.is_some()
            || fragment.name.is_some()
            || text.is_some_and(|text| !text.is_empty())
            || fragment.object_arguments.is_some_and(|raw| !raw.is_empty());
        if has_content {
            return ctx.out.diagnose(Code::LATE_DELTA, None, "");
        }
        Ok(())
    }

    /// Applies a complete message. The message corrects and completes the streamed content, or is the only content.
    pub fn message(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        message: Message<'_>,
    ) -> ParseResult {
        if self.over {
            return Ok(());
        }
        let ChoiceContext { choice, mut ctx } = self.at(out, index)?;
        if !choice.closed {
            return terminal_message::reconcile(&mut ctx, choice, message);
        }
        let texts = [&message.content, &message.reasoning, &message.refusal];
        let has_content = texts
            .iter()
            .any(|text| text.as_ref().is_some_and(|text| !text.is_empty()));
        if has_content || !message.fragments.is_empty() {
            return ctx.out.diagnose(Code::LATE_DELTA, None, "");
        }
        Ok(())
    }

    /// Discards all parts and calls of the choice, because the upstream starts the response again (AM10).
    pub fn restart(&mut self, out: &mut Output<'_>, index: i32) -> ParseResult {
        if self.over {
            return Ok(());
        }
        let ChoiceContext { choice, mut ctx } = self.at(out, index)?;
        if choice.closed {
            // Final events have already been emitted and cannot be withdrawn.
            return ctx.out.diagnose(Code::LATE_DELTA, None, "");
        }
        ctx.out.diagnose(Code::STREAM_RESTARTED, None, "")?;
        for item in choice.item_index.opened() {
            item_text::take_back(&mut ctx, choice, item);
        }
        choice.textual.take_back(ctx.out);
        for slot in choice.undecided() {
            call_events::retract(ctx.out, choice, slot);
        }
        choice.forget_calls();
        choice.item_index.start_again();
        Ok(())
    }

    /// Discards the parts and calls of the current step, because the upstream starts the step again. Final calls and
    /// tool results are kept.
    pub fn restart_step(&mut self, out: &mut Output<'_>, index: i32) -> ParseResult {
        let Some(ChoiceContext { choice, mut ctx }) = self.item_choice(out, index)? else {
            return Ok(());
        };
        ctx.out.diagnose(Code::STREAM_RESTARTED, None, "")?;
        for item in choice.item_index.opened() {
            item_text::take_back(&mut ctx, choice, item);
        }
        choice.textual.take_back_from(choice.step);
        for slot in (0..choice.calls.len()).rev() {
            let Some(call) = choice.get(slot).filter(|call| call.part >= choice.step) else {
                break;
            };
            if !call.dropped && call.outcome.is_none() {
                call_events::retract(ctx.out, choice, slot);
            }
        }
        choice.item_index.drop_open();
        choice.step = ctx.out.parts();
        Ok(())
    }

    /// Records that the response is complete if the input ends here. Gemini streams need this method, because Gemini
    /// has no terminal marker.
    pub fn mark_valid_end(&mut self) {
        if self.end_on_wire != EndOnWire::BrokenOff {
            self.end_on_wire = EndOnWire::Whole;
        }
    }

    /// Returns true if the final event of any call in the choice has been emitted, so that the choice can no longer
    /// restart.
    pub fn has_reported_call(&self, index: i32) -> bool {
        let choice = self.choices.find(index);
        choice.is_some_and(|choice| choice.has_closed_call)
    }

    // The end

    /// Stores unmodeled members that no other event can contain. The `Finished` event of the choice contains these
    /// members.
    pub fn choice_metadata(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        metadata: &str,
    ) -> ParseResult {
        if self.over {
            return Ok(());
        }
        let ChoiceContext { choice, mut ctx } = self.at(out, index)?;
        leave(&mut ctx, choice, metadata)
    }

    /// Counts a JSON document that is about to be decoded.
    pub fn begin_document(&mut self) {
        self.shared.documents += 1;
    }

    /// Counts towards `max_text_bytes` the data that a decoder is about to store. A negative `growth` means that the
    /// decoder no longer stores the data.
    pub fn hold(&mut self, out: &mut Output<'_>, growth: Growth) -> ParseResult {
        let mut ctx = RuleContext {
            shared: &mut self.shared,
            out,
        };
        ctx.spend_growth(growth)
    }

    /// Checks the length of an id that a decoder is about to store.
    pub fn check_id(&mut self, out: &mut Output<'_>, identity: &str) -> ParseResult {
        let ctx = RuleContext {
            shared: &mut self.shared,
            out,
        };
        ctx.check_id(identity)
    }

    /// Records that the upstream reported a broken stream. The response is truncated even if every part and call was
    /// closed.
    pub fn cut(&mut self) {
        self.end_on_wire = EndOnWire::BrokenOff;
    }

    /// Records the finish reason of a choice. If the policy closes calls at the finish reason, or if a complete message
    /// with calls arrived, the parts and calls of the choice close.
    pub fn finish(&mut self, out: &mut Output<'_>, index: i32, raw_reason: &str) -> ParseResult {
        if self.over {
            return Ok(());
        }
        if is_alias(self.dialect, raw_reason) {
            out.mark_misread("finish_alias"); // clients know only their API's word
        }
        let reason = meaning(self.dialect, raw_reason);
        let ChoiceContext { choice, mut ctx } = self.at(out, index)?;
        finish_reason::take_reason(ctx.out, choice, raw_reason, reason)?;
        let at_finish = ctx.out.config.policy.close_calls_at == CloseCallsAt::Finish;
        if at_finish || (choice.message_seen && choice.has_shown()) {
            let end = finish_reason::end_of_calls(&choice.finish, true);
            end::close_choice(&mut ctx, choice, end, false)?;
        }
        Ok(())
    }
}
