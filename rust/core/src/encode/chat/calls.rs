//! Writes the tool calls of one choice as elements of `delta.tool_calls`, one call after another.
//!
//! openai-python parses the arguments of a call as soon as an element of another call arrives. Therefore, a call waits
//! until the arguments of the previous call are complete, which means that they form one JSON object or that the
//! previous call has ended. Calls are written in the order in which they were announced. The parser's limits also bound
//! the amount of waiting text.

use crate::encode::chat::chunk::ChunkHead;
use crate::encode::chat::chunk::begin_chunk;
use crate::encode::common::encode_context::Call;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::same_json::is_same;
use crate::json::automaton::Automaton;
use crate::model::event::Event;
use crate::model::small_map::Map;
use crate::model::small_map::Set;
use std::collections::BTreeSet;
use std::mem;

/// How much of a call has been written. A call moves through the states in the order in which they are listed, and may
/// skip some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing was written. The call can be written only once it is complete.
    #[default]
    Held,
    /// Nothing was written. The call can be written only once its arguments are complete.
    Late,
    /// Nothing was written. The call waits until the calls before it are written.
    Waiting,
    /// The id, the name, and `written_text` were written.
    Begun,
    /// Like `Begun`, but the upstream reset the arguments, so only the arguments in the final event are valid.
    Reset,
    /// The call was truncated, and everything that was received of the call was written. No other call is written
    /// before the finish reason.
    Cut,
    /// Everything except the text in `waits` was written, and the call has ended.
    Ended,
    /// Nothing was written. The call is complete, and waits until the calls before it are written.
    Whole,
}

/// A call that has not been completely written.
#[derive(Debug, Default)]
struct OpenCall {
    state: State,
    call_id: String,
    name: String,
    /// True if the call has free-form text, which only clients of this dialect can read.
    custom: bool,
    /// The index that the source sent or, once the call has begun, the index that was written.
    index: Option<i64>,
    written_text: String,
    /// Text that has not been written yet.
    waits: String,
    /// State of the JSON parser after the first `checked` bytes of the received text, which is `written_text` followed
    /// by `waits`.
    json: Option<Box<Automaton>>,
    checked: usize,
}

/// The final event of a call contradicts what was already written.
#[derive(Debug)]
pub(crate) struct Contradicted;

/// Writes chunks for one choice, each with one element of `tool_calls`.
pub(crate) struct CallOutput<'p> {
    pub(crate) context: &'p mut EncodeContext,
    pub(crate) head: &'p mut ChunkHead,
    pub(crate) choice: i32,
}

/// Writes the calls of one choice, one after another.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// Calls that are not completely written, by part number.
    open: Map<u32, OpenCall>,
    /// The call whose element was written last. `None` after that call has ended.
    current: Option<u32>,
    /// Part numbers of the calls that have not begun. A lower part number means that the call's first fragment arrived
    /// earlier.
    turns: BTreeSet<u32>,
    /// Part numbers of calls that have begun and whose text waits, because another call is being written.
    late: BTreeSet<u32>,
    /// Index of the next call, higher than that of every started call.
    next: i64,
    /// Indexes of the started calls.
    indexes: Set<i64>,
    /// Number of started calls.
    pub(crate) written: usize,
    /// Ids of the written calls for which the stream contains no result, so that the client must run them.
    pub(crate) unanswered: Set<String>,
    /// True if a truncated call was written without arguments.
    pub(crate) has_empty_cut_call: bool,
    /// True if a call was omitted because it has no name.
    pub(crate) has_nameless: bool,
}

impl OpenCall {
    /// Returns true if another call can be written now. Another call can be written only after all arguments of the
    /// current call, unless the text of the current call is free-form. The end of free-form text cannot be detected,
    /// and clients do not parse this text.
    fn gives_way(&mut self) -> bool {
        self.custom || (self.state != State::Reset && self.is_object())
    }

