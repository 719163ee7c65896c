//! Rows: whole events one after the other that fit known envelopes, of one item or of several that take turns.
//!
//! What they bring is found first, for a few dozen of them, and their texts are looked at together. Then each goes where
//! the one of its envelope before it went, as long as it can be nothing but the next piece there. The first that is more
//! than that ends the row, and is left to those who know more.

use super::Envelopes;
use super::form::Envelope;
use crate::assemble::{Gone, Run};
use crate::event::{DeltaKind, Deltas, Parts};
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
            let (texts, ends) = texts.valid();
            let row = row.get(..ends.len()).unwrap_or_default();
            let mut parts = [0; AT_ONCE];
            let gone = self.give(wire, row, texts, ends, &mut parts);
            for event in row.iter().take(gone) {
                if let (Some(mark), Some(of)) = (event.numbered, number) {
                    numbered(of, mark);
                    number = of.checked_add(1);
                }
                taken.bytes += event.length;
            }
            taken.events += gone;
            if gone < AT_ONCE {
                return taken;
            }
        }
    }

    /// Gives the pieces of a row where those before them went, and tells them: how many, up to the first that may be more
    /// than that or is of another kind.
    #[inline]
    fn give(
        &mut self,
        wire: &mut Wire<'_, '_>,
        row: &[Brought],
        texts: &str,
        ends: &[usize],
        parts: &mut [u32; AT_ONCE],
    ) -> usize {
        let first = row.first().and_then(|event| self.known.get(event.place));
        let Some((kind, choice)) = first.map(Envelope::lane) else {
            return 0;
        };
        let mut gone = 0;
        if kind == DeltaKind::ToolCall {
            let (known, out) = (&self.known, &mut *wire.out);
            let runs = runs(row, texts, ends, 0).map_while(|(place, run)| {
                let envelope = known.get(place).filter(|it| it.part.is_none())?;
                Some((&envelope.trail, run))
            });
            gone = wire.assembler.more_of_calls(out, choice, runs, parts);
        }
        for (place, run) in runs(row, texts, ends, gone) {
            let envelope = self.known.get_mut(place);
            let Some(envelope) = envelope.filter(|it| it.lane() == (kind, choice)) else {
                break;
            };
            let more = envelope.more(wire, run, true);
            for part in parts.iter_mut().skip(gone).take(more.count) {
                *part = more.part;
            }
            gone += more.count;
            if more.count < run.count() {
                break;
            }
        }
        let Some(last) = gone.checked_sub(1).and_then(|last| row.get(last)) else {
            return 0;
        };
        (self.last, self.fruitless) = (last.place, 0);
        let ends = ends.get(..gone).unwrap_or_default();
        let end = ends.last().copied().unwrap_or_default();
        wire.out.emit_all(&Deltas {
            kind,
            choice,
            parts: Parts::Each(parts.get(..gone).unwrap_or_default()),
            texts: texts.get(..end).unwrap_or_default(),
            ends,
        });
        gone
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

/// The pieces of a row but the first so many, in runs that are of one place.
#[inline]
fn runs<'r>(
    row: &'r [Brought],
    texts: &'r str,
    ends: &'r [usize],
    first: usize,
) -> impl Iterator<Item = (usize, Run<'r>)> {
    let (before, mut behind) = ends.split_at_checked(first).unwrap_or_default();
    let mut start = before.last().copied().unwrap_or_default();
    let row = row.get(first..).unwrap_or_default();
    let runs = row.chunk_by(|one, next| one.place == next.place);
    runs.map(move |events| {
        let (ends, others) = behind.split_at_checked(events.len()).unwrap_or_default();
        let run = Run::new(texts, start, ends);
        (behind, start) = (others, run.end());
        let place = events.first().map_or(0, |event| event.place);
        (place, run)
    })
}

impl Envelope {
    /// Which events its pieces become, and of which choice.
    #[inline]
    pub(super) fn lane(&self) -> (DeltaKind, i32) {
        match self.part {
            Some(part) => (part.channel.into(), part.choice),
            None => (DeltaKind::ToolCall, 0),
        }
    }

    /// Gives the next pieces where the one before went: how many, up to the first that may be more than that. `bare`: they
    /// were scanned already, and are nothing but characters of a string.
    #[inline]
    pub(super) fn more(&mut self, wire: &mut Wire<'_, '_>, run: Run<'_>, bare: bool) -> Gone {
        let Wire { assembler, out } = wire;
        let trail = &mut self.trail;
        match self.part {
            Some(part) => assembler.more_of_part(out, part.choice, self.whom.sub, run, trail),
            None => assembler.more_of_call(out, 0, run, bare, trail),
        }
    }
}
