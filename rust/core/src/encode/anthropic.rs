//! Writes Messages streams: `message_start`, sequential blocks with consecutive indexes, `message_delta`,
//! `message_stop`; or an `error` event, after which nothing follows.
//!
//! The usage and stop reason that the upstream sent at the end of its stream are written to `message_delta`;
//! Anthropic's own clients merge that event into the message.

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

/// Writes one message.
pub(crate) type Anthropic = SequentialAnswer<Message>;

/// State of the message being written.
#[derive(Debug, Default)]
pub(crate) struct Message {
    /// Index of the next block.
    next: i64,
    /// Indexes of the open blocks, by part.
    at: Map<u32, i64>,
}

/// Marks a block that was interrupted by another part and continued in a second block.
const BROKEN: &str = "broken";
/// Part number of a call that is written in one step.
const WHOLE: u32 = u32::MAX;
const NAME: &str = "anthropic";
/// Constant text of a delta event: the text before the index and, for each kind of delta, the text between the index
/// and the content.
const DELTA: &str =
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":";
const ARGUMENTS: &str = ",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"";
const SIGNATURE: &str = ",\"delta\":{\"type\":\"signature_delta\",\"signature\":\"";
const TEXT: &str = ",\"delta\":{\"type\":\"text_delta\",\"text\":\"";
const THINKING: &str = ",\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"";

impl Answer for Message {
    const TARGET: &'static str = NAME;

    fn start(&mut self, context: &mut EncodeContext, opening: Opening<'_>) {
        let kept = |id: &&str| context.passed.own || id.starts_with("msg_");
        let id = opening.id.filter(|id| !id.is_empty()).filter(kept);
        let id = id.map_or_else(|| Cow::Owned(context.mint.make("msg")), Cow::Borrowed);
        let model = opening.model.filter(|model| !model.is_empty());
        let to = frame(context, "message_start").raw(",\"message\":{\"id\":");
        to.string(&id)
            .raw(",\"type\":\"message\",\"role\":\"assistant\",\"model\":");
        to.string(model.unwrap_or("unknown")).raw(concat!(
            ",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null",
            ",\"usage\":{\"input_tokens\":0,\"output_tokens\":0}}}"
        ));
        to.end();
    }

    fn finish(&mut self, context: &mut EncodeContext, word: &str, _: &Finish) {
        leave(context);
        if context.passed.finished.is_empty() {
            let to = frame(context, "message_delta").raw(",\"delta\":{\"stop_reason\":");
            to.string(word).raw(",\"stop_sequence\":null},\"usage\":{");
            usage(context);
            context.writer.raw("}}").end();
        }
        frame(context, "message_stop").raw("}").end();
    }

    /// Open blocks stay open, because a client that runs a call at `content_block_stop` must not receive that event
    /// here.
    fn fail(
        &mut self,
        context: &mut EncodeContext,
        _: &mut Order,
        _: bool,
        ending_error: &EndingError,
    ) {
        let kind = ending_error.sent_kind().filter(|_| context.passed.own);
        let to = frame(context, "error").raw(",\"error\":{\"type\":");
        let to = to.string(kind.unwrap_or("api_error")).raw(",\"message\":");
        to.string(&ending_error.message);
        if let Some(sent) = &ending_error.sent {
            to.raw(",\"detail\":").string(sent);
        }
        to.raw("}}").end();
    }
}

impl Form for Message {
    const CORRECTS: bool = false; // `content_block_stop` has no content
    const RUNS_CALLS: bool = false; // Anthropic's server tools have their own block types
    const SIDE_BY_SIDE: bool = false; // official clients track one open block, and a stop ends the latest block

    fn open(&mut self, context: &mut EncodeContext, block: &mut Block, done: Option<&Done<'_>>) {
        match block.kind {
            Kind::Call => {
                let call = Ran {
                    call_id: &block.call_id,
                    name: &block.name,
                    provider_executed: block.provider_executed,
                };
                return self.start_call(context, (block.part, block.sent), call);
            }
            Kind::Refusal => context.losses.note("refusal"),
            Kind::Text | Kind::Reasoning => {}
        }
        let to = self.block(context, block.part, block.sent);
        if block.kind != Kind::Reasoning {
            to.raw("\"text\",\"text\":\"\"}}").end();
        } else if let Some(data) = done.and_then(redacted) {
            block.metadata_written = true;
            to.raw("\"redacted_thinking\",\"data\":").string(data);
            to.raw("}}").end();
        } else {
            to.raw("\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}")
                .end();
        }
    }

