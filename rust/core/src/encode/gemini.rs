//! Writes chunks of Gemini's `streamGenerateContent`.
//!
//! Every candidate in its own order; calls come whole, in one part. Knows no other dialect.

use crate::encode::common::compact_json::spliced;
use crate::encode::common::encode_context::Call;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::encoder::Encoder;
use crate::encode::common::finish;
use crate::encode::common::finish::EndingError;
use crate::encode::common::passed_through::PassedThrough;
use crate::encode::common::usage::Counts;
use crate::encode::common::writer::Writer;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Object;
use crate::json::members::items;
use crate::model::event::Delta;
use crate::model::event::Event;
use crate::model::event::Mark;
use crate::model::event::Opened;
use crate::model::small_map::List;
use crate::model::small_map::Map;
use crate::model::small_map::Numbered;
use std::borrow::Cow;

const NAME: &str = "gemini";
const PROVIDER: &str = "google";
const SIGNATURE: &str = "thoughtSignature";

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Answer,
    Thought,
    Refusal,
}

/// One stream of chunks.
#[derive(Debug, Default)]
pub(crate) struct Gemini {
    /// The end of every chunk: which model, and which answer. With its first comma.
    tail: Option<String>,
    /// In order of first sight.
    candidates: List<Candidate>,
    /// What was written of texts that are open.
    told: Map<u32, String>,
}

#[derive(Debug)]
struct Candidate {
    index: i32,
    reason: Option<&'static str>,
    /// In the source's own words, which are this dialect's.
    raw: Option<String>,
    /// A call of it holds no object.
    malformed: bool,
}

impl Numbered for Candidate {
    type Number = i32;

    fn number(&self) -> i32 {
        self.index
    }
}

impl Encoder for Gemini {
    fn event(&mut self, job: &mut EncodeContext, event: &Event<'_>) {
        job.note(event);
        // What hangs on those two may be Google's own.
        if !matches!(event, Event::ToolCall { .. } | Event::ReasoningDone { .. }) {
            job.losses.metadata_of(event);
        }
        match *event {
            Event::TextStarted(Opened { choice, .. })
            | Event::ReasoningStarted { choice, .. }
            | Event::RefusalStarted(Mark { choice, .. })
            | Event::ToolCallStarted { choice, .. } => _ = self.candidate(choice),
            Event::TextDelta(delta) => self.text(job, delta, Sort::Answer),
            Event::ReasoningDelta(delta) => self.text(job, delta, Sort::Thought),
            Event::RefusalDelta(delta) => self.text(job, delta, Sort::Refusal),
            Event::TextDone {
                part,
                text,
                annotations,
                choice,
                ..
            } => {
                self.rest(job, (part, choice), text, Sort::Answer);
                if let Some(own) = own_signature(job, event.metadata()) {
                    let to = self.begin(job);
                    to.raw("{\"text\":\"\",\"thoughtSignature\":").string(&own);
                    to.raw("}");
                    self.end_chunk(job, choice);
                }
                let told = annotations.map(|text| {
                    items(Raw {
                        text,
                        kind: Kind::Array,
                    })
                });
                if told.is_some_and(|told| !told.is_empty()) {
                    job.losses.note("sources");
                }
            }
            Event::RefusalDone(Delta {
                part, text, choice, ..
            }) => self.rest(job, (part, choice), text, Sort::Refusal),
            Event::ReasoningDone {
                part,
                text,
                kind,
                signature: sent,
                encrypted_content,
                choice,
                ..
            } => {
                self.rest(job, (part, choice), text, Sort::Thought);
                let own = if job.passed.own || job.carries() {
                    sent.filter(|text| !text.is_empty()).map(str::to_owned)
                } else {
                    signature(job, event.metadata())
                };
                if let Some(own) = &own {
                    let to = self.begin(job);
                    to.raw("{\"text\":\"\",\"thought\":true,\"thoughtSignature\":");
                    to.string(own).raw("}");
                    self.end_chunk(job, choice);
                }
                job.sealed(
                    kind,
                    text,
                    sent.filter(|_| own.is_none()),
                    encrypted_content,
                );
            }
            Event::ToolCall { .. } => self.call(job, event),
            Event::ToolResult { .. } => job.losses.note("server_tool"),
            Event::Source { .. } => job.losses.note("sources"),
            Event::File {
                media_type,
                data,
                url,
                choice,
                ..
            } => self.file(job, choice, media_type, (data, url)),
            Event::Usage(usage) if usage.cache_write_tokens.is_some_and(|count| count != 0) => {
                job.losses.note("usage_detail");
            }
            Event::Finished {
                reason,
                raw_reason,
                choice,
                ..
            } => {
                let own = job.own_word(NAME, reason, raw_reason).map(str::to_owned);
                let candidate = self.candidate(choice);
                candidate.reason = Some(reason);
                candidate.raw = own;
            }
            _ => {}
        }
    }

