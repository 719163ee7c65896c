//! Chooses among several finish reasons of a choice, and makes the chosen reason consistent with the choice's calls.
//!
//! `model/finish_words` maps the finish reasons of each dialect to the finish reasons used here.

use crate::assemble::choice::Choice;
use crate::assemble::choice::FinishState;
use crate::assemble::part::call::Call;
use crate::assemble::rule_context::ParseResult;
use crate::model::event::WireFact;
use crate::model::output::Output;
use crate::model::spec::Code;

/// Returns the rank of a finish reason. A higher rank means a less complete response. Of two reasons, the one with the
/// higher rank is used.
fn weight(reason: &str) -> u8 {
    match reason {
        "stop" | "tool_calls" => 0,
        "other" => 1,
        _ => 2,
    }
}

/// What the end of a choice means for its calls that are still open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallsEnd {
    /// The finish reason means success, so a call without arguments is complete.
    Success,
    /// The stream has ended without a finish reason.
    Unstated,
    /// The finish reason means that the response is incomplete, so an incomplete call is expected and not reported.
    Unfinished,
    /// The finish reason means that the response failed, so no call counts as complete, not even one with complete
    /// JSON.
    Failed,
    /// The input ended too early.
    Cut,
}

/// Returns what the finish reason of a choice means for its open calls. `ended`: the choice has ended even if it has no
/// finish reason.
pub fn end_of_calls(finish: &FinishState, ended: bool) -> CallsEnd {
    match finish.reason {
        Some("stop" | "tool_calls") => CallsEnd::Success,
        Some("error") => CallsEnd::Failed,
        Some(_) => CallsEnd::Unfinished,
        None if ended => CallsEnd::Unstated,
        None => CallsEnd::Cut,
    }
}

/// Records a finish reason as received, and its meaning if known. The first reason is used unless a later one has a
/// higher rank.
///
/// The meaning "natural" stands for a normal end: `stop`, or `tool_calls` if there are calls.
pub fn take_reason(
    out: &mut Output<'_>,
    choice: &mut Choice,
    raw: &str,
    reason: Option<&'static str>,
) -> ParseResult {
    out.record_fact(WireFact::Reason(choice.index));
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
    } else if holds > reason.map_or(0, weight) {
        out.mark_misread("finish_again"); // clients use the last reason
    }
    Ok(())
}

/// Returns the finish reason for the `Finished` event. If the client must run one of the `calls`, `stop` and a missing
/// reason become `tool_calls`. Without calls, `tool_calls` becomes `stop`.
///
/// A call whose result is in the stream does not change the reason: in the AI SDK, the server runs the call and then
/// continues the response.
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