    fn piece(&mut self, context: &mut EncodeContext, block: &Block, text: &str) {
        let kind = match block.kind {
            Kind::Call => ARGUMENTS,
            Kind::Reasoning => THINKING,
            Kind::Text | Kind::Refusal => TEXT,
        };
        self.delta(context, block.part, kind, text);
    }

    fn close(&mut self, context: &mut EncodeContext, block: &mut Block, done: Option<&Done<'_>>) {
        match done {
            None => BROKEN.clone_into(&mut block.mark),
            Some(done) => {
                if let Some(signature) = self.signature(context, block, done) {
                    block.metadata_written = true;
                    self.delta(context, block.part, SIGNATURE, signature);
                }
            }
        }
        self.stop(context, block.part);
    }

    fn over(&mut self, context: &mut EncodeContext, block: &mut Block, done: &Done<'_>) {
        if !block.metadata_written && nonempty(done.signature.as_deref()).is_some() {
            context.losses.note("reasoning_signature");
        }
        if !block.metadata_written && nonempty(done.encrypted_content.as_deref()).is_some() {
            context.losses.note("encrypted_reasoning");
        }
        let metadata = done.metadata.as_deref();
        if done.kind != Kind::Reasoning || !is_own(context, metadata) {
            context.losses.repeated(metadata);
        }
        let list = done.annotations.as_deref().map(|text| Raw {
            text,
            kind: JsonKind::Array,
        });
        if list.and_then(first_item).is_some() {
            context.losses.note("sources");
        }
    }

    fn is_worth(&mut self, context: &mut EncodeContext, block: &Block, done: &Done<'_>) -> bool {
        let sealed =
            nonempty(done.signature.as_deref()).or(nonempty(done.encrypted_content.as_deref()));
        block.out.is_empty() && sealed.is_some() && is_own(context, done.metadata.as_deref())
    }

    fn close_call(
        &mut self,
        context: &mut EncodeContext,
        block: &Block,
        call: &Call<'_>,
        _: &str,
    ) -> bool {
        note(context, call);
        if call.is_cut() {
            return false; // the end of the response decides whether the block may be closed
        }
        self.stop(context, block.part);
        true
    }

    fn whole_call(&mut self, context: &mut EncodeContext, call: &Call<'_>) {
        note(context, call);
        self.start_call(context, (WHOLE, None), call.ran());
        let text = call.object_text();
        if !text.is_empty() {
            self.delta(context, WHOLE, ARGUMENTS, &text);
        }
        self.stop(context, WHOLE);
    }

    fn beside(&mut self, context: &mut EncodeContext, what: &Beside<'_>, _: Option<Ran<'_>>) {
        context.losses.note(match what {
            Beside::Source { .. } => "sources",
            Beside::File { .. } => "files",
            Beside::Result(_) => "server_tool",
        });
    }

    /// Writes nothing, because the error event alone shows that the response ended inside the block.
    fn broken_off(&mut self, _: &mut EncodeContext, _: &mut Block) {}
}

