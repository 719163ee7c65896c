//! Calls as a name between literals, then a JSON object: `<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}`.

use crate::text_calls::entry::Entry;
use crate::text_calls::reading::Parse;
use crate::text_calls::reading::Place;
use crate::text_calls::reading::Reading;
use crate::text_calls::reading::Stop;

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
                    reading.next(text)?;
                    let raw = reading.name(text)?;
                    reading.name = self.name(raw).ok_or(Stop::Broken)?.to_owned();
                    reading.place = Place::Attribute;
                }
                Place::Attribute => {
                    let has_id = match &self.call_id {
                        Some(literal) => reading.take(text, literal)?,
                        None => false,
                    };
                    reading.place = if has_id {
                        Place::Key
                    } else {
                        Place::BeforeValue
                    };
                }
                Place::Key => {
                    reading.name(text)?;
                    reading.place = Place::BeforeValue;
                }
                Place::BeforeValue => {
                    if let Some(literal) = &self.maybe {
                        reading.take(text, literal)?;
                    }
                    reading.place = Place::Members;
                }
                Place::Members => {
                    reading.expect_all(text, &self.before)?;
                    reading.place = Place::Value;
                }
                Place::Value => {
                    reading.object(text)?;
                    reading.place = Place::AfterValue;
                }
                Place::AfterValue => {
                    reading.expect_all(text, &self.after)?;
                    reading.place = Place::Start;
                    return Ok(true);
                }
                Place::Object | Place::Opener | Place::AfterCall => return Err(Stop::Broken),
            }
        }
    }

    /// The name in what was written for it.
    fn name<'t>(&self, raw: &'t str) -> Option<&'t str> {
        let name = if self.has_counter {
            let (name, digits) = raw.rsplit_once(':')?;
            let counts = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
            counts.then_some(name)?
        } else {
            raw
        };
        let prefix = self.prefix.as_deref().unwrap_or_default();
        let name = name.strip_prefix(prefix).unwrap_or(name);
        (!name.is_empty()).then_some(name)
    }
}
