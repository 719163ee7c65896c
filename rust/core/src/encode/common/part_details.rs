//! Stores the content of parts other than streamed text. The content is borrowed from the current event, and copied
//! only if it has to wait.

use crate::encode::common::writer::Writer;
use crate::model::event::Delta;
use crate::model::event::Event;
use std::borrow::Cow;

/// Text from the current event, or a copy of it.
pub(crate) type Text<'a> = Cow<'a, str>;

/// Kind of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Text,
    Reasoning,
    Refusal,
    Call,
}

/// The closing event of a text, reasoning, or refusal part, except for its text.
#[derive(Clone, Debug)]
pub(crate) struct Done<'a> {
    pub(crate) kind: Kind,
    pub(crate) is_empty: bool,
    /// The kind of reasoning, or an empty string if the part is not reasoning.
    pub(crate) reasoning: &'static str,
    pub(crate) item_id: Option<Text<'a>>,
    pub(crate) signature: Option<Text<'a>>,
    pub(crate) encrypted_content: Option<Text<'a>>,
    /// The annotations as a JSON array.
    pub(crate) annotations: Option<Text<'a>>,
    pub(crate) metadata: Option<Text<'a>>,
}

/// A call with the final values from its closing event.
#[derive(Clone, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) call_id: Text<'a>,
    pub(crate) name: Text<'a>,
    /// Arguments as text. For an invalid call, the arguments include everything that was sent. If several JSON values
    /// were sent, the first alone would look like valid arguments.
    pub(crate) arguments: Text<'a>,
    pub(crate) state: &'static str,
    pub(crate) reason: Option<&'static str>,
    pub(crate) provider_executed: bool,
    pub(crate) custom: bool,
    pub(crate) metadata: Option<Text<'a>>,
}

/// A source, a file, or a tool result, which is not part of a text block or a call block.
#[derive(Clone, Debug)]
pub(crate) enum StandalonePart<'a> {
    Source {
        url: Option<Text<'a>>,
        title: Option<Text<'a>>,
        /// The document as JSON text.
        document: Option<Text<'a>>,
        metadata: Option<Text<'a>>,
    },
    File {
        media_type: Option<Text<'a>>,
        data: Option<Text<'a>>,
        url: Option<Text<'a>>,
        metadata: Option<Text<'a>>,
    },
    Result(CallResult<'a>),
}

/// A web page that the source cites next to its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CitedPage<'a> {
    pub(crate) url: &'a str,
    pub(crate) title: Option<&'a str>,
    pub(crate) metadata: Option<&'a str>,
}

/// The result of a tool call.
#[derive(Clone, Debug)]
pub(crate) struct CallResult<'a> {
    pub(crate) call_id: Text<'a>,
    /// JSON text.
    pub(crate) output: Text<'a>,
    pub(crate) is_error: bool,
}

/// The id and name of a call, and who runs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallRef<'a> {
    pub(crate) call_id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) provider_executed: bool,
}

fn borrowed(text: Option<&str>) -> Option<Text<'_>> {
    text.map(Cow::Borrowed)
}

