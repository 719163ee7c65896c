//! Everything a caller may decide about one stream, resolved before it starts.
//!
//! Plain data; knows no stage.

use crate::model::limits::Limits;
use crate::model::policy::Policy;

/// A tool of the request: its name, and the parameters it cannot do without where a schema was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    pub name: String,
    pub required: Option<Vec<String>>,
}

/// What one parser was made with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    pub policy: Policy,
    pub limits: Limits,
    /// The tools of the request; `None` where the caller did not say.
    pub tools: Option<Vec<Tool>>,
    /// Call ids of earlier turns, which must not be used again.
    pub known_call_ids: Vec<String>,
    /// The content type of the HTTP response, for the message of `NotAnEventStream` only.
    pub content_type: Option<String>,
    /// Makes minted ids recognisable.
    pub seed: Option<String>,
    /// What the policy says about text-form tool calls, as JSON text; `None` is off.
    pub text_calls: Option<String>,
    /// For those, the tools and the JSON text of the schema of their parameters; `None` where the caller did not say.
    pub text_call_tools: Option<Vec<(String, Option<String>)>>,
}
