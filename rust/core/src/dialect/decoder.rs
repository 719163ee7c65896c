//! Defines the trait that the decoders of all dialects except Chat implement. The Chat decoder has the same methods,
//! but is called without dynamic dispatch.
//!
//! A decoder turns the payloads of one dialect into wire deltas. The decoder does not handle framing, and does not
//! determine which call a delta belongs to.

use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::Incoming;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::decode_context::Payload;
use crate::json::Scan;
use crate::json::members::Document;
use crate::model::fault::Fault;
use crate::sse::WholeEvents;
use std::fmt::Debug;

/// Decodes the payloads of one stream.
pub(crate) trait Decoder: Debug + Send {
    fn decode(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        document: &Document<'_>,
        payload: Payload<'_>,
    ) -> ParseResult;

    /// Decodes a payload that matches a known template. Returns the length of the payload, or the length of the whole
    /// event for `Incoming::Lines`. Returns 0 if the payload must be parsed.
    fn match_template(
        &mut self,
        _wire: &mut DecodeContext<'_, '_>,
        _incoming: Incoming<'_>,
    ) -> Result<usize, Fault> {
        Ok(0)
    }

    /// Decodes up to `most` complete events that match known templates and only continue open parts. The events cause
    /// no diagnostics, so their positions are not needed.
    fn row(
        &mut self,
        _wire: &mut DecodeContext<'_, '_>,
        _lines: &[u8],
        _most: usize,
    ) -> WholeEvents {
        WholeEvents::default()
    }

    /// Handles `[DONE]`. In a dialect that does not define `[DONE]`, the marker ends the stream only after a finish
    /// reason.
    fn marker(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult;

    /// Reports a payload that is not JSON as an upstream error.
    fn text(&mut self, wire: &mut DecodeContext<'_, '_>, payload: Payload<'_>) -> ParseResult;

    /// Emits held-back output before the stream closes.
    fn flush(&mut self, _wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        Ok(())
    }

    /// Returns true after the terminal event of the dialect. Payloads after the terminal event do not belong to the
    /// response.
    fn ended(&self) -> bool;
}

/// A predicate on a payload. The predicate does not depend on the state of the stream.
pub(crate) type PayloadPredicate = fn(&Document<'_>) -> bool;

/// The parser for the payloads of a dialect, and predicates that recognize payloads other than stream events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shapes {
    /// Parses one payload within a depth limit, and splits the objects and lists that the decoder reads.
    pub(crate) document: for<'a> fn(&'a str, Option<u64>) -> Scan<Document<'a>>,
    /// Returns true if a payload outside an event stream is a complete response body, or an error in place of one.
    pub(crate) is_body: PayloadPredicate,
    /// Returns true if a complete body could also be the last chunk of a JSON Lines stream, so that more lines may
    /// follow.
    pub(crate) may_be_json_line: PayloadPredicate,
    /// Returns true if a body that matches no dialect reports an error in a gateway-specific shape.
    pub(crate) is_error_body: PayloadPredicate,
    /// Returns true if a document that follows a broken document contains usable data.
    pub(crate) has_usable_data: PayloadPredicate,
    /// Returns true if the payload has no output. A payload without output is never an anomaly, even after the end of
    /// the stream.
    pub(crate) is_without_output: PayloadPredicate,
}
