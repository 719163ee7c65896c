//! Wire deltas to events: parts, tool calls, the end of a stream. Placeholder: conformant streams only.
//!
//! Knows no dialect and no JSON framing of chunks. Every method is one wire delta of a decoder.

use crate::config::Config;
use crate::delta::{Completeness, Fragment, Message, Rest};
use crate::event::{Delta, Event, Opened, Sink, Usage};
use crate::fault::{Fault, Where};
use crate::json::{Automaton, Status, Surrogates, Text};
use crate::out::Out;
use crate::spec::Code;

type Step = Result<(), Fault>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Channel {
    Text,
    Reasoning,
    Refusal,
}

#[derive(Debug)]
struct TextPart {
    part: u32,
    channel: Channel,
    text: String,
    open: bool,
    half: Surrogates,
    deltas: u32,
}

#[derive(Debug)]
struct Call {
    part: u32,
    index: Option<u32>,
    id: Option<String>,
    name: String,
    arguments: String,
    automaton: Automaton,
    started: bool,
}

#[derive(Debug, Default)]
struct Choice {
    index: i32,
    texts: Vec<TextPart>,
    calls: Vec<Call>,
    finish: Option<String>,
    closed: bool,
}

#[derive(Debug, Default)]
struct OwnedUsage {
    numbers: [Option<i64>; 6],
    raw: Option<String>,
}

/// Id, model, created, metadata.
type Started = (Option<String>, Option<String>, Option<i64>, Option<String>);

/// The parts and calls of one stream.
#[derive(Debug, Default)]
pub struct Assembler {
    choices: Vec<Choice>,
    next_part: u32,
    started: Option<Started>,
    usage: Option<OwnedUsage>,
    done: bool,
    ended: bool,
    completeness: Completeness,
}

impl Assembler {
    pub fn new(_config: &Config) -> Assembler {
        Assembler::default()
    }

    /// The first chunk: what the response calls itself.
    pub fn started(
        &mut self,
        out: &mut Out<'_>,
        id: Option<&str>,
        model: Option<&str>,
        created: Option<i64>,
        metadata: Option<&str>,
    ) -> Step {
        let own = |text: Option<&str>| text.map(str::to_owned);
        self.started = Some((own(id), own(model), created, own(metadata)));
        out.emit(&Event::ResponseStarted {
            id,
            model,
            created,
            metadata,
        });
        Ok(())
    }

    fn choice(&mut self, index: i32) -> &mut Choice {
        let at = self.choices.iter().position(|choice| choice.index == index);
        let at = at.unwrap_or(self.choices.len());
        if at == self.choices.len() {
            self.choices.push(Choice {
                index,
                ..Choice::default()
            });
        }
        // The fallback is unreachable: the place was just found or filled.
        #[allow(clippy::indexing_slicing)]
        &mut self.choices[at]
    }

    /// A piece of text.
    pub fn text(
        &mut self,
        out: &mut Out<'_>,
        choice: i32,
        text: Text<'_>,
        metadata: Option<&str>,
    ) -> Step {
        self.textual(out, choice, Channel::Text, text, metadata)
    }

    /// A piece of reasoning.
    pub fn reasoning(
        &mut self,
        out: &mut Out<'_>,
        choice: i32,
        _kind: &'static str,
        text: Text<'_>,
        metadata: Option<&str>,
    ) -> Step {
        self.textual(out, choice, Channel::Reasoning, text, metadata)
    }

    /// A piece of a refusal.
    pub fn refusal(
        &mut self,
        out: &mut Out<'_>,
        choice: i32,
        text: Text<'_>,
        metadata: Option<&str>,
    ) -> Step {
        self.textual(out, choice, Channel::Refusal, text, metadata)
    }

