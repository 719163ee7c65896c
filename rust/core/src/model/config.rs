//! The options of one stream. All defaults are resolved before the stream starts.

use crate::model::limits::Limits;
use crate::model::policy::Policy;
use std::sync::Arc;

/// A tool of the request. `required` lists the tool's required parameters, or is `None` if the caller supplied no
/// schema. `properties` lists all parameters, or is `None` if the schema is unknown or allows other names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tool {
    pub name: String,
    pub required: Option<Vec<String>>,
    pub properties: Option<Vec<String>>,
}

/// The options of one parser.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    pub policy: Policy,
    pub limits: Limits,
    /// The tools of the request, or `None` if the caller did not pass them.
    pub tools: Option<Vec<Tool>>,
    /// Ids of the calls in earlier turns of the conversation. No call of this stream is emitted with one of these ids.
    pub known_call_ids: Vec<String>,
    /// Content type of the HTTP response. The content type is used only in the message of `NotAnEventStream`.
    pub content_type: Option<String>,
    /// Text included in every generated call id, so that the caller can recognize such ids.
    pub seed: Option<String>,
    /// The settings of the policy for tool calls in text, as JSON text. `None` disables the detection of tool calls in
    /// text.
    pub text_calls: Option<Arc<str>>,
    /// The tools of the request, for the detection of calls in text. Each entry is the name of a tool and the JSON text
    /// of its parameter schema. `None` if the caller passed no tools.
    pub text_call_tools: Option<Vec<(String, Option<String>)>>,
}
