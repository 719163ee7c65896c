//! What kind of payload a document is: an error, a whole body, of use, a note.

use super::facts::{FACTS, Kind as EventKind};
use super::names::Slots;
use super::response::is_whole;
use crate::complaint::{Complaint, is_bare, says_nothing};
use crate::decode::Shapes;
use crate::json::members::{Document, Object};
use crate::wire::Payload;

pub(crate) static SHAPES: Shapes = Shapes {
    is_body: |document| object(document).is_some_and(is_body),
    is_line: |_| false,
    is_complaint: |document| object(document).is_some_and(complains),
    is_of_use: |document| object(document).is_some_and(is_of_use),
    is_note: |document| object(document).is_some_and(is_note),
};

fn object<'d, 'a>(document: &'d Document<'a>) -> Option<&'d Object<'a>> {
    match document {
        Document::Object(object) => Some(object),
        Document::Other(_) => None,
    }
}

/// Whether a payload outside of any event is a whole response, or the error in its place.
fn is_body(object: &Object<'_>) -> bool {
    if is_whole(object) {
        let status = object.string("status");
        return !matches!(status.as_deref(), Some("queued" | "in_progress"));
    }
    object.present("error").is_some() || complains(object)
}

/// Whether a document is an error without the word: a message with its code, or all that there is.
fn complains(object: &Object<'_>) -> bool {
    let first = object.members.first();
    let bare = first.is_some_and(|first| first.key.is("detail") || first.key.is("message"));
    if bare && is_bare(&object.members, &object.names()) {
        return true;
    }
    if object.present("message").is_none() {
        return false;
    }
    // Elsewhere `type` is the kind of an event, and extensions may have a message, too.
    match object.present("type") {
        None => object.present("code").is_some(),
        Some(_) => object
            .string("type")
            .is_some_and(|kind| kind.ends_with("error")),
    }
}

/// Whether a document behind a broken one brings what may be taken from there: an error, text, or the end.
fn is_of_use(object: &Object<'_>) -> bool {
    let of_use = matches!(
        kind(object),
        Some(EventKind::TextDelta(_) | EventKind::Terminal(_) | EventKind::Error)
    );
    of_use || object.present("error").is_some()
}

/// A heartbeat says nothing, also behind the end.
fn is_note(object: &Object<'_>) -> bool {
    matches!(kind(object), Some(EventKind::KeepAlive))
}

fn kind(object: &Object<'_>) -> Option<EventKind> {
    let name = object.string("type")?;
    FACTS.kinds.get(name.as_ref()).copied()
}

/// The error of an event, nested or flat. An event of a response, or of an extension, may speak of another error.
#[inline]
pub(super) fn find_error<'a>(
    event: &Object<'a>,
    slots: &Slots<'a>,
    name: &str,
    kind: Option<EventKind>,
    payload: Payload<'_>,
) -> Option<Complaint<'a>> {
    let fields = &FACTS.fields;
    let error = slots.get(fields.error).filter(|raw| !says_nothing(*raw));
    let is_error = matches!(kind, Some(EventKind::Error));
    let told = is_error
        || payload
            .event
            .is_some_and(|event| event != name && FACTS.is_error(event));
    let status = match kind {
        Some(EventKind::Terminal(status)) if slots.get(fields.response).is_none() => Some(status),
        _ => None,
    };
    if let Some(error) = error {
        let of_something = name.starts_with("response.") || name.contains(':');
        if told || status.is_some() || !of_something {
            return Some(Complaint::of_value(error));
        }
    }
    let whole = || Complaint::of_members(&event.members, event.raw);
    if told || (status == Some("failed") && slots.present(fields.message).is_some()) {
        let mut found = whole();
        // The name of the event is no kind of error.
        if is_error || matches!(kind, Some(EventKind::Terminal(_))) {
            found.kind = None;
        }
        return Some(found);
    }
    let may = slots.others || slots.present(fields.message).is_some();
    (may && complains(event)).then(whole)
}
