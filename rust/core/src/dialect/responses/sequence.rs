//! Tells an event that was sent again (P23) from one that only has the same number (P24).
//!
//! A stream that is resumed or replayed repeats events with their `sequence_number`; a gateway that hard-codes the number
//! repeats nothing. So an exact duplicate is dropped as long as no number was ever seen with two contents. Knows no
//! member but that one.

use std::collections::{HashMap, VecDeque};

use super::mark::mark;
use crate::fault::Fault;
use crate::json::members::Slot;
use crate::json::{Kind, Number};
use crate::out::Out;
use crate::spec::Code;

/// A number and a hash each. A replay that reaches further back than this is read as new events, which the ids of items
/// and the terminal output still reconcile.
const WINDOW: usize = 16_384;

/// The numbers of one stream, as long as they can be trusted.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    /// The mark of each event by its number, and the numbers in order of arrival.
    seen: HashMap<i128, u64>,
    order: VecDeque<i128>,
    distrusted: bool,
    said: bool,
}

impl Sequence {
    /// Whether this very event was there before. What is no integer is no number, and says nothing.
    pub(super) fn is_replayed(
        &mut self,
        out: &mut Out<'_>,
        number: Slot<'_>,
        text: &str,
    ) -> Result<bool, Fault> {
        let Some(number) = number.filter(|_| !self.distrusted).and_then(|raw| {
            let token = Number { raw: raw.text };
            let whole = raw.kind == Kind::Number && token.is_integer();
            whole.then(|| raw.text.parse().ok()).flatten().filter(fits)
        }) else {
            return Ok(false);
        };
        let mark = mark(text.as_bytes());
        match self.seen.get(&number) {
            None => {
                if self.order.len() >= WINDOW
                    && let Some(oldest) = self.order.pop_front()
                {
                    self.seen.remove(&oldest);
                }
                self.seen.insert(number, mark);
                self.order.push_back(number);
                Ok(false)
            }
            Some(known) if *known != mark => {
                self.distrusted = true;
                self.seen = HashMap::new();
                self.order = VecDeque::new();
                out.diagnose(Code::SEQUENCE_UNTRUSTED, None, &number.to_string())?;
                Ok(false)
            }
            Some(_) => {
                if !self.said {
                    self.said = true;
                    out.diagnose(Code::SEQUENCE_REPLAYED, None, &number.to_string())?;
                }
                Ok(true)
            }
        }
    }
}

/// Within 64 bits, with a sign or without.
fn fits(number: &i128) -> bool {
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(number)
}
