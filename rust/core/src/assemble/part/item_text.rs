//! Handles text, reasoning and refusal parts that the stream opens and closes explicitly: finds the part for an event,
//! and updates its text.
//!
//! Several parts may be open at the same time. A part begins with its opening event or, without one, with its first
//! text. Text in the opening event is held back until the deltas show whether they repeat or continue it. If the joined
//! text of the deltas begins with all of the held text, the deltas repeat it. In every other case, the deltas continue
//! the held text, even if the part ends when the deltas have repeated only the beginning of the held text. Complete
//! text in a later event replaces the streamed text. A reasoning part of an item with an id closes with the item,
//! because encrypted content may still arrive.

use crate::assemble::choice::Choice;
use crate::assemble::choice::leave;
use crate::assemble::part::item::Item;
use crate::assemble::part::item::ItemPart;
use crate::assemble::part::item::PartPosition;
use crate::assemble::part::text::TextPart;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
use crate::json::Surrogates;
use crate::json::Text;
use crate::model::delta::Address;
use crate::model::delta::Channel;
use crate::model::delta::ItemKind;
use crate::model::delta::PartAttributes;
use crate::model::event::WireFact;
use crate::model::fault::Fault;
use crate::model::spec::Code;
use crate::model::unmodelled::Unmodelled;
use std::borrow::Cow;

/// Maximum number of parts that are compared with a complete text whose sub-index is unknown.
const CANDIDATES: usize = 64;

/// The channel, reasoning kind and sub-index of a part to create.
#[derive(Clone, Copy, Debug)]
pub struct PartKey {
    pub channel: Channel,
    pub kind: &'static str,
    pub sub: Option<i64>,
}

