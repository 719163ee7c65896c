//! Handles tool calls that the stream opens and closes explicitly: combines the opening event, the deltas and the final
//! value, and closes the calls.
//!
//! opening   its arguments are a snapshot; the deltas repeat it, continue it, or contain other text
//! delta     the argument text goes through the rules of `arguments`, as in Chat
//! value     the complete arguments replace the streamed text, except that complete streamed arguments are kept if the
//!           value is a placeholder or not an object
//! closing   a call with text, or one that the provider executes, becomes final; any other call stays open until text
//!           arrives or the choice ends
//!
//! `reannounced` handles calls that are announced again. The callers determine which call an address refers to.

use crate::assemble::choice::Choice;
use crate::assemble::lost_beginning::with_beginning;
use crate::assemble::part::arguments::ArgumentText;
use crate::assemble::part::call::Call;
use crate::assemble::part::call::Id;
use crate::assemble::part::call::MAX_ALIASES;
use crate::assemble::part::call_events;
use crate::assemble::part::canonical_json::canonical;
use crate::assemble::part::canonical_json::is_whole;
use crate::assemble::part::classify::ends_whole;
use crate::assemble::part::close_calls::close_call;
use crate::assemble::part::fragment::alone;
use crate::assemble::part::fragment::trim;
use crate::assemble::part::item::Item;
use crate::assemble::part::item_shared_id::push_item;
use crate::assemble::part::item_text::complete_text;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
use crate::json::Status;
use crate::json::Text;
use crate::model::delta::Address;
use crate::model::event::WireFact;
use crate::model::fault::Fault;
use crate::model::spec::Code;

/// An empty object is treated as a placeholder only if its JSON, including whitespace, has fewer bytes than this
/// number.
const SHORT: usize = 64;

/// The properties of a call other than its ids, name and arguments.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallProperties<'a> {
    pub custom: bool,
    pub provider_executed: bool,
    pub metadata: Option<&'a str>,
}

impl Choice {
    /// Returns the call of an item, or `None` if the item has no call.
    pub fn call_of(&self, item: usize) -> Option<&Call> {
        self.calls.get(self.item_index.get(item)?.call?)
    }

    /// Returns the item and its call, or `None` if the item has no call.
    pub fn item_call_mut(&mut self, item: usize) -> Option<(&mut Item, &mut Call)> {
        let item = self.item_index.get_mut(item)?;
        let call = self.calls.get_mut(item.call?)?;
        Some((item, call))
    }

    pub fn slot_of(&self, item: usize) -> Option<usize> {
        self.item_index.get(item)?.call
    }
}

/// Creates the call of an item. `hidden`: the call is created as dropped, because it may be a repetition of an earlier
/// call.
pub fn begin_call(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    address: &Address<'_>,
    properties: CallProperties<'_>,
    hidden: bool,
) -> Result<usize, Fault> {
    let nameless = address.call_id.is_none() && !ctx.shared.ids_optional;
    let taken = address.call_id.is_some_and(|id| ctx.shared.is_used(id));
    if hidden {
        ctx.out.mark_misread("another_call");
    } else if nameless {
        ctx.out.mark_misread("no_id");
    } else if taken {
        ctx.out.mark_misread("id_taken");
    }
    let slot = choice.create(ctx, properties.custom)?;
    let item_id = choice
        .item_index
        .get(item)
        .and_then(|item| item.emitted_id());
    let item_id = item_id.cloned();
    let known = |id: &str| choice.item_index.by_call.key(id).cloned();
    let id = address.call_id;
    let id = id.map(|id| known(id).unwrap_or_else(|| id.into()));
    if let Some(id) = &id {
        ctx.shared.ids_seen.insert(id.clone());
    }
    if let Some(call) = choice.get_mut(slot) {
        call.item_id = item_id;
        call.provider_executed = properties.provider_executed;
    }
    choice.set_dropped(slot, hidden);
    if let Some(id) = id {
        choice.set_id(slot, id);
    }
    choice.bind(slot, address.index);
    if let Some(item) = choice.item_index.get_mut(item) {
        item.call = Some(slot);
    }
    Ok(slot)
}

