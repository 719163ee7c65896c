//! Determines where in Markdown text a call is allowed: not in fences, inline code, quotations, lists, diffs, or
//! tables.
//!
//! Blocks are skipped, so that a fence inside an argument is ignored. A fence that is indented by four or more columns
//! is a fence inside a list and indented code elsewhere. Both interpretations are tracked, and a call is allowed only
//! if neither has an open fence. If a position is ambiguous, no call is allowed there, because a call that remains text
//! is still readable.

use crate::text_calls::quotes::Quotes;
use crate::text_calls::quotes::is_quoting;
use crate::text_calls::reading::is_blank;
use crate::text_calls::words::Closer;
use crate::text_calls::words::FENCE;
use crate::text_calls::words::Mark;
use crate::text_calls::words::Words;
use crate::text_calls::words::find_ignoring_case;

/// Number of characters at the start of a line that determine the line's kind.
const HEAD: usize = 256;
/// Minimum number of columns by which a line of code is indented.
const CODE_INDENT: usize = 4;
/// Minimum number of columns by which a line that belongs to a list item is indented.
const ITEM_INDENT: usize = 2;
/// Line before each hunk of a context diff.
const CONTEXT_DIFF: &str = "***************";

/// Which markers are allowed at a position. `Nowhere`: no marker is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkerPosition {
    Nowhere,
    /// Every marker is allowed, because only whitespace, the end of reasoning, or a block precedes it on its line.
    Start,
    /// Only special tokens are allowed, because other text precedes them on the line.
    AfterProse,
}

/// What precedes a position on its line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Before {
    /// At most whitespace precedes the position.
    #[default]
    Nothing,
    /// A block or the end of reasoning precedes the position, followed by at most whitespace.
    Block,
    Prose,
}

/// An open code fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fence {
    mark: u8,
    length: usize,
    indent: usize,
}

/// Markdown state of the text read so far.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Offset up to which the text has been read.
    at: usize,
    /// The open fence under each interpretation. The first interpretation allows any indentation; the second allows
    /// fewer than four columns.
    fences: [Option<Fence>; 2],
    /// The literal that ends the open reasoning or quoting element.
    closer: Option<Closer>,
    /// Length of the backtick run that opened the inline code; 0 outside inline code.
    run: usize,
    /// Closer of the first opener in the inline code. The opener counts if no backticks end the code.
    code_closer: Option<Closer>,
    in_list: bool,
    in_diff: bool,
    in_quotation: bool,
    /// True if the text so far consists only of reasoning tags.
    pub is_empty: bool,
    /// Number of lines that have ended.
    pub line: usize,
    // The current line.
    /// Offset of the line's start, or of the end of the last skipped range in the line.
    line_start: usize,
    head: String,
    head_length: usize,
    before: Before,
    /// A run of backticks or tildes that is a fence, unless the line contains another backtick.
    candidate: Option<Fence>,
    has_pipe: bool,
    last: Option<char>,
    /// Quotation marks and emphasis on the line, read from `line_start` up to the last marker that was examined.
    quotes: Quotes,
}

impl Default for Layout {
    fn default() -> Layout {
        Layout {
            at: 0,
            fences: [None, None],
            closer: None,
            run: 0,
            code_closer: None,
            in_list: false,
            in_diff: false,
            in_quotation: false,
            is_empty: true,
            line: 0,
            line_start: 0,
            head: String::new(),
            head_length: 0,
            before: Before::Nothing,
            candidate: None,
            has_pipe: false,
            last: None,
            quotes: Quotes::default(),
        }
    }
}

impl Layout {
    fn begin_line(&mut self) {
        self.head.clear();
        self.head_length = 0;
        self.before = Before::Nothing;
        self.candidate = None;
        self.has_pipe = false;
        self.last = None;
    }

    /// Reads the text up to a position, and returns which markers are allowed there.
    pub fn marker_position(
        &mut self,
        text: &str,
        position: usize,
        words: &Words,
    ) -> MarkerPosition {
        self.advance(text, position, words);
        self.settle(text, position, words);
        let tail = text.get(self.at..position).unwrap_or_default();
        let is_fenced = self.fences.iter().any(Option::is_some) || self.candidate.is_some();
        if is_fenced || self.closer.is_some() || self.run > 0 {
            return MarkerPosition::Nowhere;
        }
        let before = if tail.is_empty() {
            self.before
        } else {
            Before::Prose
        };
        if before == Before::Block {
            return MarkerPosition::Start;
        }
        if self.is_quoting_line() {
            return MarkerPosition::Nowhere;
        }
        if before == Before::Nothing {
            return MarkerPosition::Start;
        }
        let last = tail.chars().next_back().or(self.last);
        let is_quoted =
            last.is_none_or(|last| is_quoting(last) && !self.closes_quotes(text, position));
        if self.has_pipe || is_quoted {
            return MarkerPosition::Nowhere;
        }
        MarkerPosition::AfterProse
    }

