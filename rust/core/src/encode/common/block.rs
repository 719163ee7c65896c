//! Defines one content block, and the trait `BlockWriter`, which each target implements to write blocks.
//!
//! `Blocks` and `SourceBlocks` decide the order of the blocks. The implementations of `BlockWriter` write the bytes.

use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::part_details::Call;
use crate::encode::common::part_details::CallRef;
use crate::encode::common::part_details::CallResult;
use crate::encode::common::part_details::CitedPage;
use crate::encode::common::part_details::Done;
use crate::encode::common::part_details::Kind;
use crate::encode::common::part_details::StandalonePart;
use std::fmt::Debug;

/// One part, and how much of it has already been written.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub(crate) kind: Kind,
    pub(crate) part: u32,
    /// If the source has the same dialect: `at` is the block's index in the source, `sent` is that index if it can be
    /// kept, and `item` is the id of the item that contains the block.
    pub(crate) at: Option<i64>,
    pub(crate) sent: Option<i64>,
    pub(crate) item: Option<String>,
    pub(crate) call_id: String,
    pub(crate) name: String,
    pub(crate) provider_executed: bool,
    /// Id of the block in the output events, set by the `BlockWriter`.
    pub(crate) mark: String,
    /// True if the metadata of the part has been written. The `BlockWriter` sets this field.
    pub(crate) metadata_written: bool,
    /// True if nothing of the call is written until the call is complete.
    pub(crate) held: bool,
    /// The part of the block's text that has already been written.
    pub(crate) out: String,
    /// The part of the block's text that has not been written yet.
    pub(crate) waits: String,
    /// True if the block is in the queue.
    pub(crate) queued: bool,
    /// True for a call that was removed from the queue because an earlier call has not been written yet.
    pub(crate) passed: bool,
    /// True if the upstream reset arguments that were already written, so only the arguments in the final event are
    /// valid.
    pub(crate) frozen: bool,
    /// True if the whole block is written only after its closing event has arrived.
    pub(crate) comes_whole: bool,
    /// The part's closing event, if it arrived while the part had to wait.
    pub(crate) done: Option<Box<Done<'static>>>,
    /// The call's final event, if it arrived while the call had to wait.
    pub(crate) call: Option<Box<Call<'static>>>,
    /// Tool results that arrived before this call was written.
    pub(crate) results: Vec<CallResult<'static>>,
    /// Unknown members of the block's start event, as a JSON object, if the source has the same dialect.
    pub(crate) members: Option<String>,
    /// Number of annotations that were already written.
    pub(crate) cited: usize,
    /// True if an annotation arrived while the block was not open. After a late annotation, all unwritten annotations
    /// are written when the block closes.
    pub(crate) cites_late: bool,
    /// The content of a block that does not belong to a part.
    pub(crate) unmodelled: Option<Box<UnmodelledBlock>>,
}

/// A source's block that no streamweld event represents, as sent. The block waits in the queue while another block is
/// open.
#[derive(Debug, Default)]
pub(crate) struct UnmodelledBlock {
    pub(crate) start: String,
    pub(crate) deltas: Vec<String>,
    pub(crate) is_closed: bool,
}

impl Block {
    /// Creates a block for a part. If the source is in the target's dialect, uses the source's index, item id and
    /// unknown members.
    pub(crate) fn new(context: &mut EncodeContext, part: u32, kind: Kind) -> Block {
        let passed = &mut context.passed;
        let members = passed
            .members
            .take_if(|(index, _)| Some(*index) == passed.at);
        Block {
            kind,
            part,
            members: members.map(|(_, members)| members),
            at: context.passed.at,
            sent: context.passed.index,
            item: context.passed.item_id.clone(),
            ..Block::default()
        }
    }
}

/// A `BlockWriter` (`form`), and the context whose writer receives the output.
pub(crate) struct BlockOutput<'a, F> {
    pub(crate) form: &'a mut F,
    pub(crate) context: &'a mut EncodeContext,
}

/// Writes the blocks of one target. Unless `SIDE_BY_SIDE` is true, a block is opened only after the previous one was
/// closed.
pub(crate) trait BlockWriter: Debug + Send {
    /// True if the closing event of a call repeats the arguments, so that clients use those arguments instead of the
    /// streamed ones.
    const CORRECTS: bool;
    /// True if the target can represent calls that the client does not run, and their results.
    const RUNS_CALLS: bool;
    /// True if clients of the dialect accept several open blocks, which a source of the same dialect may send.
    const SIDE_BY_SIDE: bool;
    /// True if a cited page is written inside the open text block, so that a page never waits until a call ends.
    const CITES_IN_TEXT: bool = false;

    /// Writes the start event of a block. `done` is the closing event of the part, if that event has already arrived.
    fn open(&mut self, context: &mut EncodeContext, block: &mut Block, done: Option<&Done<'_>>);

    /// Writes the next, non-empty piece of the block's text or arguments.
    fn piece(&mut self, context: &mut EncodeContext, block: &Block, text: &str);

    /// Writes the end of a block. `done` is `None` if the part has not ended, for example because another part
    /// interrupts it.
    fn close(&mut self, context: &mut EncodeContext, block: &mut Block, done: Option<&Done<'_>>);

    /// Writes the content of the part's closing event that `close` did not write. This method is called once for each
    /// part, after the part's last block, if any, was closed.
    fn over(&mut self, context: &mut EncodeContext, block: &mut Block, done: &Done<'_>);

    /// Returns true if a part that ended without text still needs a block.
    fn needs_empty_block(
        &mut self,
        context: &mut EncodeContext,
        block: &Block,
        done: &Done<'_>,
    ) -> bool;

    /// Writes the end of an open call. The call may be incomplete. `text` contains the call's arguments. Returns false
    /// if the block must stay open until the response ends.
    fn close_call(
        &mut self,
        context: &mut EncodeContext,
        block: &Block,
        call: &Call<'_>,
        text: &str,
    ) -> bool;

    /// Writes all events of a complete call.
    fn whole_call(&mut self, context: &mut EncodeContext, call: &Call<'_>);

    /// Writes a source, a file, or a tool result. `call` is the call that a tool result belongs to, if that call was
    /// written.
    fn write_standalone(
        &mut self,
        context: &mut EncodeContext,
        what: &StandalonePart<'_>,
        call: Option<CallRef<'_>>,
    );

    /// Writes a page that the source cites while this text block is open. Does nothing in dialects that write pages
    /// outside of blocks.
    fn cite_page(&mut self, _context: &mut EncodeContext, _block: &Block, _page: &CitedPage<'_>) {}

    /// Writes a block of the same dialect that no streamweld event represents. Does nothing in most dialects, which
    /// have no such blocks.
    fn unmodelled_block(&mut self, _context: &mut EncodeContext, _block: &Block) {}

    /// Handles a block that is still open when a truncated response ends.
    fn broken_off(&mut self, context: &mut EncodeContext, block: &mut Block);
}
