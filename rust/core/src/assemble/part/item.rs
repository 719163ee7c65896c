//! The state of an item: its text-like parts or its one call. This module contains only state and queries.
//!
//! `item_index` finds the item for an address; `item_text` and `item_call` change items.

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

/// Text that arrived after its part was closed, held back while it repeats the closed text from its beginning.
///
/// The closed text consists of the texts of the parts that the part continues (`earlier`) and the part's own text
/// (`own`), or only of the closing text of a label.
#[derive(Clone, Debug)]
pub struct LateText {
    /// The label that is closed, if other labels of the part are open.
    pub label: Option<i64>,
    /// The closing text of this label.
    closing: Option<String>,
    /// The number of characters of the closed text that the late text has repeated.
    pub length: usize,
    /// The sub-index of the last delta.
    pub sub: Option<i64>,
    /// The position of the piece of the closed text that is repeated next.
    piece: usize,
    /// The offset in this piece, in bytes.
    offset: usize,
}

impl LateText {
    pub fn new(label: Option<i64>, closing: Option<String>) -> LateText {
        LateText {
            label,
            closing,
            length: 0,
            sub: None,
            piece: 0,
            offset: 0,
        }
    }

    /// Returns the closed text in pieces: any number of pieces, and the last one.
    fn pieces<'a>(&'a self, earlier: &'a [String], own: &'a str) -> (&'a [String], &'a str) {
        match &self.closing {
            Some(closing) => (&[], closing),
            None => (earlier, own),
        }
    }

    /// Returns true if the late text has repeated all of the closed text.
    pub fn is_whole(&self, earlier: &[String]) -> bool {
        self.piece > self.pieces(earlier, "").0.len()
    }

    /// Returns the late text that has been held back.
    pub fn held(&self, earlier: &[String], own: &str) -> String {
        let (earlier, own) = self.pieces(earlier, own);
        let mut held = earlier.get(..self.piece).unwrap_or(earlier).concat();
        if self.piece > earlier.len() {
            held.push_str(own);
        } else {
            let piece = earlier.get(self.piece).map_or(own, String::as_str);
            held.push_str(piece.get(..self.offset).unwrap_or_default());
        }
        held
    }

    /// Returns the rest of the late text that follows the complete closed text, or `None` if the late text differs. An
    /// empty string means that all of the text was held back. If the late text differs, nothing changes.
    pub fn take<'t>(&mut self, earlier: &[String], own: &str, text: &'t str) -> Option<&'t str> {
        let (mut piece, mut offset, mut rest) = (self.piece, self.offset, text);
        let (earlier, own) = self.pieces(earlier, own);
        while piece <= earlier.len() {
            let own = earlier.get(piece).map_or(own, String::as_str);
            let own = own.get(offset..).unwrap_or_default();
            if let Some(after) = rest.strip_prefix(own) {
                (piece, offset, rest) = (piece + 1, 0, after);
            } else if own.starts_with(rest) {
                offset += rest.len();
                rest = "";
                break;
            } else {
                return None;
            }
        }
        let taken = text.len() - rest.len();
        self.length += text.get(..taken).map_or(0, |text| text.chars().count());
        (self.piece, self.offset) = (piece, offset);
        Some(rest)
    }

    /// Returns whether a complete text contains the late text after the closed text, or `None` if it does not show that.
    pub fn is_in(&self, earlier: &[String], own: &str, whole: &str) -> Option<bool> {
        let (pieces, last) = self.pieces(earlier, own);
        let mut pieces = pieces.iter().map(String::as_str).chain([last]);
        let rest = pieces.try_fold(whole, |rest, piece| rest.strip_prefix(piece))?;
        if rest.is_empty() {
            return Some(false);
        }
        (rest == self.held(earlier, own)).then_some(true)
    }
}

