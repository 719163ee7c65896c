//! One call's argument text: appends what keeps it JSON, and repairs, only where a plain append would break it.
//!
//! The rules A1 to A8. The text is bytes (UTF-8) beside an incremental automaton; nothing is ever scanned again. Every
//! comparison with the text so far costs at most the size of the fragment at hand, except the canonical form of a
//! finished value, which is made once. It knows one call's text and nothing of ids, names, indexes or events.
//!
//! A1   text + fragment is a prefix of JSON, or JSON            append            (conformant streams: only this)
//! A2   the fragment says what the finished text says           keep
//! A3   the text is a placeholder, the fragment an object       replace           (not for a header, nor after a second
//!                                                                                one; {} only where it came whole, in
//!                                                                                one fragment)
//! A4   the fragment begins with the text                       extend, and expect it from now on
//! A4'  every fragment so far began with the one before         replace by the last one     (also at the end)
//! A5   the fragment is the one before                          keep
//! A5'  every fragment so far came exactly twice                replace by one of each      (also at the end)
//! A6   the text begins with the fragment                       hold: a replay or a restart, the next fragments tell
//! A7   the text is broken, the fragment is a whole object      replace           (not by {}, which says nothing)
//! A8   the text is whole, and none of the above                overflow: the caller decides
//!      (also of the rest of a fragment in which the text became whole)
//!
//! While several of these may still come true, only what all of them have in common is settled and may be shown: a text
//! that may be a placeholder or double-encoded is not the arguments yet.

use crate::assemble::part::canonical_json::canonical;
use crate::assemble::part::fragment::Change;
use crate::assemble::part::fragment::Push;
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
/// With white space around it.
const LONGEST_PLACEHOLDER: usize = 16;

/// The text of one call.
#[derive(Clone, Debug, Default)]
pub struct ArgumentText {
    pub data: Vec<u8>,
    pub automaton: Automaton,
    /// Not JSON and never will be: only appended to.
    pub plain: bool,
    /// What came behind a whole value and belongs nowhere.
    pub overflow: crate::model::lazy_box::LazyBox<Vec<u8>>,
    /// Length of the beginning of the text that is arriving again.
    pub shadow: usize,
    /// It began with a fragment that carried the call's name.
    pub shadow_has_header: bool,
    /// So many bytes of it were shown.
    pub shown: usize,
    /// What was shown is not the beginning of the text any more.
    pub taken_back: bool,
    /// Fragments seen.
    pub(crate) count: usize,
    /// Length of the first one.
    first: usize,
    /// Where the last one begins in the text.
    pub(crate) last: usize,
    pub(crate) cumulative: Cumulative,
    pub(crate) doubling: Doubling,
    canonical: Option<Box<str>>,
}

