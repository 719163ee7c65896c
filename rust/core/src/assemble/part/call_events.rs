//! Emits the events of tool calls: started, delta, reset, retracted, and the final event.
//!
//! The text emitted since the last reset is always a prefix of the call's text, so the deltas add up to the complete
//! text. Text that a rule may still replace is held back, so resets are rare. A call is emitted once its name is final,
//! that is, once argument text, another part, or the end of the call has arrived.

use crate::assemble::choice::Choice;
use crate::assemble::part::arguments::text_of;
use crate::assemble::part::call::Call;
use crate::assemble::rule_context::RuleContext;
use crate::assemble::rule_context::Shared;
use crate::model::event::Delta;
use crate::model::event::Event;
use crate::model::event::Mark;
use crate::model::event::WireFact;
use crate::model::output::Output;
use crate::model::policy::UnstableId;

/// Queues the start event of a call that has received a name. The event is not emitted yet, because more of the name
/// may follow.
pub fn named(choice: &mut Choice, slot: usize) {
    if choice.get(slot).is_some_and(|call| !call.started) {
        choice.unstarted.push(slot);
    }
}

/// Emits the start events of the queued calls except `other_than`. The names of these calls are final, because another
/// part of the choice receives data.
#[inline]
pub fn flush_unstarted(out: &mut Output<'_>, choice: &mut Choice, other_than: Option<usize>) {
    if !choice.unstarted.is_empty() {
        flush(out, choice, other_than, false);
    }
}

/// Emits the start events of the queued calls before a call receives data. Returns the first call that must still wait,
/// or `None`. Calls after the returned call must wait, too.
#[inline]
pub fn flush_for_call(out: &mut Output<'_>, choice: &mut Choice) -> Option<usize> {
    if choice.unstarted.is_empty() {
        return choice.first_unnamed();
    }
    flush(out, choice, None, true)
}

/// Emits the start events of the queued calls in order of creation, and returns the first call that must wait, if any.
/// Calls after a call without a name wait until that call has a name. `by_call`: another call receives data. If names
/// arrive in pieces and `by_call` is true, a call without arguments also waits, because more of its name may follow.
fn flush(
    out: &mut Output<'_>,
    choice: &mut Choice,
    other_than: Option<usize>,
    by_call: bool,
) -> Option<usize> {
    let mut waiting = std::mem::take(&mut choice.unstarted);
    waiting.sort_unstable();
    let mut first = choice.first_unnamed();
    let (index, joins) = (choice.index, by_call && choice.joins_names);
    for slot in waiting {
        let is_open = |call: &&mut Call| !(call.started || call.dropped);
        let Some(call) = choice.get_mut(slot).filter(is_open) else {
            continue;
        };
        if joins && call.text.is_blank() && first.is_none_or(|first| slot < first) {
            first = Some(slot);
        }
        if Some(slot) == other_than || first.is_some_and(|first| first <= slot) {
            choice.unstarted.push(slot);
            continue;
        }
        start(out, call, index);
        if !(call.tentative || call.text.is_blank()) {
            let end = call.settled();
            show(out, call, index, end);
            choice.update_pending_call(slot);
        }
    }
    first
}

/// Emits the argument text that is safe to emit and has not been emitted yet. Text that consists only of whitespace is
/// held back, because it may still mean "no arguments".
#[inline]
pub fn publish(out: &mut Output<'_>, choice: &mut Choice, slot: usize) {
    let Some(call) = choice.get(slot).filter(|call| !call.dropped) else {
        return;
    };
    if !(call.tentative || call.name.is_empty() || call.text.is_blank()) {
        let first = flush_for_call(out, choice);
        let index = choice.index;
        if let Some(call) = choice.get_mut(slot)
            && (call.started || first.is_none_or(|first| first > slot))
        {
            start(out, call, index);
            let end = call.settled();
            show(out, call, index, end);
        }
    }
    choice.update_pending_call(slot);
}

/// Emits a reset event if the arguments no longer start with the text that was emitted.
pub fn reset(out: &mut Output<'_>, choice: &mut Choice, slot: usize) {
    let index = choice.index;
    if let Some(call) = choice.get_mut(slot).filter(|call| call.text.taken_back) {
        call.text.taken_back = false;
        out.emit(&Event::ToolCallReset(mark(call, index)));
    }
}

/// Marks the call as dropped. If the call was emitted, also emits `ToolCallRetracted`.
pub fn retract(out: &mut Output<'_>, choice: &mut Choice, slot: usize) {
    choice.set_dropped(slot, true);
    choice.track(slot);
    choice.update_pending_call(slot);
    let index = choice.index;
    if let Some(call) = choice.get(slot).filter(|call| call.started) {
        out.emit(&Event::ToolCallRetracted(mark(call, index)));
    }
}

