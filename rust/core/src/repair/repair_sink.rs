//! The sink of a stream that is repaired: the encoder that writes along, and what the wire says beside the events.
//!
//! Hands facts on to the verdict on the block at hand; what they mean for it is the repairer's business.

use crate::dialect::payload::PlacedPayload;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::encode_context::Options;
use crate::encode::common::encoder::Encoder;
use crate::encode::common::finish::EndingError;
use crate::encode::common::passed_through::AddedItem;
use crate::encode::encoder;
use crate::model::config::Config;
use crate::model::event::Deltas;
use crate::model::event::Event;
use crate::model::event::Sink;
use crate::model::event::WireFact;
use crate::model::fault::Class;
use crate::model::fault::Fault;
use crate::model::limits::Limits;
use crate::model::limits::as_len;
use crate::model::loss_log::LossLog;
use crate::model::small_map::Set;
use crate::model::spec::Code;
use crate::repair::own_error;
use crate::repair::pending_deltas::PendingDeltas;
use crate::repair::verdict::Step;
use crate::repair::verdict::Verdict;
use crate::repair::wire_facts::WireFacts;
use crate::sse::Framer;
use crate::sse::Item;
use std::mem;

/// Their encoders write a call when it is whole: none of it may pass before, or a later rewriting would tell it again.
const WHOLE_CALLS: [&str; 1] = ["gemini"];

/// Codes that are said of what is written.
const OWN: [Code; 2] = [Code::NOT_CARRIED, Code::REWRITTEN];

/// A dialect's encoder, and the facts of the block at hand.
#[derive(Debug)]
pub(crate) struct RepairSink {
    pub(crate) job: EncodeContext,
    /// `None` until the dialect is known.
    pub(crate) encoder: Option<Box<dyn Encoder>>,
    /// PendingDeltas of the block at hand that the encoder does not have yet.
    pieces: PendingDeltas,
    /// Of the block at hand.
    pub(crate) block: Verdict,
    /// What an encoder wrote as the opening of an answer that has none.
    pub(crate) opening: Vec<u8>,
    /// What was told once of a stream.
    told: Vec<&'static str>,
    /// Choices of which the block at hand has the first chunk, without a role.
    roleless: Vec<i32>,
    /// It is known why the stream is written anew, or where it is.
    pub(crate) explained: bool,
    /// What the encoder writes goes out.
    pub(crate) rendering: bool,
    /// An error that the upstream sent, where a policy reads on behind it.
    pub(crate) reported: Option<EndingError>,
    pub(crate) place: (u64, u64),
    /// The payload at hand, and the name of its event.
    pub(crate) payload: Vec<u8>,
    event_name: Vec<u8>,
    /// An event of it came.
    is_shown: bool,
    pub(crate) lost: LossLog,
    /// Codes of ours that are faults, as the policy has it.
    raises: Vec<Code>,
    /// What went out cannot be mended: until the parser was told, and from then on.
    refusal: Option<Fault>,
    stopped: bool,
    /// Calls that are under way.
    calls: Set<u32>,
    /// The size of the events that ended items, and how much of them is kept at most.
    items_size: usize,
    most: usize,
    /// What the wire said beside its events.
    said: WireFacts,
}

