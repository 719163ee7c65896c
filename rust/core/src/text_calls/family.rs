//! Reads the families that a policy enables from `config["text_calls"]`.

use crate::text_calls::entry::Close;
use crate::text_calls::entry::Entry;
use crate::text_calls::grammar::Grammar;
use serde_json::Map;
use serde_json::Value;

/// How reliably a marker indicates a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tier {
    /// The marker is a special token of the tokenizer.
    Token,
    /// The marker is plain text and must be at the start of a line.
    Tag,
    /// The family has no marker, so the call must be the entire text of the response.
    Markerless,
}

/// One form in which models write calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Family {
    pub name: String,
    pub tier: Tier,
    pub open: Vec<String>,
    /// Number of bytes at the end of the marker that also belong to the body.
    pub unread: usize,
    pub close: Close,
    /// True if another block of this family, which has no marker, may directly follow a block.
    pub allows_consecutive_blocks: bool,
    pub grammar: Grammar,
}

impl Family {
    /// Reads a family from its members. Returns `None` if the family lacks a required member.
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
            // The table gives this number in characters.
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
            allows_consecutive_blocks: entry.flag("several"),
            grammar: Grammar::read(&entry)?,
        })
    }
}
