//! A whole message: at the end of a stream, or the only thing in it.

use super::attach::refusal;
use super::choice::{ChoiceState, fragments};
use super::content::{self, Piece, concat};
use super::read::Delta;
use super::reasoning::{self, Thought};
use super::say::{Carry, say};
use super::{Step, Wire};
use crate::delta::Message;
use crate::dialect::think::split_whole;
use crate::json::Text;
use crate::notes::{Notes, Pointer};

impl ChoiceState {
    /// A whole message: reconciled with what was streamed, never appended.
    pub(super) fn message<'a>(
        &mut self,
        wire: &mut Wire<'_, '_>,
        message: &Delta<'a>,
        carry: &mut Carry<'_, 'a>,
        notes: &mut Notes<'a>,
        at: Pointer<'_>,
    ) -> Step {
        if let Some(think) = &mut self.think {
            say(wire, self.index, think.flush(), None)?;
        }
        let Thought {
            text: thought,
            extra,
            details,
            ..
        } = reasoning::read(message, notes, at);
        carry.own.extend(&extra);
        let (mut said, mut thoughts, mut refused, mut others) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for piece in content::read(message.content, notes, at.member("content")) {
            match piece {
                Piece::Said(text) => said.push(text),
                Piece::Thought(text) => thoughts.push(text),
                Piece::Refused(text) => refused.push(text),
                Piece::File(_) | Piece::Unread(_) => others.push(piece),
            }
        }
        let some = |text: Text<'a>| Some(text).filter(|text| !text.is_empty());
        let mut whole = Message {
            content: some(concat(said)),
            reasoning: thought
                .or_else(|| {
                    details
                        .as_ref()
                        .and_then(|details| some(details.text.clone()))
                })
                .or_else(|| some(concat(thoughts))),
            refusal: refusal(message, notes, at).or_else(|| some(concat(refused))),
            fragments: Vec::new(),
        };
        if self.think.is_some() {
            unmix(&mut whole, notes);
        }
        whole.fragments = fragments(wire, message, notes, at);
        notes.tell(wire)?;
        self.spoke = true;
        // What belongs to a part is said before it: the message opens and closes its parts.
        if let Some(details) = &details {
            self.attributes(wire, details)?;
        }
        let attached = self.attached;
        if !attached {
            self.annotations(wire, message, notes, at)?;
        }
        wire.assembler.message(wire.out, self.index, whole)?;
        for piece in others {
            if !(attached && matches!(piece, Piece::File(_))) {
                self.piece(wire, piece, None)?;
            }
        }
        if !attached {
            self.images(wire, message, notes, at)?;
        }
        self.audio(wire, message)?;
        notes.tell(wire)
    }
}

/// Tags in the text of a whole message, which no other text can complete.
fn unmix(whole: &mut Message<'_>, notes: &mut Notes<'_>) {
    let Some(content) = whole.content.take() else {
        return;
    };
    let (content, lone) = content.into_whole();
    notes.lone |= lone;
    let (thought, said) = split_whole(&content);
    let some = |text: String| Some(Text::plain(&text).into_owned()).filter(|text| !text.is_empty());
    whole.content = some(said);
    if whole.reasoning.is_none() {
        whole.reasoning = some(thought);
    }
}
