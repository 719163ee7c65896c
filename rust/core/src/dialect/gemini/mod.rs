//! Decodes chunks from streamGenerateContent, and complete GenerateContentResponse bodies, into wire deltas.
//!
//! The members of a chunk are decoded in the order in which they take effect. The module `candidate` decodes the
//! candidates. Gemini has no terminal marker, so this module determines when the response is complete (see the
//! explanation in `_spec/dialects.json`).

pub(crate) mod calls;
pub(crate) mod candidate;
pub(crate) mod partial;
pub(crate) mod payload_kind;
pub(crate) mod proto_names;
pub(crate) mod sources;
pub(crate) mod spec_tables;
pub(crate) mod tools;

use crate::dialect::anomalies::Anomalies;
use crate::dialect::anomalies::Pointer;
use crate::dialect::anomalies::report_duplicate_keys;
use crate::dialect::anomalies::report_wide_integer;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::Incoming;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::decode_context::Payload;
use crate::dialect::decode_context::unknown;
use crate::dialect::decoder::Decoder;
use crate::dialect::gemini::candidate::Candidate;
use crate::dialect::gemini::candidate::OpenedCandidate;
pub(crate) use crate::dialect::gemini::payload_kind::SHAPES;
use crate::dialect::gemini::payload_kind::error;
use crate::dialect::gemini::payload_kind::is_used;
use crate::dialect::gemini::payload_kind::read;
use crate::dialect::gemini::payload_kind::wrapped;
use crate::dialect::gemini::proto_names::in_json_names;
use crate::dialect::gemini::spec_tables::FACTS;
use crate::dialect::gemini::spec_tables::a_reason;
use crate::dialect::gemini::spec_tables::a_word;
use crate::dialect::gemini::spec_tables::extra_fields;
use crate::dialect::gemini::spec_tables::is_read;
use crate::dialect::gemini::spec_tables::nonnull;
use crate::dialect::gemini::spec_tables::seconds;
use crate::dialect::gemini::spec_tables::unmodelled;
use crate::dialect::upstream_error::UpstreamErrorFields;
use crate::dialect::upstream_error::is_blank_error;
use crate::dialect::upstream_error::is_empty_value;
use crate::fastpath::items::ItemTemplates;
use crate::fastpath::items::template::LearnableDelta;
use crate::fastpath::items::template::OBJECT_DEPTH;
use crate::fastpath::items::template::Target;
use crate::fastpath::items::template::Varying;
use crate::json::Key;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::duplicate_keys::has_wide_integer;
use crate::json::duplicate_keys::may_repeat;
use crate::json::duplicate_keys::may_repeat_in;
use crate::json::extra_fields::ExtraFields;
use crate::json::extra_fields::LastSeen;
use crate::json::members::Document;
use crate::json::members::Member;
use crate::json::members::Object;
use crate::json::members::integer;
use crate::json::members::items;
use crate::json::members::string;
use crate::model::config::Config;
use crate::model::fault::Class;
use crate::model::fault::Fault;
use crate::model::limits::LimitName;
use crate::model::small_map::List;
use crate::model::spec::Code;
use crate::model::unmodelled::Unmodelled;

const CANDIDATES: &str = "candidates";
const FEEDBACK: &str = "promptFeedback";
const USAGE: &str = "usageMetadata";

/// Decodes the payloads of one stream.
#[derive(Debug)]
pub(crate) struct Gemini {
    /// Candidates in order of first appearance.
    candidates: List<Candidate>,
    /// The lowest index of any candidate that has arrived. Chunk metadata is added to the choice with this index.
    lowest: Option<i32>,
    /// Number of candidates at the start of the list that are known to have a finish reason.
    over: usize,
    /// The latest value of each unknown member, so that only changed values are emitted.
    last_seen: LastSeen,
    started: bool,
    ended: bool,
    templates: ItemTemplates,
}

/// Templates are used only if the limits on JSON depth and on the number of values are at least this high. A payload
/// that matches a template is not checked against the limits.
const LEAST_DEPTH: u64 = 4 * OBJECT_DEPTH;
const LEAST_VALUES: u64 = 1 << 16;

