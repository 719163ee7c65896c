//! A terminal list tells everything again: which streamed part or call each entry is, so that nothing is there twice.
//!
//! By its address; else, under whatever id, one of the same channel with the same text, or of the same name with the same
//! arguments, that no entry before it meant; else what is still open there and can be what the entry tells. What is
//! missing is made by whoever asked. It changes no part and no call.

use crate::assemble::choice::Choice;
use crate::assemble::part::canonical_json::canonical;
use crate::assemble::part::canonical_json::is_whole;
use crate::assemble::part::item::Spot;
use crate::assemble::part::item_call::says;
use crate::assemble::part::item_text::Make;
use crate::assemble::part::item_text::find_whole;
use crate::assemble::resolve::restatement::Heard;
use crate::assemble::resolve::restatement::Restatement;
use crate::model::delta::Address;
use crate::model::delta::ItemKind;
use crate::model::delta::PartAt;

impl Restatement {
    pub fn new(choice: &Choice) -> Restatement {
        let mut heard = Vec::new();
        // Backwards, so that the first one is the last of its list.
        for &item in choice.book.filled.iter().rev() {
            let Some(kind) = choice.book.get(item).map(|item| item.kind) else {
                continue;
            };
            for spot in choice.spots(item).rev() {
                if let Some((_, part)) = choice.one(spot).filter(|(_, part)| !part.void) {
                    heard.push(Heard::Part(spot, (kind, part.channel, part.text.clone())));
                }
            }
            if let Some(call) = choice.call_of(item).filter(|call| !call.dropped) {
                let whole = call.is_complete() && !call.custom;
                let said = if whole {
                    call.words()
                } else {
                    call.text.text()
                };
                heard.push(Heard::Call {
                    item,
                    name: call.name.clone(),
                    said: said.into_owned(),
                    whole,
                });
            }
        }
        Restatement {
            heard,
            ..Restatement::default()
        }
    }

    /// Makes what was heard ready to be looked up.
    fn order(&mut self) {
        for heard in std::mem::take(&mut self.heard) {
            match heard {
                Heard::Part(spot, key) => self.parts.entry(key).or_default().push(spot),
                Heard::Call {
                    item,
                    name,
                    said,
                    whole,
                } => {
                    let said = if whole { canonical(&said) } else { said };
                    self.calls.entry((name, said)).or_default().push(item);
                }
            }
        }
    }

    /// The item and the part that an entry tells again, as far as they are there.
    pub fn part(
        &mut self,
        choice: &mut Choice,
        at: &PartAt<'_>,
        text: &str,
    ) -> (Option<usize>, Option<Spot>) {
        let make = Make {
            channel: at.channel,
            kind: at.reasoning_kind,
            sub: at.address.sub,
        };
        let named = choice.book.by_ids(&choice.calls, at.kind, &at.address);
        if let Some(named) = named {
            return (Some(named), find_whole(choice, named, make, Some(text)));
        }
        self.order();
        let key = (at.kind, at.channel, text.to_owned());
        if let Some(same) = self.parts.get_mut(&key) {
            while let Some(spot) = same.pop() {
                if choice.one(spot).is_some_and(|(one, _)| !one.restated) {
                    return (Some(spot.item), Some(spot));
                }
            }
        }
        let book = &choice.book;
        let here = [book.at(at.kind, at.address.index), book.latest(at.kind)];
        for item in here.into_iter().flatten() {
            let Some(spot) = find_whole(choice, item, make, Some(text)) else {
                if choice.book.get(item).is_some_and(|item| item.open) {
                    return (Some(item), None);
                }
                continue;
            };
            let fits = choice.one(spot).is_some_and(|(one, part)| {
                part.open && !one.restated && text.starts_with(&part.text)
            });
            if fits {
                return (Some(item), Some(spot));
            }
        }
        (None, None)
    }

    /// The item whose call an entry tells again.
    pub fn call(
        &mut self,
        choice: &mut Choice,
        address: &Address<'_>,
        name: Option<&str>,
        arguments: &str,
    ) -> Option<usize> {
        let named = choice.book.by_ids(&choice.calls, ItemKind::Call, address);
        if let Some(named) = named {
            let again = choice.book.get(named).is_some_and(|item| item.restated);
            // Else the list has two under one id.
            return (!again || tells(choice, named, name, arguments)).then_some(named);
        }
        self.order();
        let book = &choice.book;
        let said = if is_whole(arguments.as_bytes()) {
            canonical(arguments)
        } else {
            arguments.to_owned()
        };
        let name = name.unwrap_or_default();
        if let Some(same) = self.calls.get_mut(&(name.to_owned(), said)) {
            while let Some(item) = same.pop() {
                if book.get(item).is_some_and(|item| !item.restated) {
                    return Some(item);
                }
            }
        }
        let here = [
            book.at(ItemKind::Call, address.index),
            book.latest(ItemKind::Call),
        ];
        here.into_iter().flatten().find(|item| {
            let (Some(record), Some(call)) = (book.get(*item), choice.call_of(*item)) else {
                return false;
            };
            let named = call.name.is_empty() || call.name == name;
            let other_id = call.id.is_some() && address.call_id.is_some_and(|id| !call.has_id(id));
            call.verdict.is_none()
                && named
                && !record.restated
                && !other_id
                && arguments.starts_with(call.text.text().as_ref())
        })
    }
}

fn tells(choice: &mut Choice, item: usize, name: Option<&str>, arguments: &str) -> bool {
    let Some((_, call)) = choice.item_call_mut(item) else {
        return false;
    };
    let named = call.name.is_empty() || name.is_none_or(|name| name == call.name);
    named && says(call, arguments)
}
