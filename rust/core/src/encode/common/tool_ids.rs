//! Replaces tool call ids that the target's API would reject in a history.
//!
//! The new id is `swid_` followed by the old id, with `_` doubled and every byte that is not a letter, a digit or `-`
//! replaced by `_` and two hexadecimal digits. The old id can therefore be restored from the new id without any state.
//! If the new id would be too long, a numbered id is used instead.

use crate::encode::common::id_mint::IdMint;
use crate::model::event::Event;
use crate::model::small_map::Map;

const PREFIX: &str = "swid_";

/// The form of tool call ids that an API accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolIdForm {
    /// True if an id may contain only letters, digits, `_` and `-`.
    pub word_only: bool,
    /// Maximum number of characters, or `None` if there is no limit.
    pub most: Option<usize>,
}

impl ToolIdForm {
    fn fits(self, call_id: &str) -> bool {
        let most = self.most.unwrap_or(usize::MAX);
        let is_short = call_id.len() <= most || call_id.chars().count() <= most;
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        is_short && (!self.word_only || call_id.bytes().all(is_word))
    }
}

/// Stores the renamed ids of one stream.
#[derive(Debug)]
pub(crate) struct ToolIds {
    form: ToolIdForm,
    /// The target id and the source id of every renamed call, in order.
    renamed: Vec<(String, String)>,
    /// Maps each source id to an index in `renamed`.
    places: Map<String, usize>,
}

impl ToolIds {
    pub(crate) fn new(form: ToolIdForm) -> ToolIds {
        ToolIds {
            form,
            renamed: Vec::new(),
            places: Map::default(),
        }
    }

    pub(crate) fn renamed(&self) -> &[(String, String)] {
        &self.renamed
    }

    /// Returns the target's id for the event's call, or `None` if the call keeps its id or the event has no call id.
    pub(crate) fn target_id(&mut self, event: &Event<'_>, mint: &mut IdMint) -> Option<String> {
        let call_id = match *event {
            Event::ToolCallStarted { call_id, .. } => call_id?,
            Event::ToolCall { call_id, .. } | Event::ToolResult { call_id, .. } => call_id,
            _ => return None,
        };
        if call_id.is_empty() || self.form.fits(call_id) {
            return None;
        }
        let place = match self.places.get(call_id) {
            Some(&place) => place,
            None => {
                let made = Some(escaped(call_id)).filter(|made| self.form.fits(made));
                let made = made.unwrap_or_else(|| mint.make("tc"));
                self.renamed.push((made, call_id.to_owned()));
                self.places
                    .insert(call_id.to_owned(), self.renamed.len() - 1);
                self.renamed.len() - 1
            }
        };
        self.renamed.get(place).map(|(made, _)| made.clone())
    }
}

/// Returns the event with its call id replaced.
pub(crate) fn with_call_id<'e>(event: &Event<'e>, id: &'e str) -> Event<'e> {
    let mut changed = *event;
    match &mut changed {
        Event::ToolCallStarted { call_id, .. } => *call_id = Some(id),
        Event::ToolCall { call_id, .. } | Event::ToolResult { call_id, .. } => *call_id = id,
        _ => {}
    }
    changed
}

fn escaped(call_id: &str) -> String {
    let mut made = String::with_capacity(PREFIX.len() + 2 * call_id.len());
    made.push_str(PREFIX);
    for byte in call_id.bytes() {
        match byte {
            b'_' => made.push_str("__"),
            byte if byte.is_ascii_alphanumeric() || byte == b'-' => made.push(char::from(byte)),
            byte => {
                made.push('_');
                made.extend([byte >> 4, byte & 15].map(hex_digit));
            }
        }
    }
    made
}

fn hex_digit(value: u8) -> char {
    char::from_digit(u32::from(value), 16).unwrap_or_default()
}
