//! Closes the tool calls of a choice: repairs and drops calls, and determines the final state, id and order of the
//! others.
//!
//! drop       drop tentative calls without arguments, and nameless calls without any text
//! join       join neighbors that are valid JSON only when joined: `join_fragments`
//! echo       drop a call without name and id that only repeats the arguments of a named one
//! restore    put a lost beginning of arguments back, if the response ended with success: `lost_beginning`
//! pair       move the arguments of the only nameless call to the only named call without arguments
//! unwrap     treat null and "" as no arguments; replace a JSON string that contains an object with that object
//! dedupe     drop the later of two calls with the same name, arguments and id (AM5: without an id, the same index)
//! opening    drop the duplicate of a call that was opened with one id and closed with another
//! identify   make ids unique, and mint missing ones
//! ignore     remove a placeholder if the response ended without a finish reason
//! order      by index if each call has exactly one index and no two calls share one, otherwise by creation
//! classify   complete, empty, incomplete or invalid, with a reason: `classify`
//!
//! The steps run in the order of the table. Each step takes time linear in the number of calls and the length of their
//! text. `CallsEnd` states what the finish reason means for the calls.

use crate::assemble::choice::Choice;
use crate::assemble::choice::DisplacedKey;
use crate::assemble::finish_reason::CallsEnd;
use crate::assemble::lost_beginning::restore_beginnings;
use crate::assemble::part::append_arguments::close_shared_id;
use crate::assemble::part::append_arguments::give_tail;
use crate::assemble::part::call::Call;
use crate::assemble::part::call_events;
use crate::assemble::part::canonical_json;
use crate::assemble::part::classify::classify;
use crate::assemble::part::fragment::Change;
use crate::assemble::part::join_fragments::join_fragments;
use crate::assemble::part::join_fragments::merge_call;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
use crate::json::Root;
use crate::model::delta::CallEnding;
use crate::model::fault::Fault;
use crate::model::policy::EmptyCall;
use crate::model::policy::IdenticalCall;
use crate::model::policy::UnstableId;
use crate::model::spec::Code;
use std::collections::HashMap;
use std::collections::HashSet;

/// Closes every call of the choice that is not final yet, and emits its final event.
///
/// `broken_off`: the input ended too early, so a call with a fragment after the finish reason is treated as truncated,
/// unless its JSON is complete.
pub fn close_calls(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    end: CallsEnd,
    broken_off: bool,
) -> ParseResult {
    let ended = end != CallsEnd::Cut;
    for slot in choice.undecided() {
        let is_open = |call: &Call| call.ending == CallEnding::OpenObject && !call.is_complete();
        if end == CallsEnd::Success && choice.get(slot).is_some_and(is_open) {
            give_tail(ctx, choice, slot, b"}")?;
        }
        finish_arguments(ctx, choice, slot, ended)?;
    }
    for slot in choice.undecided() {
        drop_empty(ctx, choice, slot)?;
    }
    if ended {
        join_fragments(ctx, choice)?;
    }
    drop_echoes(ctx, choice)?;
    if end == CallsEnd::Success {
        restore_beginnings(ctx, choice)?;
    }
    if ended {
        pair(ctx, choice)?;
        for slot in choice.undecided() {
            unwrap(ctx, choice, slot)?;
        }
    }
    dedupe(ctx, choice)?;
    drop_openings(ctx, choice)?;
    let mut ids: HashMap<usize, String> = HashMap::new();
    for slot in choice.undecided() {
        ids.insert(slot, identify(ctx, choice, slot)?);
    }
    if end == CallsEnd::Unstated {
        for slot in choice.undecided() {
            ignore_placeholder(ctx, choice, slot);
        }
    }
    for slot in choice.undecided() {
        if let Some(call) = choice
            .get(slot)
            .filter(|call| call.displaced_empty && call.is_empty())
        {
            ctx.report(Code::AMBIGUOUS_SAME_INDEX, call.part)?;
        }
    }
    // Classify all calls before emitting any of them, so that the client runs no call if the policy raises an exception
    // for one.
    choice.list_owners();
    let closes = choice.calls.iter().any(|call| call.ended);
    let mut outcomes = Vec::with_capacity(ids.len());
    for slot in choice.in_order() {
        let Some(call) = choice.get(slot).filter(|call| call.outcome.is_none()) else {
            continue;
        };
        let given = ids.remove(&slot).unwrap_or_default();
        let went_on = broken_off && call.late && !call.is_complete();
        let end = if went_on { CallsEnd::Cut } else { end };
        let unclosed = closes && !call.ended;
        let outcome = classify(ctx, call, given, Some(choice), (end, unclosed))?;
        outcomes.push((slot, outcome));
    }
    for (slot, outcome) in outcomes {
        choice.set_outcome(slot, outcome);
        call_events::show_final(ctx, choice, slot);
    }
    Ok(())
}