/// Returns the text with each lone surrogate replaced by U+FFFD, or `None` if the text is missing or empty.
pub fn complete_text(text: Option<Text<'_>>) -> Option<Cow<'_, str>> {
    let text = text.map(|text| text.into_whole().0);
    text.filter(|text| !text.is_empty())
}

impl Choice {
    pub fn item_part(&self, part_position: PartPosition) -> Option<(&ItemPart, &TextPart)> {
        let one = self
            .item_index
            .get(part_position.item)?
            .parts
            .get(part_position.one)?;
        Some((one, self.textual.parts.get(one.position)?))
    }

    pub fn item_part_mut(
        &mut self,
        part_position: PartPosition,
    ) -> Option<(&mut ItemPart, &mut TextPart)> {
        let one = self
            .item_index
            .get_mut(part_position.item)?
            .parts
            .get_mut(part_position.one)?;
        let part = self.textual.parts.get_mut(one.position)?;
        Some((one, part))
    }

    /// Returns the positions of all parts of an item.
    pub fn part_positions(
        &self,
        item: usize,
    ) -> impl DoubleEndedIterator<Item = PartPosition> + Clone + use<> {
        let count = self.item_index.get(item).map_or(0, |item| item.parts.len());
        (0..count).map(move |one| PartPosition { item, one })
    }

    /// Marks the part as closed. No event is emitted.
    fn close_one(&mut self, part_position: PartPosition) {
        if let Some((_, part)) = self.item_part_mut(part_position) {
            part.open = false;
        }
        if let Some(item) = self.item_index.get_mut(part_position.item) {
            item.open_parts = item.open_parts.saturating_sub(1);
        }
    }

    /// Records the sub-index of the next delta of the part, unless the delta arrives too late.
    fn move_part(&mut self, part_position: PartPosition, sub: Option<i64>) {
        let Choice {
            item_index,
            textual,
            ..
        } = self;
        let Some(Item {
            parts, sub_indexes, ..
        }) = item_index.get_mut(part_position.item)
        else {
            return;
        };
        let Some(one) = parts.get_mut(part_position.one) else {
            return;
        };
        let Some(part) = textual.parts.get(one.position) else {
            return;
        };
        if one.valued || one.closed || !part.open || one.labels.is_closed(sub) {
            return; // The delta arrives too late.
        }
        one.sub_is_reliable |= one.begun && one.last_sub == sub;
        let before = std::mem::replace(&mut one.last_sub, sub);
        if before == sub {
            return;
        }
        one.labels.change(before, sub, part.text.len());
        if let Some(sub_indexes) = sub_indexes.as_mut() {
            sub_indexes.replace_sub_index(
                part_position.one,
                (part.channel, part.kind),
                one,
                before,
            );
        }
    }

    pub fn is_part_open(&self, part_position: PartPosition) -> bool {
        self.item_part(part_position)
            .is_some_and(|(_, part)| part.open)
    }
}

/// Returns the part of the item that a delta with this sub-index belongs to.
///
/// Returns the last part that an event with the same `sub` addressed. If no event had this `sub`, returns the last part
/// of the channel, because some gateways send a new `content_index` in every delta. Returns `None` if the last part of
/// the channel is closed, if its complete text was received, or if two of its deltas in a row had the same `sub`.
pub fn find_part(
    choice: &Choice,
    item: usize,
    channel: Channel,
    kind: Option<&str>,
    sub: Option<i64>,
) -> Option<PartPosition> {
    let (named, last) = match &choice.item_index.get(item)?.sub_indexes {
        Some(sub_indexes) => {
            let part_position = |one| PartPosition { item, one };
            let last = || sub_indexes.last(channel, kind);
            let named = sub_indexes.last_with_sub_index(channel, kind, sub);
            (named.map(part_position), last().map(part_position))
        }
        None => {
            let same = |part_position: &PartPosition| {
                choice.item_part(*part_position).is_some_and(|(_, part)| {
                    part.channel == channel && kind.is_none_or(|kind| kind == part.kind)
                })
            };
            let fits = |part_position: &PartPosition| {
                let one = choice.item_part(*part_position);
                one.is_some_and(|(one, _)| one.has_sub_index(sub))
            };
            let mut all = choice.part_positions(item).rev().filter(same);
            (all.clone().find(fits), all.next())
        }
    };
    if named.is_some() {
        return named;
    }
    let last = last?;
    let (one, _) = choice.item_part(last)?;
    let loose =
        sub.is_none() || one.sub.is_none() || !(one.valued || one.closed || one.sub_is_reliable);
    loose.then_some(last)
}

/// Returns the part of the item that a complete text with this sub-index belongs to.
///
/// Returns the part that an event with the same `sub` addressed. If no event had this `sub`, returns the first part
/// with the same text whose complete text has not been received yet. If no part has the same text, returns the part
/// that a delta would belong to.
pub fn find_whole(
    choice: &mut Choice,
    item: usize,
    part_key: PartKey,
    text: Option<&str>,
) -> Option<PartPosition> {
    let PartKey { channel, kind, sub } = part_key;
    let known = find_part(choice, item, channel, Some(kind), sub);
    let has_sub_index = |part_position: &PartPosition| {
        choice
            .item_part(*part_position)
            .is_some_and(|(one, _)| one.has_sub_index(sub))
    };
    let text = text.filter(|text| !text.is_empty() && sub.is_some());
    let (None, Some(text)) = (known.filter(has_sub_index), text) else {
        return known;
    };
    let has_text = |part_position: &PartPosition| {
        let part = choice.item_part(*part_position);
        part.is_some_and(|(one, part)| {
            let like = part.channel == channel && part.kind == kind;
            like && !one.valued && part.text == text
        })
    };
    let late = choice.part_positions(item).rev().take(CANDIDATES);
    let found = late.filter(has_text).last().or(known)?;
    if !choice.item_part(found)?.0.has_sub_index(sub) {
        choice.item_part_mut(found)?.0.value_sub = sub;
        if let Some(sub_indexes) = choice
            .item_index
            .get_mut(item)
            .and_then(|item| item.sub_indexes.as_mut())
        {
            sub_indexes.add_sub_index(found.one, (channel, kind), sub);
        }
    }
    Some(found)
}

/// Opens a new part of the item and emits its start event. `snapshot`: the text in the opening event.
pub fn open_part(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    part_key: PartKey,
    snapshot: Option<Text<'_>>,
    metadata: Option<&str>,
) -> Result<PartPosition, Fault> {
    let mut part = TextPart::new(ctx.next_part()?, part_key.channel, part_key.kind);
    let held = complete_text(snapshot).map(Cow::into_owned);
    if let Some(held) = &held {
        ctx.spend_bytes(held.len())?;
    }
    let position = choice.textual.parts.len();
    let index = choice.index;
    let mut part_position = PartPosition { item, one: 0 };
    let Choice {
        item_index,
        textual,
        ..
    } = choice;
    if let Some(item) = item_index.get_mut(item) {
        part.item_id = item.emitted_id().cloned();
        part_position.one = item.parts.len();
        let content_kind_of = |one: &ItemPart| {
            let part = textual.parts.get(one.position)?;
            Some((part.channel, part.kind))
        };
        let one = ItemPart::new(position, part_key.sub, held);
        item.add(one, (part_key.channel, part_key.kind), content_kind_of);
    }
    textual.parts.reserve_exact(usize::from(position == 0));
    textual.parts.push(part);
    choice.update_pending_part(part_position);
    put_metadata(ctx, choice, part_position, metadata)?;
    if let Some((_, part)) = choice.item_part(part_position) {
        let record = choice.item_index.get(part_position.item);
        ctx.out.record_fact(WireFact::Address {
            index: record.and_then(|item| item.index),
            sub: part_key.sub,
            item_id: record.and_then(|item| item.item_id.as_deref()),
        });
        part.started(index, metadata, |event| ctx.out.emit(event));
    }
    Ok(part_position)
}

/// Records that an opening event repeats a closed part, and returns true.
///
/// Returns false and changes nothing if the event cannot repeat the part: the item or the part is open, the part is
/// empty, or the event has another index, sub-index or text.
pub fn repeat_part(
    choice: &mut Choice,
    part_position: PartPosition,
    address: &Address<'_>,
    snapshot: Option<&Text<'_>>,
) -> bool {
    let Some(item) = choice.item_index.get(part_position.item) else {
        return false;
    };
    let other_index = item.index.zip(address.index);
    let other_index = other_index.is_some_and(|(own, sent)| own != sent);
    let is_open = item.open;
    let Some((one, part)) = choice.item_part_mut(part_position) else {
        return false;
    };
    let has_text = |text: Cow<'_, str>| part.text == text;
    let same = complete_text(snapshot.cloned()).is_none_or(has_text);
    if is_open
        || part.open
        || part.text.is_empty()
        || other_index
        || !same
        || one.sub != address.sub
    {
        return false;
    }
    one.repeated = Some(0);
    if let Some(item) = choice.item_index.get_mut(part_position.item) {
        item.repeats = true;
    }
    true
}

/// Records that an opening event repeats an open part of an item, because the message began again. Returns false if the
/// event cannot repeat the part, because the event has a different text.
pub fn repeat_open_part(
    choice: &mut Choice,
    part_position: PartPosition,
    snapshot: Option<&Text<'_>>,
) -> bool {
    let Some((one, part)) = choice
        .item_part_mut(part_position)
        .filter(|(_, part)| part.open)
    else {
        return false;
    };
    let begun = match &one.snapshot {
        Some(held) => held.as_str(),
        None => part.text.as_str(),
    };
    let has_text = |text: Cow<'_, str>| begun == text;
    let is_empty = begun.is_empty() && !one.joiner.is_pending();
    if is_empty || !complete_text(snapshot.cloned()).is_none_or(has_text) {
        return false;
    }
    if one.snapshot.is_none() {
        one.repeated = Some(0);
        one.sub_is_reliable = false; // the next deltas are not appended without a check
    }
    // The stream also repeats the deltas, including half of a surrogate pair.
    one.again = 0;
    one.joiner = Surrogates::default();
    choice.update_pending_part(part_position);
    true
}

/// Records that the stream opened an item without an id again after closing it, so the following events may repeat its
/// parts. Returns false if the event opens a new item instead, because the old item is open, had no opening event, or
/// has no text.
pub fn repeat_item(choice: &mut Choice, item: usize) -> bool {
    let record = choice.item_index.get(item);
    if record.is_none_or(|record| record.open || record.item_id.is_some() || !record.opened_bare) {
        return false;
    }
    let mut any = false;
    for part_position in choice.part_positions(item) {
        let part = choice.item_part_mut(part_position);
        if let Some((one, _)) = part.filter(|(_, part)| !part.text.is_empty()) {
            one.repeated = Some(0);
            any = true;
        }
    }
    if let Some(record) = choice.item_index.get_mut(item) {
        record.repeats |= any;
    }
    any
}

/// How a text relates to a part that the stream repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repetition<'t> {
    /// The text continues the repetition, so it must be dropped.
    Continued,
    /// The text completes the repetition of an open part and continues the part with this text.
    Completed(&'t str),
    /// The text differs, so it belongs to another part.
    Diverged,
}

/// Compares a text with the part that the stream repeats. Reports the repetition of a closed part when it is complete.
pub fn continue_repetition<'t>(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    part_position: PartPosition,
    text: &'t str,
) -> Result<Repetition<'t>, Fault> {
    let Some((one, part)) = choice.item_part_mut(part_position) else {
        return Ok(Repetition::Diverged);
    };
    let Some(start) = one.repeated else {
        return Ok(Repetition::Diverged);
    };
    let rest = part.text.get(start..).unwrap_or_default();
    if let Some(more) = text.strip_prefix(rest).filter(|_| part.open) {
        one.repeated = None;
        return Ok(Repetition::Completed(more));
    }
    if !rest.starts_with(text) {
        return Ok(Repetition::Diverged);
    }
    let is_whole = rest.len() == text.len();
    one.repeated = Some(start + text.len());
    if is_whole {
        report_late_part(ctx, choice, part_position)?;
    }
    Ok(Repetition::Continued)
}

