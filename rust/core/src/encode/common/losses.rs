//! Records content that the target cannot represent, each kind once per stream.
//!
//! The kinds are in `_spec/conversions.json`. The converter reports losses with the diagnostic `not_carried`.

use crate::model::event::Event;

/// Stores the losses of one stream, in the order in which they occurred.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    known: Vec<&'static str>,
    /// Number of losses that have already been reported.
    reported: usize,
    /// True if the source and target have the same dialect. If the dialects are the same, metadata that a closing event
    /// repeats is not lost, because it may have passed through earlier.
    pub(crate) own: bool,
}

impl Losses {
    #[cold]
    pub(crate) fn note(&mut self, id: &'static str) {
        if !self.known.contains(&id) {
            self.known.push(id);
        }
    }

    /// Records a loss if the metadata has members, because the target cannot represent the provider's own members.
    #[inline]
    pub(crate) fn metadata(&mut self, metadata: Option<&str>) {
        // If the text contains no quotes, the object has no members.
        if metadata.is_some_and(|text| text.contains('"')) {
            self.note("metadata");
        }
    }

    /// Records the loss of an event's metadata, unless the event only repeats earlier metadata.
    #[inline]
    pub(crate) fn metadata_of(&mut self, event: &Event<'_>) {
        let again = matches!(
            event,
            Event::TextDone { .. }
                | Event::ReasoningDone { .. }
                | Event::RefusalDone(_)
                | Event::ToolCall { .. }
                | Event::Finished { .. }
                | Event::ResponseStarted { .. }
        );
        if again {
            self.repeated(event.metadata());
        } else {
            self.metadata(event.metadata());
        }
    }

    /// Records the loss of metadata that repeats earlier metadata, unless source and target have the same dialect.
    #[inline]
    pub(crate) fn repeated(&mut self, metadata: Option<&str>) {
        if !self.own {
            self.metadata(metadata);
        }
    }

    /// Discards the losses that have not been reported yet, because the output that caused them was discarded.
    pub(crate) fn forget(&mut self) {
        self.known.truncate(self.reported);
    }

    /// Returns true if there is a loss that has not been reported yet.
    #[inline]
    pub(crate) fn is_next(&self) -> bool {
        self.reported < self.known.len()
    }

    /// Returns the next loss that has not been reported yet, and counts it as reported. Returns `None` if every loss
    /// has been reported.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<&'static str> {
        let id = self.known.get(self.reported).copied();
        self.reported += usize::from(id.is_some());
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_each() {
        let mut losses = Losses::default();
        losses.note("files");
        losses.metadata(Some("{\"a\":1}"));
        losses.metadata(Some("{ }"));
        losses.metadata(None);
        losses.note("files");
        assert_eq!(losses.next(), Some("files"));
        assert_eq!(losses.next(), Some("metadata"));
        assert_eq!(losses.next(), None);
        losses.note("metadata");
        assert_eq!(losses.next(), None);
    }
}
