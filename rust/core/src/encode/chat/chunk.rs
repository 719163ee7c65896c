//! Writes what all Chat chunks have in common: the members before the delta, and the members after the delta.

use crate::dialect::upstream_error::FAILED_BASE;
use crate::dialect::upstream_error::reports_failed_base;
use crate::encode::chat::list_indexes::Indexed;
use crate::encode::chat::list_indexes::ListIndexes;
use crate::encode::common::compact_json::spliced;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::extra_members::ExtraMembers;
use crate::encode::common::extra_members::join;
use crate::encode::common::extra_members::parsed;
use crate::encode::common::extra_members::size;
use crate::encode::common::writer::Writer;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Document;
use crate::json::members::document;
use crate::json::members::integer;
use crate::json::members::members;
use crate::model::small_map::Map;
use crate::model::unmodelled::ChoiceFacts;
use crate::model::unmodelled::ChunkFacts;
use crate::sse::decode_utf8;
use std::borrow::Cow;
use std::collections::HashSet;
use std::mem;

/// If one source chunk is rewritten as several chunks, each of them repeats the unknown members of the source chunk,
/// unless these members exceed this number of bytes.
const MAX_REPEATED_SIZE: usize = 4096;

/// Writes the members before `choices`, and stores the unknown members of the source's chunks.
#[derive(Debug, Default)]
pub(crate) struct ChunkHead {
    /// The id, time and model, which every chunk repeats. This text is empty before the first chunk is written.
    start: String,
    /// Unknown members of the source's current chunk that are written in the next chunk.
    members: ExtraMembers,
    /// Names of all unknown members of the source's current chunk.
    names: HashSet<String>,
    /// Unknown members of the source's last chunk with a finish reason, and of its last chunk with token counts.
    finish_members: ExtraMembers,
    usage_members: ExtraMembers,
    /// True if the last token counts arrived in a chunk with a choice.
    pub(crate) usage_has_choice: bool,
    /// Unknown members of the source's choices.
    choices: Map<i32, OwnMembers>,
    /// Unknown members of the choice and of its delta that are written in the current output chunk.
    next: OwnMembersOnce,
    /// True if the source's current chunk has a finish reason.
    finishes: bool,
    /// The number of the last payload for which a chunk was written.
    written: u64,
    /// True once the finish reasons are written. From then on, only members that arrived with a finish reason are
    /// written.
    is_finishing: bool,
}

/// Unknown members of one choice of the source, and of its delta.
#[derive(Debug, Default)]
struct OwnMembers {
    current: OwnMembersOnce,
    /// Names of the current unknown members of the choice, and of its delta.
    choice_names: HashSet<String>,
    delta_names: HashSet<String>,
    /// Members that arrived with the finish reason.
    finish: OwnMembersOnce,
    /// True if the current members are from the source's chunk with the finish reason.
    finishes: bool,
    /// The lists in the deltas of the choice.
    lists: ListIndexes,
    /// True if the source's current chunk also has members that cannot be written.
    is_lossy: bool,
    /// The number of the last payload whose members were written.
    written: u64,
}

impl OwnMembers {
    /// Returns the members of a delta that can be written. In their lists, elements without an `index` get one.
    fn indexed(&mut self, members: ExtraMembers) -> ExtraMembers {
        let mut out = ExtraMembers::new();
        for (name, value) in members {
            match self.lists.index(&name, &value) {
                Indexed::Same => out.push((name, value)),
                Indexed::Changed { json, is_lossy } => {
                    self.is_lossy |= is_lossy;
                    out.push((name, json));
                }
                Indexed::Dropped => self.is_lossy = true,
            }
        }
        out
    }
}

/// Members that are written in one chunk.
#[derive(Clone, Debug, Default)]
struct OwnMembersOnce {
    choice: ExtraMembers,
    delta: ExtraMembers,
}

/// Adds the later members to the earlier ones. A later member replaces an earlier one of the same name. If the earlier
/// members exceed `MAX_REPEATED_SIZE`, they are dropped, because they would be examined for every chunk.
fn merge(earlier: &mut ExtraMembers, later: &ExtraMembers) {
    if later.is_empty() {
        return;
    }
    if size(earlier) > MAX_REPEATED_SIZE {
        earlier.clear();
    }
    let replaced = names(later);
    earlier.retain(|(name, _)| !replaced.contains(name));
    earlier.extend(later.iter().cloned());
}

fn names(members: &ExtraMembers) -> HashSet<String> {
    members.iter().map(|(name, _)| name.clone()).collect()
}

