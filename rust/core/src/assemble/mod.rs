//! Turns wire deltas into events: assembles the parts and calls of one stream and determines how it ended.
//!
//! `Assembler` is the facade: each method takes one wire delta from a decoder. It depends on no dialect and no framing.
//! The identity rules are in `by_evidence`, the argument rules in `arguments`, the close rules in `close_calls`. Events
//! and diagnostics leave through `Output`. The methods for parts and calls that the wire itself opens and closes are in
//! `items`.

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
pub(crate) mod part;
pub(crate) mod records;
pub(crate) mod resolve;
pub(crate) mod rule_context;
pub(crate) mod settings;
pub(crate) mod snapshot;
pub(crate) mod terminal_message;

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
use crate::assemble::rule_context::RuleContext;
use crate::assemble::rule_context::Shared;
use crate::assemble::rule_context::Step;
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
use crate::model::lazy_box::LazyBox;
use crate::model::output::Output;
use crate::model::policy::CloseCallsAt;
use crate::model::spec;
use crate::model::spec::Code;
use serde_json::Value;

/// The parts and calls of one stream.
#[derive(Debug, Default)]
pub struct Assembler {
    shared: Shared,
    choices: Choices,
    /// Incremented by every operation on a choice, except one that appends the next piece to an open part or call.
    turn: ChangeCounter,
    attached: LazyBox<Attachments>,
    started: Option<Box<StartRecord>>,
    usage: Option<Box<UsageRecord>>,
    error: Option<Box<ErrorRecord>>,
    end_on_wire: EndOnWire,
    /// The stream has ended; later deltas are ignored.
    over: bool,
    completeness: Completeness,
}

/// What the wire reported about its end, apart from the terminal marker and the finish reasons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EndOnWire {
    #[default]
    Unsaid,
    /// The dialect has no terminal marker, and an input that ends here is complete.
    Whole,
    /// The wire reported that it broke off: the response is truncated, even if everything was closed.
    BrokenOff,
}

/// A choice and the context that its rules run in.
pub(crate) struct At<'a, 'o> {
    choice: &'a mut Choice,
    desk: RuleContext<'a, 'o>,
}

impl Assembler {
    pub fn new(config: &Config) -> Assembler {
        Assembler {
            shared: Shared::new(Settings::of(config)),
            ..Assembler::default()
        }
    }

    #[inline]
    fn at<'a, 'o>(&'a mut self, out: &'a mut Output<'o>, index: i32) -> Result<At<'a, 'o>, Fault> {
        self.turn.pass();
        let mut desk = RuleContext {
            shared: &mut self.shared,
            out,
        };
        let place = match self.choices.place(index) {
            Some(place) => place,
            None => {
                desk.count_choice()?;
                let mode = desk.switches().content_mode;
                let choice = Choice::new(index, TextParts::new(index, mode));
                let place = self.choices.add(choice);
                desk.out.sign(WireFact::Choice(index));
                place
            }
        };
        let choice = self.choices.turn(place);
        // Cannot fail: the place was just found or filled.
        let choice = choice.ok_or_else(|| Fault::new(Class::Internal, "internal"))?;
        Ok(At { choice, desk })
    }

    // The response

    /// Records the metadata of the response from its first chunk and emits `ResponseStarted`, once per stream.
    pub fn started(
        &mut self,
        out: &mut Output<'_>,
        id: Option<&str>,
        model: Option<&str>,
        created: Option<i64>,
        metadata: Option<&str>,
    ) -> Step {
        if self.started.is_none() && !self.over {
            let record = StartRecord::new(id, model, created, metadata);
            out.emit(&record.event());
            self.started = Some(Box::new(record));
        }
        Ok(())
    }

    /// Returns the metadata of the first chunk.
    pub fn start_metadata(&self) -> Option<&str> {
        self.started.as_ref()?.metadata()
    }

    /// Records token counts. The last counts that are not blank replace earlier ones; counts are never summed.
    pub fn usage(&mut self, out: &mut Output<'_>, usage: Usage<'_>) -> Step {
        let record = UsageRecord::new(usage);
        if !self.over && (self.usage.is_none() || !record.is_blank()) {
            if !record.is_blank() {
                out.sign(WireFact::Counted);
                self.shared.counted_at = Some(out.place().1);
            }
            self.usage = Some(Box::new(record));
        }
        Ok(())
    }