    /// Returns true if the received text is one complete JSON object. Scans each piece of text only once.
    fn is_object(&mut self) -> bool {
        let json = self.json.get_or_insert_default();
        for text in [&self.written_text, &self.waits] {
            let unchecked = text.as_bytes().get(self.checked..);
            json.feed(unchecked.unwrap_or_default());
            self.checked = self.checked.saturating_sub(text.len());
        }
        self.checked = self.written_text.len() + self.waits.len();
        json.is_complete_object()
    }

    /// Returns the text that waits, and records it as written.
    fn take_waiting(&mut self) -> String {
        let text = mem::take(&mut self.waits);
        self.written_text.push_str(&text);
        text
    }

    /// Returns true if `text` is blank and the arguments are already a complete object.
    fn is_empty_end(&mut self, text: &str) -> bool {
        let is_blank = |byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        text.bytes().all(is_blank) && !self.custom && self.is_object()
    }
}

impl Calls {
    /// Returns true if a call or text that was received is not written yet.
    pub(crate) fn has_unwritten(&self) -> bool {
        !(self.turns.is_empty() && self.late.is_empty())
    }

    /// Returns true if a call waits only because earlier calls must be written first.
    pub(crate) fn has_lost(&self) -> bool {
        let mut states = self.open.values().map(|call| call.state);
        states.any(|state| matches!(state, State::Waiting | State::Whole))
    }

    pub(crate) fn is_begun(&self, part: u32) -> bool {
        let call = self.open.get(&part);
        call.is_some_and(|call| matches!(call.state, State::Begun | State::Reset))
    }

    /// Writes the first element of a call, if the call can be written before it is complete and no other call has to be
    /// written first.
    pub(crate) fn start(&mut self, to: &mut CallOutput<'_>, event: &Event<'_>) {
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
        let opens = call_id.is_some_and(|call_id| to.context.opens(call_id, name));
        if provider_executed {
            return;
        }
        let foreign = custom && !to.context.passed.own;
        let state = if !opens || foreign {
            State::Held
        } else if to.context.passed.finished.contains(&to.choice) && !custom {
            // After a finish reason that passed through, openai-python parses the arguments of a call at the next
            // chunk.
            State::Late
        } else {
            State::Waiting
        };
        let call = OpenCall {
            state,
            call_id: call_id.unwrap_or_default().to_owned(),
            name: name.to_owned(),
            custom,
            index: to.context.passed.index,
            ..OpenCall::default()
        };
        self.open.insert(part, call);
        self.turns.insert(part);
        self.go_on(to);
        if let Some(call) = self.open.get_mut(&part)
            && call.state == State::Waiting
        {
            call.index = None; // the call is not written where the source sent it
        }
    }

    /// Removes a call that was retracted, and writes the calls that waited for it.
    pub(crate) fn retract(&mut self, to: &mut CallOutput<'_>, part: u32) {
        self.remove(part);
        self.go_on(to);
    }

    pub(crate) fn reset(&mut self, part: u32) {
        let Some(call) = self.open.get_mut(&part) else {
            return;
        };
        match call.state {
            State::Late | State::Waiting => {
                call.state = State::Held;
                call.waits.clear();
            }
            State::Begun => call.state = State::Reset,
            _ => {}
        }
    }

    /// Records a piece of a call's arguments that passed through as sent. Returns false and changes nothing if the call
    /// has not begun.
    pub(crate) fn keep(&mut self, part: u32, text: &str) -> bool {
        let call = self.open.get_mut(&part);
        let Some(call) = call.filter(|call| call.state == State::Begun) else {
            return false;
        };
        call.written_text.push_str(text);
        self.current = Some(part);
        true
    }

    pub(crate) fn delta(&mut self, to: &mut CallOutput<'_>, part: u32, text: &str) {
        let Some(call) = self.open.get_mut(&part).filter(|_| !text.is_empty()) else {
            return;
        };
        match call.state {
            State::Late | State::Waiting => {
                call.waits.push_str(text);
                if call.state == State::Late && call.is_object() {
                    call.state = State::Waiting;
                    self.go_on(to);
                }
                return;
            }
            State::Begun => {}
            _ => return,
        }
        if self.current != Some(part) {
            if call.is_empty_end(text) {
                return;
            }
            if !self.is_free() {
                if let Some(call) = self.open.get_mut(&part) {
                    call.waits.push_str(text);
                    self.late.insert(part);
                }
                return;
            }
            self.current = Some(part);
        }
        if let Some(call) = self.open.get_mut(&part) {
            call.written_text.push_str(text);
            to.piece(call, text);
        }
        self.go_on(to);
    }

