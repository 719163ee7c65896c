//! Detects the dialect (wire format) of a stream, and creates its decoder.
//!
//! The detection rules are data (`detect` in `_spec/dialects.json`). Every other module refers to at most one dialect.

pub(crate) mod ai_sdk;
pub(crate) mod anomalies;
pub(crate) mod anthropic;
pub(crate) mod chat;
pub(crate) mod client_members;
pub(crate) mod decode_context;
pub(crate) mod decoder;
pub(crate) mod gemini;
pub(crate) mod payload;
pub(crate) mod responses;
pub(crate) mod think_tags;
pub(crate) mod unread_arguments;
pub(crate) mod upstream_error;
pub(crate) mod usage_counts;

use crate::dialect::ai_sdk::parts;
use crate::dialect::ai_sdk::ui;
use crate::dialect::decoder::Decoder;
use crate::dialect::decoder::PayloadPredicate;
use crate::dialect::decoder::Shapes;
use crate::dialect::upstream_error::is_blank_error;
use crate::json::Kind;
use crate::json::Problem;
use crate::json::Raw;
use crate::json::Scan;
use crate::json::ScanError;
use crate::json::amount::has_more;
use crate::json::long_lists::Walked;
use crate::json::long_lists::has_long_lists;
use crate::json::members;
use crate::json::members::Document;
use crate::json::members::Object;
use crate::json::members::find;
use crate::json::members::first_item;
use crate::json::members::is_string;
use crate::json::members::string;
use crate::json::scan::validate;
use crate::model::config::Config;
use crate::model::spec;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::LazyLock;

/// A wire format of LLM streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Chat,
    Responses,
    Anthropic,
    Gemini,
    AiSdkParts,
    AiSdkUi,
}

const ALL: [Dialect; 6] = [
    Dialect::Chat,
    Dialect::Responses,
    Dialect::Anthropic,
    Dialect::Gemini,
    Dialect::AiSdkParts,
    Dialect::AiSdkUi,
];

/// Event names per dialect, from one table of `_spec/dialects.json`.
type Names = Vec<(Dialect, Vec<&'static str>)>;

static KEEP_ALIVE: LazyLock<Names> = LazyLock::new(|| names("keepalive_events"));
static WRAPPED: LazyLock<Names> = LazyLock::new(|| names("wrapped_names"));
static WALKED: LazyLock<Vec<(Dialect, Walked)>> = LazyLock::new(|| {
    let walked = |dialect: Dialect| {
        let facts = spec::dialects().get(dialect.name());
        let facts = facts.and_then(|facts| facts.get("walked"));
        let keys = |kind| spec::words(facts.and_then(|facts| facts.get(kind)));
        let (lists, objects) = (keys("lists").leak(), keys("objects").leak());
        (dialect, Walked { lists, objects })
    };
    ALL.into_iter().map(walked).collect()
});

fn names(table: &str) -> Names {
    let names = |dialect: Dialect| {
        let facts = spec::dialects().get(dialect.name());
        (
            dialect,
            spec::words(facts.and_then(|facts| facts.get(table))),
        )
    };
    ALL.into_iter().map(names).collect()
}

fn row(names: &'static Names, of: Dialect) -> &'static [&'static str] {
    let mut rows = names.iter();
    let row = rows.find(|(dialect, _)| *dialect == of);
    row.map_or(&[], |(_, names)| names)
}

impl Dialect {
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Chat => "chat",
            Dialect::Responses => "responses",
            Dialect::Anthropic => "anthropic",
            Dialect::Gemini => "gemini",
            Dialect::AiSdkParts => "ai-sdk-parts",
            Dialect::AiSdkUi => "ai-sdk-ui",
        }
    }

    /// Returns the dialect with this name, or `None` if there is none.
    pub fn from_name(name: &str) -> Option<Dialect> {
        ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// Returns the names of events that only keep the connection alive.
    pub(crate) fn keep_alive(self) -> &'static [&'static str] {
        row(&KEEP_ALIVE, self)
    }

    /// Returns prefixes of event names. If the name of an event has one of these prefixes, official clients wrap the
    /// data of the event in another object.
    pub(crate) fn wrapped_names(self) -> &'static [&'static str] {
        row(&WRAPPED, self)
    }

    /// Returns the keys of the lists whose elements are decoded, and the keys of the objects that contain these lists.
    fn walked(self) -> Walked {
        let found = WALKED.iter().find(|(dialect, _)| *dialect == self);
        found.map_or_else(Walked::default, |(_, walked)| *walked)
    }

    /// Returns when official clients parse `[DONE]` as JSON: `named`, if its event has a name, `always`, or `None`.
    pub(crate) fn marker_is_json(self) -> Option<&'static str> {
        let facts = spec::dialects().get(self.name());
        facts
            .and_then(|facts| facts.get("marker_is_json"))?
            .as_str()
    }

    /// Creates the decoder, or returns `None` for Chat, which is called without dynamic dispatch.
    pub(crate) fn decoder(self, config: &Config) -> Option<Box<dyn Decoder>> {
        Some(match self {
            Dialect::Chat => return None,
            Dialect::Responses => Box::new(responses::Responses::new(config)),
            Dialect::Anthropic => Box::new(anthropic::Anthropic::new(config)),
            Dialect::Gemini => Box::new(gemini::Gemini::new(config)),
            Dialect::AiSdkParts => Box::new(parts::AiSdkParts::new(config)),
            Dialect::AiSdkUi => Box::new(ui::AiSdkUi::new(config)),
        })
    }

    /// Returns the payload predicates, or `None` for Chat, which has its own document type.
    fn shapes(self) -> Option<&'static Shapes> {
        Some(match self {
            Dialect::Chat => return None,
            Dialect::Responses => &responses::SHAPES,
            Dialect::Anthropic => &anthropic::SHAPES,
            Dialect::Gemini => &gemini::SHAPES,
            Dialect::AiSdkParts => &parts::SHAPES,
            Dialect::AiSdkUi => &ui::SHAPES,
        })
    }
}

