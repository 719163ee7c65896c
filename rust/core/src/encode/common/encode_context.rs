//! The state that every encoder works with: the writer, ids, losses, the caller's options, facts about the answer.
//!
//! Also the checks of tool calls that all encoders share. Contains nothing specific to one dialect.

use crate::encode::common::finish;
use crate::encode::common::id_mint::IdMint;
use crate::encode::common::losses::Losses;
use crate::encode::common::passed_through::PassedThrough;
use crate::encode::common::usage::Counts;
use crate::encode::common::writer::Writer;
use crate::model::event::Event;
use crate::model::small_map::Set;
use std::borrow::Cow;

/// What a caller may decide of the writing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Goes into every id that is made.
    pub prefix: String,
    /// When the answer was created, in seconds since 1970, if the source does not state it: the core has no clock.
    pub created: i64,
    /// Nothing of a tool call is written before it is whole.
    pub hold_arguments: bool,
    /// Chat Completions only: the last chunk with the usage.
    pub include_usage: bool,
    /// Responses only: reasoning text has the event names of OpenResponses.
    pub openresponses: bool,
    /// A cut is the error of Responses, too, and not a response that is incomplete.
    pub cut_is_error: bool,
    /// Signed and encrypted reasoning goes out as an opaque carrier that the client returns.
    pub carry_reasoning: bool,
}

/// What the source said of the answer as a whole.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) id: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) created: Option<i64>,
    /// The last one that was told.
    pub(crate) usage: Option<Counts>,
}

/// One stream, as an encoder sees it.
#[derive(Debug)]
pub(crate) struct EncodeContext {
    pub(crate) writer: Writer,
    pub(crate) mint: IdMint,
    pub(crate) losses: Losses,
    pub(crate) passed: PassedThrough,
    pub(crate) options: Options,
    /// The dialect that is read; known when the first event comes.
    pub(crate) source: &'static str,
    pub(crate) answer: Answer,
    /// The input was cut: what closes now closes only because of that.
    pub(crate) cut: bool,
    /// What went out cannot be mended: the error is written, and nothing follows it.
    pub(crate) broken: bool,
    /// Ids of calls of earlier turns: a call that comes with one of them gets another id when it is whole.
    known: Set<String>,
    /// Likewise, of calls of this answer.
    taken: Set<String>,
    /// Choices with a call of the client's that was cut.
    unfinished: Set<i32>,
}

impl EncodeContext {
    pub(crate) fn new(mut options: Options, known_call_ids: &[String]) -> EncodeContext {
        EncodeContext {
            writer: Writer::default(),
            mint: IdMint::new(std::mem::take(&mut options.prefix)),
            losses: Losses::default(),
            passed: PassedThrough {
                sequence: Some(0),
                ..PassedThrough::default()
            },
            options,
            source: "",
            answer: Answer::default(),
            cut: false,
            broken: false,
            known: known_call_ids.iter().cloned().collect(),
            taken: Set::default(),
            unfinished: Set::default(),
        }
    }

