//! The end of a stream: the marker, the input's end, an upstream error; what closes then, and what it came to.
//!
//! The rest of the `Assembler`. It knows in which order things close, and no rule of how.

use crate::assemble::Assembler;
use crate::assemble::EndOnWire;
use crate::assemble::choice::Choice;
use crate::assemble::finish_reason;
use crate::assemble::finish_reason::CallsEnd;
use crate::assemble::part::arguments::text_of;
use crate::assemble::part::close_calls;
use crate::assemble::part::item_end::end_items;
use crate::assemble::records::ErrorRecord;
use crate::assemble::rule_context::RuleContext;
use crate::assemble::rule_context::Step;
use crate::assemble::snapshot::emit_finished;
use crate::assemble::snapshot::emit_parts;
use crate::model::delta::Completeness;
use crate::model::delta::InputEnd;
use crate::model::delta::UnfinishedInput;
use crate::model::event::Sink;
use crate::model::fault::Fault;
use crate::model::fault::Where;
use crate::model::output::Output;
use crate::model::policy::MissingTerminal;
use crate::model::spec::Code;
use std::borrow::Cow;

/// How far a choice came when the input ended, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ChoiceEnd {
    /// It gave its reason.
    Reasoned,
    /// Whatever the wire opened was closed; nothing said that this is all.
    Closed,
    /// Something is open, or went on behind the reason and is not whole.
    Open,
}

/// What the end of the input means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The dialect has no terminal marker, and this is the end.
    Whole,
    /// Without the marker, but with the dialect's own word for the end.
    Reasoned,
    /// Without any word for the end, which the policy reads as one.
    Unsaid,
    Cut,
}

/// By what everything closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    /// The terminal marker: choices without a reason are over as well.
    Marked,
    /// Every choice gave its reason.
    Reasoned,
    /// The end that a policy assumes: nothing is open, and a choice without a reason has none.
    Unsaid,
    /// The stream was cut; only choices with a reason are over.
    Cut,
}

impl Assembler {
    /// A call, or text of one, was taken that no event has shown yet.
    pub(crate) fn owes(&self) -> bool {
        self.choices.owe()
    }

    /// The terminal marker, or the end of a whole body.
    pub fn done(&mut self, out: &mut Output<'_>) -> Step {
        if self.over {
            return Ok(());
        }
        self.over = true;
        self.close(out, Closing::Marked)?;
        if self.choices.is_empty() {
            // Nothing was said, nor why.
            out.diagnose(Code::FINISH_MISSING, None, "")?;
        }
        self.completeness = Completeness::Complete;
        Ok(())
    }

    /// The end of the input.
    pub fn end(&mut self, out: &mut Output<'_>, rest: UnfinishedInput, input: InputEnd) -> Step {
        if self.over {
            return Ok(());
        }
        let missing = Code::TERMINAL_MISSING;
        let assumes = out.config.policy.switches.missing_terminal;
        match self.outcome(assumes, rest, input) {
            Outcome::Whole => self.done(out),
            Outcome::Reasoned => {
                self.over = true;
                self.close(out, Closing::Reasoned)?;
                self.completeness = Completeness::Assumed;
                out.diagnose(Code::NO_TERMINAL_MARKER, None, "")
            }
            Outcome::Unsaid if !out.dooms(missing) => {
                self.over = true;
                self.close(out, Closing::Unsaid)?;
                self.completeness = Completeness::Assumed;
                out.diagnose(missing, None, "")
            }
            Outcome::Unsaid => self.end_cut(out, missing, rest, input),
            Outcome::Cut => self.end_cut(out, Code::TRUNCATED, rest, input),
        }
    }

    /// What an input that ends here came to.
    fn outcome(&self, assumes: MissingTerminal, rest: UnfinishedInput, input: InputEnd) -> Outcome {
        // An unfinished event after the finish reason may hold more of the answer.
        if rest != UnfinishedInput::Nothing
            || input == InputEnd::Broken
            || self.end_on_wire == EndOnWire::BrokenOff
        {
            return Outcome::Cut;
        }
        match self.choices.iter().map(end_of).max() {
            Some(ChoiceEnd::Reasoned) if self.end_on_wire == EndOnWire::Whole => Outcome::Whole,
            Some(ChoiceEnd::Reasoned) => Outcome::Reasoned,
            Some(ChoiceEnd::Closed) if assumes == MissingTerminal::Assume => Outcome::Unsaid,
            Some(ChoiceEnd::Closed | ChoiceEnd::Open) | None => Outcome::Cut,
        }
    }

