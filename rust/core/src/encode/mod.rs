//! Writers of dialects: sinks of the core's events that write bytes.
//!
//! An encoder knows its own dialect's wire and the events, no decoder and no other encoder; what it needs of the stream it is
//! lent as a `Job`. Here alone they are named together.

mod ai_sdk;
mod ai_sdk_chunk;
mod ai_sdk_parts;
mod ai_sdk_ui;
mod anthropic;
mod block;
mod blocks;
mod blocks_calls;
mod chat;
mod chat_calls;
mod citations;
mod compact;
mod custody;
mod direct;
pub(crate) mod finish;
mod gemini;
pub(crate) mod job;
mod kept;
mod losses;
mod mint;
mod order;
pub(crate) mod passed;
mod responses;
mod responses_body;
mod responses_items;
mod responses_own;
mod responses_resource;
mod same;
mod sequential;
mod usage;
mod writer;

use std::fmt::Debug;

use crate::event::{Delta, Event};
use finish::Trouble;
use job::Job;

/// The encoder of one stream.
pub(crate) trait Encode: Debug + Send {
    /// Takes the next event. Diagnostics and the upstream's error are not the encoder's business.
    fn event(&mut self, job: &mut Job, event: &Event<'_>);

    /// Keeps a piece of a text, without metadata, that has passed as it was sent. False, and nothing was done, where there is
    /// more to be done than to keep its text.
    fn keep(&mut self, _piece: &Delta<'_>) -> bool {
        false
    }

    /// The source has ended, whole or with what went wrong: writes the target's ending.
    fn end(&mut self, job: &mut Job, trouble: Option<Trouble>);
}

/// The encoder of a target; `None` where there is none.
pub(crate) fn encoder(target: &str) -> Option<Box<dyn Encode>> {
    Some(match target {
        "chat" => Box::new(chat::Chat::default()),
        "anthropic" => Box::new(anthropic::Anthropic::default()),
        "responses" => Box::new(responses::Responses::default()),
        "gemini" => Box::new(gemini::Gemini::default()),
        "ai-sdk-parts" => Box::new(ai_sdk_parts::AiSdkParts::default()),
        "ai-sdk-ui" => Box::new(ai_sdk_ui::AiSdkUi::default()),
        _ => return None,
    })
}
