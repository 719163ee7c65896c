//! The known members of a Messages stream, and how to read ids, names, and arguments.
//!
//! The tables are in `_spec/dialects.json`.

use crate::dialect::anomalies::Anomalies;
use crate::dialect::anomalies::Pointer;
use crate::dialect::client_members::ClientMembers;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::think_tags::is_white;
use crate::dialect::usage_counts::Counts;
use crate::json::Kind;
use crate::json::Text;
use crate::json::extra_fields::ExtraFields;
use crate::json::members::Member;
use crate::json::members::Object;
use crate::json::members::find;
use crate::json::members::first_item;
use crate::json::members::members;
use crate::json::members::present;
use crate::json::members::string;
use crate::json::members::text;
use crate::model::spec::fact;
use crate::model::spec::words;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::LazyLock;

const DIALECT: &str = "anthropic";

/// Members of a block or a delta that may contain the arguments of a call. Of these members, clients read only
/// `partial_json`, and only in a delta.
pub(crate) const CALL_TEXTS: [&str; 7] = [
    "partial_json",
    "input",
    "arguments",
    "args",
    "parameters",
    "text",
    "json",
];

type Fields = Vec<&'static str>;

/// The tables of the Messages dialect, loaded from `_spec/dialects.json`.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) events: Fields,
    read_names: Fields,
    pub(crate) event_fields: Fields,
    pub(crate) message_fields: Fields,
    pub(crate) message_delta_fields: Fields,
    blocks: Vec<(&'static str, Fields)>,
    deltas: Vec<(&'static str, Fields)>,
    delta_names: Vec<(&'static str, &'static str)>,
    untyped_deltas: Vec<(&'static str, &'static str)>,
    untyped_blocks: Vec<(&'static str, &'static str)>,
    pub(crate) clients: ClientMembers,
    pub(crate) call_delta_fields: Fields,
    provider_items: Fields,
    absent_ids: Fields,
    pub(crate) counts: Counts,
}

pub(crate) static FACTS: LazyLock<Facts> = LazyLock::new(|| {
    let list = |key| words(fact(DIALECT, key));
    Facts {
        events: list("events"),
        read_names: list("read_names"),
        event_fields: list("event_fields"),
        message_fields: list("message_fields"),
        message_delta_fields: list("message_delta_fields"),
        blocks: kinds("blocks"),
        deltas: kinds("deltas"),
        delta_names: pairs("delta_names"),
        untyped_deltas: pairs("untyped_deltas"),
        untyped_blocks: pairs("untyped_blocks"),
        clients: ClientMembers::of(DIALECT),
        call_delta_fields: list("call_delta_fields"),
        provider_items: list("provider_items"),
        absent_ids: list("absent_ids"),
        counts: Counts::of(DIALECT),
    }
});

fn kinds(key: &str) -> Vec<(&'static str, Fields)> {
    let table = fact(DIALECT, key).and_then(Value::as_object);
    let rows = table.into_iter().flatten();
    rows.map(|(kind, fields)| (kind.as_str(), words(Some(fields))))
        .collect()
}

fn pairs(key: &str) -> Vec<(&'static str, &'static str)> {
    let table = fact(DIALECT, key).and_then(Value::as_object);
    let rows = table.into_iter().flatten();
    rows.filter_map(|(name, word)| Some((name.as_str(), word.as_str()?)))
        .collect()
}

impl Facts {
    /// Returns the known members of a type of block, or an empty list if the type has no part.
    pub(crate) fn block(&self, kind: &str) -> &[&'static str] {
        row(&self.blocks, kind).unwrap_or_default()
    }

    /// Returns the known members of a type of block, or `None` if the type has no part.
    pub(crate) fn modelled_block(&self, kind: &str) -> Option<&[&'static str]> {
        row(&self.blocks, kind)
    }

    /// Returns the name of a type of block that only the provider reads, or `None` for any other type.
    pub(crate) fn provider_item(&self, kind: &str) -> Option<&'static str> {
        let mut names = self.provider_items.iter();
        names.find(|name| **name == kind).copied()
    }

    pub(crate) fn result(&self) -> &[&'static str] {
        self.block("*_tool_result")
    }

    /// Returns the known members of a type of delta, or `None` if the type is unknown.
    #[inline]
    pub(crate) fn delta(&self, kind: &str) -> Option<&[&'static str]> {
        row(&self.deltas, kind)
    }

    /// Returns the type of a delta, in its standard form. A gateway-specific type is replaced, and a missing type is
    /// derived from the members. The type of a delta with a call may be `tool_use`, `server_tool_use`, or
    /// `mcp_tool_use`. An unknown type is returned unchanged.
    #[inline]
    pub(crate) fn delta_type<'a>(&self, delta: &[Member<'a>]) -> Cow<'a, str> {
        let kind = type_of(delta);
        if self.delta(&kind).is_some() {
            return kind;
        }
        let known = match kind.is_empty() {
            true => self
                .untyped_deltas
                .iter()
                .find(|(member, _)| present(find(delta, member)).is_some()),
            false => self.delta_names.iter().find(|(name, _)| *name == kind),
        };
        known.map_or(kind, |(_, name)| Cow::Borrowed(*name))
    }

    /// Returns the type of a block. If the type is missing, derives it from the members. If the type cannot be derived,
    /// returns an empty string.
    pub(crate) fn block_type<'a>(&self, block: &[Member<'a>]) -> Cow<'a, str> {
        let kind = type_of(block);
        if !kind.is_empty() {
            return kind;
        }
        let has = |member: &str| present(find(block, member)).is_some();
        let known = self.untyped_blocks.iter().find(|(member, _)| has(member));
        known.map_or(kind, |(_, name)| Cow::Borrowed(*name))
    }

    pub(crate) fn is_event(&self, kind: &str) -> bool {
        self.events.contains(&kind)
    }

    /// Returns the event name that official clients require for an event of this type, or `None` if the present name is
    /// suitable. Clients read any event whose name is in `read_names`.
    #[inline]
    pub(crate) fn needs_name(&self, kind: &str, name: Option<&str>) -> Option<&'static str> {
        let read = |wanted: &str| self.read_names.iter().find(|name| **name == wanted);
        if name == Some(kind) || name.is_some_and(|name| read(name).is_some()) {
            return None;
        }
        read(kind).copied()
    }
}

