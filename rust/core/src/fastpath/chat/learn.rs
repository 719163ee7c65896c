//! Decides whether a template can be learned from a chunk that had a single effect.
//!
//! A chunk is not learned if anything except its varying members could change the meaning of a later chunk that matches
//! the template.

use crate::dialect::chat::read::Call;
use crate::dialect::chat::read::TypedValue;
use crate::dialect::chat::reasoning::Thought;
use crate::fastpath::chat::template::ChunkKind;
use crate::fastpath::chat::template::Hole;
use crate::fastpath::chat::template::LearnableChunk;
use crate::fastpath::chat::template::is_small;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Slot;
use crate::json::members::present;
use crate::json::members::string;

/// Counts the effects of a delta, and stores the data for a template of the last effect.
#[derive(Debug, Default)]
pub(crate) struct DeltaTally<'a> {
    things: usize,
    learnable: Option<LearnableChunk<'a>>,
}

impl<'a> DeltaTally<'a> {
    pub(crate) fn add(&mut self, learnable: Option<LearnableChunk<'a>>) {
        self.things += 1;
        self.learnable = learnable;
    }

    /// Returns the learnable chunk if the delta had exactly one effect.
    pub(crate) fn only(self) -> Option<LearnableChunk<'a>> {
        self.learnable.filter(|_| self.things == 1)
    }
}

/// Returns the data for a template if the content is a string, otherwise `None`.
pub(crate) fn of_text(slot: Slot<'_>) -> Option<LearnableChunk<'_>> {
    let raw = slot.filter(|raw| raw.kind == Kind::String)?;
    Some(LearnableChunk::new(ChunkKind::Text, raw))
}

/// Returns the data for a template if the reasoning is in one string field, even if other members repeat its text.
///
/// Returns `None` if there are `thinking_blocks`, because earlier blocks decide how their text is divided.
///
/// `reported` is true if the repetition was already reported.
pub(crate) fn of_thought<'a>(thought: &Thought<'a>, reported: bool) -> Option<LearnableChunk<'a>> {
    let has_field_only =
        thought.extra.is_empty() && thought.blocks.is_empty() && thought.signature.is_none();
    let text = thought.field.filter(|_| has_field_only)?;
    let mut learnable = LearnableChunk::new(ChunkKind::Reasoning, text);
    let mut again = thought.again.clone();
    if let Some(details) = &thought.details {
        if details.texts.len() != 1 || details.signature.is_some() || details.encrypted.is_some() {
            return None;
        }
        again.extend(&details.texts);
        learnable.details = Some(details.raw);
    }
    let known = again.is_empty() || reported;
    if !known || again.iter().any(|raw| raw.text != text.text) {
        return None;
    }
    learnable
        .holes
        .extend(again.into_iter().map(|raw| (Hole::Same, raw)));
    Some(learnable)
}

/// Returns the data for a template of one call in `tool_calls`, or `None` if no template can be learned from the call.
pub(crate) fn of_call<'a>(call: &Call<'a>) -> Option<LearnableChunk<'a>> {
    let (function, custom) = match (&call.function, &call.custom) {
        (Some(TypedValue::Read(function, _)), None) => (function, false),
        (None, Some(TypedValue::Read(function, _))) => (function, true),
        _ => return None,
    };
    let twice = function.id.is_some() || call.name.is_some() || call.arguments.is_some();
    if twice || !call.other_members.is_empty() || !function.other_members.is_empty() {
        return None;
    }
    let kind = present(call.kind).map(string);
    let custom = match kind.as_ref().map(Option::as_deref) {
        None | Some(Some("" | "function")) => custom,
        Some(Some("custom")) => true,
        Some(_) => return None,
    };
    let what = ChunkKind::Call {
        has_index_key: call.index.is_some(),
        custom,
    };
    let is_string = |raw: &Raw<'_>| raw.kind == Kind::String;
    let mut learnable = LearnableChunk::new(what, function.arguments.filter(is_string)?);
    if let Some(raw) = present(call.index) {
        // No template is learned for an index that was reported as unusable or that is not written as plain digits.
        learnable
            .holes
            .push((Hole::Index, Some(raw).filter(|raw| is_small(*raw))?));
    }
    for (hole, slot) in [(Hole::Id, call.id), (Hole::Name, function.name)] {
        if let Some(raw) = present(slot) {
            learnable.holes.push((hole, Some(raw).filter(is_string)?));
        }
    }
    Some(learnable)
}
