//! Converts faults from the core to exceptions from `streamweld.errors`, including their fields. Python builds the
//! messages.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use streamweld_core::model::fault::Extra;
use streamweld_core::model::fault::Fault;

fn module(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module =
        MODULE.get_or_try_init(py, || py.import("streamweld.errors").map(Bound::unbind))?;
    Ok(module.bind(py))
}

/// Returns an exception of this class with the given message.
pub(crate) fn misuse(py: Python<'_>, class: &str, sentence: &str) -> PyErr {
    let made = module(py).and_then(|errors| errors.getattr(class)?.call1((sentence,)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// Returns a `UsageError`, which reports a mistake by the caller.
pub(crate) fn usage(py: Python<'_>, sentence: &str) -> PyErr {
    misuse(py, "UsageError", sentence)
}

/// Returns a `ParserBusy`, which reports concurrent calls.
pub(crate) fn busy(py: Python<'_>) -> PyErr {
    misuse(
        py,
        "ParserBusy",
        "another call into this parser is running: one stream, one call at a time",
    )
}

/// Returns an `InternalError` for a panic in the core, with the panic message.
pub(crate) fn internal(py: Python<'_>, detail: &str, events: Vec<Py<PyAny>>) -> PyErr {
    let made = module(py).and_then(|errors| {
        let fields = PyDict::new(py);
        fields.set_item("detail", detail)?;
        fields.set_item("events", PyList::new(py, events)?)?;
        errors.getattr("InternalError")?.call((), Some(&fields))
    });
    made.map_or_else(|error| error, PyErr::from_value)
}

/// Runs a call into the core. If the call panics, returns the panic message as the error.
///
/// PyO3 itself would raise the panic as a `BaseException`.
pub(crate) fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        let words = panic
            .downcast_ref::<&str>()
            .map(|words| (*words).to_owned());
        words
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default()
    })
}

/// Returns the exception for a fault. `events` contains the events from the call that failed.
pub(crate) fn raise(py: Python<'_>, fault: &Fault, events: Vec<Py<PyAny>>) -> PyErr {
    exception(py, fault, events).map_or_else(|error| error, PyErr::from_value)
}

/// Returns the exception object for a fault.
pub(crate) fn exception<'py>(
    py: Python<'py>,
    fault: &Fault,
    events: Vec<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let fields = PyDict::new(py);
    fields.set_item("rule", fault.rule)?;
    fields.set_item("detail", &fault.detail)?;
    fields.set_item("byte_offset", fault.byte_offset)?;
    fields.set_item("event_ordinal", fault.event_ordinal)?;
    fields.set_item("event_type", &fault.event_type)?;
    fields.set_item("raw", PyBytes::new(py, &fault.raw))?;
    fields.set_item("events", PyList::new(py, events)?)?;
    match &fault.extra {
        Extra::None => {}
        Extra::Limit {
            name,
            limit,
            observed,
        } => {
            fields.set_item("limit_name", name)?;
            fields.set_item("limit", limit)?;
            fields.set_item("observed", observed)?;
        }
        Extra::Upstream {
            code,
            kind,
            message,
            raw,
        } => {
            fields.set_item("code", code)?;
            fields.set_item("kind", kind)?;
            fields.set_item("message", message)?;
            fields.set_item("raw", PyBytes::new(py, raw))?;
        }
        Extra::Truncated {
            position,
            open_items,
        } => {
            fields.set_item("where", position.name())?;
            fields.set_item("open_items", PyTuple::new(py, open_items)?)?;
        }
        Extra::Chunk { pos } => fields.set_item("pos", pos)?,
        Extra::UnknownDialect { seen, specified } => {
            fields.set_item("seen", PyTuple::new(py, seen)?)?;
            fields.set_item("specified", specified)?;
        }
        Extra::NotAnEventStream {
            body_head,
            content_type,
        } => {
            fields.set_item("body_head", PyBytes::new(py, body_head))?;
            fields.set_item("content_type", content_type)?;
        }
    }
    module(py)?
        .getattr(fault.class.name())?
        .call((), Some(&fields))
}
