//! Receives the events of the stream that is being repaired, passes them to the encoder, and collects wire facts.
//!
//! Facts about the current block are stored in its `BlockFacts`. The repairer uses these facts to decide what happens
//! to the block.

use crate::dialect::payload::LocatedPayload;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::encode_context::Options;
use crate::encode::common::encoder::Encoder;
use crate::encode::common::finish::EndingError;
use crate::encode::common::passed_through::AddedItem;
use crate::encode::encoder;
use crate::model::config::Config;
use crate::model::event::Deltas;
use crate::model::event::Event;
use crate::model::event::Mark;
use crate::model::event::Sink;
use crate::model::event::WireFact;
use crate::model::fault::Class;
use crate::model::fault::Fault;
use crate::model::limits::Limits;
use crate::model::limits::as_len;
use crate::model::loss_log::LossLog;
use crate::model::small_map::Set;
use crate::model::spec::Code;
use crate::model::unmodelled::SentItem;
use crate::model::unmodelled::SentPart;
use crate::model::unmodelled::Unmodelled;
use crate::repair::block_facts::BlockFacts;
use crate::repair::block_facts::ParseResult;
use crate::repair::own_error;
use crate::repair::pending_deltas::PendingDeltas;
use crate::repair::wire_facts::WireFacts;
use crate::sse::Framer;
use crate::sse::Item;
use std::mem;

/// Dialects whose encoders write a call only when it is complete. In these dialects, no piece of a call may pass
/// through before the call is complete, because the encoder would write the whole call again if a later block had to be
/// rewritten.
const WHOLE_CALLS: [&str; 1] = ["gemini"];

/// Dialects whose clients run a call when the call's item is closed.
const RUNS_AT_CLOSE: [&str; 1] = ["anthropic"];

/// Dialects whose clients parse truncated arguments, and run the truncated call unless the finish reason is
/// unsuccessful.
const PARSES_PARTIAL: [&str; 1] = ["anthropic"];

/// Diagnostic codes that the repairer itself reports.
const OWN: [Code; 2] = [Code::NOT_CARRIED, Code::REWRITTEN];

/// Receives the parser's events. Contains the encoder and the facts about the current block.
#[derive(Debug)]
pub(crate) struct RepairSink {
    pub(crate) context: EncodeContext,
    /// `None` until the dialect is known.
    pub(crate) encoder: Option<Box<dyn Encoder>>,
    /// Deltas of the current block that the encoder has not received yet.
    pieces: PendingDeltas,
    /// Facts about the current block.
    pub(crate) block: BlockFacts,
    /// The opening event that the encoder wrote for a response that lacks one.
    pub(crate) opening: Vec<u8>,
    /// Reasons that were already reported, because each reason is reported only once per stream.
    reported_reasons: Vec<&'static str>,
    /// Choices whose first delta is in the current block, and the subset whose first delta has no role.
    begun: Vec<i32>,
    roleless: Vec<i32>,
    /// Ordinal of the last payload that clients would reject.
    rejected: Option<u64>,
    /// True if the encoder's output is sent instead of the original bytes.
    pub(crate) rewriting: bool,
    /// The error that the upstream sent, if the policy continues after it.
    pub(crate) reported: Option<EndingError>,
    /// Byte offset and ordinal of the current payload.
    pub(crate) position: (u64, u64),
    /// Data of the current payload.
    pub(crate) payload: Vec<u8>,
    /// Event name of the current payload.
    event_name: Vec<u8>,
    /// True if the current payload produced an event that was not buffered.
    is_shown: bool,
    /// Diagnostics that the repairer reported, and the number of the parser's diagnostics.
    pub(crate) lost: LossLog,
    /// The codes in `OWN` that the policy raises as exceptions.
    raises: Vec<Code>,
    /// An error that ends the stream, for example because the output cannot be repaired. The parser takes the error
    /// from this field. `stopped` remains true afterward.
    refusal: Option<Fault>,
    stopped: bool,
    /// Calls that are still open.
    calls: Set<u32>,
    /// Open calls whose item the stream has closed.
    closed_calls: Set<u32>,
    /// Total size of the payloads that ended items, and the maximum total up to which these payloads are stored.
    items_size: usize,
    max_items_size: usize,
    /// Facts about the wire format that events do not contain.
    wire_facts: WireFacts,
}

