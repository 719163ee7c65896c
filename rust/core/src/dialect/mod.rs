//! Which wire format a stream has, and the decoder of each.
//!
//! Detection is data (`detect` in `_spec/dialects.json`); the one module that names several dialects.

pub(crate) mod chat;
pub(crate) mod think;

use serde_json::Value;

use crate::dialect::chat::read::{Chunk, Document, find, members};
use crate::json::{Kind, Raw};
use crate::spec;

/// A dialect that can be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Chat,
}

impl Dialect {
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Chat => "chat",
        }
    }

    pub fn from_name(name: &str) -> Option<Dialect> {
        match name {
            "chat" => Some(Dialect::Chat),
            _ => None,
        }
    }
}

/// How many names of a payload are told, and how many characters of each.
const SEEN: usize = 32;
const SEEN_CHARS: usize = 64;

/// A first payload that no decoder reads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Strange {
    /// The dialect it is, if that is known.
    pub(crate) dialect: &'static str,
    /// Its members, or its beginning.
    pub(crate) seen: Vec<String>,
}

/// The dialect of a stream by its first payload and the name of its event.
pub(crate) fn detect(document: &Document<'_>, event: Option<&str>) -> Result<Dialect, Strange> {
    let inner = chat::lone(document);
    let chunk = match document {
        Document::Object(chunk) => Some(chunk),
        Document::Other(_) => inner.as_ref(),
    };
    let rows = spec::dialects()
        .get("detect")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let found = chunk.and_then(|chunk| {
        let fits = |row: &&Value| {
            let mut any = row
                .get("any")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            any.any(|all| {
                all.as_array()
                    .is_some_and(|all| all.iter().all(|sign| has(chunk, sign)))
            })
        };
        rows.into_iter().find(fits)?.get("dialect")?.as_str()
    });
    // An error in a shape of its own still is one.
    let found = found.or_else(|| (event == Some("error")).then_some("chat"));
    let cut = |name: &str| name.chars().take(SEEN_CHARS).collect();
    found.and_then(Dialect::from_name).ok_or_else(|| Strange {
        dialect: found.unwrap_or_default(),
        seen: match document {
            Document::Object(chunk) => chunk
                .names()
                .iter()
                .take(SEEN)
                .map(|name| cut(name))
                .collect(),
            Document::Other(raw) => vec![cut(raw.text)],
        },
    })
}

/// Whether a sign of the table is there: `member`, `member:word`, `member:begin*`, or `member:inner member`.
fn has(chunk: &Chunk<'_>, sign: &Value) -> bool {
    let Some(sign) = sign.as_str() else {
        return false;
    };
    let Some((name, wanted)) = sign.split_once(':') else {
        return chunk.has(sign);
    };
    match chunk.member(name) {
        Some(raw) if raw.kind == Kind::Object => find(&members(raw), wanted).is_some(),
        Some(raw) => word_fits(raw, wanted),
        None => false,
    }
}

fn word_fits(raw: Raw<'_>, wanted: &str) -> bool {
    chat::string(raw).is_some_and(|word| match wanted.strip_suffix('*') {
        Some(begin) => word.starts_with(begin),
        None => word == wanted,
    })
}
