//! Splits an item if the stream turns out to use one call id for several calls at different indexes (AM3).
//!
//! `SharedId` collects the text of each index and detects that there were several calls. This module then creates an
//! item for each additional call. An item is split only if calls have no item id (Anthropic blocks), because an item id
//! would identify the call.

use crate::assemble::choice::Choice;
use crate::assemble::part::append_arguments::FragmentIdentity;
use crate::assemble::part::append_arguments::divide;
use crate::assemble::part::append_arguments::push_text;
use crate::assemble::part::call_events;
use crate::assemble::part::shared_id::SharedId;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
use crate::json::Text;
use crate::model::delta::Address;
use crate::model::delta::ItemKind;
use crate::model::fault::Fault;
use crate::model::policy::ParallelHeaders;
use crate::model::spec::Code;

/// Starts to collect the text of each index, because an open call was announced again at a different index.
pub fn share_id(
    ctx: &RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    address: &Address<'_>,
) {
    let meant = choice.item_index.at(ItemKind::Call, address.index) == Some(item);
    let auto = ctx.switches().dup_id_parallel_headers == ParallelHeaders::Auto;
    if meant || !auto || address.item_id.is_some() {
        return;
    }
    let Some((_, call)) = choice.item_call_mut(item) else {
        return;
    };
    let (Some(first), Some(index)) = (call.index, address.index) else {
        return;
    };
    if call.custom || call.is_complete() {
        return;
    }
    let text = &call.text.data;
    let shared_id = call
        .shared_id
        .get_or_insert_with(|| Box::new(SharedId::new(first, text)));
    shared_id.announce(index);
    // Text that overflows later at either index (A8) will belong to a second call.
    call.announced_again.insert(Some(first));
    call.announced_again.insert(Some(index));
}

/// Appends argument text to the call of an item. If the text turns out to belong to a second call, that call becomes
/// the item's call.
pub fn push_item(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    text: &Text<'_>,
    index: Option<i64>,
) -> ParseResult {
    let count = choice.calls.len();
    let Some(slot) = choice.slot_of(item) else {
        return Ok(());
    };
    let is_tracked = |choice: &Choice| {
        choice
            .get(slot)
            .is_some_and(|call| call.shared_id.is_some())
    };
    let tracked = is_tracked(choice);
    let identity = FragmentIdentity {
        index: index.filter(|_| tracked),
        header: false,
        identified: true,
    };
    push_text(ctx, choice, slot, text, identity)?;
    if choice.calls.len() == count {
        return Ok(());
    }
    if tracked && !is_tracked(choice) {
        return adopt(ctx, choice, slot, count);
    }
    let executed = choice.get(slot).is_some_and(|call| call.provider_executed);
    let new = choice.calls.len() - 1;
    if let Some(item) = choice.item_index.get_mut(item) {
        item.call = Some(new);
    }
    if let Some(call) = choice.get_mut(new) {
        call.provider_executed = executed;
    }
    call_events::show_start(ctx.out, choice, new);
    Ok(())
}

/// AM3: splits the call of an item when the item closes, if the call's joined text is incomplete but the text of an
/// index is a complete object. Returns true if the call was split.
pub fn resolve_shared_id(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
) -> Result<bool, Fault> {
    let count = choice.calls.len();
    let Some((_, call)) = choice.item_call_mut(item) else {
        return Ok(false);
    };
    let slot = call.slot;
    let shared_id = call.shared_id.as_ref();
    if call.is_complete() || !shared_id.is_some_and(|shared_id| shared_id.divides_in_part()) {
        return Ok(false);
    }
    divide(ctx, choice, slot)?;
    adopt(ctx, choice, slot, count)?;
    Ok(true)
}

/// Creates an item for each call at position `count` or later in the list of calls. The item has the index of its call.
/// Reports AM3.
fn adopt(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    count: usize,
) -> ParseResult {
    let Some(call) = choice.get(slot) else {
        return Ok(());
    };
    let (part, executed) = (call.part, call.provider_executed);
    ctx.report(Code::AMBIGUOUS_DUPLICATE_ID, part)?;
    for other in count..choice.calls.len() {
        let Some(call) = choice.get_mut(other) else {
            continue;
        };
        call.provider_executed = executed;
        let address = Address {
            index: call.index,
            ..Address::default()
        };
        let own = choice
            .item_index
            .create(ctx, &choice.calls, ItemKind::Call, &address)?;
        if let Some(item) = choice.item_index.get_mut(own) {
            item.announced = true;
            item.call = Some(other);
        }
        choice.item_index.filled.push(own);
        call_events::show_start(ctx.out, choice, other);
    }
    Ok(())
}
