//! Writes interleaved parts as a sequence of blocks, for targets that allow only one open block at a time.
//!
//! An open block of text is closed when another part follows, and the text may continue in a new block. A tool call
//! stays open until it is complete. While a call is open, other parts wait in order, so that parallel calls are never
//! mixed. Calls are written in the order in which they were announced. The parser's limits also bound the amount of
//! waiting content. A `BlockWriter` writes the bytes.

use crate::encode::common::block::Block;
use crate::encode::common::block::BlockOutput;
use crate::encode::common::block::BlockWriter;
use crate::encode::common::part_details::Call;
use crate::encode::common::part_details::CallRef;
use crate::encode::common::part_details::Done;
use crate::encode::common::part_details::Kind;
use crate::encode::common::part_details::StandalonePart;
use crate::model::event::Delta;
use crate::model::event::Event;
use crate::model::small_map::Map;
use std::collections::BTreeSet;
use std::collections::VecDeque;
use std::mem;

#[derive(Debug)]
pub(crate) enum Item {
    Part(u32),
    StandalonePart(StandalonePart<'static>),
}

/// Writes the parts of one response as a sequence of blocks.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    pub(crate) active: Option<u32>,
    /// True if the active block is a call.
    pub(crate) calling: bool,
    /// Blocks of parts that are not complete or not fully written yet.
    pub(crate) blocks: Map<u32, Block>,
    /// Parts that wait until no call is open, in the order in which they are written.
    pub(crate) queue: VecDeque<Item>,
    /// Part numbers of announced calls that have not been started, in the order in which they will be started.
    pub(crate) announced: BTreeSet<u32>,
    /// Part numbers of unfinished calls that were announced with an id, by call id.
    pub(crate) ids: Map<String, u32>,
    /// Complete calls that have not been written yet, by call id.
    pub(crate) unwritten_calls: Map<String, u32>,
    /// Name of each written call, and whether the provider runs it. The name and the flag are needed when the call's
    /// result is written.
    pub(crate) written: Map<String, (String, bool)>,
    /// Complete calls that are written at the end of the response, unless their result arrives before. The client must
    /// not run a call that already has a result.
    pub(crate) unanswered: Vec<(String, u32)>,
    /// Number of written calls that the client must run.
    pub(crate) client_calls: usize,
    /// True if a call was omitted because its result arrived.
    pub(crate) answered: bool,
    /// True if the upstream changed or retracted content that was already written. The target cannot express a change
    /// of written content, so the stream ends with an error.
    pub(crate) contradicted: bool,
}

impl Blocks {
    /// Handles the next event of a part, and ignores other events.
    pub(crate) fn event<F: BlockWriter>(&mut self, to: &mut BlockOutput<'_, F>, event: &Event<'_>) {
        match *event {
            Event::TextDelta(delta) => self.push(to, delta, Kind::Text),
            Event::ToolCallDelta(delta) => self.arguments(to, delta),
            Event::ReasoningDelta(delta) => self.push(to, delta, Kind::Reasoning),
            Event::RefusalDelta(delta) => self.push(to, delta, Kind::Refusal),
            Event::ToolCallStarted { .. } => self.announce::<F>(to.context, event),
            Event::ToolCallReset(mark) => {
                if let Some(block) = self.blocks.get_mut(&mark.part) {
                    block.waits.clear();
                    block.frozen = !block.out.is_empty();
                }
            }
            Event::ToolCallRetracted(mark) => self.retract(to, mark.part),
            Event::ToolCall { .. } => {
                if let Some((part, call)) = Call::of(event) {
                    self.call(to, part, call);
                }
            }
            Event::TextDone { .. } | Event::ReasoningDone { .. } | Event::RefusalDone(_) => {
                if let Some((part, text, done)) = Done::of(event) {
                    self.done(to, part, text, done);
                }
            }
            Event::Source { .. } | Event::File { .. } | Event::ToolResult { .. } => {
                if let Some(what) = StandalonePart::of(event) {
                    self.write_standalone_blocks(to, what);
                }
            }
            _ => {}
        }
    }

    /// Ends a complete response by closing the open block and writing all waiting content.
    pub(crate) fn finish<F: BlockWriter>(&mut self, to: &mut BlockOutput<'_, F>) {
        while let Some(part) = self.active.take() {
            let block = self.blocks.slot(part);
            to.form.close(to.context, block, None);
            if let Some(call) = block.call.take() {
                self.write_down(to, part, &call);
            }
            self.go_on(to);
        }
        let mut unanswered = mem::take(&mut self.unanswered);
        unanswered.sort_unstable_by_key(|(_, part)| *part); // in order of announcement
        for (_, part) in unanswered {
            self.write(to, part);
        }
    }

