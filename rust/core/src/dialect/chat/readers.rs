//! Checks Chat chunks against the requirements of official clients, so that repair can rewrite the chunks that these
//! clients would misread.
//!
//! openai-python's `stream()` skips chunks whose `object` is not `chat.completion.chunk`. In all other chunks,
//! openai-python requires a `choices` array in which each choice has a `delta` object. openai-python merges lists in a
//! delta by `index`. openai-python stores tool calls in a list, so a new tool call must have the next index.

use crate::dialect::anomalies::Anomalies;
use crate::dialect::chat::payload_kind::legacy_text;
use crate::dialect::chat::read::Call;
use crate::dialect::chat::read::Choice;
use crate::dialect::chat::read::Chunk;
use crate::dialect::chat::read::Delta;
use crate::dialect::chat::read::REASONING_FIELDS;
use crate::dialect::chat::read::TypedValue;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Slot;
use crate::json::members::find;
use crate::json::members::is_string;
use crate::json::members::items;
use crate::json::members::members;
use crate::json::members::present;
use crate::model::event::WireFact;
use crate::model::list_path::ListPath;
use crate::model::list_path::MAX_LISTS;
use crate::model::output::Output;
use crate::model::small_map::Set;
use std::collections::HashMap;
use std::mem;

/// Finish reasons after which clients run the calls.
pub(crate) const RUNS_CALLS: [&str; 3] = ["natural", "stop", "tool_calls"];

/// The `object` of a legacy Completions chunk. Clients of the legacy API use the token counts in a legacy Completions
/// chunk.
const LEGACY: &str = "text_completion";
const COUNTS: [&str; 3] = ["prompt_tokens", "completion_tokens", "total_tokens"];

/// Marks a chunk as misread if clients would skip its content or reject one of its members, if it has no choices, or if
/// one of its choices has no delta.
pub(crate) fn check_chunk(chunk: &Chunk<'_>, notes: &mut Anomalies<'_>) {
    let choices = match &chunk.choices {
        Some(TypedValue::Read(choices, raw)) => {
            if raw.kind != Kind::Array || chunk.lacks_choices {
                notes.mark_misread("no_choices");
            }
            Some(choices)
        }
        _ => None,
    };
    let is_legacy = is_string(chunk.object, LEGACY);
    if !is_legacy && has_wrong_kind(chunk, choices) {
        notes.mark_misread("wrong_kind");
    }
    let is_chunk = chunk.object.is_none() || is_string(chunk.object, "chat.completion.chunk");
    let has_deltas = |choices: &Vec<TypedValue<'_, Choice<'_>>>| {
        let has_delta = |choice: &TypedValue<'_, Choice<'_>>| match choice {
            TypedValue::Read(choice, _) => {
                let is_object = |raw: &Raw<'_>| raw.kind == Kind::Object;
                matches!(&choice.delta, Some(TypedValue::Read(_, raw)) if is_object(raw))
                    || legacy_text(choice).is_some()
            }
            TypedValue::Other(_) => false,
        };
        let sent = choices.len() - usize::from(chunk.has_added_choice);
        choices.iter().take(sent).all(has_delta)
    };
    match choices {
        None if is_chunk => notes.mark_misread("no_choices"),
        Some(choices) if !is_legacy && !has_deltas(choices) => notes.mark_misread("no_delta"),
        _ if is_chunk => {}
        _ if choices.is_some_and(|all| all.iter().any(has_content))
            || (is_filled(chunk.usage) && !is_legacy) =>
        {
            notes.mark_misread("other_object");
        }
        _ => {}
    }
}

/// Returns true if the schemas of @ai-sdk/openai and @ai-sdk/openai-compatible reject a member of the chunk, or if
/// openai-python cannot read it.
fn has_wrong_kind(chunk: &Chunk<'_>, choices: Option<&Vec<TypedValue<'_, Choice<'_>>>>) -> bool {
    !(is_kind(chunk.created, Kind::Number)
        && is_kind(chunk.id, Kind::String)
        && is_kind(chunk.model, Kind::String)
        && present(chunk.usage).is_none_or(is_usage)
        && choices.is_none_or(|all| all.iter().all(is_assistant)))
}

