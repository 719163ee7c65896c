//! What the framer holds for lines that few streams send: ids, `retry`, stray payloads.

use crate::model::lazy_box::blank;
use crate::sse::fields::Digits;

#[derive(Clone, Debug, Default)]
pub(crate) struct RareFields {
    /// Of the open event.
    pub(crate) id: Vec<u8>,
    pub(crate) last_id: Vec<u8>,
    /// Of the `retry` line under way.
    pub(crate) digits: Digits,
    /// Of the open event.
    pub(crate) retry: Option<u64>,
    pub(crate) reconnection_time: Option<u64>,
    pub(crate) stray: Vec<u8>,
    pub(crate) stray_offset: u64,
}

blank!(RareFields);