impl Sink for RepairSink {
    fn event(&mut self, event: &Event<'_>) {
        if matches!(event, Event::Diagnostic { .. }) {
            self.lost.said += 1;
            return;
        }
        if self.stopped || self.encoder.is_none() {
            return;
        }
        self.block.brought = true;
        if self.rendering {
            self.block.plain = self.block.plain && passes_behind(self.job.source, event);
        }
        if self.pieces.keep(event, &self.job.passed.ended) {
            return;
        }
        self.block.quiet = false;
        self.write_pieces();
        let passed = &mut self.job.passed;
        if !mem::replace(&mut self.is_shown, true) {
            passed.payload.clone_from(&self.payload);
        }
        passed.index = passed
            .at
            .filter(|_| !(self.rendering || self.block.touched));
        match event {
            Event::ToolCallStarted { part, .. } => _ = self.calls.insert(*part),
            Event::ToolCall { part, .. } => _ = self.calls.remove(part),
            Event::ToolCallRetracted(mark) => _ = self.calls.remove(&mark.part),
            Event::UpstreamError {
                code,
                kind,
                message,
                ..
            } => {
                let mut trouble = EndingError::upstream(*code, *kind, message);
                if !self.keep_own_error() {
                    trouble.keep_sent(&self.payload);
                }
                self.reported = Some(trouble);
                return;
            }
            _ => {}
        }
        passed.moved = false;
        let other = self.job.as_written(event);
        let event = other.as_ref().unwrap_or(event);
        let opens = self.block.unopened.is_some() && self.write_opening(Some(event));
        if let Some(encoder) = self.encoder.as_mut().filter(|_| !opens) {
            encoder.event(&mut self.job, event);
        }
        if self.job.passed.moved {
            self.block.touch("index_taken");
        }
        self.stop_if_broken();
    }

    fn deltas(&mut self, deltas: &Deltas<'_>) {
        let ended = &self.job.passed.ended;
        let others = self.stopped || self.rendering || self.encoder.is_none();
        if others || deltas.parts.any(|part| ended.contains(&part)) {
            return deltas.each(|event| self.event(event));
        }
        self.block.brought = true;
        self.pieces.keep_all(deltas);
    }

    fn refusal(&mut self) -> Option<Fault> {
        self.refusal.take()
    }

    fn at(&mut self, offset: u64, ordinal: u64) {
        self.place = (offset, ordinal);
        self.event_name.clear();
        self.payload.clear();
        self.is_shown = false;
    }

    fn doomed(&mut self) {
        self.raises.clear();
    }

    fn cut(&mut self) {
        self.job.cut = true;
    }

    fn sign(&mut self, sign: WireFact<'_>) {
        self.block.quiet &= matches!(sign, WireFact::Sequence(_));
        let passed = &mut self.job.passed;
        match sign {
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
                if !self.said.announce(index) {
                    self.block.touch("index_taken"); // readers keep one item at an index
                }
            }
            WireFact::ItemAdded { index, kind, id } => {
                let [kind, id] = [kind, id].map(|word| word.map(str::to_owned));
                passed.added.insert(index, AddedItem { kind, id });
            }
            WireFact::ItemEnded { index, item } => {
                self.items_size = self.items_size.saturating_add(self.payload.len());
                if !self.rendering && self.items_size <= self.most {
                    self.said.item(index, item);
                }
            }
            WireFact::Roleless(choice) => self.roleless.push(choice),
            WireFact::Element => {
                self.block.mend();
                self.tell_element();
            }
            WireFact::Reason(choice) => self.block.counts |= self.said.reason(choice),
            WireFact::Counted => {
                self.block.counts = true;
                self.said.count();
            }
            _ => {
                if !self.block.sign(sign) {
                    self.said.sign(sign);
                }
            }
        }
    }

    fn judges(&self) -> bool {
        true
    }

    fn speaks(&mut self, dialect: &'static str) {
        self.job.source = dialect;
        self.encoder = encoder(dialect);
    }
}

impl RepairSink {
    pub(crate) fn new(options: Options, config: &Config) -> RepairSink {
        let mut job = EncodeContext::new(options, &config.known_call_ids);
        job.passed.own = true;
        job.losses.own = true;
        RepairSink {
            job,
            encoder: None,
            pieces: PendingDeltas::default(),
            block: Verdict::default(),
            opening: Vec::new(),
            told: Vec::new(),
            roleless: Vec::new(),
            explained: false,
            rendering: false,
            reported: None,
            place: (0, 0),
            payload: Vec::new(),
            event_name: Vec::new(),
            is_shown: false,
            lost: LossLog::default(),
            raises: Vec::from_iter(OWN.into_iter().filter(|code| config.policy.raises(*code))),
            refusal: None,
            stopped: false,
            calls: Set::default(),
            items_size: 0,
            most: as_len(config.limits.max_event_bytes),
            said: WireFacts::default(),
        }
    }

