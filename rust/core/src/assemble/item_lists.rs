//! Applies the content list of an item, from the item's closing event or from a terminal list.
//!
//! `resolve/listed_parts` matches all listed parts of one kind with the item's streamed parts at the same time.

use crate::assemble::Assembler;
use crate::assemble::ChoiceContext;
use crate::assemble::choice::Choice;
use crate::assemble::items::cleared;
use crate::assemble::items::find;
use crate::assemble::late_text::settle_late_texts;
use crate::assemble::part::item::PartPosition;
use crate::assemble::part::item_list::TextList;
use crate::assemble::part::item_list::part_positions_like;
use crate::assemble::part::item_text::complete_text;
use crate::assemble::resolve::by_address::known_item;
use crate::assemble::resolve::item_index::Purpose;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
use crate::json::Text;
use crate::model::delta::Channel;
use crate::model::delta::ItemKind;
use crate::model::delta::ListedPart;
use crate::model::delta::PartAttributes;
use crate::model::fault::Fault;
use crate::model::output::Output;

/// Maximum number of content lists that are applied to one item. The maximum bounds the total time, because applying a
/// list takes time proportional to the item's text.
const MAX_LISTS: u8 = 16;

type GroupKey = (ItemKind, Channel, &'static str);

/// The listed parts that have the same item kind, channel and reasoning kind.
#[derive(Debug)]
struct Group {
    entries: Vec<usize>,
    /// The plan for applying the listed parts together. `None`: the listed parts are applied one by one, or ignored.
    list: Option<TextList>,
    next_entry: usize,
}

impl Assembler {
    /// Applies a list that contains all parts of an item with their complete text. `again`: true if the list is in a
    /// terminal event, which only repeats earlier content.
    pub fn parts_listed(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        mut entries: Vec<ListedPart<'_>>,
        again: bool,
    ) -> ParseResult {
        let texts: Vec<String> = entries
            .iter_mut()
            .map(|entry| {
                complete_text(entry.text.take())
                    .unwrap_or_default()
                    .into_owned()
            })
            .collect();
        let mut groups: Vec<(GroupKey, Group)> = Vec::new();
        let mut group_of = Vec::with_capacity(entries.len());
        for (number, entry) in entries.iter().enumerate() {
            let group_key = (entry.at.kind, entry.at.channel, entry.at.reasoning_kind);
            let position = groups.iter().position(|(known, _)| *known == group_key);
            let position = position.unwrap_or(groups.len());
            if position == groups.len() {
                let group = Group {
                    entries: Vec::new(),
                    list: None,
                    next_entry: 0,
                };
                groups.push((group_key, group));
            }
            if let Some((_, group)) = groups.get_mut(position) {
                group.entries.push(number);
            }
            group_of.push(position);
        }
        let Some(ChoiceContext {
            choice: all,
            mut ctx,
        }) = self.item_choice(out, choice)?
        else {
            return Ok(());
        };
        for (_, group) in &mut groups {
            group.list = list_of(&mut ctx, all, &entries, &texts, group, again)?;
        }
        for ((entry, text), position) in entries.iter().zip(&texts).zip(group_of) {
            let Some((_, group)) = groups.get_mut(position) else {
                continue;
            };
            let number = group.next_entry;
            group.next_entry += 1;
            if let Some(list) = &mut group.list {
                let Some(ChoiceContext { choice, mut ctx }) = self.item_choice(out, choice)? else {
                    continue;
                };
                list.apply_entry(&mut ctx, choice, number, entry, text, again)?;
            } else if again {
                self.restate_alone(out, entry, text)?;
            }
        }
        let Some(ChoiceContext { choice, mut ctx }) = self.item_choice(out, choice)? else {
            return Ok(());
        };
        groups
            .into_iter()
            .filter_map(|(_, group)| group.list)
            .try_for_each(|list| list.end(&mut ctx, choice))
    }

    /// Applies one part of a terminal list on its own, because no streamed item was found for the list.
    fn restate_alone(
        &mut self,
        out: &mut Output<'_>,
        entry: &ListedPart<'_>,
        text: &str,
    ) -> ParseResult {
        if entry.annotations.is_some() {
            let attributes = PartAttributes {
                annotations: entry.annotations.as_deref(),
                ..PartAttributes::default()
            };
            self.part_attributes(out, entry.at, attributes)?;
        }
        let text = Text::plain(text);
        self.restate_part(out, entry.at, Some(text), entry.metadata.as_deref())
    }
}

/// Plans how the listed parts of one kind are applied to their item. Returns `None` if the item is not found or had too
/// many lists. The caller then applies the parts of a terminal list one by one, and ignores the parts of a closing
/// event.
fn list_of(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    entries: &[ListedPart<'_>],
    texts: &[String],
    group: &Group,
    again: bool,
) -> Result<Option<TextList>, Fault> {
    let of_group = || group.entries.iter().copied();
    let texts: Vec<&str> = of_group()
        .filter_map(|at| texts.get(at))
        .map(String::as_str)
        .collect();
    let first = group.entries.first().and_then(|first| entries.get(*first));
    let Some(first) = first else {
        return Ok(None);
    };
    let at = cleared(ctx, first.at);
    let found = if again {
        let named = choice
            .item_index
            .by_ids(&choice.calls, at.kind, &at.address);
        named.or_else(|| same_text(choice, first, &texts))
    } else {
        find(choice, &at, Purpose::Close)
    };
    if found.is_none() && (again || texts.iter().all(|text| text.is_empty())) {
        return Ok(None);
    }
    let item = known_item(ctx, choice, at.kind, &at.address, found)?;
    if let Some(item) = choice.item_index.get_mut(item) {
        item.lists = item.lists.saturating_add(1);
        if item.lists > MAX_LISTS {
            return Ok(None);
        }
    }
    let part_positions: Vec<PartPosition> = part_positions_like(choice, item, first).collect();
    settle_late_texts(ctx, choice, &part_positions, &texts)?;
    Ok(Some(TextList::new(choice, item, first, &texts, again)))
}

/// Returns the item whose parts have exactly the text of the listed parts, even if the item's id is not the listed id.
/// Checks the item at the listed index and the latest open item. Returns `None` if neither item has this text, or if
/// both the list and the item have only one part.
fn same_text(choice: &Choice, entry: &ListedPart<'_>, texts: &[&str]) -> Option<usize> {
    let item_index = &choice.item_index;
    let here = [
        item_index.at(entry.at.kind, entry.at.address.index),
        item_index.latest(entry.at.kind),
    ];
    let length: usize = texts.iter().map(|text| text.len()).sum();
    here.into_iter().flatten().find(|item| {
        let parts = || {
            part_positions_like(choice, *item, entry)
                .filter_map(|part_position| choice.item_part(part_position))
        };
        let streamed: usize = parts().map(|(_, part)| part.text.len()).sum();
        let several = texts.len() > 1 || parts().nth(1).is_some();
        several && length == streamed && length > 0 && parts().all(|(one, _)| !one.restated) && {
            let streamed: String = parts().map(|(_, part)| part.text.as_str()).collect();
            streamed == texts.concat()
        }
    })
}
