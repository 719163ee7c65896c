//! Checks whether the lists whose items are decoded individually exceed the limit on the number of items in one
//! payload.
//!
//! A decoded item takes far more memory than its text. For example, the item `1` in a list of tool calls takes only two
//! bytes, including its comma. The items are therefore counted before any item is decoded.

use crate::json::Kind;
use crate::json::ScanError;
use crate::json::Scanner;
use memchr::memchr_iter;
use memchr::memmem;

/// The number of values that each item counts as.
const WEIGHT: u64 = 32;

/// Keys of the lists whose items are decoded individually, and of the objects that contain these lists.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Walked {
    pub(crate) lists: &'static [&'static str],
    pub(crate) objects: &'static [&'static str],
}

/// Returns true if the `walked` lists of a valid JSON document have more items in total than `max_values` allows.
///
/// The document itself may be a list. Also returns true if a key in `walked` is duplicated.
pub(crate) fn has_long_lists(text: &str, walked: Walked, max_values: u64) -> bool {
    let most = max_values / WEIGHT;
    // An item takes at least two bytes, including the bracket or comma before it.
    text.len() as u64 / 2 > most
        && !walked.lists.is_empty()
        && (separators(text) > most || may_repeat(text, walked))
        && has_more_entries(&mut Scanner::of_validated(text), walked, most).unwrap_or(false)
}

/// Returns the number of commas and opening square brackets, including those in strings. Most long payloads consist of
/// a few long strings. Counting takes far less time than finding the ends of all values.
fn separators(text: &str) -> u64 {
    let count = |byte| memchr_iter(byte, text.as_bytes()).count() as u64;
    count(b',') + count(b'[')
}

/// Returns true if a key in `walked` may occur more than once in the text. The function may also return true if no key
/// is duplicated.
fn may_repeat(text: &str, walked: Walked) -> bool {
    let mut keys = walked.lists.iter().chain(walked.objects);
    // A key with escapes contains `\u00`, because the keys in `walked` are ASCII.
    memmem::find(text.as_bytes(), b"\\u00").is_some() || keys.any(|key| occurs_again(text, key))
}

fn occurs_again(text: &str, key: &str) -> bool {
    let bytes = text.as_bytes();
    let is_key = |at: &usize| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        let after = bytes.get(at + key.len()..).unwrap_or_default();
        before == Some(&b'"')
            && after
                .strip_prefix(b"\"")
                .is_some_and(|after| after.trim_ascii_start().starts_with(b":"))
    };
    let places = memmem::find_iter(bytes, key);
    places.filter(is_key).nth(1).is_some()
}

fn has_more_entries(
    scanner: &mut Scanner<'_>,
    walked: Walked,
    most: u64,
) -> Result<bool, ScanError> {
    let mut room = most;
    match scanner.kind()? {
        Kind::Object => object(scanner, walked, &mut room),
        Kind::Array => list(scanner, walked, &mut room),
        _ => scanner.skip().map(|_| false),
    }
}

/// Returns true if the lists in the object have more than `room` items. Subtracts the counted items from `room`.
fn object(scanner: &mut Scanner<'_>, walked: Walked, room: &mut u64) -> Result<bool, ScanError> {
    let mut seen = Vec::new();
    scanner.enter_object()?;
    while let Some(key) = scanner.next_key()? {
        let name = key.name();
        if walked.lists.contains(&name.as_ref()) || walked.objects.contains(&name.as_ref()) {
            if seen.contains(&name) {
                return Ok(true); // treated as too many, because only the last duplicate would be counted
            }
            seen.push(name.clone());
        }
        let found = match scanner.kind()? {
            Kind::Array if walked.lists.contains(&name.as_ref()) => list(scanner, walked, room)?,
            Kind::Object if walked.objects.contains(&name.as_ref()) => {
                object(scanner, walked, room)?
            }
            _ => scanner.skip().map(|_| false)?,
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

fn list(scanner: &mut Scanner<'_>, walked: Walked, room: &mut u64) -> Result<bool, ScanError> {
    scanner.enter_array()?;
    while scanner.next_item()? {
        if *room == 0 {
            return Ok(true);
        }
        *room -= 1;
        let found = match scanner.kind()? {
            Kind::Object => object(scanner, walked, room)?,
            _ => scanner.skip().map(|_| false)?,
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALKED: Walked = Walked {
        lists: &["l"],
        objects: &["o"],
    };

    #[test]
    fn lists_that_are_decoded() {
        let long = "1,".repeat(40) + "1"; // 41 items
        let cases = [
            (format!("[{long}]"), true),
            (format!(r#"{{"l":[{long}]}}"#), true),
            (format!(r#"{{"o":{{"l":[{long}]}}}}"#), true),
            (
                format!(r#"{{"l":[{{"o":{{"l":[{}1]}}}}]}}"#, "1,".repeat(39)),
                true,
            ),
            (format!(r#"{{"x":[{long}],"o":[{long}]}}"#), false),
            (format!(r#"{{"x":{{"l":[{long}]}}}}"#), false),
            (format!(r#"{{"l":[[{long}]]}}"#), false),
            (format!("\"{long}\""), false),
        ];
        for (text, expected) in cases {
            assert_eq!(
                has_long_lists(&text, WALKED, 40 * WEIGHT),
                expected,
                "{text}"
            );
            assert!(!has_long_lists(&text, WALKED, 41 * WEIGHT), "{text}");
            assert!(!has_long_lists(&text, Walked::default(), 1), "{text}");
        }
        let twice = format!(r#"{{"o":{{}},"o":{{}},"x":[{long}]}}"#);
        assert!(has_long_lists(&twice, WALKED, 40 * WEIGHT));
        let words = "a".repeat(80);
        for twice in [r#""o":{},"o" :1"#, r#""l":[],"\u006c":[]"#] {
            let text = format!(r#"{{{twice},"x":"{words}"}}"#);
            assert!(has_long_lists(&text, WALKED, 40 * WEIGHT), "{text}");
        }
        for once in [r#""o":{},"x":"o""#, r#""l":[{"l":[]}]"#, r#""x":"\u0061""#] {
            let text = format!(r#"{{{once},"y":"{words}"}}"#);
            assert!(!has_long_lists(&text, WALKED, 40 * WEIGHT), "{text}");
        }
    }
}
