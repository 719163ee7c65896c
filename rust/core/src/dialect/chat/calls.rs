//! Converts the tool calls in a delta or message to call fragments. The module supports every shape that gateways use.
//!
//! Absent, null, and blank values are equivalent, and a number is accepted as an id. The assembler determines which
//! call a fragment belongs to.

use crate::dialect::anomalies::Anomalies;
use crate::dialect::anomalies::Pointer;
use crate::dialect::chat::read;
use crate::dialect::chat::read::CALLS;
use crate::dialect::chat::read::Call;
use crate::dialect::chat::read::Delta;
use crate::dialect::chat::read::Function;
use crate::dialect::chat::read::TypedValue;
use crate::dialect::chat::readers::is_filled;
use crate::dialect::think_tags::is_white;
use crate::dialect::unread_arguments::may_hold_arguments;
use crate::dialect::upstream_error::is_empty_value;
use crate::json::Key;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::Text;
use crate::json::extra_fields::ExtraFields;
use crate::json::members::Member;
use crate::json::members::Object;
use crate::json::members::Slot;
use crate::json::members::find;
use crate::json::members::integer;
use crate::json::members::is_string;
use crate::json::members::items;
use crate::json::members::present;
use crate::json::members::string;
use crate::json::members::text;
use crate::model::delta::Fragment;
use crate::model::spec;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::LazyLock;

/// Placeholders that gateways send as a call id if the call has no id.
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

/// An unusable index is reported with at most this many characters of its JSON text.
const INDEX_CHARS: usize = 64;

/// Returns the name and value of a member that a gateway sends instead of `tool_calls`. Returns `None` if `tool_calls`
/// is present or there is no such member.
#[inline]
pub(crate) fn other_calls<'a>(delta: &Delta<'a>) -> Option<(&'static str, Raw<'a>)> {
    if delta.other_members.is_empty()
        || present(delta.tool_calls.as_ref().map(TypedValue::raw)).is_some()
    {
        return None;
    }
    CALLS.into_iter().skip(1).find_map(|name| {
        let raw = find(&delta.other_members, name)?;
        matches!(raw.kind, Kind::Array | Kind::Object).then_some((name, raw))
    })
}

/// Returns the members of an object whose keys are all numbers. PHP writes some arrays in this form. Returns an empty
/// slice for an object with other keys.
fn numbered<'c, 'a>(call: &'c Call<'a>) -> &'c [Member<'a>] {
    let slots = [call.index, call.id, call.kind, call.name, call.arguments];
    let is_call =
        slots.iter().any(Option::is_some) || call.function.is_some() || call.custom.is_some();
    match !is_call && read::is_numbered(&call.other_members) {
        true => &call.other_members,
        false => &[],
    }
}

/// Returns the fragments in the value of `tool_calls`. Nested lists are accepted. `listed`: false if the value is an
/// object, which is either one call or contains calls under numeric keys.
pub(crate) fn fragments<'a>(
    entries: &[TypedValue<'a, Call<'a>>],
    listed: bool,
    max_index: Option<u64>,
    notes: &mut Anomalies<'a>,
    at: Pointer<'_>,
) -> Vec<Fragment<'a>> {
    let mut out = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        let item = at.item(index);
        let at = if listed { item } else { at };
        match entry {
            TypedValue::Read(call, _) => {
                if !listed {
                    notes.mark_misread("no_list");
                }
                let numbered = if listed { &[] } else { numbered(call) };
                for member in numbered {
                    let key = member.key.name();
                    for entry in read::calls(member.raw) {
                        if let TypedValue::Read(call, _) = entry {
                            out.push(fragment(&call, max_index, notes, at.member(&key)));
                        }
                    }
                }
                if numbered.is_empty() {
                    out.push(fragment(call, max_index, notes, at));
                }
            }
            TypedValue::Other(raw) if raw.kind == Kind::Array && !is_empty_value(*raw) => {
                notes.mark_misread("no_list");
                for (position, entry) in read::calls(*raw).iter().enumerate() {
                    match entry {
                        TypedValue::Read(call, _) => {
                            out.push(fragment(call, max_index, notes, at.item(position)));
                        }
                        TypedValue::Other(raw) => notes.unless_null(*raw, at.item(position)),
                    }
                }
            }
            TypedValue::Other(raw) => notes.unless_null(*raw, at),
        }
    }
    let length = u32::try_from(out.len()).unwrap_or(u32::MAX);
    for (position, fragment) in (0..).zip(&mut out) {
        fragment.position = position;
        fragment.array_len = length;
    }
    out
}

