//! Handles text, reasoning and refusal parts that the stream opens and closes explicitly: finds the part for an event,
//! and updates its text.
//!
//! Several parts may be open at the same time. A part begins with its opening event or, without one, with its first
//! text. Text in the opening event is held back until the deltas show whether they repeat or continue it. Complete text
//! in a later event replaces the streamed text. A reasoning part of an item with an id closes with the item, because
//! encrypted content may still arrive.

use crate::assemble::choice::Choice;
use crate::assemble::choice::leave;
use crate::assemble::part::item::Item;
use crate::assemble::part::item::ItemPart;
use crate::assemble::part::item::Spot;
use crate::assemble::part::text::TextPart;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
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

/// Maximum number of parts with which a complete text that has an unknown sub-index is compared.
const CANDIDATES: usize = 64;

/// The channel, reasoning kind and sub-index of a part to create.
#[derive(Clone, Copy, Debug)]
pub struct Make {
    pub channel: Channel,
    pub kind: &'static str,
    pub sub: Option<i64>,
}

/// Returns the text with each lone surrogate replaced by U+FFFD, or `None` if the text is missing or empty.
pub fn whole(text: Option<Text<'_>>) -> Option<Cow<'_, str>> {
    let text = text.map(|text| text.into_whole().0);
    text.filter(|text| !text.is_empty())
}

impl Choice {
    pub fn one(&self, spot: Spot) -> Option<(&ItemPart, &TextPart)> {
        let one = self.item_index.get(spot.item)?.parts.get(spot.one)?;
        Some((one, self.textual.parts.get(one.position)?))
    }

    pub fn one_mut(&mut self, spot: Spot) -> Option<(&mut ItemPart, &mut TextPart)> {
        let one = self
            .item_index
            .get_mut(spot.item)?
            .parts
            .get_mut(spot.one)?;
        let part = self.textual.parts.get_mut(one.position)?;
        Some((one, part))
    }

    /// Returns the positions of all parts of an item.
    pub fn spots(&self, item: usize) -> impl DoubleEndedIterator<Item = Spot> + Clone + use<> {
        let count = self.item_index.get(item).map_or(0, |item| item.parts.len());
        (0..count).map(move |one| Spot { item, one })
    }

    /// Marks the part as closed. No event is emitted.
    fn close_one(&mut self, spot: Spot) {
        if let Some((_, part)) = self.one_mut(spot) {
            part.open = false;
        }
        if let Some(item) = self.item_index.get_mut(spot.item) {
            item.open_parts = item.open_parts.saturating_sub(1);
        }
    }

    /// Records the sub-index of the next delta of the part, unless the delta arrives too late.
    fn move_part(&mut self, spot: Spot, sub: Option<i64>) {
        let Choice {
            item_index,
            textual,
            ..
        } = self;
        let Some(Item {
            parts, sub_indexes, ..
        }) = item_index.get_mut(spot.item)
        else {
            return;
        };
        let Some(one) = parts.get_mut(spot.one) else {
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
            sub_indexes.moved(spot.one, (part.channel, part.kind), one, before);
        }
    }

    pub fn is_part_open(&self, spot: Spot) -> bool {
        self.one(spot).is_some_and(|(_, part)| part.open)
    }
}

/// Returns the part of the item that a delta with this sub-index belongs to.
///
/// This is the last part that an event with the same `sub` addressed. If there is none, it is the last part of the
/// channel, because some gateways send a new `content_index` in every delta. Returns `None` instead if that part is
/// closed, if its complete text was received, or if two of its deltas in a row had the same `sub`.
pub fn find_part(
    choice: &Choice,
    item: usize,
    channel: Channel,
    kind: Option<&str>,
    sub: Option<i64>,
) -> Option<Spot> {
    let (named, last) = match &choice.item_index.get(item)?.sub_indexes {
        Some(sub_indexes) => {
            let spot = |one| Spot { item, one };
            let last = || sub_indexes.last(channel, kind);
            let named = sub_indexes.named(channel, kind, sub);
            (named.map(spot), last().map(spot))
        }
        None => {
            let same = |spot: &Spot| {
                choice.one(*spot).is_some_and(|(_, part)| {
                    part.channel == channel && kind.is_none_or(|kind| kind == part.kind)
                })
            };
            let fits = |spot: &Spot| {
                let one = choice.one(*spot);
                one.is_some_and(|(one, _)| one.is_called(sub))
            };
            let mut all = choice.spots(item).rev().filter(same);
            (all.clone().find(fits), all.next())
        }
    };
    if named.is_some() {
        return named;
    }
    let last = last?;
    let (one, _) = choice.one(last)?;
    let loose =
        sub.is_none() || one.sub.is_none() || !(one.valued || one.closed || one.sub_is_reliable);
    loose.then_some(last)
}

/// Returns the part of the item that a complete text with this sub-index belongs to.
///
/// This is the part that an event with the same `sub` addressed. If there is none, it is the first part with the same
/// text whose complete text has not been received yet. Otherwise, it is the part that a delta would belong to.
pub fn find_whole(
    choice: &mut Choice,
    item: usize,
    make: Make,
    text: Option<&str>,
) -> Option<Spot> {
    let Make { channel, kind, sub } = make;
    let known = find_part(choice, item, channel, Some(kind), sub);
    let is_called = |spot: &Spot| choice.one(*spot).is_some_and(|(one, _)| one.is_called(sub));
    let text = text.filter(|text| !text.is_empty() && sub.is_some());
    let (None, Some(text)) = (known.filter(is_called), text) else {
        return known;
    };
    let has_text = |spot: &Spot| {
        let part = choice.one(*spot);
        part.is_some_and(|(one, part)| {
            let like = part.channel == channel && part.kind == kind;
            like && !one.valued && part.text == text
        })
    };
    let late = choice.spots(item).rev().take(CANDIDATES);
    let found = late.filter(has_text).last().or(known)?;
    if !choice.one(found)?.0.is_called(sub) {
        choice.one_mut(found)?.0.value_sub = sub;
        if let Some(sub_indexes) = choice
            .item_index
            .get_mut(item)
            .and_then(|item| item.sub_indexes.as_mut())
        {
            sub_indexes.call(found.one, (channel, kind), sub);
        }
    }
    Some(found)
}

/// Opens a new part of the item and emits its start event. `snapshot`: the text in the opening event.
pub fn open_part(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    make: Make,
    snapshot: Option<Text<'_>>,
    metadata: Option<&str>,
) -> Result<Spot, Fault> {
    let mut part = TextPart::new(ctx.next_part()?, make.channel, make.kind);
    let held = whole(snapshot).map(Cow::into_owned);
    if let Some(held) = &held {
        ctx.spend_bytes(held.len())?;
    }
    let position = choice.textual.parts.len();
    let index = choice.index;
    let mut spot = Spot { item, one: 0 };
    let Choice {
        item_index,
        textual,
        ..
    } = choice;
    if let Some(item) = item_index.get_mut(item) {
        part.item_id = item.emitted_id().cloned();
        spot.one = item.parts.len();
        let content_kind_of = |one: &ItemPart| {
            let part = textual.parts.get(one.position)?;
            Some((part.channel, part.kind))
        };
        let one = ItemPart::new(position, make.sub, held);
        item.add(one, (make.channel, make.kind), content_kind_of);
    }
    textual.parts.reserve_exact(usize::from(position == 0));
    textual.parts.push(part);
    choice.update_pending_part(spot);
    put_metadata(ctx, choice, spot, metadata)?;
    if let Some((_, part)) = choice.one(spot) {
        let record = choice.item_index.get(spot.item);
        ctx.out.record_fact(WireFact::Address {
            index: record.and_then(|item| item.index),
            sub: make.sub,
            item_id: record.and_then(|item| item.item_id.as_deref()),
        });
        part.started(index, metadata, |event| ctx.out.emit(event));
    }
    Ok(spot)
}

/// Records that an opening event repeats a closed part, and returns true.
///
/// Returns false and changes nothing if the event cannot repeat the part: the item or the part is open, the part is
/// empty, or the event has another index, sub-index or text.
pub fn repeat_part(
    choice: &mut Choice,
    spot: Spot,
    address: &Address<'_>,
    snapshot: Option<&Text<'_>>,
) -> bool {
    let Some(item) = choice.item_index.get(spot.item) else {
        return false;
    };
    let other_index = item.index.zip(address.index);
    let other_index = other_index.is_some_and(|(own, sent)| own != sent);
    let is_open = item.open;
    let Some((one, part)) = choice.one_mut(spot) else {
        return false;
    };
    let has_text = |text: Cow<'_, str>| part.text == text;
    let same = whole(snapshot.cloned()).is_none_or(has_text);
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
    if let Some(item) = choice.item_index.get_mut(spot.item) {
        item.repeats = true;
    }
    true
}

/// Returns true if the text continues a repetition of the closed part, so that the text must be dropped. Reports the
/// repetition when it is complete.
pub fn is_repetition(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    spot: Spot,
    text: &str,
) -> Result<bool, Fault> {
    let Some((one, part)) = choice.one_mut(spot) else {
        return Ok(false);
    };
    let Some(start) = one.repeated else {
        return Ok(false);
    };
    let rest = part.text.get(start..).unwrap_or_default();
    if !rest.starts_with(text) {
        return Ok(false);
    }
    one.repeated = Some(start + text.len());
    if rest.len() == text.len() {
        report_late_part(ctx, choice, spot)?;
    }
    Ok(true)
}

/// Returns true if the stream repeats the closed part, but this complete text differs from the part's text.
pub fn differs(choice: &Choice, spot: Spot, text: &str) -> bool {
    let part = choice.one(spot);
    part.is_some_and(|(one, part)| one.repeated.is_some() && part.text != text)
}

/// Reports, at most once per part, that content arrived after the part was closed.
pub fn report_late_part(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    spot: Spot,
) -> ParseResult {
    let Some((one, part)) = choice.one_mut(spot) else {
        return Ok(());
    };
    if std::mem::replace(&mut one.late_reported, true) {
        return Ok(());
    }
    ctx.report(Code::LATE_DELTA, part.part)
}

/// Stores metadata, which the closing event of the part will contain.
pub fn put_metadata(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    spot: Spot,
    metadata: Option<&str>,
) -> ParseResult {
    let (Some(metadata), Some((_, part))) = (metadata, choice.one_mut(spot)) else {
        return Ok(());
    };
    let more = part.metadata.get_or_insert_default().add(metadata);
    ctx.spend_growth(more)
}

/// Stores annotations, a signature and encrypted content of a part. Annotations are added to earlier ones; the other
/// two replace earlier values.
pub fn annotate(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    spot: Spot,
    attributes: PartAttributes<'_>,
) -> ParseResult {
    let texts = [
        attributes.annotations,
        attributes.signature,
        attributes.encrypted_content,
    ];
    ctx.spend_bytes(texts.iter().flatten().map(|text| text.len()).sum())?;
    ctx.spend_entries(attributes.annotations.map_or(0, |_| 1))?;
    let Some((_, part)) = choice.one_mut(spot) else {
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

/// Applies one text delta to the part. Reports it as late if the part is closed or has its complete text.
pub fn add_text(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    spot: Spot,
    text: Text<'_>,
    sub: Option<i64>,
    metadata: Option<&str>,
) -> ParseResult {
    let step = take_text(ctx, choice, spot, text, sub, metadata);
    choice.update_pending_part(spot);
    step
}

fn take_text(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    spot: Spot,
    text: Text<'_>,
    sub: Option<i64>,
    metadata: Option<&str>,
) -> ParseResult {
    choice.move_part(spot, sub);
    let Some((one, part)) = choice.one_mut(spot) else {
        return Ok(());
    };
    let number = part.part;
    if one.valued || one.closed || !part.open || one.labels.is_closed(sub) {
        if text.is_empty() {
            return Ok(());
        }
        return report_late_part(ctx, choice, spot);
    }
    let (text, lone) = one.joiner.join(text);
    if lone {
        ctx.report(Code::LONE_SURROGATE, number)?;
    }
    if text.is_empty() {
        return put_metadata(ctx, choice, spot, metadata);
    }
    let Some(held) = &one.snapshot else {
        ctx.spend_bytes(text.len())?;
        show(ctx, choice, spot, &text, metadata);
        return Ok(());
    };
    let (repeated, rest) = held.split_at_checked(one.again).unwrap_or((held, ""));
    let shown = if rest.starts_with(text.as_ref()) {
        one.again += text.len();
        if one.again < held.len() {
            return put_metadata(ctx, choice, spot, metadata);
        }
        held.clone() // the deltas repeated the whole snapshot
    } else if text.starts_with(rest) {
        [repeated, &text].concat() // the deltas repeated the snapshot and continued it
    } else {
        [held, repeated, &text].concat() // the deltas continued the snapshot
    };
    let before = held.len();
    one.snapshot = None;
    ctx.spend_bytes(shown.len().saturating_sub(before))?;
    show(ctx, choice, spot, &shown, metadata);
    Ok(())
}

fn show(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    spot: Spot,
    text: &str,
    metadata: Option<&str>,
) {
    let index = choice.index;
    if let Some((one, part)) = choice.one_mut(spot) {
        one.begun = true;
        part.text.push_str(text);
        part.delta(index, text, metadata, |event| ctx.out.emit(event));
    }
}

/// Sets the complete text of a part, as a closing event or a list contains it. If the complete text begins with the
/// streamed text, the rest is emitted as a delta; otherwise, a conflict is reported.
///
/// If the deltas of the part had several sub-indexes, the complete text may belong to the deltas with `sub` alone; it
/// is then stored until the part ends.
pub fn set_whole_text(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    spot: Spot,
    sub: Option<i64>,
    text: Option<Cow<'_, str>>,
) -> ParseResult {
    let Some(text) = text else {
        return Ok(());
    };
    let Some((one, part)) = choice.one_mut(spot) else {
        return Ok(());
    };
    let more = text.starts_with(&part.text);
    if one.valued || !part.open || (one.labels.is_closed(sub) && !more) {
        if part.text == text || one.labels.is_own_text(sub, &part.text, &text) {
            return Ok(());
        }
        return conflict(ctx, choice, spot);
    }
    if !more && one.labels.note_close(sub, &part.text, &text) {
        return ctx.spend_bytes(text.len());
    }
    set_value(ctx, choice, spot, text)
}

/// Sets the text of the part. If it begins with the streamed text, emits the rest as a delta; otherwise, reports a
/// conflict.
pub fn set_value(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    spot: Spot,
    text: Cow<'_, str>,
) -> ParseResult {
    let Some((one, _)) = choice.one_mut(spot) else {
        return Ok(());
    };
    let revised = std::mem::replace(&mut one.valued, true);
    one.snapshot = None;
    one.joiner.finish();
    choice.update_pending_part(spot);
    let Some((_, part)) = choice.one(spot) else {
        return Ok(());
    };
    if part.text == text {
        return Ok(());
    }
    ctx.spend_bytes(text.len().saturating_sub(part.text.len()))?;
    if let Some(more) = text.strip_prefix(part.text.as_str()).filter(|_| !revised) {
        show(ctx, choice, spot, more, None);
        return Ok(());
    }
    conflict(ctx, choice, spot)?;
    if let Some((one, part)) = choice.one_mut(spot) {
        one.begun = true;
        part.text = text.into_owned();
        one.labels.replaced(part.text.len());
    }
    Ok(())
}

pub fn conflict(ctx: &mut RuleContext<'_, '_>, choice: &mut Choice, spot: Spot) -> ParseResult {
    let Some((one, part)) = choice.one_mut(spot) else {
        return Ok(());
    };
    if std::mem::replace(&mut one.conflict_reported, true) {
        return Ok(());
    }
    ctx.out
        .diagnose(Code::CONFLICT, Some(part.part), part.channel.name())
}

/// Closes a part because the stream closed it. `alone`: no more content of its item follows. Otherwise, the part may
/// stay open until the item ends.
pub fn close_part(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    spot: Spot,
    metadata: Option<&str>,
    alone: bool,
) -> ParseResult {
    if !choice.is_part_open(spot) {
        return Ok(());
    }
    put_metadata(ctx, choice, spot, metadata)?;
    let waits = choice
        .item_index
        .get(spot.item)
        .is_some_and(|item| item.item_id.is_some());
    let Some((one, part)) = choice.one_mut(spot) else {
        return Ok(());
    };
    ctx.out.record_fact(WireFact::Closed(part.part));
    if one.labels.has_closes() && !one.valued && !alone {
        return Ok(()); // only one sub-index was closed, so the part ends with its item
    }
    one.closed = true;
    if alone || part.channel != Channel::Reasoning || !waits {
        return end_part(ctx, choice, spot);
    }
    Ok(())
}

/// Ends a part with its current text, including held-back text, and emits its closing event. Does nothing if it is not
/// open.
pub fn end_part(ctx: &mut RuleContext<'_, '_>, choice: &mut Choice, spot: Spot) -> ParseResult {
    let Some((one, part)) = choice.one_mut(spot).filter(|(_, part)| part.open) else {
        return Ok(());
    };
    let number = part.part;
    let closed = one.labels.closed_text(&part.text).filter(|_| !one.valued);
    if let Some(text) = closed {
        set_value(ctx, choice, spot, Cow::Owned(text))?;
    }
    let Some((one, _)) = choice.one_mut(spot) else {
        return Ok(());
    };
    let (held, tail) = (one.snapshot.take(), one.joiner.finish());
    if let Some(held) = held {
        show(ctx, choice, spot, &held, None);
    }
    if let Some(tail) = tail {
        ctx.report(Code::LONE_SURROGATE, number)?;
        ctx.spend_bytes(tail.len_utf8())?;
        show(ctx, choice, spot, tail.encode_utf8(&mut [0; 4]), None);
    }
    choice.close_one(spot);
    choice.update_pending_part(spot);
    if let Some((_, part)) = choice.one(spot) {
        part.done(choice.index, |event| ctx.out.emit(event));
    }
    Ok(())
}

/// Ends all open parts of an item. The last one gets the encrypted content and the metadata. `whole`: the item was not
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
        // Open an empty part. Clients must send reasoning with encrypted content or an id back in the next turn, even
        // without text.
        let make = Make {
            channel: Channel::Reasoning,
            kind: "summary",
            sub: None,
        };
        open_part(ctx, choice, item, make, None, None)?;
    }
    let open: Vec<Spot> = choice
        .spots(item)
        .filter(|spot| choice.is_part_open(*spot))
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
    open.into_iter()
        .try_for_each(|spot| end_part(ctx, choice, spot))
}

/// Discards the content of an item's open parts and closes them, because the response starts again.
pub fn take_back(ctx: &mut RuleContext<'_, '_>, choice: &mut Choice, item: usize) {
    let index = choice.index;
    for spot in choice.spots(item) {
        if let Some((_, part)) = choice.one_mut(spot).filter(|(_, part)| part.open) {
            part.text.clear();
            part.annotations.clear();
            part.attributes = Default::default();
            part.metadata = None;
            choice.close_one(spot);
            if let Some((_, part)) = choice.one(spot) {
                part.done(index, |event| ctx.out.emit(event));
            }
        }
        choice.update_pending_part(spot);
    }
}