/// Returns true if the stream repeats the closed part, but this complete text differs from the part's text.
pub fn differs(choice: &Choice, part_position: PartPosition, text: &str) -> bool {
    let part = choice.item_part(part_position);
    part.is_some_and(|(one, part)| one.repeated.is_some() && part.text != text)
}

/// Reports, at most once per part, that content arrived after the part was closed.
pub fn report_late_part(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    part_position: PartPosition,
) -> ParseResult {
    let Some((one, part)) = choice.item_part_mut(part_position) else {
        return Ok(());
    };
    if std::mem::replace(&mut one.late_reported, true) {
        return Ok(());
    }
    ctx.report(Code::LATE_DELTA, part.part)
}

/// Reports each repetition of a closed part that was still incomplete when the choice ended. The repeated text was
/// dropped, because no event showed that it was new text.
pub fn report_unfinished_repetitions(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
) -> ParseResult {
    for part_position in choice.part_positions(item) {
        let unfinished = choice.item_part(part_position).is_some_and(|(one, part)| {
            let end = one.repeated.unwrap_or_default();
            !part.open && end > 0 && end < part.text.len()
        });
        if unfinished {
            report_late_part(ctx, choice, part_position)?;
        }
    }
    Ok(())
}

/// Stores metadata, which the closing event of the part will contain.
pub fn put_metadata(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    part_position: PartPosition,
    metadata: Option<&str>,
) -> ParseResult {
    let (Some(metadata), Some((_, part))) = (metadata, choice.item_part_mut(part_position)) else {
        return Ok(());
    };
    let more = part.metadata.get_or_insert_default().add(metadata);
    ctx.spend_growth(more)
}

