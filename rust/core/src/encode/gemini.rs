//! Writes chunks of Gemini's `streamGenerateContent`.
//!
//! Every candidate in its own order; calls come whole, in one part. Knows no other dialect.

use super::Encode;
use super::citations::citations;
use super::compact::spliced;
use super::finish::{self, Trouble};
use super::job::{Call, Job};
use super::writer::Writer;
use crate::event::{Delta, Event};
use crate::few::Map;
use crate::json::members::Object;
use crate::json::{Kind, Raw};

const NAME: &str = "gemini";

/// One stream of chunks.
#[derive(Debug, Default)]
pub(crate) struct Gemini {
    /// The end of every chunk: which model, and which answer. With its first comma.
    tail: Option<String>,
    /// In order of first sight.
    candidates: Vec<Candidate>,
    /// What was written of texts that are open.
    told: Map<u32, String>,
}

#[derive(Debug)]
struct Candidate {
    index: i32,
    reason: Option<&'static str>,
    /// A call of it holds no object.
    malformed: bool,
}

impl Encode for Gemini {
    fn event(&mut self, job: &mut Job, event: &Event<'_>) {
        job.note(event);
        if let Event::Usage(usage) = event
            && usage.cache_write_tokens.is_some_and(|count| count > 0)
        {
            job.losses.note("usage_detail");
        }
        if let Some(signature) = signature(job, event) {
            return self.signed(job, event, &signature);
        }
        // What becomes of a call is said before what hangs on it.
        if !matches!(event, Event::ToolCall { .. }) {
            job.losses.metadata(event.metadata());
        }
        self.plain(job, event, None);
        job.losses.metadata(event.metadata());
    }

    fn end(&mut self, job: &mut Job, trouble: Option<Trouble>) {
        match trouble.map_or_else(|| self.words(), Err) {
            Ok(words) => self.finish(job, &words),
            Err(trouble) => {
                let to = job.writer.data();
                to.raw("{\"error\":{\"code\":500,\"message\":");
                to.string(&trouble.message);
                to.raw(",\"status\":\"INTERNAL\"}}").end();
            }
        }
    }
}

impl Gemini {
    /// An event to which Google's signature of the thought belongs.
    fn signed(&mut self, job: &mut Job, event: &Event<'_>, signature: &str) {
        self.plain(job, event, Some(signature));
        if let Event::ReasoningDone { choice, .. } = event {
            let to = self.begin(job);
            to.raw("{\"text\":\"\",\"thought\":true,\"thoughtSignature\":");
            to.string(signature).raw("}");
            self.end_chunk(job, *choice);
        }
        if hangs_more(event.metadata()) {
            job.losses.note("metadata");
        }
    }

    fn plain(&mut self, job: &mut Job, event: &Event<'_>, signature: Option<&str>) {
        let Some(choice) = event.choice() else {
            return;
        };
        let place = self.candidate(choice);
        match *event {
            Event::TextDelta(delta) => self.text(job, delta, false),
            Event::ReasoningDelta(delta) => self.text(job, delta, true),
            Event::RefusalDelta(delta) => {
                job.losses.note("refusal");
                self.text(job, delta, false);
            }
            Event::TextDone {
                part,
                text,
                annotations,
                ..
            } => {
                self.rest(job, (part, choice), text, false);
                let told = annotations.map(citations);
                if told.is_some_and(|(cited, others)| others || !cited.is_empty()) {
                    job.losses.note("sources");
                }
            }
            Event::RefusalDone(Delta { part, text, .. }) => {
                job.losses.note("refusal");
                self.rest(job, (part, choice), text, false);
            }
            Event::ReasoningDone {
                part,
                text,
                kind,
                signature: sent,
                encrypted_content,
                ..
            } => {
                self.rest(job, (part, choice), text, true);
                let lost = sent.filter(|_| signature.is_none());
                job.sealed(kind, text, lost, encrypted_content);
            }
            Event::ToolCall { .. } => {
                let Some(call) = Call::of(event).filter(|call| job.writes(call)) else {
                    return;
                };
                if call.is_good() || call.custom {
                    self.call(job, &call, signature);
                } else {
                    job.losses.note("invalid_call");
                    if let Some(candidate) = self.candidates.get_mut(place) {
                        candidate.malformed = true;
                    }
                }
            }
            Event::ToolResult { .. } => job.losses.note("server_tool"),
            Event::Source { .. } => job.losses.note("sources"),
            Event::File {
                media_type,
                data,
                url,
                ..
            } => self.file(job, choice, media_type, (data, url)),
            Event::Finished { reason, .. } => {
                if let Some(candidate) = self.candidates.get_mut(place) {
                    candidate.reason = Some(reason);
                }
            }
            _ => {}
        }
    }

    /// The place of a candidate.
    fn candidate(&mut self, index: i32) -> usize {
        let mut all = self.candidates.iter();
        all.position(|candidate| candidate.index == index)
            .unwrap_or_else(|| {
                self.candidates.push(Candidate {
                    index,
                    reason: None,
                    malformed: false,
                });
                self.candidates.len() - 1
            })
    }