impl Sink for RepairSink {
    fn event(&mut self, event: &Event<'_>) {
        if matches!(event, Event::Diagnostic { .. }) {
            self.lost.parser_count += 1;
            return;
        }
        if self.stopped || self.encoder.is_none() {
            return;
        }
        let is_kept = matches!(event, Event::Unknown { .. } | Event::ProviderItem { .. });
        if is_kept && self.rejected == Some(self.position.1) {
            return; // the event is dropped together with its payload
        }
        self.block.has_events = true;
        if self.rewriting {
            self.block.plain = self.block.plain && passes_after(self.context.source, event);
        }
        if self.pieces.keep(event, &self.context.passed.ended) {
            return;
        }
        self.block.quiet = false;
        self.write_pieces();
        let passed = &mut self.context.passed;
        if !mem::replace(&mut self.is_shown, true) {
            passed.payload.clone_from(&self.payload);
        }
        passed.index = passed
            .at
            .filter(|_| !(self.rewriting || self.block.misread));
        match event {
            Event::ToolCallStarted { part, .. } => _ = self.calls.insert(*part),
            Event::ToolCall { part, .. } | Event::ToolCallRetracted(Mark { part, .. }) => {
                self.calls.remove(part);
                self.closed_calls.remove(part);
            }
            Event::UpstreamError {
                code,
                kind,
                message,
                ..
            } => {
                let mut ending_error = EndingError::upstream(*code, *kind, message);
                if !self.keep_own_error() {
                    ending_error.keep_sent(&self.payload);
                }
                self.reported = Some(ending_error);
                return;
            }
            _ => {}
        }
        passed.moved = false;
        let other = self.context.as_written(event);
        if other.is_some() && PARSES_PARTIAL.contains(&self.context.source) {
            self.block.mark_misread("truncated_call");
        }
        let event = other.as_ref().unwrap_or(event);
        let opens = self.block.unopened.is_some() && self.write_opening(Some(event));
        if let Some(encoder) = self.encoder.as_mut().filter(|_| !opens) {
            encoder.event(&mut self.context, event);
        }
        if self.context.passed.moved {
            self.block.mark_misread("index_taken");
        }
        self.stop_if_broken();
    }

    fn deltas(&mut self, deltas: &Deltas<'_>) {
        let ended = &self.context.passed.ended;
        let others = self.stopped || self.rewriting || self.encoder.is_none();
        if others || deltas.parts.any(|part| ended.contains(&part)) {
            return deltas.each(|event| self.event(event));
        }
        self.block.has_events = true;
        self.pieces.keep_all(deltas);
    }

    fn refusal(&mut self) -> Option<Fault> {
        self.refusal.take()
    }

    fn at(&mut self, offset: u64, ordinal: u64) {
        self.position = (offset, ordinal);
        self.context.passed.payload_number += 1;
        self.event_name.clear();
        self.payload.clear();
        self.is_shown = false;
    }

    fn faulted(&mut self) {
        self.raises.clear();
    }

    fn cut(&mut self) {
        self.write_pieces(); // the buffered deltas come from the source, not from the truncation
        self.context.cut = true;
    }

    fn record_fact(&mut self, fact: WireFact<'_>) {
        self.block.quiet &= matches!(fact, WireFact::Sequence(_) | WireFact::RequestTools(_));
        let passed = &mut self.context.passed;
        match fact {
            WireFact::Payload { event, data } => {
                self.event_name.extend_from_slice(event);
                self.payload.extend_from_slice(data);
            }
            WireFact::Address {
                index,
                sub,
                item_id,
            } => {
                passed.at = index;
                passed.sub = sub;
                passed.item_id = item_id.map(str::to_owned);
            }
            WireFact::Announced(index) => {
                if !self.wire_facts.announce(index) {
                    self.block.mark_misread("index_taken"); // clients store one item per index
                }
            }
            WireFact::ItemAdded {
                index,
                kind,
                id,
                before,
            } => {
                let [kind, id] = [kind, id].map(|word| word.map(str::to_owned));
                let item = AddedItem { kind, id };
                let at_index = passed.added.slot(index);
                match at_index.get_mut(before) {
                    Some(known) => *known = item,
                    None => at_index.push(item),
                }
            }
            WireFact::ItemEnded { index, item } => {
                self.items_size = self.items_size.saturating_add(self.payload.len());
                if !self.rewriting && self.items_size <= self.max_items_size {
                    self.wire_facts.item(index, item);
                }
            }
            WireFact::Unmodelled(content) => self.write_unmodelled(&content),
            WireFact::LeftOut(_) => {
                self.rejected = Some(self.position.1);
                _ = self.block.record_fact(fact);
            }
            WireFact::Ended(part) => {
                if self.calls.contains(&part) {
                    self.closed_calls.insert(part);
                }
                self.wire_facts.record_fact(fact);
            }
            WireFact::Begun(choice) => self.begun.push(choice),
            WireFact::Roleless(choice) => self.roleless.push(choice),
            WireFact::Element => {
                self.block.mend();
                self.report_element();
            }
            WireFact::Reason(choice) => self.block.counts |= self.wire_facts.reason(choice),
            WireFact::Counted => {
                self.block.counts = true;
                self.wire_facts.count();
            }
            _ => {
                if !self.block.record_fact(fact) {
                    self.wire_facts.record_fact(fact);
                }
            }
        }
    }