    /// The input ended too early: what is open was cut. `code` is the one whose action raises it.
    fn end_cut(
        &mut self,
        out: &mut Output<'_>,
        code: Code,
        rest: UnfinishedInput,
        input: InputEnd,
    ) -> Step {
        self.over = true;
        self.completeness = Completeness::Truncated;
        out.cut();
        let place = match (rest, input) {
            (UnfinishedInput::MidEvent, _) => Where::MidEvent,
            (UnfinishedInput::MidUtf8, _) => Where::MidUtf8,
            (UnfinishedInput::Empty, InputEnd::Clean) => Where::Empty,
            (UnfinishedInput::Nothing, InputEnd::Clean) => self.cut_where(),
            (UnfinishedInput::Nothing | UnfinishedInput::Empty, InputEnd::Broken) => {
                match self.cut_where() {
                    Where::BetweenEvents => Where::Transport,
                    place => place,
                }
            }
        };
        let open = self.open_parts();
        let raises = out.dooms(code);
        self.close(out, Closing::Cut)?;
        if raises {
            return Err(Fault::truncated(code, place, open));
        }
        out.diagnose(code, None, place.name())
    }

    /// The gateway sent an error: everything closes.
    pub fn upstream_error(
        &mut self,
        out: &mut Output<'_>,
        code: Option<&str>,
        kind: Option<&str>,
        message: &str,
        raw: &[u8],
    ) -> Step {
        if self.over {
            return Ok(());
        }
        self.over = true;
        self.completeness = Completeness::Truncated;
        out.cut();
        let record = ErrorRecord::new(code, kind, message, raw);
        let raises = out.dooms(Code::UPSTREAM_ERROR);
        let closed = self.close(out, Closing::Cut);
        let error = self.error.insert(Box::new(record));
        closed?;
        if !raises {
            out.diagnose(Code::UPSTREAM_ERROR, None, "")?;
        }
        out.emit(&error.event());
        if raises {
            return Err(error.fault());
        }
        Ok(())
    }

    /// Nothing was said yet, and no error either.
    pub(crate) fn is_blank(&self) -> bool {
        self.choices.is_empty() && self.error.is_none()
    }

    pub fn completeness(&self) -> Completeness {
        self.completeness
    }

    /// Everything closes.
    fn close(&mut self, out: &mut Output<'_>, closing: Closing) -> Step {
        self.choices.sort_by_key(|choice| choice.index);
        let mut desk = RuleContext {
            shared: &mut self.shared,
            out,
        };
        for choice in self.choices.iter_mut() {
            let end = finish_reason::end_of_calls(&choice.finish, closing != Closing::Cut);
            close_choice(&mut desk, choice, end, closing == Closing::Cut)?;
        }
        if let Some(usage) = &self.usage {
            usage.show(|event| out.emit(event));
        }
        for choice in self.choices.iter_mut() {
            let is_said = matches!(closing, Closing::Marked | Closing::Reasoned);
            if is_said || choice.finish.raw.is_some() {
                conclude(out, choice)?;
            }
        }
        Ok(())
    }

    fn cut_where(&self) -> Where {
        let cut = || {
            let choices = self.choices.iter();
            choices.filter(|choice| end_of(choice) == ChoiceEnd::Open)
        };
        let mid_call = |choice: &Choice| {
            let mut calls = choice
                .shown()
                .into_iter()
                .filter_map(|slot| choice.get(slot));
            calls.any(|call| !call.is_complete() && call.verdict.is_none())
        };
        if cut().any(mid_call) {
            Where::MidArguments
        } else if cut().any(|choice| choice.textual.open_parts().next().is_some()) {
            Where::MidText
        } else {
            Where::BetweenEvents
        }
    }

