//! The quick ways of items: the next plain piece for a part or a call of which it is known where the piece before it went.
//!
//! `turn` counts everything that happens to a choice but such pieces: as long as it stands, an address leads where it led.
//! Each way does what the rules in `items` and `items_calls` do with such a piece, or, where anything else is the case,
//! nothing at all; then the rules decide. They know no rule of their own, and no dialect.

use super::book::{Purpose, usable};
use super::call::Call;
use super::choice::Choice;
use super::item::{Item, ItemPart};
use super::item_parts::Spot;
use super::items::{find, known_part};
use super::shared::Desk;
use super::swift::is_shown;
use super::{Assembler, Step};
use crate::delta::{Address, ItemKind, PartAt};
use crate::event::{Delta, Event};
use crate::json::Text;
use crate::out::Out;

/// How much has happened to the choices.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// But for pieces that only added to a text: as long as it stands, an address leads where it led.
    ways: u64,
    /// Whatever the rules were asked about: as long as it stands, a part or a call that took a piece plainly takes the next.
    rules: u64,
}

impl Turn {
    #[inline]
    pub(super) fn pass(&mut self) {
        self.ways += 1;
        self.rules += 1;
    }
}

/// Where the piece before went, and when that was. A new one leads nowhere.
#[derive(Clone, Copy, Debug)]
pub struct Trail {
    ways: u64,
    spot: Spot,
    /// When it was seen that plain pieces go there.
    rules: u64,
}

impl Default for Trail {
    fn default() -> Trail {
        Trail {
            ways: u64::MAX,
            spot: Spot { item: 0, one: 0 },
            rules: u64::MAX,
        }
    }
}

/// Where an address leads, and how much there is beside it.
#[derive(Debug, PartialEq, Eq)]
struct View {
    spot: Spot,
    sizes: [usize; 6],
}

impl Assembler {
    /// A piece of a part's text, as `part_text`, which finds the way for those that follow.
    pub fn go_on_with_part(
        &mut self,
        out: &mut Out<'_>,
        at: PartAt<'_>,
        text: Text<'_>,
        trail: &mut Trail,
    ) -> Step {
        let ways = self.turn.ways;
        let before = self.view_part(out, &at);
        self.part_text(out, at, text, None)?;
        let after = self.view_part(out, &at);
        *trail = self.trail(ways, before, after);
        Ok(())
    }

    /// A piece of a call's arguments, as `call_text`, which finds the way for those that follow.
    pub fn go_on_with_call(
        &mut self,
        out: &mut Out<'_>,
        choice: i32,
        address: Address<'_>,
        text: Text<'_>,
        trail: &mut Trail,
    ) -> Step {
        let ways = self.turn.ways;
        let before = self.view_call(out, choice, &address);
        self.call_text(out, choice, address, text, None, None)?;
        let after = self.view_call(out, choice, &address);
        *trail = self.trail(ways, before, after);
        Ok(())
    }

    /// The trail of a piece that changed nothing but a text: so will the next one, and every other trail stays what it is.
    fn trail(&mut self, ways: u64, before: Option<View>, after: Option<View>) -> Trail {
        let after = after.filter(|after| before.as_ref() == Some(after));
        let Some(View { spot, .. }) = after else {
            return Trail::default();
        };
        self.turn.ways = ways;
        Trail {
            ways,
            spot,
            rules: u64::MAX,
        }
    }

    /// A piece went there plainly, and nothing has happened since that might send the next one elsewhere.
    #[inline]
    pub fn leads(&self, trail: &Trail) -> bool {
        trail.rules == self.turn.rules
    }

