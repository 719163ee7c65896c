//! Appends argument text to a tool call, repairs it and emits the events (R1g, AM3, A8).
//!
//! `arguments` holds the repairs; which call a fragment belongs to was decided before. This module decides only what
//! needs the text itself: R1g, AM3 and an overflow (A8).

use crate::assemble::choice::Choice;
use crate::assemble::choice::DisplacedKey;
use crate::assemble::part::call_events;
use crate::assemble::part::fragment::Change;
use crate::assemble::part::object_merge::ObjectMerge;
use crate::assemble::resolve::apply_identity::say_guess;
use crate::assemble::resolve::apply_identity::sibling;
use crate::assemble::resolve::by_evidence::guess;
use crate::assemble::rule_context::RuleContext;
use crate::assemble::rule_context::Step;
use crate::json::Text;
use crate::model::fault::Fault;
use crate::model::policy::Overflow;
use crate::model::spec::Code;
use std::borrow::Cow;

/// The identity members that came with the text of a fragment.
#[derive(Clone, Copy, Debug)]
pub struct FragmentIdentity {
    pub index: Option<i64>,
    pub header: bool,
    pub identified: bool,
}

/// Appends one piece of argument text to a call.
#[inline]
pub fn push_text(
    desk: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    text: &Text<'_>,
    told: FragmentIdentity,
) -> Step {
    let Some(call) = choice.get_mut(slot) else {
        return Ok(());
    };
    if !call.joiner.is_pending()
        && text.lead_low.is_none()
        && text.tail_high.is_none()
        && !text.lone
    {
        return pour(desk, choice, slot, text.body.as_bytes(), told);
    }
    let (piece, lone) = call.joiner.join(text.clone());
    if lone {
        desk.say(Code::LONE_SURROGATE, call.part)?;
    }
    if piece.is_empty() {
        return Ok(());
    }
    pour(desk, choice, slot, piece.as_bytes(), told)
}

/// Appends argument bytes that carry a header. An overflow goes to another call.
pub fn give(
    desk: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    piece: &[u8],
    index: Option<i64>,
) -> Step {
    let told = FragmentIdentity {
        index,
        header: true,
        identified: true,
    };
    pour(desk, choice, slot, piece, told)
}

/// Appends the replacement for half a surrogate pair that was still pending at the end of the stream.
pub fn give_tail(
    desk: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    piece: &[u8],
) -> Step {
    let told = FragmentIdentity {
        index: choice.get(slot).and_then(|call| call.index),
        header: false,
        identified: true,
    };
    pour(desk, choice, slot, piece, told)
}

fn pour(
    desk: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    piece: &[u8],
    told: FragmentIdentity,
) -> Step {
    let mut siblings = Vec::new();
    let mut spill = pour_one(desk, choice, slot, piece, told)?;
    // Each call may pass bytes on to another one, once per value in the piece.
    while let Some(first) = spill.take() {
        let owned = first.piece.into_owned();
        let (mut piece, mut slot, mut is_sibling) =
            (owned.as_slice(), first.slot, first.is_sibling);
        loop {
            if is_sibling {
                siblings.push(slot);
            }
            let told = FragmentIdentity {
                index: told.index,
                header: is_sibling,
                identified: is_sibling,
            };
            let Some(next) = pour_one(desk, choice, slot, piece, told)? else {
                break;
            };
            match next.piece {
                Cow::Borrowed(rest) => {
                    (piece, slot, is_sibling) = (rest, next.slot, next.is_sibling)
                }
                Cow::Owned(rest) => {
                    let piece = Cow::Owned(rest);
                    spill = Some(Spill { piece, ..next });
                    break;
                }
            }
        }
    }
    for sibling in siblings.into_iter().rev() {
        choice.track(sibling);
    }
    Ok(())
}

/// Bytes that belong to another call.
struct Spill<'p> {
    slot: usize,
    piece: Cow<'p, [u8]>,
    /// The call was created for these bytes.
    is_sibling: bool,
}

fn pour_one<'p>(
    desk: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    piece: &'p [u8],
    told: FragmentIdentity,
) -> Result<Option<Spill<'p>>, Fault> {
    let Some(call) = choice.calls.get_mut(slot) else {
        return Ok(None);
    };
    if let Some(fork) = &mut call.fork {
        fork.add(told.index, piece);
        if fork.divides() && !call.text.accepts(piece) {
            divide(desk, choice, slot)?;
            return Ok(None);
        }
    }
    if let Some(merge) = &call.merge {
        let before = merge.size;
        call.settle_merge();
        desk.count_arguments(before, call.text.size())?;
    }
    call.object_arguments = false;
    let size = call.text.size();
    desk.check_piece(piece.len())?;
    let header = told.header || call.announced_again.contains(&told.index);
    let push = call.text.push(piece, header);
    if let Err(fault) = desk.count_arguments(size, call.text.size()) {
        call.text.undo(size);
        return Err(fault);
    }
    if push.change == Change::Overflow {
        call_events::publish(desk.out, choice, slot);
        choice.track(slot);
        return overflow(desk, choice, slot, push.spill, told);
    }
    if let Some(code) = push.code {
        desk.say(code, call.part)?;
    }
    if !call.text.is_empty() {
        call.tentative = false;
    }
    if push.change == Change::Replaced {
        call_events::reset(desk.out, choice, slot);
    }
    call_events::publish(desk.out, choice, slot);
    choice.track(slot);
    Ok(None)
}

