//! Classifies payloads: errors, complete bodies, usable data after a broken document, and keepalives.

use crate::dialect::decode_context::Payload;
use crate::dialect::decoder::Shapes;
use crate::dialect::responses::duplicate_keys::ValueKind;
use crate::dialect::responses::name_sets::Slots;
use crate::dialect::responses::spec_tables::FACTS;
use crate::dialect::responses::spec_tables::Kind as EventKind;
use crate::dialect::upstream_error::UpstreamErrorFields;
use crate::dialect::upstream_error::is_bare;
use crate::dialect::upstream_error::is_blank_error;
use crate::dialect::upstream_error::is_problem;
use crate::dialect::upstream_error::reports_failure;
use crate::dialect::upstream_error::reports_success;
use crate::json::members::Document;
use crate::json::members::Object;
use crate::json::members::is_string;
use crate::json::members::split;

pub(crate) static SHAPES: Shapes = Shapes {
    document: |text, max_depth| split(text, max_depth, ValueKind::Event),
    is_body: |document| object(document).is_some_and(is_body),
    may_be_json_line: |_| false,
    is_error_body: |document| object(document).is_some_and(is_error_body),
    has_usable_data: |document| object(document).is_some_and(has_usable_data),
    is_without_output: |document| object(document).is_some_and(is_without_output),
};

fn object<'d, 'a>(document: &'d Document<'a>) -> Option<&'d Object<'a>> {
    match document {
        Document::Object(object) => Some(object),
        Document::Other(_) => None,
    }
}

/// Returns true if a payload outside an event stream is a complete response, or an error in place of one.
fn is_body(object: &Object<'_>) -> bool {
    if is_whole(object) {
        let status = object.string("status");
        return !matches!(status.as_deref(), Some("queued" | "in_progress"));
    }
    !object.get("error").is_none_or(is_blank_error) || is_error_body(object)
}

/// Returns true if the body of a response reports an error without an `error` member. An error body may contain only
/// `message` or `detail`.
fn is_error_body(object: &Object<'_>) -> bool {
    let first = object.members.first();
    let bare = first.is_some_and(|first| first.key.is("detail") || first.key.is("message"));
    reports_error(object) || (bare && is_bare(&object.members, &object.names()))
}

/// Returns true if a document without an `error` member reports an error. An error document has a message with a code,
/// or another known error shape.
fn reports_error(object: &Object<'_>) -> bool {
    let is_untyped = object.present("type").is_none() && !is_whole(object);
    if (is_untyped && reports_failure(&object.members)) || is_problem(&object.members) {
        return true;
    }
    if object.present("message").is_none() {
        return false;
    }
    // A document with a `type` is an event. Extension events may also have a `message`, so an event is treated as an
    // error only if its type ends in `error`.
    match object.present("type") {
        None => object.present("code").is_some() && !reports_success(&object.members),
        Some(_) => object
            .string("type")
            .is_some_and(|kind| kind.ends_with("error")),
    }
}

/// Returns true if a document that follows a broken document is an error, a text delta, or a terminal event.
fn has_usable_data(object: &Object<'_>) -> bool {
    let of_use = matches!(
        kind(object),
        Some(EventKind::TextDelta(_) | EventKind::Terminal(_) | EventKind::Error)
    );
    of_use || object.present("error").is_some()
}

/// Returns true if the event is a keepalive, which is ignored even after the end of the stream.
fn is_without_output(object: &Object<'_>) -> bool {
    matches!(kind(object), Some(EventKind::KeepAlive))
}

fn kind(object: &Object<'_>) -> Option<EventKind> {
    let name = object.string("type")?;
    FACTS.kinds.get(name.as_ref()).copied()
}

/// Returns the error in an event, or `None`. The error is the `error` member or the event itself. An `error` member in
/// a response event or an extension event may have another meaning.
#[inline]
pub(crate) fn find_error<'a>(
    event: &Object<'a>,
    slots: &Slots<'a>,
    name: &str,
    kind: Option<EventKind>,
    payload: Payload<'_>,
) -> Option<UpstreamErrorFields<'a>> {
    let fields = &FACTS.fields;
    let error = slots.get(fields.error).filter(|raw| !is_blank_error(*raw));
    let is_error = matches!(kind, Some(EventKind::Error));
    let is_named_error = is_error
        || payload
            .event
            .is_some_and(|event| event != name && FACTS.is_error(event));
    let status = match kind {
        Some(EventKind::Terminal(status)) if slots.get(fields.response).is_none() => Some(status),
        _ => None,
    };
    if let Some(error) = error {
        let of_something = name.starts_with("response.") || name.contains(':');
        if is_named_error || status.is_some() || !of_something {
            return Some(UpstreamErrorFields::of_value(error));
        }
    }
    let whole = || UpstreamErrorFields::of_members(&event.members, event.raw);
    if is_named_error || (status == Some("failed") && slots.present(fields.message).is_some()) {
        let mut found = whole();
        // The type of an error event is not the type of the error.
        if is_error || matches!(kind, Some(EventKind::Terminal(_))) {
            found.kind = None;
        }
        return Some(found);
    }
    let may = slots.others || slots.present(fields.message).is_some();
    (may && reports_error(event)).then(whole)
}

/// Returns true if the object is a response rather than an event.
pub(crate) fn is_whole(object: &Object<'_>) -> bool {
    is_string(object.get("object"), "response")
}