fn row<'t>(table: &'t [(&'static str, Fields)], kind: &str) -> Option<&'t [&'static str]> {
    let row = table.iter().find(|(name, _)| *name == kind);
    row.map(|(_, fields)| fields.as_slice())
}

/// Marks the event for repair if an object of the type `name` lacks members that clients need.
#[inline]
pub(crate) fn check(wire: &mut DecodeContext<'_, '_>, name: &str, members: &[Member<'_>]) {
    if wire.out.wants_wire_facts() && !FACTS.clients.suit(name, members) {
        wire.out.leave_out("member_type");
    }
}

/// Returns the members that are not listed in `modelled`, as metadata.
#[inline]
pub(crate) fn extra_fields<'a>(members: &[Member<'a>], modelled: &[&str]) -> ExtraFields<'a> {
    let known = |member: &Member<'_>| modelled.iter().any(|name| member.key.is(name));
    if members.iter().all(known) {
        return ExtraFields::default();
    }
    let rest = members.iter().filter(|member| !known(member));
    let rest: Vec<Member<'a>> = rest.copied().collect();
    ExtraFields::of(rest)
}

/// Returns the members that are not null and not listed in `modelled`, as a JSON object. If a key is duplicated, the
/// object contains its last value, at the position of that value.
pub(crate) fn unknown_members(members: &[Member<'_>], modelled: &[&str]) -> String {
    let mut names = HashSet::new();
    let mut rest: Vec<&Member<'_>> = members
        .iter()
        .rev()
        .filter(|member| names.insert(member.key.name()))
        .filter(|member| member.raw.kind != Kind::Null)
        .filter(|member| !modelled.iter().any(|name| member.key.is(name)))
        .collect();
    rest.reverse();
    let mut out = String::from("{");
    for member in rest {
        if out.len() > 1 {
            out.push(',');
        }
        for piece in ["\"", member.key.raw, "\":", member.raw.text] {
            out.push_str(piece);
        }
    }
    out.push('}');
    out
}

/// Returns the `type` of an event, a block, or a delta, or an empty string.
#[inline]
pub(crate) fn type_of<'a>(members: &[Member<'a>]) -> Cow<'a, str> {
    find(members, "type").and_then(string).unwrap_or_default()
}

