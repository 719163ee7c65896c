//! Appends argument text to a tool call and emits the resulting events.
//!
//! The caller has already determined which call a fragment belongs to, and `arguments` repairs the text. This module
//! decides only the cases in which the argument text shows that a fragment belongs to another call: R1g, AM3 and an
//! overflow (A8).

use crate::assemble::choice::Choice;
use crate::assemble::choice::DisplacedKey;
use crate::assemble::part::call_events;
use crate::assemble::part::fragment::Change;
use crate::assemble::part::object_merge::ObjectMerge;
use crate::assemble::resolve::apply_identity::report_guess;
use crate::assemble::resolve::apply_identity::sibling;
use crate::assemble::resolve::by_evidence::guess;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
use crate::json::Text;
use crate::model::fault::Fault;
use crate::model::policy::Overflow;
use crate::model::spec::Code;
use std::borrow::Cow;

/// What the fragment contained in addition to the text: an index, a name (`header`) and an id (`identified`).
#[derive(Clone, Copy, Debug)]
pub struct FragmentIdentity {
    pub index: Option<i64>,
    pub header: bool,
    pub identified: bool,
}

/// Appends one piece of argument text to a call. Joins surrogate halves that arrive in two pieces.
#[inline]
pub fn push_text(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    text: &Text<'_>,
    identity: FragmentIdentity,
) -> ParseResult {
    let Some(call) = choice.get_mut(slot) else {
        return Ok(());
    };
    if !call.joiner.is_pending()
        && text.lead_low.is_none()
        && text.tail_high.is_none()
        && !text.lone
    {
        return append_bytes(ctx, choice, slot, text.body.as_bytes(), identity);
    }
    let continues = call.joiner.is_pending();
    let (piece, lone) = call.joiner.join(text.clone());
    if continues || call.joiner.is_pending() {
        ctx.out.mark_misread("half_character");
    }
    if lone {
        ctx.report(Code::LONE_SURROGATE, call.part)?;
    }
    if piece.is_empty() {
        return Ok(());
    }
    append_bytes(ctx, choice, slot, piece.as_bytes(), identity)
}

/// Appends bytes to the arguments of a call as if their fragment had a name and an id. Bytes that belong to another
/// call are appended to that call.
pub fn append_to_arguments(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    piece: &[u8],
    index: Option<i64>,
) -> ParseResult {
    let identity = FragmentIdentity {
        index,
        header: true,
        identified: true,
    };
    append_bytes(ctx, choice, slot, piece, identity)
}

/// Appends bytes to the arguments of a call that is being closed, as if their fragment had an id but no name.
pub fn give_tail(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    piece: &[u8],
) -> ParseResult {
    let identity = FragmentIdentity {
        index: choice.get(slot).and_then(|call| call.index),
        header: false,
        identified: true,
    };
    append_bytes(ctx, choice, slot, piece, identity)
}

