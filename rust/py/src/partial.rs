//! `_native.complete_object`: the text that `_json.loads_partial` reads.

use pyo3::prelude::*;
use streamweld_core::json::partial;

/// The object of a JSON text that may break off anywhere, closed where it breaks off; `None` before it began.
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn complete_object(text: &str) -> Option<String> {
    partial::complete_object(text)
}
