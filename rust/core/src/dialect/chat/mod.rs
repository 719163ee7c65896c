//! OpenAI Chat Completions chunks as wire deltas.
//!
//! A payload is read whole (`read`), then said to the assembler in the order of the wire: what the chunk says of the
//! response, then each choice (reasoning, text, refusal, files, calls, a whole message, the finish reason), then usage
//! and errors. Payloads that differ from an earlier one only in their text skip the reading (`cache`).
//! Knows no other dialect, no framing and no identity of calls.

mod attach;
mod cache;
mod calls;
mod choice;
mod content;
mod error;
mod lesson;
mod message;
mod metadata;
mod notes;
pub(crate) mod read;
mod reasoning;
mod template;
mod usage;

use std::borrow::Cow;
use std::mem;

use cache::{Cache, What};
use choice::{ChoiceState, Reading};
use error::{Complaint, text};
pub(crate) use error::{is_string, string};
use metadata::{LastSeen, Leftovers};
use notes::{Notes, Pointer};
use read::{Chunk, Document, Member, Slot, Walk, find, members, present};

use crate::assemble::Assembler;
use crate::config::Config;
use crate::delta::Fragment;
use crate::fault::{Class, Fault};
use crate::json::{Kind, Raw, Text};
use crate::limits::LimitName;
use crate::out::Out;
use crate::spec::Code;

type Step = Result<(), Fault>;

/// Where wire deltas go.
#[derive(Debug)]
pub(crate) struct Wire<'w, 'o> {
    pub(crate) assembler: &'w mut Assembler,
    pub(crate) out: &'w mut Out<'o>,
}

/// A payload and what is known of it beside its members.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload<'a> {
    pub(crate) text: &'a str,
    /// The name of its event, if it has one.
    pub(crate) event: Option<&'a str>,
    /// What stands behind a broken document: trusted for text, finish, usage and errors only.
    pub(crate) tail: bool,
}

/// The decoder of one stream.
#[derive(Debug)]
pub(crate) struct Chat {
    started: bool,
    last_seen: LastSeen,
    choices: Vec<ChoiceState>,
    /// Choices that went into the first one.
    merged: Vec<i32>,
    /// The chunk id, where a new one may mean a new start.
    last_id: Option<String>,
    cache: Cache,
}

impl Chat {
    pub(crate) fn new(config: &Config, caching: bool) -> Chat {
        let switches = &config.policy.switches;
        // With these a chunk may mean something else than the same chunk did before.
        let unsteady = config.policy.inline_reasoning
            || switches.restart_on_new_stream_id
            || switches.merge_choices;
        Chat {
            started: false,
            last_seen: LastSeen::default(),
            choices: Vec::new(),
            merged: Vec::new(),
            last_id: None,
            cache: Cache::new(!caching || unsteady),
        }
    }

    /// Takes a payload that fits a known envelope; false where it has to be read.
    #[inline]
    pub(crate) fn known(&mut self, wire: &mut Wire<'_, '_>, payload: &[u8]) -> Result<bool, Fault> {
        let Some((template, found)) = self.cache.find(payload) else {
            return Ok(false);
        };
        if found.text.is_empty() && !matches!(template.what, What::Call { .. }) {
            return Ok(false);
        }
        let text = if found.escaped {
            Text::unescape(found.text)
        } else {
            Text::plain(found.text)
        };
        let (choice, metadata) = (template.choice, template.metadata.as_deref());
        match template.what {
            What::Call {
                has_index_key,
                custom,
            } => {
                let max = wire.out.config.limits.max_tool_index;
                if max.is_some_and(|max| found.index.is_some_and(|index| u64::from(index) > max)) {
                    return Ok(false);
                }
                let fragment = Fragment {
                    index: found.index,
                    has_index_key,
                    id: found
                        .id
                        .filter(|id| calls::usable_id(id))
                        .map(Cow::Borrowed),
                    name: found
                        .name
                        .filter(|name| calls::not_blank(name))
                        .map(Cow::Borrowed),
                    arguments: Some(text),
                    array_len: 1,
                    custom,
                    ..Fragment::default()
                };
                wire.assembler.call(wire.out, choice, &fragment)?;
                if let Some(metadata) = metadata {
                    wire.assembler.choice_metadata(wire.out, choice, metadata)?;
                }
            }
            What::Text => wire.assembler.text(wire.out, choice, text, metadata)?,
            What::Reasoning => {
                wire.assembler
                    .reasoning(wire.out, choice, "raw", text, metadata)?;
                if found.details.is_some() {
                    wire.assembler.reasoning_attributes(
                        wire.out,
                        choice,
                        None,
                        None,
                        found.details,
                    )?;
                }
            }
        }
        if let Some(text) = found.usage {
            wire.assembler.usage(
                wire.out,
                usage::read(Raw {
                    text,
                    kind: Kind::Object,
                }),
            )?;
        }
        Ok(true)
    }

