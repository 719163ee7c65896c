//! AM3 among items: the id of an open call is announced at a second index. One call, or two that share an id?
//!
//! `fork` collects what each index brings, and tells when they were two; here the further ones get items of their own.
//! Only where nothing but the index addresses a call (Anthropic blocks): an item id says itself which one is meant. It
//! knows items and calls, and no rule of their text.

use crate::assemble::choice::Choice;
use crate::assemble::part::append_arguments::FragmentIdentity;
use crate::assemble::part::append_arguments::divide;
use crate::assemble::part::append_arguments::push_text;
use crate::assemble::part::call_events;
use crate::assemble::part::shared_id::SharedId;
use crate::assemble::rule_context::RuleContext;
use crate::assemble::rule_context::Step;
use crate::json::Text;
use crate::model::delta::Address;
use crate::model::delta::ItemKind;
use crate::model::fault::Fault;
use crate::model::policy::ParallelHeaders;
use crate::model::spec::Code;

/// An open call is announced at an index that does not mean it yet.
pub fn fork_item(
    desk: &RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    address: &Address<'_>,
) {
    let meant = choice.book.at(ItemKind::Call, address.index) == Some(item);
    let auto = desk.switches().dup_id_parallel_headers == ParallelHeaders::Auto;
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
    let fork = call
        .fork
        .get_or_insert_with(|| Box::new(SharedId::new(first, text)));
    fork.announce(index);
    // An overflow at either is a second call.
    call.announced_again.insert(Some(first));
    call.announced_again.insert(Some(index));
}

/// Text for the item's call. If it was two calls all along, the second one is the item's from here on.
pub fn push_item(
    desk: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    text: &Text<'_>,
    index: Option<i64>,
) -> Step {
    let count = choice.calls.len();
    let Some(slot) = choice.slot_of(item) else {
        return Ok(());
    };
    let is_forked = |choice: &Choice| choice.get(slot).is_some_and(|call| call.fork.is_some());
    let forked = is_forked(choice);
    let told = FragmentIdentity {
        index: index.filter(|_| forked),
        header: false,
        identified: true,
    };
    push_text(desk, choice, slot, text, told)?;
    if choice.calls.len() == count {
        return Ok(());
    }
    if forked && !is_forked(choice) {
        return adopt(desk, choice, slot, count);
    }
    let executed = choice.get(slot).is_some_and(|call| call.provider_executed);
    let new = choice.calls.len() - 1;
    if let Some(item) = choice.book.get_mut(item) {
        item.call = Some(new);
    }
    if let Some(call) = choice.get_mut(new) {
        call.provider_executed = executed;
    }
    call_events::show_start(desk.out, choice, new);
    Ok(())
}

/// The wire closes one of the indexes: whether they were several, as the joined text is nothing whole by then.
pub fn settle_fork(
    desk: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
) -> Result<bool, Fault> {
    let count = choice.calls.len();
    let Some((_, call)) = choice.item_call_mut(item) else {
        return Ok(false);
    };
    let slot = call.slot;
    let fork = call.fork.as_ref();
    if call.is_complete() || !fork.is_some_and(|fork| fork.divides_in_part()) {
        return Ok(false);
    }
    divide(desk, choice, slot)?;
    adopt(desk, choice, slot, count)?;
    Ok(true)
}

/// The calls from there on get items of their own, at the indexes that announced them.
fn adopt(desk: &mut RuleContext<'_, '_>, choice: &mut Choice, slot: usize, count: usize) -> Step {
    let Some(call) = choice.get(slot) else {
        return Ok(());
    };
    let (part, executed) = (call.part, call.provider_executed);
    desk.say(Code::AMBIGUOUS_DUPLICATE_ID, part)?;
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
            .book
            .create(desk, &choice.calls, ItemKind::Call, &address)?;
        if let Some(item) = choice.book.get_mut(own) {
            item.announced = true;
            item.call = Some(other);
        }
        choice.book.filled.push(own);
        call_events::show_start(desk.out, choice, other);
    }
    Ok(())
}
