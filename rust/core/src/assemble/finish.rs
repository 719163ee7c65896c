//! Finish reasons: which of several holds, and what it means beside the calls that are there.
//!
//! The table of words comes from outside (each dialect has its own). It knows no parts.

use super::call::Call;
use super::choice::{Choice, FinishState};
use super::shared::Step;
use crate::event::Sign;
use crate::out::Out;
use crate::spec::Code;

/// These say that the answer is not whole: they hold whatever else is said.
pub fn is_cut(reason: Option<&str>) -> bool {
    matches!(reason, Some("length" | "content_filter" | "error"))
}

/// One reason as sent, and what the table says it is: the first holds, unless a later one dominates it.
///
/// "natural" is a word for every end that nobody forced: stop, or calls where there are some.
pub fn take_reason(
    out: &mut Out<'_>,
    choice: &mut Choice,
    raw: &str,
    reason: Option<&'static str>,
) -> Step {
    out.sign(Sign::Reason(choice.index));
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
    let stronger = is_cut(reason) && !is_cut(finish.reason);
    if reason.is_some() && (stronger || finish.reason == Some("other")) {
        finish.raw = Some(raw.to_owned());
        finish.reason = reason;
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
        Some("stop" | "other") if waits => "tool_calls",
        Some("tool_calls") if calls.is_empty() => "stop",
        Some(reason) => reason,
    }
}
