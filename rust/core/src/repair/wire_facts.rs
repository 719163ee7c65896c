//! Facts that the wire carries in addition to its events, kept until their block has passed through.

use crate::encode::common::passed_through::PassedThrough;
use crate::model::event::WireFact;
use crate::model::small_map::Set;

/// One stream's.
#[derive(Debug, Default)]
pub(crate) struct WireFacts {
    /// By blocks that did not pass yet.
    news: Vec<News>,
    /// Items that the wire ended in them.
    items: Vec<(i64, String)>,
    /// The id of the response that the answer opened with.
    created: Option<Option<String>>,
    /// Indexes of items that were opened without a part.
    announced: Set<i64>,
    /// Choices that sent a finish reason.
    reasons: Set<i32>,
    /// How many token counts were sent, and how many of them have passed through.
    counted: u64,
    counts_passed: u64,
    /// The index of an open block that is not a part.
    standing: Option<i64>,
    /// The last number of an event.
    sequence: Option<i128>,
}

#[derive(Clone, Copy, Debug)]
enum News {
    Choice(i32),
    Announced(i64),
    Closed(u32),
    Ended(u32),
    Reason(i32),
}

impl WireFacts {
    /// An item was opened without a part; false if its index is another's.
    pub(crate) fn announce(&mut self, index: i64) -> bool {
        self.news.push(News::Announced(index));
        self.announced.insert(index)
    }

    /// A choice said why it ends; false if it had.
    pub(crate) fn reason(&mut self, choice: i32) -> bool {
        let is_new = self.reasons.insert(choice);
        if is_new {
            self.news.push(News::Reason(choice));
        }
        is_new
    }

    pub(crate) fn count(&mut self) {
        self.counted += 1;
    }

    /// What else a sign says.
    pub(crate) fn sign(&mut self, sign: WireFact<'_>) {
        match sign {
            WireFact::Choice(index) => self.news.push(News::Choice(index)),
            WireFact::Closed(part) => self.news.push(News::Closed(part)),
            WireFact::Ended(part) => self.news.push(News::Ended(part)),
            WireFact::Standing(index) => self.standing = index,
            WireFact::Created(id) => self.created = Some(id.map(str::to_owned)),
            WireFact::Sequence(number) => self.sequence = Some(number),
            _ => {}
        }
    }

    /// The wire ended an item of the output.
    pub(crate) fn item(&mut self, index: i64, item: &str) {
        self.items.push((index, item.to_owned()));
    }

    /// No block passes any more as it was sent.
    pub(crate) fn forget_items(&mut self) {
        self.items.clear();
    }

    /// The number of the event at hand.
    pub(crate) fn number(&self) -> Option<i128> {
        self.sequence
    }

    /// The latest token counts have passed.
    pub(crate) fn counts_have_passed(&self) -> bool {
        self.counts_passed > 0 && self.counts_passed == self.counted
    }

    /// The number that the next event has.
    #[inline]
    pub(crate) fn next(&self) -> Option<i128> {
        self.sequence.map(|number| number + 1)
    }

    /// What was said so far has passed. `numbered`: payloads among it.
    pub(crate) fn pass(&mut self, passed: &mut PassedThrough, numbered: bool) {
        for one in self.news.drain(..) {
            _ = match one {
                News::Choice(index) => passed.choices.insert(index),
                News::Announced(index) => {
                    passed.behind = passed.behind.max(index.saturating_add(1));
                    passed.announced.insert(index)
                }
                News::Closed(part) => passed.closed.insert(part),
                News::Ended(part) => {
                    passed.just_ended.push(part);
                    passed.ended.insert(part)
                }
                News::Reason(choice) => passed.finished.insert(choice),
            };
        }
        for (index, item) in self.items.drain(..) {
            passed.behind = passed.behind.max(index.saturating_add(1));
            passed.items.insert(index, item);
        }
        passed.created.clone_from(&self.created);
        passed.standing = self.standing;
        self.counts_passed = self.counted;
        if numbered {
            passed.sequence = self.next();
        }
    }
}
