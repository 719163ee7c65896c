//! The two readings of a text that its fragments may confirm or refute while it grows: cumulative (A4') and doubled (A5').
//!
//! Both start out possible and a conformant stream refutes both at its second fragment. They know fragments only.

use crate::json::Automaton;
use crate::model::spec::Code;

/// A4': every fragment began with the one before.
#[derive(Clone, Debug)]
pub struct Cumulative {
    pub alive: bool,
    /// ... and one of them was longer.
    pub grown: bool,
    /// A4 was seen: a fragment that begins with the text replaces it.
    pub follows: bool,
    pub said: bool,
}

impl Default for Cumulative {
    fn default() -> Cumulative {
        Cumulative {
            alive: true,
            grown: false,
            follows: false,
            said: false,
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

    /// The diagnostic, the first time.
    pub fn say(&mut self) -> Option<Code> {
        let said = std::mem::replace(&mut self.said, true);
        (!said).then_some(Code::ARGS_CUMULATIVE)
    }
}

/// One of each pair of fragments.
#[derive(Clone, Debug, Default)]
struct Single {
    data: Vec<u8>,
    automaton: Automaton,
    pairs: usize,
}

/// A5': every fragment came twice.
#[derive(Clone, Debug)]
pub struct Doubling {
    pub alive: bool,
    /// A5' was seen: the second of a pair is dropped.
    pub follows: bool,
    /// From the first pair on.
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
    /// The second fragment of a pair, and the one before it.
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

    /// A pair was seen, and nothing else.
    pub fn is_likely(&self) -> bool {
        self.alive && self.single.is_some()
    }

    pub fn drop_it(&mut self) {
        self.alive = false;
        self.single = None;
    }

    /// At the end: one of each, if that is a whole object.
    pub fn whole_at_the_end(&self, count: usize) -> Option<Vec<u8>> {
        let single = self.single.as_deref()?;
        let whole = count % 2 == 0 && single.pairs > 1 && single.automaton.is_complete_object();
        whole.then(|| single.data.clone())
    }

    /// Where an append breaks a text of that length: one of each, if that goes on where the text does not. From then on the
    /// second of a pair is dropped.
    pub fn take_on_break(&mut self, count: usize, length: usize, piece: &[u8]) -> Option<Vec<u8>> {
        let single = self.single.as_deref()?;
        if single.data.len() == length {
            return None; // the second of the only pair: A5 keeps it out
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
