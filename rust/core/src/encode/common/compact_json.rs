//! Formats JSON from the wire: puts values into one canonical form, and removes the whitespace from argument text.
//!
//! Expects valid JSON. If the text is invalid, only the part before the error is written.

use crate::encode::common::writer::Writer;
use crate::json::Kind;
use crate::json::Number;
use crate::json::Scan;
use crate::json::Scanner;
use crate::model::small_map::Map;

/// Maximum number of digits of an integer that is written as a number. Python cannot print longer integers, so they are
/// written as JSON strings.
const MAX_INTEGER_DIGITS: usize = 16_384;

/// The form in which values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// Values are formatted as Python's `json.dumps` formats them in the pure backend: members in order of first
    /// appearance, and floats as in Python's `repr`.
    Python,
    /// Values are formatted for comparison: members are sorted, and `1.0` is written as `1`.
    Comparable,
}

/// Writes a value from the wire. If a key is duplicated, the last value is kept, at the position of the first.
pub(crate) fn canonical(to: &mut Writer, text: &str) {
    if write(to, &mut Scanner::new(text, None), Spelling::Python).is_err() {
        to.raw("null");
    }
}

/// Returns the same text for equal values, regardless of their formatting, or `None` if the text is not JSON.
pub(crate) fn comparable(text: &str) -> Option<Vec<u8>> {
    let mut scanner = Scanner::new(text, None);
    let mut to = Writer::default();
    write(&mut to, &mut scanner, Spelling::Comparable).ok()?;
    scanner.finish().ok()?;
    Some(to.bytes)
}

/// Writes one value. The scanner limits the nesting depth.
fn write(to: &mut Writer, scanner: &mut Scanner<'_>, spelling: Spelling) -> Scan<()> {
    match scanner.kind()? {
        Kind::Object => object(to, scanner, spelling)?,
        Kind::Array => {
            scanner.enter_array()?;
            let mut mark = "[";
            while scanner.next_item()? {
                to.raw(mark);
                mark = ",";
                write(to, scanner, spelling)?;
            }
            to.raw(if mark == "[" { "[]" } else { "]" });
        }
        Kind::String => {
            to.string(&scanner.text()?.into_whole().0);
        }
        Kind::Number => number(to, scanner.number()?, spelling),
        Kind::True | Kind::False | Kind::Null => {
            to.raw(scanner.skip()?.text);
        }
    }
    Ok(())
}

fn object(to: &mut Writer, scanner: &mut Scanner<'_>, spelling: Spelling) -> Scan<()> {
    let mut members: Vec<(String, Vec<u8>)> = Vec::new();
    let mut positions: Map<String, usize> = Map::default();
    scanner.enter_object()?;
    while let Some(key) = scanner.next_key()? {
        let key = key.name().into_owned();
        let mut value = Writer::default();
        write(&mut value, scanner, spelling)?;
        match positions
            .get(&key)
            .and_then(|position| members.get_mut(*position))
        {
            Some(member) => member.1 = value.bytes,
            None => {
                positions.insert(key.clone(), members.len());
                members.push((key, value.bytes));
            }
        }
    }
    if spelling == Spelling::Comparable {
        members.sort_unstable();
    }
    to.raw("{");
    for (position, (key, value)) in members.iter().enumerate() {
        if position > 0 {
            to.raw(",");
        }
        to.string(key).raw(":").bytes.extend_from_slice(value);
    }
    to.raw("}");
    Ok(())
}

/// Writes an integer as its digits, and a float as Python formats it. A float too large for Python becomes null,
/// because JSON cannot represent infinity.
fn number(to: &mut Writer, number: Number<'_>, spelling: Spelling) {
    if number.is_integer() {
        let long = number.raw.trim_start_matches('-').len() > MAX_INTEGER_DIGITS;
        if long && spelling == Spelling::Python {
            to.string(number.raw);
        } else {
            to.raw(if number.raw == "-0" { "0" } else { number.raw });
        }
        return;
    }
    let value: f64 = number.raw.parse().unwrap_or(f64::INFINITY);
    if value.is_infinite() {
        to.raw("null");
    } else if spelling == Spelling::Comparable && value.fract() == 0.0 {
        // Write the exact digits of the integer that the float equals. Negative zero is written as 0.
        let value = if value == 0.0 { 0.0 } else { value };
        to.raw(&format!("{value:.0}"));
    } else {
        to.raw(&repr(value));
    }
}

