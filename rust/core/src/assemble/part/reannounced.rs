//! Handles tool calls that are announced again, and decides whether this means the same call or a second call.
//!
//! open    It is the same call: its ids become aliases, and its text goes through the argument rules. An overflow (A8)
//!         is a second call.
//! closed  The new text is collected without events until the item closes or the choice ends. A first call
//!         without text gets the new text, and so does a first call with incomplete arguments that the new text
//!         continues or restarts. The announcement means the same call if no new text arrived, or if the names and
//!         arguments are equal. Otherwise, the announcement means a second call.
//!
//! An event with the same id but another name always belongs to a second call, unless it closes an open call with that
//! name.

use crate::assemble::choice::Choice;
use crate::assemble::part::call::Call;
use crate::assemble::part::call_events;
use crate::assemble::part::item_call::CallProperties;
use crate::assemble::part::item_call::begin_call;
use crate::assemble::part::item_call::end_call;
use crate::assemble::part::item_call::is_same_or_empty;
use crate::assemble::part::item_call::name_call;
use crate::assemble::part::item_call::report_conflict;
use crate::assemble::part::item_call::settle_text;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
use crate::model::delta::Address;
use crate::model::spec::Code;

/// Returns true if the event is about a call other than `call`, because the names differ, or because the call ids
/// differ and the arguments of `call` are complete.
pub fn is_another(call: &Call, address: &Address<'_>, name: Option<&str>) -> bool {
    if name.is_some_and(|name| !call.name.is_empty() && name != call.name) {
        return true;
    }
    let other_id =
        call.id.is_some() && address.call_id.is_some_and(|call_id| !call.has_id(call_id));
    other_id && (call.outcome.is_some() || call.is_complete())
}

/// Returns true if a closing event with this address closes the open call of the item. The call ids must be equal or,
/// if one is missing, the item ids. The name of the call does not matter.
///
/// The AI SDK may rename a call between its opening and closing events, when it repairs the call.
pub fn is_own_close(choice: &Choice, item: usize, address: &Address<'_>) -> bool {
    let (Some(record), Some(call)) = (choice.item_index.get(item), choice.call_of(item)) else {
        return false;
    };
    if !record.open || call.outcome.is_some() {
        return false;
    }
    match (address.call_id, &call.id) {
        (Some(call_id), Some(_)) => call.has_id(call_id),
        _ => address.item_id.is_some() && address.item_id == record.item_id.as_deref(),
    }
}

/// Returns true if a closing event has the item id, name and arguments of the item's open call, but a call id that no
/// call has.
pub fn is_close_under_another_id(
    choice: &mut Choice,
    item: usize,
    address: &Address<'_>,
    name: Option<&str>,
    arguments: Option<&str>,
) -> bool {
    let known = |id| choice.item_index.item_of_result(id).is_some();
    let unknown = !address.call_id.is_some_and(known);
    let Some((record, call)) = choice.item_call_mut(item) else {
        return false;
    };
    let is_open = record.open && call.outcome.is_none();
    let is_own = address.item_id.is_some() && address.item_id == record.item_id.as_deref();
    is_open
        && is_own
        && unknown
        && name.unwrap_or_default() == call.name
        && !call.is_empty()
        && arguments.is_some_and(|arguments| is_same_or_empty(call, arguments))
}

/// Replaces the name of a call with the name in its closing event, and reports a conflict if they differ.
pub fn rename_call(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    name: Option<&str>,
) -> ParseResult {
    let Some((_, call)) = choice.item_call_mut(item) else {
        return Ok(());
    };
    match name.filter(|name| !call.name.is_empty() && **name != call.name) {
        Some(other) => {
            ctx.check_name(other)?;
            other.clone_into(&mut call.name);
            report_conflict(ctx, choice, item)
        }
        None => {
            let slot = call.slot;
            name_call(ctx, choice, slot, name)
        }
    }
}

/// Returns true if the item is closed or its call is final.
pub fn is_closed(choice: &Choice, item: usize) -> bool {
    let open = choice.item_index.get(item).is_some_and(|item| item.open);
    let reported = choice
        .call_of(item)
        .is_some_and(|call| call.outcome.is_some());
    !open || reported
}

/// Reports, at most once per item, that its call was announced again.
pub fn report_reannounced(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    address: &Address<'_>,
) -> ParseResult {
    let Some((record, call)) = choice.item_call_mut(item) else {
        return Ok(());
    };
    // Text that overflows later (A8) will belong to a second call.
    call.announced_again.insert(None);
    if std::mem::replace(&mut record.again_reported, true) {
        return Ok(());
    }
    let index = address.index.map(|index| index.to_string());
    let detail = address.item_id.or(index.as_deref()).unwrap_or_default();
    ctx.out
        .diagnose(Code::ANNOUNCED_AGAIN, Some(call.part), detail)
}

/// Creates a call for a new item that announces the closed call of the item `first` again. The new call is not emitted
/// before `decide` has decided whether it is another call.
pub fn begin_reannounced(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    first: usize,
    address: &Address<'_>,
    properties: CallProperties<'_>,
) -> ParseResult {
    if let Some(item) = choice.item_index.get_mut(item) {
        item.first = Some(first);
        item.announced = true;
    }
    begin_call(ctx, choice, item, address, properties, true)?;
    Ok(())
}