    fn textual(
        &mut self,
        out: &mut Out<'_>,
        index: i32,
        channel: Channel,
        text: Text<'_>,
        metadata: Option<&str>,
    ) -> Step {
        if text.is_empty() {
            return Ok(());
        }
        let next_part = self.next_part;
        let choice = self.choice(index);
        let mut opened = false;
        if !choice
            .texts
            .last()
            .is_some_and(|part| part.open && part.channel == channel)
        {
            close_text(choice, out);
            choice.texts.push(TextPart {
                part: next_part,
                channel,
                text: String::new(),
                open: true,
                half: Surrogates::default(),
                deltas: 0,
            });
            opened = true;
            match channel {
                Channel::Text => out.emit(&Event::TextStarted(Opened {
                    part: next_part,
                    item_id: None,
                    choice: index,
                    metadata: None,
                })),
                Channel::Reasoning => out.emit(&Event::ReasoningStarted {
                    part: next_part,
                    kind: "raw",
                    item_id: None,
                    choice: index,
                    metadata: None,
                }),
                Channel::Refusal => out.emit(&Event::RefusalStarted(crate::event::Mark {
                    part: next_part,
                    choice: index,
                    metadata: None,
                })),
            }
        }
        if let Some(part) = choice.texts.last_mut() {
            let (text, _) = part.half.join(text);
            part.text.push_str(&text);
            part.deltas += 1;
            let delta = Delta {
                part: part.part,
                text: &text,
                choice: index,
                metadata,
            };
            if !text.is_empty() {
                out.emit(&match channel {
                    Channel::Text => Event::TextDelta(delta),
                    Channel::Reasoning => Event::ReasoningDelta(delta),
                    Channel::Refusal => Event::RefusalDelta(delta),
                });
            }
        }
        self.next_part += u32::from(opened);
        Ok(())
    }

    /// Whether the text is the whole of what the choice said in two pieces or more (AM9).
    pub fn restates(&self, choice: i32, text: &Text<'_>) -> bool {
        self.choices
            .iter()
            .filter(|known| known.index == choice)
            .any(|known| {
                known.texts.iter().any(|part| {
                    part.channel == Channel::Text && part.deltas > 1 && part.text == text.body
                })
            })
    }

    /// Attributes of the open or the next reasoning part of the choice. `details` is the text of a JSON array.
    pub fn reasoning_attributes(
        &mut self,
        _out: &mut Out<'_>,
        _choice: i32,
        _signature: Option<&str>,
        _encrypted_content: Option<&str>,
        _details: Option<&str>,
    ) -> Step {
        Ok(())
    }

    /// Annotations of the choice's text: the text of a JSON array.
    pub fn annotations(&mut self, _out: &mut Out<'_>, _choice: i32, _list: &str) -> Step {
        Ok(())
    }

    /// A file or image.
    pub fn file(
        &mut self,
        out: &mut Out<'_>,
        choice: i32,
        media_type: Option<&str>,
        data: Option<&str>,
        url: Option<&str>,
        metadata: Option<&str>,
    ) -> Step {
        let part = self.next_part;
        self.next_part += 1;
        out.emit(&Event::File {
            part,
            media_type,
            data,
            url,
            choice,
            metadata,
        });
        Ok(())
    }

    /// One entry of a list of tool-call deltas.
    pub fn call(&mut self, out: &mut Out<'_>, index: i32, fragment: &Fragment<'_>) -> Step {
        let next_part = self.next_part;
        let choice = self.choice(index);
        close_text(choice, out);
        let known = choice
            .calls
            .iter()
            .position(|call| call.index == fragment.index);
        let mut created = false;
        if known.is_none() {
            created = true;
            choice.calls.push(Call {
                part: next_part,
                index: fragment.index,
                id: None,
                name: String::new(),
                arguments: String::new(),
                automaton: Automaton::new(),
                started: false,
            });
        }
        let known = known.unwrap_or(choice.calls.len().saturating_sub(1));
        if let Some(call) = choice.calls.get_mut(known) {
            if call.id.is_none() {
                call.id = fragment.id.as_deref().map(str::to_owned);
            }
            if call.name.is_empty() {
                call.name
                    .push_str(fragment.name.as_deref().unwrap_or_default());
            }
            let piece = fragment.arguments.as_ref().map_or("", |text| &text.body);
            if !piece.is_empty() {
                start(call, index, out);
                call.arguments.push_str(piece);
                call.automaton.feed(piece.as_bytes());
                let delta = Delta {
                    part: call.part,
                    text: piece,
                    choice: index,
                    metadata: None,
                };
                out.emit(&Event::ToolCallDelta(delta));
            }
        }
        self.next_part += u32::from(created);
        Ok(())
    }

    /// A whole message: reconciles with what was streamed, never appends.
    pub fn message(&mut self, out: &mut Out<'_>, index: i32, message: Message<'_>) -> Step {
        let choice = self.choice(index);
        let (texts, calls) = (choice.texts.is_empty(), choice.calls.is_empty());
        if texts {
            if let Some(text) = message.reasoning {
                self.reasoning(out, index, "raw", text, None)?;
            }
            if let Some(text) = message.content {
                self.text(out, index, text, None)?;
            }
            if let Some(text) = message.refusal {
                self.refusal(out, index, text, None)?;
            }
        }
        if calls {
            for (position, mut fragment) in message.fragments.into_iter().enumerate() {
                fragment.index = fragment.index.or(u32::try_from(position).ok());
                self.call(out, index, &fragment)?;
            }
        }
        Ok(())
    }

