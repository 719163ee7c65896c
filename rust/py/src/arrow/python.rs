//! Functions that `streamweld.arrow` calls, and the classes of their results.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};

use super::Dialect;
use super::batches::{BatchOptions, Output, Plan, one};
use super::capsule::{self, Input, Stream};
use super::schema::{Column, VERSION, ddl, versioned};
use crate::{config, errors};

/// A record batch. `pyarrow.record_batch`, `polars.DataFrame` and others accept it directly.
#[pyclass(frozen, module = "streamweld._native")]
pub(crate) struct ArrowBatch(RecordBatch);

/// A table of output batches. A table can be exported any number of times.
#[pyclass(frozen, module = "streamweld._native")]
pub(crate) struct ArrowTable {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

/// A stream of output batches, which are read on demand. A stream can be consumed only once.
#[pyclass(frozen, module = "streamweld._native")]
pub(crate) struct ArrowReader {
    schema: SchemaRef,
    reader: Mutex<Option<Reader>>,
}

/// The columns of an output.
#[pyclass(frozen, module = "streamweld._native")]
pub(crate) struct ArrowSchema(Schema);

#[pymethods]
impl ArrowBatch {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        // The protocol allows the producer to ignore the requested schema.
        drop(requested_schema);
        capsule::export_array(py, self.0.schema_ref(), &StructArray::from(self.0.clone()))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::export_schema(py, self.0.schema_ref())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        stream_of(py, &self.0.schema(), vec![self.0.clone()])
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }
}

#[pymethods]
impl ArrowTable {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        stream_of(py, &self.schema, self.batches.clone())
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::export_schema(py, &self.schema)
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

#[pymethods]
impl ArrowReader {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        match reader.take() {
            Some(reader) => capsule::export_stream(py, Box::new(reader)),
            None => Err(errors::usage(
                py,
                "the reader was consumed before; a stream is read once",
            )),
        }
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::export_schema(py, &self.schema)
    }
}

#[pymethods]
impl ArrowSchema {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::export_schema(py, &self.0)
    }

    /// The names of the columns.
    #[getter]
    fn names(&self) -> Vec<&str> {
        self.0
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect()
    }

    /// The columns in the Spark SQL data definition language (DDL).
    #[getter]
    fn ddl(&self) -> String {
        let fields = self.0.fields().iter();
        let fields = fields
            .filter_map(|field| Some(format!("{} {}", field.name(), ddl(field.data_type())?)));
        fields.collect::<Vec<_>>().join(", ")
    }

    #[getter]
    fn version(&self) -> &'static str {
        VERSION
    }
}

fn stream_of<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
    batches: Vec<RecordBatch>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let batches = RecordBatchIterator::new(batches.into_iter().map(Ok), Arc::clone(schema));
    capsule::export_stream(py, Box::new(batches))
}

/// Reads input batches from a stream when the next output batch is requested.
struct Reader {
    stream: Stream,
    plan: Plan,
    ready: std::vec::IntoIter<RecordBatch>,
}

impl Reader {
    fn advance(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        loop {
            if let Some(batch) = self.ready.next() {
                return Ok(Some(batch));
            }
            let Some(array) = self.stream.next().map_err(failed)? else {
                return Ok(None);
            };
            self.ready = Python::attach(|py| self.read(py, &array))?.into_iter();
        }
    }

    fn read(&mut self, py: Python<'_>, array: &ArrayRef) -> Result<Vec<RecordBatch>, ArrowError> {
        self.plan
            .read(py, array)
            .map_err(|error| failed(error.value(py).to_string()))
    }
}

/// Returns the exception as an error whose text can be passed through the C stream interface.
fn failed(text: String) -> ArrowError {
    ArrowError::ExternalError(text.replace('\0', " ").into())
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().transpose()
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.plan.schema)
    }
}

fn output(py: Python<'_>, columns: Option<Vec<String>>) -> PyResult<Output> {
    let Some(columns) = columns else {
        return Ok(Output::Events);
    };
    let mut known: Vec<Column> = Vec::with_capacity(columns.len());
    for name in columns {
        let Some(column) = Column::from_name(&name) else {
            let names: Vec<&str> = Column::ALL.iter().map(|column| column.name()).collect();
            let names = names.join(", ");
            return Err(errors::usage(
                py,
                &format!("columns: there is no column {name:?}; the columns are {names}"),
            ));
        };
        if known.contains(&column) {
            return Err(errors::usage(
                py,
                &format!("columns: {name:?} is listed twice"),
            ));
        }
        known.push(column);
    }
    Ok(Output::Responses(known))
}

/// Reads the bodies in `data`. `columns` lists the columns for `parse`, and is `None` for events. If `lazy` is true, a
/// stream is read only while its result is consumed.
#[pyfunction]
#[pyo3(signature = (data, /, *, columns, body, keep, dialect, config, threads, lazy))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn read_arrow<'py>(
    data: &Bound<'py, PyAny>,
    columns: Option<Vec<String>>,
    body: String,
    keep: Vec<String>,
    dialect: &str,
    config: &Bound<'py, PyDict>,
    threads: NonZeroUsize,
    lazy: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = data.py();
    let options = BatchOptions {
        output: output(py, columns)?,
        body,
        keep,
        dialect: Dialect::from_name(dialect),
        config: config::read(config)?,
        threads,
    };
    match capsule::import(data)? {
        Input::Array(field, array) => {
            let mut plan = options.plan(py, &field)?;
            let batches = plan.read(py, &array)?;
            let batch = ArrowBatch(one(py, &plan.schema, &batches)?);
            Ok(Bound::new(py, batch)?.into_any())
        }
        Input::Stream(stream) => {
            let plan = options.plan(py, &stream.field)?;
            let mut reader = Reader {
                stream,
                plan,
                ready: Vec::new().into_iter(),
            };
            let schema = reader.schema();
            if lazy {
                let reader = Mutex::new(Some(reader));
                return Ok(Bound::new(py, ArrowReader { schema, reader })?.into_any());
            }
            let mut batches = Vec::new();
            while let Some(array) = py.detach(|| reader.stream.next()).map_err(|error| {
                errors::usage(py, &format!("the Arrow data cannot be read: {error}"))
            })? {
                batches.extend(reader.plan.read(py, &array)?);
            }
            Ok(Bound::new(py, ArrowTable { schema, batches })?.into_any())
        }
    }
}

/// Returns the columns of `read_arrow`.
#[pyfunction]
#[pyo3(signature = (columns, /))]
pub(crate) fn describe_arrow(
    py: Python<'_>,
    columns: Option<Vec<String>>,
) -> PyResult<ArrowSchema> {
    Ok(ArrowSchema(versioned(output(py, columns)?.fields())))
}
