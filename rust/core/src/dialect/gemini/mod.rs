//! Chunks of streamGenerateContent, and whole GenerateContentResponse bodies, as wire deltas.
//!
//! Knows the members of a chunk beside its candidates, in which order everything counts, and when the answer is over:
//! there is no terminal marker (the reason stands in `_spec/dialects.json`). What a candidate says is read in `candidate`.
//! Knows no other dialect, no identity of calls and no framing.

mod calls;
mod candidate;
mod facts;
mod partial;
mod shape;
mod sources;
mod tools;

use candidate::Candidate;
use facts::{FACTS, a_reason, a_word, is_read, said, seconds, unmodelled};
pub(crate) use shape::SHAPES;
use shape::{error, is_used, wrapped};

use crate::complaint::Complaint;
use crate::config::Config;
use crate::decode::Decode;
use crate::fault::{Class, Fault};
use crate::few::List;
use crate::json::members::{Document, Member, Object, integer, items, string};
use crate::json::repeats::{has_wide_integer, may_repeat_in};
use crate::json::{Key, Kind, Raw};
use crate::leftovers::{LastSeen, Leftovers};
use crate::limits::LimitName;
use crate::notes::{Notes, Pointer, tell_repeats, tell_wide_integer};
use crate::spec::Code;
use crate::wire::{Payload, Step, Wire, unknown};

const FEEDBACK: &str = "promptFeedback";

/// The decoder of one stream.
#[derive(Debug)]
pub(crate) struct Gemini {
    /// In order of first sight.
    candidates: List<Candidate>,
    /// The lowest index of a candidate.
    lowest: Option<i32>,
    /// All candidates before that place have said why they end.
    over: usize,
    /// Unmodelled members of chunks, as last seen.
    last_seen: LastSeen,
    started: bool,
    ended: bool,
}

impl Gemini {
    pub(crate) fn new(_config: &Config) -> Gemini {
        Gemini {
            candidates: List::default(),
            lowest: None,
            over: 0,
            last_seen: LastSeen::default(),
            started: false,
            ended: false,
        }
    }

    /// A chunk, whatever it stands in.
    fn document<'a>(
        &mut self,
        wire: &mut Wire<'_, '_>,
        object: &Object<'a>,
        payload: Payload<'a>,
    ) -> Step {
        let inner = wrapped(object);
        let chunk = inner.as_ref().unwrap_or(object);
        if object.wide_integer {
            wire.out.diagnose(Code::NUMERIC_OVERFLOW, None, "")?;
        }
        if may_repeat_in(object.raw.text) {
            let base = [Some("response")];
            let base = if inner.is_some() {
                base.as_slice()
            } else {
                &[]
            };
            tell_repeats(wire, object.raw.text, base, is_read)?;
        }
        let mut notes = Notes::default();
        let used = is_used(chunk);
        let complaint = error(chunk, payload.event, used).or_else(|| {
            let around = inner.is_some().then_some(object)?;
            error(around, payload.event, used)
        });
        if used {
            self.chunk(wire, chunk, payload.tail, &mut notes)?;
        } else if complaint.is_none() {
            return unknown(wire, payload);
        }
        match complaint {
            Some(complaint) => self.complain(wire, &complaint, payload, notes),
            None => Ok(()),
        }
    }

    fn chunk<'a>(
        &mut self,
        wire: &mut Wire<'_, '_>,
        chunk: &Object<'a>,
        tail: bool,
        notes: &mut Notes<'a>,
    ) -> Step {
        let members = &chunk.members;
        let mut news = Leftovers::default();
        if !tail {
            let rest = unmodelled(members, &FACTS.envelope_fields);
            news = self.last_seen.fresh(&rest);
        }
        if !self.started {
            self.start(wire, chunk, &std::mem::take(&mut news), tail, notes)?;
        }
        if let Some(candidates) = said(members, "candidates") {
            let at = Pointer::ROOT.member("candidates");
            if candidates.kind == Kind::Array {
                for (place, item) in items(candidates).into_iter().enumerate() {
                    let at = at.item(place);
                    let Some(item) = Object::of(item) else {
                        notes.shape(item, at);
                        continue;
                    };
                    let index = index(&item, place, at, notes);
                    self.candidate(wire, index)?
                        .read(wire, &item, at, tail, notes)?;
                }
            } else {
                notes.shape(candidates, at);
            }
        }
        self.feedback(wire, members, &mut news, notes)?;
        if let Some(metadata) = news.text() {
            let lowest = self.lowest.unwrap_or(0);
            wire.assembler
                .choice_metadata(wire.out, lowest, &metadata)?;
        }
        if let Some(usage) = notes.an_object(members, Pointer::ROOT, "usageMetadata") {
            wire.assembler.usage(wire.out, FACTS.usage(&usage))?;
        }
        notes.tell(wire)
    }

    /// The first chunk: what the response calls itself. A recovered one may not say so.
    fn start<'a>(
        &mut self,
        wire: &mut Wire<'_, '_>,
        chunk: &Object<'a>,
        news: &Leftovers<'a>,
        tail: bool,
        notes: &mut Notes<'a>,
    ) -> Step {
        self.started = true;
        let (members, at) = (&chunk.members, Pointer::ROOT);
        let id = match tail {
            true => None,
            false => a_word(members, at, "responseId", notes),
        };
        let model = a_word(members, at, "modelVersion", notes);
        let created = chunk.get("createTime").and_then(string);
        let created = created.and_then(|text| seconds(&text));
        let (id, model, metadata) = (id.as_deref(), model.as_deref(), news.text());
        wire.assembler
            .started(wire.out, id, model, created, metadata.as_deref())
    }

    fn candidate(&mut self, wire: &mut Wire<'_, '_>, index: i32) -> Result<&mut Candidate, Fault> {
        let known = self.candidates.place(index);
        let at = match known {
            Some(at) => at,
            None => {
                let limit = wire.out.config.limits.max_choices;
                if let Some(limit) = limit.filter(|limit| self.candidates.len() as u64 >= *limit) {
                    return Err(Fault::limit(LimitName::max_choices, limit));
                }
                let lowest = self.lowest.unwrap_or(index);
                self.lowest = Some(lowest.min(index));
                self.candidates.push(Candidate::new(wire, index)?)
            }
        };
        // Cannot fail: the place was just found or filled.
        self.candidates
            .get_mut(at)
            .ok_or_else(|| Fault::new(Class::Internal, "internal"))
    }

    /// promptFeedback: a blocked prompt has no candidates, and the blockReason is why there is no answer.
    fn feedback<'a>(
        &mut self,
        wire: &mut Wire<'_, '_>,
        chunk: &[Member<'a>],
        news: &mut Leftovers<'a>,
        notes: &mut Notes<'a>,
    ) -> Step {
        let Some(feedback) = notes.an_object(chunk, Pointer::ROOT, FEEDBACK) else {
            return Ok(());
        };
        let key = Key {
            raw: FEEDBACK,
            escaped: false,
        };
        let raw = feedback.raw;
        news.add(Member { key, raw });
        let at = Pointer::ROOT.member(FEEDBACK);
        match a_reason(&feedback.members, at, "blockReason", notes) {
            Some(reason) if self.candidates.is_empty() => {
                self.candidate(wire, 0)?.take(wire, &reason)
            }
            _ => Ok(()),
        }
    }

    fn finish(&mut self, wire: &mut Wire<'_, '_>) -> Step {
        let mut candidates: Vec<&mut Candidate> = self.candidates.iter_mut().collect();
        candidates.sort_by_key(|one| one.index);
        candidates.into_iter().try_for_each(|one| one.finish(wire))
    }

    fn complain(
        &mut self,
        wire: &mut Wire<'_, '_>,
        complaint: &Complaint<'_>,
        payload: Payload<'_>,
        notes: Notes<'_>,
    ) -> Step {
        self.finish(wire)?;
        notes.complain(wire, complaint, payload)
    }

    /// Whether every candidate has said why it ends.
    fn is_over(&mut self) -> bool {
        let rest = self.candidates.iter().skip(self.over);
        self.over += rest.take_while(|one| one.reason.is_some()).count();
        self.over > 0 && self.over == self.candidates.len()
    }
}

