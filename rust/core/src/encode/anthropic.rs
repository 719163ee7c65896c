//! Writes the event stream of Anthropic's Messages: blocks one behind the other, of the first choice.
//!
//! Deltas cannot be taken back: what contradicts them ends the stream with an error. Knows no other dialect. The frames
//! are those of the Messages API's streaming reference.

use super::Encode;
use super::blocks::{Blocks, Form, Head, Kind, Seal};
use super::citations::citations;
use super::finish::{self, Trouble};
use super::job::{Call, Job};
use super::same::is_same;
use super::writer::Writer;
use crate::event::{Delta, Event};
use crate::few::Set;
use crate::json::members::Object;
use crate::json::{Kind as JsonKind, Raw};

const NAME: &str = "anthropic";

/// One message.
#[derive(Debug, Default)]
pub(crate) struct Anthropic {
    opened: bool,
    frames: Frames,
    blocks: Blocks,
    choice: Option<i32>,
    reason: Option<&'static str>,
    /// A call that its reader is to run was written.
    calls: bool,
    /// Reasonings whose opening says that Anthropic made them.
    genuine: Set<u32>,
    /// Calls of a UI message: the application may have run them, which is only known at the end.
    pending: Vec<Pending>,
    /// One of those was answered.
    answered: bool,
}

/// A whole call that is not written yet.
#[derive(Debug)]
struct Pending {
    part: u32,
    call_id: String,
    name: String,
    text: String,
}

/// The blocks as events.
#[derive(Debug, Default)]
struct Frames {
    /// How many blocks were begun.
    begun: i64,
}

impl Frames {
    fn of<'j>(&self, job: &'j mut Job, kind: &str) -> &'j mut Writer {
        let to = frame(job, kind).raw(",\"index\":");
        to.number(self.begun - 1)
    }
}

impl Form for Frames {
    fn open(&mut self, job: &mut Job, head: Head<'_>) {
        self.begun += 1;
        let to = self.of(job, "content_block_start");
        to.raw(",\"content_block\":{\"type\":");
        match head {
            Head::Text => to.raw("\"text\",\"text\":\"\""),
            Head::Thinking => to.raw("\"thinking\",\"thinking\":\"\",\"signature\":\"\""),
            Head::Redacted(data) => to.raw("\"redacted_thinking\",\"data\":").string(data),
            Head::Call(call_id, name) => {
                to.raw("\"tool_use\",\"id\":").string(call_id);
                to.raw(",\"name\":").string(name).raw(",\"input\":{}")
            }
        };
        to.raw("}}").end();
    }

    fn delta(&mut self, job: &mut Job, kind: Kind, text: &str) {
        let to = self.of(job, "content_block_delta");
        let delta = match kind {
            Kind::Text => "\"text_delta\",\"text\":",
            Kind::Thinking => "\"thinking_delta\",\"thinking\":",
            Kind::Call => "\"input_json_delta\",\"partial_json\":",
        };
        to.raw(",\"delta\":{\"type\":").raw(delta).string(text);
        to.raw("}}").end();
    }

    fn close(&mut self, job: &mut Job, seal: Option<&str>) {
        if let Some(signature) = seal {
            let to = self.of(job, "content_block_delta");
            to.raw(",\"delta\":{\"type\":\"signature_delta\",\"signature\":");
            to.string(signature).raw("}}").end();
        }
        self.of(job, "content_block_stop").raw("}").end();
    }
}

impl Encode for Anthropic {
    fn event(&mut self, job: &mut Job, event: &Event<'_>) {
        job.note(event);
        if matches!(
            event,
            Event::Usage(_) | Event::Unknown { .. } | Event::UpstreamError { .. }
        ) {
            return;
        }
        self.open(job);
        if let Some(choice) = event.choice()
            && *self.choice.get_or_insert(choice) != choice
        {
            return job.losses.note("choices");
        }
        let carried = self.part(job, event);
        if !carried {
            job.losses.metadata(event.metadata());
        }
    }

    fn end(&mut self, job: &mut Job, trouble: Option<Trouble>) {
        match trouble.map_or_else(|| self.word(), Err) {
            Ok(word) => {
                self.blocks.close(&mut self.frames, job);
                self.blocks.drain(&mut self.frames, job);
                self.blocks.close(&mut self.frames, job);
                let reason = if self.is_answered() {
                    "other"
                } else {
                    self.reason.unwrap_or_default()
                };
                job.finished(NAME, reason);
                for call in std::mem::take(&mut self.pending) {
                    let head = (call.call_id.as_str(), call.name.as_str());
                    let to = (&mut self.frames, &mut *job);
                    self.blocks.call(to, call.part, head, &call.text);
                }
                finish(job, word);
            }
            // What is open stays open: readers run a call at its stop.
            Err(trouble) => fail(job, &trouble),
        }
    }
}

