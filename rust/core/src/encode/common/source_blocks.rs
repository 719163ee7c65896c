//! Writes blocks in the dialect of their source: opens, continues and closes each block where the source did.
//!
//! `SourceBlocks` replaces the queue in `Blocks`. Some sources open a block while another block is open, although
//! clients of the dialect support only one open block. The open block stays open until the source closes it, and the
//! other blocks wait in the order in which they started. As in `Blocks`, a call that cannot be written as it arrives is
//! written when it is complete.

use crate::encode::common::block::Block;
use crate::encode::common::block::BlockOutput;
use crate::encode::common::block::BlockWriter;
use crate::encode::common::block::UnmodelledBlock;
use crate::encode::common::block_calls::finish_call;
use crate::encode::common::block_calls::lost;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::part_details::Call;
use crate::encode::common::part_details::CallRef;
use crate::encode::common::part_details::Done;
use crate::encode::common::part_details::Kind;
use crate::encode::common::part_details::StandalonePart;
use crate::model::event::Delta;
use crate::model::event::Event;
use crate::model::event::Mark;
use crate::model::event::Opened;
use crate::model::small_map::Map;
use std::collections::BTreeSet;
use std::collections::VecDeque;
use std::mem;

/// Writes the parts of one response in the source's order.
#[derive(Debug, Default)]
pub(crate) struct SourceBlocks {
    /// Blocks of unfinished parts.
    blocks: Map<u32, Block>,
    open: BTreeSet<u32>,
    /// Open blocks whose stop event had not passed through at the last update of this set.
    unstopped: BTreeSet<u32>,
    /// Number of open calls for each id.
    open_ids: Map<String, usize>,
    /// A part that prevents other blocks from being opened, although none of its own content can be written yet.
    reserved: Option<u32>,
    /// Parts that wait to be written, in order.
    queue: VecDeque<u32>,
    /// Number of queued blocks without a part.
    unmodelled: u32,
    /// Calls whose final event arrived, but whose block must stay open until the response ends.
    ended_open_calls: Vec<u32>,
    /// Part numbers of unfinished calls that were announced with an id, by call id.
    ids: Map<String, u32>,
    /// Ids of complete calls that have not been written yet.
    unwritten_calls: BTreeSet<String>,
    /// Name of each written call, and whether the provider runs it.
    written: Map<String, (String, bool)>,
    pub(crate) client_calls: usize,
    pub(crate) contradicted: bool,
}

impl SourceBlocks {
    pub(crate) fn event<F: BlockWriter>(&mut self, to: &mut BlockOutput<'_, F>, event: &Event<'_>) {
        match *event {
            Event::TextStarted(Opened { part, .. }) => self.start(to, part, Kind::Text),
            Event::RefusalStarted(Mark { part, .. }) => self.start(to, part, Kind::Refusal),
            Event::ReasoningStarted {
                part,
                kind: "redacted",
                ..
            } => {
                self.textual(to.context, part, Kind::Reasoning).comes_whole = true;
                self.begin(to, part);
            }
            Event::ReasoningStarted { part, .. } => self.start(to, part, Kind::Reasoning),
            Event::TextDelta(delta) => self.push(to, delta, Kind::Text),
            Event::ReasoningDelta(delta) => self.push(to, delta, Kind::Reasoning),
            Event::RefusalDelta(delta) => self.push(to, delta, Kind::Refusal),
            Event::ToolCallStarted { .. } => self.announce(to, event),
            Event::ToolCallDelta(Delta { part, text, .. }) => {
                let streams = |block: &Block| !(block.held || block.frozen);
                if self.blocks.get(&part).is_some_and(streams) {
                    if !text.is_empty() && to.context.passed.ended.contains(&part) {
                        self.contradicted = true; // clients already received the end of a call without arguments
                    } else {
                        self.put(to, part, text, None);
                    }
                }
            }
            Event::ToolCallReset(mark) => {
                if let Some(block) = self.blocks.get_mut(&mark.part) {
                    block.waits.clear();
                    block.frozen = !block.out.is_empty();
                }
            }
            Event::ToolCallRetracted(mark) => {
                self.forget(mark.part);
                if self.open.contains(&mark.part) {
                    self.contradicted = true; // the start of its block was already written
                } else {
                    self.blocks.remove(&mark.part);
                }
            }
            Event::ToolCall { .. } => {
                if let Some((part, call)) = Call::of(event) {
                    self.call(to, part, call);
                }
            }
            Event::TextDone { .. } | Event::ReasoningDone { .. } | Event::RefusalDone(_) => {
                if let Some((part, text, done)) = Done::of(event) {
                    self.done(to, part, text, &done);
                }
            }
            Event::Source { .. } | Event::File { .. } | Event::ToolResult { .. } => {
                if let Some(what) = StandalonePart::of(event) {
                    self.write_standalone(to, &what);
                }
            }
            _ => {}
        }
        self.go_on(to);
    }

