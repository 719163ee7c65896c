//! Chooses among several finish reasons, and makes the chosen one consistent with the calls of the choice.
//!
//! Each dialect has its own table that maps its words to reasons.

use crate::assemble::choice::Choice;
use crate::assemble::choice::FinishState;
use crate::assemble::part::call::Call;
use crate::assemble::rule_context::ParseResult;
use crate::model::event::WireFact;
use crate::model::output::Output;
use crate::model::spec::Code;

/// Returns the rank of a finish reason: the more incomplete the response, the higher the rank. Of two reasons, the one
/// with the higher rank is used.
fn weight(reason: &str) -> u8 {
    match reason {
        "stop" | "tool_calls" => 0,
        "other" => 1,
        _ => 2,
    }
}

/// What the end of a choice implies for its open calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallsEnd {
    /// The finish reason means success, so a call without arguments is complete.
    Success,
    /// No finish reason was sent, but the stream has ended.
    Unstated,
    /// The finish reason means that the response is incomplete, so an unfinished call is not an anomaly.
    Unfinished,
    /// The finish reason means that the response failed, so a call may not be meant to run even if its JSON is
    /// complete.
    Failed,
    /// The input ended too early.
    Cut,
}

/// Returns what a choice with this finish reason implies for its open calls. `ended`: the stream has ended, even for
/// choices without a finish reason.
pub fn end_of_calls(finish: &FinishState, ended: bool) -> CallsEnd {
    match finish.reason {
        Some("stop" | "tool_calls") => CallsEnd::Success,
        Some("error") => CallsEnd::Failed,
        Some(_) => CallsEnd::Unfinished,
        None if ended => CallsEnd::Unstated,
        None => CallsEnd::Cut,
    }
}

/// Records a finish reason, as sent and as mapped. The first reason is used, unless a later mapped reason has a higher
/// rank.
///
/// "natural" stands for a normal end: `stop`, or `tool_calls` if there are calls.
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
        out.mark_misread("finish_again"); // clients use the last one
    }
    Ok(())
}

/// Returns the final reason of a choice. Unanswered client `calls` turn `stop` or a missing reason into `tool_calls`;
/// `tool_calls` without calls becomes `stop`.
///
/// Calls that were answered in the stream itself (AI SDK: the server ran them and continued) do not change the reason.
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
