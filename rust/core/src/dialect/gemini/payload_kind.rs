//! Classifies payloads: chunks, chunks in an envelope, complete bodies, errors, and documents that follow a broken
//! document. Chunks without output are ignored even after the end of the stream.

use crate::dialect::decoder::Shapes;
use crate::dialect::gemini::spec_tables::is_reason;
use crate::dialect::upstream_error::UpstreamErrorFields;
use crate::dialect::upstream_error::is_bare;
use crate::dialect::upstream_error::is_blank_error;
use crate::dialect::upstream_error::is_empty_value;
use crate::dialect::upstream_error::reports_failure;
use crate::dialect::upstream_error::reports_success;
use crate::json::Key;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::Scan;
use crate::json::duplicate_keys::may_repeat;
use crate::json::members::Document;
use crate::json::members::Member;
use crate::json::members::Object;
use crate::json::members::Place;
use crate::json::members::items;
use crate::json::members::split;
use crate::json::members::text;

/// Members that identify a chunk, by JSON name and by proto name.
const USED: [&str; 9] = [
    "candidates",
    "promptFeedback",
    "usageMetadata",
    "modelVersion",
    "responseId",
    "prompt_feedback",
    "usage_metadata",
    "model_version",
    "response_id",
];

pub(crate) static SHAPES: Shapes = Shapes {
    document: read,
    is_body: |document| {
        object(document)
            .is_some_and(|object| ends(object) || has_error(object) || reports_error(object))
    },
    // A complete body has the same form as the last chunk of a JSON Lines stream. Early Gemini models put a finish
    // reason into every chunk.
    may_be_json_line: |document| {
        object(document).is_some_and(|object| !has_error(object) && !reports_error(object))
    },
    is_error_body: |document| {
        object(document).is_some_and(|object| {
            reports_error(object) || is_bare(&object.members, &object.names())
        })
    },
    has_usable_data: |document| {
        object(document).is_some_and(|object| is_used(object) || object.present("error").is_some())
    },
    is_without_output: |document| {
        let silent = |object: &Object<'_>, key| object.get(key).is_none_or(is_empty_value);
        object(document).is_some_and(|object| {
            is_used(object)
                && silent(object, "candidates")
                && feedback(object).is_none_or(is_empty_value)
                && !has_error(object)
        })
    },
};

/// The kinds of objects and lists that the decoder reads in a chunk.
#[derive(Clone, Copy, Debug)]
enum ChunkPlace {
    /// A chunk, or the envelope that contains a chunk.
    Payload,
    /// A chunk in an envelope.
    Inner,
    Candidates,
    Candidate,
    Content,
    Parts,
    Part,
    Call,
    Feedback,
    Usage,
}

impl Place for ChunkPlace {
    fn child(self, key: Key<'_>) -> Option<ChunkPlace> {
        Some(match (self, key.name().as_ref()) {
            (ChunkPlace::Payload, "response") => ChunkPlace::Inner,
            (ChunkPlace::Payload | ChunkPlace::Inner, "candidates") => ChunkPlace::Candidates,
            (ChunkPlace::Payload | ChunkPlace::Inner, "promptFeedback") => ChunkPlace::Feedback,
            (ChunkPlace::Payload | ChunkPlace::Inner, "usageMetadata") => ChunkPlace::Usage,
            (ChunkPlace::Candidate, "content") => ChunkPlace::Content,
            (ChunkPlace::Content, "parts") => ChunkPlace::Parts,
            (ChunkPlace::Part, "functionCall") => ChunkPlace::Call,
            _ => return None,
        })
    }

    fn item(self) -> Option<ChunkPlace> {
        match self {
            ChunkPlace::Candidates => Some(ChunkPlace::Candidate),
            ChunkPlace::Parts => Some(ChunkPlace::Part),
            _ => None,
        }
    }

