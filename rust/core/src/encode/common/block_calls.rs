//! Writes tool calls as sequential blocks, either as they arrive or whole once they are complete.
//!
//! Decides which calls are held, and whether a final event contradicts what was already written. A `BlockWriter` writes
//! the bytes.

use crate::encode::common::block::Block;
use crate::encode::common::block::BlockOutput;
use crate::encode::common::block::BlockWriter;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::part_details::Call;
use crate::encode::common::part_details::Kind;
use crate::encode::common::part_details::StandalonePart;
use crate::encode::common::same_json::is_same;
use crate::encode::common::sequential_blocks::Blocks;
use crate::model::event::Delta;
use crate::model::event::Event;
use std::mem;

impl Blocks {
    pub(crate) fn announce<F: BlockWriter>(&mut self, context: &EncodeContext, event: &Event<'_>) {
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
        let is_known = context.has_earlier_call(call_id)
            || self.ids.contains_key(call_id)
            || self.unwritten_calls.contains_key(call_id)
            || self.written.contains_key(call_id);
        let held = context.options.hold_arguments
            || custom
            || call_id.is_empty()
            || name.trim().is_empty()
            || is_known
            || (!F::RUNS_CALLS && (provider_executed || may_be_answered(context)));
        let block = Block {
            kind: Kind::Call,
            call_id: call_id.to_owned(),
            name: name.to_owned(),
            provider_executed,
            held,
            ..Block::default()
        };
        self.blocks.insert(part, block);
        if F::RUNS_CALLS || !(provider_executed || may_be_answered(context)) {
            self.announced.insert(part);
        }
        if !call_id.is_empty() && !self.ids.contains_key(call_id) {
            self.ids.insert(call_id.to_owned(), part);
        }
    }

    pub(crate) fn arguments<F: BlockWriter>(
        &mut self,
        to: &mut BlockOutput<'_, F>,
        delta: Delta<'_>,
    ) {
        let Some(block) = self.blocks.get_mut(&delta.part) else {
            return;
        };
        if block.held || block.frozen || delta.text.is_empty() {
            return;
        }
        if block.out.is_empty() && block.waits.is_empty() {
            let text = delta.text.trim_start_matches([' ', '\t', '\r', '\n']);
            if !text.starts_with('{') {
                block.held = true; // the arguments are not an object, so the call will be repaired or is invalid
                return;
            }
        }
        self.bring(to, delta.part, delta.text);
    }

    pub(crate) fn retract<F: BlockWriter>(&mut self, to: &mut BlockOutput<'_, F>, part: u32) {
        let Some(block) = self.blocks.get(&part) else {
            return;
        };
        let is_out = !block.out.is_empty();
        self.forget(part);
        if is_out {
            self.contradicted = true;
        } else {
            self.blocks.remove(&part);
            self.take_turn(part);
            self.go_on(to);
        }
    }

    pub(crate) fn call<F: BlockWriter>(
        &mut self,
        to: &mut BlockOutput<'_, F>,
        part: u32,
        call: Call<'_>,
    ) {
        self.forget(part);
        let block = self.textual(part, Kind::Call);
        if !block.out.is_empty() {
            self.close_call(to, part, call);
        } else if let Some(lost) = lost::<F>(to.context, &call) {
            to.context.losses.note(lost);
            if !block.results.is_empty() {
                to.context.losses.note("server_tool");
            }
            self.blocks.remove(&part);
            self.take_turn(part);
            self.go_on(to);
        } else if !F::RUNS_CALLS && may_be_answered(to.context) {
            self.unanswered
                .push((call.call_id.clone().into_owned(), part));
            self.blocks.slot(part).call = Some(Box::new(call.keep()));
        } else if self.waits(part) {
            self.unwritten_calls
                .insert(call.call_id.clone().into_owned(), part);
            self.blocks.slot(part).call = Some(Box::new(call.keep()));
            self.enqueue(part);
        } else {
            self.write_call(to, part, &call);
            self.go_on(to);
        }
    }

