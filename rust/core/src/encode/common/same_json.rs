//! Compares argument texts as JSON values: a source that repeats a call may format it differently.

use crate::encode::common::compact_json::comparable;

/// Returns true for one whole JSON value.
pub(crate) fn is_value(text: &str) -> bool {
    comparable(text).is_some()
}

/// Returns true for equal JSON values. Whitespace, escapes, member order and `1.0` for `1` make no difference.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    one == other || comparable(one).is_some_and(|one| comparable(other) == Some(one))
}
