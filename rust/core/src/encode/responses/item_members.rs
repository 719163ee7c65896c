//! Stores the members of the source's items that the encoder does not write itself.

use crate::dialect::responses::spec_tables::FACTS;
use crate::dialect::responses::spec_tables::TextKind;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::extra_members::ExtraMembers;
use crate::encode::common::extra_members::size;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Object;
use crate::json::members::is_string;
use crate::json::members::items;
use crate::json::members::string;
use crate::model::delta::Channel;
use crate::model::delta::ItemKind;
use crate::model::small_map::Map;
use std::collections::HashMap;
use std::collections::HashSet;
use std::collections::VecDeque;

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
    /// The type and the unknown members of each part that the encoder writes. The type is the one that the encoder
    /// writes.
    written: Vec<(&'static str, ExtraMembers)>,
    /// The parts of other types.
    pub(crate) others: VecDeque<ListedPart>,
}

/// A content part in the source's item that the encoder does not write from events.
#[derive(Clone, Debug)]
pub(crate) struct ListedPart {
    /// The number of parts before this part that the encoder writes from events.
    pub(crate) before: usize,
    /// The position in the source's list.
    pub(crate) position: i64,
    pub(crate) json: String,
}

/// A content part that is written as it was sent.
#[derive(Debug)]
pub(crate) struct OtherPart {
    pub(crate) sub: i64,
    /// The part as it was last sent.
    pub(crate) json: String,
    pub(crate) is_done: bool,
}

/// The content parts of one item that are written as they were sent.
#[derive(Debug, Default)]
pub(crate) struct OtherParts {
    pub(crate) all: Vec<OtherPart>,
    /// Positions in `all`, by the index in the source.
    by_index: Map<i64, usize>,
    /// Parts of the source's item that are not written yet.
    pub(crate) waiting: VecDeque<ListedPart>,
    /// Number of parts that have not ended.
    pub(crate) open: usize,
}

impl OtherParts {
    /// Returns the position of the part with this index in the source. A part that has ended does not open again. If the
    /// source sent no index, returns the position of the last part, unless that part has ended.
    pub(crate) fn find(&self, index: Option<i64>, closes: bool) -> Option<usize> {
        let position = match index {
            Some(index) => self.by_index.get(&index).copied()?,
            None => self.all.len().checked_sub(1)?,
        };
        let part = self.all.get(position)?;
        (!part.is_done || (closes && index.is_some())).then_some(position)
    }

    /// Adds an open part, and returns its position.
    pub(crate) fn add(&mut self, index: Option<i64>, sub: i64, json: String) -> usize {
        let position = self.all.len();
        if let Some(index) = index {
            self.by_index.insert(index, position);
        }
        self.all.push(OtherPart {
            sub,
            json,
            is_done: false,
        });
        self.open += 1;
        position
    }

    /// Ends a part. Returns false if the part had already ended.
    pub(crate) fn end(&mut self, position: usize) -> bool {
        let part = self.all.get_mut(position).filter(|part| !part.is_done);
        let ends = part.map(|part| part.is_done = true).is_some();
        self.open -= usize::from(ends);
        ends
    }

    /// Stores the parts that the source's item lists. A listed part is the known part with the same position in the
    /// source. Otherwise, it is the first known part that the list does not contain, because sources may number the
    /// parts differently. Parts that are not known yet wait until they are written.
    pub(crate) fn list(&mut self, listed: VecDeque<ListedPart>) {
        let mut found = HashSet::new();
        let mut others = Vec::new();
        for part in listed {
            let position = self.by_index.get(&part.position).copied();
            match position.filter(|position| found.insert(*position)) {
                Some(position) => self.update(position, part.json),
                None => others.push(part),
            }
        }
        let mut rest = (0..self.all.len()).filter(|position| !found.contains(position));
        let others: Vec<_> = others.into_iter().map(|part| (rest.next(), part)).collect();
        self.waiting.clear();
        for (position, part) in others {
            match position {
                Some(position) => self.update(position, part.json),
                None => self.waiting.push_back(part),
            }
        }
    }

    pub(crate) fn update(&mut self, position: usize, json: String) {
        if let Some(part) = self.all.get_mut(position) {
            part.json = json;
        }
    }
}

