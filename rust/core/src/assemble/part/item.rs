//! What the wire addresses: an item with its parts or its one call. Holds state and queries.
//!
//! `item_index` finds the item of an address; `item_text` and `item_call` change it.

use crate::assemble::part::call::Id;
use crate::assemble::part::call::MAX_ALIASES;
use crate::assemble::part::labels::Labels;
use crate::json::Surrogates;
use crate::model::delta::Channel;
use crate::model::delta::ItemKind;
use crate::model::small_map::Map;
use std::collections::BTreeSet;
use std::collections::HashMap;

/// Up to so many parts are looked through one by one.
const FEW: usize = 8;

/// A text-like part that the wire opens and closes.
#[derive(Clone, Debug)]
pub struct ItemPart {
    /// Its place among the textual parts of the choice.
    pub place: usize,
    pub sub: Option<i64>,
    pub joiner: Surrogates,
    /// Text of the opening, as long as the deltas may yet repeat it.
    pub snapshot: Option<String>,
    /// How many bytes of it they did repeat.
    pub again: usize,
    /// Of the last delta.
    pub last_sub: Option<i64>,
    /// Under which its whole text was last told.
    pub told_sub: Option<i64>,
    /// Two deltas in a row had the same one: it means something.
    pub steady: bool,
    /// Text of it was shown.
    pub begun: bool,
    /// Its whole text was told.
    pub valued: bool,
    /// Under which its deltas came.
    pub labels: Labels,
    /// The wire closed it (its Done may wait for that of the item).
    pub closed: bool,
    /// A terminal list told it again.
    pub restated: bool,
    pub late_said: bool,
    pub conflict_said: bool,
}

impl ItemPart {
    pub fn new(place: usize, sub: Option<i64>, snapshot: Option<String>) -> ItemPart {
        ItemPart {
            place,
            sub,
            joiner: Surrogates::default(),
            snapshot,
            again: 0,
            last_sub: sub,
            told_sub: sub,
            steady: false,
            begun: false,
            valued: false,
            labels: Labels::One,
            closed: false,
            restated: false,
            late_said: false,
            conflict_said: false,
        }
    }

    /// Whether its opening, a delta of it or its whole text had the label.
    pub fn is_called(&self, sub: Option<i64>) -> bool {
        [self.sub, self.last_sub, self.told_sub].contains(&sub) || self.labels.has(sub)
    }
}

