//! Errors that a gateway sends inside a stream: code, kind and message out of whatever shape they have.

use std::borrow::Cow;

use super::read::{Chunk, Document, Member, Slot, find, members, present};
use crate::json::text::compact;
use crate::json::{Kind, Raw, Text};

/// How much of a text that is no JSON becomes the message.
const MESSAGE_CHARS: usize = 512;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Complaint<'a> {
    pub(crate) code: Option<Cow<'a, str>>,
    pub(crate) kind: Option<Cow<'a, str>>,
    pub(crate) message: Cow<'a, str>,
    /// A surrogate stood alone in one of the texts.
    pub(crate) lone: bool,
}

impl<'a> Complaint<'a> {
    /// Of the value of an `error` member.
    pub(crate) fn of_value(raw: Raw<'a>) -> Complaint<'a> {
        if raw.kind != Kind::Object {
            let mut out = Complaint::default();
            out.message = out.plain(raw);
            return out;
        }
        Complaint::of_members(&members(raw), raw)
    }

    fn of_members(members: &[Member<'a>], whole: Raw<'a>) -> Complaint<'a> {
        let of = |name: &str| present(find(members, name));
        let mut out = Complaint::default();
        out.code = of("code").map(|raw| out.plain(raw));
        out.kind = of("type").map(|raw| out.plain(raw));
        let detail = of("detail").filter(|raw| raw.kind == Kind::String);
        out.message = out.plain(of("message").or(detail).unwrap_or(whole));
        out
    }

    /// A string's text, any other value as compact JSON.
    fn plain(&mut self, raw: Raw<'a>) -> Cow<'a, str> {
        match text(raw) {
            Some(text) => {
                let (text, lone) = text.into_whole();
                self.lone |= lone;
                text
            }
            None => compact(raw.text),
        }
    }

    /// Of a text that is no JSON.
    pub(crate) fn of_text(text: &'a str) -> Complaint<'a> {
        let end = text
            .char_indices()
            .nth(MESSAGE_CHARS)
            .map_or(text.len(), |(at, _)| at);
        Complaint {
            message: Cow::Borrowed(text.get(..end).unwrap_or(text)),
            ..Complaint::default()
        }
    }

    /// Of the `error` member of a choice.
    pub(crate) fn of_choice(error: Slot<'a>) -> Option<Complaint<'a>> {
        error
            .filter(|raw| !says_nothing(*raw))
            .map(Complaint::of_value)
    }

    /// Of an object that is an error as a whole, or has one. `named` says that its event is called `error`.
    pub(crate) fn of_chunk(
        chunk: &Chunk<'a>,
        whole: Raw<'a>,
        named: bool,
    ) -> Option<Complaint<'a>> {
        let beside = || chunk.is_chunk() || holds_chunk(find(&chunk.rest, "data"));
        if let Some(error) = present(chunk.error).filter(|raw| !(says_nothing(*raw) && beside())) {
            return Some(Complaint::of_value(error));
        }
        (named || is_string(chunk.object, "error") || complains(chunk))
            .then(|| Complaint::of_members(&chunk.rest, whole))
    }
}

/// Whether a body that no event stream is and no dialect claims is an error in a shape of its own: a message with its
/// code, or a web framework's `detail`.
pub(crate) fn is_complaint(document: &Document<'_>) -> bool {
    let Document::Object(chunk) = document else {
        return false;
    };
    let detail = || find(&chunk.rest, "detail").is_some_and(|raw| raw.kind == Kind::String);
    complains(chunk) || (detail() && chunk.names() == ["detail"])
}

fn complains(chunk: &Chunk<'_>) -> bool {
    let has = |name: &str| present(find(&chunk.rest, name)).is_some();
    !chunk.is_chunk() && has("message") && (has("code") || has("type"))
}

/// Null and what some gateways send in its place: `""`, `false`, `0`, `{}`, `[]`.
fn says_nothing(raw: Raw<'_>) -> bool {
    let blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r');
    match raw.kind {
        Kind::Null => true,
        Kind::String => raw.text == "\"\"",
        Kind::Number => raw.text.parse() == Ok(0.0),
        Kind::Object | Kind::Array => {
            let inner = raw.text.get(1..raw.text.len().saturating_sub(1));
            inner.is_some_and(|inner| inner.trim_matches(blank).is_empty())
        }
        _ => raw.text == "false",
    }
}

/// Whether the envelope's `data` is a chunk (E17).
fn holds_chunk(data: Slot<'_>) -> bool {
    let inner = data.map(members).unwrap_or_default();
    ["choices", "usage"]
        .iter()
        .any(|name| find(&inner, name).is_some())
}

/// Whether the member is that (plain) string.
pub(crate) fn is_string(slot: Slot<'_>, word: &str) -> bool {
    slot.is_some_and(|raw| string(raw).is_some_and(|text| text == word))
}

/// The text of a string.
pub(crate) fn string(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    text(raw).map(|text| text.into_whole().0)
}

/// The text of a string, halves of surrogate pairs apart.
pub(crate) fn text(raw: Raw<'_>) -> Option<Text<'_>> {
    match raw.kind {
        Kind::String => raw
            .text
            .get(1..raw.text.len().saturating_sub(1))
            .map(Text::unescape),
        _ => None,
    }
}
