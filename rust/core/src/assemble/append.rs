//! Fast paths that append the next piece to the open text part or to a call in progress.
//!
//! Most deltas only append to an open text part or an open call. For such a delta, each method has the same effect as
//! the rules in `text_parts` and `route_fragment`. For any other delta, the method changes nothing, and its caller
//! applies the rules.

use crate::assemble::Assembler;
use crate::assemble::choice::Choice;
use crate::assemble::part::arguments::ArgumentText;
use crate::assemble::part::call::Call;
use crate::assemble::part::fragment::extend;
use crate::assemble::rule_context::RuleContext;
use crate::json::Status;
use crate::model::delta::CallPiece;
use crate::model::event::Delta;
use crate::model::event::DeltaKind;
use crate::model::event::Deltas;
use crate::model::event::Event;
use crate::model::event::Parts;
use crate::model::fault::Fault;
use crate::model::output::Output;

impl Assembler {
    /// Appends a piece of text without surrogate halves. Returns false and changes nothing unless the piece simply
    /// continues the open text part.
    #[inline]
    pub fn more_text(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        text: &str,
    ) -> Result<bool, Fault> {
        let Some((choice, mut ctx)) = self.under_way(out, index) else {
            return Ok(false);
        };
        choice.textual.go_on(&mut ctx, text)
    }

    /// Returns true if `more_text` would append a non-empty piece.
    #[inline]
    pub fn awaits_text(&mut self, out: &mut Output<'_>, index: i32) -> bool {
        let under_way = self.under_way(out, index);
        under_way.is_some_and(|(choice, _)| choice.textual.goes_on())
    }

    /// Appends several non-empty pieces of text and returns how many were appended. Stops before the first piece that
    /// the text-call filter may have to hold back. Returns 0 and changes nothing unless the pieces simply continue the
    /// open text part. `ends` contains the offset in `texts` at which each piece ends.
    pub fn more_texts(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        texts: &str,
        ends: &[usize],
    ) -> usize {
        let (texts, ends) = out.passes(DeltaKind::Text, index, texts, ends);
        if ends.is_empty() {
            return 0;
        }
        let Some((choice, mut ctx)) = self.under_way(out, index) else {
            return 0;
        };
        let Some(part) = choice.textual.go_on_by(&mut ctx, texts, ends.len()) else {
            return 0;
        };
        out.emit_all(&Deltas {
            kind: DeltaKind::Text,
            choice: index,
            parts: Parts::One(part),
            texts,
            ends,
        });
        ends.len()
    }

    /// Appends a piece of argument text to a call. Creates the call if no event opened it. Returns false and changes
    /// nothing unless the piece simply continues a call whose arguments are emitted as they arrive.
    #[inline]
    pub fn more_arguments(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        piece: CallPiece<'_>,
    ) -> Result<bool, Fault> {
        let Some((choice, mut ctx)) = self.under_way(out, index) else {
            return Ok(false);
        };
        go_on(&mut ctx, choice, piece)
    }

    /// Returns the choice, or `None` if the choice does not exist, the stream has ended, or a named call of the choice
    /// has no start event yet.
    #[inline]
    fn under_way<'a, 'o>(
        &'a mut self,
        out: &'a mut Output<'o>,
        index: i32,
    ) -> Option<(&'a mut Choice, RuleContext<'a, 'o>)> {
        let choice = self.choices.turn_to(index)?;
        let idle = !self.over && choice.unstarted.is_empty();
        let ctx = RuleContext {
            shared: &mut self.shared,
            out,
        };
        idle.then_some((choice, ctx))
    }
}

/// Appends a piece of argument text to the call with the same index, and emits the piece (R1a, R3a1, A1). Returns false
/// and changes nothing if another rule may apply.
#[inline]
fn go_on(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    piece: CallPiece<'_>,
) -> Result<bool, Fault> {
    let Some(slot) = choice.by_index.get(i64::from(piece.index)) else {
        return Ok(false);
    };
    let quiet = !choice.closed && choice.textual.current().is_none() && choice.finish.raw.is_none();
    let quiet = quiet && choice.latest == Some(slot);
    let Some(call) = choice.calls.get_mut(slot).filter(|_| quiet) else {
        return Ok(false);
    };
    if piece.text.is_empty() || !is_shown(call) || !is_repetition(call, &piece) {
        return Ok(false);
    }
    if piece.id.is_some() || piece.name.is_some() {
        ctx.out.mark_misread("header_again"); // clients concatenate a repeated id or name
    }
    let before = call.text.data.len();
    if !(call.text.is_settled() && call.text.append(piece.text.as_bytes(), false)) {
        return Ok(false);
    }
    if let Err(fault) = ctx.count_arguments(before, call.text.data.len()) {
        call.text.undo(before);
        return Err(fault);
    }
    let (part, whole) = (call.part, !call.text.is_unfinished());
    choice.latest = Some(slot);
    if whole && call.text.gives_way() {
        choice.update_pending_call(slot);
    } else {
        call.text.shown = call.text.data.len();
        ctx.out.emit(&Event::ToolCallDelta(Delta {
            part,
            text: piece.text,
            choice: choice.index,
            metadata: None,
        }));
    }
    if whole {
        choice.track(slot);
    }
    Ok(true)
}

/// Returns true if all argument text of the call has been emitted and the next piece can be emitted as it arrives.
#[inline]
pub(crate) fn is_shown(call: &Call) -> bool {
    call.started
        && call.text.is_unfinished()
        && call.text.shown > 0
        && call.text.shown == call.text.data.len()
        && !call.held_back
        && !call.tentative
        && !call.object_arguments
        && !call.joiner.is_pending()
        && call.shared_id.is_none()
        && call.merge.is_none()
        && call.pending_ambiguity.is_none()
}

impl ArgumentText {
    /// Returns true if the text is JSON and no repair rule is in progress or still possible, so that any piece that
    /// keeps the JSON valid simply continues the text.
    #[inline(always)]
    pub(crate) fn is_settled(&self) -> bool {
        !self.plain
            && self.overflow.is_empty()
            && self.replayed == 0
            && self.count > 0
            && !(self.cumulative.alive || self.cumulative.follows)
            && !(self.doubling.alive || self.doubling.follows)
    }

    /// Appends a piece if the text remains valid JSON; otherwise returns false and changes nothing. `is_settled` must
    /// be true. `bare`: the piece was already scanned and contains no quotes, escapes or control characters.
    #[inline(always)]
    pub(crate) fn append(&mut self, piece: &[u8], bare: bool) -> bool {
        let goes_on = bare && self.automaton.goes_on_with(piece.len());
        if !goes_on && matches!(self.automaton.offer(piece), Status::Broken { .. }) {
            return false;
        }
        self.count += 1;
        self.last = self.data.len();
        extend(&mut self.data, piece);
        true
    }

    /// Appends `count` pieces in one step. The pieces contain no quotes, escapes or control characters; the last piece
    /// has `last` bytes. Returns false and changes nothing unless the text so far ends inside a JSON string.
    #[inline(always)]
    pub(crate) fn append_all(&mut self, pieces: &[u8], last: usize, count: usize) -> bool {
        if !self.automaton.goes_on_with(pieces.len()) {
            return false;
        }
        self.count += count;
        extend(&mut self.data, pieces);
        self.last = self.data.len() - last;
        true
    }
}

#[inline]
fn is_repetition(call: &Call, piece: &CallPiece<'_>) -> bool {
    (piece.id.is_none() || (piece.id == call.id.as_deref() && !call.id_changed))
        && piece.name.is_none_or(|name| name == call.name)
}
