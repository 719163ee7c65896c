//! Writes Gemini `streamGenerateContent` chunks: text as it arrives, calls once they are complete, and finish reasons
//! and usage in the last chunk.
//!
//! Gemini has no terminal marker, so a stream without a finish reason is treated as truncated. An incomplete response
//! ends with `{"error":…}`.

mod grounding;

use crate::encode::common::citations::citations;
use crate::encode::common::compact_json::canonical;
use crate::encode::common::compact_json::spliced;
use crate::encode::common::encode_context::Call;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::encoder::Encoder;
use crate::encode::common::extra_members::join;
use crate::encode::common::extra_members::parsed;
use crate::encode::common::finish;
use crate::encode::common::finish::EndingError;
use crate::encode::common::passed_through::PassedThrough;
use crate::encode::common::usage::Counts;
use crate::encode::common::writer::Writer;
use crate::encode::gemini::grounding::Grounding;
use crate::encode::gemini::grounding::IndexedText;
use crate::encode::gemini::grounding::SegmentBudget;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Object;
use crate::model::event::Delta;
use crate::model::event::Event;
use crate::model::event::Mark;
use crate::model::event::Opened;
use crate::model::small_map::List;
use crate::model::small_map::Map;
use crate::model::small_map::Numbered;
use crate::model::unmodelled::Unmodelled;
use std::borrow::Cow;
use std::mem;

const NAME: &str = "gemini";
const PROVIDER: &str = "google";
/// Protobuf names of the counts. Clients do not read counts with these names.
const PROTO_COUNTS: [&str; 5] = [
    "prompt_token_count",
    "candidates_token_count",
    "total_token_count",
    "cached_content_token_count",
    "thoughts_token_count",
];
const SIGNATURE: &str = "thoughtSignature";

/// The kind of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartKind {
    Answer,
    Thought,
    Refusal,
}

/// Writes one response, including all its candidates.
#[derive(Debug, Default)]
pub(crate) struct Gemini {
    /// Members at the end of every chunk, with a leading comma. The text is created when the first chunk is written.
    tail: Option<String>,
    /// Candidates in order of first appearance.
    candidates: List<Candidate>,
    /// Text written so far for each open part.
    written: Map<u32, WrittenText>,
    /// The unknown members of the source's last chunk that were written.
    members: String,
    /// Number of the last payload that contained a part that was copied.
    copied: Option<u64>,
    segment_budget: SegmentBudget,
}

/// The text of a part, as far as it was written.
#[derive(Debug, Default)]
struct WrittenText {
    text: String,
    /// Byte offset of the part in the candidate's text.
    start: usize,
    /// True if text of another part was written between two pieces of this part.
    is_split: bool,
}

#[derive(Debug)]
struct Candidate {
    index: i32,
    reason: Option<&'static str>,
    /// The finish reason as the source sent it, if the source has this dialect.
    raw: Option<String>,
    /// True if the candidate has an invalid call, which was not written.
    malformed: bool,
    /// True if a call was omitted because it has no name.
    has_nameless: bool,
    /// True if a part was written.
    has_part: bool,
    /// Length of the written text in bytes, without thoughts and refusals.
    length: usize,
    /// The text of the ended parts. The text is stored only for Chat, which counts positions from the beginning of the
    /// message.
    message: IndexedText,
    grounding: Grounding,
}

impl Candidate {
    fn new(index: i32) -> Candidate {
        Candidate {
            index,
            reason: None,
            raw: None,
            malformed: false,
            has_nameless: false,
            has_part: false,
            length: 0,
            message: IndexedText::default(),
            grounding: Grounding::default(),
        }
    }
}

impl Numbered for Candidate {
    type Number = i32;

    fn number(&self) -> i32 {
        self.index
    }
}