/// Returns the fragment in the legacy `function_call` member. A legacy call has no index.
pub(crate) fn legacy<'a>(
    function: &Function<'a>,
    notes: &mut Anomalies<'a>,
    at: Pointer<'_>,
) -> Fragment<'a> {
    let mut out = Fragment {
        legacy: true,
        array_len: 1,
        ..Fragment::default()
    };
    arguments(&mut out, function.arguments);
    out.id = id(function.id, notes, at.member("id"));
    out.name = name(function.name, notes, at.member("name"));
    out.misses_arguments = lacks_arguments(&out) && may_hold_arguments(&function.other_members);
    let mut leftovers = ExtraFields::default();
    leftovers.extend(&function.other_members);
    out.metadata = leftovers.text().map(Cow::Owned);
    out
}

/// Returns the calls of a delta or message that are used: the calls in its first list, and the call in `function_call`.
pub(crate) fn main_calls<'a>(
    delta: &Delta<'a>,
    max_index: Option<u64>,
    notes: &mut Anomalies<'a>,
) -> Vec<Fragment<'a>> {
    let mut out = Vec::new();
    if let Some(TypedValue::Read(entries, raw)) = &delta.tool_calls {
        let listed = raw.kind == Kind::Array;
        out = fragments(entries, listed, max_index, notes, Pointer::ROOT);
    } else if let Some((_, raw)) = other_calls(delta) {
        out = listed_calls(raw, max_index, notes);
    }
    if let Some(TypedValue::Read(function, _)) = &delta.function_call {
        out.push(legacy(function, notes, Pointer::ROOT));
    }
    out
}

/// Returns the calls of a delta or message that `main_calls` does not return.
pub(crate) fn further_calls<'a>(
    delta: &Delta<'a>,
    max_index: Option<u64>,
    notes: &mut Anomalies<'a>,
) -> Vec<Fragment<'a>> {
    if delta.other_members.is_empty() {
        return Vec::new();
    }
    let used = other_calls(delta).map(|(name, _)| name);
    let names = CALLS.into_iter().skip(1).filter(|name| used != Some(name));
    let lists = names.filter_map(|name| read::filled_member(&delta.other_members, name));
    lists
        .flat_map(|raw| listed_calls(raw, max_index, notes))
        .collect()
}

fn listed_calls<'a>(
    raw: Raw<'a>,
    max_index: Option<u64>,
    notes: &mut Anomalies<'a>,
) -> Vec<Fragment<'a>> {
    let listed = raw.kind == Kind::Array;
    fragments(&read::calls(raw), listed, max_index, notes, Pointer::ROOT)
}

/// Returns true if a call in `tool_calls` of the same delta or message has the same name and arguments as `legacy`.
pub(crate) fn is_repeated(legacy: &Fragment<'_>, entries: &[Fragment<'_>]) -> bool {
    let sent = call_content(legacy);
    entries.iter().any(|entry| call_content(entry) == sent)
}

/// Returns the name and the arguments of a fragment for comparison with other fragments. Absent values are returned as
/// empty values.
pub(crate) fn call_content<'f>(
    fragment: &'f Fragment<'_>,
) -> (&'f str, Option<&'f Text<'f>>, &'f str) {
    (
        fragment.name.as_deref().unwrap_or_default(),
        fragment.arguments.as_ref().filter(|text| !text.is_empty()),
        fragment.object_arguments.unwrap_or_default(),
    )
}

/// Members of a delta that is itself a `tool_use` call fragment (Snowflake).
static TOOL_USE_FIELDS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| spec::words(spec::fact("chat", "tool_use_fields")));
/// Members of a `tool_use` object that may contain the arguments, in order of precedence.
const TOOL_USE_TEXTS: [&str; 3] = ["input", "partial_json", "arguments"];

/// Names that some gateways use in place of `arguments`.
static OTHER_ARGUMENTS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| spec::words(spec::fact("chat", "other_arguments")));

/// Members of a `tool_use` object that may contain the id, in order of precedence.
const TOOL_USE_IDS: [&str; 3] = ["tool_use_id", "toolUseId", "id"];
/// Members whose value is a list that contains only calls.
const TOOL_USE_CALLS: [&str; 2] = ["tool_use", "tool_uses"];