    /// Writes the rest of a call that has ended, and the calls that no longer have to wait.
    pub(crate) fn close(
        &mut self,
        to: &mut CallOutput<'_>,
        call: &Call<'_>,
    ) -> Result<(), Contradicted> {
        to.context.takes(call.call_id);
        if !self.is_begun(call.part) {
            self.close_unwritten(to, call);
            return Ok(());
        }
        let Some(begun) = self.open.get_mut(&call.part) else {
            return Ok(());
        };
        self.has_empty_cut_call |= call.is_empty_cut();
        let kept = begun.call_id == call.call_id && begun.name == call.name;
        if call.is_whole() && (!kept || call.provider_executed || call.custom != begun.custom) {
            return Err(Contradicted);
        }
        if call.refused {
            to.context.losses.note("refused_call");
        }
        let text = call.final_text(&begun.written_text);
        let mut rest = text.strip_prefix(begun.written_text.as_str());
        if rest.is_none() && call.is_whole() {
            if call.custom || !is_same(&begun.written_text, &text) {
                return Err(Contradicted);
            }
            to.context.losses.note("arguments_spelling");
        }
        let is_current = self.current == Some(call.part);
        if !is_current && rest.is_some_and(|rest| begun.is_empty_end(rest)) {
            rest = None;
        }
        // If the final arguments of a truncated or invalid call do not continue the streamed text, nothing is added.
        let rest = rest.unwrap_or_default();
        if call.is_cut() && is_current {
            begun.state = State::Cut;
            if !rest.is_empty() {
                to.piece(begun, rest);
            }
            return Ok(());
        }
        self.end(to, call.part, rest, is_current);
        Ok(())
    }

    /// Writes the calls that waited for a truncated call. If the stream ends with an error, these calls are not
    /// written.
    pub(crate) fn finish(&mut self, to: &mut CallOutput<'_>) {
        if let Some(part) = self.current
            && self
                .open
                .get(&part)
                .is_some_and(|call| call.state == State::Cut)
        {
            self.current = None;
            self.remove(part);
        }
        self.go_on(to);
    }

    /// Writes the rest of a call, or stores the rest if another call must be completed first.
    fn end(&mut self, to: &mut CallOutput<'_>, part: u32, rest: &str, is_current: bool) {
        let writes = rest.is_empty() || is_current || self.is_free();
        let Some(call) = self.open.get_mut(&part) else {
            return;
        };
        if !writes {
            call.state = State::Ended;
            rest.clone_into(&mut call.waits);
            self.late.insert(part);
            return;
        }
        if !rest.is_empty() {
            to.piece(call, rest);
        }
        if is_current || !rest.is_empty() {
            self.current = None;
        }
        self.remove(part);
        self.go_on(to);
    }

    /// Writes a whole call that has not begun, or queues it until no other call has to be written first.
    fn close_unwritten(&mut self, to: &mut CallOutput<'_>, call: &Call<'_>) {
        // A truncated call from a source of the same dialect is written as sent, unless the input itself was truncated.
        let is_kept = to.context.passed.own && !to.context.cut && call.is_cut();
        let is_kept = is_kept && !(call.is_nameless() || call.provider_executed);
        if !is_kept && !to.context.writes(call) {
            self.has_nameless |= call.is_nameless() && !call.provider_executed;
            return self.retract(to, call.part);
        }
        self.has_empty_cut_call |= call.is_empty_cut();
        let own = call.custom && to.context.passed.own;
        if call.custom && !own {
            to.context.losses.note("custom_call");
        }
        if call.refused {
            to.context.losses.note("refused_call");
        }
        let text = if own {
            call.final_text("")
        } else {
            call.object_text()
        };
        let whole = OpenCall {
            state: State::Whole,
            call_id: call.call_id.to_owned(),
            name: call.name.to_owned(),
            custom: own,
            waits: text.into_owned(),
            ..OpenCall::default()
        };
        self.open.insert(call.part, whole);
        self.turns.insert(call.part);
        self.go_on(to);
    }