impl Gemini {
    pub(crate) fn new(_config: &Config) -> Gemini {
        Gemini {
            candidates: List::default(),
            lowest: None,
            over: 0,
            last_seen: LastSeen::default(),
            started: false,
            ended: false,
            templates: ItemTemplates::default(),
        }
    }

    /// Decodes a chunk, with or without an envelope. The members of the chunk may have JSON names or proto names.
    fn document(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        object: &Object<'_>,
        payload: Payload<'_>,
    ) -> ParseResult {
        let renamed = in_json_names(object.raw.text);
        match renamed.as_ref().map(|text| read(text, None)) {
            Some(Ok(Document::Object(renamed))) => {
                let wide_integer = object.wide_integer;
                let renamed = Object {
                    wide_integer,
                    ..renamed
                };
                if is_used(&renamed) || wrapped(&renamed).is_some() {
                    wire.out.mark_misread("other_member"); // clients look only for the JSON names
                }
                self.chunk_in_json_names(wire, &renamed, payload)
            }
            _ => self.chunk_in_json_names(wire, object, payload),
        }
    }

    fn chunk_in_json_names<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        object: &Object<'a>,
        payload: Payload<'a>,
    ) -> ParseResult {
        let inner = wrapped(object);
        let chunk = inner.as_ref().unwrap_or(object);
        if object.wide_integer {
            wire.out.diagnose(Code::NUMERIC_OVERFLOW, None, "")?;
        }
        let candidates = nonnull(&chunk.members, CANDIDATES);
        let entries = candidates.map(|raw| OpenedCandidate::list(object, raw));
        let entries = entries.unwrap_or_default();
        let certain =
            !may_repeat(&object.members) && object.nested().is_none_or(|nested| !nested.may_repeat);
        if !certain && may_repeat_in(object.raw.text) {
            let base = [Some("response")];
            let base = if inner.is_some() {
                base.as_slice()
            } else {
                &[]
            };
            report_duplicate_keys(wire, object.raw.text, base, is_read)?;
        }
        let mut notes = Anomalies::default();
        let used = is_used(chunk);
        let upstream_error = error(chunk, payload.event, used).or_else(|| {
            let around = inner.is_some().then_some(object)?;
            error(around, payload.event, used)
        });
        if used && inner.is_some() {
            wire.out.mark_misread("envelope"); // clients look for the members at the top level
        }
        let first = object.members.first();
        let first = first.filter(|first| first.key.is("error") && first.raw.kind == Kind::Object);
        if used && first.is_some_and(|first| is_blank_error(first.raw)) {
            wire.out.mark_misread("empty_error"); // google-genai raises if `error` is the first member
        }
        if used && payload.event.is_some_and(|name| name != "message") {
            wire.out.mark_misread("other_lines"); // google-genai parses an event line as part of the JSON text
        }
        let open = |decoder: &Gemini| decoder.candidates.iter().next().map(Candidate::open);
        let before = open(self);
        if used {
            self.chunk(wire, object, chunk, &entries, payload.tail, &mut notes)?;
        } else if upstream_error.is_none() {
            return unknown(wire, payload);
        }
        if let Some(upstream_error) = upstream_error {
            return self.report_error(wire, &upstream_error, payload, notes);
        }
        // A template depends on the state after the payload from which it was learned. The template is discarded when a
        // payload of another kind arrives.
        let plain = certain
            && inner.is_none()
            && !object.wide_integer
            && !payload.tail
            && payload.event.is_none()
            && object.raw.text.len() == payload.text.len(); // the chunk is not an element of a list
        let learnable = plain.then(|| self.learnable(wire, chunk, &entries));
        let learnable = learnable.flatten();
        if learnable.is_none() || open(self) != before {
            self.templates.forget();
        }
        if let Some(learnable) = learnable.filter(|_| self.templates.should_learn()) {
            self.templates.learn(None, payload.text, learnable);
        }
        Ok(())
    }

    /// Returns the data for a template if the chunk contains only token counts and a piece of the open text part.
    fn learnable<'a>(
        &mut self,
        wire: &DecodeContext<'_, '_>,
        chunk: &Object<'a>,
        entries: &[OpenedCandidate<'_, 'a>],
    ) -> Option<LearnableDelta<'a>> {
        let mut candidates = self.candidates.iter();
        let (Some(candidate), None, [entry]) = (candidates.next(), candidates.next(), entries)
        else {
            return None;
        };
        let (part, text) = candidate.lone_text(entry)?;
        let value = entry.object.as_ref()?;
        let sent = nonnull(&value.members, "index").map_or(Some(0), integer);
        let usage = chunk.get(USAGE);
        let limits = &wire.out.config.limits;
        let roomy = limits.max_json_depth.is_none_or(|most| most >= LEAST_DEPTH)
            && limits
                .max_json_values
                .is_none_or(|most| most >= LEAST_VALUES);
        let plain = sent == Some(i64::from(part.choice))
            && usage.is_none_or(|usage| usage.kind == Kind::Object)
            && !chunk.has("error")
            && !chunk.has(FEEDBACK);
        let rest = unmodelled(&chunk.members, &FACTS.envelope_fields);
        // A template may contain unknown members, because members that have not changed have no effect.
        let changed = self.last_seen.fresh(&rest);
        (plain && roomy && changed.is_empty()).then_some(LearnableDelta {
            target: Target::Part(part),
            varying: Varying {
                text,
                padding: None,
                number: None,
                object: usage,
                blanks: false,
            },
        })
    }

    /// Decodes a chunk. `payload`: the chunk itself, or the envelope that contains it.
    fn chunk<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        payload: &Object<'a>,
        chunk: &Object<'a>,
        entries: &[OpenedCandidate<'_, 'a>],
        tail: bool,
        notes: &mut Anomalies<'a>,
    ) -> ParseResult {
        let members = &chunk.members;
        let mut changed = ExtraFields::default();
        if !tail {
            let rest = unmodelled(members, &FACTS.envelope_fields);
            changed = self.last_seen.fresh(&rest);
        }
        if !self.started {
            self.start(wire, chunk, &std::mem::take(&mut changed), tail, notes)?;
        } else if wire.assembler.lacks_start_fields() {
            let word = |key| chunk.string(key).filter(|word| !word.trim().is_empty());
            let (id, model) = (word("responseId").filter(|_| !tail), word("modelVersion"));
            let created = chunk.string("createTime").and_then(|text| seconds(&text));
            let (id, model) = (id.as_deref(), model.as_deref());
            wire.assembler.started(wire.out, id, model, created, None)?;
        }
        if let Some(candidates) = nonnull(members, CANDIDATES) {
            let at = Pointer::ROOT.member(CANDIDATES);
            if candidates.kind == Kind::Array {
                for (position, entry) in entries.iter().enumerate() {
                    let at = at.item(position);
                    let Some(value) = &entry.object else {
                        notes.shape(entry.raw, at);
                        continue;
                    };
                    let index = index(value, position, at, notes);
                    self.candidate(wire, index)?
                        .read(wire, entry, value, at, tail, notes)?;
                }
            } else {
                notes.shape(candidates, at);
            }
        }
        if !tail && wire.out.wants_wire_facts() {
            report_members(wire, members, entries);
        }
        self.feedback(wire, members, &mut changed, notes)?;
        if let Some(metadata) = changed.text() {
            let lowest = self.lowest.unwrap_or(0);
            wire.assembler
                .choice_metadata(wire.out, lowest, &metadata)?;
        }
        if let Some(usage) = notes.opened(payload, members, Pointer::ROOT, USAGE) {
            wire.assembler.usage(wire.out, FACTS.usage(&usage))?;
        }
        notes.report(wire)
    }

    /// Emits the start event of the response, using the first chunk. `tail`: true if the chunk follows a broken
    /// document. The id of a chunk after a broken document is omitted, because it may be the id of another response.
    fn start<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        chunk: &Object<'a>,
        changed: &ExtraFields<'a>,
        tail: bool,
        notes: &mut Anomalies<'a>,
    ) -> ParseResult {
        self.started = true;
        let (members, at) = (&chunk.members, Pointer::ROOT);
        let id = match tail {
            true => None,
            false => a_word(members, at, "responseId", notes),
        };
        let model = a_word(members, at, "modelVersion", notes);
        let created = chunk.get("createTime").and_then(string);
        let created = created.and_then(|text| seconds(&text));
        let (id, model, metadata) = (id.as_deref(), model.as_deref(), changed.text());
        wire.assembler
            .started(wire.out, id, model, created, metadata.as_deref())
    }

    fn candidate(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        index: i32,
    ) -> Result<&mut Candidate, Fault> {
        let known = self.candidates.position(index);
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
        // The lookup cannot fail, because the candidate was just found or added.
        self.candidates
            .get_mut(at)
            .ok_or_else(|| Fault::new(Class::Internal, "internal"))
    }

    /// Handles `promptFeedback`, which becomes metadata. A blocked prompt has no candidates, so its `blockReason`
    /// becomes the finish reason of candidate 0.
    fn feedback<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        chunk: &[Member<'a>],
        changed: &mut ExtraFields<'a>,
        notes: &mut Anomalies<'a>,
    ) -> ParseResult {
        let Some(feedback) = notes.an_object(chunk, Pointer::ROOT, FEEDBACK) else {
            return Ok(());
        };
        let key = Key {
            raw: FEEDBACK,
            escaped: false,
        };
        let raw = feedback.raw;
        changed.add(Member { key, raw });
        let at = Pointer::ROOT.member(FEEDBACK);
        match a_reason(&feedback.members, at, "blockReason", notes) {
            Some(reason) if self.candidates.is_empty() => {
                self.candidate(wire, 0)?.take(wire, &reason)
            }
            _ => Ok(()),
        }
    }

    fn finish(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        let mut candidates: Vec<&mut Candidate> = self.candidates.iter_mut().collect();
        candidates.sort_by_key(|one| one.index);
        candidates.into_iter().try_for_each(|one| one.finish(wire))
    }

    fn report_error(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        upstream_error: &UpstreamErrorFields<'_>,
        payload: Payload<'_>,
        notes: Anomalies<'_>,
    ) -> ParseResult {
        self.finish(wire)?;
        notes.report_error(wire, upstream_error, payload)
    }

    /// Returns true if there are candidates and all of them have a finish reason.
    fn is_over(&mut self) -> bool {
        let rest = self.candidates.iter().skip(self.over);
        self.over += rest.take_while(|one| one.reason.is_some()).count();
        self.over > 0 && self.over == self.candidates.len()
    }
}

