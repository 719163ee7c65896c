//! Parses small numbers in payloads. If the expected number is known, the bytes are only compared with that number.

/// The value 1 in each byte.
const ONES: u64 = u64::MAX / 255;

/// Parses a small number at the start of the input, without a sign or leading zero. Returns the number and its length.
#[inline(always)]
pub(crate) fn number(bytes: &[u8]) -> Option<(u32, usize)> {
    let Some(word) = bytes.first_chunk() else {
        return other_number(bytes);
    };
    let digits = u64::from_le_bytes(*word) ^ (ONES * u64::from(b'0'));
    // Set the top bit of each byte that is not a digit. The lowest of these bits is exact, because digits produce no
    // carry.
    let others = (digits.wrapping_add(ONES * 0x76) | digits) & (ONES << 7);
    let length = others.trailing_zeros() / 8;
    if length == 0 {
        return None;
    }
    if length == 8 || digits & 0xFF == 0 {
        return other_number(bytes);
    }
    // Move the digits to the high bytes, combine them into pairs, combine the pairs into groups of four, and combine
    // the groups into the value.
    let ones = digits << (64 - 8 * length);
    let pairs = (ones.wrapping_mul(10 << 8 | 1) >> 8) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs.wrapping_mul(100 << 16 | 1) >> 16) & 0x0000_FFFF_0000_FFFF;
    let value = fours.wrapping_mul(10_000 << 32 | 1) >> 32;
    Some((value as u32, length as usize))
}

/// Maximum number of digits of a small number.
const DIGITS: usize = 9;

/// Parses a number that `number` does not handle: zero, a long number, or a number near the end of the input.
#[inline(never)]
fn other_number(bytes: &[u8]) -> Option<(u32, usize)> {
    let (mut value, mut length) = (0, 0);
    for byte in bytes.iter().take(DIGITS) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 || (value == 0 && length > 0) {
            break;
        }
        (value, length) = (value * 10 + u32::from(digit), length + 1);
    }
    (length > 0).then_some((value, length))
}

/// The number that is expected next, with its digits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numeral {
    value: u32,
    /// ASCII digits of the number, with the first digit in the lowest byte.
    digits: u64,
    length: usize,
}

impl Numeral {
    /// Creates the expected number. Returns `None` if the number has too many digits.
    pub(crate) fn of(value: u32) -> Option<Numeral> {
        let (mut digits, mut rest, mut length) = (0, value, 0);
        loop {
            digits = digits << 8 | u64::from(rest % 10) | u64::from(b'0');
            (rest, length) = (rest / 10, length + 1);
            if rest == 0 {
                break;
            }
        }
        (length < 8).then_some(Numeral {
            value,
            digits,
            length,
        })
    }

    /// Returns the expected number and its length if the input begins with its digits, even if more digits follow.
    #[inline(always)]
    pub(crate) fn read(self, bytes: &[u8]) -> Option<(u32, usize)> {
        let Some(word) = bytes.first_chunk() else {
            return other_number(bytes).filter(|(value, _)| *value == self.value);
        };
        let others = (u64::from_le_bytes(*word) ^ self.digits) << (64 - 8 * self.length);
        (others == 0).then_some((self.value, self.length))
    }

    #[inline(always)]
    pub(crate) fn next(self) -> Option<Numeral> {
        let last = 8 * (self.length - 1);
        if self.digits >> last == u64::from(b'9') {
            return Numeral::of(self.value + 1);
        }
        Some(Numeral {
            value: self.value + 1,
            digits: self.digits + (1 << last),
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers() {
        for text in ["0", "7", "10", "409", "1234567", "12345678", "123456789"] {
            let expected = (text.parse().unwrap(), text.len());
            for following in ["", "}", ",\"a\":123", "/:;          "] {
                let bytes = format!("{text}{following}");
                assert_eq!(number(bytes.as_bytes()), Some(expected), "{bytes}");
            }
        }
        // A number ends after a leading zero or after nine digits.
        assert_eq!(number(b"012}\n\n   "), Some((0, 1)));
        assert_eq!(number(b"1234567890}"), Some((123_456_789, 9)));
        for none in ["", "}", "-1}\n\n     ", "\u{3b1}1234567", ":1234567"] {
            assert_eq!(number(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn numbers_that_are_expected() {
        for value in (0..1200).chain([9_998, 99_999, 999_999, 9_999_998]) {
            let mut numeral = Numeral::of(value).unwrap();
            for value in value..value + 2 {
                for following in ["", "}\n\n", ",\"a\":123"] {
                    let bytes = format!("{value}{following}");
                    let read = Some((value, value.to_string().len()));
                    assert_eq!(numeral.read(bytes.as_bytes()), read, "{bytes}");
                    let bytes = format!("{}{following}", value + 1);
                    assert_ne!(numeral.read(bytes.as_bytes()), read, "{bytes}");
                }
                numeral = match numeral.next() {
                    Some(next) => next,
                    None => break,
                };
            }
        }
        assert!(Numeral::of(9_999_999).unwrap().next().is_none());
    }
}
