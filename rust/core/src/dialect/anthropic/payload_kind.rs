//! Classifies a document: a complete body, an error, usable data after a broken document, or a payload without output.

use crate::dialect::anthropic::fields::FACTS;
use crate::dialect::anthropic::fields::type_of;
use crate::dialect::decoder::Shapes;
use crate::dialect::upstream_error::is_bare;
use crate::dialect::upstream_error::is_blank_error;
use crate::dialect::upstream_error::is_notice;
use crate::dialect::upstream_error::is_problem;
use crate::dialect::upstream_error::reports_failure;
use crate::dialect::upstream_error::reports_success;
use crate::json::Key;
use crate::json::Kind;
use crate::json::duplicate_keys::may_repeat;
use crate::json::members::Document;
use crate::json::members::Member;
use crate::json::members::Object;
use crate::json::members::Place;
use crate::json::members::split;

pub(crate) static SHAPES: Shapes = Shapes {
    document: |text, max_depth| split(text, max_depth, EventPlace::Event),
    is_body: |document| {
        object(document).is_some_and(|object| {
            matches!(type_of(&object.members).as_ref(), "message" | "error")
                || reports_error(object)
                || !object.get("error").is_none_or(is_blank_error)
        })
    },
    may_be_json_line: |_| false,
    is_error_body: |document| {
        object(document).is_some_and(|object| {
            reports_error(object) || is_bare(&object.members, &object.names())
        })
    },
    has_usable_data: |document| {
        object(document).is_some_and(|object| {
            is_tail(&type_of(&object.members)) || object.present("error").is_some()
        })
    },
    is_without_output: |document| {
        object(document).is_some_and(|object| {
            matches!(type_of(&object.members).as_ref(), "ping" | "message_stop")
        })
    },
};

/// The kinds of objects and lists that the decoder reads in an event or a complete message.
#[derive(Clone, Copy, Debug)]
enum EventPlace {
    Event,
    Message,
    /// The list of content blocks in a message.
    Blocks,
    Block,
    Delta,
    Usage,
}

impl Place for EventPlace {
    fn child(self, key: Key<'_>) -> Option<EventPlace> {
        Some(match (self, key.name().as_ref()) {
            (EventPlace::Event, "delta") => EventPlace::Delta,
            (EventPlace::Event, "content_block") => EventPlace::Block,
            (EventPlace::Event, "message") => EventPlace::Message,
            (EventPlace::Event | EventPlace::Message, "content") => EventPlace::Blocks,
            (EventPlace::Event | EventPlace::Message, "usage") => EventPlace::Usage,
            _ => return None,
        })
    }

    fn item(self) -> Option<EventPlace> {
        matches!(self, EventPlace::Blocks).then_some(EventPlace::Block)
    }

    /// Returns false for usage objects, whose duplicate keys are not reported.
    fn may_repeat(self, members: &[Member<'_>]) -> bool {
        !matches!(self, EventPlace::Usage) && may_repeat(members)
    }
}

fn object<'d, 'a>(document: &'d Document<'a>) -> Option<&'d Object<'a>> {
    match document {
        Document::Object(object) => Some(object),
        Document::Other(_) => None,
    }
}

/// Returns true if an event of this type is decoded even after a broken document.
pub(crate) fn is_tail(kind: &str) -> bool {
    matches!(
        kind,
        "content_block_delta" | "message_delta" | "message_stop" | "error"
    )
}

/// Returns true if the object reports an error without an `error` member. The object reports an error if it has a
/// message with a code or a type, or has another known error shape.
pub(crate) fn reports_error(object: &Object<'_>) -> bool {
    let kind = type_of(&object.members);
    if FACTS.is_event(&kind) {
        return false;
    }
    if is_problem(&object.members) {
        return true;
    }
    if is_notice(&kind) {
        return false;
    }
    if kind.is_empty() && reports_failure(&object.members) {
        return true;
    }
    let worded = object.get("message").map(|raw| raw.kind) == Some(Kind::String);
    let worded = worded && !reports_success(&object.members);
    worded && (object.present("code").is_some() || object.present("type").is_some())
}
