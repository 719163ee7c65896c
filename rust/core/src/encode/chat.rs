//! Writes Chat Completions chunks.
//!
//! Every choice in its own order, calls under dense indexes; deltas cannot be taken back, so that what contradicts them ends
//! the stream with an error. Knows no other dialect. The frames are those of `chat.completion.chunk`.
//!
//! The calls of a Chat Completions stream: head, pieces of the arguments, and what the close says of both.
//!
//! Knows when a call can be begun before it is whole, and when its close contradicts what went out.

use crate::encode::common::citations::citations;
use crate::encode::common::encode_context::Call;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::encoder::Encoder;
use crate::encode::common::finish;
use crate::encode::common::finish::EndingError;
use crate::encode::common::same_json::is_same;
use crate::encode::common::usage::Counts;
use crate::encode::common::writer::Writer;
use crate::json::Kind;
use crate::json::members::Document;
use crate::json::members::document;
use crate::json::members::integer;
use crate::model::event::Delta;
use crate::model::event::Event;
use crate::model::small_map::List;
use crate::model::small_map::Map;
use crate::model::small_map::Numbered;
use crate::model::small_map::Set;
use crate::sse::decode_utf8;
use std::borrow::Cow;

const NAME: &str = "chat";
pub(crate) const LAST: &str = ",\"finish_reason\":null}]}";

/// One stream of chunks.
#[derive(Debug, Default)]
pub(crate) struct Chat {
    /// The beginning of every chunk, up to its choices.
    head: String,
    /// In order of first sight.
    choices: List<Choice>,
    /// What was written of parts that are open.
    pub(crate) parts: Map<u32, ChatPart>,
}

#[derive(Debug, Default)]
pub(crate) struct Choice {
    index: i32,
    finish: Option<Finish>,
    /// Of its texts, as JSON.
    citations: String,
    /// How many carriers of reasoning were written.
    carriers: i64,
    /// Ids of the calls that were written, and that nothing in the stream answered: its reader is to run them.
    pub(crate) waiting: Set<String>,
    /// The index of the next call, above all that were begun; -1 before the choice itself is.
    pub(crate) next: i64,
    /// How many calls were begun, and their indexes where they are the source's own.
    pub(crate) written: usize,
    pub(crate) indexes: Set<i64>,
    /// Parts of calls that wait until they are whole: no later call is written before them.
    behind: Set<u32>,
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
pub(crate) struct ChatPart {
    pub(crate) told: String,
    pub(crate) call: Option<Begun>,
}

impl Encoder for Chat {
    fn event(&mut self, job: &mut EncodeContext, event: &Event<'_>) {
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
                match signature.filter(|_| job.carries()) {
                    Some(carrier) => self.carry(job, choice, carrier),
                    None => job.sealed(kind, text, signature, encrypted_content),
                }
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
            Event::ToolCallRetracted(mark) => {
                self.choice(choice).behind.remove(&mark.part);
                if self.begun(mark.part).is_some() {
                    self.give_up(job);
                }
            }
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
        let is_reset = |part: &&mut ChatPart| part.call.as_ref().is_some_and(|begun| begun.reset);
        let part = part.filter(|part| !is_reset(part));
        part.map(|part| part.told.push_str(piece.text)).is_some()
    }

    fn role(&mut self, job: &mut EncodeContext, choice: i32) {
        let to = self.begin_chunk(job, choice);
        to.raw("{\"role\":\"assistant\"}").raw(LAST).end();
    }

    fn end(&mut self, job: &mut EncodeContext, trouble: Option<EndingError>) {
        match trouble.map_or_else(|| self.words(), Err) {
            Ok(words) => self.finish(job, &words),
            Err(trouble) => fail(job, &trouble),
        }
    }
}

impl Chat {
    pub(crate) fn choice(&mut self, index: i32) -> &mut Choice {
        self.choices.slot(index, || Choice {
            index,
            next: -1,
            ..Choice::default()
        })
    }

    /// The first chunk of a choice says who speaks.
    #[inline]
    fn open(&mut self, job: &mut EncodeContext, index: i32) {
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
    pub(crate) fn begin_chunk<'j>(
        &mut self,
        job: &'j mut EncodeContext,
        index: i32,
    ) -> &'j mut Writer {
        if self.head.is_empty() {
            self.head = head(job);
        }
        let to = job.writer.data().raw(&self.head);
        to.raw("[{\"index\":")
            .number(i64::from(index))
            .raw(",\"delta\":")
    }

    /// A piece of a text.
    fn told(&mut self, job: &mut EncodeContext, member: &str, delta: Delta<'_>) {
        if delta.text.is_empty() {
            return;
        }
        self.parts.slot(delta.part).told.push_str(delta.text);
        let to = self.begin_chunk(job, delta.choice);
        to.raw("{\"").raw(member).raw("\":").string(delta.text);
        to.raw("}").raw(LAST).end();
    }