/// A payload, parsed in the form that its dialect requires.
#[allow(clippy::large_enum_variant)] // created and consumed in one place
#[derive(Debug)]
pub(crate) enum Read<'a> {
    Chat(chat::read::Document<'a>),
    Plain(Document<'a>, &'static Shapes),
    /// The payload was parsed in a generic form, because the dialect is still unknown.
    Undecided(Document<'a>),
}

/// Parses payloads in the form of a dialect, or in a generic form while the dialect is unknown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub(crate) dialect: Option<Dialect>,
    pub(crate) max_depth: Option<u64>,
    /// Maximum number of commas and opening brackets in one payload.
    pub(crate) max_values: Option<u64>,
}

impl Reader {
    pub(crate) fn read(self, text: &str) -> Scan<Read<'_>> {
        if self.max_values.is_some_and(|limit| has_more(text, limit)) {
            // Reject the payload before any value is parsed.
            let problem = Problem::TooMany;
            return Err(ScanError { pos: 0, problem });
        }
        let Some(dialect) = self.dialect else {
            let document = members::document(text, self.max_depth)?;
            self.check_lists(text, Dialect::Chat)?; // `evaluate` may parse the payload as Chat
            return Ok(Read::Undecided(document));
        };
        // Check the lengths of the lists before their elements are collected.
        if self.check_lists(text, dialect).is_err() {
            // If the text is not JSON, report the syntax error instead of the exceeded limit.
            validate(text, self.max_depth)?;
            self.check_lists(text, dialect)?;
        }
        match dialect.shapes() {
            Some(shapes) => {
                let document = (shapes.document)(text, self.max_depth)?;
                Ok(Read::Plain(document, shapes))
            }
            None => chat::read::document(text, self.max_depth).map(Read::Chat),
        }
    }

    fn check_lists(self, text: &str, dialect: Dialect) -> Scan<()> {
        let problem = Problem::TooMany;
        match self.max_values {
            Some(limit) if has_long_lists(text, dialect.walked(), limit) => {
                Err(ScanError { pos: 0, problem })
            }
            _ => Ok(()),
        }
    }
}

