//! Whether two argument texts say the same: a source that restates a call may spell it in another way.
//!
//! Knows JSON values, no call and no dialect.

use crate::encode::common::compact_json::comparable;

/// One whole JSON value.
pub(crate) fn is_value(text: &str) -> bool {
    comparable(text).is_some()
}

/// The same JSON value; blanks, escapes, the order of members and `1.0` for `1` do not count.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    one == other || comparable(one).is_some_and(|one| comparable(other) == Some(one))
}