    /// Takes a payload that was read.
    pub(crate) fn document(
        &mut self,
        wire: &mut Wire<'_, '_>,
        document: &Document<'_>,
        payload: Payload<'_>,
    ) -> Step {
        let raw = match document {
            Document::Object(chunk) => {
                let whole = Raw {
                    text: payload.text,
                    kind: Kind::Object,
                };
                return self.object(wire, chunk, whole, payload);
            }
            Document::Other(raw) => *raw,
        };
        if let Some((chunk, whole)) = lone_error(raw, wire.out.config.limits.max_json_depth) {
            return self.object(wire, &chunk, whole, payload);
        }
        if payload.event == Some("error") {
            return self.complain(wire, &Complaint::of_value(raw), payload, Notes::default());
        }
        unknown(wire, payload)
    }

    /// A text instead of a document: an error in plain words.
    pub(crate) fn text(&mut self, wire: &mut Wire<'_, '_>, payload: Payload<'_>) -> Step {
        self.complain(
            wire,
            &Complaint::of_text(payload.text),
            payload,
            Notes::default(),
        )
    }

    /// The stream is about to close: what was held back goes out.
    pub(crate) fn flush(&mut self, wire: &mut Wire<'_, '_>) -> Step {
        self.choices
            .iter_mut()
            .try_for_each(|choice| choice.flush(wire))
    }

    fn object(
        &mut self,
        wire: &mut Wire<'_, '_>,
        chunk: &Chunk<'_>,
        whole: Raw<'_>,
        payload: Payload<'_>,
    ) -> Step {
        let inner = wrapped(chunk, wire.out.config.limits.max_json_depth);
        let read = inner.as_ref().map_or(chunk, |inner| &inner.chunk);
        if chunk.wide_integer {
            wire.out.diagnose(Code::NUMERIC_OVERFLOW, None, "")?;
        }
        for key in &read.duplicates {
            wire.out.diagnose(Code::DUPLICATE_KEY, None, key)?;
        }
        let named = payload.event == Some("error");
        let mut complaint = Complaint::of_chunk(chunk, whole, named);
        let mut around = Vec::new();
        if let Some(inner) = &inner {
            complaint = complaint.or_else(|| Complaint::of_chunk(&inner.chunk, inner.raw, named));
            around = chunk
                .rest
                .iter()
                .filter(|member| !member.key.is("data"))
                .copied()
                .collect();
        }
        let mut notes = Notes::default();
        if read.is_chunk() {
            let within = self.chunk(wire, read, &around, payload, &mut notes)?;
            complaint = complaint.or(within);
        } else if complaint.is_none() {
            return unknown(wire, payload);
        }
        match complaint {
            Some(complaint) => self.complain(wire, &complaint, payload, notes),
            None => Ok(()),
        }
    }

    fn complain(
        &mut self,
        wire: &mut Wire<'_, '_>,
        complaint: &Complaint<'_>,
        payload: Payload<'_>,
        mut notes: Notes<'_>,
    ) -> Step {
        self.flush(wire)?;
        notes.lone |= complaint.lone;
        notes.tell(wire)?;
        let (code, kind) = (complaint.code.as_deref(), complaint.kind.as_deref());
        wire.assembler.upstream_error(
            wire.out,
            code,
            kind,
            &complaint.message,
            payload.text.as_bytes(),
        )
    }