    fn open_parts(&self) -> Vec<u32> {
        let mut parts: Vec<u32> = Vec::new();
        let choices = self.choices.iter();
        for choice in choices.filter(|choice| end_of(choice) == ChoiceEnd::Open) {
            parts.extend(choice.textual.open_parts());
            if !choice.closed {
                let calls = choice
                    .shown()
                    .into_iter()
                    .filter_map(|slot| choice.get(slot));
                let open = calls.filter(|call| call.verdict.is_none());
                parts.extend(open.map(|call| call.part));
            }
        }
        parts.sort_unstable();
        parts
    }

    /// The ends of choices without a reason, where the end is assumed: as they would be with the marker.
    pub(crate) fn assumed_ends(&self, sink: &mut dyn Sink) {
        if self.completeness == Completeness::Assumed {
            let choices = self.choices.iter();
            for choice in choices.filter(|choice| choice.finish.raw.is_none()) {
                emit_finished(choice, |event| sink.event(event));
            }
        }
    }

    /// The argument text of a call as far as deltas showed it; `None` if no call with that part was shown.
    pub fn shown_arguments(&self, part: u32) -> Option<Cow<'_, str>> {
        let calls = self.choices.iter().flat_map(|choice| &choice.calls);
        let call = calls
            .filter(|call| call.started && !call.dropped)
            .find(|call| call.part == part)?;
        let shown = call.text.data.get(..call.text.shown);
        Some(text_of(shown.unwrap_or_default()))
    }

    /// The close events that rebuild the answer as it stands.
    pub fn snapshot(&self, sink: &mut dyn Sink) {
        if let Some(started) = &self.started {
            sink.event(&started.event());
        }
        let mut choices: Vec<&Choice> = self.choices.iter().collect();
        choices.sort_by_key(|choice| choice.index);
        emit_parts(&self.shared, &choices, &self.attached, sink);
        if let Some(usage) = &self.usage {
            usage.show(|event| sink.event(event));
        }
        for choice in choices {
            if choice.finish.raw.is_some() || choice.finish.concluded.is_some() {
                emit_finished(choice, |event| sink.event(event));
            }
        }
        if let Some(error) = &self.error {
            sink.event(&error.event());
        }
    }
}

/// The parts of a choice in order, then its calls. Text after that opens a new part, calls are late.
pub fn close_choice(
    desk: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    end: CallsEnd,
    broken_off: bool,
) -> Step {
    for (member, raw) in choice.textual.end(desk)? {
        choice.metadata.put(member, raw);
    }
    end_items(desk, choice, end != CallsEnd::Cut)?;
    if choice.closed {
        return Ok(());
    }
    choice.closed = true;
    close_calls::close_calls(desk, choice, end, broken_off)
}

fn conclude(out: &mut Output<'_>, choice: &mut Choice) -> Step {
    let concluded = finish_reason::conclude(&choice.finish, &choice.client_calls());
    choice.finish.concluded = Some(concluded);
    match &choice.finish.raw {
        None => {
            out.diagnose(Code::FINISH_MISSING, None, "")?;
            if concluded == "tool_calls" {
                out.touch("finish_missing"); // readers run calls only where the reason is that there are some
            }
        }
        Some(raw) if choice.finish.reason != Some(concluded) && !choice.finish.natural => {
            out.diagnose(Code::FINISH_CONTRADICTS, None, raw)?;
        }
        Some(_) => {}
    }
    emit_finished(choice, |event| out.emit(event));
    Ok(())
}

/// How far the choice came. What the wire closed without a reason is closed, and no more.
fn end_of(choice: &Choice) -> ChoiceEnd {
    let mut calls = choice
        .shown()
        .into_iter()
        .filter_map(|slot| choice.get(slot));
    if calls.any(|call| call.late && !call.is_complete()) {
        return ChoiceEnd::Open;
    }
    if choice.finish.raw.is_some() {
        ChoiceEnd::Reasoned
    } else if choice.textual.current().is_none() && choice.book.all_closed() {
        ChoiceEnd::Closed
    } else {
        ChoiceEnd::Open
    }
}
