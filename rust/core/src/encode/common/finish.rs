//! Determines how a response ends: with the target's word for the finish reason, or with an error for the target's
//! client.
//!
//! `_spec/conversions.json` contains the words and messages, and the encoders decide where to write them.

use crate::model::fault::Class;
use crate::model::fault::Extra;
use crate::model::fault::Fault;
use crate::model::spec;
use crate::sse::decode_utf8;
use serde_json::Value;

/// Returns the target's word for a normalized reason, or `None` if the target can only end as incomplete.
pub(crate) fn word(target: &str, reason: &str) -> Option<&'static str> {
    spec::conversion("finish")?
        .get(target)?
        .get(reason)?
        .as_str()
}

/// Returns the target's finish word: the source's own word if the target can write it, otherwise the word for the
/// normalized reason.
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

/// Targets whose clients reject unknown finish reasons.
const CLOSED: [&str; 2] = ["ai-sdk-parts", "ai-sdk-ui"];

/// Returns the finish reason exactly as sent, if the source has the same dialect and the sent reason still matches the
/// normalized reason. An unknown reason is kept if clients accept any reason.
pub(crate) fn own_word<'r>(dialect: &str, reason: &str, raw: Option<&'r str>) -> Option<&'r str> {
    let raw = raw?;
    let means = spec::fact(dialect, "finish").and_then(|table| table.get(raw));
    let holds = match means.and_then(Value::as_str) {
        Some(means) => means == reason || means == "natural",
        None => reason == "other" && !CLOSED.contains(&dialect),
    };
    (holds && is_accepted(dialect, raw)).then_some(raw)
}

/// Returns false if clients of the dialect reject a finish chunk with this word.
fn is_accepted(dialect: &str, word: &str) -> bool {
    let members = spec::fact(dialect, "client_members").and_then(|types| types.get("finish"));
    let accepted = members.and_then(|members| members.get("finishReason"));
    let Some(accepted) = accepted.and_then(Value::as_str) else {
        return true;
    };
    let words = accepted.trim_start_matches('=').trim_end_matches('?');
    words.split(',').any(|known| known == word)
}

/// Returns true for `stop` and `tool_calls`, after which clients run even calls without arguments.
pub(crate) fn is_success(reason: &str) -> bool {
    matches!(reason, "stop" | "tool_calls")
}

/// Returns true if the target's word is less specific than the reason.
pub(crate) fn is_lost(target: &str, reason: &str) -> bool {
    let lost = spec::conversion("finish_lost").and_then(|table| table.get(target));
    spec::words(lost).contains(&reason)
}

/// Returns the error type to write if the upstream did not send one.
fn default_kind() -> &'static str {
    let kind = spec::conversion("error_type").and_then(Value::as_str);
    kind.unwrap_or_default()
}

/// The error that the target's client receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EndingError {
    pub(crate) message: String,
    pub(crate) kind: String,
    pub(crate) code: String,
    /// True if the only error is that the input ended too early.
    pub(crate) cut: bool,
    /// The error as the upstream sent it, if the error is written in another form and the message does not contain the
    /// whole error.
    pub(crate) sent: Option<String>,
}

impl EndingError {
    /// Creates the error for an entry of `faults` in `_spec/conversions.json`: the name of an exception class, or of a
    /// reason why a conversion fails.
    pub(crate) fn named(name: &str) -> EndingError {
        let row = spec::conversion("faults").and_then(|table| table.get(name));
        let row = row.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let text = |position: usize| {
            row.get(position)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        EndingError {
            message: text(1).to_owned(),
            kind: default_kind().to_owned(),
            code: text(0).to_owned(),
            cut: name == Class::Truncated.name(),
            sent: None,
        }
    }

    /// Creates the error that the upstream sent. Missing values are replaced by defaults.
    pub(crate) fn upstream(code: Option<&str>, kind: Option<&str>, message: &str) -> EndingError {
        let mut ending_error = EndingError::named(Class::Upstream.name());
        let set_text = |text: Option<&str>, own: &mut String| {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                text.clone_into(own);
            }
        };
        set_text(Some(message), &mut ending_error.message);
        set_text(kind, &mut ending_error.kind);
        set_text(code, &mut ending_error.code);
        ending_error
    }

    /// Stores the payload that contained the upstream error, unless the payload is identical to the message.
    pub(crate) fn keep_sent(&mut self, payload: &[u8]) {
        let (text, _) = decode_utf8(payload);
        self.sent =
            Some(text.into_owned()).filter(|text| !text.is_empty() && *text != self.message);
    }

    /// Returns the error type that the upstream sent, or `None`.
    pub(crate) fn sent_kind(&self) -> Option<&str> {
        Some(self.kind.as_str()).filter(|kind| *kind != default_kind())
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
        let set_text = EndingError::upstream(None, Some("overloaded"), "busy");
        assert_eq!(
            (set_text.kind.as_str(), set_text.message.as_str()),
            ("overloaded", "busy")
        );
        assert_eq!(set_text.code, "upstream_error");
        assert!(!set_text.cut);
    }
}
