//! What the scanner hands out: values, keys, numbers, and errors with their place.

use crate::json::text::Text;
use crate::json::verdict::Problem;
use std::borrow::Cow;

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
