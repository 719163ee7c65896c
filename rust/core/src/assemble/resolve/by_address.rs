//! Finds the item that an event refers to, or creates it if no event opened it.
//!
//! A new item at an index closes the item that was open there, unless more of that item may follow.

use crate::assemble::choice::Choice;
use crate::assemble::late_text::continue_part;
use crate::assemble::part::item::PartPosition;
use crate::assemble::part::item_call::CallProperties;
use crate::assemble::part::item_call::begin_call;
use crate::assemble::part::item_call::note_ids;
use crate::assemble::part::item_end::end_item;
use crate::assemble::part::item_text::PartKey;
use crate::assemble::part::item_text::add_joined_text;
use crate::assemble::part::item_text::open_part;
use crate::assemble::resolve::item_index::KINDS;
use crate::assemble::resolve::item_index::Purpose;
use crate::assemble::resolve::restatement::Restatement;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
use crate::model::delta::Address;
use crate::model::delta::ItemKind;
use crate::model::fault::Fault;
use crate::model::spec::Code;

/// Stores the ids of the address that was resolved to the item, so that later events with these ids are also resolved
/// to the item. Reports an unexpected id.
pub fn learn(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    address: &Address<'_>,
) -> ParseResult {
    let Choice {
        item_index,
        textual,
        ..
    } = choice;
    let other = item_index.learn(ctx, item, address, &mut textual.parts)?;
    note_ids(ctx, choice, item, address, other)
}

/// Returns the lookup tables with which a terminal list is matched. The first call builds the tables.
pub fn restatement(choice: &mut Choice) -> Box<Restatement> {
    match choice.item_index.restated.take() {
        Some(known) => known,
        None => Box::new(Restatement::new(choice)),
    }
}

/// Closes the items that are open at the index of the address, to make room for a new one. An item with an item id
/// stays open, because later deltas may refer to it by that id.
fn make_room(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    address: &Address<'_>,
) -> ParseResult {
    for kind in KINDS {
        let Some(before) = choice.item_index.at(kind, address.index) else {
            continue;
        };
        let Some(record) = choice.item_index.get(before) else {
            continue;
        };
        if !record.open || record.item_id.is_some() {
            continue;
        }
        // A call with incomplete arguments stays open, because more arguments may arrive with its call id.
        let half = choice.call_of(before).is_some_and(|call| {
            record.first.is_some() || (call.text.is_unfinished() && !call.is_empty())
        });
        if !half {
            end_item(ctx, choice, before, None, None)?;
        }
    }
    Ok(())
}

/// Creates an item, after closing the items that are open at the same index.
pub fn new_item(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    kind: ItemKind,
    address: &Address<'_>,
) -> Result<usize, Fault> {
    make_room(ctx, choice, address)?;
    choice.item_index.create(ctx, &choice.calls, kind, address)
}

/// Creates an item with its call, after closing the items that are open at the same index.
pub fn new_call(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    address: &Address<'_>,
    properties: CallProperties<'_>,
) -> Result<usize, Fault> {
    make_room(ctx, choice, address)?;
    call_of_delta(ctx, choice, address, properties)
}

/// Creates an item with its call. Items that are open at the same index stay open.
fn call_of_delta(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    address: &Address<'_>,
    properties: CallProperties<'_>,
) -> Result<usize, Fault> {
    let Choice {
        item_index, calls, ..
    } = choice;
    let before = address.call_id.and_then(|id| item_index.item_of_result(id));
    let item = item_index.create(ctx, calls, ItemKind::Call, address)?;
    let slot = begin_call(ctx, choice, item, address, properties, false)?;
    let before = before.and_then(|before| choice.call_of(before));
    let before = before.filter(|call| call.outcome.is_none() && !call.dropped);
    let before = before.map(|call| call.slot);
    if let Some(call) = choice.get_mut(slot) {
        call.first = before; // the earlier call closes later and keeps its id
    }
    fill(choice, item);
    Ok(item)
}

/// Adds the item to `filled`, the list of items with content, unless the item already has a part.
pub fn fill(choice: &mut Choice, item: usize) {
    let first = choice.item_index.get(item).is_some_and(|item| {
        item.parts.is_empty() && (item.call.is_none() || item.kind == ItemKind::Call)
    });
    if first {
        let filled = &mut choice.item_index.filled;
        // Reserve room for one item, because a `Vec` that grows on demand starts with room for four.
        filled.reserve_exact(usize::from(filled.is_empty()));
        filled.push(item);
    }
}

/// Returns the item for a part that an opening event announces, and creates the item if necessary.
pub fn item_of_opening(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    kind: ItemKind,
    address: &Address<'_>,
) -> Result<usize, Fault> {
    let known = choice.item_index.by_ids(&choice.calls, kind, address);
    let is = |item: usize, check: fn(bool, bool) -> bool| {
        let item = choice.item_index.get(item);
        item.is_some_and(|item| check(item.open, item.announced))
    };
    let inside = address.sub.is_some();
    if let Some(item) = known.filter(|item| inside || is(*item, |open, _| open)) {
        learn(ctx, choice, item, address)?;
        return Ok(item);
    }
    let bound = choice
        .item_index
        .at(kind, address.index)
        .filter(|_| known.is_none());
    let bound = bound.filter(|item| {
        is(*item, |open, _| open) && (inside || is(*item, |_, announced| !announced))
    });
    let item = match bound {
        Some(bound) => {
            learn(ctx, choice, bound, address)?;
            bound
        }
        None => new_item(ctx, choice, kind, address)?,
    };
    if let Some(item) = choice.item_index.get_mut(item) {
        item.announced = true;
    }
    choice.item_index.bind(item, address);
    Ok(item)
}

