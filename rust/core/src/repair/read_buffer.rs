//! Tracks how much of one read was consumed, where the current block begins, and which bytes are sent.
//!
//! Bytes that pass through are returned as a range of the input and are not copied, unless other bytes are written
//! after them.

use std::mem;
use std::ops::Range;

/// The input bytes of one read, and the output written before the next read.
#[derive(Debug)]
pub(crate) struct Read<'i, 'o> {
    input: &'i [u8],
    /// Number of bytes consumed.
    at: usize,
    /// Offset of the current block in this read, or 0 if the block began in an earlier read.
    block: usize,
    out: &'o mut Vec<u8>,
    /// The range of the input that is sent after the bytes in `out`.
    run: Range<usize>,
    /// The range of the input that is held back.
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

    /// Returns the bytes that have not been consumed yet.
    #[inline]
    pub(crate) fn unread(&self) -> &'i [u8] {
        self.input.get(self.at..).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Returns true if this read contains no bytes of the current block.
    #[inline]
    pub(crate) fn is_between(&self) -> bool {
        self.block == self.at
    }

    /// Returns the bytes of the current block that arrived in this read.
    pub(crate) fn block(&self) -> &'i [u8] {
        self.input.get(self.block..self.at).unwrap_or_default()
    }

    /// Starts the next block at the current position. Drops the bytes of the previous block that were neither sent nor
    /// held.
    #[inline]
    pub(crate) fn begin_block(&mut self) {
        self.block = self.at;
    }

    /// Sends the current block's bytes from this read unchanged.
    #[inline]
    pub(crate) fn pass(&mut self) {
        self.send(self.block..self.at);
        self.block = self.at;
    }

    /// Holds the current block's bytes from this read. If other held bytes do not directly precede the block, moves
    /// those bytes to `kept` first.
    pub(crate) fn hold(&mut self, kept: &mut Vec<u8>) {
        if self.held.end != self.block {
            self.keep(kept);
            self.held.start = self.block;
        }
        self.held.end = self.at;
        self.block = self.at;
    }

    /// Returns how many bytes of this read are held back.
    #[inline]
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Moves the held bytes of this read to `kept`.
    #[inline]
    pub(crate) fn keep(&mut self, kept: &mut Vec<u8>) {
        let held = mem::take(&mut self.held);
        kept.extend_from_slice(self.input.get(held).unwrap_or_default());
    }

    /// Sends the held bytes unchanged.
    pub(crate) fn pass_held(&mut self) {
        let held = mem::take(&mut self.held);
        if !held.is_empty() {
            self.send(held);
        }
    }

    /// Discards the held bytes.
    pub(crate) fn drop_held(&mut self) {
        self.held = 0..0;
    }

    #[inline]
    fn send(&mut self, bytes: Range<usize>) {
        if self.run.end != bytes.start {
            self.flush_run();
            self.run.start = bytes.start;
        }
        self.run.end = bytes.end;
    }

    /// Sends bytes that are not from the input, and leaves `bytes` empty. If `out` is empty, the buffers are swapped to
    /// avoid a copy, because the ending of a response with many open parts can be several megabytes long.
    pub(crate) fn write(&mut self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        self.flush_run();
        if self.out.is_empty() {
            mem::swap(self.out, bytes);
        } else {
            self.out.append(bytes);
        }
    }

    fn flush_run(&mut self) {
        let run = mem::take(&mut self.run);
        self.out
            .extend_from_slice(self.input.get(run).unwrap_or_default());
    }

    /// Returns the bytes of the input that the caller must send after `out`.
    pub(crate) fn finish(self) -> &'i [u8] {
        self.input.get(self.run).unwrap_or_default()
    }
}
