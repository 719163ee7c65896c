//! Selects the order in which parts are written: one block after another, or as a source of the same dialect sent them.

use crate::encode::common::block::BlockOutput;
use crate::encode::common::block::BlockWriter;
use crate::encode::common::sequential_blocks::Blocks;
use crate::encode::common::source_blocks::SourceBlocks;
use crate::model::event::Event;

/// Writes the parts of one response in one of two orders.
#[derive(Debug)]
pub(crate) enum PartOrder {
    Sequential(Blocks),
    AsSent(SourceBlocks),
}

impl Default for PartOrder {
    fn default() -> PartOrder {
        PartOrder::Sequential(Blocks::default())
    }
}

impl PartOrder {
    /// Creates the order that a source in the same dialect uses.
    pub(crate) fn as_sent() -> PartOrder {
        PartOrder::AsSent(SourceBlocks::default())
    }

    /// Returns the blocks in the source's order, or `None` if the source has another dialect.
    pub(crate) fn of_source(&mut self) -> Option<&mut SourceBlocks> {
        match self {
            PartOrder::Sequential(_) => None,
            PartOrder::AsSent(source_blocks) => Some(source_blocks),
        }
    }

    pub(crate) fn event<F: BlockWriter>(&mut self, to: &mut BlockOutput<'_, F>, event: &Event<'_>) {
        match self {
            PartOrder::Sequential(blocks) => blocks.event(to, event),
            PartOrder::AsSent(source_blocks) => source_blocks.event(to, event),
        }
    }

    /// Records a piece of text without writing it, because its original bytes were sent. Returns false and changes
    /// nothing if the block is not open or its deltas are not written.
    pub(crate) fn keep(&mut self, part: u32, text: &str) -> bool {
        match self {
            PartOrder::Sequential(_) => false, // nothing passes through in this order
            PartOrder::AsSent(source_blocks) => source_blocks.keep(part, text),
        }
    }

    pub(crate) fn finish<F: BlockWriter>(&mut self, to: &mut BlockOutput<'_, F>) {
        match self {
            PartOrder::Sequential(blocks) => blocks.finish(to),
            PartOrder::AsSent(source_blocks) => source_blocks.finish(to),
        }
    }

    pub(crate) fn abandon<F: BlockWriter>(&mut self, to: &mut BlockOutput<'_, F>) {
        match self {
            PartOrder::Sequential(blocks) => blocks.abandon(to),
            PartOrder::AsSent(source_blocks) => source_blocks.abandon(to),
        }
    }

    /// Returns true if `finish` would close a truncated call without arguments, which clients would run.
    pub(crate) fn has_empty_cut_call(&self) -> bool {
        match self {
            PartOrder::Sequential(_) => false, // a call is opened with the first piece of its arguments
            PartOrder::AsSent(source_blocks) => source_blocks.has_empty_cut_call(),
        }
    }

    /// Returns the number of written calls that the client must run.
    pub(crate) fn client_calls(&self) -> usize {
        match self {
            PartOrder::Sequential(blocks) => blocks.client_calls,
            PartOrder::AsSent(source_blocks) => source_blocks.client_calls,
        }
    }

    /// Returns true if a call was omitted because its result arrived.
    pub(crate) fn answered(&self) -> bool {
        matches!(self, PartOrder::Sequential(blocks) if blocks.answered)
    }

    /// Returns true if the upstream changed or retracted content that was already written. The target cannot express a
    /// change of written content.
    pub(crate) fn contradicted(&self) -> bool {
        match self {
            PartOrder::Sequential(blocks) => blocks.contradicted,
            PartOrder::AsSent(source_blocks) => source_blocks.contradicted,
        }
    }
}
