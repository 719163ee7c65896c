//! Restores the beginning of arguments that lack `{"`, because some gateways drop the first fragment of a call (vLLM's
//! Messages API before https://github.com/vllm-project/vllm/pull/34887).
//!
//! If more than `{"` is missing, the restored arguments would be wrong. The beginning is therefore restored only if
//! nothing indicates that more is missing: the stream closed the call, the response ended with success, no other call
//! has incomplete arguments, and the request's tools allow the restored arguments. The call stays open until its choice
//! ends, because only the finish reason shows how the response ended.

use crate::assemble::choice::Choice;
use crate::assemble::part::call::Call;
use crate::assemble::part::call_events;
use crate::assemble::part::classify::is_name;
use crate::assemble::part::fragment::alone;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
use crate::assemble::settings::Tools;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::Root;
use crate::json::Status;
use crate::json::members::members;
use crate::model::delta::CallEnding;
use crate::model::spec::Code;

const LOST: &[u8] = b"{\"";

/// Returns the arguments with the missing beginning restored, or `None` if more than `{"` may be missing.
pub fn with_beginning(call: &Call, tools: &Tools) -> Option<Vec<u8>> {
    let text = &call.text;
    let is_closed =
        call.ended && call.ending == CallEnding::Whole && call.announced_again.is_empty();
    let is_broken = text.automaton.is_broken() && text.overflow.is_empty();
    if !is_closed || call.custom || call.provider_executed || !is_broken {
        return None;
    }
    let restored = [LOST, &text.data].concat();
    let automaton = alone(&restored);
    if automaton.status() != Status::Complete || automaton.root() != Some(Root::Object) {
        return None;
    }
    let json = std::str::from_utf8(&restored).ok()?;
    let kind = Kind::Object;
    let names = members(Raw { text: json, kind });
    let is_whole = is_name(&names.first()?.key.name());
    let names = names.iter().map(|one| one.key.name().into_owned());
    (is_whole && tools.allows(&call.name, &names.collect())).then_some(restored)
}

/// Restores the beginnings of arguments in a choice that ended with success.
pub fn restore_beginnings(ctx: &mut RuleContext<'_, '_>, choice: &mut Choice) -> ParseResult {
    let is_unfinished =
        |call: &Call| !call.dropped && !call.is_empty() && call.text.is_unfinished();
    if choice.calls.iter().any(is_unfinished) {
        return Ok(()); // the text may be the rest of the unfinished call
    }
    for slot in choice.undecided() {
        let Some(call) = choice.get(slot) else {
            continue;
        };
        let Some(restored) = with_beginning(call, &ctx.shared.settings.tools) else {
            continue;
        };
        let (part, size) = (call.part, call.text.size());
        ctx.count_arguments(size, restored.len())?;
        ctx.report(Code::ARGS_RESTORED, part)?;
        if let Some(call) = choice.get_mut(slot) {
            call.text.replace(restored);
            call.text.plain = false;
        }
        call_events::reset(ctx.out, choice, slot); // the text is emitted when the call closes
    }
    Ok(())
}
