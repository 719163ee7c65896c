//! Writes a Responses event stream: every part is an output item of its own, opened by its first text.
//!
//! Item ids, places and sequence numbers are this stream's own; the close of an item says its whole text, so that what the
//! source corrected is corrected there. Knows no other dialect.

pub(crate) mod body;
pub(crate) mod items;
pub(crate) mod resource;
pub(crate) mod source_items;

use crate::encode::common::encode_context::Call;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::encoder::Encoder;
use crate::encode::common::finish::EndingError;
use crate::encode::common::same_json::is_same;
use crate::encode::responses::body::Body;
use crate::encode::responses::items::Items;
use crate::encode::responses::resource::Outcome;
use crate::encode::responses::resource::Sent;
use crate::encode::responses::resource::resource;
use crate::encode::responses::source_items::as_added;
use crate::model::event::Delta;
use crate::model::event::Event;
use crate::model::event::Opened;
use crate::model::small_map::Map;
use std::borrow::Cow;

const NAME: &str = "responses";
/// Every other word is the reason of an answer that is not whole.
const COMPLETED: &str = "completed";
const CANCELLED: &str = "cancelled";

/// One stream of events.
#[derive(Debug, Default)]
pub(crate) struct Responses {
    /// The response's own id, once the stream was opened.
    id: Option<String>,
    /// As the source wrote it, in this dialect.
    sent: Option<Sent>,
    items: Items,
    /// Items of the parts that have one.
    places: Map<u32, usize>,
    /// Items of the source's own that have no part yet, by the part that waits for its first text.
    bare: Map<u32, usize>,
    /// Reasonings whose text is a summary.
    summaries: Map<u32, ()>,
    /// The one choice that is written.
    choice: Option<i32>,
    /// The word for the end, or why there is none.
    finish: Option<Result<String, EndingError>>,
    /// A call is whole.
    called: bool,
    /// Calls that are not whole, and why.
    left: Vec<(u32, &'static str)>,
}

impl Encoder for Responses {
    fn event(&mut self, job: &mut EncodeContext, event: &Event<'_>) {
        job.note(event);
        if matches!(
            event,
            Event::Diagnostic { .. }
                | Event::Usage(_)
                | Event::Unknown { .. }
                | Event::UpstreamError { .. }
        ) {
            return;
        }
        let is_open = self.id.is_some();
        self.open(job);
        if let Some(choice) = event.choice()
            && *self.choice.get_or_insert(choice) != choice
        {
            return job.losses.note("choices");
        }
        job.losses.metadata_of(event);
        match *event {
            Event::ResponseStarted { .. } if is_open => self.take(job), // late: clients have the id of the opening
            Event::TextDelta(delta) => self.told(job, delta, Body::text),
            Event::RefusalDelta(delta) => self.told(job, delta, || Body::Refusal),
            Event::TextStarted(Opened { part, .. }) => self.own_part(job, part, Body::text()),
            Event::RefusalStarted(mark) => self.own_part(job, mark.part, Body::Refusal),
            Event::ReasoningStarted { part, kind, .. } => {
                self.kind(part, kind);
                let body = self.reasoning(part);
                self.own_part(job, part, body);
            }
            Event::ReasoningDelta(delta) => {
                let body = self.reasoning(delta.part);
                self.told(job, delta, || body);
            }
            Event::TextDone {
                part,
                text,
                annotations,
                ..
            } => {
                let place = self.rest(job, part, text, Body::text);
                self.cite(job, place.filter(|_| !text.is_empty()), annotations);
                self.done(job, place);
            }
            Event::RefusalDone(Delta { part, text, .. }) => {
                let place = self.rest(job, part, text, || Body::Refusal);
                self.done(job, place);
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
                let carries = job.carries();
                if carries && sealed.is_some() && !self.places.contains_key(&part) {
                    self.begin(job, part, body.clone()); // a carrier needs an item, also without a text
                }
                let place = self.places.get(&part);
                let item = place.and_then(|place| self.items.item_of(*place));
                let item = item.or(self.bare.get(&part).copied());
                let kept = job.passed.own || carries;
                if let (Some(item), Some(content), true) = (item, sealed, kept) {
                    self.items.encrypt(item, content);
                }
                let place = self.rest(job, part, text, || body);
                let sealed = sealed.filter(|_| !kept);
                job.sealed(kind, text, signature, sealed);
                self.done(job, place);
            }
            Event::ToolCallStarted { .. } => self.start(job, event),
            Event::ToolCallDelta(delta) => {
                if let Some(place) = self.places.get(&delta.part) {
                    self.items.delta(job, *place, delta.text);
                }
            }
            Event::ToolCallReset(mark) => {
                let item = self.places.get(&mark.part);
                if let Some(item) = item.and_then(|place| self.items.get_mut(*place)) {
                    item.reset = true;
                }
            }
            Event::ToolCallRetracted(mark) if self.places.contains_key(&mark.part) => {
                self.give_up(job);
            }
            Event::ToolCall { item_id, .. } => {
                if let Some(call) = Call::of(event) {
                    self.call(job, &call, item_id);
                }
            }
            Event::ToolResult { .. } => job.losses.note("server_tool"),
            Event::Source { .. } => job.losses.note("sources"),
            Event::File { .. } => job.losses.note("files"),
            Event::Finished {
                reason, raw_reason, ..
            } => {
                self.items.leave(job, None, true);
                self.items.end_resumed(job);
                let cancelled =
                    job.passed.own && matches!(raw_reason, Some(CANCELLED | "canceled"));
                let word = if cancelled {
                    Some(CANCELLED)
                } else {
                    job.finish_word(NAME, reason, raw_reason)
                };
                let word = word.map(str::to_owned);
                self.finish = Some(word.ok_or_else(|| EndingError::named("finish")));
            }
            _ => {}
        }
    }