    /// A chunk up to its one part.
    fn begin<'j>(&self, job: &'j mut Job) -> &'j mut Writer {
        job.writer
            .data()
            .raw("{\"candidates\":[{\"content\":{\"parts\":[")
    }

    fn end_chunk(&mut self, job: &mut Job, choice: i32) {
        job.writer.raw("],\"role\":\"model\"},\"index\":");
        job.writer.number(i64::from(choice)).raw("}]");
        self.end_of_all(job);
    }

    fn end_of_all(&mut self, job: &mut Job) {
        let tail = self.tail.get_or_insert_with(|| tail(job));
        job.writer.raw(tail).end();
    }

    fn text(&mut self, job: &mut Job, delta: Delta<'_>, thought: bool) {
        if delta.text.is_empty() {
            return;
        }
        self.told.slot(delta.part).push_str(delta.text);
        let to = self.begin(job);
        to.raw("{\"text\":").string(delta.text);
        to.raw(if thought { ",\"thought\":true}" } else { "}" });
        self.end_chunk(job, delta.choice);
    }

    /// What the close of a text has beyond what was streamed. A close that says something else cannot be written.
    fn rest(&mut self, job: &mut Job, (part, choice): (u32, i32), text: &str, thought: bool) {
        match text.strip_prefix(self.told.slot(part).as_str()) {
            Some("") => {}
            Some(text) => {
                let metadata = None;
                let delta = Delta {
                    part,
                    text,
                    choice,
                    metadata,
                };
                self.text(job, delta, thought);
            }
            None => job.losses.note("text_corrected"),
        }
        self.told.remove(&part);
    }

    fn call(&mut self, job: &mut Job, call: &Call<'_>, signature: Option<&str>) {
        let to = self.begin(job);
        to.raw("{\"functionCall\":{\"id\":").string(call.call_id);
        to.raw(",\"name\":").string(call.name).raw(",\"args\":");
        spliced(to, &call.object_text());
        to.raw("}");
        if let Some(signature) = signature {
            to.raw(",\"thoughtSignature\":").string(signature);
        }
        to.raw("}");
        self.end_chunk(job, call.choice);
    }

    fn file(
        &mut self,
        job: &mut Job,
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
    fn words(&mut self) -> Result<Vec<(i32, &'static str)>, Trouble> {
        self.candidates.sort_by_key(|candidate| candidate.index);
        let words = self.candidates.iter().map(|candidate| {
            let reason = candidate.reason;
            let reason = reason.ok_or_else(|| Trouble::named("TruncatedStream"))?;
            let word = finish::word(NAME, reason).ok_or_else(|| Trouble::named("finish"))?;
            let malformed =
                candidate.malformed && matches!(reason, "stop" | "tool_calls" | "other");
            let word = if malformed {
                "MALFORMED_FUNCTION_CALL"
            } else {
                word
            };
            Ok((candidate.index, word))
        });
        let words: Vec<_> = words.collect::<Result<_, Trouble>>()?;
        if words.is_empty() {
            return Err(Trouble::named("TruncatedStream"));
        }
        Ok(words)
    }

    fn finish(&mut self, job: &mut Job, words: &[(i32, &'static str)]) {
        let to = job.writer.data();
        let mut mark = "{\"candidates\":[";
        for (index, word) in words {
            to.raw(mark).raw("{\"finishReason\":").string(word);
            to.raw(",\"index\":").number(i64::from(*index)).raw("}");
            mark = ",";
        }
        to.raw("]");
        if let Some(counts) = job.answer.usage {
            let shown = counts.output.map(|output| {
                let thoughts = counts.reasoning.unwrap_or(0);
                output.saturating_sub(thoughts).max(0)
            });
            let members = [
                ("promptTokenCount", counts.input),
                ("candidatesTokenCount", shown),
                ("totalTokenCount", counts.known_sum()),
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
fn tail(job: &Job) -> String {
    let mut tail = Writer::default();
    if let Some(model) = &job.answer.model {
        tail.raw(",\"modelVersion\":").string(model);
    }
    if let Some(id) = &job.answer.id {
        tail.raw(",\"responseId\":").string(id);
    }
    tail.raw("}");
    String::from_utf8(tail.bytes).unwrap_or_default()
}

/// There is more in it than Google's signature.
fn hangs_more(metadata: Option<&str>) -> bool {
    let object = |text| {
        Object::of(Raw {
            text,
            kind: Kind::Object,
        })
    };
    let Some(whole) = metadata.and_then(object) else {
        return false;
    };
    let google = whole.object("google").map(|google| google.names());
    whole.names() != ["google"] || google.is_some_and(|names| names != ["thoughtSignature"])
}

/// Google's own signature, which came through the AI SDK.
fn signature(job: &Job, event: &Event<'_>) -> Option<String> {
    if !job.source.starts_with("ai-sdk-") {
        return None;
    }
    let metadata = event.metadata()?;
    let google = Object::of(Raw {
        text: metadata,
        kind: Kind::Object,
    })?
    .object("google")?;
    match *event {
        Event::ReasoningDone { signature, .. } => signature.map(str::to_owned),
        Event::ToolCall { .. } => Some(google.string("thoughtSignature")?.into_owned()),
        _ => None,
    }
}
