//! What quotes the text until it ends: reasoning, a section, an element, or a turn of another role.

use crate::text_calls::fences::Code;
use crate::text_calls::fences::FENCE;
use crate::text_calls::marks::Marks;
use crate::text_calls::quotes::is_word;
use crate::text_calls::reading::is_blank;

/// What follows the text that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Following {
    /// More text may follow.
    Unknown,
    Character(char),
    /// The end of the line or of the part.
    LineEnd,
}

impl Following {
    pub fn character(self) -> Option<char> {
        match self {
            Following::Character(character) => Some(character),
            Following::Unknown | Following::LineEnd => None,
        }
    }
}

/// What is open. All literals are in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Open {
    Reasoning {
        closer: String,
    },
    Section {
        closer: String,
    },
    /// `depth`: the number of open elements of this name.
    Element {
        opener: String,
        closer: String,
        depth: usize,
    },
    Turn(Turn),
}

/// How far a text was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Number of bytes that were read. The rest may be the beginning of a closer.
    Open(usize),
    /// Number of bytes up to the end of the closer.
    Closed(usize),
}

impl Open {
    pub fn closer(&self) -> &str {
        match self {
            Open::Reasoning { closer }
            | Open::Section { closer }
            | Open::Element { closer, .. } => closer,
            Open::Turn(turn) => &turn.closer,
        }
    }

    /// Returns true if the text is a closer that counts unless the next character shows that it is quoted.
    pub fn is_whole_closer(&self, text: &str) -> bool {
        matches!(self, Open::Turn(turn) if text.eq_ignore_ascii_case(&turn.closer))
    }

    /// Reads text of one line.
    pub fn read(&mut self, text: &str, following: Following, marks: &Marks) -> Progress {
        match self {
            Open::Reasoning { closer } | Open::Section { closer } => {
                match find_ignoring_case(text, closer) {
                    Some(found) => Progress::Closed(found + closer.len()),
                    None => Progress::Open(held_from(text, closer.len(), following, |end| {
                        begins(closer, end)
                    })),
                }
            }
            Open::Element {
                opener,
                closer,
                depth,
            } => {
                let held = held_from(text, closer.len(), following, |end| {
                    begins(closer, end) || begins_element(opener, end)
                });
                for at in memchr::memchr_iter(b'<', text.as_bytes()).take_while(|at| *at < held) {
                    let remaining = text.get(at..).unwrap_or_default();
                    if is_element(opener, remaining, following) {
                        *depth += 1;
                    } else if starts_with_ignoring_case(remaining, closer) {
                        *depth -= 1;
                        if *depth == 0 {
                            return Progress::Closed(at + closer.len());
                        }
                    }
                }
                Progress::Open(held)
            }
            Open::Turn(turn) => turn.read(text, following, marks),
        }
    }

    /// Counts an element whose opening tag is in two parts.
    pub fn add_element(&mut self) {
        if let Open::Element { depth, .. } = self {
            *depth += 1;
        }
    }

    pub fn end_line(&mut self) {
        if let Open::Turn(turn) = self {
            turn.end_line();
        }
    }

    /// Returns true if text of the current line was read.
    pub fn is_in_line(&self) -> bool {
        matches!(self, Open::Turn(turn) if !turn.code.head.is_empty())
    }
}

/// A turn of another role. The turn is Markdown of its own. Its closer does not count in code, on a line that begins
/// with `>`, or between quotation marks, because a user may ask about the tokens of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    closer: String,
    code: Code,
    /// True if the line contains more than white space.
    has_text: bool,
    /// The last character of the line.
    last: Option<char>,
}

impl Turn {
    pub fn new(closer: String) -> Turn {
        Turn {
            closer,
            ..Turn::default()
        }
    }

    fn read(&mut self, text: &str, following: Following, marks: &Marks) -> Progress {
        if self.code.is_fenced() {
            self.note(text);
            return Progress::Open(text.len());
        }
        // The character after the closer may show that the closer is quoted.
        let is_held =
            |end: &str| end.eq_ignore_ascii_case(&self.closer) || begins(&self.closer, end);
        let end = match following {
            Following::Unknown => match held_from(text, self.closer.len(), following, is_held) {
                end if end == text.len() => text.trim_end_matches(['`', '~']).len(),
                end => end,
            },
            Following::Character(_) | Following::LineEnd => text.len(),
        };
        let first = self.closer.bytes().next();
        let (mut noted, mut at) = (0, 0);
        while let Some(byte) = text.as_bytes().get(at).filter(|_| at < end).copied() {
            match byte {
                b'`' | b'~' => {
                    let remaining = text.as_bytes().get(at..end).unwrap_or_default();
                    let run = remaining.iter().take_while(|it| **it == byte).count();
                    self.note(text.get(noted..at).unwrap_or_default());
                    match byte {
                        b'`' => self.code.ticks(run, !self.has_text),
                        _ if run >= FENCE => self.code.tildes(run, !self.has_text),
                        _ => {}
                    }
                    noted = at;
                    at += run;
                }
                _ if first == Some(byte.to_ascii_lowercase()) && self.is_closer(text, at) => {
                    self.note(text.get(noted..at).unwrap_or_default());
                    noted = at;
                    at += self.closer.len();
                    let after = text.get(at..).unwrap_or_default().chars().next();
                    let after = after.or(following.character());
                    if !self.is_quoted(after, marks) && !self.is_longer_name(after) {
                        return Progress::Closed(at);
                    }
                }
                _ => at += 1,
            }
        }
        self.note(text.get(noted..end).unwrap_or_default());
        Progress::Open(end)
    }

