//! Writes Messages streams: `message_start`, blocks with dense indexes one behind the other, `message_delta`,
//! `message_stop`; or an `error` event, behind which nothing comes.
//!
//! What upstream said at its end (the usage, why it ended) stands in `message_delta`, which Anthropic's own readers merge
//! into the message. Knows these events; knows no other dialect.

use crate::encode::common::block::Block;
use crate::encode::common::block::Form;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::finish::EndingError;
use crate::encode::common::part_details::Beside;
use crate::encode::common::part_details::Call;
use crate::encode::common::part_details::Done;
use crate::encode::common::part_details::Kind;
use crate::encode::common::part_details::Ran;
use crate::encode::common::part_order::Order;
use crate::encode::common::provider_metadata::is_genuine;
use crate::encode::common::sequential_answer::Answer;
use crate::encode::common::sequential_answer::Finish;
use crate::encode::common::sequential_answer::Opening;
use crate::encode::common::sequential_answer::SequentialAnswer;
use crate::encode::common::writer::Writer;
use crate::json::Kind as JsonKind;
use crate::json::Raw;
use crate::json::members::first_item;
use crate::model::small_map::Map;
use std::borrow::Cow;

/// One message.
pub(crate) type Anthropic = SequentialAnswer<Message>;

/// What of it depends on what came before.
#[derive(Debug, Default)]
pub(crate) struct Message {
    /// The next index, behind all blocks.
    next: i64,
    /// Of those that are open, by part.
    at: Map<u32, i64>,
}

/// What a block is called that another part broke in two.
const BROKEN: &str = "broken";
/// In the place of a part: a call that is written at once.
const WHOLE: u32 = u32::MAX;
const NAME: &str = "anthropic";
/// A delta up to its index, and from there up to its text.
const DELTA: &str =
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":";
const ARGUMENTS: &str = ",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"";
const SIGNATURE: &str = ",\"delta\":{\"type\":\"signature_delta\",\"signature\":\"";
const TEXT: &str = ",\"delta\":{\"type\":\"text_delta\",\"text\":\"";
const THINKING: &str = ",\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"";

impl Answer for Message {
    const TARGET: &'static str = NAME;

    fn start(&mut self, job: &mut EncodeContext, opening: Opening<'_>) {
        let kept = |id: &&str| job.passed.own || id.starts_with("msg_");
        let id = opening.id.filter(|id| !id.is_empty()).filter(kept);
        let id = id.map_or_else(|| Cow::Owned(job.mint.make("msg")), Cow::Borrowed);
        let model = opening.model.filter(|model| !model.is_empty());
        let to = frame(job, "message_start").raw(",\"message\":{\"id\":");
        to.string(&id)
            .raw(",\"type\":\"message\",\"role\":\"assistant\",\"model\":");
        to.string(model.unwrap_or("unknown")).raw(concat!(
            ",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null",
            ",\"usage\":{\"input_tokens\":0,\"output_tokens\":0}}}"
        ));
        to.end();
    }

    fn finish(&mut self, job: &mut EncodeContext, word: &str, _: &Finish) {
        leave(job);
        if job.passed.finished.is_empty() {
            let to = frame(job, "message_delta").raw(",\"delta\":{\"stop_reason\":");
            to.string(word).raw(",\"stop_sequence\":null},\"usage\":{");
            usage(job);
            job.writer.raw("}}").end();
        }
        frame(job, "message_stop").raw("}").end();
    }

    /// What is open stays open: a reader that runs a call at its `content_block_stop` must not be told of one.
    fn fail(&mut self, job: &mut EncodeContext, _: &mut Order, _: bool, trouble: &EndingError) {
        let kind = trouble.sent_kind().filter(|_| job.passed.own);
        let to = frame(job, "error").raw(",\"error\":{\"type\":");
        let to = to.string(kind.unwrap_or("api_error")).raw(",\"message\":");
        to.string(&trouble.message);
        if let Some(sent) = &trouble.sent {
            to.raw(",\"detail\":").string(sent);
        }
        to.raw("}}").end();
    }
}

impl Form for Message {
    const CORRECTS: bool = false; // content_block_stop says nothing
    const RUNS_CALLS: bool = false; // the blocks of its server tools are its own
    const SIDE_BY_SIDE: bool = false; // official clients have one open block: what is stopped is the latest to them

