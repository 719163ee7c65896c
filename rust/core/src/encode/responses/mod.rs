//! Writes the events of the Responses API (OpenAI and OpenResponses): an output item for each part, and the response
//! object at the end.
//!
//! If the source has another dialect, item ids, indexes, and sequence numbers are generated, and the first text of a
//! part opens its item. The closing events of an item repeat its whole text, including any corrections from the source.

pub(crate) mod body;
pub(crate) mod copied_items;
pub(crate) mod hosted_items;
pub(crate) mod image;
pub(crate) mod item_members;
pub(crate) mod items;
pub(crate) mod known_items;
pub(crate) mod resource;
pub(crate) mod sent_items;
pub(crate) mod source_items;
pub(crate) mod web_search;

use crate::encode::common::citations::Citation;
use crate::encode::common::encode_context::Call;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::encoder::Encoder;
use crate::encode::common::finish::EndingError;
use crate::encode::common::logprobs::logprobs;
use crate::encode::common::same_json::is_same;
use crate::encode::responses::body::Body;
use crate::encode::responses::image::output_format;
use crate::encode::responses::items::Items;
use crate::encode::responses::resource::Outcome;
use crate::encode::responses::resource::SourceResponse;
use crate::encode::responses::resource::resource;
use crate::encode::responses::sent_items::is_written;
use crate::encode::responses::source_items::as_added;
use crate::encode::responses::web_search::has_others;
use crate::encode::responses::web_search::is_search;
use crate::encode::responses::web_search::query;
use crate::model::event::Delta;
use crate::model::event::Event;
use crate::model::event::Mark;
use crate::model::event::Opened;
use crate::model::small_map::Map;
use crate::model::small_map::Set;
use crate::model::unmodelled::Unmodelled;
use std::borrow::Cow;
use std::mem;

const NAME: &str = "responses";
/// The finish word of a complete response. Any other finish word is the reason why the response is incomplete.
const COMPLETED: &str = "completed";
const CANCELLED: &str = "cancelled";

/// What the current events of a source in the same dialect represent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Content {
    /// Content that is not an item.
    #[default]
    Events,
    /// An item that is written from its events.
    Written,
    /// An item or event that is copied from the source.
    Copied,
}

/// The finish reason of the response.
#[derive(Debug)]
struct Finish {
    /// True if the response ended so that the client runs its calls.
    is_for_calls: bool,
    /// The finish word, or an error if the target has no word for the reason.
    word: Result<String, EndingError>,
}