/// Stores annotations, a signature and encrypted content of a part. Annotations are added to earlier annotations. A
/// signature or encrypted content replaces the earlier value.
pub fn annotate(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    part_position: PartPosition,
    attributes: PartAttributes<'_>,
) -> ParseResult {
    let texts = [
        attributes.annotations,
        attributes.signature,
        attributes.encrypted_content,
    ];
    ctx.spend_bytes(texts.iter().flatten().map(|text| text.len()).sum())?;
    ctx.spend_entries(attributes.annotations.map_or(0, |_| 1))?;
    let Some((_, part)) = choice.item_part_mut(part_position) else {
        return Ok(());
    };
    if let Some(annotations) = attributes.annotations {
        part.annotations.push(annotations.to_owned());
        ctx.out.keep(Unmodelled::Annotated {
            part: part.part,
            annotations,
        });
    }
    if let Some(signature) = attributes.signature {
        part.attributes.signature = Some(signature.to_owned());
    }
    if let Some(encrypted) = attributes.encrypted_content {
        part.attributes.encrypted_content = Some(encrypted.to_owned());
    }
    Ok(())
}

/// Applies one text delta to the part. Reports the delta as late if the part is closed or already has its complete
/// text.
pub fn add_text(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    part_position: PartPosition,
    text: Text<'_>,
    sub: Option<i64>,
    metadata: Option<&str>,
) -> ParseResult {
    let step = join_text(ctx, choice, part_position, text, sub, metadata);
    choice.update_pending_part(part_position);
    step
}

