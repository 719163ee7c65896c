//! Caches where the last piece for an address was appended, so that the fast paths can append the next piece without a
//! lookup.

use crate::assemble::part::item::PartPosition;
/// Counts the changes to choices, so that a route that was cached before a change is not used after the change.
#[derive(Debug, Default)]
pub(crate) struct ChangeCounter {
    /// Counts the changes after which an address may identify another part or call. Pieces that only extend text do not
    /// count.
    pub(crate) routes: u64,
    /// Counts the changes after which the rules may treat the next piece differently. As long as this number does not
    /// change, the next piece can be appended to a part or call in the same way as the previous piece.
    pub(crate) rules: u64,
}
impl ChangeCounter {
    #[inline]
    pub(crate) fn pass(&mut self) {
        self.routes += 1;
        self.rules += 1;
    }
}
/// Where the previous piece for an address was appended, and the counter values at that time. The default value matches
/// nothing.
#[derive(Clone, Copy, Debug)]
pub struct RouteCache {
    pub(crate) routes: u64,
    pub(crate) part_position: PartPosition,
    /// The value of `ChangeCounter::rules` when a fast path last appended a piece.
    pub(crate) rules: u64,
}
impl Default for RouteCache {
    fn default() -> RouteCache {
        RouteCache {
            routes: u64::MAX,
            part_position: PartPosition { item: 0, one: 0 },
            rules: u64::MAX,
        }
    }
}
/// Several consecutive pieces of text for one part or call.
#[derive(Clone, Copy, Debug)]
pub struct PieceRun<'t> {
    /// A text that contains the pieces, one after the other, from `start` to `end`.
    pub(crate) texts: &'t str,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The offset in `texts` at which each piece ends.
    pub(crate) ends: &'t [usize],
}
impl<'t> PieceRun<'t> {
    #[inline]
    pub fn new(texts: &'t str, start: usize, ends: &'t [usize]) -> PieceRun<'t> {
        let end = ends.last().copied().unwrap_or(start);
        PieceRun {
            texts,
            start,
            end,
            ends,
        }
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    #[inline]
    pub fn end(&self) -> usize {
        self.end
    }

    /// Returns all pieces as one text.
    #[inline]
    pub(crate) fn text(&self) -> &'t str {
        self.texts.get(self.start..self.end).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &'t [u8] {
        let texts = self.texts.as_bytes();
        texts.get(self.start..self.end).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &'t str> + use<'t> {
        let (texts, mut start) = (self.texts, self.start);
        self.ends.iter().map(move |end| {
            let piece = texts.get(start..*end).unwrap_or_default();
            start = *end;
            piece
        })
    }

    #[inline]
    pub(crate) fn last_length(&self) -> usize {
        let before = match self.ends {
            [.., before, _] => *before,
            _ => self.start,
        };
        self.end - before
    }
}
/// How many pieces were appended, and to which part. The caller emits their deltas.
#[derive(Clone, Copy, Debug, Default)]
pub struct Appended {
    pub count: usize,
    pub part: u32,
}
