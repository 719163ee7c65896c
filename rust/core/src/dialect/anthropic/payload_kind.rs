//! Classifies a document: a complete body, an error, usable data, or a payload without output.

use crate::dialect::anthropic::fields::FACTS;
use crate::dialect::anthropic::fields::type_of;
use crate::dialect::decoder::Shapes;
use crate::dialect::upstream_error::is_bare;
use crate::dialect::upstream_error::reports_failure;
use crate::json::Kind;
use crate::json::members::Document;
use crate::json::members::Object;

pub(crate) static SHAPES: Shapes = Shapes {
    is_body: |document| {
        object(document).is_some_and(|object| {
            matches!(type_of(&object.members).as_ref(), "message" | "error")
                || reports_error(object)
                || object.present("error").is_some()
        })
    },
    is_line: |_| false,
    is_error_body: |document| {
        object(document).is_some_and(|object| {
            reports_error(object) || is_bare(&object.members, &object.names())
        })
    },
    is_of_use: |document| {
        object(document).is_some_and(|object| {
            is_tail(&type_of(&object.members)) || object.present("error").is_some()
        })
    },
    is_note: |document| {
        object(document).is_some_and(|object| {
            matches!(type_of(&object.members).as_ref(), "ping" | "message_stop")
        })
    },
};

fn object<'d, 'a>(document: &'d Document<'a>) -> Option<&'d Object<'a>> {
    match document {
        Document::Object(object) => Some(object),
        Document::Other(_) => None,
    }
}

/// Returns true for an event that may be used after a broken document.
pub(crate) fn is_tail(kind: &str) -> bool {
    matches!(
        kind,
        "content_block_delta" | "message_delta" | "message_stop" | "error"
    )
}

/// Returns true for an error that has no `error` member but has a message with a code or a type.
pub(crate) fn reports_error(object: &Object<'_>) -> bool {
    let kind = type_of(&object.members);
    if FACTS.is_event(&kind) {
        return false;
    }
    if kind.is_empty() && reports_failure(&object.members) {
        return true;
    }
    let worded = object.get("message").map(|raw| raw.kind) == Some(Kind::String);
    worded && (object.present("code").is_some() || object.present("type").is_some())
}
