//! Defines `_native.complete_object`, which closes truncated JSON for `_json.loads_partial`.

use pyo3::prelude::*;
use streamweld_core::json::partial;

/// Closes a possibly truncated JSON object after its last usable character, and returns the result.
///
/// Returns `None` if the object has not begun.
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn complete_object(text: &str) -> Option<String> {
    partial::complete_object(text)
}
