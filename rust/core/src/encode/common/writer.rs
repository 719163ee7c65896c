//! Builds the output bytes: frames, JSON strings and numbers.

/// Buffers the output. Every method except `into_text` appends to the buffer.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    pub(crate) bytes: Vec<u8>,
}

impl Writer {
    /// Returns the output as text.
    pub(crate) fn into_text(self) -> String {
        String::from_utf8(self.bytes).unwrap_or_default()
    }

    /// Appends text that is already JSON.
    #[inline]
    pub(crate) fn raw(&mut self, text: &str) -> &mut Writer {
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    /// Appends a JSON string, or null.
    pub(crate) fn text_or_null(&mut self, text: Option<&str>) -> &mut Writer {
        match text {
            Some(text) => self.string(text),
            None => self.raw("null"),
        }
    }

    /// Appends a JSON string.
    pub(crate) fn string(&mut self, text: &str) -> &mut Writer {
        self.bytes.push(b'"');
        self.inner(text);
        self.bytes.push(b'"');
        self
    }

    /// Appends the text between the quotes of a JSON string.
    pub(crate) fn inner(&mut self, text: &str) -> &mut Writer {
        let bytes = text.as_bytes();
        let (mut at, mut done) = (0, 0);
        while let Some(next) = next_special(bytes, at) {
            at = next + 1;
            let Some(escape) = Escape::of(bytes.get(next..).unwrap_or_default()) else {
                continue;
            };
            self.bytes
                .extend_from_slice(bytes.get(done..next).unwrap_or_default());
            done = next + escape.length;
            at = done;
            self.bytes.extend_from_slice(escape.text.as_bytes());
            if escape.text == "\\u00" {
                let byte = bytes.get(next).copied().unwrap_or_default();
                for nibble in [byte >> 4, byte & 15] {
                    let digit = char::from_digit(u32::from(nibble), 16).unwrap_or('0');
                    self.bytes.push(digit as u8);
                }
            }
        }
        self.bytes
            .extend_from_slice(bytes.get(done..).unwrap_or_default());
        self
    }

    pub(crate) fn number(&mut self, number: i64) -> &mut Writer {
        if number < 0 {
            self.bytes.push(b'-');
        }
        let mut digits = [0; 20];
        let mut rest = number.unsigned_abs();
        let mut count = 0;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
            count += 1;
            if rest == 0 {
                break;
            }
        }
        let start = digits.len() - count;
        self.bytes
            .extend_from_slice(digits.get(start..).unwrap_or_default());
        self
    }

    /// Appends the beginning of a frame without an event name.
    #[inline]
    pub(crate) fn data(&mut self) -> &mut Writer {
        self.raw("data: ")
    }

    /// Appends the end of a frame.
    #[inline]
    pub(crate) fn end(&mut self) {
        self.raw("\n\n");
    }

    /// Appends the terminal marker, for dialects that have one.
    pub(crate) fn done(&mut self) {
        self.raw("data: [DONE]\n\n");
    }
}

/// Number of bytes that are examined at a time. Most text contains nothing to escape.
const BLOCK: usize = 16;

/// For each byte, true if a character that begins with this byte may have to be escaped in a string.
const SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        // The index cannot cause a panic at run time, because the table is computed at compile time.
        #[allow(clippy::indexing_slicing)]
        {
            table[byte] = byte < 0x20 || matches!(byte, 0x22 | 0x5C | 0xE2);
        }
        byte += 1;
    }
    table
};

/// Returns the position of the next byte that may have to be escaped.
fn next_special(bytes: &[u8], from: usize) -> Option<usize> {
    let mut rest = bytes.get(from..)?;
    let mut at = from;
    while let Some((block, more)) = rest.split_first_chunk::<BLOCK>() {
        // This code has no branches, so that the compiler can vectorize it.
        let found = block.iter().fold(0, |found, &byte| {
            let quoted = u8::from(byte == b'"') | u8::from(byte == b'\\');
            found | quoted | u8::from(byte < 0x20) | u8::from(byte == 0xE2)
        });
        if found != 0 {
            break;
        }
        at += BLOCK;
        rest = more;
    }
    let is_special = |byte: &u8| SPECIAL.get(usize::from(*byte)).copied().unwrap_or(true);
    Some(at + rest.iter().position(is_special)?)
}

/// A character that must be escaped in a string.
struct Escape {
    text: &'static str,
    /// Length in UTF-8 bytes.
    length: usize,
}

impl Escape {
    /// Returns the escape for the first character, or `None` if this character needs no escape. U+2028 and U+2029 are
    /// escaped because older JavaScript engines treat them as line ends.
    fn of(bytes: &[u8]) -> Option<Escape> {
        let (text, length) = match bytes {
            [b'"', ..] => ("\\\"", 1),
            [b'\\', ..] => ("\\\\", 1),
            [b'\n', ..] => ("\\n", 1),
            [b'\r', ..] => ("\\r", 1),
            [b'\t', ..] => ("\\t", 1),
            [0x08, ..] => ("\\b", 1),
            [0x0C, ..] => ("\\f", 1),
            [0xE2, 0x80, 0xA8, ..] => ("\\u2028", 3),
            [0xE2, 0x80, 0xA9, ..] => ("\\u2029", 3),
            [0..0x20, ..] => ("\\u00", 1),
            _ => return None,
        };
        Some(Escape { text, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings() {
        let mut writer = Writer::default();
        writer.string("a\"\\/\n\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}é😀\u{2028}\u{2029}\u{2030}");
        let text = String::from_utf8(writer.bytes).unwrap();
        let same = "\"a\\\"\\\\/\\n\\r\\t\\b\\f\\u0001\\u001f\u{7f}é😀\\u2028\\u2029\u{2030}\"";
        assert_eq!(text, same);
    }

    #[test]
    fn frames() {
        let mut writer = Writer::default();
        writer
            .data()
            .number(i64::MIN)
            .raw(" ")
            .number(10)
            .number(0)
            .number(7)
            .end();
        writer.done();
        let text = String::from_utf8(writer.bytes).unwrap();
        assert_eq!(text, "data: -9223372036854775808 1007\n\ndata: [DONE]\n\n");
    }
}
