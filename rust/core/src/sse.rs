//! Bytes to server-sent events, as the WHATWG HTML Standard 9.2.6 says, in pieces of any size.
//!
//! Knows no JSON and no dialect; data stays bytes. A frame is a slice of the input unless it came in several reads or
//! on several lines. Linear: a byte is looked at once, however it is cut. Comments and unknown lines are dropped as
//! they arrive; caps are checked before bytes are kept. Layer 2.
//!
//! Opt-in are stray payloads, which gateways send outside of any field: a line that is no field and no comment and
//! whose first byte after blanks is `{`, `[` or `<`, with the lines after it up to the blank line. They come after the
//! frame of their block, and in its place where its data is empty. A stray line that ends in `}` or `]` and has no data
//! line or stray line before it in its block comes at once, alone, and nothing collects after it.

use std::borrow::Cow;

use memchr::memchr2;

use crate::fault::Fault;
use crate::limits::{LimitName, Limits, as_len};

const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// A buffer that grew beyond this is given back after its event.
const KEEP_CAPACITY: usize = 64 * 1024;

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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    Frame(Frame<'a>),
    Stray(Stray<'a>),
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
    /// The input ends inside of a UTF-8 sequence.
    pub mid_utf8: bool,
    /// How many payloads were handed out.
    pub ordinal: u64,
    /// How many bytes were fed.
    pub offset: u64,
}

/// The line that the last read ended in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    None,
    /// `head` holds what may become a field name, or blanks before a stray payload.
    Undecided,
    Data,
    /// `head` holds the value.
    Event,
    Id,
    Retry,
    Stray,
    /// A comment, or a name that is none.
    Skip,
}

/// Fields of the open event that still are slices of the current input.
#[derive(Default)]
struct Held<'i> {
    event: Option<&'i [u8]>,
    data: Option<&'i [u8]>,
}

/// The framer of one stream.
#[derive(Clone, Debug)]
pub struct Framer {
    max_event: usize,
    max_field: usize,
    keep_stray: bool,
    /// Bytes of the BOM that were seen; 3 when the question is settled.
    bom: u8,
    /// The last read ended in CR: an LF that comes next belongs to it.
    after_cr: bool,
    offset: u64,
    ordinal: u64,
    /// The last bytes of the input.
    tail: [u8; 3],

    line: Line,
    line_offset: u64,
    head: Vec<u8>,
    /// Bytes of the partial line's value that count.
    value_len: usize,
    /// The value has not begun: one space is not part of it.
    value_fresh: bool,
    digits: Digits,

    /// Offset of the first line of the open event that is a field or a stray line.
    block_offset: Option<u64>,
    /// Its size: each data or stray line with one byte for its end.
    size: usize,
    has_data: bool,
    data: Vec<u8>,
    data_offset: u64,
    event: Vec<u8>,
    has_id: bool,
    id: Vec<u8>,
    retry: Option<u64>,
    has_stray: bool,
    /// The one stray line of its block, and no data line before it.
    alone: bool,
    stray: Vec<u8>,
    stray_offset: u64,

    last_id: Vec<u8>,
    reconnection_time: Option<u64>,
}