    pub(crate) fn begin_block(&mut self) {
        self.block = Verdict::default();
        self.roleless.clear();
    }

    /// What the encoder writes goes out from here on.
    pub(crate) fn render(&mut self) {
        self.rendering = true;
        self.said.forget_items();
    }

    /// Writes what has to stand before the block, once. `event`: its first. True if that opens the answer itself.
    pub(crate) fn write_opening(&mut self, event: Option<&Event<'_>>) -> bool {
        let Some(encoder) = &mut self.encoder else {
            return false;
        };
        if self.block.touched || !self.opening.is_empty() {
            return false;
        }
        let (job, first) = (&mut self.job, self.said.number());
        job.passed.unopened = true;
        // One less than the first number of the source, which can be -1: each number is one more than the one before it.
        job.passed.sequence = first.map(|first| first - 1);
        let started = event.filter(|event| matches!(event, Event::ResponseStarted { .. }));
        encoder.event(
            job,
            started.unwrap_or(&Event::ResponseStarted {
                id: None,
                model: None,
                created: None,
                metadata: None,
            }),
        );
        job.passed.sequence = Some(first.unwrap_or(0));
        self.opening.clone_from(&job.writer.bytes);
        started.is_some()
    }

    /// The block at hand begins a choice without a role.
    pub(crate) fn is_roleless(&self) -> bool {
        !self.roleless.is_empty()
    }

    /// The chunks with the roles that the block at hand lacks.
    pub(crate) fn roles(&mut self) -> Vec<u8> {
        let Some(encoder) = &mut self.encoder else {
            return Vec::new();
        };
        self.job.passed.payload.clone_from(&self.payload);
        let start = self.job.writer.bytes.len();
        for choice in self.roleless.drain(..) {
            encoder.role(&mut self.job, choice);
        }
        self.job.writer.bytes.split_off(start)
    }

