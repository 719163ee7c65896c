//! Tracks code in Markdown text: fences and inline code.
//!
//! A fence that is indented by four or more columns is a fence inside a list and indented code elsewhere. Both
//! interpretations are tracked.

use crate::text_calls::reading::is_blank;

/// Minimum number of backticks or tildes in a fence.
pub(crate) const FENCE: usize = 3;
/// Minimum number of columns by which a line of code is indented.
pub(crate) const CODE_INDENT: usize = 4;
/// Number of characters at the start of a line that determine the line's kind.
const HEAD: usize = 256;

/// A code fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fence {
    mark: u8,
    length: usize,
    indent: usize,
}

/// Fences and inline code in the text read so far, and the start of the current line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Code {
    /// The open fence under each interpretation. The first interpretation allows any indentation; the second allows
    /// fewer than four columns.
    fences: [Option<Fence>; 2],
    /// Length of the backtick run that opened the inline code; 0 outside inline code.
    pub run: usize,
    // The current line.
    /// The start of the line.
    pub head: String,
    /// True if `head` has `HEAD` characters, so that the line may be longer.
    is_cut: bool,
    /// A run of backticks or tildes that is a fence, unless the line contains another backtick.
    candidate: Option<Fence>,
}

impl Code {
    /// Returns true if a fence is open under both interpretations, so that nothing on the line has another meaning.
    pub fn is_fenced(&self) -> bool {
        self.fences.iter().all(Option::is_some)
    }

    /// Returns true if the current position may be code.
    pub fn is_code(&self) -> bool {
        self.fences.iter().any(Option::is_some) || self.is_inline()
    }

    /// Returns true if the current position is in inline code, or on a line that begins a fence.
    pub fn is_inline(&self) -> bool {
        self.candidate.is_some() || self.run > 0
    }

    /// Returns true if the line begins a fence, unless it contains another backtick.
    pub fn may_begin_fence(&self) -> bool {
        self.candidate.is_some()
    }

    /// Records text at the start of the line.
    pub fn note(&mut self, text: &str) {
        if self.head.len() + text.len() < HEAD {
            self.head.push_str(text);
        } else if !self.is_cut {
            let length = self.head.chars().count();
            self.head.extend(text.chars().take(HEAD - length));
            self.is_cut = self.head.chars().count() == HEAD;
        }
    }

    /// Reads a run of backticks. The run is a fence if it begins its line and is the line's only run; if not, it is
    /// inline code. `is_first`: only white space precedes the run on its line.
    pub fn ticks(&mut self, length: usize, is_first: bool) {
        if is_first && length >= FENCE {
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
        }
    }

    /// Reads a run of at least three tildes.
    pub fn tildes(&mut self, length: usize, is_first: bool) {
        if is_first {
            self.candidate = Some(self.fence(b'~', length));
        }
    }

    fn fence(&self, mark: u8, length: usize) -> Fence {
        let (indent, _) = split_indent(&self.head);
        Fence {
            mark,
            length,
            indent,
        }
    }

    /// Ends the line. Returns true if a fence begins, so that inline code does not continue.
    pub fn end_line(&mut self) -> bool {
        let mut begins = false;
        if self.candidate.is_none() && self.fences.iter().all(Option::is_none) {
            return begins;
        }
        let [loose, strict] = self.fences;
        let loose_closes = loose.is_some_and(|fence| self.closes(fence));
        let strict_closes = match strict {
            strict if strict == loose => loose_closes,
            strict => strict.is_some_and(|fence| self.closes(fence)),
        };
        for (strict, fence, closes) in [(false, loose, loose_closes), (true, strict, strict_closes)]
        {
            let next = match fence {
                Some(_) if closes => None,
                Some(fence) => Some(fence),
                None => self
                    .candidate
                    .filter(|candidate| !strict || candidate.indent < CODE_INDENT),
            };
            begins |= fence.is_none() && next.is_some();
            if let Some(slot) = self.fences.get_mut(usize::from(strict)) {
                *slot = next;
            }
        }
        begins
    }

    pub fn begin_line(&mut self) {
        self.head.clear();
        self.is_cut = false;
        self.candidate = None;
    }

    fn closes(&self, fence: Fence) -> bool {
        let content = self.head.trim_start_matches(is_blank);
        if self.is_cut || !content.starts_with(char::from(fence.mark)) {
            return false;
        }
        let (indent, _) = split_indent(&self.head);
        let content = content.trim_end_matches(is_blank);
        let is_only = content.bytes().all(|byte| byte == fence.mark);
        is_only && content.len() >= fence.length && indent < fence.indent + CODE_INDENT
    }
}

/// Returns a line's indentation in columns, and the line's text.
pub(crate) fn split_indent(line: &str) -> (usize, &str) {
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
