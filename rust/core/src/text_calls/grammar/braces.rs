//! Parses calls in braces with bare keys: `call:f{k:<|"|>v<|"|>,n:3}`. Strings are enclosed in quotation tokens that
//! the family defines.

use crate::json::write_string;
use crate::text_calls::entry::Entry;
use crate::text_calls::grammar::MAX_NESTING;
use crate::text_calls::grammar::add_member;
use crate::text_calls::grammar::is_number;
use crate::text_calls::reading::GrammarState;
use crate::text_calls::reading::Nested;
use crate::text_calls::reading::Parse;
use crate::text_calls::reading::ParseFailure;
use crate::text_calls::reading::Reading;
use crate::text_calls::reading::Value;
use crate::text_calls::reading::in_name;
use std::collections::HashSet;

/// The literals of one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Literals {
    prefix: String,
    quote: String,
    /// True if the tool's schema determines the type of a quoted value. If false, every quoted value is a string.
    is_typed: bool,
}

impl Literals {
    pub fn read(entry: &Entry<'_>) -> Option<Literals> {
        Some(Literals {
            prefix: entry.word("prefix").unwrap_or_default(),
            quote: entry.word("quote")?,
            is_typed: entry.word("typed").is_some_and(|word| word == "schema"),
        })
    }

    /// Reads the only call in the block, and returns false, because no other call may follow.
    pub fn advance(&self, reading: &mut Reading, text: &str) -> Parse<bool> {
        loop {
            match reading.state {
                GrammarState::Start => {
                    if !self.prefix.is_empty() {
                        reading.expect_next(text, &self.prefix)?;
                    }
                    reading.state = GrammarState::Name;
                }
                GrammarState::Name => {
                    reading.name = reading.name(text)?.to_owned();
                    reading.state = GrammarState::BeforeValue;
                }
                GrammarState::BeforeValue => {
                    reading.expect_next(text, "{")?;
                    reading.state = GrammarState::Members;
                }
                // After an opening bracket, a member, or an item, read the closing bracket or the next element.
                GrammarState::Members | GrammarState::AfterValue => {
                    let next = reading.next(text)?;
                    if next == closer(reading) {
                        reading.at += 1;
                        if reading.nested.is_empty() {
                            reading.end_call();
                            return Ok(false);
                        }
                        end_nested(reading)?;
                    } else {
                        if reading.state == GrammarState::AfterValue {
                            reading.expect(text, ",")?;
                        }
                        reading.state = match reading.nested.last() {
                            Some(Nested { keys: None, .. }) => GrammarState::Value,
                            _ => GrammarState::Opener,
                        };
                    }
                }
                GrammarState::Opener => {
                    reading.next(text)?;
                    if reading.take(text, &self.quote)? {
                        reading.state = GrammarState::Key;
                        continue;
                    }
                    let key = reading.run(text, in_word)?.to_owned();
                    begin_member(reading, key)?;
                }
                GrammarState::Key => {
                    let key = reading.until(text, &self.quote)?.to_owned();
                    begin_member(reading, key)?;
                }
                GrammarState::Attribute => {
                    reading.expect_next(text, ":")?;
                    reading.state = GrammarState::Value;
                }
                GrammarState::Value => {
                    if reading.nested.len() > MAX_NESTING {
                        return Err(ParseFailure::Broken);
                    }
                    let next = reading.next(text)?;
                    if reading.take(text, &self.quote)? {
                        reading.state = GrammarState::Object;
                    } else if matches!(next, '[' | '{') {
                        begin_value(reading);
                        reading.at += 1;
                        reading.json.push(next);
                        reading.nested.push(Nested {
                            keys: (next == '{').then(HashSet::new),
                            is_empty: true,
                        });
                        reading.state = GrammarState::Members;
                    } else {
                        let word = reading.run(text, in_word)?;
                        if !is_number(word) && !matches!(word, "true" | "false" | "null") {
                            return Err(ParseFailure::Broken);
                        }
                        begin_value(reading);
                        reading.json.push_str(word);
                        end_value(reading)?;
                    }
                }
                GrammarState::Object => {
                    let raw = reading.until(text, &self.quote)?;
                    if !reading.nested.is_empty() {
                        begin_value(reading);
                        write_string(&mut reading.json, raw);
                        end_value(reading)?;
                        continue;
                    }
                    let value = if self.is_typed {
                        Value::Raw(raw.to_owned())
                    } else {
                        Value::Text(raw.to_owned())
                    };
                    add_member(reading, value)?;
                    reading.state = GrammarState::AfterValue;
                }
                GrammarState::AfterCall | GrammarState::Counter => {
                    return Err(ParseFailure::Broken);
                }
            }
        }
    }
}

/// Returns the closing bracket of the innermost open list or object.
fn closer(reading: &Reading) -> char {
    match reading.nested.last() {
        Some(Nested { keys: None, .. }) => ']',
        _ => '}',
    }
}

/// Begins a member whose key has been read.
fn begin_member(reading: &mut Reading, key: String) -> Parse<()> {
    reading.state = GrammarState::Attribute;
    let Some(nested) = reading.nested.last_mut() else {
        reading.key = key;
        return Ok(());
    };
    if !nested.is_empty {
        reading.json.push(',');
    }
    nested.is_empty = true;
    write_string(&mut reading.json, &key);
    reading.json.push(':');
    let is_new = nested.keys.as_mut().is_some_and(|keys| keys.insert(key));
    if is_new {
        Ok(())
    } else {
        Err(ParseFailure::Broken)
    }
}

/// Begins a value. Writes a comma before the value, unless the value is the first item of a list or belongs to a
/// member.
///
/// The comma before a member was already written before its key.
fn begin_value(reading: &mut Reading) {
    if let Some(nested) = reading.nested.last_mut() {
        if !nested.is_empty {
            reading.json.push(',');
        }
        nested.is_empty = false;
    }
}

fn end_value(reading: &mut Reading) -> Parse<()> {
    reading.state = GrammarState::AfterValue;
    if reading.nested.is_empty() {
        let json = std::mem::take(&mut reading.json);
        add_member(reading, Value::Json(json))?;
    }
    Ok(())
}

fn end_nested(reading: &mut Reading) -> Parse<()> {
    reading.json.push(closer(reading));
    reading.nested.pop();
    end_value(reading)
}

/// Returns true if the character may occur in a bare key, a number, or a JSON word.
fn in_word(character: char) -> bool {
    character != ':' && in_name(character)
}
