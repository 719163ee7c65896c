//! Writes Chat Completions chunks: choices with their indexes, deltas as they arrive, and finish reasons and usage at
//! the end.
//!
//! Written deltas cannot be retracted. If the final event of a call contradicts arguments that were already written,
//! the stream ends with an error. If a final text contradicts text that was already written, a loss is recorded. An
//! incomplete response ends with `data: {"error":…}` and without `[DONE]`. `calls` decides when a call is written.

mod calls;
mod chunk;
mod list_indexes;
mod own_reasoning;

use crate::dialect::chat::readers::has_counts;
use crate::encode::chat::calls::CallOutput;
use crate::encode::chat::calls::Calls;
use crate::encode::chat::chunk::ChunkHead;
use crate::encode::chat::chunk::begin_chunk;
use crate::encode::chat::own_reasoning::OwnReasoning;
use crate::encode::chat::own_reasoning::Written;
use crate::encode::common::citations::Citation;
use crate::encode::common::citations::citations;
use crate::encode::common::compact_json::canonical;
use crate::encode::common::encode_context::Call;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::encoder::Encoder;
use crate::encode::common::finish;
use crate::encode::common::finish::EndingError;
use crate::encode::common::logprobs::logprobs;
use crate::encode::common::usage::Counts;
use crate::encode::common::writer::Writer;
use crate::json::Kind;
use crate::json::Raw;
use crate::model::event::Delta;
use crate::model::event::Event;
use crate::model::small_map::List;
use crate::model::small_map::Map;
use crate::model::small_map::Numbered;
use crate::model::unmodelled::Unmodelled;
use std::borrow::Cow;
use std::mem;

const NAME: &str = "chat";

/// The member of a delta that contains citations.
const ANNOTATIONS: &str = "annotations";

/// Writes one response, including all its choices.
#[derive(Debug, Default)]
pub(crate) struct Chat {
    head: ChunkHead,
    /// Choices in order of first appearance.
    choices: List<Choice>,
    /// Text written so far for each open part.
    pub(crate) parts: Map<u32, ChatPart>,
    /// Choices with `reasoning_details` that may have to wait until the text of the same delta is written.
    waiting_details: Vec<i32>,
    /// Choices whose calls changed since the last check. These calls may still have to be written, in whole or in part.
    changed_calls: Vec<i32>,
    /// URL and title of the pages that each choice cites without a position.
    pages: Map<i32, Vec<(String, String)>>,
}

#[derive(Debug, Default)]
pub(crate) struct Choice {
    index: i32,
    finish: Option<Finish>,
    /// The source's own finish reason, if the written finish reason is less specific.
    native: Option<String>,
    /// Citations in the text of this choice, as JSON.
    citations: String,
    /// Length of the closed text parts, in characters.
    length: i64,
    /// Number of reasoning carriers written.
    carriers: i64,
    /// Number of images written from a source in another dialect.
    images: i64,
    /// True if text was written.
    has_text: bool,
    /// The members that contain the source's reasoning, if the source is also a Chat stream.
    reasoning: OwnReasoning,
    /// True once the first chunk of the choice was written or passed through.
    is_open: bool,
    /// True if the choice is in `waiting_details`.
    has_waiting_details: bool,
    calls: Calls,
    /// True if the choice is in `changed_calls`.
    has_changed_calls: bool,
}

/// The finish reason of a choice.
#[derive(Debug)]
struct Finish {
    reason: &'static str,
    /// The target's word for the reason, or `None` if the target has no such word.
    word: Option<String>,
}

impl Choice {
    /// Stores a citation. Returns false and stores nothing if the citation has no position.
    fn cite(&mut self, citation: &Citation<'_>) -> bool {
        let (Some(start), Some(end)) = (citation.start, citation.end) else {
            return false;
        };
        let mut to = Writer::default();
        to.raw("{\"type\":\"url_citation\",\"url_citation\":{\"url\":");
        to.string(&citation.url).raw(",\"title\":");
        to.string(citation.title.as_deref().unwrap_or_default());
        to.raw(",\"start_index\":").number(start);
        to.raw(",\"end_index\":").number(end).raw("}}");
        if !self.citations.is_empty() {
            self.citations.push(',');
        }
        self.citations.push_str(&to.into_text());
        true
    }

    /// Returns true if the choice is not a success, because it has only calls and none of them could be written.
    fn lacks_calls(&self, reason: &str) -> bool {
        let is_empty = self.calls.written == 0 && !self.has_text && self.images == 0;
        reason == "tool_calls" && self.calls.has_nameless && is_empty
    }

