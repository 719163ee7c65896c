//! What the framer hands out, and who takes it.

use crate::model::fault::Fault;

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
    /// 0-based number among all payloads, frames and stray ones.
    pub ordinal: u64,
}

/// A payload that stood outside of any field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stray<'a> {
    pub data: &'a [u8],
    /// Absolute offset of the first byte of its first line.
    pub offset: u64,
    pub ordinal: u64,
    /// Its block had a data line, too.
    pub beside_data: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    Frame(Frame<'a>),
    Stray(Stray<'a>),
}

/// Who takes what the framer hands out. A closure over items does.
pub trait Receiver {
    fn item(&mut self, item: Item<'_>) -> Result<(), Fault>;

    /// `rest` begins with a new event. Whoever knows its bytes may take it, and those after it, as they stand: each a
    /// `data` line and a blank line, nothing else. None where it has to be read line by line, and nothing was done.
    #[inline]
    fn whole(&mut self, _rest: &[u8], _offset: u64, _ordinal: u64) -> Result<WholeEvents, Fault> {
        Ok(WholeEvents::default())
    }
}

/// Whole events at the beginning of an input.
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

/// What was unfinished when the input ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending<'a> {
    /// Whether an event or a line of one was open; comments and unknown lines are none.
    pub open: bool,
    /// The event type, of whole lines only.
    pub event: &'a [u8],
    /// The data lines so far with the partial line; `None` where no data line was begun.
    pub data: Option<&'a [u8]>,
    pub data_offset: u64,
    /// The stray lines so far with the partial line.
    pub stray: Option<&'a [u8]>,
    pub stray_offset: u64,
    /// An event is open, and the input ends inside of a UTF-8 sequence.
    pub mid_utf8: bool,
    /// How many payloads were handed out.
    pub ordinal: u64,
    /// How many bytes were fed.
    pub offset: u64,
}
