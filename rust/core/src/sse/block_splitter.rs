//! Splits an event stream into blocks. A block ends with a blank line, and may contain no event.
//!
//! A comment line before the first field of an event is a separate block, so that it can be forwarded immediately. The
//! splitter handles line endings (LF, CR, CRLF), comments, the field names that it needs, and a byte order mark at the
//! start of the stream. The splitter does not apply other SSE rules. The result does not depend on how the input is
//! split. If a CRLF ends a block, its LF belongs to that block even if the LF arrives later.

use memchr::memchr2;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// The position at which a piece ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PiecePosition {
    Inside,
    /// The piece ends within a block, after a payload that can be emitted before the block ends.
    Ready,
    /// The piece ends a block.
    End,
    /// The piece is the LF of the CRLF that ended the previous block.
    LineEnd,
}

/// The kinds of line that the splitter distinguishes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Line {
    /// All bytes of the line that have arrived are blanks.
    #[default]
    Blank,
    Comment,
    /// The line may have the field `data`.
    Data,
    /// The line begins like a payload. The last byte of the line determines whether the line is a payload.
    Payload,
    Other,
}

/// Whether a payload of the block can be emitted before the block ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Early {
    /// A payload on the next line can be emitted, because no earlier line of the block has data, and all earlier
    /// payloads were complete.
    #[default]
    Payload,
    Nothing,
}

/// The payload lines of a block that a further line may be joined with.
#[derive(Clone, Copy, Debug, Default)]
struct PayloadLines {
    data: bool,
    /// True if the block has an unfinished document outside any SSE field.
    document: bool,
    /// True if the last line ended in CR or CRLF.
    after_cr: bool,
    /// True if the parser copies the lines to join them.
    joined: bool,
}

impl PayloadLines {
    /// Returns true if a line that begins with this byte is joined with earlier lines in a copy.
    ///
    /// The lines of a document are a slice of the input as long as each ends in LF and no field or comment is between
    /// them. No line of a JSON document begins like a field.
    fn joins(self, first: u8) -> bool {
        match first {
            b'\n' | b'\r' => false,
            b'd' => self.data || self.document,
            b':' | b'e' | b'i' | b'r' => self.document,
            _ => self.document && self.after_cr,
        }
    }
}

/// Splits one stream into blocks.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    /// Number of bytes of the byte order mark seen so far; 3 once the start of the stream has been checked.
    mark: usize,
    /// True if the last line has bytes but no line ending yet.
    in_line: bool,
    line: Line,
    /// True if the block has a line other than a comment.
    begun: bool,
    early: Early,
    payload_lines: PayloadLines,
    /// Last byte of the current line.
    last: u8,
    after_cr: bool,
    /// True if the last byte ended a block.
    ended: bool,
}

impl Splitter {
    /// Records that complete blocks were consumed elsewhere. These blocks must not end in CR.
    #[inline]
    pub(crate) fn skip(&mut self) {
        self.mark = BOM.len();
        self.after_cr = false;
        self.ended = true;
    }

    /// Returns true if the parser joins the payload lines of the last piece, and those before it, in a copy.
    pub(crate) fn is_joined(&self) -> bool {
        self.payload_lines.joined
    }