    fn keep(&mut self, piece: &Delta<'_>) -> bool {
        let place = self.places.get(&piece.part);
        place.is_some_and(|place| self.items.keep(*place, piece.text))
    }

    fn end(&mut self, job: &mut EncodeContext, trouble: Option<EndingError>) {
        self.open(job);
        let word = match (trouble, self.finish.take()) {
            (Some(trouble), _) => Err(trouble),
            (None, Some(word)) => word,
            (None, None) => Err(EndingError::named("TruncatedStream")),
        };
        // Readers that go by calls (AI SDK) would end a response.incomplete as `tool-calls`, run them, and go on.
        let runs = self.called || self.items.could_be_run();
        let ends_unfinished =
            |trouble: &EndingError| trouble.cut && !job.options.cut_is_error && !runs;
        let fails = word
            .as_ref()
            .is_err_and(|trouble| !ends_unfinished(trouble));
        // A client raises at the error: what is open stays so, as where OpenAI fails, and no cut call is handed over.
        if !(fails && job.options.cut_is_error) {
            self.items.close_all(job);
        }
        match word {
            Ok(word) => {
                let outcome = match (word.as_str(), self.why_left(job)) {
                    (COMPLETED, None) => Outcome::Completed,
                    (COMPLETED, Some(left)) => Outcome::Incomplete(left),
                    (CANCELLED, _) => Outcome::Cancelled,
                    (detail, _) => Outcome::Incomplete(detail),
                };
                self.last(job, &outcome);
            }
            Err(_) if !fails => {
                self.last(job, &Outcome::Incomplete("stream_truncated"));
            }
            Err(trouble) => {
                // Nested as OpenResponses has it, and flat as OpenAI's own clients read it.
                let to = self.items.frame(job, "error");
                to.raw(",\"error\":{\"type\":").string(&trouble.kind);
                for end in ["}", "}"] {
                    to.raw(",\"code\":").string(&trouble.code);
                    to.raw(",\"message\":").string(&trouble.message);
                    to.raw(",\"param\":null").raw(end);
                }
                to.end();
                self.last(job, &Outcome::Failed(&trouble));
            }
        }
        job.writer.done();
    }
}

impl Responses {
    /// The first two events: the response as it begins.
    fn open(&mut self, job: &mut EncodeContext) {
        if self.id.is_some() {
            return;
        }
        let own = job.answer.id.take();
        let own = own.filter(|id| job.passed.own || id.starts_with("resp_"));
        self.id = Some(own.unwrap_or_else(|| job.mint.make("resp")));
        self.take(job);
        self.whole(job, "response.created", &Outcome::InProgress);
        if !job.passed.unopened {
            self.whole(job, "response.in_progress", &Outcome::InProgress);
        }
    }

