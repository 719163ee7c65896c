//! The end of a stream: the marker, the input's end, an upstream error; what closes then, and what it came to.
//!
//! The rest of the `Assembler`. It knows in which order things close, and no rule of how.

use super::choice::Choice;
use super::item_end::end_items;
use super::records::ErrorRecord;
use super::shared::{Desk, Step};
use super::snapshot::{emit_finished, emit_parts};
use super::{Assembler, finalise, finish};
use crate::delta::{Completeness, Rest};
use crate::event::Sink;
use crate::fault::{Fault, Where};
use crate::out::Out;
use crate::spec::Code;

impl Assembler {
    /// A call, or text of one, was taken that no event has shown yet.
    pub(crate) fn owes(&self) -> bool {
        self.choices.owe()
    }

    /// The terminal marker, or the end of a whole body.
    pub fn done(&mut self, out: &mut Out<'_>) -> Step {
        if self.over {
            return Ok(());
        }
        self.over = true;
        self.close(out, true, false)?;
        if self.choices.is_empty() {
            // Nothing was said, nor why.
            out.diagnose(Code::FINISH_MISSING, None, "")?;
        }
        self.completeness = Completeness::Complete;
        Ok(())
    }

    /// The end of the input.
    pub fn end(&mut self, out: &mut Out<'_>, rest: Rest) -> Step {
        if self.over {
            return Ok(());
        }
        if self.whole_here && rest == Rest::Nothing && !self.choices.iter().any(is_cut) {
            return self.done(out);
        }
        self.over = true;
        let cut = self.broken_off || self.choices.iter().any(is_cut);
        if !self.choices.is_empty() && !cut {
            self.close(out, false, true)?;
            self.completeness = Completeness::Assumed;
            if rest != Rest::Nothing {
                out.diagnose(Code::PARTIAL_EVENT_DROPPED, None, "")?;
            }
            return out.diagnose(Code::NO_TERMINAL_MARKER, None, "");
        }
        self.completeness = Completeness::Truncated;
        out.cut();
        let place = match rest {
            Rest::Nothing => self.cut_where(),
            Rest::Empty => Where::Empty,
            Rest::MidEvent => Where::MidEvent,
            Rest::MidUtf8 => Where::MidUtf8,
        };
        let open = self.open_parts();
        let raises = out.dooms(Code::TRUNCATED);
        self.close(out, false, false)?;
        if raises {
            return Err(Fault::truncated(place, open));
        }
        out.diagnose(Code::TRUNCATED, None, place.name())
    }

    /// The gateway sent an error: everything closes.
    pub fn upstream_error(
        &mut self,
        out: &mut Out<'_>,
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
        let closed = self.close(out, false, false);
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

    /// Everything closes. `ended`: by the terminal marker, so that choices without a reason are over as well. `assumed`: the
    /// marker is missing, but nothing is open; that holds for what the wire closed without a reason too.
    fn close(&mut self, out: &mut Out<'_>, ended: bool, assumed: bool) -> Step {
        self.choices.sort_by_key(|choice| choice.index);
        let over = |choice: &Choice| {
            ended || choice.finish.raw.is_some() || (assumed && choice.book.all_closed())
        };
        let over: Vec<bool> = self.choices.iter().map(over).collect();
        let mut desk = Desk {
            shared: &mut self.shared,
            out,
        };
        for (choice, over) in self.choices.iter_mut().zip(&over) {
            close_choice(&mut desk, choice, *over, !(ended || assumed))?;
        }
        if let Some(usage) = &self.usage {
            usage.show(|event| out.emit(event));
        }
        for (choice, over) in self.choices.iter_mut().zip(over) {
            if over {
                conclude(out, choice)?;
            }
        }
        Ok(())
    }

    fn cut_where(&self) -> Where {
        let cut = || {
            let choices = self.choices.iter();
            choices.filter(|choice| is_cut(choice))
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
        for choice in self.choices.iter().filter(|choice| is_cut(choice)) {
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
    desk: &mut Desk<'_, '_>,
    choice: &mut Choice,
    ended: bool,
    broken_off: bool,
) -> Step {
    for (member, raw) in choice.textual.end(desk)? {
        choice.metadata.put(member, raw);
    }
    end_items(desk, choice, ended)?;
    if choice.closed {
        return Ok(());
    }
    choice.closed = true;
    let cut = finish::is_cut(choice.finish.reason);
    finalise::close_calls(desk, choice, ended, cut, broken_off)
}

fn conclude(out: &mut Out<'_>, choice: &mut Choice) -> Step {
    let concluded = finish::conclude(&choice.finish, &choice.client_calls());
    choice.finish.concluded = Some(concluded);
    match &choice.finish.raw {
        None => out.diagnose(Code::FINISH_MISSING, None, "")?,
        Some(raw) if choice.finish.reason != Some(concluded) && !choice.finish.natural => {
            out.diagnose(Code::FINISH_CONTRADICTS, None, raw)?;
        }
        Some(_) => {}
    }
    emit_finished(choice, |event| out.emit(event));
    Ok(())
}

/// It said no reason (nor closed all that it opened), or went on with a call behind it that is not whole.
fn is_cut(choice: &Choice) -> bool {
    let mut calls = choice
        .shown()
        .into_iter()
        .filter_map(|slot| choice.get(slot));
    let closed = || choice.book.all_closed() && choice.textual.current().is_none();
    (choice.finish.raw.is_none() && !closed()) || calls.any(|call| call.late && !call.is_complete())
}
