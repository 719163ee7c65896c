//! One read: how far it was taken, where the block at hand begins in it, and what goes out of it.
//!
//! What passes is not copied as long as nothing was written behind it: it is a run of the input. Knows no block's meaning.

use std::mem;
use std::ops::Range;

/// The bytes of one read, and those that go out before the next.
#[derive(Debug)]
pub(crate) struct Read<'i, 'o> {
    input: &'i [u8],
    /// So much was taken.
    at: usize,
    /// Where the block at hand begins, or goes on.
    block: usize,
    out: &'o mut Vec<u8>,
    /// Goes out behind those.
    run: Range<usize>,
    /// Blocks that wait.
    held: Range<usize>,
}

impl<'i, 'o> Read<'i, 'o> {
    pub(crate) fn new(input: &'i [u8], out: &'o mut Vec<u8>) -> Self {
        Read {
            input,
            at: 0,
            block: 0,
            out,
            run: 0..0,
            held: 0..0,
        }
    }

    /// What was not taken.
    #[inline]
    pub(crate) fn rest(&self) -> &'i [u8] {
        self.input.get(self.at..).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Nothing of the block at hand is of this read.
    #[inline]
    pub(crate) fn is_between(&self) -> bool {
        self.block == self.at
    }

    /// What of the block at hand is of this read.
    pub(crate) fn block(&self) -> &'i [u8] {
        self.input.get(self.block..self.at).unwrap_or_default()
    }

    /// The block at hand is done with.
    #[inline]
    pub(crate) fn begin_block(&mut self) {
        self.block = self.at;
    }

    /// What of the block at hand is of this read goes out as it is.
    #[inline]
    pub(crate) fn pass(&mut self) {
        self.send(self.block..self.at);
        self.block = self.at;
    }

    /// What of the block at hand is of this read waits. What waits before it, and elsewhere, is added to `kept`.
    pub(crate) fn hold(&mut self, kept: &mut Vec<u8>) {
        if self.held.end != self.block {
            self.keep(kept);
            self.held.start = self.block;
        }
        self.held.end = self.at;
        self.block = self.at;
    }

    /// How many bytes of this read wait.
    #[inline]
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// What waits is added to `kept`.
    #[inline]
    pub(crate) fn keep(&mut self, kept: &mut Vec<u8>) {
        let held = mem::take(&mut self.held);
        kept.extend_from_slice(self.input.get(held).unwrap_or_default());
    }

    /// What waits goes out as it is.
    pub(crate) fn pass_held(&mut self) {
        let held = mem::take(&mut self.held);
        if !held.is_empty() {
            self.send(held);
        }
    }

    /// What waits does not go out.
    pub(crate) fn drop_held(&mut self) {
        self.held = 0..0;
    }

    #[inline]
    fn send(&mut self, bytes: Range<usize>) {
        if self.run.end != bytes.start {
            self.settle();
            self.run.start = bytes.start;
        }
        self.run.end = bytes.end;
    }

    /// Other bytes go out, which are then taken from there.
    pub(crate) fn write(&mut self, bytes: &mut Vec<u8>) {
        if !bytes.is_empty() {
            self.settle();
            self.out.append(bytes);
        }
    }

    fn settle(&mut self) {
        let run = mem::take(&mut self.run);
        self.out
            .extend_from_slice(self.input.get(run).unwrap_or_default());
    }

    /// What goes out behind the bytes that were written.
    pub(crate) fn finish(self) -> &'i [u8] {
        self.input.get(self.run).unwrap_or_default()
    }
}
