//! Rows: whole events one after the other that fit known envelopes, of one item or of several that take turns.
//!
//! What they bring is found first, for a few dozen of them, and their texts are looked at together. Then each goes where
//! the one of its envelope before it went, as long as it can be nothing but the next piece there. The first that is more
//! than that ends the row, and is left to those who know more.

use super::Envelopes;
use super::form::Envelope;
use crate::sse::Taken;
use crate::texts::{AT_ONCE, LONGEST, Texts};
use crate::wire::{Incoming, Wire};

/// One event of a row: the place of its envelope, its mark if it has a number, and its length.
#[derive(Clone, Copy, Debug, Default)]
struct Brought {
    place: usize,
    numbered: Option<u64>,
    length: usize,
}

impl Envelopes {
    /// Takes the events that `lines` begins with, at most so many. The first that has a number has that one, and each that
    /// follows the next; `numbered` is told of those, with their marks.
    pub(crate) fn row(
        &mut self,
        wire: &mut Wire<'_, '_>,
        lines: &[u8],
        most: usize,
        number: Option<u32>,
        mut numbered: impl FnMut(u32, u64),
    ) -> Taken {
        let (mut taken, mut number) = (Taken::default(), number);
        // One or two are not worth the preparations.
        let likely = self
            .known
            .get(self.last)
            .and_then(|last| self.known.get(last.next));
        let worth = likely
            .is_some_and(|it| wire.assembler.leads(&it.trail) && lines.len() >= it.length() * 3);
        if !worth {
            return taken;
        }
        loop {
            let rest = lines.get(taken.bytes..).unwrap_or_default();
            let mut row = [Brought::default(); AT_ONCE];
            let most = AT_ONCE.min(most - taken.events);
            let texts = self.gather(wire, rest, row.iter_mut().take(most), number);
            let (text, ends) = texts.valid();
            let mut start = 0;
            let mut pieces = ends.iter().map(|end| {
                let piece = text.get(start..*end).unwrap_or_default();
                start = *end;
                piece
            });
            let row = row.get(..ends.len()).unwrap_or_default();
            for run in row.chunk_by(|one, next| one.place == next.place) {
                let place = run.first().map_or(0, |event| event.place);
                let pieces = pieces.by_ref().take(run.len());
                let envelope = self.known.get_mut(place);
                let gone = envelope.map_or(0, |envelope| envelope.more(wire, pieces, true));
                for event in run.iter().take(gone) {
                    if let (Some(mark), Some(of)) = (event.numbered, number) {
                        numbered(of, mark);
                        number = of.checked_add(1);
                    }
                    taken.bytes += event.length;
                }
                if gone > 0 {
                    (self.last, self.fruitless) = (place, 0);
                    taken.events += gone;
                }
                if gone < run.len() {
                    return taken;
                }
            }
            if ends.len() < AT_ONCE {
                return taken;
            }
        }
    }

    /// What the events bring that an input begins with, up to the first that is more than a short text where texts go.
    #[inline]
    fn gather<'r>(
        &self,
        wire: &Wire<'_, '_>,
        lines: &[u8],
        row: impl Iterator<Item = &'r mut Brought>,
        mut number: Option<u32>,
    ) -> Texts {
        let (mut texts, mut last, mut rest) = (Texts::new(), self.last, lines);
        for event in row {
            let likely = self.known.get(last).map(|last| last.next);
            let Some((place, envelope)) = likely.and_then(|at| Some((at, self.known.get(at)?)))
            else {
                break;
            };
            if !wire.assembler.leads(&envelope.trail) {
                break;
            }
            let Some(found) = envelope.fit(Incoming::Lines(rest)) else {
                break;
            };
            let Some(text) = found.bytes.first_chunk::<LONGEST>() else {
                break;
            };
            let in_order = found.number.is_none() || found.number == number;
            if found.escaped || found.text_length >= LONGEST || !in_order {
                break;
            }
            texts.add(text, found.text_length);
            if let Some(found) = found.number {
                number = found.checked_add(1);
            }
            *event = Brought {
                place,
                numbered: found.number.map(|_| found.mark()),
                length: found.length,
            };
            rest = rest.get(found.length..).unwrap_or_default();
            last = place;
        }
        texts
    }
}

impl Envelope {
    /// Gives the next pieces where the one before went: how many, up to the first that may be more than that. `bare`: they
    /// were scanned already, and are nothing but characters of a string.
    #[inline]
    pub(super) fn more<'t>(
        &mut self,
        wire: &mut Wire<'_, '_>,
        pieces: impl Iterator<Item = &'t str>,
        bare: bool,
    ) -> usize {
        let Wire { assembler, out } = wire;
        let trail = &mut self.trail;
        match self.part {
            Some(part) => assembler.more_of_part(out, part.choice, self.whom.sub, pieces, trail),
            None => assembler.more_of_call(out, 0, pieces, bare, trail),
        }
    }
}
