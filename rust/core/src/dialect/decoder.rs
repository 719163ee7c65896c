//! What a decoder of any dialect but Chat is to the parser. Chat has the same methods, called without a table.
//!
//! A decoder turns payloads into wire deltas; it knows one dialect, no framing and no identity of calls.

use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::Incoming;
use crate::dialect::decode_context::Payload;
use crate::dialect::decode_context::Step;
use crate::json::members::Document;
use crate::model::fault::Fault;
use crate::sse::WholeEvents;
use std::fmt::Debug;

/// The decoder of one stream.
pub(crate) trait Decoder: Debug + Send {
    /// Takes a payload that was read.
    fn decode(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        document: &Document<'_>,
        payload: Payload<'_>,
    ) -> Step;

    /// Takes a payload that fits a known template. How long it is, with its lines where they came; 0 where it has to be
    /// read.
    fn known(
        &mut self,
        _wire: &mut DecodeContext<'_, '_>,
        _incoming: Incoming<'_>,
    ) -> Result<usize, Fault> {
        Ok(0)
    }

    /// Takes whole events that fit known templates, as many as can be nothing but the next pieces of what is under way; at
    /// most so many. Nothing is said of any of them, so that where they stand is not asked.
    fn row(
        &mut self,
        _wire: &mut DecodeContext<'_, '_>,
        _lines: &[u8],
        _most: usize,
    ) -> WholeEvents {
        WholeEvents::default()
    }

    /// A `[DONE]`: the end where the dialect has it; else only where the end was told already.
    fn marker(&mut self, wire: &mut DecodeContext<'_, '_>) -> Step;

    /// A payload that is plain words: the gateway's error.
    fn text(&mut self, wire: &mut DecodeContext<'_, '_>, payload: Payload<'_>) -> Step;

    /// The input is about to end: what was held back goes out.
    fn flush(&mut self, _wire: &mut DecodeContext<'_, '_>) -> Step {
        Ok(())
    }

    /// The dialect's own end was decoded: what follows does not count.
    fn ended(&self) -> bool;
}

/// A question about a payload that needs no stream.
pub(crate) type Ask = fn(&Document<'_>) -> bool;

/// What the payloads of a dialect may be, beside events of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shapes {
    /// A whole answer, or the error in its place, given instead of a stream.
    pub(crate) is_body: Ask,
    /// Such a whole answer looks like any chunk that ends one: more of them may follow, a line each.
    pub(crate) is_line: Ask,
    /// A body that is an error in a shape of its own.
    pub(crate) is_complaint: Ask,
    /// Behind a broken document: brings what may be taken from there.
    pub(crate) is_of_use: Ask,
    /// Says nothing of the answer: no anomaly, even behind the end.
    pub(crate) is_note: Ask,
}
