//! How a repaired stream ends: as sent, with the ending that its source left out, or with what went wrong.
//!
//! Knows verdicts and faults; what an ending looks like is the encoder's business.

use crate::encode::common::finish::EndingError;
use crate::model::delta::Completeness;
use crate::model::event::Sink;
use crate::model::fault::Class;
use crate::model::fault::Fault;
use crate::pipeline::after_error::AfterError;
use crate::repair::Repairer;
use crate::repair::read_buffer::Read;
use crate::repair::verdict::Step;

/// No event of theirs says that an answer is over.
const UNMARKED: [&str; 1] = ["gemini"];

impl Repairer {
    /// What the end of the input leaves.
    pub(crate) fn last(&mut self, read: &mut Read<'_, '_>) -> Step {
        self.finish();
        if self.hand.rendering || self.hand.block.touched {
            self.explain(read)?;
            return self.render(read);
        }
        if self.hand.block.emptied {
            self.repaired = true;
            self.block.clear();
        }
        self.pass(read);
        Ok(())
    }

    /// The answer is over, whole or as far as it came.
    pub(crate) fn finish(&mut self) {
        if self.ended || self.hand.encoder.is_none() {
            return;
        }
        self.ended = true;
        let completeness = self.parser.standing();
        let trouble = self.hand.reported.take();
        let is_assumed = trouble.is_none() && completeness == Completeness::Assumed;
        if is_assumed && !UNMARKED.contains(&self.hand.job.source) {
            self.hand.block.touch("end_missing");
        }
        let hand = &self.hand;
        let changed =
            trouble.is_some() || hand.block.touched || hand.block.emptied || hand.rendering;
        if changed || self.waits() {
            self.write_end(trouble);
        } else {
            self.hand.rest();
        }
    }

    fn write_end(&mut self, trouble: Option<EndingError>) {
        let cut = self.parser.standing() == Completeness::Truncated;
        let cut = cut.then(|| EndingError::named(Class::Truncated.name()));
        self.hand.write_pieces();
        self.parser.assumed_ends(&mut self.hand);
        self.hand.end(trouble.or(cut));
    }

    /// What went wrong ends the answer; as sent, where the upstream itself said so.
    pub(crate) fn failed(&mut self, read: &mut Read<'_, '_>, fault: Fault) {
        self.over = true;
        let is_upstream = fault.class == Class::Upstream;
        let mut trouble = EndingError::of(&fault);
        if self.hand.place != (fault.byte_offset, fault.event_ordinal) {
            self.hand.at(fault.byte_offset, fault.event_ordinal); // no payload that was read brought it
        }
        self.error = Some(fault);
        if is_upstream && self.hand.encoder.is_none() {
            return self.pass(read); // an error before anything else: no dialect to say it in but its own
        }
        if self.hand.encoder.is_none() || self.ended {
            return;
        }
        self.ended = true;
        self.hand.doomed();
        if is_upstream && !self.hand.keep_own_error() {
            trouble.keep_sent(&self.hand.payload);
        }
        let as_sent = !(self.hand.block.touched || self.hand.rendering);
        if as_sent && is_upstream {
            _ = self.mend(read); // Nothing is raised any more.
            self.pass(read);
            self.over = false;
            let source = self.hand.job.source;
            self.behind_error = Some(Box::new(AfterError::new(source)));
            return self.begin_block(read);
        }
        if as_sent && self.parser.has_ended() {
            return self.pass(read); // the wire itself has said that it breaks off (AI SDK: `abort`)
        }
        if !self.hand.job.broken {
            let reported = self.hand.reported.take().filter(|_| is_upstream);
            self.write_end(Some(reported.unwrap_or(trouble)));
        }
        // Nothing is raised any more.
        _ = self.explain(read);
        _ = self.render(read);
    }
}
