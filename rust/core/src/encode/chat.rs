//! Writes Chat Completions chunks.
//!
//! Every choice in its own order, calls under dense indexes; deltas cannot be taken back, so that what contradicts them ends
//! the stream with an error. Knows no other dialect. The frames are those of `chat.completion.chunk`.

use super::Encode;
use super::chat_calls::Begun;
use super::citations::citations;
use super::finish::{self, Trouble};
use super::job::Job;
use super::usage::Counts;
use super::writer::Writer;
use crate::event::{Delta, Event};
use crate::few::{List, Map, Numbered, Set};

const NAME: &str = "chat";
pub(super) const LAST: &str = ",\"finish_reason\":null}]}";

/// One stream of chunks.
#[derive(Debug, Default)]
pub(crate) struct Chat {
    /// The beginning of every chunk, up to its choices.
    head: String,
    /// In order of first sight.
    choices: List<Choice>,
    /// What was written of parts that are open.
    pub(super) parts: Map<u32, Part>,
}

#[derive(Debug, Default)]
pub(super) struct Choice {
    index: i32,
    finish: Option<Finish>,
    /// Of its texts, as JSON.
    citations: String,
    /// Ids of the calls that were written, and that nothing in the stream answered: its reader is to run them.
    pub(super) waiting: Set<String>,
    /// The index of the next call, above all that were begun; -1 before the choice itself is.
    pub(super) next: i64,
    /// How many calls were begun, and their indexes where they are the source's own.
    pub(super) written: usize,
    pub(super) indexes: Set<i64>,
}

/// Why a choice ended.
#[derive(Debug)]
struct Finish {
    reason: &'static str,
    /// `None`: there is no word for it.
    word: Option<String>,
}

impl Numbered for Choice {
    type Number = i32;

    fn number(&self) -> i32 {
        self.index
    }
}

#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) told: String,
    pub(super) call: Option<Begun>,
}

impl Encode for Chat {
    fn event(&mut self, job: &mut Job, event: &Event<'_>) {
        job.note(event);
        job.losses.metadata_of(event);
        let Some(choice) = event.choice() else {
            return;
        };
        // A file or a source that is not written opens nothing.
        let bare = matches!(event, Event::File { .. } | Event::Source { .. });
        if !bare && !is_empty(event) {
            self.open(job, choice);
        }
        match *event {
            Event::TextDelta(delta) => self.told(job, "content", delta),
            Event::ReasoningDelta(delta) => self.told(job, "reasoning_content", delta),
            Event::RefusalDelta(delta) => self.told(job, "refusal", delta),
            Event::ToolCallDelta(delta) => self.arguments(job, delta),
            Event::TextDone {
                part,
                text,
                annotations,
                ..
            } => {
                self.rest(job, "content", (part, choice), text);
                if let Some(annotations) = annotations {
                    self.cite(job, choice, annotations);
                }
            }
            Event::ReasoningDone {
                part,
                text,
                kind,
                signature,
                encrypted_content,
                ..
            } => {
                self.rest(job, "reasoning_content", (part, choice), text);
                job.sealed(kind, text, signature, encrypted_content);
            }
            Event::RefusalDone(Delta { part, text, .. }) => {
                self.rest(job, "refusal", (part, choice), text);
            }
            Event::ToolCallStarted { .. } => self.start(job, event),
            Event::ToolCall { .. } => self.call(job, event),
            Event::ToolCallReset(mark) => {
                if let Some(begun) = self.begun(mark.part) {
                    begun.reset = true;
                }
            }
            Event::ToolCallRetracted(mark) if self.begun(mark.part).is_some() => self.give_up(job),
            Event::ToolResult { call_id, .. } => {
                self.choice(choice).waiting.remove(call_id);
                job.losses.note("server_tool");
            }
            // A citation here needs the place in the text that it stands for.
            Event::Source { .. } => job.losses.note("sources"),
            Event::File { .. } => job.losses.note("files"),
            Event::Finished {
                reason, raw_reason, ..
            } => {
                // Calls are written anew in the form of today, whatever the source called them.
                let own = job.own_word(NAME, reason, raw_reason);
                let own = own.filter(|_| !matches!(reason, "stop" | "tool_calls"));
                let word = own.or_else(|| job.finish_word(NAME, reason, raw_reason));
                let word = word.map(str::to_owned);
                self.choice(choice).finish = Some(Finish { reason, word });
            }
            _ => {}
        }
    }