    /// Why the answer is incomplete: the last call that is not whole, unless the source has ended its item.
    fn why_left(&self, job: &EncodeContext) -> Option<&'static str> {
        let mut left = self.left.iter().rev();
        let left = left.find(|(part, _)| !job.passed.ended.contains(part));
        left.map(|(_, why)| *why)
    }

    /// The event at hand may bring the response itself: what it says of itself then stays as it is.
    fn take(&mut self, job: &EncodeContext) {
        if job.passed.own
            && let Some(sent) = Sent::of(&job.passed.payload)
        {
            self.sent = Some(sent);
        }
    }

    fn last(&mut self, job: &mut EncodeContext, outcome: &Outcome<'_>) {
        self.take(job);
        if let Some(id) = &job.passed.created {
            self.id.clone_from(id); // clients have the id of the event that opened the response
        }
        self.whole(job, outcome.event(), outcome);
    }

    /// An event that holds the whole response.
    fn whole(&mut self, job: &mut EncodeContext, kind: &str, outcome: &Outcome<'_>) {
        self.items.frame(job, kind).raw(",\"response\":");
        let id = self.id.as_deref();
        match &self.sent {
            Some(sent) => sent.write(job, id, outcome, &self.items),
            None => resource(job, id, outcome, &self.items),
        }
        job.writer.raw("}").end();
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

    fn begin(&mut self, job: &mut EncodeContext, part: u32, body: Body) -> usize {
        let place = match self.bare.get(&part).copied() {
            Some(item) => {
                self.bare.remove(&part);
                self.items.fill(job, item, part, body)
            }
            None => self.items.open(job, part, body, (None, None), None),
        };
        self.places.insert(part, place);
        place
    }

    /// A part of the source's own opens where the source opened it.
    fn own_part(&mut self, job: &mut EncodeContext, part: u32, body: Body) {
        if !job.passed.own {
            return;
        }
        match self.items.open_own(job, part, body) {
            (_, Some(place)) => _ = self.places.insert(part, place),
            (item, None) => _ = self.bare.insert(part, item),
        }
    }

    /// A piece of a text; the first one opens its item.
    #[inline]
    fn told(&mut self, job: &mut EncodeContext, delta: Delta<'_>, body: impl FnOnce() -> Body) {
        if delta.text.is_empty() {
            return;
        }
        let place = match self.places.get(&delta.part) {
            Some(place) => *place,
            None => self.begin(job, delta.part, body()),
        };
        self.items.delta(job, place, delta.text);
    }

    /// What the close of a text has beyond what was streamed; where it says something else, the item's close says that.
    fn rest(
        &mut self,
        job: &mut EncodeContext,
        part: u32,
        text: &str,
        body: impl FnOnce() -> Body,
    ) -> Option<usize> {
        let place = match self.places.get(&part) {
            Some(place) => *place,
            None if text.is_empty() => {
                // An empty part is nothing to read.
                if let Some(item) = self.bare.get(&part).copied() {
                    self.bare.remove(&part);
                    self.items.drop_bare(item, part);
                }
                return None;
            }
            None => self.begin(job, part, body()),
        };
        self.items.settle(job, place, text);
        Some(place)
    }

    fn cite(&mut self, job: &mut EncodeContext, place: Option<usize>, annotations: Option<&str>) {
        if annotations.is_some_and(|list| self.items.cite_all(job, place, list)) {
            job.losses.note("sources");
        }
    }

    /// The part is over; not where it only ends because the input was cut.
    fn done(&mut self, job: &mut EncodeContext, place: Option<usize>) {
        if let Some(place) = place.filter(|_| !job.cut) {
            self.items.close(job, place, true);
        }
    }

    /// A call that opens is begun if all of its head is known and its reader is to run it.
    fn start(&mut self, job: &mut EncodeContext, event: &Event<'_>) {
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
        if job.opens(call_id, name) && !provider_executed {
            self.items.leave(job, None, true);
            let sent = (item_id.filter(|_| job.passed.own), job.passed.index);
            self.begin_call(job, part, Body::call(custom, call_id, name), sent);
        }
    }

    fn begin_call(
        &mut self,
        job: &mut EncodeContext,
        part: u32,
        body: Body,
        sent: (Option<&str>, Option<i64>),
    ) -> usize {
        let added = sent.1.and_then(|_| as_added(job, body.kind()).0);
        let place = self.items.open(job, part, body, sent, added);
        self.places.insert(part, place);
        place
    }

    fn call(&mut self, job: &mut EncodeContext, call: &Call<'_>, item_id: Option<&str>) {
        job.takes(call.call_id);
        let Some(place) = self.places.get(&call.part).copied() else {
            return self.call_at_once(job, call, item_id);
        };
        let Some(item) = self.items.get_mut(place) else {
            return;
        };
        let kept = item.is_call(call.custom, call.call_id, call.name) && !call.provider_executed;
        if !kept {
            return self.give_up(job);
        }
        if call.refused {
            job.losses.note("refused_call");
        }
        let text = if job.passed.closed.contains(&call.part) && item.text.is_empty() {
            Cow::Borrowed(call.arguments) // it was told to be empty
        } else {
            call.text_behind(&item.text)
        };
        let restated = call.is_whole() && !call.custom && !text.starts_with(&item.text);
        if restated && is_same(&item.text, &text) {
            job.losses.note("arguments_spelling");
        } else {
            item.reset = false;
            self.items.settle(job, place, &text);
        }
        self.leave(job, place, call);
    }

    /// A call of which nothing went out.
    fn call_at_once(&mut self, job: &mut EncodeContext, call: &Call<'_>, item_id: Option<&str>) {
        if call.provider_executed {
            return job.losses.note("server_tool");
        }
        if call.is_nameless() {
            return job.losses.note("nameless_call");
        }
        let body = Body::call(call.custom, call.call_id, call.name);
        if call.refused {
            job.losses.note("refused_call");
        }
        self.items.leave(job, None, true);
        let sent = (item_id.filter(|_| job.passed.own), None);
        let place = self.begin_call(job, call.part, body, sent);
        let text = if job.passed.closed.contains(&call.part) {
            Cow::Borrowed(call.arguments)
        } else {
            call.text_behind("")
        };
        self.items.settle(job, place, &text);
        self.leave(job, place, call);
    }

    /// A whole call closes; any other stays open until the end, which says it is incomplete.
    fn leave(&mut self, job: &mut EncodeContext, place: usize, call: &Call<'_>) {
        if call.is_whole() {
            self.called = true;
            return self.items.close(job, place, true);
        }
        let why = if call.is_cut() {
            "stream_truncated"
        } else {
            "invalid_tool_call"
        };
        self.left.push((call.part, why));
    }

    /// What was passed on does not hold.
    fn give_up(&mut self, job: &mut EncodeContext) {
        job.broken = true;
        self.end(job, Some(EndingError::named("contradicted")));
    }
}
