//! One text, reasoning or refusal part, what hangs on it, and its close. It knows no other part.

use crate::event::{Delta, Event};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    Text,
    Reasoning,
    Refusal,
}

impl Channel {
    pub fn name(self) -> &'static str {
        match self {
            Channel::Text => "text",
            Channel::Reasoning => "reasoning",
            Channel::Refusal => "refusal",
        }
    }
}

/// What hangs on a reasoning part.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    pub signature: Option<String>,
    pub encrypted_content: Option<String>,
    /// Raw arrays.
    pub details: Vec<String>,
}

impl Attributes {
    pub fn take_in(&mut self, other: Attributes) {
        self.signature = other.signature.or(self.signature.take());
        self.encrypted_content = other.encrypted_content.or(self.encrypted_content.take());
        self.details.extend(other.details);
    }
}

/// One part of one of the three channels.
#[derive(Clone, Debug)]
pub struct TextPart {
    pub part: u32,
    pub channel: Channel,
    /// Of reasoning.
    pub kind: &'static str,
    pub text: String,
    /// Raw arrays.
    pub annotations: Vec<String>,
    pub attributes: Attributes,
    /// Taken back as a whole: no part of the answer.
    pub void: bool,
}

impl TextPart {
    /// The close of the part; of an open one, as it stands.
    pub fn done(&self, choice: i32, give: impl FnOnce(&Event<'_>)) {
        let (part, text) = (self.part, self.text.as_str());
        match self.channel {
            Channel::Text => {
                let annotations = (!self.annotations.is_empty()).then(|| joined(&self.annotations));
                give(&Event::TextDone {
                    part,
                    text,
                    annotations: annotations.as_deref(),
                    choice,
                    metadata: None,
                });
            }
            Channel::Refusal => give(&Event::RefusalDone(Delta {
                part,
                text,
                choice,
                metadata: None,
            })),
            Channel::Reasoning => {
                let details = joined(&self.attributes.details);
                let metadata = format!("{{\"reasoning_details\":{details}}}");
                give(&Event::ReasoningDone {
                    part,
                    text,
                    kind: self.kind,
                    item_id: None,
                    signature: self.attributes.signature.as_deref(),
                    encrypted_content: self.attributes.encrypted_content.as_deref(),
                    choice,
                    metadata: (details != "[]").then_some(&metadata),
                });
            }
        }
    }
}

/// Several raw arrays as one.
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