    fn is_closer(&self, text: &str, at: usize) -> bool {
        let remaining = text.get(at..).unwrap_or_default();
        starts_with_ignoring_case(remaining, &self.closer)
    }

    /// Returns true if the closer at the current position is quoted. `after`: the character after the closer.
    fn is_quoted(&self, after: Option<char>, marks: &Marks) -> bool {
        let surrounded = self.last.zip(after);
        self.code.is_code()
            || self.code.head.trim_start_matches(is_blank).starts_with('>')
            || surrounded.is_some_and(|(before, after)| marks.surround(before, after))
    }

    /// Returns true if the closer ends in the name of a role, and the character after it shows that the role has a
    /// longer name.
    fn is_longer_name(&self, after: Option<char>) -> bool {
        let last = self.closer.chars().next_back();
        last.is_some_and(continues_name) && after.is_some_and(continues_name)
    }

    fn note(&mut self, text: &str) {
        self.code.note(text);
        self.has_text |= !text.chars().all(is_blank);
        self.last = text.chars().next_back().or(self.last);
    }

    fn end_line(&mut self) {
        let is_blank_line = !self.has_text && !self.code.is_fenced();
        if self.code.end_line() || is_blank_line {
            // Inline code does not continue after a fence or a blank line.
            self.code.run = 0;
        }
        self.code.begin_line();
        self.has_text = false;
        self.last = None;
    }
}

/// Returns true if the character after a role shows that the role has a longer name.
pub(crate) fn continues_name(character: char) -> bool {
    is_word(character) || matches!(character, '_' | '-' | '.')
}

/// Returns true if the text begins with an opening tag of this element (`<name`).
pub(crate) fn is_element(opener: &str, text: &str, following: Following) -> bool {
    let after = text.get(opener.len()..).unwrap_or_default().chars().next();
    let ends = |c: char| matches!(c, ' ' | '\t' | '\r' | '/' | '>');
    starts_with_ignoring_case(text, opener) && after.or(following.character()).is_none_or(ends)
}

/// Returns true if the text is the beginning of an opening tag of this element (`<name`), or may be one.
pub(crate) fn begins_element(opener: &str, text: &str) -> bool {
    text.eq_ignore_ascii_case(opener) || begins(opener, text)
}

/// Returns true if the text is the beginning of the word, but not the entire word.
pub(crate) fn begins(word: &str, text: &str) -> bool {
    text.len() < word.len() && starts_with_ignoring_case(word, text)
}

pub(crate) fn starts_with_ignoring_case(text: &str, word: &str) -> bool {
    let start = text.as_bytes().get(..word.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
}

/// Returns the offset of the longest end of the text that has to be held because more text may follow (`is_held`), or
/// the text's length if nothing has to be held.
///
/// `longest`: the maximum number of bytes to hold.
fn held_from(
    text: &str,
    longest: usize,
    following: Following,
    is_held: impl Fn(&str) -> bool,
) -> usize {
    if following != Following::Unknown {
        return text.len();
    }
    let from = text.len().saturating_sub(longest);
    let ends = (from..text.len()).filter_map(|at| Some((at, text.get(at..)?)));
    let mut held = ends.filter(|(_, end)| is_held(end));
    held.next().map_or(text.len(), |(at, _)| at)
}

/// Returns the offset of a lower-case word in the text, ignoring ASCII case.
fn find_ignoring_case(text: &str, word: &str) -> Option<usize> {
    let first = word.bytes().next()?;
    memchr::memchr2_iter(first, first.to_ascii_uppercase(), text.as_bytes()).find(|at| {
        let here = text.as_bytes().get(*at..*at + word.len());
        here.is_some_and(|here| here.eq_ignore_ascii_case(word.as_bytes()))
    })
}
