//! Resolves the escapes of JSON strings, separates halves of surrogate pairs, and writes strings.
//!
//! The scanner must have validated the strings.

use crate::json::token::plain_run;
use crate::json::token::string_end;
use memchr::memchr;
use std::borrow::Cow;

/// Replacement for an unpaired surrogate.
const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// Text of one JSON string. Surrogate halves at the ends of the text are stored separately, because a stream may split
/// a pair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Text<'a> {
    pub body: Cow<'a, str>,
    /// Low surrogate at the very start, without its high surrogate.
    pub lead_low: Option<u16>,
    /// High surrogate at the very end, without its low surrogate.
    pub tail_high: Option<u16>,
    /// True if an unpaired surrogate in the middle was replaced with U+FFFD.
    pub lone: bool,
}

impl<'a> Text<'a> {
    /// Creates text that has no escapes.
    #[inline]
    pub fn plain(body: &'a str) -> Text<'a> {
        Text {
            body: Cow::Borrowed(body),
            lead_low: None,
            tail_high: None,
            lone: false,
        }
    }

    /// Decodes the text between the quotes of a valid JSON string.
    #[inline]
    pub fn unescape(raw: &'a str) -> Text<'a> {
        if has_backslash(raw.as_bytes()) {
            unescape(raw)
        } else {
            Text::plain(raw)
        }
    }

    /// Returns true if there is neither text nor half a surrogate pair.
    pub fn is_empty(&self) -> bool {
        self.body.is_empty() && self.lead_low.is_none() && self.tail_high.is_none()
    }

    /// Returns true if no surrogate half was separated or replaced.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.lead_low.is_none() && self.tail_high.is_none() && !self.lone
    }

    /// Converts the text to final text, to which no other text will be joined. Surrogate halves at the ends of the text
    /// become U+FFFD.
    ///
    /// The returned flag is true if there was an unpaired surrogate.
    pub fn into_whole(self) -> (Cow<'a, str>, bool) {
        if self.lead_low.is_none() && self.tail_high.is_none() {
            return (self.body, self.lone);
        }
        let mut whole = String::with_capacity(self.body.len() + 6);
        if self.lead_low.is_some() {
            whole.push(REPLACEMENT);
        }
        whole.push_str(&self.body);
        if self.tail_high.is_some() {
            whole.push(REPLACEMENT);
        }
        (Cow::Owned(whole), true)
    }

    /// Returns the same text in an owned buffer.
    pub fn into_owned(self) -> Text<'static> {
        Text {
            body: Cow::Owned(self.body.into_owned()),
            lead_low: self.lead_low,
            tail_high: self.tail_high,
            lone: self.lone,
        }
    }
}

/// Returns the character that a surrogate pair encodes.
fn pair(high: u16, low: u16) -> char {
    char::decode_utf16([high, low])
        .next()
        .and_then(Result::ok)
        .unwrap_or(REPLACEMENT)
}

fn is_high(unit: u16) -> bool {
    (0xD800..0xDC00).contains(&unit)
}

fn is_low(unit: u16) -> bool {
    (0xDC00..0xE000).contains(&unit)
}

/// Splits the text after `at` bytes. If this position is not a character boundary, returns the whole text and an empty
/// string.
///
/// In valid text, the position is always a character boundary.
fn split(text: &str, at: usize) -> (&str, &str) {
    text.split_at_checked(at).unwrap_or((text, ""))
}

/// Returns the code unit that four hexadecimal digits represent.
fn unit(digits: &str) -> u16 {
    u16::from_str_radix(digits, 16).unwrap_or(0xFFFD)
}

#[cold]
fn unescape(raw: &str) -> Text<'_> {
    let mut text = Text::default();
    let mut body = String::with_capacity(raw.len());
    let mut rest = raw;
    // A high surrogate that may form a pair with the next escape.
    let mut high: Option<u16> = None;
    // True once any text has been read. A low surrogate is stored separately only at the very start.
    let mut begun = false;
    while !rest.is_empty() {
        let run = memchr(b'\\', rest.as_bytes()).unwrap_or(rest.len());
        let (plain, escape) = split(rest, run);
        if !plain.is_empty() {
            if high.take().is_some() {
                body.push(REPLACEMENT);
                text.lone = true;
            }
            body.push_str(plain);
            begun = true;
        }
        if escape.is_empty() {
            break;
        }
        let (head, after) = split(escape, 2);
        rest = after;
        if head != "\\u" {
            if high.take().is_some() {
                body.push(REPLACEMENT);
                text.lone = true;
            }
            body.push(short_escape(head));
            begun = true;
            continue;
        }
        let (digits, after) = split(after, 4);
        rest = after;
        let unit = unit(digits);
        match (high.take(), is_low(unit)) {
            (Some(high), true) => body.push(pair(high, unit)),
            (waiting, _) => {
                if waiting.is_some() {
                    body.push(REPLACEMENT);
                    text.lone = true;
                }
                if is_high(unit) {
                    high = Some(unit);
                } else if is_low(unit) && !begun {
                    text.lead_low = Some(unit);
                } else if is_low(unit) {
                    body.push(REPLACEMENT);
                    text.lone = true;
                } else {
                    body.push(char::from_u32(u32::from(unit)).unwrap_or(REPLACEMENT));
                }
            }
        }
        begun = true;
    }
    text.tail_high = high;
    text.body = Cow::Owned(body);
    text
}

