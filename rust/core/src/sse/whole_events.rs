//! Examines and consumes complete events outside `feed`, for callers that check events one by one.

use crate::model::fault::Fault;
use crate::sse::BOM;
use crate::sse::Framer;
use crate::sse::Item;
use crate::sse::Line;
use crate::sse::Receiver;
use crate::sse::WholeEvents;
use crate::sse::fields::DATA;
use crate::sse::fields::FIELDS;
use crate::sse::fields::begins_name;
use crate::sse::fields::ends_document;
use crate::sse::fields::give_back;
use crate::sse::fields::is_blank;
use crate::sse::fields::split_line;
use crate::sse::fields::value_of;
use crate::sse::frame::Pending;
use crate::sse::lenient::begins_stray;
use memchr::memchr;
use memchr::memchr_iter;

/// Number of bytes that are probed at a time.
pub(crate) const PROBE: usize = 1 << 16;

/// Number of bytes of an unfinished payload that are kept if it cannot be used.
const HEAD: usize = 4096;

/// The payload of an event that is unfinished at the end of the input.
pub(crate) struct LastPayload<'t> {
    /// Kind of its lines: `Data` or `Stray`.
    line: Line,
    payload: &'t [u8],
    /// Size of its lines, as the limit on an event counts it.
    size: usize,
    /// Start of the last line, if the line has no line ending.
    open_line: Option<usize>,
}

/// Returns the first bytes of a payload. They are blank only if the payload is.
fn shortened(payload: &[u8]) -> Vec<u8> {
    let (first, rest) = payload.split_at_checked(HEAD).unwrap_or((payload, &[]));
    let mut kept = first.to_vec();
    if kept.iter().all(u8::is_ascii_whitespace) {
        kept.extend(rest.iter().find(|byte| !byte.is_ascii_whitespace()));
    }
    kept
}

/// Returns true if a stray payload that has begun contains this line.
fn is_stray_line(line: &[u8]) -> bool {
    let is_field = || FIELDS.iter().any(|name| value_of(line, name).is_some());
    !matches!(line.first(), None | Some(b':')) && !is_field()
}

impl Framer {
    /// Ends the input with `text` without copying it. Returns `None`, and takes nothing, if `text` is not one payload that
    /// begins here (see `last_payload`).
    pub(crate) fn finish_with<'f>(
        &'f mut self,
        text: &'f [u8],
    ) -> Result<Option<Pending<'f>>, Fault> {
        let text = match usize::from(self.bom) {
            0 => text.strip_prefix(&BOM).unwrap_or(text),
            bom if bom == BOM.len() => text,
            _ => return Ok(None),
        };
        let at = self.offset;
        let Some(last) = self.last_payload(text) else {
            return Ok(None);
        };
        let is_data = last.line == Line::Data;
        if is_data {
            self.open_block(at);
            self.data_offset = at;
        } else {
            self.begin_stray(last.payload, at);
        }
        self.check_event(last.size, at)?;
        if let Some(open_line) = last.open_line {
            (self.line, self.line_offset) = (last.line, at + open_line as u64);
        }
        self.offset += text.len() as u64;
        self.keep_tail(text);
        let pending = self.finish();
        Ok(Some(match is_data {
            true => Pending {
                data: Some(last.payload),
                ..pending
            },
            false => Pending {
                stray: Some(last.payload),
                ..pending
            },
        }))
    }

    /// Returns the payload that consists of exactly these bytes, if an event with it would contain it unchanged: the
    /// value of one data line, or the lines of a stray payload if they end in LF.
    pub(crate) fn last_payload<'t>(&self, text: &'t [u8]) -> Option<LastPayload<'t>> {
        if self.line != Line::None || self.has_stray {
            return None;
        }
        let (first, rest) = split_line(text).unwrap_or((text, &[]));
        if first.starts_with(DATA) {
            let is_last = !self.has_data && matches!(rest, b"" | b"\n" | b"\r" | b"\r\n");
            return value_of(first, b"data")
                .filter(|_| is_last)
                .map(|payload| LastPayload {
                    line: Line::Data,
                    payload,
                    size: payload.len() + usize::from(!rest.is_empty()),
                    open_line: rest.is_empty().then_some(0),
                });
        }
        let is_emitted = !rest.is_empty() && self.is_alone() && ends_document(first);
        if !begins_stray(first) || is_emitted || memchr(b'\r', text).is_some() {
            return None;
        }
        let mut start = 0;
        for end in memchr_iter(b'\n', text) {
            if !is_stray_line(text.get(start..end)?) {
                return None;
            }
            start = end + 1;
        }
        let last = text.get(start..)?;
        // The name of a field may have begun in the last line.
        if !last.is_empty() && (begins_name(last) || !is_stray_line(last)) {
            return None;
        }
        Some(LastPayload {
            line: Line::Stray,
            payload: text.strip_suffix(b"\n").unwrap_or(text),
            size: text.len(),
            open_line: (!last.is_empty()).then_some(start),
        })
    }

    /// Returns the fault that the next bytes would cause, if any, without consuming them.
    pub(crate) fn probe<'b>(&self, next: impl Iterator<Item = &'b [u8]>) -> Result<(), Fault> {
        let mut pieces = next.flat_map(|bytes| bytes.chunks(PROBE)).peekable();
        if pieces.peek().is_none() {
            return Ok(()); // a copy of the framer would also copy the open event
        }
        let mut framer = self.clone();
        for piece in pieces {
            framer.feed(piece, &mut |_: Item<'_>| Ok(()))?;
            framer.forget();
        }
        Ok(())
    }

    /// Drops the bytes of the open event, but keeps their number and the kind of the last line.
    fn forget(&mut self) {
        give_back(&mut self.data);
        if is_blank(self.head.first()) {
            self.head.truncate(1);
        }
        if self.has_stray {
            give_back(&mut self.seldom.stray);
        }
    }

    /// Drops the bytes of the open event except the first ones of each payload, which an error may show.
    pub(crate) fn shorten(&mut self) {
        let data = shortened(&self.data);
        let stray = self.has_stray.then(|| shortened(&self.seldom.stray));
        self.forget();
        self.data = data;
        if let Some(stray) = stray {
            self.seldom.stray = stray;
        }
    }

    /// Consumes those complete events at the start of the input that `on` recognizes. Consumes no event while one is
    /// open.
    pub(crate) fn take_whole<R: Receiver>(
        &mut self,
        input: &[u8],
        on: &mut R,
    ) -> Result<WholeEvents, Fault> {
        let inside = self.line != Line::None || usize::from(self.bom) < BOM.len();
        if inside || !self.is_clear() {
            return Ok(WholeEvents::default());
        }
        let room = input.get(..self.max_event).unwrap_or(input);
        let taken = on.take_whole_events(room, self.offset, self.ordinal)?;
        if taken.events > 0 {
            self.after_cr = false;
            self.keep_tail(input.get(..taken.bytes).unwrap_or_default());
            self.offset += taken.bytes as u64;
            self.ordinal += taken.events as u64;
        }
        Ok(taken)
    }
}
