//! Decodes one content block of any type, either when it opens or when a complete message repeats it.
//!
//! The module has no state.

use crate::dialect::anomalies::Anomalies;
use crate::dialect::anomalies::Pointer;
use crate::dialect::anthropic::fields;
use crate::dialect::anthropic::fields::CALL_TEXTS;
use crate::dialect::anthropic::fields::FACTS;
use crate::dialect::anthropic::fields::a_name;
use crate::dialect::anthropic::fields::an_id;
use crate::dialect::anthropic::fields::arguments;
use crate::dialect::anthropic::fields::call_text;
use crate::dialect::anthropic::fields::extra_fields;
use crate::dialect::anthropic::fields::is_error;
use crate::dialect::anthropic::unknown_block::UnknownBlock;
use crate::dialect::anthropic::unknown_block::keep;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::unread_arguments::may_hold_arguments;
use crate::json::Kind;
use crate::json::Text;
use crate::json::extra_fields::ExtraFields;
use crate::json::members::Member;
use crate::json::members::Object;
use crate::json::members::find;
use crate::json::members::present;
use crate::json::members::text;
use crate::model::delta::Address;
use crate::model::delta::CallFields;
use crate::model::delta::Channel;
use crate::model::delta::ItemKind;
use crate::model::delta::PartAt;
use crate::model::delta::PartAttributes;
use crate::model::fault::Fault;

/// A block, or a delta of a block, in a payload.
#[derive(Debug)]
pub(crate) struct Block<'a, 'b> {
    pub(crate) object: &'b Object<'a>,
    pub(crate) at: Pointer<'b>,
    /// Name of the event that contained the block.
    pub(crate) event: Option<&'b str>,
    /// Unknown members of the event that contained the block.
    pub(crate) extra: ExtraFields<'a>,
}

impl<'a, 'b> Block<'a, 'b> {
    pub(crate) fn new(object: &'b Object<'a>, event: Option<&'b str>) -> Block<'a, 'b> {
        Block {
            object,
            at: Pointer::ROOT,
            event,
            extra: ExtraFields::default(),
        }
    }

    /// Returns the unknown members of the block and of its event as metadata.
    #[inline]
    pub(crate) fn metadata(&self, modelled: &[&str]) -> Option<String> {
        let own = extra_fields(&self.object.members, modelled);
        if self.extra.is_empty() {
            return own.text();
        }
        self.extra.and(&own).text()
    }

    /// Emits the block as content that the client must send back unchanged in a later turn.
    pub(crate) fn keep(&self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        let kind = FACTS.block_type(&self.object.members);
        keep(wire, &kind, self.event, self.object.raw.text)
    }
}

pub(crate) fn open_text<'a>(
    wire: &mut DecodeContext<'_, '_>,
    block: &Block<'a, '_>,
    index: i64,
    notes: &mut Anomalies<'a>,
) -> ParseResult {
    let (members, part) = (&block.object.members, message(Some(index)));
    let text = notes.a_text(members, block.at, "text");
    let text = Some(text).filter(|text| !text.is_empty());
    let metadata = block.metadata(FACTS.block("text"));
    wire.assembler
        .part_opened(wire.out, part, text, metadata.as_deref())?;
    match find(members, "citations") {
        Some(raw) if raw.kind == Kind::Array => {
            let Some(annotations) = fields::filled(members, "citations") else {
                return Ok(());
            };
            let attributes = PartAttributes {
                annotations: Some(annotations),
                ..PartAttributes::default()
            };
            wire.assembler.part_attributes(wire.out, part, attributes)
        }
        Some(raw) => {
            notes.unless_null(raw, block.at.member("citations"));
            Ok(())
        }
        None => Ok(()),
    }
}

/// Members of a text delta in which some gateways send the text.
pub(crate) const TEXT_ELSEWHERE: [&str; 1] = ["content"];

/// Members of a thinking block or delta in which some gateways send the text.
pub(crate) const THINKING_ELSEWHERE: [&str; 4] =
    ["text", "reasoning", "reasoning_content", "content"];

/// Returns the text of a thinking block or delta, and its metadata. The text may be in one of `THINKING_ELSEWHERE`
/// instead of `thinking`.
pub(crate) fn thought<'a>(
    wire: &mut DecodeContext<'_, '_>,
    block: &Block<'a, '_>,
    modelled: &[&str],
    notes: &mut Anomalies<'a>,
) -> (Text<'a>, Option<String>) {
    let at = ("thinking", &THINKING_ELSEWHERE[..]);
    text_elsewhere(wire, block, at, modelled, notes)
}

