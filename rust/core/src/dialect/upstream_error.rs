//! Extracts the code, type, and message from an error of any shape that a gateway sends inside a stream. Every dialect
//! uses this module.

use crate::dialect::think_tags::is_white;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Member;
use crate::json::members::find;
use crate::json::members::is_string;
use crate::json::members::items;
use crate::json::members::members;
use crate::json::members::present;
use crate::json::members::string;
use crate::json::members::text;
use crate::json::text::compact;
use std::borrow::Cow;

/// Maximum length, in characters, of a message taken from text that is not JSON.
const MESSAGE_CHARS: usize = 512;
/// The lowest HTTP status that indicates an error.
const HTTP_ERROR: i64 = 400;
/// HTTP statuses are below this value.
const HTTP_LIMIT: i64 = 600;
/// Numbers greater than or equal to this value are not treated as a status.
const STATUS_LIMIT: i64 = 1_000_000_000;

/// Members that may contain the message of an error, in the order in which they are tried. A path with several names
/// leads into nested objects.
const MESSAGES: [&[&str]; 26] = [
    &["message"],
    &["error_message"],
    &["errorMessage"],
    &["error_msg"],
    &["msg"],
    &["detail"],
    &["title"],
    &["base_resp", "status_msg"],
    &["errmsg"],
    &["err_msg"],
    &["error_description"],
    &["Message"],
    &["Error", "Message"],
    &["fault", "faultstring"],
    &["reason"],
    &["httpMessage"],
    &["http_message"],
    &["errorText"],
    &["err"],
    &["error_info", "message"],
    &["error_info", "msg"],
    &["header", "message"],
    &["ErrorMsg", "Msg"],
    &["Response", "Error", "Message"],
    &["data", "error", "message"],
    &["data"],
];
const CODES: [&[&str]; 22] = [
    &["code"],
    &["error_code"],
    &["errorCode"],
    &["statusCode"],
    &["status_code"],
    &["base_resp", "status_code"],
    &["errcode"],
    &["err_code"],
    &["errno"],
    &["retcode"],
    &["ret"],
    &["Error", "Code"],
    &["originalStatusCode"],
    &["http_status"],
    &["httpStatus"],
    &["httpCode"],
    &["http_code"],
    &["error_info", "code"],
    &["header", "code"],
    &["ErrorMsg", "Code"],
    &["Response", "Error", "Code"],
    &["data", "error", "code"],
];
const KINDS: [&[&str]; 4] = [&["type"], &["error_type"], &["errorType"], &["__type"]];
const OWN: [&str; 25] = [
    "error_type",
    "error_message",
    "error_msg",
    "error_code",
    "errorType",
    "errorMessage",
    "errorCode",
    "errors",
    "error_description",
    "fault",
    "exception",
    "Error",
    "__type",
    "Message",
    "upstream_error",
    "errorText",
    "error_info",
    "ErrorMsg",
    "err",
    "internalServerException",
    "modelStreamErrorException",
    "modelTimeoutException",
    "serviceUnavailableException",
    "throttlingException",
    "validationException",
];
/// Paths of objects that only error envelopes contain.
const WRAPPED: [&[&str]; 2] = [&["Response", "Error"], &["data", "error"]];
const WORDS: [&str; 9] = [
    "message",
    "msg",
    "detail",
    "title",
    "errmsg",
    "err_msg",
    "reason",
    "httpMessage",
    "http_message",
];
const STATUSES: [&str; 9] = [
    "code",
    "statusCode",
    "status_code",
    "status",
    "originalStatusCode",
    "http_status",
    "httpStatus",
    "httpCode",
    "http_code",
];
/// Members that always contain an HTTP status. A status of at least 400 needs no message.
const HTTP_STATUSES: [&str; 7] = [
    "statusCode",
    "status_code",
    "originalStatusCode",
    "http_status",
    "httpStatus",
    "httpCode",
    "http_code",
];
/// Members that may contain a word for failure.
const OUTCOMES: [&str; 2] = ["status", "result"];
/// Members with a result code. Zero means success.
const RESULTS: [&str; 5] = ["errcode", "err_code", "errno", "retcode", "ret"];
const FAILED: [&str; 4] = ["error", "failed", "fail", "failure"];
const SUCCEEDED: [&str; 4] = ["ok", "OK", "success", "succeeded"];
/// Words in an event name or a payload type that identify progress reports of a request.
const NOTICES: [&str; 13] = [
    "status",
    "keepalive",
    "heartbeat",
    "ping",
    "progress",
    "metadata",
    "info",
    "notice",
    "notification",
    "log",
    "debug",
    "trace",
    "tool",
];

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct UpstreamErrorFields<'a> {
    pub(crate) code: Option<Cow<'a, str>>,
    pub(crate) kind: Option<Cow<'a, str>>,
    pub(crate) message: Cow<'a, str>,
    /// True if any of these strings contained a lone surrogate.
    pub(crate) lone: bool,
}

