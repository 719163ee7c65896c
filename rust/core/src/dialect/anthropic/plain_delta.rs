//! Fast path for Messages deltas that contain only a piece of text. Most payloads of a stream contain only a piece of
//! text.
//!
//! This module recognizes deltas in the exact form that the API writes. The decoder handles all other forms.

use crate::dialect::anthropic::Anthropic;
use crate::dialect::anthropic::block::at_index;
use crate::dialect::anthropic::block::message;
use crate::dialect::anthropic::block::reasoning;
use crate::dialect::anthropic::blocks::BlockContent;
use crate::dialect::anthropic::blocks::is_plainly_written;
use crate::dialect::anthropic::fields::FACTS;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::Payload;
use crate::fastpath::items::template::LearnableDelta;
use crate::fastpath::items::template::Target;
use crate::fastpath::items::template::Varying;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members;
use crate::json::members::Object;
use crate::json::members::integer;
use crate::model::fault::Fault;

/// The kind of part to which the text of a delta belongs.
#[derive(Clone, Copy, Debug)]
enum PlainDeltaKind {
    Text,
    Thought,
    Arguments,
}

impl Anthropic {
    /// Decodes an event that contains only a piece of text. Returns false, without any effect, if the event must be
    /// decoded in full.
    #[inline]
    pub(crate) fn decode_plain(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        event: &Object<'_>,
        payload: Payload<'_>,
    ) -> Result<bool, Fault> {
        let [kind, index, delta] = event.members.as_slice() else {
            return Ok(false);
        };
        let keys = [kind.key.raw, index.key.raw, delta.key.raw];
        let plain = keys == ["type", "index", "delta"]
            && kind.raw.text == "\"content_block_delta\""
            && is_plainly_written(index.raw)
            && !event.wide_integer
            && !payload.tail
            && payload.event != Some("error");
        if !(plain && self.started && self.blocks.is_plain()) {
            return Ok(false);
        }
        let index = integer(index.raw).filter(|index| self.blocks.is_within(*index));
        let delta = event.open(delta.raw);
        let (Some(index), Some((delta_kind, raw))) = (index, delta.as_deref().and_then(piece))
        else {
            return Ok(false);
        };
        let content = match delta_kind {
            PlainDeltaKind::Text => BlockContent::Text,
            PlainDeltaKind::Thought => BlockContent::Thinking,
            PlainDeltaKind::Arguments => BlockContent::Input,
        };
        if !self.blocks.takes(content) {
            return Ok(false);
        }
        let wanted = FACTS.needs_name("content_block_delta", payload.event);
        if let Some(name) = wanted {
            wire.out.rename(name);
        }
        self.blocks.expect(wire, Some(index));
        let text = members::text(raw).unwrap_or_default();
        if text.is_empty() {
            return Ok(true);
        }
        let (index, DecodeContext { assembler, out }) = (Some(index), wire);
        let target = match delta_kind {
            PlainDeltaKind::Text => Target::Part(message(index)),
            PlainDeltaKind::Thought => Target::Part(reasoning(index, "thinking")),
            PlainDeltaKind::Arguments => Target::Call(at_index(index), None),
        };
        match target {
            Target::Part(part) => assembler.part_text(out, part, text, None)?,
            Target::Call(address, _) => assembler.call_text(out, 0, address, text, None, None)?,
        }
        // Events that match a template are neither renamed nor marked as misread. During repair, an event that must be
        // renamed or marked therefore does not become a template.
        let is_expected = wanted.is_none() && index == self.blocks.open_index;
        if (is_expected || !out.wants_wire_facts()) && self.templates.should_learn() {
            let learnable = LearnableDelta {
                target,
                varying: Varying {
                    text: raw,
                    padding: None,
                    number: None,
                    object: None,
                    blanks: true,
                },
            };
            self.templates.learn(payload.event, payload.text, learnable);
        }
        Ok(true)
    }
}

/// Returns the text of a delta that has exactly two members: its type, which must come first, and a text.
#[inline]
fn piece<'a>(delta: &Object<'a>) -> Option<(PlainDeltaKind, Raw<'a>)> {
    let [kind, text] = delta.members.as_slice() else {
        return None;
    };
    if kind.key.raw != "type" {
        return None;
    }
    let delta_kind = match (kind.raw.text, text.key.raw) {
        ("\"text_delta\"", "text") => PlainDeltaKind::Text,
        ("\"thinking_delta\"", "thinking") => PlainDeltaKind::Thought,
        ("\"input_json_delta\"", "partial_json") => PlainDeltaKind::Arguments,
        _ => return None,
    };
    (text.raw.kind == Kind::String).then_some((delta_kind, text.raw))
}
