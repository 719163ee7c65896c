//! Handles lines that arrive in several reads.
//!
//! The kind of a line is determined as early as possible, and only the necessary bytes are stored. Complete lines are
//! handled in `sse/mod.rs`.

use crate::model::fault::Fault;
use crate::sse::Framer;
use crate::sse::Line;
use crate::sse::OpenEventFields;
use crate::sse::Receiver;
use crate::sse::fields::DATA;
use crate::sse::fields::Digits;
use crate::sse::fields::all_blank;
use crate::sse::fields::begins_name;
use crate::sse::fields::ends_document;
use crate::sse::fields::is_blank;
use crate::sse::fields::may_be_field;
use crate::sse::fields::split_blanks;

impl Framer {
    /// Adds a piece of an incomplete line, or the first piece of a new line.
    pub(crate) fn extend(&mut self, piece: &[u8]) -> Result<(), Fault> {
        let mut remaining = piece;
        if matches!(self.line, Line::None | Line::Undecided) {
            remaining = self.decide(piece);
        }
        if self.value_fresh && !remaining.is_empty() {
            self.value_fresh = false;
            remaining = remaining.strip_prefix(b" ").unwrap_or(remaining);
        }
        match self.line {
            Line::None | Line::Undecided | Line::Skip => return Ok(()),
            Line::Retry => {
                self.extend_retry(remaining);
                return Ok(());
            }
            Line::Data | Line::Stray => self.check_event(
                self.value_len.saturating_add(remaining.len()),
                self.line_offset,
            )?,
            Line::Event | Line::Id => {
                self.check_field(self.value_len.saturating_add(remaining.len()))?
            }
        }
        self.value_len += remaining.len();
        match self.line {
            Line::Data => self.data.extend_from_slice(remaining),
            Line::Stray => self.seldom.stray.extend_from_slice(remaining),
            _ => self.head.extend_from_slice(remaining),
        }
        Ok(())
    }

    /// Adds a piece of a retry line. Bytes after the digits are stored only as long as they may be a data line and are
    /// within the limit. Only the first blank before the data line is stored.
    fn extend_retry(&mut self, piece: &[u8]) {
        let digits = piece.iter().take_while(|byte| byte.is_ascii_digit());
        let (time, mut others) = match self.head.is_empty() {
            true => piece.split_at(digits.count()),
            false => (&[][..], piece),
        };
        self.seldom.digits.extend(time);
        if self.head.iter().all(|byte| is_blank(Some(byte))) {
            let (blank, line) = split_blanks(others);
            if self.head.is_empty() {
                self.head.extend_from_slice(blank);
            }
            others = line;
        }
        let may_be_data = self.keep_stray && {
            let (_, begun) = split_blanks(&self.head);
            let line = begun.iter().chain(others);
            line.zip(DATA).all(|(byte, expected)| byte == expected)
        };
        let fits = self.head.len().saturating_add(others.len()) <= self.max_field;
        if !(others.is_empty() || may_be_data && fits) {
            self.line = Line::Skip;
            return;
        }
        self.head.extend_from_slice(others);
    }

    /// Determines the kind of the line byte by byte, and returns the rest of the piece.
    ///
    /// The examined bytes stay in `head` only if they belong to the value.
    fn decide<'i>(&mut self, piece: &'i [u8]) -> &'i [u8] {
        if self.line == Line::None {
            self.head.clear();
            self.value_len = 0;
        }
        let mut remaining = piece;
        while let Some((&byte, tail)) = remaining.split_first() {
            remaining = tail;
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
                    // Store only one blank beyond the limit on an event, which is enough to exceed the limit.
                    if self.check_event(self.head.len() - 1, 0).is_err() {
                        self.head.pop();
                    }
                    Line::Undecided
                }
                _ if self.keep_stray => self.decide_stray(),
                _ => Line::Skip,
            };
            if self.line != Line::Undecided {
                break;
            }
        }
        remaining
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
            Line::Retry => self.seldom.digits = Digits::default(),
            _ => {}
        }
        line
    }

    fn decide_stray(&mut self) -> Line {
        let head = std::mem::take(&mut self.head);
        if !self.begin_stray(&head, self.line_offset) {
            return Line::Skip;
        }
        self.value_len = head.len();
        if !self.seldom.stray.is_empty() {
            self.seldom.stray.push(b'\n');
        }
        self.seldom.stray.extend_from_slice(&head);
        Line::Stray
    }

    /// Ends a line that arrived in several reads.
    pub(crate) fn end_line<R: Receiver>(&mut self, on: &mut R) -> Result<(), Fault> {
        self.value_fresh = false;
        match std::mem::replace(&mut self.line, Line::None) {
            Line::None | Line::Skip => {}
            Line::Undecided => {
                let line = std::mem::take(&mut self.head);
                let mut held = OpenEventFields::new(&line, self.line_offset);
                self.whole_line(&line, self.line_offset, &mut held, on)?;
                self.keep(&mut held);
            }
            Line::Data => self.grow(self.value_len)?,
            line @ (Line::Event | Line::Id | Line::Retry) => {
                let value = std::mem::take(&mut self.head);
                let (own, data) = self.split_field(&value);
                match line {
                    Line::Event => {
                        self.event.clear();
                        self.event.extend_from_slice(own);
                    }
                    Line::Id => self.id_line(own),
                    _ => {
                        self.seldom.digits.extend(own);
                        self.retry_line();
                    }
                }
                let mut held = OpenEventFields::new(&value, self.line_offset);
                self.joined_data(data, self.line_offset, &mut held)?;
                self.keep(&mut held);
            }
            Line::Stray => {
                self.grow(self.value_len)?;
                if self.alone && ends_document(&self.seldom.stray) {
                    return self.stray_at_once(None, on);
                }
            }
        }
        Ok(())
    }

    /// Handles the last line of the input, which has no line ending. A value that is not part of a longer text stays a
    /// slice of the input.
    pub(crate) fn last_line<'i>(
        &mut self,
        line: &'i [u8],
        held: &mut OpenEventFields<'i>,
    ) -> Result<(), Fault> {
        if let Some(value) = line.strip_prefix(DATA).filter(|_| !self.has_data) {
            self.line = self.begin_value(Line::Data);
            let value = value.strip_prefix(b" ").unwrap_or(value);
            self.check_event(value.len(), self.line_offset)?;
            held.data = Some(value);
        } else if self.keep_stray && !may_be_field(line) {
            self.last_stray_line(line, held)?;
        } else {
            self.keep(held);
            self.extend(line)?;
        }
        Ok(())
    }

    /// Handles the last line of the input, which is neither a field nor a comment.
    fn last_stray_line<'i>(
        &mut self,
        line: &'i [u8],
        held: &mut OpenEventFields<'i>,
    ) -> Result<(), Fault> {
        if self.begin_stray(line, self.line_offset) {
            self.line = Line::Stray;
            self.check_event(line.len(), self.line_offset)?;
            held.add_stray(line, self.line_offset, &mut self.seldom.stray);
        } else if all_blank(line) {
            self.line = Line::Undecided; // the payload after the blanks is missing
            self.head = vec![b' '];
        } else {
            self.line = Line::Skip;
        }
        Ok(())
    }

    /// Copies the fields that are still slices of the input, because the input is no longer available in the next call.
    pub(crate) fn keep(&mut self, held: &mut OpenEventFields<'_>) {
        held.keep_stray(&mut self.seldom.stray);
        if let Some(data) = held.data.take() {
            self.data.extend_from_slice(data);
        }
        if let Some(event) = held.event.take() {
            self.event.clear();
            self.event.extend_from_slice(event);
        }
    }
}
