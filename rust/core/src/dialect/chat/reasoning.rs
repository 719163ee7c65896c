//! The reasoning of a delta: the first of its fields that says something, and the details beside it.
//!
//! Gateways send one text in two fields, or the details cumulatively; each text is used once.

use std::borrow::Cow;

use super::content::concat;
use super::error::{is_string, string, text};
use super::notes::{Notes, Pointer};
use super::read::{Delta, Member, REASONING_FIELDS, find, items, members, present};
use crate::json::{Key, Kind, Raw, Text};

/// A text that shares so many characters with what came before repeats it; shorter ones are an accident.
const PREFIX_CHARS: usize = 4;

/// What a delta says.
#[derive(Debug, Default)]
pub(crate) struct Thought<'a> {
    pub(crate) text: Option<Text<'a>>,
    /// The text came out of this plain field.
    pub(crate) field: Option<Raw<'a>>,
    /// A text came twice, and was used once.
    pub(crate) repeated: bool,
    /// A second field with another text.
    pub(crate) extra: Vec<Member<'a>>,
    pub(crate) details: Option<Details<'a>>,
}

/// `reasoning_details`: entries with text, signatures, encrypted content.
#[derive(Debug)]
pub(crate) struct Details<'a> {
    pub(crate) text: Text<'a>,
    pub(crate) signature: Option<Cow<'a, str>>,
    pub(crate) encrypted: Option<Cow<'a, str>>,
    pub(crate) raw: Raw<'a>,
}

pub(crate) fn read<'a>(delta: &Delta<'a>, notes: &mut Notes<'a>, at: Pointer<'_>) -> Thought<'a> {
    let mut out = Thought::default();
    for (slot, name) in delta.reasoning.iter().zip(REASONING_FIELDS) {
        let Some(raw) = present(*slot) else { continue };
        match text(raw) {
            None => notes.shape(raw, at.member(name)),
            Some(text) if text.is_empty() => {}
            Some(text) if out.text.is_some() => {
                if out.text.as_ref() == Some(&text) {
                    out.repeated = true;
                } else {
                    out.extra.push(Member {
                        key: Key {
                            raw: name,
                            escaped: false,
                        },
                        raw,
                    });
                }
            }
            Some(text) => {
                out.text = Some(text);
                out.field = Some(raw);
            }
        }
    }
    if let Some(raw) = present(delta.reasoning_details) {
        match raw.kind {
            Kind::Array => out.details = details(raw),
            _ => notes.shape(raw, at.member("reasoning_details")),
        }
    }
    out
}

fn details<'a>(raw: Raw<'a>) -> Option<Details<'a>> {
    let entries = items(raw);
    if entries.is_empty() {
        return None;
    }
    let mut texts = Vec::new();
    let mut out = Details {
        text: Text::default(),
        signature: None,
        encrypted: None,
        raw,
    };
    for entry in entries {
        let entry = members(entry);
        let member = |name: &str| present(find(&entry, name));
        texts.extend(
            ["text", "summary"]
                .into_iter()
                .filter_map(|name| text(member(name)?)),
        );
        let word = |name: &str| {
            member(name)
                .and_then(string)
                .filter(|word| !word.is_empty())
        };
        out.signature = word("signature").or(out.signature);
        if is_string(find(&entry, "type"), "reasoning.encrypted") {
            out.encrypted = word("data").or(out.encrypted);
        }
    }
    texts.retain(|text| !text.is_empty());
    out.text = concat(texts);
    Some(out)
}

/// The texts of `reasoning_details` so far, where they are the only source: says what is new in the next one.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    seen: String,
}

impl Progress {
    /// What the text adds; true where it repeated what was there.
    pub(crate) fn next<'t>(&mut self, text: &'t str) -> (&'t str, bool) {
        let long = self.seen.chars().nth(PREFIX_CHARS - 1).is_some();
        match text.strip_prefix(self.seen.as_str()) {
            Some(new) if long => {
                self.seen.push_str(new);
                (new, true)
            }
            _ => {
                self.seen.push_str(text);
                (text, false)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cumulative_and_incremental_details() {
        let mut progress = Progress::default();
        assert_eq!(progress.next("The user"), ("The user", false));
        assert_eq!(progress.next("The user asks"), (" asks", true));
        assert_eq!(progress.next(" why"), (" why", false));
        let mut progress = Progress::default();
        assert_eq!(progress.next("a"), ("a", false));
        assert_eq!(progress.next("and"), ("and", false));
    }
}
