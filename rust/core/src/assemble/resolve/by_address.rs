//! The item that a delta leads to: found by its address, or made where nobody opened it.
//!
//! It knows items and addresses, and of their content only when a new one pushes an old one out.

use crate::assemble::choice::Choice;
use crate::assemble::part::item::Spot;
use crate::assemble::part::item_call::Traits;
use crate::assemble::part::item_call::begin_call;
use crate::assemble::part::item_call::note_ids;
use crate::assemble::part::item_end::end_item;
use crate::assemble::part::item_text::Make;
use crate::assemble::part::item_text::open_part;
use crate::assemble::resolve::item_index::KINDS;
use crate::assemble::resolve::item_index::Purpose;
use crate::assemble::resolve::restatement::Restatement;
use crate::assemble::rule_context::RuleContext;
use crate::assemble::rule_context::Step;
use crate::model::delta::Address;
use crate::model::delta::ItemKind;
use crate::model::fault::Fault;
use crate::model::spec::Code;

/// Notes the ids of an address that led to the item.
pub fn learn(
    desk: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    address: &Address<'_>,
) -> Step {
    let Choice { book, textual, .. } = choice;
    let other = book.learn(desk, item, address, &mut textual.parts)?;
    note_ids(desk, choice, item, address, other)
}

/// What was streamed, as a terminal list finds it.
pub fn restatement(choice: &mut Choice) -> Box<Restatement> {
    match choice.book.restated.take() {
        Some(known) => known,
        None => Box::new(Restatement::new(choice)),
    }
}

/// What is open at the index, and has no id by which it could still be meant, is over.
fn make_room(desk: &mut RuleContext<'_, '_>, choice: &mut Choice, address: &Address<'_>) -> Step {
    for kind in KINDS {
        let Some(before) = choice.book.at(kind, address.index) else {
            continue;
        };
        let Some(record) = choice.book.get(before) else {
            continue;
        };
        if !record.open || record.item_id.is_some() {
            continue;
        }
        // Half a call is none: it may yet be told as a whole, by its call id.
        let half = choice.call_of(before).is_some_and(|call| {
            record.first.is_some() || (call.text.is_unfinished() && !call.is_empty())
        });
        if !half {
            end_item(desk, choice, before, None, None)?;
        }
    }
    Ok(())
}

/// A new item, at the place of what was there.
pub fn new_item(
    desk: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    kind: ItemKind,
    address: &Address<'_>,
) -> Result<usize, Fault> {
    make_room(desk, choice, address)?;
    choice.book.create(desk, &choice.calls, kind, address)
}

/// A new item with its call.
pub fn new_call(
    desk: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    address: &Address<'_>,
    traits: Traits<'_>,
) -> Result<usize, Fault> {
    make_room(desk, choice, address)?;
    call_of_delta(desk, choice, address, traits)
}

/// A new item with its call, which ends nothing that is open.
fn call_of_delta(
    desk: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    address: &Address<'_>,
    traits: Traits<'_>,
) -> Result<usize, Fault> {
    let Choice { book, calls, .. } = choice;
    let before = address.call_id.and_then(|id| book.item_of_result(id));
    let item = book.create(desk, calls, ItemKind::Call, address)?;
    let slot = begin_call(desk, choice, item, address, traits, false)?;
    let before = before.and_then(|before| choice.call_of(before));
    let before = before.filter(|call| call.ended && call.verdict.is_none() && !call.dropped);
    let before = before.map(|call| call.slot);
    if let Some(call) = choice.get_mut(slot) {
        call.first = before; // it closed without text, and is told later: the id stays its own
    }
    fill(choice, item);
    Ok(item)
}

/// The item gets its first part, or its call.
pub fn fill(choice: &mut Choice, item: usize) {
    let first = choice.book.get(item).is_some_and(|item| {
        item.parts.is_empty() && (item.call.is_none() || item.kind == ItemKind::Call)
    });
    if first {
        let filled = &mut choice.book.filled;
        // A list that grows by itself begins with four.
        filled.reserve_exact(usize::from(filled.is_empty()));
        filled.push(item);
    }
}

/// A part opens: in an item that is there, or in one that opens with it.
pub fn item_of_opening(
    desk: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    kind: ItemKind,
    address: &Address<'_>,
) -> Result<usize, Fault> {
    let known = choice.book.by_ids(&choice.calls, kind, address);
    let is = |item: usize, check: fn(bool, bool) -> bool| {
        let item = choice.book.get(item);
        item.is_some_and(|item| check(item.open, item.announced))
    };
    let inside = address.sub.is_some();
    if let Some(item) = known.filter(|item| inside || is(*item, |open, _| open)) {
        learn(desk, choice, item, address)?;
        return Ok(item);
    }
    let bound = choice
        .book
        .at(kind, address.index)
        .filter(|_| known.is_none());
    let bound = bound.filter(|item| {
        is(*item, |open, _| open) && (inside || is(*item, |_, announced| !announced))
    });
    let item = match bound {
        Some(bound) => {
            learn(desk, choice, bound, address)?;
            bound
        }
        None => new_item(desk, choice, kind, address)?,
    };
    if let Some(item) = choice.book.get_mut(item) {
        item.announced = true;
    }
    choice.book.bind(item, address);
    Ok(item)
}

/// The item that a delta led to, or a placeholder for one that nobody opened. It ends nothing that is open.
pub fn known_item(
    desk: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    kind: ItemKind,
    address: &Address<'_>,
    item: Option<usize>,
) -> Result<usize, Fault> {
    match item {
        None => choice.book.create(desk, &choice.calls, kind, address),
        Some(item) => {
            learn(desk, choice, item, address)?;
            Ok(item)
        }
    }
}

/// The item of a call's delta; a placeholder where nobody opened it and the delta brings something.
pub fn addressed_call(
    desk: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    address: &Address<'_>,
    brings: bool,
) -> Result<Option<usize>, Fault> {
    let calls = &choice.calls;
    let found = choice
        .book
        .find(calls, ItemKind::Call, address, Purpose::Delta);
    if let Some(item) = found {
        if brings && choice.book.is_guess(address) {
            say_guess(desk, choice, item)?;
        }
        learn(desk, choice, item, address)?;
        return Ok(found);
    }
    if !brings {
        return Ok(None);
    }
    call_of_delta(desk, choice, address, Traits::default()).map(Some)
}

/// AM2, once a call.
fn say_guess(desk: &mut RuleContext<'_, '_>, choice: &mut Choice, item: usize) -> Step {
    let Some((_, call)) = choice.item_call_mut(item) else {
        return Ok(());
    };
    if call.guess_said.contains(&Code::AMBIGUOUS_ORPHAN_INDEX) {
        return Ok(());
    }
    call.guess_said.push(Code::AMBIGUOUS_ORPHAN_INDEX);
    let part = call.part;
    desk.say(Code::AMBIGUOUS_ORPHAN_INDEX, part)
}

/// A new part, of which nothing is known yet.
pub fn opened(
    desk: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    make: Make,
) -> Result<Spot, Fault> {
    fill(choice, item);
    open_part(desk, choice, item, make, None, None)
}
