//! TODO

use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::finish::EndingError;
use crate::model::event::Delta;
use crate::model::event::Event;
use std::fmt::Debug;
/// The encoder of one stream.
pub(crate) trait Encoder: Debug + Send {
    /// Takes the next event. Diagnostics and the upstream's error are not the encoder's business.
    fn event(&mut self, job: &mut EncodeContext, event: &Event<'_>);

    /// Keeps a piece of a text, without metadata, that has passed as it was sent. False, and nothing was done, where there is
    /// more to be done than to keep its text.
    fn keep(&mut self, _piece: &Delta<'_>) -> bool {
        false
    }

    /// Writes the chunk that opens a choice whose first one lacks the role. For dialects that have choices.
    fn role(&mut self, _job: &mut EncodeContext, _choice: i32) {}

    /// The source has ended, whole or with what went wrong: writes the target's ending.
    fn end(&mut self, job: &mut EncodeContext, trouble: Option<EndingError>);
}
