//! A block of a target whose blocks stand one behind the other, and what such a target does with it.
//!
//! Knows no order: that is `Blocks`'s. Knows no frame: that is the form's.

use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::part_details::Beside;
use crate::encode::common::part_details::Call;
use crate::encode::common::part_details::Done;
use crate::encode::common::part_details::Given;
use crate::encode::common::part_details::Kind;
use crate::encode::common::part_details::Ran;
use std::fmt::Debug;

/// One part, and how much of it was written.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub(crate) kind: Kind,
    pub(crate) part: u32,
    /// Of the source's own: its index on the wire, and the id of its item.
    pub(crate) sent: Option<i64>,
    pub(crate) item: Option<String>,
    pub(crate) call_id: String,
    pub(crate) name: String,
    pub(crate) provider_executed: bool,
    /// The form's own: what the open block is called on the wire.
    pub(crate) mark: String,
    /// The form's own: what hangs on the part was written.
    pub(crate) told: bool,
    /// A call that is written whole, at its close.
    pub(crate) held: bool,
    /// What went out.
    pub(crate) out: String,
    /// What did not.
    pub(crate) waits: String,
    /// It stands in the row.
    pub(crate) queued: bool,
    /// A call that left the row, because one that was announced before it is not written.
    pub(crate) passed: bool,
    /// Its deltas were taken back: only the close speaks for it now.
    pub(crate) frozen: bool,
    /// Nothing is shown of it before its end.
    pub(crate) comes_whole: bool,
    /// Its close, which has to wait.
    pub(crate) done: Option<Box<Done<'static>>>,
    pub(crate) call: Option<Box<Call<'static>>>,
    /// They came before their call was written.
    pub(crate) results: Vec<Given<'static>>,
}

impl Block {
    /// Of a part that opens on the wire of the same dialect.
    pub(crate) fn new(job: &EncodeContext, part: u32, kind: Kind) -> Block {
        Block {
            kind,
            part,
            sent: job.passed.index,
            item: job.passed.item_id.clone(),
            ..Block::default()
        }
    }
}

/// A form, and what it writes with.
pub(crate) struct Pen<'a, F> {
    pub(crate) form: &'a mut F,
    pub(crate) job: &'a mut EncodeContext,
}

/// What a target does with blocks. None is opened before the one before it is closed.
pub(crate) trait Form: Debug + Send {
    /// The close of a call says again, with authority, what its arguments are.
    const CORRECTS: bool;
    /// Calls that somebody else ran, and their results, have a place.
    const RUNS_CALLS: bool;
    /// Its own readers take several open blocks, where a source of its own opens them.
    const SIDE_BY_SIDE: bool;

    /// A block begins. Where its close came already, nothing else will be known of it.
    fn open(&mut self, job: &mut EncodeContext, block: &mut Block, done: Option<&Done<'_>>);

    /// More of its text or arguments, never empty.
    fn piece(&mut self, job: &mut EncodeContext, block: &Block, text: &str);

    /// The block is over; without a close another part only took its place.
    fn close(&mut self, job: &mut EncodeContext, block: &mut Block, done: Option<&Done<'_>>);

    /// Its part is over: what else its close said. Once a part, behind the close of its block if it had one.
    fn over(&mut self, job: &mut EncodeContext, block: &mut Block, done: &Done<'_>);

    /// Whether a part that ended without an open block has still something to write.
    fn is_worth(&mut self, job: &mut EncodeContext, block: &Block, done: &Done<'_>) -> bool;

    /// A call that was opened is whole or cut, `text` is its arguments; false if its block stays open to the end.
    fn close_call(
        &mut self,
        job: &mut EncodeContext,
        block: &Block,
        call: &Call<'_>,
        text: &str,
    ) -> bool;

    /// A call of which nothing was written yet.
    fn whole_call(&mut self, job: &mut EncodeContext, call: &Call<'_>);

    /// A source, a file, or the result of that call.
    fn beside(&mut self, job: &mut EncodeContext, what: &Beside<'_>, call: Option<Ran<'_>>);

    /// The answer ended inside of the block.
    fn broken_off(&mut self, job: &mut EncodeContext, block: &mut Block);
}
