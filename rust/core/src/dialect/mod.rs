//! Which wire format a stream has, and the decoder of each.
//!
//! Detection is data (`detect` in `_spec/dialects.json`); the one module that names several dialects.

pub(crate) mod ai_sdk;
pub(crate) mod anomalies;
pub(crate) mod anthropic;
pub(crate) mod chat;
pub(crate) mod decode_context;
pub(crate) mod decoder;
pub(crate) mod gemini;
pub(crate) mod payload;
pub(crate) mod responses;
pub(crate) mod think_tags;
pub(crate) mod upstream_error;
pub(crate) mod usage_counts;

use crate::dialect::ai_sdk::parts;
use crate::dialect::ai_sdk::ui;
use crate::dialect::decoder::Ask;
use crate::dialect::decoder::Decoder;
use crate::dialect::decoder::Shapes;
use crate::json::Kind;
use crate::json::Problem;
use crate::json::Raw;
use crate::json::Scan;
use crate::json::ScanError;
use crate::json::amount::has_more;
use crate::json::members;
use crate::json::members::Document;
use crate::json::members::Object;
use crate::json::members::find;
use crate::json::members::first_item;
use crate::json::members::string;
use crate::model::config::Config;
use crate::model::spec;
use serde_json::Value;
use std::sync::LazyLock;

/// A wire format.
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

/// The names of events in a table of each dialect.
type Names = Vec<(Dialect, Vec<&'static str>)>;

static KEEP_ALIVE: LazyLock<Names> = LazyLock::new(|| names("keepalive_events"));
static WRAPPED: LazyLock<Names> = LazyLock::new(|| names("wrapped_names"));

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

    /// The dialect of that name.
    pub fn from_name(name: &str) -> Option<Dialect> {
        ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// Events that say that there is nothing to say.
    pub(crate) fn keep_alive(self) -> &'static [&'static str] {
        row(&KEEP_ALIVE, self)
    }

    /// Readers put the data of an event whose name begins so into another object.
    pub(crate) fn wrapped_names(self) -> &'static [&'static str] {
        row(&WRAPPED, self)
    }

    /// Readers skip a `[DONE]`, unless its event has a name.
    pub(crate) fn marker_is_nameless(self) -> bool {
        let facts = spec::dialects().get(self.name());
        let fact = facts.and_then(|facts| facts.get("marker_is_nameless"));
        fact.and_then(Value::as_bool) == Some(true)
    }

    /// A decoder; Chat's is no other one.
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

    /// Of any dialect but Chat.
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

/// A payload, read as its dialect wants it.
#[allow(clippy::large_enum_variant)] // read and used in one place
#[derive(Debug)]
pub(crate) enum Read<'a> {
    Chat(chat::read::Document<'a>),
    Plain(Document<'a>, &'static Shapes),
    /// Before the dialect is known.
    Undecided(Document<'a>),
}

/// Reads payloads as a dialect wants them, or before it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub(crate) dialect: Option<Dialect>,
    pub(crate) max_depth: Option<u64>,
    /// Commas and opening brackets of one payload.
    pub(crate) max_values: Option<u64>,
}

impl Reader {
    pub(crate) fn read(self, text: &str) -> Scan<Read<'_>> {
        if self.max_values.is_some_and(|limit| has_more(text, limit)) {
            // Before anything is built.
            let problem = Problem::TooMany;
            return Err(ScanError { pos: 0, problem });
        }
        let Some(dialect) = self.dialect else {
            return members::document(text, self.max_depth).map(Read::Undecided);
        };
        match dialect.shapes() {
            Some(shapes) => {
                let document = members::document(text, self.max_depth)?;
                Ok(Read::Plain(document, shapes))
            }
            None => chat::read::document(text, self.max_depth).map(Read::Chat),
        }
    }
}