    /// What the choice showed as its open text was reasoning.
    pub fn retype_text(&mut self, _out: &mut Out<'_>, index: i32) -> Step {
        if let Some(part) = self.choice(index).texts.last_mut() {
            part.channel = Channel::Reasoning;
        }
        Ok(())
    }

    /// Members that no event could carry: they go to the choice's `Finished`.
    pub fn choice_metadata(&mut self, _out: &mut Out<'_>, _choice: i32, _metadata: &str) -> Step {
        Ok(())
    }

    /// The choice said why it ended.
    pub fn finish(
        &mut self,
        _out: &mut Out<'_>,
        choice: i32,
        raw_reason: &str,
        _reason: Option<&'static str>,
    ) -> Step {
        let choice = self.choice(choice);
        choice.finish.get_or_insert_with(|| raw_reason.to_owned());
        Ok(())
    }

    /// Token counts; the last that are not all zero hold.
    pub fn usage(&mut self, _out: &mut Out<'_>, usage: Usage<'_>) -> Step {
        let numbers = [
            usage.input_tokens,
            usage.output_tokens,
            usage.total_tokens,
            usage.cached_input_tokens,
            usage.cache_write_tokens,
            usage.reasoning_tokens,
        ];
        if self.usage.is_none() || numbers.iter().flatten().any(|number| *number != 0) {
            self.usage = Some(OwnedUsage {
                numbers,
                raw: usage.raw.map(str::to_owned),
            });
        }
        Ok(())
    }

    /// The gateway sent an error: everything closes.
    pub fn upstream_error(
        &mut self,
        out: &mut Out<'_>,
        code: Option<&str>,
        kind: Option<&str>,
        message: &str,
        raw: &[u8],
    ) -> Step {
        self.close(out);
        self.completeness = Completeness::Truncated;
        out.emit(&Event::UpstreamError {
            code,
            kind,
            message,
            raw,
        });
        if out.config.policy.raises(Code::UPSTREAM_ERROR) {
            let own = |text: Option<&str>| text.map(str::to_owned);
            return Err(Fault::upstream(
                own(code),
                own(kind),
                message.to_owned(),
                raw.to_vec(),
            ));
        }
        out.diagnose(Code::UPSTREAM_ERROR, None, "")
    }

    /// A payload or a member that nobody knows.
    pub fn unknown(&mut self, out: &mut Out<'_>, event: Option<&str>, raw: &[u8]) -> Step {
        out.emit(&Event::Unknown { event, raw });
        Ok(())
    }

    /// The choice starts again from nothing (AM10).
    pub fn restart(&mut self, out: &mut Out<'_>, choice: i32) -> Step {
        out.diagnose(Code::STREAM_RESTARTED, None, "")?;
        let choice = self.choice(choice);
        choice.texts.clear();
        choice.calls.clear();
        Ok(())
    }

    /// The terminal marker: everything closes.
    pub fn done(&mut self, out: &mut Out<'_>) -> Step {
        self.done = true;
        self.close(out);
        self.completeness = Completeness::Complete;
        Ok(())
    }

    /// The end of the input.
    pub fn end(&mut self, out: &mut Out<'_>, rest: Rest) -> Step {
        if self.ended {
            return Ok(());
        }
        let finished =
            !self.choices.is_empty() && self.choices.iter().all(|choice| choice.finish.is_some());
        if finished {
            self.completeness = Completeness::Assumed;
            if rest != Rest::Nothing {
                out.diagnose(Code::PARTIAL_EVENT_DROPPED, None, "")?;
            }
            out.diagnose(Code::NO_TERMINAL_MARKER, None, "")?;
            self.close(out);
            return Ok(());
        }
        self.completeness = Completeness::Truncated;
        let parts = self.choices.iter().flat_map(|choice| {
            let texts = choice
                .texts
                .iter()
                .filter(|part| part.open)
                .map(|part| part.part);
            texts.chain(choice.calls.iter().map(|call| call.part))
        });
        let open: Vec<u32> = parts.collect();
        let place = match rest {
            Rest::Empty => Where::Empty,
            Rest::MidEvent => Where::MidEvent,
            Rest::MidUtf8 => Where::MidUtf8,
            Rest::Nothing => Where::BetweenEvents,
        };
        self.close(out);
        if out.config.policy.raises(Code::TRUNCATED) {
            return Err(Fault::truncated(place, open));
        }
        out.diagnose(Code::TRUNCATED, None, place.name())
    }