fn append_bytes(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    piece: &[u8],
    identity: FragmentIdentity,
) -> ParseResult {
    let mut siblings = Vec::new();
    let mut spill = append_to_call(ctx, choice, slot, piece, identity)?;
    // After each complete JSON value in the piece, the remaining bytes may belong to another call.
    while let Some(first) = spill.take() {
        let owned = first.piece.into_owned();
        let (mut piece, mut slot, mut is_sibling) =
            (owned.as_slice(), first.slot, first.is_sibling);
        loop {
            if is_sibling {
                siblings.push(slot);
            }
            let identity = FragmentIdentity {
                index: identity.index,
                header: is_sibling,
                identified: is_sibling,
            };
            let Some(next) = append_to_call(ctx, choice, slot, piece, identity)? else {
                break;
            };
            match next.piece {
                Cow::Borrowed(rest) => {
                    (piece, slot, is_sibling) = (rest, next.slot, next.is_sibling)
                }
                Cow::Owned(rest) => {
                    let piece = Cow::Owned(rest);
                    spill = Some(OverflowBytes { piece, ..next });
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
struct OverflowBytes<'p> {
    slot: usize,
    piece: Cow<'p, [u8]>,
    /// The call was created for these bytes.
    is_sibling: bool,
}

fn append_to_call<'p>(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    piece: &'p [u8],
    identity: FragmentIdentity,
) -> Result<Option<OverflowBytes<'p>>, Fault> {
    let Some(call) = choice.calls.get_mut(slot) else {
        return Ok(None);
    };
    if let Some(shared_id) = &mut call.shared_id {
        shared_id.add(identity.index, piece);
        if shared_id.divides() && !call.text.accepts(piece) {
            divide(ctx, choice, slot)?;
            return Ok(None);
        }
    }
    if let Some(merge) = &call.merge {
        let before = merge.size;
        call.settle_merge();
        ctx.count_arguments(before, call.text.size())?;
    }
    call.object_arguments = false;
    let size = call.text.size();
    ctx.check_piece(piece.len())?;
    let header = identity.header || call.announced_again.contains(&identity.index);
    let push = call.text.push(piece, header);
    if let Err(fault) = ctx.count_arguments(size, call.text.size()) {
        call.text.undo(size);
        return Err(fault);
    }
    if push.change == Change::Overflow {
        call_events::publish(ctx.out, choice, slot);
        choice.track(slot);
        return overflow(ctx, choice, slot, push.spill, identity);
    }
    if let Some(code) = push.code {
        ctx.report(code, call.part)?;
    }
    if !call.text.is_empty() {
        call.tentative = false;
    }
    if push.change == Change::Replaced {
        call_events::reset(ctx.out, choice, slot);
    }
    call_events::publish(ctx.out, choice, slot);
    choice.track(slot);
    Ok(None)
}

/// AM3: splits the call into several calls, one for each index at which the call's id was announced.
pub fn divide(ctx: &mut RuleContext<'_, '_>, choice: &mut Choice, slot: usize) -> ParseResult {
    let Some(shared_id) = choice.get_mut(slot).and_then(|call| call.shared_id.take()) else {
        return Ok(());
    };
    let mut last = slot;
    for (position, (index, own)) in shared_id.texts().into_iter().enumerate() {
        if position == 0 {
            let length = own.len();
            let Some(call) = choice.get_mut(slot) else {
                return Ok(());
            };
            let size = call.text.size();
            call.text.replace(own);
            call.several_indexes = false;
            ctx.count_arguments(size, length)?;
            call_events::reset(ctx.out, choice, slot);
            choice.by_index.set(index, slot);
            call_events::publish(ctx.out, choice, slot);
            choice.track(slot);
            continue;
        }
        let id = choice.get(slot).and_then(|call| call.id.clone());
        // Only the other call ever had this index, so no index moves between calls.
        choice.by_index.release(index, slot);
        let other = sibling(ctx, choice, slot, Some(index))?;
        if let Some(call) = choice.get_mut(other) {
            call.first = Some(slot);
            call.tentative = own.is_empty();
        }
        if let Some(id) = id {
            choice.set_id(other, id);
        }
        if !own.is_empty() {
            append_to_arguments(ctx, choice, other, &own, Some(index))?;
        }
        choice.track(other);
        last = choice.calls.len() - 1;
    }
    if let Some(id) = choice.get(slot).and_then(|call| call.id.clone()) {
        choice.by_id.insert(id, last);
    }
    Ok(())
}

/// AM3: splits the call when it closes, if the joined text is not complete but the text of each index is a complete
/// object.
pub fn close_shared_id(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
) -> ParseResult {
    let divides = choice.get(slot).is_some_and(|call| {
        !call.is_complete()
            && call
                .shared_id
                .as_ref()
                .is_some_and(|shared_id| shared_id.divides_whole())
    });
    if divides {
        divide(ctx, choice, slot)?;
    }
    if let Some(call) = choice.get_mut(slot) {
        call.shared_id = None;
    }
    Ok(())
}

/// Appends arguments that arrived as an object instead of a string. The first object becomes the text; later objects
/// are merged into it.
pub fn push_object(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    raw: &[u8],
    identity: FragmentIdentity,
) -> ParseResult {
    let Some(call) = choice.get_mut(slot) else {
        return Ok(());
    };
    if !call.object_arguments {
        let first = call.is_empty();
        call.held_back = first;
        append_bytes(ctx, choice, slot, raw, identity)?;
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
        ctx.report(Code::ARGS_MERGED, call.part)?;
        call.merge = Some(Box::new(ObjectMerge::new(&call.text.text())));
    }
    if let Some(merge) = choice.get_mut(slot).and_then(|call| call.merge.as_mut()) {
        merge.add(&String::from_utf8_lossy(raw));
        ctx.count_arguments(before, merge.size)?;
    }
    Ok(())
}

/// Handles an overflow (A8), that is, text after a complete value. Stores the text as overflow of the call, or returns
/// the other call that the text belongs to.
fn overflow<'p>(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    piece: Cow<'p, [u8]>,
    identity: FragmentIdentity,
) -> Result<Option<OverflowBytes<'p>>, Fault> {
    let Some(call) = choice.get_mut(slot) else {
        return Ok(None);
    };
    let index = identity.index;
    if call.text.overflow.is_empty() {
        if call.announced_again.contains(&index) || call.text.replay_has_header {
            // R1g, R1e: the call was announced again, so this text belongs to a second call.
            call.text.replay_has_header = false;
            let slot = new_sibling(ctx, choice, slot, index, true)?;
            let is_sibling = true;
            return Ok(Some(OverflowBytes {
                slot,
                piece,
                is_sibling,
            }));
        }
        let known = identity.identified || identity.header;
        let other = choice
            .accepting(&piece, false, Some(slot))
            .filter(|_| !known);
        if let Some(other) = other {
            if let Some(note) = guess(choice, other) {
                report_guess(ctx, choice, other, note)?;
            }
            choice.bind(other, index);
            return Ok(Some(OverflowBytes {
                slot: other,
                piece,
                is_sibling: false,
            }));
        }
        if ctx.switches().on_overflow == Overflow::Split {
            let slot = new_sibling(ctx, choice, slot, index, false)?;
            let is_sibling = true;
            return Ok(Some(OverflowBytes {
                slot,
                piece,
                is_sibling,
            }));
        }
        if let Some(call) = choice.get(slot) {
            ctx.report(Code::ARGS_OVERFLOW, call.part)?;
        }
    }
    let Some(call) = choice.get_mut(slot) else {
        return Ok(None);
    };
    let size = call.text.size();
    call.text.overflow.extend_from_slice(&piece);
    if let Err(fault) = ctx.count_arguments(size, call.text.size()) {
        call.text.undo(size);
        return Err(fault);
    }
    Ok(None)
}

fn new_sibling(
    ctx: &mut RuleContext<'_, '_>,
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
    let other = sibling(ctx, choice, slot, index)?;
    if let Some(id) = id.filter(|_| keep_id) {
        if let Some(call) = choice.get_mut(other) {
            call.first = Some(slot);
        }
        choice.set_id(other, id.clone());
        choice.by_id.insert(id, other);
    }
    Ok(other)
}
