//! The state that every encoder works with: the writer, ids, losses, the caller's options, and facts about the
//! response.
//!
//! This module also contains the checks of tool calls that all encoders share. No code here depends on a dialect.

use crate::encode::common::finish;
use crate::encode::common::id_mint::IdMint;
use crate::encode::common::losses::Losses;
use crate::encode::common::passed_through::PassedThrough;
use crate::encode::common::same_json::is_value;
use crate::encode::common::tool_ids::ToolIdForm;
use crate::encode::common::usage::Counts;
use crate::encode::common::writer::Writer;
use crate::model::event::Delta;
use crate::model::event::Event;
use crate::model::small_map::Set;
use std::borrow::Cow;

/// Options that the caller can set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Text that follows the kind in every generated id.
    pub prefix: String,
    /// Creation time in seconds since 1970, for sources that do not send one, because the core has no clock.
    pub created: i64,
    /// True if a tool call is written only once it is complete.
    pub hold_arguments: bool,
    /// Chat Completions only: true if the usage is written.
    pub include_usage: bool,
    /// Responses only: true if reasoning text is written with the event names of OpenResponses.
    pub openresponses: bool,
    /// Responses only: true if a truncated input ends with an error instead of an incomplete response.
    pub cut_is_error: bool,
    /// True if signed and encrypted reasoning is written as an opaque carrier that the client sends back.
    pub carry_reasoning: bool,
    /// The form that tool call ids must have in a history for the target's API. An id with another form is replaced.
    pub tool_id_form: Option<ToolIdForm>,
}

/// Targets that mark a truncated call as invalid.
const MARKS_TRUNCATED_CALLS: [&str; 2] = ["ai-sdk-parts", "ai-sdk-ui"];

/// Targets whose calls or finish reasons cannot show that a call is invalid. In the other targets, the call itself is
/// marked or omitted, and the response ends accordingly.
const HIDES_INVALID_CALLS: [&str; 2] = ["anthropic", "chat"];

/// Targets in which a response whose calls were all omitted ends in the same way as a response without calls. In other
/// targets, a response whose calls were all omitted ends with an error.
const ENDS_WITHOUT_CALLS: [&str; 3] = ["chat", "gemini", "responses"];

/// What the source reported about the response as a whole.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) id: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) created: Option<i64>,
    /// The latest token counts.
    pub(crate) usage: Option<Counts>,
    /// The latest usage object as sent, if the source and target have the same dialect.
    pub(crate) own_usage: Option<String>,
}

