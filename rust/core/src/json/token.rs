//! Finds the end of a string or number token, and rejects malformed tokens.
//!
//! The functions receive bytes and positions and return positions, so that a cursor can stay in registers.

use memchr::memchr2;

/// Returns the end of a string's content that begins at `start`, and whether the content contains escapes.
///
/// Returns `None` if the string is malformed or has no end.
#[inline(always)]
pub(crate) fn string_end(bytes: &[u8], start: usize) -> Option<(usize, bool)> {
    let end = start + run(bytes.get(start..)?, false);
    string_end_at(bytes, end, false)
}

/// Returns the same result as `string_end`, but is faster for short strings.
///
/// `no_control_chars`: true if the strings in the text certainly contain no control characters.
#[inline(always)]
pub(crate) fn string_end_in(
    bytes: &[u8],
    start: usize,
    no_control_chars: bool,
) -> Option<(usize, bool)> {
    let remaining = bytes.get(start..)?;
    let end = start
        + match remaining.split_first_chunk::<WIDE>() {
            Some((near, far)) => match special_among(near) {
                WIDE => WIDE + run(far, no_control_chars),
                end => end,
            },
            None => run_by_eights(remaining),
        };
    string_end_at(bytes, end, no_control_chars)
}

/// Returns the end of a string's content, given the position `end` of its first byte that is not plain text.
#[inline(always)]
fn string_end_at(bytes: &[u8], end: usize, no_control_chars: bool) -> Option<(usize, bool)> {
    if bytes.get(end) == Some(&b'"') {
        return Some((end, false));
    }
    Some((end_after_escapes(bytes, end, no_control_chars)?, true))
}

/// Returns true if the text has no control characters. The text does not have to be JSON.
pub(crate) fn has_no_control_chars(bytes: &[u8]) -> bool {
    // The loop has no early exit, so that the compiler can vectorize it.
    !bytes
        .iter()
        .fold(false, |found, byte| found | (*byte < 0x20))
}

/// Number of bytes examined at a time.
const WIDE: usize = 16;

/// If the content of a string is short, ASCII, and without escapes, returns its end. Most strings are short, ASCII, and
/// without escapes.
///
/// Returns `None` for other strings, and for strings near the end of the input.
#[inline(always)]
pub(crate) fn plain_end(bytes: &[u8]) -> Option<usize> {
    let word = u128::from_le_bytes(*bytes.first_chunk::<WIDE>()?);
    // Bytes that are not ASCII have their top bit set.
    let end = lowest(word, |word| special(word) | (word & (ONES << 7)));
    (bytes.get(end) == Some(&b'"')).then_some(end)
}

/// Returns the position of the first quote, backslash or control character, or `WIDE` if there is none.
#[inline(always)]
fn special_among(bytes: &[u8; WIDE]) -> usize {
    lowest(u128::from_le_bytes(*bytes), special)
}

/// Returns the position of the first byte that `found` marks, or `WIDE` if there is none. Both halves are examined in
/// integer registers, because moving a vector's result into these registers takes longer than the examination.
#[inline(always)]
fn lowest(word: u128, found: impl Fn(u64) -> u64) -> usize {
    let (near, far) = (found(word as u64), found((word >> 64) as u64));
    let bits = match near {
        0 => u64::BITS + far.trailing_zeros(),
        near => near.trailing_zeros(),
    };
    (bits / 8) as usize
}

#[inline(never)]
fn end_after_escapes(bytes: &[u8], first: usize, no_control_chars: bool) -> Option<usize> {
    let mut at = first;
    while bytes.get(at) == Some(&b'\\') {
        at += match bytes.get(at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
            b'u' if bytes.get(at + 2..at + 6)?.iter().all(u8::is_ascii_hexdigit) => 6,
            _ => return None,
        };
        at += run(bytes.get(at..)?, no_control_chars);
    }
    (bytes.get(at) == Some(&b'"')).then_some(at)
}