    /// Removes and returns all citations. Citations without a position (`pages`) get an empty range at the end of the
    /// text.
    fn cited(&mut self, pages: Vec<(String, String)>) -> String {
        let end = Some(self.length);
        for (url, title) in pages {
            self.cite(&Citation {
                url: Cow::Owned(url),
                title: Some(Cow::Owned(title)),
                start: end,
                end,
                content: None,
            });
        }
        mem::take(&mut self.citations)
    }
}

impl Numbered for Choice {
    type Number = i32;

    fn number(&self) -> i32 {
        self.index
    }
}

#[derive(Debug, Default)]
pub(crate) struct ChatPart {
    pub(crate) written_text: String,
    /// True if log probabilities for the part were written.
    has_logprobs: bool,
}

impl Encoder for Chat {
    fn event(&mut self, context: &mut EncodeContext, event: &Event<'_>) {
        context.note(event);
        if !self.has_place_for_metadata(context, event) {
            context.losses.metadata_of(event);
        }
        let Some(choice) = event.choice() else {
            return;
        };
        // A source does not open the choice, because no chunk is written for it at this point. A file opens the choice
        // only if it is written.
        let bare = matches!(
            event,
            Event::File { .. } | Event::Source { .. } | Event::ProviderItem { .. }
        );
        if !bare && !is_empty(event) {
            self.open(context, choice);
        }
        match *event {
            Event::TextDelta(delta) => self.write_text(context, &Written::of("content"), delta),
            Event::ReasoningDelta(delta) if delta.text.is_empty() => {}
            Event::ReasoningDelta(delta) => {
                let written = self.choice(choice).reasoning.next();
                self.write_text(context, &written, delta);
            }
            Event::RefusalDelta(delta) => self.write_text(context, &Written::of("refusal"), delta),
            Event::ToolCallDelta(delta) => {
                let (calls, mut to) = self.calls(context, choice);
                calls.delta(&mut to, delta.part, delta.text);
            }
            Event::TextDone {
                part,
                text,
                annotations,
                choice,
                metadata,
            } => {
                self.late_logprobs(context, (part, choice), metadata);
                let written_text = self.parts.slot(part).written_text.as_str();
                let written = if text.starts_with(written_text) {
                    text
                } else {
                    written_text
                };
                let length = i64::try_from(written.chars().count()).unwrap_or(i64::MAX);
                self.write_remaining_text(context, &Written::of("content"), (part, choice), text);
                if let Some(annotations) = annotations
                    && !self.head.has_list(choice, ANNOTATIONS)
                {
                    self.cite(context, choice, annotations, length);
                }
                let all = &mut self.choice(choice).length;
                *all = all.saturating_add(length);
            }
            Event::ReasoningDone {
                part,
                text,
                kind,
                signature,
                encrypted_content,
                ..
            } => {
                let written = self.choice(choice).reasoning.next();
                self.write_remaining_text(context, &written, (part, choice), text);
                match signature.filter(|_| context.carries()) {
                    Some(carrier) => self.carry(context, choice, carrier),
                    None if self.choice(choice).reasoning.has_details => {}
                    None if self.head.has_list(choice, "thinking_blocks") => {}
                    None => context.sealed(kind, text, signature, encrypted_content),
                }
            }
            Event::RefusalDone(Delta { part, text, .. }) => {
                self.write_remaining_text(context, &Written::of("refusal"), (part, choice), text);
            }
            Event::ToolCallStarted { .. } => {
                let (calls, mut to) = self.calls(context, choice);
                calls.start(&mut to, event);
            }
            Event::ToolCall { .. } => {
                let Some(call) = Call::of(event) else { return };
                let (calls, mut to) = self.calls(context, choice);
                if calls.close(&mut to, &call).is_err() {
                    self.give_up(context);
                }
            }
            Event::ToolCallReset(mark) => self.choice(choice).calls.reset(mark.part),
            Event::ToolCallRetracted(mark) => {
                let (calls, mut to) = self.calls(context, choice);
                if calls.is_begun(mark.part) {
                    self.give_up(context);
                } else {
                    calls.retract(&mut to, mark.part);
                }
            }
            Event::ToolResult { call_id, .. } => {
                self.choice(choice).calls.unanswered.remove(call_id);
                context.losses.note("server_tool");
            }
            Event::Source {
                url: Some(url),
                title,
                ..
            } if !context.passed.own => {
                let title = title.unwrap_or_default();
                let page = (url.to_owned(), title.to_owned());
                self.pages.slot(choice).push(page);
            }
            Event::Source { .. } => context.losses.note("sources"),
            Event::File {
                media_type: Some(media_type),
                data,
                url,
                ..
            } if !context.passed.own && is_image(media_type) && data.or(url).is_some() => {
                self.write_image(context, choice, media_type, (data, url));
            }
            Event::File { .. } if self.head.has_in_delta(choice, "images") => {}
            Event::File { .. } => context.losses.note("files"),
            Event::Finished {
                reason, raw_reason, ..
            } => {
                let (calls, mut to) = self.calls(context, choice);
                calls.finish(&mut to);
                // Calls are always written as `tool_calls`, even if the source sent a legacy `function_call`.
                let own = context.own_word(NAME, reason, raw_reason);
                let own = own.filter(|_| !matches!(reason, "stop" | "tool_calls"));
                let is_lost = own.is_none() && finish::is_lost(NAME, reason);
                let word = own.or_else(|| context.finish_word(NAME, reason, raw_reason));
                let word = word.map(str::to_owned);
                let choice = self.choice(choice);
                choice.native = raw_reason.filter(|_| is_lost).map(str::to_owned);
                choice.finish = Some(Finish { reason, word });
            }
            _ => {}
        }
    }