/// The state of one stream that is being encoded.
#[derive(Debug)]
pub(crate) struct EncodeContext {
    pub(crate) writer: Writer,
    pub(crate) mint: IdMint,
    pub(crate) losses: Losses,
    pub(crate) passed: PassedThrough,
    pub(crate) options: Options,
    /// Dialect of the source. The name is empty until the first event arrives.
    pub(crate) source: &'static str,
    pub(crate) target: &'static str,
    pub(crate) answer: Answer,
    /// True if the input was truncated. Closing events that arrive later are caused by the truncation, not by the
    /// source.
    pub(crate) cut: bool,
    /// True if the stream was ended with an error because the upstream contradicted what was already written. Nothing
    /// may be written after that error.
    pub(crate) broken: bool,
    /// Ids of calls in earlier turns. A new call with one of these ids is written only once it is complete, and with
    /// another id.
    known: Set<String>,
    /// Ids of the calls in this response. If two calls have the same id, the second call is written with a new id.
    taken: Set<String>,
    /// Choices with a truncated call that the client would have to run.
    unfinished: Set<i32>,
    /// Choices with a call that is not dispatchable, but that a client would run if the choice ended with success.
    invalid: Set<i32>,
    /// Choices that have a call without a name, and choices that have any other content.
    nameless: Set<i32>,
    filled: Set<i32>,
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
            target: "",
            answer: Answer::default(),
            cut: false,
            broken: false,
            known: known_call_ids.iter().cloned().collect(),
            taken: Set::default(),
            unfinished: Set::default(),
            invalid: Set::default(),
            nameless: Set::default(),
            filled: Set::default(),
        }
    }

    /// Returns a replacement for a finish reason that would be wrong, or `None` for any other event. A finish reason is
    /// wrong if it would make a client run a truncated or invalid call of the choice, or if it would report success
    /// although the only content of the choice is a call without a name, which is not written. After a truncated call, a finish
    /// reason that the parser inferred is always replaced. A reason from the source is replaced if it means success,
    /// has not passed through, and the target does not mark the call itself as truncated.
    pub(crate) fn as_written<'e>(&mut self, event: &Event<'e>) -> Option<Event<'e>> {
        match *event {
            Event::ToolCall {
                state: "incomplete",
                provider_executed: false,
                name,
                choice,
                ..
            } => {
                self.unfinished.insert(choice);
                self.note_call(choice, name);
                None
            }
            Event::Finished {
                reason,
                raw_reason,
                choice,
                metadata,
            } if self.unfinished.contains(&choice)
                && (raw_reason.is_none()
                    || (finish::is_success(reason)
                        && !MARKS_TRUNCATED_CALLS.contains(&self.target)
                        && !self.passed.finished.contains(&choice))) =>
            {
                Some(Event::Finished {
                    reason: "length",
                    raw_reason: None,
                    choice,
                    metadata,
                })
            }
            Event::Finished {
                reason,
                choice,
                metadata,
                ..
            } if self.invalid.contains(&choice) && finish::is_success(reason) => {
                Some(Event::Finished {
                    reason: "other",
                    raw_reason: None,
                    choice,
                    metadata,
                })
            }
            Event::Finished {
                reason: "tool_calls",
                choice,
                metadata,
                ..
            } if ENDS_WITHOUT_CALLS.contains(&self.target)
                && self.nameless.contains(&choice)
                && !self.filled.contains(&choice) =>
            {
                Some(Event::Finished {
                    reason: "error",
                    raw_reason: None,
                    choice,
                    metadata,
                })
            }
            Event::TextDone { text, choice, .. }
            | Event::ReasoningDone { text, choice, .. }
            | Event::RefusalDone(Delta { text, choice, .. })
                if !text.is_empty() =>
            {
                self.filled.insert(choice);
                None
            }
            Event::ToolCall { choice, name, .. } => {
                let is_hidden = HIDES_INVALID_CALLS.contains(&self.target) && !self.passed.own;
                if is_hidden && Call::of(event).is_some_and(|call| call.could_be_run()) {
                    self.invalid.insert(choice);
                }
                self.note_call(choice, name);
                None
            }
            Event::Source { choice, .. } | Event::File { choice, .. } => {
                self.filled.insert(choice);
                None
            }
            _ => None,
        }
    }

    fn note_call(&mut self, choice: i32, name: &str) {
        let calls = match name.is_empty() {
            true => &mut self.nameless,
            false => &mut self.filled,
        };
        calls.insert(choice);
    }

    /// Records the id, model, creation time, and token counts that an event reports. Records a loss for an unknown
    /// event and for an item that only the provider reads.
    pub(crate) fn note(&mut self, event: &Event<'_>) {
        match event {
            Event::ResponseStarted {
                id, model, created, ..
            } => {
                let nonempty = |text: &Option<&str>| {
                    let text = text.filter(|text| !text.is_empty());
                    text.map(str::to_owned)
                };
                self.answer.id = nonempty(id);
                self.answer.model = nonempty(model);
                self.answer.created = *created;
            }
            Event::Usage(usage) => {
                self.answer.usage = Some(Counts::of(usage, self.source));
                let raw = usage.raw.filter(|_| self.passed.own);
                self.answer.own_usage = raw.map(str::to_owned);
            }
            Event::Unknown { .. } => self.losses.note("unknown"),
            Event::ProviderItem { kind, .. } => self.losses.note(kind),
            _ => {}
        }
    }

    /// Returns the finish reason as sent, or `None` if the source has another dialect, if the word has another meaning,
    /// or if clients reject the word.
    pub(crate) fn own_word<'r>(
        &self,
        target: &str,
        reason: &str,
        raw: Option<&'r str>,
    ) -> Option<&'r str> {
        finish::own_word(target, reason, raw.filter(|_| self.passed.own))
    }

    /// Returns the target's word for a finish reason, or `None` if the target can only end as incomplete. Records a
    /// loss if the word is less specific than the reason.
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

    /// Returns true if signatures and encrypted content in the current events are written as carriers, which a client
    /// of any dialect sends back.
    pub(crate) fn carries(&self) -> bool {
        self.options.carry_reasoning && !self.passed.own && !self.source.starts_with("ai-sdk-")
    }

    /// Records a loss for each value that only the provider of the reasoning part can use.
    pub(crate) fn sealed(
        &mut self,
        kind: &str,
        text: &str,
        signature: Option<&str>,
        encrypted_content: Option<&str>,
    ) {
        let is_known = |text: Option<&str>| text.is_some_and(|text| !text.is_empty());
        if is_known(signature) {
            self.losses.note("reasoning_signature");
        }
        if is_known(encrypted_content) {
            self.losses.note("encrypted_reasoning");
        }
        if text.is_empty() && kind == "redacted" {
            self.losses.note("redacted_reasoning");
        }
    }

    /// Returns true if the call can be written to a client that runs every call it receives. If the result is false,
    /// records a loss.
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

    /// Returns the response's model, or `unknown` if the source did not report a model.
    pub(crate) fn model(&self) -> &str {
        self.answer.model.as_deref().unwrap_or("unknown")
    }

    /// Returns true if a call in an earlier turn has this id.
    pub(crate) fn has_earlier_call(&self, call_id: &str) -> bool {
        self.known.contains(call_id)
    }

    /// Registers the id of a call. Returns false if the id is already in use, in which case the call is written with a
    /// new id once it is complete.
    pub(crate) fn takes(&mut self, call_id: &str) -> bool {
        let is_new = !self.taken.contains(call_id);
        if is_new {
            self.taken.insert(call_id.to_owned());
        }
        is_new && !self.has_earlier_call(call_id)
    }

    /// Registers the id of a call. Returns true if the call may be written before it is complete.
    pub(crate) fn opens(&mut self, call_id: &str, name: &str) -> bool {
        self.takes(call_id)
            && !call_id.is_empty()
            && !name.is_empty()
            && !self.options.hold_arguments
    }
}