/// Returns true if the delta itself is a call fragment, because its type is `tool_use` or it contains a `tool_use`
/// object.
#[inline]
pub(crate) fn is_tool_use(delta: &Delta<'_>) -> bool {
    let is_object = |raw: Raw<'_>| raw.kind == Kind::Object;
    !delta.other_members.is_empty()
        && (is_string(find(&delta.other_members, "type"), "tool_use")
            || find(&delta.other_members, "tool_use").is_some_and(is_object))
}

/// Returns true if the delta can continue the preceding `tool_use` call, because it has argument text but no type.
pub(crate) fn continues_tool_use(delta: &Delta<'_>) -> bool {
    let is_text = |key| find(&delta.other_members, key).is_some_and(|raw| raw.kind == Kind::String);
    find(&delta.other_members, "type").is_none() && TOOL_USE_TEXTS.into_iter().any(is_text)
}

pub(crate) fn is_of_tool_use(member: &Member<'_>) -> bool {
    TOOL_USE_FIELDS.iter().any(|name| member.key.is(name))
}

/// Returns true if the list in the member with this name may contain calls.
pub(crate) fn is_call_list(member: &Member<'_>) -> bool {
    let names = TOOL_USE_CALLS.iter().chain(&["content_list"]);
    names.into_iter().any(|name| member.key.is(name))
}

/// Returns true if a list element has the type `tool_use` and an id, a name, or arguments.
pub(crate) fn is_typed_tool_use(part: &[Member<'_>]) -> bool {
    if !is_string(find(part, "type"), "tool_use") {
        return false;
    }
    let inner = find(part, "tool_use").and_then(Object::of);
    let call = inner.as_ref().map_or(part, |inner| &inner.members);
    let keys = TOOL_USE_IDS.into_iter().chain(["name"]);
    keys.chain(TOOL_USE_TEXTS)
        .any(|key| present(find(call, key)).is_some())
}

/// Returns true if a delta or message has a list that may contain `tool_use` calls.
#[inline]
pub(crate) fn has_list(holder: &Delta<'_>) -> bool {
    let is_list = |raw: Raw<'_>| raw.kind == Kind::Array;
    holder.content.is_some_and(is_list)
        || (!holder.other_members.is_empty()
            && ["content_list"]
                .into_iter()
                .chain(TOOL_USE_CALLS)
                .any(|key| find(&holder.other_members, key).is_some_and(is_list)))
}

/// Returns the `tool_use` calls (Snowflake) in a delta or message. These calls have no index.
///
/// `is_call`: true if the object itself is a `tool_use` call. If `is_call` is false, or if the object has no members of
/// a call, returns the calls in its lists.
pub(crate) fn tool_uses<'a>(
    holder: &Delta<'a>,
    is_call: bool,
    notes: &mut Anomalies<'a>,
    at: Pointer<'_>,
) -> Vec<Fragment<'a>> {
    let own = match is_call {
        true => tool_use(&holder.other_members, notes, at),
        false => None,
    };
    if let Some(own) = own {
        return vec![own];
    }
    let listed = |key| (key, find(&holder.other_members, key));
    let own = TOOL_USE_CALLS.map(listed);
    let lists = [listed("content_list"), ("content", holder.content)];
    let mut found = Vec::new();
    for (key, list) in lists.into_iter().chain(own) {
        let entries = list.filter(|list| list.kind == Kind::Array);
        let entries = entries.map(items).unwrap_or_default();
        for (index, raw) in entries.into_iter().enumerate() {
            let Some(entry) = Object::of(raw) else {
                continue;
            };
            let is_named = TOOL_USE_CALLS.contains(&key) || (is_call && key == "content_list");
            if is_named || is_typed_tool_use(&entry.members) {
                found.extend(tool_use(&entry.members, notes, at.member(key).item(index)));
            }
        }
    }
    found
}

/// Returns the fragment in a `tool_use` object, or `None` if the object has no id, name, or arguments.
fn tool_use<'a>(
    holder: &[Member<'a>],
    notes: &mut Anomalies<'a>,
    at: Pointer<'_>,
) -> Option<Fragment<'a>> {
    let wrapper = at.member("tool_use");
    let inner = find(holder, "tool_use").and_then(Object::of);
    let (call, at) = match &inner {
        Some(inner) => (inner.members.as_slice(), wrapper),
        None => (holder, at),
    };
    let mut out = Fragment {
        array_len: 1,
        ..Fragment::default()
    };
    let ids = TOOL_USE_IDS.map(|key| id(find(call, key), notes, at.member(key)));
    out.id = ids.into_iter().flatten().next();
    out.name = name(find(call, "name"), notes, at.member("name"));
    let mut texts = TOOL_USE_TEXTS.into_iter().map(|key| find(call, key));
    arguments(
        &mut out,
        texts.find(|slot| present(*slot).is_some()).flatten(),
    );
    let is_bare = lacks_arguments(&out);
    if out.id.is_none() && out.name.is_none() && is_bare {
        return None;
    }
    let others = call.iter().filter(|member| !is_of_tool_use(member));
    out.misses_arguments = is_bare && may_hold_arguments(&others.copied().collect::<Vec<_>>());
    notes.mark_misread("no_list");
    Some(out)
}

