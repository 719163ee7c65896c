//! The argument text of one tool call: appends each fragment that keeps the text valid JSON, and otherwise repairs the
//! text.
//!
//! This module implements the rules A1 to A8. The text is stored as UTF-8 bytes and checked with an incremental JSON
//! automaton, so text is not scanned again after it was appended. Comparing a fragment with the text takes time
//! proportional to the fragment, except that the canonical form of a complete value is computed once. Other modules
//! handle ids, names, indexes and events.
//!
//! A1   text + fragment is JSON, or the beginning of JSON      append            (conformant streams: only this)
//! A2   the fragment repeats the finished text                 keep
//! A3   the text is a placeholder, the fragment is an object   replace           (not if it has a header or follows a
//!                                                                               repeated header; `{}` counts only
//!                                                                               if it arrived in one fragment)
//! A4   the fragment begins with the text so far               extend, and expect the same from later fragments
//! A4'  every fragment so far began with the previous one      replace with the last one    (also at the end)
//! A5   the fragment equals the previous one                   keep
//! A5'  every fragment so far arrived exactly twice            replace with one of each     (also at the end)
//! A6   the text begins with the fragment                      hold it back until later fragments decide
//! A7   the text is broken, the fragment is a complete object  replace           (not if the fragment is `{}`)
//! A8   the text is complete, and none of the above applies    overflow: the caller decides
//!      (also for the rest of a fragment that completes the text)
//!
//! Text is settled, and may be emitted, only if it is the same under each rule that may still apply. Text that may be a
//! placeholder or double-encoded is not settled, because later fragments may replace it.

use crate::assemble::part::canonical_json::canonical;
use crate::assemble::part::fragment::Change;
use crate::assemble::part::fragment::PushResult;
use crate::assemble::part::fragment::alone;
use crate::assemble::part::fragment::extend;
use crate::assemble::part::fragment::is_empty_object;
use crate::assemble::part::fragment::is_object;
use crate::assemble::part::fragment::overflow;
use crate::assemble::part::fragment::plainly;
use crate::assemble::part::fragment::repaired;
use crate::assemble::part::fragment::trim;
use crate::assemble::part::replay_detectors::Cumulative;
use crate::assemble::part::replay_detectors::Doubling;
use crate::json::Automaton;
use crate::json::Problem;
use crate::json::Root;
use crate::json::Status;
use crate::model::spec::Code;
use std::borrow::Cow;

const PLACEHOLDERS: [&[u8]; 4] = [b"{}", b"null", b"\"\"", b"\"{}\""];
/// Maximum length of a placeholder in bytes, including the whitespace around it.
const LONGEST_PLACEHOLDER: usize = 16;

/// The argument text of one call.
#[derive(Clone, Debug, Default)]
pub struct ArgumentText {
    pub data: Vec<u8>,
    pub automaton: Automaton,
    /// Fragments are appended without any repair, because the text is free-form or can no longer become JSON.
    pub plain: bool,
    /// Text that arrived after a complete value and belongs to no other call.
    pub overflow: crate::model::lazy_box::LazyBox<Vec<u8>>,
    /// Number of bytes at the beginning of the text that the stream has repeated so far (A6). While this number is not
    /// 0, these repeated bytes are held back.
    pub replayed: usize,
    /// The call began again, so the next fragment may repeat the text from its beginning.
    pub begins_again: bool,
    /// The first fragment of the repetition contained the call's name.
    pub replay_has_header: bool,
    /// Number of bytes of the text that have been emitted.
    pub shown: usize,
    /// The text no longer begins with the emitted text, so a reset event must be emitted.
    pub taken_back: bool,
    /// Number of fragments received.
    pub(crate) count: usize,
    /// Length of the first fragment.
    first: usize,
    /// Byte offset in the text at which the last fragment begins.
    pub(crate) last: usize,
    pub(crate) cumulative: Cumulative,
    pub(crate) doubling: Doubling,
    canonical: Option<Box<str>>,
}

/// Decodes UTF-8 and replaces invalid bytes with U+FFFD. Validating the bytes first is faster for long valid texts.
pub(crate) fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

