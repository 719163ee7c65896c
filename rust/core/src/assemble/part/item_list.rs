//! Applies a content list to the streamed parts of its item, one listed part after the other, as planned by
//! `listed_parts`.
//!
//! Events are emitted in the order of the list, so that a client receives the parts in the order of the item:
//!
//! 1  A listed part adds its annotations and metadata to the streamed part that it matches. A listed part that matches
//!    no streamed part opens a new part.
//! 2  The last listed part that matches a streamed part corrects the text of that part and closes it.
//! 3  At the end of the list, the streamed parts that are not in the list become empty, in the order in which they
//!    opened. These parts close with the item. Step 3 comes last, because a later listed part may still match such a
//!    streamed part.

use crate::assemble::choice::Choice;
use crate::assemble::part::item::PartPosition;
use crate::assemble::part::item_text::PartKey;
use crate::assemble::part::item_text::annotate;
use crate::assemble::part::item_text::close_part;
use crate::assemble::part::item_text::conflict;
use crate::assemble::part::item_text::put_metadata;
use crate::assemble::part::item_text::set_value;
use crate::assemble::resolve::by_address::opened;
use crate::assemble::resolve::listed_parts::Assignment;
use crate::assemble::resolve::listed_parts::PartUpdate;
use crate::assemble::resolve::listed_parts::Plan;
use crate::assemble::resolve::listed_parts::StreamedPart;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
use crate::model::delta::ListedPart;
use crate::model::delta::PartAttributes;
use crate::model::fault::Fault;
use crate::model::spec::Code;
use std::borrow::Cow;

/// The streamed parts of one kind in an item, and the plan for the listed parts of this kind.
#[derive(Debug)]
pub struct TextList {
    item: usize,
    part_positions: Vec<PartPosition>,
    plan: Plan,
    /// For each streamed part, the number of listed parts that have not been applied to it yet.
    to_come: Vec<usize>,
}

impl TextList {
    /// Plans how the listed parts are applied to the streamed parts. `entry`: one of the listed parts; `texts`: the
    /// texts of all listed parts. `again`: the list is a terminal list.
    pub fn new(
        choice: &Choice,
        item: usize,
        entry: &ListedPart<'_>,
        texts: &[&str],
        again: bool,
    ) -> TextList {
        let mut part_positions: Vec<PartPosition> =
            part_positions_like(choice, item, entry).collect();
        let ended = choice.item_index.get(item).map_or(0, |item| item.ended);
        if !again && ended > 0 {
            // The item ended before and was continued. This list may contain only the parts since then.
            let is_recent = |part_position: &PartPosition| part_position.one >= ended;
            let recent: Vec<PartPosition> =
                part_positions.iter().copied().filter(is_recent).collect();
            let text: String = recent
                .iter()
                .filter_map(|part_position| choice.item_part(*part_position))
                .map(|(_, part)| part.text.as_str())
                .collect();
            if !recent.is_empty() && text == texts.concat() {
                part_positions = recent;
            }
        }
        let parts: Vec<StreamedPart> = part_positions
            .iter()
            .filter_map(|part_position| {
                let (one, part) = choice.item_part(*part_position)?;
                let text = one.snapshot.as_ref().unwrap_or(&part.text);
                Some(StreamedPart {
                    text: text.clone(),
                    done: !part.open,
                    several_labels: one.labels.are_several(),
                    is_late: !one.earlier.is_empty(),
                })
            })
            .collect();
        let plan = Plan::new(&parts, texts);
        let mut to_come = vec![0; part_positions.len()];
        for assignment in &plan.assignments {
            if let Assignment::Part(position) = assignment
                && let Some(count) = to_come.get_mut(*position)
            {
                *count += 1;
            }
        }
        TextList {
            item,
            part_positions,
            plan,
            to_come,
        }
    }