    /// Reads the text before a position if the character at the position determines how it is read.
    fn settle(&mut self, text: &str, position: usize, words: &Words) {
        let tail = text.get(self.at..position).unwrap_or_default();
        let next = text.get(position..).and_then(|text| text.chars().next());
        let is_settled = |next| self.closer.is_none() && words.is_settled_by(tail, next);
        if !tail.is_empty() && next.is_some_and(is_settled) {
            self.piece(tail, false, words);
            self.at = position;
        }
    }

    /// Returns true if the text before a position ends with the last closing mark of all quotations and emphasis that
    /// were opened on the line.
    fn closes_quotes(&mut self, text: &str, position: usize) -> bool {
        let line = text.get(self.line_start..position).unwrap_or_default();
        let next = text.get(position..).and_then(|text| text.chars().next());
        next.is_some_and(|next| self.quotes.closes(line, next))
    }

    /// Returns true if a block ended on this line and only whitespace follows up to the position.
    pub fn is_line_open(&self, text: &str, position: usize) -> bool {
        self.before == Before::Block && text.get(self.at..position).is_none_or(str::is_empty)
    }

    /// Records the end of a block that may become a call, and skips the block.
    pub fn end_block(&mut self, text: &str, start: usize, end: usize) {
        self.accept_as_text(text, start);
        self.skip_to(end);
        self.before = Before::Block;
        self.is_empty = false;
    }

    /// Records that a block stays text, or that text follows a block, and skips the range.
    pub fn end_refused(&mut self, text: &str, start: usize, end: usize) {
        self.accept_as_text(text, start);
        self.skip_to(end);
        self.is_empty = false;
        self.before = Before::Prose;
        self.last = Some('>');
    }

    /// Reads up to `start` and skips the text from there to `end`.
    pub fn skip(&mut self, text: &str, start: usize, end: usize, words: &Words) {
        self.advance(text, start, words);
        self.skip_to(end);
    }

    fn skip_to(&mut self, end: usize) {
        self.at = end;
        self.line_start = end;
        self.quotes.restart(self.run);
    }

    /// Starts another part, which also starts a new line.
    pub fn start_part(&mut self, text: &str, words: &Words) {
        self.advance(text, text.len(), words);
        self.accept_as_text(text, text.len());
        if !self.head.is_empty() || self.before != Before::Nothing {
            self.end_line(text.get(self.line_start..).unwrap_or_default(), words);
        }
        self.skip_to(0);
    }

    /// Treats the unread text up to `end` as ordinary text, although it might have begun a tag.
    fn accept_as_text(&mut self, text: &str, end: usize) {
        self.note_text(text.get(self.at..end).unwrap_or_default());
        self.at = end;
    }

    /// Returns true if the line is a quotation, a list item, a table row, code, a numbered line, or in a diff.
    fn is_quoting_line(&self) -> bool {
        let (indent, remaining) = split_indent(&self.head);
        let remaining = remaining.trim_start_matches(is_blank);
        indent >= CODE_INDENT
            || self.in_quotation
            || (self.in_list && indent >= ITEM_INDENT)
            || (self.in_diff && !self.head.is_empty())
            || remaining.starts_with(['>', '|', '+', '-'])
            || ["@@", "< ", "<\t", "! ", "!\t"]
                .iter()
                .any(|start| remaining.starts_with(start))
            || is_list_item(remaining)
            || is_numbered(remaining)
    }

    /// Reads up to `end`, or up to text that may be the beginning of a tag.
    pub fn advance(&mut self, text: &str, end: usize, words: &Words) {
        while let Some(remaining) = text.get(self.at..end) {
            let Some(length) = memchr::memchr(b'\n', remaining.as_bytes()) else {
                self.at += self.piece(remaining, true, words);
                return;
            };
            self.piece(remaining.get(..length).unwrap_or_default(), false, words);
            let line = text.get(self.line_start..self.at + length);
            self.end_line(line.unwrap_or_default(), words);
            self.skip_to(self.at + length + 1);
        }
    }

