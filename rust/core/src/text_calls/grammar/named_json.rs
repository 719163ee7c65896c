//! Calls as a name between literals, then a JSON object: `<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}`.

use crate::text_calls::entry::Entry;
use crate::text_calls::grammar::json::has_unique_keys;
use crate::text_calls::reading::Arguments;
use crate::text_calls::reading::Parse;
use crate::text_calls::reading::Place;
use crate::text_calls::reading::Reading;
use crate::text_calls::reading::Stop;
use crate::text_calls::reading::in_name;

/// The literals of one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Literals {
    lead: Vec<String>,
    /// Before the name; may be missing.
    prefix: Option<String>,
    /// A colon and digits follow the name.
    has_counter: bool,
    before: Vec<String>,
    after: Vec<String>,
    /// An id behind this literal may follow the name.
    call_id: Option<String>,
    /// Before the arguments; may be missing.
    maybe: Option<String>,
}

impl Literals {
    pub fn read(entry: &Entry<'_>) -> Literals {
        Literals {
            lead: entry.words("lead"),
            prefix: entry.word("prefix"),
            has_counter: entry.flag("counter"),
            before: entry.words("before"),
            after: entry.words("after"),
            call_id: entry.word("call_id"),
            maybe: entry.word("maybe"),
        }
    }

    /// One call of the block.
    pub fn advance(&self, reading: &mut Reading, text: &str) -> Parse<bool> {
        loop {
            match reading.place {
                Place::Start => {
                    reading.expect_all(text, &self.lead)?;
                    reading.place = Place::Name;
                }
                Place::Name => {
                    reading.skip_blank(text);
                    let raw = reading.run(text, in_name)?;
                    reading.name = self.name(raw).ok_or(Stop::Broken)?.to_owned();
                    reading.place = Place::Attribute;
                }
                Place::Attribute => {
                    if let Some(literal) = &self.call_id
                        && self.is_next(reading, text, literal)?
                    {
                        reading.at += literal.len();
                        reading.place = Place::Key;
                        continue;
                    }
                    reading.place = Place::BeforeValue;
                }
                Place::Key => {
                    reading.run(text, |c| {
                        c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
                    })?;
                    reading.place = Place::BeforeValue;
                }
                Place::BeforeValue => {
                    reading.expect_all(text, &self.before)?;
                    if let Some(literal) = &self.maybe
                        && self.is_next(reading, text, literal)?
                    {
                        reading.at += literal.len();
                    }
                    reading.place = Place::Value;
                }
                Place::Value => {
                    reading.skip_blank(text);
                    let raw = reading.json(text, &['{'])?.to_owned();
                    if !has_unique_keys(&raw) {
                        return Err(Stop::Broken);
                    }
                    reading.end_call_with(Arguments::Object(raw));
                    reading.place = Place::AfterValue;
                }
                Place::AfterValue => {
                    reading.expect_all(text, &self.after)?;
                    reading.place = Place::Start;
                    // Several calls stand in one block where each has its own beginning.
                    return Ok(!self.lead.is_empty());
                }
                Place::Members | Place::Object | Place::AfterCall => return Err(Stop::Broken),
            }
        }
    }

    /// Whether the literal comes next; a cut where that is open.
    fn is_next(&self, reading: &Reading, text: &str, literal: &str) -> Parse<bool> {
        Reading::new(reading.at).take(text, literal)
    }

    /// The name in what was written for it.
    fn name<'t>(&self, raw: &'t str) -> Option<&'t str> {
        let prefix = self.prefix.as_deref().unwrap_or_default();
        let name = raw.strip_prefix(prefix).unwrap_or(raw);
        if !self.has_counter {
            return Some(name);
        }
        let (name, digits) = name.rsplit_once(':')?;
        let counts = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        (counts && !name.is_empty()).then_some(name)
    }
}