/// Returns true if the fragment has no arguments, not even empty arguments.
fn lacks_arguments(fragment: &Fragment<'_>) -> bool {
    fragment.arguments.is_none() && fragment.object_arguments.is_none()
}

/// Returns true if the member `custom` contains the call. Some gateways add an empty `custom` to function calls
/// (<https://github.com/earendil-works/pi/issues/7097>).
fn has_custom(call: &Call<'_>) -> bool {
    let Some(TypedValue::Read(custom, _)) = &call.custom else {
        return false;
    };
    let mut others = custom.other_members.iter().map(|member| Some(member.raw));
    let is_blank = [custom.id, custom.name, custom.arguments]
        .into_iter()
        .all(|slot| !is_filled(slot))
        && !others.any(is_filled);
    !(is_blank && matches!(call.function, Some(TypedValue::Read(..))))
}

fn fragment<'a>(
    call: &Call<'a>,
    max_index: Option<u64>,
    notes: &mut Anomalies<'a>,
    at: Pointer<'_>,
) -> Fragment<'a> {
    let mut out = Fragment {
        has_index_key: call.index.is_some(),
        ..Fragment::default()
    };
    (out.index, out.index_raw) = index(call.index, max_index);
    out.custom = has_custom(call);
    let (walk, wrapper) = if out.custom {
        (&call.custom, "custom")
    } else {
        (&call.function, "function")
    };
    let mut inner_id = None;
    let mut inner_other_members: &[Member<'a>] = &[];
    match walk {
        Some(TypedValue::Read(inner, _)) => {
            inner_other_members = &inner.other_members;
            out.name = name(inner.name, notes, at.member(wrapper).member("name"));
            arguments(&mut out, inner.arguments);
            inner_id = inner.id;
        }
        Some(TypedValue::Other(raw)) => notes.unless_null(*raw, at.member(wrapper)),
        None => {}
    }
    // Without a `function` or `custom` object, the call object itself contains the name, and the arguments or, for a
    // free-form tool, the input.
    if out.name.is_none() {
        out.name = name(call.name, notes, at.member("name"));
    }
    if lacks_arguments(&out) && !out.custom {
        arguments(&mut out, call.arguments);
    }
    let kind = present(call.kind).map(|raw| (raw, string(raw)));
    out.custom |= matches!(&kind, Some((_, Some(kind))) if kind == "custom");
    let wrapped = match &call.function {
        Some(TypedValue::Read(..)) => true,
        Some(TypedValue::Other(raw)) => raw.kind != Kind::Null,
        None => false,
    };
    let input = present(find(&call.other_members, "input")).filter(|raw| {
        // In a free-form call, the fragments after the first may have no type.
        let bare = kind.is_none() && out.name.is_none() && !wrapped;
        lacks_arguments(&out) && (out.custom || (bare && raw.kind == Kind::String))
    });
    let mut leftovers = ExtraFields::default();
    if input.is_some() {
        arguments(&mut out, input);
        out.custom = true;
        let others = call.other_members.iter().copied();
        let others: Vec<_> = others.filter(|member| !member.key.is("input")).collect();
        leftovers.extend(&others);
    } else {
        leftovers.extend(&call.other_members);
    }
    leftovers.extend(inner_other_members);
    if lacks_arguments(&out) && !out.custom {
        let found = arguments_member(inner_other_members, true);
        if let Some(member) = found.or_else(|| arguments_member(&call.other_members, false)) {
            arguments(&mut out, Some(member.raw));
            leftovers = ExtraFields::default();
            for other_members in [call.other_members.as_slice(), inner_other_members] {
                let others = other_members
                    .iter()
                    .filter(|other| !other.key.is(&member.key.name()));
                leftovers.extend(&others.copied().collect::<Vec<_>>());
            }
            notes.mark_misread("other_member");
        }
    }
    out.misses_arguments = lacks_arguments(&out)
        && (may_hold_arguments(&call.other_members) || may_hold_arguments(inner_other_members));
    out.id = id(call.id, notes, at.member("id"));
    if out.id.is_none() {
        out.id = id(inner_id, notes, at.member(wrapper).member("id"));
    }
    if let Some((raw, kind)) = kind {
        if !matches!(kind.as_deref(), Some("" | "function" | "custom")) {
            leftovers.add(Member {
                key: Key {
                    raw: "type",
                    escaped: false,
                },
                raw,
            });
        }
    }
    out.metadata = leftovers.text().map(Cow::Owned);
    out
}

