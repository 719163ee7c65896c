//! Framer state for features that few streams use: ids, `retry`, and stray payloads.

use crate::model::lazy_box::blank;
use crate::sse::fields::Digits;

#[derive(Clone, Debug, Default)]
pub(crate) struct RareFields {
    /// The id that the open event sets.
    pub(crate) id: Vec<u8>,
    pub(crate) last_id: Vec<u8>,
    /// Digits of the current `retry` line.
    pub(crate) digits: Digits,
    /// `retry` value that the open event sets.
    pub(crate) retry: Option<u64>,
    pub(crate) reconnection_time: Option<u64>,
    pub(crate) stray: Vec<u8>,
    pub(crate) stray_offset: u64,
}

blank!(RareFields);