/// Writes one response. If there are several choices, only the first is written.
#[derive(Debug, Default)]
pub(crate) struct Responses {
    /// Id of the response, once the stream has been opened.
    id: Option<String>,
    /// The response object as a source in this dialect sent it.
    sent: Option<SourceResponse>,
    items: Items,
    /// Position of each part's written content or call in `items.parts`, by part number.
    part_indexes: Map<u32, usize>,
    /// Items from a source in the same dialect that have no part yet, keyed by the number of the part whose text has
    /// not arrived.
    bare: Map<u32, usize>,
    /// Reasoning parts whose text is a summary.
    summaries: Map<u32, ()>,
    /// Log probabilities of text parts for which no delta has been written yet.
    chances: Map<u32, String>,
    /// URL and title of each page that was cited without a position. Citations without a position are added to the next
    /// text part that ends.
    pages: Vec<(String, String)>,
    /// What the current events represent.
    content: Content,
    /// Parts of items that are copied.
    copied_parts: Set<u32>,
    /// The only choice that is written, which is the choice of the first event that belongs to any choice.
    choice: Option<i32>,
    finish: Option<Finish>,
    /// True if a complete call was written.
    called: bool,
    /// True if a call was omitted because it has no name.
    has_nameless_call: bool,
    /// Part numbers of incomplete or invalid calls, each with the reason that the response reports for it.
    left: Vec<(u32, &'static str)>,
}

impl Encoder for Responses {
    fn event(&mut self, context: &mut EncodeContext, event: &Event<'_>) {
        if context.passed.own && self.is_copied(event) {
            return;
        }
        context.note(event);
        if matches!(
            event,
            Event::Diagnostic { .. }
                | Event::Usage(_)
                | Event::Unknown { .. }
                | Event::ProviderItem { .. }
                | Event::UpstreamError { .. }
        ) {
            return;
        }
        let is_open = self.id.is_some();
        self.open(context);
        if let Some(choice) = event.choice()
            && *self.choice.get_or_insert(choice) != choice
        {
            return context.losses.note("choices");
        }
        // The items of a source in the same dialect keep their unknown members, but its deltas do not.
        let is_kept = context.passed.own && !event.is_delta();
        let takes_logprobs = self.takes_logprobs(context, event);
        if !(takes_logprobs || is_kept || self.takes_search(context, event)) {
            context.losses.metadata_of(event);
        }
        match *event {
            // The id can no longer change, because clients received it when the response was opened.
            Event::ResponseStarted { .. } if is_open => self.take(context),
            Event::TextDelta(delta) => self.write_text(context, delta, Body::text),
            Event::RefusalDelta(delta) => self.write_text(context, delta, || Body::Refusal),
            Event::TextStarted(Opened { part, .. }) => self.own_part(context, part, Body::text()),
            Event::RefusalStarted(mark) => self.own_part(context, mark.part, Body::Refusal),
            Event::ReasoningStarted { part, kind, .. } => {
                self.kind(part, kind);
                let body = self.reasoning(part);
                self.own_part(context, part, body);
            }
            Event::ReasoningDelta(delta) => {
                let body = self.reasoning(delta.part);
                self.write_text(context, delta, || body);
            }
            Event::TextDone {
                part,
                text,
                annotations,
                ..
            } => {
                let position = self.write_remaining_text(context, part, text, Body::text);
                let filled = position.filter(|_| !text.is_empty());
                let cited = if context.passed.own { position } else { filled };
                self.cite(context, cited, annotations, text);
                if let Some(position) = filled.filter(|_| !context.cut) {
                    self.cite_pages(context, position, text);
                }
                self.late_logprobs(context, part, position);
                self.done(context, position);
            }
            Event::RefusalDone(Delta { part, text, .. }) => {
                let position = self.write_remaining_text(context, part, text, || Body::Refusal);
                self.done(context, position);
            }
            Event::ReasoningDone {
                part,
                text,
                kind,
                signature,
                encrypted_content,
                ..
            } => {
                self.kind(part, kind);
                let body = self.reasoning(part);
                let sealed = encrypted_content.filter(|content| !content.is_empty());
                let carries = context.carries();
                if carries && sealed.is_some() && !self.part_indexes.contains_key(&part) {
                    self.begin(context, part, body.clone()); // a carrier needs an item even without text
                }
                let position = self.part_indexes.get(&part);
                let item = position.and_then(|position| self.items.item_of(*position));
                let item = item.or(self.bare.get(&part).copied());
                let kept = context.passed.own || carries;
                if let (Some(item), Some(content), true) = (item, sealed, kept) {
                    self.items.encrypt(item, content);
                }
                let position = self.write_remaining_text(context, part, text, || body);
                let sealed = sealed.filter(|_| !kept);
                context.sealed(kind, text, signature, sealed);
                self.done(context, position);
            }
            Event::ToolCallStarted { .. } => self.start(context, event),
            Event::ToolCallDelta(delta) => {
                if let Some(position) = self.part_indexes.get(&delta.part) {
                    self.items.delta(context, *position, delta.text, "");
                }
            }
            Event::ToolCallReset(mark) => {
                let item = self.part_indexes.get(&mark.part);
                if let Some(item) = item.and_then(|position| self.items.get_mut(*position)) {
                    item.reset = true;
                }
            }
            Event::ToolCallRetracted(mark) if self.part_indexes.contains_key(&mark.part) => {
                self.give_up(context);
            }
            Event::ToolCall { item_id, .. } => {
                if let Some(call) = Call::of(event) {
                    self.call(context, &call, item_id);
                }
            }
            Event::ToolResult {
                call_id,
                output,
                is_error,
                ..
            } if self.items.has_search(call_id) => {
                self.items.end_search(context, call_id, output, is_error);
            }
            Event::ToolResult { .. } => context.losses.note("server_tool"),
            Event::Source {
                url: Some(url),
                title,
                ..
            } if !context.passed.own => {
                let title = title.unwrap_or_default();
                self.pages.push((url.to_owned(), title.to_owned()));
            }
            Event::Source { .. } => context.losses.note("sources"),
            Event::File {
                media_type, data, ..
            } => match output_format(media_type).zip(data) {
                Some((format, data)) => self.items.write_image(context, data, format),
                None => context.losses.note("files"),
            },
            Event::Finished {
                reason, raw_reason, ..
            } => {
                self.items.end_idle_items(context, None, true);
                self.items.end_resumed(context);
                let cancelled =
                    context.passed.own && matches!(raw_reason, Some(CANCELLED | "canceled"));
                let word = if cancelled {
                    Some(CANCELLED)
                } else {
                    context.finish_word(NAME, reason, raw_reason)
                };
                let word = word.map(str::to_owned);
                self.finish = Some(Finish {
                    is_for_calls: reason == "tool_calls",
                    word: word.ok_or_else(|| EndingError::named("finish")),
                });
            }
            _ => {}
        }
    }

