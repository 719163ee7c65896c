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
use crate::json::long_lists::Walked;
use crate::json::long_lists::has_long_lists;
use crate::json::members;
use crate::json::members::Document;
use crate::json::members::Object;
use crate::json::members::find;
use crate::json::members::first_item;
use crate::json::members::string;
use crate::model::config::Config;
use crate::model::spec;
use serde_json::Value;
use std::borrow::Cow;
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

    /// The lists whose entries are decoded.
    fn walked(self) -> Walked {
        let found = WALKED.iter().find(|(dialect, _)| *dialect == self);
        found.map_or_else(Walked::default, |(_, walked)| *walked)
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
            let document = members::document(text, self.max_depth)?;
            self.check_lists(text, Dialect::Chat)?; // it may be asked whether it is one of Chat's
            return Ok(Read::Undecided(document));
        };
        match dialect.shapes() {
            Some(shapes) => {
                let document = members::document(text, self.max_depth)?;
                self.check_lists(text, dialect)?;
                Ok(Read::Plain(document, shapes))
            }
            None => {
                if self.check_lists(text, dialect).is_err() {
                    // Of text that is not JSON, that is the fault.
                    members::document(text, self.max_depth)?;
                    self.check_lists(text, dialect)?;
                }
                chat::read::document(text, self.max_depth).map(Read::Chat)
            }
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
    let found = object.and_then(|object| {
        let mut members = SignReader::new(object);
        let fits = |row: &&DetectRow| {
            let follows = |sign| {
                let mut before = before.iter();
                before.any(|object| SignReader::new(object).shows(sign))
            };
            row.after.as_ref().is_none_or(follows)
                && row.any.iter().any(|signs| members.show_all(signs))
        };
        DETECT.iter().find(fits).map(|row| row.dialect)
    });
    // An error in a shape of its own still is one.
    found.or_else(|| (event == Some("error")).then_some(Dialect::Chat))
}

/// A row of the detection table: the first one that fits holds.
#[derive(Debug)]
struct DetectRow {
    dialect: Dialect,
    /// An earlier payload showed this.
    after: Option<Sign>,
    /// All of one of these lists.
    any: Vec<Vec<Sign>>,
}

static DETECT: LazyLock<Vec<DetectRow>> = LazyLock::new(|| {
    let list = |value: &'static Value| value.as_array().into_iter().flatten();
    let rows = spec::dialects().get("detect").map(list);
    let read = |row: &'static Value| {
        let signs = |signs| list(signs).filter_map(Sign::of).collect();
        Some(DetectRow {
            dialect: Dialect::from_name(row.get("dialect")?.as_str()?)?,
            after: row.get("after").and_then(Sign::of),
            any: list(row.get("any")?).map(signs).collect(),
        })
    };
    rows.into_iter().flatten().filter_map(read).collect()
});

/// A sign of the detection table: `member`, `member:word`, `member:begin*`, or `member:inner member`; `!member`: it is not
/// there.
#[derive(Debug)]
struct Sign {
    member: &'static str,
    wanted: Wanted,
}

#[derive(Debug)]
enum Wanted {
    Absent,
    Present,
    /// A word or an inner member.
    Word(&'static str),
}

impl Sign {
    fn of(text: &'static Value) -> Option<Sign> {
        let text = text.as_str()?;
        let (member, wanted) = match (text.strip_prefix('!'), text.split_once(':')) {
            (Some(member), _) => (member, Wanted::Absent),
            (None, Some((member, word))) => (member, Wanted::Word(word)),
            (None, None) => (text, Wanted::Present),
        };
        Some(Sign { member, wanted })
    }
}

/// Looks for signs in one object. Most signs in a row are about the same member, so the last one is kept.
struct SignReader<'o, 'a> {
    object: &'o Object<'a>,
    /// The member that was looked at last, and what it is.
    member: Option<&'static str>,
    raw: Option<Raw<'a>>,
    word: Option<Cow<'a, str>>,
}

impl<'o, 'a> SignReader<'o, 'a> {
    fn new(object: &'o Object<'a>) -> SignReader<'o, 'a> {
        SignReader {
            object,
            member: None,
            raw: None,
            word: None,
        }
    }

    fn show_all(&mut self, signs: &[Sign]) -> bool {
        signs.iter().all(|sign| self.shows(sign))
    }

    fn shows(&mut self, sign: &Sign) -> bool {
        if self.member != Some(sign.member) {
            self.member = Some(sign.member);
            self.raw = self.object.get(sign.member);
            self.word = self.raw.and_then(string);
        }
        let Wanted::Word(wanted) = sign.wanted else {
            return self.raw.is_some() == matches!(sign.wanted, Wanted::Present);
        };
        match (self.raw, &self.word) {
            (Some(raw), None) if raw.kind == Kind::Object => {
                find(&members::members(raw), wanted).is_some()
            }
            (_, Some(word)) => match wanted.strip_suffix('*') {
                Some(begin) => word.starts_with(begin),
                None => *word == wanted,
            },
            _ => false,
        }
    }
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