/// A call with the final values from its closing event, for targets that write all kinds of calls in the same form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) part: u32,
    pub(crate) call_id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a str,
    pub(crate) raw_arguments: Option<&'a str>,
    pub(crate) state: &'static str,
    /// True if the application rejected the call. A rejected call is complete, but its content does not show why it is
    /// invalid.
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

    /// Returns true if the call is complete and either has valid arguments or was rejected by the application.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_good() || self.refused
    }

    /// Returns true if the call is complete and its arguments are valid or absent.
    pub(crate) fn is_good(&self) -> bool {
        matches!(self.state, "complete" | "empty")
    }

    /// Returns true if the call is invalid, but a client that does not know this could run it: its arguments are
    /// free-form, missing, or a JSON value.
    fn could_be_run(&self) -> bool {
        let is_held = self.state == "invalid" && !self.refused && !self.provider_executed;
        let text = self.text();
        is_held && !self.is_nameless() && (self.custom || is_blank(text) || is_value(text))
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.state == "incomplete"
    }

    /// Returns true for a truncated call without arguments.
    ///
    /// If the target cannot mark a call as incomplete, a client might run a truncated call without arguments. Once the
    /// call is announced, only an unsuccessful ending of the response prevents the client from running it.
    pub(crate) fn is_empty_cut(&self) -> bool {
        self.is_cut() && !self.provider_executed && is_blank(self.arguments)
    }

    pub(crate) fn is_nameless(&self) -> bool {
        self.name.is_empty() || self.call_id.is_empty()
    }

    /// Returns the arguments: as sent if the call is invalid, and otherwise in their final form.
    pub(crate) fn text(&self) -> &'a str {
        let sent = self
            .raw_arguments
            .filter(|text| !text.is_empty() && !self.is_whole() && !self.is_cut());
        sent.unwrap_or(self.arguments)
    }

    /// Returns the complete arguments, as `text` does. `written` is the text of the arguments that has already been
    /// written. For a complete call with only blank arguments, returns `written` followed by `{}`.
    pub(crate) fn final_text(&self, written: &str) -> Cow<'a, str> {
        let is_bare = self.is_whole() && !self.custom && is_blank(self.arguments);
        if is_bare && is_blank(written) {
            return Cow::Owned(format!("{written}{{}}"));
        }
        Cow::Borrowed(self.text())
    }

    /// Returns the arguments for a target that requires an object. Free-form text is wrapped in an object with the
    /// member `input`.
    pub(crate) fn object_text(&self) -> Cow<'a, str> {
        if !self.custom {
            return self.final_text("");
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