    /// Applies the listed part with this number. The listed parts must be applied in order. `again`: the list is a
    /// terminal list.
    pub fn apply_entry(
        &mut self,
        ctx: &mut RuleContext<'_, '_>,
        choice: &mut Choice,
        number: usize,
        entry: &ListedPart<'_>,
        text: &str,
        again: bool,
    ) -> ParseResult {
        let assignment = self.plan.assignments.get(number).copied();
        let (position, part_position) = match assignment.unwrap_or(Assignment::Unassigned) {
            Assignment::Unassigned => return Ok(()),
            Assignment::New => {
                let part_key = PartKey {
                    channel: entry.at.channel,
                    kind: entry.at.reasoning_kind,
                    sub: entry.at.address.sub,
                };
                (None, opened(ctx, choice, self.item, part_key)?)
            }
            Assignment::Part(position) => match self.part_positions.get(position) {
                Some(part_position) => (Some(position), *part_position),
                None => return Ok(()),
            },
        };
        if let Some((one, _)) = choice.item_part_mut(part_position) {
            one.restated |= again;
        }
        if let Some(annotations) = &entry.annotations {
            hang(ctx, choice, part_position, annotations)?;
        }
        let metadata = entry.metadata.as_deref();
        let Some(position) = position else {
            set_value(ctx, choice, part_position, Cow::Borrowed(text))?;
            return self.close(ctx, choice, part_position, metadata);
        };
        if let Some(count) = self.to_come.get_mut(position) {
            *count -= 1;
            if *count > 0 {
                return match choice.is_part_open(part_position) {
                    true => put_metadata(ctx, choice, part_position, metadata),
                    false => Ok(()),
                };
            }
        }
        self.correct(ctx, choice, position)?;
        self.close(ctx, choice, part_position, metadata)
    }

    /// Ends the list: corrects the streamed parts that the list does not contain.
    pub fn end(mut self, ctx: &mut RuleContext<'_, '_>, choice: &mut Choice) -> ParseResult {
        for position in 0..self.part_positions.len() {
            self.correct(ctx, choice, position)?;
        }
        Ok(())
    }

    /// Corrects the text of a streamed part as planned, unless this was already done.
    fn correct(
        &mut self,
        ctx: &mut RuleContext<'_, '_>,
        choice: &mut Choice,
        position: usize,
    ) -> ParseResult {
        let (Some(part_position), Some(update)) = (
            self.part_positions.get(position),
            self.plan.updates.get_mut(position),
        ) else {
            return Ok(());
        };
        match std::mem::replace(update, PartUpdate::Kept) {
            PartUpdate::Kept => Ok(()),
            PartUpdate::Text(text) => set_value(ctx, choice, *part_position, Cow::Owned(text)),
            PartUpdate::Contradicted => conflict(ctx, choice, *part_position),
            PartUpdate::Left => {
                conflict(ctx, choice, *part_position)?;
                set_value(ctx, choice, *part_position, Cow::Borrowed(""))
            }
        }
    }

    fn close(
        &self,
        ctx: &mut RuleContext<'_, '_>,
        choice: &mut Choice,
        part_position: PartPosition,
        metadata: Option<&str>,
    ) -> ParseResult {
        let alone = choice
            .item_index
            .get(self.item)
            .is_none_or(|item| !item.open);
        close_part(ctx, choice, part_position, metadata, alone)
    }
}

/// Returns the parts of the item with the channel and reasoning kind of the listed part. Excludes retracted parts.
pub fn part_positions_like(
    choice: &Choice,
    item: usize,
    entry: &ListedPart<'_>,
) -> impl Iterator<Item = PartPosition> {
    let (channel, kind) = (entry.at.channel, entry.at.reasoning_kind);
    choice.part_positions(item).filter(move |part_position| {
        let part = choice.item_part(*part_position);
        part.is_some_and(|(_, part)| part.channel == channel && part.kind == kind && !part.void)
    })
}

fn hang(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    part_position: PartPosition,
    annotations: &str,
) -> Result<(), Fault> {
    let attributes = PartAttributes {
        annotations: Some(annotations),
        ..PartAttributes::default()
    };
    if choice.is_part_open(part_position) {
        return annotate(ctx, choice, part_position, attributes);
    }
    let Some((one, part)) = choice.item_part_mut(part_position) else {
        return Ok(());
    };
    if std::mem::replace(&mut one.late_reported, true) {
        return Ok(());
    }
    ctx.report(Code::LATE_DELTA, part.part)
}