/// Applies a text to the part, like `add_text`. The joiner of the part has already joined the text with the text before
/// it.
pub fn add_joined_text(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    part_position: PartPosition,
    text: &str,
    sub: Option<i64>,
    metadata: Option<&str>,
) -> ParseResult {
    if accepts(ctx, choice, part_position, sub, text.is_empty())? {
        let step = append_text(ctx, choice, part_position, text, metadata);
        choice.update_pending_part(part_position);
        return step;
    }
    Ok(())
}

/// Returns true if a delta with this sub-index can be appended to the part. Otherwise, reports the delta as late,
/// unless it is empty.
fn accepts(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    part_position: PartPosition,
    sub: Option<i64>,
    is_empty: bool,
) -> Result<bool, Fault> {
    choice.move_part(part_position, sub);
    let is_late = choice.item_part(part_position).is_none_or(|(one, part)| {
        one.valued || one.closed || !part.open || one.labels.is_closed(sub)
    });
    if is_late && !is_empty {
        report_late_part(ctx, choice, part_position)?;
    }
    Ok(!is_late)
}

fn join_text(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    part_position: PartPosition,
    text: Text<'_>,
    sub: Option<i64>,
    metadata: Option<&str>,
) -> ParseResult {
    if !accepts(ctx, choice, part_position, sub, text.is_empty())? {
        return Ok(());
    }
    let Some((one, part)) = choice.item_part_mut(part_position) else {
        return Ok(());
    };
    let number = part.part;
    let continues = one.joiner.is_pending();
    let (text, lone) = one.joiner.join(text);
    if continues || one.joiner.is_pending() {
        ctx.out.mark_misread("half_character");
    }
    if lone {
        ctx.report(Code::LONE_SURROGATE, number)?;
    }
    append_text(ctx, choice, part_position, &text, metadata)
}

fn append_text(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    part_position: PartPosition,
    text: &str,
    metadata: Option<&str>,
) -> ParseResult {
    if text.is_empty() {
        return put_metadata(ctx, choice, part_position, metadata);
    }
    let Some((one, _)) = choice.item_part_mut(part_position) else {
        return Ok(());
    };
    let Some(held) = &one.snapshot else {
        ctx.spend_bytes(text.len())?;
        show(ctx, choice, part_position, text, metadata);
        return Ok(());
    };
    let (repeated, rest) = held.split_at_checked(one.again).unwrap_or((held, ""));
    let shown = if rest.starts_with(text) {
        one.again += text.len();
        if one.again < held.len() {
            return put_metadata(ctx, choice, part_position, metadata);
        }
        held.clone() // the deltas repeated the whole snapshot
    } else if text.starts_with(rest) {
        [repeated, text].concat() // the deltas repeated the snapshot and continued it
    } else {
        [held, repeated, text].concat() // the deltas continued the snapshot
    };
    let before = held.len();
    one.snapshot = None;
    ctx.spend_bytes(shown.len().saturating_sub(before))?;
    show(ctx, choice, part_position, &shown, metadata);
    Ok(())
}

fn show(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    part_position: PartPosition,
    text: &str,
    metadata: Option<&str>,
) {
    let index = choice.index;
    if let Some((one, part)) = choice.item_part_mut(part_position) {
        one.begun = true;
        part.text.push_str(text);
        part.delta(index, text, metadata, |event| ctx.out.emit(event));
    }
}