/// Returns the item that was found for an event (`item`), after storing the ids of the address in the item. Creates an
/// item if none was found.
pub fn known_item(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    kind: ItemKind,
    address: &Address<'_>,
    item: Option<usize>,
) -> Result<usize, Fault> {
    match item {
        None => choice.item_index.create(ctx, &choice.calls, kind, address),
        Some(item) => {
            learn(ctx, choice, item, address)?;
            Ok(item)
        }
    }
}

/// Returns the item that a delta of a call refers to. If no item is found and the delta has content (`brings`), creates
/// the item.
pub fn addressed_call(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    address: &Address<'_>,
    brings: bool,
) -> Result<Option<usize>, Fault> {
    let calls = &choice.calls;
    let found = choice
        .item_index
        .find(calls, ItemKind::Call, address, Purpose::Delta);
    if let Some(item) = found {
        if brings && choice.item_index.is_guess(address) {
            report_guess(ctx, choice, item)?;
        }
        learn(ctx, choice, item, address)?;
        return Ok(found);
    }
    if !brings {
        return Ok(None);
    }
    if !ctx.shared.ids_optional {
        ctx.out.mark_misread("not_opened"); // the opening event is missing
    }
    call_of_delta(ctx, choice, address, CallProperties::default()).map(Some)
}

/// Reports AM2, at most once per call: the delta was assigned to this call, but might belong to another open call.
fn report_guess(ctx: &mut RuleContext<'_, '_>, choice: &mut Choice, item: usize) -> ParseResult {
    let Some((_, call)) = choice.item_call_mut(item) else {
        return Ok(());
    };
    if call.guess_reported.contains(&Code::AMBIGUOUS_ORPHAN_INDEX) {
        return Ok(());
    }
    call.guess_reported.push(Code::AMBIGUOUS_ORPHAN_INDEX);
    let part = call.part;
    ctx.report(Code::AMBIGUOUS_ORPHAN_INDEX, part)
}

/// Opens a new part for content that first repeated a part but then differed from it. The new part begins with the
/// repeated text.
pub fn diverged(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    part_position: PartPosition,
    address: &Address<'_>,
) -> Result<PartPosition, Fault> {
    let Some((one, part)) = choice.item_part_mut(part_position) else {
        return Ok(part_position);
    };
    let equal = one.repeated.take().and_then(|end| part.text.get(..end));
    let equal = equal.unwrap_or_default().to_owned();
    let part_key = PartKey {
        channel: part.channel,
        kind: part.kind,
        sub: address.sub,
    };
    let item = choice.item_index.get(part_position.item);
    let nameless = item.filter(|item| item.item_id.is_none());
    let new = match nameless.map(|item| (item.kind, item.opened_bare)) {
        None => continue_part(ctx, choice, part_position, address.sub, (None, None))?,
        Some((kind, opened_bare)) => {
            let part = choice.item_part_mut(part_position);
            let joiner = part.map(|(one, _)| std::mem::take(&mut one.joiner));
            let item = new_item(ctx, choice, kind, address)?;
            if let Some(record) = choice.item_index.get_mut(item) {
                record.announced = true;
                record.opened_bare = opened_bare;
            }
            let new = opened(ctx, choice, item, part_key)?;
            if let Some((one, _)) = choice.item_part_mut(new) {
                one.joiner = joiner.unwrap_or_default();
            }
            new
        }
    };
    if !equal.is_empty() {
        add_joined_text(ctx, choice, new, &equal, address.sub, None)?;
    }
    choice.update_pending_part(new);
    Ok(new)
}

/// Ends an item that repeated only the beginning of a part, and opens a new part with the repeated text. Returns false
/// if the item did not repeat only the beginning of a part.
pub fn end_shorter_repetition(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    address: &Address<'_>,
) -> Result<bool, Fault> {
    let mut any = false;
    let first = choice
        .item_index
        .get(item)
        .map_or(0, |item| if item.open { item.ended } else { 0 });
    for part_position in choice.part_positions(item).skip(first) {
        let is_shorter = choice.item_part(part_position).is_some_and(|(one, part)| {
            let end = one.repeated.unwrap_or_default();
            end > 0 && end < part.text.len()
        });
        if is_shorter {
            let new = diverged(ctx, choice, part_position, address)?;
            end_item(ctx, choice, new.item, None, None)?;
            any = true;
        }
    }
    Ok(any)
}

/// Ends the repetition of a closed item. A repeated beginning of a part becomes a new part.
pub fn end_repetition(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    address: &Address<'_>,
) -> ParseResult {
    end_shorter_repetition(ctx, choice, item, address)?;
    for part_position in choice.part_positions(item) {
        if let Some((one, _)) = choice.item_part_mut(part_position) {
            one.repeated = None;
        }
    }
    if let Some(record) = choice.item_index.get_mut(item) {
        record.repeats = false;
    }
    Ok(())
}

/// Opens a part for which no opening event arrived.
pub fn opened(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    part_key: PartKey,
) -> Result<PartPosition, Fault> {
    fill(choice, item);
    open_part(ctx, choice, item, part_key, None, None)
}