    fn keep(&mut self, piece: &Delta<'_>) -> bool {
        // The delta of this piece passed through as sent, so its `reasoning_details` no longer have to be written.
        for index in mem::take(&mut self.waiting_details) {
            let choice = self.choice(index);
            choice.has_waiting_details = false;
            choice.reasoning.forget_details();
        }
        if let Some(part) = self.parts.get_mut(&piece.part) {
            part.written_text.push_str(piece.text);
            return true;
        }
        let position = self.choices.position(piece.choice);
        let choice = position.and_then(|position| self.choices.get_mut(position));
        choice.is_some_and(|choice| choice.calls.keep(piece.part, piece.text))
    }

    fn write_unmodelled(&mut self, context: &mut EncodeContext, content: &Unmodelled<'_>) {
        match content {
            Unmodelled::Chunk(chunk) => self.head.record(chunk),
            Unmodelled::Reasoning(facts) => {
                let choice = self.choice(facts.choice);
                let details = choice.reasoning.record(facts);
                if choice.reasoning.is_lossy {
                    context.losses.note("metadata");
                }
                let waits = facts.has_text && facts.details.is_some();
                if waits && !mem::replace(&mut choice.has_waiting_details, true) {
                    self.waiting_details.push(facts.choice);
                }
                if let Some(details) = details {
                    self.open(context, facts.choice);
                    let to = begin_chunk(&mut self.head, context, facts.choice);
                    details.write(to, "");
                    self.head.end_delta(to, false);
                    self.head.end(to);
                }
            }
            Unmodelled::ChoiceMembers(facts) => self.head.record_choice(context, facts),
            // Nothing is written after the end of the response.
            Unmodelled::ChoiceWithoutEvent { choice } if !context.cut => {
                if self.head.has_unwritten(context, *choice) {
                    self.open(context, *choice);
                    self.write_members(context, *choice);
                }
                if self.head.is_lossy(*choice) {
                    context.losses.note("metadata");
                }
            }
            _ => {}
        }
    }

    fn has_waiting_calls(&mut self) -> bool {
        // Stop at the first choice with unwritten calls, because this check runs for every block, and there can be many
        // choices.
        while let Some(index) = self.changed_calls.last().copied() {
            let choice = self.choice(index);
            if choice.calls.has_unwritten() {
                return true;
            }
            choice.has_changed_calls = false;
            self.changed_calls.pop();
        }
        false
    }

    fn open(&mut self, context: &mut EncodeContext, choice: i32) {
        let known = self.choices.find(choice);
        if known.is_some_and(|choice| choice.is_open) {
            return;
        }
        self.choice(choice).is_open = true;
        if context.passed.choices.contains(&choice) {
            return;
        }
        let to = begin_chunk(&mut self.head, context, choice);
        to.raw("{\"role\":\"assistant\",\"content\":\"\"");
        self.head.end_delta(to, false);
        self.head.end(to);
    }