    /// Ends an incomplete response. Waiting text is written, but no waiting call is started.
    pub(crate) fn abandon<F: BlockWriter>(&mut self, to: &mut BlockOutput<'_, F>) {
        if let Some(part) = self.active.take() {
            to.form.broken_off(to.context, self.blocks.slot(part));
        }
        for item in mem::take(&mut self.queue) {
            match item {
                Item::StandalonePart(what) => self.write_standalone(to, &what),
                Item::Part(part) => {
                    let kind = self.blocks.get(&part).map(|block| block.kind);
                    if kind == Some(Kind::Call) {
                        to.context.losses.note("cut_call");
                    } else if kind.is_some() {
                        self.write(to, part);
                        self.give_way(to);
                    }
                }
            }
        }
        let mut left = self
            .announced
            .iter()
            .filter_map(|part| self.blocks.get(part));
        if left.any(|block| block.passed) {
            to.context.losses.note("cut_call");
        }
    }

    // Texts

    pub(crate) fn textual(&mut self, part: u32, kind: Kind) -> &mut Block {
        if !self.blocks.contains_key(&part) {
            let block = Block {
                kind,
                ..Block::default()
            };
            self.blocks.insert(part, block);
        }
        self.blocks.slot(part)
    }

    fn push<F: BlockWriter>(&mut self, to: &mut BlockOutput<'_, F>, delta: Delta<'_>, kind: Kind) {
        if delta.text.is_empty() {
            return;
        }
        self.textual(delta.part, kind);
        self.bring(to, delta.part, delta.text);
    }

    pub(crate) fn bring<F: BlockWriter>(
        &mut self,
        to: &mut BlockOutput<'_, F>,
        part: u32,
        text: &str,
    ) {
        if self.waits(part) {
            self.blocks.slot(part).waits.push_str(text);
            self.enqueue(part);
        } else {
            self.put(to, part, text, None);
        }
    }

    /// Writes text of a part that does not have to wait, and opens the part's block if necessary.
    fn put<F: BlockWriter>(
        &mut self,
        to: &mut BlockOutput<'_, F>,
        part: u32,
        text: &str,
        done: Option<&Done<'_>>,
    ) {
        if self.active != Some(part) {
            self.open(to, part, done);
        }
        let block = self.blocks.slot(part);
        block.out.push_str(text);
        to.form.piece(to.context, block, text);
    }

    fn done<F: BlockWriter>(
        &mut self,
        to: &mut BlockOutput<'_, F>,
        part: u32,
        text: &str,
        done: Done<'_>,
    ) {
        let block = self.textual(part, done.kind);
        let rest = text.strip_prefix(block.out.as_str());
        if rest.is_none() {
            to.context.losses.note("text_corrected");
        }
        let rest = rest.unwrap_or_default();
        if self.waits(part) {
            let block = self.blocks.slot(part);
            rest.clone_into(&mut block.waits);
            block.done = Some(Box::new(done.keep()));
            self.enqueue(part);
        } else {
            self.write_text(to, part, rest, Some(&done));
        }
    }

    // Sources, files and results

    fn write_standalone_blocks<F: BlockWriter>(
        &mut self,
        to: &mut BlockOutput<'_, F>,
        what: StandalonePart<'_>,
    ) {
        if let StandalonePart::Result(result) = &what {
            let call_id: &str = &result.call_id;
            let owner = self
                .ids
                .get(call_id)
                .or_else(|| self.unwritten_calls.get(call_id));
            if let Some(block) = owner.and_then(|owner| self.blocks.get_mut(owner)) {
                block.results.push(result.clone().keep());
                return;
            }
            if !self.written.contains_key(call_id) {
                let part_index = self.unanswered.iter().position(|(id, _)| id == call_id);
                if let Some(part_index) = part_index {
                    let (_, part) = self.unanswered.remove(part_index);
                    self.blocks.remove(&part);
                    self.answered = true;
                }
                return to.context.losses.note("server_tool");
            }
        }
        if F::CITES_IN_TEXT && matches!(what, StandalonePart::Source { .. }) {
            self.write_source(to, &what);
        } else if self.active.is_some() && self.calling {
            self.queue.push_back(Item::StandalonePart(what.keep()));
        } else {
            self.write_standalone(to, &what);
        }
    }

    /// Writes a source into the open text block, if there is one.
    fn write_source<F: BlockWriter>(
        &mut self,
        to: &mut BlockOutput<'_, F>,
        what: &StandalonePart<'_>,
    ) {
        let open = self.active.and_then(|part| self.blocks.get(&part));
        let open = open.filter(|block| block.kind == Kind::Text);
        match (open, what.page()) {
            (Some(block), Some(page)) => to.form.cite_page(to.context, block, &page),
            _ => to.form.write_standalone(to.context, what, None),
        }
    }

