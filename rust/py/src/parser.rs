//! Defines `_native.Parser`, which parses the bytes of one stream into event objects.
//!
//! The class is frozen, and a lock protects its state. A call raises `ParserBusy` instead of waiting for the lock, so
//! concurrent calls never race. No panic reaches Python.

use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use streamweld_core::Dialect;
use streamweld_core::Parser as Core;
use streamweld_core::model::delta::InputEnd;
use streamweld_core::model::event::Silent;
use streamweld_core::model::event::Sink;
use streamweld_core::model::fault::Fault;

use crate::convert::Load;
use crate::errors::guarded;
use crate::event_log::EventLog;
use crate::fold::{Ended, Fold, Snapshot};
use crate::sink::Collector;
use crate::{config, errors, input};

/// Assumed size of an event on the wire, in bytes. Most events are larger, so the list rarely has to grow while it is
/// filled.
const USUAL_EVENT: usize = 128;

/// Parses one stream. `dialect` is `auto` or the name of a dialect. `config` is the result of `options.to_config`.
#[pyclass(frozen, module = "streamweld._native")]
#[derive(Debug)]
pub(crate) struct Parser(Mutex<State>);

#[derive(Debug)]
struct State {
    core: Core,
    load: Load,
}

#[pymethods]
impl Parser {
    #[new]
    fn new(dialect: &str, config: &Bound<'_, PyDict>) -> PyResult<Self> {
        let py = config.py();
        let known = match dialect {
            "auto" => None,
            name => Some(Dialect::from_name(name).ok_or_else(|| {
                errors::usage(
                    py,
                    &format!("dialect={name:?}: this backend cannot read it"),
                )
            })?),
        };
        Ok(Parser(Mutex::new(State {
            core: Core::new(known, config::read(config)?),
            load: Load::default(),
        })))
    }

    /// Feeds the next bytes. Returns the events that the input completes.
    #[pyo3(signature = (data, /))]
    fn feed<'py>(&self, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = data.py();
        let data = input::bytes(data)?;
        let bytes = data.as_bytes();
        collect(py, self.open(py)?, Some(bytes.len()), |core, sink| {
            core.feed(bytes, sink)
        })
    }

    /// Feeds the next bytes without building events, for callers that need only the result.
    #[pyo3(signature = (data, /))]
    fn feed_silent(&self, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = data.py();
        let data = input::bytes(data)?;
        let bytes = data.as_bytes();
        silently(py, self.open(py)?, Some(bytes.len()), |core| {
            core.feed(bytes, &mut Silent)
        })
    }

    /// Ends the input. Returns the last events, or `[]` on a second call or after an exception. `broken` means that the
    /// transport failed.
    #[pyo3(signature = (broken=false))]
    fn close<'py>(&self, py: Python<'py>, broken: bool) -> PyResult<Bound<'py, PyList>> {
        let input = InputEnd::of(broken);
        collect(py, self.lock(py)?, None, |core, sink| {
            core.close(input, sink)
        })
    }

    /// Ends the input without building events.
    #[pyo3(signature = (broken=false))]
    fn close_silent(&self, py: Python<'_>, broken: bool) -> PyResult<()> {
        let input = InputEnd::of(broken);
        silently(py, self.lock(py)?, None, |core| {
            core.close(input, &mut Silent)
        })
    }

    /// Returns the response so far as events, its completeness, and the number of dropped diagnostics.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyList>, &'static str, u64)> {
        let State { core, .. } = &*self.lock(py)?;
        let mut sink = Collector::new(py, 0)?;
        let result = guarded(|| core.snapshot(&mut sink));
        result.map_err(|panic| errors::internal(py, &panic, Vec::new()))?;
        Ok((
            PyList::new(py, sink.finish()?)?,
            core.completeness().name(),
            core.diagnostics_dropped(),
        ))
    }

    /// Returns the members of the response so far. `choice` is the class `response.Choice`.
    #[pyo3(signature = (choice, /))]
    fn fold(slf: &Bound<'_, Self>, choice: &Bound<'_, PyAny>) -> PyResult<Fold> {
        let (py, parser) = (slf.py(), slf.get());
        let is_over = parser.lock(py)?.core.is_over();
        if is_over {
            return Ok(Fold::later(Arc::new(slf.clone().unbind()), choice));
        }
        Ok(Fold::now(parser.snapshot_now(py)?, choice))
    }

    /// Returns the arguments emitted so far for the call with part number `part`, or `None` if there is no such call.
    #[pyo3(signature = (part, /))]
    fn shown_arguments<'py>(
        &self,
        py: Python<'py>,
        part: i64,
    ) -> PyResult<Option<Bound<'py, PyString>>> {
        let state = self.lock(py)?;
        let part = u32::try_from(part).ok();
        let shown = part.and_then(|part| state.core.shown_arguments(part));
        Ok(shown.map(|text| PyString::new(py, &text)))
    }

    #[getter]
    fn dialect(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        Ok(self.lock(py)?.core.dialect().map(Dialect::name))
    }

    /// The recorded diagnostics.
    #[getter]
    fn diagnostics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let diagnostics = diagnostics(py, &self.lock(py)?.core)?;
        PyList::new(py, diagnostics)
    }
}

