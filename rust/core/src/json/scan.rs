//! A pull scanner over one JSON text: takes what a decoder asks for and checks everything it passes over.
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
//! The value of each member or item is taken by exactly one call: `value`, `skip`, `text`, `number`, `boolean`,
//! `null`, or it is entered. Ask `kind` first where it may be another kind: a call for the wrong kind is an error.
//! A text is accepted if and only if the automaton accepts it, whatever was asked for; error positions are the
//! automaton's. No recursion, no allocation but for strings with escapes. Layer 1.

use std::borrow::Cow;

use super::MAX_DEPTH;
use super::automaton::{Problem, Status, check, plain_run};
use super::number::Magnitude;
use super::text::Text;

/// Where the text stops being JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanError {
    pub pos: usize,
    pub problem: Problem,
}

pub type Scan<T> = Result<T, ScanError>;

/// The kind of a value, told by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Object,
    Array,
    String,
    Number,
    True,
    False,
    Null,
}

/// The text of one value as it stands, without the white space around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a> {
    pub text: &'a str,
    pub kind: Kind,
}

/// One value; objects and arrays stay text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Object(&'a str),
    Array(&'a str),
    String(Text<'a>),
    Number(Number<'a>),
    Bool(bool),
    Null,
}

/// A member's key: what stands between its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    pub raw: &'a str,
    pub escaped: bool,
}

impl<'a> Key<'a> {
    /// The key with its escapes resolved.
    #[inline]
    pub fn name(&self) -> Cow<'a, str> {
        if self.escaped {
            Text::unescape(self.raw).into_whole().0
        } else {
            Cow::Borrowed(self.raw)
        }
    }

    #[inline]
    pub fn is(&self, name: &str) -> bool {
        if self.escaped {
            self.name() == name
        } else {
            self.raw == name
        }
    }
}

/// A number token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number<'a> {
    pub raw: &'a str,
}

impl Number<'_> {
    /// Without fraction and exponent.
    pub fn is_integer(&self) -> bool {
        !self
            .raw
            .bytes()
            .any(|byte| matches!(byte, b'.' | b'e' | b'E'))
    }

    /// An integer token that fits.
    pub fn as_u64(&self) -> Option<u64> {
        match self.raw {
            "-0" => Some(0),
            raw => raw.parse().ok(),
        }
    }

    /// An integer token that fits.
    pub fn as_i64(&self) -> Option<i64> {
        self.raw.parse().ok()
    }

    /// The value of an integer, or of a float without a fraction (`1.0`, `1e2`), that fits.
    pub fn integral(&self) -> Option<i64> {
        if self.is_integer() {
            return self.as_i64();
        }
        let value: f64 = self.raw.parse().ok()?;
        // 2^63 itself is out.
        let fits = value.fract() == 0.0
            && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value);
        fits.then_some(value as i64)
    }
}

/// A cursor over one JSON text. A copy of it is a bookmark.
#[derive(Clone, Copy, Debug)]
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    max_depth: u32,
    /// An object or array was just entered: no comma comes before its next entry.
    fresh: bool,
    wide_integer: bool,
}

