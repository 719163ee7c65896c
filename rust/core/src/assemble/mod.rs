//! Wire deltas to events: the parts and calls of one stream, its end, and what it came to.
//!
//! `Assembler` is the facade: every method is one wire delta of a decoder. It knows no dialect and no framing; the identity
//! rules stand in `identity`, the argument rules in `arguments`, the close in `finalise`. Events and diagnostics leave
//! through `Out`. Parts and calls that the wire itself opens and closes come in through `items`. Layer 3.

mod announce;
mod arguments;
mod attached;
mod binding;
mod book;
mod call;
mod canonical;
mod choice;
mod choices;
mod content;
mod decision;
mod ending;
mod finalise;
mod finish;
mod fork;
mod hypotheses;
mod identity;
mod item;
mod item_again;
mod item_calls;
mod item_end;
mod item_entry;
mod item_fork;
mod item_parts;
mod items;
mod items_calls;
mod judge;
mod names;
mod objects;
mod pouring;
mod push;
mod reconcile;
mod records;
mod restate;
mod roster;
mod routing;
mod settings;
mod shared;
mod snapshot;
mod stitch;
mod swift;
mod swift_items;
mod text_part;
mod textual;

use attached::Attached;
use choice::{Choice, leave};
use choices::Choices;
use records::{ErrorRecord, StartRecord, UsageRecord};
use settings::Settings;
use shared::{Desk, Shared, Step};
use swift_items::Turn;
pub use swift_items::{Gone, Run, Trail};
use textual::{Attributes, Channel, Textual};

use serde_json::Value;

use crate::config::Config;
use crate::delta::{Completeness, Fragment, Message};
use crate::event::{Event, Sign, Usage};
use crate::fault::{Class, Fault};
use crate::json::Text;
use crate::out::Out;
use crate::policy::CloseCallsAt;
use crate::rare::Rare;
use crate::spec::{self, Code};

/// The parts and calls of one stream.
#[derive(Debug, Default)]
pub struct Assembler {
    shared: Shared,
    choices: Choices,
    /// Changes with whatever happens to a choice, but for the next piece of what is under way.
    turn: Turn,
    attached: Rare<Attached>,
    started: Option<Box<StartRecord>>,
    usage: Option<Box<UsageRecord>>,
    error: Option<Box<ErrorRecord>>,
    end_on_wire: EndOnWire,
    /// Nothing that comes now counts.
    over: bool,
    completeness: Completeness,
}

/// What the wire said about its end, beside the terminal marker and the reasons of the choices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EndOnWire {
    #[default]
    Unsaid,
    /// The dialect has no terminal marker, and an input that ends here ends with the answer.
    Whole,
    /// It broke off: whatever was closed, the answer is not whole.
    BrokenOff,
}

/// The choice of that index, and what its rules work at.
struct At<'a, 'o> {
    choice: &'a mut Choice,
    desk: Desk<'a, 'o>,
}

impl Assembler {
    pub fn new(config: &Config) -> Assembler {
        Assembler {
            shared: Shared::new(Settings::of(config)),
            ..Assembler::default()
        }
    }

    #[inline]
    fn at<'a, 'o>(&'a mut self, out: &'a mut Out<'o>, index: i32) -> Result<At<'a, 'o>, Fault> {
        self.turn.pass();
        let mut desk = Desk {
            shared: &mut self.shared,
            out,
        };
        let place = match self.choices.place(index) {
            Some(place) => place,
            None => {
                desk.count_choice()?;
                let mode = desk.switches().content_mode;
                let choice = Choice::new(index, Textual::new(index, mode));
                let place = self.choices.add(choice);
                desk.out.sign(Sign::Choice(index));
                place
            }
        };
        let choice = self.choices.turn(place);
        // Cannot fail: the place was just found or filled.
        let choice = choice.ok_or_else(|| Fault::new(Class::Internal, "internal"))?;
        Ok(At { choice, desk })
    }

    // The response

