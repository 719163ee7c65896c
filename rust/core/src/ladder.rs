//! What a payload is: a marker, a document, or something broken of which a part can still be used.
//!
//! The rungs are tried only where the data is not JSON, and not under a strict policy. Between framing and decoding:
//! knows lines and documents, nothing of what is in them. Linear: each byte is read a fixed number of times.

use crate::dialect::chat::read::{self, Document};
use crate::json::{Problem, ScanError};

/// How many places are tried at which a second document may have been glued to a broken one.
const TAILS: usize = 8;

pub(crate) const MARKER: &str = "[DONE]";

#[derive(Debug)]
pub(crate) enum Found<'t> {
    Blank,
    Comment,
    Null,
    Marker,
    Document(Document<'t>),
    /// Every line is a document, a marker or nothing: what there is, in order, and how many documents.
    Lines(Vec<&'t str>, usize),
    /// One document, once its lines are put together.
    Joined(String),
    /// Whole documents behind a broken one.
    Tail(Vec<&'t str>),
    /// Text that never was a document.
    Text,
    Broken(ScanError),
}

/// Without the white space of ASCII around it.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}'))
}

/// What a trimmed payload is. `lenient` allows the rungs.
pub(crate) fn climb(text: &str, max_depth: Option<u64>, lenient: bool) -> Found<'_> {
    match text {
        "" => return Found::Blank,
        "null" => return Found::Null,
        MARKER => return Found::Marker,
        _ if text.starts_with(':') => return Found::Comment,
        _ => {}
    }
    let fault = match read::document(text, max_depth) {
        Ok(document) => return Found::Document(document),
        Err(fault) => fault,
    };
    if !lenient || fault.problem == Problem::TooDeep {
        return Found::Broken(fault);
    }
    if let Some((lines, count)) = lines(text, max_depth) {
        return Found::Lines(lines, count);
    }
    if text.contains('\n') {
        let joined = text.replace(['\n', '\r'], "");
        if read::document(&joined, max_depth).is_ok() {
            return Found::Joined(joined);
        }
    }
    let tails = tails(text, max_depth);
    if !tails.is_empty() {
        return Found::Tail(tails);
    }
    if text.starts_with(['{', '[']) {
        Found::Broken(fault)
    } else {
        Found::Text
    }
}

/// The lines, if each of several is whole, and how many of them are documents.
fn lines(text: &str, max_depth: Option<u64>) -> Option<(Vec<&str>, usize)> {
    let mut out = Vec::new();
    let mut documents = 0;
    for line in text.split('\n').map(trim).filter(|line| !line.is_empty()) {
        if line != MARKER && !line.starts_with(':') {
            read::document(line, max_depth).ok()?;
            documents += 1;
        }
        out.push(line);
    }
    (out.len() > 1 && documents > 0).then_some((out, documents))
}

/// Whole documents behind a broken one: the lines after it, or what stands after `data:` within a line.
fn tails(text: &str, max_depth: Option<u64>) -> Vec<&str> {
    let whole = |text: &&str| text.starts_with('{') && read::document(text, max_depth).is_ok();
    let lines = text.split('\n').map(trim);
    let behind: Vec<&str> = lines
        .skip_while(|line| whole(line) || line.is_empty())
        .filter(whole)
        .collect();
    if !behind.is_empty() {
        return behind;
    }
    let glued = text.match_indices("data:").filter_map(|(at, name)| {
        let tail = trim(text.get(at + name.len()..)?);
        tail.starts_with('{').then_some(tail)
    });
    glued
        .take(TAILS)
        .find(|tail| read::document(tail, max_depth).is_ok())
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rung(text: &str) -> String {
        match climb(text, None, true) {
            Found::Document(_) => "document".to_owned(),
            Found::Lines(lines, count) => format!("{count} of {}", lines.len()),
            Found::Tail(tails) => format!("tail {}", tails.join(" ")),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    #[test]
    fn whole_payloads_need_no_rung() {
        assert_eq!(rung(""), "blank");
        assert_eq!(rung("null"), "null");
        assert_eq!(rung("[DONE]"), "marker");
        assert_eq!(rung(": ping"), "comment");
        assert_eq!(rung("{\"a\":\n1}"), "document");
    }

    #[test]
    fn rungs_in_order() {
        assert_eq!(rung("{}\n{}\n\n[DONE]"), "2 of 3");
        assert_eq!(
            rung("{\"a\":\"x\ny\"}"),
            "joined(\"{\\\"a\\\":\\\"xy\\\"}\")"
        );
        assert_eq!(rung("{\"a\":\"x\n{\"b\":1}"), "tail {\"b\":1}");
        assert_eq!(
            rung("{\"a\":\"x data: {\"b\":\"data: y\"}"),
            "tail {\"b\":\"data: y\"}"
        );
        assert_eq!(rung("error: died"), "text");
        assert!(rung("{}{}").starts_with("broken"));
        assert!(rung("{\"a\":").starts_with("broken"));
    }

    #[test]
    fn strict_has_no_rungs() {
        assert!(matches!(climb("{}\n{}", None, false), Found::Broken(_)));
        assert!(matches!(
            climb("error: died", None, false),
            Found::Broken(_)
        ));
    }
}
