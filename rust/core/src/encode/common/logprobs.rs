//! Converts log probabilities of text tokens between Chat and Responses, which use the same form in different places.
//!
//! Chat puts log probabilities in the choice (`logprobs.content`). Responses puts log probabilities in the text events
//! and in the part (`logprobs`).

use crate::encode::common::compact_json::canonical;
use crate::encode::common::writer::Writer;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Object;
use crate::json::members::items;
use crate::json::members::present;

/// Log probabilities in an event's metadata.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Logprobs {
    /// The tokens as JSON, separated by commas.
    pub(crate) tokens: String,
    /// True if the metadata contains other members.
    pub(crate) others: bool,
}

/// Returns the log probabilities in the metadata of a text event from `source`, in the form that `target` requires.
/// Returns `None` if there are no log probabilities, or if a list item lacks a token or a probability.
pub(crate) fn logprobs(source: &str, target: &str, metadata: Option<&str>) -> Option<Logprobs> {
    let whole = Object::of(Raw {
        text: metadata?,
        kind: Kind::Object,
    })?;
    let mut others = whole.names().len() > 1;
    let list = match (source, target) {
        ("chat", "responses") => {
            let holder = whole.object("logprobs")?;
            let is_other = |name: &String| name != "content" && holder.present(name).is_some();
            others |= holder.names().iter().any(is_other);
            holder.get("content")?
        }
        ("responses", "chat" | "responses") => whole.get("logprobs")?,
        _ => return None,
    };
    if source == target {
        let sent = items(list);
        return (!sent.is_empty()).then(|| Logprobs {
            tokens: sent_tokens(&sent),
            others,
        });
    }
    // Only Chat accepts null for missing `bytes`.
    let unknown = if target == "chat" { "null" } else { "[]" };
    let mut to = Writer::default();
    let mut mark = "";
    for item in items(list) {
        let entry = token(to.raw(mark), item, unknown)?;
        to.raw(",\"top_logprobs\":[");
        mark = "";
        for other in entry.get("top_logprobs").map(items).unwrap_or_default() {
            token(to.raw(mark), other, unknown)?;
            to.raw("}");
            mark = ",";
        }
        to.raw("]}");
        mark = ",";
    }
    (!mark.is_empty()).then(|| Logprobs {
        tokens: to.into_text(),
        others,
    })
}

/// Returns all members of the tokens, separated by commas.
fn sent_tokens(sent: &[Raw<'_>]) -> String {
    let mut to = Writer::default();
    let mut mark = "";
    for token in sent {
        canonical(to.raw(mark), token.text);
        mark = ",";
    }
    to.into_text()
}

/// Writes the members that every token has, without the closing brace. Returns `None` if the item lacks a token or a
/// probability. `unknown` is the value to write if `bytes` is missing.
fn token<'a>(to: &mut Writer, item: Raw<'a>, unknown: &str) -> Option<Object<'a>> {
    let entry = Object::of(item)?;
    let text = entry.get("token").filter(|raw| raw.kind == Kind::String)?;
    let chance = entry
        .get("logprob")
        .filter(|raw| raw.kind == Kind::Number)?;
    canonical(to.raw("{\"token\":"), text.text);
    canonical(to.raw(",\"logprob\":"), chance.text);
    let bytes = present(entry.get("bytes"));
    canonical(to.raw(",\"bytes\":"), bytes.map_or(unknown, |raw| raw.text));
    Some(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms() {
        let chat = r#"{"logprobs":{"content":[{"token":"a","logprob":-0.5,"bytes":null}],"refusal":null}}"#;
        let found = logprobs("chat", "responses", Some(chat)).unwrap();
        assert_eq!(
            found.tokens,
            r#"{"token":"a","logprob":-0.5,"bytes":[],"top_logprobs":[]}"#
        );
        assert!(!found.others);
        let responses = r#"{"phase":"x","logprobs":[{"token":"a","logprob":-1}]}"#;
        let found = logprobs("responses", "chat", Some(responses)).unwrap();
        assert!(found.others && found.tokens.contains("\"bytes\":null"));
        assert_eq!(
            logprobs("responses", "chat", Some("{\"logprobs\":[]}")),
            None
        );
        let bad = r#"{"logprobs":[{"token":"a"}]}"#;
        assert_eq!(logprobs("responses", "chat", Some(bad)), None);
    }
}