/// Formats a finite float as Python's `repr` does: the shortest digits that round-trip, with an exponent if the value
/// is below 1e-4 or at least 1e16. If two forms are equally close to the value, Python uses the one whose last digit is
/// even, but Rust may use the other.
fn repr(value: f64) -> String {
    let shortest = format!("{value:e}");
    let digits = |text: &str| {
        let mantissa = text.split('e').next().unwrap_or_default();
        mantissa.bytes().filter(u8::is_ascii_digit).count()
    };
    let rounded = format!("{value:.*e}", digits(&shortest).saturating_sub(1));
    let is_same = rounded.parse() == Ok(value);
    let scientific = if is_same { rounded } else { shortest };
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let after_point = i32::try_from(digits(&scientific)).unwrap_or(0) - 1 - exponent;
        return match usize::try_from(after_point) {
            Ok(places) if is_same && places > 0 => format!("{value:.places$}"),
            _ => format!("{value:?}"),
        };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

/// Writes the JSON text of an object as sent, but without whitespace between its tokens. Escapes characters that JSON
/// allows but clients reject: U+2028, U+2029 and unpaired surrogates.
pub(crate) fn spliced(to: &mut Writer, text: &str) {
    let bytes = text.as_bytes();
    let copy = |to: &mut Writer, from: usize, end: usize| {
        to.bytes
            .extend_from_slice(bytes.get(from..end).unwrap_or_default());
    };
    let (mut at, mut done, mut quoted) = (0, 0, false);
    while let Some(&byte) = bytes.get(at) {
        let rest = bytes.get(at..).unwrap_or_default();
        let (length, instead) = match (byte, quoted) {
            (b'"', _) => {
                quoted = !quoted;
                (1, None)
            }
            (b' ' | b'\t' | b'\n' | b'\r', false) => (1, Some("")),
            (b'\\', true) => match surrogate(rest) {
                Some(0xD800..0xDC00) if is_low(rest.get(6..)) => (12, None),
                Some(0xD800..0xE000) => (6, Some("\\ufffd")),
                _ => (2, None),
            },
            (0xE2, true) => match rest {
                [_, 0x80, 0xA8, ..] => (3, Some("\\u2028")),
                [_, 0x80, 0xA9, ..] => (3, Some("\\u2029")),
                _ => (1, None),
            },
            _ => (1, None),
        };
        if let Some(instead) = instead {
            copy(to, done, at);
            to.raw(instead);
            done = at + length;
        }
        at += length;
    }
    copy(to, done, bytes.len());
}

/// Returns the code unit of the `\uXXXX` escape at the beginning of the text, or `None` if there is no such escape.
fn surrogate(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn is_low(bytes: Option<&[u8]>) -> bool {
    matches!(bytes.and_then(surrogate), Some(0xDC00..0xE000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Writer)) -> String {
        let mut to = Writer::default();
        write(&mut to);
        String::from_utf8(to.bytes).unwrap()
    }

    #[test]
    fn floats_are_written_as_python_writes_them() {
        for (token, spelled) in [
            ("1e16", "1e+16"),
            ("1E15", "1000000000000000.0"),
            ("0.00001", "1e-05"),
            ("0.0001", "0.0001"),
            ("1e5", "100000.0"),
            ("-0.0", "-0.0"),
            ("-0", "0"),
            ("1.5e300", "1.5e+300"),
            ("123456789012345678.0", "1.2345678901234568e+17"),
            ("5e-324", "5e-324"),
            (
                "340282366920938463463374607431768211456",
                "340282366920938463463374607431768211456",
            ),
        ] {
            assert_eq!(text(|to| canonical(to, token)), spelled);
        }
    }

    #[test]
    fn integers_that_python_could_not_print_are_texts() {
        let digits = "9".repeat(MAX_INTEGER_DIGITS);
        assert_eq!(text(|to| canonical(to, &digits)), digits);
        let longer = format!("-{digits}0");
        assert_eq!(text(|to| canonical(to, &longer)), format!("\"{longer}\""));
    }

    #[test]
    fn values() {
        let sent = r#" { "b" : [ ] , "a\u0062" : { } , "b" : [ 1 , "\/\u2028" , null ] } "#;
        let spelled = r#"{"b":[1,"/\u2028",null],"ab":{}}"#;
        assert_eq!(text(|to| canonical(to, sent)), spelled);
        let same = r#"{"ab":{},"b":[1.0,"\u002f\u2028",null]}"#;
        assert_eq!(comparable(sent), comparable(same));
        assert_ne!(comparable("1"), comparable("true"));
        assert_eq!(comparable("1e2"), comparable("100"));
        assert_eq!(comparable("{"), None);
        assert_eq!(comparable("1 2"), None);
    }

    #[test]
    fn arguments_keep_their_spelling() {
        let sent = "{ \"a b\" : 1.50 , \"\\\" \\ud800\":\t\"\\ud83d\\ude00\u{2028}\\udc00\\u0041\" , \"a b\":2}";
        let spelled =
            "{\"a b\":1.50,\"\\\" \\ufffd\":\"\\ud83d\\ude00\\u2028\\ufffd\\u0041\",\"a b\":2}";
        assert_eq!(text(|to| spliced(to, sent)), spelled);
    }
}
