//! Defines the kinds of content in an output item of a Responses stream, and the event names for each kind.

use crate::encode::common::extra_members::join;
use crate::encode::common::writer::Writer;

/// The JSON that precedes the log probabilities of text.
pub(crate) const LOGPROBS: &str = ",\"logprobs\":[";

/// The kind of an item's content, and the data that is written with the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// A text: its annotations as JSON, the number of annotations, and its log probabilities as JSON.
    Text(String, i64, String),
    Refusal,
    Summary,
    Reasoning,
    Call {
        custom: bool,
        call_id: String,
        name: String,
    },
}

/// Expands to the beginning of a delta event, up to the sequence number.
macro_rules! delta {
    ($kind:literal) => {
        concat!(
            "event: ",
            $kind,
            ".delta\ndata: {\"type\":\"",
            $kind,
            ".delta\""
        )
    };
}

impl Body {
    pub(crate) fn text() -> Body {
        Body::Text(String::new(), 0, String::new())
    }

    pub(crate) fn call(custom: bool, call_id: &str, name: &str) -> Body {
        Body::Call {
            custom,
            call_id: call_id.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Returns the prefix of generated ids for items of this kind.
    pub(crate) fn prefix(&self) -> &'static str {
        match self {
            Body::Text(..) | Body::Refusal => "msg",
            Body::Summary | Body::Reasoning => "rs",
            Body::Call { .. } => "fc",
        }
    }

    /// Returns the type of items of this kind.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Body::Text(..) | Body::Refusal => "message",
            Body::Summary | Body::Reasoning => "reasoning",
            Body::Call { custom: true, .. } => "custom_tool_call",
            Body::Call { .. } => "function_call",
        }
    }

    /// Returns the prefix that the names of the delta and done events share, and the name of the done event's member
    /// that contains the text.
    pub(crate) fn events(&self, openresponses: bool) -> (&'static str, &'static str) {
        match self {
            Body::Text(..) => ("response.output_text", "text"),
            Body::Refusal => ("response.refusal", "refusal"),
            Body::Summary => ("response.reasoning_summary_text", "text"),
            Body::Reasoning if openresponses => ("response.reasoning", "text"),
            Body::Reasoning => ("response.reasoning_text", "text"),
            Body::Call { custom: true, .. } => ("response.custom_tool_call_input", "input"),
            Body::Call { .. } => ("response.function_call_arguments", "arguments"),
        }
    }

    /// Returns the beginning of a delta event, and the JSON that follows the event's text or log probabilities.
    pub(crate) fn delta(&self, openresponses: bool) -> (&'static str, &'static str) {
        let head = match self {
            Body::Text(..) => return (delta!("response.output_text"), "]}\n\n"),
            Body::Refusal => delta!("response.refusal"),
            Body::Summary => delta!("response.reasoning_summary_text"),
            Body::Reasoning if openresponses => delta!("response.reasoning"),
            Body::Reasoning => delta!("response.reasoning_text"),
            Body::Call { custom: true, .. } => delta!("response.custom_tool_call_input"),
            Body::Call { .. } => delta!("response.function_call_arguments"),
        };
        (head, "}\n\n")
    }

    /// Returns the prefix that the names of the part's opening and closing events share, and the name of the member
    /// that contains the part's index within the item. Returns `None` for a call.
    pub(crate) fn around(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Body::Call { .. } => None,
            Body::Summary => Some(("response.reasoning_summary_part", "summary_index")),
            _ => Some(("response.content_part", "content_index")),
        }
    }

    /// Returns the type of a part of this kind, or an empty string for a call.
    pub(crate) fn part_kind(&self) -> &'static str {
        match self {
            Body::Text(..) => "output_text",
            Body::Refusal => "refusal",
            Body::Summary => "summary_text",
            Body::Reasoning => "reasoning_text",
            Body::Call { .. } => "",
        }
    }

    /// Writes the part as JSON. `text` is the escaped text, without quotes. `members` are unknown members of the
    /// source's part.
    pub(crate) fn part(&self, to: &mut Writer, text: &str, members: &[(String, String)]) {
        let (head, tail) = match self {
            Body::Text(..) => ("output_text\",\"text\":\"", "\",\"annotations\":["),
            Body::Refusal => ("refusal\",\"refusal\":\"", "\""),
            Body::Summary => ("summary_text\",\"text\":\"", "\""),
            Body::Reasoning => ("reasoning_text\",\"text\":\"", "\""),
            Body::Call { .. } => return,
        };
        to.raw("{\"type\":\"").raw(head).raw(text).raw(tail);
        if let Body::Text(annotations, _, tokens) = self {
            to.raw(annotations).raw("]").raw(LOGPROBS);
            to.raw(tokens).raw("]");
        }
        join(to, members, &[]);
        to.raw("}");
    }
}
