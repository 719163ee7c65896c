//! Defines `_native.Framer`, which splits a stream into SSE frames and returns each frame as a tuple of event, data,
//! id, and retry.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use streamweld_core::sse::Framer as Core;
use streamweld_core::sse::Item;
use streamweld_core::sse::decode_utf8;

use crate::{config, errors, input};

/// Frames server-sent events. An unfinished event at the end of the input is dropped. Only the limits on events and
/// fields are enforced.
#[pyclass(frozen, module = "streamweld._native")]
#[derive(Debug)]
pub(crate) struct Framer(Mutex<Core>);

#[pymethods]
impl Framer {
    #[new]
    #[pyo3(signature = (limits, last_event_id = ""))]
    fn new(limits: &Bound<'_, PyDict>, last_event_id: &str) -> PyResult<Self> {
        let mut core = Core::new(&config::read_limits(limits)?, false);
        core.set_last_event_id(last_event_id.as_bytes());
        Ok(Framer(Mutex::new(core)))
    }

    /// Returns the frames that the input completes.
    #[pyo3(signature = (data, /))]
    fn feed<'py>(&self, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = data.py();
        let data = input::bytes(data)?;
        let mut rows: Vec<Py<PyAny>> = Vec::new();
        let mut broken = None;
        let mut core = self.0.try_lock().map_err(|_| errors::busy(py))?;
        let mut take = |item: Item<'_>| {
            if let Item::Frame(frame) = item {
                match row(py, frame.event, frame.data, frame.id, frame.retry) {
                    Ok(row) => rows.push(row),
                    Err(error) => broken = Some(error),
                }
            }
            Ok(())
        };
        let result = errors::guarded(|| core.feed(data.as_bytes(), &mut take));
        drop(core);
        match (broken, result) {
            (Some(error), _) => Err(error),
            (None, Ok(Ok(()))) => PyList::new(py, rows),
            (None, Ok(Err(fault))) => Err(errors::raise(py, &fault, rows)),
            (None, Err(panic)) => Err(errors::internal(py, &panic, rows)),
        }
    }

    #[getter]
    fn last_event_id(&self, py: Python<'_>) -> PyResult<String> {
        let core = self.0.try_lock().map_err(|_| errors::busy(py))?;
        Ok(decode_utf8(core.last_event_id()).0.into_owned())
    }

    #[getter]
    fn reconnection_time(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        Ok(self
            .0
            .try_lock()
            .map_err(|_| errors::busy(py))?
            .reconnection_time())
    }
}

fn row(
    py: Python<'_>,
    event: &[u8],
    data: &[u8],
    id: &[u8],
    retry: Option<u64>,
) -> PyResult<Py<PyAny>> {
    let text = |bytes: &[u8]| PyString::new(py, &decode_utf8(bytes).0);
    let event = if event.is_empty() {
        PyString::intern(py, "message")
    } else {
        text(event)
    };
    let retry = retry.into_pyobject(py)?;
    let row = PyTuple::new(
        py,
        [
            event.into_any(),
            text(data).into_any(),
            text(id).into_any(),
            retry,
        ],
    )?;
    Ok(row.into_any().unbind())
}
