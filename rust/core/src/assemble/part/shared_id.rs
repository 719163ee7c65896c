//! AM3, open: one id was announced on a second index while its call was unfinished. One call, or two that share an id?
//!
//! Keeps what each index brought by itself, beside the joined text of the call, until the joined text breaks (then they were
//! several, if each one's own text is valid) or one of them cannot be JSON (then it is one call). It knows texts and indexes.

use crate::json::Automaton;
use crate::json::Root;
use crate::json::Status;
use crate::model::small_map::List;
use crate::model::small_map::Numbered;

/// What one index brought.
#[derive(Clone, Debug)]
struct Own {
    index: i64,
    data: Vec<u8>,
    automaton: Automaton,
}

impl Own {
    fn is_whole(&self) -> bool {
        self.automaton.status() == Status::Complete
    }
}

impl Numbered for Own {
    type Number = i64;

    fn number(&self) -> i64 {
        self.index
    }
}

/// The texts by index, in order of announcement.
#[derive(Clone, Debug, Default)]
pub struct SharedId {
    owns: List<Own>,
    /// How many of them brought text, and how many a whole object.
    filled: usize,
    whole: usize,
    /// It is one call after all.
    pub closed: bool,
}

impl SharedId {
    pub fn new(index: i64, text: &[u8]) -> SharedId {
        let mut fork = SharedId::default();
        fork.announce(index);
        fork.add(Some(index), text);
        fork
    }

    pub fn announce(&mut self, index: i64) {
        self.own(index);
    }

    fn own(&mut self, index: i64) -> &mut Own {
        self.owns.slot(index, || Own {
            index,
            data: Vec::new(),
            automaton: Automaton::new(),
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
        let own = self.own(index);
        let (first, whole) = (own.data.is_empty(), own.is_whole());
        own.data.extend_from_slice(piece);
        let broken = matches!(own.automaton.feed(piece), Status::Broken { .. });
        if broken || !matches!(own.automaton.root(), Some(Root::Object) | None) {
            return self.close();
        }
        let is_whole = own.is_whole();
        self.filled += usize::from(first);
        self.whole = self.whole + usize::from(is_whole) - usize::from(whole);
    }

    pub fn close(&mut self) {
        self.closed = true;
        self.owns.clear();
    }

    /// Two indexes or more brought text, and each one's own is valid.
    pub fn divides(&self) -> bool {
        !self.closed && self.filled > 1
    }

    /// The same, and each is a whole object.
    pub fn divides_whole(&self) -> bool {
        self.divides() && self.whole == self.filled
    }

    /// Two indexes or more brought text, and at least one is a whole object.
    pub fn divides_in_part(&self) -> bool {
        self.divides() && self.whole > 0
    }

    pub fn texts(&self) -> Vec<(i64, Vec<u8>)> {
        self.owns
            .iter()
            .map(|own| (own.index, own.data.clone()))
            .collect()
    }
}