impl<'a> UpstreamErrorFields<'a> {
    /// Reads the value of an `error` member.
    pub(crate) fn of_value(raw: Raw<'a>) -> UpstreamErrorFields<'a> {
        if raw.kind != Kind::Object {
            let mut out = UpstreamErrorFields::default();
            out.message = out.plain(raw);
            return out;
        }
        UpstreamErrorFields::of_members(&members(raw), raw)
    }

    /// Reads an object that is an error itself.
    pub(crate) fn of_members(members: &[Member<'a>], whole: Raw<'a>) -> UpstreamErrorFields<'a> {
        let of = |name: &str| present(find(members, name));
        let mut out = UpstreamErrorFields::default();
        out.code = first(members, &CODES).map(|raw| out.plain(raw));
        // Google errors have a `status` instead of a type.
        let status = || of("status").filter(|raw| raw.kind == Kind::String);
        out.kind = first(members, &KINDS)
            .or_else(status)
            .map(|raw| out.plain(raw));
        out.message = out.plain(first(members, &MESSAGES).unwrap_or(whole));
        out
    }

    /// Reads a value that contains only a message: the message member of an object, or the value itself.
    pub(crate) fn of_message(raw: Raw<'a>) -> UpstreamErrorFields<'a> {
        let mut out = UpstreamErrorFields::default();
        out.message = out.plain(first(&members(raw), &MESSAGES).unwrap_or(raw));
        out
    }

    /// Returns the text of a string, or any other value as compact JSON.
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

    /// Returns an error for text that is not JSON. The message of the error is the beginning of the text.
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

/// Returns the value at the first path in `positions` that leads to a usable value, or `None`.
fn first<'a>(own: &[Member<'a>], positions: &[&[&str]]) -> Option<Raw<'a>> {
    positions.iter().find_map(|position| match position {
        ["detail"] => find(own, "detail").filter(|raw| is_detail(*raw)),
        ["data"] => find(own, "data").filter(|raw| raw.kind == Kind::String),
        position => lookup(own, position),
    })
}

/// Returns the value at this path, or `None` if the value is absent or null.
fn lookup<'a>(own: &[Member<'a>], position: &[&str]) -> Option<Raw<'a>> {
    let (name, inner) = position.split_first()?;
    let raw = present(find(own, name))?;
    match raw.kind {
        _ if inner.is_empty() => Some(raw),
        Kind::Object => lookup(&members(raw), inner),
        _ => None,
    }
}

/// Returns true if an event name or a payload type identifies a progress report of a request. Such a name contains a
/// word of `NOTICES` and no word that means failure. A progress report is not an error of the response, even if it
/// reports that a tool failed.
pub(crate) fn is_notice(name: &str) -> bool {
    let mut words = name.split(['.', '_', '-', ':', '/']);
    let is_any = |list: &[&str], word: &str| list.contains(&word);
    let mut found = false;
    words.all(|word| {
        found |= is_any(&NOTICES, word);
        !(is_any(&FAILED, word) || word.ends_with("exception"))
    }) && found
}

