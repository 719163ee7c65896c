//! Applies a complete message to the streamed content of a choice. The message corrects and completes the content; the
//! message is not appended to the content.
//!
//! If a gateway responds to a streaming request with a complete body, the message is the only content. Content that the
//! message omits is kept. If the message differs from the streamed content, the message takes precedence. However,
//! complete streamed arguments are kept if the message has no arguments, `{}`, or arguments that are not a JSON object.
//! The identity rules for deltas are not used, because each call in the message is complete.

use crate::assemble::choice::Choice;
use crate::assemble::part::append_arguments::append_to_arguments;
use crate::assemble::part::call::Call;
use crate::assemble::part::call_events;
use crate::assemble::part::canonical_json::canonical;
use crate::assemble::part::canonical_json::is_whole;
use crate::assemble::part::text_parts::Channel;
use crate::assemble::resolve::apply_identity::open_call;
use crate::assemble::resolve::apply_identity::take_id;
use crate::assemble::resolve::apply_identity::take_name;
use crate::assemble::resolve::by_evidence::Decision;
use crate::assemble::resolve::by_evidence::Incoming;
use crate::assemble::resolve::names::Progress;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
use crate::json::Text;
use crate::model::delta::Fragment;
use crate::model::delta::Message;
use crate::model::fault::Fault;
use crate::model::spec::Code;
use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::HashSet;

/// Applies a complete message to its choice.
pub fn reconcile(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    message: Message<'_>,
) -> ParseResult {
    if !std::mem::replace(&mut choice.message_seen, true) {
        choice.changed.extend(0..choice.calls.len());
    }
    channel(ctx, choice, Channel::Reasoning, message.reasoning)?;
    channel(ctx, choice, Channel::Text, message.content)?;
    channel(ctx, choice, Channel::Refusal, message.refusal)?;
    if message.fragments.is_empty() {
        return Ok(());
    }
    calls(ctx, choice, &message.fragments)
}

fn channel(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    channel: Channel,
    text: Option<Text<'_>>,
) -> ParseResult {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(());
    };
    if choice.textual.length(channel) == 0 {
        call_events::flush_unstarted(ctx.out, choice, None);
        choice.textual.push_raw(ctx, channel, "raw", text, None)?;
        return Ok(());
    }
    let (clean, _) = text.into_whole();
    if clean.len() >= choice.textual.length(channel)
        && let Some(more) = clean.strip_prefix(choice.textual.channel_text(channel).as_str())
    {
        if !more.is_empty() {
            call_events::flush_unstarted(ctx.out, choice, None);
            let more = Text::plain(more);
            choice.textual.push_raw(ctx, channel, "raw", more, None)?;
        }
        return Ok(());
    }
    let part = choice.textual.current().map(|part| part.part);
    let corrected = choice.textual.correct(ctx, channel, &clean)?;
    let part = part.filter(|_| corrected);
    ctx.out.diagnose(Code::CONFLICT, part, channel.name())
}

fn calls(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    fragments: &[Fragment<'_>],
) -> ParseResult {
    choice.list_owners();
    let count = choice.calls.len();
    // For a message with n calls, at most n streamed calls are examined, so that a stream with many messages does not
    // scan all calls for each message.
    let streamed = choice.calls.iter().filter(|call| was_streamed(call));
    let streamed = streamed.take(fragments.len()).map(|call| call.slot);
    let streamed: Vec<usize> = streamed.collect();
    let mut tried: HashMap<&str, usize> = HashMap::new();
    let mut met: HashSet<usize> = HashSet::new();
    for (list_index, fragment) in fragments.iter().enumerate() {
        let Some((incoming, payload)) = read(ctx, fragment)? else {
            continue;
        };
        let incoming = Incoming {
            payload: payload.as_bytes(),
            ..incoming
        };
        choice.textual.close_open(ctx)?;
        let same_position = streamed.get(list_index).copied();
        let from = incoming.id.and_then(|id| tried.get(id).copied());
        let named = named(choice, &incoming, from.unwrap_or_default(), &met);
        if let Some(id) = fragment.id.as_deref() {
            tried.insert(id, named.map_or(usize::MAX, |slot| slot + 1));
        }
        let slot = match named.or_else(|| find(choice, &incoming, same_position, &met)) {
            Some(slot) => {
                take(ctx, choice, slot, &incoming)?;
                slot
            }
            None => {
                let slot = open_call(ctx, choice, &incoming, &Decision::new("message"))?;
                if !incoming.payload.is_empty() {
                    append_to_arguments(ctx, choice, slot, incoming.payload, None)?;
                }
                choice.track(slot);
                slot
            }
        };
        met.insert(slot);
        if let Some(call) = choice.get_mut(slot) {
            call.misses_arguments |= fragment.misses_arguments;
        }
        if let (Some(metadata), Some(call)) = (&fragment.metadata, choice.get_mut(slot)) {
            let more = call.metadata.get_or_insert_default().add(metadata);
            ctx.spend_growth(more)?;
        }
    }
    for slot in choice.take_changed(count) {
        if met.contains(&slot) {
            choice.changed.insert(slot); // the next message may omit this call
        } else if let Some(call) = choice.get_mut(slot)
            && was_streamed(call)
            && (!call.name.is_empty() || !call.is_empty())
            && !std::mem::replace(&mut call.conflict_reported, true)
        {
            ctx.out
                .diagnose(Code::CONFLICT, Some(call.part), "tool_calls")?;
        }
    }
    Ok(())
}

/// Reads one call of the message, or returns `None` if the call is empty. The index of the call is ignored, because it
/// can only repeat the position in the list.
fn read<'a>(
    ctx: &RuleContext<'_, '_>,
    fragment: &'a Fragment<'_>,
) -> Result<Option<(Incoming<'a>, Cow<'a, str>)>, Fault> {
    let payload = match (fragment.object_arguments, &fragment.arguments) {
        (Some(raw), _) if !raw.is_empty() => Cow::Borrowed(raw),
        (_, Some(text)) => text.clone().into_whole().0,
        _ => Cow::Borrowed(""),
    };
    if fragment.id.is_none() && fragment.name.is_none() && payload.is_empty() {
        return Ok(None);
    }
    if let Some(id) = &fragment.id {
        ctx.check_id(id)?;
    }
    if let Some(name) = &fragment.name {
        ctx.check_name(name)?;
    }
    let incoming = Incoming {
        index: None,
        id: fragment.id.as_deref(),
        name: fragment.name.as_deref(),
        payload: &[],
        is_object: false,
        custom: fragment.custom,
        position: 0,
        array_len: 1,
    };
    Ok(Some((incoming, payload)))
}

