//! Decodes tool call items of every type in the API: names, ids and arguments.
//!
//! Determines which members of an item make up the arguments. The assembler decides which call an event addresses.

use crate::dialect::anomalies::Pointer;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::Step;
use crate::dialect::responses::read::Reader;
use crate::dialect::responses::read::Whom;
use crate::dialect::responses::read::member;
use crate::dialect::responses::read::rest;
use crate::dialect::responses::spec_tables::CallType;
use crate::dialect::responses::spec_tables::FACTS;
use crate::dialect::think_tags::is_white;
use crate::json::Kind;
use crate::json::Text;
use crate::json::extra_fields::ExtraFields;
use crate::json::members::Object;
use crate::json::members::is_string;
use crate::json::members::string;
use crate::json::members::text;
use crate::model::delta::CallSaid;
use std::borrow::Cow;

/// A call item in the form that the assembler takes.
#[derive(Debug)]
pub(crate) struct CallItem<'a> {
    pub(crate) whom: Whom<'a>,
    pub(crate) name: Option<Cow<'a, str>>,
    pub(crate) arguments: Option<Text<'a>>,
    pub(crate) provider: bool,
    pub(crate) custom: bool,
    pub(crate) metadata: Option<String>,
    /// True if the item's status is `incomplete`.
    pub(crate) unfinished: bool,
}

impl CallItem<'_> {
    pub(crate) fn said(&self) -> CallSaid<'_> {
        CallSaid {
            choice: 0,
            address: self.whom.address(),
            name: self.name.as_deref(),
            arguments: self.arguments.clone(),
            provider_executed: self.provider,
            custom: self.custom,
            metadata: self.metadata.as_deref(),
            ..CallSaid::default()
        }
    }
}

/// Returns the type of a call item. An item without a type is a function call if it has a call id and a name.
pub(crate) fn call_type(item: &Object<'_>) -> Option<&'static CallType> {
    let kind = item.string("type");
    if let Some(kind) = kind.filter(|kind| !kind.trim_matches(is_white).is_empty()) {
        return FACTS.calls.get(kind.as_ref());
    }
    let has = |key: &&str| {
        item.get(key)
            .and_then(text)
            .is_some_and(|it| !it.is_empty())
    };
    let is_call = ["call_id", "name"].iter().all(has);
    FACTS.calls.get("function_call").filter(|_| is_call)
}

/// Reads a call item. `beside`: the address that the event carries outside the item.
pub(crate) fn read_call<'a>(
    item: &Object<'a>,
    at: Pointer<'_>,
    reader: &mut Reader<'_, '_, 'a>,
    kind: &CallType,
    beside: Whom<'a>,
) -> CallItem<'a> {
    let item_id = reader.identity(item, at, "id").or(beside.item_id);
    let call_id = reader.identity(item, at, "call_id");
    let name = match kind.name {
        None => reader.name(item, at),
        Some(name) => Some(Cow::Borrowed(name)),
    };
    // A client's tool may share its name with a provider's tool. If the request lists it, the call is the client's.
    let tools = &reader.wire.out.config.tools;
    let its_own = kind.kind == "custom_tool_call"
        && name.as_deref().is_some_and(|name| {
            let is_known = tools
                .as_ref()
                .is_some_and(|tools| tools.iter().any(|tool| tool.name == name));
            FACTS.provider_tools.contains(name) && !is_known
        });
    let provider = kind.provider || its_own || is_hosted(item);
    // A call that the provider runs has no call id of its own: the item id pairs it with its result.
    let call_id = call_id.or_else(|| item_id.clone().filter(|_| provider));
    CallItem {
        whom: Whom {
            item_id,
            call_id,
            index: beside.index,
            sub: None,
        },
        name,
        arguments: arguments(item, kind),
        provider,
        custom: kind.custom,
        metadata: rest(item, &kind.modelled).text(),
        unfinished: is_string(item.get("status"), "incomplete"),
    }
}

/// Handles `output_item.added`. Ignores the members of a wrapped call, because they are complete only when the item is
/// done and are not the start of a text.
pub(crate) fn open_call(
    wire: &mut DecodeContext<'_, '_>,
    call: &CallItem<'_>,
    kind: &CallType,
) -> Step {
    let mut said = call.said();
    let begins = |text: &Text<'_>| !text.is_empty() && *text != Text::plain("{}");
    said.arguments = said.arguments.filter(|text| !kind.wrapped && begins(text));
    wire.assembler.call_opened(wire.out, said)
}

/// Appends a piece of arguments. `tool`: the tool's name, if the event type implies it.
pub(crate) fn delta<'a>(
    event: &Object<'a>,
    reader: &mut Reader<'_, '_, 'a>,
    tool: Option<&'static str>,
) -> Step {
    let Some(text) = reader
        .text_of_event(FACTS.fields.delta)
        .filter(|text| !text.is_empty())
    else {
        return Ok(());
    };
    let name = match tool {
        Some(name) => Some(Cow::Borrowed(name)),
        None => reader.name_of_event(),
    };
    let whom = reader.whom(None)?;
    let metadata = reader.metadata(event);
    let DecodeContext { assembler, out } = &mut reader.wire;
    assembler.call_text(
        out,
        0,
        whom.address(),
        text,
        name.as_deref(),
        metadata.as_deref(),
    )
}

/// Sets the complete arguments.
pub(crate) fn value<'a>(event: &Object<'a>, reader: &mut Reader<'_, '_, 'a>, member: &str) -> Step {
    let whom = reader.whom(None)?;
    let DecodeContext { assembler, out } = &mut reader.wire;
    assembler.call_value(out, 0, whom.address(), plain(event, member))
}

fn arguments<'a>(item: &Object<'a>, kind: &CallType) -> Option<Text<'a>> {
    if !kind.wrapped {
        return kind.members.first().and_then(|name| plain(item, name));
    }
    let mut out = ExtraFields::default();
    for name in &kind.members {
        if let Some(raw) = item.present(name) {
            out.add(member(name, raw));
        }
    }
    let text = out.text()?;
    Some(Text {
        body: Cow::Owned(text),
        ..Text::default()
    })
}

/// Returns argument text as sent. A value that is not a string is returned as JSON text, to be validated later.
fn plain<'a>(holder: &Object<'a>, member: &str) -> Option<Text<'a>> {
    let raw = holder.present(member)?;
    Some(text(raw).unwrap_or_else(|| Text::plain(raw.text)))
}

/// Returns true for shells in the provider's container and tool searches on its servers: neither waits for a result
/// from the client.
fn is_hosted(item: &Object<'_>) -> bool {
    match item
        .get("environment")
        .filter(|raw| raw.kind == Kind::Object)
    {
        Some(environment) => Object::of(environment)
            .and_then(|environment| environment.get("type"))
            .and_then(string)
            .is_some_and(|kind| kind.starts_with("container")),
        None => is_string(item.get("execution"), "server"),
    }
}