    fn write_unmodelled(&mut self, context: &mut EncodeContext, content: &Unmodelled<'_>) {
        match content {
            Unmodelled::Item(sent) => {
                self.open(context);
                if is_written(sent.kind) {
                    self.content = Content::Written;
                    self.items.keep_members(context, sent);
                } else {
                    self.content = Content::Copied;
                    self.items.copy_item(context, sent);
                }
            }
            Unmodelled::ItemEvent { event, payload } => {
                self.content = Content::Copied;
                if self.id.is_some() {
                    self.items.copy_event(context, payload, *event);
                } else {
                    context.losses.note("unknown"); // no event comes before the one that opens the response
                }
            }
            Unmodelled::ContentPart(part) => {
                self.open(context);
                self.content = Content::Copied;
                self.items.other_part(context, part);
            }
            Unmodelled::ItemEnd => {
                self.content = Content::Events;
                self.items.current = None;
                self.items.end_listing(context);
            }
            // The annotations of a finished item follow its text.
            Unmodelled::Annotated { part, annotations } if self.content == Content::Events => {
                if let Some(position) = self.part_indexes.get(part).copied() {
                    self.items
                        .copy_annotations(context, position, annotations, 0);
                }
            }
            _ => {}
        }
    }

    fn keep(&mut self, piece: &Delta<'_>) -> bool {
        // Log probabilities that were stored are written with the next delta.
        let has_logprobs = self
            .chances
            .get(&piece.part)
            .is_some_and(|tokens| !tokens.is_empty());
        let position = self.part_indexes.get(&piece.part).filter(|_| !has_logprobs);
        position.is_some_and(|position| self.items.keep(*position, piece.text))
    }

