//! Ends a stream: handles the terminal marker, the end of the input and upstream errors, closes the open parts and
//! calls, and sets the completeness.
//!
//! This module determines the order in which parts and calls close; the modules in `part` determine how each one
//! closes.

use crate::assemble::Assembler;
use crate::assemble::EndOnWire;
use crate::assemble::choice::Choice;
use crate::assemble::finish_reason;
use crate::assemble::finish_reason::CallsEnd;
use crate::assemble::part::arguments::text_of;
use crate::assemble::part::close_calls;
use crate::assemble::part::item_end::end_items;
use crate::assemble::records::ErrorRecord;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
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

/// How complete a choice was when the input ended, from the best case to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ChoiceEnd {
    /// The choice has a finish reason.
    Reasoned,
    /// The stream closed every item that it opened, but sent no finish reason.
    Closed,
    /// Something is open, or a call continued after the finish reason and is incomplete.
    Open,
}

/// How the end of the input is interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The dialect has no terminal marker, and the response is complete.
    Whole,
    /// There is no terminal marker, but every choice has a finish reason.
    Reasoned,
    /// There is neither a terminal marker nor a finish reason, but the policy treats the response as complete.
    Unstated,
    Cut,
}

/// The reason for closing all choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    /// The terminal marker arrived. It also ends choices without a finish reason.
    Marked,
    /// Every choice has a finish reason.
    Reasoned,
    /// The policy treats the response as complete: nothing is open, and no finish reason is added to choices without
    /// one.
    Unstated,
    /// The stream was truncated; only choices with a finish reason have ended.
    Cut,
}

impl Assembler {
    /// Returns true if accepted input is still held back, such as a call or text that no event has shown.
    pub(crate) fn has_pending(&self) -> bool {
        self.choices.has_pending()
    }

    /// Handles the terminal marker or the end of a complete body.
    pub fn done(&mut self, out: &mut Output<'_>) -> ParseResult {
        if self.over {
            return Ok(());
        }
        self.over = true;
        self.close(out, Closing::Marked)?;
        if self.choices.is_empty() {
            // There is neither content nor a finish reason.
            out.diagnose(Code::FINISH_MISSING, None, "")?;
        }
        self.completeness = Completeness::Complete;
        Ok(())
    }

