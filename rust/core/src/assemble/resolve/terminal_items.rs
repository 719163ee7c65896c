//! Finds the streamed part or call that a part or call in a terminal list repeats, so that no content is duplicated.
//!
//! A listed part or call is first looked up by its ids. If the ids are unknown, a part is matched by channel and text,
//! and a call by name and arguments. Each streamed part or call is matched at most once. As a last resort, an open part
//! or call matches if its text so far is the beginning of the listed text. The caller creates parts and calls that are
//! not found.

use crate::assemble::choice::Choice;
use crate::assemble::part::canonical_json::canonical;
use crate::assemble::part::canonical_json::is_whole;
use crate::assemble::part::item::PartPosition;
use crate::assemble::part::item_call::is_same_or_empty;
use crate::assemble::part::item_text::PartKey;
use crate::assemble::part::item_text::find_whole;
use crate::assemble::resolve::restatement::Restatement;
use crate::assemble::resolve::restatement::StreamedContent;
use crate::model::delta::Address;
use crate::model::delta::ItemKind;
use crate::model::delta::PartAt;

impl Restatement {
    pub fn new(choice: &Choice) -> Restatement {
        let mut streamed = Vec::new();
        // The order is reversed because `pop` then returns the earliest match.
        for &item in choice.item_index.filled.iter().rev() {
            let Some(kind) = choice.item_index.get(item).map(|item| item.kind) else {
                continue;
            };
            for part_position in choice.part_positions(item).rev() {
                if let Some((_, part)) = choice
                    .item_part(part_position)
                    .filter(|(_, part)| !part.void)
                {
                    streamed.push(StreamedContent::Part(
                        part_position,
                        (kind, part.channel, part.text.clone()),
                    ));
                }
            }
            if let Some(call) = choice.call_of(item).filter(|call| !call.dropped) {
                let whole = call.is_complete() && !call.custom;
                let arguments_text = if whole {
                    call.argument_text()
                } else {
                    call.text.text()
                };
                streamed.push(StreamedContent::Call {
                    item,
                    name: call.name.clone(),
                    arguments_text: arguments_text.into_owned(),
                    whole,
                });
            }
        }
        Restatement {
            streamed,
            ..Restatement::default()
        }
    }

    /// Moves the collected content into the lookup tables.
    fn order(&mut self) {
        for streamed in std::mem::take(&mut self.streamed) {
            match streamed {
                StreamedContent::Part(part_position, key) => {
                    self.parts.entry(key).or_default().push(part_position)
                }
                StreamedContent::Call {
                    item,
                    name,
                    arguments_text,
                    whole,
                } => {
                    let arguments_text = if whole {
                        canonical(&arguments_text)
                    } else {
                        arguments_text
                    };
                    self.calls
                        .entry((name, arguments_text))
                        .or_default()
                        .push(item);
                }
            }
        }
    }

    /// Returns the streamed item and the streamed part that a listed part repeats. The part, or both the item and the
    /// part, may be `None`.
    pub fn part(
        &mut self,
        choice: &mut Choice,
        at: &PartAt<'_>,
        text: &str,
    ) -> (Option<usize>, Option<PartPosition>) {
        let part_key = PartKey {
            channel: at.channel,
            kind: at.reasoning_kind,
            sub: at.address.sub,
        };
        let named = choice
            .item_index
            .by_ids(&choice.calls, at.kind, &at.address);
        if let Some(named) = named {
            return (Some(named), find_whole(choice, named, part_key, Some(text)));
        }
        self.order();
        let key = (at.kind, at.channel, text.to_owned());
        if let Some(same) = self.parts.get_mut(&key) {
            while let Some(part_position) = same.pop() {
                if choice
                    .item_part(part_position)
                    .is_some_and(|(one, _)| !one.restated)
                {
                    return (Some(part_position.item), Some(part_position));
                }
            }
        }
        let item_index = &choice.item_index;
        let here = [
            item_index.at(at.kind, at.address.index),
            item_index.latest(at.kind),
        ];
        for item in here.into_iter().flatten() {
            let Some(part_position) = find_whole(choice, item, part_key, Some(text)) else {
                if choice.item_index.get(item).is_some_and(|item| item.open) {
                    return (Some(item), None);
                }
                continue;
            };
            let fits = choice.item_part(part_position).is_some_and(|(one, part)| {
                part.open && !one.restated && text.starts_with(&part.text)
            });
            if fits {
                return (Some(item), Some(part_position));
            }
        }
        (None, None)
    }

    /// Returns the streamed item whose call a listed call repeats, or `None`.
    pub fn call(
        &mut self,
        choice: &mut Choice,
        address: &Address<'_>,
        name: Option<&str>,
        arguments: &str,
    ) -> Option<usize> {
        let named = choice
            .item_index
            .by_ids(&choice.calls, ItemKind::Call, address);
        if let Some(named) = named {
            let again = choice
                .item_index
                .get(named)
                .is_some_and(|item| item.restated);
            // If the item was already matched and the content differs, the list contains two calls with the same id.
            return (!again || matches_call(choice, named, name, arguments)).then_some(named);
        }
        self.order();
        let item_index = &choice.item_index;
        let arguments_text = if is_whole(arguments.as_bytes()) {
            canonical(arguments)
        } else {
            arguments.to_owned()
        };
        let name = name.unwrap_or_default();
        if let Some(same) = self.calls.get_mut(&(name.to_owned(), arguments_text)) {
            while let Some(item) = same.pop() {
                if item_index.get(item).is_some_and(|item| !item.restated) {
                    return Some(item);
                }
            }
        }
        let here = [
            item_index.at(ItemKind::Call, address.index),
            item_index.latest(ItemKind::Call),
        ];
        here.into_iter().flatten().find(|item| {
            let (Some(record), Some(call)) = (item_index.get(*item), choice.call_of(*item)) else {
                return false;
            };
            let named = call.name.is_empty() || call.name == name;
            let other_id = call.id.is_some() && address.call_id.is_some_and(|id| !call.has_id(id));
            call.outcome.is_none()
                && named
                && !record.restated
                && !other_id
                && arguments.starts_with(call.text.text().as_ref())
        })
    }
}

fn matches_call(choice: &mut Choice, item: usize, name: Option<&str>, arguments: &str) -> bool {
    let Some((_, call)) = choice.item_call_mut(item) else {
        return false;
    };
    let named = call.name.is_empty() || name.is_none_or(|name| name == call.name);
    named && is_same_or_empty(call, arguments)
}
