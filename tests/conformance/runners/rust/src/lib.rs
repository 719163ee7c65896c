//! Runs the conformance suite over one reader; README.md of the suite describes cases and records.
//!
//! Implement [`Reader`] and call [`run`] with the folder `cases`. Portable cases of `stream` and `sse` run.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use serde_json::Value;

const COMPARED: [&str; 2] = ["sse", "stream"];
const WAYS: [&str; 3] = ["as given", "in one read", "by byte"];
/// Of a body that is read byte by byte.
const LONGEST: usize = 1 << 16;

/// The reader under test.
pub trait Reader {
    /// The record of a case, or `None` if the reader does not support it.
    fn read(&mut self, case: &Value, reads: &[Vec<u8>]) -> Option<Value>;
}

/// How many cases of a group passed, and which failed and why.
#[derive(Default)]
pub struct Outcome {
    pub groups: BTreeMap<String, (usize, usize)>,
    pub failed: BTreeMap<String, String>,
}

/// Run all portable cases of a folder.
///
/// # Errors
/// A file that cannot be read, or that is not JSON Lines.
pub fn run(reader: &mut dyn Reader, cases: &Path) -> io::Result<Outcome> {
    let mut outcome = Outcome::default();
    for category in COMPARED {
        for line in fs::read_to_string(cases.join(format!("{category}.jsonl")))?.lines() {
            let case: Value = serde_json::from_str(line)?;
            if case["portable"] != true {
                continue;
            }
            let group = case["dialect"].as_str().unwrap_or(category).to_owned();
            let Some(reason) = outcome_of(reader, &case) else {
                continue;
            };
            let counts = outcome.groups.entry(group).or_default();
            counts.1 += 1;
            match reason {
                None => counts.0 += 1,
                Some(reason) => {
                    outcome
                        .failed
                        .insert(case["id"].as_str().unwrap_or_default().to_owned(), reason);
                }
            }
        }
    }
    Ok(outcome)
}

/// `None`: not supported; `Some(None)`: passed; otherwise the reason.
fn outcome_of(reader: &mut dyn Reader, case: &Value) -> Option<Option<String>> {
    let reads: Vec<Vec<u8>> = case["reads"]
        .as_array()
        .into_iter()
        .flatten()
        .map(bytes_of)
        .collect();
    let body = reads.concat();
    let mut ways = vec![reads, vec![body.clone()]];
    if body.len() <= LONGEST {
        ways.push(body.iter().map(|byte| vec![*byte]).collect());
    }
    for (way, pieces) in WAYS.iter().zip(&ways) {
        let record = reader.read(case, pieces)?;
        if let Some(reason) = judge(case, &record) {
            return Some(Some(format!("{way}: {reason}")));
        }
    }
    Some(None)
}

/// The bytes of one read, or of a part of it.
#[must_use]
pub fn bytes_of(entry: &Value) -> Vec<u8> {
    match entry {
        Value::String(text) => text.clone().into_bytes(),
        Value::Array(parts) => parts.iter().flat_map(bytes_of).collect(),
        _ => match (entry["base64"].as_str(), entry["repeat"].as_str()) {
            (Some(text), _) => base64(text),
            (None, Some(text)) => text
                .repeat(entry["times"].as_u64().unwrap_or(0) as usize)
                .into_bytes(),
            (None, None) => Vec::new(),
        },
    }
}

fn base64(text: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count, mut bytes) = (0u32, 0, Vec::new());
    for byte in text.bytes() {
        let Some(value) = LETTERS.iter().position(|letter| *letter == byte) else {
            break;
        };
        bits = bits << 6 | value as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

/// Why the record of this case is wrong.
#[must_use]
pub fn judge(case: &Value, record: &Value) -> Option<String> {
    if case["category"] == "sse" {
        return judge_sse(&case["expect"], record);
    }
    judge_stream(&case["expect"], record)
}

fn judge_stream(expect: &Value, record: &Value) -> Option<String> {
    let nothing = Vec::new();
    let calls = record["calls"].as_array().unwrap_or(&nothing);
    let wanted = expect["runnable"].as_array();
    if expect["fault"] == true {
        if record["error"].is_null() {
            return Some("the fault is not reported".into());
        }
        let allowed = wanted.unwrap_or(calls);
        let extra = calls
            .iter()
            .find(|call| !allowed.iter().any(|one| is_same_call(call, one, false)))?;
        return Some(format!("returns an incomplete call: {}", extra["name"]));
    }
    if !record["error"].is_null() {
        return Some(format!("raises: {}", record["error"]));
    }
    if let Some(wanted) = wanted {
        if calls.len() != wanted.len() {
            return Some(format!(
                "{} instead of {}",
                counted(calls.len(), "call"),
                wanted.len()
            ));
        }
        for (number, (call, one)) in calls.iter().zip(wanted).enumerate() {
            if !is_same_call(call, one, false) {
                return Some(format!("call {number}: name or arguments differ"));
            }
            if !is_same_call(call, one, true) {
                return Some(format!("call {number}: id differs"));
            }
        }
    }
    let members = [
        ("content", "text"),
        ("reasoning", "reasoning"),
        ("refusal", "refusal"),
    ];
    let other = members.iter().find(|(key, member)| {
        expect.get(*key).is_some() && !record[*member].is_null() && record[*member] != expect[*key]
    });
    other.map(|(_, member)| format!("{member} differs"))
}

fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

fn is_same_call(found: &Value, wanted: &Value, ids: bool) -> bool {
    let same = found["arguments"] == wanted["arguments"]
        || value_of(&found["arguments"]) == value_of(&wanted["arguments"]);
    if found["name"] != wanted["name"] || !same {
        return false;
    }
    let is_minted =
        wanted["id"] == "*" && found["id"].as_str().is_some_and(|id| !id.trim().is_empty());
    !ids || is_minted || found["id"] == wanted["id"]
}

/// Arguments as a value: their JSON, or the text itself where it is none.
fn value_of(arguments: &Value) -> Value {
    match arguments {
        Value::Null => Value::Object(serde_json::Map::new()),
        Value::String(text) if text.trim().is_empty() => Value::Object(serde_json::Map::new()),
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| arguments.clone()),
        _ => arguments.clone(),
    }
}

fn judge_sse(expect: &Value, record: &Value) -> Option<String> {
    if !record["error"].is_null() {
        return Some(format!("raises: {}", record["error"]));
    }
    let nothing = Vec::new();
    let found = record["events"].as_array().unwrap_or(&nothing);
    let wanted = expect["events"].as_array().unwrap_or(&nothing);
    if found.len() != wanted.len() {
        return Some(format!(
            "{} instead of {}",
            counted(found.len(), "event"),
            wanted.len()
        ));
    }
    for (number, (event, one)) in found.iter().zip(wanted).enumerate() {
        for (place, name) in ["event", "data", "id", "retry"].iter().enumerate() {
            let is_open = expect["not_compared"]
                .as_array()
                .is_some_and(|open| open.iter().any(|key| key == name));
            if !is_open && event.get(place).is_some_and(|value| *value != one[place]) {
                return Some(format!("event {number}: {name} differs"));
            }
        }
    }
    None
}
