//! Parses server-sent events (WHATWG HTML Standard, section 9.2.6) from bytes that arrive in pieces of any size.
//!
//! The data is returned as bytes. This module does not parse JSON. A frame borrows from the input unless it arrived in
//! several reads or on several lines. The cost is linear: each byte is examined once, regardless of how the input is
//! split. Comments and unknown lines are dropped on arrival. Limits are checked before bytes are stored.

pub(crate) mod block_splitter;
pub(crate) mod fields;
pub(crate) mod frame;
pub(crate) mod lenient;
pub(crate) mod partial_lines;
pub(crate) mod rare_fields;
pub(crate) mod whole_events;

use crate::model::fault::Fault;
use crate::model::lazy_box::LazyBox;
use crate::model::limits::LimitName;
use crate::model::limits::Limits;
use crate::model::limits::as_len;
use crate::sse::fields::DATA;
use crate::sse::fields::Digits;
use crate::sse::fields::all_blank;
pub use crate::sse::fields::decode_utf8;
use crate::sse::fields::ends_document;
pub(crate) use crate::sse::fields::ends_inside_a_sequence;
use crate::sse::fields::give_back;
use crate::sse::fields::is_blank;
use crate::sse::fields::split_blanks;
use crate::sse::fields::split_joined;
use crate::sse::fields::split_line;
use crate::sse::fields::value_of;
pub use crate::sse::frame::Frame;
pub use crate::sse::frame::Item;
pub use crate::sse::frame::Pending;
pub use crate::sse::frame::Receiver;
pub use crate::sse::frame::Stray;
pub use crate::sse::frame::WholeEvents;
use crate::sse::rare_fields::RareFields;

const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// Kind of the line in which the last read ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    None,
    /// The kind is not known yet. `head` contains a possible field name, or blanks before a stray payload.
    Undecided,
    Data,
    /// The line is an `event` line, and `head` contains its value.
    Event,
    Id,
    Retry,
    Stray,
    /// The line is ignored: it is a comment or has an unknown field name.
    Skip,
}

/// Fields of the open event that are still slices of the current read.
pub(crate) struct OpenEventFields<'i> {
    event: Option<&'i [u8]>,
    data: Option<&'i [u8]>,
    /// The lines of the stray payload, if they follow each other in the read and each ends in LF.
    stray: Option<StrayLines<'i>>,
    input: &'i [u8],
    /// Offset of the first byte of `input` in the stream.
    base: u64,
}

/// Consecutive stray lines that are still a slice of the current read.
struct StrayLines<'i> {
    /// The input from the first line on.
    input: &'i [u8],
    /// Length of the lines, without the last line ending.
    length: usize,
}

impl<'i> StrayLines<'i> {
    fn text(&self) -> &'i [u8] {
        self.input.get(..self.length).unwrap_or(self.input)
    }
}

impl<'i> OpenEventFields<'i> {
    /// Returns no fields. `base` is the offset of `input` in the stream.
    pub(crate) fn new(input: &'i [u8], base: u64) -> Self {
        OpenEventFields {
            event: None,
            data: None,
            stray: None,
            input,
            base,
        }
    }

    /// Adds a line at this offset to the stray payload. If the lines of the payload do not follow each other in the
    /// read, they are copied to `kept`, and this line is appended there.
    pub(crate) fn add_stray(&mut self, line: &[u8], at: u64, kept: &mut Vec<u8>) {
        let begin = usize::try_from(at - self.base).unwrap_or(usize::MAX);
        if let Some(lines) = &mut self.stray {
            let sent = self.input.len() - lines.input.len();
            let follows = sent + lines.length + 1 == begin;
            if follows && lines.input.get(lines.length) == Some(&b'\n') {
                lines.length += 1 + line.len();
                return;
            }
        } else if kept.is_empty() {
            let input = self.input.get(begin..).unwrap_or_default();
            let length = line.len();
            self.stray = Some(StrayLines { input, length });
            return;
        }
        self.keep_stray(kept);
        kept.push(b'\n');
        kept.extend_from_slice(line);
    }