    fn write_standalone<F: BlockWriter>(
        &mut self,
        to: &mut BlockOutput<'_, F>,
        what: &StandalonePart<'_>,
    ) {
        let mut ran = None;
        match what {
            StandalonePart::Source { .. } => {} // a citation, which belongs to a position in the text
            StandalonePart::File { .. } => self.give_way(to),
            StandalonePart::Result(result) => {
                self.give_way(to);
                let known = self.written.get(result.call_id.as_ref());
                ran = known.map(|(name, provider_executed)| CallRef {
                    call_id: &result.call_id,
                    name,
                    provider_executed: *provider_executed,
                });
            }
        }
        to.form.write_standalone(to.context, what, ran);
    }

    // The queue

    /// Returns true if the part must wait because another call is open, or because a call that was announced earlier
    /// has not been started.
    pub(crate) fn waits(&self, part: u32) -> bool {
        (self.calling && self.active.is_some_and(|active| active != part)) || self.is_early(part)
    }

    fn is_early(&self, part: u32) -> bool {
        self.announced.contains(&part) && self.announced.first() != Some(&part)
    }

    pub(crate) fn enqueue(&mut self, part: u32) {
        let block = self.blocks.slot(part);
        if !(block.passed || mem::replace(&mut block.queued, true)) {
            self.queue.push_back(Item::Part(part));
        }
    }

    fn open<F: BlockWriter>(
        &mut self,
        to: &mut BlockOutput<'_, F>,
        part: u32,
        done: Option<&Done<'_>>,
    ) {
        self.give_way(to);
        let block = self.blocks.slot(part);
        self.active = Some(part);
        self.calling = block.kind == Kind::Call;
        to.form.open(to.context, block, done);
        self.take_turn(part);
    }

    /// Removes a call from the announced calls, because its output was started or the call was dropped. If the next
    /// announced call was skipped in the queue, it is queued again.
    pub(crate) fn take_turn(&mut self, part: u32) {
        if self.announced.first() != Some(&part) {
            self.announced.remove(&part);
            return;
        }
        self.announced.pop_first();
        let next = self.announced.first().copied();
        if let Some(next) = next
            && let Some(block) = self.blocks.get_mut(&next)
            && mem::replace(&mut block.passed, false)
        {
            block.queued = true;
            self.queue.push_front(Item::Part(next));
        }
    }

    /// Closes the open text block to make room for another part. The text may continue in a new block.
    pub(crate) fn give_way<F: BlockWriter>(&mut self, to: &mut BlockOutput<'_, F>) {
        if let Some(part) = self.active.take() {
            to.form.close(to.context, self.blocks.slot(part), None);
        }
    }

    /// Writes the waiting parts until a call is open or the queue is empty.
    pub(crate) fn go_on<F: BlockWriter>(&mut self, to: &mut BlockOutput<'_, F>) {
        while self.active.is_none() || !self.calling {
            match self.next_in_row() {
                Some(Item::StandalonePart(what)) => self.write_standalone(to, &what),
                Some(Item::Part(part)) => self.write(to, part),
                None => return,
            }
        }
    }

    /// Removes and returns the next item to write. A call that must wait for an earlier call is skipped, and
    /// `take_turn` queues it again.
    fn next_in_row(&mut self) -> Option<Item> {
        loop {
            match self.queue.pop_front()? {
                Item::Part(part) if self.is_early(part) => {
                    let block = self.blocks.slot(part);
                    (block.queued, block.passed) = (false, true);
                }
                item => return Some(item),
            }
        }
    }

    /// Writes the waiting content of a part. No other call may be open.
    fn write<F: BlockWriter>(&mut self, to: &mut BlockOutput<'_, F>, part: u32) {
        let Some(block) = self.blocks.get_mut(&part) else {
            return; // retracted
        };
        block.queued = false;
        if let Some(call) = block.call.take() {
            return self.write_call(to, part, &call);
        }
        let (text, done) = (mem::take(&mut block.waits), block.done.take());
        self.write_text(to, part, &text, done.as_deref());
    }

    fn write_text<F: BlockWriter>(
        &mut self,
        to: &mut BlockOutput<'_, F>,
        part: u32,
        text: &str,
        done: Option<&Done<'_>>,
    ) {
        if !text.is_empty() {
            self.put(to, part, text, done);
        } else if self.active != Some(part)
            && let Some(done) = done
            && to
                .form
                .needs_empty_block(to.context, self.blocks.slot(part), done)
        {
            self.open(to, part, Some(done));
        }
        let Some(done) = done else { return };
        let block = self.blocks.slot(part);
        if self.active == Some(part) {
            self.active = None;
            to.form.close(to.context, block, Some(done));
        }
        to.form.over(to.context, block, done);
        self.blocks.remove(&part);
    }
}
