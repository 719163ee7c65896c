//! Buffers the held blocks, and the bytes that are sent instead if the blocks are rewritten.
//!
//! Held blocks either all pass through or are all rewritten. Blocks from the current read stay in the input buffer, and
//! are copied only at the end of the read.

use crate::repair::read_buffer::Read;

/// Consecutive blocks that are held until it is decided whether they pass or are rewritten.
#[derive(Debug, Default)]
pub(crate) struct HeldBlocks {
    any: bool,
    /// Blocks from earlier reads. Blocks from the current read are still in the input buffer of that read.
    blocks: Vec<u8>,
    replacement: Vec<u8>,
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
        self.blocks.len() + read.held() + self.replacement.len()
    }

    /// Holds the current block, or the LF that completes the line ending of the last held block. `begun` contains the
    /// block's bytes from earlier reads.
    pub(crate) fn hold(&mut self, begun: &mut Vec<u8>, read: &mut Read<'_, '_>) {
        self.any = true;
        if !begun.is_empty() {
            self.keep(read);
            self.blocks.append(begun);
        }
        read.hold(&mut self.blocks);
    }

    /// Appends bytes that are sent instead of the held blocks if the blocks are rewritten.
    pub(crate) fn add_replacement(&mut self, bytes: &mut Vec<u8>) {
        self.replacement.append(bytes);
    }

    /// Copies the held bytes of the current read into this buffer.
    #[inline]
    pub(crate) fn keep(&mut self, read: &mut Read<'_, '_>) {
        read.keep(&mut self.blocks);
    }

    /// Sends the held blocks unchanged and discards their replacement.
    pub(crate) fn pass(&mut self, read: &mut Read<'_, '_>) {
        self.any = false;
        self.replacement.clear();
        read.write(&mut self.blocks);
        read.pass_held();
    }

    /// Sends the replacement and discards the held blocks.
    pub(crate) fn send_replacement(&mut self, read: &mut Read<'_, '_>) {
        self.any = false;
        self.blocks.clear();
        read.drop_held();
        read.write(&mut self.replacement);
    }
}
