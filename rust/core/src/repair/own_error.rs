//! Checks whether the clients of a dialect raise an exception for an upstream error in the form in which it was sent.
//!
//! openai-python and openai-node raise an exception if a payload has an `error` member with a non-empty value.
//! @ai-sdk/anthropic and both AI SDK protocols check the `type` member. google-genai raises an exception only if
//! `error` is the first member. These clients treat an error in any other form as a chunk without content.

use crate::dialect::upstream_error::is_empty_value;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Document;
use crate::json::members::Object;
use crate::json::members::document;
use crate::json::members::is_string;
use crate::json::members::present;
use crate::sse::decode_utf8;

/// Returns true if the dialect's clients raise an exception for this payload. `event` is the name of the payload's
/// event.
pub(crate) fn is_own(dialect: &str, event: &[u8], payload: &[u8]) -> bool {
    let (text, _) = decode_utf8(payload);
    let Ok(Document::Object(object)) = document(&text, None) else {
        return false;
    };
    let error = present(object.get("error")).filter(|raw| !is_empty_value(*raw));
    let nested = error.is_some_and(|raw| raw.kind == Kind::Object);
    let is_typed = |kind: &str| is_string(object.get("type"), kind);
    match dialect {
        "chat" => error.is_some(),
        "responses" => error.is_some() || is_own_event(&object, event),
        "anthropic" => is_typed("error") && nested,
        "gemini" => {
            nested
                && object
                    .members
                    .first()
                    .is_some_and(|one| one.key.is("error"))
        }
        "ai-sdk-ui" => is_typed("error") && is_text(object.get("errorText")),
        _ => is_typed("error") && object.get("error").is_some(),
    }
}

/// Returns true for a Responses error without an `error` member: an event named `error` with the error's members at the
/// top level, or a failed response.
fn is_own_event(object: &Object<'_>, event: &[u8]) -> bool {
    if is_string(object.get("type"), "response.failed") {
        return object.object("response").is_some();
    }
    let is_named = event == b"error" && is_string(object.get("type"), "error");
    is_named && is_text(object.get("message"))
}

fn is_text(raw: Option<Raw<'_>>) -> bool {
    raw.is_some_and(|raw| raw.kind == Kind::String)
}
