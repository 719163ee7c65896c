//! A validating pull scanner over one JSON text. Signatures; the body follows.
//!
//! ```text
//! scanner.enter_object()?;
//! while let Some(key) = scanner.next_key()? {
//!     match key.name().as_ref() {
//!         "id" => …scanner.text()?…,
//!         _ => { let raw = scanner.skip()?; }
//!     }
//! }
//! scanner.finish()?;
//! ```
//! Every member's value must be taken by exactly one of `skip`, `text`, `number`, `boolean`, `null`, or entered.

use std::borrow::Cow;

use super::automaton::Problem;
use super::text::Text;

/// Where the text stops being JSON. `pos` is the automaton's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanError {
    pub pos: usize,
    pub problem: Problem,
}

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

/// The text of one value as it stands, without white space around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a> {
    pub text: &'a str,
    pub kind: Kind,
}

/// A member's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    /// What stands between the quotes.
    pub raw: &'a str,
    pub escaped: bool,
}

impl<'a> Key<'a> {
    pub fn is(&self, name: &str) -> bool {
        self.name() == name
    }
    pub fn name(&self) -> Cow<'a, str> {
        Cow::Borrowed(self.raw)
    }
}

/// A number token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number<'a> {
    pub raw: &'a str,
}

impl Number<'_> {
    pub fn is_integer(&self) -> bool {
        true
    }
    pub fn as_u64(&self) -> Option<u64> {
        None
    }
    pub fn as_i64(&self) -> Option<i64> {
        None
    }
    /// The value of an integer, or of a float without a fraction (`1.0`, `1e2`).
    pub fn integral(&self) -> Option<i64> {
        None
    }
}

#[derive(Clone, Debug)]
pub struct Scanner<'a> {
    text: &'a str,
}

pub type Scan<T> = Result<T, ScanError>;

impl<'a> Scanner<'a> {
    /// `max_depth` above 128 is 128.
    pub fn new(text: &'a str, _max_depth: Option<u64>) -> Scanner<'a> {
        Scanner { text }
    }
    /// The kind of the next value, which stays unread.
    pub fn kind(&mut self) -> Scan<Kind> {
        Ok(Kind::Null)
    }
    pub fn enter_object(&mut self) -> Scan<()> {
        Ok(())
    }
    /// The next key of the object entered last; at its end `None`, and the object is left.
    pub fn next_key(&mut self) -> Scan<Option<Key<'a>>> {
        Ok(None)
    }
    pub fn enter_array(&mut self) -> Scan<()> {
        Ok(())
    }
    /// Whether the array entered last has a next item; at its end false, and the array is left.
    pub fn next_item(&mut self) -> Scan<bool> {
        Ok(false)
    }
    /// Passes over one value of any kind, checking all of it.
    pub fn skip(&mut self) -> Scan<Raw<'a>> {
        Ok(Raw {
            text: self.text,
            kind: Kind::Null,
        })
    }
    pub fn text(&mut self) -> Scan<Text<'a>> {
        Ok(Text::default())
    }
    pub fn number(&mut self) -> Scan<Number<'a>> {
        Ok(Number { raw: "" })
    }
    pub fn boolean(&mut self) -> Scan<bool> {
        Ok(false)
    }
    pub fn null(&mut self) -> Scan<()> {
        Ok(())
    }
    /// Nothing but white space may follow the root.
    pub fn finish(&mut self) -> Scan<()> {
        Ok(())
    }
    /// Byte position of what comes next.
    pub fn pos(&self) -> usize {
        0
    }
    /// An integer outside of -2^63 to 2^64-1 was passed.
    pub fn wide_integer(&self) -> bool {
        false
    }
}
