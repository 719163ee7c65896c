//! In which order the parts of an answer are written: in a row, or in the order of a source that speaks the same dialect.

use crate::encode::common::block::Form;
use crate::encode::common::block::Pen;
use crate::encode::common::sequential_blocks::Blocks;
use crate::encode::common::source_blocks::SourceBlocks;
use crate::model::event::Event;

/// The parts of one answer.
#[derive(Debug)]
pub(crate) enum Order {
    Row(Blocks),
    Own(SourceBlocks),
}

impl Default for Order {
    fn default() -> Order {
        Order::Row(Blocks::default())
    }
}

impl Order {
    /// Of a source that speaks the dialect that is written.
    pub(crate) fn own() -> Order {
        Order::Own(SourceBlocks::default())
    }

    pub(crate) fn event<F: Form>(&mut self, to: &mut Pen<'_, F>, event: &Event<'_>) {
        match self {
            Order::Row(blocks) => blocks.event(to, event),
            Order::Own(direct) => direct.event(to, event),
        }
    }

    /// Keeps a piece of an open block; false, and nothing was done, if it is none.
    pub(crate) fn keep(&mut self, part: u32, text: &str) -> bool {
        match self {
            Order::Row(_) => false, // nothing passes there
            Order::Own(direct) => direct.keep(part, text),
        }
    }

    pub(crate) fn finish<F: Form>(&mut self, to: &mut Pen<'_, F>) {
        match self {
            Order::Row(blocks) => blocks.finish(to),
            Order::Own(direct) => direct.finish(to),
        }
    }

    pub(crate) fn abandon<F: Form>(&mut self, to: &mut Pen<'_, F>) {
        match self {
            Order::Row(blocks) => blocks.abandon(to),
            Order::Own(direct) => direct.abandon(to),
        }
    }

    /// How many calls were written that are the client's to run.
    pub(crate) fn client_calls(&self) -> usize {
        match self {
            Order::Row(blocks) => blocks.client_calls,
            Order::Own(direct) => direct.client_calls,
        }
    }

    /// A call was left out because its answer came.
    pub(crate) fn answered(&self) -> bool {
        matches!(self, Order::Row(blocks) if blocks.answered)
    }

    /// What went out was taken back, and the target cannot.
    pub(crate) fn contradicted(&self) -> bool {
        match self {
            Order::Row(blocks) => blocks.contradicted,
            Order::Own(direct) => direct.contradicted,
        }
    }
}