/// Stores properties of a call. Does nothing if the call is final.
pub fn describe(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    properties: CallProperties<'_>,
) -> ParseResult {
    let Some(call) = choice.get_mut(slot).filter(|call| call.outcome.is_none()) else {
        return Ok(());
    };
    call.provider_executed |= properties.provider_executed;
    if properties.custom && !call.custom && call.is_empty() {
        call.custom = true;
        call.text = ArgumentText::new(true);
    }
    if let Some(metadata) = properties.metadata {
        let more = call.metadata.get_or_insert_default().add(metadata);
        ctx.spend_growth(more)?;
    }
    Ok(())
}

/// Sets the name of a call and emits its start event, because the dialect sends each name in one piece. If the call
/// already has another name, only reports the conflict.
pub fn name_call(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    name: Option<&str>,
) -> ParseResult {
    let Some(name) = name.filter(|name| !name.trim().is_empty()) else {
        return Ok(());
    };
    ctx.check_name(name)?;
    let Some(call) = choice.get_mut(slot) else {
        return Ok(());
    };
    if call.name.is_empty() {
        name.clone_into(&mut call.name);
        if !call.dropped {
            call_events::show_start(ctx.out, choice, slot);
            call_events::publish(ctx.out, choice, slot);
        }
    } else if name != call.name && !std::mem::replace(&mut call.name_conflict_reported, true) {
        let part = call.part;
        ctx.out.diagnose(Code::NAME_CONFLICT, Some(part), name)?;
    }
    Ok(())
}

/// Stores in the item's call the ids of an address that was resolved to the item. The first call id becomes the id of
/// the call; other ids become aliases. `other`: an id that is reported as unstable.
pub fn note_ids(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    address: &Address<'_>,
    other: Option<String>,
) -> ParseResult {
    let first_part = choice.part_positions(item).next();
    let first_part = first_part
        .and_then(|part_position| choice.item_part(part_position).map(|(_, part)| part.part));
    if let (Some(call), Some(call_id)) = (choice.call_of(item), address.call_id)
        && call.outcome.is_none()
        && call.id.is_none()
    {
        let (slot, id) = (call.slot, Id::from(call_id));
        ctx.shared.ids_seen.insert(id.clone());
        choice.set_id(slot, id);
    }
    let Some((record, call)) = choice.item_call_mut(item) else {
        return match other {
            Some(other) => ctx.out.diagnose(Code::UNSTABLE_ID, first_part, &other),
            None => Ok(()),
        };
    };
    if call.outcome.is_none() {
        if call.item_id.is_none() {
            call.item_id = record.emitted_id().cloned();
        }
        for identity in [address.item_id, address.call_id].into_iter().flatten() {
            let of_item = [record.item_id.as_deref(), call.item_id.as_deref()];
            let known = of_item.contains(&Some(identity)) || call.has_id(identity);
            if !known && call.aliases.len() < MAX_ALIASES && !identity.contains('|') {
                call.aliases.push(identity.to_owned());
            }
        }
    }
    match other.filter(|_| !call.dropped) {
        Some(other) => ctx.out.diagnose(Code::UNSTABLE_ID, Some(call.part), &other),
        None => Ok(()),
    }
}

/// Stores the arguments in the opening event as a snapshot. If the call already has different arguments, appends the
/// event's arguments to the existing arguments instead.
pub fn hold(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    arguments: Option<Text<'_>>,
    index: Option<i64>,
) -> ParseResult {
    let Some(held) = complete_text(arguments) else {
        return Ok(());
    };
    let Some((record, call)) = choice.item_call_mut(item).filter(|(item, _)| !item.valued) else {
        return Ok(());
    };
    if record.snapshot.is_none() && call.is_empty() {
        ctx.check_piece(held.len())?;
        ctx.count_arguments(0, held.len())?;
        record.snapshot = Some(held.into());
    } else if record.snapshot.as_deref() != Some(&held)
        && !call.text.data.starts_with(held.as_bytes())
    {
        return push_item(ctx, choice, item, &Text::plain(&held), index);
    }
    Ok(())
}