/// Closes one call that the stream closed explicitly, and emits its final event. A call without text that the client
/// must run stays open until its choice ends, because the finish reason determines whether it is complete.
pub fn close_call(ctx: &mut RuleContext<'_, '_>, choice: &mut Choice, slot: usize) -> ParseResult {
    // A call that the provider executes closes immediately, because only the provider needs the arguments, and the call
    // often has no arguments.
    let waits = |call: &Call| call.text.is_blank() && !call.provider_executed;
    if choice.get(slot).is_none_or(waits) {
        return Ok(());
    }
    finish_arguments(ctx, choice, slot, true)?;
    unwrap(ctx, choice, slot)?;
    if choice.get(slot).is_none_or(waits) {
        choice.track(slot);
        return Ok(());
    }
    let given = identify(ctx, choice, slot)?;
    let has_aliases = |call: &Call| !call.aliases.is_empty();
    let asks = choice.get(slot).is_some_and(has_aliases);
    if asks {
        choice.list_owners();
    }
    let Some(call) = choice.get(slot) else {
        return Ok(());
    };
    let among = asks.then_some(&*choice);
    let outcome = classify(ctx, call, given, among, (CallsEnd::Success, false))?;
    choice.set_outcome(slot, outcome);
    call_events::show_final(ctx, choice, slot);
    Ok(())
}

/// Ends the text of a call, because no more fragments follow: adds or drops held-back text, and resolves AM3. `ended`:
/// the input was not truncated.
fn finish_arguments(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    ended: bool,
) -> ParseResult {
    let Some(call) = choice.get_mut(slot) else {
        return Ok(());
    };
    if let Some(tail) = call.joiner.finish() {
        ctx.report(Code::LONE_SURROGATE, call.part)?;
        give_tail(ctx, choice, slot, tail.encode_utf8(&mut [0; 4]).as_bytes())?;
    }
    let Some(call) = choice.get_mut(slot) else {
        return Ok(());
    };
    call.settle_merge();
    if ended {
        close_shared_id(ctx, choice, slot)?;
    }
    let Some(call) = choice.get_mut(slot) else {
        return Ok(());
    };
    let part = call.part;
    let push = match ended {
        true => call.text.end(),
        false => call.text.drop_replay(),
    };
    if push.change == Change::Replaced {
        call_events::reset(ctx.out, choice, slot);
    }
    match push.code {
        Some(code) => ctx.report(code, part),
        None => Ok(()),
    }
}

fn drop_empty(ctx: &mut RuleContext<'_, '_>, choice: &mut Choice, slot: usize) -> ParseResult {
    let Some(call) = choice.get(slot).filter(|call| call.is_empty()) else {
        return Ok(());
    };
    let part = call.part;
    if call.tentative {
        let needs = ctx.shared.settings.tools.needs_arguments(&call.name);
        call_events::retract(ctx.out, choice, slot);
        ctx.report(Code::DUP_ID_HEADER_DROPPED, part)?;
        if !needs {
            ctx.report(Code::AMBIGUOUS_EMPTY_HEADER, part)?;
        }
    } else if call.name.is_empty() {
        call_events::retract(ctx.out, choice, slot);
    }
    Ok(())
}

/// Drops calls that have neither a name nor an id, and whose complete arguments equal those of a named call.
fn drop_echoes(ctx: &mut RuleContext<'_, '_>, choice: &mut Choice) -> ParseResult {
    let is_echo = |call: &&Call| {
        let is_undecided = !call.dropped && call.outcome.is_none();
        let is_nameless = call.name.is_empty() && call.id.is_none();
        is_undecided && is_nameless && call.is_complete()
    };
    let nameless = choice.calls.iter().filter(is_echo).map(|call| call.slot);
    let nameless: Vec<usize> = nameless.collect();
    if nameless.is_empty() {
        return Ok(());
    }
    let mut named: HashSet<String> = HashSet::new();
    for slot in choice.live() {
        let call = choice.get_mut(slot);
        let call = call.filter(|call| !(call.name.is_empty() || call.custom) && call.is_complete());
        named.extend(call.map(|call| call.canonical().into_owned()));
    }
    for slot in nameless {
        let Some(call) = choice.get_mut(slot) else {
            continue;
        };
        let is_object = call.text.automaton.root() == Some(Root::Object);
        if is_object && named.contains(call.canonical().as_ref()) {
            let part = call.part;
            call_events::retract(ctx.out, choice, slot);
            ctx.report(Code::ARGS_REPLAY_DROPPED, part)?;
        }
    }
    Ok(())
}

