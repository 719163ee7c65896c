//! What can be learned from a chunk that did one thing only.
//!
//! Cautious: whatever could make a later chunk mean something else beside its varying members is not learned.

use super::cache::{Hole, Lesson, What};
use super::error::string;
use super::read::{Call, Slot, Walk, present};
use super::reasoning::Thought;
use super::template::is_small;
use crate::json::{Kind, Raw};

/// How many things a delta did, and what can be learned from the last of them.
#[derive(Debug, Default)]
pub(super) struct Tally<'a> {
    things: usize,
    lesson: Option<Lesson<'a>>,
}

impl<'a> Tally<'a> {
    pub(super) fn add(&mut self, lesson: Option<Lesson<'a>>) {
        self.things += 1;
        self.lesson = lesson;
    }

    /// What can be learned, if the delta did one thing.
    pub(super) fn only(self) -> Option<Lesson<'a>> {
        self.lesson.filter(|_| self.things == 1)
    }
}

/// Of content: a plain string.
pub(super) fn of_text(slot: Slot<'_>) -> Option<Lesson<'_>> {
    let raw = slot.filter(|raw| raw.kind == Kind::String)?;
    Some(Lesson::new(What::Text, raw))
}

/// Of reasoning: a plain field, alone or with the same text in other places. `said` tells that it was reported before
/// that texts come twice.
pub(super) fn of_thought<'a>(thought: &Thought<'a>, said: bool) -> Option<Lesson<'a>> {
    let text = thought.field.filter(|_| thought.extra.is_empty())?;
    let mut lesson = Lesson::new(What::Reasoning, text);
    let mut again = thought.again.clone();
    if let Some(details) = &thought.details {
        if details.texts.len() != 1 || details.signature.is_some() || details.encrypted.is_some() {
            return None;
        }
        again.extend(&details.texts);
        lesson.details = Some(details.raw);
    }
    let known = again.is_empty() || said;
    if !known || again.iter().any(|raw| raw.text != text.text) {
        return None;
    }
    lesson
        .holes
        .extend(again.into_iter().map(|raw| (Hole::Same, raw)));
    Some(lesson)
}

/// Of an entry of `tool_calls`.
pub(super) fn of_call<'a>(call: &Call<'a>) -> Option<Lesson<'a>> {
    let (function, custom) = match (&call.function, &call.custom) {
        (Some(Walk::Read(function, _)), None) => (function, false),
        (None, Some(Walk::Read(function, _))) => (function, true),
        _ => return None,
    };
    let twice = function.id.is_some() || call.name.is_some() || call.arguments.is_some();
    if twice || !call.rest.is_empty() || !function.rest.is_empty() {
        return None;
    }
    let kind = present(call.kind).map(string);
    let custom = match kind.as_ref().map(Option::as_deref) {
        None | Some(Some("" | "function")) => custom,
        Some(Some("custom")) => true,
        Some(_) => return None,
    };
    let what = What::Call {
        has_index_key: call.index.is_some(),
        custom,
    };
    let is_string = |raw: &Raw<'_>| raw.kind == Kind::String;
    let mut lesson = Lesson::new(what, function.arguments.filter(is_string)?);
    if let Some(raw) = present(call.index) {
        // Anything but a small number was said to be unusable, or needs more than digits to be read.
        lesson
            .holes
            .push((Hole::Index, Some(raw).filter(|raw| is_small(*raw))?));
    }
    for (hole, slot) in [(Hole::Id, call.id), (Hole::Name, function.name)] {
        if let Some(raw) = present(slot) {
            lesson.holes.push((hole, Some(raw).filter(is_string)?));
        }
    }
    Some(lesson)
}
