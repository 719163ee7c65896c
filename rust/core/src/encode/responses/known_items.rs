//! The items of a source in the same dialect, by the addresses that the source gives them.

use crate::encode::responses::body::Body;
use crate::model::small_map::Map;
use std::sync::Arc;

/// Key of an item from a source in the same dialect: either its index and the number of earlier items at that index, or
/// the item's id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SourceItemKey {
    Index(i64, usize, SourceItemKind),
    Id(String, SourceItemKind),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SourceItemKind {
    Message,
    Reasoning,
}

impl SourceItemKind {
    /// Returns the kind of content with which an item without a part is written.
    pub(crate) fn body(self) -> Body {
        match self {
            SourceItemKind::Message => Body::text(),
            SourceItemKind::Reasoning => Body::Reasoning,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            SourceItemKind::Message => "message",
            SourceItemKind::Reasoning => "reasoning",
        }
    }
}

/// An item that clients of the response have, or that the source announced and the encoder has not written yet.
#[derive(Clone, Debug)]
pub(crate) enum KnownItem {
    /// The position of an item that the encoder writes itself.
    Written(usize),
    /// The position of an item that is copied.
    Copied(usize),
    /// A message or reasoning item without a part. Shared, because there may be many, each with an id and an index.
    Announced(Arc<AnnouncedItem>),
}

/// The type of an item from the source, with the id and the index that the source gives it.
#[derive(Clone, Debug)]
pub(crate) struct AnnouncedItem {
    pub(crate) kind: SourceItemKind,
    pub(crate) at: Option<i64>,
    pub(crate) id: Option<String>,
}

/// The items of a source in the same dialect, by the ids and the indexes that the source gives them.
#[derive(Debug, Default)]
pub(crate) struct KnownItems {
    pub(crate) by_id: Map<String, KnownItem>,
    pub(crate) by_index: Map<i64, KnownItem>,
}

impl KnownItems {
    pub(crate) fn add(&mut self, id: Option<&str>, index: Option<i64>, item: &KnownItem) {
        if let Some(id) = id {
            self.by_id.insert(id.to_owned(), item.clone());
        }
        if let Some(index) = index {
            self.by_index.insert(index, item.clone());
        }
    }
}

/// A message or reasoning item of the source whose events are being written.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) key: SourceItemKey,
    pub(crate) item: Arc<AnnouncedItem>,
    /// The index to keep.
    pub(crate) index: Option<i64>,
    /// True if the source ends the item.
    pub(crate) ends: bool,
}
