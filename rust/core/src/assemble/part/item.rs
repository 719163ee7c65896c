//! State of an output item: its text parts or its one call. Contains only state and queries.
//!
//! `item_index` finds the item for an address; `item_text` and `item_call` change the item.

use crate::assemble::part::call::Id;
use crate::assemble::part::call::MAX_ALIASES;
use crate::assemble::part::labels::Labels;
use crate::json::Surrogates;
use crate::model::delta::Channel;
use crate::model::delta::ItemKind;
use crate::model::small_map::Map;
use std::collections::BTreeSet;
use std::collections::HashMap;

/// Maximum number of parts that are searched linearly.
const FEW: usize = 8;

/// A text-like part of an item that the stream opens and closes explicitly.
#[derive(Clone, Debug)]
pub struct ItemPart {
    /// Position among the text parts of the choice.
    pub position: usize,
    pub sub: Option<i64>,
    pub joiner: Surrogates,
    /// Text of the opening event, kept while the deltas may still repeat it.
    pub snapshot: Option<String>,
    /// Number of bytes of the snapshot that the deltas have repeated.
    pub again: usize,
    /// Sub-index of the last delta.
    pub last_sub: Option<i64>,
    /// Sub-index of the event that last sent the complete text.
    pub value_sub: Option<i64>,
    /// Two consecutive deltas had the same sub-index, so the sub-index is meaningful.
    pub sub_is_reliable: bool,
    /// Some text of the part has been emitted.
    pub begun: bool,
    /// The complete text has been received.
    pub valued: bool,
    /// Sub-indexes of the deltas.
    pub labels: Labels,
    /// The stream closed the part. Its closing event may be delayed until the item ends.
    pub closed: bool,
    /// A terminal list repeated the part.
    pub restated: bool,
    /// Number of bytes that a repetition of the closed part has matched. `None`: nothing repeats the part.
    pub repeated: Option<usize>,
    pub late_reported: bool,
    pub conflict_reported: bool,
}

impl ItemPart {
    pub fn new(position: usize, sub: Option<i64>, snapshot: Option<String>) -> ItemPart {
        ItemPart {
            position,
            sub,
            joiner: Surrogates::default(),
            snapshot,
            again: 0,
            last_sub: sub,
            value_sub: sub,
            sub_is_reliable: false,
            begun: false,
            valued: false,
            labels: Labels::One,
            closed: false,
            restated: false,
            repeated: None,
            late_reported: false,
            conflict_reported: false,
        }
    }

    /// Returns true if the opening event, a delta or the complete text of the part had this sub-index.
    pub fn is_called(&self, sub: Option<i64>) -> bool {
        [self.sub, self.last_sub, self.value_sub].contains(&sub) || self.labels.has(sub)
    }
}

