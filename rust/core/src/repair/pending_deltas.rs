//! Buffers pieces of text until it is decided whether their blocks pass unchanged.
//!
//! Most blocks of a stream contain one piece of text and pass. For pieces that pass, the encoder only stores the text.

use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::encoder::Encoder;
use crate::model::event::Delta;
use crate::model::event::DeltaKind;
use crate::model::event::Deltas;
use crate::model::event::Event;
use crate::model::small_map::Set;

#[derive(Clone, Copy, Debug)]
struct PendingDelta {
    kind: DeltaKind,
    part: u32,
    choice: i32,
    /// End offset of the delta's text in the joined texts.
    end: usize,
}

/// Size of the buffered text, in bytes, at which deltas that have passed are given to the encoder.
const MAX_PASSED_TEXT: usize = 1 << 12;

/// Pending deltas in order, with their texts joined.
#[derive(Debug, Default)]
pub(crate) struct PendingDeltas {
    all: Vec<PendingDelta>,
    texts: String,
    /// Number of deltas that have passed.
    passed: usize,
}

impl PendingDeltas {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Buffers the event and returns true if the event is only a non-empty piece of text. Pieces of the parts in
    /// `ended` are not buffered, because clients consider these parts complete.
    #[inline]
    pub(crate) fn keep(&mut self, event: &Event<'_>, ended: &Set<u32>) -> bool {
        let (kind, delta) = match event {
            Event::TextDelta(delta) => (DeltaKind::Text, delta),
            Event::ToolCallDelta(delta) => (DeltaKind::ToolCall, delta),
            Event::ReasoningDelta(delta) => (DeltaKind::Reasoning, delta),
            Event::RefusalDelta(delta) => (DeltaKind::Refusal, delta),
            _ => return false,
        };
        if delta.metadata.is_some() || delta.text.is_empty() || ended.contains(&delta.part) {
            return false;
        }
        self.texts.push_str(delta.text);
        self.all.push(PendingDelta {
            kind,
            part: delta.part,
            choice: delta.choice,
            end: self.texts.len(),
        });
        true
    }

    /// Buffers several deltas, which consist only of text.
    pub(crate) fn keep_all(&mut self, deltas: &Deltas<'_>) {
        let (start, kind, choice) = (self.texts.len(), deltas.kind, deltas.choice);
        self.texts.push_str(deltas.texts);
        let ends = deltas.ends.iter().enumerate();
        self.all.extend(ends.map(|(position, end)| PendingDelta {
            kind,
            part: deltas.parts.of(position),
            choice,
            end: start + end,
        }));
    }

    /// Records that the original bytes of all buffered deltas were sent.
    #[inline]
    pub(crate) fn pass(&mut self, encoder: &mut dyn Encoder, context: &mut EncodeContext) {
        self.passed = self.all.len();
        if self.texts.len() >= MAX_PASSED_TEXT {
            self.give_to_encoder(encoder, context);
        }
    }

    /// Passes the deltas to the encoder. The encoder only stores the deltas that have passed, and writes the others.
    pub(crate) fn give_to_encoder(
        &mut self,
        encoder: &mut dyn Encoder,
        context: &mut EncodeContext,
    ) {
        let (passed, others) = self.all.split_at_checked(self.passed).unwrap_or_default();
        let mut start = 0;
        let same_target = |one: &PendingDelta, next: &PendingDelta| {
            (one.part, one.kind) == (next.part, next.kind)
        };
        for run in passed.chunk_by(same_target) {
            if let Some(last) = run.last() {
                let delta = last.delta(&self.texts, start);
                if !encoder.keep(&delta) {
                    encode_and_discard(encoder, context, &last.kind.event(delta));
                }
                start = last.end;
            }
        }
        for piece in others {
            let delta = piece.delta(&self.texts, start);
            encoder.event(context, &piece.kind.event(delta));
            start = piece.end;
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.all.clear();
        self.texts.clear();
        self.passed = 0;
    }
}

/// Passes an event to the encoder after its original bytes were sent, and discards the encoder's output.
#[cold]
fn encode_and_discard(encoder: &mut dyn Encoder, context: &mut EncodeContext, event: &Event<'_>) {
    let (written, sequence) = (context.writer.bytes.len(), context.passed.sequence);
    encoder.event(context, event);
    context.writer.bytes.truncate(written);
    context.passed.sequence = sequence;
    context.losses.forget();
}

impl PendingDelta {
    fn delta<'t>(&self, texts: &'t str, start: usize) -> Delta<'t> {
        Delta {
            part: self.part,
            text: texts.get(start..self.end).unwrap_or_default(),
            choice: self.choice,
            metadata: None,
        }
    }
}
