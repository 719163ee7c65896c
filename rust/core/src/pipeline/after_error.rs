//! Decides by event type alone which events repair may pass through in two cases.
//!
//! The first case is an event after an upstream error. Some dialects report a failure with two events (Responses:
//! `error`, `response.failed`) or send a final event after the error (AI SDK). Comments and the terminal marker may
//! also follow the error, but an event that reports success must not. The second case is an event without content for
//! any part, while the stream is being rewritten. The types come from `_spec/conversions.json`; apart from that, this
//! file does not depend on any dialect.

use crate::json::members::Document;
use crate::json::members::Object;
use crate::json::members::document;
use crate::model::fault::Fault;
use crate::model::limits::Limits;
use crate::model::spec;
use crate::pipeline::salvage::MARKER;
use crate::pipeline::salvage::trim;
use crate::sse::Framer;
use crate::sse::Item;
use crate::sse::Receiver;
use crate::sse::decode_utf8;

/// State of a stream after an upstream error.
#[derive(Debug)]
pub(crate) struct AfterError {
    framer: Framer,
    /// Event types that may follow the error.
    may: Vec<&'static str>,
    success: Vec<&'static str>,
    /// True if the current block is dropped because it is too long to buffer.
    too_long: bool,
}

/// Receives the framer's items, and checks each item against the two lists of types.
struct BlockCheck<'l> {
    may: &'l [&'static str],
    success: &'l [&'static str],
    is_allowed: bool,
}

impl AfterError {
    pub(crate) fn new(dialect: &str) -> AfterError {
        let facts = spec::conversion("behind_error");
        let types = facts.and_then(|facts| facts.get("types")?.get(dialect));
        AfterError {
            framer: Framer::new(&Limits::default(), true),
            may: spec::words(types),
            success: spec::words(facts.and_then(|facts| facts.get("success"))),
            too_long: false,
        }
    }

    /// Records that the current block is too long to buffer, so it is dropped.
    pub(crate) fn mark_too_long(&mut self) {
        self.too_long = true;
    }

    pub(crate) fn is_too_long(&self) -> bool {
        self.too_long
    }

    /// Returns true if the block contains only comments, the terminal marker, and events that may follow the error.
    pub(crate) fn passes(&mut self, block: &[u8]) -> bool {
        if std::mem::take(&mut self.too_long) {
            return false;
        }
        let mut block_check = BlockCheck {
            may: &self.may,
            success: &self.success,
            is_allowed: true,
        };
        if self.framer.feed(block, &mut block_check).is_err() {
            self.may = Vec::new();
            return false;
        }
        block_check.is_allowed
    }
}

impl Receiver for BlockCheck<'_> {
    fn item(&mut self, item: Item<'_>) -> Result<(), Fault> {
        self.is_allowed &= match item {
            Item::Frame(frame) => self.allows(frame.data),
            Item::Stray(_) => false,
        };
        Ok(())
    }
}

impl BlockCheck<'_> {
    fn allows(&self, data: &[u8]) -> bool {
        let (text, _) = decode_utf8(data);
        let text = trim(&text);
        if text.is_empty() || text == MARKER {
            return true;
        }
        let Some(object) = object(text) else {
            return false;
        };
        let is_one = |words: &[&'static str], word: Option<&str>| {
            word.is_some_and(|word| words.contains(&word))
        };
        if !is_one(self.may, object.string("type").as_deref()) {
            return false;
        }
        let unified = object.object("finishReason");
        let word = match &unified {
            Some(reason) => reason.string("unified"),
            None => object.string("finishReason"),
        };
        !is_one(self.success, word.as_deref())
    }
}

/// Returns true if the payload's type is one that has no content for any part in this dialect.
///
/// This method is called only for a payload that produced no event.
pub(crate) fn is_contentless(dialect: &str, payload: &[u8]) -> bool {
    let known = spec::conversion("contentless").and_then(|table| table.get(dialect));
    let known = spec::words(known);
    if known.is_empty() {
        return false;
    }
    let (text, _) = decode_utf8(payload);
    let kind =
        object(trim(&text)).and_then(|object| object.string("type").map(|kind| kind.into_owned()));
    kind.is_some_and(|kind| known.contains(&kind.as_str()))
}

fn object(text: &str) -> Option<Object<'_>> {
    match document(text, None) {
        Ok(Document::Object(object)) => Some(object),
        _ => None,
    }
}