/// Returns the text in `member`, or in the first of the other members that contains text, and the metadata.
pub(crate) fn text_elsewhere<'a>(
    wire: &mut DecodeContext<'_, '_>,
    block: &Block<'a, '_>,
    (member, others): (&str, &[&str]),
    modelled: &[&str],
    notes: &mut Anomalies<'a>,
) -> (Text<'a>, Option<String>) {
    let members = &block.object.members;
    let given = notes.a_text(members, block.at, member);
    let is_text = |name: &&&str| {
        find(members, name)
            .and_then(text)
            .is_some_and(|text| !text.is_empty())
    };
    let elsewhere = others.iter().find(is_text);
    match elsewhere.filter(|_| given.is_empty()) {
        Some(name) => {
            wire.out.mark_misread("other_member"); // clients look only for the documented member
            let modelled: Vec<&str> = modelled.iter().copied().chain([*name]).collect();
            let given = notes.a_text(members, block.at, name);
            (given, block.metadata(&modelled))
        }
        None => (given, block.metadata(modelled)),
    }
}

pub(crate) fn open_thinking<'a>(
    wire: &mut DecodeContext<'_, '_>,
    block: &Block<'a, '_>,
    index: i64,
    shown: bool,
    notes: &mut Anomalies<'a>,
) -> ParseResult {
    let members = &block.object.members;
    let (kind, name) = match shown {
        true => ("thinking", "thinking"),
        false => ("redacted", "redacted_thinking"),
    };
    let (text, metadata) = match shown {
        true => {
            let (text, metadata) = thought(wire, block, FACTS.block(name), notes);
            (Some(text), metadata)
        }
        false => (None, block.metadata(FACTS.block(name))),
    };
    let secret = notes.a_text(members, block.at, if shown { "signature" } else { "data" });
    let secret = notes.clean(secret);
    let part = reasoning(Some(index), kind);
    let text = text.filter(|text| !text.is_empty());
    wire.assembler
        .part_opened(wire.out, part, text, metadata.as_deref())?;
    let Some(secret) = filled(&secret) else {
        return Ok(());
    };
    let attributes = PartAttributes {
        signature: Some(secret).filter(|_| shown),
        encrypted_content: Some(secret).filter(|_| !shown),
        ..PartAttributes::default()
    };
    wire.assembler.part_attributes(wire.out, part, attributes)
}

/// The id and the name that a call's block contained.
#[derive(Debug, Default)]
pub(crate) struct SentHead {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
}

pub(crate) fn open_call<'a>(
    wire: &mut DecodeContext<'_, '_>,
    block: &Block<'a, '_>,
    index: i64,
    kind: &str,
    notes: &mut Anomalies<'a>,
) -> Result<SentHead, Fault> {
    let mut head = SentHead::default();
    if input(&block.object.members).0 != "input" {
        wire.out.mark_misread("other_member"); // clients look only for the `input` member
    }
    call(block, index, kind, notes, |call| {
        head = SentHead {
            id: call.address.call_id.map(str::to_owned),
            name: call.name.map(str::to_owned),
        };
        wire.assembler.call_opened(wire.out, call)
    })?;
    Ok(head)
}

/// Returns the arguments in the block of a call, and the name of the member that contains them.
fn input<'a>(members: &[Member<'a>]) -> (&'static str, Option<Text<'a>>) {
    let found = arguments(members, "input").map(|text| ("input", text));
    match found.or_else(|| call_text(members)) {
        Some((name, text)) => (name, Some(text)),
        None => ("input", None),
    }
}

fn call<'a>(
    block: &Block<'a, '_>,
    index: i64,
    kind: &str,
    notes: &mut Anomalies<'a>,
    open_call: impl FnOnce(CallFields<'_>) -> ParseResult,
) -> ParseResult {
    let members = &block.object.members;
    let id = an_id(members, block.at, "id", notes);
    let name = a_name(members, block.at, notes);
    let (member, arguments) = input(members);
    let modelled = FACTS.block(kind).iter().copied().chain([member]);
    let modelled = Vec::from_iter(modelled);
    let is_sent = |name: &&str| present(find(members, name)).is_some();
    let misses_arguments = arguments.is_none()
        && !CALL_TEXTS.iter().chain(&["input"]).any(is_sent)
        && may_hold_arguments(&extra_fields(members, &modelled).members);
    let metadata = block.metadata(&modelled);
    open_call(CallFields {
        choice: 0,
        address: Address {
            call_id: id.as_deref(),
            ..at_index(Some(index))
        },
        name: name.as_deref(),
        arguments,
        provider_executed: kind != "tool_use",
        misses_arguments,
        metadata: metadata.as_deref(),
        ..CallFields::default()
    })
}

