//! What one content block says of itself: where it opens, and where a whole message tells it again.
//!
//! Knows every kind of block. Remembers nothing.

use super::blocks::{at_index, filled, message, reasoning};
use super::fields::{self, FACTS, a_name, an_id, arguments, is_error, rest, type_of};
use super::kept::Kept;
use crate::delta::{Address, CallSaid, PartAttributes};
use crate::fault::Fault;
use crate::json::Kind;
use crate::json::members::{Object, find};
use crate::leftovers::Leftovers;
use crate::notes::{Notes, Pointer};
use crate::wire::{Step, Wire};

/// One block, or one delta of it, as it stands in a payload.
#[derive(Debug)]
pub(super) struct Block<'a, 'b> {
    pub(super) object: &'b Object<'a>,
    pub(super) at: Pointer<'b>,
    /// The name of the frame's event.
    pub(super) event: Option<&'b str>,
    /// Unmodelled members of the event around it.
    pub(super) extra: Leftovers<'a>,
}

impl<'a, 'b> Block<'a, 'b> {
    pub(super) fn new(object: &'b Object<'a>, event: Option<&'b str>) -> Block<'a, 'b> {
        Block {
            object,
            at: Pointer::ROOT,
            event,
            extra: Leftovers::default(),
        }
    }

    /// What nobody models, of the block and around it.
    #[inline]
    pub(super) fn metadata(&self, modelled: &[&str]) -> Option<String> {
        let own = rest(&self.object.members, modelled);
        if self.extra.is_empty() {
            return own.text();
        }
        self.extra.and(&own).text()
    }

    /// A block that is handed on as it is.
    pub(super) fn keep(&self, wire: &mut Wire<'_, '_>) -> Step {
        let raw = self.object.raw.text.as_bytes();
        wire.assembler
            .kept_unknown(wire.out, 0, self.event, raw, None)
    }
}

pub(super) fn open_text<'a>(
    wire: &mut Wire<'_, '_>,
    block: &Block<'a, '_>,
    index: i64,
    notes: &mut Notes<'a>,
) -> Step {
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

pub(super) fn open_thinking<'a>(
    wire: &mut Wire<'_, '_>,
    block: &Block<'a, '_>,
    index: i64,
    shown: bool,
    notes: &mut Notes<'a>,
) -> Step {
    let members = &block.object.members;
    let (kind, name) = match shown {
        true => ("thinking", "thinking"),
        false => ("redacted", "redacted_thinking"),
    };
    let text = match shown {
        true => Some(notes.a_text(members, block.at, "thinking")),
        false => None,
    };
    let secret = notes.a_text(members, block.at, if shown { "signature" } else { "data" });
    let secret = notes.clean(secret);
    let metadata = block.metadata(FACTS.block(name));
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

pub(super) fn open_call<'a>(
    wire: &mut Wire<'_, '_>,
    block: &Block<'a, '_>,
    index: i64,
    kind: &str,
    notes: &mut Notes<'a>,
) -> Step {
    call(block, index, kind, notes, |call| {
        wire.assembler.call_opened(wire.out, call)
    })
}

fn call<'a>(
    block: &Block<'a, '_>,
    index: i64,
    kind: &str,
    notes: &mut Notes<'a>,
    say: impl FnOnce(CallSaid<'_>) -> Step,
) -> Step {
    let members = &block.object.members;
    let id = an_id(members, block.at, "id", notes);
    let name = a_name(members, block.at, notes);
    let metadata = block.metadata(FACTS.block(kind));
    say(CallSaid {
        choice: 0,
        address: Address {
            call_id: id.as_deref(),
            ..at_index(Some(index))
        },
        name: name.as_deref(),
        arguments: arguments(members, "input"),
        provider_executed: kind != "tool_use",
        metadata: metadata.as_deref(),
        ..CallSaid::default()
    })
}

/// The result of a tool, or a block that is handed on as it is. Gives back one whose deltas bring its content, which a
/// later turn must hand back.
pub(super) fn other<'a>(
    wire: &mut Wire<'_, '_>,
    block: &Block<'a, '_>,
    kind: &str,
    notes: &mut Notes<'a>,
) -> Result<Option<Kept>, Fault> {
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
    } else if kind == "compaction" {
        return Ok(Some(Kept::new(members, block.event)));
    } else {
        block.keep(wire)?;
    }
    Ok(None)
}

/// A block of a whole message that comes behind its own stream: corrects and completes, never appends.
pub(super) fn restate<'a>(
    wire: &mut Wire<'_, '_>,
    block: &Block<'a, '_>,
    index: i64,
    notes: &mut Notes<'a>,
) -> Step {
    let members = &block.object.members;
    let kind = type_of(members);
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
        // Was told where it was streamed.
        _ => Ok(()),
    }
}
