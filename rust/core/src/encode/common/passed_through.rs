//! Records what part of an answer passed through unchanged, so that an encoder of the same dialect can continue it.
//!
//! Empty if another dialect is written, because nothing passes through then. Each encoder decides how to use the facts.

use crate::model::small_map::Map;
use crate::model::small_map::Set;
use std::collections::BTreeMap;

/// An item of the output, as clients keep it from its opening.
#[derive(Clone, Debug)]
pub(crate) struct AddedItem {
    pub(crate) kind: Option<String>,
    pub(crate) id: Option<String>,
}

/// One stream's.
#[derive(Debug, Default)]
pub(crate) struct PassedThrough {
    /// The source has the dialect that is written, so its ids, indexes and metadata stay valid.
    pub(crate) own: bool,
    /// Of the part that the start at hand opens: its index on the wire, and that inside of its item.
    pub(crate) at: Option<i64>,
    pub(crate) sub: Option<i64>,
    /// The same as `at` while nothing was left out or added: it may be kept.
    pub(crate) index: Option<i64>,
    /// Of its item, as the wire has it.
    pub(crate) item_id: Option<String>,
    /// Said by the encoder: a place was another one's already, so something was written at another.
    pub(crate) moved: bool,
    /// Choices of which any part passed through.
    pub(crate) choices: Set<i32>,
    /// Indexes of items whose opening passed through.
    pub(crate) announced: Set<i64>,
    /// The index behind those of all items whose opening or close passed through.
    pub(crate) behind: i64,
    /// Items that the wire has opened, by index.
    pub(crate) added: Map<i64, AddedItem>,
    /// Those whose close passed through, as it has them, by index.
    pub(crate) items: BTreeMap<i64, String>,
    /// The id of the response, once the event that opens it passed through.
    pub(crate) created: Option<Option<String>>,
    /// The source has no opening: one that is written stands before what it sent.
    pub(crate) unopened: bool,
    /// The index of an open block that is not a part; its stop has not passed through.
    pub(crate) standing: Option<i64>,
    /// Parts whose close passed through.
    pub(crate) closed: Set<u32>,
    /// Parts of items whose close passed through.
    pub(crate) ended: Set<u32>,
    /// Those of `ended` that the encoder has not processed yet.
    pub(crate) just_ended: Vec<u32>,
    /// Choices whose finish reason passed through.
    pub(crate) finished: Set<i32>,
    /// Whether the latest token counts passed through; set at the end.
    pub(crate) counted: bool,
    /// The number of the next event; `None` where the source numbers none.
    pub(crate) sequence: Option<i128>,
    /// The payload of the event at hand.
    pub(crate) payload: Vec<u8>,
}