/// Drops a call that was opened but not closed, if a call that was closed but not opened has the same name and
/// arguments. The two are the same call, which was sent with two ids.
fn drop_openings(ctx: &mut RuleContext<'_, '_>, choice: &mut Choice) -> ParseResult {
    let is_json = |call: &Call| call.is_complete() && !call.custom;
    let contents = |call: &mut Call| (call.name.clone(), call.canonical().into_owned());
    if !choice.calls.iter().any(|call| call.unopened) {
        return Ok(());
    }
    let mut closed = HashSet::new();
    for slot in choice.live() {
        let call = choice.get_mut(slot);
        closed.extend(
            call.filter(|call| call.unopened && call.ended && is_json(call))
                .map(contents),
        );
    }
    for slot in choice.undecided() {
        let call = choice.get_mut(slot);
        let Some(call) = call.filter(|call| !call.ended && is_json(call)) else {
            continue;
        };
        if closed.contains(&contents(call)) {
            let part = call.part;
            call_events::retract(ctx.out, choice, slot);
            ctx.report(Code::ARGS_REPLAY_DROPPED, part)?;
        }
    }
    Ok(())
}

fn pair(ctx: &mut RuleContext<'_, '_>, choice: &mut Choice) -> ParseResult {
    let live = || {
        let calls = choice.calls.iter();
        calls.filter(|call| !call.dropped && call.outcome.is_none())
    };
    let mut nameless = live().filter(|call| call.name.is_empty() && call.is_complete());
    let mut bare =
        live().filter(|call| !call.name.is_empty() && call.text.is_blank() && !call.custom);
    let (Some(from), None) = (nameless.next(), nameless.next()) else {
        return Ok(());
    };
    let (Some(to), None) = (bare.next(), bare.next()) else {
        return Ok(());
    };
    if from.text.automaton.root() != Some(Root::Object) {
        return Ok(());
    }
    let (part, other) = (to.part, from.part);
    let (to, from, data) = (to.slot, from.slot, from.text.data.clone());
    if let Some(call) = choice.get_mut(to) {
        call.text.replace(data);
    }
    call_events::reset(ctx.out, choice, to);
    merge_call(ctx, choice, to, from);
    ctx.out
        .diagnose(Code::ARGS_PAIRED, Some(part), &other.to_string())
}

/// Replaces whitespace, null and "" with empty text: some gateways send them for a call without arguments. Replaces a
/// JSON string that contains an object with this object.
fn unwrap(ctx: &mut RuleContext<'_, '_>, choice: &mut Choice, slot: usize) -> ParseResult {
    let Some(call) = choice.get_mut(slot) else {
        return Ok(());
    };
    if !call.is_empty() && call.text.is_blank() {
        call.raw = Some(call.text.text().into());
        call.text.replace(Vec::new());
        return Ok(());
    }
    let root = call.text.automaton.root();
    let wraps = matches!(root, Some(Root::String | Root::Literal));
    if !call.is_complete() || !call.text.overflow.is_empty() || !wraps {
        return Ok(());
    }
    let raw = call.text.text().into_owned();
    let inner = canonical_json::unwrap(&raw).filter(|inner| {
        let blank = [' ', '\t', '\n', '\r'];
        inner.trim_start_matches(blank).starts_with('{')
    });
    let (inner, code) = match (raw.trim(), inner) {
        ("null" | "\"\"", _) => (String::new(), Code::ARGS_PLACEHOLDER_REPLACED),
        (_, Some(inner)) => (inner, Code::ARGS_DOUBLE_ENCODED),
        _ => return Ok(()),
    };
    call.text.replace(inner.into_bytes());
    call.raw = Some(raw.into());
    let part = call.part;
    call_events::reset(ctx.out, choice, slot);
    ctx.report(code, part)
}

/// Removes a placeholder from the arguments, because the response has no finish reason and the real arguments may have
/// been cut off. Keeps the placeholder if the token counts show that the response is complete.
fn ignore_placeholder(ctx: &mut RuleContext<'_, '_>, choice: &mut Choice, slot: usize) {
    let runs = ctx.switches().empty_call_without_reason == EmptyCall::Run;
    if runs || ctx.shared.is_counted() {
        return;
    }
    let is_blank = |call: &&mut Call| call.text.gives_way() && call.text.overflow.is_empty();
    if let Some(call) = choice.get_mut(slot).filter(is_blank) {
        call.raw = Some(call.text.text().into());
        call.text.replace(Vec::new());
        call_events::reset(ctx.out, choice, slot);
    }
}

