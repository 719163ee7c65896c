//! Checks whether the lists whose items are decoded one by one have more items than one payload may have.
//!
//! A decoded item takes far more memory than its text: in a list of tool calls, an item `1` with its comma takes only
//! two bytes. The items are therefore counted before any of them is decoded.

use crate::json::Kind;
use crate::json::ScanError;
use crate::json::Scanner;

/// Each item counts as this many values.
const WEIGHT: u64 = 32;

/// Keys of lists whose items are decoded one by one, and of the objects that contain such lists.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Walked {
    pub(crate) lists: &'static [&'static str],
    pub(crate) objects: &'static [&'static str],
}

/// Returns true if the `walked` lists of a valid JSON document have more items in total than `max_values` allows.
///
/// The document itself may be a list. Also returns true if the key of such a list or object is duplicated.
pub(crate) fn has_long_lists(text: &str, walked: Walked, max_values: u64) -> bool {
    let most = max_values / WEIGHT;
    // An item takes at least two bytes.
    text.len() as u64 / 2 > most
        && !walked.lists.is_empty()
        && has_more_entries(&mut Scanner::of_validated(text), walked, most).unwrap_or(false)
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
    }
}
