//! Where a call may stand: the lines, fences, inline code, quoting elements and reasoning tags before a place of the text.
//!
//! Blocks are passed over, so that a fence in an argument hides nothing.

use crate::text_calls::family::Tier;
use crate::text_calls::reading::is_blank;

/// Characters of a line by which its kind is known.
const HEAD: usize = 40;
/// A line that is indented so far is code.
const CODE_INDENT: usize = 4;
/// The least indent of the lines that belong to a list item.
const ITEM_INDENT: usize = 2;

/// The words of the table that change what text means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    /// What opens reasoning in a text, and what closes it.
    pub reasoning: Vec<[String; 2]>,
    /// Elements that quote.
    pub quoting: Vec<String>,
}

/// Fenced code: its character and the length of its fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fence {
    mark: u8,
    length: usize,
}

/// What the text so far leaves open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// Of the line, and of what was looked at in it.
    line: usize,
    at: usize,
    fence: Option<Fence>,
    /// Backticks that opened inline code; 0 outside of it.
    code: usize,
    /// The place of the open element and of the open reasoning in their lists.
    element: Option<usize>,
    reasoning: Option<usize>,
    in_diff: bool,
    in_item: bool,
    /// What counts as the line begins behind a block.
    is_behind_block: bool,
    /// The line has text before the place, other than a reasoning closer or a block.
    has_prose: bool,
}

impl Layout {
    /// Another part begins, and with it a line.
    pub fn start_part(&mut self, text: &str, words: &Words) {
        self.advance(text, text.len(), words);
        self.end_line(text, text.len());
        self.line = 0;
        self.at = 0;
    }

    /// A block ends there: nothing in it counts.
    pub fn pass_block(&mut self, end: usize) {
        self.line = end;
        self.at = end;
        self.is_behind_block = true;
        self.has_prose = false;
    }

    /// Whether a marker may stand at that place.
    pub fn permits(&mut self, text: &str, place: usize, tier: Tier, words: &Words) -> bool {
        self.advance(text, place, words);
        let is_quoted = self.fence.is_some() || self.code > 0 || self.element.is_some();
        if is_quoted || self.reasoning.is_some() {
            return false;
        }
        let head = self.head(text, place);
        let (indent, rest) = split_indent(head);
        let is_diff = self.in_diff && head.starts_with([' ', '+', '-', '\\']);
        let is_item = is_list_item(rest) || (self.in_item && indent >= ITEM_INDENT);
        let is_code = indent >= CODE_INDENT && !self.is_behind_block;
        if is_code || is_diff || is_item {
            return false;
        }
        if !self.has_prose {
            return true;
        }
        if tier == Tier::Tag || is_quoted_line(rest) {
            return false;
        }
        let before = text.get(..place).and_then(|text| text.chars().next_back());
        !before.is_some_and(|c| {
            matches!(
                c,
                '"' | '\'' | '`' | '“' | '”' | '„' | '‘' | '’' | '«' | '‹' | '(' | '[' | '{'
            )
        })
    }

    /// The place is in prose on its line. Only asked right after `permits`.
    pub fn follows_prose(&self) -> bool {
        self.has_prose
    }

