//! Stores facts about the wire format that events do not contain, until their blocks have passed through.

use crate::encode::common::passed_through::PassedThrough;
use crate::model::event::WireFact;
use crate::model::small_map::Set;

/// The wire facts of one stream.
#[derive(Debug, Default)]
pub(crate) struct WireFacts {
    /// Facts from blocks that have not passed through yet.
    queued: Vec<QueuedFact>,
    /// Items that ended in blocks that have not passed through yet.
    items: Vec<(i64, String)>,
    /// The response id from the opening event, or `Some(None)` if that event has no id. `None` if there is no opening
    /// event.
    created: Option<Option<String>>,
    /// Indexes of items whose opening event did not start a part.
    announced: Set<i64>,
    /// Choices for which a finish reason was received.
    reasons: Set<i32>,
    /// Number of received payloads with token counts, and how many of them have passed through.
    counted: u64,
    counts_passed: u64,
    /// Sequence number of the latest event.
    sequence: Option<i128>,
}

#[derive(Clone, Copy, Debug)]
enum QueuedFact {
    Choice(i32),
    Announced(i64),
    Closed(u32),
    Ended(u32),
    Reason(i32),
}

impl WireFacts {
    /// Records that the item at `index` was opened without a part. Returns false if such an opening was already
    /// recorded for the index.
    pub(crate) fn announce(&mut self, index: i64) -> bool {
        self.queued.push(QueuedFact::Announced(index));
        self.announced.insert(index)
    }

    /// Records the finish reason of a choice. Returns false if the choice already had a finish reason.
    pub(crate) fn reason(&mut self, choice: i32) -> bool {
        let is_new = self.reasons.insert(choice);
        if is_new {
            self.queued.push(QueuedFact::Reason(choice));
        }
        is_new
    }

    pub(crate) fn count(&mut self) {
        self.counted += 1;
    }

    /// Records a fact for which there is no separate method, and ignores all other facts.
    pub(crate) fn record_fact(&mut self, fact: WireFact<'_>) {
        match fact {
            WireFact::Choice(index) => self.queued.push(QueuedFact::Choice(index)),
            WireFact::Closed(part) => self.queued.push(QueuedFact::Closed(part)),
            WireFact::Ended(part) => self.queued.push(QueuedFact::Ended(part)),
            WireFact::Created(id) => self.created = Some(id.map(str::to_owned)),
            WireFact::Sequence(number) => self.sequence = Some(number),
            _ => {}
        }
    }

    /// Stores the output item that ended at `index`, as it was sent.
    pub(crate) fn item(&mut self, index: i64, item: &str) {
        self.items.push((index, item.to_owned()));
    }

    /// Discards the ended items, because no later block passes unchanged.
    pub(crate) fn forget_items(&mut self) {
        self.items.clear();
    }

    /// Returns the sequence number of the latest event, or `None` if no event had one.
    pub(crate) fn number(&self) -> Option<i128> {
        self.sequence
    }

    /// Returns true if the latest token counts passed through.
    pub(crate) fn counts_have_passed(&self) -> bool {
        self.counts_passed > 0 && self.counts_passed == self.counted
    }

    /// Returns the sequence number that the next event must have, or `None` if no event had one.
    #[inline]
    pub(crate) fn next(&self) -> Option<i128> {
        self.sequence.map(|number| number + 1)
    }

    /// Moves the facts to `passed`, because their blocks have passed through. `numbered` is true if the blocks
    /// contained payloads.
    pub(crate) fn pass(&mut self, passed: &mut PassedThrough, numbered: bool) {
        for one in self.queued.drain(..) {
            _ = match one {
                QueuedFact::Choice(index) => passed.choices.insert(index),
                QueuedFact::Announced(index) => {
                    passed.next_index = passed.next_index.max(index.saturating_add(1));
                    passed.announced.insert(index)
                }
                QueuedFact::Closed(part) => passed.closed.insert(part),
                QueuedFact::Ended(part) => {
                    passed.just_ended.push(part);
                    passed.ended.insert(part)
                }
                QueuedFact::Reason(choice) => passed.finished.insert(choice),
            };
        }
        for (index, item) in self.items.drain(..) {
            passed.next_index = passed.next_index.max(index.saturating_add(1));
            passed.items.insert(index, item);
        }
        passed.created.clone_from(&self.created);
        self.counts_passed = self.counted;
        if numbered {
            passed.sequence = self.next();
        }
    }
}
