//! The families that a policy turns on, as `config["text_calls"]` describes them.

use crate::text_calls::grammar::Grammar;
use serde_json::Map;
use serde_json::Value;

/// How much a marker proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tier {
    /// Special tokens of the tokenizer.
    Token,
    /// Plain text: starts a line.
    Tag,
    /// The whole answer.
    Markerless,
}

/// One way in which models write calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Family {
    pub name: String,
    pub tier: Tier,
    pub open: Vec<String>,
    /// How many bytes at the end of the marker belong to the body.
    pub unread: usize,
    pub close: Close,
    pub grammar: Grammar,
}

/// What ends a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Close {
    /// The body itself.
    Body,
    Literal(String),
    /// A literal that may be missing.
    Maybe(String),
}

/// The members of a family, or of an object in one.
#[derive(Debug)]
pub(crate) struct Entry<'a>(pub &'a Map<String, Value>);

impl Entry<'_> {
    pub fn flag(&self, key: &str) -> bool {
        self.0.get(key) == Some(&Value::Bool(true))
    }

    pub fn is_off(&self, key: &str) -> bool {
        self.0.get(key) == Some(&Value::Bool(false))
    }

    pub fn word(&self, key: &str) -> Option<String> {
        self.0.get(key)?.as_str().map(str::to_owned)
    }

    pub fn words(&self, key: &str) -> Vec<String> {
        let list = self.0.get(key).and_then(Value::as_array);
        let words = list.into_iter().flatten().filter_map(Value::as_str);
        words.map(str::to_owned).collect()
    }

    /// An entry inside of this one.
    pub fn inner(&self, key: &str) -> Option<Entry<'_>> {
        self.0.get(key)?.as_object().map(Entry)
    }
}

impl Family {
    /// None where the entry lacks something.
    pub fn read(members: &Map<String, Value>) -> Option<Family> {
        let entry = Entry(members);
        let open = entry.words("open");
        let unread = members.get("unread").and_then(Value::as_u64).unwrap_or(0);
        let unread = usize::try_from(unread).ok()?;
        Some(Family {
            name: entry.word("family")?,
            tier: match entry.word("tier")?.as_str() {
                "token" => Tier::Token,
                "tag" => Tier::Tag,
                "markerless" => Tier::Markerless,
                _ => return None,
            },
            // Characters of the marker, as bytes.
            unread: open
                .first()?
                .chars()
                .rev()
                .take(unread)
                .map(char::len_utf8)
                .sum(),
            open,
            close: match (entry.word("close"), entry.word("maybe_close")) {
                (Some(literal), _) => Close::Literal(literal),
                (None, Some(literal)) => Close::Maybe(literal),
                (None, None) => Close::Body,
            },
            grammar: Grammar::read(&entry)?,
        })
    }
}
