//! Calls as tags with a tag for each parameter: `<invoke name="f"><parameter name="k">v</parameter></invoke>`.
//!
//! It looks like XML and is not: a value is raw text up to the closing tag of its parameter, without entities.

use crate::text_calls::entry::Entry;
use crate::text_calls::grammar::add_member;
use crate::text_calls::reading::Parse;
use crate::text_calls::reading::Place;
use crate::text_calls::reading::Reading;
use crate::text_calls::reading::Stop;
use crate::text_calls::reading::Value;
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
                    reading.expect_all(text, &self.call.lead)?;
                    reading.place = Place::BeforeValue;
                }
                Place::BeforeValue => {
                    reading.expect_next(text, &self.call.open)?;
                    reading.place = Place::Name;
                }
                Place::Name => {
                    if reading.name.is_empty() {
                        reading.name = reading.name(text)?.to_owned();
                    }
                    if self.is_marked && self.call.is_empty(reading, text)? {
                        reading.place = Place::AfterCall;
                        reading.end_call();
                        continue;
                    }
                    reading.expect(text, &self.call.named)?;
                    reading.place = Place::Members;
                }
                Place::Members => {
                    let first = reading.next(text)?;
                    // An object may stand for all parameters.
                    if self.is_marked && first == '{' && reading.members.is_empty() {
                        reading.place = Place::Object;
                    } else if reading.take(text, &self.call.close)? {
                        reading.end_call();
                        reading.place = Place::AfterCall;
                    } else {
                        reading.place = Place::Opener;
                    }
                }
                Place::Object => {
                    reading.object(text)?;
                    reading.place = Place::AfterValue;
                }
                Place::AfterValue => {
                    reading.expect_next(text, &self.call.close)?;
                    reading.place = Place::AfterCall;
                }
                Place::Opener => {
                    reading.expect_next(text, &self.parameter.open)?;
                    reading.place = Place::Key;
                }
                Place::Key => {
                    if reading.key.is_empty() {
                        reading.key = reading.name(text)?.to_owned();
                    }
                    reading.expect(text, &self.parameter.named)?;
                    reading.place = Place::Attribute;
                }
                Place::Attribute => {
                    if self.is_marked {
                        reading.next(text)?;
                        reading.is_string = reading.take(text, "string=\"true\">")?;
                        if !reading.is_string {
                            reading.expect(text, "string=\"false\">")?;
                        }
                    }
                    reading.place = Place::Value;
                }
                Place::Value => {
                    self.value(reading, text)?;
                    reading.place = Place::Members;
                }
                Place::AfterCall => {
                    reading.expect_all(text, &self.call.tail)?;
                    reading.place = Place::Start;
                    return Ok(true);
                }
            }
        }
    }

    fn value(&self, reading: &mut Reading, text: &str) -> Parse<()> {
        let raw = reading.until(text, &self.parameter.close)?;
        // The closer of another one is missing.
        if raw.contains(&self.parameter.open) {
            return Err(Stop::Broken);
        }
        let value = match (self.is_marked, reading.is_string) {
            (true, true) => Value::Text(self.plain(raw).to_owned()),
            (true, false) => Value::Json(raw.trim_matches(is_blank).to_owned()),
            (false, _) => Value::Raw(self.plain(raw).to_owned()),
        };
        add_member(reading, value)
    }

    fn plain<'t>(&self, raw: &'t str) -> &'t str {
        if self.trims {
            without_newlines(raw)
        } else {
            raw
        }
    }
}

/// Without the newline that the template writes at each end.
fn without_newlines(raw: &str) -> &str {
    let raw = raw.strip_prefix('\n').unwrap_or(raw);
    raw.strip_suffix('\n').unwrap_or(raw)
}
