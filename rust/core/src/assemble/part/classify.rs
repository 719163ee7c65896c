//! Determines the final state of a tool call: complete, empty, incomplete or invalid, with a reason.

use crate::assemble::choice::Choice;
use crate::assemble::finish_reason::CallsEnd;
use crate::assemble::part::call::Call;
use crate::assemble::part::call::CallOutcome;
use crate::assemble::rule_context::RuleContext;
use crate::json::Root;
use crate::json::Status;
use crate::model::delta::CallEnding;
use crate::model::fault::Fault;
use crate::model::policy::EmptyCall;
use crate::model::policy::UnstableId;
use crate::model::spec::Code;
use std::ops::RangeInclusive;

/// Maximum length of a tool name, in characters.
const NAME_LENGTH: usize = 128;
/// The ranges of non-ASCII characters that a tool name must not contain: blanks, control, formatting and private-use
/// characters, and the replacement character.
const UNPRINTED: [RangeInclusive<char>; 12] = [
    '\u{80}'..='\u{a0}',
    '\u{ad}'..='\u{ad}',
    '\u{1680}'..='\u{1680}',
    '\u{2000}'..='\u{200f}',
    '\u{2028}'..='\u{202f}',
    '\u{205f}'..='\u{206f}',
    '\u{3000}'..='\u{3000}',
    '\u{e000}'..='\u{f8ff}',
    '\u{feff}'..='\u{feff}',
    '\u{fff0}'..='\u{ffff}',
    '\u{e0000}'..='\u{e0fff}',
    '\u{f0000}'..='\u{10ffff}',
];

/// Returns the final result of a call with the final id `given`, and reports what is wrong with the call. `among`: the
/// choice of the call. An alias that is the id of another call in this choice is omitted. `unclosed`: the stream closed
/// other calls explicitly, but not this call.
pub fn classify(
    ctx: &mut RuleContext<'_, '_>,
    call: &Call,
    given: String,
    among: Option<&Choice>,
    (end, unclosed): (CallsEnd, bool),
) -> Result<CallOutcome, Fault> {
    let text = &call.text;
    let mut reason = None;
    let mut state = "incomplete";
    let runs = ctx.switches().empty_call_without_reason == EmptyCall::Run;
    let runs_unstated = runs && end == CallsEnd::Unstated;
    let reports_cut = matches!(end, CallsEnd::Unfinished | CallsEnd::Failed);
    if end != CallsEnd::Cut {
        reason = fault(ctx, call, &given)?;
        if reason.is_some() {
            state = "invalid";
        } else if text.is_blank() {
            let counts = end == CallsEnd::Success || runs_unstated;
            if counts
                && (unclosed || call.is_cut(end == CallsEnd::Success) || call.misses_arguments)
            {
                let part = Some(call.part);
                ctx.out.diagnose(Code::ARGS_INVALID, part, "incomplete")?;
            } else if counts {
                state = "empty";
            }
        } else if is_whole(call, end) {
            state = "complete";
        } else if !reports_cut {
            ctx.out
                .diagnose(Code::ARGS_INVALID, Some(call.part), "incomplete")?;
        }
    }
    let mut raw_arguments = call.raw.as_deref().map(str::to_owned);
    if !text.overflow.is_empty() {
        let all = [text.data.as_slice(), text.overflow.as_slice()].concat();
        raw_arguments = Some(String::from_utf8_lossy(&all).into_owned());
    }
    let last = ctx.switches().unstable_id == UnstableId::Last;
    let wire = call.wire_id(last);
    let count = |id: &str| among.map_or(0, |choice| choice.owned(id, 0).take(2).count());
    let own = call.id.as_deref().filter(|id| count(id) < 2);
    let others = call.aliases.iter().map(String::as_str);
    let others = others.filter(|alias| count(alias) == 0);
    let aliases = own
        .into_iter()
        .chain(others)
        .filter(|alias| *alias != given && Some(*alias) != wire)
        .map(str::to_owned)
        .collect();
    Ok(CallOutcome {
        arguments: text.text().into_owned(),
        call_id: given,
        state,
        reason,
        raw_arguments,
        aliases,
    })
}

/// Reports and returns the reason if the call is invalid; otherwise, returns `None`. Unfinished text does not make a
/// call invalid.
fn fault(
    ctx: &mut RuleContext<'_, '_>,
    call: &Call,
    given: &str,
) -> Result<Option<&'static str>, Fault> {
    let text = &call.text;
    let part = Some(call.part);
    if call.name.is_empty() {
        ctx.out.diagnose(Code::NO_NAME, part, "")?;
        return Ok(Some("no_name"));
    }
    if !ctx.shared.settings.tools.has(&call.name) {
        if let Some(piece) = &call.doubtful_piece {
            ctx.out.diagnose(Code::NAME_JOINED, part, piece)?;
        }
        if !is_name(&call.name) {
            ctx.out.diagnose(Code::ID_INVALID, part, "name")?;
            return Ok(Some("bad_name"));
        }
        if !call.name.is_ascii() {
            ctx.out.diagnose(Code::NAME_NOT_ASCII, part, &call.name)?;
        }
    }
    if given.chars().any(char::is_control) {
        ctx.out.diagnose(Code::ID_INVALID, part, "id")?;
        return Ok(Some("bad_id"));
    }
    if !text.overflow.is_empty() {
        return Ok(Some("overflow"));
    }
    let reason = fault_of_text(call).or(call.refused.then_some("refused"));
    if let Some(reason) = reason {
        ctx.out.diagnose(Code::ARGS_INVALID, part, reason)?;
    }
    Ok(reason)
}

/// Returns why the text can never be a JSON object, or `None` if the text is a JSON object or may still become one.
fn fault_of_text(call: &Call) -> Option<&'static str> {
    let text = &call.text;
    if call.custom || text.is_blank() {
        return None;
    }
    if text.plain || matches!(text.automaton.finish(), Status::Broken { .. }) {
        // The closing event reports that the arguments were cut off, which explains why they are not JSON.
        return (call.ending != CallEnding::Cut).then_some("not_json");
    }
    let other = ends_whole(call) && text.automaton.root() != Some(Root::Object);
    other.then_some("not_object")
}

/// Returns true if the arguments of the call are complete. JSON is complete if the text is one complete value;
/// free-form text is complete if the response ended with success.
fn is_whole(call: &Call, end: CallsEnd) -> bool {
    !call.is_cut(end == CallsEnd::Success)
        && match call.custom {
            true => end == CallsEnd::Success,
            false => end != CallsEnd::Failed && ends_whole(call),
        }
}

/// Returns true if the text can be a tool name: it has 1 to 128 characters, each an ASCII letter or digit, one of
/// `_.:/-`, or a non-ASCII character outside `UNPRINTED`.
pub fn is_name(name: &str) -> bool {
    let fits = |one: char| match one {
        '\0'..='\x7f' => one.is_ascii_alphanumeric() || "_.:/-".contains(one),
        _ => !UNPRINTED.iter().any(|range| range.contains(&one)),
    };
    !name.is_empty()
        && name.chars().take(NAME_LENGTH + 1).count() <= NAME_LENGTH
        && name.chars().all(fits)
}

/// Returns true if the text is one complete JSON value, assuming that nothing follows. A number is then complete,
/// because no more digits can follow.
pub fn ends_whole(call: &Call) -> bool {
    call.text.automaton.finish() == Status::Complete
}
