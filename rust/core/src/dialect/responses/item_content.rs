//! Reads from an output item what applications read from it, to compare the items that a stream repeats.

use crate::json::Kind;
use crate::json::members::Document;
use crate::json::members::Object;
use crate::json::members::document;
use crate::json::members::is_string;
use crate::json::members::items;
use std::hash::DefaultHasher;
use std::hash::Hash;
use std::hash::Hasher;

/// Returns the member that contains the arguments of a call that the client runs, or `None` if items of this type are
/// not such calls.
fn arguments_of(kind: &str) -> Option<&'static str> {
    match kind {
        "function_call" => Some("arguments"),
        "custom_tool_call" => Some("input"),
        _ => None,
    }
}

/// Returns true if the content of an item of this type is more than its type.
pub(crate) fn has_content(kind: &str) -> bool {
    matches!(kind, "message" | "reasoning") || arguments_of(kind).is_some()
}

/// Returns a hash of the type of an item and of its texts, or of the ids and arguments of its call. Returns `None` if a
/// message or a reasoning item has no text.
///
/// The content of any other item is only its type, because the forms of such an item may differ in a stream.
pub(crate) fn content_of(item: &Object<'_>) -> Option<u64> {
    let kind = item.string("type").unwrap_or_default();
    let mut content = Hashed::default();
    content.word(&kind);
    match &*kind {
        "message" => content.texts(item, [("content", "text"), ("content", "refusal")])?,
        "reasoning" => content.texts(item, [("summary", "text"), ("content", "text")])?,
        _ => {
            if let Some(arguments) = arguments_of(&kind) {
                for name in ["call_id", "name"] {
                    content.word(&item.string(name).unwrap_or_default());
                }
                let text = item.string(arguments).unwrap_or_default();
                match &*kind {
                    "function_call" => content.word(&without_blanks(&text)),
                    _ => content.word(&text),
                }
            }
        }
    }
    Some(content.0.finish())
}

/// Returns true if the status of a call of the client shows that it is complete. A call without a status is complete.
pub(crate) fn is_whole_call(item: &Object<'_>) -> bool {
    let is_call = item
        .string("type")
        .is_some_and(|kind| arguments_of(&kind).is_some());
    let status = item.present("status");
    !is_call || status.is_none() || is_string(status, "completed")
}

/// Returns true if the arguments of a call of the client are complete: text of any kind, or a JSON object.
pub(crate) fn has_whole_arguments(call: &Object<'_>) -> bool {
    if is_string(call.get("type"), "custom_tool_call") {
        return true;
    }
    let arguments = call.string("arguments").unwrap_or_default();
    matches!(document(&arguments, None), Ok(Document::Object(_)))
}

/// Returns JSON text without the white space between its tokens: gateways spell arguments anew.
fn without_blanks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut in_string, mut is_escaped) = (false, false);
    for letter in text.chars() {
        if !in_string && matches!(letter, ' ' | '\t' | '\n' | '\r') {
            continue;
        }
        if letter == '"' && !is_escaped {
            in_string = !in_string;
        }
        is_escaped = in_string && letter == '\\' && !is_escaped;
        out.push(letter);
    }
    out
}

/// The hash of a sequence of texts.
#[derive(Debug, Default)]
struct Hashed(DefaultHasher);

impl Hashed {
    fn word(&mut self, word: &str) {
        word.hash(&mut self.0);
    }

    /// Adds the joined texts of the lists, which are given by the name of the list and of the member with the text.
    /// Returns `None` if all texts are empty.
    fn texts(&mut self, item: &Object<'_>, lists: [(&str, &str); 2]) -> Option<()> {
        let mut is_empty = true;
        for (list, member) in lists {
            let list = item.get(list).filter(|raw| raw.kind == Kind::Array);
            for part in list.map(items).unwrap_or_default() {
                let text =
                    Object::of(part).and_then(|part| Some(part.string(member)?.into_owned()));
                let text = text.unwrap_or_default();
                is_empty &= text.is_empty();
                self.0.write(text.as_bytes());
            }
            self.0.write_u8(0xff); // never occurs in UTF-8
        }
        (!is_empty).then_some(())
    }
}
