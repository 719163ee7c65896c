//! How an answer ends: the target's word for the reason, or what went wrong, in words that hold nothing of the payload.
//!
//! Words and sentences stand in `_spec/conversions.json`; where they are written is the encoder's business.

use crate::model::fault::Class;
use crate::model::fault::Extra;
use crate::model::fault::Fault;
use crate::model::spec;
use crate::sse::decode_utf8;
use serde_json::Value;

/// The target's word for a neutral reason; `None` where it has none but its unfinished ending.
pub(crate) fn word(target: &str, reason: &str) -> Option<&'static str> {
    spec::conversion("finish")?
        .get(target)?
        .get(reason)?
        .as_str()
}

/// The target's word for the end of an answer: that of the source, where the target writes it as it is, else its own for
/// the neutral reason.
pub(crate) fn word_of<'r>(target: &str, reason: &str, raw: Option<&'r str>) -> Option<&'r str> {
    let has = |table: &str, word: &str| {
        let words = spec::conversion(table).and_then(|table| table.get(target));
        spec::words(words).contains(&word)
    };
    match raw {
        Some(raw) if has("finish_own", raw) || has("finish_raw", reason) => Some(raw),
        _ => word(target, reason),
    }
}

/// Readers refuse a reason that is not on their list.
const CLOSED: [&str; 2] = ["ai-sdk-parts", "ai-sdk-ui"];

/// The reason as the same dialect said it, if it still holds beside what the answer came to. A word that is in no table is
/// kept where readers take any.
pub(crate) fn own_word<'r>(dialect: &str, reason: &str, raw: Option<&'r str>) -> Option<&'r str> {
    let raw = raw?;
    let means = spec::fact(dialect, "finish").and_then(|table| table.get(raw));
    let holds = match means.and_then(Value::as_str) {
        Some(means) => means == reason || means == "natural",
        None => reason == "other" && !CLOSED.contains(&dialect),
    };
    holds.then_some(raw)
}

/// The word says less than the reason.
pub(crate) fn is_lost(target: &str, reason: &str) -> bool {
    let lost = spec::conversion("finish_lost").and_then(|table| table.get(target));
    spec::words(lost).contains(&reason)
}

/// Stands where the upstream sent no kind of error.
fn unsaid_kind() -> &'static str {
    let kind = spec::conversion("error_type").and_then(Value::as_str);
    kind.unwrap_or_default()
}

/// What the target's reader is told of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EndingError {
    pub(crate) message: String,
    pub(crate) kind: String,
    pub(crate) code: String,
    /// The input ended too early, and nothing else is wrong.
    pub(crate) cut: bool,
    /// What the upstream sent, where that is not written in its own form and the message does not hold all of it.
    pub(crate) sent: Option<String>,
}

impl EndingError {
    /// By the name of an exception class, or of one of our own endings.
    pub(crate) fn named(name: &str) -> EndingError {
        let row = spec::conversion("faults").and_then(|table| table.get(name));
        let row = row.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let text = |place: usize| row.get(place).and_then(Value::as_str).unwrap_or_default();
        EndingError {
            message: text(1).to_owned(),
            kind: unsaid_kind().to_owned(),
            code: text(0).to_owned(),
            cut: name == Class::Truncated.name(),
            sent: None,
        }
    }

    /// The upstream's own words, where it sent any.
    pub(crate) fn upstream(code: Option<&str>, kind: Option<&str>, message: &str) -> EndingError {
        let mut trouble = EndingError::named(Class::Upstream.name());
        let told = |text: Option<&str>, own: &mut String| {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                text.clone_into(own);
            }
        };
        told(Some(message), &mut trouble.message);
        told(kind, &mut trouble.kind);
        told(code, &mut trouble.code);
        trouble
    }

    /// Keeps the payload in which the upstream sent the error.
    pub(crate) fn keep_sent(&mut self, payload: &[u8]) {
        let (text, _) = decode_utf8(payload);
        self.sent =
            Some(text.into_owned()).filter(|text| !text.is_empty() && *text != self.message);
    }

    /// What the upstream calls this kind of error, if it said so.
    pub(crate) fn sent_kind(&self) -> Option<&str> {
        Some(self.kind.as_str()).filter(|kind| *kind != unsaid_kind())
    }

    pub(crate) fn of(fault: &Fault) -> EndingError {
        match &fault.extra {
            Extra::Upstream {
                code,
                kind,
                message,
                ..
            } => EndingError::upstream(code.as_deref(), kind.as_deref(), message),
            _ => EndingError::named(fault.class.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        assert_eq!(word("chat", "other"), Some("length"));
        assert_eq!(word("gemini", "error"), None);
        assert!(is_lost("chat", "other") && !is_lost("gemini", "other"));
    }

    #[test]
    fn words_of_the_source() {
        let word = |target, reason| word_of(target, reason, Some("new"));
        assert_eq!(word("responses", "other"), Some("new"));
        assert_eq!(word("responses", "length"), Some("max_output_tokens"));
        assert_eq!(word("anthropic", "other"), Some("max_tokens"));
        assert_eq!(word_of("responses", "other", None), Some("other"));
        assert_eq!(word_of("responses", "error", Some("abort")), Some("abort"));
        assert_eq!(word_of("chat", "error", Some("abort")), None);
    }

    #[test]
    fn words_of_the_dialect_itself() {
        let own = |dialect, reason, raw| own_word(dialect, reason, Some(raw)).is_some();
        assert!(own("anthropic", "stop", "stop_sequence"));
        assert!(!own("anthropic", "tool_calls", "end_turn"));
        assert!(own("chat", "other", "new") && !own("chat", "tool_calls", "new"));
        assert!(!own("ai-sdk-ui", "other", "new"));
    }

    #[test]
    fn sentences_are_those_of_the_file() {
        let cut = EndingError::of(&Fault::new(Class::Truncated, "truncated"));
        assert_eq!(cut.code, "stream_truncated");
        assert!(cut.cut && cut.kind == "server_error");
        let told = EndingError::upstream(None, Some("overloaded"), "busy");
        assert_eq!(
            (told.kind.as_str(), told.message.as_str()),
            ("overloaded", "busy")
        );
        assert_eq!(told.code, "upstream_error");
        assert!(!told.cut);
    }
}