impl OwnMembersOnce {
    fn is_empty(&self) -> bool {
        self.choice.is_empty() && self.delta.is_empty()
    }
}

impl ChunkHead {
    /// Records the members of the source's current chunk.
    pub(crate) fn record(&mut self, chunk: &ChunkFacts<'_>) {
        self.members = parsed(chunk.members);
        self.names = names(&self.members);
        if reports_failed_base(&members(Raw {
            text: chunk.members,
            kind: Kind::Object,
        })) {
            // The failure is written as the error that ends the stream.
            self.members.retain(|(name, _)| name != FAILED_BASE);
        }
        self.finishes = chunk.finishes;
        if chunk.finishes {
            merge(&mut self.finish_members, &self.members);
        }
        if chunk.counts {
            self.usage_members.clone_from(&self.members);
            self.usage_has_choice = chunk.has_choice;
        }
    }

    /// Records the members of a choice in the source's current chunk.
    pub(crate) fn record_choice(&mut self, context: &EncodeContext, facts: &ChoiceFacts<'_>) {
        // Once a finish reason of the choice has passed through, no other finish reason is written for the choice.
        let finishes = facts.finishes && !context.passed.finished.contains(&facts.choice);
        let members = self.choices.slot(facts.choice);
        members.is_lossy = false;
        members.current = OwnMembersOnce {
            choice: parsed(facts.members),
            delta: members.indexed(parsed(facts.delta)),
        };
        members.choice_names = names(&members.current.choice);
        members.delta_names = names(&members.current.delta);
        members.finishes = finishes;
        members.written = 0;
        if finishes {
            merge(&mut members.finish.choice, &members.current.choice);
            merge(&mut members.finish.delta, &members.current.delta);
        }
    }

    /// Returns true if the source's current chunk, or the choice in it, has members that were not written yet and do
    /// not wait for a finish reason.
    pub(crate) fn has_unwritten(&self, context: &EncodeContext, index: i32) -> bool {
        let number = context.passed.payload_number;
        let is_passed = self.finishes && context.passed.finished.contains(&index);
        if is_passed && self.written != number && !self.members.is_empty() {
            return true;
        }
        self.choices.get(&index).is_some_and(|members| {
            let is_written = members.written == number || members.finishes;
            !is_written && !members.current.is_empty()
        })
    }

    /// Returns true if the source's current chunk has members of the choice that cannot be written.
    pub(crate) fn is_lossy(&self, index: i32) -> bool {
        self.choices
            .get(&index)
            .is_some_and(|members| members.is_lossy)
    }

    /// Returns true if a delta of the choice contained this list, so that the list is written with the delta's other
    /// members.
    pub(crate) fn has_list(&self, index: i32, name: &str) -> bool {
        let members = self.choices.get(&index);
        members.is_some_and(|members| members.lists.has(name))
    }

    /// Returns true if the delta of the choice in the source's current chunk has this member.
    pub(crate) fn has_in_delta(&self, index: i32, name: &str) -> bool {
        let members = self.choices.get(&index);
        members.is_some_and(|members| members.delta_names.contains(name))
    }

    /// Returns true if the source's current chunk contains all members of an event's metadata. Metadata from the
    /// source's current chunk is not lost, because it is written as members of the chunk.
    pub(crate) fn has_all(&self, metadata: &str, choice: Option<i32>) -> bool {
        let own = choice.and_then(|choice| self.choices.get(&choice));
        if own.is_some_and(|own| own.is_lossy) {
            return false;
        }
        let is_own = |name: &String| {
            own.is_some_and(|own| own.choice_names.contains(name) || own.delta_names.contains(name))
        };
        parsed(metadata)
            .iter()
            .all(|(name, _)| self.names.contains(name) || is_own(name))
    }

    /// Adds the unknown members of the choice to the next chunk, unless they were already written for the current
    /// payload.
    fn begin_choice(&mut self, context: &EncodeContext, index: i32) {
        if self.choices.len() == 0 {
            return;
        }
        let number = context.passed.payload_number;
        self.next = OwnMembersOnce::default();
        let is_over = self.is_finishing || context.cut; // the output no longer comes from a source chunk
        let members = self.choices.get_mut(&index).filter(|_| !is_over);
        // Members that arrived with the finish reason are written later, together with the finish reason.
        let is_due = |members: &&mut OwnMembers| members.written != number && !members.finishes;
        if let Some(members) = members.filter(is_due) {
            members.written = number;
            self.next = members.current.clone();
        }
    }

