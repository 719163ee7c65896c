//! Types that the framer emits, and the trait that receives them.

use crate::model::fault::Fault;

/// One dispatched event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The event type. The type is empty for the default type, `message`.
    pub event: &'a [u8],
    /// Data lines, joined with LF.
    pub data: &'a [u8],
    /// Last event id, which persists until the stream sends another id.
    pub id: &'a [u8],
    /// Last valid `retry` value in this event.
    pub retry: Option<u64>,
    /// Absolute offset of the first byte of the first data line.
    pub offset: u64,
    /// Zero-based index of the payload among all frames and stray payloads.
    pub ordinal: u64,
    /// True if the data begins on the line of another field, because a line ending is missing.
    pub is_joined: bool,
}

/// A payload outside any SSE field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stray<'a> {
    pub data: &'a [u8],
    /// Absolute offset of the first byte of the payload's first line.
    pub offset: u64,
    pub ordinal: u64,
    /// True if the payload's block also has a data line.
    pub has_data_lines: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    Frame(Frame<'a>),
    Stray(Stray<'a>),
}

/// Receives the items that the framer emits. Every closure that takes an item implements this trait.
pub trait Receiver {
    fn item(&mut self, item: Item<'_>) -> Result<(), Fault>;

    /// Consumes the complete events that the receiver recognizes at the start of `rest`.
    ///
    /// Each of these events consists of one `data` line and a blank line. If `rest` must be parsed line by line,
    /// returns zero events and has no side effects.
    #[inline]
    fn take_whole_events(
        &mut self,
        _unread: &[u8],
        _offset: u64,
        _ordinal: u64,
    ) -> Result<WholeEvents, Fault> {
        Ok(WholeEvents::default())
    }
}

/// Number and size of complete events at the start of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WholeEvents {
    pub events: usize,
    pub bytes: usize,
}

impl<F> Receiver for F
where
    F: FnMut(Item<'_>) -> Result<(), Fault>,
{
    #[inline]
    fn item(&mut self, item: Item<'_>) -> Result<(), Fault> {
        self(item)
    }
}

/// Unfinished input at the end of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending<'a> {
    /// True if an event or a line of an event has begun. Comments and unknown lines are not part of an event.
    pub open: bool,
    /// Event type, from complete lines only.
    pub event: &'a [u8],
    /// The data lines, including an incomplete last line. `None` if there are no data lines.
    pub data: Option<&'a [u8]>,
    pub data_offset: u64,
    /// True if the data begins on the line of another field, because a line ending is missing.
    pub is_joined: bool,
    /// Offset of the last line, if the line has no line ending.
    pub open_line: Option<u64>,
    /// The stray lines, including an incomplete last line.
    pub stray: Option<&'a [u8]>,
    pub stray_offset: u64,
    /// True if an event is open and the input ends inside a UTF-8 sequence.
    pub mid_utf8: bool,
    /// Number of payloads that have been emitted.
    pub ordinal: u64,
    /// Number of bytes fed.
    pub offset: u64,
}
