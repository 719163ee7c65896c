//! Completes a truncated JSON object. Finished values and the beginning of an open string are kept, and open containers
//! are closed.
//!
//! A number that may continue, a key without its value, and an incomplete escape are omitted. The automaton determines
//! how much of the text is valid, so this module only finds tokens. The pure-Python twin derives the same result from
//! its events (`json/partial.py`). The live view of partial arguments exists only in pure Python.

use crate::json::automaton::Automaton;
use crate::json::token::string_end;
use crate::json::validation::Root;
use crate::json::validation::Status;
use memchr::memchr;

/// Returns the completed object, or `None` if no object has started or if the text is a value of another type.
pub fn complete_object(text: &str) -> Option<String> {
    let mut automaton = Automaton::new();
    let valid = match automaton.feed(text.as_bytes()) {
        Status::Broken { pos, .. } => text.as_bytes().get(..usize::try_from(pos).ok()?)?,
        _ => text.as_bytes(),
    };
    if automaton.root() != Some(Root::Object) {
        return None;
    }
    let mut reader = Reader {
        text: valid,
        end: 0,
        in_string: false,
        closers: Vec::new(),
        key: false,
    };
    reader.read();
    let mut whole = String::with_capacity(reader.end + 1 + reader.closers.len());
    whole.push_str(text.get(..reader.end)?);
    if reader.in_string {
        whole.push('"');
    }
    whole.extend(reader.closers.iter().rev());
    Some(whole)
}

struct Reader<'t> {
    text: &'t [u8],
    /// Length of the text that is kept.
    end: usize,
    /// True if the kept text ends inside a string.
    in_string: bool,
    /// Brackets that close the containers open at `end`.
    closers: Vec<char>,
    /// True if the next string is a key.
    key: bool,
}

impl Reader<'_> {
    fn read(&mut self) {
        let mut at = 0;
        while let Some(byte) = self.text.get(at) {
            match byte {
                b'"' => match string_end(self.text, at + 1) {
                    Some((end, _)) => {
                        at = end + 1;
                        if self.key {
                            self.key = false;
                        } else {
                            self.end = at;
                        }
                    }
                    None => return self.open_string(at + 1),
                },
                b'{' | b'[' => {
                    at += 1;
                    self.key = *byte == b'{';
                    self.closers.push(if self.key { '}' } else { ']' });
                    self.end = at;
                }
                b'}' | b']' => {
                    at += 1;
                    self.closers.pop();
                    self.end = at;
                }
                b',' => {
                    at += 1;
                    self.key = self.closers.last() == Some(&'}');
                }
                b':' | b' ' | b'\t' | b'\n' | b'\r' => at += 1,
                _ => {
                    let rest = self.text.get(at..).unwrap_or_default();
                    let length = rest.iter().position(|byte| b" \t\n\r,]}".contains(byte));
                    // A number may still continue at the end of the text, but a literal is complete with its last
                    // letter.
                    if length.is_none() && !matches!(rest, b"true" | b"false" | b"null") {
                        return;
                    }
                    at += length.unwrap_or(rest.len());
                    self.end = at;
                }
            }
        }
    }

    /// Keeps the string in which the text ends, but omits an incomplete escape at the end. `start`: the position at
    /// which the content of the string begins.
    fn open_string(&mut self, start: usize) {
        if self.key {
            return;
        }
        self.in_string = true;
        self.end = self.text.len();
        let mut at = start;
        let mut high = None; // offset of the preceding escape, if that escape is a high surrogate
        while let Some(next) = memchr(b'\\', self.text.get(at..).unwrap_or_default()) {
            let escape = at + next;
            let before = high.take().filter(|_| next == 0);
            let length = if self.text.get(escape + 1) == Some(&b'u') {
                6
            } else {
                2
            };
            let Some(text) = self.text.get(escape..escape + length) else {
                self.end = before.unwrap_or(escape);
                return;
            };
            high = is_high(text).then_some(escape);
            at = escape + length;
        }
        if let Some(escape) = high.filter(|_| at == self.text.len()) {
            self.end = escape;
        }
    }
}

/// Returns true if the escape represents a high surrogate.
fn is_high(escape: &[u8]) -> bool {
    matches!(
        escape,
        [
            b'\\',
            b'u',
            b'd' | b'D',
            b'8' | b'9' | b'a' | b'A' | b'b' | b'B',
            ..
        ]
    )
}