    /// Adds the choice's unknown members that arrived with its finish reason to the next chunk.
    pub(crate) fn begin_finish_of(&mut self, index: i32) {
        if let Some(members) = self.choices.get_mut(&index) {
            self.next = mem::take(&mut members.finish);
        }
    }

    /// Writes the unknown members of a delta, and the end of the delta. `is_empty` is true if the delta has no members
    /// yet.
    pub(crate) fn end_delta<'j>(&self, to: &'j mut Writer, is_empty: bool) -> &'j mut Writer {
        let delta = &self.next.delta;
        let (first, others) = delta.split_at(usize::from(is_empty).min(delta.len()));
        for (name, text) in first {
            spliced(to.string(name).raw(":"), text);
        }
        join(to, others, &[]);
        to.raw("}")
    }

    /// Writes the end of a chunk without a finish reason.
    pub(crate) fn end(&self, to: &mut Writer) {
        to.raw(",\"finish_reason\":null");
        self.end_choice(to);
        to.raw("}]}").end();
    }

    /// Writes the unknown members of a choice.
    pub(crate) fn end_choice(&self, to: &mut Writer) {
        join(to, &self.next.choice, &[]);
    }

    /// Adds the unknown members of the source's chunk with the finish reason to the next chunks.
    pub(crate) fn begin_finish(&mut self) {
        self.members = mem::take(&mut self.finish_members);
        self.is_finishing = true;
    }

    /// Adds the unknown members of the source's chunk with the token counts to the next chunk. `alone` is true if the
    /// chunk contains no other unknown members.
    pub(crate) fn begin_usage(&mut self, alone: bool) {
        let usage_members = mem::take(&mut self.usage_members);
        if alone {
            self.members.clear();
        }
        let repeated: HashSet<&String> = usage_members.iter().map(|(name, _)| name).collect();
        self.members.retain(|(name, _)| !repeated.contains(name));
        self.members.extend(usage_members);
    }

    /// Writes the beginning of a chunk, up to its choices.
    pub(crate) fn write<'j>(&mut self, context: &'j mut EncodeContext) -> &'j mut Writer {
        if self.start.is_empty() {
            self.start = start(context);
        }
        self.written = context.passed.payload_number;
        let to = context.writer.data().raw(&self.start);
        join(to, &self.members, &[]);
        if size(&self.members) > MAX_REPEATED_SIZE {
            let written = mem::take(&mut self.members);
            for later in [&mut self.finish_members, &mut self.usage_members] {
                if *later == written {
                    later.clear();
                }
            }
        }
        to.raw(",\"choices\":[")
    }
}

/// Writes the beginning of a chunk, up to its delta.
#[inline]
pub(crate) fn begin_chunk<'j>(
    head: &mut ChunkHead,
    context: &'j mut EncodeContext,
    index: i32,
) -> &'j mut Writer {
    head.begin_choice(context, index);
    let to = head.write(context).raw("{\"index\":");
    to.number(i64::from(index)).raw(",\"delta\":")
}

/// Returns the beginning of every chunk, with the id, time, and model of the response.
fn start(context: &mut EncodeContext) -> String {
    if context.passed.own {
        complete(context);
    }
    let id = context.answer.id.take();
    let id = id.unwrap_or_else(|| context.mint.make("chatcmpl"));
    let mut start = Writer::default();
    start.raw("{\"id\":").string(&id);
    start.raw(",\"object\":\"chat.completion.chunk\",\"created\":");
    start.number(context.answer.created.unwrap_or(context.options.created));
    start.raw(",\"model\":").string(context.model());
    start.into_text()
}

/// If the first chunk left the id, model and time blank, as Azure's does, takes them from the current chunk.
fn complete(context: &mut EncodeContext) {
    let answer = &mut context.answer;
    if answer.id.is_some() && answer.model.is_some() {
        return;
    }
    let (text, _) = decode_utf8(&context.passed.payload);
    let Ok(Document::Object(chunk)) = document(&text, None) else {
        return;
    };
    let word = |name| chunk.string(name).filter(|word| !word.trim().is_empty());
    if answer.id.is_none() {
        answer.id = word("id").map(Cow::into_owned);
    }
    if answer.model.is_none() {
        answer.model = word("model").map(Cow::into_owned);
    }
    if answer.created.is_none_or(|created| created == 0) {
        let created = chunk.get("created");
        let created = created.filter(|raw| raw.kind == Kind::Number);
        answer.created = created.and_then(integer).or(answer.created);
    }
}
