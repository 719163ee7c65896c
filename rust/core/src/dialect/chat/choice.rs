//! One choice of a chunk, said to the assembler in the order in which it counts.
//!
//! Knows every member of a choice. Knows no chunk-level member but the metadata that the first event carries along. Of
//! a chunk that has no such event (calls carry only their own) it goes to the choice's last one.

use std::borrow::Cow;
use std::mem;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::cache::Lesson;
use super::content::{self, Piece};
use super::error::{Complaint, text};
use super::lesson::{self, Tally};
use super::read::{Choice, Delta, Walk, present};
use super::reasoning::{self, Progress};
use super::say::{Carry, say};
use super::shape::legacy_text;
use super::{Step, Wire, calls, usage};
use crate::delta::Fragment;
use crate::dialect::think::{Think, is_white};
use crate::fault::Fault;
use crate::few::Numbered;
use crate::json::{Kind, Raw, Text};
use crate::leftovers::Leftovers;
use crate::notes::{Notes, Pointer};
use crate::spec::{self, Code};

/// What the finish reasons of the wire mean.
static FINISH: LazyLock<Option<&'static Map<String, Value>>> =
    LazyLock::new(|| spec::dialects().get("chat")?.get("finish")?.as_object());

/// How a chunk is to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// What stands behind a broken document: text, finish, usage and errors only.
    pub(super) tail: bool,
    /// The chunk has another id than the one before.
    pub(super) new_id: bool,
    /// The chunk calls itself a whole answer.
    pub(super) body: bool,
    /// Whether anything can be learned from the chunk.
    pub(super) learns: bool,
}

/// What a choice came to: an error in it, and what can be learned from the chunk.
#[derive(Debug, Default)]
pub(super) struct Taken<'a> {
    pub(super) complaint: Option<Complaint<'a>>,
    pub(super) lesson: Option<Lesson<'a>>,
}

/// What the decoder remembers of one choice.
#[derive(Debug)]
pub(super) struct ChoiceState {
    pub(super) index: i32,
    pub(super) think: Option<Box<Think>>,
    pub(super) details: Progress,
    /// Pieces of audio, which go to the last event.
    pub(super) audio: Vec<String>,
    pub(super) audio_size: usize,
    /// Files or annotations came in deltas: a whole message only repeats them.
    pub(super) attached: bool,
    /// A gateway that repeats reasoning does it in every chunk.
    pub(super) said_repeated: bool,
    /// There was something to start again from.
    pub(super) spoke: bool,
}

impl Numbered for ChoiceState {
    type Number = i32;

    fn number(&self) -> i32 {
        self.index
    }
}

impl ChoiceState {
    pub(super) fn new(index: i32, inline_reasoning: bool) -> ChoiceState {
        ChoiceState {
            index,
            think: inline_reasoning.then(Box::default),
            details: Progress::default(),
            audio: Vec::new(),
            audio_size: 0,
            attached: false,
            said_repeated: false,
            spoke: false,
        }
    }

