//! Defines `_native.Converter`, which converts the bytes of one stream from one dialect to another.
//!
//! Like `Parser`, the class is frozen, and a lock protects its state. A call raises `ParserBusy` instead of waiting for
//! the lock. No panic reaches Python.

use std::sync::{Mutex, MutexGuard, TryLockError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use streamweld_core::Converter as Core;
use streamweld_core::Dialect;
use streamweld_core::Refusal;
use streamweld_core::ToolIdForm;
use streamweld_core::WriteOptions;
use streamweld_core::model::delta::InputEnd;
use streamweld_core::model::event::Sink;

use crate::errors::guarded;
use crate::fold::{Fold, Snapshot};
use crate::sink::Collector;
use crate::{config, errors, input};

/// Converts one stream. `config` is the result of `options.to_config`. `options` contains the encoder's options.
#[pyclass(frozen, module = "streamweld._native")]
#[derive(Debug)]
pub(crate) struct Converter(Mutex<State>);

/// Buffer capacity to keep between calls, which is more than a socket read usually returns.
const KEPT: usize = 1 << 16;

/// Size of the pieces in which stored input is returned.
const PIECE: usize = 1 << 20;

/// Number of input bytes above which the interpreter is released during a call. Parsing this many bytes takes much
/// longer than releasing the interpreter, which takes a tenth of a microsecond.
const LONG: usize = 1 << 12;

/// Counts the input bytes of a stream to estimate how long a call into the core may take.
#[derive(Debug, Default)]
pub(crate) struct Load {
    total: usize,
    /// Number of bytes since the last output.
    pending: usize,
}

impl Load {
    /// Runs a call into the core that reads `taken` bytes, or ends the input if `taken` is `None`. Other threads can
    /// run in the meantime if the call may take a long time.
    pub(crate) fn run<T: Send>(
        &mut self,
        py: Python<'_>,
        taken: Option<usize>,
        call: impl FnOnce() -> T + Send,
    ) -> Result<T, String> {
        if self.is_long(taken) {
            py.detach(|| guarded(call))
        } else {
            guarded(call)
        }
    }

    /// Counts input that a later call parses.
    fn count(&mut self, bytes: usize) {
        self.total += bytes;
        self.pending += bytes;
    }

    /// Counts the input of a call, and returns true if the call may take a long time.
    pub(crate) fn is_long(&mut self, taken: Option<usize>) -> bool {
        let size = match taken {
            Some(bytes) => {
                self.count(bytes);
                self.pending
            }
            None => self.total,
        };
        size >= LONG
    }

    /// Records that a call wrote output.
    pub(crate) fn wrote(&mut self) {
        self.pending = 0;
    }
}

#[derive(Debug)]
struct State {
    core: Core,
    target: &'static str,
    load: Load,
    /// The output bytes of the current call. The buffer is reused.
    out: Vec<u8>,
    /// The exception for the core's fault, built at the first access and reused afterwards.
    error: Option<Py<PyAny>>,
}

#[pymethods]
impl Converter {
    #[new]
    fn new(
        source: &str,
        target: &str,
        config: &Bound<'_, PyDict>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let py = config.py();
        let dialect = |what: &str, name: &str| {
            Dialect::from_name(name).ok_or_else(|| {
                errors::usage(
                    py,
                    &format!("{what}={name:?}: this backend does not know it"),
                )
            })
        };
        let known = match source {
            "auto" => None,
            name => Some(dialect("source", name)?),
        };
        let target = dialect("target", target)?;
        let core = Core::new(known, target, config::read(config)?, written(options)?);
        Ok(Converter(Mutex::new(State {
            core: core.map_err(|refusal| refused(py, refusal, target.name()))?,
            target: target.name(),
            load: Load::default(),
            out: Vec::new(),
            error: None,
        })))
    }

    /// Feeds the next bytes. Returns the bytes in the target dialect that this input completes.
    #[pyo3(signature = (data, /))]
    fn feed<'py>(&self, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let py = data.py();
        let data = input::bytes(data)?;
        let bytes = data.as_bytes();
        self.write(py, Some(bytes.len()), |core, out| core.feed(bytes, out))
    }

    /// Stores the next input, which does not complete a payload.
    #[pyo3(signature = (piece, /))]
    fn store(&self, piece: &Bound<'_, PyBytes>) -> PyResult<()> {
        let bytes = piece.as_bytes();
        let mut state = self.lock(piece.py())?;
        state.load.count(bytes.len());
        state.core.store(bytes);
        Ok(())
    }

    /// Reads the stored input that was not read yet, and `piece`, which completes a payload.
    #[pyo3(signature = (piece, /))]
    fn feed_stored<'py>(&self, piece: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = piece.as_bytes();
        self.write(piece.py(), Some(bytes.len()), |core, out| {
            core.feed_stored(bytes, out)
        })
    }

    /// Ends the stream because too much input arrived before the dialect was detected. Returns the last bytes. `piece`
    /// is the next input, which does not complete a payload.
    #[pyo3(signature = (piece, /))]
    fn overflow<'py>(&self, piece: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = piece.as_bytes();
        self.write(piece.py(), Some(bytes.len()), |core, out| {
            core.overflow(bytes, out)
        })
    }

    /// Returns the whole input, and removes it, after a call was refused because the source is in the target dialect.
    ///
    /// The pieces are copied from the end, and the buffer is shortened each time, so that few bytes are in memory twice.
    fn take_stored<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let mut stored = self.lock(py)?.core.take_stored();
        let pieces = PyList::empty(py);
        while !stored.is_empty() {
            let start = stored.len().saturating_sub(PIECE);
            pieces.append(PyBytes::new(py, stored.get(start..).unwrap_or_default()))?;
            stored.truncate(start);
            stored.shrink_to_fit();
        }
        pieces.reverse()?;
        Ok(pieces)
    }

    /// Ends the input. Returns the last bytes. A second call returns no bytes. `broken` means that the transport
    /// failed.
    #[pyo3(signature = (broken=false))]
    fn close<'py>(&self, py: Python<'py>, broken: bool) -> PyResult<Bound<'py, PyBytes>> {
        self.write(py, None, |core, out| core.close(InputEnd::of(broken), out))
    }

    /// Reports a limit that only the caller can measure. Returns the last bytes.
    fn exceed<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let name = config::limit_name(py, name)?;
        self.write(py, None, |core, out| core.exceed(name, out))
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

    #[getter]
    fn dialect(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        Ok(self.lock(py)?.core.dialect().map(Dialect::name))
    }

    /// The target id and the source id of every call whose id was changed.
    #[getter]
    fn tool_ids(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        Ok(self.lock(py)?.core.tool_ids().to_vec())
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

impl Converter {
    fn lock<'a>(&'a self, py: Python<'_>) -> PyResult<MutexGuard<'a, State>> {
        match self.0.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::WouldBlock) => Err(errors::busy(py)),
            // A panic inside a call cannot poison the lock, because the panic is caught first.
            Err(TryLockError::Poisoned(state)) => Ok(state.into_inner()),
        }
    }

    /// Runs a call that reads `taken` bytes, or ends the input if `taken` is `None`, and writes output. A panic ends
    /// the stream.
    fn write<'py>(
        &self,
        py: Python<'py>,
        taken: Option<usize>,
        call: impl FnOnce(&mut Core, &mut Vec<u8>) -> Result<(), Refusal> + Send,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut state = self.lock(py)?;
        let State {
            core, out, load, ..
        } = &mut *state;
        out.clear();
        let result = load.run(py, taken, || call(core, out));
        if !out.is_empty() {
            load.wrote();
        }
        if result.is_err() {
            core.give_up();
        }
        let written = PyBytes::new(py, out);
        if out.capacity() > KEPT {
            *out = Vec::new();
        }
        let target = state.target;
        drop(state);
        match result {
            Ok(Ok(())) => Ok(written),
            Ok(Err(refusal)) => Err(refused(py, refusal, target)),
            Err(panic) => Err(errors::internal(py, &panic, Vec::new())),
        }
    }
}