impl Decoder for Gemini {
    fn decode(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        document: &Document<'_>,
        payload: Payload<'_>,
    ) -> ParseResult {
        let raw = match document {
            Document::Object(object) => return self.document(wire, object, payload),
            Document::Other(raw) => *raw,
        };
        if let Some(chunks) = chunks(raw) {
            return chunks.iter().try_for_each(|chunk| {
                let text = chunk.raw.text;
                self.document(wire, chunk, Payload { text, ..payload })
            });
        }
        if payload.event == Some("error") {
            report_wide_integer(wire, raw)?;
            let upstream_error = UpstreamErrorFields::of_value(raw);
            return self.report_error(wire, &upstream_error, payload, Anomalies::default());
        }
        unknown(wire, payload)
    }

    #[inline]
    fn match_template(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        incoming: Incoming<'_>,
    ) -> Result<usize, Fault> {
        let Some(found) = self.templates.find(incoming) else {
            return Ok(0);
        };
        wire.out.advance_offset(found.before);
        self.templates.append_match(wire, &found)?;
        let usage = found.object.map(|text| Raw {
            text,
            kind: Kind::Object,
        });
        if let Some(usage) = usage.and_then(Object::of) {
            wire.assembler.usage(wire.out, FACTS.usage(&usage))?;
        }
        Ok(found.length)
    }

