//! Fast paths that append text to the part or call that received the previous piece with the same address.
//!
//! `Assembler::turn` counts all changes to choices except appended text. While this counter is unchanged, an address
//! still identifies the same part or call. For a piece that simply continues the text, each method has the same effect
//! as the rules in `items` and `item_deltas_calls`. For any other piece, the method changes nothing, and its caller
//! applies the rules.

use crate::assemble::Assembler;
use crate::assemble::append::is_shown;
use crate::assemble::choice::Choice;
use crate::assemble::items::find;
use crate::assemble::items::known_part;
use crate::assemble::part::call::Call;
use crate::assemble::part::item::Item;
use crate::assemble::part::item::ItemPart;
use crate::assemble::part::item::PartPosition;
use crate::assemble::resolve::item_index::Purpose;
use crate::assemble::resolve::item_index::usable;
use crate::assemble::resolve::route_cache::Appended;
use crate::assemble::resolve::route_cache::PieceRun;
use crate::assemble::resolve::route_cache::RouteCache;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
use crate::json::Text;
use crate::model::delta::Address;
use crate::model::delta::ItemKind;
use crate::model::delta::PartAt;
use crate::model::output::Output;

/// The part or call that an address identifies, and the sizes of six collections. Any change other than appended text
/// changes at least one of these sizes. If these sizes are the same before and after a delta, the delta only extended
/// text.
#[derive(Debug, PartialEq, Eq)]
struct PartSizes {
    part_position: PartPosition,
    sizes: [usize; 6],
}

impl Assembler {
    /// Appends a piece of text to a part, as `part_text` does. Stores the part in `route_cache`, so that the next
    /// pieces for this address can be appended without a lookup.
    pub fn go_on_with_part(
        &mut self,
        out: &mut Output<'_>,
        at: PartAt<'_>,
        text: Text<'_>,
        route_cache: &mut RouteCache,
    ) -> ParseResult {
        let routes = self.turn.routes;
        let before = self.part_sizes(out, &at);
        self.part_text(out, at, text, None)?;
        let after = self.part_sizes(out, &at);
        *route_cache = self.route_cache(routes, before, after);
        Ok(())
    }

    /// Appends a piece of argument text to a call, as `call_text` does. Stores the call in `route_cache`, so that the
    /// next pieces for this address can be appended without a lookup. The next pieces must have the same `name`.
    pub fn go_on_with_call(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        address: Address<'_>,
        text: Text<'_>,
        name: Option<&str>,
        route_cache: &mut RouteCache,
    ) -> ParseResult {
        let routes = self.turn.routes;
        let before = self.call_sizes(out, choice, &address);
        self.call_text(out, choice, address, text, name, None)?;
        let after = self.call_sizes(out, choice, &address);
        *route_cache = self.route_cache(routes, before, after);
        Ok(())
    }

    /// Returns the route of the piece that was just appended. If the piece only extended text, all cached routes are
    /// still valid, so the change counter is reset to `routes`. If the piece changed anything else, the returned route
    /// matches nothing.
    fn route_cache(
        &mut self,
        routes: u64,
        before: Option<PartSizes>,
        after: Option<PartSizes>,
    ) -> RouteCache {
        let after = after.filter(|after| before.as_ref() == Some(after));
        let Some(PartSizes { part_position, .. }) = after else {
            return RouteCache::default();
        };
        self.turn.routes = routes;
        RouteCache {
            routes,
            part_position,
            rules: u64::MAX,
        }
    }

    /// Returns true if a piece was appended along the cached route and no choice has changed since then, so that the
    /// next piece for the same address belongs to the same part or call.
    #[inline]
    pub fn leads(&self, route_cache: &RouteCache) -> bool {
        route_cache.rules == self.turn.rules
    }

    /// Appends consecutive pieces to the part in the cached route. Appends either all pieces, or none if the rules may
    /// treat the pieces differently.
    #[inline]
    pub fn more_of_part(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        sub: Option<i64>,
        run: PieceRun<'_>,
        route_cache: &mut RouteCache,
    ) -> Appended {
        let (rules, sure) = (self.turn.rules, self.leads(route_cache));
        let Some((choice, mut ctx)) = self.follow(out, index, route_cache) else {
            return Appended::default();
        };
        let Some((one, part)) = choice.item_part_mut(route_cache.part_position) else {
            return Appended::default();
        };
        let (goes_on, text) = (sure || (goes_on(one, sub) && part.open), run.text());
        if !goes_on || text.is_empty() || ctx.spend_bytes(text.len()).is_err() {
            return Appended::default();
        }
        part.text.push_str(text);
        route_cache.rules = rules;
        Appended {
            count: run.count(),
            part: part.part,
        }
    }