/// Sets the text of a part to the complete text in a closing event or a content list. If the complete text begins with
/// the streamed text, the rest is emitted as a delta; otherwise, a conflict is reported.
///
/// If the deltas of the part had several sub-indexes, the complete text may belong only to the deltas with the
/// sub-index `sub`, so it is stored until the part ends.
pub fn set_whole_text(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    part_position: PartPosition,
    sub: Option<i64>,
    text: Option<Cow<'_, str>>,
) -> ParseResult {
    let (Some(text), Some((one, part))) = (text, choice.item_part_mut(part_position)) else {
        return Ok(());
    };
    let text = own_value(one, part, text);
    if text.is_empty() {
        // The complete text ends before this part, whose text was streamed.
        return conflict(ctx, choice, part_position);
    }
    let more = text.starts_with(&part.text);
    if one.valued || !part.open || (one.labels.is_closed(sub) && !more) {
        if part.text == text || one.labels.is_own_text(sub, &part.text, &text) {
            return Ok(());
        }
        return conflict(ctx, choice, part_position);
    }
    if !more && one.labels.note_close(sub, &part.text, &text) {
        return ctx.spend_bytes(text.len());
    }
    set_value(ctx, choice, part_position, text)
}

/// Returns the text of this part according to a complete text, which may also contain the closed parts that this part
/// continues.
fn own_value<'t>(one: &ItemPart, part: &TextPart, text: Cow<'t, str>) -> Cow<'t, str> {
    let mut end = 0;
    for earlier in &one.earlier {
        if !text
            .get(end..)
            .is_some_and(|rest| rest.starts_with(earlier))
        {
            return text;
        }
        end += earlier.len();
    }
    let rest = text.get(end..).unwrap_or_default();
    let is_own = part.text.is_empty()
        || (!rest.is_empty() && text.starts_with(&part.text) && !rest.starts_with(&part.text));
    match end == 0 || is_own {
        true => text,
        false => Cow::Owned(rest.to_owned()),
    }
}

/// Sets the text of the part. If the new text begins with the streamed text, emits the rest as a delta; otherwise,
/// reports a conflict.
pub fn set_value(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    part_position: PartPosition,
    text: Cow<'_, str>,
) -> ParseResult {
    let Some((one, _)) = choice.item_part_mut(part_position) else {
        return Ok(());
    };
    let revised = std::mem::replace(&mut one.valued, true);
    one.snapshot = None;
    one.joiner.finish();
    choice.update_pending_part(part_position);
    let Some((_, part)) = choice.item_part(part_position) else {
        return Ok(());
    };
    if part.text == text {
        return Ok(());
    }
    ctx.spend_bytes(text.len().saturating_sub(part.text.len()))?;
    if let Some(more) = text.strip_prefix(part.text.as_str()).filter(|_| !revised) {
        show(ctx, choice, part_position, more, None);
        return Ok(());
    }
    conflict(ctx, choice, part_position)?;
    if let Some((one, part)) = choice.item_part_mut(part_position) {
        one.begun = true;
        part.text = text.into_owned();
        one.labels.replaced(part.text.len());
    }
    Ok(())
}

pub fn conflict(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    part_position: PartPosition,
) -> ParseResult {
    let Some((one, part)) = choice.item_part_mut(part_position) else {
        return Ok(());
    };
    if std::mem::replace(&mut one.conflict_reported, true) {
        return Ok(());
    }
    ctx.out
        .diagnose(Code::CONFLICT, Some(part.part), part.channel.name())
}

/// Closes a part because the stream closed it. `alone`: no more content of the part's item follows. If more content may
/// follow, the part may stay open until the item ends.
pub fn close_part(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    part_position: PartPosition,
    metadata: Option<&str>,
    alone: bool,
) -> ParseResult {
    if !choice.is_part_open(part_position) {
        return Ok(());
    }
    put_metadata(ctx, choice, part_position, metadata)?;
    let waits = choice
        .item_index
        .get(part_position.item)
        .is_some_and(|item| item.item_id.is_some());
    let Some((one, part)) = choice.item_part_mut(part_position) else {
        return Ok(());
    };
    ctx.out.record_fact(WireFact::Closed(part.part));
    if one.labels.has_closes() && !one.valued && !alone {
        return Ok(()); // only one sub-index was closed, so the part ends with its item
    }
    one.closed = true;
    if alone || part.channel != Channel::Reasoning || !waits {
        return end_part(ctx, choice, part_position);
    }
    Ok(())
}

