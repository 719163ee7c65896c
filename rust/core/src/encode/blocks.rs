//! Parts that come side by side, as blocks one behind the other: one is open at a time.
//!
//! Another part's text closes an open text; an open call streams until it is whole, and what others bring meanwhile waits
//! in order of first sight. Knows which part is open and what waits; how a block is written is the form's business.

use std::collections::VecDeque;
use std::fmt::Debug;

use super::job::Job;
use crate::few::Map;

/// What a block holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Text,
    Thinking,
    Call,
}

/// How a block begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Head<'a> {
    Text,
    Thinking,
    /// A reasoning without a text: what only its provider can read.
    Redacted(&'a str),
    /// Id and name.
    Call(&'a str, &'a str),
}

/// How blocks are written.
pub(crate) trait Form: Debug {
    fn open(&mut self, job: &mut Job, head: Head<'_>);
    fn delta(&mut self, job: &mut Job, kind: Kind, text: &str);
    /// `seal`: the signature of a reasoning that is in this block alone.
    fn close(&mut self, job: &mut Job, seal: Option<&str>);
}

/// The close of a reasoning or a text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seal<'a> {
    pub(crate) signature: Option<&'a str>,
    pub(crate) redacted: Option<&'a str>,
}

/// One part.
#[derive(Debug, Default)]
struct Piece {
    kind: Kind,
    /// What went out.
    told: String,
    /// What has to wait.
    waits: String,
    /// It stands in the queue.
    queued: bool,
    /// Its last word came.
    done: bool,
    /// How many blocks it has.
    blocks: u32,
    signature: Option<String>,
    redacted: Option<String>,
    call_id: String,
    name: String,
    /// Of a call: nothing of it is written before it is whole.
    held: bool,
}

/// The parts of one answer.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    open: Option<u32>,
    queue: VecDeque<u32>,
    pieces: Map<u32, Piece>,
}

impl Blocks {
    /// A call of another part is open.
    fn is_busy(&self, part: u32) -> bool {
        let open = self.open.filter(|open| *open != part);
        let piece = open.and_then(|open| self.pieces.get(&open));
        piece.is_some_and(|piece| piece.kind == Kind::Call)
    }

    /// The call is the open block.
    pub(crate) fn is_open(&self, part: u32) -> bool {
        self.open == Some(part)
    }

    /// A piece of a text.
    pub(crate) fn text<F: Form>(
        &mut self,
        to: (&mut F, &mut Job),
        part: u32,
        kind: Kind,
        text: &str,
    ) {
        if text.is_empty() {
            return;
        }
        self.pieces.slot(part).kind = kind;
        self.bring(to, part, text);
    }

    fn bring<F: Form>(&mut self, to: (&mut F, &mut Job), part: u32, text: &str) {
        if self.is_busy(part) {
            self.pieces.slot(part).waits.push_str(text);
            self.enqueue(part);
        } else {
            self.write(to, part, text);
        }
    }

    fn enqueue(&mut self, part: u32) {
        let piece = self.pieces.slot(part);
        if !piece.queued {
            piece.queued = true;
            self.queue.push_back(part);
        }
    }

    fn write<F: Form>(&mut self, (form, job): (&mut F, &mut Job), part: u32, text: &str) {
        if self.open != Some(part) {
            self.close(form, job);
            let piece = self.pieces.slot(part);
            piece.blocks += 1;
            form.open(
                job,
                match piece.kind {
                    Kind::Text => Head::Text,
                    Kind::Thinking => Head::Thinking,
                    Kind::Call => Head::Call(&piece.call_id, &piece.name),
                },
            );
            self.open = Some(part);
        }
        let piece = self.pieces.slot(part);
        piece.told.push_str(text);
        if !text.is_empty() {
            form.delta(job, piece.kind, text);
        }
    }

    /// Closes the open block, whatever it holds. A reasoning in several blocks has no place for its signature.
    pub(crate) fn close<F: Form>(&mut self, form: &mut F, job: &mut Job) {
        let Some(part) = self.open.take() else {
            return;
        };
        let piece = self.pieces.slot(part);
        let signature = piece.signature.take();
        if signature.is_some() && piece.blocks > 1 {
            job.losses.note("reasoning_signature");
        }
        form.close(job, signature.as_deref().filter(|_| piece.blocks == 1));
        if piece.done {
            self.pieces.remove(&part);
        }
    }

