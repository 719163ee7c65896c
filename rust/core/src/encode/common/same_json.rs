//! Compares arguments as JSON values, because a source may repeat a call with differently formatted arguments.

use crate::encode::common::compact_json::comparable;

/// Returns true if the text is exactly one JSON value.
pub(crate) fn is_value(text: &str) -> bool {
    comparable(text).is_some()
}

/// Returns true if both strings contain equal JSON values. Differences in whitespace, escapes, member order, and `1.0`
/// versus `1` are ignored.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    one == other || comparable(one).is_some_and(|one| comparable(other) == Some(one))
}
