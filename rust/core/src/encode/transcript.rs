//! Turns the transcript of Chat audio into text for targets without audio, because it may be all that a client can read.
//!
//! A choice with text of its own gets no transcript, because the transcript would repeat the text. This is known only at
//! the end of the choice.

use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Object;
use crate::json::members::items;
use crate::json::members::member_of;
use crate::model::event::Delta;
use crate::model::event::Event;
use crate::model::event::Opened;
use crate::model::small_map::Set;

/// Part number of a transcript, which is not a part number of the source.
const PART: u32 = u32::MAX;

/// The choices of one stream that have text, so that their transcript is not written.
#[derive(Debug, Default)]
pub(crate) struct Transcripts {
    choices_with_text: Set<i32>,
}

impl Transcripts {
    /// Returns the choice and the transcript of a choice that ends without text, or `None` for any other event.
    pub(crate) fn take(&mut self, event: &Event<'_>) -> Option<(i32, String)> {
        match *event {
            Event::TextDone { text, choice, .. }
            | Event::RefusalDone(Delta { text, choice, .. }) => {
                if !text.is_empty() {
                    self.choices_with_text.insert(choice);
                }
                None
            }
            Event::Finished {
                choice,
                metadata: Some(metadata),
                ..
            } if !self.choices_with_text.contains(&choice) => {
                let transcript = transcript(metadata)?;
                Some((choice, transcript))
            }
            _ => None,
        }
    }
}

/// Returns the events of a text part with this text.
pub(crate) fn events(text: &str, choice: i32) -> [Event<'_>; 3] {
    [
        Event::TextStarted(Opened {
            part: PART,
            item_id: None,
            choice,
            metadata: None,
        }),
        Event::TextDelta(Delta {
            part: PART,
            text,
            choice,
            metadata: None,
        }),
        Event::TextDone {
            part: PART,
            text,
            annotations: None,
            choice,
            metadata: None,
        },
    ]
}

/// Returns the joined transcripts of the audio in a choice's metadata, or `None` if there are none.
fn transcript(metadata: &str) -> Option<String> {
    let metadata = Raw {
        text: metadata,
        kind: Kind::Object,
    };
    let pieces = items(member_of(metadata, "audio")?).into_iter();
    let pieces = pieces.filter_map(|piece| Object::of(piece)?.string("transcript"));
    let joined: String = pieces.collect();
    (!joined.is_empty()).then_some(joined)
}

#[cfg(test)]
mod tests {
    use super::transcript;

    #[test]
    fn transcripts() {
        for (metadata, text) in [
            (
                r#"{"audio":[{"transcript":"a"},{"data":"x"},3,{"transcript":"b"}]}"#,
                Some("ab"),
            ),
            (r#"{"audio":[{"transcript":""}]}"#, None),
            (r#"{"audio":{"transcript":"a"}}"#, None),
            (r#"{"x":1}"#, None),
        ] {
            assert_eq!(transcript(metadata).as_deref(), text);
        }
    }
}