/// The members of an item that the encoder does not write itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct ItemMembers {
    pub(crate) item: ExtraMembers,
    pub(crate) content: SentParts,
    pub(crate) summary: SentParts,
    /// True if the item has the status `incomplete`.
    pub(crate) is_incomplete: bool,
    /// True if the item is a message with an empty content list.
    pub(crate) has_no_content: bool,
}

impl ItemMembers {
    pub(crate) fn is_empty(&self) -> bool {
        let has_parts = !(self.content.is_empty() && self.summary.is_empty());
        let has_facts = self.is_incomplete || self.has_no_content;
        self.item.is_empty() && !has_parts && !has_facts
    }

    /// Returns the members of an item of type `kind`. Members beyond the limit are dropped, and a loss is recorded.
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
            content: SentParts::of(&whole, "content", kind == "reasoning"),
            summary: SentParts::of(&whole, "summary", true),
            is_incomplete: is_string(whole.get("status"), "incomplete"),
            has_no_content: kind == "message" && whole.get("content").is_some_and(is_empty_list),
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
            return ItemMembers {
                is_incomplete: members.is_incomplete,
                has_no_content: members.has_no_content,
                ..ItemMembers::default()
            };
        }
        members
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.item.iter().any(|(known, _)| known == name)
    }
}

fn is_empty_list(raw: Raw<'_>) -> bool {
    raw.kind == Kind::Array && items(raw).is_empty()
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
    fn is_empty(&self) -> bool {
        self.written.is_empty() && self.others.is_empty()
    }

    /// Returns the parts in a list of an item. Returns nothing if the parts have no unknown members, and all of them
    /// have a type that the encoder writes.
    fn of(item: &Object<'_>, name: &str, reasons: bool) -> SentParts {
        let list = item.get(name).map(|raw| match raw.kind {
            Kind::Array => items(raw),
            _ => vec![raw], // a text
        });
        let mut out = SentParts::default();
        let mut has_members = false;
        let default = match name {
            "summary" => TextKind::SUMMARY,
            _ if reasons => TextKind::RAW,
            _ => TextKind::TEXT,
        };
        for (raw, position) in list.unwrap_or_default().into_iter().zip(0..) {
            let part = Object::of(raw);
            let kind = part.as_ref().and_then(|part| part.present("type"));
            let kind = kind.filter(|_| name == "content");
            let known = match kind {
                None => Some((default, "text")),
                Some(kind) => string(kind).and_then(|kind| FACTS.content.get(&*kind).copied()),
            };
            let Some((text_kind, text)) = known else {
                if kind.and_then(string).is_some() {
                    out.others.push_back(ListedPart {
                        before: out.written.len(),
                        position,
                        json: raw.text.to_owned(),
                    });
                }
                continue;
            };
            let text = part.as_ref().map_or(Some(raw), |part| part.get(text));
            if text.and_then(string).is_none_or(|text| text.is_empty()) {
                continue; // the encoder writes no part without text
            }
            let members = part.map(|part| others(&part, &OF_PART));
            let members = members.unwrap_or_default();
            has_members |= !members.is_empty();
            // All text inside a reasoning item is reasoning.
            let is_inner = reasons && text_kind.item == ItemKind::Message;
            let text_kind = if is_inner { default } else { text_kind };
            out.written.push((type_of(text_kind), members));
        }
        if !has_members {
            out.written.clear();
        }
        out
    }

    /// Returns the unknown members of a part that the encoder writes. `place` is the number of written parts before it.
    pub(crate) fn members(&self, place: usize, kind: &str) -> &[(String, String)] {
        match self.written.get(place) {
            Some((known, members)) if *known == kind => members,
            _ => &[],
        }
    }

    fn size(&self) -> usize {
        let written = self.written.iter().map(|(_, members)| size(members));
        let others = self.others.iter().map(|part| part.json.len());
        written.chain(others).sum()
    }
}

/// Returns the type with which the encoder writes a part.
fn type_of(text_kind: TextKind) -> &'static str {
    match text_kind.channel {
        Channel::Text => "output_text",
        Channel::Refusal => "refusal",
        Channel::Reasoning if text_kind == TextKind::SUMMARY => "summary_text",
        Channel::Reasoning => "reasoning_text",
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
