//! Handles text that arrives after its part was closed ("late text").
//!
//! Some gateways close a part too early and go on sending its deltas
//! (<https://github.com/diegosouzapw/OmniRoute/issues/14007>). Others send the deltas of a part again. Late text is held
//! back while it repeats the closed text from its beginning:
//!
//! - Late text that differs from the closed text is new. It continues in a new part of the same item.
//! - Late text that repeats all of the closed text is a repetition, and is dropped.
//! - If more text follows such a repetition, the closed text may also be the beginning of the new text (AM13). It is a
//!   repetition if it has at least four characters, because a longer text is not repeated by chance.
//! - If an event shows that no more late text follows, but the late text has repeated only the beginning of the closed
//!   text, the late text is new (AM13), because a gateway that sends a part again sends all of it.
//!
//! If a later event contains the complete text, it decides instead whether the held text is a repetition or new.

use crate::assemble::choice::Choice;
use crate::assemble::part::content_mode::AUTO_FROM;
use crate::assemble::part::item::ItemPart;
use crate::assemble::part::item::LateText;
use crate::assemble::part::item::PartPosition;
use crate::assemble::part::item_text::PartKey;
use crate::assemble::part::item_text::add_joined_text;
use crate::assemble::part::item_text::end_part;
use crate::assemble::part::item_text::open_part;
use crate::assemble::part::item_text::report_late_part;
use crate::assemble::part::text::TextPart;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
use crate::json::Text;
use crate::model::event::WireFact;
use crate::model::fault::Fault;
use crate::model::spec::Code;

/// Returns true if a delta with this sub-index arrives after the text of the part is complete.
pub fn is_late(choice: &Choice, part_position: PartPosition, sub: Option<i64>) -> bool {
    choice.item_part(part_position).is_some_and(|(one, part)| {
        one.valued || one.closed || !part.open || one.labels.is_closed(sub)
    })
}

/// Applies a text delta with this sub-index to a part whose text is complete.
pub fn add_late_text(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    part_position: PartPosition,
    text: Text<'_>,
    sub: Option<i64>,
    metadata: Option<&str>,
) -> ParseResult {
    report_late_part(ctx, choice, part_position)?;
    ctx.out.record_fact(WireFact::Mended { emptied: false });
    let Some((one, _)) = choice.item_part(part_position) else {
        return Ok(());
    };
    let closing = one.labels.closing_text(sub);
    let label = closing.and(sub);
    let closing = closing.map(str::to_owned);
    if one.late.as_ref().is_some_and(|late| late.label != label) {
        settle(ctx, choice, part_position, None)?;
    }
    let Some((one, part)) = choice.item_part_mut(part_position) else {
        return Ok(());
    };
    let is_first = one.late.is_none();
    let number = part.part;
    let (text, lone) = one.joiner.join(text);
    let ItemPart { late, earlier, .. } = one;
    let late = late.get_or_insert_with(|| Box::new(LateText::new(label, closing)));
    late.sub = sub;
    let rest = late.take(earlier, &part.text, &text);
    let length = late.length;
    if is_first {
        choice.item_index.add_late(part_position);
    }
    if lone {
        ctx.report(Code::LONE_SURROGATE, number)?;
    }
    let new = match rest {
        None => held(choice, part_position) + &text,
        Some("") => return Ok(()),
        Some(rest) => {
            let is_repetition = length >= AUTO_FROM;
            if length > 0 {
                let detail = if is_repetition {
                    "repeated"
                } else {
                    "appended"
                };
                ctx.out
                    .diagnose(Code::AMBIGUOUS_CUMULATIVE, Some(number), detail)?;
            }
            match is_repetition {
                true => rest.to_owned(),
                false => held(choice, part_position) + rest,
            }
        }
    };
    continue_late(ctx, choice, part_position, &new, metadata)?;
    Ok(())
}

/// Decides whether the held late text of a part is new, because an event ended the part. `whole`: the complete text in
/// the event. Returns the part that the event belongs to.
pub fn end_late_text(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    part_position: PartPosition,
    whole: Option<&str>,
) -> Result<PartPosition, Fault> {
    let Some((one, part)) = choice.item_part(part_position) else {
        return Ok(part_position);
    };
    let Some(late) = &one.late else {
        return Ok(part_position);
    };
    let shown = whole.and_then(|whole| late.is_in(&one.earlier, &part.text, whole));
    settle(ctx, choice, part_position, shown)
}