/// Applies one delta with argument text. Reports the delta as late if the call already has its complete arguments.
pub fn add_arguments(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    text: &Text<'_>,
    index: Option<i64>,
) -> ParseResult {
    let Some((record, call)) = choice.item_call_mut(item).filter(|_| !text.is_empty()) else {
        return Ok(());
    };
    if record.valued || call.outcome.is_some() {
        if std::mem::replace(&mut record.late_reported, true) {
            return Ok(());
        }
        let part = call.part;
        return ctx.report(Code::LATE_DELTA, part);
    }
    if call.ended && !std::mem::replace(&mut record.late_reported, true) {
        let part = call.part;
        ctx.report(Code::LATE_DELTA, part)?;
    }
    let Some((record, call)) = choice.item_call_mut(item) else {
        return Ok(());
    };
    if let Some(held) = record
        .snapshot
        .as_ref()
        .filter(|_| !record.own_text)
        .cloned()
    {
        record.own_text = true;
        let (sent, _) = text.clone().into_whole();
        let repeated = held.starts_with(sent.as_ref()) || sent.starts_with(&*held);
        if !repeated && (call.custom || goes_on(held.as_bytes(), sent.as_bytes())) {
            record.snapshot = None;
            push_item(ctx, choice, item, &Text::plain(&held), index)?;
        }
    }
    push_item(ctx, choice, item, text, index)
}

/// Returns true if the snapshot is the beginning of a JSON value and the text continues this value.
fn goes_on(held: &[u8], text: &[u8]) -> bool {
    let mut automaton = alone(held);
    automaton.status() == Status::Prefix && !matches!(automaton.feed(text), Status::Broken { .. })
}

/// Sets the arguments of a call to the complete arguments in a closing event or a terminal list. Reports a conflict if
/// the streamed arguments differ.
pub fn set_whole_arguments(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    arguments: Option<Text<'_>>,
) -> ParseResult {
    let Some(payload) = complete_text(arguments) else {
        return Ok(());
    };
    let payload = payload.as_bytes();
    let Some((record, call)) = choice.item_call_mut(item) else {
        return Ok(());
    };
    if call.outcome.is_some() {
        if has_same_arguments(call, payload) {
            return Ok(());
        }
        return report_conflict(ctx, choice, item);
    }
    if call.raw.is_some() && has_no_arguments(payload) {
        return Ok(()); // the call already has no arguments
    }
    ctx.check_piece(payload.len())?;
    let real = |held: &&str| !is_placeholder(held.as_bytes());
    if record.snapshot.as_deref().filter(real).is_some() && call.is_empty() {
        if !call.custom && is_placeholder(payload) {
            // The opening event contained arguments, but the complete value contains no arguments.
            return report_conflict(ctx, choice, item);
        }
        record.snapshot = None;
    }
    call.joiner.finish();
    record.valued = true;
    ctx.out.record_fact(WireFact::Closed(call.part));
    let text = &call.text;
    if text.data == payload && text.overflow.is_empty() {
        return Ok(());
    }
    if text.is_complete() && !call.custom && text.overflow.is_empty() {
        let weaker = !is_whole(payload) || trim(payload).first() != Some(&b'{');
        if !text.is_placeholder() && (weaker || is_placeholder(payload)) {
            return report_conflict(ctx, choice, item);
        }
    }
    let (size, slot) = (text.size(), call.slot);
    let goes_on = payload.starts_with(&text.data);
    let same = has_same_arguments(call, payload);
    ctx.count_arguments(size, payload.len())?;
    call.text.replace(payload.to_vec());
    call.text.plain = call.custom; // only the type of the call matters, not the earlier text
    if !goes_on {
        call_events::reset(ctx.out, choice, slot);
        if !same {
            report_conflict(ctx, choice, item)?;
        }
    }
    call_events::publish(ctx.out, choice, slot);
    Ok(())
}

fn has_same_arguments(call: &mut Call, payload: &[u8]) -> bool {
    if call.text.data == payload {
        return true;
    }
    if call.custom || !call.text.is_complete() || !is_whole(payload) {
        return false;
    }
    call.canonical() == canonical(&String::from_utf8_lossy(payload))
}

