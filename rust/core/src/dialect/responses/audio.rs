//! Collects the audio of a stream and the transcript of the audio. At the end of the response, all fragments become
//! metadata of the choice, as they do in the Chat dialect.

use crate::assemble::part::object_merge::Growth;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::json::Kind;
use crate::json::members::Object;
use crate::model::fault::Fault;
use std::mem;

/// The audio fragments that have been received, as JSON.
#[derive(Debug, Default)]
pub(crate) struct Audio {
    pieces: Vec<String>,
    size: Growth,
}

impl Audio {
    /// Stores the fragment in an audio event. `member`: the member of `audio` that the fragment extends, `data` or
    /// `transcript`. Returns false if the event has no string `delta`.
    pub(crate) fn delta(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        event: &Object<'_>,
        member: &str,
    ) -> Result<bool, Fault> {
        let Some(raw) = event.get("delta").filter(|raw| raw.kind == Kind::String) else {
            return Ok(false);
        };
        let piece = format!("{{\"{member}\":{}}}", raw.text);
        let more = Growth {
            bytes: i64::try_from(piece.len()).unwrap_or(i64::MAX),
            entries: 1,
        };
        wire.assembler.hold(wire.out, more)?;
        self.size.bytes += more.bytes;
        self.size.entries += more.entries;
        self.pieces.push(piece);
        Ok(true)
    }

    /// Emits all fragments as one `audio` list in the metadata of the choice.
    pub(crate) fn leave(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        if self.pieces.is_empty() {
            return Ok(());
        }
        let text = format!("{{\"audio\":[{}]}}", self.pieces.join(","));
        self.forget(wire)?;
        wire.assembler.choice_metadata(wire.out, 0, &text)
    }

    /// Discards the fragments, because the response restarts.
    pub(crate) fn forget(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        self.pieces.clear();
        let held = mem::take(&mut self.size);
        wire.assembler.hold(wire.out, held.released())
    }
}
