//! Determines whether a call id that is announced at several indexes (AM3) belongs to one call or to several.
//!
//! The text of each index is collected in addition to the call's joined text. The id belongs to several calls if the
//! joined text is not valid JSON but the text of each index is. The id belongs to one call if the text of any index
//! cannot be JSON.

use crate::json::Automaton;
use crate::json::Root;
use crate::json::Status;
use crate::model::small_map::List;
use crate::model::small_map::Numbered;

/// The text received at one index.
#[derive(Clone, Debug)]
struct IndexText {
    index: i64,
    data: Vec<u8>,
    automaton: Automaton,
}

impl IndexText {
    fn is_whole(&self) -> bool {
        self.automaton.status() == Status::Complete
    }
}

impl Numbered for IndexText {
    type Number = i64;

    fn number(&self) -> i64 {
        self.index
    }
}

/// The text of each index at which the id was announced, in order of announcement.
#[derive(Clone, Debug, Default)]
pub struct SharedId {
    index_texts: List<IndexText>,
    /// Number of indexes with text. `whole` is the number of indexes whose text is a complete object.
    filled: usize,
    whole: usize,
    /// True once all indexes are known to belong to one call. All later text is added to that call and is not collected
    /// by index.
    pub closed: bool,
}

impl SharedId {
    pub fn new(index: i64, text: &[u8]) -> SharedId {
        let mut shared_id = SharedId::default();
        shared_id.announce(index);
        shared_id.add(Some(index), text);
        shared_id
    }

    pub fn announce(&mut self, index: i64) {
        self.index_text(index);
    }

    fn index_text(&mut self, index: i64) -> &mut IndexText {
        self.index_texts.slot(index, || IndexText {
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
        let index_text = self.index_text(index);
        let (first, whole) = (index_text.data.is_empty(), index_text.is_whole());
        index_text.data.extend_from_slice(piece);
        let broken = matches!(index_text.automaton.feed(piece), Status::Broken { .. });
        if broken || !matches!(index_text.automaton.root(), Some(Root::Object) | None) {
            return self.close();
        }
        let is_whole = index_text.is_whole();
        self.filled += usize::from(first);
        self.whole = self.whole + usize::from(is_whole) - usize::from(whole);
    }

    pub fn close(&mut self) {
        self.closed = true;
        self.index_texts.clear();
    }

    /// Returns true if at least two indexes received text, and the text of each index is JSON or the beginning of JSON.
    pub fn divides(&self) -> bool {
        !self.closed && self.filled > 1
    }

    /// Returns true if at least two indexes received text, and the text of each of them is a complete object.
    pub fn divides_whole(&self) -> bool {
        self.divides() && self.whole == self.filled
    }

    /// Returns true if `divides` returns true, and the text of at least one index is a complete object.
    pub fn divides_in_part(&self) -> bool {
        self.divides() && self.whole > 0
    }

    pub fn texts(&self) -> Vec<(i64, Vec<u8>)> {
        self.index_texts
            .iter()
            .map(|index_text| (index_text.index, index_text.data.clone()))
            .collect()
    }
}
