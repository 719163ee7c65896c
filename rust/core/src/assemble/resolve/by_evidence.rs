//! Decides which call a tool-call fragment belongs to (rules R1 to R3). The docstring of the Python twin,
//! `_pure/assemble/resolve/by_evidence.py`, contains the decision table with the condition and result of each rule.
//!
//! `decide` only makes the decision; `route_fragment` carries it out.

use crate::assemble::choice::Choice;
use crate::assemble::choice::DisplacedKey;
use crate::assemble::choice::LEGACY_INDEX;
use crate::assemble::part::call::Call;
use crate::assemble::part::canonical_json::canonical;
use crate::assemble::part::canonical_json::is_whole;
pub use crate::assemble::resolve::decision::Decision;
pub use crate::assemble::resolve::decision::Incoming;
pub use crate::assemble::resolve::decision::Resolution;
use crate::assemble::resolve::names::Relation;
use crate::assemble::resolve::names::relate;
use crate::assemble::rule_context::RuleContext;
use crate::model::policy::IdenticalCall;
use crate::model::policy::OrphanIndex;
use crate::model::policy::ParallelHeaders;
use crate::model::policy::SameIndexNewId;
use crate::model::spec::Code;

/// Returns the decision on a fragment, according to the first applicable rule of the decision table.
pub fn decide(ctx: &RuleContext<'_, '_>, choice: &mut Choice, incoming: &Incoming<'_>) -> Decision {
    if let Some(identity) = incoming.id {
        return match choice.by_id.get(identity).copied() {
            Some(known) => known_id(ctx, choice, incoming, identity, known),
            None => new_id(ctx, choice, incoming),
        };
    }
    match incoming.index {
        None => no_index(ctx, choice, incoming),
        Some(index) => match choice.by_index.get(index) {
            Some(call) => bound(ctx, choice, incoming, index, call),
            None => unbound(ctx, choice, incoming),
        },
    }
}

/// Returns how the name in the fragment relates to the name of the call, or `None` if the fragment has no name.
pub fn relation(
    ctx: &RuleContext<'_, '_>,
    call: &Call,
    incoming: &Incoming<'_>,
) -> Option<Relation> {
    let tools = &ctx.shared.settings.tools;
    let progress = || call.progress(incoming.payload);
    incoming
        .name
        .map(|name| relate(&call.name, name, tools, progress()))
}

fn known_id(
    ctx: &RuleContext<'_, '_>,
    choice: &mut Choice,
    incoming: &Incoming<'_>,
    identity: &str,
    known: usize,
) -> Decision {
    let bound = incoming.index.and_then(|index| choice.by_index.get(index));
    let slot = bound
        .filter(|slot| choice.get(*slot).is_some_and(|call| call.has_id(identity)))
        .unwrap_or(known);
    let has_name = incoming.name.is_some_and(|name| {
        let complete = choice.get(slot).is_some_and(Call::is_complete);
        complete
            && is_replay(
                choice,
                &DisplacedKey::Id(identity.into()),
                name,
                incoming.payload,
            )
    });
    let bound_is_open = bound
        .filter(|bound| *bound != slot)
        .and_then(|bound| choice.get(bound))
        .is_some_and(|bound| !bound.is_complete() && bound.custom == incoming.custom);
    let Some(call) = choice.get_mut(slot) else {
        return Decision::new("R2f");
    };
    let payload = incoming.payload;
    let relation = relation(ctx, call, incoming);
    let elsewhere = incoming.index.is_some() && bound != Some(slot) && call.index.is_some();
    let longer = matches!(relation, Some(Relation::Fragment | Relation::Grows));
    if !call.suits(payload, incoming.custom) {
        return Decision::new("R1b");
    }
    if call.custom && !payload.is_empty() && incoming.name.is_some() && !call.is_empty() {
        // Free-form text has no defined end that could distinguish a second call from the next piece.
        if elsewhere {
            return Decision::new("R1b");
        }
        return Decision::join("R1a", slot).noting(Some(Code::AMBIGUOUS_DUPLICATE_ID));
    }
    if !call.is_complete() {
        if relation == Some(Relation::Other) || (longer && elsewhere) {
            // Another tool's name opens a new call, unless the payload is empty or can only be the next piece of this
            // call.
            let goes_on =
                payload.is_empty() || (!incoming.starts_object() && call.accepts(payload));
            if elsewhere || !goes_on {
                return Decision::new("R1b");
            }
        }
        let splits = ctx.switches().dup_id_parallel_headers == ParallelHeaders::Split;
        if incoming.name.is_some() && elsewhere && bound.is_none() && splits {
            return Decision::new("R1b");
        }
        return Decision::join("R1a", slot);
    }
    if relation == Some(Relation::Other) || (longer && (!payload.is_empty() || elsewhere)) {
        return Decision::new("R1b");
    }
    if incoming.name.is_some() {
        if payload.is_empty() {
            if incoming.index.is_some() && bound.is_none() {
                return Decision {
                    tentative: true,
                    ..Decision::new("R1c")
                };
            }
            return Decision::join("R1a", slot);
        }
        if call.text.replayed > 0 && !elsewhere {
            return Decision::join("R1e", slot);
        }
        if call.repeats(payload) || has_name {
            return Decision::of("R1d", slot, Resolution::Drop);
        }
        if !elsewhere && call.text.begins_with(payload) && !call.text.is_placeholder() {
            return Decision::of("R1e", slot, Resolution::Replay);
        }
        return Decision::new("R1b");
    }
    if payload.is_empty() {
        return Decision::join("R1a", slot);
    }
    if call.repeats(payload) {
        return Decision::of("R1d", slot, Resolution::Drop);
    }
    match bound {
        Some(bound) if bound_is_open => Decision::join("R1f", bound),
        _ => Decision::join("R1a", slot),
    }
}

