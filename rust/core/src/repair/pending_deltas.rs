//! Pieces of texts that came, until it is known whether their blocks pass.
//!
//! Most of every stream are pieces that do: then the encoder keeps their text, and writes nothing. Knows no block.

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
    /// Where its text ends among all.
    end: usize,
}

/// So much text is kept at most before it is handed on.
const MOST: usize = 1 << 12;

/// In order, their texts one behind the other.
#[derive(Debug, Default)]
pub(crate) struct PendingDeltas {
    all: Vec<PendingDelta>,
    texts: String,
    /// So many of them have passed.
    passed: usize,
}

impl PendingDeltas {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Keeps an event that is a piece of a text and nothing else; false if it is more than that, or less. `ended`: parts that
    /// readers take for whole, so that a piece may contradict.
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

    /// Keeps several that no reader takes for more than that.
    pub(crate) fn keep_all(&mut self, deltas: &Deltas<'_>) {
        let (start, kind, choice) = (self.texts.len(), deltas.kind, deltas.choice);
        self.texts.push_str(deltas.texts);
        let ends = deltas.ends.iter().enumerate();
        self.all.extend(ends.map(|(place, end)| PendingDelta {
            kind,
            part: deltas.parts.of(place),
            choice,
            end: start + end,
        }));
    }

    /// They have passed.
    #[inline]
    pub(crate) fn pass(&mut self, encoder: &mut dyn Encoder, job: &mut EncodeContext) {
        self.passed = self.all.len();
        if self.texts.len() >= MOST {
            self.hand_on(encoder, job);
        }
    }

    /// Those that have passed are kept by the encoder, the others written.
    pub(crate) fn hand_on(&mut self, encoder: &mut dyn Encoder, job: &mut EncodeContext) {
        let (passed, others) = self.all.split_at_checked(self.passed).unwrap_or_default();
        let mut start = 0;
        let alike = |one: &PendingDelta, next: &PendingDelta| {
            (one.part, one.kind) == (next.part, next.kind)
        };
        for run in passed.chunk_by(alike) {
            if let Some(last) = run.last() {
                let delta = last.delta(&self.texts, start);
                if !encoder.keep(&delta) {
                    unwritten(encoder, job, &last.kind.event(delta));
                }
                start = last.end;
            }
        }
        for piece in others {
            let delta = piece.delta(&self.texts, start);
            encoder.event(job, &piece.kind.event(delta));
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

/// The encoder takes what has passed.
#[cold]
fn unwritten(encoder: &mut dyn Encoder, job: &mut EncodeContext, event: &Event<'_>) {
    let (written, sequence) = (job.writer.bytes.len(), job.passed.sequence);
    encoder.event(job, event);
    job.writer.bytes.truncate(written);
    job.passed.sequence = sequence;
    job.losses.forget();
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