    /// Merges token counts that arrive in several payloads. For each number, the last value wins; numbers are never
    /// summed.
    pub fn merge_usage(&mut self, out: &mut Output<'_>, usage: Usage<'_>) -> Step {
        if self.over {
            return Ok(());
        }
        let more = self.usage.get_or_insert_default().merge(usage);
        let mut desk = RuleContext {
            shared: &mut self.shared,
            out,
        };
        desk.spend_growth(more)
    }

    /// Sets the dialect, which determines whether its calls may lack an id.
    pub fn speak(&mut self, dialect: &str) {
        let facts = spec::dialects().get(dialect);
        let optional = facts.and_then(|facts| facts.get("ids_optional"));
        self.shared.ids_optional = optional.and_then(Value::as_bool).unwrap_or(false);
    }

    /// Returns true if the stream has ended, so that later deltas are ignored.
    fn is_over(&self) -> bool {
        self.over
    }

    /// Reports a payload or member that the decoder does not recognize.
    pub fn unknown(&mut self, out: &mut Output<'_>, event: Option<&str>, raw: &[u8]) -> Step {
        out.unknown(event, raw);
        Ok(())
    }

    // Text

    /// Appends a piece of text.
    #[inline]
    pub fn text(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        text: Text<'_>,
        metadata: Option<&str>,
    ) -> Step {
        self.textual(out, choice, Channel::Text, "raw", text, metadata)
    }

    /// Appends a piece of reasoning.
    pub fn reasoning(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        kind: &'static str,
        text: Text<'_>,
        metadata: Option<&str>,
    ) -> Step {
        self.textual(out, choice, Channel::Reasoning, kind, text, metadata)
    }

    /// Appends a piece of a refusal.
    pub fn refusal(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        text: Text<'_>,
        metadata: Option<&str>,
    ) -> Step {
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
    ) -> Step {
        if self.over {
            return Ok(());
        }
        let At { choice, mut desk } = self.at(out, index)?;
        let mut carried = false;
        if !text.is_empty() {
            call_events::flush_unstarted(desk.out, choice, None);
            let textual = &mut choice.textual;
            carried = textual.push(&mut desk, channel, kind, text, metadata)?;
        }
        match metadata {
            Some(metadata) if !carried => leave(&mut desk, choice, metadata),
            _ => Ok(()),
        }
    }

    /// Returns true if `text` equals all text of the choice so far and that text arrived in at least two pieces (AM9).
    pub fn restates(&self, choice: i32, text: &Text<'_>) -> bool {
        let choice = self.choices.find(choice);
        choice.is_some_and(|choice| choice.textual.restates(text))
    }

    /// Changes the type of the open text part to reasoning.
    pub fn retype_text(&mut self, out: &mut Output<'_>, index: i32) -> Step {
        if self.over {
            return Ok(());
        }
        let At { choice, mut desk } = self.at(out, index)?;
        choice.textual.retype(&mut desk)
    }

    /// Adds attributes to the open reasoning part of the choice, or to the next one. `details` is the text of a JSON
    /// array.
    pub fn reasoning_attributes(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        signature: Option<&str>,
        encrypted_content: Option<&str>,
        details: Option<&str>,
    ) -> Step {
        if self.over {
            return Ok(());
        }
        let At { choice, mut desk } = self.at(out, index)?;
        let attributes = Attributes {
            signature: signature.map(str::to_owned),
            encrypted_content: encrypted_content.map(str::to_owned),
            details: details.into_iter().map(str::to_owned).collect(),
        };
        choice.textual.attribute(&mut desk, attributes)
    }

    /// Adds annotations to the open text part, or to the next one. `list` is the text of a JSON array.
    pub fn annotations(&mut self, out: &mut Output<'_>, index: i32, list: &str) -> Step {
        if self.over {
            return Ok(());
        }
        let At { choice, mut desk } = self.at(out, index)?;
        choice.textual.annotate(&mut desk, list)
    }

    // Calls

    /// Takes one entry of a list of tool-call deltas.
    #[inline]
    pub fn call(&mut self, out: &mut Output<'_>, index: i32, fragment: &Fragment<'_>) -> Step {
        if self.over {
            return Ok(());
        }
        self.shared.called_at = out.place().1;
        let At { choice, mut desk } = self.at(out, index)?;
        if !choice.closed {
            return route_fragment::take_fragment(&mut desk, choice, fragment);
        }
        let text = fragment.arguments.as_ref();
        let says = fragment.id.is_some()
            || fragment.name.is_some()
            || text.is_some_and(|text| !text.is_empty())
            || fragment.object_arguments.is_some_and(|raw| !raw.is_empty());
        if says {
            return desk.out.diagnose(Code::LATE_DELTA, None, "");
        }
        Ok(())
    }