    fn head<'t>(&self, text: &'t str, end: usize) -> &'t str {
        let line = text.get(self.line..end).unwrap_or_default();
        let cut = line
            .char_indices()
            .nth(HEAD)
            .map_or(line.len(), |(at, _)| at);
        line.get(..cut).unwrap_or_default()
    }

    fn advance(&mut self, text: &str, end: usize, words: &Words) {
        let bytes = text.as_bytes();
        while self.at < end {
            let byte = bytes.get(self.at).copied().unwrap_or_default();
            match byte {
                b'\n' => {
                    self.end_line(text, self.at);
                    self.at += 1;
                    self.line = self.at;
                    continue;
                }
                b'`' => {
                    let rest = bytes.get(self.at..).unwrap_or_default();
                    let run = rest.iter().take_while(|byte| **byte == b'`').count();
                    self.has_prose = true;
                    if self.fence.is_none() {
                        self.code = match self.code {
                            0 => run,
                            open if open == run => 0,
                            open => open,
                        };
                    }
                    self.at += run;
                    continue;
                }
                b'<' | b'[' if self.fence.is_none() && self.code == 0 => {
                    if let Some(length) = self.tag(text.get(self.at..).unwrap_or_default(), words) {
                        self.at += length;
                        continue;
                    }
                    self.has_prose = true;
                }
                b'-' if self.element == Some(words.quoting.len()) => {
                    if text
                        .get(self.at..)
                        .is_some_and(|rest| rest.starts_with("-->"))
                    {
                        self.element = None;
                    }
                    self.has_prose = true;
                }
                b' ' | b'\t' | b'\r' => {}
                _ => self.has_prose = true,
            }
            self.at += 1;
        }
    }

    /// A reasoning tag or a quoting element with which the text begins: how long what was read of it is.
    fn tag(&mut self, rest: &str, words: &Words) -> Option<usize> {
        for (place, [open, close]) in words.reasoning.iter().enumerate() {
            if rest.starts_with(close.as_str()) && self.reasoning.is_none_or(|open| open == place) {
                self.reasoning = None;
                self.has_prose = false;
                return Some(close.len());
            }
            if self.reasoning.is_none() && rest.starts_with(open.as_str()) {
                self.reasoning = Some(place);
                self.has_prose = true;
                return Some(open.len());
            }
        }
        // A comment is the element behind the last of the list.
        let comment = words.quoting.len();
        if self.element.is_none() && rest.starts_with("<!--") {
            self.element = Some(comment);
            self.has_prose = true;
            return Some(4);
        }
        let (name, closes) = match rest.strip_prefix("</") {
            Some(name) => (name, true),
            None => (rest.strip_prefix('<')?, false),
        };
        let is = |word: &String| {
            let (head, tail) = name.split_at_checked(word.len()).unwrap_or_default();
            let ends = tail.starts_with(|c: char| is_blank(c) || matches!(c, '>' | '/'));
            ends && head.eq_ignore_ascii_case(word)
        };
        let place = words.quoting.iter().position(is)?;
        match self.element {
            None if !closes => self.element = Some(place),
            Some(open) if closes && open == place => self.element = None,
            _ => {}
        }
        self.has_prose = true;
        Some(1)
    }

    /// The line ends there: what it opens or closes.
    fn end_line(&mut self, text: &str, end: usize) {
        let line = text.get(self.line..end).unwrap_or_default();
        self.has_prose = false;
        self.is_behind_block = false;
        let (indent, rest) = split_indent(line);
        let mark = rest
            .bytes()
            .next()
            .filter(|mark| matches!(mark, b'`' | b'~'));
        let length = rest.bytes().take_while(|byte| Some(*byte) == mark).count();
        let info = rest.get(length..).unwrap_or_default();
        if let Some(fence) = self.fence {
            let closes = mark == Some(fence.mark) && length >= fence.length;
            if closes && info.chars().all(is_blank) {
                self.fence = None;
            }
            return;
        }
        if let Some(mark) =
            mark.filter(|mark| length >= 3 && !(*mark == b'`' && info.contains('`')))
        {
            self.fence = Some(Fence { mark, length });
            self.code = 0;
            return;
        }
        if rest.chars().all(is_blank) {
            self.code = 0;
            return;
        }
        self.in_item = is_list_item(rest) || (self.in_item && indent >= ITEM_INDENT);
        let starts_diff = ["@@ ", "diff --git ", "--- ", "+++ "];
        let goes_on = line.starts_with([' ', '+', '-', '\\', '@']) || line.starts_with("index ");
        self.in_diff =
            starts_diff.iter().any(|start| line.starts_with(start)) || (self.in_diff && goes_on);
    }
}

/// The columns before the text of a line, and that text.
fn split_indent(line: &str) -> (usize, &str) {
    let rest = line.trim_start_matches([' ', '\t']);
    let before = line.len() - rest.len();
    let columns = line
        .bytes()
        .take(before)
        .fold(0, |columns, byte| match byte {
            b'\t' => columns + CODE_INDENT - columns % CODE_INDENT,
            _ => columns + 1,
        });
    (columns, rest)
}

fn is_list_item(rest: &str) -> bool {
    let behind = match rest.strip_prefix(['-', '*', '+', '•']) {
        Some(behind) => behind,
        None => {
            let behind = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            let digits = rest.len() - behind.len();
            match behind.strip_prefix(['.', ')']) {
                Some(behind) if (1..=9).contains(&digits) => behind,
                _ => return false,
            }
        }
    };
    behind.starts_with([' ', '\t'])
}

/// A quotation, a table row, a line of a diff, or one with a number before it.
fn is_quoted_line(rest: &str) -> bool {
    if rest.starts_with(['>', '|', '+', '-']) {
        return true;
    }
    let behind = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    behind.len() < rest.len() && behind.starts_with(['\t', '|', ':', '→'])
}