impl<'a> Scanner<'a> {
    /// `max_depth` off or above 128 is 128.
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
        }
    }

    /// The kind of the next value, which stays unread.
    #[inline]
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

    /// The next key of the object entered last; at its end `None`, and the object is left.
    #[inline]
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

    /// Whether the array entered last has a next item; at its end false, and the array is left.
    #[inline]
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

    /// One value of any kind.
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

    /// Passes over one value of any kind, checking all of it.
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
            Kind::Object | Kind::Array => self.skip_container()?,
        }
        Ok(Raw {
            text: self.since(start),
            kind,
        })
    }

    #[inline]
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

    #[inline]
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

    /// Nothing but white space may follow the root.
    #[inline]
    pub fn finish(&mut self) -> Scan<()> {
        self.token();
        if self.at < self.text.len() {
            Err(self.error())
        } else {
            Ok(())
        }
    }

    /// Byte position of what comes next.
    pub fn pos(&self) -> usize {
        self.at
    }

    /// An integer outside of -2^63 to 2^64-1 was passed.
    pub fn wide_integer(&self) -> bool {
        self.wide_integer
    }

    /// The byte at the cursor; 0 at the end, which is no byte of JSON either.
    #[inline]
    fn byte(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    /// Moves to the next token and gives its first byte.
    #[inline]
    fn token(&mut self) -> u8 {
        loop {
            let byte = self.byte();
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return byte;
            }
            self.at += 1;
        }
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Scan<()> {
        if self.token() != byte {
            return Err(self.error());
        }
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    #[inline]
    fn enter(&mut self, bracket: u8) -> Scan<()> {
        if self.token() != bracket || self.depth >= self.max_depth {
            return Err(self.error());
        }
        self.at += 1;
        self.depth += 1;
        self.fresh = true;
        Ok(())
    }

    #[inline]
    fn leave(&mut self) {
        self.at += 1;
        self.depth = self.depth.saturating_sub(1);
        self.fresh = false;
    }

    #[inline]
    fn literal(&mut self, word: &[u8]) -> Scan<()> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if !rest.starts_with(word) {
            return Err(self.error());
        }
        self.at += word.len();
        Ok(())
    }

    /// The cursor is on the opening quote. Gives what stands between the quotes, and whether there are escapes.
    #[inline]
    fn string_span(&mut self) -> Scan<(&'a str, bool)> {
        self.at += 1;
        let start = self.at;
        let mut escaped = false;
        loop {
            let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
            self.at += plain_run(rest);
            match self.byte() {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return Err(self.error()),
            }
        }
        let raw = self.since(start);
        self.at += 1;
        Ok((raw, escaped))
    }

    fn escape(&mut self) -> Scan<()> {
        self.at += 1;
        let length = match self.byte() {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 1,
            b'u' => {
                let digits = self
                    .text
                    .as_bytes()
                    .get(self.at + 1..self.at + 5)
                    .unwrap_or_default();
                if digits.len() != 4 || !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(self.error());
                }
                5
            }
            _ => return Err(self.error()),
        };
        self.at += length;
        Ok(())
    }

    #[inline]
    fn digits(&mut self) -> Scan<()> {
        if !self.byte().is_ascii_digit() {
            return Err(self.error());
        }
        while self.byte().is_ascii_digit() {
            self.at += 1;
        }
        Ok(())
    }

    #[inline]
    fn number_span(&mut self) -> Scan<()> {
        let start = self.at;
        if self.byte() == b'-' {
            self.at += 1;
        }
        if self.byte() == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        let whole = self.at - start;
        let mut float = false;
        let mut exponent = false;
        if self.byte() == b'.' {
            float = true;
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.byte(), b'e' | b'E') {
            exponent = true;
            self.at += 1;
            if matches!(self.byte(), b'+' | b'-') {
                self.at += 1;
            }
            self.digits()?;
        }
        // 18 digits fit 64 bits, and without an exponent 300 digits are finite.
        if exponent || (float && whole > 300) || (!float && whole > 18) {
            self.measure(start)?;
        }
        Ok(())
    }

    #[cold]
    fn measure(&mut self, start: usize) -> Scan<()> {
        let size = Magnitude::of(self.since(start).as_bytes());
        if size.is_infinite() {
            return Err(self.error());
        }
        self.wide_integer |= size.is_wide();
        Ok(())
    }

    /// The cursor is on the opening bracket.
    fn skip_container(&mut self) -> Scan<()> {
        let outer = self.depth;
        // One bit a level that was entered here, the innermost lowest: set is an object.
        let mut stack: u128 = 0;
        loop {
            // A value must come.
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
                b'-' | b'0'..=b'9' => self.number_span()?,
                b't' => self.literal(b"true")?,
                b'f' => self.literal(b"false")?,
                b'n' => self.literal(b"null")?,
                _ => return Err(self.error()),
            }
            // A value has been: go on to the next one, or leave what ends here.
            loop {
                if self.depth == outer {
                    self.fresh = false;
                    return Ok(());
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

    #[inline]
    fn skip_key(&mut self) -> Scan<()> {
        if self.byte() != b'"' {
            return Err(self.error());
        }
        self.string_span()?;
        self.expect(b':')
    }

    /// The automaton's word on where and why; the own position only where a caller asked for the wrong kind.
    #[cold]
    fn error(&self) -> ScanError {
        match check(self.text.as_bytes(), self.max_depth) {
            Status::Broken { pos, problem } => ScanError {
                pos: usize::try_from(pos).unwrap_or(self.at),
                problem,
            },
            Status::Prefix => ScanError {
                pos: self.text.len(),
                problem: Problem::Syntax,
            },
            Status::Complete => ScanError {
                pos: self.at,
                problem: Problem::Syntax,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_items() {
        let text = r#" {"a": 1, "\u0062": [true, "x\n", [], {}], "c": {"d": null}, "e": -1.5e2 } "#;
        let mut scanner = Scanner::new(text, None);
        let mut seen = Vec::new();
        scanner.enter_object().unwrap();
        while let Some(key) = scanner.next_key().unwrap() {
            seen.push(key.name().into_owned());
            if key.is("b") {
                scanner.enter_array().unwrap();
                assert!(scanner.next_item().unwrap());
                assert_eq!(scanner.kind(), Ok(Kind::True));
                assert!(scanner.boolean().unwrap());
                assert!(scanner.next_item().unwrap());
                assert_eq!(scanner.text().unwrap().body, "x\n");
                assert!(scanner.next_item().unwrap());
                assert_eq!(
                    scanner.skip().unwrap(),
                    Raw {
                        text: "[]",
                        kind: Kind::Array
                    }
                );
                assert!(scanner.next_item().unwrap());
                assert_eq!(scanner.value().unwrap(), Value::Object("{}"));
                assert!(!scanner.next_item().unwrap());
            } else if key.is("e") {
                assert_eq!(scanner.number().unwrap().integral(), Some(-150));
            } else {
                seen.push(scanner.skip().unwrap().text.to_owned());
            }
        }
        scanner.finish().unwrap();
        assert_eq!(seen, ["a", "1", "b", "c", r#"{"d": null}"#, "e"]);
    }

    #[test]
    fn empty_containers() {
        let mut scanner = Scanner::new("[{},[]]", None);
        scanner.enter_array().unwrap();
        assert!(scanner.next_item().unwrap());
        scanner.enter_object().unwrap();
        assert_eq!(scanner.next_key(), Ok(None));
        assert!(scanner.next_item().unwrap());
        scanner.enter_array().unwrap();
        assert!(!scanner.next_item().unwrap());
        assert!(!scanner.next_item().unwrap());
        assert_eq!(scanner.finish(), Ok(()));
    }

    #[test]
    fn numbers() {
        let number = |raw| Number { raw };
        assert_eq!(number("1.0").integral(), Some(1));
        assert_eq!(number("-0").as_u64(), Some(0));
        assert_eq!(number("-0").as_i64(), Some(0));
        assert_eq!(number("1.5").integral(), None);
        assert_eq!(number("1e2").as_i64(), None);
        assert_eq!(number("9223372036854775808").integral(), None);
        assert_eq!(number("9223372036854775808.0").integral(), None);
        assert_eq!(number("18446744073709551615").as_u64(), Some(u64::MAX));
        assert!(number("12").is_integer() && !number("12e0").is_integer());
    }

    #[test]
    fn errors_are_those_of_the_automaton() {
        for (text, pos, problem) in [
            ("{\"a\":1,}", 7, Problem::Syntax),
            ("[1e999]", 6, Problem::NumberTooBig),
            ("[[[]]]", 2, Problem::TooDeep),
            ("[1", 2, Problem::Syntax),
            ("", 0, Problem::Syntax),
            ("\"\\u12G4\"", 5, Problem::Syntax),
        ] {
            let mut scanner = Scanner::new(text, Some(2));
            assert_eq!(
                scanner.skip().unwrap_err(),
                ScanError { pos, problem },
                "{text}"
            );
        }
        let mut scanner = Scanner::new("{} {}", None);
        scanner.skip().unwrap();
        assert_eq!(scanner.finish().unwrap_err().pos, 3);
        let mut scanner = Scanner::new("[1,]", None);
        scanner.enter_array().unwrap();
        assert!(scanner.next_item().unwrap());
        scanner.skip().unwrap();
        assert_eq!(scanner.next_item().unwrap_err().pos, 3);
    }

    #[test]
    fn the_wrong_kind_is_an_error_and_never_a_panic() {
        assert_eq!(Scanner::new("1", None).text().unwrap_err().pos, 0);
        assert!(Scanner::new("\"a\"", None).number().is_err());
        assert!(Scanner::new("1", None).enter_object().is_err());
        assert!(Scanner::new("1", None).boolean().is_err());
        assert!(Scanner::new("true", None).null().is_err());
    }

    #[test]
    fn wide_integers_are_told() {
        for (text, wide) in [
            ("[18446744073709551615]", false),
            ("[{\"a\":18446744073709551616}]", true),
            ("1e30", false),
        ] {
            let mut scanner = Scanner::new(text, None);
            scanner.skip().unwrap();
            assert_eq!(scanner.wide_integer(), wide, "{text}");
        }
    }
}