    /// Reads a piece of one line. `is_open`: the line continues after the piece.
    ///
    /// Returns the number of bytes read. The rest may be the beginning of a tag.
    fn piece(&mut self, piece: &str, is_open: bool, words: &Words) -> usize {
        if self.fences.iter().all(Option::is_some) {
            self.note_head(piece);
            return piece.len();
        }
        let mut at = 0;
        loop {
            let end = if is_open {
                words.settled(piece, at, self.closer.as_ref())
            } else {
                piece.len()
            };
            let text = piece.get(at..end).unwrap_or_default();
            if let Some(closer) = &self.closer {
                let Some(found) = find_ignoring_case(text, &closer.text) else {
                    return end;
                };
                at += found + closer.text.len();
                self.close();
                continue;
            }
            let Some((found, mark)) = words.next_mark(piece, at, end) else {
                self.note_text(text);
                return end;
            };
            self.note_text(piece.get(at..found).unwrap_or_default());
            at = found + mark.length();
            self.mark(&mark, piece.get(found..at).unwrap_or_default());
        }
    }

    fn mark(&mut self, mark: &Mark<'_>, text: &str) {
        match mark {
            Mark::Ticks(length) => self.ticks(*length),
            Mark::Tildes(length) => {
                if self.before == Before::Nothing {
                    self.candidate = Some(self.fence(b'~', *length));
                }
            }
            Mark::Pipe => self.has_pipe = true,
            Mark::Tag(tag) => {
                let is_code = self.candidate.is_some() || self.run > 0;
                match tag.closer() {
                    Some(closer) if is_code => {
                        self.code_closer.get_or_insert_with(|| closer.clone());
                    }
                    None if is_code => {}
                    Some(closer) => {
                        self.closer = Some(closer.clone());
                        if closer.is_reasoning {
                            return;
                        }
                    }
                    None => return self.close_reasoning(text),
                }
            }
        }
        self.note_text(text);
    }

    fn fence(&self, mark: u8, length: usize) -> Fence {
        let (indent, _) = split_indent(&self.head);
        Fence {
            mark,
            length,
            indent,
        }
    }

    /// Reads a run of backticks. The run is a fence if it begins its line and is the line's only run; if not, it is
    /// inline code.
    fn ticks(&mut self, length: usize) {
        if self.before == Before::Nothing && length >= FENCE {
            self.candidate = Some(self.fence(b'`', length));
            return;
        }
        match self.candidate {
            Some(candidate) if candidate.mark == b'~' => return,
            Some(candidate) => {
                self.run = candidate.length;
                self.candidate = None;
            }
            None => {}
        }
        if self.run == 0 {
            self.run = length;
        } else if self.run == length {
            self.run = 0;
            self.code_closer = None;
        }
    }

    /// Treats an open run of backticks as text, because inline code cannot continue here.
    fn leave_code(&mut self) {
        let closer = self.code_closer.take();
        if self.run > 0 {
            self.closer = closer;
        }
        self.run = 0;
    }

    /// Closes the reasoning or the quoting element.
    fn close(&mut self) {
        let Some(closer) = self.closer.take() else {
            return;
        };
        if closer.is_reasoning {
            self.close_reasoning(&closer.text);
        } else {
            self.note_text(&closer.text);
        }
    }

    fn close_reasoning(&mut self, text: &str) {
        if self.is_quoting_line() {
            self.note_text(text);
        } else {
            self.begin_line();
            self.before = Before::Block;
        }
    }
}

impl Layout {
    fn note_text(&mut self, text: &str) {
        let Some(last) = text.chars().next_back() else {
            return;
        };
        self.note_head(text);
        if !text.chars().all(is_blank) {
            self.before = Before::Prose;
            self.is_empty = false;
        }
        self.last = Some(last);
    }

    fn note_head(&mut self, text: &str) {
        let is_head = self.head_length < HEAD;
        if is_head && text.len() <= HEAD - self.head_length {
            self.head.push_str(text);
            self.head_length += text.chars().count();
        } else if is_head {
            let more = text.chars().take(HEAD - self.head_length);
            let before = self.head.len();
            self.head.extend(more);
            let more = self.head.get(before..).unwrap_or_default();
            self.head_length += more.chars().count();
        }
    }

