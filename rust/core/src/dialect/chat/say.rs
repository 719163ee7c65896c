//! Texts and files of a choice on their way to the assembler, with the metadata that the first of them carries.

use super::choice::ChoiceState;
use super::content::Piece;
use super::reasoning::{Details, Thought};
use super::{Step, Wire};
use crate::dialect::think;
use crate::leftovers::Leftovers;
use crate::spec::Code;

/// What the first event of a choice in a chunk carries.
pub(super) struct Carry<'c, 'a> {
    /// Of the chunk: shared by its choices, the first event of all of them takes it.
    pub(super) chunk: &'c mut Leftovers<'a>,
    /// Of the choice, its delta and its message; the inner level wins.
    pub(super) own: Leftovers<'a>,
    pub(super) text: Option<String>,
}

impl Carry<'_, '_> {
    /// What the next event has to carry.
    pub(super) fn text(&mut self) -> Option<&str> {
        if self.text.is_none() && !(self.chunk.is_empty() && self.own.is_empty()) {
            self.text = self.chunk.and(&self.own).text();
        }
        self.text.as_deref()
    }

    /// It was given along.
    pub(super) fn given(&mut self) {
        if self.text.take().is_some() {
            *self.chunk = Leftovers::default();
            self.own = Leftovers::default();
        }
    }
}

impl ChoiceState {
    /// Says what was thought.
    pub(super) fn thought<'a>(
        &mut self,
        wire: &mut Wire<'_, '_>,
        thought: Thought<'a>,
        carry: &mut Carry<'_, 'a>,
    ) -> Step {
        let Thought {
            mut text,
            mut repeated,
            details,
            ..
        } = thought;
        if let Some(details) = details.as_ref().filter(|details| !details.text.is_empty()) {
            if text.is_some() {
                repeated = true;
            } else {
                let (new, again) = self.details.next(&details.text);
                repeated |= again;
                text = Some(new);
            }
        }
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.spoke = true;
            if let Some(think) = &mut self.think {
                think.field(&text.body);
            }
            wire.assembler
                .reasoning(wire.out, self.index, "raw", text, carry.text())?;
            carry.given();
        }
        if let Some(details) = &details {
            self.attributes(wire, details)?;
        }
        if repeated && !self.said_repeated {
            self.said_repeated = true;
            wire.out.diagnose(Code::REASONING_REPEATED, None, "")?;
        }
        Ok(())
    }

    /// What a later turn has to hand back.
    pub(super) fn attributes(&self, wire: &mut Wire<'_, '_>, details: &Details<'_>) -> Step {
        let (signature, encrypted) = (details.signature.as_deref(), details.encrypted.as_deref());
        let raw = Some(details.raw.text);
        wire.assembler
            .reasoning_attributes(wire.out, self.index, signature, encrypted, raw)
    }

    pub(super) fn piece(
        &mut self,
        wire: &mut Wire<'_, '_>,
        piece: Piece<'_>,
        carry: Option<&mut Carry<'_, '_>>,
    ) -> Step {
        let index = self.index;
        if let Piece::Unread(raw) = piece {
            return wire.assembler.unknown(wire.out, None, raw.text.as_bytes());
        }
        self.spoke = true;
        if let Piece::File(file) = piece {
            self.attached = true;
            let (media_type, data, url) = file.fields();
            return wire
                .assembler
                .file(wire.out, index, media_type, data, url, file.metadata());
        }
        match (piece, &mut self.think) {
            (Piece::Said(text), Some(think)) => return say(wire, index, think.feed(&text), carry),
            (piece, _) => {
                let mut carry = carry;
                let metadata = carry.as_mut().and_then(|carry| carry.text());
                match piece {
                    Piece::Said(text) => wire.assembler.text(wire.out, index, text, metadata)?,
                    Piece::Thought(text) => wire
                        .assembler
                        .reasoning(wire.out, index, "raw", text, metadata)?,
                    Piece::Refused(text) => {
                        wire.assembler.refusal(wire.out, index, text, metadata)?
                    }
                    Piece::File(_) | Piece::Unread(_) => {}
                }
                if let Some(carry) = carry {
                    carry.given();
                }
            }
        }
        Ok(())
    }
}

/// What a splitter of tags has let out.
pub(super) fn say(
    wire: &mut Wire<'_, '_>,
    index: i32,
    pieces: Vec<think::Piece>,
    mut carry: Option<&mut Carry<'_, '_>>,
) -> Step {
    for piece in pieces {
        match piece {
            think::Piece::Orphan => {
                wire.assembler.retype_text(wire.out, index)?;
                wire.out.diagnose(Code::ORPHAN_THINK_CLOSE, None, "")?;
            }
            think::Piece::Repeated => wire.out.diagnose(Code::REASONING_REPEATED, None, "")?,
            think::Piece::Lone => wire.out.diagnose(Code::LONE_SURROGATE, None, "")?,
            think::Piece::Text(text) => {
                let metadata = carry.as_mut().and_then(|carry| carry.text());
                wire.assembler.text(wire.out, index, text, metadata)?;
                carry.iter_mut().for_each(|carry| carry.given());
            }
            think::Piece::Reasoning(text) => {
                let metadata = carry.as_mut().and_then(|carry| carry.text());
                wire.assembler
                    .reasoning(wire.out, index, "raw", text, metadata)?;
                carry.iter_mut().for_each(|carry| carry.given());
            }
        }
    }
    Ok(())
}