    fn end(&mut self, context: &mut EncodeContext, ending_error: Option<EndingError>) {
        self.open(context);
        if !self.pages.is_empty() {
            context.losses.note("sources");
        }
        if self.items.copied.lack_any() {
            context.losses.note("unknown");
        }
        let word = match (ending_error, self.finish.take()) {
            (Some(ending_error), _) => Err(ending_error),
            // If none of the calls could be written, the response is not a success.
            (None, Some(finish)) if finish.is_for_calls && self.lacks_calls() => {
                Err(EndingError::named("finish"))
            }
            (None, Some(finish)) => finish.word,
            (None, None) => Err(EndingError::named("TruncatedStream")),
        };
        // Clients that look at the calls (AI SDK) would treat `response.incomplete` as `tool-calls`, run the calls and
        // continue.
        let runs = self.called || self.items.could_be_run();
        let ends_unfinished =
            |ending_error: &EndingError| ending_error.cut && !context.options.cut_is_error && !runs;
        let fails = word
            .as_ref()
            .is_err_and(|ending_error| !ends_unfinished(ending_error));
        // Clients raise an exception for the error event. Open items stay open, as in OpenAI's own failed responses, so
        // that no truncated call is delivered.
        if !(fails && context.options.cut_is_error) {
            self.items.close_all(context);
        }
        match word {
            Ok(word) => {
                let outcome = match (word.as_str(), self.why_left(context)) {
                    (COMPLETED, None) => Outcome::Completed,
                    (COMPLETED, Some(left)) => Outcome::Incomplete(left),
                    (CANCELLED, _) => Outcome::Cancelled,
                    (detail, _) => Outcome::Incomplete(detail),
                };
                self.last(context, &outcome);
            }
            Err(_) if !fails => {
                self.last(context, &Outcome::Incomplete("stream_truncated"));
            }
            Err(ending_error) => {
                // The event contains the error twice: nested, as in OpenResponses, and flat, as OpenAI's own clients
                // expect it.
                let to = self.items.frame(context, "error");
                to.raw(",\"error\":{\"type\":").string(&ending_error.kind);
                for end in ["}", "}"] {
                    to.raw(",\"code\":").string(&ending_error.code);
                    to.raw(",\"message\":").string(&ending_error.message);
                    to.raw(",\"param\":null").raw(end);
                }
                to.end();
                self.last(context, &Outcome::Failed(&ending_error));
            }
        }
        context.writer.done();
    }
}

impl Responses {
    /// Returns true if the content of an event from a source in the same dialect is copied from the source. Annotations
    /// are copied with their text.
    fn is_copied(&mut self, event: &Event<'_>) -> bool {
        match *event {
            Event::ToolCallStarted { part, .. } => {
                let copies = self.content == Content::Copied;
                if copies {
                    self.copied_parts.insert(part);
                }
                copies
            }
            Event::ToolCall {
                part,
                provider_executed,
                ..
            } => {
                let is_written = self.part_indexes.contains_key(&part);
                let copies = self.content == Content::Copied;
                let is_copied = self.copied_parts.contains(&part) || (copies && !is_written);
                if is_copied && let Some(call) = Call::of(event) {
                    self.called |= call.is_whole() && !provider_executed;
                }
                is_copied
            }
            Event::ToolCallDelta(Delta { part, .. })
            | Event::ToolCallReset(Mark { part, .. })
            | Event::ToolCallRetracted(Mark { part, .. }) => {
                let copies = self.content == Content::Copied;
                self.copied_parts.contains(&part)
                    || (copies && !self.part_indexes.contains_key(&part))
            }
            Event::ToolResult { .. }
            | Event::ToolResultDelta { .. }
            | Event::Source { .. }
            | Event::File { .. } => true,
            Event::Unknown { .. } | Event::ProviderItem { .. } => self.content != Content::Events,
            _ => false,
        }
    }

    /// Writes the events that open the response, unless they were already written.
    fn open(&mut self, context: &mut EncodeContext) {
        if self.id.is_some() {
            return;
        }
        let own = context.answer.id.take();
        let own = own.filter(|id| context.passed.own || id.starts_with("resp_"));
        self.id = Some(own.unwrap_or_else(|| context.mint.make("resp")));
        self.take(context);
        self.write_response_event(context, "response.created", &Outcome::InProgress);
        if !context.passed.unopened {
            self.write_response_event(context, "response.in_progress", &Outcome::InProgress);
        }
    }

