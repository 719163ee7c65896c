//! Finds duplicate keys in the objects of a validated text, at any depth.
//!
//! Most payloads have no duplicate keys. Callers therefore call `may_repeat` on members that they parse anyway, and
//! scan the text only if the result is inconclusive.

use crate::json::Kind;
use crate::json::Raw;
use crate::json::Scanner;
use crate::json::members::Member;
use std::borrow::Cow;
use std::collections::HashSet;

/// Maximum number of keys that are compared pairwise. The hashes of more keys are sorted.
const FEW: usize = 32;

/// One step of a path: the name of a member, or `None` for any item of an array.
pub(crate) type PathStep<'a> = Option<Cow<'a, str>>;

/// Returns true if these members may have a duplicate key, and false if they certainly have none.
pub(crate) fn may_repeat(members: &[Member<'_>]) -> bool {
    if members.len() <= FEW {
        return members.iter().enumerate().any(|(at, member)| {
            let mut before = members.iter().take(at);
            member.key.escaped || before.any(|other| other.key.raw == member.key.raw)
        });
    }
    let mut marks: Vec<u64> = members.iter().map(|member| mark(member.key.raw)).collect();
    members.iter().any(|member| member.key.escaped) || has_equal(&mut marks)
}

/// Returns true if two of the numbers are equal. They are sorted, because a table of so many keys would outgrow the
/// processor's caches.
fn has_equal(marks: &mut [u64]) -> bool {
    marks.sort_unstable();
    let mut pairs = marks.iter().zip(marks.iter().skip(1));
    pairs.any(|(one, other)| one == other)
}

/// Initial capacities for keys and levels. These capacities are sufficient for most payloads, so that the vectors do
/// not grow.
const USUAL_KEYS: usize = 32;
const USUAL_LEVELS: usize = 12;

/// 2^64 divided by the golden ratio.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Returns a hash that is compared instead of the key. Different keys very rarely have equal hashes. Keys with equal
/// hashes are treated as equal.
#[inline]
fn mark(key: &str) -> u64 {
    let bytes = key.as_bytes();
    let (first, last) = match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
        _ => match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
            (Some(first), Some(last)) => {
                let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
                (u64::from(first) | u64::from(last) << 32, 0)
            }
            _ => (joined(bytes), 0),
        },
    };
    // An odd factor preserves all information in the first bytes. The last bytes are rotated, so that equal first and
    // last bytes do not cancel each other out.
    let ends = first.wrapping_mul(FACTOR) ^ last.rotate_left(23) ^ (bytes.len() as u64) << 56;
    let middle = bytes.get(8..bytes.len().saturating_sub(8));
    let middle = middle.unwrap_or_default().chunks(8);
    middle.fold(ends, |state, chunk| {
        let word = match chunk.first_chunk::<8>() {
            Some(word) => u64::from_le_bytes(*word),
            None => joined(chunk),
        };
        (state ^ word).wrapping_mul(FACTOR).rotate_left(23)
    })
}

/// Combines at most seven bytes into one integer.
#[inline]
fn joined(bytes: &[u8]) -> u64 {
    let bytes = bytes.iter();
    bytes.fold(0, |all, byte| all << 8 | u64::from(*byte))
}

/// Returns true if an object at any depth of the text may have a duplicate key, and false if no object has one.
pub(crate) fn may_repeat_in(text: &str) -> bool {
    let mut scanner = Scanner::of_validated(text);
    // The hashes of the keys of all open objects. `levels` contains, for each open container, the position at which its
    // keys begin, or `None` for an array.
    let mut keys: Vec<u64> = Vec::with_capacity(USUAL_KEYS);
    let mut levels: Vec<Option<usize>> = Vec::with_capacity(USUAL_LEVELS);
    loop {
        match scanner.kind() {
            Ok(Kind::Object) if scanner.enter_object().is_ok() => levels.push(Some(keys.len())),
            Ok(Kind::Array) if scanner.enter_array().is_ok() => levels.push(None),
            Ok(_) if scanner.skip().is_ok() => {}
            _ => return true,
        }
        loop {
            let Some(level) = levels.last().copied() else {
                return false;
            };
            let more = match level {
                None => scanner.next_item(),
                Some(start) => match scanner.next_key() {
                    Ok(None) => {
                        let own = keys.get_mut(start..).unwrap_or_default();
                        if own.len() > FEW && has_equal(own) {
                            return true;
                        }
                        keys.truncate(start);
                        Ok(false)
                    }
                    Ok(Some(key)) => {
                        let own = keys.get(start..).unwrap_or_default();
                        let mark = mark(key.raw);
                        if key.escaped || (own.len() < FEW && own.contains(&mark)) {
                            return true;
                        }
                        keys.push(mark);
                        Ok(true)
                    }
                    Err(error) => Err(error),
                },
            };
            match more {
                Ok(true) => break,
                Ok(false) => _ = levels.pop(),
                Err(_) => return true,
            }
        }
    }
}

/// An open object or array.
struct Level<'a> {
    object: bool,
    key: Cow<'a, str>,
    keys: HashSet<Cow<'a, str>>,
}

