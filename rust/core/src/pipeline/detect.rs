//! Detects the dialect of a stream.
//!
//! Inconclusive payloads are held back. Once a later payload identifies the dialect, the held payloads are dispatched
//! at their original places. At the end of the stream, the dialect that the caller specified is checked, and a lone
//! document is classified.

use crate::dialect::Dialect;
use crate::dialect::Read;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::decode_context::Payload;
use crate::dialect::payload::HeldPayload;
use crate::dialect::payload::LocatedPayload;
use crate::json::members::Document;
use crate::model::delta::InputEnd;
use crate::model::delta::UnfinishedInput;
use crate::model::fault::Fault;
use crate::model::output::Output;
use crate::model::spec::Code;
use crate::pipeline::dispatch::is_message;
use crate::pipeline::payload_pipeline::HEAD;
use crate::pipeline::payload_pipeline::PayloadPipeline;
use crate::pipeline::salvage::MARKER;
use crate::pipeline::salvage::trim;
use crate::sse::decode_utf8;

impl PayloadPipeline {
    /// Returns true if the payload needs no further processing: it was held, ignored, or decoded as an error.
    ///
    /// If the payload identifies the dialect, the held payloads are dispatched first.
    pub(crate) fn consumed_by_detection(
        &mut self,
        out: &mut Output<'_>,
        arrival: LocatedPayload<'_>,
    ) -> Result<bool, Fault> {
        let event = arrival.event_name();
        let event = event.as_deref();
        let (text, _) = decode_utf8(arrival.data);
        let text = trim(&text);
        if self.is_ignored(out, text, event) {
            return Ok(true);
        }
        if self.done {
            // The marker ends the stream in every dialect. The caller of this function reports any data after the
            // marker.
            return Ok(false);
        }
        if text == MARKER && !self.waiting.is_empty() {
            if self.waits_with_message(out)? {
                out.at(arrival.offset, arrival.ordinal);
                return Ok(false);
            }
            return Err(arrival.locate(self.waiting.unknown_dialect()));
        }
        if text == MARKER || (arrival.stray && !self.seen && text.starts_with('<')) {
            return Ok(false);
        }
        let Ok(Read::Undecided(document)) = self.reader(out).read(text) else {
            // Detection cannot use plain text or data that is still to be salvaged, so the held payloads stay held.
            return Ok(false);
        };
        let is_error_body = || {
            let read = self.reader(out).read(text);
            read.is_ok_and(|read| self.is_error_body(&read, arrival.stray))
        };
        let event = if arrival.stray && is_error_body() {
            Some("error")
        } else {
            event
        };
        let mut dialect = self.waiting.identifies(&document, event);
        let alone = dialect.is_none() && self.is_alone(out, text, &document);
        if alone {
            dialect = self.waiting.identifies(&document, Some("error"));
        }
        let Some(dialect) = dialect else {
            self.seen = true;
            if self.waiting.hold(arrival, &document) {
                return Ok(true);
            }
            self.waiting.note(&document);
            return Err(arrival.locate(self.waiting.unknown_dialect()));
        };
        self.set_dialect(out, dialect);
        self.release(out)?;
        out.at(arrival.offset, arrival.ordinal);
        if alone {
            let event = b"error";
            self.read(out, LocatedPayload { event, ..arrival })
                .map_err(|fault| arrival.locate(fault))?;
        }
        Ok(alone)
    }

    /// Stores the first bytes of the body, as long as an error message may have to quote them.
    pub(crate) fn keep_head(&mut self, input: &[u8]) {
        if self.keeps_head() && self.head.len() < HEAD {
            let more = input.get(..HEAD - self.head.len()).unwrap_or(input);
            self.head.extend_from_slice(more);
        }
    }

    /// Returns true if an error message may still have to quote the first bytes of the body.
    ///
    /// The result is true until the first payload that is not a keep-alive. Held payloads do not count, because once
    /// the dialect is detected they may turn out to be keep-alives.
    fn keeps_head(&self) -> bool {
        !self.seen || !self.waiting.is_empty()
    }

    /// Returns true if the document reports an error, is the first payload, and does not identify a dialect. A document
    /// whose only member is `message` is an error only if no other payload follows, so such a document does not count.
    fn is_alone(&self, out: &Output<'_>, text: &str, document: &Document<'_>) -> bool {
        let is_message =
            matches!(document, Document::Object(object) if object.names() == ["message"]);
        let read = self.reader(out).read(text);
        !(self.array || is_message)
            && self.waiting.is_empty()
            && read.is_ok_and(|read| read.is_error_body())
    }

