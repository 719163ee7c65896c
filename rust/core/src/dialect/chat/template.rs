//! The bytes around the varying members of a chunk, and whether a payload has them.

use super::cache::{Found, HOLES, Hole, Lesson, What};
use crate::json::{Kind, Raw};

/// Whether a number is what `digits` takes: anything else is part of the envelope.
pub(super) fn is_small(raw: Raw<'_>) -> bool {
    raw.kind == Kind::Number && digits(raw.text.as_bytes()) == raw.text.len()
}

/// A place in a payload, told by the fixed bytes and the number of holes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    fixed: usize,
    holes: usize,
}

#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) what: What,
    pub(crate) choice: i32,
    /// Metadata below the chunk level, which every such chunk carries.
    pub(crate) metadata: Option<String>,
    pub(super) head: Vec<u8>,
    /// Each hole with the bytes behind it.
    pub(super) holes: Vec<(Hole, Vec<u8>)>,
    details: Option<[Mark; 2]>,
    usage: Option<[Mark; 2]>,
    /// No line end stands in it, so that it can be known before it is cut out of its line.
    one_line: bool,
}

/// Where a part of the payload begins and ends.
fn range(payload: &str, raw: Raw<'_>) -> Option<(usize, usize)> {
    let start = (raw.text.as_ptr() as usize).checked_sub(payload.as_ptr() as usize)?;
    let end = start + raw.text.len();
    payload.get(start..end).map(|_| (start, end))
}

/// Cuts a payload at its holes.
pub(super) fn cut(payload: &str, choice: i32, lesson: Lesson<'_>) -> Option<Template> {
    let mut holes = Vec::with_capacity(lesson.holes.len());
    for (hole, raw) in &lesson.holes {
        let (start, end) = range(payload, *raw)?;
        holes.push(match hole {
            Hole::Index | Hole::Count => (*hole, start, end),
            // The quotes belong to the envelope.
            _ => (*hole, start + 1, end.checked_sub(1)?),
        });
    }
    holes.sort_by_key(|(_, start, _)| *start);
    let mark = |place: usize| {
        let before = holes.iter().take_while(|(_, _, end)| *end <= place);
        let (count, length) = before.fold((0, 0), |(count, length), (_, start, end)| {
            (count + 1, length + end - start)
        });
        Mark {
            fixed: place - length,
            holes: count,
        }
    };
    let marks = |raw: Option<Raw<'_>>| -> Option<Option<[Mark; 2]>> {
        let Some(raw) = raw else { return Some(None) };
        range(payload, raw).map(|(start, end)| Some([mark(start), mark(end)]))
    };
    let (details, usage) = (marks(lesson.details)?, marks(lesson.usage)?);
    let ends = holes
        .iter()
        .skip(1)
        .map(|(_, start, _)| *start)
        .chain([payload.len()]);
    let behind = holes
        .iter()
        .zip(ends)
        .map(|((hole, _, end), next)| Some((*hole, payload.as_bytes().get(*end..next)?.to_vec())));
    Some(Template {
        one_line: !payload.contains('\n'),
        what: lesson.what,
        choice,
        metadata: lesson.metadata,
        head: payload.as_bytes().get(..holes.first()?.1)?.to_vec(),
        holes: behind.collect::<Option<_>>()?,
        details,
        usage,
    })
}

impl Template {
    /// What stands in the holes of a payload with these bytes, and how long it is with its `ending`.
    #[inline]
    pub(super) fn fit<'p>(&self, input: &'p [u8], ending: Ending) -> Option<(Found<'p>, usize)> {
        let mut rest = input.strip_prefix(self.head.as_slice())?;
        let mut found = Found::default();
        let mut same: Option<&[u8]> = None;
        let mut lengths = [0; HOLES];
        for ((hole, behind), slot) in self.holes.iter().zip(&mut lengths) {
            let mut escaped = false;
            let length = match hole {
                Hole::Index | Hole::Count => digits(rest),
                _ => {
                    let length;
                    (length, escaped) = string(rest)?;
                    length
                }
            };
            *slot = length;
            let (value, after) = rest.split_at_checked(length)?;
            rest = after.strip_prefix(behind.as_slice())?;
            match hole {
                Hole::Text => {
                    found.text = std::str::from_utf8(value).ok()?;
                    found.escaped = escaped;
                }
                Hole::Same if same.is_none_or(|same| same == value) => same = Some(value),
                Hole::Index => found.index = Some(number(value)?),
                Hole::Id if !escaped => found.id = Some(std::str::from_utf8(value).ok()?),
                Hole::Name if !escaped => found.name = Some(std::str::from_utf8(value).ok()?),
                Hole::Count if length > 0 => {}
                Hole::Padding => _ = std::str::from_utf8(value).ok()?,
                Hole::Same | Hole::Id | Hole::Name | Hole::Count => return None,
            }
        }
        let end = ending
            .length(rest)
            .filter(|_| ending == Ending::Here || self.one_line)?;
        if same.is_some_and(|same| same != found.text.as_bytes()) {
            return None;
        }
        let part = |[start, end]: [Mark; 2]| {
            let place = |mark: Mark| mark.fixed + lengths.iter().take(mark.holes).sum::<usize>();
            std::str::from_utf8(input.get(place(start)..place(end))?).ok()
        };
        if let Some(marks) = self.details {
            found.details = Some(part(marks)?);
        }
        if let Some(marks) = self.usage {
            found.usage = Some(part(marks)?);
        }
        Some((found, input.len() - rest.len() + end))
    }
}

