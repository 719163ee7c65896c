//! Ends an item when the stream closes it, and ends all open items when their choice ends.
//!
//! `item_text` closes the parts of an item; `item_call` and `close_calls` close tool calls.

use crate::assemble::choice::Choice;
use crate::assemble::late_text::end_all_late_texts;
use crate::assemble::late_text::end_late_texts;
use crate::assemble::part::item_call::end_call;
use crate::assemble::part::item_call::settle_text;
use crate::assemble::part::item_text::finish_item;
use crate::assemble::part::item_text::report_unfinished_repetitions;
use crate::assemble::part::reannounced::decide;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
use crate::model::delta::ItemKind;
use crate::model::event::WireFact;

/// Ends an item and closes its parts or its call, because the stream closed the item.
pub fn end_item(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    encrypted_content: Option<&str>,
    metadata: Option<&str>,
) -> ParseResult {
    decide(ctx, choice, item, true)?;
    end_late_texts(ctx, choice, item)?;
    choice.item_index.close(item);
    match choice.item_index.get(item).map(|item| item.kind) {
        Some(ItemKind::Call) => {
            if let Some((_, call)) = choice.item_call_mut(item) {
                call.ended = true;
            }
            end_call(ctx, choice, item)?;
            if let Some(call) = choice.call_of(item) {
                ctx.out.record_fact(WireFact::Ended(call.part));
            }
        }
        Some(_) => {
            let first = choice.item_index.get(item).map_or(0, |item| item.ended);
            finish_item(ctx, choice, item, encrypted_content, metadata, true)?;
            for (_, part) in choice
                .part_positions(item)
                .skip(first)
                .filter_map(|part_position| choice.item_part(part_position))
            {
                ctx.out.record_fact(WireFact::Ended(part.part));
            }
        }
        None => {}
    }
    Ok(())
}

/// Ends all open items of a choice that has ended, and closes their parts. The calls of these items are closed later,
/// all together, by `close_calls`. `ended`: the choice was not truncated.
pub fn end_items(ctx: &mut RuleContext<'_, '_>, choice: &mut Choice, ended: bool) -> ParseResult {
    for position in 0..choice.item_index.filled.len() {
        let item = choice.item_index.filled.get(position).copied();
        let repeats = |item: &usize| {
            let record = choice.item_index.get(*item);
            record.is_some_and(|record| record.repeats && !record.open)
        };
        if let Some(item) = item.filter(repeats) {
            report_unfinished_repetitions(ctx, choice, item)?;
        }
    }
    end_all_late_texts(ctx, choice)?;
    for item in choice.item_index.opened() {
        decide(ctx, choice, item, false)?;
        choice.item_index.close(item);
        match choice.item_index.get(item).map(|item| item.kind) {
            Some(ItemKind::Call) => settle_text(ctx, choice, item, ended)?,
            Some(_) => finish_item(ctx, choice, item, None, None, ended)?,
            None => {}
        }
    }
    Ok(())
}