    fn role(&mut self, context: &mut EncodeContext, choice: i32) {
        let to = begin_chunk(&mut self.head, context, choice);
        to.raw("{\"role\":\"assistant\"");
        self.head.end_delta(to, false);
        self.head.end(to);
    }

    fn end(&mut self, context: &mut EncodeContext, ending_error: Option<EndingError>) {
        match ending_error.map_or_else(|| self.finish_words(), Err) {
            Ok(words) => self.finish(context, &words),
            Err(ending_error) => {
                if self.choices.iter().any(|choice| choice.calls.has_lost()) {
                    context.losses.note("cut_call");
                }
                fail(context, &ending_error);
            }
        }
    }
}

impl Chat {
    pub(crate) fn choice(&mut self, index: i32) -> &mut Choice {
        self.choices.slot(index, || Choice {
            index,
            ..Choice::default()
        })
    }

    /// Returns the calls of a choice, and the output that they are written to.
    fn calls<'c>(
        &'c mut self,
        context: &'c mut EncodeContext,
        choice: i32,
    ) -> (&'c mut Calls, CallOutput<'c>) {
        let Chat {
            head,
            choices,
            changed_calls,
            ..
        } = self;
        let of_index = || Choice {
            index: choice,
            ..Choice::default()
        };
        let own = choices.slot(choice, of_index);
        if !mem::replace(&mut own.has_changed_calls, true) {
            changed_calls.push(choice);
        }
        let to = CallOutput {
            context,
            head,
            choice,
        };
        (&mut own.calls, to)
    }

    /// Writes a chunk that contains only unknown members of the source's choice.
    fn write_members(&mut self, context: &mut EncodeContext, index: i32) {
        if !self.head.has_unwritten(context, index) {
            return; // the chunk that opened the choice contains the members
        }
        let to = begin_chunk(&mut self.head, context, index).raw("{");
        self.head.end_delta(to, true);
        self.head.end(to);
    }

    /// Writes a chunk with a piece of text, and with the log probabilities in its metadata.
    fn write_text(&mut self, context: &mut EncodeContext, written: &Written, delta: Delta<'_>) {
        if delta.text.is_empty() {
            return;
        }
        let part = self.parts.slot(delta.part);
        let is_first = part.written_text.is_empty();
        part.written_text.push_str(delta.text);
        let source = context.source;
        let metadata = delta.metadata.filter(|_| written.fields == ["content"]);
        let found = metadata.and_then(|metadata| logprobs(source, NAME, Some(metadata)));
        part.has_logprobs |= found.is_some();
        if is_first {
            self.choice(delta.choice).has_text = true;
        }
        let to = begin_chunk(&mut self.head, context, delta.choice);
        written.write(to, delta.text);
        self.head.end_delta(to, false);
        if let Some(found) = found {
            chances(to, &found.tokens);
        }
        self.head.end(to);
    }

    /// Returns true if all of the event's metadata can be written. This requires that the metadata consists only of log
    /// probabilities or of members of the source's own chunk.
    fn has_place_for_metadata(&self, context: &EncodeContext, event: &Event<'_>) -> bool {
        if context.passed.own {
            let metadata = event.metadata();
            return metadata.is_some_and(|metadata| self.head.has_all(metadata, event.choice()));
        }
        let metadata = match *event {
            Event::TextDelta(delta) if !delta.text.is_empty() => delta.metadata,
            // The log probabilities of the start event are repeated in a delta or in the closing event.
            Event::TextStarted(opened) => opened.metadata,
            Event::TextDone { metadata, .. } => metadata,
            _ => return false,
        };
        metadata.is_some()
            && logprobs(context.source, NAME, metadata).is_some_and(|found| !found.others)
    }

    /// Writes log probabilities that arrived only in the closing event of a text part.
    fn late_logprobs(
        &mut self,
        context: &mut EncodeContext,
        (part, choice): (u32, i32),
        metadata: Option<&str>,
    ) {
        let known = self.parts.get(&part);
        let known = known.is_some_and(|part| part.has_logprobs);
        let found = metadata.filter(|_| !known);
        let found = found.and_then(|metadata| logprobs(context.source, NAME, Some(metadata)));
        if let Some(found) = found {
            let to = begin_chunk(&mut self.head, context, choice).raw("{");
            self.head.end_delta(to, true);
            chances(to, &found.tokens);
            self.head.end(to);
        }
    }

    /// If the final text begins with the streamed text, writes the rest of the final text. Records a loss if the final
    /// text contradicts the streamed text.
    fn write_remaining_text(
        &mut self,
        context: &mut EncodeContext,
        written: &Written,
        (part, choice): (u32, i32),
        text: &str,
    ) {
        let written_text = &self.parts.slot(part).written_text;
        match text.strip_prefix(written_text.as_str()) {
            Some("") => {}
            Some(rest) => self.write_text(
                context,
                written,
                Delta {
                    part,
                    text: rest,
                    choice,
                    metadata: None,
                },
            ),
            None => context.losses.note("text_corrected"),
        }
        self.parts.remove(&part);
    }

    /// Writes a reasoning carrier into the member that clients send back unchanged:
    /// <https://openrouter.ai/docs/use-cases/reasoning-tokens>.
    fn carry(&mut self, context: &mut EncodeContext, index: i32, carrier: &str) {
        let choice = self.choice(index);
        let position = choice.carriers;
        choice.carriers += 1;
        let to = begin_chunk(&mut self.head, context, index);
        to.raw("{\"reasoning_details\":[{\"type\":\"reasoning.encrypted\",\"data\":");
        to.string(carrier).raw(",\"format\":\"unknown\",\"index\":");
        to.number(position).raw("}]");
        self.head.end_delta(to, false);
        self.head.end(to);
    }

    /// Writes an image into the member that OpenRouter defines:
    /// <https://openrouter.ai/docs/features/multimodal/image-generation>. openai-python merges entries by their index.
    fn write_image(
        &mut self,
        context: &mut EncodeContext,
        index: i32,
        media_type: &str,
        (data, url): (Option<&str>, Option<&str>),
    ) {
        self.open(context, index);
        let choice = self.choice(index);
        let position = choice.images;
        choice.images += 1;
        let to = begin_chunk(&mut self.head, context, index);
        to.raw("{\"images\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"");
        match data {
            Some(data) => to
                .raw("data:")
                .inner(media_type)
                .raw(";base64,")
                .inner(data),
            None => to.inner(url.unwrap_or_default()),
        };
        to.raw("\"},\"index\":").number(position).raw("}]");
        self.head.end_delta(to, false);
        self.head.end(to);
    }

    /// Stores citations in the form that all clients have a type for. A citation without a position in the text is
    /// lost, because @ai-sdk/openai rejects it.
    ///
    /// Chat counts positions from the beginning of the message. Other dialects count from the beginning of the part,
    /// whose length in characters is `length`.
    fn cite(&mut self, context: &mut EncodeContext, choice: i32, annotations: &str, length: i64) {
        let is_message = context.source == NAME;
        let (cited, others) = citations(annotations, Some(length).filter(|_| !is_message));
        let choice = self.choice(choice);
        let start = if is_message { 0 } else { choice.length };
        let mut lost = others;
        for citation in cited {
            lost |= !choice.cite(&citation.shifted(start));
        }
        if lost {
            context.losses.note("sources");
        }
    }

    /// Ends the stream with an error, because the upstream contradicted what was already written.
    pub(crate) fn give_up(&mut self, context: &mut EncodeContext) {
        context.broken = true;
        fail(context, &EndingError::named("contradicted"));
    }

    /// Returns the finish word of every choice, in order, or an error if a choice has none.
    fn finish_words(&mut self) -> Result<Vec<(i32, String)>, EndingError> {
        self.choices.sort_by_key(|choice| choice.index);
        let mut words = Vec::with_capacity(self.choices.len());
        let mut lacks_word = false;
        for choice in self.choices.iter_mut() {
            let finish = choice.finish.take();
            let finish = finish.ok_or_else(|| EndingError::named("TruncatedStream"))?;
            if choice.lacks_calls(finish.reason) {
                lacks_word = true;
                continue;
            }
            let corrected = match finish.reason {
                reason if choice.calls.has_empty_cut_call && finish::is_success(reason) => {
                    Some("length")
                }
                "tool_calls" if choice.calls.written == 0 => Some("stop"),
                "stop" if !choice.calls.unanswered.is_empty() => Some("tool_calls"),
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
            return Err(EndingError::named("finish"));
        }
        if words.is_empty() {
            return Err(EndingError::named("TruncatedStream"));
        }
        Ok(words)
    }

    fn finish(&mut self, context: &mut EncodeContext, words: &[(i32, String)]) {
        let counts = context.answer.usage.filter(Counts::is_known);
        let is_unwritten = |index: i32| !context.passed.finished.contains(&index);
        let last = words.iter().rfind(|(index, _)| is_unwritten(*index));
        let last = last.map(|(index, _)| *index);
        // openai-python reads token counts from the last chunk only. A new finish chunk needs them again after it.
        let is_wanted = !context.passed.counted || last.is_some();
        let counts = counts.filter(|_| context.options.include_usage && is_wanted);
        let mut usage = counts.map(|counts| usage(context, &counts));
        self.head.begin_finish();
        for (index, word) in words {
            if context.passed.finished.contains(index) {
                continue;
            }
            self.open(context, *index);
            // All citations are written in one chunk. If a second list follows, openai-python raises an exception, and
            // openai-node drops the first list.
            let cited = {
                let pages = self.pages.get_mut(index).map(mem::take);
                self.choice(*index).cited(pages.unwrap_or_default())
            };
            if !cited.is_empty() && !context.passed.choices.contains(index) {
                let to = begin_chunk(&mut self.head, context, *index).raw("{\"annotations\":[");
                to.raw(&cited).raw("]");
                self.head.end_delta(to, false);
                self.head.end(to);
            }
            let native = self.choice(*index).native.take();
            // If the source sent the token counts in a chunk with a choice, this encoder does the same, because clients
            // that read `choices[0]` of every chunk would fail otherwise.
            let is_with = last == Some(*index) && self.head.usage_has_choice;
            let counts = usage.take_if(|_| is_with);
            if counts.is_some() {
                self.head.begin_usage(false);
            }
            let to = begin_chunk(&mut self.head, context, *index).raw("{");
            self.head.begin_finish_of(*index);
            self.head.end_delta(to, true);
            to.raw(",\"finish_reason\":").string(word);
            if let Some(native) = native {
                to.raw(",\"native_finish_reason\":").string(&native);
            }
            self.head.end_choice(to);
            to.raw("}]");
            if let Some(counts) = counts {
                to.raw(",\"usage\":").raw(&counts);
            }
            to.raw("}").end();
        }
        if let Some(counts) = usage {
            self.head.begin_usage(true);
            let to = self.head.write(context);
            if let Some((index, _)) = words.first().filter(|_| self.head.usage_has_choice) {
                to.raw("{\"index\":").number(i64::from(*index));
                to.raw(",\"delta\":{},\"finish_reason\":null}");
            }
            to.raw("],\"usage\":").raw(&counts).raw("}").end();
        }
        context.writer.done();
    }
}

fn is_image(media_type: &str) -> bool {
    let kind = media_type.split_once('/').map(|(kind, _)| kind);
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case("image"))
}

