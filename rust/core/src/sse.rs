//! Bytes to server-sent events, as WHATWG HTML 9.2.6 says. Signatures; the body follows.

use std::borrow::Cow;

use crate::fault::Fault;
use crate::limits::Limits;

/// One dispatched event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The event type as sent; empty means `message`.
    pub event: &'a [u8],
    /// The data lines joined by LF.
    pub data: &'a [u8],
    /// The last event id, which outlives its event.
    pub id: &'a [u8],
    /// The last valid `retry` of this event.
    pub retry: Option<u64>,
    /// Absolute offset of the first byte of the first data line.
    pub offset: u64,
    /// 0-based number among all payloads (frames and stray ones).
    pub ordinal: u64,
}

/// A payload that stood outside of any field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stray<'a> {
    pub data: &'a [u8],
    pub offset: u64,
    pub ordinal: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    Frame(Frame<'a>),
    Stray(Stray<'a>),
}

/// What was unfinished when the input ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending<'a> {
    /// Whether an event or a line of one was open (comments and unknown lines are none).
    pub open: bool,
    pub event: &'a [u8],
    /// The data lines so far with the partial line; `None` where no data line was begun.
    pub data: Option<&'a [u8]>,
    pub data_offset: u64,
    /// The stray lines so far with the partial line.
    pub stray: Option<&'a [u8]>,
    pub stray_offset: u64,
    /// The input ends inside a UTF-8 sequence.
    pub mid_utf8: bool,
    /// How many payloads were handed out.
    pub ordinal: u64,
    /// How many bytes were fed.
    pub offset: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Framer {}

impl Framer {
    pub fn new(_limits: &Limits, _keep_stray: bool) -> Framer {
        Framer {}
    }

    /// Resumes after a reconnect.
    pub fn set_last_event_id(&mut self, _id: &[u8]) {}

    pub fn last_event_id(&self) -> &[u8] {
        &[]
    }

    pub fn reconnection_time(&self) -> Option<u64> {
        None
    }

    /// Bytes fed so far.
    pub fn offset(&self) -> u64 {
        0
    }

    /// Payloads handed out so far.
    pub fn ordinal(&self) -> u64 {
        0
    }

    pub fn feed<F>(&mut self, _input: &[u8], _on: &mut F) -> Result<(), Fault>
    where
        F: FnMut(Item<'_>) -> Result<(), Fault>,
    {
        Ok(())
    }

    pub fn finish(&mut self) -> Pending<'_> {
        Pending {
            open: false,
            event: &[],
            data: None,
            data_offset: 0,
            stray: None,
            stray_offset: 0,
            mid_utf8: false,
            ordinal: 0,
            offset: 0,
        }
    }
}

/// Text of bytes, U+FFFD for each maximal broken part; true where there was one.
pub fn decode_utf8(bytes: &[u8]) -> (Cow<'_, str>, bool) {
    let text = String::from_utf8_lossy(bytes);
    let replaced = matches!(text, Cow::Owned(_));
    (text, replaced)
}
