//! Stores one text, reasoning or refusal part with its annotations and attributes, and creates its events.

use crate::assemble::part::call::Id;
use crate::assemble::part::object_merge::RawMembers;
use crate::model::delta::Channel;
use crate::model::event::Delta;
use crate::model::event::DeltaKind;
use crate::model::event::Event;
use crate::model::event::Mark;
use crate::model::event::Opened;
use crate::model::lazy_box::LazyBox;
use crate::model::lazy_box::blank;

/// The signature, encrypted content and details of a reasoning part.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    pub signature: Option<String>,
    pub encrypted_content: Option<String>,
    /// The received arrays of annotations, as JSON text.
    pub details: Vec<String>,
}

blank!(Attributes);

impl Attributes {
    pub fn take_in(&mut self, other: Attributes) {
        self.signature = other.signature.or(self.signature.take());
        self.encrypted_content = other.encrypted_content.or(self.encrypted_content.take());
        self.details.extend(other.details);
    }
}

/// One text, reasoning or refusal part.
#[derive(Clone, Debug)]
pub struct TextPart {
    pub part: u32,
    pub channel: Channel,
    /// The kind of reasoning. Other channels do not use this field.
    pub kind: &'static str,
    pub item_id: Option<Id>,
    pub text: String,
    /// The received arrays of annotations, as JSON text.
    pub annotations: Vec<String>,
    pub attributes: LazyBox<Attributes>,
    /// The metadata in the closing event.
    pub metadata: Option<Box<RawMembers>>,
    pub open: bool,
    /// The part was retracted, so it does not belong to the response.
    pub void: bool,
}

impl TextPart {
    pub fn new(part: u32, channel: Channel, kind: &'static str) -> TextPart {
        TextPart {
            part,
            channel,
            kind,
            item_id: None,
            text: String::new(),
            annotations: Vec::new(),
            attributes: LazyBox::default(),
            metadata: None,
            open: true,
            void: false,
        }
    }

    pub fn started(&self, choice: i32, metadata: Option<&str>, give: impl FnOnce(&Event<'_>)) {
        let part = self.part;
        let item_id = self.item_id.as_deref();
        give(&match self.channel {
            Channel::Text => Event::TextStarted(Opened {
                part,
                item_id,
                choice,
                metadata,
            }),
            Channel::Reasoning => Event::ReasoningStarted {
                part,
                kind: self.kind,
                item_id,
                choice,
                metadata,
            },
            Channel::Refusal => Event::RefusalStarted(Mark {
                part,
                choice,
                metadata,
            }),
        });
    }

    #[inline]
    pub fn delta(
        &self,
        choice: i32,
        text: &str,
        metadata: Option<&str>,
        give: impl FnOnce(&Event<'_>),
    ) {
        let delta = Delta {
            part: self.part,
            text,
            choice,
            metadata,
        };
        give(&DeltaKind::from(self.channel).event(delta));
    }

    /// Passes the closing event of the part to `give`. If the part is still open, the event contains its current text.
    pub fn done(&self, choice: i32, give: impl FnOnce(&Event<'_>)) {
        let (part, text) = (self.part, self.text.as_str());
        let metadata = self.close_metadata();
        let metadata = metadata.as_deref();
        match self.channel {
            Channel::Text => {
                let annotations = (!self.annotations.is_empty()).then(|| joined(&self.annotations));
                give(&Event::TextDone {
                    part,
                    text,
                    annotations: annotations.as_deref(),
                    choice,
                    metadata,
                });
            }
            Channel::Refusal => give(&Event::RefusalDone(Delta {
                part,
                text,
                choice,
                metadata,
            })),
            Channel::Reasoning => give(&Event::ReasoningDone {
                part,
                text,
                kind: self.kind,
                item_id: self.item_id.as_deref(),
                signature: self.attributes.signature.as_deref(),
                encrypted_content: self.attributes.encrypted_content.as_deref(),
                choice,
                metadata,
            }),
        }
    }

    fn close_metadata(&self) -> Option<String> {
        let details = match self.attributes.details.as_slice() {
            [] => None,
            details => Some(joined(details)).filter(|details| details != "[]"),
        };
        let Some(details) = details else {
            return self.metadata.as_ref().and_then(|members| members.text());
        };
        let mut members = self.metadata.clone().unwrap_or_default();
        members.put("reasoning_details", details);
        members.text()
    }
}

/// Joins the texts of several JSON arrays into the text of one array.
pub fn joined(arrays: &[String]) -> String {
    let mut out = String::from("[");
    for raw in arrays {
        let inside = raw
            .trim()
            .strip_prefix('[')
            .and_then(|raw| raw.strip_suffix(']'));
        let inside = inside.unwrap_or_default().trim();
        if inside.is_empty() {
            continue;
        }
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(inside);
    }
    out.push(']');
    out
}
