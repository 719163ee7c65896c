//! How many values a text can hold, told before one of them is read: its commas and opening brackets outside of strings.
//!
//! Every value stands behind one of these, but for the outermost. Nothing is built, and what is not JSON is counted too.

use memchr::memchr;
use memchr::memchr2;

/// Whether there are more of them than that.
pub(crate) fn has_more(text: &str, limit: u64) -> bool {
    let mut rest = text.as_bytes();
    let mut count = 0;
    // So many bytes hold no more than so many.
    while count + rest.len() as u64 > limit {
        let quote = memchr(b'"', rest);
        let (outside, string) = rest.split_at(quote.unwrap_or(rest.len()));
        let counts = |byte: &&u8| matches!(byte, b',' | b'[' | b'{');
        count += outside.iter().filter(counts).count() as u64;
        if quote.is_none() {
            return count > limit;
        }
        rest = behind(string.get(1..).unwrap_or_default());
    }
    false
}

/// What follows a string, of which the opening quote was taken; nothing where it does not end.
fn behind(string: &[u8]) -> &[u8] {
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
