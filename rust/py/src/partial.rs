//! `_native.complete_object`: closes truncated JSON for `_json.loads_partial`.

use pyo3::prelude::*;
use streamweld_core::json::partial;

/// Returns a possibly truncated JSON object, completed after its last usable character.
///
/// Returns `None` if the object has not begun.
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn complete_object(text: &str) -> Option<String> {
    partial::complete_object(text)
}