/// Returns the id as text, or `None` if it is absent, blank, or a placeholder. A numeric id is returned with the digits
/// that the payload contains.
pub(crate) fn an_id<'a>(
    holder: &[Member<'a>],
    at: Pointer<'_>,
    key: &str,
    notes: &mut Anomalies<'a>,
) -> Option<Cow<'a, str>> {
    let raw = present(find(holder, key))?;
    match text(raw) {
        Some(id) => {
            let (id, lone) = id.into_whole();
            let trimmed = id.trim_matches(is_white);
            let usable = !trimmed.is_empty() && !FACTS.absent_ids.contains(&trimmed);
            notes.lone |= lone && usable;
            usable.then_some(id)
        }
        None if raw.kind == Kind::Number => Some(Cow::Borrowed(raw.text)),
        None => {
            notes.shape(raw, at.member(key));
            None
        }
    }
}

pub(crate) fn a_name<'a>(
    holder: &[Member<'a>],
    at: Pointer<'_>,
    notes: &mut Anomalies<'a>,
) -> Option<Cow<'a, str>> {
    let name = notes.a_text(holder, at, "name");
    (!is_blank(&name)).then(|| notes.clean(name))
}

pub(crate) fn is_blank(text: &Text<'_>) -> bool {
    text.lead_low.is_none()
        && text.tail_high.is_none()
        && text.body.trim_matches(is_white).is_empty()
}

/// Returns the arguments of a call as text, whatever their JSON type, or `None` if they are absent, blank, or an empty
/// object. Gateways send an empty object only to open a call.
pub(crate) fn arguments<'a>(holder: &[Member<'a>], key: &str) -> Option<Text<'a>> {
    let raw = present(find(holder, key))?;
    match raw.kind {
        Kind::String => text(raw).filter(|text| !is_blank(text)),
        Kind::Object if members(raw).is_empty() => None,
        _ => Some(Text::plain(raw.text)),
    }
}

/// Returns the name and value of the first member of `CALL_TEXTS` that is not empty, or `None`.
pub(crate) fn call_text<'a>(delta: &[Member<'a>]) -> Option<(&'static str, Text<'a>)> {
    CALL_TEXTS.into_iter().find_map(|name| {
        let piece = find(delta, name).and_then(text);
        let piece = piece.or_else(|| arguments(delta, name));
        Some((name, piece.filter(|piece| !piece.is_empty())?))
    })
}

/// Returns the JSON of an array, or `None` if it is absent or empty.
pub(crate) fn filled<'a>(holder: &[Member<'a>], key: &str) -> Option<&'a str> {
    let raw = find(holder, key)?;
    first_item(raw).map(|_| raw.text)
}

/// Returns true if the decoder reads the member at `path` in an event or a complete message. Only duplicates of members
/// that the decoder reads are reported.
pub(crate) fn is_read(path: &[Option<&str>]) -> bool {
    let facts = &*FACTS;
    let is_block =
        |key: &str| key == "type" || facts.blocks.iter().any(|(_, fields)| fields.contains(&key));
    match path {
        [Some(key)] => facts.event_fields.contains(key) || facts.message_fields.contains(key),
        [Some("message"), Some(key)] => facts.message_fields.contains(key),
        [Some("content_block"), Some(key)]
        | [Some("content"), None, Some(key)]
        | [Some("message"), Some("content"), None, Some(key)] => is_block(key),
        [Some("delta"), Some(key)] => {
            facts.message_delta_fields.contains(key)
                || facts.call_delta_fields.contains(key)
                || facts.deltas.iter().any(|(_, fields)| fields.contains(key))
        }
        _ => false,
    }
}

/// Returns true if a tool result reports a failure. MCP results have the flag `is_error`; results of other tools have
/// an error type in their content.
pub(crate) fn is_error(block: &Object<'_>) -> bool {
    let given = block.get("is_error").map(|raw| raw.kind);
    let content = || block.object("content");
    given == Some(Kind::True)
        || content().is_some_and(|content| type_of(&content.members).ends_with("_error"))
}
