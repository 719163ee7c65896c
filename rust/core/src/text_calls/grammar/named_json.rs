//! Parses calls that consist of a name between literals, followed by a JSON object:
//! `<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}`.

use crate::text_calls::entry::Entry;
use crate::text_calls::reading::GrammarState;
use crate::text_calls::reading::Parse;
use crate::text_calls::reading::ParseFailure;
use crate::text_calls::reading::Reading;

/// The literals of one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Literals {
    lead: Vec<String>,
    /// Optional prefix of the name.
    prefix: Option<String>,
    /// True if the name ends with a colon and digits.
    has_counter: bool,
    before: Vec<String>,
    after: Vec<String>,
    /// Literal that may follow the name. An id follows the literal.
    call_id: Option<String>,
    /// Optional literal before the arguments.
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

    /// Reads one call in the block, and returns true, because another call may follow.
    pub fn advance(&self, reading: &mut Reading, text: &str) -> Parse<bool> {
        loop {
            match reading.state {
                GrammarState::Start => {
                    reading.expect_all(text, &self.lead)?;
                    reading.state = GrammarState::Name;
                }
                GrammarState::Name => {
                    reading.next(text)?;
                    let raw = reading.name(text)?;
                    reading.name = self.name(raw).ok_or(ParseFailure::Broken)?.to_owned();
                    reading.state = GrammarState::Attribute;
                }
                GrammarState::Attribute => {
                    let has_id = match &self.call_id {
                        Some(literal) => reading.take(text, literal)?,
                        None => false,
                    };
                    reading.state = if has_id {
                        GrammarState::Key
                    } else {
                        GrammarState::BeforeValue
                    };
                }
                GrammarState::Key => {
                    reading.name(text)?;
                    reading.state = GrammarState::BeforeValue;
                }
                GrammarState::BeforeValue => {
                    if let Some(literal) = &self.maybe {
                        reading.take(text, literal)?;
                    }
                    reading.state = GrammarState::Members;
                }
                GrammarState::Members => {
                    reading.expect_all(text, &self.before)?;
                    reading.state = GrammarState::Value;
                }
                GrammarState::Value => {
                    reading.object(text)?;
                    reading.state = GrammarState::AfterValue;
                }
                GrammarState::AfterValue => {
                    reading.expect_all(text, &self.after)?;
                    reading.state = GrammarState::Start;
                    return Ok(true);
                }
                GrammarState::Object
                | GrammarState::Opener
                | GrammarState::AfterCall
                | GrammarState::Counter => {
                    return Err(ParseFailure::Broken);
                }
            }
        }
    }

    /// Returns the name without its prefix and counter, or `None` if it is malformed.
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