impl Read<'_> {
    /// Evaluates a predicate of the dialect. A payload of unknown dialect is parsed as Chat.
    fn evaluate(
        &self,
        of_chat: fn(&chat::read::Document<'_>) -> bool,
        of: fn(&Shapes) -> PayloadPredicate,
    ) -> bool {
        match self {
            Read::Chat(document) => of_chat(document),
            Read::Plain(document, shapes) => of(shapes)(document),
            Read::Undecided(document) => {
                let text = match document {
                    Document::Object(object) => object.raw.text,
                    Document::Other(raw) => raw.text,
                };
                chat::read::document(text, None).is_ok_and(|document| of_chat(&document))
            }
        }
    }

    pub(crate) fn is_body(&self) -> bool {
        self.evaluate(chat::is_body, |shapes| shapes.is_body)
    }

    pub(crate) fn may_be_json_line(&self) -> bool {
        self.evaluate(chat::may_be_json_line, |shapes| shapes.may_be_json_line)
    }

    pub(crate) fn is_error_body(&self) -> bool {
        self.evaluate(chat::is_error_body, |shapes| shapes.is_error_body)
    }

    /// Returns true if the document is an object with the type of an error, or with an `error` member that has content.
    pub(crate) fn has_error(&self) -> bool {
        let (kind, error) = match self {
            Read::Chat(chat::read::Document::Object(chunk)) => (chunk.object, chunk.error),
            Read::Plain(Document::Object(object), _)
            | Read::Undecided(Document::Object(object)) => {
                (object.get("type"), object.get("error"))
            }
            _ => return false,
        };
        is_string(kind, "error") || !error.is_none_or(is_blank_error)
    }

    /// Returns true if a payload that follows a broken document contains usable data. While the dialect is unknown, the
    /// predicates of every dialect are tried.
    pub(crate) fn has_usable_data(&self) -> bool {
        if let Read::Undecided(document) = self {
            let mut shapes = ALL.into_iter().filter_map(Dialect::shapes);
            if shapes.any(|shapes| (shapes.has_usable_data)(document)) {
                return true;
            }
        }
        self.evaluate(chat::has_usable_data, |shapes| shapes.has_usable_data)
    }

    pub(crate) fn is_without_output(&self) -> bool {
        self.evaluate(chat::is_without_output, |shapes| shapes.is_without_output)
    }
}

/// Maximum number of member names that `payload_summary` returns. `SEEN_CHARS` is the maximum length of each name in
/// characters.
const SEEN: usize = 32;
const SEEN_CHARS: usize = 64;

/// Returns the dialect that the payload's members and event name indicate, or `None`. `before`: the earlier objects,
/// from which the dialect could not be determined.
pub(crate) fn detect(
    document: &Document<'_>,
    event: Option<&str>,
    before: &[Object<'_>],
) -> Option<Dialect> {
    let lone;
    let object = match document {
        Document::Object(object) => Some(object),
        Document::Other(raw) => {
            // Some gateways send an error object in an array.
            lone = first_item(*raw).and_then(Object::of);
            lone.as_ref().filter(|object| object.has("error"))
        }
    };
    let found = object.and_then(|object| {
        let mut members = ConditionReader::new(object);
        // If the `type` is missing, the event name replaces it, unless the name is one that every dialect uses.
        let is_named = !object.has("type") && !object.has("choices");
        let event = event.filter(|name| is_named && !matches!(*name, "message" | "error"));
        let fits = |row: &&DetectRow| {
            members.kind = event.filter(|_| row.named.iter().any(|name| object.has(name)));
            let follows = |condition| {
                let mut before = before.iter();
                before.any(|object| ConditionReader::new(object).shows(condition))
            };
            row.after.as_ref().is_none_or(follows)
                && row
                    .any
                    .iter()
                    .any(|conditions| members.show_all(conditions))
        };
        DETECT.iter().find(fits).map(|row| row.dialect)
    });
    // An `error` event of unknown shape is decoded as a Chat error.
    found.or_else(|| (event == Some("error")).then_some(Dialect::Chat))
}

/// A row of the detection table. The first matching row determines the dialect.
#[derive(Debug)]
struct DetectRow {
    dialect: Dialect,
    /// A condition that an earlier payload must have met.
    after: Option<Condition>,
    /// Members of the payload, at least one of which must be present if the event name is to replace a missing type.
    named: Vec<&'static str>,
    /// Lists of conditions. In at least one list, all conditions must be met.
    any: Vec<Vec<Condition>>,
}

static DETECT: LazyLock<Vec<DetectRow>> = LazyLock::new(|| {
    let list = |value: &'static Value| value.as_array().into_iter().flatten();
    let rows = spec::dialects().get("detect").map(list);
    let read = |row: &'static Value| {
        let conditions = |conditions| list(conditions).filter_map(Condition::of).collect();
        Some(DetectRow {
            dialect: Dialect::from_name(row.get("dialect")?.as_str()?)?,
            after: row.get("after").and_then(Condition::of),
            named: spec::words(row.get("named")),
            any: list(row.get("any")?).map(conditions).collect(),
        })
    };
    rows.into_iter().flatten().filter_map(read).collect()
});

