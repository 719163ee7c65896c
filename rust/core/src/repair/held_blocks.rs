//! Blocks that wait, and what would be written instead of them.
//!
//! They pass or are written anew all together. What came with the read at hand is not copied before that read is over. Knows
//! no verdict.

use crate::repair::read_buffer::Read;

/// Blocks in a row.
#[derive(Debug, Default)]
pub(crate) struct HeldBlocks {
    any: bool,
    /// Those of earlier reads; the read at hand has the others.
    blocks: Vec<u8>,
    scratch: Vec<u8>,
}

impl HeldBlocks {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        !self.any
    }

    /// Those of earlier reads.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.blocks
    }

    /// How many bytes are kept for them.
    #[inline]
    pub(crate) fn size(&self, read: &Read<'_, '_>) -> usize {
        self.blocks.len() + read.held() + self.scratch.len()
    }

    /// The block at hand waits, or the rest of the last: `begun`, and what is of the read.
    pub(crate) fn block(&mut self, begun: &mut Vec<u8>, read: &mut Read<'_, '_>) {
        self.any = true;
        if !begun.is_empty() {
            self.keep(read);
            self.blocks.append(begun);
        }
        read.hold(&mut self.blocks);
    }

    /// What would be written instead of the block.
    pub(crate) fn instead(&mut self, bytes: &mut Vec<u8>) {
        self.scratch.append(bytes);
    }

    /// The read is over.
    #[inline]
    pub(crate) fn keep(&mut self, read: &mut Read<'_, '_>) {
        read.keep(&mut self.blocks);
    }

    /// They go out as they were sent.
    pub(crate) fn pass(&mut self, read: &mut Read<'_, '_>) {
        self.any = false;
        self.scratch.clear();
        read.write(&mut self.blocks);
        read.pass_held();
    }

    /// They go out as they are written anew.
    pub(crate) fn render(&mut self, read: &mut Read<'_, '_>) {
        self.any = false;
        self.blocks.clear();
        read.drop_held();
        read.write(&mut self.scratch);
    }
}