    /// Returns true if a call was omitted because it has no name, and the response has no item.
    fn lacks_calls(&self) -> bool {
        self.has_nameless_call && self.items.is_empty()
    }

    /// Returns the reason of the last incomplete call as the reason why the response is incomplete, or `None`. Calls
    /// whose item the source itself closed are ignored.
    fn why_left(&self, context: &EncodeContext) -> Option<&'static str> {
        let mut left = self.left.iter().rev();
        let left = left.find(|(part, _)| !context.passed.ended.contains(part));
        left.map(|(_, why)| *why)
    }

    /// Stores the response object of the current event, if there is one, so that its members can be written unchanged.
    fn take(&mut self, context: &EncodeContext) {
        if context.passed.own
            && let Some(sent) = SourceResponse::of(&context.passed.payload)
        {
            self.sent = Some(sent);
        }
    }

    fn last(&mut self, context: &mut EncodeContext, outcome: &Outcome<'_>) {
        self.take(context);
        if let Some(id) = &context.passed.created {
            self.id.clone_from(id); // clients have the id from the event that opened the response
        }
        self.write_response_event(context, outcome.event(), outcome);
    }

    /// Writes an event that contains the response object.
    fn write_response_event(
        &mut self,
        context: &mut EncodeContext,
        kind: &str,
        outcome: &Outcome<'_>,
    ) {
        self.items.frame(context, kind).raw(",\"response\":");
        let id = self.id.as_deref();
        match &self.sent {
            Some(sent) => sent.write(context, id, outcome, &self.items),
            None => resource(context, id, outcome, &self.items),
        }
        context.writer.raw("}").end();
    }

    fn kind(&mut self, part: u32, kind: &str) {
        if kind == "summary" {
            self.summaries.insert(part, ());
        }
    }

    fn reasoning(&self, part: u32) -> Body {
        if self.summaries.contains_key(&part) {
            Body::Summary
        } else {
            Body::Reasoning
        }
    }

    fn begin(&mut self, context: &mut EncodeContext, part: u32, body: Body) -> usize {
        let position = match self.bare.get(&part).copied() {
            Some(item) => {
                self.bare.remove(&part);
                self.items.fill(context, item, part, body)
            }
            None => self.items.open(context, part, body, (None, None), None),
        };
        self.part_indexes.insert(part, position);
        position
    }

    /// If the source has the same dialect, opens a part in the item in which the source opened it.
    fn own_part(&mut self, context: &mut EncodeContext, part: u32, body: Body) {
        if !context.passed.own {
            return;
        }
        match self.items.open_own(context, part, body) {
            (_, Some(position)) => _ = self.part_indexes.insert(part, position),
            (item, None) => _ = self.bare.insert(part, item),
        }
    }

    /// Writes a piece of text. The first piece of a part opens the part's item.
    #[inline]
    fn write_text(
        &mut self,
        context: &mut EncodeContext,
        delta: Delta<'_>,
        body: impl FnOnce() -> Body,
    ) {
        if delta.text.is_empty() {
            return;
        }
        let position = match self.part_indexes.get(&delta.part) {
            Some(position) => *position,
            None => self.begin(context, delta.part, body()),
        };
        match self.chances.get_mut(&delta.part).map(mem::take) {
            Some(tokens) => self.items.delta(context, position, delta.text, &tokens),
            None => self.items.delta(context, position, delta.text, ""),
        }
    }

    /// Returns true if the event starts or ends a search that is written as an item. Records a loss for the metadata
    /// that the item does not express.
    fn takes_search(&self, context: &mut EncodeContext, event: &Event<'_>) -> bool {
        let takes = match *event {
            // Only the call itself shows whether it is written, and it repeats the metadata.
            Event::ToolCallStarted {
                name,
                provider_executed,
                ..
            } => is_search(provider_executed, name),
            Event::ToolCall { part, .. } => {
                !self.part_indexes.contains_key(&part)
                    && Call::of(event).is_some_and(|call| query(&call).is_some())
            }
            Event::ToolResult { call_id, .. } => self.items.has_search(call_id),
            _ => false,
        };
        if takes && has_others(event.metadata()) {
            context.losses.note("metadata");
        }
        takes
    }

