//! Decodes the names, ids, and arguments of tool call items, for every item type of the API.
//!
//! This module determines which members of an item contain the arguments. The assembler determines which call an event
//! addresses.

use crate::dialect::anomalies::Pointer;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::responses::read::ItemAddress;
use crate::dialect::responses::read::Reader;
use crate::dialect::responses::read::extra_fields;
use crate::dialect::responses::read::member;
use crate::dialect::responses::spec_tables::CallType;
use crate::dialect::responses::spec_tables::FACTS;
use crate::dialect::think_tags::is_white;
use crate::dialect::unread_arguments::may_hold_arguments;
use crate::json::Kind;
use crate::json::Text;
use crate::json::extra_fields::ExtraFields;
use crate::json::members::Object;
use crate::json::members::is_string;
use crate::json::members::string;
use crate::json::members::text;
use crate::model::delta::CallEnding;
use crate::model::delta::CallFields;
use crate::model::fault::Fault;
use std::borrow::Cow;

/// A call item in the form that the assembler accepts.
#[derive(Debug)]
pub(crate) struct CallItem<'a> {
    pub(crate) item_address: ItemAddress<'a>,
    pub(crate) name: Option<Cow<'a, str>>,
    pub(crate) arguments: Option<Text<'a>>,
    pub(crate) provider: bool,
    pub(crate) custom: bool,
    pub(crate) metadata: Option<String>,
    /// True if an unknown member may contain the arguments.
    pub(crate) misses_arguments: bool,
    pub(crate) ending: CallEnding,
}

impl CallItem<'_> {
    pub(crate) fn call_fields(&self) -> CallFields<'_> {
        CallFields {
            choice: 0,
            address: self.item_address.address(),
            name: self.name.as_deref(),
            arguments: self.arguments.clone(),
            provider_executed: self.provider,
            custom: self.custom,
            misses_arguments: self.misses_arguments,
            ending: self.ending,
            metadata: self.metadata.as_deref(),
            ..CallFields::default()
        }
    }
}

/// Returns the type of a call item, or `None` if the item is not a call. An item without a type is a function call if
/// it has a call id and a name.
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

/// Reads a call item. `enclosing`: the address in the event that contains the item. The item id in this address is used
/// if the item itself has no id.
pub(crate) fn read_call<'a>(
    item: &Object<'a>,
    at: Pointer<'_>,
    reader: &mut Reader<'_, '_, 'a>,
    kind: &CallType,
    enclosing: ItemAddress<'a>,
) -> CallItem<'a> {
    let item_id = reader.identity(item, at, "id").or(enclosing.item_id);
    let call_id = reader.identity(item, at, "call_id");
    let mut name = match kind.name {
        None => reader.name(item, at),
        Some(name) => Some(Cow::Borrowed(name)),
    };
    // Some gateways send a call in Chat format: the member `function` of the item contains the name and the arguments.
    let is_nameless = kind.kind == "function_call" && name.is_none();
    let function = item.object("function").filter(|_| is_nameless);
    if let Some(function) = &function {
        name = reader.name(function, at.member("function"));
    }
    // A tool of the client may have the same name as a tool of the provider. If the request lists the tool, the client
    // runs the call.
    let tools = &reader.wire.out.config.tools;
    let its_own = kind.kind == "custom_tool_call"
        && name.as_deref().is_some_and(|name| {
            let is_known = tools
                .as_ref()
                .is_some_and(|tools| tools.iter().any(|tool| tool.name == name));
            FACTS.provider_tools.contains(name) && !is_known
        });
    let provider = kind.provider || its_own || is_hosted(item);
    // A call that the provider runs has no call id, so the item id pairs the call with its result.
    let call_id = call_id.or_else(|| item_id.clone().filter(|_| provider));
    let ending = ending(item, kind, provider);
    let (elsewhere, arguments) = match &function {
        Some(function) => (Some("function"), arguments(function, kind, ending).1),
        None => arguments(item, kind, ending),
    };
    let mut metadata = extra_fields(item, &kind.modelled);
    if let Some(elsewhere) = elsewhere {
        metadata.members.retain(|member| !member.key.is(elsewhere));
        reader.wire.out.mark_misread("other_member");
    }
    let misses_arguments = arguments.is_none()
        && match &function {
            Some(function) => may_hold_arguments(&function.members),
            None => may_hold_arguments(&metadata.members),
        };
    CallItem {
        item_address: ItemAddress {
            item_id,
            call_id,
            index: enclosing.index,
            sub: None,
        },
        name,
        arguments,
        provider,
        custom: kind.custom,
        metadata: metadata.text(),
        misses_arguments,
        ending,
    }
}

