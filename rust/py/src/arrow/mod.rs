//! Arrow bindings: convert a column of bodies into a table of responses (`parse`) or of events (`events`).
//!
//! `capsule` implements the Arrow PyCapsule interface. `body` reads the column, and `rows` and `event_rows` fill the
//! builders. `batches` distributes a batch over threads. `python` contains the classes. The interpreter is released
//! once per batch. After the batch, Python is called only to build the error messages of failed rows.

// In this folder, only this module imports names from the core crate. The other modules of this folder import the names
// from here.
pub(crate) use streamweld_core::model::delta::{Completeness, InputEnd};
pub(crate) use streamweld_core::model::event::{Delta, Event, Mark, Opened, Silent, Sink, Usage};
pub(crate) use streamweld_core::model::fault::{Class, Extra, Fault, Where};
pub(crate) use streamweld_core::model::limits::LimitName;
pub(crate) use streamweld_core::model::output::Diagnostic;
pub(crate) use streamweld_core::model::spec::Code;
pub(crate) use streamweld_core::{Config, Dialect, Parser};

mod batches;
mod body;
#[allow(unsafe_code)]
mod capsule;
mod event_rows;
mod nested;
mod python;
mod rows;
mod schema;

pub(crate) use python::{
    ArrowBatch, ArrowReader, ArrowSchema, ArrowTable, describe_arrow, read_arrow,
};

/// Returns the fault for a row on which the core panicked.
pub(crate) fn internal(panic: String) -> Fault {
    let mut fault = Fault::new(Class::Internal, "internal");
    fault.detail = panic;
    fault
}

/// Returns the fault for a row that is too large for a column.
pub(crate) fn too_large(limit: usize) -> Fault {
    Fault::limit(LimitName::max_text_bytes, limit as u64)
}