    /// What the close of a text has beyond what was streamed. A close that says something else cannot be written.
    fn rest(
        &mut self,
        job: &mut EncodeContext,
        member: &str,
        (part, choice): (u32, i32),
        text: &str,
    ) {
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

    /// A carrier of reasoning, in the member whose entries clients return as they are:
    /// <https://openrouter.ai/docs/use-cases/reasoning-tokens>.
    fn carry(&mut self, job: &mut EncodeContext, index: i32, carrier: &str) {
        let choice = self.choice(index);
        let place = choice.carriers;
        choice.carriers += 1;
        let to = self.begin_chunk(job, index);
        to.raw("{\"reasoning_details\":[{\"type\":\"reasoning.encrypted\",\"data\":");
        to.string(carrier).raw(",\"format\":\"unknown\",\"index\":");
        to.number(place).raw("}]}").raw(LAST).end();
    }

    /// Keeps what every client has a type for: @ai-sdk/openai refuses a citation without its place in the text.
    fn cite(&mut self, job: &mut EncodeContext, choice: i32, annotations: &str) {
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
    pub(crate) fn give_up(&mut self, job: &mut EncodeContext) {
        job.broken = true;
        fail(job, &EndingError::named("contradicted"));
    }

    /// The finish word of every choice, in order; or why there is none.
    fn words(&mut self) -> Result<Vec<(i32, String)>, EndingError> {
        self.choices.sort_by_key(|choice| choice.index);
        let mut words = Vec::with_capacity(self.choices.len());
        let mut lacks_word = false;
        for choice in self.choices.iter_mut() {
            let finish = choice.finish.take();
            let finish = finish.ok_or_else(|| EndingError::named("TruncatedStream"))?;
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
            return Err(EndingError::named("finish"));
        }
        if words.is_empty() {
            return Err(EndingError::named("TruncatedStream"));
        }
        Ok(words)
    }

    fn finish(&mut self, job: &mut EncodeContext, words: &[(i32, String)]) {
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

/// Adds the id, model and time of the current chunk where the first one left them blank (Azure).
fn complete(job: &mut EncodeContext) {
    let answer = &mut job.answer;
    if answer.id.is_some() && answer.model.is_some() {
        return;
    }
    let (text, _) = decode_utf8(&job.passed.payload);
    let Ok(Document::Object(chunk)) = document(&text, None) else {
        return;
    };
    let word = |name| chunk.string(name).filter(|word| !word.trim().is_empty());
    if answer.id.is_none() {
        answer.id = word("id").map(Cow::into_owned);
    }
    if answer.model.is_none() {
        answer.model = word("model").map(Cow::into_owned);
    }
    if answer.created.is_none_or(|created| created == 0) {
        let created = chunk.get("created");
        let created = created.filter(|raw| raw.kind == Kind::Number);
        answer.created = created.and_then(integer).or(answer.created);
    }
}

/// The beginning of every chunk: what is known of the answer.
fn head(job: &mut EncodeContext) -> String {
    if job.passed.own {
        complete(job);
    }
    let id = job.answer.id.take();
    let id = id.unwrap_or_else(|| job.mint.make("chatcmpl"));
    let mut head = Writer::default();
    head.raw("{\"id\":").string(&id);
    head.raw(",\"object\":\"chat.completion.chunk\",\"created\":");
    head.number(job.answer.created.unwrap_or(job.options.created));
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

fn fail(job: &mut EncodeContext, trouble: &EndingError) {
    let to = job.writer.data();
    to.raw("{\"error\":{\"message\":").string(&trouble.message);
    to.raw(",\"type\":").string(&trouble.kind);
    to.raw(",\"code\":").string(&trouble.code);
    if let Some(sent) = &trouble.sent {
        to.raw(",\"detail\":").string(sent);
    }
    to.raw("}}").end();
}

/// A call of which the id and the name went out.
#[derive(Debug)]
pub(crate) struct Begun {
    index: i64,
    /// Free-form text, as only this dialect's own readers know it.
    custom: bool,
    call_id: String,
    name: String,
    /// The source took its text back: its last word decides.
    pub(crate) reset: bool,
}

impl Chat {
    /// A call that opens is begun if all of its head is known and its reader is to run it.
    pub(crate) fn start(&mut self, job: &mut EncodeContext, event: &Event<'_>) {
        let Event::ToolCallStarted {
            part,
            call_id,
            name,
            provider_executed,
            custom,
            choice,
            ..
        } = *event
        else {
            return;
        };
        let opens = call_id.is_some_and(|call_id| job.opens(call_id, name));
        if provider_executed {
            return;
        }
        let foreign = custom && !job.passed.own;
        let behind = &mut self.choice(choice).behind;
        let Some(call_id) = call_id.filter(|_| opens && !foreign && behind.is_empty()) else {
            behind.insert(part);
            return;
        };
        {
            let sent = job.passed.index;
            let begun = self.begin(job, choice, (call_id, name, custom), "", sent);
            self.parts.slot(part).call = Some(begun);
        }
    }

    pub(crate) fn begun(&mut self, part: u32) -> Option<&mut Begun> {
        self.parts.get_mut(&part)?.call.as_mut()
    }

    fn begin(
        &mut self,
        job: &mut EncodeContext,
        index: i32,
        (call_id, name, custom): (&str, &str, bool),
        arguments: &str,
        sent: Option<i64>,
    ) -> Begun {
        let choice = self.choice(index);
        let sent = sent.filter(|sent| *sent >= 0 && !choice.indexes.contains(sent));
        let place = sent.unwrap_or(choice.next);
        choice.indexes.insert(place);
        choice.next = choice.next.max(place + 1);
        choice.written += 1;
        choice.waiting.insert(call_id.to_owned());
        let to = self.begin_chunk(job, index);
        to.raw("{\"tool_calls\":[{\"index\":").number(place);
        to.raw(",\"id\":").string(call_id);
        let (kind, text) = names(custom);
        to.raw(",\"type\":\"").raw(kind).raw("\",\"").raw(kind);
        to.raw("\":{\"name\":")
            .string(name)
            .raw(",")
            .raw(text)
            .string(arguments);
        to.raw("}}]}").raw(LAST).end();
        Begun {
            index: place,
            custom,
            call_id: call_id.to_owned(),
            name: name.to_owned(),
            reset: false,
        }
    }

    pub(crate) fn arguments(&mut self, job: &mut EncodeContext, delta: Delta<'_>) {
        let Some(part) = self.parts.get_mut(&delta.part) else {
            return;
        };
        let Some(begun) = part.call.as_ref().filter(|begun| !begun.reset) else {
            return;
        };
        let place = (delta.choice, begun.index, begun.custom);
        part.told.push_str(delta.text);
        self.piece(job, place, delta.text);
    }

    fn piece(
        &mut self,
        job: &mut EncodeContext,
        (choice, index, custom): (i32, i64, bool),
        text: &str,
    ) {
        if text.is_empty() {
            return;
        }
        let to = self.begin_chunk(job, choice);
        to.raw("{\"tool_calls\":[{\"index\":").number(index);
        let (kind, member) = names(custom);
        to.raw(",\"").raw(kind).raw("\":{").raw(member).string(text);
        to.raw("}}]}").raw(LAST).end();
    }

    pub(crate) fn call(&mut self, job: &mut EncodeContext, event: &Event<'_>) {
        let Some(call) = &Call::of(event) else {
            return;
        };
        job.takes(call.call_id);
        self.choice(call.choice).behind.remove(&call.part);
        let part = self.parts.get_mut(&call.part).map(std::mem::take);
        self.parts.remove(&call.part);
        match part.and_then(|part| Some((part.told, part.call?))) {
            Some((told, begun)) => self.end_call(job, call, &told, &begun),
            None if job.writes(call) => {
                let own = call.custom && job.passed.own;
                if call.custom && !own {
                    job.losses.note("custom_call");
                }
                if call.refused {
                    job.losses.note("refused_call");
                }
                let head = (call.call_id, call.name, own);
                let text = if own {
                    call.text_behind("")
                } else {
                    call.object_text()
                };
                self.begin(job, call.choice, head, &text, None);
            }
            None => {}
        }
    }

    /// What of a call is still to be written.
    fn end_call(&mut self, job: &mut EncodeContext, call: &Call<'_>, told: &str, begun: &Begun) {
        let kept = begun.call_id == call.call_id && begun.name == call.name;
        if call.is_whole() && (!kept || call.provider_executed || call.custom != begun.custom) {
            return self.give_up(job);
        }
        if call.refused {
            job.losses.note("refused_call");
        }
        let text = call.text_behind(told);
        match text.strip_prefix(told) {
            Some(rest) => self.piece(job, (call.choice, begun.index, begun.custom), rest),
            // Cut, or no JSON: what was passed on is what there is.
            None if !call.is_whole() => {}
            None if !call.custom && is_same(told, &text) => job.losses.note("arguments_spelling"),
            None => self.give_up(job),
        }
    }
}

/// The type of an entry, and the member that its text has behind the name.
fn names(custom: bool) -> (&'static str, &'static str) {
    if custom {
        ("custom", "\"input\":")
    } else {
        ("function", "\"arguments\":")
    }
}