    /// The first chunk: what the response calls itself.
    pub fn started(
        &mut self,
        out: &mut Out<'_>,
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

    /// The metadata of the first chunk.
    pub fn start_metadata(&self) -> Option<&str> {
        self.started.as_ref()?.metadata()
    }

    /// Token counts. The last that says something holds; they are never summed.
    pub fn usage(&mut self, out: &mut Out<'_>, usage: Usage<'_>) -> Step {
        let record = UsageRecord::new(usage);
        if !self.over && (self.usage.is_none() || !record.is_blank()) {
            if !record.is_blank() {
                out.sign(Sign::Counted);
            }
            self.usage = Some(Box::new(record));
        }
        Ok(())
    }

    /// Token counts that come in pieces: of each, the last that was said holds. They are never summed.
    pub fn merge_usage(&mut self, out: &mut Out<'_>, usage: Usage<'_>) -> Step {
        if self.over {
            return Ok(());
        }
        let more = self.usage.get_or_insert_default().merge(usage);
        let mut desk = Desk {
            shared: &mut self.shared,
            out,
        };
        desk.spend_text(more)
    }

    /// Which dialect speaks: whether ids are optional there.
    pub fn speak(&mut self, dialect: &str) {
        let facts = spec::dialects().get(dialect);
        let optional = facts.and_then(|facts| facts.get("ids_optional"));
        self.shared.ids_optional = optional.and_then(Value::as_bool).unwrap_or(false);
    }

    /// Nothing that comes now counts.
    fn is_over(&self) -> bool {
        self.over
    }

    /// A payload or a member that nobody knows.
    pub fn unknown(&mut self, out: &mut Out<'_>, event: Option<&str>, raw: &[u8]) -> Step {
        out.emit(&Event::Unknown { event, raw });
        Ok(())
    }

    // Text

    /// A piece of text.
    #[inline]
    pub fn text(
        &mut self,
        out: &mut Out<'_>,
        choice: i32,
        text: Text<'_>,
        metadata: Option<&str>,
    ) -> Step {
        self.textual(out, choice, Channel::Text, "raw", text, metadata)
    }

    /// A piece of reasoning.
    pub fn reasoning(
        &mut self,
        out: &mut Out<'_>,
        choice: i32,
        kind: &'static str,
        text: Text<'_>,
        metadata: Option<&str>,
    ) -> Step {
        self.textual(out, choice, Channel::Reasoning, kind, text, metadata)
    }

    /// A piece of a refusal.
    pub fn refusal(
        &mut self,
        out: &mut Out<'_>,
        choice: i32,
        text: Text<'_>,
        metadata: Option<&str>,
    ) -> Step {
        self.textual(out, choice, Channel::Refusal, "raw", text, metadata)
    }

    #[inline]
    fn textual(
        &mut self,
        out: &mut Out<'_>,
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
            announce::flush_unstarted(desk.out, choice, None);
            let textual = &mut choice.textual;
            carried = textual.push(&mut desk, channel, kind, text, metadata)?;
        }
        match metadata {
            Some(metadata) if !carried => leave(&mut desk, choice, metadata),
            _ => Ok(()),
        }
    }

    /// Whether the text is the whole of what the choice said, in two pieces or more (AM9).
    pub fn restates(&self, choice: i32, text: &Text<'_>) -> bool {
        let choice = self.choices.find(choice);
        choice.is_some_and(|choice| choice.textual.restates(text))
    }

    /// What the choice shows as its open text was reasoning.
    pub fn retype_text(&mut self, out: &mut Out<'_>, index: i32) -> Step {
        if self.over {
            return Ok(());
        }
        let At { choice, mut desk } = self.at(out, index)?;
        choice.textual.retype(&mut desk)
    }