/// A condition of the detection table: `member`, `member:value`, `member:prefix*`, or `member:key` for a member that is
/// an object. `!member` requires that the member be absent.
#[derive(Debug)]
struct Condition {
    member: &'static str,
    expected: ExpectedValue,
}

#[derive(Debug)]
enum ExpectedValue {
    Absent,
    Present,
    /// The value of the member must be this string, begin with this prefix (`prefix*`), or be an object with a member
    /// of this name.
    Word(&'static str),
}

impl Condition {
    fn of(text: &'static Value) -> Option<Condition> {
        let text = text.as_str()?;
        let (member, expected) = match (text.strip_prefix('!'), text.split_once(':')) {
            (Some(member), _) => (member, ExpectedValue::Absent),
            (None, Some((member, word))) => (member, ExpectedValue::Word(word)),
            (None, None) => (text, ExpectedValue::Present),
        };
        Some(Condition { member, expected })
    }
}

/// Evaluates conditions on one object. The reader caches the last member, because consecutive conditions of the table
/// usually concern the same member.
struct ConditionReader<'o, 'a> {
    object: &'o Object<'a>,
    /// The member that was looked up last. The fields `raw` and `word` contain the value of this member.
    member: Option<&'static str>,
    raw: Option<Raw<'a>>,
    word: Option<Cow<'a, str>>,
    /// The event name that replaces a missing type.
    kind: Option<&'o str>,
}

impl<'o, 'a> ConditionReader<'o, 'a> {
    fn new(object: &'o Object<'a>) -> ConditionReader<'o, 'a> {
        ConditionReader {
            object,
            member: None,
            raw: None,
            word: None,
            kind: None,
        }
    }

    fn show_all(&mut self, conditions: &[Condition]) -> bool {
        conditions.iter().all(|condition| self.shows(condition))
    }

    fn shows(&mut self, condition: &Condition) -> bool {
        if self.member != Some(condition.member) {
            self.member = Some(condition.member);
            self.raw = self.object.get(condition.member);
            self.word = self.raw.and_then(string);
        }
        let ExpectedValue::Word(expected) = condition.expected else {
            return self.raw.is_some() == matches!(condition.expected, ExpectedValue::Present);
        };
        match (self.raw, &self.word) {
            (Some(raw), None) if raw.kind == Kind::Object => {
                find(&members::members(raw), expected).is_some()
            }
            (_, Some(word)) => is_word(word, expected),
            (None, None) if condition.member == "type" => {
                self.kind.is_some_and(|kind| is_word(kind, expected))
            }
            _ => false,
        }
    }
}

/// Returns true if the word equals `expected`, or if `expected` ends with `*` and the word begins with the text before
/// the `*`.
fn is_word(word: &str, expected: &str) -> bool {
    match expected.strip_suffix('*') {
        Some(begin) => word.starts_with(begin),
        None => word == expected,
    }
}

/// Returns the event names that only keep the connection alive in every dialect.
pub(crate) fn keep_alive_anywhere() -> &'static [&'static str] {
    static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        let everywhere = |name: &&&str| {
            ALL.into_iter()
                .all(|dialect| dialect.keep_alive().contains(name))
        };
        let names = Dialect::Chat.keep_alive().iter();
        names.filter(everywhere).copied().collect()
    });
    &NAMES
}

/// Summarizes a payload of unknown dialect: returns the names of its members, or the beginning of its text.
pub(crate) fn payload_summary(document: &Document<'_>) -> Vec<String> {
    let cut = |name: &str| name.chars().take(SEEN_CHARS).collect();
    match document {
        Document::Object(object) => object
            .names()
            .iter()
            .take(SEEN)
            .map(|name| cut(name))
            .collect(),
        Document::Other(raw) => vec![cut(raw.text)],
    }
}
