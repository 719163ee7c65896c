//! Renames members from their proto names (`finish_reason`) to their JSON names (`finishReason`).
//!
//! Protobuf parsers must accept both kinds of names: <https://protobuf.dev/programming-guides/json/>. Gateways that
//! dump objects from Google's Python SDK send proto names. Names inside arguments and results are not changed, because
//! they are defined by a client or a function, not by the API.

use crate::dialect::gemini::spec_tables::FACTS;
use crate::json::Key;
use crate::json::Kind;
use crate::json::Scan;
use crate::json::Scanner;
use memchr::memchr_iter;
use std::ops::Range;

/// Members whose value is an object that contains a member in `HELD`. The API does not define the content of a member
/// in `HELD`.
const HOLDERS: [&str; 4] = [
    "functionCall",
    "functionResponse",
    "toolCall",
    "toolResponse",
];
const HELD: [&str; 2] = ["args", "response"];

/// Returns the chunk with JSON names, or `None` if no member has a proto name. The chunk must be valid JSON.
pub(crate) fn in_json_names(text: &str) -> Option<String> {
    if !has_proto_key(text) {
        return None;
    }
    let mut keys = Vec::new();
    let mut scanner = Scanner::of_validated(text);
    find_keys(&mut scanner, text, false, &mut keys).ok()?;
    if keys.is_empty() {
        return None;
    }
    let mut renamed = String::with_capacity(text.len());
    let mut copied = 0;
    for (place, name) in keys {
        renamed.push_str(text.get(copied..place.start)?);
        renamed.push_str(name);
        copied = place.end;
    }
    renamed.push_str(text.get(copied..)?);
    Some(renamed)
}

/// Returns true if a key anywhere in the text is a proto name. The check is fast, and most chunks contain no proto
/// names.
fn has_proto_key(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_word = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'_';
    memchr_iter(b'_', bytes).any(|place| {
        let (before, after) = bytes.split_at(place);
        let lead = before
            .iter()
            .rev()
            .take_while(|byte| byte.is_ascii_lowercase());
        let start = place - lead.count();
        if start == 0 || bytes.get(start - 1) != Some(&b'"') {
            return false;
        }
        let end = place + after.iter().take_while(|byte| is_word(byte)).count();
        let mut rest = bytes.iter().skip(end);
        let is_key = rest.next() == Some(&b'"')
            && rest.find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
        is_key
            && text
                .get(start..end)
                .is_some_and(|name| json_name(name).is_some())
    })
}

fn json_name(name: &str) -> Option<&'static str> {
    let mut names = FACTS.proto_names.iter();
    names
        .find(|(proto, _)| *proto == name)
        .map(|(_, json)| json.as_str())
}

/// Collects the position and the JSON name of every key that is a proto name. `is_holder`: true if the value belongs to
/// one of `HOLDERS`.
fn find_keys<'a>(
    scanner: &mut Scanner<'a>,
    text: &'a str,
    is_holder: bool,
    keys: &mut Vec<(Range<usize>, &'static str)>,
) -> Scan<()> {
    match scanner.kind()? {
        Kind::Object => {
            scanner.enter_object()?;
            while let Some(Key { raw, .. }) = scanner.next_key()? {
                let name = json_name(raw);
                if let Some(name) = name {
                    let start = raw.as_ptr().addr() - text.as_ptr().addr();
                    keys.push((start..start + raw.len(), name));
                }
                let name = name.unwrap_or(raw);
                if is_holder && HELD.contains(&name) {
                    scanner.skip()?;
                } else {
                    find_keys(scanner, text, HOLDERS.contains(&name), keys)?;
                }
            }
        }
        Kind::Array => {
            scanner.enter_array()?;
            while scanner.next_item()? {
                find_keys(scanner, text, false, keys)?;
            }
        }
        _ => _ = scanner.skip()?,
    }
    Ok(())
}