/// Returns the path of each member whose key has already occurred in its object, in the order in which their values
/// end.
pub(crate) fn repeats(text: &str) -> Vec<Vec<PathStep<'_>>> {
    let mut out = Vec::new();
    let mut scanner = Scanner::of_validated(text);
    let mut levels: Vec<Level<'_>> = Vec::new();
    loop {
        let Ok(kind) = scanner.kind() else { return out };
        let entered = match kind {
            Kind::Object => scanner.enter_object().map(|()| true),
            Kind::Array => scanner.enter_array().map(|()| true),
            _ => scanner.skip().map(|_| false),
        };
        let Ok(entered) = entered else { return out };
        if entered {
            levels.push(Level {
                object: kind == Kind::Object,
                key: Cow::Borrowed(""),
                keys: HashSet::new(),
            });
        }
        let mut whole = !entered;
        loop {
            if whole && levels.last_mut().is_some_and(is_duplicate) {
                out.push(levels.iter().map(path_step).collect());
            }
            let Some(level) = levels.last_mut() else {
                return out;
            };
            let more = if level.object {
                scanner.next_key().map(|key| {
                    let found = key.is_some();
                    level.key = key.map(|key| key.name()).unwrap_or_default();
                    found
                })
            } else {
                scanner.next_item()
            };
            match more {
                Ok(true) => break,
                Ok(false) => {
                    levels.pop();
                    whole = true;
                }
                Err(_) => return out,
            }
        }
    }
}

/// Records the key of a complete value. Returns true if the object already had that key.
fn is_duplicate(level: &mut Level<'_>) -> bool {
    level.object && !level.keys.insert(level.key.clone())
}

fn path_step<'a>(level: &Level<'a>) -> PathStep<'a> {
    level.object.then(|| level.key.clone())
}

/// Returns true if the value contains an integer outside -2^63 to 2^64-1.
pub(crate) fn has_wide_integer(raw: Raw<'_>) -> bool {
    let mut scanner = Scanner::new(raw.text, None);
    scanner.skip().is_ok() && scanner.wide_integer()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn duplicates(text: &str) -> Vec<String> {
        let paths = repeats(text).into_iter();
        let steps = |path: Vec<PathStep<'_>>| {
            let steps: Vec<String> = path
                .into_iter()
                .map(|step| step.map_or("*".to_owned(), Cow::into_owned))
                .collect();
            steps.join("/")
        };
        paths.map(steps).collect()
    }

    #[test]
    fn inner_duplicates_come_before_their_member() {
        let text =
            r#"{"a":{"b":1,"b":[{"c":0},{"c":1,"\u0063":{}}]},"x":2,"a":{"b":2,"b":3},"a":1}"#;
        assert_eq!(duplicates(text), ["a/b/*/c", "a/b", "a/b", "a", "a"]);
        assert!(duplicates(r#"[{"a":{}},{"a":[]}]"#).is_empty());
        assert!(duplicates("1").is_empty());
    }

    #[test]
    fn a_key_that_may_repeat_is_found_at_any_depth() {
        for text in ["1", "[]", r#"{"a":[{"a":1},{"a":{"a":[]}}],"b":{},"c":2}"#] {
            assert!(!may_repeat_in(text), "{text}");
        }
        let many = |repeated: usize| {
            let keys = (0..100).chain([repeated]);
            let members: Vec<String> = keys.map(|key| format!(r#""k{key}":{{"x":1}}"#)).collect();
            format!("[{{{}}}]", members.join(","))
        };
        assert!(!may_repeat_in(&many(100)));
        for repeated in [0, 31, 32, 33, 99] {
            assert!(may_repeat_in(&many(repeated)), "{repeated}");
        }
        for text in [
            r#"{"a":{},"b":[1],"a":2}"#,
            r#"[{"x":{"b":1,"b":1}}]"#,
            r#"{"\u0061":1}"#,
        ] {
            assert!(may_repeat_in(text), "{text}");
        }
    }

    #[test]
    fn marks_distinguish_the_keys_of_payloads() {
        let words = [
            "",
            "a",
            "b",
            "ab",
            "ba",
            "aa",
            "aaaaaaaa",
            "aaaaaaaaa",
            "index",
            "promptTokenCount",
            "promptTokensDetails",
            "candidatesTokenCount",
            "candidatesTokensDetails",
            "totalTokenCount",
            "thoughtsTokenCount",
            "toolUsePromptTokenCount",
            "finishReason",
            "finishMessage",
            "modelVersion",
            "responseId",
            "groundingChunks",
            "groundingSupports",
            "groundingMetadata",
            "webSearchQueries",
            "input_tokens",
            "output_tokens",
            "input_tokens_details",
            "output_tokens_details",
            "total_tokens",
            "ephemeral_1h_input_tokens",
            "ephemeral_5m_input_tokens",
            "ephemeral_1h_cached_input_tokens",
            "ephemeral_5m_cached_input_tokens",
            "ab12345678",
            "cd12345678",
            "12345678ab",
            "12345678cd",
            "\0",
            "\0\0",
        ];
        for (at, word) in words.iter().enumerate() {
            assert!(
                words.iter().take(at).all(|other| mark(other) != mark(word)),
                "{word}"
            );
        }
        let many: HashSet<u64> = (0..100_000)
            .map(|number| mark(&format!("option_{number}")))
            .collect();
        assert_eq!(many.len(), 100_000);
    }

    #[test]
    fn integers_that_do_not_fit() {
        let raw = |text| Raw {
            text,
            kind: Kind::Array,
        };
        assert!(has_wide_integer(raw("[{\"a\":18446744073709551616}]")));
        assert!(!has_wide_integer(raw("[{\"a\":18446744073709551615}]")));
    }
}