/// A text-like part of an item that the stream opens and closes explicitly.
#[derive(Clone, Debug)]
pub struct ItemPart {
    /// Position of the part in the choice's list of text parts.
    pub position: usize,
    pub sub: Option<i64>,
    pub joiner: Surrogates,
    /// The text in the opening event, kept while deltas may still repeat it.
    pub snapshot: Option<String>,
    /// The number of bytes at the beginning of the snapshot that deltas have repeated.
    pub again: usize,
    /// The sub-index of the last delta.
    pub last_sub: Option<i64>,
    /// The sub-index of the last event that contained the complete text.
    pub value_sub: Option<i64>,
    /// Two consecutive deltas had the same sub-index, so the stream does not simply number its deltas.
    pub sub_is_reliable: bool,
    /// Text of the part has been emitted.
    pub begun: bool,
    /// The complete text has been received.
    pub valued: bool,
    /// The sub-indexes of the deltas, and the closing texts received for these sub-indexes.
    pub labels: Labels,
    /// The stream closed the part, but the part's closing event may be emitted only later, when the item ends.
    pub closed: bool,
    /// A terminal list contains the part.
    pub restated: bool,
    /// The number of bytes of the closed part that the stream has repeated so far. `None` if the stream does not repeat
    /// the part.
    pub repeated: Option<usize>,
    /// Text that arrived after the part was closed and that may repeat the part.
    pub late: Option<Box<LateText>>,
    /// The texts of the closed parts that this part continues. None of them is empty.
    pub earlier: Vec<String>,
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
            late: None,
            earlier: Vec::new(),
            late_reported: false,
            conflict_reported: false,
        }
    }

    /// Returns true if any event about the part had this sub-index: its opening event, a delta, or an event with its
    /// complete text.
    pub fn has_sub_index(&self, sub: Option<i64>) -> bool {
        [self.sub, self.last_sub, self.value_sub].contains(&sub) || self.labels.has(sub)
    }
}

