//! Counts the commas and opening brackets outside strings, to limit the number of values before any value is parsed.
//!
//! The number of values is at most one more than this count. The text may be invalid JSON. Nothing is allocated.

use memchr::memchr;
use memchr::memchr2;

/// Returns true if the text has more than `limit` commas and opening brackets outside strings.
pub(crate) fn has_more(text: &str, limit: u64) -> bool {
    let mut rest = text.as_bytes();
    let mut count = 0;
    // Each remaining byte adds at most 1 to the count. Stop when the limit can no longer be exceeded.
    while count + rest.len() as u64 > limit {
        let quote = memchr(b'"', rest);
        let (outside, string) = rest.split_at(quote.unwrap_or(rest.len()));
        let counts = |byte: &&u8| matches!(byte, b',' | b'[' | b'{');
        count += outside.iter().filter(counts).count() as u64;
        if quote.is_none() {
            return count > limit;
        }
        rest = after_string(string.get(1..).unwrap_or_default());
    }
    false
}

/// Returns the bytes after a string whose opening quote was consumed, or an empty slice if the string does not end.
fn after_string(string: &[u8]) -> &[u8] {
    let mut rest = string;
    while let Some(at) = memchr2(b'"', b'\\', rest) {
        let is_quote = rest.get(at) == Some(&b'"');
        rest = rest
            .get(at + if is_quote { 1 } else { 2 }..)
            .unwrap_or_default();
        if is_quote {
            return rest;
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_and_brackets_outside_of_strings() {
        let texts = [
            ("", 0),
            ("1", 0),
            ("[[],[],{}]", 6),
            (r#"{"a,[{":"\",[","b":[1,2]}"#, 4),
            (r#"[1,"a,,,,"#, 2),
            (r#"[1,"\"#, 2),
            ("x, y, [z", 3),
        ];
        for (text, count) in texts {
            for limit in 0..10 {
                assert_eq!(has_more(text, limit), count > limit, "{text} {limit}");
            }
        }
    }
}
