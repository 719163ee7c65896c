//! Splits items whose calls share one id: the id of an open call is announced again at a second index (AM3).
//!
//! `SharedId` collects the text of each index and detects that there were several calls; this module creates items for
//! the additional calls. This applies only if the index alone addresses a call (Anthropic blocks), because an item id
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

/// Starts to collect the text of each index when an open call is announced again at an unbound index.
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
    // An overflow at either index is then treated as a second call.
    call.announced_again.insert(Some(first));
    call.announced_again.insert(Some(index));
}

/// Appends text to the item's call. If the text shows that there are two calls, the item continues with the second one.
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

/// Resolves AM3 when a close event arrives for one of the indexes while the joined text is incomplete. Returns true if
/// the call was split.
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

/// Creates an item for each call from slot `count` on, at the index that announced the call.
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
