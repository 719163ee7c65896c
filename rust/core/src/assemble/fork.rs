//! AM3, open: one id was announced on a second index while its call was unfinished. One call, or two that share an id?
//!
//! Keeps what each index brought by itself, beside the joined text of the call, until the joined text breaks (then they were
//! several, if each one's own text is valid) or one of them cannot be JSON (then it is one call). It knows texts and indexes.

use crate::json::{Automaton, Root, Status};

/// What one index brought.
#[derive(Clone, Debug)]
struct Own {
    index: i64,
    data: Vec<u8>,
    automaton: Automaton,
}

/// The texts by index, in order of announcement.
#[derive(Clone, Debug, Default)]
pub struct Fork {
    owns: Vec<Own>,
    /// It is one call after all.
    pub closed: bool,
}

impl Fork {
    pub fn new(index: i64, text: &[u8]) -> Fork {
        let mut fork = Fork::default();
        fork.announce(index);
        fork.add(Some(index), text);
        fork
    }

    pub fn announce(&mut self, index: i64) {
        self.own(index);
    }

    /// The place of an index. Few indexes ever share an id, so a scan is the fastest way.
    fn own(&mut self, index: i64) -> usize {
        let known = self.owns.iter().position(|own| own.index == index);
        known.unwrap_or_else(|| {
            self.owns.push(Own {
                index,
                data: Vec::new(),
                automaton: Automaton::new(),
            });
            self.owns.len() - 1
        })
    }

    pub fn add(&mut self, index: Option<i64>, piece: &[u8]) {
        if self.closed || piece.is_empty() {
            return;
        }
        let Some(index) = index else {
            self.close();
            return;
        };
        let at = self.own(index);
        let Some(own) = self.owns.get_mut(at) else {
            return;
        };
        own.data.extend_from_slice(piece);
        let broken = matches!(own.automaton.feed(piece), Status::Broken { .. });
        if broken || !matches!(own.automaton.root(), Some(Root::Object) | None) {
            self.close();
        }
    }

    pub fn close(&mut self) {
        self.closed = true;
        self.owns.clear();
    }

    fn filled(&self) -> impl Iterator<Item = &Own> {
        self.owns.iter().filter(|own| !own.data.is_empty())
    }

    /// Two indexes or more brought text, and each one's own is valid.
    pub fn divides(&self) -> bool {
        !self.closed && self.filled().nth(1).is_some()
    }

    /// The same, and each is a whole object.
    pub fn divides_whole(&self) -> bool {
        self.divides()
            && self
                .filled()
                .all(|own| own.automaton.status() == Status::Complete)
    }

    /// Two indexes or more brought text, and at least one is a whole object.
    pub fn divides_in_part(&self) -> bool {
        let whole = |own: &Own| own.automaton.status() == Status::Complete;
        self.divides() && self.owns.iter().any(whole)
    }

    pub fn texts(&self) -> Vec<(i64, Vec<u8>)> {
        self.owns
            .iter()
            .map(|own| (own.index, own.data.clone()))
            .collect()
    }
}
