//! Classifies a document: a chunk in an envelope, an error in an array, a complete body, usable data, or a chunk
//! without output.

use crate::dialect::chat::error::has_error;
use crate::dialect::chat::error::holds_chunk;
use crate::dialect::chat::error::is_error_body;
use crate::dialect::chat::error::reports_error;
use crate::dialect::chat::read;
use crate::dialect::chat::read::Choice;
use crate::dialect::chat::read::Chunk;
use crate::dialect::chat::read::Delta;
use crate::dialect::chat::read::Document;
use crate::dialect::chat::read::TypedValue;
use crate::dialect::think_tags::is_white;
use crate::dialect::upstream_error::is_blank_error;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Slot;
use crate::json::members::find;
use crate::json::members::is_string;
use crate::json::members::string;

/// A chunk and its JSON, taken from the member `data` of an envelope.
pub(crate) struct Wrapped<'a> {
    pub(crate) chunk: Chunk<'a>,
    pub(crate) raw: Raw<'a>,
}

/// Returns the chunk in the envelope `{"data":{"choices":…}}`. Returns `None` if the document is a chunk itself or has
/// no such envelope.
pub(crate) fn wrapped<'a>(chunk: &Chunk<'a>, max_depth: Option<u64>) -> Option<Wrapped<'a>> {
    if chunk.is_chunk() {
        return None;
    }
    let raw = find(&chunk.other_members, "data").filter(|raw| raw.kind == Kind::Object)?;
    match read::document(raw.text, max_depth) {
        Ok(Document::Object(chunk)) if chunk.is_chunk() => Some(Wrapped { chunk, raw }),
        _ => None,
    }
}

/// If the value is an array whose first element is an object with `error`, returns that object and its JSON.
pub(crate) fn lone_error<'a>(raw: Raw<'a>, max_depth: Option<u64>) -> Option<(Chunk<'a>, Raw<'a>)> {
    let first = read::first_item(raw).filter(|item| item.kind == Kind::Object)?;
    match read::document(first.text, max_depth) {
        Ok(Document::Object(chunk)) if chunk.error.is_some() => Some((chunk, first)),
        _ => None,
    }
}

/// Returns true if a payload outside an event stream is a complete response body, or an error in place of one.
pub(crate) fn is_body(document: &Document<'_>) -> bool {
    let Document::Object(chunk) = document else {
        return false;
    };
    let named = |word: &str| is_string(chunk.object, word);
    if named("chat.completion") || named("error") || is_error_body(document) {
        return true;
    }
    let Some(TypedValue::Read(choices, _)) = &chunk.choices else {
        return has_error(chunk);
    };
    let whole = choices.iter().any(|choice| match choice {
        TypedValue::Read(choice, _) => choice.message.is_some() && is_none(choice.delta.as_ref()),
        TypedValue::Other(_) => false,
    });
    whole || may_be_json_line(document)
}

/// Returns true if a document that looks like a complete legacy completion could also be the last chunk of a JSON Lines
/// stream.
pub(crate) fn may_be_json_line(document: &Document<'_>) -> bool {
    let Document::Object(chunk) = document else {
        return false;
    };
    let Some(TypedValue::Read(choices, _)) = &chunk.choices else {
        return false;
    };
    let ends = |choice: &TypedValue<'_, Choice<'_>>| match choice {
        TypedValue::Read(choice, _) => {
            let reason = choice.finish_reason.and_then(string);
            legacy_text(choice).is_some()
                && reason.is_some_and(|reason| !reason.trim_matches(is_white).is_empty())
        }
        TypedValue::Other(_) => false,
    };
    chunk.error.is_none_or(is_blank_error) && !choices.is_empty() && choices.iter().all(ends)
}

/// Returns the `text` of a choice that has neither a delta nor a message, as in legacy Completions.
pub(crate) fn legacy_text<'a>(choice: &Choice<'a>) -> Slot<'a> {
    let alone = is_none(choice.delta.as_ref()) && is_none(choice.message.as_ref());
    choice.text.filter(|_| alone)
}

fn is_none(walk: Option<&TypedValue<'_, Box<Delta<'_>>>>) -> bool {
    walk.is_none_or(|walk| walk.raw().kind == Kind::Null)
}

/// Returns true if a document that follows a broken document is a chunk or an error.
pub(crate) fn has_usable_data(document: &Document<'_>) -> bool {
    match document {
        Document::Object(chunk) => {
            let is_wrapped = || holds_chunk(find(&chunk.other_members, "data"));
            chunk.is_chunk() || chunk.error.is_some() || is_wrapped() || reports_error(chunk)
        }
        Document::Other(_) => false,
    }
}

/// Returns true if the document is a chunk with an empty list of choices and no error.
pub(crate) fn is_without_output(document: &Document<'_>) -> bool {
    let Document::Object(chunk) = document else {
        return false;
    };
    let empty = matches!(&chunk.choices, Some(TypedValue::Read(choices, _)) if choices.is_empty());
    let reports = !chunk.error.is_none_or(is_blank_error) || is_string(chunk.object, "error");
    empty && !reports && !reports_error(chunk)
}