impl Parser {
    /// Returns a snapshot of the stream so far.
    fn snapshot_now(&self, py: Python<'_>) -> PyResult<Snapshot> {
        let State { core, .. } = &*self.lock(py)?;
        Snapshot::of(
            py,
            |events| core.snapshot(events),
            core.diagnostics(),
            core.diagnostics_dropped(),
            core.completeness().name(),
            core.dialect().map(Dialect::name),
        )
    }

    fn lock<'a>(&'a self, py: Python<'_>) -> PyResult<MutexGuard<'a, State>> {
        match self.0.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::WouldBlock) => Err(errors::busy(py)),
            // A panic inside a call cannot poison the lock, because the panic is caught first.
            Err(TryLockError::Poisoned(state)) => Ok(state.into_inner()),
        }
    }

    /// Locks the state for a call that feeds bytes. Returns a `UsageError` if the stream has ended.
    fn open<'a>(&'a self, py: Python<'_>) -> PyResult<MutexGuard<'a, State>> {
        let state = self.lock(py)?;
        if state.core.is_over() {
            drop(state); // release the lock first, because building an exception runs Python code
            return Err(errors::usage(
                py,
                "the parser accepts no input after close() or an exception",
            ));
        }
        Ok(state)
    }
}

impl Ended for Py<Parser> {
    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        self.get().snapshot_now(py)
    }

    fn may_show_calls(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.get().lock(py)?.core.may_show_calls())
    }
}

/// Returns the recorded diagnostics as events.
fn diagnostics(py: Python<'_>, core: &Core) -> PyResult<Vec<Py<PyAny>>> {
    if core.diagnostics().is_empty() {
        return Ok(Vec::new());
    }
    let mut sink = Collector::new(py, 0)?;
    for diagnostic in core.diagnostics() {
        sink.event(&diagnostic.event());
    }
    sink.finish()
}

/// Runs a call that reads `taken` bytes, or ends the input if `taken` is `None`. Returns the events of the call.
///
/// If the call fails, returns the exception, which contains the events emitted before the failure. If the call may take
/// a long time, other threads can run in the meantime, and the event objects are built afterward. A panic ends the
/// stream. The lock is released first, because building an exception runs Python code.
fn collect<'py>(
    py: Python<'py>,
    mut state: MutexGuard<'_, State>,
    taken: Option<usize>,
    call: impl FnOnce(&mut Core, &mut dyn Sink) -> Result<(), Fault> + Send,
) -> PyResult<Bound<'py, PyList>> {
    let State { core, load } = &mut *state;
    let (result, events) = if load.is_long(taken) {
        let mut log = EventLog::borrow();
        let result = py.detach(|| guarded(|| call(core, &mut *log)));
        (result, built(py, &log))
    } else {
        let mut sink = Collector::new(py, taken.unwrap_or_default() / USUAL_EVENT)?;
        let result = guarded(|| call(core, &mut sink));
        (result, sink.finish())
    };
    match &events {
        Ok(events) if events.is_empty() => {}
        Ok(_) => load.wrote(),
        Err(_) => core.give_up(),
    }
    if result.is_err() {
        core.give_up();
    }
    drop(state);
    let events = events?;
    match result {
        Ok(Ok(())) => PyList::new(py, events),
        Ok(Err(fault)) => Err(errors::raise(py, &fault, events)),
        Err(panic) => Err(errors::internal(py, &panic, events)),
    }
}

/// Returns the events in a log as objects.
fn built(py: Python<'_>, log: &EventLog) -> PyResult<Vec<Py<PyAny>>> {
    let mut sink = Collector::new(py, log.len())?;
    log.replay(&mut sink);
    sink.finish()
}

/// Runs a call that reads `taken` bytes, or ends the input if `taken` is `None`, without building events. Other threads
/// can run in the meantime if the call may take a long time.
fn silently(
    py: Python<'_>,
    mut state: MutexGuard<'_, State>,
    taken: Option<usize>,
    call: impl FnOnce(&mut Core) -> Result<(), Fault> + Send,
) -> PyResult<()> {
    let State { core, load } = &mut *state;
    let result = load.run(py, taken, || call(core));
    if result.is_err() {
        core.give_up();
    }
    drop(state);
    match result {
        Ok(Ok(())) => Ok(()),
        Ok(Err(fault)) => Err(errors::raise(py, &fault, Vec::new())),
        Err(panic) => Err(errors::internal(py, &panic, Vec::new())),
    }
}
