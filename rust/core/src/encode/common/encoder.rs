//! Defines the trait that every encoder implements.

use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::finish::EndingError;
use crate::model::event::Delta;
use crate::model::event::Event;
use crate::model::unmodelled::Unmodelled;
use std::fmt::Debug;
/// Receives the events of one stream and writes them in one dialect.
pub(crate) trait Encoder: Debug + Send {
    /// Handles the next event. The converter handles diagnostics and upstream errors.
    fn event(&mut self, context: &mut EncodeContext, event: &Event<'_>);

    /// Records a text delta that has no metadata, after its original bytes were sent. Returns false and changes nothing
    /// if `event` must handle the delta.
    fn keep(&mut self, _piece: &Delta<'_>) -> bool {
        false
    }

    /// Writes content of the source's own dialect that no streamweld event represents, in the place where it was sent.
    /// Does nothing in most dialects, which have no such content.
    fn write_unmodelled(&mut self, _context: &mut EncodeContext, _content: &Unmodelled<'_>) {}

    /// Writes the first chunk of a choice, with its role, unless the choice is already open. Only the Chat encoder
    /// writes such a chunk.
    fn open(&mut self, _context: &mut EncodeContext, _choice: i32) {}

    /// Writes the chunk that opens a choice whose first chunk from the source lacks the role. Only the Chat encoder
    /// writes such a chunk.
    fn role(&mut self, _context: &mut EncodeContext, _choice: i32) {}

    /// Returns true if a received call has not been fully written because it must wait for another call. The method is
    /// needed only for dialects in which one call is written after another although the source may interleave calls.
    fn has_waiting_calls(&mut self) -> bool {
        false
    }

    /// Writes the ending, either complete or with an error.
    fn end(&mut self, context: &mut EncodeContext, ending_error: Option<EndingError>);
}