/// With U+FFFD for what is no UTF-8. Checking a long text is quicker than looking for what may be wrong in it.
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

    /// One whole JSON value (a number that stands alone never is: more digits may come).
    pub fn is_complete(&self) -> bool {
        !self.plain && self.automaton.status() == Status::Complete
    }

    /// A prefix of JSON, the empty text included.
    pub fn is_unfinished(&self) -> bool {
        !self.plain && self.automaton.status() == Status::Prefix
    }

    pub fn size(&self) -> usize {
        self.data.len() + self.overflow.len()
    }

    pub fn text(&self) -> Cow<'_, str> {
        text_of(&self.data)
    }

    /// How many bytes of a JSON text hold in every reading that is still possible.
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

    /// With that piece it may be a placeholder.
    #[inline]
    pub fn may_end_empty(&self, piece: &str) -> bool {
        self.data.len() + piece.len() <= LONGEST_PLACEHOLDER
    }

    pub fn is_placeholder(&self) -> bool {
        self.data.len() <= LONGEST_PLACEHOLDER && PLACEHOLDERS.contains(&trim(&self.data))
    }

    /// A placeholder that an object may replace: `{}` is one only where it came whole, in one fragment.
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

    /// Whether a plain append keeps it JSON.
    pub fn accepts(&self, piece: &[u8]) -> bool {
        !self.plain
            && self.overflow.is_empty()
            && self.shadow == 0
            && !self.after(piece).is_broken()
    }

    fn after(&self, piece: &[u8]) -> Automaton {
        let mut after = self.automaton;
        after.feed(piece);
        after
    }

    /// A2: a whole fragment that says what the finished text says.
    pub fn repeats(&mut self, piece: &[u8]) -> bool {
        if !self.is_complete() {
            return false;
        }
        if self.data == piece {
            return true;
        }
        alone(piece).status() == Status::Complete && self.says(piece)
    }

    /// Of a complete text and a complete fragment.
    fn says(&mut self, piece: &[u8]) -> bool {
        self.canonical() == canonical(&text_of(piece))
    }

    /// A6: the finished or unfinished text begins with the fragment, and goes on.
    pub fn begins_with(&self, piece: &[u8]) -> bool {
        !piece.is_empty() && piece.len() < self.data.len() && self.data.starts_with(piece)
    }

    /// Of a complete text; made once.
    pub fn canonical(&mut self) -> &str {
        let data = &self.data;
        self.canonical
            .get_or_insert_with(|| canonical(&text_of(data)).into_boxed_str())
    }

    /// One non-empty fragment. `header`: it came with a name.
    #[inline]
    pub fn push<'a>(&mut self, piece: &'a [u8], header: bool) -> Push<'a> {
        if self.plain {
            extend(&mut self.data, piece);
            return plainly(Change::Grew);
        }
        if !self.overflow.is_empty() {
            return overflow(Cow::Borrowed(piece));
        }
        if self.shadow > 0 {
            return self.shadowed(piece);
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

    /// R1e: a header came again with the beginning of the finished text.
    pub fn begin_shadow(&mut self, piece: &[u8]) {
        self.hold(piece.len(), true);
    }

    /// Another text, from outside: the close of a call, or a decision about two calls.
    pub fn replace(&mut self, data: Vec<u8>) {
        self.become_text(data);
        self.overflow = Default::default();
        self.shadow = 0;
        self.cumulative.alive = false;
        self.doubling.alive = false;
    }

    /// A cap was passed: drop what is beyond `size`. The stream is over; only the text counts from here on.
    pub fn undo(&mut self, size: usize) {
        self.overflow.truncate(size.saturating_sub(self.data.len()));
        self.data.truncate(size);
        self.shown = self.shown.min(self.data.len());
    }

    /// No more fragments: what the hypotheses still say about an unfinished text, and about one that was held.
    pub fn end(&mut self) -> Push<'static> {
        let doubled = self.doubling.whole_at_the_end(self.count);
        let settled =
            self.plain || self.is_complete() || !self.overflow.is_empty() || self.data.is_empty();
        if settled {
            if doubled.is_some() {
                // As sent it is JSON too: kept, but said.
                return repaired(Change::Kept, Some(Code::ARGS_DOUBLED));
            }
            if self.shadow > 0 {
                self.shadow = 0;
                return repaired(Change::Kept, Some(Code::ARGS_REPLAY_DROPPED));
            }
            return plainly(Change::Kept);
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
                let code = (!self.cumulative.said).then_some(Code::ARGS_CUMULATIVE);
                return repaired(Change::Replaced, code);
            }
        }
        if self.shadow > 0 {
            self.shadow = 0;
            return repaired(Change::Kept, Some(Code::ARGS_RESTART));
        }
        plainly(Change::Kept)
    }

    /// A5: the fragment is the one before.
    pub fn is_last(&self, piece: &[u8]) -> bool {
        self.data.get(self.last..) == Some(piece)
    }

    /// Keep the two hypotheses up to date. A conformant stream drops both at its second fragment.
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

    /// A4: the fragment is the text so far and more.
    fn grow(&mut self, piece: &[u8]) -> Push<'static> {
        let more = piece.get(self.data.len()..).unwrap_or_default();
        if more.is_empty() {
            return plainly(Change::Kept);
        }
        self.automaton.feed(more);
        self.data.extend_from_slice(more);
        self.last = 0;
        self.canonical = None;
        self.cumulative.follows = true;
        repaired(Change::Grew, self.cumulative.say())
    }

    /// A2 to A8: a plain append would break the text.
    #[cold]
    fn repair<'a>(&mut self, piece: &'a [u8], header: bool) -> Push<'a> {
        if self.automaton.is_broken() {
            return self.broken(piece);
        }
        let after = self.after(piece);
        if self.is_blank() {
            let head = self.whole_with(&after);
            if head > 0 {
                return self.split(piece, head);
            }
            // Not JSON from the first byte on: nothing to repair, ever.
            self.data.extend_from_slice(piece);
            self.automaton = after;
            self.plain = after.root().is_none();
            return plainly(Change::Grew);
        }
        let alone = alone(piece);
        let verdict = alone.status();
        let whole = self.is_complete();
        if whole && verdict == Status::Complete && self.says(piece) {
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
            let code = self.cumulative.say();
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

    /// How many bytes of the fragment end the object or array, if it broke only behind that.
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

    /// The fragment ends the value and goes on: never is the first of two values just taken.
    fn split<'a>(&mut self, piece: &'a [u8], head: usize) -> Push<'a> {
        let (own, rest) = piece.split_at_checked(head).unwrap_or((piece, &[]));
        self.last = self.data.len();
        self.automaton.feed(own);
        self.data.extend_from_slice(own);
        self.cumulative.alive = false;
        self.doubling.drop_it();
        overflow(Cow::Borrowed(rest))
    }

    /// A7: only a whole object helps a text that is broken.
    fn broken(&mut self, piece: &[u8]) -> Push<'static> {
        if is_object(piece) && !is_empty_object(piece) {
            self.become_text(piece.to_vec());
            return repaired(Change::Replaced, Some(Code::ARGS_RESTART));
        }
        self.last = self.data.len();
        self.data.extend_from_slice(piece);
        plainly(Change::Grew)
    }

    fn hold(&mut self, length: usize, has_header: bool) {
        self.shadow = length;
        self.shadow_has_header = has_header;
        self.cumulative.alive = false;
        self.doubling.drop_it();
    }

    /// A6: the text so far is arriving a second time.
    #[cold]
    fn shadowed<'a>(&mut self, piece: &[u8]) -> Push<'a> {
        let at = self.shadow;
        let rest = self.data.get(at..).unwrap_or_default();
        if rest.starts_with(piece) {
            self.shadow = at + piece.len();
            if self.shadow < self.data.len() {
                return plainly(Change::Held);
            }
            self.shadow = 0;
            self.shadow_has_header = false;
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
            self.shadow = 0;
            self.last = self.data.len();
            self.data.extend_from_slice(more);
            self.automaton.feed(more);
            return repaired(Change::Grew, Some(Code::ARGS_RESTART));
        }
        let mut again = self.data.get(..at).unwrap_or_default().to_vec();
        again.extend_from_slice(piece);
        self.shadow = 0;
        if self.is_complete() {
            return overflow(Cow::Owned(again));
        }
        if alone(&again).is_broken() {
            // Not even that: all of it, as it came.
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
        self.shadow = 0;
        self.last = 0;
        self.canonical = None;
    }
}