/// The channel of a part (text, reasoning or refusal), and the kind of reasoning.
pub type ContentKind = (Channel, &'static str);

/// A lookup table for the parts of an item, by channel, reasoning kind and sub-index.
#[derive(Clone, Debug, Default)]
pub struct SubIndexTable {
    /// For each kind of content and each sub-index, the parts that events with this sub-index addressed.
    by_sub: HashMap<(ContentKind, Option<i64>), BTreeSet<usize>>,
    last: Map<ContentKind, usize>,
}

impl SubIndexTable {
    pub fn add(&mut self, part: usize, content_kind: ContentKind, sub: Option<i64>) {
        self.by_sub
            .entry((content_kind, sub))
            .or_default()
            .insert(part);
        self.last.insert(content_kind, part);
    }

    /// Updates the table after a part received a delta with a new sub-index. `before`: the sub-index of the
    /// previous delta.
    pub fn replace_sub_index(
        &mut self,
        part: usize,
        content_kind: ContentKind,
        one: &ItemPart,
        before: Option<i64>,
    ) {
        if before != one.sub
            && before != one.value_sub
            && !one.labels.has(before)
            && let Some(parts) = self.by_sub.get_mut(&(content_kind, before))
        {
            parts.remove(&part);
        }
        self.add_sub_index(part, content_kind, one.last_sub);
    }

    /// Records that an event with this sub-index addressed the part.
    pub fn add_sub_index(&mut self, part: usize, content_kind: ContentKind, sub: Option<i64>) {
        self.by_sub
            .entry((content_kind, sub))
            .or_default()
            .insert(part);
    }

    /// Returns the last part that an event with this sub-index addressed. `kind`: the reasoning kind; `None` means any.
    pub fn last_with_sub_index(
        &self,
        channel: Channel,
        kind: Option<&str>,
        sub: Option<i64>,
    ) -> Option<usize> {
        let last =
            |content_kind: ContentKind| self.by_sub.get(&(content_kind, sub))?.last().copied();
        self.content_kinds(channel, kind).filter_map(last).max()
    }

    /// Returns the last part of the channel. `kind`: the reasoning kind; `None` means any.
    pub fn last(&self, channel: Channel, kind: Option<&str>) -> Option<usize> {
        let last = |content_kind: ContentKind| self.last.get(&content_kind).copied();
        self.content_kinds(channel, kind).filter_map(last).max()
    }

    /// Returns this channel with each matching reasoning kind that a part of the item has. `kind`: `None` matches
    /// every kind.
    fn content_kinds(
        &self,
        channel: Channel,
        kind: Option<&str>,
    ) -> impl Iterator<Item = ContentKind> {
        let fits = move |(other, known): &&ContentKind| {
            *other == channel && kind.is_none_or(|kind| kind == *known)
        };
        self.last.keys().filter(fits).copied()
    }
}

/// One item: the unit that the wire format addresses.
#[derive(Clone, Debug)]
pub struct Item {
    pub kind: ItemKind,
    /// The first item id received.
    pub item_id: Option<Id>,
    /// The first index received.
    pub index: Option<i64>,
    /// The item id that events report, if it differs from `item_id`.
    pub public_id: Option<Id>,
    /// An opening event announced the item. If the flag is false, the item was created for another event that referred
    /// to it.
    pub announced: bool,
    /// The item's opening event contained no part, so the item has its own closing event.
    pub opened_bare: bool,
    pub open: bool,
    pub parts: Vec<ItemPart>,
    /// The number of parts that ended before the item was last reopened. All of these parts are closed.
    pub ended: usize,
    /// The positions of the parts that may hold late text.
    pub late: Vec<usize>,
    /// The number of parts that are open.
    pub open_parts: usize,
    /// A lookup table of the parts, once there are too many to search linearly.
    pub sub_indexes: Option<Box<SubIndexTable>>,
    /// Position of the item's call in the choice's list of calls.
    pub call: Option<usize>,
    /// The arguments in the call's opening event.
    pub snapshot: Option<Box<str>>,
    /// Deltas with argument text have arrived, so the snapshot is used only if it is more complete than the text of the
    /// deltas.
    pub own_text: bool,
    /// The complete arguments have been received.
    pub valued: bool,
    /// The earlier item whose closed call this item announces again. `None` once `decide` has decided whether both
    /// items have the same call.
    pub first: Option<usize>,
    /// The earlier item, if both items turned out to have the same call.
    pub alias_of: Option<usize>,
    /// The item is closed, but the stream opened the item or one of its parts again.
    pub repeats: bool,
    /// The message began again while the item was open, so the next opening event at its index repeats the item.
    pub begins_again: bool,
    pub restated: bool,
    pub again_reported: bool,
    pub alias_reported: bool,
    pub late_reported: bool,
    pub conflict_reported: bool,
    /// The number of content lists that have been applied to the item.
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
            ended: 0,
            late: Vec::new(),
            open_parts: 0,
            sub_indexes: None,
            call: None,
            snapshot: None,
            own_text: false,
            valued: false,
            first: None,
            alias_of: None,
            repeats: false,
            begins_again: false,
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
    pub fn add(
        &mut self,
        one: ItemPart,
        content_kind: ContentKind,
        content_kind_of: impl Fn(&ItemPart) -> Option<ContentKind>,
    ) {
        let position = self.parts.len();
        if position == FEW {
            let mut sub_indexes = SubIndexTable::default();
            for (position, known) in self.parts.iter().enumerate() {
                let Some(content_kind) = content_kind_of(known) else {
                    continue;
                };
                sub_indexes.add(position, content_kind, known.sub);
                let labels = known.labels.known();
                for label in labels.chain([known.last_sub, known.value_sub]) {
                    sub_indexes.add_sub_index(position, content_kind, label);
                }
            }
            self.sub_indexes = Some(Box::new(sub_indexes));
        }
        if let Some(sub_indexes) = &mut self.sub_indexes {
            sub_indexes.add(position, content_kind, one.sub);
        }
        self.open_parts += 1;
        // Reserve room for one part, because a `Vec` that grows on demand starts with room for four.
        self.parts.reserve_exact(usize::from(position == 0));
        self.parts.push(one);
    }

    /// Counts one more id of the item. Returns false if the item has too many ids, in which case the new id must not be
    /// stored.
    pub fn count_alias(&mut self) -> bool {
        self.aliases = self.aliases.saturating_add(1);
        usize::from(self.aliases) <= MAX_ALIASES
    }
}

/// Identifies a part by its item and its position in that item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PartPosition {
    pub item: usize,
    pub one: usize,
}
