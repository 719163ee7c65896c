//! Ends a repaired stream. If the original ending cannot pass through, the encoder writes the missing ending or an
//! error.

use crate::encode::common::finish::EndingError;
use crate::model::delta::Completeness;
use crate::model::event::Sink;
use crate::model::fault::Class;
use crate::model::fault::Fault;
use crate::pipeline::after_error::AfterError;
use crate::repair::FurtherInput;
use crate::repair::Repairer;
use crate::repair::block_facts::ParseResult;
use crate::repair::read_buffer::Read;

/// Dialects without an event that marks the end of a response.
const UNMARKED: [&str; 1] = ["gemini"];

/// Dialects without an event that ends a call. In these dialects, a stream that stops after complete calls may lack
/// only the terminal marker.
const CALLS_WITHOUT_END: [&str; 1] = ["chat"];

impl Repairer {
    /// Sends the remaining output at the end of the input: held blocks, an incomplete block, and the ending.
    pub(crate) fn last(&mut self, read: &mut Read<'_, '_>) -> ParseResult {
        if self.lacks_only_marker() {
            self.pass_held(read);
        }
        self.finish();
        if self.sink.rewriting || self.sink.block.misread {
            self.report_rewrite_reason(read)?;
            return self.rewrite(read);
        }
        if self.sink.block.emptied {
            self.repaired = true;
            self.block.clear();
        }
        self.pass(read);
        Ok(())
    }

    /// Returns true if blocks are held, none of them needs a repair, and the stream lacks only the terminal marker.
    fn lacks_only_marker(&self) -> bool {
        let sink = &self.sink;
        let is_intact = !(sink.block.misread || sink.block.emptied || sink.rewriting || self.ended);
        is_intact
            && !self.held.is_empty()
            && sink.reported.is_none()
            && CALLS_WITHOUT_END.contains(&sink.context.source)
            && self.parser.completeness_so_far() == Completeness::Assumed
    }

    /// Ends the response, and does nothing in later calls. If the original ending cannot pass, the encoder writes an
    /// ending.
    pub(crate) fn finish(&mut self) {
        if self.ended || self.sink.encoder.is_none() {
            return;
        }
        self.ended = true;
        let completeness = self.parser.completeness_so_far();
        let ending_error = self.sink.reported.take();
        let is_assumed = ending_error.is_none() && completeness == Completeness::Assumed;
        if is_assumed && !UNMARKED.contains(&self.sink.context.source) {
            self.sink.block.mark_misread("end_missing");
        }
        let sink = &self.sink;
        let changed =
            ending_error.is_some() || sink.block.misread || sink.block.emptied || sink.rewriting;
        if changed || self.waits() {
            self.write_end(ending_error);
        } else {
            self.sink.ignore_events();
        }
    }

    fn write_end(&mut self, ending_error: Option<EndingError>) {
        let cut = self.parser.completeness_so_far() == Completeness::Truncated;
        let cut = cut.then(|| EndingError::named(Class::Truncated.name()));
        self.sink.write_pieces();
        self.parser.assumed_ends(&mut self.sink);
        self.sink.end(ending_error.or(cut));
    }

    /// Ends the response after an error. An error from the upstream passes unchanged if clients raise an exception for
    /// it.
    pub(crate) fn failed(&mut self, read: &mut Read<'_, '_>, fault: Fault) {
        self.further_input = FurtherInput::Ignored;
        let is_upstream = fault.class == Class::Upstream;
        let is_unknown = fault.class == Class::UnknownDialect;
        let mut ending_error = EndingError::of(&fault);
        if self.sink.position != (fault.byte_offset, fault.event_ordinal) {
            // Set the position to that of the error, which may be in a later payload than the last one that was parsed.
            self.sink.at(fault.byte_offset, fault.event_ordinal);
        }
        self.error = Some(fault);
        if (is_upstream || is_unknown) && self.sink.encoder.is_none() {
            // Nothing can be rewritten, because the dialect is unknown. The dialect is also unknown if the stream
            // begins with an upstream error.
            self.pass(read);
            self.further_input = FurtherInput::Passed;
            return;
        }
        if self.sink.encoder.is_none() || self.ended {
            self.drop_unread(!self.held.is_empty() || self.size(read) > 0);
            return;
        }
        self.ended = true;
        self.sink.faulted();
        if is_upstream && !self.sink.keep_own_error() {
            ending_error.keep_sent(&self.sink.payload);
        }
        let as_sent = !(self.sink.block.misread || self.sink.rewriting);
        if as_sent && is_upstream {
            _ = self.mend(read); // after `faulted`, reporting never returns an error
            self.pass(read);
            self.further_input = FurtherInput::Repaired;
            let source = self.sink.context.source;
            self.after_error = Some(Box::new(AfterError::new(source)));
            return self.begin_block(read);
        }
        if as_sent && self.parser.has_ended() {
            return self.pass(read); // the upstream reported the abort itself (AI SDK: `abort`)
        }
        if !self.sink.context.broken {
            let reported = self.sink.reported.take().filter(|_| is_upstream);
            self.write_end(Some(reported.unwrap_or(ending_error)));
        }
        // After the call to `faulted`, reporting never returns an error.
        _ = self.report_rewrite_reason(read);
        _ = self.rewrite(read);
    }
}