    /// The members of a chunk; gives back the error of a choice.
    fn chunk<'a>(
        &mut self,
        wire: &mut Wire<'_, '_>,
        chunk: &Chunk<'a>,
        around: &[Member<'a>],
        payload: Payload<'_>,
        notes: &mut Notes<'a>,
    ) -> Result<Option<Complaint<'a>>, Fault> {
        let before = wire.out.said();
        let mut fresh = self.last_seen.fresh(&chunk.rest);
        if !around.is_empty() {
            fresh = self.last_seen.fresh(around).and(&fresh);
        }
        if !fresh.is_empty() {
            self.cache.clear();
        }
        let groq = find(&chunk.rest, "x_groq").filter(|raw| raw.kind == Kind::Object);
        let usage = present(chunk.usage);
        // Whether a later chunk of the same bytes does nothing but what its choice does.
        let plain = self.started
            && fresh.is_empty()
            && present(chunk.error).is_none()
            && usage.is_none_or(|raw| raw.kind == Kind::Object)
            && groq.is_none()
            && !chunk.wide_integer
            && chunk.duplicates.is_empty()
            && !payload.tail
            && payload.event.is_none()
            && matches!(&chunk.choices, Some(Walk::Read(choices, _)) if choices.len() == 1);
        if !self.started {
            self.started = true;
            start(wire, chunk, notes, payload.tail, fresh.text().as_deref())?;
            fresh = Leftovers::default();
        }
        let reading = Reading {
            tail: payload.tail,
            new_id: !payload.tail && self.id_changed(wire, chunk),
            body: is_string(chunk.object, "chat.completion"),
            learns: plain && self.cache.wants(),
        };
        let mut complaint = None;
        match &chunk.choices {
            Some(Walk::Read(choices, _)) => {
                for (place, choice) in choices.iter().enumerate() {
                    let at = Pointer::ROOT.member("choices");
                    let at = at.item(place);
                    let Walk::Read(choice, _) = choice else {
                        notes.shape(choice.raw(), at);
                        continue;
                    };
                    let state = self.choice(wire, choice.index, place, notes, at)?;
                    let index = state.index;
                    let taken = state.take(wire, choice, &mut fresh, notes, at, reading)?;
                    complaint = complaint.or(taken.complaint);
                    if let Some(mut lesson) = taken.lesson.filter(|_| wire.out.said() == before) {
                        lesson.padding(chunk.obfuscation);
                        if let Some(usage) = usage {
                            lesson.counts(usage);
                        }
                        self.cache.learn(payload.text, index, lesson);
                    }
                }
            }
            Some(Walk::Other(raw)) => notes.unless_null(*raw, Pointer::ROOT.member("choices")),
            None => {}
        }
        notes.tell(wire)?;
        if let Some(text) = fresh.text() {
            let lowest = self
                .choices
                .iter()
                .map(|choice| choice.index)
                .min()
                .unwrap_or(0);
            wire.assembler.choice_metadata(wire.out, lowest, &text)?;
        }
        if let Some(groq) = groq {
            usage::take(
                wire,
                find(&members(groq), "usage"),
                notes,
                Pointer::ROOT.member("x_groq"),
            )?;
        }
        usage::take(wire, chunk.usage, notes, Pointer::ROOT)?;
        Ok(complaint)
    }

    /// Whether the chunk has another id than the one before (AM10).
    fn id_changed(&mut self, wire: &Wire<'_, '_>, chunk: &Chunk<'_>) -> bool {
        if !wire.out.config.policy.switches.restart_on_new_stream_id {
            return false;
        }
        let Some(id) = present(chunk.id)
            .and_then(string)
            .filter(|id| !id.is_empty())
        else {
            return false;
        };
        let changed = self.last_id.as_deref().is_some_and(|last| last != id);
        self.last_id = Some(id.into_owned());
        changed
    }

    /// The choice that an entry speaks of; a missing index, or one that is none, is the entry's place (E4).
    fn choice<'a>(
        &mut self,
        wire: &mut Wire<'_, '_>,
        sent: Slot<'a>,
        place: usize,
        notes: &mut Notes<'a>,
        at: Pointer<'_>,
    ) -> Result<&mut ChoiceState, Fault> {
        let sent = present(sent);
        let number = sent
            .and_then(calls::integer)
            .and_then(|number| i32::try_from(number).ok());
        let number = number.filter(|number| *number >= 0);
        if let Some(raw) = sent.filter(|_| number.is_none()) {
            notes.shape(raw, at.member("index"));
        }
        let index = number
            .or_else(|| i32::try_from(place).ok())
            .unwrap_or(i32::MAX);
        let known = self.choices.iter().position(|choice| choice.index == index);
        let limit = wire.out.config.limits.max_choices;
        let is_full = |count: usize| limit.is_some_and(|limit| count as u64 >= limit);
        let at = match known {
            Some(at) => at,
            None if wire.out.config.policy.switches.merge_choices && !self.choices.is_empty() => {
                // AM11: the request had one choice, so every other index is the first one.
                if !self.merged.contains(&index) && !is_full(self.merged.len()) {
                    self.merged.push(index);
                    wire.out
                        .diagnose(Code::CHOICES_MERGED, None, &index.to_string())?;
                }
                0
            }
            None => {
                if let Some(limit) = limit.filter(|_| is_full(self.choices.len())) {
                    return Err(Fault::limit(LimitName::max_choices, limit));
                }
                self.choices.push(ChoiceState::new(
                    index,
                    wire.out.config.policy.inline_reasoning,
                ));
                // Also a choice that never says anything has to end.
                wire.assembler
                    .text(wire.out, index, Text::default(), None)?;
                self.choices.len() - 1
            }
        };
        // Cannot fail: the place was just found or filled.
        self.choices
            .get_mut(at)
            .ok_or_else(|| Fault::new(Class::Internal, "internal"))
    }
}