impl Message {
    /// Writes the beginning of the next block.
    fn block<'j>(
        &mut self,
        context: &'j mut EncodeContext,
        part: u32,
        sent: Option<i64>,
    ) -> &'j mut Writer {
        let index = sent.filter(|index| *index >= self.next).unwrap_or_else(|| {
            // Blocks without a part may already use announced indexes.
            let is_free = |index: &i64| !context.passed.announced.contains(index);
            (self.next..).find(is_free).unwrap_or(i64::MAX)
        });
        self.at.insert(part, index);
        self.next = self.next.max(index.saturating_add(1));
        leave(context);
        self.of(context, "content_block_start", part)
            .raw(",\"content_block\":{\"type\":")
    }

    /// Writes the beginning of an event of an open block.
    fn of<'j>(&self, context: &'j mut EncodeContext, kind: &str, part: u32) -> &'j mut Writer {
        let index = self.at.get(&part).copied().unwrap_or_default();
        frame(context, kind).raw(",\"index\":").number(index)
    }

    fn start_call(
        &mut self,
        context: &mut EncodeContext,
        (part, sent): (u32, Option<i64>),
        call: Ran<'_>,
    ) {
        let kind = if call.provider_executed {
            "\"server_tool_use\",\"id\":"
        } else {
            "\"tool_use\",\"id\":"
        };
        let to = self
            .block(context, part, sent)
            .raw(kind)
            .string(call.call_id);
        to.raw(",\"name\":")
            .string(call.name)
            .raw(",\"input\":{}}}");
        to.end();
    }

    /// Writes a delta. Most frames are deltas, so the constant text is written in as few pieces as possible.
    fn delta(&self, context: &mut EncodeContext, part: u32, kind: &str, text: &str) {
        let index = self.at.get(&part).copied().unwrap_or_default();
        let to = context.writer.raw(DELTA).number(index).raw(kind);
        to.inner(text).raw("\"}}\n\n");
    }

    /// Writes the end of a block, unless the source's own end passed through.
    fn stop(&mut self, context: &mut EncodeContext, part: u32) {
        if !context.passed.ended.contains(&part) {
            self.of(context, "content_block_stop", part).raw("}").end();
        }
        self.at.remove(&part);
    }

    /// Returns the signature of a block. If the block was interrupted, the signature does not match the text.
    fn signature<'d>(
        &self,
        context: &EncodeContext,
        block: &Block,
        done: &'d Done<'_>,
    ) -> Option<&'d str> {
        let signature = nonempty(done.signature.as_deref())?;
        let signed = !block.metadata_written && (block.mark != BROKEN || context.carries());
        let genuine = signed && is_own(context, done.metadata.as_deref());
        genuine.then_some(signature)
    }
}

fn frame<'j>(context: &'j mut EncodeContext, kind: &str) -> &'j mut Writer {
    let to = context.writer.raw("event: ").raw(kind);
    to.raw("\ndata: {\"type\":\"").raw(kind).raw("\"")
}

/// Stops a passed-through block that has no part, because another block follows.
fn leave(context: &mut EncodeContext) {
    if let Some(index) = context.passed.open_block.take() {
        let to = frame(context, "content_block_stop").raw(",\"index\":");
        to.number(index).raw("}").end();
    }
}

/// Returns true if the metadata of a reasoning part came from Anthropic.
fn is_own(context: &EncodeContext, metadata: Option<&str>) -> bool {
    context.passed.own || context.carries() || is_genuine(context, NAME, metadata)
}

fn nonempty(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

/// Returns the encrypted content of a reasoning part without text, which only its provider can read.
fn redacted<'d>(done: &'d Done<'_>) -> Option<&'d str> {
    nonempty(done.encrypted_content.as_deref()).filter(|_| done.is_empty)
}

fn note(context: &mut EncodeContext, call: &Call<'_>) {
    context.losses.repeated(call.metadata.as_deref());
    if call.custom {
        context.losses.note("custom_call");
    }
    if call.reason == Some("refused") {
        context.losses.note("refused_call");
    } else if call.state == "invalid" {
        context.losses.note("invalid_call");
    }
}

fn usage(context: &mut EncodeContext) {
    let counts = context.answer.usage.unwrap_or_default();
    let cached = counts.cached.unwrap_or(0);
    let cached = cached.saturating_add(counts.cache_write.unwrap_or(0));
    let fresh = counts.input.map(|input| input.saturating_sub(cached));
    if fresh.is_some_and(|count| count < 0) || counts.reasoning.is_some_and(|count| count != 0) {
        context.losses.note("usage_detail");
    }
    let mut mark = "\"";
    for (name, count) in [
        ("input_tokens", fresh.map(|count| count.max(0))),
        ("cache_creation_input_tokens", counts.cache_write),
        ("cache_read_input_tokens", counts.cached),
        ("output_tokens", Some(counts.output.unwrap_or(0))),
    ] {
        if let Some(count) = count {
            context.writer.raw(mark).raw(name).raw("\":").number(count);
            mark = ",\"";
        }
    }
}
