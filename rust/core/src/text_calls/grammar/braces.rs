//! Calls in braces with bare keys: `call:f{k:<|"|>v<|"|>,n:3}`. Strings stand between two of the family's own quotes.

use crate::json::MAX_DEPTH;
use crate::json::Scanner;
use crate::json::write_string;
use crate::text_calls::entry::Entry;
use crate::text_calls::grammar::add_member;
use crate::text_calls::reading::Parse;
use crate::text_calls::reading::Place;
use crate::text_calls::reading::Reading;
use crate::text_calls::reading::Stop;
use crate::text_calls::reading::Value;
use crate::text_calls::reading::in_name;

/// The literals of one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Literals {
    prefix: String,
    quote: String,
}

impl Literals {
    pub fn read(entry: &Entry<'_>) -> Option<Literals> {
        Some(Literals {
            prefix: entry.word("prefix").unwrap_or_default(),
            quote: entry.word("quote")?,
        })
    }

    /// The one call of the block.
    pub fn advance(&self, reading: &mut Reading, text: &str) -> Parse<bool> {
        loop {
            match reading.place {
                Place::Start => {
                    reading.skip_blank(text);
                    reading.expect(text, &self.prefix)?;
                    reading.place = Place::Name;
                }
                Place::Name => {
                    reading.name = reading.run(text, in_name)?.to_owned();
                    reading.place = Place::BeforeValue;
                }
                Place::BeforeValue => {
                    reading.expect(text, "{")?;
                    reading.place = Place::Members;
                }
                Place::Members => {
                    reading.skip_blank(text);
                    if reading.peek(text)? == '}' {
                        reading.at += 1;
                        reading.end_call();
                        reading.place = Place::AfterCall;
                        return Ok(false);
                    }
                    reading.key = reading.run(text, in_key)?.to_owned();
                    reading.place = Place::Key;
                }
                Place::Key => {
                    reading.expect(text, ":")?;
                    reading.place = Place::Value;
                }
                Place::Value => {
                    if reading.take(text, &self.quote)? {
                        reading.place = Place::Attribute;
                        continue;
                    }
                    let mut ahead = Reading::new(reading.at);
                    let mut json = String::new();
                    self.value(&mut ahead, text, &mut json, 0)?;
                    reading.at = ahead.at;
                    add_member(reading, Value::Json(json))?;
                    reading.place = Place::AfterValue;
                }
                Place::Attribute => {
                    let raw = reading.until(text, &self.quote, None)?.to_owned();
                    add_member(reading, Value::Text(raw))?;
                    reading.place = Place::AfterValue;
                }
                Place::AfterValue => {
                    reading.skip_blank(text);
                    match reading.peek(text)? {
                        ',' => reading.at += 1,
                        '}' => {}
                        _ => return Err(Stop::Broken),
                    }
                    reading.place = Place::Members;
                }
                Place::Object | Place::AfterCall => return Err(Stop::Broken),
            }
        }
    }

    /// One value, written as JSON.
    fn value(&self, at: &mut Reading, text: &str, out: &mut String, depth: u32) -> Parse<()> {
        if depth > MAX_DEPTH {
            return Err(Stop::Broken);
        }
        at.skip_blank(text);
        if at.take(text, &self.quote)? {
            write_string(out, at.until(text, &self.quote, None)?);
            return Ok(());
        }
        match at.peek(text)? {
            '[' => self.several(at, text, out, depth, false),
            '{' => self.several(at, text, out, depth, true),
            _ => {
                let such = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
                let word = at.run(text, such)?;
                let mut scanner = Scanner::new(word, None);
                let raw = scanner
                    .skip()
                    .and_then(|raw| scanner.finish().map(|()| raw));
                out.push_str(raw.map_err(|_| Stop::Broken)?.text);
                Ok(())
            }
        }
    }

    fn several(
        &self,
        at: &mut Reading,
        text: &str,
        out: &mut String,
        depth: u32,
        keyed: bool,
    ) -> Parse<()> {
        let (open, close) = if keyed { ('{', '}') } else { ('[', ']') };
        at.at += 1;
        out.push(open);
        let mut keys: Vec<String> = Vec::new();
        let mut is_first = true;
        loop {
            at.skip_blank(text);
            if at.peek(text)? == close {
                at.at += 1;
                out.push(close);
                return Ok(());
            }
            if !is_first {
                out.push(',');
            }
            is_first = false;
            if keyed {
                let key = at.run(text, in_key)?.to_owned();
                write_string(out, &key);
                out.push(':');
                if keys.contains(&key) {
                    return Err(Stop::Broken);
                }
                keys.push(key);
                at.expect(text, ":")?;
            }
            self.value(at, text, out, depth + 1)?;
            at.skip_blank(text);
            match at.peek(text)? {
                ',' => at.at += 1,
                other if other == close => {}
                _ => return Err(Stop::Broken),
            }
        }
    }
}

fn in_key(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-' | '.' | '$')
}
