//! Stores the JSON schema of a tool as a tree.
//!
//! `serde_json` reads an integer of more than 64 bits as a float, and refuses one that is beyond the range of floats.
//! In a schema, the size of an integer does not matter, but its type does.

use crate::json::Kind;
use crate::json::Scanner;
use std::collections::HashMap;

/// A JSON value in a schema. The values of numbers are not needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Schema {
    Null,
    Bool(bool),
    Integer,
    /// A number with a fraction or an exponent.
    Float,
    Text(String),
    List(Vec<Schema>),
    Object(HashMap<String, Schema>),
}

impl Schema {
    /// Parses a JSON text. Returns `None` if it is not valid.
    pub fn parse(text: &str) -> Option<Schema> {
        let mut scanner = Scanner::new(text, None);
        let schema = Schema::read(&mut scanner)?;
        scanner.finish().ok()?;
        Some(schema)
    }

    /// Reads the value at the cursor. Recursion is limited, because the scanner limits the depth.
    fn read(scanner: &mut Scanner<'_>) -> Option<Schema> {
        Some(match scanner.kind().ok()? {
            Kind::Null => {
                scanner.null().ok()?;
                Schema::Null
            }
            Kind::True | Kind::False => Schema::Bool(scanner.boolean().ok()?),
            Kind::Number if scanner.number().ok()?.is_integer() => Schema::Integer,
            Kind::Number => Schema::Float,
            Kind::String => {
                let (text, _) = scanner.text().ok()?.into_whole();
                Schema::Text(text.into_owned())
            }
            Kind::Array => {
                let mut items = Vec::new();
                scanner.enter_array().ok()?;
                while scanner.next_item().ok()? {
                    items.push(Schema::read(scanner)?);
                }
                Schema::List(items)
            }
            Kind::Object => {
                let mut members = HashMap::new();
                scanner.enter_object().ok()?;
                while let Some(key) = scanner.next_key().ok()? {
                    members.insert(key.name().into_owned(), Schema::read(scanner)?);
                }
                Schema::Object(members)
            }
        })
    }

    /// Returns the member with this key if the value is an object that has one.
    pub fn get(&self, key: &str) -> Option<&Schema> {
        match self {
            Schema::Object(members) => members.get(key),
            _ => None,
        }
    }

    /// Returns the text if the value is a string.
    pub fn text(&self) -> Option<&str> {
        match self {
            Schema::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the items if the value is a list, and no items for any other value.
    pub fn items(&self) -> &[Schema] {
        match self {
            Schema::List(items) => items,
            _ => &[],
        }
    }

    /// Returns the value to which a `$ref` in this document refers: a JSON Pointer in the fragment of a URI
    /// (<https://www.rfc-editor.org/rfc/rfc6901#section-6>). References to other documents are not resolved.
    pub fn referred(&self, reference: &str) -> Option<&Schema> {
        let pointer = reference.strip_prefix('#')?;
        if pointer.is_empty() {
            return Some(self);
        }
        let mut tokens = pointer.strip_prefix('/')?.split('/');
        tokens.try_fold(self, |schema, token| {
            let token = percent_decoded(token).replace("~1", "/").replace("~0", "~");
            match schema {
                Schema::Object(members) => members.get(&token),
                Schema::List(items) => items.get(index(&token)?),
                _ => None,
            }
        })
    }
}

/// Returns the index in a list that a reference token names. Signs and leading zeros are not allowed.
fn index(token: &str) -> Option<usize> {
    let is_number = token.bytes().all(|byte| byte.is_ascii_digit());
    let is_index = is_number && (token == "0" || !token.starts_with('0'));
    token.parse().ok().filter(|_| is_index)
}

/// Returns the text with its percent-encoded bytes decoded as UTF-8. A percent sign without two hexadecimal digits stays
/// as it is.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut pieces = text.split('%');
    bytes.extend(pieces.next().unwrap_or_default().bytes());
    for piece in pieces {
        match encoded_byte(piece) {
            Some((byte, rest)) => {
                bytes.push(byte);
                bytes.extend(rest.bytes());
            }
            None => {
                bytes.push(b'%');
                bytes.extend(piece.bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the byte that the two hexadecimal digits at the beginning of the text encode, and the text after them.
fn encoded_byte(text: &str) -> Option<(u8, &str)> {
    let (digits, rest) = text.split_at_checked(2)?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let byte = u8::from_str_radix(digits, 16).ok().filter(|_| is_hex);
    byte.map(|byte| (byte, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_any_size_stay_integers() {
        let digits = "9".repeat(5_000);
        let schema = Schema::parse(&format!(r#"[1, -0, {digits}, 1.0, 1e2]"#)).unwrap();
        let (integer, float) = (Schema::Integer, Schema::Float);
        let items = [&integer, &integer, &integer, &float, &float];
        assert_eq!(schema.items().iter().collect::<Vec<_>>(), items);
    }

    #[test]
    fn references_are_pointers_in_the_fragment() {
        let text = r#"{"a b": 1, "c/d": 1.5, "~1": true, "ä": null, "100%": "x", "l": [0, ["y"]]}"#;
        let schema = Schema::parse(text).unwrap();
        let expected = [
            ("#", Some(&schema)),
            ("#/a%20b", Some(&Schema::Integer)),
            ("#/a b", Some(&Schema::Integer)),
            ("#/c~1d", Some(&Schema::Float)),
            ("#/c%7e1d", Some(&Schema::Float)),
            ("#/~01", Some(&Schema::Bool(true))),
            ("#/%C3%A4", Some(&Schema::Null)),
            ("#/ä", Some(&Schema::Null)),
            ("#/100%", Some(&Schema::Text("x".to_owned()))),
            ("#/100%25", Some(&Schema::Text("x".to_owned()))),
            ("#/l/1/0", Some(&Schema::Text("y".to_owned()))),
            ("#/l/01", None),
            ("#/l/+1", None),
            ("#/l/2", None),
            ("#/l/", None),
            ("#/a%2", None),
            ("#/%+1", None),
            ("#a%20b", None),
            ("a%20b", None),
            ("", None),
        ];
        for (reference, found) in expected {
            assert_eq!(schema.referred(reference), found, "{reference}");
        }
    }
}
