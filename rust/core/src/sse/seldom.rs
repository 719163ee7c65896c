//! What the framer holds for lines that few streams send: ids, `retry`, stray payloads. Layer 2.

use super::field::Digits;
use crate::rare::blank;

#[derive(Clone, Debug, Default)]
pub(super) struct Seldom {
    /// Of the open event.
    pub(super) id: Vec<u8>,
    pub(super) last_id: Vec<u8>,
    /// Of the `retry` line under way.
    pub(super) digits: Digits,
    /// Of the open event.
    pub(super) retry: Option<u64>,
    pub(super) reconnection_time: Option<u64>,
    pub(super) stray: Vec<u8>,
    pub(super) stray_offset: u64,
}

blank!(Seldom);
