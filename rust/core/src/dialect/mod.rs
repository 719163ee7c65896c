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

/// How much of a payload that is no object names it.
const SEEN_CHARS: usize = 64;

/// The dialect of a stream by its first payload, or the members that were seen.
pub(crate) fn detect(document: &Document<'_>) -> Result<Dialect, Vec<String>> {
    let chunk = match document {
        Document::Object(chunk) => chunk,
        Document::Other(raw) => return Err(vec![raw.text.chars().take(SEEN_CHARS).collect()]),
    };
    let rows = spec::dialects()
        .get("detect")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let found = rows.filter_map(|row| {
        let mut any = row.get("any")?.as_array()?.iter();
        let fits = any.any(|all| {
            all.as_array()
                .is_some_and(|all| all.iter().all(|sign| has(chunk, sign)))
        });
        fits.then(|| row.get("dialect")?.as_str()).flatten()
    });
    let name = found.into_iter().next();
    name.and_then(Dialect::from_name)
        .ok_or_else(|| chunk.names())
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