    fn open(&mut self, job: &mut EncodeContext, block: &mut Block, done: Option<&Done<'_>>) {
        match block.kind {
            Kind::Call => {
                let call = Ran {
                    call_id: &block.call_id,
                    name: &block.name,
                    provider_executed: block.provider_executed,
                };
                return self.start_call(job, (block.part, block.sent), call);
            }
            Kind::Refusal => job.losses.note("refusal"),
            Kind::Text | Kind::Reasoning => {}
        }
        let to = self.block(job, block.part, block.sent);
        if block.kind != Kind::Reasoning {
            to.raw("\"text\",\"text\":\"\"}}").end();
        } else if let Some(data) = done.and_then(redacted) {
            block.told = true;
            to.raw("\"redacted_thinking\",\"data\":").string(data);
            to.raw("}}").end();
        } else {
            to.raw("\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}")
                .end();
        }
    }

    fn piece(&mut self, job: &mut EncodeContext, block: &Block, text: &str) {
        let kind = match block.kind {
            Kind::Call => ARGUMENTS,
            Kind::Reasoning => THINKING,
            Kind::Text | Kind::Refusal => TEXT,
        };
        self.delta(job, block.part, kind, text);
    }

    fn close(&mut self, job: &mut EncodeContext, block: &mut Block, done: Option<&Done<'_>>) {
        match done {
            None => BROKEN.clone_into(&mut block.mark),
            Some(done) => {
                if let Some(signature) = self.signature(job, block, done) {
                    block.told = true;
                    self.delta(job, block.part, SIGNATURE, signature);
                }
            }
        }
        self.stop(job, block.part);
    }

    fn over(&mut self, job: &mut EncodeContext, block: &mut Block, done: &Done<'_>) {
        if !block.told && told(done.signature.as_deref()).is_some() {
            job.losses.note("reasoning_signature");
        }
        if !block.told && told(done.encrypted_content.as_deref()).is_some() {
            job.losses.note("encrypted_reasoning");
        }
        let metadata = done.metadata.as_deref();
        if done.kind != Kind::Reasoning || !is_own(job, metadata) {
            job.losses.repeated(metadata);
        }
        let list = done.annotations.as_deref().map(|text| Raw {
            text,
            kind: JsonKind::Array,
        });
        if list.and_then(first_item).is_some() {
            job.losses.note("sources");
        }
    }

    fn is_worth(&mut self, job: &mut EncodeContext, block: &Block, done: &Done<'_>) -> bool {
        let sealed = told(done.signature.as_deref()).or(told(done.encrypted_content.as_deref()));
        block.out.is_empty() && sealed.is_some() && is_own(job, done.metadata.as_deref())
    }

    fn close_call(
        &mut self,
        job: &mut EncodeContext,
        block: &Block,
        call: &Call<'_>,
        _: &str,
    ) -> bool {
        note(job, call);
        if call.is_cut() {
            return false; // whether it may be closed is known at the end
        }
        self.stop(job, block.part);
        true
    }

    fn whole_call(&mut self, job: &mut EncodeContext, call: &Call<'_>) {
        note(job, call);
        self.start_call(job, (WHOLE, None), call.ran());
        let text = call.object_text();
        if !text.is_empty() {
            self.delta(job, WHOLE, ARGUMENTS, &text);
        }
        self.stop(job, WHOLE);
    }

    fn beside(&mut self, job: &mut EncodeContext, what: &Beside<'_>, _: Option<Ran<'_>>) {
        job.losses.note(match what {
            Beside::Source { .. } => "sources",
            Beside::File { .. } => "files",
            Beside::Result(_) => "server_tool",
        });
    }

    /// Said by the error alone.
    fn broken_off(&mut self, _: &mut EncodeContext, _: &mut Block) {}
}