    /// Writes the rest of a call that was partly written, and closes its block if possible.
    fn close_call<F: BlockWriter>(
        &mut self,
        to: &mut BlockOutput<'_, F>,
        part: u32,
        call: Call<'_>,
    ) {
        let block = self.blocks.slot(part);
        match finish_call(to, block, &call) {
            None => self.contradicted = true,
            Some(true) => {
                self.active = None;
                self.write_down(to, part, &call);
                self.go_on(to);
            }
            Some(false) => block.call = Some(Box::new(call.keep())),
        }
    }

    /// Records that the call was written, and writes the results that arrived before the call was written.
    pub(crate) fn write_down<F: BlockWriter>(
        &mut self,
        to: &mut BlockOutput<'_, F>,
        part: u32,
        call: &Call<'_>,
    ) {
        let kept = (call.name.clone().into_owned(), call.provider_executed);
        self.written.insert(call.call_id.clone().into_owned(), kept);
        self.client_calls += usize::from(!call.provider_executed);
        let results = mem::take(&mut self.blocks.slot(part).results);
        for result in results {
            to.form.write_standalone(
                to.context,
                &StandalonePart::Result(result),
                Some(call.ran()),
            );
        }
        self.blocks.remove(&part);
    }

    /// Removes the id of a retracted or finished call from the table of announced ids.
    fn forget(&mut self, part: u32) {
        if let Some(block) = self.blocks.get(&part)
            && self.ids.get(&block.call_id) == Some(&part)
        {
            self.ids.remove(&block.call_id);
        }
    }

    pub(crate) fn write_call<F: BlockWriter>(
        &mut self,
        to: &mut BlockOutput<'_, F>,
        part: u32,
        call: &Call<'_>,
    ) {
        self.give_way(to);
        self.take_turn(part);
        self.unwritten_calls.remove(call.call_id.as_ref());
        to.form.whole_call(to.context, call);
        self.write_down(to, part, call);
    }
}

/// Writes the rest of a call that was partly written, and closes its block. Returns false if the block stays open, and
/// `None` if the final event contradicts what was already written.
pub(crate) fn finish_call<F: BlockWriter>(
    to: &mut BlockOutput<'_, F>,
    block: &Block,
    call: &Call<'_>,
) -> Option<bool> {
    // A name that differs from the one already written is accepted if the target's closing event contains the name and
    // the source has the same dialect. The closing event of the source may then have passed through, so that clients may
    // already have the new name.
    let renames = F::CORRECTS && to.context.passed.own;
    let mut right = call.call_id == block.call_id && (renames || call.name == block.name);
    let mut text: &str = &call.arguments;
    let rest = text.strip_prefix(block.out.as_str());
    match rest {
        Some("") => {}
        Some(rest) => to.form.piece(to.context, block, rest),
        None if is_same(&block.out, text) => {
            // In UI messages the input is parsed JSON, so its original formatting is lost.
            to.context.losses.note("arguments_spelling");
            text = &block.out;
        }
        None => right &= F::CORRECTS,
    }
    right.then(|| to.form.close_call(to.context, block, call, text))
}

/// Returns true if the results of calls may follow in the same stream. A UI message continues after its calls, so only
/// the end of the response shows which calls the client must run.
fn may_be_answered(context: &EncodeContext) -> bool {
    context.source == "ai-sdk-ui"
}

/// Returns why a call that has not been written must be omitted, or `None` if it must be written.
pub(crate) fn lost<F: BlockWriter>(
    context: &EncodeContext,
    call: &Call<'_>,
) -> Option<&'static str> {
    if call.name.trim().is_empty() {
        Some("nameless_call")
    } else if call.provider_executed && !(F::RUNS_CALLS || context.passed.own) {
        Some("server_tool")
    } else if call.is_cut() {
        Some("cut_call")
    } else {
        None
    }
}
