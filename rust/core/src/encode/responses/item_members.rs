//! Stores the members of the source's items that the encoder does not write itself.

use crate::dialect::responses::spec_tables::FACTS;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::extra_members::ExtraMembers;
use crate::encode::common::extra_members::size;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Object;
use crate::json::members::items;
use crate::json::members::string;
use std::collections::HashMap;

/// Members of items and of content parts that the encoder writes itself. `function` contains a call in the form of
/// Chat Completions, which is written as name and arguments.
const OF_MESSAGE: [&str; 5] = ["type", "id", "status", "role", "content"];
const OF_REASONING: [&str; 4] = ["type", "id", "summary", "content"];
const OF_CALL: [&str; 7] = [
    "type",
    "id",
    "call_id",
    "name",
    "arguments",
    "status",
    "function",
];
const OF_CUSTOM_CALL: [&str; 6] = ["type", "id", "call_id", "name", "input", "status"];
const OF_PART: [&str; 5] = ["type", "text", "refusal", "annotations", "logprobs"];

/// The content parts or summary parts of the source's item, without their text.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentParts {
    /// The type and the unknown members of each part that the encoder writes.
    written: Vec<(String, ExtraMembers)>,
    /// The JSON of the parts of other types, each with the number of written parts before it.
    pub(crate) others: Vec<(usize, String)>,
}

/// The members of an item that the encoder does not write itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct ItemMembers {
    pub(crate) item: ExtraMembers,
    pub(crate) content: SentParts,
    pub(crate) summary: SentParts,
}

impl ItemMembers {
    /// Returns the members of an item of type `kind`. If there is no room to store them, records a loss.
    pub(crate) fn of(context: &mut EncodeContext, kind: &str, item: &str) -> ItemMembers {
        let whole = Object::of(Raw {
            text: item,
            kind: Kind::Object,
        });
        let Some(whole) = whole else {
            return ItemMembers::default();
        };
        let known: &[&str] = match kind {
            "message" => &OF_MESSAGE,
            "reasoning" => &OF_REASONING,
            "custom_tool_call" => &OF_CUSTOM_CALL,
            _ => &OF_CALL,
        };
        let mut members = ItemMembers {
            item: others(&whole, known),
            content: SentParts::of(&whole, "content"),
            summary: SentParts::of(&whole, "summary"),
        };
        if matches!(kind, "function_call" | "custom_tool_call") {
            drop_other_arguments(&mut members.item, &whole, kind);
        }
        if kind == "reasoning" {
            // Events contain the encrypted content, unless it is empty.
            let is_empty = |text: &str| !text.starts_with('"') || text == "\"\"";
            let is_kept = |name: &str, text: &str| name != "encrypted_content" || is_empty(text);
            members.item.retain(|(name, text)| is_kept(name, text));
        }
        let sizes = members.content.size() + members.summary.size();
        if !context.passed.keeps(size(&members.item) + sizes) {
            context.losses.note("metadata");
            return ItemMembers::default();
        }
        members
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.item.iter().any(|(known, _)| known == name)
    }
}

/// Removes members that contain the arguments of a call whose own member contains none, because the encoder writes them
/// into that member.
fn drop_other_arguments(members: &mut ExtraMembers, call: &Object<'_>, kind: &str) {
    let own = if kind == "function_call" {
        "arguments"
    } else {
        "input"
    };
    if call
        .get(own)
        .and_then(string)
        .is_none_or(|text| text.is_empty())
    {
        members.retain(|(name, _)| !FACTS.other_arguments.contains(&name.as_str()));
    }
}

impl SentParts {
    /// Returns the parts in a list of an item. Returns nothing if the parts have no unknown members, and all of them
    /// have a type that the encoder writes.
    fn of(item: &Object<'_>, name: &str) -> SentParts {
        let list = item.get(name).filter(|raw| raw.kind == Kind::Array);
        let mut out = SentParts::default();
        let mut has_members = false;
        for raw in list.map(items).unwrap_or_default() {
            let Some(part) = Object::of(raw) else {
                continue;
            };
            let kind = part.string("type").unwrap_or_default();
            let text = match kind.as_ref() {
                "output_text" | "summary_text" | "reasoning_text" => "text",
                "refusal" => "refusal",
                _ => {
                    out.others.push((out.written.len(), raw.text.to_owned()));
                    continue;
                }
            };
            let text = part.get(text).and_then(string).unwrap_or_default();
            if text.is_empty() {
                continue; // the encoder writes no part without text
            }
            let members = others(&part, &OF_PART);
            has_members |= !members.is_empty();
            out.written.push((kind.into_owned(), members));
        }
        if !has_members {
            out.written.clear();
        }
        out
    }

    /// Returns the unknown members of a part that the encoder writes. `place` is the number of written parts before it.
    pub(crate) fn members(&self, place: usize, kind: &str) -> &[(String, String)] {
        match self.written.get(place) {
            Some((known, members)) if known == kind => members,
            _ => &[],
        }
    }

    fn size(&self) -> usize {
        let written = self.written.iter().map(|(_, members)| size(members));
        let others = self.others.iter().map(|(_, json)| json.len());
        written.chain(others).sum()
    }
}

/// Returns the members that are not in `known`. The last value of a duplicate key is used.
fn others(object: &Object<'_>, known: &[&str]) -> ExtraMembers {
    let mut places = HashMap::new();
    let mut out = ExtraMembers::new();
    for member in &object.members {
        let name = member.key.name();
        if known.contains(&name.as_ref()) {
            continue;
        }
        let text = member.raw.text.to_owned();
        match places.get(&name).and_then(|place| out.get_mut(*place)) {
            Some((_, known)) => *known = text,
            None => {
                out.push((name.clone().into_owned(), text));
                places.insert(name, places.len());
            }
        }
    }
    out
}
