//! Distinguishes replayed events from new events that have the same `sequence_number`.
//!
//! A resumed or replayed stream repeats events with their `sequence_number`. A gateway that hard-codes the number uses
//! it for different events. Exact duplicates are therefore dropped until two different events have the same number.

use crate::json::Kind;
use crate::json::Number;
use crate::json::members::Slot;
use crate::model::event::WireFact;
use crate::model::fault::Fault;
use crate::model::output::Output;
use crate::model::spec::Code;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::mem;

/// Number of recent events that are compared, by number and hash. Older events that are replayed count as new events,
/// but the assembler still matches them by item id and terminal output.
const WINDOW: usize = 16_384;

/// Minimum number of hashes by which the capacity of `run` grows.
const STEP: usize = 8;

/// The hash of each event by its number, and the numbers in order of arrival.
#[derive(Debug, Default)]
struct HashesByNumber {
    seen: HashMap<i128, u32>,
    order: VecDeque<i128>,
}

impl HashesByNumber {
    fn keep(&mut self, number: i128, mark: u32) {
        if self.order.len() >= WINDOW
            && let Some(oldest) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
        }
        self.seen.insert(number, mark);
        self.order.push_back(number);
    }
}

/// The sequence numbers of one stream. The numbers are used until one of them proves unreliable.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    /// The number of the first event in `run`, which contains the hashes of consecutive events. `run` is used until the
    /// numbers have a gap, which is rare.
    first: i128,
    run: VecDeque<u32>,
    /// Replaces `run` once the numbers have a gap.
    scattered: Option<Box<HashesByNumber>>,
    distrusted: bool,
    reported: bool,
}

impl Sequence {
    /// Returns the next expected number, or `None` if the numbers are unreliable or have a gap.
    #[inline]
    pub(crate) fn next(&self) -> Option<u32> {
        let counted = !self.run.is_empty() && self.scattered.is_none() && !self.distrusted;
        let next = self.first + self.run.len() as i128;
        u32::try_from(next).ok().filter(|_| counted)
    }

    /// Records consecutive events that were not seen before. `first`: the number of the first event. `marks`: the
    /// hashes of the events.
    #[inline]
    pub(crate) fn go_on(&mut self, first: u32, marks: &[u64]) {
        let room = WINDOW
            .min(self.run.capacity())
            .saturating_sub(self.run.len());
        let (fitting, others) = marks.split_at(room.min(marks.len()));
        self.run.extend(fitting.iter().map(|mark| *mark as u32));
        let others = others.iter().map(|mark| *mark as u32);
        for (number, mark) in (i128::from(first) + fitting.len() as i128..).zip(others) {
            self.keep(number, mark);
        }
    }

    /// Returns true if an event with this number and content has been seen before. `mark`: the hash of the event, which
    /// is the same for equal events.
    pub(crate) fn is_replayed(
        &mut self,
        out: &mut Output<'_>,
        number: Option<i128>,
        mark: impl FnOnce() -> u64,
    ) -> Result<bool, Fault> {
        if let Some(number) = number {
            out.record_fact(WireFact::Sequence(number));
        }
        let Some(number) = number.filter(|_| !self.distrusted) else {
            return Ok(false);
        };
        // Half of the hash is sufficient, because only hashes of events with the same number are compared. In a long
        // stream, these hashes use most of the memory.
        let mark = mark() as u32;
        match self.known(number) {
            None => {
                self.keep(number, mark);
                Ok(false)
            }
            Some(known) if known != mark => {
                *self = Sequence {
                    distrusted: true,
                    ..Sequence::default()
                };
                out.diagnose(Code::SEQUENCE_UNTRUSTED, None, &number.to_string())?;
                Ok(false)
            }
            Some(_) => {
                out.record_fact(WireFact::Emptied);
                if !self.reported {
                    self.reported = true;
                    out.diagnose(Code::SEQUENCE_REPLAYED, None, &number.to_string())?;
                }
                Ok(true)
            }
        }
    }

    #[inline]
    fn known(&self, number: i128) -> Option<u32> {
        if let Some(scattered) = &self.scattered {
            return scattered.seen.get(&number).copied();
        }
        let position = usize::try_from(number - self.first).ok()?;
        self.run.get(position).copied()
    }

    #[inline]
    fn keep(&mut self, number: i128, mark: u32) {
        if let Some(scattered) = &mut self.scattered {
            return scattered.keep(number, mark);
        }
        if self.run.is_empty() {
            self.first = number;
        }
        if number == self.first + self.run.len() as i128 {
            if self.run.len() >= WINDOW {
                self.run.pop_front();
                self.first += 1;
            } else if self.run.len() == self.run.capacity() {
                // Grow the capacity by a quarter instead of doubling it, to save memory.
                self.run.reserve_exact((self.run.len() / 4).max(STEP));
            }
            self.run.push_back(mark);
            return;
        }
        let scattered = self.scattered.insert(Box::default());
        for (number, mark) in (self.first..).zip(mem::take(&mut self.run)) {
            scattered.keep(number, mark);
        }
        scattered.keep(number, mark);
    }
}

/// Returns the sequence number, or `None` if it is not a 64-bit integer.
pub(crate) fn number(slot: Slot<'_>) -> Option<i128> {
    let raw = slot.filter(|raw| raw.kind == Kind::Number)?;
    let whole = Number { raw: raw.text }.is_integer();
    whole.then(|| raw.text.parse().ok()).flatten().filter(fits)
}

/// Returns true if the number fits in 64 bits, signed or unsigned.
fn fits(number: &i128) -> bool {
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For any order of the numbers, lookups return the same results as in a list in order of arrival.
    #[test]
    fn counted_without_a_gap_or_not() {
        let window = WINDOW as i128;
        let runs: [&[(i128, i128)]; 5] = [
            &[(0, window + 10)],
            &[(5, 20), (19, 1), (7, 3), (40, 5)],
            &[(0, window), (window, 3), (0, 2), (window + 3, 4)],
            &[(100, 10), (0, window + 5), (100, 10)],
            &[(-3, 8), (i128::from(u64::MAX), 1)],
        ];
        for run in runs {
            let mut sequence = Sequence::default();
            let mut model: VecDeque<(i128, u32)> = VecDeque::new();
            let numbers = run.iter().flat_map(|(from, count)| *from..from + count);
            for (number, mark) in numbers.zip(1..) {
                let known = model.iter().find(|(known, _)| *known == number);
                let known = known.map(|(_, mark)| *mark);
                assert_eq!(sequence.known(number), known, "{number} of {run:?}");
                if known.is_none() {
                    sequence.keep(number, mark);
                    model.push_back((number, mark));
                    if model.len() > WINDOW {
                        model.pop_front();
                    }
                }
            }
        }
    }
}
