//! What the official clients need of a chunk, so that a repair rewrites what they would misread or reject.
//!
//! openai-python drops a chunk whose `object` is another, needs a `delta` object and a `choices` array in the rest, and
//! merges lists in a delta by `index`. It keeps tool calls in a list, so a new call must have the next index. A chunk
//! without `object` is not rewritten, and gets no role: only the helper of openai-python needs it.

use crate::dialect::anomalies::Anomalies;
use crate::dialect::chat::payload_kind::legacy_text;
use crate::dialect::chat::read::Call;
use crate::dialect::chat::read::Choice;
use crate::dialect::chat::read::Chunk;
use crate::dialect::chat::read::Delta;
use crate::dialect::chat::read::REASONING_FIELDS;
use crate::dialect::chat::read::Walk;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Slot;
use crate::json::members::find;
use crate::json::members::is_string;
use crate::json::members::items;
use crate::json::members::members;
use crate::json::members::present;
use crate::model::event::WireFact;
use crate::model::output::Output;
use crate::model::small_map::Set;

/// Members with lists that are remembered for a choice.
const MAX_LISTS: usize = 16;

/// Checks the members of a chunk, and whether each choice has a delta.
pub(crate) fn check_chunk(chunk: &Chunk<'_>, notes: &mut Anomalies<'_>) {
    let choices = match &chunk.choices {
        Some(Walk::Read(choices, _)) => Some(choices),
        _ => None,
    };
    if chunk.object.is_none() || is_string(chunk.object, "chat.completion.chunk") {
        let has_delta = |choice: &Walk<'_, Choice<'_>>| match choice {
            Walk::Read(choice, _) => {
                matches!(choice.delta, Some(Walk::Read(..))) || legacy_text(choice).is_some()
            }
            Walk::Other(_) => false,
        };
        match choices {
            None => notes.touch("no_choices"),
            Some(choices) if !choices.iter().all(has_delta) => notes.touch("no_delta"),
            Some(_) => {}
        }
    } else if is_filled(chunk.usage) || choices.is_some_and(|all| all.iter().any(says_something)) {
        notes.touch("other_object");
    }
}

/// Whether a choice that is not of the legacy Completions has content or an end.
fn says_something(choice: &Walk<'_, Choice<'_>>) -> bool {
    let Walk::Read(choice, _) = choice else {
        return false;
    };
    if legacy_text(choice).is_some() {
        return false;
    }
    let walked = [&choice.delta, &choice.message].map(|walk| walk.as_ref().map(Walk::raw));
    let ends = [choice.finish_reason, choice.finish_camel];
    walked.into_iter().chain(ends).any(is_filled)
}

/// Whether a member is there and not null, false, zero or empty.
pub(crate) fn is_filled(slot: Slot<'_>) -> bool {
    slot.is_some_and(|raw| match raw.kind {
        Kind::Null | Kind::False => false,
        Kind::True => true,
        Kind::Number => raw.text.parse::<f64>().is_ok_and(|number| number != 0.0),
        Kind::String => raw.text.len() > 2,
        Kind::Array | Kind::Object => has_members(raw),
    })
}

/// Whether an array or object has anything in it.
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

/// The lists that clients keep for one choice.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    /// A delta of the choice came.
    begun: bool,
    /// In the list of tool calls.
    calls: i64,
    /// Of them, those without a text of arguments.
    bare: Set<i64>,
    /// Members that were a list.
    lists: Vec<String>,
}