/// Returns the end of the object or array that begins at `start`, or `None` if it has no end.
///
/// Only brackets and strings are examined, so the text must be valid JSON.
#[inline(never)]
pub(crate) fn container_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    let mut depth = 0_usize;
    loop {
        at += before_structure(bytes.get(at..)?);
        match *bytes.get(at)? {
            b'"' => at = string_end_in(bytes, at + 1, true)?.0,
            b'{' | b'[' => depth += 1,
            _ if depth <= 1 => return Some(at + 1),
            _ => depth -= 1,
        }
        at += 1;
    }
}

/// Returns the number of bytes before the first bracket or quote.
#[inline(always)]
fn before_structure(bytes: &[u8]) -> usize {
    let mut remaining = bytes;
    while let Some((chunk, tail)) = remaining.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let quote = word ^ (ONES * b'"' as u64);
        // The same bit distinguishes `[` from `{`, and `]` from `}`.
        let brace = word | (ONES * 0x20);
        let (open, close) = (brace ^ (ONES * b'{' as u64), brace ^ (ONES * b'}' as u64));
        let found = quote.wrapping_sub(ONES) | open.wrapping_sub(ONES) | close.wrapping_sub(ONES);
        let found = found & !word & (ONES << 7);
        if found != 0 {
            return bytes.len() - remaining.len() + (found.trailing_zeros() / 8) as usize;
        }
        remaining = tail;
    }
    let other = |byte: &&u8| !matches!(**byte, b'"' | b'[' | b']' | b'{' | b'}');
    bytes.len() - remaining.len() + remaining.iter().take_while(other).count()
}

/// Returns the end of a number, and whether its size must be measured. Returns `None` if the number is malformed.
///
/// The size must be measured if the number may be infinite, or may be an integer outside 64 bits.
#[inline(always)]
pub(crate) fn number_end(bytes: &[u8], start: usize) -> Option<(usize, bool)> {
    let mut at = start;
    if byte(bytes, at) == b'-' {
        at += 1;
    }
    at = if byte(bytes, at) == b'0' {
        at + 1
    } else {
        digits_end(bytes, at)?
    };
    if !matches!(byte(bytes, at), b'.' | b'e' | b'E') {
        // A number with 18 digits always fits in 64 bits.
        return Some((at, at - start > 18));
    }
    float_end(bytes, start, at)
}

#[inline(never)]
fn float_end(bytes: &[u8], start: usize, point: usize) -> Option<(usize, bool)> {
    let mut at = point;
    // Without an exponent, a number with 300 digits is always finite.
    let mut measure = point - start > 300;
    if byte(bytes, at) == b'.' {
        at = fraction_end(bytes, at + 1)?;
    }
    if matches!(byte(bytes, at), b'e' | b'E') {
        measure = true;
        at += 1;
        if matches!(byte(bytes, at), b'+' | b'-') {
            at += 1;
        }
        at = digits_end(bytes, at)?;
    }
    Some((at, measure))
}

#[inline(always)]
fn digits_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    while byte(bytes, at).is_ascii_digit() {
        at += 1;
    }
    (at > start).then_some(at)
}

/// Returns the same result as `digits_end`, but is faster for many digits.
#[inline]
fn fraction_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*chunk);
        // A byte is a digit if and only if its upper four bits are 3, both before and after 6 is added.
        let upper = ONES * 0xF0;
        let digit = ONES * 0x30;
        let other = ((word & upper) ^ digit) | (((word.wrapping_add(ONES * 6)) & upper) ^ digit);
        if other != 0 {
            let end = at + (other.trailing_zeros() / 8) as usize;
            return (end > start).then_some(end);
        }
        at += 8;
    }
    match digits_end(bytes, at) {
        Some(end) => Some(end),
        None => (at > start).then_some(at),
    }
}

/// Returns the byte at a position, or 0 at the end of the input. Valid JSON never contains a byte 0.
#[inline(always)]
pub(crate) fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

/// Number of bytes that are examined 16 at a time, before longer blocks are used. Most strings end within these bytes.
const NEAR: usize = 64;