    fn remove(&mut self, part: u32) {
        self.open.remove(&part);
        self.turns.remove(&part);
        self.late.remove(&part);
    }

    // The order of calls

    /// Returns true if a call other than the current one can be written.
    fn is_free(&mut self) -> bool {
        let current = self.current.and_then(|part| self.open.get_mut(&part));
        current.is_none_or(OpenCall::gives_way)
    }

    /// Writes the waiting text and calls in order, as long as the current call does not block them.
    fn go_on(&mut self, to: &mut CallOutput<'_>) {
        while self.has_unwritten() && self.is_free() {
            if let Some(part) = self.late.pop_first() {
                self.write_waiting(to, part);
                continue;
            }
            let first = self.turns.first().copied();
            let state = first
                .and_then(|part| self.open.get(&part))
                .map(|call| call.state);
            let waits = matches!(state, Some(State::Held | State::Late));
            let Some(part) = first.filter(|_| !waits) else {
                return;
            };
            self.turns.pop_first();
            self.begin(to, part);
        }
    }

    /// Writes the waiting text of a call that has begun.
    fn write_waiting(&mut self, to: &mut CallOutput<'_>, part: u32) {
        let Some(call) = self.open.get_mut(&part) else {
            return;
        };
        let text = call.take_waiting();
        to.piece(call, &text);
        self.current = Some(part);
        if call.state == State::Ended {
            self.current = None;
            self.remove(part);
        }
    }

    fn begin(&mut self, to: &mut CallOutput<'_>, part: u32) {
        let Some(call) = self.open.get_mut(&part) else {
            return;
        };
        let sent = call.index;
        let sent = sent.filter(|sent| *sent >= 0 && !self.indexes.contains(sent));
        let position = sent.unwrap_or(self.next);
        call.index = Some(position);
        self.indexes.insert(position);
        self.next = self.next.max(position + 1);
        self.written += 1;
        self.unanswered.insert(call.call_id.clone());
        let text = call.take_waiting();
        to.head(call, &text);
        self.current = Some(part);
        if call.state == State::Whole {
            self.current = None;
            self.remove(part);
        } else {
            call.state = State::Begun;
        }
    }
}

impl CallOutput<'_> {
    fn head(&mut self, call: &OpenCall, arguments: &str) {
        let to = begin_chunk(self.head, self.context, self.choice);
        to.raw("{\"tool_calls\":[{\"index\":")
            .number(call.index.unwrap_or_default());
        to.raw(",\"id\":").string(&call.call_id);
        let (kind, text) = names(call.custom);
        to.raw(",\"type\":\"").raw(kind).raw("\",\"").raw(kind);
        to.raw("\":{\"name\":")
            .string(&call.name)
            .raw(",")
            .raw(text)
            .string(arguments);
        to.raw("}}]");
        self.head.end_delta(to, false);
        self.head.end(to);
    }

    fn piece(&mut self, call: &OpenCall, text: &str) {
        let to = begin_chunk(self.head, self.context, self.choice);
        to.raw("{\"tool_calls\":[{\"index\":")
            .number(call.index.unwrap_or_default());
        let (kind, member) = names(call.custom);
        to.raw(",\"").raw(kind).raw("\":{").raw(member).string(text);
        to.raw("}}]");
        self.head.end_delta(to, false);
        self.head.end(to);
    }
}

/// Returns the type of a call and the member that contains the call's text.
fn names(custom: bool) -> (&'static str, &'static str) {
    if custom {
        ("custom", "\"input\":")
    } else {
        ("function", "\"arguments\":")
    }
}
