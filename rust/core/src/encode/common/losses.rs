//! What the target has no place for, noted where it is left out, each kind once a stream.
//!
//! Which kinds there are stands in `_spec/conversions.json`. Who reads them says them as the diagnostic `not_carried`.

use crate::model::event::Event;

/// The losses of one stream by their ids.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    known: Vec<&'static str>,
    /// How many of them were said.
    said: usize,
    /// The source's own dialect is written: what it said once may have passed.
    pub(crate) own: bool,
}

impl Losses {
    #[cold]
    pub(crate) fn note(&mut self, id: &'static str) {
        if !self.known.contains(&id) {
            self.known.push(id);
        }
    }

    /// Members of the provider's own that are not carried.
    #[inline]
    pub(crate) fn metadata(&mut self, metadata: Option<&str>) {
        // An object without members has no quotes.
        if metadata.is_some_and(|text| text.contains('"')) {
            self.note("metadata");
        }
    }

    /// The same of an event that may say again what came before it.
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

    /// The same of what closes a part or the answer, and says again what came before it.
    #[inline]
    pub(crate) fn repeated(&mut self, metadata: Option<&str>) {
        if !self.own {
            self.metadata(metadata);
        }
    }

    /// What was noted since the last one was said was not written after all, and so not lost.
    pub(crate) fn forget(&mut self) {
        self.known.truncate(self.said);
    }

    /// One was not said yet.
    #[inline]
    pub(crate) fn is_next(&self) -> bool {
        self.said < self.known.len()
    }

    /// The next one that was not said yet.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<&'static str> {
        let id = self.known.get(self.said).copied();
        self.said += usize::from(id.is_some());
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
