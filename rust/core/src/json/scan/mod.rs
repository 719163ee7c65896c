//! A pull scanner over one JSON text. The scanner returns the values that a decoder requests, and validates the values
//! that it skips.
//!
//! ```
//! # use streamweld_core::json::{Scanner, ScanError};
//! # fn main() -> Result<(), ScanError> {
//! let mut scanner = Scanner::new(r#"{"id": "a", "more": [1, 2]}"#, None);
//! scanner.enter_object()?;
//! while let Some(key) = scanner.next_key()? {
//!     match key.name().as_ref() {
//!         "id" => assert_eq!(scanner.text()?.body, "a"),
//!         _ => assert_eq!(scanner.skip()?.text, "[1, 2]"),
//!     }
//! }
//! scanner.finish()
//! # }
//! ```
//!
//! The value of each member or item must be consumed by exactly one call: `value`, `skip`, `text`, `number`, `boolean`,
//! `null`, or a call that enters the value. If the value may be of another kind, call `kind` first, because a call for
//! the wrong kind returns an error.
//!
//! The scanner accepts a text if and only if the automaton accepts it, regardless of which values were requested. The
//! error positions are those of the automaton. The scanner does not recurse, and allocates only for strings with
//! escapes.

#[cfg(test)]
mod tests;

use crate::json::MAX_DEPTH;
use crate::json::automaton::check;
use crate::json::number::Magnitude;
use crate::json::text::Text;
use crate::json::token;
use crate::json::token::container_end;
use crate::json::token::has_no_control_chars;
use crate::json::token::number_end;
use crate::json::token::string_end_in;
use crate::json::validation::Problem;
use crate::json::validation::Status;
use crate::json::value::Key;
use crate::json::value::Kind;
use crate::json::value::Number;
use crate::json::value::Raw;
use crate::json::value::Scan;
use crate::json::value::ScanError;
use crate::json::value::Value;

/// A cursor over one JSON text. To return to an earlier position, use a copy of the scanner.
#[derive(Clone, Copy, Debug)]
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    max_depth: u32,
    /// True if an object or array has just been entered, so that no comma precedes its next member or item.
    fresh: bool,
    wide_integer: bool,
    trust: Trust,
}

/// Facts about a text that are known before scanning starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    Nothing,
    /// The strings of the text contain no control characters.
    NoControlChars,
    /// The text has already been scanned and is valid JSON.
    Checked,
}

/// Checks that a text is one complete JSON document, without collecting its values.
pub(crate) fn validate(text: &str, max_depth: Option<u64>) -> Scan<()> {
    let mut scanner = Scanner::new(text, max_depth);
    scanner.skip()?;
    scanner.finish()
}

/// Minimum length of a text for which it is faster to call `has_no_control_chars` first.
const LONG: usize = 512;

impl<'a> Scanner<'a> {
    /// Creates a scanner. The depth limit is the lower of `max_depth` and 128.
    pub fn new(text: &'a str, max_depth: Option<u64>) -> Scanner<'a> {
        let max_depth = max_depth
            .and_then(|depth| u32::try_from(depth).ok())
            .unwrap_or(MAX_DEPTH)
            .min(MAX_DEPTH);
        Scanner {
            text,
            at: 0,
            depth: 0,
            max_depth,
            fresh: false,
            wide_integer: false,
            trust: if text.len() >= LONG && has_no_control_chars(text.as_bytes()) {
                Trust::NoControlChars
            } else {
                Trust::Nothing
            },
        }
    }

    /// Creates a scanner over already validated text, or over a value in such text.
    ///
    /// Strings and containers are skipped faster, and integers in skipped containers are not measured.
    pub(crate) fn of_validated(text: &'a str) -> Scanner<'a> {
        Scanner {
            text,
            at: 0,
            depth: 0,
            max_depth: MAX_DEPTH,
            fresh: false,
            wide_integer: false,
            trust: Trust::Checked,
        }
    }

    /// Returns the kind of the next value without consuming it.
    #[inline(always)]
    pub fn kind(&mut self) -> Scan<Kind> {
        match self.token() {
            b'{' => Ok(Kind::Object),
            b'[' => Ok(Kind::Array),
            b'"' => Ok(Kind::String),
            b'-' | b'0'..=b'9' => Ok(Kind::Number),
            b't' => Ok(Kind::True),
            b'f' => Ok(Kind::False),
            b'n' => Ok(Kind::Null),
            _ => Err(self.error()),
        }
    }

    #[inline]
    pub fn enter_object(&mut self) -> Scan<()> {
        self.enter(b'{')
    }

    #[inline]
    pub fn enter_array(&mut self) -> Scan<()> {
        self.enter(b'[')
    }

    /// Returns the next key of the object that was entered last. At the end of the object, leaves the object and
    /// returns `None`.
    #[inline(always)]
    pub fn next_key(&mut self) -> Scan<Option<Key<'a>>> {
        let mut byte = self.token();
        if byte == b'}' {
            self.leave();
            return Ok(None);
        }
        if !self.fresh {
            if byte != b',' {
                return Err(self.error());
            }
            self.at += 1;
            byte = self.token();
        }
        self.fresh = false;
        if byte != b'"' {
            return Err(self.error());
        }
        let (raw, escaped) = self.string_span()?;
        self.expect(b':')?;
        Ok(Some(Key { raw, escaped }))
    }

    /// Returns true if the array that was entered last has another item. At the end of the array, leaves the array and
    /// returns false.
    #[inline(always)]
    pub fn next_item(&mut self) -> Scan<bool> {
        let byte = self.token();
        if byte == b']' {
            self.leave();
            return Ok(false);
        }
        if !self.fresh {
            if byte != b',' {
                return Err(self.error());
            }
            self.at += 1;
            if self.token() == b']' {
                return Err(self.error());
            }
        }
        self.fresh = false;
        Ok(true)
    }

    /// Returns one value of any kind.
    pub fn value(&mut self) -> Scan<Value<'a>> {
        Ok(match self.kind()? {
            Kind::Object => Value::Object(self.skip()?.text),
            Kind::Array => Value::Array(self.skip()?.text),
            Kind::String => Value::String(self.text()?),
            Kind::Number => Value::Number(self.number()?),
            Kind::True | Kind::False => Value::Bool(self.boolean()?),
            Kind::Null => {
                self.null()?;
                Value::Null
            }
        })
    }

