//! The quick ways: the next plain piece of the text or the call that is under way.
//!
//! What most deltas are. Each does what the rules in `textual` and `route_fragment` do with such a piece, or, where anything else is
//! the case, nothing at all; then the rules decide. They know no rule of their own.

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
    /// A plain piece of text. False, and nothing was done, if it is more than the next piece of the open part.
    #[inline]
    pub fn more_text(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        text: &str,
    ) -> Result<bool, Fault> {
        let Some((choice, mut desk)) = self.under_way(out, index) else {
            return Ok(false);
        };
        choice.textual.go_on(&mut desk, text)
    }

    /// `more_text` would take the next piece.
    #[inline]
    pub fn awaits_text(&mut self, out: &mut Output<'_>, index: i32) -> bool {
        let under_way = self.under_way(out, index);
        under_way.is_some_and(|(choice, _)| choice.textual.goes_on())
    }

    /// Several plain pieces of text, none of them empty: `texts` up to each of `ends`. False, and nothing was done, where
    /// one of them is more than the next piece of the open part.
    pub fn more_texts(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        texts: &str,
        ends: &[usize],
    ) -> bool {
        if !out.passes(DeltaKind::Text, index, texts) {
            return false;
        }
        let Some((choice, mut desk)) = self.under_way(out, index) else {
            return false;
        };
        let Some(part) = choice.textual.go_on_by(&mut desk, texts, ends.len()) else {
            return false;
        };
        out.emit_all(&Deltas {
            kind: DeltaKind::Text,
            choice: index,
            parts: Parts::One(part),
            texts,
            ends,
        });
        true
    }

    /// A plain piece of a call. False, and nothing was done, if it is more than the next piece of a call that was shown.
    #[inline]
    pub fn more_arguments(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        piece: CallPiece<'_>,
    ) -> Result<bool, Fault> {
        let Some((choice, mut desk)) = self.under_way(out, index) else {
            return Ok(false);
        };
        go_on(&mut desk, choice, piece)
    }

    /// The choice of that index, if nothing waits in it.
    #[inline]
    fn under_way<'a, 'o>(
        &'a mut self,
        out: &'a mut Output<'o>,
        index: i32,
    ) -> Option<(&'a mut Choice, RuleContext<'a, 'o>)> {
        let choice = self.choices.turn_to(index)?;
        let idle = !self.over && choice.unstarted.is_empty();
        let desk = RuleContext {
            shared: &mut self.shared,
            out,
        };
        idle.then_some((choice, desk))
    }
}

/// What R1a, R3a1 and A1 say of the next piece of a call: it goes to its end, and is shown.
#[inline]
fn go_on(
    desk: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    piece: CallPiece<'_>,
) -> Result<bool, Fault> {
    let Some(slot) = choice.by_index.get(i64::from(piece.index)) else {
        return Ok(false);
    };
    let quiet = !choice.closed && choice.textual.current().is_none() && choice.finish.raw.is_none();
    let Some(call) = choice.calls.get_mut(slot).filter(|_| quiet) else {
        return Ok(false);
    };
    if piece.text.is_empty() || !is_shown(call) || !says_nothing_new(call, &piece) {
        return Ok(false);
    }
    if piece.id.is_some() || piece.name.is_some() {
        desk.out.touch("told_again"); // readers join what is told again
    }
    let before = call.text.data.len();
    if !(call.text.is_settled() && call.text.append(piece.text.as_bytes(), false)) {
        return Ok(false);
    }
    if let Err(fault) = desk.count_arguments(before, call.text.data.len()) {
        call.text.undo(before);
        return Err(fault);
    }
    let (part, whole) = (call.part, !call.text.is_unfinished());
    choice.latest = Some(slot);
    if whole && call.text.gives_way() {
        choice.keep_account(slot);
    } else {
        call.text.shown = call.text.data.len();
        desk.out.emit(&Event::ToolCallDelta(Delta {
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

/// All of its text so far was shown, and it may be shown as it comes.
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
        && call.fork.is_none()
        && call.merge.is_none()
        && call.contested.is_none()
}

impl ArgumentText {
    /// The next piece can only be what it seems.
    #[inline(always)]
    pub(crate) fn is_settled(&self) -> bool {
        !self.plain
            && self.overflow.is_empty()
            && self.shadow == 0
            && self.count > 0
            && !(self.cumulative.alive || self.cumulative.follows)
            && !(self.doubling.alive || self.doubling.follows)
    }

    /// The next piece of a settled text: false, and nothing was done, if it has to be `fragment`ed. `bare`: it was scanned
    /// already, and is nothing but characters of a string.
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

    /// So many pieces in one that are nothing but characters of a string, `last` bytes the last of them.
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
fn says_nothing_new(call: &Call, piece: &CallPiece<'_>) -> bool {
    (piece.id.is_none() || (piece.id == call.id.as_deref() && !call.id_changed))
        && piece.name.is_none_or(|name| name == call.name)
}
