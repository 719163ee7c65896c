//! Checks the digits of `\u` escapes in strings that arrive byte by byte, and finds unpaired surrogates.

/// Escape state of one text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Escapes {
    unit: u16,
    digits: u8,
    /// True if the previous escape was a high surrogate.
    high: bool,
    lone: bool,
}

impl Escapes {
    /// Consumes a digit of a `\u` escape. Returns true if the digit is the last of the escape, or `None` if the byte is
    /// not a hexadecimal digit.
    pub(crate) fn digit(&mut self, byte: u8) -> Option<bool> {
        let digit = char::from(byte).to_digit(16)?;
        self.unit = (self.unit << 4) | (digit as u16);
        self.digits = (self.digits + 1) % 4;
        if self.digits > 0 {
            return Some(false);
        }
        match self.unit {
            0xD800..=0xDBFF => {
                self.other_text();
                self.high = true;
            }
            0xDC00..=0xDFFF => {
                self.lone |= !self.high;
                self.high = false;
            }
            _ => self.other_text(),
        }
        Some(true)
    }

    /// Records that other text, another escape, or the end of the string follows.
    ///
    /// A preceding high surrogate therefore stays unpaired.
    #[inline]
    pub(crate) fn other_text(&mut self) {
        self.lone |= self.high;
        self.high = false;
    }

    /// Returns true if the previous escape was a high surrogate.
    #[inline]
    pub(crate) fn half(&self) -> bool {
        self.high
    }

    pub(crate) fn lone_surrogate(&self) -> bool {
        self.lone
    }
}
