//! Writes Messages streams: `message_start`, blocks with consecutive indexes, `message_delta`, and `message_stop`. An
//! incomplete response ends with an `error` event, after which nothing follows.
//!
//! If the source is also a Messages stream, content that streamweld's events cannot represent is copied as sent.
//! Examples of this content are server tool results, citations, unknown blocks, and unknown members of the message.
//!
//! The usage and the stop reason are written in `message_delta`, because they are not known before the end of the
//! stream. Anthropic's own clients merge `message_delta` into the message.

use crate::encode::common::block::Block;
use crate::encode::common::block::BlockOutput;
use crate::encode::common::block::BlockWriter;
use crate::encode::common::block::UnmodelledBlock;
use crate::encode::common::citations::citations;
use crate::encode::common::compact_json::canonical;
use crate::encode::common::compact_json::spliced;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::extra_members::ExtraMembers;
use crate::encode::common::extra_members::join;
use crate::encode::common::extra_members::parsed;
use crate::encode::common::extra_members::size;
use crate::encode::common::finish::EndingError;
use crate::encode::common::part_details::Call;
use crate::encode::common::part_details::CallRef;
use crate::encode::common::part_details::CitedPage;
use crate::encode::common::part_details::Done;
use crate::encode::common::part_details::Kind;
use crate::encode::common::part_details::StandalonePart;
use crate::encode::common::part_order::PartOrder;
use crate::encode::common::provider_metadata::is_genuine;
use crate::encode::common::sequential_answer::Answer;
use crate::encode::common::sequential_answer::Finish;
use crate::encode::common::sequential_answer::Opening;
use crate::encode::common::sequential_answer::SequentialAnswer;
use crate::encode::common::source_blocks::SourceBlocks;
use crate::encode::common::writer::Writer;
use crate::json::Kind as JsonKind;
use crate::json::Raw;
use crate::json::members::first_item;
use crate::json::members::items;
use crate::model::small_map::Map;
use crate::model::unmodelled::MembersOf;
use crate::model::unmodelled::Unmodelled;
use std::borrow::Cow;
use std::collections::HashSet;
use std::mem;

/// The encoder for Messages streams. Each stream contains one message.
pub(crate) type Anthropic = SequentialAnswer<Message>;

/// The state of the message that is being written.
#[derive(Debug, Default)]
pub(crate) struct Message {
    /// Index of the next block.
    next: i64,
    /// Indexes of the open blocks, by part number.
    at: Map<u32, i64>,
    /// Indexes of the latest block in the source and in the output. `None` after the block's `content_block_stop`.
    latest: Option<(Option<i64>, i64)>,
    /// Index of the latest block, if that block has no part and is open.
    bare: Option<i64>,
    /// Number of characters in queued deltas.
    waiting: usize,
    /// Unknown members that have not been written yet.
    members: UnwrittenMembers,
}

/// Unknown members of the message's events that have not been written yet.
#[derive(Debug, Default)]
struct UnwrittenMembers {
    message: ExtraMembers,
    start_usage: ExtraMembers,
    end: ExtraMembers,
    delta: ExtraMembers,
    end_usage: ExtraMembers,
    stop: ExtraMembers,
}

/// Usage members that the encoder writes from the normalized token counts.
const COUNTS: [&str; 4] = [
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
];
/// Members that clients read only from the delta of `message_delta`.
const DELTA_MEMBERS: [&str; 2] = ["stop_sequence", "stop_details"];
/// Other members of a message that clients accept in the delta of `message_delta`.
const LATE_MEMBERS: [&str; 1] = ["container"];
/// Maximum size of the members that are merged from several events, in bytes.
const MAX_MERGED_SIZE: usize = 4096;
/// Maximum number of characters in the deltas of queued blocks.
const MOST_WAITING: usize = 1 << 20;

