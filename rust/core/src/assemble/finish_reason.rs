//! Finish reasons: which of several holds, and what it means beside the calls that are there.
//!
//! The table of words comes from outside (each dialect has its own). It knows no parts.

use crate::assemble::choice::Choice;
use crate::assemble::choice::FinishState;
use crate::assemble::part::call::Call;
use crate::assemble::rule_context::Step;
use crate::model::event::WireFact;
use crate::model::output::Output;
use crate::model::spec::Code;

/// How little is left of the answer: of two reasons the heavier one holds.
fn weight(reason: &str) -> u8 {
    match reason {
        "stop" | "tool_calls" => 0,
        "other" => 1,
        _ => 2,
    }
}

/// What the end of a choice says about its calls that are still open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallsEnd {
    /// A reason was sent, and it is one of success: a call without arguments is whole.
    Success,
    /// No reason was sent, but something stands for the end.
    Unsaid,
    /// The reason says that the answer is not whole: what is unfinished is no mistake.
    Unfinished,
    /// The input ended too early.
    Cut,
}

/// The same for a choice with that reason. `ended`: the stream has an end, also for a choice without a reason.
pub fn end_of_calls(finish: &FinishState, ended: bool) -> CallsEnd {
    match finish.reason {
        Some("stop" | "tool_calls") => CallsEnd::Success,
        Some(_) => CallsEnd::Unfinished,
        None if ended => CallsEnd::Unsaid,
        None => CallsEnd::Cut,
    }
}

/// One reason as sent, and what the table says it is: the first holds, unless a later one that is known is worse.
///
/// "natural" is a word for every end that nobody forced: stop, or calls where there are some.
pub fn take_reason(
    out: &mut Output<'_>,
    choice: &mut Choice,
    raw: &str,
    reason: Option<&'static str>,
) -> Step {
    out.sign(WireFact::Reason(choice.index));
    let finish = &mut choice.finish;
    let natural = reason == Some("natural");
    if finish.raw.is_none() || reason.is_some() {
        finish.natural = natural;
    }
    let reason = if natural { Some("stop") } else { reason };
    let Some(before) = &finish.raw else {
        if reason.is_none() {
            out.diagnose(Code::FINISH_UNKNOWN, None, raw)?;
        }
        finish.raw = Some(raw.to_owned());
        finish.reason = Some(reason.unwrap_or("other"));
        return Ok(());
    };
    if raw == before {
        return Ok(());
    }
    if !finish.repeated {
        finish.repeated = true;
        out.diagnose(Code::FINISH_REPEATED, None, raw)?;
    }
    let holds = finish.reason.map_or(0, weight);
    if let Some(reason) = reason.filter(|reason| weight(reason) > holds) {
        finish.raw = Some(raw.to_owned());
        finish.reason = Some(reason);
    }
    Ok(())
}

/// What the choice's end comes to: `calls` of the client are a reason, and no calls are none.
///
/// Calls that were answered in the stream itself (AI SDK: the server ran them, and went on) leave any reason as it is.
pub fn conclude(finish: &FinishState, calls: &[&Call]) -> &'static str {
    let waits = calls.iter().any(|call| !call.answered);
    match finish.reason {
        None if waits => "tool_calls",
        None => "stop",
        Some("stop") if waits => "tool_calls",
        Some("tool_calls") if calls.is_empty() => "stop",
        Some(reason) => reason,
    }
}