    /// Returns the lines of the stray payload: a slice of the read, or `kept` if the lines were copied.
    fn stray_or<'f>(&self, kept: &'f [u8]) -> &'f [u8]
    where
        'i: 'f,
    {
        self.stray.as_ref().map_or(kept, StrayLines::text)
    }

    /// Copies the stray lines to `kept`.
    fn keep_stray(&mut self, kept: &mut Vec<u8>) {
        if let Some(lines) = self.stray.take() {
            kept.extend_from_slice(lines.text());
        }
    }
}

/// Parses one event stream.
#[derive(Clone, Debug)]
pub struct Framer {
    max_event: usize,
    max_field: usize,
    keep_stray: bool,
    /// Number of bytes of a byte order mark that have arrived, or 3 once the start of the input has been checked.
    bom: u8,
    /// True if the last read ended in CR. An LF at the beginning of the next read belongs to the same line ending.
    after_cr: bool,
    offset: u64,
    ordinal: u64,
    /// Last three bytes of the input, which are sufficient to find an incomplete UTF-8 sequence.
    tail: [u8; 3],

    line: Line,
    line_offset: u64,
    head: Vec<u8>,
    /// Length of the value of the partial line, without its leading space.
    value_len: usize,
    /// True until the value has its first byte, because one leading space is not part of the value.
    value_fresh: bool,

    /// Offset of the first field or stray line in the open event.
    block_offset: Option<u64>,
    /// Size of the open event: each data or stray line, plus one byte for its line ending.
    size: usize,
    has_data: bool,
    /// True if the data begins on the line of another field, because a line ending is missing.
    is_joined: bool,
    data: Vec<u8>,
    data_offset: u64,
    event: Vec<u8>,
    has_id: bool,
    has_stray: bool,
    /// True if the open stray payload has only one line, and its block has no data that must be emitted first.
    alone: bool,
    /// True if the block has had a stray payload, so that a frame with empty data is not emitted.
    strayed: bool,
    seldom: LazyBox<RareFields>,
}

impl Framer {
    /// Creates a framer. With `keep_stray`, payloads outside any SSE field are also emitted.
    pub fn new(limits: &Limits, keep_stray: bool) -> Framer {
        Framer {
            max_event: as_len(limits.max_event_bytes),
            max_field: as_len(limits.max_field_bytes),
            keep_stray,
            bom: 0,
            after_cr: false,
            offset: 0,
            ordinal: 0,
            tail: [0; 3],
            line: Line::None,
            line_offset: 0,
            head: Vec::new(),
            value_len: 0,
            value_fresh: false,
            block_offset: None,
            size: 0,
            has_data: false,
            is_joined: false,
            data: Vec::new(),
            data_offset: 0,
            event: Vec::new(),
            has_id: false,
            has_stray: false,
            alone: false,
            strayed: false,
            seldom: LazyBox::default(),
        }
    }

    /// Sets the last event id after a reconnect. The id applies until the stream sends another id.
    pub fn set_last_event_id(&mut self, id: &[u8]) {
        self.seldom.last_id = id.to_vec();
    }

    pub fn last_event_id(&self) -> &[u8] {
        &self.seldom.last_id
    }

    /// Returns the last valid `retry` value, in milliseconds.
    pub fn reconnection_time(&self) -> Option<u64> {
        self.seldom.reconnection_time
    }

    /// Returns the number of bytes that have been fed.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the number of payloads that have been emitted.
    pub fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// Parses the next bytes and emits every payload that they complete. The framer must not be used after a fault.
    pub fn feed<R: Receiver>(&mut self, input: &[u8], on: &mut R) -> Result<(), Fault> {
        let (mut held, unfinished) = self.read_lines(input, on)?;
        self.keep(&mut held);
        if !unfinished.is_empty() {
            self.extend(unfinished)?;
        }
        Ok(())
    }