/// Value of `Block::mark` for a part that another part interrupted. The part may continue in a second block.
const BROKEN: &str = "broken";
/// Placeholder part number for a call that is written in one step.
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
    const WRITES_UNMODELLED: bool = true;

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
            ",\"usage\":{\"input_tokens\":0,\"output_tokens\":0"
        ));
        join(to, &mem::take(&mut self.members.start_usage), &COUNTS);
        to.raw("}");
        join(to, &mem::take(&mut self.members.message), &[]);
        to.raw("}}").end();
    }

    fn finish(&mut self, context: &mut EncodeContext, word: &str, _: &Finish) {
        self.leave(context);
        let extra = mem::take(&mut self.members);
        if context.passed.finished.is_empty() {
            let to = frame(context, "message_delta").raw(",\"delta\":{\"stop_reason\":");
            to.string(word).raw(",\"stop_sequence\":");
            match extra.delta.iter().find(|(name, _)| name == "stop_sequence") {
                Some((_, sequence)) => spliced(to, sequence),
                None => _ = to.raw("null"),
            }
            join(to, &extra.delta, &["stop_sequence"]);
            to.raw("},\"usage\":{");
            let mut details = extra.end_usage.iter().map(|(name, _)| name.as_str());
            usage(context, details.any(|name| name == "output_tokens_details"));
            join(&mut context.writer, &extra.end_usage, &COUNTS);
            context.writer.raw("}");
            join(&mut context.writer, &extra.end, &[]);
            context.writer.raw("}").end();
        }
        let to = frame(context, "message_stop");
        join(to, &extra.stop, &[]);
        to.raw("}").end();
    }

    fn write_unmodelled(
        &mut self,
        context: &mut EncodeContext,
        blocks: &mut PartOrder,
        opened: bool,
        content: &Unmodelled<'_>,
    ) {
        match *content {
            Unmodelled::Members { of, members } => {
                return self.keep_members(context, of, parsed(members), opened);
            }
            Unmodelled::BlockMembers { index, members } => {
                context.passed.members = Some((index, members.to_owned()));
            }
            Unmodelled::OtherEvent { event, payload } => {
                if let Some(event) = event.filter(|event| *event != "message") {
                    context.writer.raw("event: ").raw(event).raw("\n");
                }
                spliced(context.writer.data(), payload);
                context.writer.end();
            }
            _ => {}
        }
        let Some(blocks) = blocks.of_source() else {
            return;
        };
        match *content {
            Unmodelled::BlockOpened { index, block } => {
                let unmodelled = UnmodelledBlock {
                    start: block.to_owned(),
                    ..UnmodelledBlock::default()
                };
                let block = Block {
                    at: Some(index),
                    sent: context.passed.index,
                    unmodelled: Some(Box::new(unmodelled)),
                    ..Block::default()
                };
                let form = self;
                blocks.unmodelled(&mut BlockOutput { form, context }, block);
            }
            Unmodelled::BlockDelta { index, delta } => {
                self.unmodelled_delta(context, blocks, index, delta);
            }
            Unmodelled::BlockClosed { index } => match blocks.waiting(Some(index)) {
                Some(waiting) => waiting.is_closed = true,
                None if self.is_latest(Some(index)) => self.leave(context),
                None => {}
            },
            Unmodelled::Annotated { part, annotations } => {
                let (Some(block), is_open) = blocks.block(part) else {
                    return;
                };
                block.cites_late |= !is_open;
                if !block.cites_late {
                    self.cite(context, block, annotations);
                }
            }
            Unmodelled::Members { .. }
            | Unmodelled::Chunk(_)
            | Unmodelled::Reasoning(_)
            | Unmodelled::ChoiceMembers(_)
            | Unmodelled::ChoiceWithoutEvent { .. }
            | Unmodelled::BlockMembers { .. }
            | Unmodelled::OtherEvent { .. }
            | Unmodelled::Item(_)
            | Unmodelled::ItemEvent { .. }
            | Unmodelled::ContentPart(_)
            | Unmodelled::ItemEnd
            | Unmodelled::Part { .. }
            | Unmodelled::ChunkMembers { .. } => {}
        }
    }

    /// Writes the error, which ends the stream. Open blocks stay open, because some clients run a call when they
    /// receive its `content_block_stop`.
    fn fail(
        &mut self,
        context: &mut EncodeContext,
        _: &mut PartOrder,
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

impl BlockWriter for Message {
    const CORRECTS: bool = false; // `content_block_stop` has no content
    const RUNS_CALLS: bool = false; // Anthropic's server tools have their own block types
    const SIDE_BY_SIDE: bool = false; // official clients track one open block, and a stop event ends the latest one
    const CITES_IN_TEXT: bool = true;

    fn open(&mut self, context: &mut EncodeContext, block: &mut Block, done: Option<&Done<'_>>) {
        match block.kind {
            Kind::Call => {
                let call = CallRef {
                    call_id: &block.call_id,
                    name: &block.name,
                    provider_executed: block.provider_executed,
                };
                return self.start_call(context, block, call);
            }
            Kind::Refusal => context.losses.note("refusal"),
            Kind::Text | Kind::Reasoning => {}
        }
        let to = self.start_block(context, block).raw("{\"type\":");
        if block.kind != Kind::Reasoning {
            to.raw("\"text\",\"text\":\"\"");
        } else if let Some(data) = done.and_then(redacted) {
            block.metadata_written = true;
            to.raw("\"redacted_thinking\",\"data\":").string(data);
        } else {
            to.raw("\"thinking\",\"thinking\":\"\",\"signature\":\"\"");
        }
        join(to, &extra_of(block), &[]);
        to.raw("}}").end();
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
                if let Some(list) = own_annotations(context, done) {
                    for citation in items(list).into_iter().skip(block.cited) {
                        self.write_citation(context, block.part, citation.text);
                    }
                } else if let Some(list) = other_annotations(context, done) {
                    for page in citations(list.text, None).0 {
                        block.cited += 1;
                        let content = page.content.as_deref().unwrap_or_default();
                        let title = page.title.as_deref();
                        self.write_page(context, block.part, (&page.url, title, content));
                    }
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
        if done.kind != Kind::Reasoning || !is_own(context, done) {
            context.losses.repeated(metadata);
        }
        // Other annotations than pages are lost, and so are pages if the text has no open block, because the API rejects
        // a block without text.
        let list = other_annotations(context, done);
        if list.is_some_and(|list| items(list).len() > block.cited) {
            context.losses.note("sources");
        }
    }

    fn needs_empty_block(
        &mut self,
        context: &mut EncodeContext,
        block: &Block,
        done: &Done<'_>,
    ) -> bool {
        if own_annotations(context, done).is_some() {
            return true;
        }
        let sealed =
            nonempty(done.signature.as_deref()).or(nonempty(done.encrypted_content.as_deref()));
        block.out.is_empty() && sealed.is_some() && is_own(context, done)
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
            return false; // only the end of the response shows whether the block may be closed
        }
        self.stop(context, block.part);
        true
    }

    fn whole_call(&mut self, context: &mut EncodeContext, call: &Call<'_>) {
        note(context, call);
        let metadata = call.metadata.as_deref().filter(|_| context.passed.own);
        let block = Block {
            part: WHOLE,
            members: metadata.map(canonical_object),
            ..Block::default()
        };
        self.start_call(context, &block, call.ran());
        let text = call.object_text();
        if !text.is_empty() {
            self.delta(context, WHOLE, ARGUMENTS, &text);
        }
        self.stop(context, WHOLE);
    }

    fn write_standalone(
        &mut self,
        context: &mut EncodeContext,
        what: &StandalonePart<'_>,
        _: Option<CallRef<'_>>,
    ) {
        context.losses.note(match what {
            StandalonePart::Source { .. } => "sources",
            StandalonePart::File { .. } => "files",
            StandalonePart::Result(_) if context.passed.own => return, // the result's block is written as sent
            StandalonePart::Result(_) => "server_tool",
        });
    }

    fn cite_page(&mut self, context: &mut EncodeContext, block: &Block, page: &CitedPage<'_>) {
        context.losses.metadata(page.metadata);
        self.write_page(context, block.part, (page.url, page.title, ""));
    }

    fn unmodelled_block(&mut self, context: &mut EncodeContext, block: &Block) {
        let Some(content) = block.unmodelled.as_deref() else {
            return;
        };
        let to = self.start_block(context, block);
        spliced(to, &content.start);
        to.raw("}").end();
        self.bare = self.at.get(&block.part).copied();
        self.at.remove(&block.part);
        for delta in &content.deltas {
            self.write_delta(context, self.bare.unwrap_or_default(), delta);
        }
        if content.is_closed {
            self.leave(context);
        }
    }

    /// Writes nothing, because the error event alone shows that the response ended inside the block.
    fn broken_off(&mut self, _: &mut EncodeContext, _: &mut Block) {}
}

impl Message {
    /// Writes the beginning of a block's start event, up to the block's content, and assigns the block's index.
    fn start_block<'j>(&mut self, context: &'j mut EncodeContext, block: &Block) -> &'j mut Writer {
        let sent = block.sent.filter(|index| *index >= self.next);
        let index = sent.unwrap_or(self.next);
        self.at.insert(block.part, index);
        self.next = index.saturating_add(1);
        self.leave(context);
        self.latest = Some((block.at, index));
        self.of(context, "content_block_start", block.part)
            .raw(",\"content_block\":")
    }

    /// Stops the open block that has no part, if there is one, because another block follows or the message ends.
    fn leave(&mut self, context: &mut EncodeContext) {
        if let Some(index) = self.bare.take() {
            self.latest = None;
            let to = frame(context, "content_block_stop").raw(",\"index\":");
            to.number(index).raw("}").end();
        }
    }

    /// Writes the beginning of an event for an open block, up to the block's index.
    fn of<'j>(&self, context: &'j mut EncodeContext, kind: &str, part: u32) -> &'j mut Writer {
        let index = self.at.get(&part).copied().unwrap_or_default();
        frame(context, kind).raw(",\"index\":").number(index)
    }

    fn start_call(&mut self, context: &mut EncodeContext, block: &Block, call: CallRef<'_>) {
        let extra = extra_of(block);
        let is_mcp = |(name, kind): &(String, String)| name == "type" && kind == "\"mcp_tool_use\"";
        let kind = match call.provider_executed {
            true if extra.iter().any(is_mcp) => "mcp_tool_use",
            true => "server_tool_use",
            false => "tool_use",
        };
        let to = self.start_block(context, block).raw("{\"type\":\"");
        let to = to.raw(kind).raw("\",\"id\":").string(call.call_id);
        let to = to.raw(",\"name\":").string(call.name).raw(",\"input\":{}");
        join(to, &extra, &["type"]);
        to.raw("}}").end();
    }

    // Content that no streamweld event represents

    /// Returns true if the latest block is open and has this index in the source.
    fn is_latest(&self, at: Option<i64>) -> bool {
        self.latest.is_some_and(|(latest, _)| latest == at)
    }

    fn unmodelled_delta(
        &mut self,
        context: &mut EncodeContext,
        blocks: &mut SourceBlocks,
        index: Option<i64>,
        delta: &str,
    ) {
        let size = self.waiting.saturating_add(delta.chars().count());
        match (blocks.waiting(index), self.latest) {
            (Some(waiting), _) if size <= MOST_WAITING => {
                self.waiting = size;
                waiting.deltas.push(delta.to_owned());
            }
            (None, Some((latest, here))) if latest == index => {
                self.write_delta(context, here, delta);
            }
            _ => context.losses.note("unknown"),
        }
    }

    fn write_delta(&self, context: &mut EncodeContext, index: i64, delta: &str) {
        let to = context.writer.raw(DELTA).number(index);
        spliced(to.raw(",\"delta\":"), delta);
        to.raw("}").end();
    }

    /// Writes annotations of an open block as citations.
    fn cite(&mut self, context: &mut EncodeContext, block: &mut Block, annotations: &str) {
        let list = Raw {
            text: annotations,
            kind: JsonKind::Array,
        };
        for citation in items(list) {
            block.cited += 1;
            self.write_citation(context, block.part, citation.text);
        }
    }

    fn write_citation(&self, context: &mut EncodeContext, part: u32, citation: &str) {
        let to = self.of(context, "content_block_delta", part);
        canonical(
            to.raw(",\"delta\":{\"type\":\"citations_delta\",\"citation\":"),
            citation,
        );
        to.raw("}}").end();
    }

    /// Writes a page of another dialect as a citation. Only Anthropic's own search knows the encrypted index, which the
    /// type of the citation requires.
    fn write_page(
        &self,
        context: &mut EncodeContext,
        part: u32,
        (url, title, content): (&str, Option<&str>, &str),
    ) {
        let to = self.of(context, "content_block_delta", part);
        to.raw(",\"delta\":{\"type\":\"citations_delta\",\"citation\":")
            .raw("{\"type\":\"web_search_result_location\",\"cited_text\":")
            .string(content);
        to.raw(",\"url\":").string(url).raw(",\"title\":");
        to.text_or_null(nonempty(title))
            .raw(",\"encrypted_index\":\"\"}}}")
            .end();
    }

    /// Stores unknown members until their event is written. Members that clients read only from the delta of
    /// `message_delta` are kept until that event is written.
    fn keep_members(
        &mut self,
        context: &mut EncodeContext,
        of: MembersOf,
        mut extra: ExtraMembers,
        opened: bool,
    ) {
        if matches!(of, MembersOf::Message | MembersOf::End) {
            let is_moved = |name: &str| DELTA_MEMBERS.contains(&name);
            let (moved, rest): (ExtraMembers, ExtraMembers) =
                extra.into_iter().partition(|(name, _)| is_moved(name));
            self.keep_members(context, MembersOf::Delta, moved, opened);
            extra = rest;
            extra.retain(|(name, _)| name != "stop_reason");
        }
        if opened && matches!(of, MembersOf::Message | MembersOf::StartUsage) {
            return self.keep_late_members(context, of, extra);
        }
        if extra.is_empty() {
            return;
        }
        let known = match of {
            MembersOf::Message => &mut self.members.message,
            MembersOf::StartUsage => &mut self.members.start_usage,
            MembersOf::End => &mut self.members.end,
            MembersOf::Delta => &mut self.members.delta,
            MembersOf::EndUsage => &mut self.members.end_usage,
            MembersOf::Stop => &mut self.members.stop,
        };
        if known.is_empty() {
            *known = extra;
            return;
        }
        if size(known) + size(&extra) > MAX_MERGED_SIZE {
            let names: HashSet<&String> = extra.iter().map(|(name, _)| name).collect();
            if !known.iter().all(|(name, _)| names.contains(name)) {
                context.losses.note("metadata");
            }
            *known = extra;
            return;
        }
        for (name, text) in extra {
            match known.iter_mut().find(|(key, _)| *key == name) {
                Some((_, known)) => *known = text,
                None => known.push((name, text)),
            }
        }
    }

    /// Keeps the members of a `message_start` event that arrived after the message was opened. The usage and some other
    /// members can still be written in `message_delta`, but all remaining members are lost.
    fn keep_late_members(
        &mut self,
        context: &mut EncodeContext,
        of: MembersOf,
        extra: ExtraMembers,
    ) {
        if of == MembersOf::StartUsage {
            return self.keep_members(context, MembersOf::EndUsage, extra, true);
        }
        let (kept, lost): (ExtraMembers, ExtraMembers) = extra
            .into_iter()
            .partition(|(name, _)| LATE_MEMBERS.contains(&name.as_str()));
        if lost.iter().any(|(_, text)| text != "null") {
            context.losses.note("metadata");
        }
        self.keep_members(context, MembersOf::Delta, kept, true);
    }

    /// Writes a delta. Most frames are deltas, so for speed the constant text is appended in as few pieces as possible.
    fn delta(&self, context: &mut EncodeContext, part: u32, kind: &str, text: &str) {
        let index = self.at.get(&part).copied().unwrap_or_default();
        let to = context.writer.raw(DELTA).number(index).raw(kind);
        to.inner(text).raw("\"}}\n\n");
    }

    /// Writes the stop event of a block, unless the source's own stop event passed through.
    fn stop(&mut self, context: &mut EncodeContext, part: u32) {
        if !context.passed.ended.contains(&part) {
            self.of(context, "content_block_stop", part).raw("}").end();
        }
        let index = self.at.get(&part).copied();
        self.at.remove(&part);
        self.latest = self.latest.filter(|(_, latest)| Some(*latest) != index);
    }

    /// Returns a reasoning block's signature, if that signature can be written. The signature must come from Anthropic,
    /// unless it is written as a carrier, and must not have been written before. The signature of an interrupted block
    /// is written only in a carrier, because the signature covers the text of both blocks.
    fn signature<'d>(
        &self,
        context: &EncodeContext,
        block: &Block,
        done: &'d Done<'_>,
    ) -> Option<&'d str> {
        let signature = nonempty(done.signature.as_deref())?;
        let signed = !block.metadata_written && (block.mark != BROKEN || context.carries());
        let genuine = signed && is_own(context, done);
        genuine.then_some(signature)
    }
}

