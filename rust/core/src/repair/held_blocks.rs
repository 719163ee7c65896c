//! Buffers held blocks and their replacement.
//!
//! Either all held blocks pass through, or all are rewritten. Blocks that arrived in the current read are copied only
//! when that read ends.

use crate::repair::read_buffer::Read;

/// Consecutive held blocks.
#[derive(Debug, Default)]
pub(crate) struct HeldBlocks {
    any: bool,
    /// Blocks from earlier reads. Blocks from the current read are still in the input buffer of that read.
    blocks: Vec<u8>,
    scratch: Vec<u8>,
}

impl HeldBlocks {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        !self.any
    }

    /// Returns the blocks from earlier reads.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.blocks
    }

    /// Returns the number of bytes buffered for held blocks.
    #[inline]
    pub(crate) fn size(&self, read: &Read<'_, '_>) -> usize {
        self.blocks.len() + read.held() + self.scratch.len()
    }

    /// Holds the current block, or the rest of the last held block. `begun`: the bytes of this block from earlier
    /// reads, which precede its bytes from the current read.
    pub(crate) fn block(&mut self, begun: &mut Vec<u8>, read: &mut Read<'_, '_>) {
        self.any = true;
        if !begun.is_empty() {
            self.keep(read);
            self.blocks.append(begun);
        }
        read.hold(&mut self.blocks);
    }

    /// Adds the bytes that would replace the block.
    pub(crate) fn instead(&mut self, bytes: &mut Vec<u8>) {
        self.scratch.append(bytes);
    }

    /// Copies the held blocks of the current read, because that read ends.
    #[inline]
    pub(crate) fn keep(&mut self, read: &mut Read<'_, '_>) {
        read.keep(&mut self.blocks);
    }

    /// Emits the blocks unchanged.
    pub(crate) fn pass(&mut self, read: &mut Read<'_, '_>) {
        self.any = false;
        self.scratch.clear();
        read.write(&mut self.blocks);
        read.pass_held();
    }

    /// Emits the replacement bytes.
    pub(crate) fn render(&mut self, read: &mut Read<'_, '_>) {
        self.any = false;
        self.blocks.clear();
        read.drop_held();
        read.write(&mut self.scratch);
    }
}