impl Encoder for Gemini {
    fn event(&mut self, context: &mut EncodeContext, event: &Event<'_>) {
        if context.passed.own && self.is_copied(context, event) {
            return;
        }
        context.note(event);
        // For calls and reasoning, metadata that originally came from Gemini can be written unchanged.
        let is_call = matches!(event, Event::ToolCall { .. } | Event::ReasoningDone { .. });
        if !(is_call || context.passed.own) {
            context.losses.metadata_of(event);
        }
        match *event {
            Event::TextStarted(Opened { choice, .. })
            | Event::ReasoningStarted { choice, .. }
            | Event::RefusalStarted(Mark { choice, .. })
            | Event::ToolCallStarted { choice, .. } => _ = self.candidate(choice),
            Event::TextDelta(delta) => self.text(context, delta, PartKind::Answer),
            Event::ReasoningDelta(delta) => self.text(context, delta, PartKind::Thought),
            Event::RefusalDelta(delta) => self.text(context, delta, PartKind::Refusal),
            Event::TextDone {
                part,
                text,
                annotations,
                choice,
                ..
            } => {
                let written =
                    self.write_remaining_text(context, (part, choice), text, PartKind::Answer);
                if let Some(own) = own_signature(context, event.metadata()) {
                    let to = self.begin(context);
                    to.raw("{\"text\":\"\",\"thoughtSignature\":").string(&own);
                    to.raw("}");
                    self.end_chunk(context, choice);
                }
                if !context.passed.own {
                    self.cite(context, choice, annotations, &written);
                }
            }
            Event::RefusalDone(Delta {
                part, text, choice, ..
            }) => {
                self.write_remaining_text(context, (part, choice), text, PartKind::Refusal);
            }
            Event::ReasoningDone {
                part,
                text,
                kind,
                signature: sent,
                encrypted_content,
                choice,
                ..
            } => {
                self.write_remaining_text(context, (part, choice), text, PartKind::Thought);
                let own = if context.passed.own || context.carries() {
                    sent.filter(|text| !text.is_empty()).map(str::to_owned)
                } else {
                    signature(context, event.metadata())
                };
                if let Some(own) = &own {
                    let to = self.begin(context);
                    to.raw("{\"text\":\"\",\"thought\":true,\"thoughtSignature\":");
                    to.string(own).raw("}");
                    self.end_chunk(context, choice);
                }
                context.sealed(
                    kind,
                    text,
                    sent.filter(|_| own.is_none()),
                    encrypted_content,
                );
            }
            Event::ToolCall { .. } => self.call(context, event),
            Event::ToolResult { .. } => context.losses.note("server_tool"),
            Event::Source {
                url: Some(url),
                title,
                choice,
                ..
            } if !context.passed.own => {
                self.candidate(choice).grounding.cite(url, title);
            }
            Event::Source { .. } => context.losses.note("sources"),
            Event::File {
                media_type,
                data,
                url,
                choice,
                ..
            } => self.file(context, choice, media_type, (data, url)),
            Event::Usage(usage) if usage.cache_write_tokens.is_some_and(|count| count != 0) => {
                context.losses.note("usage_detail");
            }
            Event::Finished {
                reason,
                raw_reason,
                choice,
                ..
            } => {
                let own = context
                    .own_word(NAME, reason, raw_reason)
                    .map(str::to_owned);
                let candidate = self.candidate(choice);
                candidate.reason = Some(reason);
                candidate.raw = own;
            }
            _ => {}
        }
    }

    fn keep(&mut self, piece: &Delta<'_>) -> bool {
        let written = self.written.get_mut(&piece.part);
        written
            .map(|written| written.text.push_str(piece.text))
            .is_some()
    }

    fn write_unmodelled(&mut self, context: &mut EncodeContext, content: &Unmodelled<'_>) {
        match *content {
            Unmodelled::Part { choice, part } => {
                self.copied = Some(context.passed.payload_number);
                spliced(self.begin(context), part);
                self.end_chunk(context, choice);
            }
            Unmodelled::ChunkMembers {
                candidates,
                members,
            } => self.write_members(context, candidates, members),
            _ => {}
        }
    }

    fn end(&mut self, context: &mut EncodeContext, ending_error: Option<EndingError>) {
        match ending_error.map_or_else(|| self.finish_words(), Err) {
            Ok(words) => self.finish(context, &words),
            Err(ending_error) => {
                let to = context.writer.data();
                to.raw("{\"error\":{\"code\":500,\"message\":");
                to.string(&ending_error.message);
                to.raw(",\"status\":\"INTERNAL\"");
                if let Some(sent) = &ending_error.sent {
                    to.raw(",\"details\":[{\"detail\":").string(sent).raw("}]");
                }
                to.raw("}}").end();
            }
        }
    }
}

