//! Finds the error in a chunk, and recognizes documents that are errors themselves.

use crate::dialect::chat::read::Chunk;
use crate::dialect::chat::read::Document;
use crate::dialect::chat::read::TypedValue;
pub(crate) use crate::dialect::upstream_error::UpstreamErrorFields;
use crate::dialect::upstream_error::is_bare;
use crate::dialect::upstream_error::is_blank_error;
use crate::dialect::upstream_error::is_empty_value;
use crate::dialect::upstream_error::is_notice;
use crate::dialect::upstream_error::is_problem;
use crate::dialect::upstream_error::is_stated;
use crate::dialect::upstream_error::reports_failed_base;
use crate::dialect::upstream_error::reports_failure;
use crate::dialect::upstream_error::reports_success;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Slot;
use crate::json::members::find;
pub(crate) use crate::json::members::is_string;
use crate::json::members::members;
use crate::json::members::present;
use crate::json::members::string;

impl<'a> UpstreamErrorFields<'a> {
    /// Returns the error in a choice or its delta, or `None` if the error value has no content, such as `""` or `{}`.
    pub(crate) fn of_choice(error: Slot<'a>) -> Option<UpstreamErrorFields<'a>> {
        error
            .filter(|raw| !is_blank_error(*raw))
            .map(UpstreamErrorFields::of_value)
    }

    /// Returns the error in a payload object, or `None`. `event`: the name of the event that contains the payload.
    pub(crate) fn of_chunk(
        chunk: &Chunk<'a>,
        whole: Raw<'a>,
        event: Option<&str>,
    ) -> Option<UpstreamErrorFields<'a>> {
        let is_stated = chunk.error.is_some_and(is_stated);
        if event.is_some_and(is_notice) && !chunk.is_chunk() && !is_stated {
            return None;
        }
        if let Some(error) = chunk.error.filter(|_| has_error(chunk)) {
            return Some(UpstreamErrorFields::of_value(error));
        }
        let named = event == Some("error") || is_string(chunk.object, "error");
        (named || reports_error(chunk))
            .then(|| UpstreamErrorFields::of_members(&chunk.other_members, whole))
    }
}

/// Returns true if the payload has an `error` member. A blank value next to a chunk is ignored.
pub(crate) fn has_error(chunk: &Chunk<'_>) -> bool {
    let has_chunk = || chunk.is_chunk() || holds_chunk(find(&chunk.other_members, "data"));
    present(chunk.error).is_some_and(|raw| !(is_blank_error(raw) && has_chunk()))
}

/// Returns true if the body of a response reports an error, because it has a message with a code, or only a message.
/// This function is called for a body that is not an event stream and matches no dialect.
pub(crate) fn is_error_body(document: &Document<'_>) -> bool {
    let Document::Object(chunk) = document else {
        return false;
    };
    reports_error(chunk) || is_bare(&chunk.other_members, &chunk.names())
}

/// Returns true if the list of choices is not empty.
fn has_choices(chunk: &Chunk<'_>) -> bool {
    match &chunk.choices {
        Some(TypedValue::Read(choices, _)) => !choices.is_empty(),
        Some(TypedValue::Other(raw)) => !is_empty_value(*raw),
        None => false,
    }
}

pub(crate) fn reports_error(chunk: &Chunk<'_>) -> bool {
    if reports_failed_base(&chunk.other_members) || is_problem(&chunk.other_members) {
        return true;
    }
    let has = |name: &str| present(find(&chunk.other_members, name)).is_some();
    let sent = |slot: Slot<'_>| slot.is_some_and(|raw| !is_empty_value(raw));
    if has_choices(chunk) || sent(chunk.usage) || holds_chunk(find(&chunk.other_members, "data")) {
        return false;
    }
    if find(&chunk.other_members, "type")
        .and_then(string)
        .is_some_and(|kind| is_notice(&kind))
    {
        return false;
    }
    if reports_failure(&chunk.other_members) {
        return true;
    }
    let Some(message) = present(find(&chunk.other_members, "message")) else {
        return false;
    };
    // A `message` object with a type and without a code belongs to an event of another dialect (`message_start`).
    let typed = || has("type") && message.kind != Kind::Object;
    !chunk.is_chunk() && !reports_success(&chunk.other_members) && (has("code") || typed())
}

/// Returns true if `data`, the content of a possible envelope, is an object with `choices` or `usage`.
pub(crate) fn holds_chunk(data: Slot<'_>) -> bool {
    let inner = data.map(members).unwrap_or_default();
    ["choices", "usage"]
        .iter()
        .any(|name| find(&inner, name).is_some())
}