impl Message {
    /// The beginning of the next block.
    fn block<'j>(
        &mut self,
        job: &'j mut EncodeContext,
        part: u32,
        sent: Option<i64>,
    ) -> &'j mut Writer {
        let index = sent.filter(|index| *index >= self.next).unwrap_or_else(|| {
            let is_free = |index: &i64| !job.passed.announced.contains(index); // blocks may be no parts
            (self.next..).find(is_free).unwrap_or(i64::MAX)
        });
        self.at.insert(part, index);
        self.next = self.next.max(index.saturating_add(1));
        leave(job);
        self.of(job, "content_block_start", part)
            .raw(",\"content_block\":{\"type\":")
    }

    /// The beginning of an event of an open block.
    fn of<'j>(&self, job: &'j mut EncodeContext, kind: &str, part: u32) -> &'j mut Writer {
        let index = self.at.get(&part).copied().unwrap_or_default();
        frame(job, kind).raw(",\"index\":").number(index)
    }

    fn start_call(
        &mut self,
        job: &mut EncodeContext,
        (part, sent): (u32, Option<i64>),
        call: Ran<'_>,
    ) {
        let kind = if call.provider_executed {
            "\"server_tool_use\",\"id\":"
        } else {
            "\"tool_use\",\"id\":"
        };
        let to = self.block(job, part, sent).raw(kind).string(call.call_id);
        to.raw(",\"name\":")
            .string(call.name)
            .raw(",\"input\":{}}}");
        to.end();
    }

    /// Most frames are deltas: what they have in common is written in as few pieces as can be.
    fn delta(&self, job: &mut EncodeContext, part: u32, kind: &str, text: &str) {
        let index = self.at.get(&part).copied().unwrap_or_default();
        let to = job.writer.raw(DELTA).number(index).raw(kind);
        to.inner(text).raw("\"}}\n\n");
    }

    /// The end of a block, unless it passed.
    fn stop(&mut self, job: &mut EncodeContext, part: u32) {
        if !job.passed.ended.contains(&part) {
            self.of(job, "content_block_stop", part).raw("}").end();
        }
        self.at.remove(&part);
    }

    /// The signature of a block: one that was broken in two is no longer what was signed.
    fn signature<'d>(
        &self,
        job: &EncodeContext,
        block: &Block,
        done: &'d Done<'_>,
    ) -> Option<&'d str> {
        let signature = told(done.signature.as_deref())?;
        let signed = !block.told && (block.mark != BROKEN || job.carries());
        let genuine = signed && is_own(job, done.metadata.as_deref());
        genuine.then_some(signature)
    }
}

fn frame<'j>(job: &'j mut EncodeContext, kind: &str) -> &'j mut Writer {
    let to = job.writer.raw("event: ").raw(kind);
    to.raw("\ndata: {\"type\":\"").raw(kind).raw("\"")
}

/// A block that passed, and is no part, is stopped where something else comes.
fn leave(job: &mut EncodeContext) {
    if let Some(index) = job.passed.standing.take() {
        let to = frame(job, "content_block_stop").raw(",\"index\":");
        to.number(index).raw("}").end();
    }
}

/// What hangs on a reasoning is Anthropic's.
fn is_own(job: &EncodeContext, metadata: Option<&str>) -> bool {
    job.passed.own || job.carries() || is_genuine(job, NAME, metadata)
}

fn told(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

/// A reasoning without a text: what only its provider can read.
fn redacted<'d>(done: &'d Done<'_>) -> Option<&'d str> {
    told(done.encrypted_content.as_deref()).filter(|_| done.is_empty)
}

fn note(job: &mut EncodeContext, call: &Call<'_>) {
    job.losses.repeated(call.metadata.as_deref());
    if call.custom {
        job.losses.note("custom_call");
    }
    if call.reason == Some("refused") {
        job.losses.note("refused_call");
    } else if call.state == "invalid" {
        job.losses.note("invalid_call");
    }
}

fn usage(job: &mut EncodeContext) {
    let counts = job.answer.usage.unwrap_or_default();
    let cached = counts.cached.unwrap_or(0);
    let cached = cached.saturating_add(counts.cache_write.unwrap_or(0));
    let fresh = counts.input.map(|input| input.saturating_sub(cached));
    if fresh.is_some_and(|count| count < 0) || counts.reasoning.is_some_and(|count| count != 0) {
        job.losses.note("usage_detail");
    }
    let mut mark = "\"";
    for (name, count) in [
        ("input_tokens", fresh.map(|count| count.max(0))),
        ("cache_creation_input_tokens", counts.cache_write),
        ("cache_read_input_tokens", counts.cached),
        ("output_tokens", Some(counts.output.unwrap_or(0))),
    ] {
        if let Some(count) = count {
            job.writer.raw(mark).raw(name).raw("\":").number(count);
            mark = ",\"";
        }
    }
}