/// Channel of a part and, for reasoning, its kind.
pub type Sort = (Channel, &'static str);

/// Looks up the parts of an item by channel, reasoning kind and sub-index.
#[derive(Clone, Debug, Default)]
pub struct SubIndexTable {
    /// Parts, keyed by each sub-index at which they were opened or received a delta.
    by_sub: HashMap<(Sort, Option<i64>), BTreeSet<usize>>,
    last: Map<Sort, usize>,
}

impl SubIndexTable {
    pub fn add(&mut self, part: usize, sort: Sort, sub: Option<i64>) {
        self.by_sub.entry((sort, sub)).or_default().insert(part);
        self.last.insert(sort, part);
    }

    /// Updates the table after the sub-index of a part's last delta has changed.
    pub fn moved(&mut self, part: usize, sort: Sort, one: &ItemPart, before: Option<i64>) {
        if before != one.sub
            && before != one.value_sub
            && !one.labels.has(before)
            && let Some(parts) = self.by_sub.get_mut(&(sort, before))
        {
            parts.remove(&part);
        }
        self.call(part, sort, one.last_sub);
    }

    /// Adds another sub-index for the part.
    pub fn call(&mut self, part: usize, sort: Sort, sub: Option<i64>) {
        self.by_sub.entry((sort, sub)).or_default().insert(part);
    }

    /// Returns the last part with that sub-index, of the given kind or of any kind.
    pub fn named(&self, channel: Channel, kind: Option<&str>, sub: Option<i64>) -> Option<usize> {
        let named = |sort: Sort| self.by_sub.get(&(sort, sub))?.last().copied();
        self.sorts(channel, kind).filter_map(named).max()
    }

    /// Returns the last part of the given kind, or of any kind.
    pub fn last(&self, channel: Channel, kind: Option<&str>) -> Option<usize> {
        let last = |sort: Sort| self.last.get(&sort).copied();
        self.sorts(channel, kind).filter_map(last).max()
    }

    /// Returns the matching pairs of channel and kind that are in use. Their number is at most the number of reasoning
    /// kinds plus two.
    fn sorts(&self, channel: Channel, kind: Option<&str>) -> impl Iterator<Item = Sort> {
        let fits = move |(other, known): &&Sort| {
            *other == channel && kind.is_none_or(|kind| kind == *known)
        };
        self.last.keys().filter(fits).copied()
    }
}

/// One output item.
#[derive(Clone, Debug)]
pub struct Item {
    pub kind: ItemKind,
    /// First item id received.
    pub item_id: Option<Id>,
    /// First index received.
    pub index: Option<i64>,
    /// Item id that is emitted, if it differs from `item_id`.
    pub public_id: Option<Id>,
    /// The stream opened the item explicitly. Otherwise, the item was created because a delta addressed it.
    pub announced: bool,
    /// The stream opened the item without a part, so the item has its own closing event.
    pub opened_bare: bool,
    pub open: bool,
    pub parts: Vec<ItemPart>,
    /// Number of open parts.
    pub open_parts: usize,
    /// Lookup table of the parts, once there are too many to search linearly.
    pub sub_indexes: Option<Box<SubIndexTable>>,
    /// Slot of the item's call.
    pub call: Option<usize>,
    /// Arguments in the event that opened the call.
    pub snapshot: Option<Box<str>>,
    /// The deltas contain the complete arguments; the snapshot is only a fallback.
    pub own_text: bool,
    /// The complete arguments have been received.
    pub valued: bool,
    /// Earlier item whose closed call this item announces again; set until `decide` runs.
    pub first: Option<usize>,
    /// The earlier item, if this item turned out to announce the same call.
    pub alias_of: Option<usize>,
    /// The stream opened a part of the closed item again.
    pub repeats: bool,
    pub restated: bool,
    pub again_reported: bool,
    pub alias_reported: bool,
    pub late_reported: bool,
    pub conflict_reported: bool,
    /// Number of lists that have been applied to the item's parts.
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
            sub_indexes: None,
            call: None,
            snapshot: None,
            own_text: false,
            valued: false,
            first: None,
            alias_of: None,
            repeats: false,
            restated: false,
            again_reported: false,
            alias_reported: false,
            late_reported: false,
            conflict_reported: false,
            lists: 0,
            aliases: 0,
        }
    }

    pub fn emitted_id(&self) -> Option<&Id> {
        self.public_id.as_ref().or(self.item_id.as_ref())
    }

    /// Adds a part and marks it as open.
    pub fn add(&mut self, one: ItemPart, sort: Sort, sort_of: impl Fn(&ItemPart) -> Option<Sort>) {
        let position = self.parts.len();
        if position == FEW {
            let mut sub_indexes = SubIndexTable::default();
            for (position, known) in self.parts.iter().enumerate() {
                let Some(sort) = sort_of(known) else { continue };
                sub_indexes.add(position, sort, known.sub);
                let labels = known.labels.known();
                for label in labels.chain([known.last_sub, known.value_sub]) {
                    sub_indexes.call(position, sort, label);
                }
            }
            self.sub_indexes = Some(Box::new(sub_indexes));
        }
        if let Some(sub_indexes) = &mut self.sub_indexes {
            sub_indexes.add(position, sort, one.sub);
        }
        self.open_parts += 1;
        // Reserve room for one part, because a `Vec` that grows on demand starts with room for four.
        self.parts.reserve_exact(usize::from(position == 0));
        self.parts.push(one);
    }

    /// Counts an additional id of the item; returns false if there are too many. Limits the memory for a stream with a
    /// new id in every delta.
    pub fn count_alias(&mut self) -> bool {
        self.aliases = self.aliases.saturating_add(1);
        usize::from(self.aliases) <= MAX_ALIASES
    }
}

/// Position of a part: its item, and its index in that item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spot {
    pub item: usize,
    pub one: usize,
}