impl Read<'_> {
    /// What is not decided yet is asked of Chat.
    fn ask(&self, of_chat: fn(&chat::read::Document<'_>) -> bool, of: fn(&Shapes) -> Ask) -> bool {
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
        self.ask(chat::is_body, |shapes| shapes.is_body)
    }

    pub(crate) fn is_line(&self) -> bool {
        self.ask(chat::is_line, |shapes| shapes.is_line)
    }

    pub(crate) fn is_complaint(&self) -> bool {
        self.ask(chat::is_complaint, |shapes| shapes.is_complaint)
    }

    /// Before the dialect is known, whatever is of use in one of them is.
    pub(crate) fn is_of_use(&self) -> bool {
        if let Read::Undecided(document) = self {
            let mut shapes = ALL.into_iter().filter_map(Dialect::shapes);
            if shapes.any(|shapes| (shapes.is_of_use)(document)) {
                return true;
            }
        }
        self.ask(chat::is_of_use, |shapes| shapes.is_of_use)
    }

    pub(crate) fn is_note(&self) -> bool {
        self.ask(chat::is_note, |shapes| shapes.is_note)
    }
}

/// How many names of a payload are told, and how many characters of each.
const SEEN: usize = 32;
const SEEN_CHARS: usize = 64;

/// The dialect that a payload tells, by its members and the name of its event. `before`: the objects that told none.
pub(crate) fn detect(
    document: &Document<'_>,
    event: Option<&str>,
    before: &[Object<'_>],
) -> Option<Dialect> {
    let lone;
    let object = match document {
        Document::Object(object) => Some(object),
        Document::Other(raw) => {
            // Some gateways wrap a lone error object into an array.
            lone = first_item(*raw).and_then(Object::of);
            lone.as_ref().filter(|object| object.has("error"))
        }
    };
    let list =
        |value: Option<&'static Value>| value.and_then(Value::as_array).into_iter().flatten();
    let found = object.and_then(|object| {
        let fits = |row: &&'static Value| {
            let after = row.get("after");
            let follows = |sign| before.iter().any(|object| has(object, sign));
            let all = |signs: &'static Value| {
                let mut signs = list(Some(signs));
                signs.all(|sign| has(object, sign))
            };
            after.is_none_or(follows) && list(row.get("any")).any(all)
        };
        let mut rows = list(spec::dialects().get("detect"));
        rows.find(|row| fits(row))?.get("dialect")?.as_str()
    });
    // An error in a shape of its own still is one.
    let found = found.or_else(|| (event == Some("error")).then_some("chat"));
    found.and_then(Dialect::from_name)
}

/// Whether openai-python reads the stream, to which an event without data is JSON. While the dialect is not known, too: no
/// client needs such an event.
pub(crate) fn reads_empty(dialect: Option<Dialect>) -> bool {
    matches!(dialect, None | Some(Dialect::Chat | Dialect::Responses))
}

/// Heartbeats by their name in every dialect.
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

/// What was there instead of a dialect: the names of the members, or the beginning.
pub(crate) fn seen(document: &Document<'_>) -> Vec<String> {
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

/// Whether a sign of the table is there: `member`, `member:word`, `member:begin*`, or `member:inner member`; `!member`: it
/// is not.
fn has(object: &Object<'_>, sign: &Value) -> bool {
    let Some(sign) = sign.as_str() else {
        return false;
    };
    if let Some(name) = sign.strip_prefix('!') {
        return !object.has(name);
    }
    let Some((name, wanted)) = sign.split_once(':') else {
        return object.has(sign);
    };
    match object.get(name) {
        Some(raw) if raw.kind == Kind::Object => find(&members::members(raw), wanted).is_some(),
        Some(raw) => word_fits(raw, wanted),
        None => false,
    }
}

fn word_fits(raw: Raw<'_>, wanted: &str) -> bool {
    string(raw).is_some_and(|word| match wanted.strip_suffix('*') {
        Some(begin) => word.starts_with(begin),
        None => word == wanted,
    })
}
