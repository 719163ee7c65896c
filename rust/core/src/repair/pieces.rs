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

/// In order, their texts one behind the other.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    all: Vec<Piece>,
    texts: String,
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
    pub(super) fn pass(&mut self, encoder: &mut dyn Encode, job: &mut Job) {
        let texts = &self.texts;
        let mut start = 0;
        let alike = |one: &Piece, next: &Piece| (one.part, one.kind) == (next.part, next.kind);
        for run in self.all.chunk_by(alike) {
            if let Some(last) = run.last() {
                let delta = last.delta(texts, start);
                if !encoder.keep(&delta) {
                    let written = job.writer.bytes.len();
                    encoder.event(job, &last.event(delta));
                    job.writer.bytes.truncate(written);
                }
                start = last.end;
            }
        }
        self.clear();
    }

    /// They are written.
    pub(super) fn write(&mut self, encoder: &mut dyn Encode, job: &mut Job) {
        let mut start = 0;
        for piece in &self.all {
            let delta = piece.delta(&self.texts, start);
            encoder.event(job, &piece.event(delta));
            start = piece.end;
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.all.clear();
        self.texts.clear();
    }
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
