//! Reads the input of `feed`: `bytes` are read in place, and any other contiguous buffer is copied first.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

/// Returns the bytes to read: either the object itself or a copy.
pub(crate) fn bytes<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    match data.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.clone()),
        Err(_) => copied(data),
    }
}

#[cold]
fn copied<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let py = data.py();
    let Ok(view) = PyMemoryView::from(data) else {
        let name = data.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "a stream is read from bytes, not from {name}"
        )));
    };
    if !view.getattr(intern!(py, "contiguous"))?.is_truthy()? {
        return Err(PyTypeError::new_err(
            "a stream is read from a contiguous buffer",
        ));
    }
    Ok(view.call_method0(intern!(py, "tobytes"))?.cast_into()?)
}
