//! Determines whether the text before a marker begins or ends a quotation or emphasis.

use crate::text_calls::marks::Marks;
use crate::text_calls::reading::is_blank;

/// Maximum number of marks that may be open. A line with more open marks is not read further.
const MAX_OPEN: usize = 8;

/// An open quotation mark or emphasis mark, and how many times it is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    character: char,
    length: usize,
}

/// The kind of the character that was read last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Text,
    Opener,
    Closer,
}

/// Quotation marks, emphasis and inline code that are open on a line.
///
/// The line is read only if a marker follows. Each of its characters is read only once.
#[derive(Debug, Default)]
pub(crate) struct Quotes {
    /// The open quotation marks and emphasis, which show whether the last mark closes all of them.
    open: Vec<Mark>,
    /// The open quotation marks and parentheses, which quote the rest of the line.
    quotations: Vec<char>,
    /// Length of the backtick run that opened the inline code; 0 outside inline code.
    code: usize,
    /// The last two characters; the last one comes second.
    before: [Option<char>; 2],
    last: Last,
}

impl Quotes {
    /// Starts another line. `code`: the length of the backtick run that opened the inline code at the start of the
    /// line.
    pub fn restart(&mut self, code: usize) {
        self.open.clear();
        self.quotations.clear();
        self.code = code;
        self.before = [None, None];
        self.last = Last::Text;
    }

    /// Reads more text of the line. `next`: the character after the text.
    pub fn read(&mut self, text: &str, next: char, marks: &Marks) {
        let mut remaining = text;
        loop {
            let (before, rest) = marks.split_at_quoting(remaining);
            self.note_text(before);
            remaining = rest;
            let Some(character) = remaining.chars().next() else {
                return;
            };
            let length = if marks.emphasis.contains(&character) {
                remaining.len() - remaining.trim_start_matches(character).len()
            } else {
                1
            };
            let size = length.max(character.len_utf8());
            remaining = remaining.get(size..).unwrap_or_default();
            let after = remaining.chars().next().unwrap_or(next);
            if self.code == 0 {
                self.read_quotation(character, marks);
            }
            self.last = self.read_mark(Mark { character, length }, after, marks);
            let [_, before] = self.before;
            self.before = [before, Some(character)];
        }
    }

    /// Reads text without marks.
    fn note_text(&mut self, text: &str) {
        let mut last = text.chars().rev();
        if let Some(character) = last.next() {
            let [_, before] = self.before;
            self.before = [last.next().or(before), Some(character)];
            self.last = Last::Text;
        }
    }

    /// Returns true if the text that was read ends with a closing mark and no mark is open after it.
    pub fn closes(&self) -> bool {
        self.last == Last::Closer && self.open.is_empty() && self.code == 0
    }

    /// Returns true if a quotation, parentheses or inline code are open.
    pub fn is_open(&self) -> bool {
        !self.quotations.is_empty() || self.code > 0
    }

    fn read_quotation(&mut self, character: char, marks: &Marks) {
        if self.quotations.len() > MAX_OPEN {
            return;
        }
        let open = self.quotations.last();
        if open.is_some_and(|open| marks.pairs(*open, character)) {
            self.quotations.pop();
        } else if marks.opens_quotation(character) && !self.is_text(character) {
            self.quotations.push(character);
        }
    }

    /// Returns true if a mark that may open a quotation does not open one here: an inch mark, the second mark of a
    /// quotation that began elsewhere, or the mouth of a smiley.
    fn is_text(&self, character: char) -> bool {
        let [earlier, before] = self.before;
        let is_eyes = |before: Option<char>| matches!(before, Some(':' | ';'));
        match character {
            '(' | '（' => is_eyes(before) || (before == Some('-') && is_eyes(earlier)),
            _ => may_close(character) && before.is_some_and(is_word),
        }
    }

    fn read_mark(&mut self, mark: Mark, after: char, marks: &Marks) -> Last {
        let character = mark.character;
        if character == '`' {
            return self.read_backticks(mark.length);
        }
        let [_, before] = self.before;
        let before = before.filter(|before| !is_blank(*before));
        let is_in_word = before.is_some_and(is_word) && is_word(after);
        let is_apostrophe =
            is_in_word && (character == '_' || marks.apostrophes.contains(&character));
        let is_full = self.open.len() == MAX_OPEN;
        if self.code > 0 || is_full || is_apostrophe || !marks.is_paired(character) {
            return Last::Text;
        }
        let is_own = marks.is_emphasis_or_apostrophe(character);
        let closes =
            |open: &Mark| (is_own && *open == mark) || marks.pairs(open.character, character);
        let is_pair = self.open.last().is_some_and(closes);
        if is_pair && self.last != Last::Opener && (before.is_some() || !character.is_ascii()) {
            self.open.pop();
            return Last::Closer;
        }
        let is_first = marks.opens_quotation(character);
        let is_opener = is_first && !may_close(character);
        let may_open = is_first || is_own;
        if is_opener || (may_open && !is_in_word && !is_blank(after)) {
            self.open.push(mark);
            return Last::Opener;
        }
        Last::Text
    }

    fn read_backticks(&mut self, length: usize) -> Last {
        if self.code == 0 {
            self.code = length;
        } else if self.code == length {
            self.code = 0;
            return Last::Closer;
        }
        Last::Text
    }
}

/// Returns true for the marks that open a quotation in some languages and usually close one after a word.
fn may_close(character: char) -> bool {
    matches!(character, '"' | '＂' | '”' | '»' | '›')
}

/// Returns true for characters that can be part of a word. Every non-ASCII character except punctuation is such a
/// character.
pub(crate) fn is_word(character: char) -> bool {
    match character {
        '\0'..='\u{7f}' => character.is_ascii_alphanumeric(),
        '\u{80}'..='\u{bf}' | '\u{2000}'..='\u{206f}' | '\u{3000}'..='\u{303f}' => false,
        _ => true,
    }
}
