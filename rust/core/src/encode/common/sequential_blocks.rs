//! One block at a time, out of parts that come as they please: who writes now, who waits, in which order it goes on.
//!
//! For targets whose blocks stand one behind the other. Text gives way to whatever comes next; a tool call keeps its place
//! until it is whole, and what others bring meanwhile waits in order, so that parallel calls are never cross-wired. What
//! waits is bounded by the parser's own limits, which counted it already. Knows no frame: a `Form` does the writing.

use crate::encode::common::block::Block;
use crate::encode::common::block::Form;
use crate::encode::common::block::Pen;
use crate::encode::common::part_details::Beside;
use crate::encode::common::part_details::Call;
use crate::encode::common::part_details::Done;
use crate::encode::common::part_details::Kind;
use crate::encode::common::part_details::Ran;
use crate::model::event::Delta;
use crate::model::event::Event;
use crate::model::small_map::Map;
use std::collections::BTreeSet;
use std::collections::VecDeque;
use std::mem;

#[derive(Debug)]
pub(crate) enum Item {
    Part(u32),
    Beside(Beside<'static>),
}

/// The parts of one answer, put in a row.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    pub(crate) active: Option<u32>,
    /// The active one is a call.
    pub(crate) calling: bool,
    /// Those of which something is to come, or to be written.
    pub(crate) blocks: Map<u32, Block>,
    pub(crate) row: VecDeque<Item>,
    /// Calls of which nothing was written: none is begun before those that were announced before it.
    pub(crate) announced: BTreeSet<u32>,
    /// Calls that were announced under an id and are not over.
    pub(crate) ids: Map<String, u32>,
    /// Calls that are over and wait.
    pub(crate) later: Map<String, u32>,
    /// Those that were written, by name and who runs them: results name them.
    pub(crate) written: Map<String, (String, bool)>,
    /// Those that may yet be answered, and then must not be run again.
    pub(crate) unanswered: Vec<(String, u32)>,
    /// How many of those that were written are the client's to run.
    pub(crate) client_calls: usize,
    /// A call was left out because its answer came.
    pub(crate) answered: bool,
    /// Upstream took back what went out, and the target cannot: the stream ends here.
    pub(crate) contradicted: bool,
}

