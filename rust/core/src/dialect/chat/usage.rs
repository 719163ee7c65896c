//! Token counts: where the six numbers stand in the object that a gateway sends.
//!
//! The paths are data (`chat.usage` in `_spec/dialects.json`).

use std::sync::LazyLock;

use serde_json::Value;

use super::read::{Member, Slot, find, members, present};
use super::{Step, Wire};
use crate::event::Usage;
use crate::json::{Kind, Number, Raw};
use crate::notes::{Notes, Pointer};
use crate::spec;

/// Paths of one number, in the order in which they are tried.
type Paths = Vec<Vec<String>>;

static PATHS: LazyLock<[Paths; 6]> = LazyLock::new(|| {
    let usage = spec::dialects()
        .get("chat")
        .and_then(|chat| chat.get("usage"));
    let paths = |name: &str| -> Paths {
        let list = usage
            .and_then(|usage| usage.get(name))
            .and_then(Value::as_array);
        let path = |path: &Value| {
            path.as_str()
                .map(|path| path.split('.').map(str::to_owned).collect())
        };
        list.into_iter().flatten().filter_map(path).collect()
    };
    [
        paths("input_tokens"),
        paths("output_tokens"),
        paths("total_tokens"),
        paths("cached_input_tokens"),
        paths("cache_write_tokens"),
        paths("reasoning_tokens"),
    ]
});

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
    let object = members(raw);
    let [input, output, total, cached, written, reasoning] = &*PATHS;
    Usage {
        input_tokens: number(&object, input),
        output_tokens: number(&object, output),
        total_tokens: number(&object, total),
        cached_input_tokens: number(&object, cached),
        cache_write_tokens: number(&object, written),
        reasoning_tokens: number(&object, reasoning),
        raw: Some(raw.text),
    }
}

fn number(object: &[Member<'_>], paths: &Paths) -> Option<i64> {
    paths.iter().find_map(|path| {
        let mut steps = path.iter();
        let mut value = find(object, steps.next()?)?;
        for step in steps {
            value = find(&members(value), step)?;
        }
        match value.kind {
            Kind::Number => Number { raw: value.text }.integral(),
            _ => None,
        }
    })
}