/// The first chunk: what the response calls itself. One from behind a broken document may not say so.
fn start<'a>(
    wire: &mut Wire<'_, '_>,
    chunk: &Chunk<'a>,
    notes: &mut Notes<'a>,
    tail: bool,
    metadata: Option<&str>,
) -> Step {
    let mut word = |slot: Slot<'a>| {
        let (word, lone) = present(slot).and_then(text)?.into_whole();
        notes.lone |= lone;
        Some(word).filter(|word| !word.is_empty())
    };
    let id = if tail { None } else { word(chunk.id) };
    let model = word(chunk.model);
    let created = present(chunk.created)
        .filter(|raw| raw.kind == Kind::Number)
        .and_then(calls::integer);
    wire.assembler
        .started(wire.out, id.as_deref(), model.as_deref(), created, metadata)
}

/// The chunk in an envelope.
struct Wrapped<'a> {
    chunk: Chunk<'a>,
    raw: Raw<'a>,
}

/// The chunk of an envelope `{"data":{"choices":…}}` (E17).
fn wrapped<'a>(chunk: &Chunk<'a>, max_depth: Option<u64>) -> Option<Wrapped<'a>> {
    if chunk.is_chunk() {
        return None;
    }
    let raw = find(&chunk.rest, "data").filter(|raw| raw.kind == Kind::Object)?;
    match read::document(raw.text, max_depth) {
        Ok(Document::Object(chunk)) if chunk.is_chunk() => Some(Wrapped { chunk: *chunk, raw }),
        _ => None,
    }
}

/// An error object that a gateway put into an array.
fn lone_error<'a>(raw: Raw<'a>, max_depth: Option<u64>) -> Option<(Chunk<'a>, Raw<'a>)> {
    let first = read::first_item(raw).filter(|item| item.kind == Kind::Object)?;
    match read::document(first.text, max_depth) {
        Ok(Document::Object(chunk)) if chunk.error.is_some() => Some((*chunk, first)),
        _ => None,
    }
}

/// Whether a payload outside of any event is a whole answer, or the error in its place.
pub(crate) fn is_body(document: &Document<'_>) -> bool {
    let Document::Object(chunk) = document else {
        return false;
    };
    if is_string(chunk.object, "chat.completion") || is_string(chunk.object, "error") {
        return true;
    }
    let Some(Walk::Read(choices, _)) = &chunk.choices else {
        return present(chunk.error).is_some();
    };
    choices.iter().any(|choice| match choice {
        Walk::Read(choice, _) => {
            choice.message.is_some()
                && choice
                    .delta
                    .as_ref()
                    .is_none_or(|delta| delta.raw().kind == Kind::Null)
        }
        Walk::Other(_) => false,
    })
}

/// Whether a document behind a broken one brings what may be taken from there: a chunk, or an error.
pub(crate) fn is_of_use(document: &Document<'_>) -> bool {
    match document {
        Document::Object(chunk) => chunk.is_chunk() || chunk.error.is_some(),
        Document::Other(_) => false,
    }
}

/// A chunk that says nothing of any choice.
pub(crate) fn is_note(document: &Document<'_>) -> bool {
    let Document::Object(chunk) = document else {
        return false;
    };
    let empty = matches!(&chunk.choices, Some(Walk::Read(choices, _)) if choices.is_empty());
    empty && present(chunk.error).is_none()
}

/// The error object that a document is, where it stands in an array.
pub(crate) fn lone<'a>(document: &Document<'a>) -> Option<Box<Chunk<'a>>> {
    match document {
        Document::Other(raw) => lone_error(*raw, None).map(|(chunk, _)| Box::new(chunk)),
        Document::Object(_) => None,
    }
}

/// What no decoder knows.
pub(crate) fn unknown(wire: &mut Wire<'_, '_>, payload: Payload<'_>) -> Step {
    wire.assembler
        .unknown(wire.out, payload.event, payload.text.as_bytes())
}

impl Notes<'_> {
    /// Says what was noticed since the last time.
    fn tell(&mut self, wire: &mut Wire<'_, '_>) -> Step {
        if self.is_empty() {
            return Ok(());
        }
        for (at, raw) in mem::take(&mut self.shapes) {
            wire.out.diagnose(Code::SHAPE, None, &at)?;
            wire.assembler
                .unknown(wire.out, None, raw.text.as_bytes())?;
        }
        if mem::take(&mut self.lone) {
            wire.out.diagnose(Code::LONE_SURROGATE, None, "")?;
        }
        Ok(())
    }
}