    /// Records a piece of text without writing it, because its original bytes were sent. Returns false and changes
    /// nothing if the block is not open or its deltas are not written.
    pub(crate) fn keep(&mut self, part: u32, text: &str) -> bool {
        let block = self
            .blocks
            .get_mut(&part)
            .filter(|_| self.open.contains(&part));
        let block = block.filter(|block| !(block.held || block.frozen));
        block.map(|block| block.out.push_str(text)).is_some()
    }

    /// Ends a complete response by closing the calls that had to stay open and writing all waiting content.
    pub(crate) fn finish<F: BlockWriter>(&mut self, to: &mut BlockOutput<'_, F>) {
        while !(self.ended_open_calls.is_empty() || self.contradicted) {
            for part in mem::take(&mut self.ended_open_calls) {
                self.mark_closed(part);
                let block = self.blocks.slot(part);
                to.form.close(to.context, block, None);
                if let Some(call) = block.call.take() {
                    self.write_down(&call);
                }
            }
            self.go_on(to);
        }
    }

    /// Returns true if `finish` would close a truncated call without arguments, which clients would run.
    pub(crate) fn has_empty_cut_call(&self) -> bool {
        let mut unwritten = self.ended_open_calls.iter().chain(&self.queue);
        unwritten.any(|part| {
            let call = self.blocks.get(part).and_then(|block| block.call.as_ref());
            call.is_some_and(|call| call.is_empty_cut())
        })
    }

    /// Ends a truncated response, in which blocks may still be open.
    pub(crate) fn abandon<F: BlockWriter>(&mut self, to: &mut BlockOutput<'_, F>) {
        self.unstopped.clear();
        self.open_ids.clear();
        for part in mem::take(&mut self.open) {
            to.form.broken_off(to.context, self.blocks.slot(part));
        }
    }

    // Content that no streamweld event represents

    /// Returns the part's block, and whether it is open.
    pub(crate) fn block(&mut self, part: u32) -> (Option<&mut Block>, bool) {
        (self.blocks.get_mut(&part), self.open.contains(&part))
    }

    /// Writes a block that no streamweld event represents, or queues it until no other block is open.
    pub(crate) fn unmodelled<F: BlockWriter>(
        &mut self,
        to: &mut BlockOutput<'_, F>,
        mut block: Block,
    ) {
        if !self.is_taken::<F>(to.context) {
            return to.form.unmodelled_block(to.context, &block);
        }
        self.unmodelled += 1;
        let part = u32::MAX - self.unmodelled; // not a part number of the source
        block.part = part;
        self.blocks.insert(part, block);
        self.enqueue(part);
    }

    /// Returns the last queued block if it has no part and its index is `at`.
    pub(crate) fn waiting(&mut self, at: Option<i64>) -> Option<&mut UnmodelledBlock> {
        let last = self.blocks.get_mut(self.queue.back()?)?;
        let is_meant = last.at == at;
        last.unmodelled.as_deref_mut().filter(|_| is_meant)
    }

    // The queue

    fn waits<F: BlockWriter>(&mut self, context: &EncodeContext, part: u32) -> bool {
        !(self.reserved == Some(part) || self.open.contains(&part)) && self.is_taken::<F>(context)
    }

    /// Returns true if no block may be opened because another block is open. A block whose stop event has passed
    /// through counts as closed.
    fn is_taken<F: BlockWriter>(&mut self, context: &EncodeContext) -> bool {
        if F::SIDE_BY_SIDE || self.reserved.is_some() {
            return !F::SIDE_BY_SIDE;
        }
        while let Some(first) = self.unstopped.first() {
            if !context.passed.ended.contains(first) {
                return true;
            }
            self.unstopped.pop_first();
        }
        false
    }

    /// Marks the block as open. Returns false if the block was already open.
    fn mark_open(&mut self, part: u32) -> bool {
        let is_new = self.open.insert(part);
        if is_new {
            self.unstopped.insert(part);
            let call = self.blocks.get(&part);
            if let Some(call) = call.filter(|block| block.kind == Kind::Call) {
                *self.open_ids.slot(call.call_id.clone()) += 1;
            }
        }
        is_new
    }

    /// Marks the block as closed. Returns false if the block was not open.
    fn mark_closed(&mut self, part: u32) -> bool {
        let was_open = self.open.remove(&part);
        if was_open {
            self.unstopped.remove(&part);
            let call = self.blocks.get(&part);
            if let Some(call) = call.filter(|block| block.kind == Kind::Call)
                && let Some(count) = self.open_ids.get_mut(&call.call_id)
            {
                *count = count.saturating_sub(1);
            }
        }
        was_open
    }

