//! What is known of the block at hand, which decides whether it goes out as it was sent.
//!
//! Collects; what it comes to is the repairer's business.

use crate::event::Sign;

/// The facts of one block.
#[derive(Debug)]
pub(super) struct Verdict {
    /// Readers of the dialect would not take it as it was taken.
    pub(super) touched: bool,
    /// The first reason, without a code, for which it does not pass as it is.
    why: Option<&'static str>,
    /// A code says that readers would not expect it.
    mended: bool,
    /// The name that the event of a payload needs.
    pub(super) name: Option<&'static str>,
    /// The opening of an answer has to stand before it, for that reason.
    pub(super) unopened: Option<&'static str>,
    /// It has what they do not expect, and that brought nothing.
    pub(super) emptied: bool,
    /// An event.
    pub(super) brought: bool,
    /// There is nothing to say of it but pieces of texts, and the number of its event.
    pub(super) quiet: bool,
    /// None but texts, in a dialect that numbers nothing.
    pub(super) plain: bool,
    /// Why the answer ends, or what it cost.
    pub(super) counts: bool,
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
    pub(super) fn touch(&mut self, why: &'static str) {
        self.touched = true;
        self.why.get_or_insert(why);
    }

    /// Why the block is written anew, where no code says it.
    pub(super) fn reason(&self) -> Option<&'static str> {
        self.why.filter(|_| !self.mended)
    }

    /// What the sign says of the payload as readers have it; false if it says something else.
    pub(super) fn sign(&mut self, sign: Sign<'_>) -> bool {
        match sign {
            Sign::Touched(why) => self.touch(why),
            Sign::Named(name) => self.name = Some(name),
            Sign::Unopened(why) => {
                self.unopened = Some(why);
                self.why.get_or_insert(why);
            }
            Sign::Emptied => self.emptied = true,
            Sign::Mended { emptied } => {
                self.mended = true;
                self.emptied |= emptied;
                self.touched |= !emptied;
            }
            _ => return false,
        }
        true
    }
}
