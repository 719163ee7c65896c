//! Calls as tags with a tag for each parameter: `<invoke name="f"><parameter name="k">v</parameter></invoke>`.
//!
//! It looks like XML and is not: a value is raw text up to the closing tag of its parameter, without entities.

use crate::text_calls::entry::Entry;
use crate::text_calls::grammar::add_member;
use crate::text_calls::grammar::json::has_unique_keys;
use crate::text_calls::reading::Arguments;
use crate::text_calls::reading::Parse;
use crate::text_calls::reading::Place;
use crate::text_calls::reading::Reading;
use crate::text_calls::reading::Stop;
use crate::text_calls::reading::Value;
use crate::text_calls::reading::in_name;
use crate::text_calls::reading::is_blank;

/// The tags of one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tags {
    call: Tag,
    parameter: Tag,
    /// The tag of a parameter says whether its value is a string.
    is_marked: bool,
    /// One newline at each end of a value is markup.
    trims: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Tag {
    lead: Vec<String>,
    open: String,
    /// Behind the name.
    named: String,
    close: String,
    tail: Vec<String>,
}

impl Tag {
    fn read(entry: &Entry<'_>) -> Option<Tag> {
        Some(Tag {
            lead: entry.words("lead"),
            open: entry.word("open")?,
            named: entry.word("named")?,
            close: entry.word("close")?,
            tail: entry.words("tail"),
        })
    }

    /// The tag of a call without anything in it closes itself.
    fn is_empty(&self, reading: &mut Reading, text: &str) -> Parse<bool> {
        match self.named.strip_suffix('>') {
            Some(named) => reading.take(text, &format!("{named}/>")),
            None => Ok(false),
        }
    }
}

impl Tags {
    pub fn read(entry: &Entry<'_>) -> Option<Tags> {
        Some(Tags {
            call: Tag::read(&entry.inner("call")?)?,
            parameter: Tag::read(&entry.inner("parameter")?)?,
            is_marked: entry.word("typed").is_some_and(|word| word == "attribute"),
            trims: entry.word("trim").is_some_and(|word| word == "newline"),
        })
    }

    /// One call of the block.
    pub fn advance(&self, reading: &mut Reading, text: &str) -> Parse<bool> {
        loop {
            match reading.place {
                Place::Start => {
                    let mut ahead = Reading::new(reading.at);
                    ahead.expect_all(text, &self.call.lead)?;
                    ahead.skip_blank(text);
                    ahead.expect(text, &self.call.open)?;
                    reading.at = ahead.at;
                    reading.place = Place::Name;
                }
                Place::Name => {
                    if reading.name.is_empty() {
                        reading.name = reading.run(text, in_name)?.to_owned();
                    }
                    if self.is_marked && self.call.is_empty(reading, text)? {
                        reading.place = Place::AfterCall;
                        continue;
                    }
                    reading.expect(text, &self.call.named)?;
                    reading.place = Place::BeforeValue;
                }
                // An object may stand for all parameters.
                Place::BeforeValue => {
                    reading.skip_blank(text);
                    let is_object = self.is_marked && reading.peek(text)? == '{';
                    reading.place = if is_object {
                        Place::Object
                    } else {
                        Place::Members
                    };
                }
                Place::Object => {
                    let raw = reading.json(text, &['{'])?.to_owned();
                    if !has_unique_keys(&raw) {
                        return Err(Stop::Broken);
                    }
                    reading.end_call_with(Arguments::Object(raw));
                    reading.place = Place::AfterValue;
                }
                Place::AfterValue => {
                    let mut ahead = Reading::new(reading.at);
                    ahead.skip_blank(text);
                    ahead.expect(text, &self.call.close)?;
                    ahead.expect_all(text, &self.call.tail)?;
                    reading.at = ahead.at;
                    reading.place = Place::Start;
                    return Ok(true);
                }
                Place::Members => {
                    reading.skip_blank(text);
                    let rest = reading.rest(text);
                    let (open, close) = (&self.parameter.open, &self.call.close);
                    if rest.starts_with(open.as_str()) {
                        reading.at += open.len();
                        reading.place = Place::Key;
                    } else if rest.starts_with(close.as_str()) {
                        reading.at += close.len();
                        reading.place = Place::AfterCall;
                    } else if open.starts_with(rest) || close.starts_with(rest) {
                        return Err(Stop::Cut);
                    } else {
                        return Err(Stop::Broken);
                    }
                }
                Place::Key => {
                    let such = |c| !(is_blank(c) || matches!(c, '<' | '>' | '"'));
                    if reading.key.is_empty() {
                        reading.key = reading.run(text, such)?.to_owned();
                    }
                    reading.expect(text, &self.parameter.named)?;
                    reading.place = Place::Attribute;
                }
                Place::Attribute => {
                    if self.is_marked {
                        let mut ahead = Reading::new(reading.at);
                        ahead.skip_blank(text);
                        ahead.expect(text, "string=\"")?;
                        reading.is_string = match ahead.peek(text)? {
                            't' => ahead.expect(text, "true\">").map(|()| true)?,
                            _ => ahead.expect(text, "false\">").map(|()| false)?,
                        };
                        reading.at = ahead.at;
                    }
                    reading.place = Place::Value;
                }
                Place::Value => {
                    self.value(reading, text)?;
                    reading.place = Place::Members;
                }
                Place::AfterCall => {
                    reading.expect_all(text, &self.call.tail)?;
                    reading.end_call();
                    reading.place = Place::Start;
                    return Ok(true);
                }
            }
        }
    }

    fn value(&self, reading: &mut Reading, text: &str) -> Parse<()> {
        let raw = reading.until(text, &self.parameter.close, Some(&self.parameter.open))?;
        let value = match (self.is_marked, reading.is_string) {
            (true, true) => Value::Text(raw.to_owned()),
            (true, false) => Value::Json(raw.trim_matches(is_blank).to_owned()),
            (false, _) if self.trims => Value::Raw(without_newlines(raw).to_owned()),
            (false, _) => Value::Raw(raw.to_owned()),
        };
        add_member(reading, value)
    }
}

/// Without the newline that the template writes at each end.
fn without_newlines(raw: &str) -> &str {
    let raw = raw.strip_prefix('\n').unwrap_or(raw);
    raw.strip_suffix('\n').unwrap_or(raw)
}