impl Anthropic {
    fn open(&mut self, job: &mut Job) {
        if std::mem::replace(&mut self.opened, true) {
            return;
        }
        let own = job.answer.id.take().filter(|id| id.starts_with("msg_"));
        let id = own.unwrap_or_else(|| job.mint.make("msg"));
        let model = job.model().to_owned();
        let to = frame(job, "message_start");
        to.raw(",\"message\":{\"id\":").string(&id);
        to.raw(",\"type\":\"message\",\"role\":\"assistant\",\"model\":");
        to.string(&model).raw(concat!(
            ",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null",
            ",\"usage\":{\"input_tokens\":0,\"output_tokens\":0}}}"
        ));
        to.end();
    }

    /// What a part brings. True where nothing of its metadata is lost, or it is told again.
    fn part(&mut self, job: &mut Job, event: &Event<'_>) -> bool {
        let to = (&mut self.frames, &mut *job);
        match *event {
            Event::TextDelta(delta) => {
                self.blocks.text(to, delta.part, Kind::Text, delta.text);
            }
            Event::RefusalDelta(delta) => {
                self.blocks.text(to, delta.part, Kind::Text, delta.text);
                job.losses.note("refusal");
            }
            Event::ReasoningStarted { part, metadata, .. } => {
                if is_of_anthropic(metadata) {
                    self.genuine.insert(part);
                }
            }
            Event::ReasoningDelta(delta) => {
                self.blocks.text(to, delta.part, Kind::Thinking, delta.text);
            }
            Event::TextDone {
                part,
                text,
                annotations,
                ..
            } => {
                self.blocks
                    .done(to, part, Kind::Text, text, Seal::default());
                let told = annotations.map(citations);
                if told.is_some_and(|(cited, others)| others || !cited.is_empty()) {
                    job.losses.note("sources");
                }
                return false;
            }
            Event::RefusalDone(Delta { part, text, .. }) => {
                self.blocks
                    .done(to, part, Kind::Text, text, Seal::default());
                return false;
            }
            Event::ReasoningDone { .. } => return self.reasoning(job, event),
            Event::ToolCallStarted { .. } => self.start(job, event),
            Event::ToolCallDelta(delta) => self.arguments(job, delta),
            Event::ToolCallReset(mark) => self.blocks.reset(mark.part),
            Event::ToolCallRetracted(mark) => {
                if self.blocks.is_open(mark.part) {
                    give_up(job);
                } else {
                    self.blocks.forget(mark.part);
                }
            }
            Event::ToolCall { .. } => {
                self.call(job, event);
                return true;
            }
            Event::ToolResult { call_id, .. } => {
                let before = self.pending.len();
                self.pending.retain(|call| call.call_id != call_id);
                self.answered |= self.pending.len() < before;
                job.losses.note("server_tool");
                return true;
            }
            Event::Source { .. } => job.losses.note("sources"),
            Event::File { .. } => {
                job.losses.note("files");
                return true;
            }
            Event::Finished { reason, .. } => {
                self.reason = Some(reason);
                return false;
            }
            _ => return false,
        }
        job.source.starts_with("ai-sdk-")
    }

    fn reasoning(&mut self, job: &mut Job, event: &Event<'_>) -> bool {
        let Event::ReasoningDone {
            part,
            text,
            signature,
            encrypted_content,
            metadata,
            ..
        } = *event
        else {
            return true;
        };
        let begun = self.genuine.remove(&part);
        let genuine = job.source.starts_with("ai-sdk-") && (begun || is_of_anthropic(metadata));
        let seal = Seal {
            signature: signature.filter(|_| genuine),
            redacted: encrypted_content.filter(|_| genuine && text.is_empty()),
        };
        if signature.is_some() && !genuine {
            job.losses.note("reasoning_signature");
        }
        if encrypted_content.is_some() && seal.redacted.is_none() {
            job.losses.note("encrypted_reasoning");
        }
        let to = (&mut self.frames, &mut *job);
        self.blocks.done(to, part, Kind::Thinking, text, seal);
        genuine
    }

    fn start(&mut self, job: &mut Job, event: &Event<'_>) {
        let Event::ToolCallStarted {
            part,
            call_id,
            name,
            provider_executed,
            custom,
            ..
        } = *event
        else {
            return;
        };
        let call_id = call_id.unwrap_or_default();
        let opens = job.opens(call_id, name) && job.source != "ai-sdk-ui";
        let held = !opens || provider_executed || custom;
        self.blocks.begin(part, call_id, name, held);
    }

    fn arguments(&mut self, job: &mut Job, delta: Delta<'_>) {
        self.blocks
            .arguments((&mut self.frames, &mut *job), delta.part, delta.text);
        self.calls |= self.blocks.is_open(delta.part);
    }

