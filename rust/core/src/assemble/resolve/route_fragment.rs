//! Applies a tool-call fragment to the call that it belongs to, as decided by `by_evidence`. A fast path handles the
//! next piece of a call in progress.
//!
//! `apply_identity` sets the id, name and index of the call, and `append_arguments` appends the text.

use crate::assemble::choice::Choice;
use crate::assemble::choice::LEGACY_INDEX;
use crate::assemble::choice::leave;
use crate::assemble::part::append_arguments::FragmentIdentity;
use crate::assemble::part::append_arguments::push_object;
use crate::assemble::part::append_arguments::push_text;
use crate::assemble::part::call::Call;
use crate::assemble::part::call_events;
use crate::assemble::resolve::apply_identity::address;
use crate::assemble::resolve::apply_identity::open_call;
use crate::assemble::resolve::apply_identity::report_guess;
use crate::assemble::resolve::by_evidence::Incoming;
use crate::assemble::resolve::by_evidence::Resolution;
use crate::assemble::resolve::by_evidence::decide;
use crate::assemble::resolve::by_evidence::relation;
use crate::assemble::resolve::names::Relation;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
use crate::json::Text;
use crate::model::delta::Fragment;
use crate::model::fault::Fault;
use crate::model::limits::as_len;
use crate::model::spec::Code;
use std::borrow::Cow;

/// R3c3: maximum number of list positions for which the last call is stored.
const MAX_POSITIONS: u32 = 4096;

/// Applies one tool-call fragment from the wire to the choice.
#[inline]
pub fn take_fragment(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    fragment: &Fragment<'_>,
) -> ParseResult {
    let (index, unusable) = usable_index(ctx, fragment);
    let has_text = fragment
        .arguments
        .as_ref()
        .is_some_and(|text| !text.is_empty());
    if let (Some(index), Some(text), true) = (index, &fragment.arguments, has_text)
        && fragment.object_arguments.is_none()
        && fragment.metadata.is_none()
        && choice.finish.raw.is_none()
        && let Some(slot) = choice.by_index.get(index)
        && choice.get(slot).is_some_and(|call| goes_on(call, fragment))
    {
        // The fast path handles the next piece of a call in progress (R1a, R3a1, A1).
        choice.textual.close_open(ctx)?;
        record_position(choice, slot, fragment.position, fragment.array_len);
        check_order(ctx, choice, Some(slot));
        choice.latest = Some(slot);
        if fragment.id.is_some() || fragment.name.is_some() {
            ctx.out.mark_misread("header_again"); // clients concatenate a repeated id or name
        }
        call_events::flush_for_call(ctx.out, choice);
        let identity = FragmentIdentity {
            index: Some(index),
            header: fragment.name.is_some(),
            identified: fragment.id.is_some(),
        };
        return push_text(ctx, choice, slot, text, identity);
    }
    take_slowly(ctx, choice, fragment, index, unusable)
}

#[inline(never)]
fn take_slowly(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    fragment: &Fragment<'_>,
    index: Option<i64>,
    unusable: Option<String>,
) -> ParseResult {
    let text = fragment.arguments.as_ref().filter(|text| !text.is_empty());
    let id = fragment.id.as_deref().filter(|id| is_present(id));
    let name = fragment.name.as_deref().filter(|name| is_present(name));
    let bare =
        id.is_none() && name.is_none() && text.is_none() && fragment.object_arguments.is_none();
    if bare && fragment.metadata.is_none() {
        return Ok(()); // the fragment is empty
    }
    if let Some(id) = id {
        ctx.check_id(id)?;
    }
    if let Some(name) = name {
        ctx.check_name(name)?;
    }
    let shown = match (fragment.object_arguments, text) {
        (Some(raw), _) => Cow::Borrowed(raw),
        (None, Some(text)) => text.clone().into_whole().0,
        (None, None) => Cow::Borrowed(""),
    };
    let incoming = Incoming {
        index,
        id,
        name,
        payload: shown.as_bytes(),
        is_object: fragment.object_arguments.is_some(),
        custom: fragment.custom,
        position: fragment.position,
        array_len: fragment.array_len,
    };
    let Some(slot) = route(ctx, choice, &incoming, text)? else {
        return match &fragment.metadata {
            Some(metadata) => leave(ctx, choice, metadata),
            None => Ok(()),
        };
    };
    let Some(call) = choice.get_mut(slot) else {
        return Ok(());
    };
    call.misses_arguments |= fragment.misses_arguments;
    if let Some(metadata) = &fragment.metadata {
        let more = call.metadata.get_or_insert_default().add(metadata);
        ctx.spend_growth(more)?;
    }
    if index.is_none() && !call.index_reported {
        call.index_reported = true;
        let part = Some(call.part);
        return match unusable {
            None => ctx.out.diagnose(Code::INDEX_MISSING, part, ""),
            Some(sent) => ctx.out.diagnose(Code::INDEX_UNUSABLE, part, &sent),
        };
    }
    Ok(())
}