fn short_escape(escape: &str) -> char {
    match escape {
        "\\n" => '\n',
        "\\\"" => '"',
        "\\\\" => '\\',
        "\\/" => '/',
        "\\t" => '\t',
        "\\r" => '\r',
        "\\b" => '\u{8}',
        "\\f" => '\u{c}',
        _ => REPLACEMENT,
    }
}

/// The first half of a surrogate pair, held back between two deltas of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Surrogates {
    high: Option<u16>,
}

impl Surrogates {
    /// Joins a delta with the pending half of a surrogate pair. Returns the text to emit, and whether any surrogate
    /// remained unpaired.
    #[inline]
    pub fn join<'a>(&mut self, text: Text<'a>) -> (Cow<'a, str>, bool) {
        if self.high.is_none() && text.lead_low.is_none() && text.tail_high.is_none() {
            return (text.body, text.lone);
        }
        self.join_halves(text)
    }

    #[cold]
    fn join_halves<'a>(&mut self, text: Text<'a>) -> (Cow<'a, str>, bool) {
        // After an empty delta, the half is still pending.
        if text.is_empty() {
            return (text.body, text.lone);
        }
        let (head, alone) = match (self.high.take(), text.lead_low) {
            (Some(high), Some(low)) => (Some(pair(high, low)), false),
            (None, None) => (None, false),
            _ => (Some(REPLACEMENT), true),
        };
        self.high = text.tail_high;
        let body = match head {
            None => text.body,
            Some(head) => {
                let mut body = String::with_capacity(text.body.len() + head.len_utf8());
                body.push(head);
                body.push_str(&text.body);
                Cow::Owned(body)
            }
        };
        (body, alone || text.lone)
    }

    /// Returns true if half of a surrogate pair is pending.
    pub fn is_pending(&self) -> bool {
        self.high.is_some()
    }

    /// Ends the text. Returns U+FFFD if half of a surrogate pair is still held back.
    pub fn finish(&mut self) -> Option<char> {
        self.high.take().map(|_| REPLACEMENT)
    }
}

/// Appends the text as a quoted JSON string, and escapes only the characters that must be escaped.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    loop {
        let at = plain_run(rest.as_bytes());
        if at == rest.len() {
            break;
        }
        let (plain, tail) = split(rest, at);
        let (escaped, tail) = split(tail, 1);
        out.push_str(plain);
        match escaped.bytes().next().unwrap_or_default() {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0C => out.push_str("\\f"),
            byte => {
                out.push_str("\\u00");
                for nibble in [byte >> 4, byte & 15] {
                    out.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
                }
            }
        }
        rest = tail;
    }
    out.push_str(rest);
    out.push('"');
}

