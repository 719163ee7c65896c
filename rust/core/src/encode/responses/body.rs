//! What an item of a Responses stream holds, and how its events are called.
//!
//! Knows the names of the published schema; no item, no number and no order.

use crate::encode::common::writer::Writer;

/// What an item holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// The annotations as JSON, and how many.
    Text(String, i64),
    Refusal,
    Summary,
    Reasoning,
    Call {
        custom: bool,
        call_id: String,
        name: String,
    },
}

/// The beginning of an event with a piece of a text, up to its number.
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
        Body::Text(String::new(), 0)
    }

    pub(crate) fn call(custom: bool, call_id: &str, name: &str) -> Body {
        Body::Call {
            custom,
            call_id: call_id.to_owned(),
            name: name.to_owned(),
        }
    }

    /// What its ids begin with.
    pub(crate) fn prefix(&self) -> &'static str {
        match self {
            Body::Text(..) | Body::Refusal => "msg",
            Body::Summary | Body::Reasoning => "rs",
            Body::Call { .. } => "fc",
        }
    }

    /// The type of its item.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Body::Text(..) | Body::Refusal => "message",
            Body::Summary | Body::Reasoning => "reasoning",
            Body::Call { custom: true, .. } => "custom_tool_call",
            Body::Call { .. } => "function_call",
        }
    }

    /// The events of its text: what both names begin with, the member of the close, and what follows the text.
    pub(crate) fn events(&self, openresponses: bool) -> (&'static str, &'static str, &'static str) {
        match self {
            Body::Text(..) => ("response.output_text", "text", ",\"logprobs\":[]"),
            Body::Refusal => ("response.refusal", "refusal", ""),
            Body::Summary => ("response.reasoning_summary_text", "text", ""),
            Body::Reasoning if openresponses => ("response.reasoning", "text", ""),
            Body::Reasoning => ("response.reasoning_text", "text", ""),
            Body::Call { custom: true, .. } => ("response.custom_tool_call_input", "input", ""),
            Body::Call { .. } => ("response.function_call_arguments", "arguments", ""),
        }
    }

    /// The beginning of a delta, and its end behind the text.
    pub(crate) fn delta(&self, openresponses: bool) -> (&'static str, &'static str) {
        let head = match self {
            Body::Text(..) => {
                return (delta!("response.output_text"), ",\"logprobs\":[]}\n\n");
            }
            Body::Refusal => delta!("response.refusal"),
            Body::Summary => delta!("response.reasoning_summary_text"),
            Body::Reasoning if openresponses => delta!("response.reasoning"),
            Body::Reasoning => delta!("response.reasoning_text"),
            Body::Call { custom: true, .. } => delta!("response.custom_tool_call_input"),
            Body::Call { .. } => delta!("response.function_call_arguments"),
        };
        (head, "}\n\n")
    }

    /// The event around its part, and the name of the part's place.
    pub(crate) fn around(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Body::Call { .. } => None,
            Body::Summary => Some(("response.reasoning_summary_part", "summary_index")),
            _ => Some(("response.content_part", "content_index")),
        }
    }

    /// The part as JSON; `text` is what stands between its quotes.
    pub(crate) fn part(&self, to: &mut Writer, text: &str) {
        let (head, tail) = match self {
            Body::Text(..) => ("output_text\",\"text\":\"", "\",\"annotations\":["),
            Body::Refusal => ("refusal\",\"refusal\":\"", "\"}"),
            Body::Summary => ("summary_text\",\"text\":\"", "\"}"),
            Body::Reasoning => ("reasoning_text\",\"text\":\"", "\"}"),
            Body::Call { .. } => return,
        };
        to.raw("{\"type\":\"").raw(head).raw(text).raw(tail);
        if let Body::Text(annotations, _) = self {
            to.raw(annotations).raw("],\"logprobs\":[]}");
        }
    }
}