    fn may_repeat(self, members: &[Member<'_>]) -> bool {
        let is_partial = |member: &Member<'_>| member.key.is("partialArgs");
        match self {
            ChunkPlace::Usage => false, // duplicate keys in usage objects are not reported
            ChunkPlace::Call => may_repeat(members) || members.iter().any(is_partial),
            _ => may_repeat(members),
        }
    }
}

/// Parses a payload and splits the objects and lists that the decoder reads.
pub(crate) fn read<'a>(text: &'a str, max_depth: Option<u64>) -> Scan<Document<'a>> {
    split(text, max_depth, ChunkPlace::Payload)
}

fn object<'d, 'a>(document: &'d Document<'a>) -> Option<&'d Object<'a>> {
    match document {
        Document::Object(object) => Some(object),
        Document::Other(_) => None,
    }
}

/// Returns true if the object has a member that identifies a chunk, under its JSON name or proto name.
pub(crate) fn is_used(object: &Object<'_>) -> bool {
    let used = |name: &str| USED.contains(&name);
    object.members.iter().any(|member| used(&member.key.name()))
}

/// Returns true if the payload ends the response: every candidate has a finish reason, or the prompt was blocked.
/// Outside an event stream, any other chunk is one of several documents, one per line.
fn ends(object: &Object<'_>) -> bool {
    let has_value = |holder: &Object<'_>, json_name, proto_name| {
        either(holder, json_name, proto_name)
            .and_then(text)
            .is_some_and(|text| is_reason(&text))
    };
    let candidates = object
        .get("candidates")
        .filter(|raw| raw.kind == Kind::Array);
    let candidates = candidates.map(items).unwrap_or_default();
    if candidates.is_empty() {
        let feedback = feedback(object).and_then(Object::of);
        return feedback
            .is_some_and(|feedback| has_value(&feedback, "blockReason", "block_reason"));
    }
    let ended = |raw| {
        Object::of(raw)
            .is_some_and(|candidate| has_value(&candidate, "finishReason", "finish_reason"))
    };
    candidates.into_iter().all(ended)
}

fn feedback<'a>(object: &Object<'a>) -> Option<Raw<'a>> {
    either(object, "promptFeedback", "prompt_feedback")
}

fn either<'a>(object: &Object<'a>, json_name: &str, proto_name: &str) -> Option<Raw<'a>> {
    object.present(json_name).or_else(|| object.get(proto_name))
}

/// Returns the chunk in the envelope `{"response": {...}}`, or `None` if there is no envelope.
pub(crate) fn wrapped<'a>(object: &Object<'a>) -> Option<Object<'a>> {
    if is_used(object) {
        return None;
    }
    object.object("response").filter(is_used)
}

/// Returns the error in a payload object, or `None`. `used`: true if the object is a chunk.
pub(crate) fn error<'a>(
    object: &Object<'a>,
    event: Option<&str>,
    used: bool,
) -> Option<UpstreamErrorFields<'a>> {
    let given = object.present("error");
    match given.filter(|raw| !(used && is_blank_error(*raw))) {
        Some(raw) => Some(UpstreamErrorFields::of_value(raw)),
        None if !used && (event == Some("error") || reports_error(object)) => {
            Some(UpstreamErrorFields::of_members(&object.members, object.raw))
        }
        None => None,
    }
}

/// Returns true if the object has an `error` member. In a chunk, the value of `error` must have content.
fn has_error(object: &Object<'_>) -> bool {
    let error = object.present("error");
    error.is_some_and(|raw| !(is_used(object) && is_blank_error(raw)))
}

/// Returns true if the object reports an error without an `error` member. Such an object has a message with a code, a
/// status, or a type that ends in `error`, or has another known error shape.
fn reports_error(object: &Object<'_>) -> bool {
    if is_used(object) {
        return false;
    }
    if reports_failure(&object.members) {
        return true;
    }
    let worded = object.get("message").map(|raw| raw.kind) == Some(Kind::String);
    let has = |name| object.present(name).is_some();
    let kind = || {
        object
            .string("type")
            .is_some_and(|kind| kind.ends_with("error"))
    };
    worded && (has("code") || has("status") || kind()) && !reports_success(&object.members)
}