/// Decides whether the held late texts of an item are new, because a content list arrived. `part_positions`: the parts
/// of the listed kind; `texts`: the listed texts.
pub fn settle_late_texts(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    part_positions: &[PartPosition],
    texts: &[&str],
) -> ParseResult {
    let parts: Vec<(&ItemPart, &TextPart)> = part_positions
        .iter()
        .filter_map(|part_position| choice.item_part(*part_position))
        .collect();
    if parts.iter().all(|(one, _)| one.late.is_none()) {
        return Ok(());
    }
    let before: String = parts.iter().map(|(_, part)| part.text.as_str()).collect();
    let after: String = parts
        .iter()
        .flat_map(|(one, part)| [part.text.clone(), held_of(one, part)])
        .collect();
    let whole = texts.concat();
    let is_shown = !whole.is_empty() && (whole == before || whole == after);
    let shown = is_shown.then_some(whole == after);
    for part_position in part_positions {
        settle(ctx, choice, *part_position, shown)?;
    }
    Ok(())
}

/// Decides whether the held late texts of an item are new, because the item or the choice has ended.
pub fn end_late_texts(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
) -> ParseResult {
    let late = choice.item_index.get_mut(item);
    for one in late
        .map(|item| std::mem::take(&mut item.late))
        .unwrap_or_default()
    {
        settle(ctx, choice, PartPosition { item, one }, None)?;
    }
    Ok(())
}

/// Decides whether the held late texts of all items are new, because the step or the choice has ended.
pub fn end_all_late_texts(ctx: &mut RuleContext<'_, '_>, choice: &mut Choice) -> ParseResult {
    for item in choice.item_index.take_late() {
        end_late_texts(ctx, choice, item)?;
    }
    Ok(())
}

fn held(choice: &Choice, part_position: PartPosition) -> String {
    let part = choice.item_part(part_position);
    part.map(|(one, part)| held_of(one, part))
        .unwrap_or_default()
}

/// Returns the late text of the part that has been held back.
fn held_of(one: &ItemPart, part: &TextPart) -> String {
    let late = one.late.as_ref();
    late.map(|late| late.held(&one.earlier, &part.text))
        .unwrap_or_default()
}

/// Drops or emits the held late text of a part. `shown`: whether a complete text contains it; `None`: unknown.
fn settle(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    part_position: PartPosition,
    shown: Option<bool>,
) -> Result<PartPosition, Fault> {
    let Some((one, part)) = choice.item_part_mut(part_position) else {
        return Ok(part_position);
    };
    let Some(late) = &one.late else {
        return Ok(part_position);
    };
    let is_new = shown.unwrap_or(!late.is_whole(&one.earlier));
    let held = match is_new {
        true => late.held(&one.earlier, &part.text),
        false => String::new(),
    };
    if held.is_empty() && !one.joiner.is_pending() {
        one.late = None;
        return Ok(part_position);
    }
    let number = Some(part.part);
    ctx.out.record_fact(WireFact::Mended { emptied: false });
    if !held.is_empty() && shown.is_none() {
        ctx.out
            .diagnose(Code::AMBIGUOUS_CUMULATIVE, number, "appended")?;
    }
    continue_late(ctx, choice, part_position, &held, None)
}

fn continue_late(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    part_position: PartPosition,
    text: &str,
    metadata: Option<&str>,
) -> Result<PartPosition, Fault> {
    let Some((one, _)) = choice.item_part_mut(part_position) else {
        return Ok(part_position);
    };
    let sub = one.late.take().and_then(|late| late.sub);
    if one.valued || one.closed {
        end_part(ctx, choice, part_position)?;
    }
    let new = continue_part(ctx, choice, part_position, sub, (None, None))?;
    add_joined_text(ctx, choice, new, text, sub, metadata)?;
    Ok(new)
}

/// Opens a part that continues another part, in the same item. Reopens the item if it is closed. The new part takes over
/// the held half of a character. `snapshot` and `metadata`: the text and the metadata in the opening event.
pub fn continue_part(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    part_position: PartPosition,
    sub: Option<i64>,
    (snapshot, metadata): (Option<Text<'_>>, Option<&str>),
) -> Result<PartPosition, Fault> {
    let Some((one, part)) = choice.item_part_mut(part_position) else {
        return Ok(part_position);
    };
    let joiner = std::mem::take(&mut one.joiner);
    let (mut earlier, text) = match one.labels.closing_text(sub) {
        None => (std::mem::take(&mut one.earlier), part.text.clone()),
        Some(closing) => (Vec::new(), closing.to_owned()),
    };
    if !text.is_empty() {
        earlier.push(text);
    }
    let part_key = PartKey {
        channel: part.channel,
        kind: part.kind,
        sub,
    };
    choice.item_index.reopen(part_position.item);
    let item = part_position.item;
    let new = open_part(ctx, choice, item, part_key, snapshot, metadata)?;
    if let Some((one, _)) = choice.item_part_mut(new) {
        one.earlier = earlier;
        one.joiner = joiner;
    }
    choice.update_pending_part(new);
    Ok(new)
}