/// Returns true for whitespace, null or "", which some gateways send for a call without arguments.
fn has_no_arguments(payload: &[u8]) -> bool {
    matches!(trim(payload), b"" | b"null" | b"\"\"")
}

fn is_placeholder(payload: &[u8]) -> bool {
    if payload.len() >= SHORT {
        return false;
    }
    let mut text = ArgumentText::default();
    text.replace(payload.to_vec());
    let empty = || is_whole(payload) && canonical(&String::from_utf8_lossy(payload)) == "{}";
    text.is_placeholder() || empty()
}

pub fn report_conflict(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
) -> ParseResult {
    let Some((record, call)) = choice.item_call_mut(item) else {
        return Ok(());
    };
    if std::mem::replace(&mut record.conflict_reported, true) {
        return Ok(());
    }
    let part = call.part;
    ctx.report(Code::CONFLICT, part)
}

/// Returns true if the given arguments equal those of the call, or are empty or a placeholder.
pub fn is_same_or_empty(call: &mut Call, arguments: &str) -> bool {
    let payload = arguments.as_bytes();
    payload.is_empty()
        || has_same_arguments(call, payload)
        || (!call.custom && is_placeholder(payload))
}

/// Ends the argument text of a call. Uses the snapshot if it is more complete than the deltas. `ended`: the input was
/// not truncated.
pub fn settle_text(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    ended: bool,
) -> ParseResult {
    let Some((record, call)) = choice.item_call_mut(item) else {
        return Ok(());
    };
    if call.outcome.is_some() {
        return Ok(());
    }
    let held = record.snapshot.take();
    let slot = call.slot;
    if let Some(better) = held.and_then(|held| better(call, held.as_bytes(), ended)) {
        return replace(ctx, choice, slot, better);
    }
    Ok(())
}

/// Returns the text to use instead of the text of the deltas: the snapshot, or the snapshot joined with the text of the
/// deltas. Returns `None` if the text of the deltas is at least as complete.
fn better(call: &Call, held: &[u8], ended: bool) -> Option<Vec<u8>> {
    let text = &call.text;
    if call.is_empty() || text.is_blank() {
        return Some(held.to_vec());
    }
    if call.custom || !text.overflow.is_empty() {
        return None;
    }
    if text.is_complete() {
        let better = text.is_placeholder() && !is_placeholder(held);
        return better.then(|| held.to_vec());
    }
    if !ended {
        return None;
    }
    let joined = [held, &text.data].concat();
    if is_whole(&joined) {
        return Some(joined);
    }
    is_whole(held).then(|| held.to_vec())
}

fn replace(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    data: Vec<u8>,
) -> ParseResult {
    let Some(call) = choice.get_mut(slot) else {
        return Ok(());
    };
    ctx.count_arguments(call.text.size(), data.len())?;
    call.text.replace(data);
    call.text.plain = call.custom;
    call_events::reset(ctx.out, choice, slot);
    call_events::publish(ctx.out, choice, slot);
    Ok(())
}

/// Closes the call of an item that the stream closed. If the arguments are incomplete JSON and no event contained their
/// complete value, more text may follow, so the call stays open. The call also stays open if its arguments may lack
/// only their beginning. A call that the provider executes closes in any case.
pub fn end_call(ctx: &mut RuleContext<'_, '_>, choice: &mut Choice, item: usize) -> ParseResult {
    let is_open = |call: &&Call| call.outcome.is_none() && !call.dropped;
    if choice.call_of(item).filter(is_open).is_none() {
        return Ok(());
    }
    settle_text(ctx, choice, item, true)?;
    let Some((record, call)) = choice.item_call_mut(item) else {
        return Ok(());
    };
    let goes_on = !record.valued && call.text.is_unfinished() && !call.custom && !ends_whole(call);
    let lacks_beginning = || with_beginning(call, &ctx.shared.settings.tools).is_some();
    if (goes_on && !call.provider_executed) || lacks_beginning() {
        return Ok(());
    }
    let slot = call.slot;
    close_call(ctx, choice, slot)
}