    /// Stores the log probabilities of a text part. Returns true if the event's metadata contains only log
    /// probabilities.
    fn takes_logprobs(&mut self, context: &EncodeContext, event: &Event<'_>) -> bool {
        let (part, metadata) = match *event {
            Event::TextStarted(opened) => (opened.part, opened.metadata),
            Event::TextDelta(delta) => (delta.part, delta.metadata),
            Event::TextDone { part, metadata, .. } => (part, metadata),
            _ => return false,
        };
        if metadata.is_none() {
            return false;
        }
        let Some(found) = logprobs(context.source, NAME, metadata) else {
            return false;
        };
        let position = self.part_indexes.get(&part);
        let is_close = matches!(event, Event::TextDone { .. });
        let repeats =
            is_close && position.is_some_and(|position| self.items.has_logprobs(*position));
        if !repeats {
            let tokens = self.chances.slot(part);
            if !tokens.is_empty() {
                tokens.push(',');
            }
            tokens.push_str(&found.tokens);
        }
        !found.others
    }

    /// Adds log probabilities that arrived after the text to the closing event of the text part.
    fn late_logprobs(&mut self, context: &mut EncodeContext, part: u32, position: Option<usize>) {
        let Some(tokens) = self.chances.get_mut(&part).map(mem::take) else {
            return;
        };
        self.chances.remove(&part);
        let added = position.is_some_and(|position| self.items.add_logprobs(position, &tokens));
        if !(added || tokens.is_empty()) {
            context.losses.note("metadata");
        }
    }

    /// Writes citations of the pages that the source cited without a position. Each citation has an empty range at the
    /// end of the text.
    fn cite_pages(&mut self, context: &mut EncodeContext, position: usize, text: &str) {
        if self.pages.is_empty() {
            return;
        }
        let end = i64::try_from(text.chars().count()).ok();
        for (url, title) in mem::take(&mut self.pages) {
            let page = Citation {
                url: Cow::Owned(url),
                title: Some(Cow::Owned(title)),
                start: end,
                end,
                content: None,
            };
            self.items.cite(context, position, &page);
        }
    }

    /// If the final text begins with the streamed text, writes the rest of the final text. Returns the position of the
    /// part. If the final text contradicts the streamed text, the item's closing events contain the final text. Returns
    /// `None` for a part without text.
    fn write_remaining_text(
        &mut self,
        context: &mut EncodeContext,
        part: u32,
        text: &str,
        body: impl FnOnce() -> Body,
    ) -> Option<usize> {
        let position = match self.part_indexes.get(&part) {
            Some(position) => *position,
            None if text.is_empty() => {
                // A part without text is not written.
                if let Some(item) = self.bare.get(&part).copied() {
                    self.bare.remove(&part);
                    self.items.drop_bare(item, part);
                }
                return None;
            }
            None => self.begin(context, part, body()),
        };
        self.items.finish_text(context, position, text);
        Some(position)
    }

    fn cite(
        &mut self,
        context: &mut EncodeContext,
        position: Option<usize>,
        annotations: Option<&str>,
        text: &str,
    ) {
        if annotations.is_some_and(|list| self.items.cite_all(context, position, list, text)) {
            context.losses.note("sources");
        }
    }

    /// Closes a part, unless it ended only because the input was truncated.
    fn done(&mut self, context: &mut EncodeContext, position: Option<usize>) {
        if let Some(position) = position.filter(|_| !context.cut) {
            self.items.close(context, position, true);
        }
    }

