//! Errors that a gateway sends inside a stream: code, kind and message out of whatever shape they have. Knows no dialect.

use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Member;
use crate::json::members::find;
use crate::json::members::members;
use crate::json::members::present;
use crate::json::members::text;
use crate::json::text::compact;
use std::borrow::Cow;

/// How much of a text that is no JSON becomes the message.
const MESSAGE_CHARS: usize = 512;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct UpstreamErrorFields<'a> {
    pub(crate) code: Option<Cow<'a, str>>,
    pub(crate) kind: Option<Cow<'a, str>>,
    pub(crate) message: Cow<'a, str>,
    /// A surrogate stood alone in one of the texts.
    pub(crate) lone: bool,
}

impl<'a> UpstreamErrorFields<'a> {
    /// Of the value of an `error` member.
    pub(crate) fn of_value(raw: Raw<'a>) -> UpstreamErrorFields<'a> {
        if raw.kind != Kind::Object {
            let mut out = UpstreamErrorFields::default();
            out.message = out.plain(raw);
            return out;
        }
        UpstreamErrorFields::of_members(&members(raw), raw)
    }

    /// Of an object that is an error as a whole.
    pub(crate) fn of_members(members: &[Member<'a>], whole: Raw<'a>) -> UpstreamErrorFields<'a> {
        let of = |name: &str| present(find(members, name));
        let mut out = UpstreamErrorFields::default();
        out.code = of("code").map(|raw| out.plain(raw));
        // Google's have a `status` where others have a type.
        let status = || of("status").filter(|raw| raw.kind == Kind::String);
        out.kind = of("type").or_else(status).map(|raw| out.plain(raw));
        out.message = out.plain(said(members).unwrap_or(whole));
        out
    }

    /// Of a value that is the message, whatever it has beside it.
    pub(crate) fn of_message(raw: Raw<'a>) -> UpstreamErrorFields<'a> {
        let mut out = UpstreamErrorFields::default();
        out.message = out.plain(said(&members(raw)).unwrap_or(raw));
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
    pub(crate) fn of_text(text: &'a str) -> UpstreamErrorFields<'a> {
        let end = text
            .char_indices()
            .nth(MESSAGE_CHARS)
            .map_or(text.len(), |(at, _)| at);
        UpstreamErrorFields {
            message: Cow::Borrowed(text.get(..end).unwrap_or(text)),
            ..UpstreamErrorFields::default()
        }
    }
}

/// The message among the members of an error.
fn said<'a>(members: &[Member<'a>]) -> Option<Raw<'a>> {
    let of = |name: &str| present(find(members, name));
    let detail = || of("detail").filter(|raw| is_detail(*raw));
    of("message").or_else(detail)
}

/// Whether all of a body, whose names are these, is what a proxy or a web framework says in the place of an answer.
pub(crate) fn is_bare<S: AsRef<str>>(members: &[Member<'_>], names: &[S]) -> bool {
    match names {
        [name] if name.as_ref() == "detail" => find(members, "detail").is_some_and(is_detail),
        [name] if name.as_ref() == "message" => {
            find(members, "message").is_some_and(|raw| raw.kind == Kind::String)
        }
        _ => false,
    }
}

/// Words, or what did not validate, item by item.
fn is_detail(raw: Raw<'_>) -> bool {
    raw.kind == Kind::String || (raw.kind == Kind::Array && !says_nothing(raw))
}

/// Null and what some gateways send in its place: `""`, `false`, `0`, `{}`, `[]`.
pub(crate) fn says_nothing(raw: Raw<'_>) -> bool {
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
