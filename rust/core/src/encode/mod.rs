//! Writers of dialects: sinks of the core's events that write bytes.
//!
//! An encoder knows its own dialect's wire and the events, no decoder and no other encoder; what it needs of the stream it is
//! lent as a `Job`. Here alone they are named together.

pub(crate) mod ai_sdk;
pub(crate) mod anthropic;
pub(crate) mod chat;
pub(crate) mod common;
pub mod converter;
pub(crate) mod gemini;
pub(crate) mod responses;

use crate::encode::ai_sdk::parts;
use crate::encode::ai_sdk::ui;
use crate::encode::common::encoder::Encoder;

/// The encoder of a target; `None` where there is none.
pub(crate) fn encoder(target: &str) -> Option<Box<dyn Encoder>> {
    Some(match target {
        "chat" => Box::new(chat::Chat::default()),
        "anthropic" => Box::new(anthropic::Anthropic::default()),
        "responses" => Box::new(responses::Responses::default()),
        "gemini" => Box::new(gemini::Gemini::default()),
        "ai-sdk-parts" => Box::new(parts::AiSdkParts::default()),
        "ai-sdk-ui" => Box::new(ui::AiSdkUi::default()),
        _ => return None,
    })
}
