//! TODO

use crate::assemble::part::item::Spot;
/// How much has happened to the choices.
#[derive(Debug, Default)]
pub(crate) struct ChangeCounter {
    /// But for pieces that only added to a text: as long as it stands, an address leads where it led.
    pub(crate) ways: u64,
    /// Whatever the rules were asked about: as long as it stands, a part or a call that took a piece plainly takes the next.
    pub(crate) rules: u64,
}
impl ChangeCounter {
    #[inline]
    pub(crate) fn pass(&mut self) {
        self.ways += 1;
        self.rules += 1;
    }
}
/// Where the piece before went, and when that was. A new one leads nowhere.
#[derive(Clone, Copy, Debug)]
pub struct RouteCache {
    pub(crate) ways: u64,
    pub(crate) spot: Spot,
    /// When it was seen that plain pieces go there.
    pub(crate) rules: u64,
}
impl Default for RouteCache {
    fn default() -> RouteCache {
        RouteCache {
            ways: u64::MAX,
            spot: Spot { item: 0, one: 0 },
            rules: u64::MAX,
        }
    }
}
/// Pieces in a row for one place.
#[derive(Clone, Copy, Debug)]
pub struct PieceRun<'t> {
    /// Their texts one after the other, among others.
    pub(crate) texts: &'t str,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Where each ends.
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

    /// All of them in one.
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
/// How many pieces were taken, and the part that has them now: to be told as its deltas.
#[derive(Clone, Copy, Debug, Default)]
pub struct Appended {
    pub count: usize,
    pub part: u32,
}
