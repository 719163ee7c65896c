//! The `\u` escapes of strings that arrive byte by byte: their digits, and surrogates without their pair.

/// What is remembered of the escapes of one text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Escapes {
    unit: u16,
    digits: u8,
    /// The escape just before was a high surrogate.
    high: bool,
    lone: bool,
}

impl Escapes {
    /// Takes a digit of a `\u` escape: true for the last one, `None` where it is no digit.
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

    /// Text that is no surrogate, or the end of the string: a high surrogate before it stays alone.
    #[inline]
    pub(crate) fn other_text(&mut self) {
        self.lone |= self.high;
        self.high = false;
    }

    /// Half of a pair was there just before.
    #[inline]
    pub(crate) fn half(&self) -> bool {
        self.high
    }

    pub(crate) fn lone_surrogate(&self) -> bool {
        self.lone
    }
}