    /// Parses the last bytes of the input, emits every payload that they complete, and returns the unfinished event and
    /// lines. The framer must not be used afterwards.
    ///
    /// The unfinished event borrows from `input` if it is one slice of it, because the caller still holds these bytes
    /// and the event may be as long as the limit allows.
    pub fn finish<'f, R: Receiver>(
        &'f mut self,
        input: &'f [u8],
        on: &mut R,
    ) -> Result<Pending<'f>, Fault> {
        let (mut held, unfinished) = self.read_lines(input, on)?;
        match self.line {
            _ if unfinished.is_empty() => {}
            Line::None => self.last_line(unfinished, &mut held)?,
            // The payload after the blanks is missing.
            Line::Undecided if is_blank(self.head.first()) && all_blank(unfinished) => {}
            _ => self.extend(unfinished)?,
        }
        Ok(self.pending(&held))
    }

    /// Parses the complete lines of the input. Returns the fields of the open event that are still slices of the input,
    /// and the bytes of the last line, if it is incomplete.
    #[inline]
    fn read_lines<'i, R: Receiver>(
        &mut self,
        input: &'i [u8],
        on: &mut R,
    ) -> Result<(OpenEventFields<'i>, &'i [u8]), Fault> {
        let base = self.offset;
        let mut held = OpenEventFields::new(input, base);
        self.offset += input.len() as u64;
        self.keep_tail(input);
        let mut remaining = self.strip_bom(input);
        if self.after_cr && !remaining.is_empty() {
            self.after_cr = false;
            remaining = remaining.strip_prefix(b"\n").unwrap_or(remaining);
        }
        if self.line != Line::None {
            let Some((piece, tail)) = split_line(remaining) else {
                return Ok((held, remaining));
            };
            self.extend(piece)?;
            remaining = self.past_line_end(tail);
            self.end_line(on)?;
        }
        while let Some(&first) = remaining.first() {
            if matches!(first, b'\n' | b'\r') {
                remaining = self.past_line_end(remaining);
                self.dispatch(&mut held, on)?;
                continue;
            }
            let at = base + (input.len() - remaining.len()) as u64;
            if self.is_clear() {
                // An event that is within the limit with its line endings is also within the limit without them.
                let room = remaining.get(..self.max_event).unwrap_or(remaining);
                let taken = on.take_whole_events(room, at, self.ordinal)?;
                if let Some(tail) = remaining.get(taken.bytes..).filter(|_| taken.events > 0) {
                    (remaining, self.ordinal) = (tail, self.ordinal + taken.events as u64);
                    continue;
                }
            }
            let Some((line, tail)) = split_line(remaining) else {
                break;
            };
            remaining = self.past_line_end(tail);
            self.whole_line(line, at, &mut held, on)?;
        }
        if !remaining.is_empty() {
            self.line_offset = base + (input.len() - remaining.len()) as u64;
        }
        Ok((held, remaining))
    }

    fn pending<'f>(&'f self, held: &OpenEventFields<'f>) -> Pending<'f> {
        let name_begun = self.line == Line::Undecided && !is_blank(self.head.first());
        let line_open = !matches!(self.line, Line::None | Line::Skip | Line::Undecided);
        let open = self.block_offset.is_some() || name_begun || line_open;
        Pending {
            open,
            event: held.event.unwrap_or(&self.event),
            data: self.has_data.then_some(held.data.unwrap_or(&self.data)),
            data_offset: self.data_offset,
            is_joined: self.is_joined,
            open_line: (self.line != Line::None).then_some(self.line_offset),
            stray: self.has_stray.then_some(held.stray_or(&self.seldom.stray)),
            stray_offset: self.seldom.stray_offset,
            mid_utf8: open && ends_inside_a_sequence(&self.tail),
            ordinal: self.ordinal,
            offset: self.offset,
        }
    }

    fn keep_tail(&mut self, input: &[u8]) {
        for &byte in input.iter().skip(input.len().saturating_sub(3)) {
            let [_, second, third] = self.tail;
            self.tail = [second, third, byte];
        }
    }

    #[inline]
    fn strip_bom<'i>(&mut self, input: &'i [u8]) -> &'i [u8] {
        let mut remaining = input;
        while let Some(expected) = BOM.get(usize::from(self.bom)) {
            match remaining.split_first() {
                None => break,
                Some((byte, tail)) if byte == expected => {
                    self.bom += 1;
                    remaining = tail;
                }
                Some(_) => {
                    // An incomplete BOM is treated as the start of an unknown field name.
                    if self.bom > 0 {
                        self.line = Line::Skip;
                    }
                    self.bom = BOM.len() as u8;
                }
            }
        }
        remaining
    }

    /// Skips the line ending at the start of `remaining`.
    #[inline]
    fn past_line_end<'i>(&mut self, remaining: &'i [u8]) -> &'i [u8] {
        match remaining {
            [b'\r', b'\n', tail @ ..] => tail,
            [b'\r'] => {
                self.after_cr = true;
                &[]
            }
            [_, tail @ ..] => tail,
            [] => remaining,
        }
    }

    #[inline]
    fn data_line<'i>(
        &mut self,
        value: &'i [u8],
        at: u64,
        held: &mut OpenEventFields<'i>,
    ) -> Result<(), Fault> {
        self.open_block(at);
        self.grow(value.len())?;
        if !self.has_data {
            self.has_data = true;
            self.data_offset = at;
            held.data = Some(value);
            return Ok(());
        }
        if let Some(first) = held.data.take() {
            self.data.extend_from_slice(first);
        }
        self.data.push(b'\n');
        self.data.extend_from_slice(value);
        Ok(())
    }

    #[inline]
    fn whole_line<'i, R: Receiver>(
        &mut self,
        line: &'i [u8],
        at: u64,
        held: &mut OpenEventFields<'i>,
        on: &mut R,
    ) -> Result<(), Fault> {
        match value_of(line, b"data") {
            Some(value) => self.data_line(value, at, held),
            None => self.other_line(line, at, held, on),
        }
    }

    /// Handles a complete line other than a data line.
    fn other_line<'i, R: Receiver>(
        &mut self,
        line: &'i [u8],
        at: u64,
        held: &mut OpenEventFields<'i>,
        on: &mut R,
    ) -> Result<(), Fault> {
        if let Some(value) = value_of(line, b"event") {
            self.open_block(at);
            self.check_field(value.len())?;
            let (name, data) = self.split_field(value);
            held.event = Some(name);
            self.joined_data(data, at, held)?;
        } else if let Some(value) = value_of(line, b"id") {
            self.open_block(at);
            self.check_field(value.len())?;
            let (id, data) = self.split_field(value);
            self.id_line(id);
            self.joined_data(data, at, held)?;
        } else if let Some(value) = value_of(line, b"retry") {
            self.open_block(at);
            let digits = value.iter().take_while(|byte| byte.is_ascii_digit());
            let (_, others) = value.split_at(digits.count());
            let (blank, others) = split_blanks(others);
            let fits = others.len().saturating_add(blank.len()) <= self.max_field;
            let (time, data) = match fits && others.starts_with(DATA) {
                true => self.split_field(value),
                false => (value, None),
            };
            self.seldom.digits = Digits::default();
            self.seldom.digits.extend(time);
            self.retry_line();
            self.joined_data(data, at, held)?;
        } else if self.keep_stray && line.first() != Some(&b':') && self.begin_stray(line, at) {
            self.grow(line.len())?;
            if self.alone && ends_document(line) {
                return self.stray_at_once(Some(line), on);
            }
            held.add_stray(line, at, &mut self.seldom.stray);
        }
        Ok(())
    }

    /// If stray payloads are requested, splits a field value from a data line that follows without a line ending.
    ///
    /// If stray payloads are not requested, the value is the rest of the line, as the standard requires.
    pub(crate) fn split_field<'v>(&self, value: &'v [u8]) -> (&'v [u8], Option<&'v [u8]>) {
        if self.keep_stray {
            split_joined(value)
        } else {
            (value, None)
        }
    }

    /// If a data line follows another field without a line ending, adds the data line.
    pub(crate) fn joined_data<'i>(
        &mut self,
        data: Option<&'i [u8]>,
        at: u64,
        held: &mut OpenEventFields<'i>,
    ) -> Result<(), Fault> {
        let Some(data) = data else {
            return Ok(());
        };
        self.is_joined = true;
        self.data_line(data, at, held)
    }

    fn id_line(&mut self, value: &[u8]) {
        if !value.contains(&0) {
            self.has_id = true;
            self.seldom.id.clear();
            self.seldom.id.extend_from_slice(value);
        }
    }

    fn retry_line(&mut self) {
        if let Some(time) = self.seldom.digits.value() {
            self.seldom.retry = Some(time);
            self.seldom.reconnection_time = Some(time);
        }
    }

    /// Handles a blank line: emits the open event, if there is one.
    #[inline]
    fn dispatch<R: Receiver>(
        &mut self,
        held: &mut OpenEventFields<'_>,
        on: &mut R,
    ) -> Result<(), Fault> {
        let strayed = std::mem::take(&mut self.strayed);
        if self.block_offset.is_none() {
            return Ok(());
        }
        if self.has_id {
            self.has_id = false;
            let seldom = &mut *self.seldom;
            std::mem::swap(&mut seldom.last_id, &mut seldom.id);
        }
        let result = match self.has_stray {
            true => self.dispatch_stray(held, on),
            false if self.has_data => self.dispatch_frame(held, strayed, on),
            false => Ok(()),
        };
        (held.event, held.data, held.stray) = (None, None, None);
        self.reset_block();
        result
    }

    /// Emits the frame of the open event, which has data.
    #[inline]
    fn dispatch_frame<R: Receiver>(
        &mut self,
        held: &OpenEventFields<'_>,
        strayed: bool,
        on: &mut R,
    ) -> Result<(), Fault> {
        let data = held.data.unwrap_or(&self.data);
        if strayed && data.is_empty() {
            return Ok(());
        }
        let frame = Frame {
            event: held.event.unwrap_or(&self.event),
            data,
            id: &self.seldom.last_id,
            retry: self.seldom.retry,
            offset: self.data_offset,
            ordinal: self.ordinal,
            is_joined: self.is_joined,
        };
        self.ordinal += 1;
        on.item(Item::Frame(frame))
    }

    /// Emits the open stray payload and the frame of its block, in the order in which they began.
    #[cold]
    fn dispatch_stray<R: Receiver>(
        &mut self,
        held: &OpenEventFields<'_>,
        on: &mut R,
    ) -> Result<(), Fault> {
        let is_first = !self.has_data || self.seldom.stray_offset < self.data_offset;
        if self.has_data && !is_first {
            self.dispatch_frame(held, true, on)?;
        }
        let stray = Stray {
            data: held.stray_or(&self.seldom.stray),
            offset: self.seldom.stray_offset,
            ordinal: self.ordinal,
            has_data_lines: self.has_data,
        };
        self.ordinal += 1;
        on.item(Item::Stray(stray))?;
        match self.has_data && is_first {
            true => self.dispatch_frame(held, true, on),
            false => Ok(()),
        }
    }

    #[inline]
    fn reset_block(&mut self) {
        self.block_offset = None;
        self.size = 0;
        self.has_data = false;
        self.is_joined = false;
        if !self.seldom.is_blank() {
            self.seldom.retry = None;
        }
        self.event.clear();
        give_back(&mut self.data);
        if self.has_stray {
            self.has_stray = false;
            give_back(&mut self.seldom.stray);
        }
    }

    /// Returns true if no event is open, not even an event without data.
    #[inline]
    fn is_clear(&self) -> bool {
        self.block_offset.is_none() && !self.has_id && !self.has_stray && !self.strayed
    }

    #[inline]
    fn open_block(&mut self, at: u64) {
        if self.block_offset.is_none() {
            self.block_offset = Some(at);
        }
    }

    /// Adds a complete data or stray line of this length to the size of the event.
    #[inline]
    fn grow(&mut self, length: usize) -> Result<(), Fault> {
        self.size = self.size.saturating_add(length).saturating_add(1);
        self.check_event(0, 0)
    }

    /// Returns a fault if `pending` more bytes would exceed the limit on the event.
    ///
    /// `at`: the offset of these bytes, which the fault contains if no event is open yet.
    #[inline]
    fn check_event(&self, pending: usize, at: u64) -> Result<(), Fault> {
        if self.size.saturating_add(pending) > self.max_event {
            return Err(self.too_long(LimitName::max_event_bytes, self.max_event, at));
        }
        Ok(())
    }

    #[inline]
    fn check_field(&self, length: usize) -> Result<(), Fault> {
        if length > self.max_field {
            return Err(self.too_long(LimitName::max_field_bytes, self.max_field, 0));
        }
        Ok(())
    }

    #[cold]
    fn too_long(&self, name: LimitName, limit: usize, at: u64) -> Fault {
        Fault::limit(name, limit as u64).at(self.block_offset.unwrap_or(at), self.ordinal)
    }
}