/// Returns the state of an item's arguments, as indicated by the item's status: complete, cut off, or still open. If
/// the provider runs the call, a status other than `incomplete` is ignored, because the status may describe the
/// execution instead of the arguments.
fn ending(item: &Object<'_>, kind: &CallType, provider: bool) -> CallEnding {
    let status = item.string("status").unwrap_or_default();
    let status = status.trim_matches(is_white);
    match status {
        "incomplete" => CallEnding::Cut,
        _ if provider => CallEnding::Whole,
        _ if FACTS.cut_statuses.contains(status) => CallEnding::Cut,
        _ if status.is_empty() || FACTS.finished_statuses.contains(status) => CallEnding::Whole,
        _ if kind.wrapped => CallEnding::OpenObject,
        _ => CallEnding::Open,
    }
}

/// Handles `output_item.added`. Ignores the arguments of a wrapped call (a call whose arguments consist of several
/// members), because its members are complete only when the item is done.
pub(crate) fn open_call(
    wire: &mut DecodeContext<'_, '_>,
    call: &CallItem<'_>,
    kind: &CallType,
) -> ParseResult {
    let mut call_fields = call.call_fields();
    let begins = |text: &Text<'_>| !text.is_empty() && *text != Text::plain("{}");
    call_fields.arguments = call_fields
        .arguments
        .filter(|text| !kind.wrapped && begins(text));
    wire.assembler.call_opened(wire.out, call_fields)
}

/// Handles an event that reports the progress of a call. Returns false if the event does not refer to an open call.
pub(crate) fn progress<'a>(
    event: &Object<'a>,
    reader: &mut Reader<'_, '_, 'a>,
) -> Result<bool, Fault> {
    let metadata = extra_fields(event, &FACTS.progress_address).text();
    let item_address = reader.item_address(None)?;
    let DecodeContext { assembler, out } = &mut reader.wire;
    assembler.call_progress(out, 0, item_address.address(), metadata.as_deref())
}

/// Appends a piece of the arguments. `tool`: the tool's name, if the event type determines the name.
pub(crate) fn delta<'a>(
    event: &Object<'a>,
    reader: &mut Reader<'_, '_, 'a>,
    tool: Option<&'static str>,
) -> ParseResult {
    let text = reader.text_of_event(FACTS.fields.delta);
    let text = text.or_else(|| piece(event));
    let text = text.or_else(|| delta_elsewhere(event, reader));
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return match event.present("delta") {
            None => miss_arguments(event, reader),
            Some(_) => Ok(()),
        };
    };
    let name = match tool {
        Some(name) => Some(Cow::Borrowed(name)),
        None => reader.name_of_event(),
    };
    let item_address = reader.item_address(None)?;
    let metadata = reader.metadata(event);
    let DecodeContext { assembler, out } = &mut reader.wire;
    assembler.call_text(
        out,
        0,
        item_address.address(),
        text,
        name.as_deref(),
        metadata.as_deref(),
    )
}

/// Sets the complete arguments of a call. `member`: the member of the event that contains the arguments.
pub(crate) fn value<'a>(
    event: &Object<'a>,
    reader: &mut Reader<'_, '_, 'a>,
    member: &str,
) -> ParseResult {
    if event.present(member).is_none() {
        miss_arguments(event, reader)?;
    }
    let item_address = reader.item_address(None)?;
    let DecodeContext { assembler, out } = &mut reader.wire;
    assembler.call_value(out, 0, item_address.address(), plain(event, member))
}