fn refused(py: Python<'_>, refusal: Refusal, target: &str) -> PyErr {
    let sentence = match refusal {
        Refusal::SameDialect => format!(
            "source and target are both {target}: a stream of its own dialect cannot be converted"
        ),
        Refusal::NoEncoder => format!("target={target:?}: this backend cannot write it"),
    };
    errors::usage(py, &sentence)
}

/// Returns the encoder's options. Flags are off if they are missing.
pub(crate) fn written(options: &Bound<'_, PyDict>) -> PyResult<WriteOptions> {
    let py = options.py();
    let flag = |name: &Bound<'_, PyString>| -> PyResult<bool> {
        let value = options.get_item(name)?;
        value.map_or(Ok(false), |value| value.is_truthy())
    };
    let word = |name: &Bound<'_, PyString>| -> PyResult<String> {
        let value = options.get_item(name)?;
        value.map_or(Ok(String::new()), |value| value.extract())
    };
    Ok(WriteOptions {
        prefix: word(intern!(py, "prefix"))?,
        created: match options.get_item(intern!(py, "created"))? {
            Some(value) => value.extract()?,
            None => 0,
        },
        hold_arguments: flag(intern!(py, "hold_arguments"))?,
        include_usage: flag(intern!(py, "include_usage"))?,
        openresponses: word(intern!(py, "reasoning_events"))? == "openresponses",
        cut_is_error: word(intern!(py, "cut_ending"))? == "error",
        carry_reasoning: flag(intern!(py, "carry_reasoning"))?,
        tool_id_form: match options.get_item(intern!(py, "tool_id_form"))? {
            Some(form) if !form.is_none() => {
                let (word_only, most) = form.extract()?;
                Some(ToolIdForm { word_only, most })
            }
            _ => None,
        },
    })
}