    /// Returns the next piece of the bytes, or `None` if there are no bytes. A piece never extends beyond the end of a
    /// block, or into the first line for which `is_joined` is true.
    pub(crate) fn next<'d>(&mut self, data: &mut &'d [u8]) -> Option<(&'d [u8], PiecePosition)> {
        let bytes = *data;
        if bytes.is_empty() {
            return None;
        }
        let after_cr = std::mem::take(&mut self.after_cr);
        if after_cr && bytes.first() == Some(&b'\n') {
            let position = if self.ended {
                PiecePosition::LineEnd
            } else {
                PiecePosition::Inside
            };
            return Some((cut(data, 1), position));
        }
        if self.ended {
            (self.begun, self.early) = (false, Early::Payload);
            self.payload_lines = PayloadLines::default();
        }
        let mut at = self.skip_mark(bytes);
        while let Some(remaining) = bytes.get(at..) {
            self.look(remaining);
            if let Some(&first) = remaining.first()
                && !self.in_line
                && !self.payload_lines.joined
                && self.payload_lines.joins(first)
            {
                if at > 0 {
                    self.ended = false;
                    return Some((cut(data, at), PiecePosition::Inside));
                }
                self.payload_lines.joined = true;
            }
            let Some(found) = memchr2(b'\n', b'\r', remaining) else {
                break;
            };
            let is_blank = found == 0 && !self.in_line;
            self.note_last(remaining.get(..found).unwrap_or_default());
            at += found + 1;
            self.in_line = false;
            let is_cr = bytes.get(at - 1) == Some(&b'\r');
            self.payload_lines.after_cr = is_cr;
            if is_cr && bytes.get(at) == Some(&b'\n') {
                at += 1;
            } else {
                self.after_cr = is_cr && at == bytes.len();
            }
            let position = if is_blank {
                PiecePosition::End
            } else {
                self.end_line()
            };
            if position != PiecePosition::Inside {
                // Return each payload separately, even if one read contains several payloads.
                self.ended = position == PiecePosition::End;
                return Some((cut(data, at), position));
            }
        }
        self.note_last(bytes.get(at..).unwrap_or_default());
        self.in_line |= at < bytes.len();
        self.ended = false;
        Some((cut(data, bytes.len()), PiecePosition::Inside))
    }

    /// Returns the length of the byte order mark at the start of the stream, or of the mark's next piece. The line
    /// after the mark begins like any other line. An incomplete mark, like a mark elsewhere, is the start of an unknown
    /// line.
    fn skip_mark(&mut self, bytes: &[u8]) -> usize {
        let Some(mark) = BOM.get(self.mark..).filter(|mark| !mark.is_empty()) else {
            return 0;
        };
        let length = mark
            .iter()
            .zip(bytes)
            .take_while(|(one, other)| one == other);
        let length = length.count();
        self.mark += length;
        if self.mark < BOM.len() && length < bytes.len() {
            if self.mark > 0 {
                (self.line, self.in_line) = (Line::Other, true);
            }
            self.mark = BOM.len();
        }
        length
    }

    /// Determines the kind of the line from these bytes, if it is not known yet.
    fn look(&mut self, remaining: &[u8]) {
        if self.line != Line::Blank {
            return;
        }
        let blanks = remaining
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t'));
        let blanks = blanks.count();
        self.line = match remaining.get(blanks) {
            None | Some(b'\n' | b'\r') => Line::Blank,
            Some(b':') if blanks == 0 && !self.in_line => Line::Comment,
            Some(b'd') if blanks == 0 && !self.in_line => Line::Data,
            Some(b'{' | b'[' | b'<') => Line::Payload,
            Some(_) => Line::Other,
        };
    }

    fn note_last(&mut self, piece: &[u8]) {
        self.last = piece.last().copied().unwrap_or(self.last);
    }

    /// Ends the current line, which is not blank. Returns the position of the piece that ends with this line.
    fn end_line(&mut self) -> PiecePosition {
        let line = std::mem::take(&mut self.line);
        if line == Line::Comment {
            // A comment before any other line of the block is a separate block.
            return if self.begun {
                PiecePosition::Inside
            } else {
                PiecePosition::End
            };
        }
        self.begun = true;
        self.payload_lines.data |= line == Line::Data;
        self.payload_lines.document |= line == Line::Payload;
        let is_whole = line == Line::Payload && matches!(self.last, b'}' | b']');
        if is_whole && self.early == Early::Payload {
            self.payload_lines.document = false;
            return PiecePosition::Ready;
        }
        if matches!(line, Line::Data | Line::Payload) {
            self.early = Early::Nothing;
        }
        PiecePosition::Inside
    }
}

fn cut<'d>(data: &mut &'d [u8], at: usize) -> &'d [u8] {
    let (piece, remaining) = data.split_at_checked(at).unwrap_or((data, &[]));
    *data = remaining;
    piece
}

/// Inserts bytes at the start of a block. In the first block of a stream, `opening` is inserted after the byte order
/// mark.
pub(crate) fn put_opening(block: &mut Vec<u8>, opening: &[u8], is_first: bool) {
    let at = if is_first && block.starts_with(BOM) {
        BOM.len()
    } else {
        0
    };
    block.splice(at..at, opening.iter().copied());
}

/// Replaces the event names in a block with the given name. The block must end in a blank line and have other lines.
pub(crate) fn put_name(block: &mut Vec<u8>, name: &str) {
    let sent = std::mem::take(block);
    let (lines, blank) = sent.split_at(sent.len() - end(&sent));
    let (_, end) = lines.split_at(lines.len() - end(lines));
    let mut remaining = lines;
    while let Some(found) = memchr2(b'\n', b'\r', remaining) {
        let (line, following) = remaining.split_at(found);
        let is_name = line.strip_prefix(b"event");
        if is_name.is_none_or(|value| !matches!(value.first(), None | Some(b':'))) {
            block.extend_from_slice(line);
            block.extend_from_slice(following.get(..begin(following)).unwrap_or_default());
        }
        remaining = following.get(begin(following)..).unwrap_or_default();
    }
    for piece in [b"event: ", name.as_bytes(), end, blank] {
        block.extend_from_slice(piece);
    }
}

/// The comments that were removed from a block.
#[derive(Debug)]
pub(crate) struct DroppedComments {
    /// Size of the block before the comments were removed.
    pub(crate) size: usize,
    pub(crate) any: bool,
    /// True if the last line of the block was a comment.
    pub(crate) last: bool,
}