    fn close(&mut self, out: &mut Out<'_>) {
        if self.ended {
            return;
        }
        self.ended = true;
        self.choices.sort_by_key(|choice| choice.index);
        for choice in &mut self.choices {
            close_text(choice, out);
            choice.closed = true;
            let index = choice.index;
            for call in &mut choice.calls {
                start(call, index, out);
            }
            emit_calls(choice, out);
        }
        if let Some(usage) = &self.usage {
            emit_usage(usage, |event| out.emit(event));
        }
        for choice in &self.choices {
            if choice.finish.is_some() || self.done {
                emit_finish(choice, |event| out.emit(event));
            }
        }
    }

    pub fn completeness(&self) -> Completeness {
        self.completeness
    }

    /// The close events that rebuild the answer.
    pub fn snapshot(&self, sink: &mut dyn Sink) {
        if let Some((id, model, created, metadata)) = &self.started {
            sink.event(&Event::ResponseStarted {
                id: id.as_deref(),
                model: model.as_deref(),
                created: *created,
                metadata: metadata.as_deref(),
            });
        }
        let mut parts: Vec<(u32, Event<'_>)> = Vec::new();
        for choice in &self.choices {
            parts.extend(
                choice
                    .texts
                    .iter()
                    .map(|part| (part.part, text_done(part, choice.index))),
            );
            parts.extend(
                choice
                    .calls
                    .iter()
                    .map(|call| (call.part, call_event(call, choice))),
            );
        }
        parts.sort_by_key(|(part, _)| *part);
        for (_, event) in &parts {
            sink.event(event);
        }
        if let Some(usage) = &self.usage {
            emit_usage(usage, |event| sink.event(event));
        }
        for choice in &self.choices {
            if choice.finish.is_some() || self.done {
                emit_finish(choice, |event| sink.event(event));
            }
        }
    }
}

fn start(call: &mut Call, choice: i32, out: &mut Out<'_>) {
    if !call.started {
        call.started = true;
        out.emit(&Event::ToolCallStarted {
            part: call.part,
            call_id: call.id.as_deref(),
            item_id: None,
            name: &call.name,
            choice,
            metadata: None,
        });
    }
}

fn close_text(choice: &mut Choice, out: &mut Out<'_>) {
    let index = choice.index;
    if let Some(part) = choice.texts.last_mut().filter(|part| part.open) {
        part.open = false;
        out.emit(&text_done(part, index));
    }
}

fn text_done(part: &TextPart, choice: i32) -> Event<'_> {
    let done = Delta {
        part: part.part,
        text: &part.text,
        choice,
        metadata: None,
    };
    match part.channel {
        Channel::Text => Event::TextDone {
            part: part.part,
            text: &part.text,
            annotations: None,
            choice,
            metadata: None,
        },
        Channel::Reasoning => Event::ReasoningDone {
            part: part.part,
            text: &part.text,
            kind: "raw",
            item_id: None,
            signature: None,
            encrypted_content: None,
            choice,
            metadata: None,
        },
        Channel::Refusal => Event::RefusalDone(done),
    }
}

fn call_event<'a>(call: &'a Call, choice: &Choice) -> Event<'a> {
    let state = match call.automaton.finish() {
        _ if !choice.closed => "open",
        Status::Complete => "complete",
        _ if call.arguments.is_empty() => "empty",
        Status::Prefix => "incomplete",
        Status::Broken { .. } => "invalid",
    };
    Event::ToolCall {
        part: call.part,
        call_id: call.id.as_deref().unwrap_or_default(),
        name: &call.name,
        arguments: &call.arguments,
        state,
        item_id: None,
        reason: None,
        raw_arguments: None,
        provider_executed: false,
        aliases: &[],
        choice: choice.index,
        metadata: None,
    }
}

fn emit_calls(choice: &Choice, out: &mut Out<'_>) {
    for call in &choice.calls {
        out.emit(&call_event(call, choice));
    }
}

fn emit_usage(usage: &OwnedUsage, mut emit: impl FnMut(&Event<'_>)) {
    let [
        input_tokens,
        output_tokens,
        total_tokens,
        cached_input_tokens,
        cache_write_tokens,
        reasoning_tokens,
    ] = usage.numbers;
    emit(&Event::Usage(Usage {
        input_tokens,
        output_tokens,
        total_tokens,
        cached_input_tokens,
        cache_write_tokens,
        reasoning_tokens,
        raw: usage.raw.as_deref(),
    }));
}

fn emit_finish(choice: &Choice, mut emit: impl FnMut(&Event<'_>)) {
    let reason = if choice.calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    emit(&Event::Finished {
        reason,
        raw_reason: choice.finish.as_deref(),
        choice: choice.index,
        metadata: None,
    });
}