/// The result of the function `other` for a block that is not text, reasoning, or a call.
#[derive(Debug)]
pub(crate) enum OtherBlock {
    AsSent,
    /// The block is a tool result, and the events report a different id for its call. The value is the JSON of the
    /// block with the id from the events.
    Renamed(String),
    /// The block is a `compaction` block, whose content arrives in deltas. The client must send the block back in a
    /// later turn.
    Growing(UnknownBlock),
}

/// Emits a tool result, or emits a block of another type as a kept item. A `compaction` block is emitted later,
/// when it is complete.
pub(crate) fn other<'a>(
    wire: &mut DecodeContext<'_, '_>,
    block: &Block<'a, '_>,
    kind: &str,
    notes: &mut Anomalies<'a>,
) -> Result<OtherBlock, Fault> {
    let members = &block.object.members;
    let call_id = match kind.ends_with("tool_result") {
        true => an_id(members, block.at, "tool_use_id", notes),
        false => None,
    };
    if let Some(call_id) = call_id {
        let output = find(members, "content").map_or("null", |raw| raw.text);
        let metadata = block.metadata(FACTS.result());
        let failed = is_error(block.object);
        let metadata = metadata.as_deref();
        wire.assembler
            .result(wire.out, 0, &call_id, output, failed, metadata)?;
        let renamed = wire.assembler.id_of_result(0, &call_id);
        if let Some(renamed) = renamed.filter(|renamed| *renamed != call_id) {
            let mut kept = UnknownBlock::new(members, None);
            kept.rename(renamed);
            return Ok(OtherBlock::Renamed(kept.text()));
        }
    } else if kind == "compaction" {
        return Ok(OtherBlock::Growing(UnknownBlock::new(members, block.event)));
    } else {
        block.keep(wire)?;
    }
    Ok(OtherBlock::AsSent)
}

/// Compares a block in a complete message with the streamed block. Corrects or completes the streamed block, but never
/// duplicates its content.
pub(crate) fn restate<'a>(
    wire: &mut DecodeContext<'_, '_>,
    block: &Block<'a, '_>,
    index: i64,
    notes: &mut Anomalies<'a>,
) -> ParseResult {
    let members = &block.object.members;
    let kind = FACTS.block_type(members);
    match kind.as_ref() {
        "text" | "thinking" => {
            let text = notes.a_text(members, block.at, &kind);
            let text = Some(text).filter(|text| !text.is_empty());
            let metadata = block.metadata(FACTS.block(&kind));
            let part = match kind.as_ref() {
                "text" => message(Some(index)),
                _ => reasoning(Some(index), "thinking"),
            };
            wire.assembler
                .restate_part(wire.out, part, text, metadata.as_deref())
        }
        "tool_use" | "server_tool_use" | "mcp_tool_use" => {
            call(block, index, &kind, notes, |call| {
                wire.assembler.restate_call(wire.out, call)
            })
        }
        kind if kind.ends_with("tool_result") => other(wire, block, kind, notes).map(drop),
        // The block was already emitted when it was streamed.
        _ => Ok(()),
    }
}

pub(crate) fn at_index(index: Option<i64>) -> Address<'static> {
    Address {
        index,
        ..Address::default()
    }
}
pub(crate) fn filled(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}
/// Returns the text part of the block at an index.
pub(crate) fn message(index: Option<i64>) -> PartAt<'static> {
    PartAt {
        choice: 0,
        kind: ItemKind::Message,
        address: at_index(index),
        channel: Channel::Text,
        reasoning_kind: "raw",
    }
}
/// Returns the reasoning part of the block at an index.
pub(crate) fn reasoning(index: Option<i64>, kind: &'static str) -> PartAt<'static> {
    PartAt {
        choice: 0,
        kind: ItemKind::Reasoning,
        address: at_index(index),
        channel: Channel::Reasoning,
        reasoning_kind: kind,
    }
}
