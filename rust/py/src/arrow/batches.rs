//! Executes one call to `parse` or `events`. Selects the columns, and distributes the rows over threads.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use arrow_array::builder::{BooleanBuilder, Int64Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StructArray, make_array};
use arrow_buffer::{NullBuffer, NullBufferBuilder};
use arrow_data::transform::MutableArrayData;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, SchemaRef};
use pyo3::prelude::*;

use super::body::Body;
use super::event_rows::{EventRows, Message};
use super::nested::long;
use super::rows::{Rows, sent};
use super::schema::{Column, error_fields, event_fields, versioned};
use super::{Config, Dialect, Fault};
use crate::errors;

/// Maximum number of body bytes per output batch. Offsets have only 31 bits, but the text may be three times as long as
/// its body (U+FFFD for each invalid byte), and an event list contains every text twice.
const MAX_BATCH: usize = 256 << 20;
/// Number of pieces of a batch per thread. With several pieces per thread, one piece with long bodies does not delay
/// the other threads.
const PIECES: usize = 8;

/// Kind of output rows.
#[derive(Clone, Debug)]
pub(crate) enum Output {
    Responses(Vec<Column>),
    Events,
}

/// The options of a call.
#[derive(Debug)]
pub(crate) struct BatchOptions {
    pub(crate) output: Output,
    pub(crate) body: String,
    pub(crate) keep: Vec<String>,
    pub(crate) dialect: Option<Dialect>,
    pub(crate) config: Arc<Config>,
    pub(crate) threads: NonZeroUsize,
}

/// The options of a call, already checked against the type of the input.
#[derive(Debug)]
pub(crate) struct Plan {
    options: BatchOptions,
    /// Positions of the columns, or `None` if the input itself is the body column.
    column_positions: Option<ColumnPositions>,
    pub(crate) schema: SchemaRef,
    /// Number of rows read so far.
    rows: i64,
}

#[derive(Debug)]
struct ColumnPositions {
    body: usize,
    keep: Vec<usize>,
}

/// Columns for consecutive rows, and the values that are added later, when the thread is attached to the interpreter.
struct Piece {
    columns: Vec<Option<ArrayRef>>,
    late: DeferredValues,
    rows: usize,
}

enum DeferredValues {
    Faults(Vec<(usize, Fault)>),
    Messages {
        counts: Vec<usize>,
        messages: Vec<(usize, Message)>,
    },
}

impl BatchOptions {
    /// Checks the options against the type of the input. Returns a `UsageError` if an option does not fit the input.
    pub(crate) fn plan(self, py: Python<'_>, input: &Field) -> PyResult<Plan> {
        let usage = |sentence: String| errors::usage(py, &sentence);
        let refuse = |name: &str, kind: &DataType| {
            usage(format!(
                "column {name:?} has the type {kind}; bodies are read from binary or UTF-8 columns"
            ))
        };
        let (column_positions, kept) = if let DataType::Struct(fields) = input.data_type() {
            let column_position = |name: &str, option: &str| {
                let mut found = fields.iter().enumerate();
                let mut found = found.by_ref().filter(|(_, field)| field.name() == name);
                let Some((column_position, _)) = found.next() else {
                    let names: Vec<&str> =
                        fields.iter().map(|field| field.name().as_str()).collect();
                    return Err(usage(format!(
                        "{option}: the input has no column {name:?}; its columns are {}",
                        names.join(", ")
                    )));
                };
                match found.next() {
                    Some(_) => Err(usage(format!(
                        "{option}: the input has several columns {name:?}"
                    ))),
                    None => Ok(column_position),
                }
            };
            let body = column_position(&self.body, "body")?;
            let keep: Vec<usize> = self
                .keep
                .iter()
                .map(|name| column_position(name, "keep"))
                .collect::<PyResult<_>>()?;
            if let Some(field) = fields
                .get(body)
                .filter(|field| !Body::accepts(field.data_type()))
            {
                return Err(refuse(field.name(), field.data_type()));
            }
            let kept: Vec<FieldRef> = keep
                .iter()
                .filter_map(|column_position| fields.get(*column_position))
                .cloned()
                .collect();
            (Some(ColumnPositions { body, keep }), kept)
        } else {
            if !Body::accepts(input.data_type()) {
                return Err(refuse(input.name(), input.data_type()));
            }
            if !self.keep.is_empty() {
                return Err(usage(
                    "keep: the input is a single column; pass a table or a record batch".to_owned(),
                ));
            }
            (None, Vec::new())
        };
        let made = self.output.fields();
        for field in &kept {
            if made.iter().any(|made| made.name() == field.name()) {
                return Err(usage(format!(
                    "keep: the output has a column {:?} of its own; rename the column of the input",
                    field.name()
                )));
            }
        }
        Ok(Plan {
            schema: Arc::new(versioned(kept.into_iter().chain(made))),
            options: self,
            column_positions,
            rows: 0,
        })
    }
}

