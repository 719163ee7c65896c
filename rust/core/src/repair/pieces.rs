//! Pieces of texts that came, until it is known whether their blocks pass.
//!
//! Most of every stream are pieces that do: then the encoder keeps their text, and writes nothing. Knows no block.

use crate::encode::Encode;
use crate::encode::job::Job;
use crate::event::{Delta, Event};
use crate::few::Set;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Reasoning,
    Refusal,
    Call,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    kind: Kind,
    part: u32,
    choice: i32,
    /// Where its text ends among all.
    end: usize,
}

/// So much text is kept at most before it is handed on.
const MOST: usize = 1 << 12;

/// In order, their texts one behind the other.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    all: Vec<Piece>,
    texts: String,
    /// So many of them have passed.
    passed: usize,
}

impl Pieces {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Keeps an event that is a piece of a text and nothing else; false if it is more than that, or less. `ended`: parts that
    /// readers take for whole, so that a piece may contradict.
    #[inline]
    pub(super) fn keep(&mut self, event: &Event<'_>, ended: &Set<u32>) -> bool {
        let (kind, delta) = match event {
            Event::TextDelta(delta) => (Kind::Text, delta),
            Event::ToolCallDelta(delta) => (Kind::Call, delta),
            Event::ReasoningDelta(delta) => (Kind::Reasoning, delta),
            Event::RefusalDelta(delta) => (Kind::Refusal, delta),
            _ => return false,
        };
        if delta.metadata.is_some() || delta.text.is_empty() || ended.contains(&delta.part) {
            return false;
        }
        self.texts.push_str(delta.text);
        self.all.push(Piece {
            kind,
            part: delta.part,
            choice: delta.choice,
            end: self.texts.len(),
        });
        true
    }

    /// The same of several pieces of a text in a row.
    pub(super) fn keep_texts(&mut self, part: u32, choice: i32, texts: &str, ends: &[usize]) {
        let start = self.texts.len();
        self.texts.push_str(texts);
        let kind = Kind::Text;
        self.all.extend(ends.iter().map(|end| Piece {
            kind,
            part,
            choice,
            end: start + end,
        }));
    }

    /// They have passed.
    #[inline]
    pub(super) fn pass(&mut self, encoder: &mut dyn Encode, job: &mut Job) {
        self.passed = self.all.len();
        if self.texts.len() >= MOST {
            self.hand_on(encoder, job);
        }
    }

    /// Those that have passed are kept by the encoder, the others written.
    pub(super) fn hand_on(&mut self, encoder: &mut dyn Encode, job: &mut Job) {
        let (passed, others) = self.all.split_at_checked(self.passed).unwrap_or_default();
        let mut start = 0;
        let alike = |one: &Piece, next: &Piece| (one.part, one.kind) == (next.part, next.kind);
        for run in passed.chunk_by(alike) {
            if let Some(last) = run.last() {
                let delta = last.delta(&self.texts, start);
                if !encoder.keep(&delta) {
                    unwritten(encoder, job, &last.event(delta));
                }
                start = last.end;
            }
        }
        for piece in others {
            let delta = piece.delta(&self.texts, start);
            encoder.event(job, &piece.event(delta));
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
fn unwritten(encoder: &mut dyn Encode, job: &mut Job, event: &Event<'_>) {
    let (written, sequence) = (job.writer.bytes.len(), job.passed.sequence);
    encoder.event(job, event);
    job.writer.bytes.truncate(written);
    job.passed.sequence = sequence;
    job.losses.forget();
}

impl Piece {
    fn delta<'t>(&self, texts: &'t str, start: usize) -> Delta<'t> {
        Delta {
            part: self.part,
            text: texts.get(start..self.end).unwrap_or_default(),
            choice: self.choice,
            metadata: None,
        }
    }

    fn event<'t>(&self, delta: Delta<'t>) -> Event<'t> {
        match self.kind {
            Kind::Text => Event::TextDelta(delta),
            Kind::Reasoning => Event::ReasoningDelta(delta),
            Kind::Refusal => Event::RefusalDelta(delta),
            Kind::Call => Event::ToolCallDelta(delta),
        }
    }
}
