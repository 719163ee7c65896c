//! The families that a policy turns on, as `config["text_calls"]` describes them.

use crate::text_calls::entry::Close;
use crate::text_calls::entry::Entry;
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