/// Writes the log probabilities for the text in a chunk.
fn chances(to: &mut Writer, tokens: &str) {
    to.raw(",\"logprobs\":{\"content\":[").raw(tokens);
    to.raw("],\"refusal\":null}");
}

/// Returns true for a delta without text.
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

/// Returns the usage object. If the source has this dialect, its usage object is copied, unless clients do not know the
/// names of its counts. Otherwise, the object is built from the token counts.
fn usage(context: &EncodeContext, counts: &Counts) -> String {
    let mut to = Writer::default();
    let own = context.answer.own_usage.as_ref().filter(|text| {
        let kind = Kind::Object;
        has_counts(Raw { text, kind })
    });
    if let Some(sent) = own {
        canonical(&mut to, sent);
        return to.into_text();
    }
    to.raw("{\"prompt_tokens\":");
    to.number(counts.input.unwrap_or(0));
    to.raw(",\"completion_tokens\":");
    to.number(counts.output.unwrap_or(0));
    to.raw(",\"total_tokens\":").number(counts.sum());
    let prompt = [
        ("cached_tokens", counts.cached),
        ("cache_write_tokens", counts.cache_write),
    ];
    details(&mut to, "prompt_tokens_details", &prompt);
    let completion = [("reasoning_tokens", counts.reasoning)];
    details(&mut to, "completion_tokens_details", &completion);
    to.raw("}");
    to.into_text()
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

fn fail(context: &mut EncodeContext, ending_error: &EndingError) {
    let to = context.writer.data();
    to.raw("{\"error\":{\"message\":")
        .string(&ending_error.message);
    to.raw(",\"type\":").string(&ending_error.kind);
    to.raw(",\"code\":").string(&ending_error.code);
    if let Some(sent) = &ending_error.sent {
        to.raw(",\"detail\":").string(sent);
    }
    to.raw("}}").end();
}
