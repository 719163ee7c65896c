//! Handles payloads that gateways send outside any SSE field (stray payloads). Stray payloads are emitted only on
//! request.
//!
//! A stray line is neither a field nor a comment, and its first byte after blanks is `{`, `[`, or `<`. The lines
//! between a stray line and the next blank line, except fields, belong to the same stray payload. A stray payload and
//! the frame of its block are emitted in the order in which they began. If the data of the frame is empty, only the
//! stray payload is emitted.
//!
//! A stray line that ends in `}` or `]` is emitted immediately and separately, if no stray line is pending and the
//! block has no data yet. A stream with one document per line therefore does not wait for a blank line.

use crate::model::fault::Fault;
use crate::sse::Framer;
use crate::sse::Item;
use crate::sse::Receiver;
use crate::sse::Stray;
use crate::sse::fields::give_back;
use crate::sse::fields::is_blank;

impl Framer {
    /// Adds a line to the open stray payload, or starts a stray payload if the line begins like a payload. Otherwise,
    /// returns false.
    pub(crate) fn begin_stray(&mut self, line: &[u8], at: u64) -> bool {
        if self.has_stray {
            self.alone = false;
            return true;
        }
        let blanks = line.iter().take_while(|byte| is_blank(Some(byte))).count();
        let begins = matches!(line.get(blanks), Some(b'{' | b'[' | b'<'));
        if begins {
            self.open_block(at);
            self.has_stray = true;
            // A size of 1 means that there is only one data line, which is empty.
            self.alone = self.size <= 1;
            self.strayed = true;
            self.seldom.stray_offset = at;
        }
        begins
    }

    /// Emits a stray payload of one line immediately.
    ///
    /// The payload is `line`, or the contents of the buffer if the line arrived in several reads.
    pub(crate) fn stray_at_once<R: Receiver>(
        &mut self,
        line: Option<&[u8]>,
        on: &mut R,
    ) -> Result<(), Fault> {
        let stray = Stray {
            data: line.unwrap_or(&self.seldom.stray),
            offset: self.seldom.stray_offset,
            ordinal: self.ordinal,
            has_data_lines: self.has_data,
        };
        self.ordinal += 1;
        let result = on.item(Item::Stray(stray));
        let length = stray.data.len();
        self.size = self.size.saturating_sub(length + 1);
        give_back(&mut self.seldom.stray);
        self.has_stray = false;
        // An `event` or `id` line before the stray line applies to data that has not arrived yet.
        if self.block_offset == Some(self.seldom.stray_offset) {
            self.block_offset = None;
        }
        result
    }
}
