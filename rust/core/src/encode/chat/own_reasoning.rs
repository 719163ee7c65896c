//! Records in which members a source of the same dialect sends reasoning, so that it is written in these members.

use crate::encode::common::compact_json::canonical;
use crate::encode::common::extra_members::parsed;
use crate::encode::common::writer::Writer;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Object;
use crate::json::members::items;
use crate::model::unmodelled::ReasoningFacts;
use std::mem;

/// The member to which reasoning is written if the source has not sent any in a member of its own.
const DEFAULT: &str = "reasoning_content";

/// Records the reasoning members of one choice.
#[derive(Debug, Default)]
pub(crate) struct OwnReasoning {
    /// Names of the delta's members that contain the reasoning text.
    fields: Vec<&'static str>,
    /// Entries of `reasoning_details` that are written with the next text, as a JSON array.
    details: Option<String>,
    /// The index to assign to the next entry of `reasoning_details` that has none.
    next_index: i64,
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
    /// Records the reasoning members of a delta. Returns the entries of `reasoning_details` if they must be written
    /// now, or `None` if an event with the text follows, with which they are written.
    pub(crate) fn record(&mut self, facts: &ReasoningFacts<'_>) -> Option<Written> {
        if let Some(fields) = facts.fields {
            self.fields = fields.to_vec();
        }
        self.details = facts.details.map(|details| self.indexed(details));
        self.has_details |= self.details.is_some();
        let details = self.details.take_if(|_| !facts.has_text)?;
        Some(Written {
            fields: Vec::new(),
            details: Some(details),
        })
    }

    /// Returns the names of the members to which the next reasoning text is written.
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

    /// Discards the entries that wait for their text.
    pub(crate) fn forget_details(&mut self) {
        self.details = None;
    }

    /// Returns the entries, each with an index. openai-python raises an exception for an entry without one.
    fn indexed(&mut self, list: &str) -> String {
        let list = Raw {
            text: list,
            kind: Kind::Array,
        };
        let mut to = Writer::default();
        let mut mark = "[";
        for item in items(list) {
            to.raw(mark);
            mark = ",";
            let Some(entry) = Object::of(item) else {
                canonical(&mut to, item.text);
                continue;
            };
            let index = entry.get("index").and_then(position);
            let used = index.unwrap_or(self.next_index);
            self.next_index = self.next_index.max(used.saturating_add(1));
            if index.is_some() {
                canonical(&mut to, item.text);
                continue;
            }
            let mut text = Writer::default();
            canonical(&mut text, item.text);
            to.raw("{");
            for (name, value) in parsed(&text.into_text()) {
                if name != "index" {
                    to.string(&name).raw(":").raw(&value).raw(",");
                }
            }
            to.raw("\"index\":").number(used).raw("}");
        }
        to.raw("]");
        to.into_text()
    }
}

fn position(raw: Raw<'_>) -> Option<i64> {
    let number = raw.text.parse().ok()?;
    Some(number).filter(|number| raw.kind == Kind::Number && *number >= 0)
}