    fn end_line(&mut self, line: &str, words: &Words) {
        let candidate = self.candidate.filter(|_| self.closer.is_none());
        let is_fenced = self.fences.iter().all(Option::is_some);
        if !is_fenced && self.closer.is_none() && candidate.is_none() {
            self.note_line(line, words);
        }
        let mut begins = false;
        for strict in [false, true] {
            let fence = self.fences.get(usize::from(strict)).copied().flatten();
            let next = match fence {
                Some(fence) if self.closes(fence) => None,
                Some(fence) => Some(fence),
                None => candidate.filter(|candidate| !strict || candidate.indent < CODE_INDENT),
            };
            begins |= fence.is_none() && next.is_some();
            if let Some(slot) = self.fences.get_mut(usize::from(strict)) {
                *slot = next;
            }
        }
        if begins {
            // Inline code does not continue after a fence.
            self.leave_code();
        }
        self.line += 1;
        self.begin_line();
    }

    fn closes(&self, fence: Fence) -> bool {
        let (indent, _) = split_indent(&self.head);
        let content = self.head.trim_matches(is_blank);
        let is_only = content.bytes().all(|byte| byte == fence.mark);
        let is_whole = self.head_length < HEAD && content.len() >= fence.length;
        is_whole && is_only && indent < fence.indent + CODE_INDENT
    }

    /// Updates the state of lists, quotations and diffs after a line.
    fn note_line(&mut self, line: &str, words: &Words) {
        let content = self.head.trim_matches(is_blank);
        if content.is_empty() {
            if self.before == Before::Nothing {
                // Inline code does not continue after a blank line.
                self.leave_code();
                self.in_quotation = false;
            }
            return;
        }
        // In Markdown, lines after a quotation or a list item belong to it until a blank line. A list item or another
        // quoting line that contains a marker quotes a call, and the following lines may be the rest of the quotation
        // or its next call. A call that remains text is still readable, but a quoted call cannot be undone once it has
        // been run. Therefore, no call is allowed before the blank line. After list items without a marker, a call is
        // allowed, because models often list their steps just before they make a call. A line that ends in a marker
        // quotes a block whose content is on the following lines.
        self.in_quotation = self.in_quotation
            || content.starts_with('>')
            || words.ends_in_marker(line)
            || (self.is_quoting_line() && words.has_marker(line));
        let (indent, _) = split_indent(&self.head);
        if is_list_item(content) {
            self.in_list = true;
        } else if indent == 0 {
            self.in_list = false;
        }
        let starts = |words: &[&str]| words.iter().any(|word| self.head.starts_with(word));
        if self.head.starts_with(['@', 'd', '-', '+', '*'])
            && starts(&["@@", "diff --git ", "--- ", "+++ ", "*** ", CONTEXT_DIFF])
        {
            self.in_diff = true;
        } else if self.in_diff {
            self.in_diff = starts(&[" ", "+", "-", "!", "@", "\\", "index ", "diff "]);
        }
    }
}

/// Returns a line's indentation in columns, and the line's text.
fn split_indent(line: &str) -> (usize, &str) {
    let remaining = line.trim_start_matches([' ', '\t']);
    let before = line.len() - remaining.len();
    let columns = line
        .bytes()
        .take(before)
        .fold(0, |columns, byte| match byte {
            b'\t' => columns + CODE_INDENT - columns % CODE_INDENT,
            _ => columns + 1,
        });
    (columns, remaining)
}

fn without_digits(text: &str) -> Option<&str> {
    let remaining = text.trim_start_matches(|c: char| c.is_ascii_digit());
    (remaining.len() < text.len()).then_some(remaining)
}

fn is_list_item(remaining: &str) -> bool {
    let after = remaining.strip_prefix(['-', '*', '+', '•', '‣', '◦']);
    let after = after.or_else(|| without_digits(remaining)?.strip_prefix(['.', ')']));
    after.is_some_and(|after| after.is_empty() || after.starts_with([' ', '\t', '\r']))
}

/// Returns true if the line begins with a line number.
fn is_numbered(remaining: &str) -> bool {
    let is_gap = |c: char| matches!(c, ' ' | '\r');
    without_digits(remaining).is_some_and(|after| {
        after.starts_with(['.', ')', ':', '|', '\t', '→'])
            || after.chars().take(2).filter(|c| is_gap(*c)).count() == 2
    })
}