    /// Skips one value of any kind, and validates the complete value.
    #[inline]
    pub fn skip(&mut self) -> Scan<Raw<'a>> {
        let kind = self.kind()?;
        let start = self.at;
        match kind {
            Kind::String => drop(self.string_span()?),
            Kind::Number => drop(self.number()?),
            Kind::True => self.literal(b"true")?,
            Kind::False => self.literal(b"false")?,
            Kind::Null => self.literal(b"null")?,
            Kind::Object | Kind::Array if self.trust == Trust::Checked => {
                let end = container_end(self.text.as_bytes(), start);
                self.at = end.ok_or_else(|| self.error())?;
            }
            Kind::Object | Kind::Array => *self = self.after_container()?,
        }
        Ok(Raw {
            text: self.since(start),
            kind,
        })
    }

    #[inline(always)]
    pub fn text(&mut self) -> Scan<Text<'a>> {
        if self.token() != b'"' {
            return Err(self.error());
        }
        let (raw, escaped) = self.string_span()?;
        Ok(if escaped {
            Text::unescape(raw)
        } else {
            Text::plain(raw)
        })
    }

    #[inline(always)]
    pub fn number(&mut self) -> Scan<Number<'a>> {
        self.token();
        let start = self.at;
        self.number_span()?;
        Ok(Number {
            raw: self.since(start),
        })
    }

    pub fn boolean(&mut self) -> Scan<bool> {
        if self.token() == b't' {
            self.literal(b"true")?;
            return Ok(true);
        }
        self.literal(b"false")?;
        Ok(false)
    }

    pub fn null(&mut self) -> Scan<()> {
        self.token();
        self.literal(b"null")
    }

    /// Checks that only whitespace follows the root.
    #[inline]
    pub fn finish(&mut self) -> Scan<()> {
        self.token();
        if self.at < self.text.len() {
            Err(self.error())
        } else {
            Ok(())
        }
    }

    /// Returns the byte position of the cursor.
    pub fn pos(&self) -> usize {
        self.at
    }

    /// Returns a value that was just skipped. `start`: the position of the cursor before the value.
    pub(crate) fn passed(&self, start: usize, kind: Kind) -> Raw<'a> {
        Raw {
            text: self.since(start),
            kind,
        }
    }

    /// Returns true if an integer outside -2^63 to 2^64-1 was consumed.
    pub fn wide_integer(&self) -> bool {
        self.wide_integer
    }

    /// Returns the byte at the cursor, or 0 at the end of the text. Valid JSON never contains a byte 0.
    #[inline(always)]
    fn byte(&self) -> u8 {
        token::byte(self.text.as_bytes(), self.at)
    }

    /// Moves the cursor to the next token, and returns the first byte of the token.
    #[inline(always)]
    fn token(&mut self) -> u8 {
        loop {
            let byte = self.byte();
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return byte;
            }
            self.at += 1;
        }
    }

    #[inline(always)]
    fn expect(&mut self, byte: u8) -> Scan<()> {
        if self.token() != byte {
            return Err(self.error());
        }
        self.at += 1;
        Ok(())
    }

    #[inline(always)]
    fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    #[inline(always)]
    fn enter(&mut self, bracket: u8) -> Scan<()> {
        if self.token() != bracket || self.depth >= self.max_depth {
            return Err(self.error());
        }
        self.at += 1;
        self.depth += 1;
        self.fresh = true;
        Ok(())
    }

    #[inline(always)]
    fn leave(&mut self) {
        self.at += 1;
        self.depth = self.depth.saturating_sub(1);
        self.fresh = false;
    }

    #[inline(always)]
    fn literal(&mut self, word: &[u8]) -> Scan<()> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if !rest.starts_with(word) {
            return Err(self.error());
        }
        self.at += word.len();
        Ok(())
    }

    /// Consumes a string, and returns the text between its quotes and whether it contains escapes.
    ///
    /// The cursor must be on the opening quote.
    #[inline(always)]
    fn string_span(&mut self) -> Scan<(&'a str, bool)> {
        let start = self.at + 1;
        let no_control_chars = self.trust != Trust::Nothing;
        let Some((end, escaped)) = string_end_in(self.text.as_bytes(), start, no_control_chars)
        else {
            return Err(self.error());
        };
        self.at = end + 1;
        Ok((self.text.get(start..end).unwrap_or_default(), escaped))
    }

    #[inline(always)]
    fn number_span(&mut self) -> Scan<()> {
        let Some((end, measure)) = number_end(self.text.as_bytes(), self.at) else {
            return Err(self.error());
        };
        if measure {
            let size = Magnitude::of(self.text.get(self.at..end).unwrap_or_default().as_bytes());
            if size.is_infinite() {
                return Err(self.error());
            }
            self.wide_integer |= size.is_wide();
        }
        self.at = end;
        Ok(())
    }

    /// Skips a container. The cursor must be on the opening bracket.
    ///
    /// The method works on a copy of the scanner and returns the copy, so that the cursor of the caller can stay in
    /// registers.
    #[inline(never)]
    fn after_container(mut self) -> Scan<Scanner<'a>> {
        let outer = self.depth;
        // One bit per level entered here, with the innermost level in the lowest bit. A set bit means an object.
        let mut stack: u128 = 0;
        loop {
            // A value is expected.
            match self.token() {
                bracket @ (b'{' | b'[') => {
                    self.enter(bracket)?;
                    let object = bracket == b'{';
                    stack = (stack << 1) | u128::from(object);
                    let next = self.token();
                    if next == if object { b'}' } else { b']' } {
                        self.leave();
                        stack >>= 1;
                    } else if object {
                        self.skip_key()?;
                        continue;
                    } else {
                        continue;
                    }
                }
                b'"' => drop(self.string_span()?),
                b'-' | b'0'..=b'9' => {
                    self.number_span()?;
                    if self.depth > outer && stack & 1 == 0 {
                        self.other_numbers()?;
                    }
                }
                b't' => self.literal(b"true")?,
                b'f' => self.literal(b"false")?,
                b'n' => self.literal(b"null")?,
                _ => return Err(self.error()),
            }
            // The value is complete. Continue with the next value, or leave the containers that end here.
            loop {
                if self.depth == outer {
                    return Ok(self);
                }
                let object = stack & 1 == 1;
                match self.token() {
                    b',' => {
                        self.at += 1;
                        if object {
                            self.token();
                            self.skip_key()?;
                        }
                        break;
                    }
                    b'}' if object => self.leave(),
                    b']' if !object => self.leave(),
                    _ => return Err(self.error()),
                }
                stack >>= 1;
            }
        }
    }

    /// Skips the following numbers of a list, if they are not separated by whitespace. Lists of numbers can be long,
    /// because a log probability contains the bytes of its token.
    #[inline(always)]
    fn other_numbers(&mut self) -> Scan<()> {
        let bytes = self.text.as_bytes();
        while self.byte() == b',' && matches!(token::byte(bytes, self.at + 1), b'-' | b'0'..=b'9') {
            self.at += 1;
            self.number_span()?;
        }
        Ok(())
    }

    #[inline(always)]
    fn skip_key(&mut self) -> Scan<()> {
        if self.byte() != b'"' {
            return Err(self.error());
        }
        self.string_span()?;
        self.expect(b':')
    }

    /// Returns the error that the automaton finds. If the text is valid and the caller requested the wrong kind, the
    /// error position is that of the cursor.
    #[inline]
    fn error(&self) -> ScanError {
        // The arguments are passed by value, so that the cursor can stay in registers if there is no error.
        error(self.text, self.at, self.max_depth)
    }
}

#[cold]
#[inline(never)]
fn error(text: &str, at: usize, max_depth: u32) -> ScanError {
    match check(text.as_bytes(), max_depth) {
        Status::Broken { pos, problem } => ScanError {
            pos: usize::try_from(pos).unwrap_or(at),
            problem,
        },
        Status::Prefix => ScanError {
            pos: text.len(),
            problem: Problem::Syntax,
        },
        Status::Complete => ScanError {
            pos: at,
            problem: Problem::Syntax,
        },
    }
}
