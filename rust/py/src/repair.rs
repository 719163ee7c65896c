//! Defines `_native.Repairer`, which repairs one stream as its bytes arrive.
//!
//! Like `Parser`, the class is frozen, and a lock protects its state. A call raises `ParserBusy` instead of waiting for
//! the lock. No panic reaches Python.

use std::sync::{Mutex, MutexGuard, TryLockError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use streamweld_core::Dialect;
use streamweld_core::Repairer as Core;
use streamweld_core::model::delta::InputEnd;
use streamweld_core::model::event::Sink;

use crate::convert::{Load, written};
use crate::errors::guarded;
use crate::fold::{Fold, Snapshot};
use crate::sink::Collector;
use crate::{config, errors, input};

/// Repairs one stream. `config` is the result of `options.to_config`. `options` contains the encoder's options.
#[pyclass(frozen, module = "streamweld._native")]
#[derive(Debug)]
pub(crate) struct Repairer(Mutex<State>);

/// Buffer capacity to keep between calls, which is more than a socket read usually returns.
const KEPT: usize = 1 << 16;

#[derive(Debug)]
struct State {
    core: Core,
    load: Load,
    /// The output bytes of the current call. The buffer is reused.
    out: Vec<u8>,
    /// The exception for the core's fault, built at the first access and reused afterwards.
    error: Option<Py<PyAny>>,
}

#[pymethods]
impl Repairer {
    #[new]
    fn new(
        source: &str,
        target: &str,
        config: &Bound<'_, PyDict>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let _ = target; // always equal to the source
        let py = config.py();
        let dialect = match source {
            "auto" => None,
            name => Some(Dialect::from_name(name).ok_or_else(|| {
                errors::usage(
                    py,
                    &format!("source={name:?}: this backend does not know it"),
                )
            })?),
        };
        Ok(Repairer(Mutex::new(State {
            core: Core::new(dialect, config::read(config)?, written(options)?),
            load: Load::default(),
            out: Vec::new(),
            error: None,
        })))
    }

    /// Feeds the next bytes. Returns the bytes to forward, or `data` itself if nothing changed.
    #[pyo3(signature = (data, /))]
    fn feed<'py>(&self, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let py = data.py();
        let data = input::bytes(data)?;
        let bytes = data.as_bytes();
        self.write(py, &data, |core, out| core.feed(bytes, out))
    }

    /// Ends the input. Returns the last bytes. A second call returns no bytes. `broken` means that the transport
    /// failed.
    #[pyo3(signature = (broken=false))]
    fn close<'py>(&self, py: Python<'py>, broken: bool) -> PyResult<Bound<'py, PyBytes>> {
        self.write(py, &PyBytes::new(py, b""), |core, out| {
            core.close(InputEnd::of(broken), out);
            &[]
        })
    }

    /// Reports a limit that only the caller can measure. Returns the last bytes.
    fn exceed<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let name = config::limit_name(py, name)?;
        self.write(py, &PyBytes::new(py, b""), |core, out| {
            core.exceed(name, out);
            &[]
        })
    }

    /// Returns the response so far as events, its completeness, and the number of dropped diagnostics.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyList>, &'static str, u64)> {
        let state = self.lock(py)?;
        let mut sink = Collector::new(py, 0)?;
        let result = guarded(|| state.core.snapshot(&mut sink));
        result.map_err(|panic| errors::internal(py, &panic, Vec::new()))?;
        Ok((
            PyList::new(py, sink.finish()?)?,
            state.core.completeness().name(),
            state.core.diagnostics_dropped(),
        ))
    }

    /// Returns the members of the response so far. `choice` is the class `response.Choice`.
    #[pyo3(signature = (choice, /))]
    fn fold(&self, choice: &Bound<'_, PyAny>) -> PyResult<Fold> {
        let py = choice.py();
        let core = &self.lock(py)?.core;
        let snapshot = Snapshot::of(
            py,
            |events| core.snapshot(events),
            &core.diagnostics(),
            core.diagnostics_dropped(),
            core.completeness().name(),
            core.dialect().map(Dialect::name),
        )?;
        Ok(Fold::now(snapshot, choice))
    }

    /// The exception for an error in the source stream, if there is one.
    #[getter]
    fn error(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let state = self.lock(py)?;
        if let Some(error) = &state.error {
            return Ok(Some(error.clone_ref(py)));
        }
        let Some(fault) = state.core.error().cloned() else {
            return Ok(None);
        };
        // Release the lock first, because Python code runs while the exception is built.
        drop(state);
        let error = errors::exception(py, &fault, Vec::new())?.unbind();
        let mut state = self.lock(py)?;
        Ok(Some(state.error.get_or_insert(error).clone_ref(py)))
    }

    /// True if anything was rewritten, added, or omitted.
    #[getter]
    fn repaired(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.lock(py)?.core.repaired())
    }

    /// True if further input is ignored.
    #[getter]
    fn is_over(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.lock(py)?.core.is_over())
    }

    #[getter]
    fn dialect(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        Ok(self.lock(py)?.core.dialect().map(Dialect::name))
    }

    /// The recorded diagnostics, including losses.
    #[getter]
    fn diagnostics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let state = self.lock(py)?;
        let mut sink = Collector::new(py, 0)?;
        for diagnostic in state.core.diagnostics() {
            sink.event(&diagnostic.event());
        }
        PyList::new(py, sink.finish()?)
    }
}

impl Repairer {
    fn lock<'a>(&'a self, py: Python<'_>) -> PyResult<MutexGuard<'a, State>> {
        match self.0.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::WouldBlock) => Err(errors::busy(py)),
            // A panic inside a call cannot poison the lock, because the panic is caught first.
            Err(TryLockError::Poisoned(state)) => Ok(state.into_inner()),
        }
    }

    /// Runs a call that writes to the buffer and returns the input bytes to forward after the buffer's contents.
    ///
    /// The result contains the buffer's contents followed by these input bytes. A panic ends the stream.
    fn write<'py, 'd>(
        &self,
        py: Python<'py>,
        data: &'d Bound<'py, PyBytes>,
        call: impl FnOnce(&mut Core, &mut Vec<u8>) -> &'d [u8] + Send,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut state = self.lock(py)?;
        let State {
            core, out, load, ..
        } = &mut *state;
        out.clear();
        let taken = data.as_bytes().len();
        let result = load.run(py, (taken > 0).then_some(taken), || call(core, out));
        if !out.is_empty() || result.as_ref().is_ok_and(|run| !run.is_empty()) {
            load.wrote();
        }
        let written = match &result {
            Ok(run) if out.is_empty() && run.len() == data.as_bytes().len() => Ok(data.clone()),
            Ok(run) => PyBytes::new_with(py, out.len() + run.len(), |to| {
                let (head, tail) = to.split_at_mut(out.len());
                head.copy_from_slice(out);
                tail.copy_from_slice(run);
                Ok(())
            }),
            Err(_) => {
                core.give_up();
                Ok(data.clone())
            }
        };
        if out.capacity() > KEPT {
            *out = Vec::new();
        }
        drop(state);
        // Release the lock first, because Python code runs while the exception is built.
        result.map_err(|panic| errors::internal(py, &panic, Vec::new()))?;
        written
    }
}