impl Framer {
    /// `keep_stray` hands out payloads that stand outside of any field, too.
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
            digits: Digits::default(),
            block_offset: None,
            size: 0,
            has_data: false,
            data: Vec::new(),
            data_offset: 0,
            event: Vec::new(),
            has_id: false,
            id: Vec::new(),
            retry: None,
            has_stray: false,
            alone: false,
            stray: Vec::new(),
            stray_offset: 0,
            last_id: Vec::new(),
            reconnection_time: None,
        }
    }

    /// Resumes after a reconnect: the id that holds until the stream sends one.
    pub fn set_last_event_id(&mut self, id: &[u8]) {
        self.last_id = id.to_vec();
    }

    pub fn last_event_id(&self) -> &[u8] {
        &self.last_id
    }

    /// The last valid `retry` in milliseconds.
    pub fn reconnection_time(&self) -> Option<u64> {
        self.reconnection_time
    }

    /// Bytes fed so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Payloads handed out so far.
    pub fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// Takes the next bytes and hands out every payload that they complete. After a fault the framer is spent.
    pub fn feed<F>(&mut self, input: &[u8], on: &mut F) -> Result<(), Fault>
    where
        F: FnMut(Item<'_>) -> Result<(), Fault>,
    {
        let base = self.offset;
        self.offset += input.len() as u64;
        self.keep_tail(input);
        let mut rest = self.strip_bom(input);
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        if self.line != Line::None {
            let Some((piece, tail)) = split_line(rest) else {
                return self.extend(rest);
            };
            self.extend(piece)?;
            rest = self.past_line_end(tail);
            self.end_line(on)?;
        }
        let mut held = Held::default();
        while let Some(&first) = rest.first() {
            if matches!(first, b'\n' | b'\r') {
                rest = self.past_line_end(rest);
                self.dispatch(&mut held, on)?;
                continue;
            }
            let Some((line, tail)) = split_line(rest) else {
                break;
            };
            let at = base + (input.len() - rest.len()) as u64;
            rest = self.past_line_end(tail);
            self.whole_line(line, at, &mut held, on)?;
        }
        self.keep(held);
        if !rest.is_empty() {
            self.line_offset = base + (input.len() - rest.len()) as u64;
            self.extend(rest)?;
        }
        Ok(())
    }

    /// What is unfinished, when the input has ended.
    pub fn finish(&self) -> Pending<'_> {
        let name_begun = self.line == Line::Undecided && !is_blank(self.head.first());
        let line_open = !matches!(self.line, Line::None | Line::Skip | Line::Undecided);
        Pending {
            open: self.block_offset.is_some() || name_begun || line_open,
            event: &self.event,
            data: self.has_data.then_some(&self.data),
            data_offset: self.data_offset,
            stray: self.has_stray.then_some(&self.stray),
            stray_offset: self.stray_offset,
            mid_utf8: ends_inside_a_sequence(&self.tail),
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
        let mut rest = input;
        while let Some(expected) = BOM.get(usize::from(self.bom)) {
            match rest.split_first() {
                None => break,
                Some((byte, tail)) if byte == expected => {
                    self.bom += 1;
                    rest = tail;
                }
                Some(_) => {
                    // Half a BOM is the start of a field name, and of none that is known.
                    if self.bom > 0 {
                        self.line = Line::Skip;
                    }
                    self.bom = BOM.len() as u8;
                }
            }
        }
        rest
    }

    /// `rest` begins with a line end.
    #[inline]
    fn past_line_end<'i>(&mut self, rest: &'i [u8]) -> &'i [u8] {
        match rest {
            [b'\r', b'\n', tail @ ..] => tail,
            [b'\r'] => {
                self.after_cr = true;
                &[]
            }
            [_, tail @ ..] => tail,
            [] => rest,
        }
    }

    #[inline]
    fn data_line<'i>(
        &mut self,
        value: &'i [u8],
        at: u64,
        held: &mut Held<'i>,
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
    fn whole_line<'i, F>(
        &mut self,
        line: &'i [u8],
        at: u64,
        held: &mut Held<'i>,
        on: &mut F,
    ) -> Result<(), Fault>
    where
        F: FnMut(Item<'_>) -> Result<(), Fault>,
    {
        match value_of(line, b"data") {
            Some(value) => self.data_line(value, at, held),
            None => self.other_line(line, at, held, on),
        }
    }

    /// A whole line that is no data line.
    fn other_line<'i, F>(
        &mut self,
        line: &'i [u8],
        at: u64,
        held: &mut Held<'i>,
        on: &mut F,
    ) -> Result<(), Fault>
    where
        F: FnMut(Item<'_>) -> Result<(), Fault>,
    {
        if let Some(value) = value_of(line, b"event") {
            self.open_block(at);
            self.check_field(value.len())?;
            held.event = Some(value);
        } else if let Some(value) = value_of(line, b"id") {
            self.open_block(at);
            self.check_field(value.len())?;
            self.id_line(value);
        } else if let Some(value) = value_of(line, b"retry") {
            self.open_block(at);
            self.digits = Digits::default();
            self.digits.extend(value);
            self.retry_line();
        } else if self.keep_stray && line.first() != Some(&b':') && self.begin_stray(line, at)? {
            self.grow(line.len())?;
            if self.alone && ends_document(line) {
                return self.stray_at_once(Some(line), on);
            }
            self.stray.extend_from_slice(line);
        }
        Ok(())
    }

    fn id_line(&mut self, value: &[u8]) {
        if !value.contains(&0) {
            self.has_id = true;
            self.id.clear();
            self.id.extend_from_slice(value);
        }
    }

    fn retry_line(&mut self) {
        if let Some(time) = self.digits.value() {
            self.retry = Some(time);
            self.reconnection_time = Some(time);
        }
    }

    /// Begins a stray line, if the line that begins like this is one.
    fn begin_stray(&mut self, line: &[u8], at: u64) -> Result<bool, Fault> {
        if self.has_stray {
            self.alone = false;
            self.stray.push(b'\n');
            return Ok(true);
        }
        let blanks = line.iter().take_while(|byte| is_blank(Some(byte))).count();
        self.check_event(blanks, at)?;
        let begins = matches!(line.get(blanks), Some(b'{' | b'[' | b'<'));
        if begins {
            self.open_block(at);
            self.has_stray = true;
            self.alone = !self.has_data;
            self.stray_offset = at;
        }
        Ok(begins)
    }

    /// Hands out the only stray line of its block: the line, or where it came in pieces the buffer.
    fn stray_at_once<F>(&mut self, line: Option<&[u8]>, on: &mut F) -> Result<(), Fault>
    where
        F: FnMut(Item<'_>) -> Result<(), Fault>,
    {
        let stray = Stray {
            data: line.unwrap_or(&self.stray),
            offset: self.stray_offset,
            ordinal: self.ordinal,
        };
        self.ordinal += 1;
        let result = on(Item::Stray(stray));
        give_back(&mut self.stray);
        self.has_stray = false;
        self.size = 0;
        // An `event` or `id` before it still waits for its data.
        if self.block_offset == Some(self.stray_offset) {
            self.block_offset = None;
        }
        result
    }

    /// A blank line: the event so far goes out, if there is one.
    #[inline]
    fn dispatch<F>(&mut self, held: &mut Held<'_>, on: &mut F) -> Result<(), Fault>
    where
        F: FnMut(Item<'_>) -> Result<(), Fault>,
    {
        if self.block_offset.is_none() {
            return Ok(());
        }
        if self.has_id {
            self.has_id = false;
            std::mem::swap(&mut self.last_id, &mut self.id);
        }
        let data = held.data.unwrap_or(&self.data);
        let mut result = Ok(());
        if self.has_data && !(self.has_stray && data.is_empty()) {
            let frame = Frame {
                event: held.event.unwrap_or(&self.event),
                data,
                id: &self.last_id,
                retry: self.retry,
                offset: self.data_offset,
                ordinal: self.ordinal,
            };
            self.ordinal += 1;
            result = on(Item::Frame(frame));
        }
        if self.has_stray && result.is_ok() {
            let stray = Stray {
                data: &self.stray,
                offset: self.stray_offset,
                ordinal: self.ordinal,
            };
            self.ordinal += 1;
            result = on(Item::Stray(stray));
        }
        *held = Held::default();
        self.reset_block();
        result
    }

    #[inline]
    fn reset_block(&mut self) {
        self.block_offset = None;
        self.size = 0;
        self.has_data = false;
        self.retry = None;
        self.event.clear();
        give_back(&mut self.data);
        if self.has_stray {
            self.has_stray = false;
            give_back(&mut self.stray);
        }
    }

    /// The input ends: what was held as a slice of it is copied.
    fn keep(&mut self, held: Held<'_>) {
        if let Some(data) = held.data {
            self.data.extend_from_slice(data);
        }
        if let Some(event) = held.event {
            self.event.clear();
            self.event.extend_from_slice(event);
        }
    }

    /// Takes a piece of a line that began in this or in an earlier read.
    fn extend(&mut self, piece: &[u8]) -> Result<(), Fault> {
        let mut rest = piece;
        if matches!(self.line, Line::None | Line::Undecided) {
            rest = self.decide(piece)?;
        }
        if self.value_fresh && !rest.is_empty() {
            self.value_fresh = false;
            rest = rest.strip_prefix(b" ").unwrap_or(rest);
        }
        match self.line {
            Line::None | Line::Undecided | Line::Skip => return Ok(()),
            Line::Retry => {
                self.digits.extend(rest);
                return Ok(());
            }
            Line::Data | Line::Stray => {
                self.check_event(self.value_len.saturating_add(rest.len()), self.line_offset)?
            }
            Line::Event | Line::Id => {
                self.check_field(self.value_len.saturating_add(rest.len()))?
            }
        }
        self.value_len += rest.len();
        match self.line {
            Line::Data => self.data.extend_from_slice(rest),
            Line::Stray => self.stray.extend_from_slice(rest),
            _ => self.head.extend_from_slice(rest),
        }
        Ok(())
    }

    /// Finds out what line it is, byte by byte, and gives what follows. What decided stays in `head` only where it
    /// belongs to the value.
    fn decide<'i>(&mut self, piece: &'i [u8]) -> Result<&'i [u8], Fault> {
        if self.line == Line::None {
            self.head.clear();
            self.value_len = 0;
        }
        let mut rest = piece;
        while let Some((&byte, tail)) = rest.split_first() {
            rest = tail;
            let blank = is_blank(self.head.first());
            self.head.push(byte);
            self.line = match (byte, self.head.as_slice()) {
                (b':', b"data:") => self.begin_value(Line::Data),
                (b':', b"event:") => self.begin_value(Line::Event),
                (b':', b"id:") => self.begin_value(Line::Id),
                (b':', b"retry:") => self.begin_value(Line::Retry),
                (b':', [_]) => Line::Skip,
                (_, head) if !blank && begins_name(head) => Line::Undecided,
                (b' ' | b'\t', [first, ..])
                    if self.keep_stray && !self.has_stray && is_blank(Some(first)) =>
                {
                    self.check_event(self.head.len(), self.line_offset)?;
                    Line::Undecided
                }
                _ if self.keep_stray => self.decide_stray()?,
                _ => Line::Skip,
            };
            if self.line != Line::Undecided {
                break;
            }
        }
        Ok(rest)
    }

    fn begin_value(&mut self, line: Line) -> Line {
        self.open_block(self.line_offset);
        self.head.clear();
        self.value_fresh = true;
        match line {
            Line::Data if self.has_data => self.data.push(b'\n'),
            Line::Data => {
                self.has_data = true;
                self.data_offset = self.line_offset;
            }
            Line::Retry => self.digits = Digits::default(),
            _ => {}
        }
        line
    }

    fn decide_stray(&mut self) -> Result<Line, Fault> {
        let head = std::mem::take(&mut self.head);
        if !self.begin_stray(&head, self.line_offset)? {
            return Ok(Line::Skip);
        }
        self.value_len = head.len();
        self.stray.extend_from_slice(&head);
        Ok(Line::Stray)
    }

    /// The line that came in pieces ends here.
    fn end_line<F>(&mut self, on: &mut F) -> Result<(), Fault>
    where
        F: FnMut(Item<'_>) -> Result<(), Fault>,
    {
        self.value_fresh = false;
        match std::mem::replace(&mut self.line, Line::None) {
            Line::None | Line::Skip => {}
            Line::Undecided => {
                let line = std::mem::take(&mut self.head);
                let mut held = Held::default();
                self.whole_line(&line, self.line_offset, &mut held, on)?;
                self.keep(held);
            }
            Line::Data => self.grow(self.value_len)?,
            Line::Event => std::mem::swap(&mut self.event, &mut self.head),
            Line::Id => {
                let value = std::mem::take(&mut self.head);
                self.id_line(&value);
            }
            Line::Retry => self.retry_line(),
            Line::Stray => {
                self.grow(self.value_len)?;
                if self.alone && ends_document(&self.stray) {
                    return self.stray_at_once(None, on);
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn open_block(&mut self, at: u64) {
        if self.block_offset.is_none() {
            self.block_offset = Some(at);
        }
    }

    /// A data or stray line of that length has ended.
    #[inline]
    fn grow(&mut self, length: usize) -> Result<(), Fault> {
        self.size = self.size.saturating_add(length).saturating_add(1);
        self.check_event(0, 0)
    }

    /// May `pending` bytes more be kept for the event? `at` is where they begin, if nothing was kept so far.
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

/// The digits of a `retry` value, of any number.
#[derive(Clone, Copy, Debug, Default)]
struct Digits {
    value: u64,
    any: bool,
    bad: bool,
}

impl Digits {
    fn extend(&mut self, piece: &[u8]) {
        for &byte in piece {
            let next = self
                .value
                .saturating_mul(10)
                .saturating_add(u64::from(byte & 15));
            // More than a signed 64-bit number holds is no time that anyone waits.
            self.bad |= !byte.is_ascii_digit() || next > i64::MAX as u64;
            self.any = true;
            if self.bad {
                return;
            }
            self.value = next;
        }
    }

    fn value(&self) -> Option<u64> {
        (self.any && !self.bad).then_some(self.value)
    }
}

/// The line up to the next line end, and what begins with that line end.
#[inline]
fn split_line(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    rest.split_at_checked(memchr2(b'\n', b'\r', rest)?)
}

/// The value of a line that has this field name, without one leading space.
#[inline]
fn value_of<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    match line.strip_prefix(name)? {
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        [] => Some(&[]),
        _ => None,
    }
}

fn begins_name(head: &[u8]) -> bool {
    [&b"data"[..], b"event", b"id", b"retry"]
        .iter()
        .any(|name| name.starts_with(head))
}

fn is_blank(byte: Option<&u8>) -> bool {
    matches!(byte, Some(b' ' | b'\t'))
}

/// The line may be the last one of a JSON document.
fn ends_document(line: &[u8]) -> bool {
    matches!(
        line.iter().rev().find(|byte| !is_blank(Some(byte))),
        Some(b'}' | b']')
    )
}

#[inline]
fn give_back(buffer: &mut Vec<u8>) {
    if buffer.capacity() > KEEP_CAPACITY {
        *buffer = Vec::new();
    }
    buffer.clear();
}

/// The input stops before the last byte of a character.
fn ends_inside_a_sequence(tail: &[u8]) -> bool {
    (0..tail.len())
        .filter_map(|start| tail.get(start..))
        .any(|end| {
            std::str::from_utf8(end)
                .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        })
}

/// The text of bytes, with U+FFFD for each maximal broken part; true where there was one.
pub fn decode_utf8(bytes: &[u8]) -> (Cow<'_, str>, bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Cow::Borrowed(text), false),
        Err(_) => (String::from_utf8_lossy(bytes), true),
    }
}
