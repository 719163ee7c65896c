//! Configuration of one stream, resolved before the stream starts. Plain data.

use crate::model::limits::Limits;
use crate::model::policy::Policy;
use std::sync::Arc;

/// A tool of the request: its name, and its required parameters if the caller supplied a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    pub name: String,
    pub required: Option<Vec<String>>,
}

/// The options of one parser.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    pub policy: Policy,
    pub limits: Limits,
    /// The tools of the request; `None` if the caller did not pass them.
    pub tools: Option<Vec<Tool>>,
    /// Call ids of earlier turns, which must not be used again.
    pub known_call_ids: Vec<String>,
    /// Content type of the HTTP response. Used only in the message of `NotAnEventStream`.
    pub content_type: Option<String>,
    /// Part of every minted id, to make the id recognizable.
    pub seed: Option<String>,
    /// The policy's settings for tool calls in text, as JSON text; `None` turns them off.
    pub text_calls: Option<Arc<str>>,
    /// Tools for these settings: the name, and the JSON text of the parameter schema. `None` if the caller did not pass
    /// them.
    pub text_call_tools: Option<Vec<(String, Option<String>)>>,
}
