//! Calls in braces with bare keys: `call:f{k:<|"|>v<|"|>,n:3}`. Strings stand between two of the family's own quotes.

use crate::json::Scanner;
use crate::json::write_string;
use crate::text_calls::entry::Entry;
use crate::text_calls::grammar::MAX_NESTING;
use crate::text_calls::grammar::add_member;
use crate::text_calls::reading::Nested;
use crate::text_calls::reading::Parse;
use crate::text_calls::reading::Place;
use crate::text_calls::reading::Reading;
use crate::text_calls::reading::Stop;
use crate::text_calls::reading::Value;
use crate::text_calls::reading::in_name;
use std::collections::HashSet;

/// The literals of one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Literals {
    prefix: String,
    quote: String,
    /// The type of what stands between quotes is that of the tool's schema.
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

    /// The one call of the block.
    pub fn advance(&self, reading: &mut Reading, text: &str) -> Parse<bool> {
        loop {
            match reading.place {
                Place::Start => {
                    if !self.prefix.is_empty() {
                        reading.expect_next(text, &self.prefix)?;
                    }
                    reading.place = Place::Name;
                }
                Place::Name => {
                    reading.name = reading.name(text)?.to_owned();
                    reading.place = Place::BeforeValue;
                }
                Place::BeforeValue => {
                    reading.expect_next(text, "{")?;
                    reading.place = Place::Members;
                }
                // What follows an opening bracket, or a member or item.
                Place::Members | Place::AfterValue => {
                    let next = reading.next(text)?;
                    if next == closer(reading) {
                        reading.at += 1;
                        if reading.nested.is_empty() {
                            reading.end_call();
                            return Ok(false);
                        }
                        end_nested(reading)?;
                    } else {
                        if reading.place == Place::AfterValue {
                            reading.expect(text, ",")?;
                        }
                        reading.place = match reading.nested.last() {
                            Some(Nested { keys: None, .. }) => Place::Value,
                            _ => Place::Opener,
                        };
                    }
                }
                Place::Opener => {
                    reading.next(text)?;
                    if reading.take(text, &self.quote)? {
                        reading.place = Place::Key;
                        continue;
                    }
                    let key = reading.run(text, in_word)?.to_owned();
                    begin_member(reading, key)?;
                }
                Place::Key => {
                    let key = reading.until(text, &self.quote)?.to_owned();
                    begin_member(reading, key)?;
                }
                Place::Attribute => {
                    reading.expect_next(text, ":")?;
                    reading.place = Place::Value;
                }
                Place::Value => {
                    if reading.nested.len() > MAX_NESTING {
                        return Err(Stop::Broken);
                    }
                    let next = reading.next(text)?;
                    if reading.take(text, &self.quote)? {
                        reading.place = Place::Object;
                    } else if matches!(next, '[' | '{') {
                        begin_value(reading);
                        reading.at += 1;
                        reading.json.push(next);
                        reading.nested.push(Nested {
                            keys: (next == '{').then(HashSet::new),
                            is_empty: true,
                        });
                        reading.place = Place::Members;
                    } else {
                        let word = reading.run(text, in_word)?;
                        let mut scanner = Scanner::new(word, None);
                        let raw = scanner.skip().map_err(|_| Stop::Broken)?;
                        scanner.finish().map_err(|_| Stop::Broken)?;
                        begin_value(reading);
                        reading.json.push_str(raw.text);
                        end_value(reading)?;
                    }
                }
                Place::Object => {
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
                    reading.place = Place::AfterValue;
                }
                Place::AfterCall => return Err(Stop::Broken),
            }
        }
    }
}

/// What closes the list or the object that is open.
fn closer(reading: &Reading) -> char {
    match reading.nested.last() {
        Some(Nested { keys: None, .. }) => ']',
        _ => '}',
    }
}

/// The key of a member was read.
fn begin_member(reading: &mut Reading, key: String) -> Parse<()> {
    reading.place = Place::Attribute;
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
    if is_new { Ok(()) } else { Err(Stop::Broken) }
}

/// A value begins: the comma before it, if it is not the first of a list. That of a member stands before its key.
fn begin_value(reading: &mut Reading) {
    if let Some(nested) = reading.nested.last_mut() {
        if !nested.is_empty {
            reading.json.push(',');
        }
        nested.is_empty = false;
    }
}

fn end_value(reading: &mut Reading) -> Parse<()> {
    reading.place = Place::AfterValue;
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

/// A bare key, or a number or word of JSON.
fn in_word(character: char) -> bool {
    character != ':' && in_name(character)
}