/// What has to follow a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Here,
    /// The ends of its line and of its event.
    BlankLine,
}

impl Ending {
    #[inline]
    fn length(self, rest: &[u8]) -> Option<usize> {
        match (self, rest) {
            (Ending::Here, []) => Some(0),
            (Ending::BlankLine, [b'\n', b'\n', ..]) => Some(2),
            (Ending::BlankLine, [b'\r', b'\n', b'\r', b'\n', ..]) => Some(4),
            _ => None,
        }
    }
}

/// The value of digits; `None` without any.
#[inline]
fn number(digits: &[u8]) -> Option<u32> {
    let value = |value: u32, digit: &u8| value * 10 + u32::from(digit - b'0');
    (!digits.is_empty()).then(|| digits.iter().fold(0, value))
}

/// The length of a small number without a sign or a leading zero; 0 where there is none, which no number fits.
fn digits(bytes: &[u8]) -> usize {
    match bytes {
        [b'0', ..] => 1,
        _ => bytes
            .iter()
            .take(9)
            .take_while(|byte| byte.is_ascii_digit())
            .count(),
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;

/// Whether one of eight bytes is a quote, a backslash or a control character; bytes above 127 may say so too.
#[inline]
fn special(word: u64) -> bool {
    let zero = |word: u64| word.wrapping_sub(ONES) & !word & TOPS;
    let quote = zero(word ^ (ONES * u64::from(b'"')));
    let backslash = zero(word ^ (ONES * u64::from(b'\\')));
    let control = word.wrapping_sub(ONES * 0x20) & !word & TOPS;
    (quote | backslash | control) != 0
}

/// The length of a JSON string up to its closing quote, and whether it holds escapes; `None` if it is none.
#[inline]
fn string(bytes: &[u8]) -> Option<(usize, bool)> {
    let mut at = 0;
    let mut escaped = false;
    loop {
        while let Some(word) = bytes.get(at..at + 8).and_then(|word| word.try_into().ok()) {
            if special(u64::from_le_bytes(word)) {
                break;
            }
            at += 8;
        }
        // At most eight plain bytes follow before one of the special ones, or the end.
        match bytes
            .get(at..)?
            .iter()
            .position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))
        {
            Some(run) => at += run,
            None => return None,
        }
        match bytes.get(at)? {
            b'"' => return Some((at, escaped)),
            b'\\' => {
                escaped = true;
                at += escape(bytes.get(at + 1..)?)?;
            }
            _ => return None,
        }
    }
}

/// The length of an escape, given what follows its backslash.
#[inline]
fn escape(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => Some(2),
        [b'u', a, b, c, d, ..] => [a, b, c, d]
            .iter()
            .all(|digit| digit.is_ascii_hexdigit())
            .then_some(6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Scanner;

    #[test]
    fn strings_end_where_json_says() {
        assert_eq!(string(br#"abc","x""#), Some((3, false)));
        assert_eq!(string(br#"","x""#), Some((0, false)));
        assert_eq!(
            string(br#"a long text with \"quotes\" and \u00e9 in it""#),
            Some((44, true))
        );
        assert_eq!(
            string("größer als früher, viel größer\"".as_bytes()),
            Some((35, false))
        );
        for broken in [
            &b"abc"[..],
            b"a\nb\"",
            b"\\x\"",
            b"\\u12g4\"",
            b"\\",
            b"\\u12",
            b"",
        ] {
            assert_eq!(string(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn every_length_and_place_of_a_special_byte() {
        for length in 0..40 {
            for byte in 0..=255u8 {
                let mut text = vec![b'a'; length];
                text.push(byte);
                text.extend(b"aaaaaaaaaaaaaaaaa\"");
                let quoted = [b"\"", text.as_slice()].concat();
                let valid = std::str::from_utf8(&quoted).ok().is_some_and(|text| {
                    let mut scanner = Scanner::new(text, None);
                    scanner.skip().is_ok()
                });
                let found = string(&text)
                    .filter(|(end, _)| std::str::from_utf8(text.get(..*end).unwrap()).is_ok());
                assert_eq!(found.is_some(), valid, "{byte} at {length}");
            }
        }
    }
}