    /// Takes a whole message, which corrects and completes the streamed parts or is the only content.
    pub fn message(&mut self, out: &mut Output<'_>, index: i32, message: Message<'_>) -> Step {
        if self.over {
            return Ok(());
        }
        let At { choice, mut desk } = self.at(out, index)?;
        if !choice.closed {
            return terminal_message::reconcile(&mut desk, choice, message);
        }
        let texts = [&message.content, &message.reasoning, &message.refusal];
        let says = texts
            .iter()
            .any(|text| text.as_ref().is_some_and(|text| !text.is_empty()));
        if says || !message.fragments.is_empty() {
            return desk.out.diagnose(Code::LATE_DELTA, None, "");
        }
        Ok(())
    }

    /// Restarts the choice from the beginning (AM10).
    pub fn restart(&mut self, out: &mut Output<'_>, index: i32) -> Step {
        if self.over {
            return Ok(());
        }
        let At { choice, mut desk } = self.at(out, index)?;
        if choice.closed {
            // Content that was emitted as final cannot be withdrawn.
            return desk.out.diagnose(Code::LATE_DELTA, None, "");
        }
        desk.out.diagnose(Code::STREAM_RESTARTED, None, "")?;
        for item in choice.book.opened() {
            item_text::take_back(&mut desk, choice, item);
        }
        choice.textual.take_back(desk.out);
        for slot in choice.undecided() {
            call_events::retract(desk.out, choice, slot);
        }
        choice.forget_calls();
        choice.book.start_again();
        Ok(())
    }

    /// Restarts the current step: discards its parts and calls, except calls and results that were emitted as final.
    pub fn restart_step(&mut self, out: &mut Output<'_>, index: i32) -> Step {
        let Some(At { choice, mut desk }) = self.item_choice(out, index)? else {
            return Ok(());
        };
        desk.out.diagnose(Code::STREAM_RESTARTED, None, "")?;
        for item in choice.book.opened() {
            item_text::take_back(&mut desk, choice, item);
        }
        choice.textual.take_back_from(choice.step);
        for slot in (0..choice.calls.len()).rev() {
            let Some(call) = choice.get(slot).filter(|call| call.part >= choice.step) else {
                break;
            };
            if !call.dropped && call.verdict.is_none() {
                call_events::retract(desk.out, choice, slot);
            }
        }
        choice.book.drop_open();
        choice.step = desk.out.parts();
        Ok(())
    }

    /// Marks this place as a valid end of the input, for a dialect without a terminal marker (Gemini).
    pub fn whole_here(&mut self) {
        if self.end_on_wire != EndOnWire::BrokenOff {
            self.end_on_wire = EndOnWire::Whole;
        }
    }

    /// Returns true if a call of the choice was emitted as final, so that the choice can no longer restart.
    pub fn has_told_call(&self, index: i32) -> bool {
        let choice = self.choices.find(index);
        choice.is_some_and(|choice| choice.has_told)
    }

    // The end

    /// Keeps members that no event could carry, for the `Finished` event of the choice.
    pub fn choice_metadata(&mut self, out: &mut Output<'_>, index: i32, metadata: &str) -> Step {
        if self.over {
            return Ok(());
        }
        let At { choice, mut desk } = self.at(out, index)?;
        leave(&mut desk, choice, metadata)
    }

    /// Counts what a decoder keeps until the end, before it does; a negative growth releases it.
    pub fn hold(&mut self, out: &mut Output<'_>, growth: Growth) -> Step {
        let mut desk = RuleContext {
            shared: &mut self.shared,
            out,
        };
        desk.spend_growth(growth)
    }

    /// Records that the wire reported a break: the response is truncated, even if everything was closed.
    pub fn cut(&mut self) {
        self.end_on_wire = EndOnWire::BrokenOff;
    }

    /// Takes the finish reason of a choice. `reason` is `raw_reason` mapped by the dialect's table; `natural` stands
    /// for any end that was not forced: `stop`, or `tool_calls` if there are calls.
    pub fn finish(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        raw_reason: &str,
        reason: Option<&'static str>,
    ) -> Step {
        if self.over {
            return Ok(());
        }
        let At { choice, mut desk } = self.at(out, index)?;
        finish_reason::take_reason(desk.out, choice, raw_reason, reason)?;
        let at_finish = desk.out.config.policy.close_calls_at == CloseCallsAt::Finish;
        if at_finish || (choice.message_seen && choice.has_shown()) {
            let end = finish_reason::end_of_calls(&choice.finish, true);
            end::close_choice(&mut desk, choice, end, false)?;
        }
        Ok(())
    }
}
