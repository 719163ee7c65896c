//! Token counts of a chunk, a choice or an extension member.

use std::sync::LazyLock;

use super::read::{Slot, present};
use super::{Step, Wire};
use crate::counts::Counts;
use crate::event::Usage;
use crate::json::{Kind, Raw};
use crate::notes::{Notes, Pointer};

static COUNTS: LazyLock<Counts> = LazyLock::new(|| Counts::of("chat"));

/// The `usage` of a chunk, a choice or an extension member; null says nothing.
pub(crate) fn take<'a>(
    wire: &mut Wire<'_, '_>,
    slot: Slot<'a>,
    notes: &mut Notes<'a>,
    at: Pointer<'_>,
) -> Step {
    if let Some(raw) = present(slot) {
        if raw.kind == Kind::Object {
            wire.assembler.usage(wire.out, read(raw))?;
        } else {
            notes.shape(raw, at.member("usage"));
        }
    }
    notes.tell(wire)
}

/// The counts of a usage object.
pub(crate) fn read(raw: Raw<'_>) -> Usage<'_> {
    COUNTS.read(raw)
}