    /// Handles the end of the input.
    pub fn end(
        &mut self,
        out: &mut Output<'_>,
        rest: UnfinishedInput,
        input: InputEnd,
    ) -> ParseResult {
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
            Outcome::Unstated if !out.will_raise(missing) => {
                self.over = true;
                self.close(out, Closing::Unstated)?;
                self.completeness = Completeness::Assumed;
                out.diagnose(missing, None, "")
            }
            Outcome::Unstated => self.end_cut(out, missing, rest, input),
            Outcome::Cut => self.end_cut(out, Code::TRUNCATED, rest, input),
        }
    }

    /// Returns how to interpret the end of the input at this point.
    fn outcome(&self, assumes: MissingTerminal, rest: UnfinishedInput, input: InputEnd) -> Outcome {
        // An unfinished event after the finish reason may contain more of the response.
        if rest != UnfinishedInput::Nothing
            || input == InputEnd::Broken
            || self.end_on_wire == EndOnWire::BrokenOff
        {
            return Outcome::Cut;
        }
        match self.choices.iter().map(end_of).max() {
            Some(ChoiceEnd::Reasoned) if self.end_on_wire == EndOnWire::Whole => Outcome::Whole,
            Some(ChoiceEnd::Reasoned) => Outcome::Reasoned,
            Some(ChoiceEnd::Closed) if assumes == MissingTerminal::Assume => Outcome::Unstated,
            Some(ChoiceEnd::Closed | ChoiceEnd::Open) | None => Outcome::Cut,
        }
    }

    /// Closes all choices after the input ended too early. `code` is the diagnostic to report or raise.
    fn end_cut(
        &mut self,
        out: &mut Output<'_>,
        code: Code,
        rest: UnfinishedInput,
        input: InputEnd,
    ) -> ParseResult {
        self.over = true;
        self.completeness = Completeness::Truncated;
        out.cut();
        let position = match (rest, input) {
            (UnfinishedInput::MidEvent, _) => Where::MidEvent,
            (UnfinishedInput::MidUtf8, _) => Where::MidUtf8,
            (UnfinishedInput::Empty, InputEnd::Clean) => Where::Empty,
            (UnfinishedInput::Nothing, InputEnd::Clean) => self.cut_where(),
            (UnfinishedInput::Nothing | UnfinishedInput::Empty, InputEnd::Broken) => {
                match self.cut_where() {
                    Where::BetweenEvents => Where::Transport,
                    position => position,
                }
            }
        };
        let open = self.open_parts();
        let raises = out.will_raise(code);
        self.close(out, Closing::Cut)?;
        if raises {
            return Err(Fault::truncated(code, position, open));
        }
        out.diagnose(code, None, position.name())
    }

    /// Handles an error sent by the gateway and closes all choices.
    pub fn upstream_error(
        &mut self,
        out: &mut Output<'_>,
        code: Option<&str>,
        kind: Option<&str>,
        message: &str,
        raw: &[u8],
    ) -> ParseResult {
        if self.over {
            return Ok(());
        }
        self.over = true;
        self.completeness = Completeness::Truncated;
        out.cut();
        let record = ErrorRecord::new(code, kind, message, raw);
        let raises = out.will_raise(Code::UPSTREAM_ERROR);
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

    /// Returns true if neither content nor an error has arrived.
    pub(crate) fn is_blank(&self) -> bool {
        self.choices.is_empty() && self.error.is_none()
    }

    pub fn completeness(&self) -> Completeness {
        self.completeness
    }

    /// Closes all choices.
    fn close(&mut self, out: &mut Output<'_>, closing: Closing) -> ParseResult {
        self.choices.sort_by_key(|choice| choice.index);
        let mut ctx = RuleContext {
            shared: &mut self.shared,
            out,
        };
        for choice in self.choices.iter_mut() {
            let end = finish_reason::end_of_calls(&choice.finish, closing != Closing::Cut);
            close_choice(&mut ctx, choice, end, closing == Closing::Cut)?;
        }
        if let Some(usage) = &self.usage {
            usage.show(|event| out.emit(event));
        }
        for choice in self.choices.iter_mut() {
            let is_set = matches!(closing, Closing::Marked | Closing::Reasoned);
            if is_set || choice.finish.raw.is_some() {
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

    /// If the end is assumed, emits the `Finished` event that a terminal marker would cause for each choice without a
    /// finish reason.
    pub(crate) fn assumed_ends(&self, sink: &mut dyn Sink) {
        if self.completeness == Completeness::Assumed {
            let choices = self.choices.iter();
            for choice in choices.filter(|choice| choice.finish.raw.is_none()) {
                emit_finished(choice, |event| sink.event(event));
            }
        }
    }

    /// Returns the arguments that were emitted so far for call `part`, or `None` if no call has this number.
    pub fn shown_arguments(&self, part: u32) -> Option<Cow<'_, str>> {
        let calls = self.choices.iter().flat_map(|choice| &choice.calls);
        let call = calls
            .filter(|call| call.started && !call.dropped)
            .find(|call| call.part == part)?;
        let shown = call.text.data.get(..call.text.shown);
        Some(text_of(shown.unwrap_or_default()))
    }

    /// Emits the close events from which the current response can be rebuilt.
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

/// Closes the parts of a choice in order, then its calls. Text that arrives later opens a new part; later calls are
/// reported as late.
pub fn close_choice(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    end: CallsEnd,
    broken_off: bool,
) -> ParseResult {
    for (member, raw) in choice.textual.end(ctx)? {
        choice.metadata.put(member, raw);
    }
    end_items(ctx, choice, end != CallsEnd::Cut)?;
    if choice.closed {
        return Ok(());
    }
    choice.closed = true;
    close_calls::close_calls(ctx, choice, end, broken_off)
}

fn conclude(out: &mut Output<'_>, choice: &mut Choice) -> ParseResult {
    let concluded = finish_reason::conclude(&choice.finish, &choice.client_calls());
    choice.finish.concluded = Some(concluded);
    match &choice.finish.raw {
        None => {
            out.diagnose(Code::FINISH_MISSING, None, "")?;
            if concluded == "tool_calls" {
                out.mark_misread("finish_missing"); // clients run calls only if the finish reason is `tool_calls`
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

/// Returns how complete the choice is. A choice without a finish reason is at best `Closed`, even if all of its items
/// were closed.
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
    } else if choice.textual.current().is_none() && choice.item_index.all_closed() {
        ChoiceEnd::Closed
    } else {
        ChoiceEnd::Open
    }
}
