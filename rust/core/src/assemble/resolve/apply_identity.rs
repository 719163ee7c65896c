//! Opens calls, and applies the id, name and index of a fragment to its call.
//!
//! `by_evidence` has already decided which call the fragment belongs to.

use crate::assemble::choice::Choice;
use crate::assemble::choice::DisplacedKey;
use crate::assemble::part::call::Call;
use crate::assemble::part::call::Id;
use crate::assemble::part::call::MAX_ALIASES;
use crate::assemble::part::call_events;
use crate::assemble::part::shared_id::SharedId;
use crate::assemble::resolve::by_evidence::Decision;
use crate::assemble::resolve::by_evidence::Incoming;
use crate::assemble::resolve::names::Progress;
use crate::assemble::resolve::names::Relation;
use crate::assemble::resolve::names::relate;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
use crate::model::fault::Fault;
use crate::model::policy::EmptyHeader;
use crate::model::policy::ParallelHeaders;
use crate::model::spec::Code;

pub fn open_call(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    incoming: &Incoming<'_>,
    decision: &Decision,
) -> Result<usize, Fault> {
    if let Some(index) = incoming.index
        && let Some(displaced) = choice.by_index.get(index)
        && choice.get(displaced).is_some_and(|call| call.id.is_none())
    {
        choice.remember(displaced, DisplacedKey::Index(index));
    }
    let first = incoming.id.and_then(|id| choice.by_id.get(id).copied());
    if let (Some(id), Some(first)) = (incoming.id, first) {
        choice.remember(first, DisplacedKey::Id(id.into()));
    }
    let before = incoming.index.and_then(|index| choice.by_index.get(index));
    let before = before.and_then(|slot| choice.get(slot));
    let pending_ambiguity =
        before.is_some_and(|call| call.text.is_unfinished() && !call.is_empty() && !call.dropped);
    let another = incoming
        .index
        .is_some_and(|index| choice.by_index.get(index).is_some());
    let taken = incoming.id.is_some_and(|id| ctx.shared.is_used(id));
    if another || taken || decision.tentative || incoming.id.is_none() || incoming.name.is_none() {
        // Clients would add this fragment to another call, or read it as a call for which they cannot send a result.
        ctx.out.mark_misread(match incoming.id {
            _ if another => "index_taken",
            _ if taken => "id_taken",
            Some(_) => "no_name",
            None => "no_id",
        });
    }
    let slot = choice.create(ctx, incoming.custom)?;
    let tentative = decision.tentative && ctx.switches().dup_id_empty_header == EmptyHeader::Drop;
    if let Some(displaced_empty) = decision
        .displaced_empty
        .and_then(|slot| choice.get_mut(slot))
    {
        displaced_empty.displaced_empty = true;
    }
    let id = incoming.id.map(Id::from);
    if let Some(id) = &id {
        choice.by_id.insert(id.clone(), slot);
        ctx.shared.ids_seen.insert(id.clone());
    }
    if let Some(call) = choice.get_mut(slot) {
        call.tentative = tentative;
        // The new call takes the index of a call whose arguments are incomplete.
        call.pending_ambiguity = pending_ambiguity.then_some(Code::AMBIGUOUS_SAME_INDEX);
        call.first = first;
        call.name = incoming.name.unwrap_or_default().to_owned();
    }
    if let Some(id) = id {
        choice.set_id(slot, id);
    }
    if incoming.name.is_none() {
        choice.unnamed.push_back(slot);
    } else if !tentative {
        call_events::named(choice, slot);
    }
    choice.bind(slot, incoming.index);
    Ok(slot)
}

/// Reports an ambiguity, unless it has already been reported for this call.
pub fn report_guess(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    code: Code,
) -> ParseResult {
    let call = choice.get_mut(slot);
    let Some(call) = call.filter(|call| !call.guess_reported.contains(&code)) else {
        return Ok(());
    };
    call.guess_reported.push(code);
    ctx.report(code, call.part)?;
    if code == Code::AMBIGUOUS_ORPHAN_INDEX {
        choice.mark_ambiguous(slot, code);
    }
    Ok(())
}

/// Opens another call with the same name and type as this call.
pub fn sibling(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    index: Option<i64>,
) -> Result<usize, Fault> {
    call_events::flush_unstarted(ctx.out, choice, None);
    ctx.out.mark_misread("another_call");
    let (custom, name) = match choice.get(slot) {
        Some(call) => (call.custom, call.name.clone()),
        None => (false, String::new()),
    };
    let other = choice.create(ctx, custom)?;
    if let Some(call) = choice.get_mut(other) {
        call.name = name;
    }
    call_events::named(choice, other);
    choice.bind(other, index);
    Ok(other)
}

