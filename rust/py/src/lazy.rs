//! Stores the JSON values of event fields as text, and builds each value when its field is first read.
//!
//! Most callers never read provider metadata or raw token counts, and building these values takes longer than building
//! the rest of the event. Each value is built only once, so every later read returns the same object.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::PyTypeInfo;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

/// Returns the value that a JSON text represents.
fn loads(py: Python<'_>, text: &str) -> PyResult<Py<PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let loads = LOADS.import(py, "streamweld._json", "loads_raw")?;
    Ok(loads.call1((text,))?.unbind())
}

/// Returns the elements of a JSON array as a tuple.
fn loads_items(py: Python<'_>, text: &str) -> PyResult<Py<PyAny>> {
    let items = PyTuple::type_object(py).call1((loads(py, text)?,))?;
    Ok(items.unbind())
}

#[derive(Clone, Debug)]
enum Pending {
    /// A JSON text of any type.
    Value(Arc<str>),
    /// The text of a JSON array that is read as a tuple.
    Items(Arc<str>),
}

impl Pending {
    fn build(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Pending::Value(text) => loads(py, text),
            Pending::Items(text) => loads_items(py, text),
        }
    }
}

#[derive(Debug)]
enum State {
    Pending(Pending),
    Built(Py<PyAny>),
}

/// A field whose value is built when it is first read.
#[derive(Debug)]
pub(crate) struct Lazy(Mutex<State>);

impl Lazy {
    /// Creates a field from a JSON text.
    #[inline]
    pub(crate) fn value(text: &str) -> Lazy {
        Lazy(Mutex::new(State::Pending(Pending::Value(text.into()))))
    }

    fn built(value: Py<PyAny>) -> Lazy {
        Lazy(Mutex::new(State::Built(value)))
    }

    /// Returns the value. The lock is not held while the value is built, because building the value runs Python code.
    /// If two threads build the value at the same time, both get the value that was stored first.
    fn get<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let pending = match &*self.locked() {
            State::Built(value) => return Ok(value.bind(py).clone()),
            State::Pending(pending) => pending.clone(),
        };
        let built = pending.build(py)?;
        let mut state = self.locked();
        if let State::Built(value) = &*state {
            return Ok(value.bind(py).clone());
        }
        *state = State::Built(built.clone_ref(py));
        Ok(built.into_bound(py))
    }

    /// Locks the state. The lock is held only while a value is read or stored.
    fn locked(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'py> IntoPyObject<'py> for &Lazy {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.get(py)
    }
}

/// Accepts any object as a constructor argument.
impl<'py> FromPyObject<'_, 'py> for Lazy {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Lazy> {
        Ok(Lazy::built(given.to_owned().unbind()))
    }
}

/// A tuple field that is built from the elements of a JSON array.
#[derive(Debug)]
pub(crate) struct LazyItems(Lazy);

impl LazyItems {
    pub(crate) fn members(py: Python<'_>, text: Option<&str>) -> LazyItems {
        LazyItems(match text {
            Some(text) => Lazy(Mutex::new(State::Pending(Pending::Items(text.into())))),
            None => Lazy::built(PyTuple::empty(py).into_any().unbind()),
        })
    }

    pub(crate) fn empty() -> LazyItems {
        Python::attach(|py| LazyItems::members(py, None))
    }
}

impl<'py> IntoPyObject<'py> for &LazyItems {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.0.get(py)
    }
}

impl<'py> FromPyObject<'_, 'py> for LazyItems {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<LazyItems> {
        given.cast::<PyTuple>()?;
        given.extract().map(LazyItems)
    }
}

/// Metadata of a delta that has not been read yet. A delta has room for only one object, so this object stores the JSON
/// text and is later replaced by the value.
#[pyclass(frozen, module = "streamweld._native")]
#[derive(Debug)]
pub(crate) struct UnreadJson(Box<str>);

impl UnreadJson {
    pub(crate) fn object(py: Python<'_>, text: &str) -> PyResult<Py<PyAny>> {
        Ok(Py::new(py, UnreadJson(text.into()))?.into_any())
    }

    /// Returns the value of an `UnreadJson`, or `None` if the object is already a value.
    pub(crate) fn value_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
        let Ok(unread) = object.cast_exact::<UnreadJson>() else {
            return Ok(None);
        };
        loads(object.py(), &unread.get().0).map(Some)
    }
}