/// If an event lacks the arguments member but another member may contain the arguments, marks the call of the event as
/// possibly incomplete.
#[cold]
fn miss_arguments<'a>(event: &Object<'a>, reader: &mut Reader<'_, '_, 'a>) -> ParseResult {
    if may_hold_arguments(&reader.extra_fields_of_event(event).members) {
        let item_address = reader.item_address(None)?;
        let assembler = &mut reader.wire.assembler;
        assembler.call_misses_arguments(0, item_address.address());
    }
    Ok(())
}

/// Returns a piece of arguments from a member that a gateway sends instead of `delta`, or `None`.
#[cold]
fn delta_elsewhere<'a>(event: &Object<'a>, reader: &mut Reader<'_, '_, 'a>) -> Option<Text<'a>> {
    if event.present("delta").is_some() {
        return None;
    }
    let mut members = FACTS.other_deltas.iter();
    let found = members.find_map(|name| event.get(name).and_then(text));
    if found.is_some() {
        reader.wire.out.mark_misread("other_member");
    }
    found
}

/// Members that may contain the text, if a delta is an object.
const PIECE_MEMBERS: [&str; 2] = ["arguments", "partial_json"];

/// Returns the arguments in a `delta` that is an object. If the object has only one member, which contains text,
/// returns this text. Otherwise, returns the JSON of the object.
#[cold]
fn piece<'a>(event: &Object<'a>) -> Option<Text<'a>> {
    let delta = event.object("delta")?;
    let inner = match delta.members.as_slice() {
        [only] if PIECE_MEMBERS.iter().any(|name| only.key.is(name)) => text(only.raw),
        _ => None,
    };
    Some(inner.unwrap_or_else(|| Text::plain(delta.raw.text)))
}

/// Returns the arguments of an item. Also returns the name of the member that contains the arguments, if this member is
/// not the documented one.
fn arguments<'a>(
    item: &Object<'a>,
    kind: &CallType,
    ending: CallEnding,
) -> (Option<&'static str>, Option<Text<'a>>) {
    if kind.wrapped {
        return (None, wrapped_arguments(item, kind, ending));
    }
    let Some(own) = kind.members.first() else {
        return (None, None);
    };
    let sent = plain(item, own);
    if sent.as_ref().is_some_and(|text| !text.is_empty()) {
        return (None, sent);
    }
    let mut others = FACTS.other_arguments.iter().filter(|name| *name != own);
    let found = others.find_map(|name| {
        let raw = item.present(name)?;
        let fits = matches!(raw.kind, Kind::Object | Kind::String);
        let text = plain(item, name).filter(|text| fits && !text.is_empty())?;
        Some((*name, text))
    });
    match found {
        Some((name, text)) => (Some(name), Some(text)),
        None => (None, sent),
    }
}

/// Returns the members that form the arguments, as a JSON object. The closing brace is omitted unless the arguments are
/// complete.
fn wrapped_arguments<'a>(
    item: &Object<'a>,
    kind: &CallType,
    ending: CallEnding,
) -> Option<Text<'a>> {
    let mut out = ExtraFields::default();
    for name in &kind.members {
        if let Some(raw) = item.present(name) {
            out.add(member(name, raw));
        }
    }
    let mut text = out.text()?;
    if ending != CallEnding::Whole {
        text.pop();
    }
    Some(Text {
        body: Cow::Owned(text),
        ..Text::default()
    })
}

/// Returns argument text. The JSON of a value that is not a string is returned as text, and the assembler classifies it
/// later.
fn plain<'a>(holder: &Object<'a>, member: &str) -> Option<Text<'a>> {
    let raw = holder.present(member)?;
    Some(text(raw).unwrap_or_else(|| Text::plain(raw.text)))
}

/// Returns true if the call is a shell call in a container of the provider, or a tool search on the provider's servers.
/// The client does not send a result for either kind of call.
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