    fn wants_wire_facts(&self) -> bool {
        true
    }

    fn dialect_detected(&mut self, dialect: &'static str) {
        self.context.source = dialect;
        self.context.target = dialect;
        self.encoder = encoder(dialect);
    }
}

impl RepairSink {
    pub(crate) fn new(options: Options, config: &Config) -> RepairSink {
        let mut context = EncodeContext::new(options, &config.known_call_ids);
        context.passed.own = true;
        context.passed.room = as_len(config.limits.max_event_bytes);
        context.losses.own = true;
        RepairSink {
            context,
            encoder: None,
            pieces: PendingDeltas::default(),
            block: BlockFacts::default(),
            opening: Vec::new(),
            reported_reasons: Vec::new(),
            begun: Vec::new(),
            roleless: Vec::new(),
            rejected: None,
            rewriting: false,
            reported: None,
            position: (0, 0),
            payload: Vec::new(),
            event_name: Vec::new(),
            is_shown: false,
            lost: LossLog::default(),
            raises: Vec::from_iter(OWN.into_iter().filter(|code| config.policy.raises(*code))),
            refusal: None,
            stopped: false,
            calls: Set::default(),
            closed_calls: Set::default(),
            items_size: 0,
            max_items_size: as_len(config.limits.max_event_bytes),
            wire_facts: WireFacts::default(),
        }
    }

    pub(crate) fn begin_block(&mut self) {
        self.block = BlockFacts::default();
        self.begun.clear();
        self.roleless.clear();
    }

    /// Records that the encoder's output is sent from now on instead of the original bytes.
    pub(crate) fn start_rewriting(&mut self) {
        self.rewriting = true;
        self.wire_facts.forget_items();
    }

    /// Writes the missing opening event before the block, unless it was already written. `event` is the first event in
    /// the block. Returns true if that event itself opens the response.
    pub(crate) fn write_opening(&mut self, event: Option<&Event<'_>>) -> bool {
        let Some(encoder) = &mut self.encoder else {
            return false;
        };
        if self.block.misread || !self.opening.is_empty() {
            return false;
        }
        let (context, first) = (&mut self.context, self.wire_facts.number());
        context.passed.unopened = true;
        // The inserted event gets the number before the source's first number, which may be -1, because numbers must
        // increase by one.
        context.passed.sequence = first.map(|first| first - 1);
        let started = event.filter(|event| matches!(event, Event::ResponseStarted { .. }));
        encoder.event(
            context,
            started.unwrap_or(&Event::ResponseStarted {
                id: None,
                model: None,
                created: None,
                metadata: None,
            }),
        );
        context.passed.sequence = Some(first.unwrap_or(0));
        self.opening.clone_from(&context.writer.bytes);
        started.is_some()
    }

    /// Passes to the encoder content that no event type can represent.
    fn write_unmodelled(&mut self, content: &Unmodelled<'_>) {
        if self.stopped {
            return;
        }
        self.write_pieces();
        let sent = match *content {
            Unmodelled::BlockOpened { index, .. } => Some(index),
            Unmodelled::Item(SentItem { index, .. }) => {
                self.open_response();
                index
            }
            Unmodelled::ItemEvent { .. } => {
                self.open_response();
                None
            }
            Unmodelled::ContentPart(SentPart {
                index,
                sub,
                item_id,
                ..
            }) => {
                self.open_response();
                let passed = &mut self.context.passed;
                (passed.at, passed.sub) = (index, sub);
                passed.item_id = item_id.map(str::to_owned);
                index
            }
            _ => None,
        };
        let passed = &mut self.context.passed;
        if !mem::replace(&mut self.is_shown, true) {
            passed.payload.clone_from(&self.payload);
        }
        passed.at = sent.or(passed.at);
        passed.index = sent.filter(|_| !(self.rewriting || self.block.misread));
        self.context.passed.moved = false;
        if let Some(encoder) = &mut self.encoder {
            encoder.write_unmodelled(&mut self.context, content);
        }
        if self.context.passed.moved {
            self.block.mark_misread("index_taken");
        }
    }

