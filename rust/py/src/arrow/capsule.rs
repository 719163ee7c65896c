//! The Arrow PyCapsule interface: imports and exports arrays, schemas and streams without copying the data.
//!
//! <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, RecordBatchReader, StructArray, make_array};
use arrow_schema::{Field, Schema};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::errors;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// The caller's input: one array, or a stream of arrays.
pub(crate) enum Input {
    Array(Field, ArrayRef),
    Stream(Stream),
}

fn broken(py: Python<'_>, what: &str) -> PyErr {
    errors::usage(py, &format!("the Arrow data cannot be read: {what}"))
}

/// Imports any object that implements the PyCapsule interface.
pub(crate) fn import(data: &Bound<'_, PyAny>) -> PyResult<Input> {
    let py = data.py();
    if data.hasattr(intern!(py, "__arrow_c_array__"))? {
        let pair = data.call_method0(intern!(py, "__arrow_c_array__"))?;
        let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
        let (schema, array) = (
            schema.cast_into::<PyCapsule>()?,
            array.cast_into::<PyCapsule>()?,
        );
        let schema = schema
            .pointer_checked(Some(SCHEMA))?
            .cast::<FFI_ArrowSchema>();
        let array = array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
        // SAFETY: the capsule names were checked. The schema lives as long as its capsule, to which this function has a
        // reference.
        let field = Field::try_from(unsafe { schema.as_ref() });
        let field = field.map_err(|error| broken(py, &error.to_string()))?;
        // SAFETY: as above. The array is moved out of its capsule, and the capsule is marked as released.
        let array = unsafe { FFI_ArrowArray::from_raw(array.as_ptr()) };
        let array = take(array, &field).map_err(|error| broken(py, &error))?;
        return Ok(Input::Array(field, array));
    }
    if data.hasattr(intern!(py, "__arrow_c_stream__"))? {
        let capsule = data.call_method0(intern!(py, "__arrow_c_stream__"))?;
        let capsule = capsule.cast_into::<PyCapsule>()?;
        let stream = capsule.pointer_checked(Some(STREAM))?.cast::<RawStream>();
        // SAFETY: the capsule name was checked. The stream is moved out of its capsule, and the capsule is marked as
        // released.
        let raw = unsafe { ptr::replace(stream.as_ptr(), RawStream::RELEASED) };
        return Stream::open(raw)
            .map(Input::Stream)
            .map_err(|error| broken(py, &error));
    }
    let name = data.get_type().name()?;
    Err(errors::usage(
        py,
        &format!(
            "data is a {name}, which has no Arrow PyCapsule interface (__arrow_c_array__ or __arrow_c_stream__); \
             pass a table, record batch, array or reader of pyarrow, Polars, DuckDB, Daft or another Arrow library"
        ),
    ))
}

/// Takes ownership of an array of the given type.
fn take(array: FFI_ArrowArray, field: &Field) -> Result<ArrayRef, String> {
    if array.is_released() {
        return Err("the array was consumed before".to_owned());
    }
    // SAFETY: the contract of the C data interface requires the producer to pass an array that matches its schema.
    let data = unsafe { from_ffi_and_data_type(array, field.data_type().clone()) };
    let mut data = data.map_err(|error| error.to_string())?;
    data.align_buffers();
    Ok(make_array(data))
}

/// The consumer's view of `struct ArrowArrayStream`. The corresponding type in arrow-array can read only streams of
/// record batches.
#[repr(C)]
struct RawStream {
    get_schema: Option<unsafe extern "C" fn(*mut RawStream, *mut FFI_ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut RawStream, *mut FFI_ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut RawStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut RawStream)>,
    private_data: *mut c_void,
}

impl RawStream {
    const RELEASED: RawStream = RawStream {
        get_schema: None,
        get_next: None,
        get_last_error: None,
        release: None,
        private_data: ptr::null_mut(),
    };

    /// Returns the producer's message about the call that has just failed.
    fn error(&mut self, code: c_int) -> String {
        // SAFETY: the callback belongs to this stream. The text that the callback returns stays valid until the next
        // call.
        let text = self.get_last_error.map(|last| unsafe { last(self) });
        match text.filter(|text| !text.is_null()) {
            // SAFETY: the pointer is not null, and by contract it points to a C string.
            Some(text) => unsafe { CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned(),
            None => format!("error {code}"),
        }
    }
}

impl Drop for RawStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the stream has not been released yet.
            unsafe { release(self) }
        }
    }
}

/// A stream of arrays of one type, read one by one.
pub(crate) struct Stream {
    raw: RawStream,
    pub(crate) field: Field,
}

// SAFETY: the C stream interface allows moving a stream between threads as long as calls to it do not overlap.
unsafe impl Send for Stream {}

impl Stream {
    fn open(mut raw: RawStream) -> Result<Stream, String> {
        let Some(get_schema) = raw.get_schema else {
            return Err("the stream was consumed before".to_owned());
        };
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: the callback belongs to this stream and initializes the schema passed to it.
        let code = unsafe { get_schema(&mut raw, &mut schema) };
        if code != 0 {
            return Err(raw.error(code));
        }
        let field = Field::try_from(&schema).map_err(|error| error.to_string())?;
        Ok(Stream { raw, field })
    }

    /// Returns the next array, or `None` at the end of the stream.
    pub(crate) fn next(&mut self) -> Result<Option<ArrayRef>, String> {
        let Some(get_next) = self.raw.get_next else {
            return Ok(None);
        };
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: the callback belongs to this stream and initializes the array passed to it.
        let code = unsafe { get_next(&mut self.raw, &mut array) };
        if code != 0 {
            return Err(self.raw.error(code));
        }
        if array.is_released() {
            return Ok(None);
        }
        take(array, &self.field).map(Some)
    }
}

/// Implements `__arrow_c_schema__`: returns a capsule that contains the schema.
pub(crate) fn export_schema<'py>(
    py: Python<'py>,
    schema: &Schema,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema =
        FFI_ArrowSchema::try_from(schema).map_err(|error| broken(py, &error.to_string()))?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

/// Implements `__arrow_c_array__`: returns capsules that contain the schema and the array.
pub(crate) fn export_array<'py>(
    py: Python<'py>,
    schema: &Schema,
    array: &StructArray,
) -> PyResult<Bound<'py, PyTuple>> {
    let array = PyCapsule::new_with_value(py, FFI_ArrowArray::new(&array.to_data()), ARRAY)?;
    PyTuple::new(py, [export_schema(py, schema)?, array])
}

/// Implements `__arrow_c_stream__`: returns a capsule that contains the stream.
pub(crate) fn export_stream(
    py: Python<'_>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
}