/// Returns the member that a gateway sends in place of `arguments`. Only an object or a string is accepted as the
/// value. `is_wrapped`: true if the members belong to a `function` or `custom` object. Outside these objects, a string in
/// `input` is rejected: it is the input of a free-form tool.
fn arguments_member<'a>(members: &[Member<'a>], is_wrapped: bool) -> Option<Member<'a>> {
    OTHER_ARGUMENTS.iter().find_map(|name| {
        let may_be_text = is_wrapped || *name != "input";
        let fits =
            |raw: Raw<'_>| raw.kind == Kind::Object || (may_be_text && raw.kind == Kind::String);
        let raw = find(members, name).filter(|raw| fits(*raw))?;
        let key = Key {
            raw: name,
            escaped: false,
        };
        Some(Member { key, raw })
    })
}

/// Returns the index of a call, or the beginning of its JSON text if the index is invalid. The index and the text are
/// `None` if the index is absent or null.
fn index(slot: Slot<'_>, max_index: Option<u64>) -> (Option<u32>, Option<&str>) {
    let Some(raw) = present(slot) else {
        return (None, None);
    };
    let usable = integer(raw)
        .and_then(|number| u32::try_from(number).ok())
        .filter(|number| max_index.is_none_or(|max| u64::from(*number) <= max));
    match usable {
        Some(number) => (Some(number), None),
        None => {
            let end = raw
                .text
                .char_indices()
                .nth(INDEX_CHARS)
                .map_or(raw.text.len(), |(at, _)| at);
            (None, raw.text.get(..end))
        }
    }
}

/// Returns the id as text, or `None` if it is absent, blank, or a placeholder. A numeric id is returned with the digits
/// that the payload contains.
fn id<'a>(slot: Slot<'a>, notes: &mut Anomalies<'a>, at: Pointer<'_>) -> Option<Cow<'a, str>> {
    let raw = present(slot)?;
    if raw.kind == Kind::Number {
        notes.mark_misread("id_number");
        return Some(Cow::Borrowed(raw.text));
    }
    let id = word(raw, notes, at, usable_id);
    if id.is_none() && string(raw).is_some_and(|id| not_blank(&id)) {
        notes.mark_misread("id_word"); // clients use the placeholder as the id
    }
    id
}

fn name<'a>(slot: Slot<'a>, notes: &mut Anomalies<'a>, at: Pointer<'_>) -> Option<Cow<'a, str>> {
    word(present(slot)?, notes, at, not_blank)
}

/// Returns true if the id is neither blank nor a placeholder.
pub(crate) fn usable_id(id: &str) -> bool {
    let id = id.trim_matches(is_white);
    !id.is_empty() && !ABSENT.contains(&id)
}

pub(crate) fn not_blank(word: &str) -> bool {
    !word.trim_matches(is_white).is_empty()
}

/// Returns the string, or `None` if the function `good` rejects it. A value of another type is reported as an anomaly.
fn word<'a>(
    raw: Raw<'a>,
    notes: &mut Anomalies<'a>,
    at: Pointer<'_>,
    good: fn(&str) -> bool,
) -> Option<Cow<'a, str>> {
    let Some(text) = text(raw) else {
        notes.shape(raw, at);
        return None;
    };
    let (word, lone) = text.into_whole();
    let good = good(&word);
    notes.lone |= lone && good;
    good.then_some(word)
}

/// Stores a string as argument text and an object as JSON. The JSON of any other value is stored as text, and the
/// assembler classifies it later.
fn arguments<'a>(out: &mut Fragment<'a>, slot: Slot<'a>) {
    let Some(raw) = present(slot) else { return };
    match raw.kind {
        Kind::String => out.arguments = text(raw),
        Kind::Object => out.object_arguments = Some(raw.text),
        _ => out.arguments = Some(Text::plain(raw.text)),
    }
}
