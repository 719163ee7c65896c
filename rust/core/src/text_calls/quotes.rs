//! Determines whether the text before a marker begins or ends a quotation or emphasis.

use crate::text_calls::reading::is_blank;

/// Maximum number of quotation and emphasis marks that may be open. A line with more open marks is not read further.
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
/// The line is read only if a marker follows a quotation or emphasis mark. Each of its characters is read only once.
#[derive(Debug, Default)]
pub(crate) struct Quotes {
    open: Vec<Mark>,
    /// Length of the backtick run that opened the inline code; 0 outside inline code.
    code: usize,
    before: Option<char>,
    last: Last,
    /// Number of bytes of the line that have been read.
    at: usize,
}

impl Quotes {
    /// Starts another line. `code`: the length of the backtick run that opened the inline code at the start of the
    /// line.
    pub fn restart(&mut self, code: usize) {
        self.open.clear();
        self.code = code;
        self.before = None;
        self.last = Last::Text;
        self.at = 0;
    }

    /// Returns true if the line ends with a closing mark and nothing is open after it. `next`: the next character.
    pub fn closes(&mut self, line: &str, next: char) -> bool {
        if line.ends_with(next) {
            // More marks of the same kind follow, so the closing mark is not complete yet.
            return false;
        }
        let mut remaining = line.get(self.at..).unwrap_or_default();
        self.at = line.len();
        while let Some(character) = remaining.chars().next() {
            let length = match character {
                '`' | '*' | '_' | '~' => {
                    let after = remaining.trim_start_matches(character);
                    remaining.len() - after.len()
                }
                _ => 1,
            };
            let size = length.max(character.len_utf8());
            remaining = remaining.get(size..).unwrap_or_default();
            let after = remaining.chars().next().unwrap_or(next);
            self.last = self.read(Mark { character, length }, after);
            self.before = Some(character);
        }
        self.last == Last::Closer && self.open.is_empty() && self.code == 0
    }

    fn read(&mut self, mark: Mark, after: char) -> Last {
        let character = mark.character;
        if character == '`' {
            return self.read_backticks(mark.length);
        }
        let before = self.before.filter(|before| !is_blank(*before));
        let is_in_word = before.is_some_and(is_word) && is_word(after);
        let is_apostrophe = is_in_word && matches!(character, '\'' | '’' | '_');
        let is_full = self.open.len() == MAX_OPEN;
        if self.code > 0 || is_full || is_apostrophe || !is_mark(character) {
            return Last::Text;
        }
        let is_pair = self.open.last().is_some_and(|open| pairs(*open, mark));
        if is_pair && self.last != Last::Opener && (before.is_some() || !character.is_ascii()) {
            self.open.pop();
            return Last::Closer;
        }
        let is_opener = matches!(character, '“' | '„' | '‘' | '‚' | '«' | '‹');
        if is_opener || (!is_in_word && !is_blank(after)) {
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

/// Returns true if the second mark closes what the first one opens. Languages use the same marks differently.
fn pairs(open: Mark, close: Mark) -> bool {
    match (open.character, close.character) {
        ('“' | '„', '”')
        | ('„', '“')
        | ('‘' | '‚', '’')
        | ('‚', '‘')
        | ('«', '»')
        | ('»', '«')
        | ('‹', '›')
        | ('›', '‹') => true,
        (_, '“' | '‘' | '«' | '»' | '‹' | '›' | '„' | '‚') => false,
        _ => open == close,
    }
}

/// Returns true for quotation marks and emphasis.
fn is_mark(character: char) -> bool {
    let is_bracket = matches!(character, '(' | '[' | '{' | '`' | '|');
    character == '‚' || (is_quoting(character) && !is_bracket)
}

/// Returns true for characters that can be part of a word. Every non-ASCII character except punctuation is such a
/// character.
fn is_word(character: char) -> bool {
    match character {
        '\0'..='\u{7f}' => character.is_ascii_alphanumeric(),
        '\u{80}'..='\u{bf}' | '\u{2000}'..='\u{206f}' | '\u{3000}'..='\u{303f}' => false,
        _ => true,
    }
}

/// Returns true for quotation marks, opening brackets and emphasis.
pub(crate) fn is_quoting(character: char) -> bool {
    matches!(
        character,
        '"' | '\''
            | '('
            | '['
            | '{'
            | '`'
            | '*'
            | '_'
            | '~'
            | '|'
            | '«'
            | '»'
            | '“'
            | '”'
            | '‘'
            | '’'
            | '„'
            | '‹'
            | '›'
    )
}