    /// The whole of a text. What went out stays where that says something else.
    pub(crate) fn done<F: Form>(
        &mut self,
        (form, job): (&mut F, &mut Job),
        part: u32,
        kind: Kind,
        text: &str,
        seal: Seal<'_>,
    ) {
        let busy = self.is_busy(part);
        let piece = self.pieces.slot(part);
        piece.kind = kind;
        piece.done = true;
        piece.signature = seal.signature.map(str::to_owned);
        let bare = piece.told.is_empty() && text.is_empty();
        piece.redacted = seal.redacted.filter(|_| bare).map(str::to_owned);
        let sealed = piece.redacted.is_some();
        match text.strip_prefix(piece.told.as_str()) {
            Some(rest) => rest.clone_into(&mut piece.waits),
            None => job.losses.note("text_corrected"),
        }
        if piece.waits.is_empty() && !sealed {
            if self.open == Some(part) {
                return self.close(form, job);
            }
            let signed = piece.signature.is_some() && !piece.queued;
            if signed {
                job.losses.note("reasoning_signature");
            }
            self.pieces.remove(&part);
        } else if busy {
            self.enqueue(part);
        } else {
            self.pour((form, job), part);
        }
    }

    /// A call that opens.
    pub(crate) fn begin(&mut self, part: u32, call_id: &str, name: &str, held: bool) {
        let piece = self.pieces.slot(part);
        piece.kind = Kind::Call;
        piece.held = held;
        call_id.clone_into(&mut piece.call_id);
        name.clone_into(&mut piece.name);
    }

    /// A piece of a call's arguments. One that does not begin as an object is looked at when it is whole.
    pub(crate) fn arguments<F: Form>(&mut self, to: (&mut F, &mut Job), part: u32, text: &str) {
        let Some(piece) = self.pieces.get_mut(&part) else {
            return;
        };
        if piece.told.is_empty() && piece.waits.is_empty() && !text.trim_start().starts_with('{') {
            piece.held = true;
        }
        if !piece.held {
            self.bring(to, part, text);
        }
    }

    /// The source took the arguments back: its last word decides.
    pub(crate) fn reset(&mut self, part: u32) {
        if let Some(piece) = self.pieces.get_mut(&part) {
            piece.waits.clear();
            piece.held = true;
        }
    }

    /// What went out of a call: id, name, arguments.
    pub(crate) fn told(&self, part: u32) -> Option<(&str, &str, &str)> {
        let piece = self.pieces.get(&part).filter(|_| self.open == Some(part))?;
        Some((&piece.call_id, &piece.name, &piece.told))
    }

    /// What of a call did not go out never does.
    pub(crate) fn forget(&mut self, part: u32) {
        self.pieces.remove(&part);
    }

    /// A whole call of which nothing went out.
    pub(crate) fn call<F: Form>(
        &mut self,
        to: (&mut F, &mut Job),
        part: u32,
        (call_id, name): (&str, &str),
        text: &str,
    ) {
        self.begin(part, call_id, name, false);
        let piece = self.pieces.slot(part);
        piece.done = true;
        text.clone_into(&mut piece.waits);
        if self.is_busy(part) {
            self.enqueue(part);
        } else {
            self.pour(to, part);
        }
    }

    /// The open call is whole: its rest, its close, and what waited for it.
    pub(crate) fn end_call<F: Form>(
        &mut self,
        (form, job): (&mut F, &mut Job),
        part: u32,
        rest: &str,
    ) {
        if !rest.is_empty() {
            self.write((form, job), part, rest);
        }
        self.pieces.slot(part).done = true;
        self.close(form, job);
        self.drain(form, job);
    }

    /// The open call was cut: it stays open, and nothing more is written of it.
    pub(crate) fn leave_call(&mut self, part: u32) {
        if let Some(piece) = self.pieces.get_mut(&part) {
            piece.held = true;
        }
    }

    /// What waits, as long as no call is open.
    pub(crate) fn drain<F: Form>(&mut self, form: &mut F, job: &mut Job) {
        while let Some(part) = self.queue.pop_front() {
            if self.pieces.contains_key(&part) {
                self.pieces.slot(part).queued = false;
                self.pour((form, job), part);
            }
            if self.is_busy(u32::MAX) {
                return;
            }
        }
    }

    /// What waits of one part, as one delta; all of a part that is done.
    fn pour<F: Form>(&mut self, (form, job): (&mut F, &mut Job), part: u32) {
        let piece = self.pieces.slot(part);
        let text = std::mem::take(&mut piece.waits);
        if let Some(data) = piece.redacted.take() {
            self.close(form, job);
            form.open(job, Head::Redacted(&data));
            form.close(job, None);
            self.pieces.remove(&part);
            return;
        }
        let (done, call) = (piece.done, piece.kind == Kind::Call);
        if !text.is_empty() || (call && done) {
            self.write((form, job), part, &text);
        }
        if done && self.open == Some(part) {
            self.close(form, job);
        }
    }
}