/// The sort of a part: its channel, and of reasoning its kind.
pub type Sort = (Channel, &'static str);

/// The parts of one item by what an address says of them.
#[derive(Clone, Debug, Default)]
pub struct Ways {
    /// By the number that each was opened with, or that its last delta had.
    by_sub: HashMap<(Sort, Option<i64>), BTreeSet<usize>>,
    last: Map<Sort, usize>,
}

impl Ways {
    pub fn add(&mut self, part: usize, sort: Sort, sub: Option<i64>) {
        self.by_sub.entry((sort, sub)).or_default().insert(part);
        self.last.insert(sort, part);
    }

    /// The last delta of the part has another number than the one before.
    pub fn moved(&mut self, part: usize, sort: Sort, one: &ItemPart, before: Option<i64>) {
        if before != one.sub
            && before != one.told_sub
            && !one.labels.has(before)
            && let Some(parts) = self.by_sub.get_mut(&(sort, before))
        {
            parts.remove(&part);
        }
        self.call(part, sort, one.last_sub);
    }

    /// The part has that number, too.
    pub fn call(&mut self, part: usize, sort: Sort, sub: Option<i64>) {
        self.by_sub.entry((sort, sub)).or_default().insert(part);
    }

    /// The last part of that number, of one kind or of any.
    pub fn named(&self, channel: Channel, kind: Option<&str>, sub: Option<i64>) -> Option<usize> {
        let named = |sort: Sort| self.by_sub.get(&(sort, sub))?.last().copied();
        self.sorts(channel, kind).filter_map(named).max()
    }

    /// The last part of one kind or of any.
    pub fn last(&self, channel: Channel, kind: Option<&str>) -> Option<usize> {
        let last = |sort: Sort| self.last.get(&sort).copied();
        self.sorts(channel, kind).filter_map(last).max()
    }

    /// The sorts that there are: no more than there are kinds of reasoning, and two.
    fn sorts(&self, channel: Channel, kind: Option<&str>) -> impl Iterator<Item = Sort> {
        let fits = move |(other, known): &&Sort| {
            *other == channel && kind.is_none_or(|kind| kind == *known)
        };
        self.last.keys().filter(fits).copied()
    }
}

/// One item.
#[derive(Clone, Debug)]
pub struct Item {
    pub kind: ItemKind,
    /// The first one.
    pub item_id: Option<Id>,
    /// Likewise, of its places on the wire.
    pub index: Option<i64>,
    /// What readers are told, if that is another one.
    pub public_id: Option<Id>,
    /// The wire opened it; else it is there because something addressed it.
    pub announced: bool,
    /// ... without a part: its close brings more than those of its parts.
    pub opened_bare: bool,
    pub open: bool,
    pub parts: Vec<ItemPart>,
    /// How many of them are open.
    pub open_parts: usize,
    /// Where they are found, once they are too many to look through.
    pub ways: Option<Box<Ways>>,
    /// Its place among the calls of the choice.
    pub call: Option<usize>,
    /// Arguments that the opening of the call carried.
    pub snapshot: Option<Box<str>>,
    /// The deltas stand by themselves: the snapshot is only what to fall back on.
    pub own_text: bool,
    /// Its whole arguments were told.
    pub valued: bool,
    /// A closed call that this one announces again: not decided yet what it is.
    pub first: Option<usize>,
    /// It was only another name of that item.
    pub heir: Option<usize>,
    pub restated: bool,
    pub again_said: bool,
    pub alias_said: bool,
    pub late_said: bool,
    pub conflict_said: bool,
    /// How many lists told its parts.
    pub lists: u8,
    aliases: u8,
}

impl Item {
    pub fn new(kind: ItemKind) -> Item {
        Item {
            kind,
            item_id: None,
            index: None,
            public_id: None,
            announced: false,
            opened_bare: false,
            open: true,
            parts: Vec::new(),
            open_parts: 0,
            ways: None,
            call: None,
            snapshot: None,
            own_text: false,
            valued: false,
            first: None,
            heir: None,
            restated: false,
            again_said: false,
            alias_said: false,
            late_said: false,
            conflict_said: false,
            lists: 0,
            aliases: 0,
        }
    }

    pub fn told_id(&self) -> Option<&Id> {
        self.public_id.as_ref().or(self.item_id.as_ref())
    }

    /// Adds a part and marks it as open.
    pub fn add(&mut self, one: ItemPart, sort: Sort, sort_of: impl Fn(&ItemPart) -> Option<Sort>) {
        let place = self.parts.len();
        if place == FEW {
            let mut ways = Ways::default();
            for (place, known) in self.parts.iter().enumerate() {
                let Some(sort) = sort_of(known) else { continue };
                ways.add(place, sort, known.sub);
                let labels = known.labels.known();
                for label in labels.chain([known.last_sub, known.told_sub]) {
                    ways.call(place, sort, label);
                }
            }
            self.ways = Some(Box::new(ways));
        }
        if let Some(ways) = &mut self.ways {
            ways.add(place, sort, one.sub);
        }
        self.open_parts += 1;
        // A list that grows by itself begins with four.
        self.parts.reserve_exact(usize::from(place == 0));
        self.parts.push(one);
    }

    /// One more id for it; false if it has too many: a new id in every delta must not fill the memory.
    pub fn count_alias(&mut self) -> bool {
        self.aliases = self.aliases.saturating_add(1);
        usize::from(self.aliases) <= MAX_ALIASES
    }
}

/// One part of one item, by their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spot {
    pub item: usize,
    pub one: usize,
}
