//! The quick ways of items: the next plain piece for a part or a call of which it is known where the piece before it went.
//!
//! `turn` counts everything that happens to a choice but such pieces: as long as it stands, an address leads where it led.
//! Each way does what the rules in `items` and `items_calls` do with such a piece, or, where anything else is the case,
//! nothing at all; then the rules decide. They know no rule of their own, and no dialect.

use super::book::{Purpose, usable};
use super::choice::Choice;
use super::item_parts::Spot;
use super::items::{find, known_part};
use super::shared::Desk;
use super::swift::is_shown;
use super::{Assembler, Step};
use crate::delta::{Address, ItemKind, PartAt};
use crate::event::{Delta, Event};
use crate::fault::Fault;
use crate::json::Text;
use crate::out::Out;

/// Where the piece before went, and when that was. A new one leads nowhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trail(Option<(u64, Spot)>);

/// Where an address leads, and how much there is beside it.
#[derive(Debug, PartialEq, Eq)]
struct View {
    spot: Spot,
    sizes: [usize; 6],
}

impl Assembler {
    /// A piece of a part's text, as `part_text`.
    #[inline]
    pub fn go_on_with_part(
        &mut self,
        out: &mut Out<'_>,
        at: PartAt<'_>,
        text: Text<'_>,
        trail: &mut Trail,
    ) -> Step {
        if self.more_of_part(out, &at, &text, *trail)? {
            return Ok(());
        }
        let turn = self.turn;
        let before = self.view_part(out, &at);
        self.part_text(out, at, text, None)?;
        let after = self.view_part(out, &at);
        *trail = self.trail(turn, before, after);
        Ok(())
    }

    /// A piece of a call's arguments, as `call_text`.
    #[inline]
    pub fn go_on_with_call(
        &mut self,
        out: &mut Out<'_>,
        choice: i32,
        address: Address<'_>,
        text: Text<'_>,
        trail: &mut Trail,
    ) -> Step {
        if self.more_of_call(out, choice, &text, *trail)? {
            return Ok(());
        }
        let turn = self.turn;
        let before = self.view_call(out, choice, &address);
        self.call_text(out, choice, address, text, None, None)?;
        let after = self.view_call(out, choice, &address);
        *trail = self.trail(turn, before, after);
        Ok(())
    }

    /// The trail of a piece that changed nothing but a text: so will the next one, and every other trail stays what it is.
    fn trail(&mut self, turn: u64, before: Option<View>, after: Option<View>) -> Trail {
        let after = after.filter(|after| before.as_ref() == Some(after));
        Trail(after.map(|after| {
            self.turn = turn;
            (turn, after.spot)
        }))
    }

    #[inline]
    fn more_of_part(
        &mut self,
        out: &mut Out<'_>,
        at: &PartAt<'_>,
        text: &Text<'_>,
        trail: Trail,
    ) -> Result<bool, Fault> {
        let Some((choice, mut desk, spot)) = self.follow(out, at.choice, text, trail) else {
            return Ok(false);
        };
        let index = choice.index;
        let Some((one, part)) = choice.one_mut(spot) else {
            return Ok(false);
        };
        let goes_on = one.steady
            && one.begun
            && one.last_sub == at.address.sub
            && one.snapshot.is_none()
            && !(one.valued || one.closed || one.joiner.is_pending())
            && part.open;
        if !goes_on {
            return Ok(false);
        }
        desk.spend_bytes(text.body.len())?;
        part.text.push_str(&text.body);
        part.delta(index, &text.body, None, |event| desk.out.emit(event));
        Ok(true)
    }

    #[inline]
    fn more_of_call(
        &mut self,
        out: &mut Out<'_>,
        index: i32,
        text: &Text<'_>,
        trail: Trail,
    ) -> Result<bool, Fault> {
        let Some((choice, mut desk, spot)) = self.follow(out, index, text, trail) else {
            return Ok(false);
        };
        let Some((record, call)) = choice.item_call_mut(spot.item) else {
            return Ok(false);
        };
        let goes_on = !record.valued
            && (record.own_text || record.snapshot.is_none())
            && call.verdict.is_none()
            && call.fork.is_none()
            && !call.dropped
            && is_shown(call);
        let before = call.text.data.len();
        if !goes_on || !call.text.append_plainly(text.body.as_bytes()) {
            return Ok(false);
        }
        if let Err(fault) = desk.count_arguments(before, call.text.data.len()) {
            call.text.undo(before);
            return Err(fault);
        }
        call.sent = call.text.data.len();
        let (slot, whole) = (call.slot, !call.text.is_unfinished());
        desk.out.emit(&Event::ToolCallDelta(Delta {
            part: call.part,
            text: &text.body,
            choice: index,
            metadata: None,
        }));
        if whole {
            choice.track(slot);
        }
        Ok(true)
    }

    /// The choice, if the trail leads where it led, and the piece is a plain one.
    #[inline]
    fn follow<'a, 'o>(
        &'a mut self,
        out: &'a mut Out<'o>,
        index: i32,
        text: &Text<'_>,
        trail: Trail,
    ) -> Option<(&'a mut Choice, Desk<'a, 'o>, Spot)> {
        let (turn, spot) = trail.0?;
        let halves = text.lead_low.is_some() || text.tail_high.is_some() || text.lone;
        if turn != self.turn || self.over || halves || text.body.is_empty() {
            return None;
        }
        let mut choices = self.choices.iter_mut();
        let choice = choices.find(|choice| choice.index == index)?;
        let idle = !choice.closed && choice.unstarted.is_empty();
        let shared = &mut self.shared;
        idle.then_some((choice, Desk { shared, out }, spot))
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

/// How much is known of who an item is.
fn told(choice: &Choice, item: usize) -> usize {
    let record = choice.book.get(item);
    let call = choice.call_of(item);
    let ids = call.map_or(0, |call| {
        call.aliases.len() + usize::from(call.id.is_some()) + usize::from(call.item_id.is_some())
    });
    ids + usize::from(record.is_some_and(|item| item.item_id.is_some()))
}