fn new_id(ctx: &RuleContext<'_, '_>, choice: &mut Choice, incoming: &Incoming<'_>) -> Decision {
    let payload = incoming.payload;
    let Some(index) = incoming.index else {
        let latest = choice.latest.and_then(|slot| choice.get(slot));
        let latest = match latest {
            Some(other) if !payload.is_empty() && other.custom != incoming.custom => {
                let slot = choice.latest_unfinished(incoming.custom);
                slot.and_then(|slot| choice.get(slot))
            }
            latest => latest,
        };
        return match latest {
            Some(latest)
                if incoming.name.is_none()
                    && !latest.name.is_empty()
                    && !latest.is_complete()
                    && latest.takes(payload, incoming.custom) =>
            {
                Decision::join("R2a", latest.slot)
            }
            _ => Decision::new("R2f"),
        };
    };
    let Some(bound) = choice
        .by_index
        .get(index)
        .and_then(|slot| choice.get_mut(slot))
    else {
        return match repeated_legacy(choice, incoming) {
            Some(slot) => Decision::of("R2b", slot, Resolution::Drop),
            None => Decision::new("R2f"),
        };
    };
    if !bound.suits(payload, incoming.custom) {
        return Decision::new("R2f");
    }
    let slot = bound.slot;
    let relation = relation(ctx, bound, incoming);
    if bound.id.is_none() {
        let same = matches!(relation, None | Some(Relation::Same | Relation::Late));
        if bound.is_complete() && !payload.is_empty() && same && bound.repeats(payload) {
            return Decision::of("R2b", slot, Resolution::Drop);
        }
        let has_content = incoming.name.is_some() || !payload.is_empty();
        if relation == Some(Relation::Other) || (bound.is_complete() && has_content) {
            return Decision::new("R2c");
        }
        return Decision::join("R2b", slot);
    }
    let Some(name) = incoming.name else {
        if !bound.is_complete() {
            return Decision::join("R2e", slot);
        }
        if !payload.is_empty() && bound.repeats(payload) {
            return Decision::of("R2e", slot, Resolution::Drop);
        }
        return Decision::new("R2f");
    };
    if bound.is_complete() {
        return Decision::new("R2c");
    }
    let proven =
        relation == Some(Relation::Fragment) && ctx.shared.settings.tools.begins(&bound.name, name);
    if matches!(relation, Some(Relation::Same | Relation::Late)) || proven {
        if bound.is_empty() && relation == Some(Relation::Same) {
            // AM1: the new id means a parallel call, unless the stream sends a new id in every delta of one call.
            if ctx.switches().same_index_new_id_same_name_empty == SameIndexNewId::Merge {
                return Decision::join("R2d", slot);
            }
            return Decision {
                displaced_empty: Some(slot),
                ..Decision::new("R2c")
            };
        }
        let goes_on = !payload.is_empty()
            && (bound.id_changed || !incoming.starts_object())
            && bound.accepts(payload);
        if goes_on || (relation == Some(Relation::Late) && payload.is_empty()) {
            return Decision::join("R2d", slot);
        }
    }
    Decision::new("R2c")
}