impl Blocks {
    /// Takes the next event of a part; others are nothing to it.
    pub(crate) fn event<F: Form>(&mut self, to: &mut Pen<'_, F>, event: &Event<'_>) {
        match *event {
            Event::TextDelta(delta) => self.push(to, delta, Kind::Text),
            Event::ToolCallDelta(delta) => self.arguments(to, delta),
            Event::ReasoningDelta(delta) => self.push(to, delta, Kind::Reasoning),
            Event::RefusalDelta(delta) => self.push(to, delta, Kind::Refusal),
            Event::ToolCallStarted { .. } => self.announce::<F>(to.job, event),
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
                if let Some(what) = Beside::of(event) {
                    self.stand(to, what);
                }
            }
            _ => {}
        }
    }

    /// The answer is whole: what was left open for the end is closed, and nothing waits any more.
    pub(crate) fn finish<F: Form>(&mut self, to: &mut Pen<'_, F>) {
        self.announced.clear();
        self.go_on(to);
        while let Some(part) = self.active.take() {
            let block = self.blocks.slot(part);
            to.form.close(to.job, block, None);
            if let Some(call) = block.call.take() {
                self.write_down(to, part, &call);
            }
            self.go_on(to);
        }
        let mut unanswered = mem::take(&mut self.unanswered);
        unanswered.sort_unstable_by_key(|(_, part)| *part); // as they were announced
        for (_, part) in unanswered {
            self.write(to, part);
        }
    }

    /// The answer broke off: texts that wait are written as far as they came, calls are not begun.
    pub(crate) fn abandon<F: Form>(&mut self, to: &mut Pen<'_, F>) {
        if let Some(part) = self.active.take() {
            to.form.broken_off(to.job, self.blocks.slot(part));
        }
        for item in mem::take(&mut self.row) {
            match item {
                Item::Beside(what) => self.write_beside(to, &what),
                Item::Part(part) => {
                    let kind = self.blocks.get(&part).map(|block| block.kind);
                    if kind == Some(Kind::Call) {
                        to.job.losses.note("cut_call");
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
            to.job.losses.note("cut_call");
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

    fn push<F: Form>(&mut self, to: &mut Pen<'_, F>, delta: Delta<'_>, kind: Kind) {
        if delta.text.is_empty() {
            return;
        }
        self.textual(delta.part, kind);
        self.bring(to, delta.part, delta.text);
    }

    pub(crate) fn bring<F: Form>(&mut self, to: &mut Pen<'_, F>, part: u32, text: &str) {
        if self.waits(part) {
            self.blocks.slot(part).waits.push_str(text);
            self.line_up(part);
        } else {
            self.put(to, part, text, None);
        }
    }

    /// Text of a part in whose way nobody is.
    fn put<F: Form>(
        &mut self,
        to: &mut Pen<'_, F>,
        part: u32,
        text: &str,
        done: Option<&Done<'_>>,
    ) {
        if self.active != Some(part) {
            self.open(to, part, done);
        }
        let block = self.blocks.slot(part);
        block.out.push_str(text);
        to.form.piece(to.job, block, text);
    }

    fn done<F: Form>(&mut self, to: &mut Pen<'_, F>, part: u32, text: &str, done: Done<'_>) {
        let block = self.textual(part, done.kind);
        let rest = text.strip_prefix(block.out.as_str());
        if rest.is_none() {
            to.job.losses.note("text_corrected");
        }
        let rest = rest.unwrap_or_default();
        if self.waits(part) {
            let block = self.blocks.slot(part);
            rest.clone_into(&mut block.waits);
            block.done = Some(Box::new(done.keep()));
            self.line_up(part);
        } else {
            self.write_text(to, part, rest, Some(&done));
        }
    }

    // What stands beside

    fn stand<F: Form>(&mut self, to: &mut Pen<'_, F>, what: Beside<'_>) {
        if let Beside::Result(result) = &what {
            let call_id: &str = &result.call_id;
            let owner = self.ids.get(call_id).or_else(|| self.later.get(call_id));
            if let Some(block) = owner.and_then(|owner| self.blocks.get_mut(owner)) {
                block.results.push(result.clone().keep());
                return;
            }
            if !self.written.contains_key(call_id) {
                let place = self.unanswered.iter().position(|(id, _)| id == call_id);
                if let Some(place) = place {
                    let (_, part) = self.unanswered.remove(place);
                    self.blocks.remove(&part);
                    self.answered = true;
                }
                return to.job.losses.note("server_tool");
            }
        }
        if self.active.is_some() && self.calling {
            self.row.push_back(Item::Beside(what.keep()));
        } else {
            self.write_beside(to, &what);
        }
    }

    fn write_beside<F: Form>(&mut self, to: &mut Pen<'_, F>, what: &Beside<'_>) {
        let mut ran = None;
        match what {
            Beside::Source { .. } => {} // it stands in its text
            Beside::File { .. } => self.give_way(to),
            Beside::Result(result) => {
                self.give_way(to);
                let known = self.written.get(result.call_id.as_ref());
                ran = known.map(|(name, provider_executed)| Ran {
                    call_id: &result.call_id,
                    name,
                    provider_executed: *provider_executed,
                });
            }
        }
        to.form.beside(to.job, what, ran);
    }

    // The row

    /// A call is open: everything else has to wait. So has a call that was announced after one that is not begun.
    pub(crate) fn waits(&self, part: u32) -> bool {
        (self.calling && self.active.is_some_and(|active| active != part)) || self.is_early(part)
    }

    fn is_early(&self, part: u32) -> bool {
        self.announced.contains(&part) && self.announced.first() != Some(&part)
    }

    pub(crate) fn line_up(&mut self, part: u32) {
        let block = self.blocks.slot(part);
        if !(block.passed || mem::replace(&mut block.queued, true)) {
            self.row.push_back(Item::Part(part));
        }
    }

    fn open<F: Form>(&mut self, to: &mut Pen<'_, F>, part: u32, done: Option<&Done<'_>>) {
        self.give_way(to);
        let block = self.blocks.slot(part);
        self.active = Some(part);
        self.calling = block.kind == Kind::Call;
        to.form.open(to.job, block, done);
        self.take_turn(part);
    }

    /// The call is written, or never will be: the next one that was announced may follow.
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
            self.row.push_front(Item::Part(next));
        }
    }

    /// The open text makes room for another part; it may go on in a block of its own.
    pub(crate) fn give_way<F: Form>(&mut self, to: &mut Pen<'_, F>) {
        if let Some(part) = self.active.take() {
            to.form.close(to.job, self.blocks.slot(part), None);
        }
    }

    /// Writes what waits, until a call takes the place again, or the next call is not begun.
    pub(crate) fn go_on<F: Form>(&mut self, to: &mut Pen<'_, F>) {
        while self.active.is_none() || !self.calling {
            match self.next_in_row() {
                Some(Item::Beside(what)) => self.write_beside(to, &what),
                Some(Item::Part(part)) => self.write(to, part),
                None => return,
            }
        }
    }

    /// The next item that may be written. A call whose turn has not come leaves the row until it comes (`take_turn`).
    fn next_in_row(&mut self) -> Option<Item> {
        loop {
            match self.row.pop_front()? {
                Item::Part(part) if self.is_early(part) => {
                    let block = self.blocks.slot(part);
                    (block.queued, block.passed) = (false, true);
                }
                item => return Some(item),
            }
        }
    }

    /// All that a block has so far; nobody is in its way.
    fn write<F: Form>(&mut self, to: &mut Pen<'_, F>, part: u32) {
        let Some(block) = self.blocks.get_mut(&part) else {
            return; // taken back
        };
        block.queued = false;
        if let Some(call) = block.call.take() {
            return self.write_call(to, part, &call);
        }
        let (text, done) = (mem::take(&mut block.waits), block.done.take());
        self.write_text(to, part, &text, done.as_deref());
    }

    fn write_text<F: Form>(
        &mut self,
        to: &mut Pen<'_, F>,
        part: u32,
        text: &str,
        done: Option<&Done<'_>>,
    ) {
        if !text.is_empty() {
            self.put(to, part, text, done);
        } else if self.active != Some(part)
            && let Some(done) = done
            && to.form.is_worth(to.job, self.blocks.slot(part), done)
        {
            self.open(to, part, Some(done));
        }
        let Some(done) = done else { return };
        let block = self.blocks.slot(part);
        if self.active == Some(part) {
            self.active = None;
            to.form.close(to.job, block, Some(done));
        }
        to.form.over(to.job, block, done);
        self.blocks.remove(&part);
    }
}