/// Returns the number of bytes at the start that are plain string text, without quotes, backslashes, or control
/// characters.
#[inline]
pub(crate) fn plain_run(bytes: &[u8]) -> usize {
    run(bytes, false)
}

#[inline]
fn run(bytes: &[u8], no_control_chars: bool) -> usize {
    match bytes.split_at_checked(NEAR) {
        None => near_run(bytes),
        Some((near, far)) => match near_run(near) {
            NEAR if no_control_chars => NEAR + memchr2(b'"', b'\\', far).unwrap_or(far.len()),
            NEAR => NEAR + far_run(far),
            run => run,
        },
    }
}

/// Returns the same result as `run`, and is fast for short text.
#[inline]
fn near_run(bytes: &[u8]) -> usize {
    let mut remaining = bytes;
    while let Some((chunk, tail)) = remaining.split_first_chunk::<WIDE>() {
        let end = special_among(chunk);
        if end < WIDE {
            return bytes.len() - remaining.len() + end;
        }
        remaining = tail;
    }
    bytes.len() - remaining.len() + run_by_eights(remaining)
}

/// Returns the same result as `run`, and is fast for long text. The text is examined in blocks, so that the compiler
/// can vectorize the loop.
#[inline(never)]
fn far_run(bytes: &[u8]) -> usize {
    let special = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    let mut remaining = bytes;
    while let Some((block, tail)) = remaining.split_first_chunk::<64>() {
        // The loop has no early exit, because an early exit would add a branch for each byte.
        if block
            .iter()
            .fold(false, |found, byte| found | special(*byte))
        {
            break;
        }
        remaining = tail;
    }
    bytes.len() - remaining.len() + near_run(remaining)
}

#[inline]
fn run_by_eights(bytes: &[u8]) -> usize {
    let mut remaining = bytes;
    while let Some((chunk, tail)) = remaining.split_first_chunk::<8>() {
        let found = special(u64::from_le_bytes(*chunk));
        if found != 0 {
            return bytes.len() - remaining.len() + (found.trailing_zeros() / 8) as usize;
        }
        remaining = tail;
    }
    bytes.len() - remaining.len() + short_run(remaining)
}

/// Returns the same result as `run_by_eights`, for fewer than eight bytes. Most argument fragments are shorter than
/// eight bytes.
#[inline]
fn short_run(remaining: &[u8]) -> usize {
    if let (Some(head), Some(tail)) = (remaining.first_chunk::<4>(), remaining.last_chunk::<4>()) {
        let found = special(u64::from(u32::from_le_bytes(*head)) | PLAIN_TOP);
        if found != 0 {
            return (found.trailing_zeros() / 8) as usize;
        }
        // The upper four bytes of the word are zero and count as special, so at least one special byte exists.
        let found = special(u64::from(u32::from_le_bytes(*tail)));
        return remaining.len() - 4 + (found.trailing_zeros() / 8) as usize;
    }
    let plain = |byte: &&u8| **byte >= 0x20 && **byte != b'"' && **byte != b'\\';
    remaining.iter().take_while(plain).count()
}

const ONES: u64 = u64::MAX / 255;
/// Plain text that fills the upper four bytes of a word with four bytes of input.
const PLAIN_TOP: u64 = (ONES * b'a' as u64) << 32;