/// Applies the id, name and index of a fragment to the existing call that it belongs to.
pub fn address(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    incoming: &Incoming<'_>,
) -> ParseResult {
    take_id(ctx, choice, slot, incoming.id)?;
    let repeated = choice
        .get(slot)
        .is_some_and(|call| incoming.name == Some(call.name.as_str()));
    if let Some(name) = incoming.name.filter(|_| !repeated) {
        let progress = choice.get(slot).map(|call| call.progress(incoming.payload));
        take_name(ctx, choice, slot, name, progress.unwrap_or(Progress::None))?;
    }
    let free = incoming
        .index
        .filter(|index| choice.by_index.get(*index).is_none());
    let Some(call) = choice.get_mut(slot) else {
        return Ok(());
    };
    if repeated && incoming.payload.is_empty() && call.is_complete() {
        call.announced_again.insert(incoming.index);
    }
    let parallel = repeated
        && incoming.id.is_some()
        && call.index.is_some()
        && !call.is_complete()
        && !call.custom;
    if let Some(index) = free.filter(|_| parallel) {
        start_shared_id(ctx, call, index)?;
    }
    choice.bind(slot, incoming.index);
    Ok(())
}

/// AM3: records that the id of a call with incomplete arguments was announced at a second index. From now on, the text
/// of each index is collected.
fn start_shared_id(ctx: &mut RuleContext<'_, '_>, call: &mut Call, index: i64) -> ParseResult {
    call.announced_again.insert(Some(index));
    let auto = ctx.switches().dup_id_parallel_headers == ParallelHeaders::Auto;
    let Some(first) = call.index.filter(|_| auto) else {
        return Ok(());
    };
    if call.shared_id.is_none() {
        call.shared_id = Some(Box::new(SharedId::new(first, &call.text.data)));
        ctx.report(Code::AMBIGUOUS_DUPLICATE_ID, call.part)?;
    }
    if let Some(shared_id) = &mut call.shared_id {
        shared_id.announce(index);
    }
    Ok(())
}

pub fn take_id(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    identity: Option<&str>,
) -> ParseResult {
    let (Some(identity), Some(call)) = (identity, choice.calls.get_mut(slot)) else {
        return Ok(());
    };
    if call.id.as_deref() == Some(identity) {
        call.last_id = None;
        return Ok(());
    }
    let first = call.id.is_none();
    let id = Id::from(identity);
    if first {
        call.last_id = None;
        choice.set_id(slot, id.clone());
        choice.by_id.insert(id.clone(), slot);
        ctx.shared.ids_seen.insert(id);
        return Ok(());
    }
    if !call.aliases.iter().any(|alias| alias == identity) {
        call.id_changed = true;
        if call.aliases.len() == MAX_ALIASES {
            call.last_id = Some(id);
            return Ok(());
        }
        call.aliases.push(identity.to_owned());
        ctx.out
            .diagnose(Code::UNSTABLE_ID, Some(call.part), identity)?;
    }
    call.last_id = Some(id.clone());
    choice.by_id.insert(id.clone(), slot);
    ctx.shared.ids_seen.insert(id);
    Ok(())
}

pub fn take_name(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    name: &str,
    progress: Progress,
) -> ParseResult {
    let Some(call) = choice.get_mut(slot) else {
        return Ok(());
    };
    match relate(&call.name, name, &ctx.shared.settings.tools, progress) {
        Relation::Late | Relation::Grows => {
            let first = call.name.is_empty();
            name.clone_into(&mut call.name);
            if first {
                call_events::named(choice, slot);
            } else {
                ctx.out.mark_misread("name_in_pieces"); // clients concatenate all pieces, or use only the last
            }
        }
        Relation::Fragment => {
            call.name.push_str(name);
            ctx.check_name(&call.name)?;
            ctx.out.mark_misread("name_in_pieces"); // clients concatenate all pieces, or use only the last
            // If the name of any tool begins with this text, more pieces may follow. `classify` reports a name that
            // remains incomplete.
            let is_likely = ctx.shared.settings.tools.begins(&call.name, "");
            call.doubtful_piece = is_likely.then(|| name.into());
            if !is_likely {
                ctx.out.diagnose(Code::NAME_JOINED, Some(call.part), name)?;
            }
            choice.joins_names = true;
        }
        Relation::Other if !call.name_conflict_reported => {
            call.name_conflict_reported = true;
            ctx.out
                .diagnose(Code::NAME_CONFLICT, Some(call.part), name)?;
        }
        Relation::Same | Relation::Other => {}
    }
    Ok(())
}