impl Output {
    pub(crate) fn fields(&self) -> Vec<FieldRef> {
        match self {
            Output::Responses(columns) => columns
                .iter()
                .map(|column| Arc::new(column.field()))
                .collect(),
            Output::Events => event_fields().iter().cloned().collect(),
        }
    }
}

/// The columns of an input: the bodies, and the columns to keep.
struct Columns {
    body: ArrayRef,
    keep: Vec<ArrayRef>,
}

impl Plan {
    /// Returns the output batches for one input array: one batch, or several if the bodies exceed `MAX_BATCH`.
    pub(crate) fn read(&mut self, py: Python<'_>, input: &ArrayRef) -> PyResult<Vec<RecordBatch>> {
        let columns = self.columns(input).map_err(|error| broken(py, &error))?;
        let Some(body) = Body::of(columns.body.as_ref()) else {
            return Err(errors::usage(py, "the column of bodies changed its type"));
        };
        let ranges = split(&body, 0..columns.body.len(), MAX_BATCH);
        let mut batches = Vec::with_capacity(ranges.len());
        for range in ranges {
            let first = self.rows + long(range.start as u64);
            let read = py.detach(|| errors::guarded(|| self.read_range(&body, &range, first)));
            let read = read.map_err(|panic| errors::internal(py, &panic, Vec::new()))?;
            let (columns_made, late) = read.map_err(|error| broken(py, &error))?;
            let made = self.finish(py, &columns, &range, columns_made, late)?;
            batches.push(made);
        }
        self.rows += long(columns.body.len() as u64);
        Ok(batches)
    }

    fn columns(&self, input: &ArrayRef) -> Result<Columns, ArrowError> {
        let Some(column_positions) = &self.column_positions else {
            return Ok(Columns {
                body: Arc::clone(input),
                keep: Vec::new(),
            });
        };
        let Some(rows) = input.as_struct_opt() else {
            return Err(ArrowError::SchemaError(
                "a batch is not a struct".to_owned(),
            ));
        };
        let column = |column_position: &usize| {
            let column = rows.columns().get(*column_position);
            let column =
                column.ok_or_else(|| ArrowError::SchemaError("a column is missing".to_owned()))?;
            under(column, rows)
        };
        Ok(Columns {
            body: column(&column_positions.body)?,
            keep: column_positions
                .keep
                .iter()
                .map(column)
                .collect::<Result<_, _>>()?,
        })
    }