    fn enqueue(&mut self, part: u32) {
        let block = self.blocks.slot(part);
        if !mem::replace(&mut block.queued, true) {
            self.queue.push_back(part);
        }
    }

    /// Writes the waiting parts as long as a block may be opened. Writes nothing if the upstream contradicted text that
    /// was already written.
    #[inline]
    fn go_on<F: BlockWriter>(&mut self, to: &mut BlockOutput<'_, F>) {
        while !(self.queue.is_empty() || self.contradicted || self.is_taken::<F>(to.context)) {
            if let Some(part) = self.queue.pop_front()
                && self.blocks.contains_key(&part)
            {
                self.write(to, part);
            }
        }
    }

    /// Writes the waiting content of a part. No other block may be open.
    fn write<F: BlockWriter>(&mut self, to: &mut BlockOutput<'_, F>, part: u32) {
        let block = self.blocks.slot(part);
        block.queued = false;
        if block.unmodelled.is_some() {
            to.form.unmodelled_block(to.context, block);
            self.blocks.remove(&part);
            return;
        }
        let waits = mem::take(&mut block.waits);
        if let Some(call) = block.call.take() {
            self.unwritten_calls.remove(call.call_id.as_ref());
            if block.held {
                self.blocks.remove(&part);
                self.write_call(to, &call);
            } else {
                self.open(to, part, None);
                self.end_call(to, part, *call);
            }
        } else if let Some(done) = block.done.take() {
            self.done(to, part, &waits, &done);
        } else {
            self.begin(to, part);
            self.put(to, part, &waits, None);
        }
    }

    // Texts

    fn textual(&mut self, context: &mut EncodeContext, part: u32, kind: Kind) -> &mut Block {
        if !self.blocks.contains_key(&part) {
            self.blocks.insert(part, Block::new(context, part, kind));
        }
        self.blocks.slot(part)
    }

    fn start<F: BlockWriter>(&mut self, to: &mut BlockOutput<'_, F>, part: u32, kind: Kind) {
        self.textual(to.context, part, kind);
        self.begin(to, part);
    }

    fn begin<F: BlockWriter>(&mut self, to: &mut BlockOutput<'_, F>, part: u32) {
        if self.waits::<F>(to.context, part) {
            self.enqueue(part);
        } else if self.blocks.slot(part).comes_whole {
            self.reserved = Some(part);
        } else {
            self.open(to, part, None);
        }
    }

    fn push<F: BlockWriter>(&mut self, to: &mut BlockOutput<'_, F>, delta: Delta<'_>, kind: Kind) {
        self.textual(to.context, delta.part, kind);
        self.put(to, delta.part, delta.text, None);
    }

    fn put<F: BlockWriter>(
        &mut self,
        to: &mut BlockOutput<'_, F>,
        part: u32,
        text: &str,
        done: Option<&Done<'_>>,
    ) {
        if text.is_empty() {
            return;
        }
        if self.waits::<F>(to.context, part) {
            self.blocks.slot(part).waits.push_str(text);
            return self.enqueue(part);
        }
        self.open(to, part, done);
        let block = self.blocks.slot(part);
        block.out.push_str(text);
        to.form.piece(to.context, block, text);
    }

    fn open<F: BlockWriter>(
        &mut self,
        to: &mut BlockOutput<'_, F>,
        part: u32,
        done: Option<&Done<'_>>,
    ) {
        if self.mark_open(part) {
            to.form.open(to.context, self.blocks.slot(part), done);
        }
    }

    fn done<F: BlockWriter>(
        &mut self,
        to: &mut BlockOutput<'_, F>,
        part: u32,
        text: &str,
        done: &Done<'_>,
    ) {
        let waits = self.waits::<F>(to.context, part);
        let block = self.textual(to.context, part, done.kind);
        if waits {
            text.clone_into(&mut block.waits);
            block.done = Some(Box::new(done.clone().keep()));
            return self.enqueue(part);
        }
        self.reserved = self.reserved.filter(|reserved| *reserved != part);
        let block = self.blocks.slot(part);
        let written = mem::take(&mut block.out);
        let rest = text.strip_prefix(written.as_str());
        if rest.is_none() {
            to.context.losses.note("text_corrected");
        }
        block.out = written;
        match rest.unwrap_or_default() {
            "" if !self.open.contains(&part) => {
                if to
                    .form
                    .needs_empty_block(to.context, self.blocks.slot(part), done)
                {
                    self.open(to, part, Some(done));
                }
            }
            rest => self.put(to, part, rest, Some(done)),
        }
        let was_open = self.mark_closed(part);
        let block = self.blocks.slot(part);
        if was_open {
            to.form.close(to.context, block, Some(done));
        }
        to.form.over(to.context, block, done);
        self.blocks.remove(&part);
    }