impl Decode for Gemini {
    fn decode(
        &mut self,
        wire: &mut Wire<'_, '_>,
        document: &Document<'_>,
        payload: Payload<'_>,
    ) -> Step {
        let raw = match document {
            Document::Object(object) => return self.document(wire, object, payload),
            Document::Other(raw) => *raw,
        };
        if let Some(chunks) = chunks(raw) {
            return chunks
                .iter()
                .try_for_each(|chunk| self.document(wire, chunk, payload));
        }
        if payload.event == Some("error") {
            tell_wide_integer(wire, raw)?;
            let complaint = Complaint::of_value(raw);
            return self.complain(wire, &complaint, payload, Notes::default());
        }
        unknown(wire, payload)
    }

    /// `[DONE]`, which some gateways send: the end where every candidate has said why it ends, else nothing.
    fn marker(&mut self, wire: &mut Wire<'_, '_>) -> Step {
        if self.is_over() {
            self.finish(wire)?;
            wire.assembler.done(wire.out)?;
            self.ended = true;
        }
        Ok(())
    }

    fn text(&mut self, wire: &mut Wire<'_, '_>, payload: Payload<'_>) -> Step {
        let complaint = Complaint::of_text(payload.text);
        self.complain(wire, &complaint, payload, Notes::default())
    }

    /// The reasons hold now, there is no later one. They take the place of a terminal marker.
    fn flush(&mut self, wire: &mut Wire<'_, '_>) -> Step {
        self.finish(wire)?;
        if self.is_over() && !self.candidates.iter().any(|one| one.ran_on) {
            wire.assembler.whole_here();
        }
        Ok(())
    }

    fn ended(&self) -> bool {
        self.ended
    }
}

/// The chunks of a payload that is a list of them.
fn chunks(raw: Raw<'_>) -> Option<Vec<Object<'_>>> {
    let items = items(raw);
    if items.is_empty() || items.iter().any(|item| item.kind != Kind::Object) {
        return None;
    }
    let wide_integer = has_wide_integer(raw);
    let chunk = |item| {
        Object::of(item).map(|object| Object {
            wide_integer,
            ..object
        })
    };
    items.into_iter().map(chunk).collect()
}

/// Which candidate an entry speaks of; a missing index, or one that is none, is the entry's place.
fn index<'a>(item: &Object<'a>, place: usize, at: Pointer<'_>, notes: &mut Notes<'a>) -> i32 {
    let sent = said(&item.members, "index");
    let number = sent.and_then(integer);
    let number = number.and_then(|number| i32::try_from(number).ok());
    number.filter(|number| *number >= 0).unwrap_or_else(|| {
        if let Some(raw) = sent {
            notes.shape(raw, at.member("index"));
        }
        i32::try_from(place).unwrap_or(i32::MAX)
    })
}
