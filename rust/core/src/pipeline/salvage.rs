//! Classifies a payload as a marker, a document, or broken data, and salvages the usable part of broken data.
//!
//! Salvage is tried only if the data is not JSON and the policy is not strict. Salvage examines lines and documents,
//! but not the contents of documents. Salvage takes linear time, because each byte is read at most a fixed number of
//! times.

use crate::dialect::Read;
use crate::dialect::Reader;
use crate::json::Problem;
use crate::json::ScanError;
use crate::json::scan::validate;
use crate::sse::decode_utf8;

/// Maximum number of line endings that may be missing in one payload. If more line endings are missing, they were
/// removed by the program that uses streamweld, not by a gateway.
pub(crate) const MOST_JOINS: usize = 16;

/// Maximum number of `data:` positions to try when looking for a second document that directly follows a broken
/// document.
const TAILS: usize = 16;

pub(crate) const MARKER: &str = "[DONE]";

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Field names in an event stream.
const FIELDS: [&str; 4] = ["data", "event", "id", "retry"];

#[allow(clippy::large_enum_variant)] // created and consumed in one place
#[derive(Debug)]
pub(crate) enum Salvaged<'t> {
    Blank,
    Comment,
    Null,
    Marker,
    Document(Read<'t>),
    /// Lines, each of which is a document, a marker, or blank.
    Lines(WholeLines<'t>),
    /// One document whose lines had to be joined, because a line break splits a token.
    Joined(String),
    /// Complete documents after a broken document.
    Tail(Vec<&'t str>),
    /// Text that is not the beginning of a document.
    Text,
    /// A line ending is missing: a field name follows a document on the same line, at this position.
    LineEndsMissing(usize),
    Broken(ScanError),
}

/// The lines before the first broken line of a payload.
#[derive(Debug)]
pub(crate) struct WholeLines<'t> {
    /// The lines in order, without blank lines and comments.
    pub(crate) lines: Vec<&'t str>,
    /// Number of documents among the lines.
    pub(crate) documents: usize,
    /// Offset of the first broken line in the text. Only the text from this offset on is salvaged further.
    pub(crate) remainder: Option<usize>,
}

fn is_white(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}

/// Strips ASCII whitespace at both ends. Nearly every payload is an object without surrounding whitespace.
pub(crate) fn trim(text: &str) -> &str {
    if text.starts_with('{') && text.ends_with('}') {
        return text;
    }
    text.trim_matches(is_white)
}

pub(crate) fn trim_start(text: &str) -> &str {
    text.trim_start_matches(is_white)
}

/// Classifies a payload. `text`: the payload's trimmed text. `lenient`: whether salvage is allowed.
pub(crate) fn classify<'t>(
    data: &[u8],
    text: &'t str,
    reader: Reader,
    lenient: bool,
) -> Salvaged<'t> {
    match text {
        "" => return Salvaged::Blank,
        "null" => return Salvaged::Null,
        MARKER => return Salvaged::Marker,
        _ if text.starts_with(':') => return Salvaged::Comment,
        _ => {}
    }
    let fault = match reader.read(text) {
        Ok(document) => return Salvaged::Document(document),
        Err(fault) => fault,
    };
    if let Some(at) = joined_field(text, reader) {
        return Salvaged::LineEndsMissing(at);
    }
    let is_capped = match fault.problem {
        Problem::TooDeep => reader.max_depth.is_some(),
        Problem::TooMany => true,
        Problem::Syntax | Problem::NumberTooBig => false,
    };
    if !lenient || is_capped {
        return Salvaged::Broken(fault);
    }
    if let Some(lines) = whole_lines(text, reader) {
        return Salvaged::Lines(lines);
    }
    if text.contains('\n') {
        // Join bytes instead of text, because a line break may split a character.
        let bytes: Vec<u8> = data.iter().copied().filter(|byte| *byte != b'\n').collect();
        let joined = trim(&decode_utf8(&bytes).0).to_owned();
        if whole(&joined, reader).is_some() {
            return Salvaged::Joined(joined);
        }
    }
    let tails = tails(text, reader);
    if !tails.is_empty() {
        return Salvaged::Tail(tails);
    }
    if text.starts_with(['{', '[']) {
        Salvaged::Broken(fault)
    } else {
        Salvaged::Text
    }
}