    /// Handles the `[DONE]` that some gateways send. The marker ends the stream only if every candidate has a finish
    /// reason.
    fn marker(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        if self.is_over() {
            self.finish(wire)?;
            wire.assembler.done(wire.out)?;
            self.ended = true;
        }
        Ok(())
    }

    fn text(&mut self, wire: &mut DecodeContext<'_, '_>, payload: Payload<'_>) -> ParseResult {
        let upstream_error = UpstreamErrorFields::of_text(payload.text);
        self.report_error(wire, &upstream_error, payload, Anomalies::default())
    }

    /// Emits the finish reasons at the end of the input, because they can change until then. The end of the stream is
    /// valid if every candidate has a finish reason and no content followed that reason.
    fn flush(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        self.finish(wire)?;
        if self.is_over() && !self.candidates.iter().any(|one| one.ran_on) {
            wire.assembler.mark_valid_end();
        }
        Ok(())
    }

    fn ended(&self) -> bool {
        self.ended
    }
}

/// Returns the chunks in a payload that is a list of objects. Returns `None` if the list is empty or contains other
/// values.
fn chunks<'a>(raw: Raw<'a>) -> Option<Vec<Object<'a>>> {
    let items = items(raw);
    if items.is_empty() || items.iter().any(|item| item.kind != Kind::Object) {
        return None;
    }
    let wide_integer = has_wide_integer(raw);
    let chunk = |item: Raw<'a>| match read(item.text, None) {
        Ok(Document::Object(object)) => Some(Object {
            wide_integer,
            ..object
        }),
        _ => None,
    };
    items.into_iter().map(chunk).collect()
}