    /// The next pieces of a part's text, where the trail leads: how many were taken, up to the first that may be more than
    /// that.
    #[inline]
    pub fn more_of_part<'t>(
        &mut self,
        out: &mut Out<'_>,
        index: i32,
        sub: Option<i64>,
        pieces: impl Iterator<Item = &'t str>,
        trail: &mut Trail,
    ) -> usize {
        let (rules, sure) = (self.turn.rules, self.leads(trail));
        let Some((choice, mut desk)) = self.follow(out, index, trail) else {
            return 0;
        };
        let Some((one, part)) = choice.one_mut(trail.spot) else {
            return 0;
        };
        if !(sure || (goes_on(one, sub) && part.open)) {
            return 0;
        }
        let mut taken = 0;
        for text in pieces {
            if text.is_empty() || desk.spend_bytes(text.len()).is_err() {
                break;
            }
            part.text.push_str(text);
            part.delta(index, text, None, |event| desk.out.emit(event));
            trail.rules = rules;
            taken += 1;
        }
        taken
    }

    /// The next pieces of a call's arguments, where the trail leads: how many were taken, up to the first that may be more
    /// than that. `bare`: they were scanned already, and are nothing but characters of a string.
    #[inline]
    pub fn more_of_call<'t>(
        &mut self,
        out: &mut Out<'_>,
        index: i32,
        pieces: impl Iterator<Item = &'t str>,
        bare: bool,
        trail: &mut Trail,
    ) -> usize {
        let sure = self.leads(trail);
        let Some((choice, desk)) = self.follow(out, index, trail) else {
            return 0;
        };
        let Some((record, call)) = choice.item_call_mut(trail.spot.item) else {
            return 0;
        };
        if !(sure || takes_more(record, call)) {
            return 0;
        }
        let (mut taken, mut unfinished) = (0, true);
        for text in pieces {
            let goes_on = !text.is_empty()
                && desk.has_room_for_arguments(call.text.data.len(), text.len())
                && call.text.append(text.as_bytes(), bare);
            if !goes_on {
                break;
            }
            desk.shared.add_arguments(text.len());
            call.sent = call.text.data.len();
            desk.out.emit(&Event::ToolCallDelta(Delta {
                part: call.part,
                text,
                choice: index,
                metadata: None,
            }));
            taken += 1;
            unfinished = call.text.is_unfinished();
            if !unfinished {
                break;
            }
        }
        if unfinished {
            if taken > 0 {
                trail.rules = self.turn.rules;
            }
        } else {
            let slot = call.slot;
            choice.track(slot);
            // What comes behind a whole value is for the rules.
            self.turn.rules += 1;
        }
        taken
    }

    /// The choice, if the trail leads where it led.
    #[inline]
    fn follow<'a, 'o>(
        &'a mut self,
        out: &'a mut Out<'o>,
        index: i32,
        trail: &Trail,
    ) -> Option<(&'a mut Choice, Desk<'a, 'o>)> {
        if trail.ways != self.turn.ways || self.over {
            return None;
        }
        let mut choices = self.choices.iter_mut();
        let choice = choices.find(|choice| choice.index == index)?;
        let idle = !choice.closed && choice.unstarted.is_empty();
        let shared = &mut self.shared;
        idle.then_some((choice, Desk { shared, out }))
    }

    fn view_part(&mut self, out: &mut Out<'_>, at: &PartAt<'_>) -> Option<View> {
        self.view(out, at.choice, &at.address, |choice, address| {
            let address = *address;
            let at = PartAt { address, ..*at };
            known_part(choice, find(choice, &at, Purpose::Delta)?, &at)
        })
    }

    fn view_call(&mut self, out: &mut Out<'_>, index: i32, address: &Address<'_>) -> Option<View> {
        self.view(out, index, address, |choice, address| {
            let (book, calls) = (&choice.book, &choice.calls);
            let item = book.find(calls, ItemKind::Call, address, Purpose::Delta)?;
            let one = book.get(item)?.call?;
            Some(Spot { item, one })
        })
    }

    fn view(
        &mut self,
        out: &mut Out<'_>,
        index: i32,
        address: &Address<'_>,
        find: impl Fn(&Choice, &Address<'_>) -> Option<Spot>,
    ) -> Option<View> {
        let choice = self.choices.iter().find(|choice| choice.index == index)?;
        let shared = &mut self.shared;
        let spot = find(choice, &usable(&Desk { shared, out }, address))?;
        let (items, ids) = choice.book.sizes();
        let sizes = [
            items,
            ids,
            choice.textual.parts.len(),
            choice.calls.len(),
            choice.unstarted.len(),
            told(choice, spot.item),
        ];
        Some(View { spot, sizes })
    }
}

/// The part takes a piece that comes under its number as the next one.
#[inline]
fn goes_on(one: &ItemPart, sub: Option<i64>) -> bool {
    one.steady
        && one.begun
        && one.last_sub == sub
        && one.snapshot.is_none()
        && !(one.valued || one.closed || one.joiner.is_pending())
}

/// The call takes any piece that keeps it JSON as the next one.
fn takes_more(record: &Item, call: &Call) -> bool {
    !record.valued
        && (record.own_text || record.snapshot.is_none())
        && call.verdict.is_none()
        && call.fork.is_none()
        && !call.dropped
        && is_shown(call)
        && call.text.is_settled()
}

/// How much is known of who an item is.
fn told(choice: &Choice, item: usize) -> usize {
    let record = choice.book.get(item);
    let call = choice.call_of(item);
    let ids = call.map_or(0, |call| {
        call.aliases.len() + usize::from(call.id.is_some()) + usize::from(call.item_id.is_some())
    });
    ids + usize::from(record.is_some_and(|item| item.item_id.is_some()))
}