    /// Dispatches the held payloads as payloads of a Chat stream if the last payload contains only a message text.
    /// Otherwise, returns false.
    fn waits_with_message(&mut self, out: &mut Output<'_>) -> Result<bool, Fault> {
        let is_message = self.waiting.held.last().is_some_and(|held| {
            let arrival = held.arrival();
            let (text, _) = decode_utf8(arrival.data);
            is_message(trim(&text), arrival.event_name().as_deref())
        });
        if is_message {
            self.set_dialect(out, Dialect::Chat);
            self.release(out)?;
        }
        Ok(is_message)
    }

    /// Dispatches the held payloads, each at its original place, once the dialect is detected.
    fn release(&mut self, out: &mut Output<'_>) -> ParseResult {
        let waiting = self.waiting.take();
        if !waiting.held.is_empty() {
            self.seen = false;
        }
        for held in &waiting.held {
            let arrival = held.arrival();
            out.at(arrival.offset, arrival.ordinal);
            self.read(out, arrival)
                .map_err(|fault| arrival.locate(fault))?;
        }
        Ok(())
    }

    /// Detects the dialect from a salvaged document, and dispatches the held payloads.
    ///
    /// A salvaged document is never held: if it does not identify the dialect, detection fails.
    pub(crate) fn detect(
        &mut self,
        out: &mut Output<'_>,
        document: &Document<'_>,
        payload: Payload<'_>,
    ) -> ParseResult {
        let Some(dialect) = self.waiting.identifies(document, payload.event) else {
            self.waiting.note(document);
            return Err(self.waiting.unknown_dialect());
        };
        let (offset, ordinal) = out.position();
        self.set_dialect(out, dialect);
        self.release(out)?;
        out.at(offset, ordinal);
        payload.arrival.show(out);
        self.seen = true;
        Ok(())
    }

    /// Handles the end of the input. Returns a fault if payloads are still held, because no dialect was detected.
    pub(crate) fn finish_input(
        &mut self,
        out: &mut Output<'_>,
        unfinished: UnfinishedInput,
        input: InputEnd,
    ) -> ParseResult {
        let is_whole = unfinished == UnfinishedInput::Nothing;
        if is_whole && self.dialect.is_none() && !self.done && self.waits_with_message(out)? {
            return self.report_framing(out, unfinished);
        }
        match self.waiting.held.first() {
            // If the transport failed, later payloads might have identified the dialect.
            Some(first) if self.dialect.is_none() && !self.done && input == InputEnd::Clean => {
                let arrival = first.arrival();
                Err(arrival.locate(self.waiting.unknown_dialect()))
            }
            _ => self.report_framing(out, unfinished),
        }
    }

    /// Reports that the detected dialect differs from the specified dialect, if no payload could be decoded. This
    /// method is called at the end of the stream.
    pub(crate) fn report_other_dialect(&mut self, out: &mut Output<'_>) -> ParseResult {
        let found = self.watch.take().and_then(|watch| watch.found);
        let Some((dialect, fault)) = found.filter(|_| self.assembler.is_blank()) else {
            return Ok(());
        };
        if out.config.policy.raises(Code::OTHER_DIALECT) {
            return Err(fault);
        }
        let position = (fault.byte_offset, fault.event_ordinal);
        out.diagnose_at(position, Code::OTHER_DIALECT, dialect.name())
    }

    /// Reports that the body is JSON Lines, because more input follows its first document.
    ///
    /// `first`: the first document, which could have been the complete response.
    pub(crate) fn report_json_lines(
        &mut self,
        out: &mut Output<'_>,
        first: &HeldPayload,
    ) -> ParseResult {
        self.lines = true;
        report_at(out, first, Code::JSON_LINES_BODY)
    }

    /// Reports how a lone document was framed, and emits output that the decoder still holds back. `unfinished`: the
    /// kind of unfinished input.
    pub(crate) fn report_framing(
        &mut self,
        out: &mut Output<'_>,
        unfinished: UnfinishedInput,
    ) -> ParseResult {
        let undecided = self.undecided.take();
        let whole = unfinished == UnfinishedInput::Nothing;
        match &undecided {
            Some(first) if whole => report_at(out, first, Code::BODY_NOT_STREAMED)?,
            Some(first) => self.report_json_lines(out, first)?,
            None => {}
        }
        self.report_other_dialect(out)?;
        self.flush(out)?;
        if whole {
            self.report_last_message(out)?;
            if let Some(chat) = &self.chat
                && !self.done
                && self.assembler.states_end()
                && self.assembler.has_counts()
            {
                chat.check_counts(out); // repair adds the missing `[DONE]`
            }
        }
        if whole && undecided.is_some() {
            return self.assembler.done(out);
        }
        Ok(())
    }
}

/// Reports a diagnostic about an earlier payload, at that payload's place.
fn report_at(out: &mut Output<'_>, one: &HeldPayload, code: Code) -> ParseResult {
    let arrival = one.arrival();
    out.diagnose_at((arrival.offset, arrival.ordinal), code, "")
        .map_err(|fault| arrival.locate(fault))
}