/// Ends a part with its current text, including held-back text, and emits its closing event. Does nothing if the part
/// is not open.
pub fn end_part(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    part_position: PartPosition,
) -> ParseResult {
    let Some((one, part)) = choice
        .item_part_mut(part_position)
        .filter(|(_, part)| part.open)
    else {
        return Ok(());
    };
    let number = part.part;
    let closed = one.labels.closed_text(&part.text).filter(|_| !one.valued);
    if let Some(text) = closed {
        set_value(ctx, choice, part_position, Cow::Owned(text))?;
    }
    let Some((one, _)) = choice.item_part_mut(part_position) else {
        return Ok(());
    };
    let (held, again, tail) = (one.snapshot.take(), one.again, one.joiner.finish());
    if let Some(held) = held {
        // The deltas did not repeat all of the snapshot, so they continue it.
        let continued = held.get(..again).unwrap_or_default();
        ctx.spend_bytes(continued.len())?;
        let text = [held.as_str(), continued].concat();
        show(ctx, choice, part_position, &text, None);
    }
    if let Some(tail) = tail {
        ctx.report(Code::LONE_SURROGATE, number)?;
        ctx.spend_bytes(tail.len_utf8())?;
        show(
            ctx,
            choice,
            part_position,
            tail.encode_utf8(&mut [0; 4]),
            None,
        );
    }
    choice.close_one(part_position);
    choice.update_pending_part(part_position);
    if let Some((_, part)) = choice.item_part(part_position) {
        part.done(choice.index, |event| ctx.out.emit(event));
    }
    Ok(())
}

/// Ends all open parts of an item. The last part gets the encrypted content and the metadata. `whole`: the item was not
/// truncated.
pub fn finish_item(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    encrypted_content: Option<&str>,
    metadata: Option<&str>,
    whole: bool,
) -> ParseResult {
    let bare = choice.item_index.get(item).is_some_and(|item| {
        item.kind == ItemKind::Reasoning
            && item.parts.is_empty()
            && (item.item_id.is_some() || encrypted_content.is_some_and(|text| !text.is_empty()))
    });
    if bare && whole {
        // Open an empty part, so that an event contains the id or the encrypted content. Clients must send reasoning
        // with encrypted content or an id back in the next turn, even without text.
        let part_key = PartKey {
            channel: Channel::Reasoning,
            kind: "summary",
            sub: None,
        };
        open_part(ctx, choice, item, part_key, None, None)?;
    }
    let first = choice.item_index.get(item).map_or(0, |item| item.ended);
    let open: Vec<PartPosition> = choice
        .part_positions(item)
        .skip(first)
        .filter(|part_position| choice.is_part_open(*part_position))
        .collect();
    if let Some(last) = open.last() {
        let attributes = PartAttributes {
            encrypted_content,
            ..PartAttributes::default()
        };
        annotate(ctx, choice, *last, attributes)?;
        put_metadata(ctx, choice, *last, metadata)?;
    } else if let Some(metadata) = metadata {
        leave(ctx, choice, metadata)?;
    }
    for part_position in open {
        end_part(ctx, choice, part_position)?;
    }
    if let Some(item) = choice.item_index.get_mut(item) {
        item.ended = item.parts.len();
    }
    Ok(())
}

/// Discards the content of an item's open parts and closes them, because the response starts again.
pub fn take_back(ctx: &mut RuleContext<'_, '_>, choice: &mut Choice, item: usize) {
    let index = choice.index;
    for part_position in choice.part_positions(item) {
        if let Some((_, part)) = choice
            .item_part_mut(part_position)
            .filter(|(_, part)| part.open)
        {
            part.text.clear();
            part.annotations.clear();
            part.attributes = Default::default();
            part.metadata = None;
            choice.close_one(part_position);
            if let Some((_, part)) = choice.item_part(part_position) {
                part.done(index, |event| ctx.out.emit(event));
            }
        }
        choice.update_pending_part(part_position);
    }
}