/// Returns true if the value of `error` is an object with a message or a code. Such an object is an error in every kind
/// of event.
pub(crate) fn is_stated(error: Raw<'_>) -> bool {
    if error.kind != Kind::Object {
        return false;
    }
    let own = members(error);
    let has_value = |name: &&str| find(&own, name).is_some_and(|raw| !is_blank_value(raw));
    ["message", "code"].iter().any(has_value)
}

/// Returns true if the object reports success, either in words or with a status or code of 0 or 200 to 299.
pub(crate) fn reports_success(own: &[Member<'_>]) -> bool {
    let is_ok = |raw: Raw<'_>| {
        (is_status(raw, 0) && !is_status(raw, 1)) || (is_status(raw, 200) && !is_status(raw, 300))
    };
    let mut sent = STATUSES.iter().filter_map(|name| present(find(own, name)));
    sent.any(is_ok) || states_success(own)
}

/// Returns true if a status or the message of the object is `true` or a word such as `ok`. If the object states success
/// in words, its code may be any number, because some gateways define their own codes for success, such as 20000.
fn states_success(own: &[Member<'_>]) -> bool {
    let is_word = |raw: Raw<'_>| {
        raw.text == "true" || SUCCEEDED.iter().any(|word| is_string(Some(raw), word))
    };
    let names = STATUSES.iter().chain(&BARE_WORDS);
    names.filter_map(|name| find(own, name)).any(is_word)
}