/// Returns a word in which the top bit of each quote, backslash, or control character is set.
///
/// The lowest marked byte is always correct. A borrow from this byte can cause false positives only in higher bytes.
#[inline(always)]
fn special(word: u64) -> u64 {
    let quote = word ^ (ONES * b'"' as u64);
    let slash = word ^ (ONES * b'\\' as u64);
    let control = word.wrapping_sub(ONES * 0x20);
    (quote.wrapping_sub(ONES) | slash.wrapping_sub(ONES) | control) & !word & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_stops_where_a_byte_loop_does() {
        let plain = |byte: &&u8| **byte >= 0x20 && **byte != b'"' && **byte != b'\\';
        for stop in 0..=255u8 {
            for length in (1..24).chain([31, 32, 33, 95, 96, 97, 200]) {
                for at in (0..length).step_by(1 + length / 50) {
                    let mut bytes = vec![0xFF; length];
                    bytes[length - 1] = b'!';
                    bytes[at] = stop;
                    let expected = bytes.iter().take_while(plain).count();
                    assert_eq!(plain_run(&bytes), expected, "{stop} at {at} of {length}");
                    if let Some(near) = bytes.first_chunk() {
                        let expected = expected.min(WIDE);
                        assert_eq!(special_among(near), expected, "{stop} at {at} of {length}");
                    }
                    assert_eq!(
                        has_no_control_chars(&bytes),
                        stop >= 0x20,
                        "{stop} at {at} of {length}"
                    );
                    if has_no_control_chars(&bytes) {
                        assert_eq!(run(&bytes, true), expected, "{stop} at {at} of {length}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_end_of_a_container() {
        let texts = [
            "[]",
            "{}",
            "[[],[]]",
            r#"{"a":{"b":[1,{"c":"}"}]},"d":"]\\"}"#,
            r#"[ "\"]", { "x" : -1.5e3 } ]"#,
        ];
        for text in texts {
            let longer = format!("{text}]}},1");
            assert_eq!(
                container_end(longer.as_bytes(), 0),
                Some(text.len()),
                "{text}"
            );
        }
        for broken in ["[", "[[]", r#"{"a"#, r#"{"a":1"#] {
            assert_eq!(container_end(broken.as_bytes(), 0), None, "{broken}");
        }
    }

    #[test]
    fn ends() {
        assert_eq!(string_end(br#""abc" "#, 1), Some((4, false)));
        assert_eq!(string_end(br#""a\"\u00e9" "#, 1), Some((10, true)));
        assert_eq!(string_end(br#""a\"#, 1), None);
        assert_eq!(string_end(br#""a\u12"#, 1), None);
        assert_eq!(string_end(b"\"a\n\"", 1), None);
        assert_eq!(string_end(b"\"", 1), None);
        assert_eq!(number_end(b"-12,", 0), Some((3, false)));
        assert_eq!(number_end(b"1234567890123456789", 0), Some((19, true)));
        assert_eq!(number_end(b"1.5e+3", 0), Some((6, true)));
        assert_eq!(number_end(b"01", 0), Some((1, false)));
        for broken in [&b"-"[..], b"", b"1.", b"1e", b"1e+", b"-.5"] {
            assert_eq!(number_end(broken, 0), None);
        }
        for broken in [&b"1.,2345678"[..], b"1./2345678", b"1.:2345678"] {
            assert_eq!(number_end(broken, 0), None);
        }
    }

    #[test]
    fn a_fraction_ends_where_a_byte_loop_ends() {
        for stop in 0..=255_u8 {
            for digits in 1..30 {
                let mut text = b"0.".to_vec();
                text.extend(b"0918273645".iter().cycle().take(digits));
                text.push(stop);
                text.extend(b"0,1234567890,1234567890");
                let exponent = matches!(stop, b'e' | b'E');
                let end = text.len() - 1 - b"0,1234567890,1234567890".len();
                let end = match stop {
                    b'0'..=b'9' => Some((end + 2, false)),
                    _ if exponent => Some((end + 2, true)),
                    _ => Some((end, false)),
                };
                assert_eq!(number_end(&text, 0), end, "{stop} after {digits}");
                // Repeat the test at the end of the input, where fewer bytes can be read at once.
                let short = &text[..2 + digits];
                assert_eq!(number_end(short, 0), Some((2 + digits, false)));
            }
        }
    }

    #[test]
    fn brackets_and_quotes_are_found() {
        let wanted = |byte: u8| b"\"[]{}".contains(&byte);
        for stop in 0..=255_u8 {
            for before in 0..20 {
                for after in [0, 20] {
                    let mut text = vec![0xDB; before];
                    text.push(stop);
                    text.extend([b'{'].repeat(after));
                    let found = if wanted(stop) { before } else { before + 1 };
                    assert_eq!(before_structure(&text), found, "{stop} after {before}");
                }
            }
        }
    }
}
