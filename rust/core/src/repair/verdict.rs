//! Collects facts about the current block that determine whether it is sent unchanged.
//!
//! The repairer makes the actual decision.

use crate::model::event::WireFact;
use crate::model::fault::Fault;

/// Facts about one block.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// True if clients of the dialect would misread the block.
    pub(crate) misread: bool,
    /// The first reason for not passing the block unchanged, unless a diagnostic already reports the reason.
    why: Option<&'static str>,
    /// True if a diagnostic already reports why the block cannot pass unchanged.
    mended: bool,
    /// The event name that must be added for a payload in the block.
    pub(crate) name: Option<&'static str>,
    /// True if `object` must be added to the chunk in the block.
    pub(crate) untyped: bool,
    /// The reason why an opening event must be inserted before the block.
    pub(crate) unopened: Option<&'static str>,
    /// True if the block contains a payload that clients do not expect and that produced no event.
    pub(crate) emptied: bool,
    /// True if the block produced an event.
    pub(crate) brought: bool,
    /// True if the block produced only pieces of text and a sequence number.
    pub(crate) quiet: bool,
    /// True if every event in the block may pass after a rewritten block. Updated only while the stream is being
    /// rewritten.
    pub(crate) plain: bool,
    /// True if the block contains a new finish reason or new token counts.
    pub(crate) counts: bool,
}

impl Default for Verdict {
    fn default() -> Verdict {
        Verdict {
            misread: false,
            why: None,
            mended: false,
            name: None,
            untyped: false,
            unopened: None,
            emptied: false,
            brought: false,
            quiet: true,
            plain: true,
            counts: false,
        }
    }
}

impl Verdict {
    /// Marks the block as misread by clients, for this reason.
    #[cold]
    pub(crate) fn mark_misread(&mut self, why: &'static str) {
        self.misread = true;
        self.why.get_or_insert(why);
    }

    /// Marks the block as misread by clients, for a reason that a diagnostic already reports.
    pub(crate) fn mend(&mut self) {
        (self.mended, self.misread) = (true, true);
    }

    /// Returns why the block is rewritten, if no diagnostic reports the reason.
    pub(crate) fn reason(&self) -> Option<&'static str> {
        self.why.filter(|_| !self.mended)
    }

    /// Records a wire fact that affects how clients interpret the payload. Returns false for other wire facts.
    pub(crate) fn record_fact(&mut self, fact: WireFact<'_>) -> bool {
        match fact {
            WireFact::Misread(why) => self.mark_misread(why),
            WireFact::Named(name) => self.name = Some(name),
            WireFact::Unopened(why) => {
                self.unopened = Some(why);
                self.why.get_or_insert(why);
            }
            WireFact::Untyped => self.untyped = true,
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