    /// The event to encode instead, if any: a finish reason that the source did not send must not make a client run a
    /// truncated call.
    pub(crate) fn as_written<'e>(&mut self, event: &Event<'e>) -> Option<Event<'e>> {
        match *event {
            Event::ToolCall {
                state: "incomplete",
                provider_executed: false,
                choice,
                ..
            } => {
                self.unfinished.insert(choice);
                None
            }
            Event::Finished {
                raw_reason: None,
                choice,
                metadata,
                ..
            } if self.unfinished.contains(&choice) => Some(Event::Finished {
                reason: "length",
                raw_reason: None,
                choice,
                metadata,
            }),
            _ => None,
        }
    }

    /// Records what an event reports about the whole answer, and a loss if no target can represent the event.
    pub(crate) fn note(&mut self, event: &Event<'_>) {
        match event {
            Event::ResponseStarted {
                id, model, created, ..
            } => {
                let told = |text: &Option<&str>| {
                    let text = text.filter(|text| !text.is_empty());
                    text.map(str::to_owned)
                };
                self.answer.id = told(id);
                self.answer.model = told(model);
                self.answer.created = *created;
            }
            Event::Usage(usage) => self.answer.usage = Some(Counts::of(usage, self.source)),
            Event::Unknown { .. } => self.losses.note("unknown"),
            _ => {}
        }
    }

    /// The reason as it was sent, where the same dialect is written.
    pub(crate) fn own_word<'r>(
        &self,
        target: &str,
        reason: &str,
        raw: Option<&'r str>,
    ) -> Option<&'r str> {
        finish::own_word(target, reason, raw.filter(|_| self.passed.own))
    }

    /// The target's word for that reason; `None` if the target can only end unfinished. Records a loss if the word is
    /// less specific than the reason.
    pub(crate) fn finish_word<'r>(
        &mut self,
        target: &str,
        reason: &str,
        raw: Option<&'r str>,
    ) -> Option<&'r str> {
        if finish::is_lost(target, reason) {
            self.losses.note("finish");
        }
        finish::word_of(target, reason, raw)
    }

    /// Signatures and encrypted content of the events at hand are carriers, which any client returns.
    pub(crate) fn carries(&self) -> bool {
        self.options.carry_reasoning && !self.passed.own && !self.source.starts_with("ai-sdk-")
    }

    /// Records a loss for each part of a reasoning that only its own provider can read.
    pub(crate) fn sealed(
        &mut self,
        kind: &str,
        text: &str,
        signature: Option<&str>,
        encrypted_content: Option<&str>,
    ) {
        let is_told = |text: Option<&str>| text.is_some_and(|text| !text.is_empty());
        if is_told(signature) {
            self.losses.note("reasoning_signature");
        }
        if is_told(encrypted_content) {
            self.losses.note("encrypted_reasoning");
        }
        if text.is_empty() && kind == "redacted" {
            self.losses.note("redacted_reasoning");
        }
    }

    /// Whether a call of which nothing went out is written, for targets whose calls are run by their reader and hold an
    /// object; what is lost either way is noted.
    pub(crate) fn writes(&mut self, call: &Call<'_>) -> bool {
        let lost = if call.provider_executed {
            Some("server_tool")
        } else if call.is_nameless() {
            Some("nameless_call")
        } else if call.is_cut() {
            Some("cut_call")
        } else {
            None
        };
        if let Some(lost) = lost {
            self.losses.note(lost);
        }
        lost.is_none()
    }

    pub(crate) fn model(&self) -> &str {
        self.answer.model.as_deref().unwrap_or("unknown")
    }

    /// A call of an earlier turn has that id.
    pub(crate) fn knows(&self, call_id: &str) -> bool {
        self.known.contains(call_id)
    }

    /// Registers the id of a call. False if the id is taken: the call is written under another id once it is whole.
    pub(crate) fn takes(&mut self, call_id: &str) -> bool {
        let is_new = !self.taken.contains(call_id);
        if is_new {
            self.taken.insert(call_id.to_owned());
        }
        is_new && !self.knows(call_id)
    }

    /// Whether the call that opens can be written before it is whole, as its reader is told of it.
    pub(crate) fn opens(&mut self, call_id: &str, name: &str) -> bool {
        self.takes(call_id)
            && !call_id.is_empty()
            && !name.is_empty()
            && !self.options.hold_arguments
    }
}

/// A whole call, as the targets that have no form of their own for a kind of it write it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) part: u32,
    pub(crate) call_id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a str,
    pub(crate) raw_arguments: Option<&'a str>,
    pub(crate) state: &'static str,
    /// The application refused it: it is whole, and what made it wrong is not in it.
    pub(crate) refused: bool,
    pub(crate) provider_executed: bool,
    pub(crate) custom: bool,
    pub(crate) choice: i32,
}

impl<'a> Call<'a> {
    pub(crate) fn of(event: &Event<'a>) -> Option<Call<'a>> {
        let Event::ToolCall {
            part,
            call_id,
            name,
            arguments,
            state,
            reason,
            raw_arguments,
            provider_executed,
            custom,
            choice,
            ..
        } = *event
        else {
            return None;
        };
        Some(Call {
            part,
            call_id,
            name,
            arguments,
            raw_arguments,
            state,
            refused: reason == Some("refused"),
            provider_executed,
            custom,
            choice,
        })
    }

    /// Whether the call is final, and its arguments are usable or the application refused them.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_good() || self.refused
    }

    /// Whole, and what it says is what its tool takes.
    pub(crate) fn is_good(&self) -> bool {
        matches!(self.state, "complete" | "empty")
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.state == "incomplete"
    }

    pub(crate) fn is_nameless(&self) -> bool {
        self.name.is_empty() || self.call_id.is_empty()
    }

    /// The arguments as sent, where they are not what was meant. A placeholder of a call that was cut says nothing.
    pub(crate) fn text(&self) -> &'a str {
        let sent = self
            .raw_arguments
            .filter(|text| !text.is_empty() && !self.is_whole() && !self.is_cut());
        sent.unwrap_or(self.arguments)
    }

    /// The same where so much of them went out: a whole call without any has an empty object.
    pub(crate) fn text_behind(&self, told: &str) -> Cow<'a, str> {
        let is_bare = self.is_whole() && !self.custom && is_blank(self.arguments);
        if is_bare && is_blank(told) {
            return Cow::Owned(format!("{told}{{}}"));
        }
        Cow::Borrowed(self.text())
    }

    /// The arguments for a target whose calls hold an object: free-form text stands in a member.
    pub(crate) fn object_text(&self) -> Cow<'a, str> {
        if !self.custom {
            return self.text_behind("");
        }
        let mut to = Writer::default();
        to.raw("{\"input\":").string(self.arguments).raw("}");
        Cow::Owned(to.into_text())
    }
}

fn is_blank(text: &str) -> bool {
    text.bytes()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
}
