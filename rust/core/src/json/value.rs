//! Types that the scanner returns: values, keys, numbers, and errors with their position.

use crate::json::text::Text;
use crate::json::validation::Problem;
use std::borrow::Cow;

/// The position at which the text becomes invalid, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanError {
    pub pos: usize,
    pub problem: Problem,
}

pub type Scan<T> = Result<T, ScanError>;

/// Kind of a value. The first byte of the value determines the kind.
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

/// The raw text of one value, without surrounding whitespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a> {
    pub text: &'a str,
    pub kind: Kind,
}

/// One value. Objects and arrays are stored as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Object(&'a str),
    Array(&'a str),
    String(Text<'a>),
    Number(Number<'a>),
    Bool(bool),
    Null,
}

/// Key of a member: the text between its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    pub raw: &'a str,
    pub escaped: bool,
}

impl<'a> Key<'a> {
    /// Returns the key with its escapes resolved.
    #[inline]
    pub fn name(&self) -> Cow<'a, str> {
        if self.escaped {
            Text::unescape(self.raw).into_whole().0
        } else {
            Cow::Borrowed(self.raw)
        }
    }

    /// Returns true if the key is this name. The lengths are compared first, in inlined code, because most names differ
    /// in length.
    #[inline(always)]
    pub fn is(&self, name: &str) -> bool {
        if self.escaped {
            return self.is_escaped(name);
        }
        self.raw.len() == name.len() && is_same(self.raw.as_bytes(), name.as_bytes())
    }

    #[cold]
    fn is_escaped(&self, name: &str) -> bool {
        self.name() == name
    }
}

/// Returns true if two names are equal.
///
/// Names are so short that calling a memory comparison function would take longer than this loop.
#[inline]
fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    if let (Some(first), Some(last)) = (one.first_chunk::<8>(), one.last_chunk::<8>()) {
        return other.first_chunk() == Some(first)
            && other.last_chunk() == Some(last)
            && (one.len() <= 16 || one == other);
    }
    if let (Some(first), Some(last)) = (one.first_chunk::<4>(), one.last_chunk::<4>()) {
        return other.first_chunk() == Some(first) && other.last_chunk() == Some(last);
    }
    one.iter().zip(other).all(|(one, other)| one == other)
}

/// A number token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number<'a> {
    pub raw: &'a str,
}

impl Number<'_> {
    /// Returns true if the number has neither a fraction nor an exponent.
    pub fn is_integer(&self) -> bool {
        !self
            .raw
            .bytes()
            .any(|byte| matches!(byte, b'.' | b'e' | b'E'))
    }

    /// If the token has no fraction or exponent and its value fits in a `u64`, returns the value.
    pub fn as_u64(&self) -> Option<u64> {
        match self.raw {
            "-0" => Some(0),
            raw => raw.parse().ok(),
        }
    }

    /// If the token has no fraction or exponent and its value fits in an `i64`, returns the value.
    pub fn as_i64(&self) -> Option<i64> {
        self.raw.parse().ok()
    }

    /// Returns the value of an integer, or of a float without a fractional part (`1.0`, `1e2`), if it fits in an `i64`.
    pub fn integral(&self) -> Option<i64> {
        if self.is_integer() {
            return self.as_i64();
        }
        let value: f64 = self.raw.parse().ok()?;
        // The value 2^63 itself does not fit.
        let fits = value.fract() == 0.0
            && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value);
        fits.then_some(value as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_equal_if_all_bytes_are() {
        for length in 0..40 {
            let name = "abcdefgh".repeat(5);
            let (name, _) = name.split_at(length);
            assert!(is_same(name.as_bytes(), name.as_bytes()), "{length}");
            assert!(!is_same(name.as_bytes(), format!("{name}x").as_bytes()));
            for at in 0..length {
                let mut other = name.as_bytes().to_vec();
                other[at] ^= 1;
                assert!(!is_same(name.as_bytes(), &other), "{at} of {length}");
            }
        }
    }
}