fn bound(
    ctx: &RuleContext<'_, '_>,
    choice: &mut Choice,
    incoming: &Incoming<'_>,
    index: i64,
    slot: usize,
) -> Decision {
    let payload = incoming.payload;
    let drops = ctx.switches().identical_idless_same_index == IdenticalCall::Drop;
    let Some(call) = choice.get_mut(slot) else {
        return Decision::new("R3b1");
    };
    let relation = relation(ctx, call, incoming);
    let texts = !call.is_empty() && !payload.is_empty();
    let two_headers = call.custom && incoming.name.is_some() && texts;
    if two_headers || !call.suits(payload, incoming.custom) {
        return Decision::new("R3a2"); // a call cannot mix free-form text and JSON, or have two headers with text
    }
    if !call.is_complete() {
        if relation == Some(Relation::Other) {
            return Decision::new("R3a2");
        }
        return Decision::join("R3a1", slot);
    }
    if let Some(name) = incoming.name {
        if payload.is_empty() {
            if matches!(
                relation,
                Some(Relation::Same | Relation::Late | Relation::Grows)
            ) {
                return Decision::join("R3a1", slot);
            }
            return Decision::new("R3a2");
        }
        let same = relation == Some(Relation::Same);
        if same && second_is_due(call, Some(index)) {
            return Decision::join("R3a1", slot);
        }
        if drops
            && ((same && call.repeats(payload))
                || is_replay(choice, &DisplacedKey::Index(index), name, payload))
        {
            return Decision::of("R3a3", slot, Resolution::Drop)
                .noting(Some(Code::AMBIGUOUS_IDENTICAL_CALL));
        }
        return Decision::new("R3a2");
    }
    let own = payload.is_empty()
        || call.text.replayed > 0
        || call.text.begins_with(payload)
        || call.repeats(payload)
        || call.announced_again.contains(&Some(index))
        || call.text.gives_way();
    if own {
        return Decision::join("R3a1", slot);
    }
    if call.text.is_last(payload) && choice.latest == Some(slot) {
        return Decision::join("R3a1", slot); // A5: the same fragment twice in a row
    }
    match choice.accepting(payload, false, Some(slot)) {
        Some(other) => Decision::join("R3a4", other).noting(guess(choice, other)),
        None => Decision::join("R3a1", slot),
    }
}

/// Returns true if the complete call is being repeated (R1e) or was announced again at the index (R1g). The next text
/// is then held back (R1e), or opens a second call with the same id (R1g).
fn second_is_due(call: &Call, index: Option<i64>) -> bool {
    call.text.replayed > 0 || (call.id.is_some() && call.announced_again.contains(&index))
}

/// AM2: returns the code to report if the payload might belong to another call: other calls of its type are open, or the
/// call accepts any text. Otherwise, returns `None`.
pub fn guess(choice: &Choice, slot: usize) -> Option<Code> {
    let call = choice.get(slot)?;
    let others = choice.open_calls(call.custom).unfinished.len() > 1;
    let any = call.custom || call.text.automaton.in_string();
    (others || any).then_some(Code::AMBIGUOUS_ORPHAN_INDEX)
}

/// Returns the call that arrived in `function_call` without an id, if the fragment repeats this call.
fn repeated_legacy(choice: &mut Choice, incoming: &Incoming<'_>) -> Option<usize> {
    let slot = choice.by_index.get(LEGACY_INDEX)?;
    let call = choice.get_mut(slot)?;
    let same = call.id.is_none() && incoming.name == Some(&*call.name) && !call.dropped;
    let whole = call.is_complete() && !incoming.payload.is_empty();
    (same && whole && call.repeats(incoming.payload)).then_some(slot)
}