impl Gemini {
    /// Returns true if the content of an event from a source in the same dialect is copied as parts or members.
    fn is_copied(&self, context: &EncodeContext, event: &Event<'_>) -> bool {
        match event {
            Event::ToolCallStarted {
                provider_executed, ..
            }
            | Event::ToolCall {
                provider_executed, ..
            } => *provider_executed,
            Event::ToolResult { .. } | Event::Source { .. } => true,
            Event::File { .. } | Event::Unknown { .. } => {
                self.copied == Some(context.passed.payload_number)
            }
            _ => false,
        }
    }

    /// Returns the candidate with this index, and creates it if necessary.
    fn candidate(&mut self, index: i32) -> &mut Candidate {
        self.candidates.slot(index, || Candidate::new(index))
    }

    /// Writes the beginning of a chunk, up to its only part.
    fn begin<'j>(&self, context: &'j mut EncodeContext) -> &'j mut Writer {
        context
            .writer
            .data()
            .raw("{\"candidates\":[{\"content\":{\"parts\":[")
    }

    fn end_chunk(&mut self, context: &mut EncodeContext, choice: i32) {
        self.candidate(choice).has_part = true;
        context.writer.raw("],\"role\":\"model\"},\"index\":");
        context.writer.number(i64::from(choice)).raw("}]");
        self.end_of_all(context);
    }

    /// Writes a chunk with the unknown members of the source's chunk. Members next to the candidates are written only if
    /// they have changed, because most sources repeat them.
    fn write_members(&mut self, context: &mut EncodeContext, candidates: &str, members: &str) {
        let is_new = members != self.members;
        if is_new {
            members.clone_into(&mut self.members);
        }
        let extra = parsed(if is_new { members } else { "{}" });
        if candidates.is_empty() && extra.is_empty() {
            return;
        }
        let to = context.writer.data().raw("{");
        let mut names = extra.as_slice();
        if !candidates.is_empty() {
            spliced(to.raw("\"candidates\":"), candidates);
        } else if let Some(((name, text), rest)) = names.split_first() {
            spliced(to.string(name).raw(":"), text);
            names = rest;
        }
        join(to, names, &[]);
        self.end_of_all(context);
    }

    fn end_of_all(&mut self, context: &mut EncodeContext) {
        let tail = self.tail.get_or_insert_with(|| tail(context));
        context.writer.raw(tail).end();
    }

    fn text(&mut self, context: &mut EncodeContext, delta: Delta<'_>, kind: PartKind) {
        if delta.text.is_empty() {
            return;
        }
        if kind == PartKind::Refusal {
            context.losses.note("refusal");
        }
        self.record_text(&delta, kind);
        let to = self.begin(context);
        to.raw("{\"text\":").string(delta.text);
        to.raw(if kind == PartKind::Thought {
            ",\"thought\":true}"
        } else {
            "}"
        });
        self.end_chunk(context, delta.choice);
    }

    /// Records a piece of text that is written.
    fn record_text(&mut self, delta: &Delta<'_>, kind: PartKind) {
        let before = match kind {
            PartKind::Answer => {
                let candidate = self.candidate(delta.choice);
                let before = candidate.length;
                candidate.length += delta.text.len();
                before
            }
            PartKind::Thought | PartKind::Refusal => 0,
        };
        let written = self.written.slot(delta.part);
        if written.text.is_empty() {
            written.start = before;
        }
        written.is_split |= written.start + written.text.len() != before;
        written.text.push_str(delta.text);
    }

    /// Adds the pages that a text part cites to the candidate's grounding metadata.
    fn cite(
        &mut self,
        context: &mut EncodeContext,
        choice: i32,
        annotations: Option<&str>,
        written: &WrittenText,
    ) {
        let is_message = context.source == "chat";
        if is_message && !written.text.is_empty() {
            self.candidate(choice).message.push(&written.text);
        }
        let Some(annotations) = annotations else {
            return;
        };
        let part = (!is_message).then(|| IndexedText::of(&written.text));
        let length = part.as_ref().map(IndexedText::length);
        let (cited, others) = citations(annotations, length);
        if others {
            context.losses.note("sources");
        }
        if cited.is_empty() {
            return;
        }
        let new = || Candidate::new(choice);
        let candidate = self.candidates.slot(choice, new);
        let text = match &part {
            None => Some((&candidate.message, 0)),
            Some(part) => Some((part, written.start)).filter(|_| !written.is_split),
        };
        for citation in &cited {
            let grounding = &mut candidate.grounding;
            grounding.cite_segment(citation, text, &mut self.segment_budget);
        }
    }

    /// If the final text begins with the streamed text, writes the rest of the final text. Records a loss if the final
    /// text contradicts the streamed text. Returns the written text.
    fn write_remaining_text(
        &mut self,
        context: &mut EncodeContext,
        (part, choice): (u32, i32),
        text: &str,
        kind: PartKind,
    ) -> WrittenText {
        match text.strip_prefix(self.written.slot(part).text.as_str()) {
            Some(text) => {
                let metadata = None;
                let delta = Delta {
                    part,
                    text,
                    choice,
                    metadata,
                };
                self.text(context, delta, kind);
            }
            None => context.losses.note("text_corrected"),
        }
        let written = mem::take(self.written.slot(part));
        self.written.remove(&part);
        written
    }

    fn call(&mut self, context: &mut EncodeContext, event: &Event<'_>) {
        let Some(call) = Call::of(event) else {
            return;
        };
        let candidate = self.candidate(call.choice);
        let written = context.writes(&call);
        if written && call.is_good() {
            if call.custom {
                context.losses.note("custom_call");
            }
            let to = self.begin(context);
            to.raw("{\"functionCall\":{\"id\":").string(call.call_id);
            to.raw(",\"name\":").string(call.name).raw(",\"args\":");
            spliced(to, &call.object_text());
            to.raw("}");
            let own = if context.passed.own {
                own_signature(context, event.metadata()).filter(|text| !text.is_empty())
            } else {
                signature(context, event.metadata())
            };
            if let Some(signature) = own {
                let to = context.writer.raw(",\"thoughtSignature\":");
                to.string(&signature);
            }
            context.writer.raw("}");
            return self.end_chunk(context, call.choice);
        }
        if written {
            context.losses.note("invalid_call");
            candidate.malformed = true;
        } else {
            candidate.has_nameless |= call.is_nameless() && !call.provider_executed;
        }
        context.losses.metadata_of(event);
    }

    fn file(
        &mut self,
        context: &mut EncodeContext,
        choice: i32,
        media_type: Option<&str>,
        content: (Option<&str>, Option<&str>),
    ) {
        match content {
            (Some(data), _) => {
                let to = self.begin(context);
                to.raw("{\"inlineData\":{\"mimeType\":");
                to.string(media_type.unwrap_or("application/octet-stream"));
                to.raw(",\"data\":").string(data).raw("}}");
            }
            (None, Some(url)) => {
                let to = self.begin(context).raw("{\"fileData\":{");
                if let Some(media_type) = media_type {
                    to.raw("\"mimeType\":").string(media_type).raw(",");
                }
                to.raw("\"fileUri\":").string(url).raw("}}");
            }
            (None, None) => return context.losses.note("files"),
        }
        self.end_chunk(context, choice);
    }

    /// Returns the finish word of every candidate, in order, or an error if a candidate has none.
    fn finish_words(&mut self) -> Result<Vec<(i32, String)>, EndingError> {
        self.candidates.sort_by_key(|candidate| candidate.index);
        let mut lacks_word = false;
        let mut words = Vec::with_capacity(self.candidates.len());
        for candidate in self.candidates.iter_mut() {
            let reason = candidate.reason;
            let reason = reason.ok_or_else(|| EndingError::named("TruncatedStream"))?;
            let malformed =
                candidate.malformed && matches!(reason, "stop" | "tool_calls" | "other");
            match finish::word(NAME, reason) {
                Some(_) if malformed => {
                    words.push((candidate.index, "MALFORMED_FUNCTION_CALL".to_owned()));
                }
                // If none of the candidate's calls could be written, the candidate is not a success.
                _ if reason == "tool_calls" && candidate.has_nameless && !candidate.has_part => {
                    lacks_word = true;
                }
                word => match candidate.raw.take().or(word.map(str::to_owned)) {
                    Some(word) => words.push((candidate.index, word)),
                    None => lacks_word = true,
                },
            }
        }
        if lacks_word {
            return Err(EndingError::named("finish"));
        }
        if words.is_empty() {
            return Err(EndingError::named("TruncatedStream"));
        }
        Ok(words)
    }

    fn finish(&mut self, context: &mut EncodeContext, words: &[(i32, String)]) {
        let PassedThrough {
            finished, counted, ..
        } = &context.passed;
        let words = words.iter().filter(|(index, _)| !finished.contains(index));
        let words: Vec<&(i32, String)> = words.collect();
        let counts = context.answer.usage.filter(|_| !counted);
        let counts = counts.filter(Counts::is_known);
        if words.is_empty() && counts.is_none() {
            return;
        }
        let counts = counts.map(|counts| usage(context, &counts));
        let to = context.writer.data();
        to.raw("{\"candidates\":[");
        let mut mark = "";
        for (index, word) in words {
            to.raw(mark).raw("{\"finishReason\":").string(word);
            to.raw(",\"index\":").number(i64::from(*index));
            if let Some(candidate) = self.candidates.find(*index) {
                candidate.grounding.write(to);
            }
            to.raw("}");
            mark = ",";
        }
        to.raw("]");
        if let Some(counts) = counts {
            to.raw(",\"usageMetadata\":").raw(&counts);
        }
        self.end_of_all(context);
    }
}

