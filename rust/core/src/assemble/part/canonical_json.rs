//! Computes the canonical form of a JSON value: equal values have the same canonical text, however they are written.
//!
//! The form does not depend on whitespace, escapes or the order of keys; numbers stay as they are written. A JSON
//! string that contains a JSON document has the canonical form of that document, because some gateways encode repeated
//! arguments twice.

use crate::json::Kind;
use crate::json::MAX_DEPTH;
use crate::json::Scan;
use crate::json::Scanner;
use crate::json::Status;
use crate::json::automaton::check;
use crate::json::write_string;

/// Returns true if the text is one complete JSON value.
pub fn is_whole(text: &[u8]) -> bool {
    check(text, MAX_DEPTH) == Status::Complete
}

/// Returns the canonical form of the text if it is a complete JSON value, or else the text itself.
pub fn canonical(text: &str) -> String {
    if let Some(inner) = unwrap(text) {
        return spell(&inner).unwrap_or(inner);
    }
    spell(text).unwrap_or_else(|| text.to_owned())
}

/// Returns the JSON document inside a JSON string, or `None` if the text is not a string or the string is not a
/// document.
pub fn unwrap(text: &str) -> Option<String> {
    let mut scanner = Scanner::new(text, None);
    if scanner.kind().ok()? != Kind::String {
        return None;
    }
    let (inner, _) = scanner.text().ok()?.into_whole();
    is_whole(inner.as_bytes()).then(|| inner.into_owned())
}

fn spell(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    write(&mut Scanner::new(text, None), &mut out).ok()?;
    Some(out)
}

/// Writes the canonical form of the next value. Recursion is safe, because the automaton has accepted the text and
/// limits its nesting depth.
fn write(scanner: &mut Scanner<'_>, out: &mut String) -> Scan<()> {
    match scanner.kind()? {
        Kind::Object => {
            let mut members: Vec<(String, String)> = Vec::new();
            scanner.enter_object()?;
            while let Some(key) = scanner.next_key()? {
                let key = key.name().into_owned();
                let mut value = String::new();
                write(scanner, &mut value)?;
                members.push((key, value));
            }
            // The sort is stable, so the last of several equal keys stays last and takes precedence.
            members.sort_by(|a, b| a.0.cmp(&b.0));
            out.push('{');
            let mut members = members.into_iter().peekable();
            while let Some((key, value)) = members.next() {
                if members.peek().is_some_and(|(next, _)| *next == key) {
                    continue;
                }
                write_string(out, &key);
                out.push(':');
                out.push_str(&value);
                out.push(',');
            }
            out.push('}');
        }
        Kind::Array => {
            out.push('[');
            scanner.enter_array()?;
            while scanner.next_item()? {
                write(scanner, out)?;
                out.push(',');
            }
            out.push(']');
        }
        Kind::String => write_string(out, &scanner.text()?.into_whole().0),
        _ => out.push_str(scanner.skip()?.text),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn spelling_does_not_matter() {
        let one = canonical(r#"{"b" : [1, "\u0041"], "a":{"x":null,"x":true}}"#);
        assert_eq!(one, canonical(r#"{"a":{"x":true},"b":[1,"A"]}"#));
        assert_ne!(one, canonical(r#"{"a":{"x":true},"b":[1.0,"A"]}"#));
    }

    #[test]
    fn a_string_has_the_canonical_form_of_its_document() {
        assert_eq!(canonical(r#""{\"a\":1}""#), canonical(r#"{ "a" : 1 }"#));
        assert_ne!(canonical(r#""{""#), canonical("{}"));
    }
}