/// Returns the `index` of a candidate, or its position in the list if this member is missing or invalid.
fn index<'a>(
    item: &Object<'a>,
    position: usize,
    at: Pointer<'_>,
    notes: &mut Anomalies<'a>,
) -> i32 {
    let sent = nonnull(&item.members, "index");
    let number = sent.and_then(integer);
    let number = number.and_then(|number| i32::try_from(number).ok());
    number.filter(|number| *number >= 0).unwrap_or_else(|| {
        if let Some(raw) = sent {
            notes.shape(raw, at.member("index"));
        }
        i32::try_from(position).unwrap_or(i32::MAX)
    })
}

/// Members of a chunk and of a candidate that the encoder writes itself.
const WRITTEN_IN_CHUNK: [&str; 5] = [CANDIDATES, USAGE, "modelVersion", "responseId", "error"];
const WRITTEN_IN_CANDIDATE: [&str; 3] = ["content", "finishReason", "index"];

/// Reports the other members of a chunk and of its candidates to the repair stage.
fn report_members(
    wire: &mut DecodeContext<'_, '_>,
    members: &[Member<'_>],
    entries: &[OpenedCandidate<'_, '_>],
) {
    let mut candidates = String::new();
    for (position, entry) in entries.iter().enumerate() {
        let Some(value) = &entry.object else {
            continue;
        };
        let mut rest = others(&value.members, &WRITTEN_IN_CANDIDATE);
        let content = value.object("content");
        let content = content
            .and_then(|content| extra_fields(&content.members, &FACTS.content_fields).text());
        if let Some(content) = content {
            let mark = if rest.is_empty() { "" } else { "," };
            rest.push_str(&format!("{mark}\"content\":{content}"));
        }
        if rest.is_empty() {
            continue;
        }
        let index = index(value, position, Pointer::ROOT, &mut Anomalies::default());
        candidates.push(if candidates.is_empty() { '[' } else { ',' });
        candidates.push_str(&format!("{{{rest},\"index\":{index}}}"));
    }
    if !candidates.is_empty() {
        candidates.push(']');
    }
    let rest = others(members, &WRITTEN_IN_CHUNK);
    let members = format!("{{{rest}}}");
    wire.out.keep(Unmodelled::ChunkMembers {
        candidates: &candidates,
        members: &members,
    });
}

/// Returns the members that are not in `written` and have a value, without braces.
fn others(members: &[Member<'_>], written: &[&str]) -> String {
    let mut level = ExtraFields::default();
    for member in members {
        let is_written = written.iter().any(|name| member.key.is(name));
        if !is_written && !is_empty_value(member.raw) {
            level.add(*member);
        }
    }
    let text = level.text().unwrap_or_default();
    let inner = text.get(1..text.len().saturating_sub(1));
    inner.unwrap_or_default().to_owned()
}
