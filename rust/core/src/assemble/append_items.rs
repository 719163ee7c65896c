//! The quick ways of items: the next plain piece for a part or a call of which it is known where the piece before it went.
//!
//! `turn` counts everything that happens to a choice but such pieces: as long as it stands, an address leads where it led.
//! Each way does what the rules in `items` and `item_deltas_calls` do with such a piece, or, where anything else is the case,
//! nothing at all; then the rules decide. They know no rule of their own, and no dialect.

use crate::assemble::Assembler;
use crate::assemble::append::is_shown;
use crate::assemble::choice::Choice;
use crate::assemble::items::find;
use crate::assemble::items::known_part;
use crate::assemble::part::call::Call;
use crate::assemble::part::item::Item;
use crate::assemble::part::item::ItemPart;
use crate::assemble::part::item::Spot;
use crate::assemble::resolve::item_index::Purpose;
use crate::assemble::resolve::item_index::usable;
use crate::assemble::resolve::route_cache::Appended;
use crate::assemble::resolve::route_cache::PieceRun;
use crate::assemble::resolve::route_cache::RouteCache;
use crate::assemble::rule_context::RuleContext;
use crate::assemble::rule_context::Step;
use crate::json::Text;
use crate::model::delta::Address;
use crate::model::delta::ItemKind;
use crate::model::delta::PartAt;
use crate::model::output::Output;

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
        out: &mut Output<'_>,
        at: PartAt<'_>,
        text: Text<'_>,
        trail: &mut RouteCache,
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
        out: &mut Output<'_>,
        choice: i32,
        address: Address<'_>,
        text: Text<'_>,
        trail: &mut RouteCache,
    ) -> Step {
        let ways = self.turn.ways;
        let before = self.view_call(out, choice, &address);
        self.call_text(out, choice, address, text, None, None)?;
        let after = self.view_call(out, choice, &address);
        *trail = self.trail(ways, before, after);
        Ok(())
    }

    /// The trail of a piece that changed nothing but a text: so will the next one, and every other trail stays what it is.
    fn trail(&mut self, ways: u64, before: Option<View>, after: Option<View>) -> RouteCache {
        let after = after.filter(|after| before.as_ref() == Some(after));
        let Some(View { spot, .. }) = after else {
            return RouteCache::default();
        };
        self.turn.ways = ways;
        RouteCache {
            ways,
            spot,
            rules: u64::MAX,
        }
    }

    /// A piece went there plainly, and nothing has happened since that might send the next one elsewhere.
    #[inline]
    pub fn leads(&self, trail: &RouteCache) -> bool {
        trail.rules == self.turn.rules
    }

    /// The next pieces of a part's text, where the trail leads: all of them, or none where one may be more than that.
    #[inline]
    pub fn more_of_part(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        sub: Option<i64>,
        run: PieceRun<'_>,
        trail: &mut RouteCache,
    ) -> Appended {
        let (rules, sure) = (self.turn.rules, self.leads(trail));
        let Some((choice, mut desk)) = self.follow(out, index, trail) else {
            return Appended::default();
        };
        let Some((one, part)) = choice.one_mut(trail.spot) else {
            return Appended::default();
        };
        let (goes_on, text) = (sure || (goes_on(one, sub) && part.open), run.text());
        if !goes_on || text.is_empty() || desk.spend_bytes(text.len()).is_err() {
            return Appended::default();
        }
        part.text.push_str(text);
        trail.rules = rules;
        Appended {
            count: run.count(),
            part: part.part,
        }
    }

    /// The next pieces of a call's arguments, where the trail leads: how many were taken, up to the first that may be more
    /// than that. `bare`: they were scanned already, and are nothing but characters of a string.
    #[inline]
    pub fn more_of_call(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        run: PieceRun<'_>,
        bare: bool,
        trail: &mut RouteCache,
    ) -> Appended {
        let (rules, sure) = (self.turn.rules, self.leads(trail));
        let Some((choice, desk)) = self.follow(out, index, trail) else {
            return Appended::default();
        };
        let Some((record, call)) = choice.item_call_mut(trail.spot.item) else {
            return Appended::default();
        };
        if !(sure || takes_more(record, call)) {
            return Appended::default();
        }
        let mut gone = Appended {
            count: 0,
            part: call.part,
        };
        let bytes = run.bytes();
        if bare
            && !bytes.is_empty()
            && desk.has_room_for_arguments(call.text.data.len(), bytes.len())
            && call.text.append_all(bytes, run.last_length(), run.count())
        {
            desk.shared.add_arguments(bytes.len());
            call.text.shown = call.text.data.len();
            trail.rules = rules;
            gone.count = run.count();
            return gone;
        }
        for text in run.pieces() {
            let goes_on = !text.is_empty()
                && (bare || !call.text.may_end_empty(text))
                && desk.has_room_for_arguments(call.text.data.len(), text.len())
                && call.text.append(text.as_bytes(), bare);
            if !goes_on {
                break;
            }
            desk.shared.add_arguments(text.len());
            call.text.shown = call.text.data.len();
            trail.rules = rules;
            gone.count += 1;
            if !call.text.is_unfinished() {
                let slot = call.slot;
                choice.track(slot);
                // What comes behind a whole value is for the rules.
                self.turn.rules += 1;
                break;
            }
        }
        gone
    }

    /// The next pieces of calls that take turns, in runs, where their trails lead: how many were taken, up to the first run
    /// of which one may be more than that. All of them were scanned already, and are nothing but characters of a string.
    /// `parts`: for the part of each.
    #[inline]
    pub fn more_of_calls<'t>(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        runs: impl Iterator<Item = (&'t RouteCache, PieceRun<'t>)>,
        parts: &mut [u32],
    ) -> usize {
        let (turn, over) = (&self.turn, self.over);
        let choice = self.choices.turn_to(index);
        let Some(choice) = choice.filter(|choice| choice.is_idle() && !over) else {
            return 0;
        };
        let shared = &mut self.shared;
        let desk = RuleContext { shared, out };
        let mut taken = 0;
        for (trail, run) in runs {
            let call = choice.calls.get_mut(trail.spot.one);
            let Some(call) = call.filter(|_| trail.rules == turn.rules) else {
                break;
            };
            let (bytes, next) = (run.bytes(), taken + run.count());
            let goes_on = desk.has_room_for_arguments(call.text.data.len(), bytes.len())
                && call.text.append_all(bytes, run.last_length(), run.count());
            if !goes_on {
                break;
            }
            desk.shared.add_arguments(bytes.len());
            call.text.shown = call.text.data.len();
            if let Some(parts) = parts.get_mut(taken..next) {
                parts.fill(call.part);
            }
            taken = next;
        }
        taken
    }

    /// The choice, if the trail leads where it led.
    #[inline]
    fn follow<'a, 'o>(
        &'a mut self,
        out: &'a mut Output<'o>,
        index: i32,
        trail: &RouteCache,
    ) -> Option<(&'a mut Choice, RuleContext<'a, 'o>)> {
        if trail.ways != self.turn.ways || self.over {
            return None;
        }
        let choice = self.choices.turn_to(index)?;
        let shared = &mut self.shared;
        choice
            .is_idle()
            .then_some((choice, RuleContext { shared, out }))
    }

    fn view_part(&mut self, out: &mut Output<'_>, at: &PartAt<'_>) -> Option<View> {
        self.view(out, at.choice, &at.address, |choice, address| {
            let address = *address;
            let at = PartAt { address, ..*at };
            known_part(choice, find(choice, &at, Purpose::Delta)?, &at)
        })
    }

    fn view_call(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        address: &Address<'_>,
    ) -> Option<View> {
        self.view(out, index, address, |choice, address| {
            let (book, calls) = (&choice.book, &choice.calls);
            let item = book.find(calls, ItemKind::Call, address, Purpose::Delta)?;
            let one = book.get(item)?.call?;
            Some(Spot { item, one })
        })
    }

    fn view(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        address: &Address<'_>,
        find: impl Fn(&Choice, &Address<'_>) -> Option<Spot>,
    ) -> Option<View> {
        let choice = self.choices.find(index)?;
        let shared = &mut self.shared;
        let spot = find(choice, &usable(&RuleContext { shared, out }, address))?;
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

impl Choice {
    /// Nothing waits in it, and it goes on.
    #[inline]
    fn is_idle(&self) -> bool {
        !self.closed && self.unstarted.is_empty()
    }
}

/// The part takes a piece that comes under its number as the next one.
#[inline]
fn goes_on(one: &ItemPart, sub: Option<i64>) -> bool {
    one.steady
        && one.begun
        && one.last_sub == sub
        && one.snapshot.is_none()
        && !(one.valued || one.closed || one.labels.is_closed(sub) || one.joiner.is_pending())
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