/// Removes insignificant whitespace from a valid JSON text.
pub fn compact(raw: &str) -> Cow<'_, str> {
    let bytes = raw.as_bytes();
    let mut out = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at + 1).map_or(bytes.len(), |(end, _)| end + 1),
            b' ' | b'\t' | b'\n' | b'\r' => {
                out.push_str(raw.get(copied..at).unwrap_or_default());
                at += 1;
                copied = at;
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(raw);
    }
    out.push_str(raw.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

/// Returns true if the text has a backslash.
///
/// Most texts are so short that calling a search function would take longer than this loop.
#[inline]
pub(crate) fn has_backslash(text: &[u8]) -> bool {
    let among = |bytes: &[u8]| {
        // The loop has no early exit, so that the compiler can vectorize it.
        bytes
            .iter()
            .fold(false, |found, byte| found | (*byte == b'\\'))
    };
    if text.len() > 64 {
        return memchr(b'\\', text).is_some();
    }
    if let Some(last) = text.last_chunk::<16>() {
        return among(last) || text.chunks_exact(16).any(among);
    }
    match (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        (Some(first), Some(last)) => among(first) || among(last),
        _ => match (text.first_chunk::<4>(), text.last_chunk::<4>()) {
            (Some(first), Some(last)) => among(first) || among(last),
            _ => text.contains(&b'\\'),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(body: &str, lead_low: Option<u16>, tail_high: Option<u16>, lone: bool) -> Text<'_> {
        Text {
            body: Cow::Borrowed(body),
            lead_low,
            tail_high,
            lone,
        }
    }

    #[test]
    fn backslashes_are_found() {
        for length in 0..100 {
            let mut text = vec![b'a'; length];
            assert!(!has_backslash(&text), "{length}");
            for at in 0..length {
                text[at] = b'\\';
                assert!(has_backslash(&text), "{at} of {length}");
                text[at] = b'a';
            }
        }
    }

    #[test]
    fn escapes() {
        let raw = r#"a\"b\\c\/d\b\f\n\r\té\u00e9\u0000\ud83d\ude00z"#;
        let plain = text("a\"b\\c/d\u{8}\u{c}\n\r\té\u{e9}\0😀z", None, None, false);
        assert_eq!(Text::unescape(raw), plain);
        assert!(matches!(Text::unescape("abc").body, Cow::Borrowed("abc")));
    }

    #[test]
    fn halves_at_the_ends_are_kept_and_inner_ones_replaced() {
        assert_eq!(
            Text::unescape(r"\ud800"),
            text("", None, Some(0xD800), false)
        );
        assert_eq!(
            Text::unescape(r"\udc00"),
            text("", Some(0xDC00), None, false)
        );
        assert_eq!(
            Text::unescape(r"\udc00\ud800"),
            text("", Some(0xDC00), Some(0xD800), false)
        );
        assert_eq!(
            Text::unescape(r"a\udc00"),
            text("a\u{fffd}", None, None, true)
        );
        assert_eq!(
            Text::unescape(r"\ud800a"),
            text("\u{fffd}a", None, None, true)
        );
        assert_eq!(
            Text::unescape(r"\ud800\n"),
            text("\u{fffd}\n", None, None, true)
        );
        assert_eq!(
            Text::unescape(r"\ud800\ud801\udc01"),
            text("\u{fffd}\u{10401}", None, None, true)
        );
        assert_eq!(
            Text::unescape(r"\ud800\ud801"),
            text("\u{fffd}", None, Some(0xD801), true)
        );
        assert_eq!(
            Text::unescape(r"\udc00\udc01"),
            text("\u{fffd}", Some(0xDC00), None, true)
        );
        assert_eq!(
            Text::unescape(r"\uD83D\uDE00"),
            text("😀", None, None, false)
        );
    }

    #[test]
    fn a_channel_joins_the_halves_of_two_deltas() {
        let mut channel = Surrogates::default();
        assert_eq!(
            channel.join(Text::unescape(r"a\ud83d")),
            ("a".into(), false)
        );
        assert!(channel.is_pending());
        assert_eq!(channel.join(Text::plain("")), ("".into(), false));
        assert_eq!(
            channel.join(Text::unescape(r"\ude00b")),
            ("😀b".into(), false)
        );
        assert!(!channel.is_pending());
        assert_eq!(
            channel.join(Text::unescape(r"\ude00b")),
            ("\u{fffd}b".into(), true)
        );
        assert_eq!(channel.join(Text::unescape(r"\ud83d")), ("".into(), false));
        assert_eq!(
            channel.join(Text::unescape(r"\ud83d")),
            ("\u{fffd}".into(), true)
        );
        assert_eq!(channel.join(Text::plain("x")), ("\u{fffd}x".into(), true));
        assert_eq!(channel.join(Text::unescape(r"\ud83d")), ("".into(), false));
        assert_eq!(channel.finish(), Some('\u{fffd}'));
        assert_eq!(channel.finish(), None);
    }

    #[test]
    fn alone_for_good() {
        assert_eq!(
            Text::unescape(r"\udc00x\ud800").into_whole(),
            ("\u{fffd}x\u{fffd}".into(), true)
        );
        assert_eq!(Text::unescape("x").into_whole(), ("x".into(), false));
    }

    #[test]
    fn strings_are_written_as_python_writes_them() {
        let mut out = String::new();
        write_string(&mut out, "a\"\\/\n\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}é😀");
        assert_eq!(out, "\"a\\\"\\\\/\\n\\r\\t\\b\\f\\u0001\\u001f\u{7f}é😀\"");
        out.clear();
        write_string(&mut out, "");
        assert_eq!(out, "\"\"");
    }

    #[test]
    fn white_space_is_removed_outside_strings() {
        assert_eq!(
            compact("{ \"a b\\\" \\\\\" :\n[1, 2\t]\r} "),
            "{\"a b\\\" \\\\\":[1,2]}"
        );
        assert!(matches!(compact("{\"a b\":1}"), Cow::Borrowed(_)));
    }
}
