//! Records which parts of a response passed through unchanged, so that an encoder for the same dialect can continue the
//! response.
//!
//! In a conversion to another dialect, nothing passes through and the record stays empty. Each encoder decides how to
//! use this record.

use crate::model::small_map::Map;
use crate::model::small_map::Set;
use std::collections::BTreeMap;

/// The type and id in the opening event of an output item. Clients store the type and the id.
#[derive(Clone, Debug)]
pub(crate) struct AddedItem {
    pub(crate) kind: Option<String>,
    pub(crate) id: Option<String>,
}

/// Describes the parts, items and events of one stream that passed through.
#[derive(Debug, Default)]
pub(crate) struct PassedThrough {
    /// True if the source has the target's dialect, so that its ids, indexes and metadata stay valid.
    pub(crate) own: bool,
    /// The wire index of the part that the current start event opens, and the part's index inside its item.
    pub(crate) at: Option<i64>,
    pub(crate) sub: Option<i64>,
    /// The value of `at`, or `None` if the part needs a new index because content was omitted or inserted.
    pub(crate) index: Option<i64>,
    /// Id of the part's item, as sent.
    pub(crate) item_id: Option<String>,
    /// Unknown members of the start event of the block with this index, as a JSON object.
    pub(crate) members: Option<(i64, String)>,
    /// True if content was written at a new position because its original position was already in use. The encoder sets
    /// this field.
    pub(crate) moved: bool,
    /// A number that changes with every payload.
    pub(crate) payload_number: u64,
    /// Choices that contain a part that passed through.
    pub(crate) choices: Set<i32>,
    /// Indexes of the items whose opening event passed through.
    pub(crate) announced: Set<i64>,
    /// One more than the highest index of an item whose opening or closing event passed through.
    pub(crate) next_index: i64,
    /// Items that the source opened, by index. Items with the same index are stored in order of arrival.
    pub(crate) added: Map<i64, Vec<AddedItem>>,
    /// JSON of the items whose closing event passed through, as sent, by index.
    pub(crate) items: BTreeMap<i64, String>,
    /// The response id in the opening event, once that event passed through. `Some(None)` means that the event has no
    /// id.
    pub(crate) created: Option<Option<String>>,
    /// True if the source has no opening event, so that the encoder writes an opening event first.
    pub(crate) unopened: bool,
    /// Parts whose closing event passed through.
    pub(crate) closed: Set<u32>,
    /// Parts of items whose closing event passed through.
    pub(crate) ended: Set<u32>,
    /// The parts in `ended` that the encoder has not processed yet.
    pub(crate) just_ended: Vec<u32>,
    /// Choices whose finish reason passed through.
    pub(crate) finished: Set<i32>,
    /// True if the latest token counts passed through. The flag is set when the stream ends.
    pub(crate) counted: bool,
    /// The sequence number of the next event, or `None` if the source does not number its events.
    pub(crate) sequence: Option<i128>,
    /// The payload of the current event.
    pub(crate) payload: Vec<u8>,
    /// How many more bytes of the source's items an encoder may store until the response ends.
    pub(crate) room: usize,
}

impl PassedThrough {
    /// Returns true if an encoder may store `size` more bytes, and counts them.
    pub(crate) fn keeps(&mut self, size: usize) -> bool {
        let rest = self.room.checked_sub(size);
        self.room = rest.unwrap_or(self.room);
        rest.is_some()
    }
}
