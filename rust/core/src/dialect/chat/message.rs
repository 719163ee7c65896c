//! Decodes a complete message, which gateways send at the end of a stream or instead of a stream.

use crate::dialect::anomalies::Anomalies;
use crate::dialect::anomalies::Pointer;
use crate::dialect::chat::attachments::refusal;
use crate::dialect::chat::calls;
use crate::dialect::chat::choice::ChoiceState;
use crate::dialect::chat::choice::PendingMetadata;
use crate::dialect::chat::choice::emit_released;
use crate::dialect::chat::choice::fragments;
use crate::dialect::chat::content;
use crate::dialect::chat::content::ContentPiece;
use crate::dialect::chat::content::concat;
use crate::dialect::chat::read::Delta;
use crate::dialect::chat::reasoning;
use crate::dialect::chat::reasoning::Thought;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::think_tags::split_whole;
use crate::json::Text;
use crate::model::delta::Message;

impl ChoiceState {
    /// Compares a complete message with the streamed content, and emits the content that was not streamed.
    pub(crate) fn message<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        message: &Delta<'a>,
        pending_metadata: &mut PendingMetadata<'_, 'a>,
        notes: &mut Anomalies<'a>,
        at: Pointer<'_>,
        beside: Option<(&Delta<'a>, Pointer<'_>)>,
    ) -> ParseResult {
        if let Some(think) = &mut self.think {
            emit_released(wire, self.index, think.flush(), None)?;
        }
        let Thought {
            text: thought,
            names,
            extra,
            details,
            signature,
            blocks,
            ..
        } = reasoning::read(message, notes, at);
        pending_metadata.own.extend(&extra);
        let (mut shown, mut thoughts, mut refused, mut others) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut signatures: Vec<_> = signature.into_iter().collect();
        let mut pieces = content::read(message.content, notes, at.member("content"));
        if reasoning::is_thought(message) {
            content::think(&mut pieces);
        }
        for piece in pieces {
            match piece {
                ContentPiece::Shown(text) => shown.push(text),
                ContentPiece::Thought(text) => thoughts.push(text),
                ContentPiece::Refused(text) => refused.push(text),
                ContentPiece::Signature(signature) => signatures.push(signature),
                ContentPiece::File(_) | ContentPiece::Unread(_) => others.push(piece),
            }
        }
        let some = |text: Text<'a>| Some(text).filter(|text| !text.is_empty());
        let of_details = || some(details.as_ref()?.text.clone());
        let thought = thought.or_else(of_details);
        let divided = self.blocks.divide(blocks, thought, "");
        let mut whole = Message {
            content: some(concat(shown)),
            reasoning: some(divided.whole()).or_else(|| some(concat(thoughts))),
            refusal: refusal(message, notes, at).or_else(|| some(concat(refused))),
            fragments: Vec::new(),
        };
        if self.think.is_some() {
            split_think_tags(&mut whole, notes);
        }
        whole.fragments = fragments(wire, &mut self.legacy_form, None, message, notes, at)?;
        if whole.fragments.is_empty() && calls::has_list(message) {
            whole.fragments = calls::tool_uses(message, false, notes, at);
        }
        if let Some((beside, at)) = beside.filter(|_| whole.fragments.is_empty()) {
            let streamed = Some((self.index, &mut self.side_calls));
            whole.fragments = fragments(wire, &mut self.legacy_form, streamed, beside, notes, at)?;
        }
        notes.report(wire)?;
        let streamed = self.has_text;
        if !streamed {
            let has_reasoning = whole.reasoning.is_some();
            self.keep_reasoning(wire.out, names, details.as_ref(), has_reasoning);
        }
        self.has_text = true;
        for block in divided.ended {
            if streamed {
                let (index, signature) = (self.index, block.signature.as_deref());
                let encrypted = block.encrypted.as_deref();
                wire.assembler
                    .reasoning_attributes(wire.out, index, signature, encrypted, None)?;
            } else {
                self.end_block(wire, block, None)?;
            }
        }
        // Emit the attributes of the reasoning first, because `message` opens and closes the parts.
        if let Some(details) = &details {
            self.attributes(wire, details)?;
        }
        for signature in &signatures {
            self.signature(wire, Some(signature))?;
        }
        let attached = self.attached;
        if !attached {
            self.annotations(wire, message, notes, at)?;
        }
        wire.assembler.message(wire.out, self.index, whole)?;
        for piece in others {
            if !(attached && matches!(piece, ContentPiece::File(_))) {
                self.piece(wire, piece, None)?;
            }
        }
        if !attached {
            self.images(wire, message, notes, at)?;
        }
        self.audio(wire, message)?;
        notes.report(wire)
    }
}

/// Moves the text in `<think>` tags from the content of a complete message to its reasoning. Lone surrogates are
/// replaced, because no later text can complete them.
fn split_think_tags(whole: &mut Message<'_>, notes: &mut Anomalies<'_>) {
    let Some(content) = whole.content.take() else {
        return;
    };
    let (content, lone) = content.into_whole();
    notes.lone |= lone;
    let (thought, shown) = split_whole(&content);
    let some = |text: String| Some(Text::plain(&text).into_owned()).filter(|text| !text.is_empty());
    whole.content = some(shown);
    if whole.reasoning.is_none() {
        whole.reasoning = some(thought);
    }
}