/// Returns the usage object. If the source has this dialect and clients read all names in its usage object, that object
/// is copied. If the source has another dialect, the object is built from the token counts.
fn usage(context: &mut EncodeContext, counts: &Counts) -> String {
    let mut to = Writer::default();
    if let Some(sent) = &context.answer.own_usage {
        let object = Object::of(Raw {
            text: sent,
            kind: Kind::Object,
        });
        let names = object.map(|object| object.names()).unwrap_or_default();
        if !names.iter().any(|name| name.contains('_')) {
            canonical(&mut to, sent);
            return to.into_text();
        }
        if !names
            .iter()
            .all(|name| PROTO_COUNTS.contains(&name.as_str()))
        {
            context.losses.note("usage_detail");
        }
    }
    let shown = counts.output.map(|output| {
        let thoughts = counts.reasoning.unwrap_or(0);
        output.saturating_sub(thoughts).max(0)
    });
    let members = [
        ("promptTokenCount", counts.input),
        ("candidatesTokenCount", shown),
        ("totalTokenCount", counts.total),
        ("cachedContentTokenCount", counts.cached),
        ("thoughtsTokenCount", counts.reasoning),
    ];
    let mut mark = "{\"";
    for (name, count) in members {
        if let Some(count) = count {
            to.raw(mark).raw(name).raw("\":").number(count);
            mark = ",\"";
        }
    }
    to.raw("}");
    to.into_text()
}