    fn call(&mut self, job: &mut Job, event: &Event<'_>) {
        let Some(call) = &Call::of(event) else {
            return;
        };
        job.takes(call.call_id);
        let text = call.object_text();
        if !self.blocks.is_open(call.part) {
            self.blocks.forget(call.part);
            // What hangs on a call that is not written is not said apart.
            if !call.provider_executed && !call.is_nameless() && !call.is_cut() {
                job.losses.metadata(event.metadata());
            }
            if job.writes(call) {
                self.whole(job, call, &text);
            }
            return;
        }
        let Some((call_id, name, told)) = self.blocks.told(call.part) else {
            return;
        };
        let kept = call_id == call.call_id && name == call.name && !call.provider_executed;
        let rest = text.strip_prefix(told);
        let same = rest.is_some() || is_same(told, &text);
        if !(kept && same) {
            return give_up(job);
        }
        job.losses.metadata(event.metadata());
        if rest.is_none() {
            job.losses.note("arguments_spelling");
        }
        if call.is_cut() {
            return self.blocks.leave_call(call.part);
        }
        let to = (&mut self.frames, &mut *job);
        self.blocks
            .end_call(to, call.part, rest.unwrap_or_default());
        if !call.is_good() {
            job.losses.note("invalid_call");
        }
    }

    /// A call of which nothing went out.
    fn whole(&mut self, job: &mut Job, call: &Call<'_>, text: &str) {
        if !call.is_good() {
            job.losses.note("invalid_call");
        }
        let blank = call.state == "empty" && !call.custom;
        let text = if blank { "" } else { text };
        if job.source == "ai-sdk-ui" {
            self.pending.push(Pending {
                part: call.part,
                call_id: call.call_id.to_owned(),
                name: call.name.to_owned(),
                text: text.to_owned(),
            });
            return;
        }
        self.calls = true;
        let head = (call.call_id, call.name);
        self.blocks
            .call((&mut self.frames, job), call.part, head, text);
    }

    /// Its calls were all run in the stream itself: nothing is left to run.
    fn is_answered(&self) -> bool {
        self.reason == Some("tool_calls") && self.answered && !self.calls && self.pending.is_empty()
    }

    /// The word for the end; or why there is none.
    fn word(&self) -> Result<&'static str, Trouble> {
        let reason = self
            .reason
            .ok_or_else(|| Trouble::named("TruncatedStream"))?;
        let reason = match reason {
            _ if self.is_answered() => "other",
            "tool_calls" if !self.calls && self.pending.is_empty() => "error",
            reason => reason,
        };
        finish::word(NAME, reason).ok_or_else(|| Trouble::named("finish"))
    }
}

fn frame<'j>(job: &'j mut Job, kind: &str) -> &'j mut Writer {
    let to = job.writer.raw("event: ").raw(kind);
    to.raw("\ndata: {\"type\":\"").raw(kind).raw("\"")
}

fn finish(job: &mut Job, word: &str) {
    let counts = job.answer.usage.unwrap_or_default();
    let to = frame(job, "message_delta").raw(",\"delta\":{\"stop_reason\":");
    to.string(word).raw(",\"stop_sequence\":null},\"usage\":{");
    let cached = counts
        .cached
        .unwrap_or(0)
        .saturating_add(counts.cache_write.unwrap_or(0));
    let input = counts.input.map(|input| input.saturating_sub(cached));
    let members = [
        ("input_tokens", input.map(|input| input.max(0))),
        ("cache_creation_input_tokens", counts.cache_write),
        ("cache_read_input_tokens", counts.cached),
        ("output_tokens", Some(counts.output.unwrap_or(0))),
    ];
    let mut mark = "\"";
    for (name, count) in members {
        if let Some(count) = count {
            to.raw(mark).raw(name).raw("\":").number(count);
            mark = ",\"";
        }
    }
    to.raw("}}").end();
    if input.is_some_and(|input| input < 0) || counts.reasoning.is_some_and(|count| count > 0) {
        job.losses.note("usage_detail");
    }
    frame(job, "message_stop").raw("}").end();
}

fn fail(job: &mut Job, trouble: &Trouble) {
    let to = frame(job, "error");
    to.raw(",\"error\":{\"type\":\"api_error\",\"message\":");
    to.string(&trouble.message).raw("}}").end();
}

/// What was passed on does not hold.
fn give_up(job: &mut Job) {
    job.broken = true;
    fail(job, &Trouble::named("contradicted"));
}

/// What hangs on a reasoning is Anthropic's own.
fn is_of_anthropic(metadata: Option<&str>) -> bool {
    let whole = metadata.and_then(|text| {
        Object::of(Raw {
            text,
            kind: JsonKind::Object,
        })
    });
    whole.is_some_and(|whole| whole.object("anthropic").is_some())
}