    fn keep(&mut self, piece: &Delta<'_>) -> bool {
        let told = self.told.get_mut(&piece.part);
        told.map(|told| told.push_str(piece.text)).is_some()
    }

    fn end(&mut self, job: &mut EncodeContext, trouble: Option<EndingError>) {
        match trouble.map_or_else(|| self.words(), Err) {
            Ok(words) => self.finish(job, &words),
            Err(trouble) => {
                let to = job.writer.data();
                to.raw("{\"error\":{\"code\":500,\"message\":");
                to.string(&trouble.message);
                to.raw(",\"status\":\"INTERNAL\"");
                if let Some(sent) = &trouble.sent {
                    to.raw(",\"details\":[{\"detail\":").string(sent).raw("}]");
                }
                to.raw("}}").end();
            }
        }
    }
}

impl Gemini {
    /// That candidate; it has something to say.
    fn candidate(&mut self, index: i32) -> &mut Candidate {
        self.candidates.slot(index, || Candidate {
            index,
            reason: None,
            raw: None,
            malformed: false,
        })
    }

    /// A chunk up to its one part.
    fn begin<'j>(&self, job: &'j mut EncodeContext) -> &'j mut Writer {
        job.writer
            .data()
            .raw("{\"candidates\":[{\"content\":{\"parts\":[")
    }

    fn end_chunk(&mut self, job: &mut EncodeContext, choice: i32) {
        self.candidate(choice);
        job.writer.raw("],\"role\":\"model\"},\"index\":");
        job.writer.number(i64::from(choice)).raw("}]");
        self.end_of_all(job);
    }

    fn end_of_all(&mut self, job: &mut EncodeContext) {
        let tail = self.tail.get_or_insert_with(|| tail(job));
        job.writer.raw(tail).end();
    }

    fn text(&mut self, job: &mut EncodeContext, delta: Delta<'_>, sort: Sort) {
        if delta.text.is_empty() {
            return;
        }
        if sort == Sort::Refusal {
            job.losses.note("refusal");
        }
        self.told.slot(delta.part).push_str(delta.text);
        let to = self.begin(job);
        to.raw("{\"text\":").string(delta.text);
        to.raw(if sort == Sort::Thought {
            ",\"thought\":true}"
        } else {
            "}"
        });
        self.end_chunk(job, delta.choice);
    }

    /// What the close of a text has beyond what was streamed. A close that says something else cannot be written.
    fn rest(
        &mut self,
        job: &mut EncodeContext,
        (part, choice): (u32, i32),
        text: &str,
        sort: Sort,
    ) {
        match text.strip_prefix(self.told.slot(part).as_str()) {
            Some(text) => {
                let metadata = None;
                let delta = Delta {
                    part,
                    text,
                    choice,
                    metadata,
                };
                self.text(job, delta, sort);
            }
            None => job.losses.note("text_corrected"),
        }
        self.told.remove(&part);
    }

    fn call(&mut self, job: &mut EncodeContext, event: &Event<'_>) {
        let Some(call) = Call::of(event) else {
            return;
        };
        let candidate = self.candidate(call.choice);
        let written = job.writes(&call);
        if written && call.is_good() {
            if call.custom {
                job.losses.note("custom_call");
            }
            let to = self.begin(job);
            to.raw("{\"functionCall\":{\"id\":").string(call.call_id);
            to.raw(",\"name\":").string(call.name).raw(",\"args\":");
            spliced(to, &call.object_text());
            to.raw("}");
            let own = if job.passed.own {
                own_signature(job, event.metadata()).filter(|text| !text.is_empty())
            } else {
                signature(job, event.metadata())
            };
            if let Some(signature) = own {
                let to = job.writer.raw(",\"thoughtSignature\":");
                to.string(&signature);
            }
            job.writer.raw("}");
            return self.end_chunk(job, call.choice);
        }
        if written {
            job.losses.note("invalid_call");
            candidate.malformed = true;
        }
        job.losses.metadata_of(event);
    }

    fn file(
        &mut self,
        job: &mut EncodeContext,
        choice: i32,
        media_type: Option<&str>,
        content: (Option<&str>, Option<&str>),
    ) {
        match content {
            (Some(data), _) => {
                let to = self.begin(job);
                to.raw("{\"inlineData\":{\"mimeType\":");
                to.string(media_type.unwrap_or("application/octet-stream"));
                to.raw(",\"data\":").string(data).raw("}}");
            }
            (None, Some(url)) => {
                let to = self.begin(job).raw("{\"fileData\":{");
                if let Some(media_type) = media_type {
                    to.raw("\"mimeType\":").string(media_type).raw(",");
                }
                to.raw("\"fileUri\":").string(url).raw("}}");
            }
            (None, None) => return job.losses.note("files"),
        }
        self.end_chunk(job, choice);
    }

    /// The finish word of every candidate, in order; or why there is none.
    fn words(&mut self) -> Result<Vec<(i32, String)>, EndingError> {
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

    fn finish(&mut self, job: &mut EncodeContext, words: &[(i32, String)]) {
        let PassedThrough {
            finished, counted, ..
        } = &job.passed;
        let words = words.iter().filter(|(index, _)| !finished.contains(index));
        let words: Vec<&(i32, String)> = words.collect();
        let counts = job.answer.usage.filter(|_| !counted);
        let counts = counts.filter(Counts::is_told);
        if words.is_empty() && counts.is_none() {
            return;
        }
        let to = job.writer.data();
        to.raw("{\"candidates\":[");
        let mut mark = "";
        for (index, word) in words {
            to.raw(mark).raw("{\"finishReason\":").string(word);
            to.raw(",\"index\":").number(i64::from(*index)).raw("}");
            mark = ",";
        }
        to.raw("]");
        if let Some(counts) = counts {
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
            let mut mark = ",\"usageMetadata\":{\"";
            for (name, count) in members {
                if let Some(count) = count {
                    to.raw(mark).raw(name).raw("\":").number(count);
                    mark = ",\"";
                }
            }
            if mark == ",\"" {
                to.raw("}");
            }
        }
        self.end_of_all(job);
    }
}