/// Returns the members at the end of every chunk: the model and the response id, if the source sent them.
fn tail(context: &EncodeContext) -> String {
    let mut tail = Writer::default();
    if let Some(model) = &context.answer.model {
        tail.raw(",\"modelVersion\":").string(model);
    }
    if let Some(id) = &context.answer.id {
        tail.raw(",\"responseId\":").string(id);
    }
    tail.raw("}");
    tail.into_text()
}

/// Returns the thought signature in the metadata, or `None` if the source has another dialect.
fn own_signature(context: &EncodeContext, metadata: Option<&str>) -> Option<String> {
    let text = metadata.filter(|_| context.passed.own)?;
    let whole = Object::of(Raw {
        text,
        kind: Kind::Object,
    })?;
    whole.string(SIGNATURE).map(Cow::into_owned)
}

/// Returns the thought signature that clients must send back to Google, if the AI SDK metadata contains it under
/// Google's key. Records all other metadata of the part as lost.
fn signature(context: &mut EncodeContext, metadata: Option<&str>) -> Option<String> {
    let whole = Object::of(Raw {
        text: metadata?,
        kind: Kind::Object,
    })?;
    let own = whole.object(PROVIDER);
    let Some(own) = own.filter(|_| context.source.starts_with("ai-sdk-")) else {
        context.losses.metadata(metadata);
        return None;
    };
    let names = |object: &Object<'_>, known: &str| object.names().iter().any(|name| name != known);
    if names(&whole, PROVIDER) || names(&own, SIGNATURE) {
        context.losses.metadata(metadata);
    }
    own.string(SIGNATURE).map(Cow::into_owned)
}