fn unbound(ctx: &RuleContext<'_, '_>, choice: &Choice, incoming: &Incoming<'_>) -> Decision {
    if incoming.name.is_some() {
        return Decision::new("R3b1");
    }
    let payload = incoming.payload;
    if payload.is_empty() {
        return latest_or_nothing(choice, "R3b2");
    }
    let latest = ctx.switches().orphan_index == OrphanIndex::Latest;
    let custom = incoming.custom;
    let takes = |slot: &usize| {
        choice
            .get(*slot)
            .is_some_and(|call| call.takes(payload, custom))
    };
    if let Some(slot) = choice.next_waiting(custom, latest).filter(takes) {
        let candidates = choice.open_calls(custom);
        // A JSON payload shows whether it continues arguments or begins them. Free-form text does not show this, so it
        // may belong to any open call.
        let among = if custom {
            &candidates.unfinished
        } else {
            &candidates.waiting
        };
        let several = among.len() > 1;
        return Decision::join("R3b2", slot)
            .noting(several.then_some(Code::AMBIGUOUS_ORPHAN_INDEX));
    }
    match choice.accepting(payload, custom, None) {
        Some(other) => Decision::join("R3b2", other).noting(guess(choice, other)),
        None => Decision::new("R3b3"),
    }
}

fn no_index(ctx: &RuleContext<'_, '_>, choice: &Choice, incoming: &Incoming<'_>) -> Decision {
    let payload = incoming.payload;
    if incoming.array_len > 1 && incoming.name.is_none() {
        let placed = choice.multi.get(&incoming.position).copied();
        let fits =
            |call: &Call| !call.dropped && (payload.is_empty() || call.custom == incoming.custom);
        let placed = placed.filter(|slot| choice.get(*slot).is_some_and(fits));
        if let Some(placed) = placed {
            return Decision::join("R3c3", placed);
        }
    }
    let unfinished = choice.latest_unfinished(incoming.custom);
    let unfinished = unfinished.and_then(|slot| choice.get(slot));
    let latest = choice.latest.and_then(|slot| choice.get(slot));
    if let Some(name) = incoming.name {
        if let Some(call) = unfinished {
            let relation = relation(ctx, call, incoming);
            let proven = relation == Some(Relation::Fragment)
                && ctx.shared.settings.tools.begins(&call.name, name);
            let same = relation == Some(Relation::Same);
            let second = call.custom && same && !call.is_empty() && !payload.is_empty();
            let joins = same || relation == Some(Relation::Late) || proven;
            if joins && !second && call.takes(payload, incoming.custom) {
                return Decision::join("R3c2", call.slot).noting(one_of_several(choice, incoming));
            }
        }
        return match latest {
            Some(latest)
                if latest.name == name
                    && latest.is_complete()
                    && !payload.is_empty()
                    && !incoming.custom
                    && second_is_due(latest, None) =>
            {
                Decision::join("R3c2", latest.slot)
            }
            _ => Decision::new("R3c1"),
        };
    }
    if payload.is_empty() {
        return latest_or_nothing(choice, "R3c2");
    }
    if let Some(call) = unfinished {
        return Decision::join("R3c2", call.slot).noting(one_of_several(choice, incoming));
    }
    match latest {
        Some(latest) if latest.custom == incoming.custom => Decision::join("R3c2", latest.slot),
        _ => Decision::new("R3b3"),
    }
}

/// AM2: returns the code to report if the fragment has a payload and several calls of its type are open. Otherwise,
/// returns `None`.
fn one_of_several(choice: &Choice, incoming: &Incoming<'_>) -> Option<Code> {
    let several = choice.open_calls(incoming.custom).unfinished.len() > 1;
    (several && !incoming.payload.is_empty()).then_some(Code::AMBIGUOUS_ORPHAN_INDEX)
}

/// Assigns a fragment that has no id, name or payload to the last addressed call. If no call was addressed, the
/// fragment is ignored.
fn latest_or_nothing(choice: &Choice, rule: &'static str) -> Decision {
    match choice.latest.and_then(|slot| choice.get(slot)) {
        Some(latest) if !latest.dropped => Decision::join(rule, latest.slot),
        _ => Decision {
            resolution: Resolution::Ignore,
            ..Decision::new(rule)
        },
    }
}

/// R1d, R3a3: returns true if the fragment has the name and arguments of a call that lost this id or index to a later
/// call.
fn is_replay(choice: &Choice, key: &DisplacedKey, name: &str, payload: &[u8]) -> bool {
    if choice.payloads.is_empty() || !is_whole(payload) {
        return false;
    }
    let has_name = canonical(&String::from_utf8_lossy(payload));
    choice.is_replay(key, name, has_name)
}
