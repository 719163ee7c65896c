//! Parses calls that are JSON objects with a name and an arguments object under known keys.

use crate::json::Kind;
use crate::json::Raw;
use crate::json::Scanner;
use crate::text_calls::entry::Entry;
use crate::text_calls::reading::Arguments;
use crate::text_calls::reading::GrammarState;
use crate::text_calls::reading::Parse;
use crate::text_calls::reading::ParseFailure;
use crate::text_calls::reading::ParsedCall;
use crate::text_calls::reading::Reading;
use crate::text_calls::reading::has_unique_keys;

/// Additional members that a call may contain. An object with any other member, such as `description`, is not a call.
const BESIDE: [&str; 5] = ["id", "type", "index", "tool_call_id", "call_id"];

/// How a family writes calls as JSON: the literals after the marker, the kinds of values, and the keys of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grammar {
    /// Literals after the marker.
    lead: Vec<String>,
    values: Vec<Values>,
    keys: Keys,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    Object,
    /// One or more objects in sequence.
    Objects,
    Array,
}

/// How a call's JSON object stores the tool name and the arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Keys {
    /// The object has one member: its key is the name, and its value, an object, is the arguments.
    Keyed,
    Named {
        name: String,
        arguments: Vec<String>,
        /// True if the arguments may also be a JSON string that contains an object.
        unwrap: bool,
    },
}

impl Grammar {
    pub fn read(entry: &Entry<'_>) -> Option<Grammar> {
        let words = entry.words("values");
        let is_keyed = words.iter().any(|word| word == "keyed");
        let values = words.iter().map(|word| match word.as_str() {
            "object" => Some(Values::Object),
            "objects" => Some(Values::Objects),
            "array" | "keyed" => Some(Values::Array),
            _ => None,
        });
        let named = || Keys::Named {
            name: entry.word("name").unwrap_or_else(|| "name".to_owned()),
            arguments: match entry.words("arguments") {
                words if words.is_empty() => {
                    ["arguments", "parameters"].map(str::to_owned).to_vec()
                }
                words => words,
            },
            unwrap: !entry.is_off("unwrap"),
        };
        Some(Grammar {
            lead: entry.words("lead"),
            values: values.collect::<Option<_>>()?,
            keys: if is_keyed { Keys::Keyed } else { named() },
        })
    }

    /// Reads the next value in the body of the block. Returns true if another object may follow before the closing
    /// literal.
    pub fn advance(&self, reading: &mut Reading, text: &str) -> Parse<bool> {
        if reading.state == GrammarState::Start {
            reading.expect_all(text, &self.lead)?;
            reading.state = GrammarState::Value;
        }
        let is_first = reading.calls.is_empty();
        let opener = reading.next(text)?;
        let repeats = match opener {
            '{' if self.values.contains(&Values::Objects) => true,
            '{' if is_first && self.values.contains(&Values::Object) => false,
            '[' if is_first && self.values.contains(&Values::Array) => false,
            _ => return Err(ParseFailure::Broken),
        };
        reading.opens(text, if opener == '{' { b'"' } else { b'{' })?;
        let raw = Raw {
            text: reading.json(text, opener)?,
            kind: if opener == '{' {
                Kind::Object
            } else {
                Kind::Array
            },
        };
        let calls = match raw.kind {
            Kind::Array => calls_in(raw, &self.keys),
            _ => call(raw, &self.keys).map(|call| vec![call]),
        };
        let calls = calls.filter(|calls| !calls.is_empty());
        reading.calls.extend(calls.ok_or(ParseFailure::Broken)?);
        Ok(repeats)
    }
}

fn calls_in(raw: Raw<'_>, keys: &Keys) -> Option<Vec<ParsedCall>> {
    let mut scanner = Scanner::of_validated(raw.text);
    scanner.enter_array().ok()?;
    let mut calls = Vec::new();
    while scanner.next_item().ok()? {
        calls.push(call(scanner.skip().ok()?, keys)?);
    }
    Some(calls)
}

/// Returns the call that an object describes, or `None` if the object is not a call.
///
/// The name and the arguments must each occur exactly once.
fn call(raw: Raw<'_>, keys: &Keys) -> Option<ParsedCall> {
    if raw.kind != Kind::Object || !has_unique_keys(raw.text) {
        return None;
    }
    let mut scanner = Scanner::of_validated(raw.text);
    scanner.enter_object().ok()?;
    let (mut name, mut arguments) = (None, None);
    while let Some(key) = scanner.next_key().ok()? {
        let key = key.name();
        let value = scanner.skip().ok()?;
        let is_broken = match keys {
            Keys::Keyed => {
                arguments = Some(object(value, false)?);
                name.replace(key.into_owned()).is_some()
            }
            Keys::Named { name: known, .. } if *known == key => {
                name.replace(string(value)?).is_some()
            }
            Keys::Named {
                arguments: known,
                unwrap,
                ..
            } if known.iter().any(|known| *known == key) => {
                arguments.replace(object(value, *unwrap)?).is_some()
            }
            Keys::Named { .. } => !BESIDE.contains(&key.as_ref()),
        };
        if is_broken {
            return None;
        }
    }
    Some(ParsedCall {
        name: name.filter(|name| !name.is_empty())?,
        arguments: Arguments::Object(arguments?),
    })
}

fn string(raw: Raw<'_>) -> Option<String> {
    if raw.kind != Kind::String {
        return None;
    }
    let (text, lone) = Scanner::of_validated(raw.text).text().ok()?.into_whole();
    (!lone).then(|| text.into_owned())
}

/// Returns the text of an object. If `unwrap` is set, the object may also be the content of a JSON string.
fn object(raw: Raw<'_>, unwrap: bool) -> Option<String> {
    match raw.kind {
        Kind::Object => Some(raw.text.to_owned()),
        Kind::String if unwrap => {
            let inner = string(raw)?;
            let mut scanner = Scanner::new(&inner, None);
            let value = scanner.skip().ok()?;
            scanner.finish().ok()?;
            let usable = value.kind == Kind::Object && has_unique_keys(value.text);
            usable.then(|| value.text.to_owned())
        }
        _ => None,
    }
}
