//! OpenAI Chat Completions chunks as wire deltas.
//!
//! A payload is read whole (`read`), then said to the assembler in the order of the wire: what the chunk says of the
//! response, then each choice (reasoning, text, refusal, files, calls, a whole message, the finish reason), then usage
//! and errors. Payloads that differ from an earlier one only in their text skip the reading (`cache`).
//! Knows no other dialect, no framing and no identity of calls.

mod cache;
mod calls;
mod choice;
mod error;
mod files;
mod metadata;
mod notes;
pub(crate) mod read;
mod reasoning;
mod usage;

use std::borrow::Cow;

use cache::{Cache, What};
use choice::{ChoiceState, Reading};
use error::Complaint;
pub(crate) use error::{is_string, string};
use metadata::{LastSeen, Leftovers};
use notes::{Notes, Pointer};
use read::{Chunk, Document, Slot, Walk, find, present};

use crate::assemble::Assembler;
use crate::config::Config;
use crate::delta::Fragment;
use crate::fault::Fault;
use crate::json::{Kind, Number, Raw, Text};
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
    /// The chunk id, where a new one may mean a new start.
    last_id: Option<String>,
    cache: Cache,
}

impl Chat {
    pub(crate) fn new(config: &Config, caching: bool) -> Chat {
        let switches = &config.policy.switches;
        // With these a chunk may mean something else than the same chunk did before.
        let steady = !switches.restart_on_new_stream_id && !switches.merge_choices;
        Chat {
            started: false,
            last_seen: LastSeen::default(),
            choices: Vec::new(),
            last_id: None,
            cache: Cache::new(!caching || !steady),
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
        // With tags to be found the splitter of the choice reads the text.
        let tags = wire.out.config.policy.inline_reasoning;
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
                    id: found.id.and_then(|id| calls::usable_id(Cow::Borrowed(id))),
                    name: found
                        .name
                        .and_then(|name| calls::not_blank(Cow::Borrowed(name))),
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
            _ if tags => return Ok(false),
            What::Text => wire.assembler.text(wire.out, choice, text, metadata)?,
            What::Reasoning => wire
                .assembler
                .reasoning(wire.out, choice, "raw", text, metadata)?,
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
        match document {
            Document::Object(chunk) => self.object(wire, chunk, payload),
            Document::Other(raw) if payload.event == Some("error") => {
                complain(wire, &Complaint::of_value(*raw), payload)
            }
            Document::Other(_) => unknown(wire, payload),
        }
    }

    /// What was held back goes out: the input ends, or its marker came.
    pub(crate) fn finish(&mut self, wire: &mut Wire<'_, '_>) -> Step {
        self.choices
            .iter_mut()
            .try_for_each(|choice| choice.flush(wire))
    }

    fn object(&mut self, wire: &mut Wire<'_, '_>, chunk: &Chunk<'_>, payload: Payload<'_>) -> Step {
        if chunk.wide_integer {
            wire.out.diagnose(Code::NUMERIC_OVERFLOW, None, "")?;
        }
        for key in &chunk.duplicates {
            wire.out.diagnose(Code::DUPLICATE_KEY, None, key)?;
        }
        let whole = Raw {
            text: payload.text,
            kind: Kind::Object,
        };
        let complaint = Complaint::of_chunk(chunk, whole, payload.event == Some("error"));
        if chunk.choices.is_none() && chunk.usage.is_none() {
            if let Some(complaint) = complaint {
                return complain(wire, &complaint, payload);
            }
            return match wrapped(chunk, wire.out.config.limits.max_json_depth) {
                Some(inner) => self.chunk(wire, &inner, payload),
                None => unknown(wire, payload),
            };
        }
        self.chunk(wire, chunk, payload)?;
        match complaint.or_else(|| choice_complaint(chunk)) {
            Some(complaint) => complain(wire, &complaint, payload),
            None => Ok(()),
        }
    }

    fn chunk(&mut self, wire: &mut Wire<'_, '_>, chunk: &Chunk<'_>, payload: Payload<'_>) -> Step {
        let before = wire.out.said();
        let mut fresh = self.last_seen.fresh(&chunk.rest);
        if !fresh.is_empty() {
            self.cache.clear();
        }
        let mut plain =
            fresh.is_empty() && present(chunk.error).is_none() && present(chunk.usage).is_none();
        if !self.started {
            self.started = true;
            plain = false;
            start(wire, chunk, payload.tail, fresh.text().as_deref())?;
            fresh = Leftovers::default();
        }
        let reading = Reading {
            tail: payload.tail,
            restarts: self.restarts(wire, chunk),
        };
        let mut notes = Notes::default();
        match &chunk.choices {
            Some(Walk::Read(choices)) => {
                plain &= choices.len() == 1;
                for (place, choice) in choices.iter().enumerate() {
                    let at = Pointer::ROOT.member("choices");
                    let at = at.item(place);
                    match choice {
                        Walk::Read(choice) => {
                            let state = self.choice(wire, choice.index, place, &mut notes, at)?;
                            let index = state.index;
                            let learned =
                                state.take(wire, choice, &mut fresh, notes, at, reading)?;
                            notes = Notes::default();
                            plain &= wire.out.said() == before && payload.event.is_none();
                            if let Some(mut learned) = learned.filter(|_| plain) {
                                learned.padding(chunk.obfuscation);
                                self.cache.learn(payload.text, index, learned);
                            }
                        }
                        Walk::Other(raw) => notes.unless_null(*raw, at),
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
        match present(chunk.usage) {
            Some(raw) if raw.kind == Kind::Object => {
                wire.assembler.usage(wire.out, usage::read(raw))
            }
            Some(raw) => {
                let mut notes = Notes::default();
                notes.shape(raw, Pointer::ROOT.member("usage"));
                notes.tell(wire)
            }
            None => Ok(()),
        }
    }

    /// Whether the chunk has another id than the one before, where that is asked for.
    fn restarts(&mut self, wire: &Wire<'_, '_>, chunk: &Chunk<'_>) -> bool {
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

    fn choice<'a>(
        &mut self,
        wire: &mut Wire<'_, '_>,
        slot: Slot<'a>,
        place: usize,
        notes: &mut Notes<'a>,
        at: Pointer<'_>,
    ) -> Result<&mut ChoiceState, Fault> {
        let number = present(slot).and_then(|raw| {
            let number = match raw.kind {
                Kind::Number => Number { raw: raw.text }.integral(),
                Kind::String => calls::digits(raw),
                _ => None,
            };
            let number = number
                .and_then(|number| i32::try_from(number).ok())
                .filter(|number| *number >= 0);
            if number.is_none() {
                notes.shape(raw, at.member("index"));
            }
            number
        });
        let mut index = number
            .or_else(|| i32::try_from(place).ok())
            .unwrap_or(i32::MAX);
        if wire.out.config.policy.switches.merge_choices {
            if let Some(first) = self
                .choices
                .first_mut()
                .filter(|first| first.index != index)
            {
                first.merge(wire, index)?;
                index = first.index;
            }
        }
        let known = self.choices.iter().position(|choice| choice.index == index);
        let at = match known {
            Some(at) => at,
            None => {
                let limit = wire.out.config.limits.max_choices;
                if let Some(limit) = limit.filter(|limit| self.choices.len() as u64 >= *limit) {
                    return Err(Fault::limit(LimitName::max_choices, limit));
                }
                self.choices.push(ChoiceState::new(
                    index,
                    wire.out.config.policy.inline_reasoning,
                ));
                self.choices.len() - 1
            }
        };
        // Cannot fail: the place was just found or filled.
        self.choices
            .get_mut(at)
            .ok_or_else(|| Fault::new(crate::fault::Class::Internal, "internal"))
    }
}

fn start(wire: &mut Wire<'_, '_>, chunk: &Chunk<'_>, tail: bool, metadata: Option<&str>) -> Step {
    let word = |slot: Slot<'_>| -> Option<String> {
        present(slot)
            .and_then(string)
            .filter(|word| !word.is_empty())
            .map(Cow::into_owned)
    };
    let id = word(chunk.id).filter(|_| !tail);
    let created = present(chunk.created).filter(|raw| raw.kind == Kind::Number);
    let created = created.and_then(|raw| Number { raw: raw.text }.integral());
    wire.assembler.started(
        wire.out,
        id.as_deref(),
        word(chunk.model).as_deref(),
        created,
        metadata,
    )
}

/// The chunk of an envelope `{"data":{"choices":…}}`, with the members around it.
fn wrapped<'a>(chunk: &Chunk<'a>, max_depth: Option<u64>) -> Option<Chunk<'a>> {
    let data = find(&chunk.rest, "data").filter(|raw| raw.kind == Kind::Object)?;
    let Ok(Document::Object(inner)) = read::document(data.text, max_depth) else {
        return None;
    };
    if inner.choices.is_none() && inner.usage.is_none() {
        return None;
    }
    let mut inner = *inner;
    let mut rest: Vec<_> = chunk
        .rest
        .iter()
        .filter(|member| !member.key.is("data"))
        .copied()
        .collect();
    rest.append(&mut inner.rest);
    inner.rest = rest;
    Some(inner)
}

/// An error inside a choice.
fn choice_complaint<'a>(chunk: &Chunk<'a>) -> Option<Complaint<'a>> {
    let Some(Walk::Read(choices)) = &chunk.choices else {
        return None;
    };
    choices.iter().find_map(|choice| match choice {
        Walk::Read(choice) => present(choice.error).map(Complaint::of_value),
        Walk::Other(_) => None,
    })
}