fn copied(text: Option<Text<'_>>) -> Option<Text<'static>> {
    text.map(own)
}

fn own(text: Text<'_>) -> Text<'static> {
    Cow::Owned(text.into_owned())
}

impl<'a> Done<'a> {
    /// Returns the part number, the text, and the other content of a closing event, or `None` for any other event.
    pub(crate) fn of(event: &Event<'a>) -> Option<(u32, &'a str, Done<'a>)> {
        let mut done = Done {
            kind: Kind::Text,
            is_empty: false,
            reasoning: "",
            item_id: None,
            signature: None,
            encrypted_content: None,
            annotations: None,
            metadata: borrowed(event.metadata()),
        };
        let (part, text) = match *event {
            Event::TextDone {
                part,
                text,
                annotations,
                ..
            } => {
                done.annotations = borrowed(annotations);
                (part, text)
            }
            Event::ReasoningDone {
                part,
                text,
                kind,
                item_id,
                signature,
                encrypted_content,
                ..
            } => {
                done.kind = Kind::Reasoning;
                done.reasoning = kind;
                done.item_id = borrowed(item_id);
                done.signature = borrowed(signature);
                done.encrypted_content = borrowed(encrypted_content);
                (part, text)
            }
            Event::RefusalDone(Delta { part, text, .. }) => {
                done.kind = Kind::Refusal;
                (part, text)
            }
            _ => return None,
        };
        done.is_empty = text.is_empty();
        Some((part, text, done))
    }

    pub(crate) fn keep(self) -> Done<'static> {
        Done {
            kind: self.kind,
            is_empty: self.is_empty,
            reasoning: self.reasoning,
            item_id: copied(self.item_id),
            signature: copied(self.signature),
            encrypted_content: copied(self.encrypted_content),
            annotations: copied(self.annotations),
            metadata: copied(self.metadata),
        }
    }
}

impl<'a> Call<'a> {
    /// Returns the part number and the call of a call's closing event, or `None` for any other event.
    pub(crate) fn of(event: &Event<'a>) -> Option<(u32, Call<'a>)> {
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
            metadata,
            ..
        } = *event
        else {
            return None;
        };
        let whole = raw_arguments.filter(|_| state == "invalid");
        let call = Call {
            call_id: Cow::Borrowed(call_id),
            name: Cow::Borrowed(name),
            arguments: Cow::Borrowed(whole.unwrap_or(arguments)),
            state,
            reason,
            provider_executed,
            custom,
            metadata: borrowed(metadata),
        };
        Some((part, call))
    }

    pub(crate) fn ran(&self) -> CallRef<'_> {
        CallRef {
            call_id: &self.call_id,
            name: &self.name,
            provider_executed: self.provider_executed,
        }
    }

    /// Returns the arguments for a target that requires an object. Free-form text is wrapped in an object with the
    /// member `input`.
    pub(crate) fn object_text(&self) -> Cow<'_, str> {
        if !self.custom {
            return Cow::Borrowed(&self.arguments);
        }
        let mut to = Writer::default();
        to.raw("{\"input\":").string(&self.arguments).raw("}");
        Cow::Owned(to.into_text())
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.state == "incomplete"
    }

    /// Returns true for a truncated call without arguments. A client might run this call despite the truncation.
    pub(crate) fn is_empty_cut(&self) -> bool {
        let is_blank = self
            .arguments
            .bytes()
            .all(|byte| b" \t\n\r".contains(&byte));
        self.is_cut() && !self.provider_executed && is_blank
    }

    pub(crate) fn keep(self) -> Call<'static> {
        Call {
            call_id: own(self.call_id),
            name: own(self.name),
            arguments: own(self.arguments),
            state: self.state,
            reason: self.reason,
            provider_executed: self.provider_executed,
            custom: self.custom,
            metadata: copied(self.metadata),
        }
    }
}

impl<'a> StandalonePart<'a> {
    /// Returns the page of a source, or `None` for a source that is not a page, and for any other part.
    pub(crate) fn page(&self) -> Option<CitedPage<'_>> {
        let StandalonePart::Source {
            url,
            title,
            metadata,
            ..
        } = self
        else {
            return None;
        };
        Some(CitedPage {
            url: url.as_deref()?,
            title: title.as_deref(),
            metadata: metadata.as_deref(),
        })
    }

    pub(crate) fn of(event: &Event<'a>) -> Option<StandalonePart<'a>> {
        Some(match *event {
            Event::Source {
                url,
                title,
                document,
                metadata,
                ..
            } => StandalonePart::Source {
                url: borrowed(url),
                title: borrowed(title),
                document: borrowed(document),
                metadata: borrowed(metadata),
            },
            Event::File {
                media_type,
                data,
                url,
                metadata,
                ..
            } => StandalonePart::File {
                media_type: borrowed(media_type),
                data: borrowed(data),
                url: borrowed(url),
                metadata: borrowed(metadata),
            },
            Event::ToolResult {
                call_id,
                output,
                is_error,
                ..
            } => StandalonePart::Result(CallResult {
                call_id: Cow::Borrowed(call_id),
                output: Cow::Borrowed(output),
                is_error,
            }),
            _ => return None,
        })
    }

    pub(crate) fn keep(self) -> StandalonePart<'static> {
        match self {
            StandalonePart::Source {
                url,
                title,
                document,
                metadata,
            } => StandalonePart::Source {
                url: copied(url),
                title: copied(title),
                document: copied(document),
                metadata: copied(metadata),
            },
            StandalonePart::File {
                media_type,
                data,
                url,
                metadata,
            } => StandalonePart::File {
                media_type: copied(media_type),
                data: copied(data),
                url: copied(url),
                metadata: copied(metadata),
            },
            StandalonePart::Result(given) => StandalonePart::Result(given.keep()),
        }
    }
}

impl CallResult<'_> {
    pub(crate) fn keep(self) -> CallResult<'static> {
        CallResult {
            call_id: own(self.call_id),
            output: own(self.output),
            is_error: self.is_error,
        }
    }
}