    /// Writes the missing opening event before the first item or event of a Responses stream.
    fn open_response(&mut self) {
        if self.block.unopened.is_some() {
            self.write_opening(None);
        }
    }

    /// Makes the encoder write the roles of the choices that begin in the current block. The encoder's output is needed
    /// if the block does not pass.
    pub(crate) fn open_choices(&mut self) {
        if self.begun.is_empty() {
            return;
        }
        self.write_pieces(); // write the deltas that arrived before the choice began
        let Some(encoder) = &mut self.encoder else {
            return;
        };
        self.context.passed.payload.clone_from(&self.payload);
        for choice in self.begun.drain(..) {
            encoder.open(&mut self.context, choice);
        }
    }

    /// Returns true if the current block begins a choice without a role.
    pub(crate) fn is_roleless(&self) -> bool {
        !self.roleless.is_empty()
    }

    /// Returns chunks with the roles that are missing in the current block.
    pub(crate) fn roles(&mut self) -> Vec<u8> {
        let Some(encoder) = &mut self.encoder else {
            return Vec::new();
        };
        self.context.passed.payload.clone_from(&self.payload);
        let start = self.context.writer.bytes.len();
        for choice in self.roleless.drain(..) {
            encoder.role(&mut self.context, choice);
        }
        self.context.writer.bytes.split_off(start)
    }