impl ArgumentText {
    pub fn new(plain: bool) -> ArgumentText {
        ArgumentText {
            plain,
            ..ArgumentText::default()
        }
    }

    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Returns true if the text is one complete JSON value. A bare number is never complete, because more digits may
    /// follow.
    pub fn is_complete(&self) -> bool {
        !self.plain && self.automaton.status() == Status::Complete
    }

    /// Returns true if the text is empty or the incomplete beginning of a JSON value.
    pub fn is_unfinished(&self) -> bool {
        !self.plain && self.automaton.status() == Status::Prefix
    }

    pub fn size(&self) -> usize {
        self.data.len() + self.overflow.len()
    }

    pub fn text(&self) -> Cow<'_, str> {
        text_of(&self.data)
    }

    /// Returns the text and the overflow after it.
    pub fn with_overflow(&self) -> Vec<u8> {
        [self.data.as_slice(), self.overflow.as_slice()].concat()
    }

    /// Returns how many bytes at the beginning of the text can no longer be changed by any rule.
    #[inline]
    pub fn settled(&self) -> usize {
        if self.automaton.root() != Some(Root::Object) || self.gives_way() {
            return 0;
        }
        let cumulative = self.cumulative.alive && self.cumulative.grown && self.last > 0;
        if cumulative || self.doubling.is_likely() {
            return self.first;
        }
        self.data.len()
    }

    /// Returns true if the text followed by this piece is short enough to be a placeholder.
    #[inline]
    pub fn may_end_empty(&self, piece: &str) -> bool {
        self.data.len() + piece.len() <= LONGEST_PLACEHOLDER
    }

    pub fn is_placeholder(&self) -> bool {
        self.data.len() <= LONGEST_PLACEHOLDER && PLACEHOLDERS.contains(&trim(&self.data))
    }

    /// Returns true if the text is a placeholder that an object may replace (A3). `{}` is a placeholder only if it
    /// arrived in a single fragment.
    pub fn gives_way(&self) -> bool {
        if !self.is_placeholder() {
            return false;
        }
        let nothing = matches!(trim(&self.data), b"null" | b"\"\"");
        nothing || self.last == 0
    }

    pub fn is_blank(&self) -> bool {
        self.data.is_empty()
            || (self.automaton.root().is_none() && !self.plain && self.is_unfinished())
    }

    /// Returns true if the text followed by the piece is JSON, or the beginning of JSON, and no rule other than A1 is
    /// in progress.
    pub fn accepts(&self, piece: &[u8]) -> bool {
        !self.plain
            && self.overflow.is_empty()
            && self.replayed == 0
            && !self.begins_again
            && !self.after(piece).is_broken()
    }

    fn after(&self, piece: &[u8]) -> Automaton {
        let mut after = self.automaton;
        after.feed(piece);
        after
    }

    /// Returns true if the text and the piece are complete JSON values with the same canonical form (A2).
    pub fn repeats(&mut self, piece: &[u8]) -> bool {
        if !self.is_complete() {
            return false;
        }
        if self.data == piece {
            return true;
        }
        alone(piece).status() == Status::Complete && self.is_equal_json(piece)
    }

    /// Returns true if the text and the piece, which must be complete JSON values, have the same canonical form.
    fn is_equal_json(&mut self, piece: &[u8]) -> bool {
        self.canonical() == canonical(&text_of(piece))
    }

    /// Returns true if the text is longer than the fragment and begins with it (A6).
    pub fn begins_with(&self, piece: &[u8]) -> bool {
        !piece.is_empty() && piece.len() < self.data.len() && self.data.starts_with(piece)
    }

    /// Returns the canonical form of the text, which must be a complete JSON value. The canonical form is computed only
    /// once.
    pub fn canonical(&mut self) -> &str {
        let data = &self.data;
        self.canonical
            .get_or_insert_with(|| canonical(&text_of(data)).into_boxed_str())
    }

    /// Applies one non-empty fragment to the text and returns its effect. `header`: the fragment has a name.
    #[inline]
    pub fn push<'a>(&mut self, piece: &'a [u8], header: bool) -> PushResult<'a> {
        if self.plain {
            extend(&mut self.data, piece);
            return plainly(Change::Grew);
        }
        if !self.overflow.is_empty() {
            return overflow(Cow::Borrowed(piece));
        }
        if self.replayed > 0 || self.begins_again {
            let step = self.continue_replay(piece);
            if !self.begins_again {
                return step;
            }
            self.begins_again = self.replayed > 0;
            return PushResult { code: None, ..step }; // the repetition of the message was reported
        }
        if self.doubling.follows && self.count % 2 == 1 {
            if self.is_last(piece) {
                self.count += 1;
                return plainly(Change::Kept);
            }
            self.doubling.follows = false;
        }
        self.observe(piece);
        if self.cumulative.follows && piece.starts_with(&self.data) {
            return self.grow(piece);
        }
        if !matches!(self.automaton.offer(piece), Status::Broken { .. }) {
            self.last = self.data.len();
            if self.first == 0 {
                self.first = piece.len();
            }
            extend(&mut self.data, piece);
            return plainly(Change::Grew);
        }
        self.repair(piece, header)
    }

    /// Records that the call began again.
    pub fn begin_again(&mut self) {
        self.begins_again = !self.is_empty();
        self.count = 0; // the next fragment is not appended without a check
    }

    /// Starts to hold back text from a fragment that repeats the call's name, because the text begins like the call's
    /// complete arguments (R1e).
    pub fn begin_replay(&mut self, piece: &[u8]) {
        self.hold(piece.len(), true);
    }

    /// Appends text that is known to continue the arguments. No rule is applied to this text.
    pub fn continue_with(&mut self, piece: &[u8]) {
        self.automaton.feed(piece);
        self.data.extend_from_slice(piece);
        self.cumulative.alive = false;
        self.doubling.alive = false;
    }

    /// Replaces the text with a value that the rules must not change, such as the arguments in a closing event.
    pub fn replace(&mut self, data: Vec<u8>) {
        self.become_text(data);
        self.overflow = Default::default();
        self.replayed = 0;
        self.cumulative.alive = false;
        self.doubling.alive = false;
    }

    /// Removes the bytes beyond `size`, because a limit was exceeded. Other fields are not updated, because the stream
    /// has ended.
    pub fn undo(&mut self, size: usize) {
        self.overflow.truncate(size.saturating_sub(self.data.len()));
        self.data.truncate(size);
        self.shown = self.shown.min(self.data.len());
    }

    /// Ends the text, because no more fragments follow. Applies A4' and A5' to text that is not complete JSON, and
    /// drops a repetition that was held back.
    pub fn end(&mut self) -> PushResult<'static> {
        let doubled = self.doubling.whole_at_the_end(self.count);
        let settled =
            self.plain || self.is_complete() || !self.overflow.is_empty() || self.data.is_empty();
        if settled {
            if doubled.is_some() {
                // Every fragment arrived twice, but the text as received is valid JSON. Keep the text and report the
                // doubling.
                return repaired(Change::Kept, Some(Code::ARGS_DOUBLED));
            }
            return self.drop_replay();
        }
        if self.automaton.finish() == Status::Complete {
            return plainly(Change::Kept);
        }
        if let Some(single) = doubled {
            self.become_text(single);
            return repaired(Change::Replaced, Some(Code::ARGS_DOUBLED));
        }
        if self.cumulative.alive && self.cumulative.grown && self.last > 0 {
            let last = self.data.get(self.last..).unwrap_or_default().to_vec();
            if is_object(&last) {
                self.become_text(last);
                let code = (!self.cumulative.reported).then_some(Code::ARGS_CUMULATIVE);
                return repaired(Change::Replaced, code);
            }
        }
        self.drop_replay()
    }

    /// Drops a repetition that was held back (A6), because the input ended before it was complete.
    pub fn drop_replay(&mut self) -> PushResult<'static> {
        if std::mem::take(&mut self.replayed) == 0 || self.begins_again {
            return plainly(Change::Kept); // the repetition of a message was reported
        }
        let code = match self.is_complete() {
            true => Code::ARGS_REPLAY_DROPPED,
            false => Code::ARGS_RESTART,
        };
        repaired(Change::Kept, Some(code))
    }

    /// Returns true if the fragment equals the previous one (A5).
    pub fn is_last(&self, piece: &[u8]) -> bool {
        self.data.get(self.last..) == Some(piece)
    }

    /// Checks whether A4' and A5' are still possible after this fragment. In a conformant stream, the second fragment
    /// rules out both A4' and A5'.
    #[inline]
    fn observe(&mut self, piece: &[u8]) {
        if self.count > 0 && (self.cumulative.alive || self.doubling.alive) {
            let before = self.data.get(self.last..).unwrap_or_default();
            self.cumulative.observe(before, piece);
            if self.count % 2 == 1 {
                self.doubling.observe(before, piece);
            }
        }
        self.count += 1;
    }

    /// Extends the text with a fragment that begins with the text so far (A4).
    fn grow(&mut self, piece: &[u8]) -> PushResult<'static> {
        let more = piece.get(self.data.len()..).unwrap_or_default();
        if more.is_empty() {
            return plainly(Change::Kept);
        }
        self.automaton.feed(more);
        self.data.extend_from_slice(more);
        self.last = 0;
        self.canonical = None;
        self.cumulative.follows = true;
        repaired(Change::Grew, self.cumulative.report_once())
    }

    /// Applies the first of the rules A2 to A8 that matches a fragment. This method is called if appending the fragment
    /// would make the text invalid JSON.
    #[cold]
    fn repair<'a>(&mut self, piece: &'a [u8], header: bool) -> PushResult<'a> {
        if self.automaton.is_broken() {
            return self.broken(piece);
        }
        let after = self.after(piece);
        if self.is_blank() {
            let head = self.whole_with(&after);
            if head > 0 {
                return self.split(piece, head);
            }
            // Even the first byte of the text is not valid JSON, so no rule can repair the text.
            self.data.extend_from_slice(piece);
            self.automaton = after;
            self.plain = after.root().is_none();
            return plainly(Change::Grew);
        }
        let alone = alone(piece);
        let verdict = alone.status();
        let whole = self.is_complete();
        if whole && verdict == Status::Complete && self.is_equal_json(piece) {
            self.doubling.alive = false;
            self.cumulative.alive = false;
            return repaired(Change::Kept, Some(Code::ARGS_REPLAY_DROPPED));
        }
        let starts = !alone.is_broken() && alone.root() == Some(Root::Object);
        if starts && !header && self.gives_way() {
            self.become_text(piece.to_vec());
            return repaired(Change::Replaced, Some(Code::ARGS_PLACEHOLDER_REPLACED));
        }
        if let Some(single) = self
            .doubling
            .take_on_break(self.count, self.data.len(), piece)
        {
            self.become_text(single);
            self.last = self.data.len().saturating_sub(piece.len());
            return repaired(Change::Replaced, Some(Code::ARGS_DOUBLED));
        }
        if !alone.is_broken() && piece.len() > self.data.len() && piece.starts_with(&self.data) {
            return self.grow(piece);
        }
        if starts && self.cumulative.alive && self.cumulative.grown {
            let code = self.cumulative.report_once();
            self.become_text(piece.to_vec());
            self.cumulative.follows = true;
            return repaired(Change::Replaced, code);
        }
        if self.is_last(piece) {
            return repaired(Change::Kept, Some(Code::ARGS_REPLAY_DROPPED));
        }
        if self.data.starts_with(piece) {
            self.hold(piece.len(), false);
            return plainly(Change::Held);
        }
        if whole {
            return overflow(Cow::Borrowed(piece));
        }
        if starts && verdict == Status::Complete && !is_empty_object(piece) {
            self.become_text(piece.to_vec());
            return repaired(Change::Replaced, Some(Code::ARGS_RESTART));
        }
        let head = self.whole_with(&after);
        if head > 0 {
            return self.split(piece, head);
        }
        self.last = self.data.len();
        self.data.extend_from_slice(piece);
        self.automaton = after;
        plainly(Change::Grew)
    }

    /// Returns how many leading bytes of the fragment complete the object or array, if only the remaining bytes make
    /// the text invalid. Otherwise, returns 0. `after`: the state of the automaton after the whole fragment.
    fn whole_with(&self, after: &Automaton) -> usize {
        let Status::Broken { pos, problem } = after.status() else {
            return 0;
        };
        let nested = matches!(after.root(), Some(Root::Object | Root::Array));
        if after.depth() != 0 || problem != Problem::Syntax || !nested {
            return 0;
        }
        usize::try_from(pos)
            .unwrap_or(usize::MAX)
            .saturating_sub(self.data.len())
    }

    /// Completes the value with the first `head` bytes of the fragment and returns the rest as overflow. A4' and A5'
    /// are turned off, so that they cannot replace the complete value.
    fn split<'a>(&mut self, piece: &'a [u8], head: usize) -> PushResult<'a> {
        let (own, rest) = piece.split_at_checked(head).unwrap_or((piece, &[]));
        self.last = self.data.len();
        self.automaton.feed(own);
        self.data.extend_from_slice(own);
        self.cumulative.alive = false;
        self.doubling.drop_it();
        overflow(Cow::Borrowed(rest))
    }

    /// Handles a fragment after the text has become invalid JSON (A7). A complete, non-empty object replaces the text;
    /// any other fragment is appended.
    fn broken(&mut self, piece: &[u8]) -> PushResult<'static> {
        if is_object(piece) && !is_empty_object(piece) {
            self.become_text(piece.to_vec());
            return repaired(Change::Replaced, Some(Code::ARGS_RESTART));
        }
        self.last = self.data.len();
        self.data.extend_from_slice(piece);
        plainly(Change::Grew)
    }

    fn hold(&mut self, length: usize, has_header: bool) {
        self.replayed = length;
        self.replay_has_header = has_header;
        self.cumulative.alive = false;
        self.doubling.drop_it();
    }

    /// Handles a fragment while the beginning of the text is being repeated (A6): compares the fragment with the rest
    /// of the text.
    #[cold]
    fn continue_replay<'a>(&mut self, piece: &[u8]) -> PushResult<'a> {
        let at = self.replayed;
        let rest = self.data.get(at..).unwrap_or_default();
        if rest.starts_with(piece) {
            self.replayed = at + piece.len();
            if self.replayed < self.data.len() {
                return plainly(Change::Held);
            }
            self.replayed = 0;
            self.replay_has_header = false;
            let complete = self.is_complete();
            return repaired(
                Change::Kept,
                Some(if complete {
                    Code::ARGS_REPLAY_DROPPED
                } else {
                    Code::ARGS_RESTART
                }),
            );
        }
        if let Some(more) = piece.strip_prefix(rest).filter(|more| !more.is_empty())
            && !self.after(more).is_broken()
        {
            self.replayed = 0;
            self.last = self.data.len();
            self.data.extend_from_slice(more);
            self.automaton.feed(more);
            return repaired(Change::Grew, Some(Code::ARGS_RESTART));
        }
        let mut again = self.data.get(..at).unwrap_or_default().to_vec();
        again.extend_from_slice(piece);
        self.replayed = 0;
        if self.is_complete() {
            return overflow(Cow::Owned(again));
        }
        if alone(&again).is_broken() {
            // The held-back text neither repeats the text nor is valid JSON on its own, so append it as received.
            self.automaton.feed(&again);
            self.last = self.data.len();
            self.data.extend_from_slice(&again);
            return plainly(Change::Grew);
        }
        self.become_text(again);
        repaired(Change::Replaced, Some(Code::ARGS_RESTART))
    }

    fn become_text(&mut self, data: Vec<u8>) {
        if data.get(..self.shown) != self.data.get(..self.shown) {
            self.shown = 0;
            self.taken_back = true;
        }
        self.automaton = alone(&data);
        self.data = data;
        self.replayed = 0;
        self.last = 0;
        self.canonical = None;
    }
}