    /// Starts a call that the client must run, if the call can be written before it is complete.
    fn start(&mut self, context: &mut EncodeContext, event: &Event<'_>) {
        let Event::ToolCallStarted {
            part,
            call_id: Some(call_id),
            item_id,
            name,
            provider_executed,
            custom,
            ..
        } = *event
        else {
            return;
        };
        if context.opens(call_id, name) && (context.passed.own || !provider_executed) {
            self.items.end_idle_items(context, None, true);
            let sent = (item_id.filter(|_| context.passed.own), context.passed.index);
            self.begin_call(context, part, Body::call(custom, call_id, name), sent);
        }
    }

    fn begin_call(
        &mut self,
        context: &mut EncodeContext,
        part: u32,
        body: Body,
        sent: (Option<&str>, Option<i64>),
    ) -> usize {
        let passed = &context.passed;
        let address = (passed.at, passed.item_id.as_deref());
        let added = sent
            .1
            .and_then(|_| as_added(context, body.kind(), address).0);
        let position = self.items.open(context, part, body, sent, added);
        self.part_indexes.insert(part, position);
        position
    }

    fn call(&mut self, context: &mut EncodeContext, call: &Call<'_>, item_id: Option<&str>) {
        context.takes(call.call_id);
        let Some(position) = self.part_indexes.get(&call.part).copied() else {
            return self.call_at_once(context, call, item_id);
        };
        self.items.keep_call_members(position);
        let Some(item) = self.items.get_mut(position) else {
            return;
        };
        let is_own = context.passed.own || !call.provider_executed;
        let kept = item.is_call(call.custom, call.call_id, call.name) && is_own;
        if !kept {
            return self.give_up(context);
        }
        if call.refused {
            context.losses.note("refused_call");
        }
        let text = if context.passed.closed.contains(&call.part) && item.text.is_empty() {
            Cow::Borrowed(call.arguments) // clients already received the done event with empty arguments
        } else {
            call.final_text(&item.text)
        };
        let restated = call.is_whole() && !call.custom && !text.starts_with(&item.text);
        if restated && is_same(&item.text, &text) {
            context.losses.note("arguments_spelling");
        } else {
            item.reset = false;
            self.items.finish_text(context, position, &text);
        }
        self.close_call_item(context, position, call);
    }

    /// Writes a call that was not started before its final event arrived.
    fn call_at_once(
        &mut self,
        context: &mut EncodeContext,
        call: &Call<'_>,
        item_id: Option<&str>,
    ) {
        if call.provider_executed && !context.passed.own {
            return match query(call) {
                Some(query) => self.items.start_search(context, call.call_id, query),
                None => context.losses.note("server_tool"),
            };
        }
        if call.is_nameless() {
            self.has_nameless_call = true;
            return context.losses.note("nameless_call");
        }
        let body = Body::call(call.custom, call.call_id, call.name);
        if call.refused {
            context.losses.note("refused_call");
        }
        self.items.end_idle_items(context, None, true);
        let sent = (item_id.filter(|_| context.passed.own), None);
        let position = self.begin_call(context, call.part, body, sent);
        let text = if context.passed.closed.contains(&call.part) {
            Cow::Borrowed(call.arguments)
        } else {
            call.final_text("")
        };
        self.items.finish_text(context, position, &text);
        self.close_call_item(context, position, call);
    }

    /// Closes a complete call. A call that is not complete stays open until the end of the response, where it is
    /// reported as incomplete.
    fn close_call_item(&mut self, context: &mut EncodeContext, position: usize, call: &Call<'_>) {
        if call.is_whole() {
            self.called = true;
            return self.items.close(context, position, true);
        }
        let why = if call.is_cut() {
            "stream_truncated"
        } else {
            "invalid_tool_call"
        };
        self.left.push((call.part, why));
    }

    /// Ends the stream with an error, because the upstream contradicted what was already written.
    fn give_up(&mut self, context: &mut EncodeContext) {
        context.broken = true;
        self.end(context, Some(EndingError::named("contradicted")));
    }
}