/// Emits the text that has not been emitted yet, and then the final event.
pub fn show_final(ctx: &mut RuleContext<'_, '_>, choice: &mut Choice, slot: usize) {
    let index = choice.index;
    let Some(call) = choice.get_mut(slot) else {
        return;
    };
    start(ctx.out, call, index);
    show(ctx.out, call, index, call.text.data.len());
    final_event(ctx.shared, call, index, |event| ctx.out.emit(event));
    choice.update_pending_call(slot);
}

/// Passes the final event of a closed call to `give`. For an open call, the event contains the current values and the
/// state `open`.
pub fn final_event(shared: &Shared, call: &Call, choice: i32, give: impl FnOnce(&Event<'_>)) {
    let metadata = call.metadata.as_ref().and_then(|members| members.text());
    let metadata = metadata.as_deref();
    let Some(outcome) = &call.outcome else {
        let minted = call.id.is_none().then(|| shared.minted_id(call.part));
        give(&Event::ToolCall {
            part: call.part,
            call_id: call.id.as_deref().or(minted.as_deref()).unwrap_or_default(),
            name: &call.name,
            arguments: &call.argument_text(),
            state: "open",
            item_id: call.item_id.as_deref(),
            reason: None,
            raw_arguments: None,
            provider_executed: call.provider_executed,
            aliases: &call.aliases,
            custom: call.custom,
            raw_text: None,
            choice,
            metadata,
        });
        return;
    };
    give(&Event::ToolCall {
        part: call.part,
        call_id: &outcome.call_id,
        name: &call.name,
        arguments: &outcome.arguments,
        state: outcome.state,
        item_id: call.item_id.as_deref(),
        reason: outcome.reason,
        raw_arguments: outcome.raw_arguments.as_deref(),
        provider_executed: call.provider_executed,
        aliases: &outcome.aliases,
        custom: call.custom,
        raw_text: None,
        choice,
        metadata,
    });
}

fn mark(call: &Call, choice: i32) -> Mark<'static> {
    Mark {
        part: call.part,
        choice,
        metadata: None,
    }
}

/// Emits the start event of a call that has a name. This function is used in dialects that send each name in one piece,
/// so that the name is final.
pub fn show_start(out: &mut Output<'_>, choice: &mut Choice, slot: usize) {
    let index = choice.index;
    if let Some(call) = choice.get_mut(slot).filter(|call| !call.name.is_empty()) {
        start(out, call, index);
    }
}

/// Emits a delta with metadata but without argument text. Returns false if the call has no name yet, or is dropped or
/// final.
pub fn progress(
    out: &mut Output<'_>,
    choice: &mut Choice,
    slot: usize,
    metadata: Option<&str>,
) -> bool {
    let is_open = |call: &Call| !(call.dropped || call.outcome.is_some() || call.name.is_empty());
    if !choice.get(slot).is_some_and(is_open) {
        return false;
    }
    flush_unstarted(out, choice, Some(slot));
    let index = choice.index;
    if let Some(call) = choice.get_mut(slot) {
        start(out, call, index);
        out.emit(&Event::ToolCallDelta(Delta {
            part: call.part,
            text: &text_of(b""),
            choice: index,
            metadata,
        }));
    }
    true
}

#[inline]
fn start(out: &mut Output<'_>, call: &mut Call, choice: i32) {
    if call.started {
        return;
    }
    call.started = true;
    // Omit the id if it may change, because an earlier call had the same id or the policy prefers the last id.
    let last = out.config.policy.switches.unstable_id == UnstableId::Last;
    let keeps = call.first.is_none() && !last;
    out.record_fact(WireFact::Address {
        index: call.index,
        sub: None,
        item_id: call.item_id.as_deref(),
    });
    out.emit(&Event::ToolCallStarted {
        part: call.part,
        call_id: call.id.as_deref().filter(|_| keeps),
        item_id: call.item_id.as_deref(),
        name: &call.name,
        provider_executed: call.provider_executed,
        custom: call.custom,
        choice,
        metadata: None,
    });
}

/// Emits the text up to byte `end`, except what has already been emitted.
#[inline]
fn show(out: &mut Output<'_>, call: &mut Call, choice: i32, end: usize) {
    if end <= call.text.shown {
        return;
    }
    let text = text_of(call.text.data.get(call.text.shown..end).unwrap_or_default());
    out.emit(&Event::ToolCallDelta(Delta {
        part: call.part,
        text: &text,
        choice,
        metadata: None,
    }));
    call.text.shown = end;
}
