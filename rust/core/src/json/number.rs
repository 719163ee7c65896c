//! Measures a number token digit by digit in constant memory.
//!
//! The module determines whether an integer fits in 64 bits, and whether a float rounds to infinity. Both results are
//! exact, so they agree with every parser that rounds correctly.

/// The smallest number that rounds to infinity is 2^1024 - 2^970, because a tie rounds to the even neighbor.
const INFINITE_FROM: &[u8] = b"179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904174497792";

/// Once the exponent reaches this value, further digits are ignored.
///
/// The value is larger than any exponent that affects the result, but small enough to prevent an overflow.
const EXPONENT_CAP: i64 = 1 << 56;

/// How the digits that have been read compare with the digits of `INFINITE_FROM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Less,
    Same,
    Greater,
}

/// Size of one number token. The value is `0.d1d2d3… * 10^(scale + exponent)`, where `d1` is the first digit that is
/// not 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Magnitude {
    /// Value of the integer digits that have been read.
    value: u64,
    scale: i64,
    exponent: i64,
    /// Number of digits compared with `INFINITE_FROM`.
    compared: u16,
    order: Order,
    overflow: bool,
    nonzero: bool,
    negative: bool,
    float: bool,
    exponent_negative: bool,
}

impl Magnitude {
    pub(crate) const ZERO: Magnitude = Magnitude {
        value: 0,
        scale: 0,
        exponent: 0,
        compared: 0,
        order: Order::Same,
        overflow: false,
        nonzero: false,
        negative: false,
        float: false,
        exponent_negative: false,
    };

    pub(crate) fn minus(&mut self) {
        self.negative = true;
    }

    pub(crate) fn float(&mut self) {
        self.float = true;
    }

    pub(crate) fn exponent_minus(&mut self) {
        self.exponent_negative = true;
    }

    #[inline]
    pub(crate) fn integer_digit(&mut self, digit: u8) {
        let next = self
            .value
            .checked_mul(10)
            .and_then(|v| v.checked_add(u64::from(digit & 15)));
        match next {
            Some(value) => self.value = value,
            None => self.overflow = true,
        }
        if self.nonzero || digit != b'0' {
            self.nonzero = true;
            self.scale += 1;
            self.significant(digit);
        }
    }

    pub(crate) fn fraction_digit(&mut self, digit: u8) {
        if self.nonzero || digit != b'0' {
            self.nonzero = true;
            self.significant(digit);
        } else {
            self.scale -= 1;
        }
    }

    pub(crate) fn exponent_digit(&mut self, digit: u8) {
        if self.exponent < EXPONENT_CAP {
            self.exponent = self.exponent * 10 + i64::from(digit & 15);
        }
    }

    #[inline]
    fn significant(&mut self, digit: u8) {
        if self.order != Order::Same {
            return;
        }
        if let Some(limit) = INFINITE_FROM.get(usize::from(self.compared)) {
            self.compared += 1;
            if digit < *limit {
                self.order = Order::Less;
            } else if digit > *limit {
                self.order = Order::Greater;
            }
        }
    }

    /// Returns true if the number is a float that rounds to infinity. An integer is never infinite, because its exact
    /// text is kept.
    pub(crate) fn is_infinite(&self) -> bool {
        if !self.float || !self.nonzero {
            return false;
        }
        let exponent = if self.exponent_negative {
            -self.exponent
        } else {
            self.exponent
        };
        let positions = INFINITE_FROM.len() as i64;
        match (self.scale.saturating_add(exponent)).cmp(&positions) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Equal => match self.order {
                Order::Less => false,
                Order::Greater => true,
                // A shorter number is less than the limit, because its missing digits are zeros and the last digit of
                // the limit is not zero.
                Order::Same => usize::from(self.compared) == INFINITE_FROM.len(),
            },
        }
    }

    /// Returns true if the number is an integer outside -2^63 to 2^64-1.
    pub(crate) fn is_wide(&self) -> bool {
        !self.float && (self.overflow || (self.negative && self.value > 1 << 63))
    }

    /// Measures a complete token whose syntax has already been checked.
    pub(crate) fn of(token: &[u8]) -> Magnitude {
        let mut size = Magnitude::ZERO;
        let mut fraction = false;
        let mut exponent = false;
        for &byte in token {
            match byte {
                b'-' if exponent => size.exponent_minus(),
                b'-' => size.minus(),
                b'.' => {
                    fraction = true;
                    size.float();
                }
                b'e' | b'E' => {
                    exponent = true;
                    size.float();
                }
                b'0'..=b'9' if exponent => size.exponent_digit(byte),
                b'0'..=b'9' if fraction => size.fraction_digit(byte),
                b'0'..=b'9' => size.integer_digit(byte),
                _ => {}
            }
        }
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn infinite(token: &str) -> bool {
        let here = Magnitude::of(token.as_bytes()).is_infinite();
        if token.contains(['.', 'e', 'E']) {
            let std = token.parse::<f64>().unwrap().is_infinite();
            assert_eq!(here, std, "{token}");
        }
        here
    }

    #[test]
    fn the_edge_of_infinity_is_exact() {
        let limit = std::str::from_utf8(INFINITE_FROM).unwrap();
        let below = limit.strip_suffix("92").unwrap().to_owned() + "91";
        assert!(infinite(&format!("{limit}.0")));
        assert!(infinite(&format!("-{limit}.0")));
        assert!(infinite(&format!("{limit}e0")));
        assert!(!infinite(&format!("{below}.999999")));
        let (head, last) = limit.split_at(308);
        assert!(!infinite(&format!("{head}e1")));
        assert!(infinite(&format!("{head}.{last}e1")));
        assert!(infinite(&format!("{head}3e0")));
        assert!(infinite(&format!("0.{limit}e309")));
        assert!(!infinite(&format!("0.{limit}e308")));
        assert!(infinite(&format!("{limit}000e-3")));
        assert!(infinite(&format!("{limit}.00001")));
        for (text, too_big) in [(limit, true), (below.as_str(), false)] {
            let (head, tail) = text.split_at(9);
            assert_eq!(infinite(&format!("{head}.{tail}e300")), too_big);
        }
    }

    #[test]
    fn exponents_of_any_length() {
        assert!(infinite("1e309"));
        assert!(infinite("1e999"));
        assert!(infinite("1E+00000000000000000000000000000000000000999"));
        assert!(!infinite("1e-99999999999999999999999999999999999999999"));
        assert!(infinite("1e99999999999999999999999999999999999999999"));
        assert!(!infinite("0e99999999999999999999999999999999999999999"));
        assert!(!infinite("0.000e999"));
        assert!(!infinite("1.7976931348623157e308"));
        assert!(infinite("1.7976931348623159e308"));
        assert!(infinite(&format!("0.{}1e1000", "0".repeat(500))));
        assert!(!infinite(&format!("0.{}1e800", "0".repeat(500))));
        assert!(!infinite(&"9".repeat(400)));
        assert!(infinite(&format!("{}.5", "9".repeat(400))));
    }

    #[test]
    fn integers_of_64_bits() {
        for token in [
            "0",
            "-0",
            "18446744073709551615",
            "-9223372036854775808",
            "1e30",
            "1.5",
        ] {
            assert!(!Magnitude::of(token.as_bytes()).is_wide(), "{token}");
        }
        for token in [
            "18446744073709551616",
            "-9223372036854775809",
            "99999999999999999999999",
        ] {
            assert!(Magnitude::of(token.as_bytes()).is_wide(), "{token}");
        }
    }
}