fn was_streamed(call: &Call) -> bool {
    !(call.dropped || call.tentative && call.is_empty())
}

/// Returns the first streamed call whose first id is that of the call in the message. Ignores calls before position
/// `from` and calls that already match another call in the message (`met`).
fn named(
    choice: &Choice,
    incoming: &Incoming<'_>,
    from: usize,
    met: &HashSet<usize>,
) -> Option<usize> {
    let mut owned = choice.owned(incoming.id?, from);
    owned.find(|slot| {
        let call = choice.get(*slot).filter(|call| was_streamed(call));
        let fits = call.is_some_and(|call| call.suits(incoming.payload, incoming.custom));
        fits && !met.contains(slot)
    })
}

/// Returns the streamed call that a call in the message repeats, if `named` returned none. Returns the call that has
/// the id as an alias. If no call has this alias, returns the call at the same position.
fn find(
    choice: &mut Choice,
    incoming: &Incoming<'_>,
    same_position: Option<usize>,
    met: &HashSet<usize>,
) -> Option<usize> {
    let fits = |choice: &Choice, slot: usize| {
        let call = choice.get(slot);
        call.is_some_and(|call| call.suits(incoming.payload, incoming.custom))
    };
    if let Some(id) = incoming.id {
        let alias = choice.by_id.get(id).copied();
        let alias = alias.filter(|slot| !met.contains(slot));
        let has_id = |slot: &usize| choice.get(*slot).is_some_and(|call| call.has_id(id));
        if let Some(alias) = alias.filter(|slot| has_id(slot) && fits(choice, *slot)) {
            return Some(alias);
        }
    }
    let slot = same_position.filter(|slot| !met.contains(slot) && fits(choice, *slot))?;
    let call = choice.get_mut(slot)?;
    if !call.name.is_empty() && incoming.name != Some(call.name.as_str()) {
        return None;
    }
    let fits = incoming.id.is_none()
        || call.id.is_none()
        || !call.is_complete()
        || call.repeats(incoming.payload);
    fits.then_some(slot)
}

fn take(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    slot: usize,
    incoming: &Incoming<'_>,
) -> ParseResult {
    take_id(ctx, choice, slot, incoming.id)?;
    let own = choice.get(slot).map(|call| call.name.clone());
    if let Some(name) = incoming.name.filter(|name| own.as_deref() != Some(*name)) {
        let started = choice.get(slot).is_some_and(|call| !call.is_empty());
        let progress = if started {
            Progress::Started
        } else {
            Progress::None
        };
        take_name(ctx, choice, slot, name, progress)?;
    }
    choice.latest = Some(slot);
    let payload = incoming.payload;
    let Some(call) = choice.get_mut(slot) else {
        return Ok(());
    };
    call.settle_merge();
    if !payload.is_empty() {
        call.settle_type(incoming.custom);
    }
    let part = call.part;
    if payload.is_empty() || call.text.data == payload {
        call_events::publish(ctx.out, choice, slot);
        return Ok(());
    }
    if call.text.is_complete() && !call.custom {
        if !is_whole(payload) || !incoming.starts_object() {
            return ctx.report(Code::CONFLICT, part);
        }
        let sent = canonical(&String::from_utf8_lossy(payload));
        if sent == call.canonical() {
            return Ok(());
        }
        if sent == "{}" {
            return ctx.report(Code::CONFLICT, part);
        }
    }
    let goes_on = payload.starts_with(&call.text.data);
    let before = call.text.size();
    ctx.check_piece(payload.len())?;
    ctx.count_arguments(before, payload.len())?;
    call.text.replace(payload.to_vec());
    call.shared_id = None;
    call.tentative = false;
    if !goes_on {
        call_events::reset(ctx.out, choice, slot);
        ctx.report(Code::CONFLICT, part)?;
    }
    call_events::publish(ctx.out, choice, slot);
    choice.track(slot);
    Ok(())
}
