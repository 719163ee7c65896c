//! What the wire addresses: an item with its parts or its one call. Records and questions about themselves.
//!
//! How an address finds an item is `book`; what happens to it `item_parts` and `item_calls`.

use crate::delta::ItemKind;
use crate::json::Surrogates;

use super::call::{Id, MAX_ALIASES};

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
    /// Two deltas in a row had the same one: it means something.
    pub steady: bool,
    /// Text of it was shown.
    pub begun: bool,
    /// Its whole text was told.
    pub valued: bool,
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
            steady: false,
            begun: false,
            valued: false,
            closed: false,
            restated: false,
            late_said: false,
            conflict_said: false,
        }
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
            aliases: 0,
        }
    }

    pub fn told_id(&self) -> Option<&Id> {
        self.public_id.as_ref().or(self.item_id.as_ref())
    }

    /// One more id for it; false if it has too many: a new id in every delta must not fill the memory.
    pub fn count_alias(&mut self) -> bool {
        self.aliases = self.aliases.saturating_add(1);
        usize::from(self.aliases) <= MAX_ALIASES
    }
}