    fn keep(&mut self, piece: &Delta<'_>) -> bool {
        let part = self.parts.get_mut(&piece.part);
        let is_reset = |part: &&mut Part| part.call.as_ref().is_some_and(|begun| begun.reset);
        let part = part.filter(|part| !is_reset(part));
        part.map(|part| part.told.push_str(piece.text)).is_some()
    }

    fn end(&mut self, job: &mut Job, trouble: Option<Trouble>) {
        match trouble.map_or_else(|| self.words(), Err) {
            Ok(words) => self.finish(job, &words),
            Err(trouble) => fail(job, &trouble),
        }
    }
}

impl Chat {
    pub(super) fn choice(&mut self, index: i32) -> &mut Choice {
        self.choices.slot(index, || Choice {
            index,
            next: -1,
            ..Choice::default()
        })
    }

    /// The first chunk of a choice says who speaks.
    #[inline]
    fn open(&mut self, job: &mut Job, index: i32) {
        let known = self.choices.find(index);
        if known.is_some_and(|choice| choice.next >= 0) {
            return;
        }
        self.choice(index).next = 0;
        if job.passed.choices.contains(&index) {
            return;
        }
        let to = self.begin_chunk(job, index);
        to.raw("{\"role\":\"assistant\",\"content\":\"\"}");
        to.raw(LAST).end();
    }

    /// A chunk up to its delta.
    #[inline]
    pub(super) fn begin_chunk<'j>(&mut self, job: &'j mut Job, index: i32) -> &'j mut Writer {
        if self.head.is_empty() {
            self.head = head(job);
        }
        let to = job.writer.data().raw(&self.head);
        to.raw("[{\"index\":")
            .number(i64::from(index))
            .raw(",\"delta\":")
    }

    /// A piece of a text.
    fn told(&mut self, job: &mut Job, member: &str, delta: Delta<'_>) {
        if delta.text.is_empty() {
            return;
        }
        self.parts.slot(delta.part).told.push_str(delta.text);
        let to = self.begin_chunk(job, delta.choice);
        to.raw("{\"").raw(member).raw("\":").string(delta.text);
        to.raw("}").raw(LAST).end();
    }

    /// What the close of a text has beyond what was streamed. A close that says something else cannot be written.
    fn rest(&mut self, job: &mut Job, member: &str, (part, choice): (u32, i32), text: &str) {
        let told = &self.parts.slot(part).told;
        match text.strip_prefix(told.as_str()) {
            Some("") => {}
            Some(rest) => self.told(
                job,
                member,
                Delta {
                    part,
                    text: rest,
                    choice,
                    metadata: None,
                },
            ),
            None => job.losses.note("text_corrected"),
        }
        self.parts.remove(&part);
    }

    /// Keeps what every client has a type for: @ai-sdk/openai refuses a citation without its place in the text.
    fn cite(&mut self, job: &mut Job, choice: i32, annotations: &str) {
        let (cited, others) = citations(annotations);
        let mut lost = others;
        for citation in &cited {
            let (Some(start), Some(end)) = (citation.start, citation.end) else {
                lost = true;
                continue;
            };
            let mut said = Writer::default();
            said.raw("{\"type\":\"url_citation\",\"url_citation\":{\"url\":");
            said.string(&citation.url).raw(",\"title\":");
            said.string(citation.title.as_deref().unwrap_or_default());
            said.raw(",\"start_index\":").number(start);
            said.raw(",\"end_index\":").number(end).raw("}}");
            let kept = &mut self.choice(choice).citations;
            if !kept.is_empty() {
                kept.push(',');
            }
            kept.push_str(&said.into_text());
        }
        if lost {
            job.losses.note("sources");
        }
    }

    /// What was passed on does not hold.
    pub(super) fn give_up(&mut self, job: &mut Job) {
        job.broken = true;
        fail(job, &Trouble::named("contradicted"));
    }

    /// The finish word of every choice, in order; or why there is none.
    fn words(&mut self) -> Result<Vec<(i32, String)>, Trouble> {
        self.choices.sort_by_key(|choice| choice.index);
        let mut words = Vec::with_capacity(self.choices.len());
        let mut lacks_word = false;
        for choice in self.choices.iter_mut() {
            let finish = choice.finish.take();
            let finish = finish.ok_or_else(|| Trouble::named("TruncatedStream"))?;
            let corrected = match finish.reason {
                "tool_calls" if choice.written == 0 => Some("stop"),
                "stop" if !choice.waiting.is_empty() => Some("tool_calls"),
                "stop" => Some("stop"),
                _ => None,
            };
            let corrected = corrected.and_then(|reason| finish::word(NAME, reason));
            let word = corrected.map(str::to_owned);
            match word.or(finish.word) {
                Some(word) => words.push((choice.index, word)),
                None => lacks_word = true,
            }
        }
        if lacks_word {
            return Err(Trouble::named("finish"));
        }
        if words.is_empty() {
            return Err(Trouble::named("TruncatedStream"));
        }
        Ok(words)
    }

    fn finish(&mut self, job: &mut Job, words: &[(i32, String)]) {
        for (index, word) in words {
            if job.passed.finished.contains(index) {
                continue;
            }
            self.open(job, *index);
            // In one chunk: openai-python raises at a second list of them, openai-node keeps the last one.
            let cited = std::mem::take(&mut self.choice(*index).citations);
            if !cited.is_empty() && !job.passed.choices.contains(index) {
                let to = self.begin_chunk(job, *index).raw("{\"annotations\":[");
                to.raw(&cited).raw("]}").raw(LAST).end();
            }
            let to = self.begin_chunk(job, *index);
            to.raw("{},\"finish_reason\":")
                .string(word)
                .raw("}]}")
                .end();
        }
        let counts = job.answer.usage.filter(Counts::is_told);
        let counts = counts.filter(|_| job.options.include_usage && !job.passed.counted);
        if self.head.is_empty() && counts.is_some() {
            self.head = head(job);
        }
        if let Some(counts) = counts {
            let to = job.writer.data().raw(&self.head);
            to.raw("[],\"usage\":{\"prompt_tokens\":");
            to.number(counts.input.unwrap_or(0));
            to.raw(",\"completion_tokens\":");
            to.number(counts.output.unwrap_or(0));
            to.raw(",\"total_tokens\":").number(counts.sum());
            let prompt = [
                ("cached_tokens", counts.cached),
                ("cache_write_tokens", counts.cache_write),
            ];
            details(to, "prompt_tokens_details", &prompt);
            let completion = [("reasoning_tokens", counts.reasoning)];
            details(to, "completion_tokens_details", &completion);
            to.raw("}}").end();
        }
        job.writer.done();
    }
}