/// Removes the comments from a block.
pub(crate) fn drop_comments(block: &mut Vec<u8>) -> DroppedComments {
    let mut dropped = DroppedComments {
        size: block.len(),
        any: false,
        last: false,
    };
    let mut kept = Vec::new();
    let mut remaining = block.as_slice();
    while !remaining.is_empty() {
        let text = remaining
            .iter()
            .position(|byte| matches!(byte, b'\n' | b'\r'))
            .unwrap_or(remaining.len());
        let following = remaining.get(text..).unwrap_or_default();
        let length = (text + begin(following)).min(remaining.len());
        let (line, others) = remaining.split_at(length);
        dropped.last = line.starts_with(b":");
        if dropped.last {
            dropped.any = true;
        } else {
            kept.extend_from_slice(line);
        }
        remaining = others;
    }
    *block = kept;
    dropped
}

/// Returns true if the block has data, a retry time, or a name or id that is not blank.
pub(crate) fn has_fields(block: &[u8]) -> bool {
    let block = block.strip_prefix(b"\xef\xbb\xbf").unwrap_or(block);
    block
        .split(|byte| matches!(byte, b'\n' | b'\r'))
        .any(|line| {
            let colon = line.iter().position(|byte| *byte == b':');
            let (name, value) = line.split_at(colon.unwrap_or(line.len()));
            let is_blank = value
                .iter()
                .skip(1)
                .all(|byte| matches!(byte, b' ' | b'\t'));
            match name {
                b"data" | b"retry" => true,
                b"event" | b"id" => !is_blank,
                _ => false,
            }
        })
}

/// Returns the length of the line ending at the end of the bytes.
fn end(bytes: &[u8]) -> usize {
    1 + usize::from(bytes.ends_with(b"\r\n"))
}

/// Returns the length of the line ending at the start of the bytes.
fn begin(bytes: &[u8]) -> usize {
    1 + usize::from(bytes.starts_with(b"\r\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(pieces: &[&str]) -> Vec<String> {
        let mut splitter = Splitter::default();
        let mut all = vec![String::new()];
        for piece in pieces {
            let mut data = piece.as_bytes();
            while let Some((text, position)) = splitter.next(&mut data) {
                let text = std::str::from_utf8(text).unwrap();
                let end = all.len() - 1 - usize::from(position == PiecePosition::LineEnd);
                all[end].push_str(text);
                if position == PiecePosition::End {
                    all.push(String::new());
                }
            }
        }
        all
    }

    #[test]
    fn cut_anywhere() {
        for ends in ["\n", "\r", "\r\n"] {
            let body = format!("a{ends}b{ends}{ends}{ends}c{ends}{ends}d");
            let whole = blocks(&[&body]);
            assert_eq!(whole.len(), 4, "{whole:?}");
            for at in 0..=body.len() {
                let (head, tail) = body.split_at(at);
                assert_eq!(blocks(&[head, tail]), whole, "{at}");
            }
        }
    }

    #[test]
    fn comments_before_an_event_are_separate_blocks() {
        for ends in ["\n", "\r", "\r\n"] {
            let body = format!(": a{ends}:{ends}data: 1{ends}: b{ends}{ends}{ends} : c{ends}:");
            let whole = blocks(&[&body]);
            let wanted = [
                format!(": a{ends}"),
                format!(":{ends}"),
                format!("data: 1{ends}: b{ends}{ends}"),
                ends.to_owned(),
                format!(" : c{ends}:"),
            ];
            assert_eq!(whole, wanted);
            for at in 0..=body.len() {
                let (head, tail) = body.split_at(at);
                assert_eq!(blocks(&[head, tail]), whole, "{at}");
            }
        }
    }

    #[test]
    fn a_payload_is_ready_if_no_data_comes_before_it() {
        let ready = |pieces: &[&str]| {
            let mut splitter = Splitter::default();
            let mut ready = 0;
            for piece in pieces {
                let mut data = piece.as_bytes();
                while let Some((_, position)) = splitter.next(&mut data) {
                    ready += usize::from(position == PiecePosition::Ready);
                }
            }
            ready
        };
        for (pieces, number) in [
            (&["data: {}\n"][..], 0),
            (&["{}"], 0),
            (&["{\n1,\n"], 0),
            (&["  \n: {}\n"], 0),
            (&["{\n}\n"], 0),
            (&["data: x\n{}\n"], 0),
            (&["{}\n"], 1),
            (&[" ", "\t<", "]", "\n"], 1),
            (&["{}\r{\r{}", "\r\ny"], 1),
            (&["{}\n: x\n{}\n"], 2),
            (&["event: x\n{}\n"], 1),
            (&["data: x\n{}\n\n{}\n"], 1),
            (&["\u{feff}{}\n"], 1),
            (&["\u{feff}", "{}\n"], 1),
            (&["\u{feff}data: {}\n"], 0),
            (&["\u{feff}", "data: x\n{}\n"], 0),
            (&["{}\n\u{feff}{}\n"], 1),
            (&["{}\n\n\u{feff}{}\n"], 1),
            (&["\u{feff}\u{feff}{}\n{}\n"], 1),
            (&["event: x\n\u{feff}data: x\n{}\n"], 1),
        ] {
            assert_eq!(ready(pieces), number, "{pieces:?}");
        }
    }
}
