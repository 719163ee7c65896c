//! Detect streams that repeat argument text in every fragment (A4') or send every fragment twice (A5').
//!
//! Before the second fragment, a stream may be of either kind. In a conformant stream, the second fragment rules out
//! both A4' and A5'.

use crate::json::Automaton;
use crate::model::spec::Code;

/// A4': every fragment so far began with the previous one.
#[derive(Clone, Debug)]
pub struct Cumulative {
    pub alive: bool,
    /// At least one fragment was longer than the previous one.
    pub grown: bool,
    /// A4 applied. From now on, a fragment that begins with the text replaces the text.
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

    /// Returns the code to report, or `None` if it was already returned.
    pub fn report_once(&mut self) -> Option<Code> {
        let reported = std::mem::replace(&mut self.reported, true);
        (!reported).then_some(Code::ARGS_CUMULATIVE)
    }
}

/// The text that consists of one fragment of each pair.
#[derive(Clone, Debug, Default)]
struct Single {
    data: Vec<u8>,
    automaton: Automaton,
    pairs: usize,
}

/// A5': every fragment so far arrived twice.
#[derive(Clone, Debug)]
pub struct Doubling {
    pub alive: bool,
    /// A5' applied. From now on, the second fragment of each pair is dropped.
    pub follows: bool,
    /// The text of one fragment of each pair. `None` until the first pair is complete.
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
    /// Compares the second fragment of a pair (`piece`) with the first (`before`).
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

    /// Returns true if there was at least one pair, and all pairs so far had two equal fragments.
    pub fn is_likely(&self) -> bool {
        self.alive && self.single.is_some()
    }

    pub fn drop_it(&mut self) {
        self.alive = false;
        self.single = None;
    }

    /// Returns the text of one fragment of each pair, if it is a complete object and there were at least two pairs.
    /// This method is called when the text ends.
    pub fn whole_at_the_end(&self, count: usize) -> Option<Vec<u8>> {
        let single = self.single.as_deref()?;
        let whole = count % 2 == 0 && single.pairs > 1 && single.automaton.is_complete_object();
        whole.then(|| single.data.clone())
    }

    /// Returns the text of one fragment of each pair, if `piece` can continue this text. From then on, the second
    /// fragment of each pair is dropped. This method is called when the piece would make the whole text, of `length`
    /// bytes, invalid JSON.
    pub fn take_on_break(&mut self, count: usize, length: usize, piece: &[u8]) -> Option<Vec<u8>> {
        let single = self.single.as_deref()?;
        if single.data.len() == length {
            return None; // the piece repeats the only pair's fragment; A5 drops the piece
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
