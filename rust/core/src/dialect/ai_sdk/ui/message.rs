//! What a UI message stream says of the message itself: its id, and the metadata that an application hangs on it.
//!
//! Metadata is the application's own: `start`, `finish` and `message-metadata` bring objects that are merged (here
//! by their first level), and many applications put the usage there. Knows no content.

use crate::assemble::part::object_merge::RawMembers;
use crate::dialect::ai_sdk::part::TypedPart;
use crate::dialect::ai_sdk::part::words;
use crate::dialect::ai_sdk::part::write_member;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::Step;
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

/// Keeps the metadata of one message until its end.
#[derive(Debug, Default)]
pub(crate) struct MessageReader {
    /// What came behind the start: keys and the texts of their values.
    members: RawMembers,
    told: bool,
}

impl MessageReader {
    /// The first `start` is that of the response; what another one says is kept as the metadata it brings.
    pub(crate) fn start(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        chunk: &mut TypedPart<'_, '_>,
    ) -> Step {
        if self.told {
            return self.metadata(wire, chunk);
        }
        self.told = true;
        let sent = chunk.an_object(METADATA);
        let identity = chunk.identity(&["messageId"]);
        let metadata = chunk.metadata_with(METADATA, sent.map(|raw| raw.text));
        let DecodeContext { assembler, out } = &mut *wire;
        assembler.started(out, identity.as_deref(), None, None, metadata.as_deref())?;
        usage(wire, chunk, sent)
    }

    /// There is content, and no `start` came before it.
    #[inline]
    pub(crate) fn tell(&mut self, wire: &mut DecodeContext<'_, '_>) -> Step {
        if self.told {
            return Ok(());
        }
        self.told = true;
        wire.assembler.started(wire.out, None, None, None, None)
    }

    /// The `messageMetadata` of any chunk: the last of each member holds.
    pub(crate) fn metadata(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        chunk: &mut TypedPart<'_, '_>,
    ) -> Step {
        let Some(sent) = chunk.an_object(METADATA) else {
            return Ok(());
        };
        let more = self.members.add(sent.text);
        wire.assembler.hold(wire.out, more)?;
        usage(wire, chunk, Some(sent))
    }

    /// The message is about to end.
    pub(crate) fn flush(&mut self, wire: &mut DecodeContext<'_, '_>) -> Step {
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

fn usage<'a>(wire: &mut DecodeContext<'_, '_>, chunk: &TypedPart<'_, 'a>, sent: Slot<'a>) -> Step {
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
