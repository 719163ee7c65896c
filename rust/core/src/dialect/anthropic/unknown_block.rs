//! Emits blocks that the client must send back unchanged in a later turn. The deltas of a `compaction` block are
//! collected until the block is closed.

use crate::dialect::anthropic::fields::FACTS;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::json::members::Member;
use std::collections::HashMap;
use std::fmt::Write as _;

/// The members that have been received, in order of arrival.
#[derive(Debug)]
pub(crate) struct UnknownBlock {
    event: Option<String>,
    members: Vec<Option<(String, String)>>,
    positions: HashMap<String, usize>,
}

impl UnknownBlock {
    pub(crate) fn new(members: &[Member<'_>], event: Option<&str>) -> UnknownBlock {
        let mut kept = UnknownBlock {
            event: event.map(str::to_owned),
            members: Vec::with_capacity(members.len()),
            positions: HashMap::new(),
        };
        for member in members {
            // If a key of the block is duplicated, the last value is used, at the position of that value.
            let key = key_text(member.key.raw);
            if let Some(before) = kept.positions.get(&key) {
                if let Some(before) = kept.members.get_mut(*before) {
                    *before = None;
                }
            }
            kept.put(key, member.raw.text);
        }
        kept
    }

    /// Sets members of the block to the values in a delta. New members are appended.
    pub(crate) fn update(&mut self, changed_fields: &[Member<'_>]) {
        for member in changed_fields {
            let key = key_text(member.key.raw);
            let known = self.positions.get(&key);
            match known.and_then(|at| self.members.get_mut(*at)) {
                Some(Some((_, text))) => {
                    text.clear();
                    text.push_str(member.raw.text);
                }
                _ => self.put(key, member.raw.text),
            }
        }
    }

    fn put(&mut self, key: String, text: &str) {
        self.positions.insert(key.clone(), self.members.len());
        self.members.push(Some((key, text.to_owned())));
    }

    /// Replaces `tool_use_id`, the id of the call to which a result belongs.
    pub(crate) fn rename(&mut self, call_id: &str) {
        let key = key_text("tool_use_id");
        let known = self.positions.get(&key);
        if let Some(Some((_, text))) = known.and_then(|at| self.members.get_mut(*at)) {
            *text = key_text(call_id);
        }
    }

    /// Emits the block, because it is complete.
    pub(crate) fn emit_compaction(&self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        keep(wire, "compaction", self.event.as_deref(), &self.text())
    }

    /// Returns the block as JSON.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        for (key, text) in self.members.iter().flatten() {
            out.push(if out.is_empty() { '{' } else { ',' });
            out.push_str(key);
            out.push(':');
            out.push_str(text);
        }
        if out.is_empty() {
            out.push('{');
        }
        out.push('}');
        out
    }
}

/// Emits a block as content that the client must send back unchanged in a later turn.
pub(crate) fn keep(
    wire: &mut DecodeContext<'_, '_>,
    kind: &str,
    event: Option<&str>,
    raw: &str,
) -> ParseResult {
    match FACTS.provider_item(kind) {
        Some(kind) => wire.assembler.provider_item(wire.out, 0, kind, raw, None),
        None => {
            let raw = raw.as_bytes();
            wire.assembler.kept_unknown(wire.out, 0, event, raw, None)
        }
    }
}

/// Returns a key as an ASCII JSON string, so that all spellings of the key have the same form.
fn key_text(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len() + 2);
    out.push('"');
    let mut rest = raw.chars();
    while let Some(next) = rest.next() {
        if next != '\\' {
            put(&mut out, next);
            continue;
        }
        match rest.next() {
            Some('u') => {
                let digits: String = rest.by_ref().take(4).collect();
                let unit = u16::from_str_radix(&digits, 16).unwrap_or(0xFFFD);
                match char::from_u32(u32::from(unit)) {
                    Some(plain) => put(&mut out, plain),
                    // The value ends with half of a surrogate pair. The other half may follow in the next delta.
                    None => escape(&mut out, unit),
                }
            }
            Some('n') => put(&mut out, '\n'),
            Some('r') => put(&mut out, '\r'),
            Some('t') => put(&mut out, '\t'),
            Some('b') => put(&mut out, '\u{8}'),
            Some('f') => put(&mut out, '\u{c}'),
            Some(plain) => put(&mut out, plain),
            None => {}
        }
    }
    out.push('"');
    out
}

fn put(out: &mut String, c: char) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        ' '..='~' => out.push(c),
        _ => {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                escape(out, *unit);
            }
        }
    }
}

fn escape(out: &mut String, unit: u16) {
    // Writing to a String cannot fail.
    _ = write!(out, "\\u{unit:04x}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_in_one_way() {
        assert_eq!(key_text("content"), "\"content\"");
        assert_eq!(
            key_text(r#"a\"\\\/\u00e9é\u0041\n\u007f😀\ud83d\ude00\ud800"#),
            r#""a\"\\/\u00e9\u00e9A\n\u007f\ud83d\ude00\ud83d\ude00\ud800""#
        );
    }
}
