//! Records which members contain the reasoning of a source of the same dialect, so that the encoder writes reasoning to
//! the same members.

use crate::encode::chat::list_indexes::Indexed;
use crate::encode::chat::list_indexes::ListIndexes;
use crate::encode::common::compact_json::canonical;
use crate::encode::common::writer::Writer;
use crate::model::unmodelled::ReasoningFacts;
use std::mem;

/// The member to write reasoning to if the source has not used any reasoning member yet.
const DEFAULT: &str = "reasoning_content";

/// The reasoning members that the source uses for one choice.
#[derive(Debug, Default)]
pub(crate) struct OwnReasoning {
    /// Names of the delta's members that contain the reasoning text.
    fields: Vec<&'static str>,
    /// Entries of `reasoning_details` that are written with the next text, as a JSON array.
    details: Option<String>,
    lists: ListIndexes,
    /// True if entries of the last `reasoning_details` cannot be written.
    pub(crate) is_lossy: bool,
    /// True if the source sent `reasoning_details`, which contain signatures and encrypted content.
    pub(crate) has_details: bool,
}

/// The members of a delta that contains a piece of text.
#[derive(Debug)]
pub(crate) struct Written {
    /// Names of the delta's members that contain the reasoning text.
    pub(crate) fields: Vec<&'static str>,
    /// Entries of `reasoning_details` in the same delta, as a JSON array.
    details: Option<String>,
}

impl Written {
    pub(crate) fn of(field: &'static str) -> Written {
        Written {
            fields: vec![field],
            details: None,
        }
    }

    /// Writes the beginning of a delta, with the reasoning text in each of the members.
    pub(crate) fn write(&self, to: &mut Writer, text: &str) {
        let mut mark = "{\"";
        for field in &self.fields {
            to.raw(mark).raw(field).raw("\":").string(text);
            mark = ",\"";
        }
        if let Some(details) = &self.details {
            to.raw(mark).raw("reasoning_details\":").raw(details);
        }
    }
}

impl OwnReasoning {
    /// Records the reasoning members of a delta. Returns the entries of `reasoning_details` if the delta has no text.
    /// If the delta has text, returns `None`, and the entries are written together with that text.
    pub(crate) fn record(&mut self, facts: &ReasoningFacts<'_>) -> Option<Written> {
        if let Some(fields) = facts.fields {
            self.fields = fields.to_vec();
        }
        self.is_lossy = false;
        self.details = facts.details.and_then(|details| self.indexed(details));
        self.has_details |= self.details.is_some();
        let details = self.details.take_if(|_| !facts.has_text)?;
        Some(Written {
            fields: Vec::new(),
            details: Some(details),
        })
    }

    /// Returns the members of the delta that will contain the next reasoning text.
    pub(crate) fn next(&mut self) -> Written {
        let details = mem::take(&mut self.details);
        if self.fields.is_empty() && details.is_none() {
            return Written::of(DEFAULT);
        }
        Written {
            fields: self.fields.clone(),
            details,
        }
    }

    /// Discards the entries of `reasoning_details` that wait for the text of their delta.
    pub(crate) fn forget_details(&mut self) {
        self.details = None;
    }

    /// Returns the entries with an index in each, as a JSON array.
    fn indexed(&mut self, list: &str) -> Option<String> {
        let indexed = self.lists.index("reasoning_details", list);
        self.is_lossy = match indexed {
            Indexed::Same => false,
            Indexed::Changed { is_lossy, .. } => is_lossy,
            Indexed::Dropped => true,
        };
        match indexed {
            Indexed::Same => {
                let mut to = Writer::default();
                canonical(&mut to, list);
                Some(to.into_text())
            }
            Indexed::Changed { json, .. } => Some(json),
            Indexed::Dropped => None,
        }
    }
}
