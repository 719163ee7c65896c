//! The object of a text that may break off anywhere, as a whole JSON text: what is finished, and what there is of an open
//! string. A number that may go on, a key without its value and half an escape are left out.
//!
//! The automaton says how far the text is valid; this only finds tokens. The pure twin reads the same from its events
//! (`json/partial.py`); the live view exists there only.

use crate::json::automaton::Automaton;
use crate::json::token::string_end;
use crate::json::verdict::Root;
use crate::json::verdict::Status;
use memchr::memchr;

/// `None` before an object began, and for another value.
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
    /// Up to here the text is kept.
    end: usize,
    /// That is within a string.
    in_string: bool,
    /// What closes the containers that are open there.
    closers: Vec<char>,
    /// A string that comes next is a key.
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
                    // More digits may follow a number; a literal is whole with its last letter.
                    if length.is_none() && !matches!(rest, b"true" | b"false" | b"null") {
                        return;
                    }
                    at += length.unwrap_or(rest.len());
                    self.end = at;
                }
            }
        }
    }

    /// The text ends in the string whose content begins there.
    fn open_string(&mut self, start: usize) {
        if self.key {
            return;
        }
        self.in_string = true;
        self.end = self.text.len();
        let mut at = start;
        let mut high = None; // where the first half of a surrogate pair stands, if it came right before
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

/// The escape of the first half of a surrogate pair.
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