    // Calls

    fn announce<F: BlockWriter>(&mut self, to: &mut BlockOutput<'_, F>, event: &Event<'_>) {
        let Event::ToolCallStarted {
            part,
            call_id,
            name,
            provider_executed,
            custom,
            ..
        } = *event
        else {
            return;
        };
        let call_id = call_id.unwrap_or_default();
        if !call_id.is_empty() && !self.ids.contains_key(call_id) {
            self.ids.insert(call_id.to_owned(), part);
        }
        let is_used = to.context.has_earlier_call(call_id)
            || self.unwritten_calls.contains(call_id)
            || self.written.contains_key(call_id)
            || self.ids.get(call_id) != Some(&part);
        let held = to.context.options.hold_arguments || custom || is_used || name.trim().is_empty();
        let block = Block {
            call_id: call_id.to_owned(),
            name: name.to_owned(),
            provider_executed,
            held,
            ..Block::new(to.context, part, Kind::Call)
        };
        self.blocks.insert(part, block);
        if !held {
            self.begin(to, part);
        }
    }

    fn call<F: BlockWriter>(&mut self, to: &mut BlockOutput<'_, F>, part: u32, call: Call<'_>) {
        self.forget(part);
        if self.open.contains(&part) {
            return self.end_call(to, part, call);
        }
        let begun = |block: &Block| block.queued && !block.held;
        if self.blocks.get(&part).is_some_and(begun) {
            self.unwritten_calls
                .insert(call.call_id.clone().into_owned());
            self.blocks.slot(part).call = Some(Box::new(call.keep()));
        } else if let Some(lost) = lost::<F>(to.context, &call) {
            self.blocks.remove(&part);
            to.context.losses.note(lost);
        } else if self.waits::<F>(to.context, part) {
            self.unwritten_calls
                .insert(call.call_id.clone().into_owned());
            let block = self.textual(to.context, part, Kind::Call);
            block.held = true;
            block.call = Some(Box::new(call.keep()));
            self.enqueue(part);
        } else {
            self.blocks.remove(&part);
            self.write_call(to, &call);
        }
    }

    /// Writes a whole call. If an open call has the same id, sets `contradicted` instead.
    fn write_call<F: BlockWriter>(&mut self, to: &mut BlockOutput<'_, F>, call: &Call<'_>) {
        let count = self.open_ids.get(call.call_id.as_ref());
        if count.is_some_and(|count| *count > 0) {
            self.contradicted = true;
            return;
        }
        to.form.whole_call(to.context, call);
        self.write_down(call);
    }

    /// Writes the end of a call whose block is open, or leaves the block open until the response ends.
    fn end_call<F: BlockWriter>(&mut self, to: &mut BlockOutput<'_, F>, part: u32, call: Call<'_>) {
        let block = self.blocks.slot(part);
        let rest = call.arguments.strip_prefix(block.out.as_str());
        let has_ended = to.context.passed.ended.contains(&part);
        if has_ended && rest.is_some_and(|rest| !rest.is_empty()) {
            self.contradicted = true; // clients already received the end of the block with less text
            return;
        }
        match finish_call(to, block, &call) {
            None => self.contradicted = true,
            Some(true) => {
                self.write_down(&call);
                self.mark_closed(part);
                self.blocks.remove(&part);
            }
            Some(false) => {
                block.call = Some(Box::new(call.keep()));
                self.ended_open_calls.push(part);
            }
        }
    }

    fn write_down(&mut self, call: &Call<'_>) {
        let kept = (call.name.clone().into_owned(), call.provider_executed);
        self.written.insert(call.call_id.clone().into_owned(), kept);
        self.client_calls += usize::from(!call.provider_executed);
    }

    /// Removes a retracted or finished call from the table of announced ids.
    fn forget(&mut self, part: u32) {
        if let Some(block) = self.blocks.get(&part)
            && self.ids.get(&block.call_id) == Some(&part)
        {
            self.ids.remove(&block.call_id);
        }
    }

    fn write_standalone<F: BlockWriter>(
        &mut self,
        to: &mut BlockOutput<'_, F>,
        what: &StandalonePart<'_>,
    ) {
        let mut ran = None;
        if let StandalonePart::Result(result) = what {
            let known = self.written.get(result.call_id.as_ref());
            ran = known.map(|(name, provider_executed)| CallRef {
                call_id: &result.call_id,
                name,
                provider_executed: *provider_executed,
            });
        }
        to.form.write_standalone(to.context, what, ran);
    }
}