    pub(super) fn take<'a>(
        &mut self,
        wire: &mut Wire<'_, '_>,
        choice: &Choice<'a>,
        fresh: &mut Leftovers<'a>,
        notes: &mut Notes<'a>,
        at: Pointer<'_>,
        reading: Reading,
    ) -> Result<Taken<'a>, Fault> {
        let delta = object(choice.delta.as_ref(), notes, at.member("delta"));
        let message = object(choice.message.as_ref(), notes, at.member("message"));
        let finish = finish(choice, notes, at);
        notes.tell(wire)?;
        let mut carry = Carry {
            chunk: fresh,
            own: Leftovers::default(),
            text: None,
        };
        if let Some(text) = legacy_text(choice) {
            let mut rest = choice.rest.clone();
            rest.retain(|member| !member.key.is("text"));
            carry.own.extend(&rest);
            let pieces = content::read(Some(text), notes, at.member("text"));
            self.content(wire, pieces, &mut carry, finish.is_some(), reading)?;
            notes.tell(wire)?;
        } else {
            carry.own.extend(&choice.rest);
        }
        let mut lesson = None;
        if let Some((delta, _)) = delta {
            let role = delta.role.is_some_and(|raw| raw.kind == Kind::String);
            if reading.new_id && self.spoke && role {
                wire.assembler.restart(wire.out, self.index)?;
                self.think = self.think.take().map(|_| Box::default());
                self.details = Progress::default();
                self.spoke = false;
            }
            lesson = self.delta(
                wire,
                delta,
                &mut carry,
                notes,
                at.member("delta"),
                finish.is_some(),
                reading,
            )?;
        }
        if let Some((message, raw)) = message.filter(|(_, raw)| !reading.tail && is_filled(*raw)) {
            // Some gateways mirror every delta, or all deltas so far, in a message.
            let absent = !matches!(&choice.delta, Some(Walk::Read(..)))
                && choice
                    .delta
                    .as_ref()
                    .is_none_or(|walk| matches!(walk, Walk::Other(raw) if raw.kind == Kind::Null));
            let mirrors = choice
                .delta
                .as_ref()
                .is_some_and(|delta| delta.raw().text == raw.text);
            if absent || reading.body || (finish.is_some() && !mirrors) {
                if delta.is_none() {
                    carry.own.extend(&message.rest);
                }
                self.message(wire, message, &mut carry, notes, at.member("message"))?;
            }
            lesson = None;
        }
        if let Some(text) = carry.own.text() {
            wire.assembler
                .choice_metadata(wire.out, self.index, &text)?;
        }
        if present(choice.usage).is_some() || present(choice.error).is_some() || finish.is_some() {
            lesson = None;
        }
        usage::take(wire, choice.usage, notes, at)?;
        if let Some((raw_reason, lone)) = finish {
            if let Some(think) = &mut self.think {
                say(wire, self.index, think.flush(), None)?;
            }
            notes.lone |= lone;
            notes.tell(wire)?;
            let reason = FINISH
                .and_then(|table| table.get(raw_reason.as_ref()))
                .and_then(Value::as_str);
            wire.assembler
                .finish(wire.out, self.index, &raw_reason, reason)?;
        }
        Ok(Taken {
            complaint: Complaint::of_choice(choice.error),
            lesson,
        })
    }

    /// The stream is about to close: what was held back goes out.
    pub(super) fn flush(&mut self, wire: &mut Wire<'_, '_>) -> Step {
        if let Some(think) = &mut self.think {
            say(wire, self.index, think.end(), None)?;
        }
        if !self.audio.is_empty() {
            let text = format!("{{\"audio\":[{}]}}", mem::take(&mut self.audio).join(","));
            wire.assembler
                .choice_metadata(wire.out, self.index, &text)?;
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn delta<'a>(
        &mut self,
        wire: &mut Wire<'_, '_>,
        delta: &Delta<'a>,
        carry: &mut Carry<'_, 'a>,
        notes: &mut Notes<'a>,
        at: Pointer<'_>,
        finishes: bool,
        reading: Reading,
    ) -> Result<Option<Lesson<'a>>, Fault> {
        carry.own.extend(&delta.rest);
        let metadata = if reading.learns {
            carry.own.text()
        } else {
            None
        };
        let mut tally = Tally::default();
        if !reading.tail {
            let thought = reasoning::read(delta, notes, at);
            notes.tell(wire)?;
            carry.own.extend(&thought.extra);
            if reading.learns && thought.says_something() {
                tally.add(lesson::of_thought(&thought, self.said_repeated));
            }
            self.thought(wire, thought, carry)?;
        }
        let pieces = content::read(delta.content, notes, at.member("content"));
        if reading.learns && !pieces.is_empty() {
            tally.add(lesson::of_text(delta.content));
        }
        let closes = finishes
            || says_something(delta.tool_calls.as_ref())
            || says_something(delta.function_call.as_ref());
        self.content(wire, pieces, carry, closes, reading)?;
        if reading.tail {
            notes.tell(wire)?;
            return Ok(None);
        }
        if self.attachments(wire, delta, carry, notes, at)? {
            tally.add(None);
        }
        notes.tell(wire)?;
        let fragments = fragments(wire, delta, notes, at);
        notes.tell(wire)?;
        if fragments.is_empty() {
            return Ok(tally.only().map(|lesson| Lesson { metadata, ..lesson }));
        }
        self.spoke = true;
        if let Some(think) = &mut self.think {
            say(wire, self.index, think.flush(), None)?;
        }
        for fragment in &fragments {
            wire.assembler.call(wire.out, self.index, fragment)?;
        }
        if reading.learns {
            tally.add(match &delta.tool_calls {
                Some(Walk::Read(entries, raw))
                    if fragments.len() == 1 && raw.kind == Kind::Array =>
                {
                    match entries.as_slice() {
                        [Walk::Read(call, _)] => lesson::of_call(call),
                        _ => None,
                    }
                }
                _ => None,
            });
        }
        Ok(tally.only().map(|lesson| Lesson { metadata, ..lesson }))
    }

    /// The content of a delta. `closes`: here it may be the whole text again.
    fn content(
        &mut self,
        wire: &mut Wire<'_, '_>,
        mut pieces: Vec<Piece<'_>>,
        carry: &mut Carry<'_, '_>,
        closes: bool,
        reading: Reading,
    ) -> Step {
        if reading.tail {
            pieces.retain(|piece| matches!(piece, Piece::Said(_)));
        }
        if closes && self.restates(wire, &pieces)? {
            return Ok(());
        }
        pieces
            .into_iter()
            .try_for_each(|piece| self.piece(wire, piece, Some(carry)))
    }

    /// AM9: the closing chunk says all of the text again.
    fn restates(&self, wire: &mut Wire<'_, '_>, pieces: &[Piece<'_>]) -> Result<bool, Fault> {
        let [Piece::Said(text)] = pieces else {
            return Ok(false);
        };
        let dropped = wire.out.config.policy.switches.drop_restated_content;
        if !dropped || !wire.assembler.restates(self.index, text) {
            return Ok(false);
        }
        wire.out.diagnose(Code::CONTENT_RESTATED, None, "")?;
        Ok(true)
    }
}