fn complain(wire: &mut Wire<'_, '_>, complaint: &Complaint<'_>, payload: Payload<'_>) -> Step {
    let (code, kind) = (complaint.code.as_deref(), complaint.kind.as_deref());
    wire.assembler.upstream_error(
        wire.out,
        code,
        kind,
        &complaint.message,
        payload.text.as_bytes(),
    )
}

/// A text instead of a payload.
pub(crate) fn complain_in_text(wire: &mut Wire<'_, '_>, payload: Payload<'_>) -> Step {
    complain(wire, &Complaint::of_text(payload.text), payload)
}

/// Whether the document is a whole answer, not a chunk of one.
pub(crate) fn is_body(document: &Document<'_>) -> bool {
    let Document::Object(chunk) = document else {
        return false;
    };
    let Some(Walk::Read(choices)) = &chunk.choices else {
        return false;
    };
    let whole = |choice: &Walk<'_, read::Choice<'_>>| match choice {
        Walk::Read(choice) => choice.message.is_some() && choice.delta.is_none(),
        Walk::Other(_) => false,
    };
    is_string(chunk.object, "chat.completion") || (!choices.is_empty() && choices.iter().all(whole))
}

fn unknown(wire: &mut Wire<'_, '_>, payload: Payload<'_>) -> Step {
    if payload.tail {
        return Ok(());
    }
    wire.assembler
        .unknown(wire.out, payload.event, payload.text.as_bytes())
}

impl Notes<'_> {
    /// Says what was odd.
    fn tell(self, wire: &mut Wire<'_, '_>) -> Step {
        for (at, raw) in self.shapes {
            wire.out.diagnose(Code::SHAPE, None, &at)?;
            wire.assembler
                .unknown(wire.out, None, raw.text.as_bytes())?;
        }
        if self.lone {
            wire.out.diagnose(Code::LONE_SURROGATE, None, "")?;
        }
        Ok(())
    }
}
