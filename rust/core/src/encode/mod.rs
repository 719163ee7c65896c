//! Contains the encoders, which write events as bytes in a dialect.
//!
//! An encoder depends on the events and on its own dialect, but not on decoders or other encoders. Shared state is
//! passed as an `EncodeContext`. Only this module lists all encoders.

pub(crate) mod ai_sdk;
pub(crate) mod anthropic;
pub(crate) mod chat;
pub(crate) mod common;
pub mod converter;
pub(crate) mod gemini;
pub(crate) mod responses;
pub(crate) mod transcript;

use crate::encode::ai_sdk::parts;
use crate::encode::ai_sdk::ui;
use crate::encode::common::encoder::Encoder;

/// Returns the encoder for a target, or `None` if the target is unknown.
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
