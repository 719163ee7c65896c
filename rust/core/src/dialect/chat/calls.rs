//! The entries of `tool_calls`, in every shape gateways give them, as fragments of calls.
//!
//! Normalises (absent, null and blank are one thing; numbers are accepted as ids), decides nothing about identity.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde_json::Value;

use super::error::{is_string, string, text};
use super::metadata::Leftovers;
use super::notes::{Notes, Pointer};
use super::read::{Call, Function, Slot, Walk, present};
use crate::delta::Fragment;
use crate::json::{Kind, Number, Raw};
use crate::spec;

/// Ids that say there is none.
static ABSENT: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let list = spec::dialects()
        .get("chat")
        .and_then(|chat| chat.get("absent_ids"))
        .and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
});

/// The fragments of a list of entries.
pub(crate) fn fragments<'a>(
    entries: &[Walk<'a, Call<'a>>],
    max_index: Option<u64>,
    notes: &mut Notes<'a>,
    at: Pointer<'_>,
) -> Vec<Fragment<'a>> {
    let mut out = Vec::with_capacity(entries.len());
    for (place, entry) in entries.iter().enumerate() {
        let at = at.item(place);
        match entry {
            Walk::Read(call) => out.push(fragment(call, max_index, notes, at)),
            Walk::Other(raw) => notes.unless_null(*raw, at),
        }
    }
    let length = u32::try_from(out.len()).unwrap_or(u32::MAX);
    for (position, fragment) in (0..).zip(&mut out) {
        fragment.position = position;
        fragment.array_len = length;
    }
    out
}

/// The fragment of the legacy `function_call` member.
pub(crate) fn legacy<'a>(
    function: &Function<'a>,
    notes: &mut Notes<'a>,
    at: Pointer<'_>,
) -> Fragment<'a> {
    let mut out = Fragment {
        legacy: true,
        array_len: 1,
        ..Fragment::default()
    };
    take(&mut out, function, notes, at, "arguments");
    let mut leftovers = Leftovers::default();
    leftovers.extend(&function.rest);
    out.metadata = leftovers.text().map(Cow::Owned);
    out
}

fn fragment<'a>(
    call: &Call<'a>,
    max_index: Option<u64>,
    notes: &mut Notes<'a>,
    at: Pointer<'_>,
) -> Fragment<'a> {
    let mut out = Fragment {
        has_index_key: call.index.is_some(),
        ..Fragment::default()
    };
    (out.index, out.index_raw) = index(call.index, max_index);
    out.id = id(call.id, notes, at.member("id"));
    out.custom = is_string(call.kind, "custom");
    let mut leftovers = Leftovers::default();
    leftovers.extend(&call.rest);
    for (walk, member, input) in [
        (&call.function, "function", "arguments"),
        (&call.custom, "custom", "input"),
    ] {
        match walk {
            Some(Walk::Read(function)) => {
                out.custom |= member == "custom";
                take(&mut out, function, notes, at.member(member), input);
                leftovers.extend(&function.rest);
            }
            Some(Walk::Other(raw)) => notes.unless_null(*raw, at.member(member)),
            None => {}
        }
    }
    if out.name.is_none() {
        out.name = name(call.name, notes, at.member("name"));
    }
    if out.arguments.is_none() && out.object_arguments.is_none() {
        arguments(&mut out, call.arguments, notes, at.member("arguments"));
    }
    out.metadata = leftovers.text().map(Cow::Owned);
    out
}

fn take<'a>(
    out: &mut Fragment<'a>,
    function: &Function<'a>,
    notes: &mut Notes<'a>,
    at: Pointer<'_>,
    input: &str,
) {
    if out.id.is_none() {
        out.id = id(function.id, notes, at.member("id"));
    }
    if out.name.is_none() {
        out.name = name(function.name, notes, at.member("name"));
    }
    arguments(out, function.arguments, notes, at.member(input));
}

/// An index that can be one, or what stands there instead.
fn index(slot: Slot<'_>, max_index: Option<u64>) -> (Option<u32>, Option<&str>) {
    let Some(raw) = present(slot) else {
        return (None, None);
    };
    let number = match raw.kind {
        Kind::Number => Number { raw: raw.text }.integral(),
        Kind::String => digits(raw),
        _ => None,
    };
    let usable = number
        .and_then(|number| u32::try_from(number).ok())
        .filter(|number| max_index.is_none_or(|max| u64::from(*number) <= max));
    match usable {
        Some(number) => (Some(number), None),
        None => (None, Some(raw.text)),
    }
}

pub(crate) fn digits(raw: Raw<'_>) -> Option<i64> {
    let text = string(raw)?;
    let all = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}

/// An id as sent; a number as its text.
fn id<'a>(slot: Slot<'a>, notes: &mut Notes<'a>, at: Pointer<'_>) -> Option<Cow<'a, str>> {
    let raw = present(slot)?;
    if raw.kind == Kind::Number {
        return Some(Cow::Borrowed(raw.text));
    }
    word(raw, notes, at).and_then(usable_id)
}

/// An id, unless it says that there is none.
pub(crate) fn usable_id(id: Cow<'_, str>) -> Option<Cow<'_, str>> {
    not_blank(id).filter(|id| !ABSENT.contains(&id.as_ref()))
}

pub(crate) fn not_blank(word: Cow<'_, str>) -> Option<Cow<'_, str>> {
    (!word.trim().is_empty()).then_some(word)
}

fn name<'a>(slot: Slot<'a>, notes: &mut Notes<'a>, at: Pointer<'_>) -> Option<Cow<'a, str>> {
    word(present(slot)?, notes, at)
}

/// A string that is not blank.
fn word<'a>(raw: Raw<'a>, notes: &mut Notes<'a>, at: Pointer<'_>) -> Option<Cow<'a, str>> {
    let Some(text) = text(raw) else {
        notes.shape(raw, at);
        return None;
    };
    let (word, lone) = text.into_whole();
    notes.lone |= lone;
    not_blank(word)
}

fn arguments<'a>(out: &mut Fragment<'a>, slot: Slot<'a>, notes: &mut Notes<'a>, at: Pointer<'_>) {
    let Some(raw) = present(slot) else { return };
    match raw.kind {
        Kind::String => out.arguments = text(raw),
        Kind::Object => out.object_arguments = Some(raw.text),
        _ => notes.shape(raw, at),
    }
}