/// Returns the lines before the first line that is not a complete document, the marker, null or a comment. Returns
/// `None` if no document precedes the first broken line.
fn whole_lines(text: &str, reader: Reader) -> Option<WholeLines<'_>> {
    if !text.contains('\n') {
        return None;
    }
    let (mut lines, mut documents, mut start) = (Vec::new(), 0, 0);
    for sent in text.split('\n') {
        let line = trim(sent);
        if !line.is_empty() && !line.starts_with(':') {
            if line != MARKER && line != "null" {
                if whole(line, reader).is_none() {
                    return (documents > 0).then_some(WholeLines {
                        lines,
                        documents,
                        remainder: Some(start),
                    });
                }
                documents += 1;
            }
            lines.push(line);
        }
        start += sent.len() + 1;
    }
    Some(WholeLines {
        lines,
        documents,
        remainder: None,
    })
}

/// Returns the usable complete documents after a broken document: on later lines, and after a `data:` inside a line.
fn tails(text: &str, reader: Reader) -> Vec<&str> {
    let mut out = Vec::new();
    let mut broken = false;
    for line in text.split('\n').map(trim) {
        let mut found = whole(line, reader).map(|document| (line, document));
        if found.is_none() {
            found = glued(line, reader);
            broken = true;
        }
        out.extend(
            found
                .filter(|(_, document)| broken && document.has_usable_data())
                .map(|(line, _)| line),
        );
    }
    out
}

/// Searches a line backwards for a `data:` that is followed by a complete document, and returns that document.
fn glued(line: &str, reader: Reader) -> Option<(&str, Read<'_>)> {
    line.rmatch_indices("data:")
        .take(TAILS)
        .filter(|(at, _)| *at > 0)
        .find_map(|(at, name)| {
            let tail = line.get(at + name.len()..)?.trim_start_matches(' ');
            Some((tail, whole(tail, reader)?))
        })
}

/// Parses the text as a document if it is a complete object or array.
fn whole(text: &str, reader: Reader) -> Option<Read<'_>> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    reader.read(text).ok()
}

/// If `text` begins with a complete document or the marker, and a field name follows directly, returns the position of
/// that field name.
///
/// No dialect sends a field name directly after a document. A field name there means that the line endings were removed
/// before the input reached streamweld.
pub(crate) fn joined_field(text: &str, reader: Reader) -> Option<usize> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    // The values inside the document are not used, so no limit on their number applies.
    let at = match text.strip_prefix(MARKER) {
        Some(remainder) => text.len() - remainder.trim_start_matches([' ', '\t']).len(),
        None => validate(text, reader.max_depth).err()?.pos,
    };
    let (document, remainder) = text.split_at_checked(at)?;
    let line = remainder.split('\n').next().unwrap_or_default();
    let begins = FIELDS.iter().any(|field| {
        line.strip_prefix(field)
            .is_some_and(|value| value.starts_with(':'))
    });
    let begins = begins || (line.starts_with(':') && line.contains("data:"));
    let on_its_line = document.trim_end_matches([' ', '\t']).ends_with(['}', ']']);
    let is_whole = || trim(document) == MARKER || validate(document, reader.max_depth).is_ok();
    (begins && on_its_line && is_whole()).then_some(at)
}

/// A document, and the data that follows it because a line ending is missing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JoinedLine<'t> {
    pub(crate) document: &'t str,
    /// The name in an `event` field after the document.
    pub(crate) event: Option<&'t str>,
    /// Offset of the data after the document: the value of a data field on the same line, or the next line.
    pub(crate) remainder: usize,
}

/// Splits a text in which an SSE field name directly follows a JSON document, at the position that `joined_field`
/// returned.
pub(crate) fn split_joined_line(text: &str, at: usize) -> JoinedLine<'_> {
    let (document, fields) = text.split_at_checked(at).unwrap_or((text, ""));
    let line = fields.split('\n').next().unwrap_or_default();
    let data = line.find("data:");
    let own = line.get(..data.unwrap_or(line.len())).unwrap_or(line);
    JoinedLine {
        document: trim(document),
        event: own.strip_prefix("event:").map(trim),
        remainder: at + data.map_or(line.len(), |data| data + "data:".len()),
    }
}

/// Returns true if a body without any payload contains a data line without a line ending before or after it.
///
/// `is_open`: true if the body has no line ending after the last line of `head`.
pub(crate) fn has_joined_lines(head: &[u8], is_open: bool, reader: Reader) -> bool {
    let head = decode_utf8(head.strip_prefix(BOM).unwrap_or(head)).0;
    let mut lines = head.split(['\n', '\r']).peekable();
    while let Some(line) = lines.next() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let found = match name {
            "data" => joined_field(trim(value), reader).is_some(),
            // A comment with a line ending may contain anything.
            "" if lines.peek().is_some() || !is_open => false,
            _ if name.is_empty() || FIELDS.contains(&name) => value
                .split("data:")
                .skip(1)
                .any(|data| data.trim_start_matches(' ').starts_with(['{', '['])),
            _ => false,
        };
        if found {
            return true;
        }
    }
    false
}

