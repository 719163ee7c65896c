//! Decodes text and reasoning blocks of an AI SDK stream. The opening part, the deltas, and the closing part of a block
//! have the same id, which is unique only within one step.
//!
//! Blocks have the same form in provider-level parts and in UI message chunks. Providers number blocks within a step,
//! so the id `0` is reused in the next step. Provider metadata in any of these parts belongs to the whole block:
//! providers send `anthropic.signature` with an empty delta, and `openai.itemId` and `reasoningEncryptedContent` in the
//! opening and closing parts.

use crate::dialect::ai_sdk::part::Provider;
use crate::dialect::ai_sdk::part::TypedPart;
use crate::dialect::ai_sdk::plain_delta::PlainDelta;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::model::delta::Address;
use crate::model::delta::Channel;
use crate::model::delta::ItemKind;
use crate::model::delta::PartAt;
use crate::model::delta::PartAttributes;
use std::borrow::Cow;
use std::collections::HashSet;

/// What a block contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BlockKind {
    Text,
    Reasoning,
}

/// The address of a block, and its provider metadata.
#[derive(Debug)]
struct Block<'a> {
    block_kind: BlockKind,
    identity: Option<Cow<'a, str>>,
    provider: Provider<'a>,
    redacted: bool,
}

impl Block<'_> {
    fn at(&self) -> PartAt<'_> {
        let (kind, channel) = match self.block_kind {
            BlockKind::Text => (ItemKind::Message, Channel::Text),
            BlockKind::Reasoning => (ItemKind::Reasoning, Channel::Reasoning),
        };
        PartAt {
            choice: 0,
            kind,
            address: Address {
                item_id: self.identity.as_deref(),
                public_id: self.provider.item_id.as_deref(),
                ..Address::default()
            },
            channel,
            reasoning_kind: if self.redacted { "redacted" } else { "raw" },
        }
    }

    fn metadata(&self) -> Option<&str> {
        self.provider.metadata.as_deref()
    }

    /// Emits the signature, the encrypted content, and the metadata of the block. A client must send these values back
    /// in a later turn.
    fn attributes(&self, wire: &mut DecodeContext<'_, '_>, metadata: Option<&str>) -> ParseResult {
        let mut attributes = PartAttributes {
            metadata,
            ..PartAttributes::default()
        };
        if self.block_kind == BlockKind::Reasoning {
            attributes.signature = self.provider.signature.as_deref();
            attributes.encrypted_content = self.provider.encrypted_content.as_deref();
        }
        if attributes.signature.is_none()
            && attributes.encrypted_content.is_none()
            && metadata.is_none()
        {
            return Ok(());
        }
        let DecodeContext { assembler, out } = wire;
        assembler.part_attributes(out, self.at(), attributes)
    }
}

/// Decodes the text and reasoning blocks of one stream.
#[derive(Debug, Default)]
pub(crate) struct BlockReader {
    /// Ids of open reasoning blocks without readable text.
    redacted: HashSet<String>,
    /// Ids of the open blocks.
    open: HashSet<(BlockKind, String)>,
}

impl BlockReader {
    /// Discards all ids, because the next step may reuse them.
    pub(crate) fn forget(&mut self) {
        self.redacted.clear();
        self.open.clear();
    }

    pub(crate) fn start(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        part: &mut TypedPart<'_, '_>,
        block_kind: BlockKind,
    ) -> ParseResult {
        let block = self.block(part, block_kind);
        if let Some(identity) = block.identity.as_deref().filter(|_| block.redacted) {
            self.redacted.insert(identity.to_owned());
        }
        if let Some(identity) = block.identity.as_deref() {
            self.open.insert((block_kind, identity.to_owned()));
        }
        let DecodeContext { assembler, out } = wire;
        assembler.part_opened(out, block.at(), None, block.metadata())?;
        block.attributes(wire, None)
    }

    /// Emits a delta. `spellings`: the possible names of the member that contains the text.
    pub(crate) fn delta(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        part: &mut TypedPart<'_, '_>,
        block_kind: BlockKind,
        spellings: &[&str],
    ) -> ParseResult {
        let block = self.block(part, block_kind);
        let text = part.text(spellings);
        if !text.is_empty() {
            let DecodeContext { assembler, out } = wire;
            assembler.part_text(out, block.at(), text, block.metadata())?;
        }
        block.attributes(wire, block.metadata())
    }

    /// Emits a delta that contains only its id and text.
    pub(crate) fn piece(
        &self,
        wire: &mut DecodeContext<'_, '_>,
        piece: PlainDelta<'_>,
        block_kind: BlockKind,
    ) -> ParseResult {
        let redacted = !self.redacted.is_empty() && self.redacted.contains(piece.id);
        let block = Block {
            block_kind,
            redacted: block_kind == BlockKind::Reasoning && redacted,
            identity: Some(Cow::Borrowed(piece.id)),
            provider: Provider::default(),
        };
        let DecodeContext { assembler, out } = wire;
        assembler.part_text(out, block.at(), piece.text, None)
    }

    pub(crate) fn end(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        part: &mut TypedPart<'_, '_>,
        block_kind: BlockKind,
    ) -> ParseResult {
        let block = self.block(part, block_kind);
        let identity = block.identity.as_deref().map(str::to_owned);
        if identity.is_some_and(|identity| !self.open.remove(&(block_kind, identity))) {
            wire.out.leave_out("not_opened"); // clients raise at the end of a block that is not open
        }
        block.attributes(wire, None)?;
        let (at, DecodeContext { assembler, out }) = (block.at(), wire);
        assembler.part_closed(out, at, None, block.metadata())?;
        assembler.item_closed(out, 0, Some(at.kind), at.address, None, None)?;
        if let Some(identity) = block.identity.as_deref() {
            self.redacted.remove(identity);
        }
        Ok(())
    }

    fn block<'a>(&self, part: &mut TypedPart<'_, 'a>, block_kind: BlockKind) -> Block<'a> {
        let identity = part.identity(&["id"]);
        let provider = part.provider();
        let known = identity
            .as_deref()
            .is_some_and(|identity| self.redacted.contains(identity));
        Block {
            block_kind,
            redacted: block_kind == BlockKind::Reasoning && (provider.redacted || known),
            identity,
            provider,
        }
    }
}