impl Readers {
    /// Checks whether the first delta of the choice has a role. openai-node raises if a choice has none. `typed`: the
    /// chunk declares itself one; others are not changed for the sake of the role alone.
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
            if typed && !is_filled(delta.role) {
                out.sign(WireFact::Roleless(choice));
            }
        }
    }

    /// The choice, or the stream, ends.
    #[inline]
    pub(crate) fn end(&mut self, out: &mut Output<'_>) {
        if !self.bare.is_empty() {
            self.bare = Set::default();
            out.touch("no_arguments"); // readers have null in place of a text
        }
    }

    /// Whether so many calls were streamed.
    pub(crate) fn has_calls(&self, count: usize) -> bool {
        i64::try_from(count).is_ok_and(|count| self.calls >= count)
    }

    /// Whether a piece of arguments at that index changes nothing here.
    #[inline]
    pub(crate) fn is_known(&self, index: Option<u32>) -> bool {
        self.bare.is_empty() && index.is_none_or(|index| i64::from(index) < self.calls)
    }

    /// Checks the members of a delta.
    pub(crate) fn delta(&mut self, delta: &Delta<'_>, notes: &mut Anomalies<'_>) {
        if delta.content.is_some_and(|raw| raw.kind == Kind::Array) {
            notes.touch("content_list");
        }
        if let Some(Walk::Read(entries, raw)) = &delta.tool_calls
            && raw.kind == Kind::Array
        {
            entries.iter().for_each(|entry| self.entry(entry, notes));
        }
        let lists = [
            ("reasoning_details", delta.reasoning_details),
            ("annotations", delta.annotations),
            ("images", delta.images),
            ("audio", delta.audio),
            ("refusal", delta.refusal),
            ("role", delta.role),
            ("function_call", delta.function_call.as_ref().map(Walk::raw)),
        ];
        let thoughts = REASONING_FIELDS.into_iter().zip(delta.reasoning);
        for (name, slot) in lists.into_iter().chain(thoughts) {
            self.list(name, slot, notes);
        }
        for member in &delta.rest {
            if member.raw.kind == Kind::Array {
                self.list(&member.key.name(), Some(member.raw), notes);
            }
        }
    }

    #[inline]
    fn list(&mut self, name: &str, slot: Slot<'_>, notes: &mut Anomalies<'_>) {
        if let Some(raw) = slot.filter(|raw| raw.kind == Kind::Array && has_members(*raw)) {
            self.filled_list(name, raw, notes);
        }
    }

    fn filled_list(&mut self, name: &str, raw: Raw<'_>, notes: &mut Anomalies<'_>) {
        let entries = items(raw);
        let objects = entries.iter().filter(|entry| entry.kind == Kind::Object);
        let has_index = |entry: &&Raw<'_>| index_of(find(&members(**entry), "index")).is_some();
        let indexed = objects.clone().filter(has_index).count();
        let all = indexed == entries.len();
        if self.lists.iter().any(|known| known == name) {
            if !all {
                notes.touch("list_without_index");
            }
        } else if objects.count() > 0 {
            if (indexed > 0 && !all) || self.lists.len() == MAX_LISTS {
                notes.touch("list_without_index");
            }
            if self.lists.len() < MAX_LISTS {
                self.lists.push(name.to_owned());
            }
        }
    }

    fn entry(&mut self, entry: &Walk<'_, Call<'_>>, notes: &mut Anomalies<'_>) {
        let Walk::Read(call, _) = entry else {
            return notes.touch("empty_entry");
        };
        if call.kind.is_some()
            && !["function", "custom"]
                .iter()
                .any(|kind| is_string(call.kind, kind))
        {
            notes.touch("other_type");
        }
        let Some(index) = index_of(call.index).filter(|index| *index >= 0) else {
            return notes.touch("no_index");
        };
        if index > self.calls {
            return notes.touch("other_index");
        }
        let is_new = index == self.calls;
        let (function, custom) = match (&call.function, &call.custom) {
            (function, Some(Walk::Read(custom, _))) => (function, Some(custom)),
            (function, _) => (function, None),
        };
        let function = match function {
            Some(Walk::Read(function, _)) => Some(function),
            _ => None,
        };
        let mut names = [function, custom]
            .into_iter()
            .flatten()
            .map(|inner| inner.name);
        let named = names.any(is_filled) || is_filled(call.name);
        if is_new && !named && !is_filled(call.id) {
            return notes.touch("empty_entry");
        }
        self.calls += i64::from(is_new);
        if let Some(function) = function {
            if function
                .arguments
                .is_some_and(|raw| raw.kind == Kind::String)
            {
                if !self.bare.is_empty() {
                    self.bare.remove(&index);
                }
            } else if is_new {
                self.bare.insert(index);
            }
        } else if custom.is_none() && !is_string(call.kind, "custom") {
            notes.touch("empty_entry");
        }
    }

    /// Whether a full message has calls that were not streamed, or is the first that was said.
    pub(crate) fn is_news(&self, message: &Delta<'_>, spoke: bool) -> bool {
        let calls = message.tool_calls.as_ref();
        let count = match calls {
            Some(Walk::Read(calls, raw)) if raw.kind == Kind::Array => calls.len(),
            _ => {
                let legacy = message.function_call.as_ref().map(Walk::raw);
                usize::from(is_filled(calls.map(Walk::raw)) || is_filled(legacy))
            }
        };
        !self.has_calls(count) || (is_filled(message.content) && !spoke)
    }
}