/// A piece without any text.
#[inline]
fn is_empty(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::TextDelta(delta)
            | Event::ReasoningDelta(delta)
            | Event::RefusalDelta(delta)
            | Event::ToolCallDelta(delta) if delta.text.is_empty()
    )
}

/// The beginning of every chunk: what is known of the answer.
fn head(job: &mut Job) -> String {
    let id = job.answer.id.take();
    let id = id.unwrap_or_else(|| job.mint.make("chatcmpl"));
    let mut head = Writer::default();
    head.raw("{\"id\":").string(&id);
    head.raw(",\"object\":\"chat.completion.chunk\",\"created\":");
    head.number(job.answer.created.unwrap_or(0));
    head.raw(",\"model\":")
        .string(job.model())
        .raw(",\"choices\":");
    head.into_text()
}

fn details(to: &mut Writer, name: &str, counts: &[(&str, Option<i64>)]) {
    let mut mark = "{";
    for (member, count) in counts {
        let Some(count) = count else { continue };
        if mark == "{" {
            to.raw(",\"").raw(name).raw("\":");
        }
        to.raw(mark).raw("\"").raw(member).raw("\":").number(*count);
        mark = ",";
    }
    if mark == "," {
        to.raw("}");
    }
}

fn fail(job: &mut Job, trouble: &Trouble) {
    let to = job.writer.data();
    to.raw("{\"error\":{\"message\":").string(&trouble.message);
    to.raw(",\"type\":").string(&trouble.kind);
    to.raw(",\"code\":").string(&trouble.code).raw("}}");
    to.end();
}