/// Applies the fragment to its call and returns the call, or returns `None` if the fragment belongs to no call. Opens
/// the call if necessary. `text`: the payload with its surrogate halves, unless the payload is an object.
fn route(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    incoming: &Incoming<'_>,
    text: Option<&Text<'_>>,
) -> Result<Option<usize>, Fault> {
    let decision = decide(ctx, choice, incoming);
    if decision.resolution == Resolution::Ignore {
        return Ok(None);
    }
    choice.textual.close_open(ctx)?;
    check_order(ctx, choice, decision.call);
    let slot = match decision.call {
        None => open_call(ctx, choice, incoming, &decision)?,
        Some(slot) => {
            if let Some(call) = choice
                .get_mut(slot)
                .filter(|_| !incoming.payload.is_empty())
            {
                call.settle_type(incoming.custom);
            }
            if means_another(ctx, choice, slot, incoming) {
                let again = incoming.id.is_some() || incoming.name.is_some();
                ctx.out
                    .mark_misread(if again { "header_again" } else { "other_index" });
            }
            address(ctx, choice, slot, incoming)?;
            if let Some(note) = decision.note {
                report_guess(ctx, choice, slot, note)?;
            }
            let guessed = incoming.id.is_none() && !incoming.payload.is_empty();
            let call = choice.get_mut(slot).filter(|_| guessed);
            if let Some(code) = call.and_then(|call| call.pending_ambiguity.take()) {
                report_guess(ctx, choice, slot, code)?;
            }
            slot
        }
    };
    record_position(choice, slot, incoming.position, incoming.array_len);
    let Some(call) = choice.get_mut(slot) else {
        return Ok(None);
    };
    let identity = FragmentIdentity {
        index: incoming.index,
        header: incoming.name.is_some(),
        identified: incoming.id.is_some(),
    };
    if decision.resolution == Resolution::Drop {
        call.text.replayed = 0;
        ctx.report(Code::ARGS_REPLAY_DROPPED, call.part)?;
    } else if decision.resolution == Resolution::Replay {
        call.text.begin_replay(incoming.payload);
        ctx.out.mark_misread("args_again");
    } else if incoming.is_object {
        ctx.out.mark_misread("args_object"); // clients expect text
        push_object(ctx, choice, slot, incoming.payload, identity)?;
    } else if let Some(text) = text {
        if call.displaced_empty && call.is_empty() && !matches!(decision.rule, "R1a" | "R1f") {
            // AM1: only the order of the calls indicates that the text belongs to this call, whose index was taken.
            call.displaced_empty = false;
            ctx.report(Code::AMBIGUOUS_SAME_INDEX, call.part)?;
        }
        push_text(ctx, choice, slot, text, identity)?;
    }
    let after_finish = choice.finish.raw.is_some();
    if let Some(call) = choice.get_mut(slot) {
        call.late |= after_finish;
    }
    choice.track(slot);
    Ok(Some(slot))
}

/// Marks the payload as misread if clients do not expect the fragment at this point. openai-python parses the arguments
/// of a call when a fragment with another index or the finish reason arrives. `slot`: the call of the fragment, or
/// `None` if the fragment opens a call.
#[inline]
fn check_order(ctx: &mut RuleContext<'_, '_>, choice: &Choice, slot: Option<usize>) {
    let is_finished = choice.finish.raw.is_some();
    if (is_finished || choice.latest != slot) && choice.has_cut_call() {
        ctx.out.mark_misread(if is_finished {
            "calls_after_finish"
        } else {
            "calls_mixed"
        });
    }
}

/// Returns true if clients would assign the fragment to another call, or would append the fragment's id or name to the
/// stored id or name. Clients identify a call by its index alone.
fn means_another(
    ctx: &RuleContext<'_, '_>,
    choice: &Choice,
    slot: usize,
    incoming: &Incoming<'_>,
) -> bool {
    let Some(call) = choice.get(slot) else {
        return false;
    };
    if incoming.index.is_none() || incoming.index != call.index || incoming.id.is_some() {
        return true;
    }
    relation(ctx, call, incoming).is_some_and(|relation| relation != Relation::Fragment)
}

/// R3c3: stores the call of a fragment by the fragment's position, if the list that contains the fragment has several
/// fragments.
#[inline]
fn record_position(choice: &mut Choice, slot: usize, position: u32, array_len: u32) {
    if array_len > 1 && position < MAX_POSITIONS {
        choice.multi.insert(position, slot);
    }
}

/// Returns the index of the fragment, or `None` if it is missing or exceeds `max_tool_index`. The second value is the
/// text of an unusable index.
#[inline]
fn usable_index(
    ctx: &RuleContext<'_, '_>,
    fragment: &Fragment<'_>,
) -> (Option<i64>, Option<String>) {
    if fragment.legacy {
        return (Some(LEGACY_INDEX), None);
    }
    match fragment.index {
        None => (None, fragment.index_raw.map(str::to_owned)),
        Some(index) if index as usize > as_len(ctx.out.config.limits.max_tool_index) => {
            (None, Some(index.to_string()))
        }
        Some(index) => (Some(i64::from(index)), None),
    }
}

/// Returns true if the fast path applies: the call has incomplete arguments, and the fragment has no id or name that
/// differs from that of the call.
#[inline]
fn goes_on(call: &Call, fragment: &Fragment<'_>) -> bool {
    call.text.is_unfinished()
        && !call.is_empty()
        && call.shared_id.is_none()
        && call.pending_ambiguity.is_none()
        && call.merge.is_none()
        && (fragment.id.is_none()
            || (fragment.id.as_deref() == call.id.as_deref() && !call.id_changed))
        && fragment.name.as_ref().is_none_or(|name| *name == call.name)
        && !call.name.is_empty()
        && !fragment.custom
}

/// Returns true if the id or name contains a character other than whitespace.
fn is_present(text: &str) -> bool {
    !text
        .chars()
        .all(|one| one.is_whitespace() || matches!(one, '\u{1c}'..='\u{1f}'))
}
