//! What of an answer went out as it was sent, so that an encoder of the same dialect can go on behind it.
//!
//! Empty where another dialect is written: nothing passes then. Facts only; what is done with them is each encoder's own.

use crate::model::small_map::Set;

/// One stream's.
#[derive(Debug, Default)]
pub(crate) struct PassedThrough {
    /// The source speaks the dialect that is written: its ids, indexes and metadata hold.
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
    /// Choices of which something has passed.
    pub(crate) choices: Set<i32>,
    /// Indexes of items whose opening has.
    pub(crate) announced: Set<i64>,
    /// The index of a block that is no part, and whose stop has not.
    pub(crate) standing: Option<i64>,
    /// Parts whose close has.
    pub(crate) closed: Set<u32>,
    /// Parts of items whose close has.
    pub(crate) ended: Set<u32>,
    /// Those of them that nobody took note of yet.
    pub(crate) just_ended: Vec<u32>,
    /// Choices whose reason has.
    pub(crate) finished: Set<i32>,
    /// The latest token counts have, at the end.
    pub(crate) counted: bool,
    /// The number of the next event; `None` where the source numbers none.
    pub(crate) sequence: Option<i128>,
    /// The payload of the event at hand.
    pub(crate) payload: Vec<u8>,
}