    /// The payload of a block that was known as it stood, and so not kept: a fault tells it.
    fn keep_payload(&mut self, block: &[u8]) {
        if self.payload.is_empty() {
            let mut keep = |item: Item<'_>| {
                if let Item::Frame(frame) = item {
                    self.payload = frame.data.to_vec();
                    self.event_name = frame.event.to_vec();
                }
                Ok(())
            };
            // It was read before, within the limits.
            _ = Framer::new(&Limits::default(), true).feed(block, &mut keep);
        }
    }

    /// Says of the first block that does not pass why, unless a code did; what is a fault is said as one.
    pub(crate) fn explain(&mut self, block: &[u8]) -> Step {
        let first = !mem::replace(&mut self.explained, true);
        let Some(why) = self.block.reason().filter(|_| first) else {
            return Ok(());
        };
        self.say(Code::REWRITTEN, why, block)
    }

    /// Says that blocks do not pass because too much would wait, unless it is known why the stream is written anew.
    pub(crate) fn explain_held(&mut self, blocks: &[u8]) -> Step {
        if mem::replace(&mut self.explained, true) {
            return Ok(());
        }
        self.say(Code::REWRITTEN, "held_too_long", blocks)
    }

    /// Says that the opening is put in, for that reason.
    pub(crate) fn tell_opening(&mut self, why: &'static str, block: &[u8]) -> Step {
        self.say(Code::REWRITTEN, why, block)
    }

    /// Says what is put in or left out for that reason, the first time.
    pub(crate) fn tell_once(&mut self, why: &'static str, block: &[u8]) -> Step {
        if self.told.contains(&why) {
            return Ok(());
        }
        self.told.push(why);
        self.say(Code::REWRITTEN, why, block)
    }

    /// Says the losses of what was written. Where they are faults, the first is all that is said.
    pub(crate) fn tell(&mut self, block: &[u8]) -> Step {
        while let Some(id) = self.job.losses.next() {
            let said = self.say(Code::NOT_CARRIED, id, block);
            if said.is_err() {
                while self.job.losses.next().is_some() {}
                return said;
            }
        }
        Ok(())
    }

    /// Says the losses of an element of an array, before the next one is at hand.
    fn tell_element(&mut self) {
        self.write_pieces();
        if self.stopped {
            return;
        }
        if let Err(fault) = self.tell(&[]) {
            self.stopped = true;
            self.refusal = Some(fault);
        }
    }

    fn say(&mut self, code: Code, detail: &'static str, block: &[u8]) -> Step {
        if !self.raises.contains(&code) {
            self.lost.add(code, detail, self.place);
            return Ok(());
        }
        self.keep_payload(block);
        let (offset, ordinal) = self.place;
        let arrival = PlacedPayload {
            event: &self.event_name,
            data: &self.payload,
            offset,
            ordinal,
            stray: false,
        };
        Err(arrival.place(Fault::of_code(code, detail)))
    }

    /// Calls are shown whole, and one is under way.
    pub(crate) fn holds(&self) -> bool {
        let shows_whole = self.job.options.hold_arguments || WHOLE_CALLS.contains(&self.job.source);
        shows_whole && !self.calls.is_empty()
    }

    fn stop_if_broken(&mut self) {
        if self.job.broken && !self.stopped {
            self.block.touched = true;
            self.stopped = true;
            self.refusal = Some(Fault::new(Class::Lifecycle, "lifecycle"));
        }
    }

    /// What the encoder does not have yet is written, but for what has passed.
    pub(crate) fn write_pieces(&mut self) {
        let Some(encoder) = &mut self.encoder else {
            return;
        };
        if !self.pieces.is_empty() {
            self.pieces.hand_on(&mut **encoder, &mut self.job);
            self.stop_if_broken();
        }
    }

    /// Nothing of the block is written anew.
    #[inline]
    pub(crate) fn forget(&mut self) {
        if let Some(encoder) = &mut self.encoder {
            self.pieces.pass(&mut **encoder, &mut self.job);
        }
        self.job.writer.bytes.clear();
        self.job.losses.forget();
    }

    /// No more is written: the answer's end passes.
    pub(crate) fn rest(&mut self) {
        self.stopped = true;
    }

    /// Of blocks that brought pieces of texts and nothing else: they have passed.
    #[inline]
    pub(crate) fn pass_pieces(&mut self) {
        if let Some(encoder) = &mut self.encoder {
            self.pieces.pass(&mut **encoder, &mut self.job);
        }
        self.job.passed.sequence = self.said.next();
    }

    /// What was said so far has passed. `numbered`: payloads among it.
    pub(crate) fn pass(&mut self, numbered: bool) {
        self.forget();
        self.said.pass(&mut self.job.passed, numbered);
    }

    /// The payload is the upstream's error: it is rewritten unless clients raise it as it was sent. True if they do.
    pub(crate) fn keep_own_error(&mut self) -> bool {
        let is_own = own_error::is_own(self.job.source, &self.event_name, &self.payload);
        if !is_own {
            self.block.touch("foreign_error");
        }
        is_own
    }

    pub(crate) fn end(&mut self, trouble: Option<EndingError>) {
        // Running counts may be said in every chunk: the last ones are those that hold.
        self.write_pieces();
        self.job.passed.payload.clone_from(&self.payload);
        self.job.passed.counted = self.said.counts_have_passed();
        if let Some(encoder) = &mut self.encoder {
            encoder.end(&mut self.job, trouble);
        }
    }
}

/// Dialects that number nothing: an event that was sent right passes behind a repair, too, if it is of these.
fn passes_behind(dialect: &str, event: &Event<'_>) -> bool {
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
