//! Ends a stream after the terminal marker, the end of the input or an upstream error: closes the open parts and calls,
//! and determines whether the response is complete.
//!
//! The modules in `part` close single parts and calls; this module determines their order.

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

/// How complete a choice is when the input ends; later variants are less complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ChoiceEnd {
    /// The choice has a finish reason.
    Reasoned,
    /// The choice has no finish reason, but every part, call and item that the stream opened is closed.
    Closed,
    /// A part, call or item is open, or a call that continued after the finish reason is incomplete.
    Open,
}

/// How the assembler interprets the end of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The response is complete. The dialect has no terminal marker.
    Whole,
    /// The response is assumed to be complete, because every choice has a finish reason.
    Reasoned,
    /// The response is assumed to be complete, because the policy does not require a terminal marker or finish reason.
    Unstated,
    Cut,
}

/// Why all choices are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    /// The terminal marker arrived, so choices without a finish reason have ended too.
    Marked,
    /// Every choice has a finish reason.
    Reasoned,
    /// The policy treats the response as complete. No `Finished` event is emitted for choices without a finish reason.
    Unstated,
    /// The stream was truncated. Only choices with a finish reason have ended.
    Cut,
}

impl Assembler {
    /// Returns true if input is still held back: some call or text has not been emitted yet.
    pub(crate) fn has_pending(&self) -> bool {
        self.choices.has_pending()
    }

    /// Ends the response as complete, because the terminal marker arrived or a complete body was read.
    pub fn done(&mut self, out: &mut Output<'_>) -> ParseResult {
        if self.over {
            return Ok(());
        }
        self.over = true;
        self.close(out, Closing::Marked)?;
        if self.choices.is_empty() {
            // The response has neither content nor a finish reason.
            out.diagnose(Code::FINISH_MISSING, None, "")?;
        }
        self.completeness = Completeness::Complete;
        Ok(())
    }

    /// Ends the response because the input has ended. Does nothing if a terminal marker or an error has already ended
    /// the response.
    pub fn end(
        &mut self,
        out: &mut Output<'_>,
        unfinished: UnfinishedInput,
        input: InputEnd,
    ) -> ParseResult {
        if self.over {
            return Ok(());
        }
        let missing = Code::TERMINAL_MISSING;
        let assumes = out.config.policy.switches.missing_terminal;
        match self.outcome(assumes, unfinished, input) {
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
            Outcome::Unstated => self.end_cut(out, missing, unfinished, input),
            Outcome::Cut => self.end_cut(out, Code::TRUNCATED, unfinished, input),
        }
    }

    /// Returns what the end of the input means: whether the response is complete, assumed to be complete, or truncated.
    fn outcome(
        &self,
        assumes: MissingTerminal,
        unfinished: UnfinishedInput,
        input: InputEnd,
    ) -> Outcome {
        // An unfinished event may contain more of the response, even after the finish reason.
        if unfinished != UnfinishedInput::Nothing
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

    /// Ends the response as truncated and closes all choices. `code` is the diagnostic to record or raise.
    fn end_cut(
        &mut self,
        out: &mut Output<'_>,
        code: Code,
        unfinished: UnfinishedInput,
        input: InputEnd,
    ) -> ParseResult {
        self.over = true;
        self.completeness = Completeness::Truncated;
        out.cut();
        let position = match (unfinished, input) {
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

    /// Ends the response as truncated and closes all choices, because the gateway sent an error.
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

    /// Returns true if no choice and no error has arrived.
    pub(crate) fn is_blank(&self) -> bool {
        self.choices.is_empty() && self.error.is_none()
    }

    /// Returns true if a choice has a finish reason, or the response has ended.
    pub(crate) fn states_end(&self) -> bool {
        self.over
            || self
                .choices
                .iter()
                .any(|choice| choice.finish.raw.is_some())
    }

    pub fn completeness(&self) -> Completeness {
        self.completeness
    }

    /// Closes all choices, emits the token counts, and then emits `Finished` for each choice that has ended.
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
                conclude(out, choice, self.shared.reason_required)?;
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
            calls.any(|call| !call.is_complete() && call.outcome.is_none())
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
                let open = calls.filter(|call| call.outcome.is_none());
                parts.extend(open.map(|call| call.part));
            }
        }
        parts.sort_unstable();
        parts
    }

    /// Emits a `Finished` event for each choice without a finish reason, if the response is assumed to be complete. The
    /// emitted events are not part of the response. Conversion uses these events if the target format requires a finish
    /// reason.
    pub(crate) fn assumed_ends(&self, sink: &mut dyn Sink) {
        if self.completeness == Completeness::Assumed {
            let choices = self.choices.iter();
            for choice in choices.filter(|choice| choice.finish.raw.is_none()) {
                emit_finished(choice, |event| sink.event(event));
            }
        }
    }

    /// Returns the arguments emitted so far for the call with part number `part`, or `None` if no such call has been
    /// emitted.
    pub fn shown_arguments(&self, part: u32) -> Option<Cow<'_, str>> {
        let calls = self.choices.iter().flat_map(|choice| &choice.calls);
        let call = calls
            .filter(|call| call.started && !call.dropped)
            .find(|call| call.part == part)?;
        let shown = call.text.data.get(..call.text.shown);
        Some(text_of(shown.unwrap_or_default()))
    }

    /// Returns false if the snapshot cannot contain calls.
    pub fn may_show_calls(&self) -> bool {
        self.choices.iter().any(|choice| !choice.calls.is_empty())
    }

    /// Emits the events from which the current response can be built: the closing event of each part, even if the part
    /// is still open, and the events about the whole response.
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

/// Closes the parts of a choice in order, then its calls. Text that arrives later opens a new part, but calls that
/// arrive later are only reported as late.
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

fn conclude(out: &mut Output<'_>, choice: &mut Choice, reason_required: bool) -> ParseResult {
    let concluded = finish_reason::conclude(&choice.finish, &choice.client_calls());
    choice.finish.concluded = Some(concluded);
    match &choice.finish.raw {
        None => {
            out.diagnose(Code::FINISH_MISSING, None, "")?;
            if concluded == "tool_calls" || reason_required {
                out.mark_misread("finish_missing"); // clients raise, or do not run the calls
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

/// Returns how complete the choice is. A call that continued after the finish reason and is incomplete makes the choice
/// open.
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
