//! Decodes the message id of a UI message stream, and the metadata that the application adds to the message.
//!
//! The application defines the metadata. The metadata objects in `start`, `finish`, and `message-metadata` are merged.
//! This module merges only the top-level members of these objects. Many applications put the usage in this metadata.

use crate::assemble::part::object_merge::RawMembers;
use crate::dialect::ai_sdk::part::TypedPart;
use crate::dialect::ai_sdk::part::words;
use crate::dialect::ai_sdk::part::write_member;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::json::Kind;
use crate::json::members::Slot;
use crate::json::members::find;
use crate::json::members::members;
use crate::model::spec;
use std::sync::LazyLock;

const METADATA: &str = "messageMetadata";

static USAGE_MEMBERS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let facts = spec::dialects().get("ai-sdk-ui");
    words(facts.and_then(|facts| facts.get("usage_members")))
});

/// Collects the metadata of one message until the message ends.
#[derive(Debug, Default)]
pub(crate) struct MessageReader {
    /// Keys and JSON values of the metadata that arrived after the start event.
    members: RawMembers,
    started: bool,
}

impl MessageReader {
    /// Handles `start`. The first `start` causes the start event; any later `start` only adds metadata.
    pub(crate) fn start(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        chunk: &mut TypedPart<'_, '_>,
    ) -> ParseResult {
        if self.started {
            return self.metadata(wire, chunk);
        }
        self.started = true;
        let sent = chunk.an_object(METADATA);
        let identity = chunk.identity(&["messageId"]);
        let metadata = chunk.metadata_with(METADATA, sent.map(|raw| raw.text));
        let DecodeContext { assembler, out } = &mut *wire;
        assembler.started(out, identity.as_deref(), None, None, metadata.as_deref())?;
        usage(wire, chunk, sent)
    }

    /// Emits the start event if content arrives before any `start`.
    #[inline]
    pub(crate) fn emit_start(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        if self.started {
            return Ok(());
        }
        self.started = true;
        wire.assembler.started(wire.out, None, None, None, None)
    }

    /// Merges the `messageMetadata` of a chunk. The last value of each metadata member is used.
    pub(crate) fn metadata(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        chunk: &mut TypedPart<'_, '_>,
    ) -> ParseResult {
        let Some(sent) = chunk.an_object(METADATA) else {
            return Ok(());
        };
        let more = self.members.add(sent.text);
        wire.assembler.hold(wire.out, more)?;
        usage(wire, chunk, Some(sent))
    }

    /// Emits the metadata before the message ends.
    pub(crate) fn flush(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        let members = std::mem::take(&mut self.members);
        wire.assembler.hold(wire.out, members.held().released())?;
        let Some(text) = members.text() else {
            return Ok(());
        };
        let mut whole = String::from("{");
        write_member(&mut whole, METADATA, &text);
        whole.push('}');
        wire.assembler.choice_metadata(wire.out, 0, &whole)
    }
}

fn usage<'a>(
    wire: &mut DecodeContext<'_, '_>,
    chunk: &TypedPart<'_, 'a>,
    sent: Slot<'a>,
) -> ParseResult {
    let Some(sent) = sent else {
        return Ok(());
    };
    let members = members(sent);
    for key in USAGE_MEMBERS.iter() {
        let usage = find(&members, key).filter(|raw| raw.kind == Kind::Object);
        let Some(raw) = usage else { continue };
        let counts = chunk.schema.counts.read(raw);
        if !counts.is_blank() {
            wire.assembler.merge_usage(wire.out, counts)?;
        }
    }
    Ok(())
}