fn is_kind(slot: Slot<'_>, kind: Kind) -> bool {
    present(slot).is_none_or(|raw| raw.kind == kind)
}

/// Returns true if the value is an object whose counts are numbers.
fn is_usage(usage: Raw<'_>) -> bool {
    let members = members(usage);
    let is_count = |name| is_kind(find(&members, name), Kind::Number);
    usage.kind == Kind::Object && COUNTS.into_iter().all(is_count)
}

/// Returns true if clients read token counts from a usage object.
pub(crate) fn has_counts(usage: Raw<'_>) -> bool {
    let members = members(usage);
    is_usage(usage)
        && COUNTS
            .into_iter()
            .any(|name| is_filled(find(&members, name)))
}

/// Returns true if the delta of a choice has no role or a known one.
fn is_assistant(choice: &TypedValue<'_, Choice<'_>>) -> bool {
    let TypedValue::Read(choice, _) = choice else {
        return true;
    };
    let Some(TypedValue::Read(delta, _)) = &choice.delta else {
        return true;
    };
    present(delta.role).is_none_or(|role| is_string(Some(role), "assistant") || is_other_role(role))
}

/// Returns true if the role is `tool`, `function`, `user`, `system`, or `developer`. Deltas with these roles are not
/// part of the answer.
pub(crate) fn is_other_role(role: Raw<'_>) -> bool {
    let others = ["tool", "function", "user", "system", "developer"];
    others.iter().any(|other| is_string(Some(role), other))
}

/// Returns true if a chunk has content or usage but no `object`. Repair adds `object` without rewriting the rest of the
/// chunk.
pub(crate) fn lacks_object(chunk: &Chunk<'_>) -> bool {
    let choices = match &chunk.choices {
        Some(TypedValue::Read(choices, _)) => choices.as_slice(),
        _ => return false, // the chunk is rewritten, because it has no choices
    };
    let is_legacy = |choice: &TypedValue<'_, Choice<'_>>| match choice {
        TypedValue::Read(choice, _) => legacy_text(choice).is_some(),
        TypedValue::Other(_) => false,
    };
    chunk.object.is_none()
        && !choices.iter().any(is_legacy)
        && (is_filled(chunk.usage) || choices.iter().any(has_content))
}

/// Returns true if a choice has a delta, a message, or a finish reason that is not empty. Returns false for a legacy
/// choice.
fn has_content(choice: &TypedValue<'_, Choice<'_>>) -> bool {
    let TypedValue::Read(choice, _) = choice else {
        return false;
    };
    if choice.beside_chunk.is_some() {
        return true;
    }
    if legacy_text(choice).is_some() {
        return false;
    }
    let walked = [&choice.delta, &choice.message].map(|walk| walk.as_ref().map(TypedValue::raw));
    let ends = [choice.finish_reason, choice.finish_camel];
    choice.beside.is_some() || walked.into_iter().chain(ends).any(is_filled)
}

/// Returns true if a member is present and is not null, false, zero, or empty.
pub(crate) fn is_filled(slot: Slot<'_>) -> bool {
    slot.is_some_and(|raw| match raw.kind {
        Kind::Null | Kind::False => false,
        Kind::True => true,
        Kind::Number => raw.text.parse::<f64>().is_ok_and(|number| number != 0.0),
        Kind::String => raw.text.len() > 2,
        Kind::Array | Kind::Object => has_members(raw),
    })
}

/// Returns true if an array or object is not empty.
pub(crate) fn has_members(raw: Raw<'_>) -> bool {
    raw.text
        .bytes()
        .skip(1)
        .any(|byte| !byte.is_ascii_whitespace() && !matches!(byte, b']' | b'}'))
}

fn index_of(slot: Slot<'_>) -> Option<i64> {
    present(slot)
        .filter(|raw| raw.kind == Kind::Number)?
        .text
        .parse()
        .ok()
}

