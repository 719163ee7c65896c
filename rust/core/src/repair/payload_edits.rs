//! The edits after which clients accept the payload of the current block.

use crate::model::event::CREATED;
use crate::model::event::Edit;
use memchr::memmem;

#[derive(Debug, Default)]
pub(crate) struct PayloadEdits {
    /// The payload before the edits.
    payload: String,
    edits: Vec<PayloadEdit>,
}

#[derive(Debug)]
struct PayloadEdit {
    why: &'static str,
    start: usize,
    end: usize,
    new: String,
}

impl PayloadEdits {
    pub(crate) fn add(&mut self, edit: Edit<'_>) {
        if self.edits.is_empty() {
            self.payload.push_str(edit.payload);
        }
        self.edits.push(PayloadEdit {
            why: edit.why,
            start: edit.start,
            end: edit.end,
            new: edit.new.to_owned(),
        });
    }

    /// Returns why the first edit is needed, or `None` if there are no edits.
    pub(crate) fn reason(&self) -> Option<&'static str> {
        self.edits.first().map(|edit| edit.why)
    }

    /// Returns true if the block contains the payload unchanged. A payload on several lines, for example, is not
    /// contained.
    pub(crate) fn fit(&self, block: &[u8]) -> bool {
        memmem::find(block, self.payload.as_bytes()).is_some()
    }

    /// Applies the edits to the payload in the block, and returns their reasons. `created` is the creation time to
    /// insert.
    pub(crate) fn apply(mut self, block: &mut Vec<u8>, created: i64) -> Vec<&'static str> {
        // The last edit comes first, so that the positions of the others stay valid.
        self.edits.sort_by_key(|edit| std::cmp::Reverse(edit.start));
        if let Some(at) = memmem::find(block, self.payload.as_bytes()) {
            for edit in &self.edits {
                let new = edit.new.replace(CREATED, &created.to_string());
                block.splice(at + edit.start..at + edit.end, new.into_bytes());
            }
        }
        self.edits.iter().map(|edit| edit.why).collect()
    }
}
