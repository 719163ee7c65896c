//! What the parts of an answer bring at their close and beside them: borrowed from the event at hand, a copy once it has to
//! wait.
//!
//! Knows the events that it is taken from. Knows no order and no dialect.

use crate::encode::common::writer::Writer;
use crate::model::event::Delta;
use crate::model::event::Event;
use std::borrow::Cow;

/// Text of the event at hand, or a copy of it.
pub(crate) type Text<'a> = Cow<'a, str>;

/// What a part is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Text,
    Reasoning,
    Refusal,
    Call,
}

/// The close of a text, a reasoning or a refusal; of its text only whether there is any.
#[derive(Clone, Debug)]
pub(crate) struct Done<'a> {
    pub(crate) kind: Kind,
    pub(crate) is_empty: bool,
    pub(crate) item_id: Option<Text<'a>>,
    pub(crate) signature: Option<Text<'a>>,
    pub(crate) encrypted_content: Option<Text<'a>>,
    /// The text of a JSON array.
    pub(crate) annotations: Option<Text<'a>>,
    pub(crate) metadata: Option<Text<'a>>,
}

/// A call at its close.
#[derive(Clone, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) call_id: Text<'a>,
    pub(crate) name: Text<'a>,
    /// Where more was sent than one value, all of it: the first alone would look like a call.
    pub(crate) arguments: Text<'a>,
    pub(crate) state: &'static str,
    pub(crate) reason: Option<&'static str>,
    pub(crate) provider_executed: bool,
    pub(crate) custom: bool,
    pub(crate) metadata: Option<Text<'a>>,
}

/// What stands beside the parts.
#[derive(Clone, Debug)]
pub(crate) enum Beside<'a> {
    Source {
        url: Option<Text<'a>>,
        title: Option<Text<'a>>,
        /// JSON text.
        document: Option<Text<'a>>,
        metadata: Option<Text<'a>>,
    },
    File {
        media_type: Option<Text<'a>>,
        data: Option<Text<'a>>,
        url: Option<Text<'a>>,
        metadata: Option<Text<'a>>,
    },
    Result(Given<'a>),
}

/// What a tool gave.
#[derive(Clone, Debug)]
pub(crate) struct Given<'a> {
    pub(crate) call_id: Text<'a>,
    /// JSON text.
    pub(crate) output: Text<'a>,
    pub(crate) is_error: bool,
}

/// Whose call it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ran<'a> {
    pub(crate) call_id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) provider_executed: bool,
}

fn lent(text: Option<&str>) -> Option<Text<'_>> {
    text.map(Cow::Borrowed)
}

fn copied(text: Option<Text<'_>>) -> Option<Text<'static>> {
    text.map(own)
}

fn own(text: Text<'_>) -> Text<'static> {
    Cow::Owned(text.into_owned())
}

impl<'a> Done<'a> {
    /// Part and text, and what else is said of them.
    pub(crate) fn of(event: &Event<'a>) -> Option<(u32, &'a str, Done<'a>)> {
        let mut done = Done {
            kind: Kind::Text,
            is_empty: false,
            item_id: None,
            signature: None,
            encrypted_content: None,
            annotations: None,
            metadata: lent(event.metadata()),
        };
        let (part, text) = match *event {
            Event::TextDone {
                part,
                text,
                annotations,
                ..
            } => {
                done.annotations = lent(annotations);
                (part, text)
            }
            Event::ReasoningDone {
                part,
                text,
                item_id,
                signature,
                encrypted_content,
                ..
            } => {
                done.kind = Kind::Reasoning;
                done.item_id = lent(item_id);
                done.signature = lent(signature);
                done.encrypted_content = lent(encrypted_content);
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
            item_id: copied(self.item_id),
            signature: copied(self.signature),
            encrypted_content: copied(self.encrypted_content),
            annotations: copied(self.annotations),
            metadata: copied(self.metadata),
        }
    }
}

impl<'a> Call<'a> {
    /// The part, and the call that it is.
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
            metadata: lent(metadata),
        };
        Some((part, call))
    }

    pub(crate) fn ran(&self) -> Ran<'_> {
        Ran {
            call_id: &self.call_id,
            name: &self.name,
            provider_executed: self.provider_executed,
        }
    }

    /// The arguments for a target whose calls hold an object: a free-form text has no place but inside of one.
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

impl<'a> Beside<'a> {
    pub(crate) fn of(event: &Event<'a>) -> Option<Beside<'a>> {
        Some(match *event {
            Event::Source {
                url,
                title,
                document,
                metadata,
                ..
            } => Beside::Source {
                url: lent(url),
                title: lent(title),
                document: lent(document),
                metadata: lent(metadata),
            },
            Event::File {
                media_type,
                data,
                url,
                metadata,
                ..
            } => Beside::File {
                media_type: lent(media_type),
                data: lent(data),
                url: lent(url),
                metadata: lent(metadata),
            },
            Event::ToolResult {
                call_id,
                output,
                is_error,
                ..
            } => Beside::Result(Given {
                call_id: Cow::Borrowed(call_id),
                output: Cow::Borrowed(output),
                is_error,
            }),
            _ => return None,
        })
    }

    pub(crate) fn keep(self) -> Beside<'static> {
        match self {
            Beside::Source {
                url,
                title,
                document,
                metadata,
            } => Beside::Source {
                url: copied(url),
                title: copied(title),
                document: copied(document),
                metadata: copied(metadata),
            },
            Beside::File {
                media_type,
                data,
                url,
                metadata,
            } => Beside::File {
                media_type: copied(media_type),
                data: copied(data),
                url: copied(url),
                metadata: copied(metadata),
            },
            Beside::Result(given) => Beside::Result(given.keep()),
        }
    }
}

impl Given<'_> {
    pub(crate) fn keep(self) -> Given<'static> {
        Given {
            call_id: own(self.call_id),
            output: own(self.output),
            is_error: self.is_error,
        }
    }
}