    /// Reads a range of rows without using the interpreter.
    fn read_range(
        &self,
        body: &Body<'_>,
        range: &Range<usize>,
        first: i64,
    ) -> Result<(Vec<Option<ArrayRef>>, DeferredValues), ArrowError> {
        let threads = self.options.threads.get().min(range.len().max(1));
        if threads == 1 {
            let piece = self.read_piece(body, range, first)?;
            return Ok((piece.columns, piece.late));
        }
        let bytes: usize = range.clone().map(|row| body.size(row)).sum();
        let ranges = split(body, range.clone(), bytes / (threads * PIECES) + 1);
        let next = AtomicUsize::new(0);
        let pieces: Mutex<Vec<(usize, Result<Piece, ArrowError>)>> = Mutex::default();
        let work = || {
            loop {
                let range_number = next.fetch_add(1, Ordering::Relaxed);
                let Some(part) = ranges.get(range_number) else {
                    return;
                };
                let start = first + long((part.start - range.start) as u64);
                let piece = self.read_piece(body, part, start);
                let mut pieces = pieces.lock().unwrap_or_else(PoisonError::into_inner);
                pieces.push((range_number, piece));
            }
        };
        thread::scope(|scope| {
            for _ in 1..threads {
                // If a thread cannot be started, the running threads do all of the work.
                let _ = thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
        let mut pieces = pieces.into_inner().unwrap_or_else(PoisonError::into_inner);
        pieces.sort_unstable_by_key(|(range_number, _)| *range_number);
        let pieces: Result<Vec<Piece>, ArrowError> =
            pieces.into_iter().map(|(_, piece)| piece).collect();
        joined(pieces?)
    }

    fn read_piece(
        &self,
        body: &Body<'_>,
        range: &Range<usize>,
        first: i64,
    ) -> Result<Piece, ArrowError> {
        let BatchOptions {
            dialect, config, ..
        } = &self.options;
        match &self.options.output {
            Output::Responses(columns) => {
                let mut rows = Rows::new(*dialect, config, columns);
                range.clone().for_each(|row| rows.read(body.get(row)));
                let faults = std::mem::take(&mut rows.faults);
                Ok(Piece {
                    columns: rows.finish()?,
                    late: DeferredValues::Faults(faults),
                    rows: range.len(),
                })
            }
            Output::Events => {
                let mut rows = EventRows::new(*dialect, config, first);
                range.clone().for_each(|row| rows.read(body.get(row)));
                let counts = std::mem::take(&mut rows.counts);
                let messages = std::mem::take(&mut rows.messages);
                Ok(Piece {
                    columns: rows.finish()?,
                    rows: counts.iter().sum(),
                    late: DeferredValues::Messages { counts, messages },
                })
            }
        }
    }

    /// Builds the batch for a range of rows from the input columns to keep, the new columns, and the messages for
    /// failed rows.
    fn finish(
        &self,
        py: Python<'_>,
        input: &Columns,
        range: &Range<usize>,
        columns: Vec<Option<ArrayRef>>,
        late: DeferredValues,
    ) -> PyResult<RecordBatch> {
        let (rows, last) = match &late {
            DeferredValues::Faults(faults) => (range.len(), error_column(py, range.len(), faults)?),
            DeferredValues::Messages { counts, messages } => {
                let rows = counts.iter().sum();
                (rows, message_column(py, rows, messages)?)
            }
        };
        let kept = input.keep.iter().map(|column| match &late {
            DeferredValues::Faults(_) => Ok(column.slice(range.start, range.len())),
            DeferredValues::Messages { counts, .. } => repeated(column, range.start, counts),
        });
        let kept: Result<Vec<ArrayRef>, ArrowError> = kept.collect();
        let mut arrays = kept.map_err(|error| {
            let sentence = format!("keep: the columns do not fit into one batch of events ({error}); pass smaller batches");
            errors::usage(py, &sentence)
        })?;
        arrays.extend(
            columns
                .into_iter()
                .map(|column| column.unwrap_or_else(|| Arc::clone(&last))),
        );
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
            .map_err(|error| broken(py, &error))
    }
}

fn broken(py: Python<'_>, error: &ArrowError) -> PyErr {
    errors::usage(py, &format!("the Arrow data cannot be read: {error}"))
}

/// Splits rows into ranges whose bodies have at most `bytes` bytes in total. A row with a longer body gets its own
/// range.
fn split(body: &Body<'_>, rows: Range<usize>, bytes: usize) -> Vec<Range<usize>> {
    let (mut start, mut held, mut ranges) = (rows.start, 0_usize, Vec::new());
    for row in rows.clone() {
        let size = body.size(row);
        if row > start && held + size > bytes {
            ranges.push(start..row);
            (start, held) = (row, 0);
        }
        held += size;
    }
    ranges.push(start..rows.end);
    ranges
}

/// Returns the column of a struct, with null in each row in which the struct is null.
fn under(column: &ArrayRef, rows: &StructArray) -> Result<ArrayRef, ArrowError> {
    if rows.null_count() == 0 || column.data_type() == &DataType::Null {
        return Ok(Arc::clone(column));
    }
    let nulls = NullBuffer::union(column.nulls(), rows.nulls());
    let data = column.to_data().into_builder().nulls(nulls).build()?;
    Ok(make_array(data))
}

/// Repeats each row of a column as often as the row has events.
fn repeated(column: &ArrayRef, start: usize, counts: &[usize]) -> Result<ArrayRef, ArrowError> {
    let data = column.to_data();
    let mut made = MutableArrayData::new(vec![&data], false, counts.iter().sum());
    for (row, count) in counts.iter().enumerate() {
        for _ in 0..*count {
            made.try_extend(0, start + row, start + row + 1)?;
        }
    }
    Ok(make_array(made.freeze()))
}

/// Concatenates the columns, faults, and messages of the pieces.
fn joined(pieces: Vec<Piece>) -> Result<(Vec<Option<ArrayRef>>, DeferredValues), ArrowError> {
    let mut late: Option<DeferredValues> = None;
    let mut parts: Vec<Vec<Option<ArrayRef>>> = Vec::new();
    let mut before = 0;
    for piece in pieces {
        match (&mut late, piece.late) {
            (None, first) => late = Some(first),
            (Some(DeferredValues::Faults(all)), DeferredValues::Faults(more)) => {
                all.extend(more.into_iter().map(|(row, fault)| (before + row, fault)));
            }
            (
                Some(DeferredValues::Messages { counts, messages }),
                DeferredValues::Messages {
                    counts: more,
                    messages: further,
                },
            ) => {
                counts.extend(more);
                messages.extend(
                    further
                        .into_iter()
                        .map(|(row, message)| (before + row, message)),
                );
            }
            (Some(_), _) => return Err(ArrowError::ComputeError("pieces differ".to_owned())),
        }
        before += piece.rows;
        parts.push(piece.columns);
    }
    let width = parts.first().map_or(0, Vec::len);
    // Work column by column, so that the pieces of one column are freed before the next column is concatenated.
    let columns = (0..width).map(|column_position| {
        let arrays: Option<Vec<ArrayRef>> = parts
            .iter_mut()
            .map(|columns| columns.get_mut(column_position).and_then(Option::take))
            .collect();
        arrays.map(|arrays| concat(&arrays)).transpose()
    });
    let columns = columns.collect::<Result<_, _>>()?;
    let late = late.ok_or_else(|| ArrowError::ComputeError("no piece".to_owned()))?;
    Ok((columns, late))
}

/// Concatenates arrays of the same type.
fn concat(arrays: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    if let [only] = arrays {
        return Ok(Arc::clone(only));
    }
    let data: Vec<_> = arrays.iter().map(|array| array.to_data()).collect();
    let rows = data.iter().map(|data| data.len()).sum();
    let mut made = MutableArrayData::new(data.iter().collect(), false, rows);
    for (column_position, data) in data.iter().enumerate() {
        made.try_extend(column_position, 0, data.len())?;
    }
    Ok(make_array(made.freeze()))
}

/// Concatenates batches with the same schema.
pub(crate) fn one(
    py: Python<'_>,
    schema: &SchemaRef,
    batches: &[RecordBatch],
) -> PyResult<RecordBatch> {
    if let [only] = batches {
        return Ok(only.clone());
    }
    let columns = 0..schema.fields().len();
    let columns = columns.map(|column_position| {
        let arrays: Vec<ArrayRef> = batches
            .iter()
            .map(|batch| Arc::clone(batch.column(column_position)))
            .collect();
        concat(&arrays)
    });
    let columns = columns.collect::<Result<Vec<ArrayRef>, ArrowError>>().map_err(|error| {
        let sentence = format!("the output of this batch does not fit into one batch ({error}); pass a table or a reader");
        errors::usage(py, &sentence)
    })?;
    let options = RecordBatchOptions::new()
        .with_row_count(Some(batches.iter().map(RecordBatch::num_rows).sum()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
        .map_err(|error| broken(py, &error))
}

/// Returns the exception for a fault. The row that failed contains the error message.
fn exception<'py>(py: Python<'py>, fault: &Fault) -> PyResult<Bound<'py, PyAny>> {
    errors::exception(py, fault, Vec::new())
}

/// Builds the column `error`, with messages from `streamweld.errors`.
fn error_column(py: Python<'_>, rows: usize, faults: &[(usize, Fault)]) -> PyResult<ArrayRef> {
    let mut nulls = NullBufferBuilder::new(rows);
    let mut texts: [StringBuilder; 6] = Default::default();
    let mut retryable = BooleanBuilder::new();
    let mut positions: [Int64Builder; 2] = Default::default();
    let mut done = 0;
    let pad = |count: usize,
               nulls: &mut NullBufferBuilder,
               texts: &mut [StringBuilder; 6],
               retryable: &mut BooleanBuilder,
               positions: &mut [Int64Builder; 2]| {
        nulls.append_n_nulls(count);
        texts.iter_mut().for_each(|text| text.append_nulls(count));
        retryable.append_nulls(count);
        positions
            .iter_mut()
            .for_each(|position| position.append_nulls(count));
    };
    for (row, fault) in faults {
        pad(
            row - done,
            &mut nulls,
            &mut texts,
            &mut retryable,
            &mut positions,
        );
        done = row + 1;
        let raised = exception(py, fault)?;
        let (code, kind) = sent(fault);
        let sentence = raised.str()?.to_string();
        let values = [
            Some(fault.class.name()),
            Some(fault.rule),
            Some(sentence.as_str()),
            Some(fault.detail.as_str()).filter(|detail| !detail.is_empty()),
            code,
            kind,
        ];
        for (text, value) in texts.iter_mut().zip(values) {
            text.append_option(value);
        }
        retryable.append_option(raised.getattr("retryable")?.extract::<Option<bool>>()?);
        for (position, value) in positions
            .iter_mut()
            .zip([fault.byte_offset, fault.event_ordinal])
        {
            position.append_option(fault.placed.then(|| long(value)));
        }
        nulls.append_non_null();
    }
    pad(
        rows - done,
        &mut nulls,
        &mut texts,
        &mut retryable,
        &mut positions,
    );
    let mut columns: Vec<ArrayRef> = texts
        .iter_mut()
        .map(|text| Arc::new(text.finish()) as ArrayRef)
        .collect();
    columns.push(Arc::new(retryable.finish()));
    columns.extend(
        positions
            .iter_mut()
            .map(|position| Arc::new(position.finish()) as ArrayRef),
    );
    let errors = StructArray::try_new(error_fields(), columns, nulls.finish());
    Ok(Arc::new(errors.map_err(|error| broken(py, &error))?))
}

/// Builds the column `message` for events.
fn message_column(
    py: Python<'_>,
    rows: usize,
    messages: &[(usize, Message)],
) -> PyResult<ArrayRef> {
    let mut column = StringBuilder::new();
    let mut done = 0;
    for (row, message) in messages {
        column.append_nulls(row - done);
        done = row + 1;
        match message {
            Message::Sent(text) => column.append_value(text),
            Message::Fault(fault) => column.append_value(exception(py, fault)?.str()?.to_string()),
        }
    }
    column.append_nulls(rows - done);
    Ok(Arc::new(column.finish()))
}
