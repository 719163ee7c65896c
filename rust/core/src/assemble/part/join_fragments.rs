//! Joins fragments that were treated as separate calls, if they are valid JSON only together.
//!
//! The calls of each index are tried first, then all calls in order of creation.

use crate::assemble::choice::Choice;
use crate::assemble::part::call::Call;
use crate::assemble::part::call::Id;
use crate::assemble::part::call::MAX_ALIASES;
use crate::assemble::part::call_events;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
use crate::model::spec::Code;
use std::collections::HashMap;

/// Maximum number of bytes to examine, as a multiple of the total text size. The limit keeps the search linear even for
/// hostile streams.
const COST: usize = 8;

pub fn join_fragments(ctx: &mut RuleContext<'_, '_>, choice: &mut Choice) -> ParseResult {
    let live = || {
        let calls = choice.calls.iter();
        calls.filter(|call| !call.dropped && call.outcome.is_none())
    };
    if !live().any(|call| call.text.is_unfinished() && !call.is_empty()) {
        return Ok(());
    }
    let mut budget = COST * live().map(|call| call.text.size()).sum::<usize>();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut positions: HashMap<Option<i64>, usize> = HashMap::new();
    for call in live() {
        let position = *positions.entry(call.index).or_insert(groups.len());
        if position == groups.len() {
            groups.push(Vec::new());
        }
        if let Some(group) = groups.get_mut(position) {
            group.push(call.slot);
        }
    }
    groups.push(choice.undecided());
    for mut group in groups {
        group.retain(|slot| choice.get(*slot).is_some_and(|call| !call.dropped));
        along(ctx, choice, &group, &mut budget)?;
    }
    Ok(())
}

fn along(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    mut slots: &[usize],
    budget: &mut usize,
) -> ParseResult {
    while let [left, others @ ..] = slots
        && !others.is_empty()
    {
        let count = pieces_of_one(choice, *left, others, budget);
        let (pieces, rest) = others.split_at_checked(count).unwrap_or((others, &[]));
        slots = rest;
        if pieces.is_empty() {
            continue;
        }
        let mut joined = Vec::new();
        if let Some(call) = choice.get(*left) {
            joined.extend_from_slice(&call.text.data);
        }
        for slot in pieces {
            if let Some(call) = choice.get(*slot) {
                joined.extend_from_slice(&call.text.data);
                joined.extend_from_slice(&call.text.overflow);
            }
        }
        let mut part = None;
        if let Some(call) = choice.get_mut(*left) {
            call.text.replace(joined);
            part = Some(call.part);
        }
        for slot in pieces {
            merge_call(ctx, choice, *left, *slot);
            let other = choice.get(*slot).map_or(0, |call| call.part);
            ctx.out
                .diagnose(Code::ARGS_STITCHED, part, &other.to_string())?;
        }
    }
    Ok(())
}

/// Returns how many of the calls after `left` are needed to complete the JSON of `left`, or 0 if the JSON cannot be
/// completed. Calls with different names are never joined. Reduces `budget` by the number of bytes examined.
fn pieces_of_one(choice: &Choice, left: usize, others: &[usize], budget: &mut usize) -> usize {
    let Some(left) = choice.get(left).filter(|call| is_open(call)) else {
        return 0;
    };
    let mut joined = left.text.automaton;
    let mut cost = 0;
    let mut found = 0;
    let rights = others.iter().map_while(|slot| choice.get(*slot));
    for (count, right) in (1..).zip(rights) {
        let two_names = !left.name.is_empty() && !right.name.is_empty() && left.name != right.name;
        if right.custom || right.is_empty() || two_names {
            break;
        }
        cost += right.text.size();
        if cost > *budget {
            break;
        }
        joined.feed(&right.text.data);
        joined.feed(&right.text.overflow);
        if joined.is_broken() {
            break;
        }
        if joined.is_complete_object() {
            found = count;
            break;
        }
    }
    *budget = budget.saturating_sub(cost);
    found
}

fn is_open(call: &Call) -> bool {
    !call.custom && !call.is_empty() && call.text.is_unfinished()
}

/// Drops the call `other`, and adds its ids, name and metadata to the call `slot`. The caller has already moved the
/// text of `other`.
pub fn merge_call(ctx: &mut RuleContext<'_, '_>, choice: &mut Choice, slot: usize, other: usize) {
    call_events::retract(ctx.out, choice, other);
    let Some(gone) = choice.get_mut(other) else {
        return;
    };
    let aliases = gone.aliases.iter().map(|alias| Id::from(alias.as_str()));
    let ids: Vec<Id> = gone.id.iter().cloned().chain(aliases).collect();
    let (name, metadata) = (gone.name.clone(), gone.metadata.take());
    let mut ids = ids.into_iter();
    if choice.get(slot).is_some_and(|call| call.id.is_none())
        && let Some(id) = ids.next()
    {
        choice.set_id(slot, id);
    }
    let Some(call) = choice.get_mut(slot) else {
        return;
    };
    for id in ids {
        if !call.has_id(&id) && call.aliases.len() < MAX_ALIASES {
            call.aliases.push(id.to_string());
        }
    }
    if call.name.is_empty() {
        call.name = name;
    }
    match (&mut call.metadata, metadata) {
        (Some(own), Some(metadata)) => {
            own.add(&metadata.text().unwrap_or_else(|| "{}".to_owned()));
        }
        (own @ None, metadata) => *own = metadata,
        (Some(_), None) => {}
    }
}
