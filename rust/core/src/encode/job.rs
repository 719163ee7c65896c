//! What an encoder is lent of its stream: the way out, ids, losses, the caller's options, what the source said of itself.
//!
//! And what all of them ask about tool calls. Knows no dialect.

use std::borrow::Cow;

use super::finish;
use super::losses::Losses;
use super::mint::Mint;
use super::usage::Counts;
use super::writer::Writer;
use crate::event::Event;
use crate::few::Set;

/// What a caller may decide of the writing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Goes into every id that is made.
    pub prefix: String,
    /// Nothing of a tool call is written before it is whole.
    pub hold_arguments: bool,
    /// Chat Completions only: the last chunk with the usage.
    pub include_usage: bool,
    /// Responses only: reasoning text has the event names of OpenResponses.
    pub openresponses: bool,
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
pub(crate) struct Job {
    pub(crate) writer: Writer,
    pub(crate) mint: Mint,
    pub(crate) losses: Losses,
    pub(crate) options: Options,
    /// The dialect that is read; known when the first event comes.
    pub(crate) source: &'static str,
    pub(crate) answer: Answer,
    /// The input was cut: what closes now closes only because of that.
    pub(crate) cut: bool,
    /// What went out cannot be mended: the error is written, and nothing follows it.
    pub(crate) broken: bool,
    /// Ids of calls, of earlier turns too: a call that comes with one of them gets another id when it is whole.
    taken: Set<String>,
}

impl Job {
    pub(crate) fn new(mut options: Options, known_call_ids: &[String]) -> Job {
        Job {
            writer: Writer::default(),
            mint: Mint::new(std::mem::take(&mut options.prefix)),
            losses: Losses::default(),
            options,
            source: "",
            answer: Answer::default(),
            cut: false,
            broken: false,
            taken: known_call_ids.iter().cloned().collect(),
        }
    }

    /// Notes what an event says of the whole answer, and what of it no target has a place for.
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
            Event::Usage(usage) => {
                let counts = Counts::of(usage, self.source);
                self.answer.usage = Some(counts).filter(Counts::is_told);
            }
            Event::Unknown { .. } => self.losses.note("unknown"),
            _ => {}
        }
    }

    /// Notes a reason for which the target has no word.
    pub(crate) fn finished(&mut self, target: &str, reason: &str) {
        if finish::is_lost(target, reason) {
            self.losses.note("finish");
        }
    }

    /// Notes what of a reasoning only its own provider can read.
    pub(crate) fn sealed(
        &mut self,
        kind: &str,
        text: &str,
        signature: Option<&str>,
        encrypted_content: Option<&str>,
    ) {
        if signature.is_some() {
            self.losses.note("reasoning_signature");
        }
        if encrypted_content.is_some() {
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
            return false;
        }
        if call.custom {
            self.losses.note("custom_call");
        }
        true
    }

    pub(crate) fn model(&self) -> &str {
        self.answer.model.as_deref().unwrap_or("unknown")
    }

    /// Whether the call that opens can be written before it is whole, under this id.
    pub(crate) fn opens(&mut self, call_id: &str, name: &str) -> bool {
        !call_id.trim().is_empty()
            && self.taken.insert(call_id.to_owned())
            && !name.trim().is_empty()
            && !self.options.hold_arguments
    }

    /// The id that a whole call has; no later one gets it.
    pub(crate) fn took(&mut self, call_id: &str) {
        if !self.taken.contains(call_id) {
            self.taken.insert(call_id.to_owned());
        }
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
            provider_executed,
            custom,
            choice,
        })
    }

    /// Whole, and what it says is what its tool takes.
    pub(crate) fn is_good(&self) -> bool {
        matches!(self.state, "complete" | "empty")
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.state == "incomplete"
    }

    pub(crate) fn is_nameless(&self) -> bool {
        self.name.trim().is_empty() || self.call_id.trim().is_empty()
    }

    /// The arguments as sent; those of a call without any are an empty object.
    pub(crate) fn text(&self) -> &'a str {
        match self.state {
            "empty" if !self.custom => "{}",
            "invalid" | "incomplete" => self.raw_arguments.unwrap_or(self.arguments),
            _ => self.arguments,
        }
    }

    /// The arguments for a target whose calls hold an object: free-form text stands in a member.
    pub(crate) fn object_text(&self) -> Cow<'a, str> {
        if !self.custom {
            return Cow::Borrowed(self.text());
        }
        let mut to = Writer::default();
        to.raw("{\"input\":").string(self.text()).raw("}");
        Cow::Owned(String::from_utf8(to.bytes).unwrap_or_default())
    }
}
