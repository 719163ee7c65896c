//! The files, sources, tool results and kept items of a response, stored so that the snapshot can emit their
//! events again.

use crate::model::event::Event;
use crate::model::lazy_box::blank;
use crate::model::small_map::Map;
use std::collections::BTreeMap;
/// The attachments (files, sources, tool results and kept items) received so far, by part number.
#[derive(Clone, Debug, Default)]
pub struct Attachments {
    pub records: BTreeMap<u32, Record>,
    /// The part number of each tool result, by choice and call id.
    pub(crate) results: Map<(i32, String), u32>,
    /// The part number of each kept item with a key, by choice and key.
    pub(crate) keyed: Map<(i32, String), u32>,
}
blank!(Attachments);
/// A file, source, tool result or kept item, with its choice and metadata.
#[derive(Clone, Debug)]
pub struct Record {
    pub(crate) what: Attachment,
    pub(crate) choice: i32,
    pub(crate) metadata: Option<String>,
}
impl Record {
    pub fn event(&self, part: u32) -> Event<'_> {
        let (choice, metadata) = (self.choice, self.metadata.as_deref());
        match &self.what {
            Attachment::File([media_type, data, url]) => Event::File {
                part,
                media_type: media_type.as_deref(),
                data: data.as_deref(),
                url: url.as_deref(),
                choice,
                metadata,
            },
            Attachment::Source([url, title, document]) => Event::Source {
                part,
                url: url.as_deref(),
                title: title.as_deref(),
                document: document.as_deref(),
                choice,
                metadata,
            },
            Attachment::Result {
                call_id,
                output,
                is_error,
            } => Event::ToolResult {
                part,
                call_id,
                output,
                is_error: *is_error,
                choice,
                metadata,
            },
            Attachment::ProviderItem {
                kind,
                value,
                item_id,
            } => Event::ProviderItem {
                part,
                kind,
                value,
                item_id: item_id.as_deref(),
                choice,
            },
            Attachment::Unknown { event, raw } => Event::Unknown {
                event: event.as_deref(),
                raw,
            },
        }
    }
}
#[derive(Clone, Debug)]
pub(crate) enum Attachment {
    /// Media type, data, url.
    File([Option<String>; 3]),
    /// Url, title, document.
    Source([Option<String>; 3]),
    Result {
        call_id: String,
        output: String,
        is_error: bool,
    },
    /// An item or block that only the provider reads.
    ProviderItem {
        kind: &'static str,
        value: String,
        item_id: Option<String>,
    },
    Unknown {
        event: Option<String>,
        raw: Vec<u8>,
    },
}
