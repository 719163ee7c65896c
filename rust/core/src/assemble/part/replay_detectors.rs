//! Detectors for replayed argument fragments: cumulative text (A4') and doubled fragments (A5').
//!
//! Both hypotheses are possible at first; a conformant stream refutes both with its second fragment.

use crate::json::Automaton;
use crate::model::spec::Code;

/// A4': every fragment begins with the previous one.
#[derive(Clone, Debug)]
pub struct Cumulative {
    pub alive: bool,
    /// At least one fragment was longer than the previous one.
    pub grown: bool,
    /// A4 applied: from now on, a fragment that begins with the text replaces the text.
    pub follows: bool,
    pub reported: bool,
}

impl Default for Cumulative {
    fn default() -> Cumulative {
        Cumulative {
            alive: true,
            grown: false,
            follows: false,
            reported: false,
        }
    }
}

impl Cumulative {
    pub fn observe(&mut self, before: &[u8], piece: &[u8]) {
        if !self.alive {
            return;
        }
        if !piece.starts_with(before) {
            self.alive = false;
        } else if piece.len() > before.len() {
            self.grown = true;
        }
    }

    /// Returns the diagnostic the first time, then `None`.
    pub fn report_once(&mut self) -> Option<Code> {
        let reported = std::mem::replace(&mut self.reported, true);
        (!reported).then_some(Code::ARGS_CUMULATIVE)
    }
}

/// The text built from one fragment per pair.
#[derive(Clone, Debug, Default)]
struct Single {
    data: Vec<u8>,
    automaton: Automaton,
    pairs: usize,
}

/// A5': every fragment arrives twice.
#[derive(Clone, Debug)]
pub struct Doubling {
    pub alive: bool,
    /// A5' applied: the second fragment of each pair is dropped.
    pub follows: bool,
    /// Set once the first pair is complete.
    single: Option<Box<Single>>,
}

impl Default for Doubling {
    fn default() -> Doubling {
        Doubling {
            alive: true,
            follows: false,
            single: None,
        }
    }
}

impl Doubling {
    /// Compares the second fragment of a pair with the first.
    pub fn observe(&mut self, before: &[u8], piece: &[u8]) {
        if !self.alive {
            return;
        }
        if before != piece {
            self.drop_it();
            return;
        }
        let single = self.single.get_or_insert_default();
        single.data.extend_from_slice(piece);
        single.automaton.feed(piece);
        single.pairs += 1;
    }

    /// Returns true if all fragments so far arrived in pairs.
    pub fn is_likely(&self) -> bool {
        self.alive && self.single.is_some()
    }

    pub fn drop_it(&mut self) {
        self.alive = false;
        self.single = None;
    }

    /// At the end, returns the text of one fragment per pair, if that text is a complete object and there were at least
    /// two pairs.
    pub fn whole_at_the_end(&self, count: usize) -> Option<Vec<u8>> {
        let single = self.single.as_deref()?;
        let whole = count % 2 == 0 && single.pairs > 1 && single.automaton.is_complete_object();
        whole.then(|| single.data.clone())
    }

    /// Called when the piece would make the full text invalid JSON; `length` is the length of that text. Returns the
    /// text of one fragment per pair if the piece can continue it. From then on, the second fragment of each pair is
    /// dropped.
    pub fn take_on_break(&mut self, count: usize, length: usize, piece: &[u8]) -> Option<Vec<u8>> {
        let single = self.single.as_deref()?;
        if single.data.len() == length {
            return None; // the second fragment of the only pair: A5 drops it
        }
        let second = count % 2 == 0;
        let mut automaton = single.automaton;
        if !second {
            automaton.feed(piece);
        }
        if automaton.is_broken() {
            return None;
        }
        let mut data = self.single.take()?.data;
        if !second {
            data.extend_from_slice(piece);
        }
        self.follows = true;
        self.alive = false;
        Some(data)
    }
}