/// Returns true if an object without members of the stream's dialect has a known error shape. The known shapes are a
/// gateway-specific error member, a flag that indicates failure, and an error status with a message.
pub(crate) fn reports_failure(own: &[Member<'_>]) -> bool {
    let has_value = |name: &&str| find(own, name).is_some_and(|raw| !is_empty_value(raw));
    let denies = |name: &str| find(own, name).is_some_and(|raw| raw.text == "false");
    if OWN.iter().any(has_value) || denies("success") || denies("ok") {
        return true;
    }
    let is_filled = |path: &&[&str]| lookup(own, path).is_some_and(|raw| !is_empty_value(raw));
    if WRAPPED.iter().any(is_filled) || is_string(find(own, "event"), "error") {
        return true;
    }
    let result = lookup(own, &["header", "code"]);
    if reports_failed_base(own) || result.is_some_and(|raw| is_status(raw, 1)) {
        return true;
    }
    let worded = |name: &&str| {
        find(own, name).is_some_and(|raw| raw.kind == Kind::String && !is_empty_value(raw))
    };
    let is_from = |name: &str, least| find(own, name).is_some_and(|raw| is_status(raw, least));
    let is_failed = |name: &&str| find(own, name).is_some_and(is_http_error);
    if HTTP_STATUSES.iter().any(is_failed) && !states_success(own) {
        return true;
    }
    let failed = |word: &&str| OUTCOMES.iter().any(|name| is_string(find(own, name), word));
    if WORDS.iter().any(worded)
        && !states_success(own)
        && (FAILED.iter().any(failed)
            || STATUSES.iter().any(|name| is_from(name, HTTP_ERROR))
            || RESULTS.iter().any(|name| is_from(name, 1)))
    {
        return true;
    }
    find(own, "type").is_none() && find(own, "detail").is_some_and(is_detail)
}

/// Returns true if the object has the form of problem details (RFC 9457): a URI as type, the status of a failed HTTP
/// response, and a title or detail.
pub(crate) fn is_problem(own: &[Member<'_>]) -> bool {
    let is_uri = |raw| string(raw).is_some_and(|kind| kind.contains(':') || kind.contains('/'));
    find(own, "type").is_some_and(is_uri)
        && find(own, "status").is_some_and(is_http_error)
        && ["title", "detail"]
            .iter()
            .any(|name| find(own, name).is_some_and(|raw| raw.kind == Kind::String))
}

/// The member that `reports_failed_base` reads.
pub(crate) const FAILED_BASE: &str = "base_resp";

/// Returns true if `base_resp` reports a failure. It may be next to the choices of a chunk:
/// <https://platform.minimax.io/docs/api-reference/errorcode>.
pub(crate) fn reports_failed_base(own: &[Member<'_>]) -> bool {
    lookup(own, &[FAILED_BASE, "status_code"]).is_some_and(|raw| is_status(raw, 1))
}

/// Members that may contain an error message, in an object that does not look like an error otherwise.
const BARE_WORDS: [&str; 4] = ["message", "msg", "errmsg", "err_msg"];

/// Returns true if an object without members of the stream's dialect has a message, has no type, and does not report
/// success. A blank message suffices next to a code. An object in this form is an error if it is the last object of the
/// response.
pub(crate) fn states_message(own: &[Member<'_>]) -> bool {
    let mut codes = STATUSES.iter().chain(&RESULTS);
    let has_code = codes.any(|name| find(own, name).is_some_and(|raw| is_status(raw, 1)));
    let is_words =
        |raw| string(raw).is_some_and(|words| has_code || !words.trim_matches(is_white).is_empty());
    let words = BARE_WORDS.iter().filter_map(|name| find(own, name));
    present(find(own, "type")).is_none() && words.into_iter().any(is_words) && !reports_success(own)
}

/// Returns true if the value is an integer or a string of digits, and is negative or at least `least`.
fn is_status(raw: Raw<'_>, least: i64) -> bool {
    let digits = match raw.kind {
        Kind::Number => Cow::Borrowed(raw.text),
        Kind::String => match text(raw) {
            Some(text) => text.into_whole().0,
            None => return false,
        },
        _ => return false,
    };
    let plain = raw.kind == Kind::Number || digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse::<i64>().ok().filter(|_| plain);
    number.is_some_and(|number| {
        (least..STATUS_LIMIT).contains(&number) || (-STATUS_LIMIT..0).contains(&number)
    })
}

/// Returns true if the value is the status of a failed HTTP response.
fn is_http_error(raw: Raw<'_>) -> bool {
    is_status(raw, HTTP_ERROR) && !is_status(raw, HTTP_LIMIT)
}

/// Returns true if the object has only one member: a string in `message`, or a usable `detail`. Proxies and web
/// frameworks send errors in this form. `names`: the names of all members.
pub(crate) fn is_bare<S: AsRef<str>>(members: &[Member<'_>], names: &[S]) -> bool {
    match names {
        [name] if name.as_ref() == "detail" => find(members, "detail").is_some_and(is_detail),
        [name] if name.as_ref() == "message" => {
            find(members, "message").is_some_and(|raw| raw.kind == Kind::String)
        }
        _ => false,
    }
}

/// Returns true if `raw` can be the `detail` of an error from a web framework: a text, or a non-empty array of
/// validation errors.
fn is_detail(raw: Raw<'_>) -> bool {
    match raw.kind {
        Kind::String => !is_blank_value(raw),
        Kind::Array => !is_empty_value(raw),
        _ => false,
    }
}

/// Returns true if the value of an `error` member has no content: no message, type, or code. Some gateways write their
/// error structure into every payload, with values that mean success.
pub(crate) fn is_blank_error(error: Raw<'_>) -> bool {
    is_blank_value(error)
        || match error.kind {
            Kind::Object => members(error).iter().all(|one| is_blank_value(one.raw)),
            Kind::Array => items(error).into_iter().all(is_blank_value),
            _ => false,
        }
}

fn is_blank_value(raw: Raw<'_>) -> bool {
    let is_blank = |text: Cow<'_, str>| matches!(text.trim_matches(is_white), "" | "0");
    is_empty_value(raw) || string(raw).is_some_and(is_blank)
}

/// Returns true if official clients raise an exception for the blank value of an `error` member, because JavaScript
/// (openai-node) or Python (openai-python) treats the value as true.
pub(crate) fn is_truthy_blank(error: Raw<'_>) -> bool {
    let may_be_true = match error.kind {
        Kind::Object | Kind::Array => true,
        Kind::String => error.text != "\"\"",
        _ => false,
    };
    may_be_true && is_blank_error(error)
}

/// Returns true if the value is null, or a value that gateways send instead of null: `""`, `false`, `0`, `{}`, `[]`.
pub(crate) fn is_empty_value(raw: Raw<'_>) -> bool {
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