/// The end of every chunk: what the source said of the answer.
fn tail(job: &EncodeContext) -> String {
    let mut tail = Writer::default();
    if let Some(model) = &job.answer.model {
        tail.raw(",\"modelVersion\":").string(model);
    }
    if let Some(id) = &job.answer.id {
        tail.raw(",\"responseId\":").string(id);
    }
    tail.raw("}");
    tail.into_text()
}

/// What Google asks back with the part, where the source speaks this dialect itself.
fn own_signature(job: &EncodeContext, metadata: Option<&str>) -> Option<String> {
    let text = metadata.filter(|_| job.passed.own)?;
    let whole = Object::of(Raw {
        text,
        kind: Kind::Object,
    })?;
    whole.string(SIGNATURE).map(Cow::into_owned)
}

/// What Google asks back with the part, if Google made it, by the word of the AI SDK that read it; all else that hangs on
/// the part is lost.
fn signature(job: &mut EncodeContext, metadata: Option<&str>) -> Option<String> {
    let whole = Object::of(Raw {
        text: metadata?,
        kind: Kind::Object,
    })?;
    let own = whole.object(PROVIDER);
    let Some(own) = own.filter(|_| job.source.starts_with("ai-sdk-")) else {
        job.losses.metadata(metadata);
        return None;
    };
    let names = |object: &Object<'_>, known: &str| object.names().iter().any(|name| name != known);
    if names(&whole, PROVIDER) || names(&own, SIGNATURE) {
        job.losses.metadata(metadata);
    }
    own.string(SIGNATURE).map(Cow::into_owned)
}
