//! The trait that every encoder implements.

use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::finish::EndingError;
use crate::model::event::Delta;
use crate::model::event::Event;
use crate::model::unmodelled::Unmodelled;
use std::fmt::Debug;
/// The encoder of one stream.
pub(crate) trait Encoder: Debug + Send {
    /// Handles the next event. The converter handles diagnostics and upstream errors.
    fn event(&mut self, context: &mut EncodeContext, event: &Event<'_>);

    /// Records a text delta without metadata that passed through unchanged. Returns false and changes nothing if
    /// anything other than the delta's text must be recorded.
    fn keep(&mut self, _piece: &Delta<'_>) -> bool {
        false
    }

    /// Writes content of the source's own dialect that no streamweld event represents, in the place where it was sent.
    /// Most dialects have no such content.
    fn write_unmodelled(&mut self, _context: &mut EncodeContext, _content: &Unmodelled<'_>) {}

    /// Writes the first chunk of a choice, with its role, unless the choice is already open. For dialects with choices.
    fn open(&mut self, _context: &mut EncodeContext, _choice: i32) {}

    /// Writes the chunk that opens a choice, if the source's first chunk lacks the role. For dialects with choices.
    fn role(&mut self, _context: &mut EncodeContext, _choice: i32) {}

    /// Returns true if a call that was received is not completely written, because another call comes first. For
    /// dialects whose calls are written one after another although sources interleave them.
    fn has_waiting_calls(&self) -> bool {
        false
    }

    /// Writes the target's ending after the source has ended, either complete or with an error.
    fn end(&mut self, context: &mut EncodeContext, ending_error: Option<EndingError>);
}