/// Decides whether an item that announced an earlier call again contains the same call or a different call. `closed`:
/// the stream closed the item. If `closed` is false, the choice has ended, and `close_calls` closes the calls.
pub fn decide(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    closed: bool,
) -> ParseResult {
    let Some(record) = choice.item_index.get_mut(item) else {
        return Ok(());
    };
    let item_id = record.item_id.clone();
    let address = Address {
        item_id: item_id.as_deref(),
        ..Address::default()
    };
    let (Some(first), Some(slot)) = (record.first, record.call) else {
        return Ok(());
    };
    let Some(earlier) = choice.slot_of(first) else {
        return Ok(());
    };
    if let Some(record) = choice.item_index.get_mut(item) {
        record.first = None;
    }
    let end = |ctx: &mut RuleContext<'_, '_>, choice: &mut Choice| match closed {
        true => end_call(ctx, choice, first),
        false => Ok(()),
    };
    if let Some(joint) = joint_of(choice, earlier, item, slot) {
        continue_call(ctx, choice, (item, first), (earlier, slot), joint)?;
        return end(ctx, choice);
    }
    settle_text(ctx, choice, item, true)?;
    let (Some(call), Some(before)) = (choice.get(slot), choice.get(earlier)) else {
        return Ok(());
    };
    let empty = call.text.is_blank() && (call.is_empty() || !call.custom);
    if !empty && before.outcome.is_none() && before.text.is_blank() {
        // The first call has no text yet, so it gets this text.
        let data = call.text.data.clone();
        if let Some(before) = choice.get_mut(earlier) {
            before.text.replace(data);
        }
        call_events::publish(ctx.out, choice, earlier);
        inherit(choice, item, first);
        report_reannounced(ctx, choice, first, &address)?;
        return end(ctx, choice);
    }
    let (name, named) = (before.name.clone(), call.name.clone());
    let is_open = before.outcome.is_none();
    if empty || ((named.is_empty() || named == name) && same(choice, earlier, slot)) {
        inherit(choice, item, first);
        return report_reannounced(ctx, choice, first, &address);
    }
    if let Some(call) = choice.get_mut(slot).filter(|_| is_open) {
        call.first = Some(earlier); // the earlier call closes later and keeps its id
    }
    choice.set_dropped(slot, false);
    name_call(ctx, choice, slot, Some(&name))?;
    call_events::show_start(ctx.out, choice, slot);
    call_events::publish(ctx.out, choice, slot);
    Ok(())
}

/// How the text of a call that was announced again relates to the incomplete arguments of the call.
#[derive(Clone, Copy, Debug)]
enum Joint {
    /// The text continues the arguments.
    Continues,
    /// The text repeats the arguments from their beginning.
    Restarts,
}

/// Returns how the text of the item, whose call is `later`, relates to the incomplete arguments of the call `earlier`.
/// Returns `None` if the arguments are complete, or if the text neither continues nor restarts them.
fn joint_of(choice: &Choice, earlier: usize, item: usize, later: usize) -> Option<Joint> {
    let (before, call) = (choice.get(earlier)?, choice.get(later)?);
    let record = choice.item_index.get(item)?;
    let is_open = before.outcome.is_none() && before.text.is_unfinished();
    let is_text = |call: &Call| {
        !(call.custom || call.is_empty() || call.joiner.is_pending() || call.merge.is_some())
    };
    let is_same_name = call.name.is_empty() || call.name == before.name;
    if !(is_open && is_same_name && is_text(before) && is_text(call)) || record.snapshot.is_some() {
        return None;
    }
    let text = &call.text;
    // On its own, the rest of an object may look like a complete value with overflow, such as `[0]` followed by `}`.
    if before.text.accepts(&text.with_overflow()) {
        return Some(Joint::Continues);
    }
    let is_json = text.overflow.is_empty() && (text.is_unfinished() || text.is_complete());
    let is_longer = text.data.starts_with(&before.text.data);
    (is_json && is_longer).then_some(Joint::Restarts)
}

/// Adds the text of the call `later` to the call `earlier`, because the stream sent one call as several items
/// (Anthropic blocks that each start and stop).
fn continue_call(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    (item, first): (usize, usize),
    (earlier, later): (usize, usize),
    joint: Joint,
) -> ParseResult {
    let address = Address {
        index: choice.get(later).and_then(|call| call.index),
        ..Address::default()
    };
    let text = choice.get(later).map(|call| call.text.with_overflow());
    let text = text.unwrap_or_default();
    ctx.count_arguments(text.len(), 0)?; // the bytes were counted when they arrived
    if let Some(before) = choice.get_mut(earlier) {
        let (part, size) = (before.part, before.text.size());
        match joint {
            Joint::Continues => {
                ctx.count_arguments(size, size + text.len())?;
                before.text.continue_with(&text);
            }
            Joint::Restarts => {
                ctx.count_arguments(size, text.len())?;
                before.text.replace(text);
                ctx.report(Code::ARGS_RESTART, part)?;
            }
        }
    }
    call_events::publish(ctx.out, choice, earlier);
    inherit(choice, item, first);
    report_reannounced(ctx, choice, first, &address)
}

fn inherit(choice: &mut Choice, item: usize, first: usize) {
    if let Some(item) = choice.item_index.get_mut(item) {
        item.alias_of = Some(first);
    }
}

fn same(choice: &mut Choice, one: usize, other: usize) -> bool {
    let (Some(first), Some(second)) = (choice.get(one), choice.get(other)) else {
        return false;
    };
    if first.custom == second.custom && first.text.data == second.text.data {
        return true;
    }
    let comparable = |call: &Call| call.is_complete() && !call.custom;
    if !comparable(first) || !comparable(second) {
        return false;
    }
    let content = |choice: &mut Choice, slot| {
        let call = choice.get_mut(slot);
        call.map(|call| call.canonical().into_owned())
    };
    content(choice, one) == content(choice, other)
}
