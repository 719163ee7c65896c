//! Stores facts about the current block. The repairer uses these facts to decide whether the block is sent unchanged.

use crate::model::event::WireFact;
use crate::model::fault::Fault;
use crate::repair::payload_edits::PayloadEdits;

/// Facts about one block.
#[derive(Debug)]
pub(crate) struct BlockFacts {
    /// True if clients of the dialect would misread the block.
    pub(crate) misread: bool,
    /// The first recorded reason why the block cannot pass unchanged.
    pub(crate) why: Option<&'static str>,
    /// True if a diagnostic already reports why the block cannot pass unchanged.
    mended: bool,
    /// The event name to add to the block, because clients require a name.
    pub(crate) name: Option<&'static str>,
    /// True if `object` must be added to the chunk in the block.
    pub(crate) untyped: bool,
    /// The edits after which clients accept the payload of the block.
    pub(crate) edits: PayloadEdits,
    /// The reason why an opening event must be inserted before the block.
    pub(crate) unopened: Option<&'static str>,
    /// True if a payload of the block produced no event and clients do not expect such a payload.
    pub(crate) emptied: bool,
    /// True if the block produced an event.
    pub(crate) has_events: bool,
    /// True as long as the block has produced only pieces of text and sequence numbers.
    pub(crate) quiet: bool,
    /// True if every event in the block may pass after a rewritten block. This field is updated only while the stream
    /// is being rewritten.
    pub(crate) plain: bool,
    /// True if the block contains a new finish reason or new token counts.
    pub(crate) counts: bool,
}

impl Default for BlockFacts {
    fn default() -> BlockFacts {
        BlockFacts {
            misread: false,
            why: None,
            mended: false,
            name: None,
            untyped: false,
            edits: PayloadEdits::default(),
            unopened: None,
            emptied: false,
            has_events: false,
            quiet: true,
            plain: true,
            counts: false,
        }
    }
}

impl BlockFacts {
    /// Records that clients would misread the block, and why. Only the first reason is kept.
    #[cold]
    pub(crate) fn mark_misread(&mut self, why: &'static str) {
        self.misread = true;
        self.why.get_or_insert(why);
    }

    /// Records that clients would misread the block, for a reason that a diagnostic already reports.
    pub(crate) fn mend(&mut self) {
        (self.mended, self.misread) = (true, true);
    }

    /// Returns the first recorded reason, or `None` if there is no reason or a diagnostic already reports it.
    pub(crate) fn reason(&self) -> Option<&'static str> {
        self.why.filter(|_| !self.mended)
    }

    /// Records a wire fact that affects how clients interpret the block. Returns false for other wire facts.
    pub(crate) fn record_fact(&mut self, fact: WireFact<'_>) -> bool {
        match fact {
            WireFact::Misread(why) => self.mark_misread(why),
            WireFact::Named(name) => self.name = Some(name),
            WireFact::Unopened(why) => {
                self.unopened = Some(why);
                self.why.get_or_insert(why);
            }
            WireFact::Untyped => self.untyped = true,
            WireFact::Edited(edit) => self.edits.add(edit),
            WireFact::Emptied => self.emptied = true,
            WireFact::LeftOut(why) => {
                self.emptied = true;
                self.why.get_or_insert(why);
            }
            WireFact::Mended { emptied: true } => (self.mended, self.emptied) = (true, true),
            WireFact::Mended { emptied: false } => self.mend(),
            _ => return false,
        }
        true
    }
}

pub(crate) type ParseResult = Result<(), Fault>;