/// The calls of a delta or a message, the legacy one behind the others.
pub(super) fn fragments<'a>(
    wire: &Wire<'_, '_>,
    delta: &Delta<'a>,
    notes: &mut Notes<'a>,
    at: Pointer<'_>,
) -> Vec<Fragment<'a>> {
    let limit = wire.out.config.limits.max_tool_index;
    let mut out = match &delta.tool_calls {
        Some(Walk::Read(entries, raw)) => {
            let at = at.member("tool_calls");
            calls::fragments(entries, raw.kind == Kind::Array, limit, notes, at)
        }
        Some(Walk::Other(raw)) => {
            notes.unless_null(*raw, at.member("tool_calls"));
            Vec::new()
        }
        None => Vec::new(),
    };
    match &delta.function_call {
        Some(Walk::Read(function, _)) => {
            out.push(calls::legacy(function, notes, at.member("function_call")))
        }
        Some(Walk::Other(raw)) => notes.unless_null(*raw, at.member("function_call")),
        None => {}
    }
    out
}

/// Whether a member is there and not null, false, zero or empty.
fn says_something<T>(walk: Option<&Walk<'_, T>>) -> bool {
    walk.is_some_and(|walk| {
        let raw = walk.raw();
        match raw.kind {
            Kind::Null | Kind::False => false,
            Kind::True => true,
            Kind::Number => raw.text.parse::<f64>().is_ok_and(|number| number != 0.0),
            Kind::String => raw.text.len() > 2,
            Kind::Array | Kind::Object => is_filled(raw),
        }
    })
}

/// Whether an array or object has anything in it.
fn is_filled(raw: Raw<'_>) -> bool {
    raw.text
        .bytes()
        .skip(1)
        .any(|byte| !byte.is_ascii_whitespace() && !matches!(byte, b']' | b'}'))
}

type Object<'c, 'a> = (&'c Delta<'a>, Raw<'a>);

/// A delta or message and its text, where it is one.
fn object<'c, 'a>(
    walk: Option<&'c Walk<'a, Box<Delta<'a>>>>,
    notes: &mut Notes<'a>,
    at: Pointer<'_>,
) -> Option<Object<'c, 'a>> {
    match walk? {
        Walk::Read(value, raw) => Some((value, *raw)),
        Walk::Other(raw) => {
            notes.unless_null(*raw, at);
            None
        }
    }
}

/// The finish reason in either spelling, unless it is blank; true where a surrogate stood alone in it.
fn finish<'a>(
    choice: &Choice<'a>,
    notes: &mut Notes<'a>,
    at: Pointer<'_>,
) -> Option<(Cow<'a, str>, bool)> {
    for (slot, name) in [
        (choice.finish_reason, "finish_reason"),
        (choice.finish_camel, "finishReason"),
    ] {
        let Some(raw) = present(slot) else { continue };
        match text(raw).map(Text::into_whole) {
            Some((reason, _)) if reason.trim_matches(is_white).is_empty() => {}
            found @ Some(_) => return found,
            None => notes.shape(raw, at.member(name)),
        }
    }
    None
}