    /// Restores the payload of a block that the fast path recognized. The fast path does not store payloads, but an
    /// error contains the payload.
    fn keep_payload(&mut self, block: &[u8]) {
        if self.payload.is_empty() {
            let mut keep = |item: Item<'_>| {
                if let Item::Frame(frame) = item {
                    self.payload = frame.data.to_vec();
                    self.event_name = frame.event.to_vec();
                }
                Ok(())
            };
            // Default limits suffice, because the block was already parsed within the caller's limits.
            _ = Framer::new(&Limits::default(), true).feed(block, &mut keep);
        }
    }

    /// Returns the reason why the current block cannot pass, or `None` if the reason was already reported, possibly by
    /// another diagnostic.
    pub(crate) fn new_reason(&mut self) -> Option<&'static str> {
        let why = self.block.why?;
        if self.reported_reasons.contains(&why) {
            return None;
        }
        if self.block.reason().is_none() {
            self.reported_reasons.push(why); // another diagnostic reports the reason, also for later blocks
            return None;
        }
        Some(why)
    }

    /// Reports that an opening event is inserted before the block, with the reason.
    pub(crate) fn report_opening(&mut self, why: &'static str, block: &[u8]) -> ParseResult {
        self.report(Code::REWRITTEN, why, block)
    }

    /// Reports that bytes were rewritten, inserted or dropped for this reason, once per stream.
    pub(crate) fn report_once(&mut self, why: &'static str, block: &[u8]) -> ParseResult {
        if self.reported_reasons.contains(&why) {
            return Ok(());
        }
        self.reported_reasons.push(why);
        self.report(Code::REWRITTEN, why, block)
    }

    /// Reports the conversion losses since this method was last called. If the policy raises an exception for losses,
    /// only the first loss is reported.
    pub(crate) fn report_losses(&mut self, block: &[u8]) -> ParseResult {
        while let Some(id) = self.context.losses.next() {
            let reported = self.report(Code::NOT_CARRIED, id, block);
            if reported.is_err() {
                while self.context.losses.next().is_some() {}
                return reported;
            }
        }
        Ok(())
    }

    /// Reports the conversion losses of an array element before the next element is parsed.
    fn report_element(&mut self) {
        self.write_pieces();
        if self.stopped {
            return;
        }
        if let Err(fault) = self.report_losses(&[]) {
            self.stopped = true;
            self.refusal = Some(fault);
        }
    }

    fn report(&mut self, code: Code, detail: &'static str, block: &[u8]) -> ParseResult {
        if !self.raises.contains(&code) {
            self.lost.add(code, detail, self.position);
            return Ok(());
        }
        self.keep_payload(block);
        let (offset, ordinal) = self.position;
        let arrival = LocatedPayload {
            event: &self.event_name,
            data: &self.payload,
            offset,
            ordinal,
            stray: false,
        };
        Err(arrival.locate(Fault::of_code(code, detail)))
    }

    /// Returns true if blocks must be held because of an open call. Blocks are held if calls are written only when they
    /// are complete, or if clients might run the call before it is complete.
    pub(crate) fn holds(&self) -> bool {
        if !self.closed_calls.is_empty() && RUNS_AT_CLOSE.contains(&self.context.source) {
            return true;
        }
        let shows_whole =
            self.context.options.hold_arguments || WHOLE_CALLS.contains(&self.context.source);
        shows_whole && !self.calls.is_empty()
    }

    /// Returns true if a received call has not been fully written because it must wait for another call.
    pub(crate) fn has_waiting_calls(&mut self) -> bool {
        let waits = |sink: &mut RepairSink| {
            let encoder = sink.encoder.as_mut();
            encoder.is_some_and(|encoder| encoder.has_waiting_calls())
        };
        if !waits(self) {
            return false;
        }
        self.write_pieces(); // the buffered deltas may complete the other call
        waits(self)
    }

    fn stop_if_broken(&mut self) {
        if self.context.broken && !self.stopped {
            self.block.misread = true;
            self.stopped = true;
            self.refusal = Some(Fault::new(Class::Lifecycle, "lifecycle"));
        }
    }

    /// Passes the buffered deltas to the encoder, which writes those that have not passed.
    pub(crate) fn write_pieces(&mut self) {
        let Some(encoder) = &mut self.encoder else {
            return;
        };
        if !self.pieces.is_empty() {
            self.pieces
                .give_to_encoder(&mut **encoder, &mut self.context);
            self.stop_if_broken();
        }
    }

    /// Discards the encoder's output for a block that passes unchanged.
    #[inline]
    pub(crate) fn forget(&mut self) {
        if let Some(encoder) = &mut self.encoder {
            self.pieces.pass(&mut **encoder, &mut self.context);
        }
        self.context.writer.bytes.clear();
        self.context.losses.forget();
    }

    /// Ignores further events, because the original ending of the response passes through.
    pub(crate) fn ignore_events(&mut self) {
        self.stopped = true;
    }

    /// Records that blocks that contain only pieces of text have passed.
    #[inline]
    pub(crate) fn pass_pieces(&mut self) {
        if let Some(encoder) = &mut self.encoder {
            self.pieces.pass(&mut **encoder, &mut self.context);
        }
        self.context.passed.sequence = self.wire_facts.next();
    }

    /// Records that all output so far has passed. `numbered` is true if the blocks contained payloads.
    pub(crate) fn pass(&mut self, numbered: bool) {
        self.forget();
        self.wire_facts.pass(&mut self.context.passed, numbered);
    }

    /// Returns true if clients raise an exception for the upstream's error in the form in which it was sent. If clients
    /// would not raise an exception, marks the block as misread.
    pub(crate) fn keep_own_error(&mut self) -> bool {
        let is_own = own_error::is_own(self.context.source, &self.event_name, &self.payload);
        if !is_own {
            self.block.mark_misread("foreign_error");
        }
        is_own
    }

    pub(crate) fn end(&mut self, ending_error: Option<EndingError>) {
        // Every chunk may contain running token counts, so only the last counts are final.
        self.write_pieces();
        self.context.passed.payload.clone_from(&self.payload);
        self.context.passed.counted = self.wire_facts.counts_have_passed();
        if let Some(encoder) = &mut self.encoder {
            encoder.end(&mut self.context, ending_error);
        }
    }
}

/// Returns true if an event of this type may pass unchanged after a rewritten block. No event of Messages or Responses
/// may pass, because these events contain indexes or sequence numbers.
fn passes_after(dialect: &str, event: &Event<'_>) -> bool {
    match event {
        Event::TextStarted(_)
        | Event::TextDelta(_)
        | Event::ReasoningStarted { .. }
        | Event::ReasoningDelta(_)
        | Event::RefusalStarted(_)
        | Event::RefusalDelta(_)
        | Event::Unknown { .. } => !matches!(dialect, "anthropic" | "responses"),
        Event::TextDone { .. }
        | Event::ReasoningDone { .. }
        | Event::Source { .. }
        | Event::File { .. } => matches!(dialect, "ai-sdk-parts" | "ai-sdk-ui"),
        _ => false,
    }
}