fn frame<'j>(context: &'j mut EncodeContext, kind: &str) -> &'j mut Writer {
    let to = context.writer.raw("event: ").raw(kind);
    to.raw("\ndata: {\"type\":\"").raw(kind).raw("\"")
}

/// Returns the unknown members of a block's start event.
fn extra_of(block: &Block) -> ExtraMembers {
    block.members.as_deref().map(parsed).unwrap_or_default()
}

fn canonical_object(metadata: &str) -> String {
    let mut to = Writer::default();
    canonical(&mut to, metadata);
    to.into_text()
}

/// Returns the annotations of a text part, or `None` if there are none or the source has another dialect.
fn own_annotations<'d>(context: &EncodeContext, done: &'d Done<'_>) -> Option<Raw<'d>> {
    let list = Raw {
        text: done.annotations.as_deref()?,
        kind: JsonKind::Array,
    };
    first_item(list)
        .map(|_| list)
        .filter(|_| context.passed.own)
}

/// Returns the annotations of a text part from another dialect, or `None` if there are none.
fn other_annotations<'d>(context: &EncodeContext, done: &'d Done<'_>) -> Option<Raw<'d>> {
    let text = done.annotations.as_deref();
    let list = text.filter(|_| !context.passed.own).map(|text| Raw {
        text,
        kind: JsonKind::Array,
    });
    list.filter(|list| first_item(*list).is_some())
}

/// Returns true if the signature of a reasoning part came from Anthropic or is written as a carrier.
fn is_own(context: &EncodeContext, done: &Done<'_>) -> bool {
    // In a Chat stream, `thinking` and `redacted` reasoning comes only from `thinking_blocks`, whose entries are
    // Messages blocks.
    let is_block = context.source == "chat" && matches!(done.reasoning, "thinking" | "redacted");
    let metadata = done.metadata.as_deref();
    context.passed.own || context.carries() || is_block || is_genuine(context, NAME, metadata)
}

fn nonempty(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

/// Returns the encrypted content of a reasoning part, or `None` if the part has text. Only the provider can decrypt
/// encrypted content.
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

fn usage(context: &mut EncodeContext, is_detailed: bool) {
    let counts = context.answer.usage.unwrap_or_default();
    let cached = counts.cached.unwrap_or(0);
    let cached = cached.saturating_add(counts.cache_write.unwrap_or(0));
    let fresh = counts.input.map(|input| input.saturating_sub(cached));
    if fresh.is_some_and(|count| count < 0)
        || (!is_detailed && counts.reasoning.is_some_and(|count| count != 0))
    {
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