/// Splits the call (AM3): one call for each index that announced the id.
pub fn divide(desk: &mut RuleContext<'_, '_>, choice: &mut Choice, slot: usize) -> Step {
    let Some(fork) = choice.get_mut(slot).and_then(|call| call.fork.take()) else {
        return Ok(());
    };
    let mut last = slot;
    for (place, (index, own)) in fork.texts().into_iter().enumerate() {
        if place == 0 {
            let length = own.len();
            let Some(call) = choice.get_mut(slot) else {
                return Ok(());
            };
            let size = call.text.size();
            call.text.replace(own);
            call.several_indexes = false;
            desk.count_arguments(size, length)?;
            call_events::reset(desk.out, choice, slot);
            choice.by_index.set(index, slot);
            call_events::publish(desk.out, choice, slot);
            choice.track(slot);
            continue;
        }
        let id = choice.get(slot).and_then(|call| call.id.clone());
        let other = sibling(desk, choice, slot, Some(index))?;
        if let Some(call) = choice.get_mut(other) {
            call.first = Some(slot);
            call.tentative = own.is_empty();
        }
        if let Some(id) = id {
            choice.set_id(other, id);
        }
        if !own.is_empty() {
            give(desk, choice, other, &own, Some(index))?;
        }
        choice.track(other);
        last = choice.calls.len() - 1;
    }
    if let Some(id) = choice.get(slot).and_then(|call| call.id.clone()) {
        choice.by_id.insert(id, last);
    }
    Ok(())
}

/// Decides AM3 at the end: splits an unfinished text if the text of each index is a whole object.
pub fn close_fork(desk: &mut RuleContext<'_, '_>, choice: &mut Choice, slot: usize) -> Step {
    let divides = choice.get(slot).is_some_and(|call| {
        !call.is_complete() && call.fork.as_ref().is_some_and(|fork| fork.divides_whole())
    });
    if divides {
        divide(desk, choice, slot)?;
    }
    if let Some(call) = choice.get_mut(slot) {
        call.fork = None;
    }
    Ok(())
}

/// Appends arguments that arrived as an object. The first object becomes the text; later ones are merged into it.
pub fn push_object(
    desk: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    raw: &[u8],
    told: FragmentIdentity,
) -> Step {
    let Some(call) = choice.get_mut(slot) else {
        return Ok(());
    };
    if !call.object_arguments {
        let first = call.is_empty();
        call.held_back = first;
        pour(desk, choice, slot, raw, told)?;
        if let Some(call) = choice.get_mut(slot) {
            call.object_arguments = first && call.text.is_complete();
        }
        return Ok(());
    }
    let before = call
        .merge
        .as_ref()
        .map_or(call.text.size(), |merge| merge.size);
    if call.merge.is_none() {
        desk.say(Code::ARGS_MERGED, call.part)?;
        call.merge = Some(Box::new(ObjectMerge::new(&call.text.text())));
    }
    if let Some(merge) = choice.get_mut(slot).and_then(|call| call.merge.as_mut()) {
        merge.add(&String::from_utf8_lossy(raw));
        desk.count_arguments(before, merge.size)?;
    }
    Ok(())
}

/// Handles an overflow (A8): text after a complete value, without a header of its own.
fn overflow<'p>(
    desk: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    piece: Cow<'p, [u8]>,
    told: FragmentIdentity,
) -> Result<Option<Spill<'p>>, Fault> {
    let Some(call) = choice.get_mut(slot) else {
        return Ok(None);
    };
    let index = told.index;
    if call.text.overflow.is_empty() {
        if call.announced_again.contains(&index) || call.text.shadow_has_header {
            // R1g, R1e: the call was announced a second time, and this text is the arguments of the second call.
            call.text.shadow_has_header = false;
            let slot = new_sibling(desk, choice, slot, index, true)?;
            let is_sibling = true;
            return Ok(Some(Spill {
                slot,
                piece,
                is_sibling,
            }));
        }
        let known = told.identified || told.header;
        let other = choice
            .accepting(&piece, false, Some(slot))
            .filter(|_| !known);
        if let Some(other) = other {
            if let Some(note) = guess(choice, other) {
                say_guess(desk, choice, other, note)?;
            }
            choice.bind(other, index);
            return Ok(Some(Spill {
                slot: other,
                piece,
                is_sibling: false,
            }));
        }
        if desk.switches().on_overflow == Overflow::Split {
            let slot = new_sibling(desk, choice, slot, index, false)?;
            let is_sibling = true;
            return Ok(Some(Spill {
                slot,
                piece,
                is_sibling,
            }));
        }
        if let Some(call) = choice.get(slot) {
            desk.say(Code::ARGS_OVERFLOW, call.part)?;
        }
    }
    let Some(call) = choice.get_mut(slot) else {
        return Ok(None);
    };
    let size = call.text.size();
    call.text.overflow.extend_from_slice(&piece);
    if let Err(fault) = desk.count_arguments(size, call.text.size()) {
        call.text.undo(size);
        return Err(fault);
    }
    Ok(None)
}

fn new_sibling(
    desk: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    index: Option<i64>,
    keep_id: bool,
) -> Result<usize, Fault> {
    let id = choice.get(slot).and_then(|call| call.id.clone());
    match (&id, index) {
        (Some(id), _) => choice.remember(slot, DisplacedKey::Id(id.clone())),
        (None, Some(index)) => choice.remember(slot, DisplacedKey::Index(index)),
        (None, None) => {}
    }
    let other = sibling(desk, choice, slot, index)?;
    if let Some(id) = id.filter(|_| keep_id) {
        if let Some(call) = choice.get_mut(other) {
            call.first = Some(slot);
        }
        choice.set_id(other, id.clone());
        choice.by_id.insert(id, other);
    }
    Ok(other)
}