    /// Attributes of the open or the next reasoning part of the choice. `details` is the text of a JSON array.
    pub fn reasoning_attributes(
        &mut self,
        out: &mut Out<'_>,
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

    /// Annotations of the open or the next text part: the text of a JSON array.
    pub fn annotations(&mut self, out: &mut Out<'_>, index: i32, list: &str) -> Step {
        if self.over {
            return Ok(());
        }
        let At { choice, mut desk } = self.at(out, index)?;
        choice.textual.annotate(&mut desk, list)
    }

    // Calls

    /// One entry of a list of tool-call deltas.
    #[inline]
    pub fn call(&mut self, out: &mut Out<'_>, index: i32, fragment: &Fragment<'_>) -> Step {
        if self.over {
            return Ok(());
        }
        let At { choice, mut desk } = self.at(out, index)?;
        if !choice.closed {
            return routing::take_fragment(&mut desk, choice, fragment);
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

    /// A whole message: corrects and completes what was streamed, or is all there is.
    pub fn message(&mut self, out: &mut Out<'_>, index: i32, message: Message<'_>) -> Step {
        if self.over {
            return Ok(());
        }
        let At { choice, mut desk } = self.at(out, index)?;
        if !choice.closed {
            return reconcile::reconcile(&mut desk, choice, message);
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

    /// The choice starts again from nothing (AM10).
    pub fn restart(&mut self, out: &mut Out<'_>, index: i32) -> Step {
        if self.over {
            return Ok(());
        }
        let At { choice, mut desk } = self.at(out, index)?;
        if choice.closed {
            // What was told as final stays.
            return desk.out.diagnose(Code::LATE_DELTA, None, "");
        }
        desk.out.diagnose(Code::STREAM_RESTARTED, None, "")?;
        for item in choice.book.opened() {
            item_parts::take_back(&mut desk, choice, item);
        }
        choice.textual.take_back(desk.out);
        for slot in choice.undecided() {
            announce::retract(desk.out, choice, slot);
        }
        choice.forget_calls();
        choice.book.start_again();
        Ok(())
    }

    /// The step of the answer starts again: it showed nothing, but for calls and results that were told as final.
    pub fn restart_step(&mut self, out: &mut Out<'_>, index: i32) -> Step {
        let Some(At { choice, mut desk }) = self.item_choice(out, index)? else {
            return Ok(());
        };
        desk.out.diagnose(Code::STREAM_RESTARTED, None, "")?;
        for item in choice.book.opened() {
            item_parts::take_back(&mut desk, choice, item);
        }
        choice.textual.take_back_from(choice.step);
        for slot in (0..choice.calls.len()).rev() {
            let Some(call) = choice.get(slot).filter(|call| call.part >= choice.step) else {
                break;
            };
            if !call.dropped && call.verdict.is_none() {
                announce::retract(desk.out, choice, slot);
            }
        }
        choice.book.drop_open();
        choice.step = desk.shared.parts();
        Ok(())
    }

    /// The dialect has no terminal marker (Gemini): an input that ends at this place ends with the answer.
    pub fn whole_here(&mut self) {
        if self.end_on_wire != EndOnWire::BrokenOff {
            self.end_on_wire = EndOnWire::Whole;
        }
    }

    /// A call of the choice was told as final: the choice cannot start again as if nothing had been said.
    pub fn has_told_call(&self, index: i32) -> bool {
        let choice = self.choices.find(index);
        choice.is_some_and(|choice| choice.has_told)
    }

    // The end

    /// Members that no event could carry: they go to the choice's `Finished`.
    pub fn choice_metadata(&mut self, out: &mut Out<'_>, index: i32, metadata: &str) -> Step {
        if self.over {
            return Ok(());
        }
        let At { choice, mut desk } = self.at(out, index)?;
        leave(&mut desk, choice, metadata)
    }

    /// The wire said that it broke off: whatever was closed, the answer is not whole.
    pub fn cut(&mut self) {
        self.end_on_wire = EndOnWire::BrokenOff;
    }

    /// The choice said why it ended; `reason` is what the dialect's table makes of it: `natural` is a word for every end
    /// that nobody forced, stop, or calls where there are some.
    pub fn finish(
        &mut self,
        out: &mut Out<'_>,
        index: i32,
        raw_reason: &str,
        reason: Option<&'static str>,
    ) -> Step {
        if self.over {
            return Ok(());
        }
        let At { choice, mut desk } = self.at(out, index)?;
        finish::take_reason(desk.out, choice, raw_reason, reason)?;
        let at_finish = desk.out.config.policy.close_calls_at == CloseCallsAt::Finish;
        if at_finish || (choice.message_seen && choice.has_shown()) {
            let end = finish::end_of_calls(&choice.finish, true);
            ending::close_choice(&mut desk, choice, end, false)?;
        }
        Ok(())
    }
}