/// Counters and names that model the lists that clients store for one choice.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    /// True once a delta of the choice has been received.
    begun: bool,
    /// Length of the client's list of tool calls.
    calls: i64,
    /// Indexes of the calls that do not have an arguments string yet.
    bare: Set<i64>,
    /// Indexes of the calls whose arguments are still empty.
    blank: Set<i64>,
    /// Paths of lists of objects in deltas, such as `provider_specific_fields/thinking_blocks`.
    lists: Vec<String>,
}

impl Readers {
    /// Records the first delta of a choice, and whether it lacks a role. openai-node raises if no delta has a role.
    /// `typed`: true if the `object` of the chunk is correct or absent. Repair does not add a role to other chunks.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        delta: &Delta<'_>,
        typed: bool,
    ) {
        if !self.begun {
            self.begun = true;
            out.record_fact(WireFact::Begun(choice));
            if typed && !is_filled(delta.role) {
                out.record_fact(WireFact::Roleless(choice));
            }
        }
    }

    /// Checks whether a call has no arguments, at the end of the choice or the stream. `runs`: true if clients run the
    /// calls. If clients run the calls, an empty arguments string is also an error.
    #[inline]
    pub(crate) fn end(&mut self, out: &mut Output<'_>, runs: bool) {
        let (bare, blank) = (mem::take(&mut self.bare), mem::take(&mut self.blank));
        if !bare.is_empty() || (runs && !blank.is_empty()) {
            out.mark_misread("no_arguments"); // clients store null or an empty string, which is not JSON
        }
    }

    pub(crate) fn has_calls(&self, count: usize) -> bool {
        i64::try_from(count).is_ok_and(|count| self.calls >= count)
    }

    /// Returns true if a fragment with argument text at this index would not change the state.
    #[inline]
    pub(crate) fn is_known(&self, index: Option<u32>) -> bool {
        self.bare.is_empty()
            && self.blank.is_empty()
            && index.is_none_or(|index| i64::from(index) < self.calls)
    }

    /// Checks the members of a delta. `typed`: the same as in `begin`. If `typed` is false, repair does not add the
    /// type of a call either.
    pub(crate) fn delta(&mut self, delta: &Delta<'_>, typed: bool, notes: &mut Anomalies<'_>) {
        let is_text = |raw: Raw<'_>| matches!(raw.kind, Kind::String | Kind::Null);
        if delta.content.is_some_and(|raw| !is_text(raw)) {
            notes.mark_misread("content_list");
        }
        if let Some(TypedValue::Read(entries, raw)) = &delta.tool_calls
            && raw.kind == Kind::Array
        {
            entries
                .iter()
                .for_each(|entry| self.entry(entry, typed, notes));
        }
        let lists = [
            ("reasoning_details", delta.reasoning_details),
            ("annotations", delta.annotations),
            ("images", delta.images),
            ("audio", delta.audio),
            ("refusal", delta.refusal),
            ("role", delta.role),
            (
                "function_call",
                delta.function_call.as_ref().map(TypedValue::raw),
            ),
        ];
        let thoughts = REASONING_FIELDS.into_iter().zip(delta.reasoning);
        for (name, slot) in lists.into_iter().chain(thoughts) {
            self.list(name, slot, notes);
        }
        for member in &delta.other_members {
            self.other_member(&ListPath::of(&member.key.name()), member.raw, notes);
        }
    }

    /// Checks the lists in a member of a delta. Clients also merge the lists inside the objects of a delta.
    fn other_member(&mut self, path: &ListPath, raw: Raw<'_>, notes: &mut Anomalies<'_>) {
        if raw.kind == Kind::Array {
            if has_members(raw) {
                self.filled_list(path, raw, notes);
            }
        } else if raw.kind == Kind::Object && raw.text.contains('[') {
            // If a member is duplicated, clients keep its last value.
            let last: HashMap<_, _> = members(raw)
                .into_iter()
                .map(|member| (member.key.name(), member.raw))
                .collect();
            let mut last: Vec<_> = last.into_iter().collect();
            last.sort_unstable_by_key(|(_, raw)| raw.text.as_ptr());
            for (name, raw) in last {
                if let Some(path) = path.member(&name) {
                    self.other_member(&path, raw, notes);
                }
            }
        }
    }

    #[inline]
    fn list(&mut self, name: &str, slot: Slot<'_>, notes: &mut Anomalies<'_>) {
        if let Some(raw) = slot.filter(|raw| raw.kind == Kind::Array && has_members(*raw)) {
            self.filled_list(&ListPath::of(name), raw, notes);
        }
    }

    fn filled_list(&mut self, path: &ListPath, raw: Raw<'_>, notes: &mut Anomalies<'_>) {
        let entries = items(raw);
        let objects = entries.iter().filter(|entry| entry.kind == Kind::Object);
        let indexes: Vec<_> = (objects.clone())
            .filter_map(|entry| find(&members(*entry), "index"))
            .collect();
        // When a list arrives for the first time, clients merge its entries if any entry has an index, even an invalid
        // index.
        let merges = !indexes.is_empty();
        let usable = |index: &&Raw<'_>| index_of(Some(**index)).is_some();
        let all = indexes.iter().filter(usable).count() == entries.len();
        if self.lists.contains(&path.text) {
            if !all {
                notes.mark_misread("list_without_index");
            }
        } else if objects.count() > 0 {
            let is_stored = self.lists.len() < MAX_LISTS && !path.is_long();
            if (merges && !all) || !is_stored {
                notes.mark_misread("list_without_index");
            }
            if is_stored {
                self.lists.push(path.text.clone());
            }
        }
    }

    fn entry(&mut self, entry: &TypedValue<'_, Call<'_>>, typed: bool, notes: &mut Anomalies<'_>) {
        let TypedValue::Read(call, _) = entry else {
            return notes.mark_misread("empty_entry");
        };
        if call.kind.is_some()
            && !["function", "custom"]
                .iter()
                .any(|kind| is_string(call.kind, kind))
        {
            notes.mark_misread("other_type");
        }
        let Some(index) = index_of(call.index).filter(|index| *index >= 0) else {
            return notes.mark_misread("no_index");
        };
        if index > self.calls {
            return notes.mark_misread("other_index");
        }
        let is_new = index == self.calls;
        let (function, custom) = match (&call.function, &call.custom) {
            (function, Some(TypedValue::Read(custom, _))) => (function, Some(custom)),
            (function, _) => (function, None),
        };
        let function = match function {
            Some(TypedValue::Read(function, _)) => Some(function),
            _ => None,
        };
        let mut names = [function, custom]
            .into_iter()
            .flatten()
            .map(|inner| inner.name);
        let named = names.any(is_filled) || is_filled(call.name);
        if is_new && !named && !is_filled(call.id) {
            return notes.mark_misread("empty_entry");
        }
        self.calls += i64::from(is_new);
        if is_new && typed && call.kind.is_none() {
            notes.mark_misread("no_type"); // openai-node raises at the end of the stream
        }
        if let Some(function) = function {
            let is_text = |raw: &Raw<'_>| raw.kind == Kind::String;
            let has_text = is_filled(function.arguments);
            if function.arguments.as_ref().is_some_and(is_text) {
                if !self.bare.is_empty() {
                    self.bare.remove(&index);
                }
                if has_text && !self.blank.is_empty() {
                    self.blank.remove(&index);
                }
            } else if is_new {
                self.bare.insert(index);
            }
            if is_new && !has_text {
                self.blank.insert(index);
            }
        } else if custom.is_none() && !is_string(call.kind, "custom") {
            notes.mark_misread("empty_entry");
        }
        if !self.blank.is_empty() && custom.is_some_and(|custom| is_filled(custom.arguments)) {
            self.blank.remove(&index); // only this fragment shows that the call is free-form
        }
    }

    /// Returns true if a message contains calls that were not streamed, or the first content of the choice.
    pub(crate) fn is_new(&self, message: &Delta<'_>, has_text: bool) -> bool {
        let calls = message.tool_calls.as_ref();
        let count = match calls {
            Some(TypedValue::Read(calls, raw)) if raw.kind == Kind::Array => calls.len(),
            _ => {
                let legacy = message.function_call.as_ref().map(TypedValue::raw);
                usize::from(is_filled(calls.map(TypedValue::raw)) || is_filled(legacy))
            }
        };
        !self.has_calls(count) || (is_filled(message.content) && !has_text)
    }
}
