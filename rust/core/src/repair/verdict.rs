//! What is known of the block at hand, which decides whether it goes out as it was sent.
//!
//! Collects; what it comes to is the repairer's business.

use crate::model::event::WireFact;
use crate::model::fault::Fault;

/// The facts of one block.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// Readers of the dialect would not take it as it was taken.
    pub(crate) touched: bool,
    /// The first reason, without a code, for which it does not pass as it is.
    why: Option<&'static str>,
    /// A code says that readers would not expect it.
    mended: bool,
    /// The name that the event of a payload needs.
    pub(crate) name: Option<&'static str>,
    /// The opening of an answer has to stand before it, for that reason.
    pub(crate) unopened: Option<&'static str>,
    /// It has what they do not expect, and that brought nothing.
    pub(crate) emptied: bool,
    /// An event.
    pub(crate) brought: bool,
    /// There is nothing to say of it but pieces of texts, and the number of its event.
    pub(crate) quiet: bool,
    /// None but texts, in a dialect that numbers nothing.
    pub(crate) plain: bool,
    /// Why the answer ends, or what it cost.
    pub(crate) counts: bool,
}

impl Default for Verdict {
    fn default() -> Verdict {
        Verdict {
            touched: false,
            why: None,
            mended: false,
            name: None,
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
    /// Readers of the dialect would not take the block as it was taken.
    #[cold]
    pub(crate) fn touch(&mut self, why: &'static str) {
        self.touched = true;
        self.why.get_or_insert(why);
    }

    /// A code says that readers do not expect it.
    pub(crate) fn mend(&mut self) {
        (self.mended, self.touched) = (true, true);
    }

    /// Why the block is written anew, where no code says it.
    pub(crate) fn reason(&self) -> Option<&'static str> {
        self.why.filter(|_| !self.mended)
    }

    /// What the sign says of the payload as readers have it; false if it says something else.
    pub(crate) fn sign(&mut self, sign: WireFact<'_>) -> bool {
        match sign {
            WireFact::Touched(why) => self.touch(why),
            WireFact::Named(name) => self.name = Some(name),
            WireFact::Unopened(why) => {
                self.unopened = Some(why);
                self.why.get_or_insert(why);
            }
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

pub(crate) type Step = Result<(), Fault>;
