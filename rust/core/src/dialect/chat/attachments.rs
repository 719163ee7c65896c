//! Decodes the content of a delta or message other than text and calls: annotations, a refusal, images, and audio.

use crate::assemble::part::object_merge::Growth;
use crate::dialect::anomalies::Anomalies;
use crate::dialect::anomalies::Pointer;
use crate::dialect::chat::choice::ChoiceState;
use crate::dialect::chat::choice::PendingMetadata;
use crate::dialect::chat::content;
use crate::dialect::chat::content::ContentPiece;
use crate::dialect::chat::read::Delta;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::json::Kind;
use crate::json::Text;
use crate::json::members::first_item;
use crate::json::members::present;
use crate::json::members::text;
use crate::model::fault::Fault;

impl ChoiceState {
    /// Emits annotations, the refusal, images, and audio. Returns true if the delta or message contains at least one of
    /// these values.
    pub(crate) fn attachments<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        delta: &Delta<'a>,
        pending_metadata: &mut PendingMetadata<'_, 'a>,
        notes: &mut Anomalies<'a>,
        at: Pointer<'_>,
    ) -> Result<bool, Fault> {
        self.annotations(wire, delta, notes, at)?;
        let refusal = refusal(delta, notes, at);
        let any = refusal.is_some()
            || [delta.annotations, delta.images, delta.audio]
                .into_iter()
                .any(|slot| present(slot).is_some());
        if let Some(text) = refusal {
            self.piece(wire, ContentPiece::Refused(text), Some(pending_metadata))?;
        }
        self.images(wire, delta, notes, at)?;
        self.audio(wire, delta)?;
        Ok(any)
    }

    pub(crate) fn annotations<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        delta: &Delta<'a>,
        notes: &mut Anomalies<'a>,
        at: Pointer<'_>,
    ) -> ParseResult {
        match present(delta.annotations) {
            Some(raw) if raw.kind != Kind::Array => notes.shape(raw, at.member("annotations")),
            Some(raw) if first_item(raw).is_some() => {
                self.attached = true;
                wire.assembler.annotations(wire.out, self.index, raw.text)?;
            }
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn images<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        delta: &Delta<'a>,
        notes: &mut Anomalies<'a>,
        at: Pointer<'_>,
    ) -> ParseResult {
        let Some(raw) = present(delta.images) else {
            return Ok(());
        };
        for file in content::images(raw, notes, at.member("images")) {
            self.piece(wire, ContentPiece::File(file), None)?;
        }
        Ok(())
    }

    /// Stores a piece of audio. At the end of the stream, all pieces are attached to the last event of the choice.
    pub(crate) fn audio(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        delta: &Delta<'_>,
    ) -> ParseResult {
        let Some(raw) = present(delta.audio) else {
            return Ok(());
        };
        let more = Growth {
            bytes: i64::try_from(raw.text.len()).unwrap_or(i64::MAX),
            entries: 1,
        };
        wire.assembler.hold(wire.out, more)?;
        self.audio_size.bytes += more.bytes;
        self.audio_size.entries += more.entries;
        self.audio.push(raw.text.to_owned());
        Ok(())
    }
}

/// Returns the refusal, or `None` if it is absent or empty. A value that is not a string is reported as an anomaly.
pub(crate) fn refusal<'a>(
    delta: &Delta<'a>,
    notes: &mut Anomalies<'a>,
    at: Pointer<'_>,
) -> Option<Text<'a>> {
    let raw = present(delta.refusal)?;
    let text = text(raw);
    if text.is_none() {
        notes.shape(raw, at.member("refusal"));
    }
    text.filter(|text| !text.is_empty())
}