    /// Appends consecutive pieces of argument text to the call in the cached route, and returns how many were appended.
    /// Stops before the first piece that might do more than continue the text. `bare`: the pieces were already scanned
    /// and contain no quotes, escapes or control characters.
    #[inline]
    pub fn more_of_call(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        run: PieceRun<'_>,
        bare: bool,
        route_cache: &mut RouteCache,
    ) -> Appended {
        let (rules, sure) = (self.turn.rules, self.leads(route_cache));
        let Some((choice, ctx)) = self.follow(out, index, route_cache) else {
            return Appended::default();
        };
        let Some((record, call)) = choice.item_call_mut(route_cache.part_position.item) else {
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
            && ctx.has_room_for_arguments(call.text.data.len(), bytes.len())
            && call.text.append_all(bytes, run.last_length(), run.count())
        {
            ctx.shared.add_arguments(bytes.len());
            call.text.shown = call.text.data.len();
            route_cache.rules = rules;
            gone.count = run.count();
            return gone;
        }
        for text in run.pieces() {
            let goes_on = !text.is_empty()
                && (bare || !call.text.may_end_empty(text))
                && ctx.has_room_for_arguments(call.text.data.len(), text.len())
                && call.text.append(text.as_bytes(), bare);
            if !goes_on {
                break;
            }
            ctx.shared.add_arguments(text.len());
            call.text.shown = call.text.data.len();
            route_cache.rules = rules;
            gone.count += 1;
            if !call.text.is_unfinished() {
                let slot = call.slot;
                choice.track(slot);
                // The next piece follows a complete value, so the rules must handle it.
                self.turn.rules += 1;
                break;
            }
        }
        gone
    }

    /// Appends runs of consecutive pieces, each run to the call in its cached route, and returns how many pieces were
    /// appended. Stops before the first run that might do more than continue the text of its call. The pieces were
    /// already scanned and contain no quotes, escapes or control characters. Writes the part number of each appended
    /// piece to `parts`.
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
        let ctx = RuleContext { shared, out };
        let mut taken = 0;
        for (route_cache, run) in runs {
            let call = choice.calls.get_mut(route_cache.part_position.one);
            let Some(call) = call.filter(|_| route_cache.rules == turn.rules) else {
                break;
            };
            let (bytes, next) = (run.bytes(), taken + run.count());
            let goes_on = ctx.has_room_for_arguments(call.text.data.len(), bytes.len())
                && call.text.append_all(bytes, run.last_length(), run.count());
            if !goes_on {
                break;
            }
            ctx.shared.add_arguments(bytes.len());
            call.text.shown = call.text.data.len();
            if let Some(parts) = parts.get_mut(taken..next) {
                parts.fill(call.part);
            }
            taken = next;
        }
        taken
    }

    /// Returns the choice if the cached route is still valid and the choice accepts more text.
    #[inline]
    fn follow<'a, 'o>(
        &'a mut self,
        out: &'a mut Output<'o>,
        index: i32,
        route_cache: &RouteCache,
    ) -> Option<(&'a mut Choice, RuleContext<'a, 'o>)> {
        if route_cache.routes != self.turn.routes || self.over {
            return None;
        }
        let choice = self.choices.turn_to(index)?;
        let shared = &mut self.shared;
        choice
            .is_idle()
            .then_some((choice, RuleContext { shared, out }))
    }

    fn part_sizes(&mut self, out: &mut Output<'_>, at: &PartAt<'_>) -> Option<PartSizes> {
        self.view(out, at.choice, &at.address, |choice, address| {
            let address = *address;
            let at = PartAt { address, ..*at };
            known_part(choice, find(choice, &at, Purpose::Delta)?, &at)
        })
    }

    fn call_sizes(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        address: &Address<'_>,
    ) -> Option<PartSizes> {
        self.view(out, index, address, |choice, address| {
            let (item_index, calls) = (&choice.item_index, &choice.calls);
            let item = item_index.find(calls, ItemKind::Call, address, Purpose::Delta)?;
            let one = item_index.get(item)?.call?;
            Some(PartPosition { item, one })
        })
    }

    fn view(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        address: &Address<'_>,
        find: impl Fn(&Choice, &Address<'_>) -> Option<PartPosition>,
    ) -> Option<PartSizes> {
        let choice = self.choices.find(index)?;
        let shared = &mut self.shared;
        let part_position = find(choice, &usable(&RuleContext { shared, out }, address))?;
        let (items, ids) = choice.item_index.sizes();
        let sizes = [
            items,
            ids,
            choice.textual.parts.len(),
            choice.calls.len(),
            choice.unstarted.len(),
            count_ids(choice, part_position.item),
        ];
        Some(PartSizes {
            part_position,
            sizes,
        })
    }
}

impl Choice {
    /// Returns true if the choice is open and a start event has been emitted for each of its named calls.
    #[inline]
    fn is_idle(&self) -> bool {
        !self.closed && self.unstarted.is_empty()
    }
}

/// Returns true if a piece with sub-index `sub` would simply be appended to the part.
#[inline]
fn goes_on(one: &ItemPart, sub: Option<i64>) -> bool {
    one.sub_is_reliable
        && one.begun
        && one.last_sub == sub
        && one.snapshot.is_none()
        && !(one.valued || one.closed || one.labels.is_closed(sub) || one.joiner.is_pending())
}

/// Returns true if any piece that keeps the arguments valid JSON would simply be appended to the call.
fn takes_more(record: &Item, call: &Call) -> bool {
    !record.valued
        && (record.own_text || record.snapshot.is_none())
        && call.outcome.is_none()
        && call.shared_id.is_none()
        && !call.dropped
        && is_shown(call)
        && call.text.is_settled()
}

/// Returns how many ids are known for the item and its call.
fn count_ids(choice: &Choice, item: usize) -> usize {
    let record = choice.item_index.get(item);
    let call = choice.call_of(item);
    let ids = call.map_or(0, |call| {
        call.aliases.len() + usize::from(call.id.is_some()) + usize::from(call.item_id.is_some())
    });
    ids + usize::from(record.is_some_and(|item| item.item_id.is_some()))
}