/// Returns true if the beginning of a body contains a line that cannot occur in an event stream.
pub(crate) fn is_foreign(head: &[u8]) -> bool {
    let head = head.strip_prefix(BOM).unwrap_or(head);
    let mut lines = head.split(|byte| matches!(byte, b'\n' | b'\r')).peekable();
    while let Some(line) = lines.next() {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        let blank = line
            .iter()
            .all(|byte| byte.is_ascii_whitespace() || *byte == 0x0b);
        let known = FIELDS.iter().any(|field| field.as_bytes() == name);
        if blank || line.first() == Some(&b':') || known {
            continue;
        }
        // The input may end inside the field name of the last line.
        let cut = lines.peek().is_none() && name.len() == line.len();
        if !(cut
            && FIELDS
                .iter()
                .any(|field| field.as_bytes().starts_with(name)))
        {
            return true;
        }
    }
    false
}

/// Converts an offset in a payload's trimmed text to an offset in its bytes. The two offsets differ because invalid
/// bytes are replaced in the text.
pub fn position(data: &[u8], pos: usize) -> usize {
    let (text, replaced) = decode_utf8(data);
    let pos = text.len() - trim_start(&text).len() + pos;
    if !replaced {
        return pos;
    }
    let (mut raw, mut shown) = (0, 0);
    for chunk in data.utf8_chunks() {
        let plain = chunk.valid().len();
        if pos <= shown + plain {
            return raw + (pos - shown);
        }
        (raw, shown) = (raw + plain, shown + plain);
        if !chunk.invalid().is_empty() {
            raw += chunk.invalid().len();
            shown += char::REPLACEMENT_CHARACTER.len_utf8();
        }
    }
    raw
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;

    const CHAT: Reader = Reader {
        dialect: Some(Dialect::Chat),
        max_depth: None,
        max_values: None,
    };

    fn salvage_step(text: &str) -> String {
        match classify(text.as_bytes(), text, CHAT, true) {
            Salvaged::Document(_) => "document".to_owned(),
            Salvaged::Lines(WholeLines {
                lines,
                documents,
                remainder,
            }) => format!("{documents} of {}, remainder {remainder:?}", lines.len()),
            Salvaged::Tail(tails) => format!("tail {}", tails.join(" ")),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    #[test]
    fn whole_payloads_need_no_salvage() {
        assert_eq!(salvage_step(""), "blank");
        assert_eq!(salvage_step("null"), "null");
        assert_eq!(salvage_step("[DONE]"), "marker");
        assert_eq!(salvage_step(": ping"), "comment");
        assert_eq!(salvage_step("{\"a\":\n1}"), "document");
    }

    #[test]
    fn salvage_steps_in_order() {
        assert_eq!(salvage_step("{}\n{}\n\n[DONE]"), "2 of 3, remainder None");
        assert_eq!(
            salvage_step("[DONE]\n: x\n[DONE]"),
            "0 of 2, remainder None"
        );
        assert_eq!(
            salvage_step("{}\n[DONE]\n{\"a"),
            "1 of 2, remainder Some(10)"
        );
        assert_eq!(
            salvage_step("{\"a\":\"x\ny\"}"),
            "joined(\"{\\\"a\\\":\\\"xy\\\"}\")"
        );
        assert_eq!(
            salvage_step("{\"a\":\"x\n{\"usage\":1}"),
            "tail {\"usage\":1}"
        );
        assert_eq!(
            salvage_step("{\"a\":\"x data: {\"error\":\"data: y\"}"),
            "tail {\"error\":\"data: y\"}"
        );
        assert_eq!(salvage_step("error: died"), "text");
        assert!(salvage_step("{}{}").starts_with("broken"));
        assert!(salvage_step("{\"a\":").starts_with("broken"));
    }

    #[test]
    fn strict_does_not_salvage() {
        assert!(matches!(
            classify(b"", "{}\n{}", CHAT, false),
            Salvaged::Broken(_)
        ));
        assert!(matches!(
            classify(b"", "error: died", CHAT, false),
            Salvaged::Broken(_)
        ));
    }
}