/// Drops the later of two calls with the same name and arguments, if they have the same id, or the same index and no
/// id.
fn dedupe(ctx: &mut RuleContext<'_, '_>, choice: &mut Choice) -> ParseResult {
    let drops_twins = ctx.switches().identical_idless_same_index == IdenticalCall::Drop;
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut positions: HashMap<(DisplacedKey, String), usize> = HashMap::new();
    for slot in choice.live() {
        let Some(call) = choice.get(slot) else {
            continue;
        };
        let key = match (&call.id, call.index) {
            (Some(id), _) => DisplacedKey::Id(id.clone()),
            (None, Some(index)) if drops_twins && call.is_complete() => DisplacedKey::Index(index),
            _ => continue,
        };
        let position = *positions
            .entry((key, call.name.clone()))
            .or_insert(groups.len());
        if position == groups.len() {
            groups.push(Vec::new());
        }
        if let Some(group) = groups.get_mut(position) {
            group.push(slot);
        }
    }
    for group in groups.into_iter().filter(|group| group.len() > 1) {
        // Calls that are already final are kept. Every other call that repeats a final call is dropped.
        let judged = |slot: &usize| choice.get(*slot).is_some_and(|call| call.outcome.is_some());
        let (judged, others): (Vec<usize>, Vec<usize>) = group.into_iter().partition(judged);
        let mut contents: HashSet<String> = HashSet::new();
        for slot in judged.into_iter().chain(others) {
            let Some(call) = choice.get_mut(slot) else {
                continue;
            };
            let content = if call.is_complete() {
                call.canonical().into_owned()
            } else {
                call.text.text().into_owned()
            };
            let (part, by_index) = (call.part, call.id.is_none());
            if contents.insert(content) || call.outcome.is_some() {
                continue;
            }
            call_events::retract(ctx.out, choice, slot);
            ctx.report(Code::ARGS_REPLAY_DROPPED, part)?;
            if by_index {
                ctx.report(Code::AMBIGUOUS_IDENTICAL_CALL, part)?;
            }
        }
    }
    Ok(())
}

fn identify(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
) -> Result<String, Fault> {
    let last = ctx.switches().unstable_id == UnstableId::Last;
    let keeper = reuse_of(choice, slot, last).map(|(first, wire)| {
        // The earlier call may still be open, so the id is reserved for it.
        let own = choice.get(first).is_some_and(|first| {
            first.outcome.is_none() && first.wire_id(last) == Some(wire.as_str())
        });
        let free = !ctx.shared.is_taken(&wire);
        // Two calls received the id, even if the id is only an alias of the earlier call.
        ctx.shared.ids_given.insert(wire);
        (first, own && free)
    });
    if let Some((first, true)) = keeper
        && let Some(first) = choice.get_mut(first)
    {
        first.keeps_id = true;
    }
    let Some(call) = choice.get(slot) else {
        return Ok(String::new());
    };
    let wire = call.wire_id(last);
    if let Some(wire) = wire
        && call.keeps_id
    {
        return Ok(wire.to_owned());
    }
    let wanted = wire.map_or_else(|| ctx.shared.minted_id(call.part), str::to_owned);
    let given = ctx.shared.fresh_id(wanted, wire.is_none());
    ctx.shared.ids_given.insert(given.clone());
    if Some(given.as_str()) != wire {
        let allowed = wire.is_none() && ctx.shared.ids_optional;
        let code = if allowed {
            Code::ID_ABSENT
        } else {
            Code::ID_MINTED
        };
        ctx.out.diagnose(code, Some(call.part), &given)?;
    }
    Ok(given)
}

/// Returns the slot of the first earlier call that received the id of this call, and the id. Returns `None` if no
/// earlier call received the id. Excludes dropped calls.
fn reuse_of(choice: &mut Choice, slot: usize, last: bool) -> Option<(usize, String)> {
    let call = choice.get(slot)?;
    let wire = call.wire_id(last)?.to_owned();
    let (mut found, mut earlier) = (None, call.first);
    while let Some(call) = earlier.and_then(|slot| choice.get(slot)) {
        if !call.dropped {
            if !call.has_id(&wire) {
                break;
            }
            found = Some(call.slot);
        }
        earlier = call.first;
    }
    let found = found?;
    let mut later = Some(slot);
    while let Some(call) = later
        .filter(|slot| *slot != found)
        .and_then(|slot| choice.get_mut(slot))
    {
        later = call.first.replace(found); // later lookups take one step
    }
    Some((found, wire))
}
