//! Reads token counts from a chunk, a choice, or an extension member such as `x_groq`.

use crate::dialect::anomalies::Anomalies;
use crate::dialect::anomalies::Pointer;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::usage_counts::Counts;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Slot;
use crate::json::members::present;
use crate::model::event::Usage;
use std::sync::LazyLock;

static COUNTS: LazyLock<Counts> = LazyLock::new(|| Counts::of("chat"));

/// Emits the usage in `slot`, unless the slot is absent or null. A value that is not an object is reported as an
/// anomaly.
pub(crate) fn take<'a>(
    wire: &mut DecodeContext<'_, '_>,
    slot: Slot<'a>,
    notes: &mut Anomalies<'a>,
    at: Pointer<'_>,
) -> ParseResult {
    if let Some(raw) = present(slot) {
        if raw.kind == Kind::Object {
            wire.assembler.usage(wire.out, read(raw))?;
        } else {
            notes.shape(raw, at.member("usage"));
        }
    }
    notes.report(wire)
}

pub(crate) fn read(raw: Raw<'_>) -> Usage<'_> {
    COUNTS.read(raw)
}
