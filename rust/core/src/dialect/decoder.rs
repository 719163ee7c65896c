//! The trait of a decoder of any dialect except Chat. Chat has the same methods, called without dynamic dispatch.
//!
//! A decoder turns payloads into wire deltas. It handles one dialect, and neither framing nor the identity of calls.

use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::Incoming;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::decode_context::Payload;
use crate::json::members::Document;
use crate::model::fault::Fault;
use crate::sse::WholeEvents;
use std::fmt::Debug;

/// Decodes the payloads of one stream.
pub(crate) trait Decoder: Debug + Send {
    /// Decodes a parsed payload.
    fn decode(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        document: &Document<'_>,
        payload: Payload<'_>,
    ) -> ParseResult;

    /// Decodes a payload that matches a known template. Returns its length, which includes the lines of its event if it
    /// came as lines, or 0 if the payload must be parsed.
    fn known(
        &mut self,
        _wire: &mut DecodeContext<'_, '_>,
        _incoming: Incoming<'_>,
    ) -> Result<usize, Fault> {
        Ok(0)
    }

    /// Decodes up to `most` whole events that match known templates and only continue the open parts. Reports nothing
    /// about any of them, so their positions are not needed.
    fn row(
        &mut self,
        _wire: &mut DecodeContext<'_, '_>,
        _lines: &[u8],
        _most: usize,
    ) -> WholeEvents {
        WholeEvents::default()
    }

    /// Handles `[DONE]`. In a dialect without this marker, it ends the stream only after a finish reason.
    fn marker(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult;

    /// Handles a payload of plain text, which is an error from the gateway.
    fn text(&mut self, wire: &mut DecodeContext<'_, '_>, payload: Payload<'_>) -> ParseResult;

    /// Emits held-back output before the input ends.
    fn flush(&mut self, _wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        Ok(())
    }

    /// Returns true after the dialect's own terminal event. Later payloads are not part of the response.
    fn ended(&self) -> bool;
}

/// A predicate on a payload that needs no state of the stream.
pub(crate) type PayloadPredicate = fn(&Document<'_>) -> bool;

/// Predicates that recognize payloads other than the events of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shapes {
    /// A whole response body, or the error in its place, sent instead of a stream.
    pub(crate) is_body: PayloadPredicate,
    /// A whole body that looks like the last chunk of a stream, so that more lines may follow.
    pub(crate) is_line: PayloadPredicate,
    /// A body that is an error in a gateway-specific shape.
    pub(crate) is_complaint: PayloadPredicate,
    /// A document after a broken one that contains usable data.
    pub(crate) is_of_use: PayloadPredicate,
    /// A payload without output, which is not an anomaly even after the end.
    pub(crate) is_note: PayloadPredicate,
}
