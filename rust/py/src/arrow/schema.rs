//! Defines the columns of the output. `VERSION` must change when a column's name, type, or meaning changes, but not when
//! a nullable column is added.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};

/// Version of the schema, stored in the schema's metadata under the key `METADATA`.
pub(crate) const VERSION: &str = "1";
pub(crate) const METADATA: &str = "streamweld:schema";

macro_rules! columns {
    ($($variant:ident = $name:literal,)+) => {
        /// A column of `parse`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Column { $($variant),+ }

        impl Column {
            pub(crate) const ALL: &'static [Column] = &[$(Column::$variant),+];

            pub(crate) fn name(self) -> &'static str {
                match self { $(Column::$variant => $name),+ }
            }

            pub(crate) fn from_name(name: &str) -> Option<Column> {
                match name { $($name => Some(Column::$variant),)+ _ => None }
            }
        }
    };
}

columns! {
    Id = "response_id",
    Model = "model",
    Created = "created",
    Dialect = "dialect",
    Completeness = "completeness",
    FinishReason = "finish_reason",
    RawFinishReason = "raw_finish_reason",
    Choices = "choices",
    Text = "text",
    Reasoning = "reasoning",
    Refusal = "refusal",
    ToolCalls = "tool_calls",
    ServerToolCalls = "server_tool_calls",
    Usage = "usage",
    Diagnostics = "diagnostics",
    DiagnosticsDropped = "diagnostics_dropped",
    Error = "error",
}

fn field(name: &str, kind: DataType) -> Field {
    Field::new(name, kind, true)
}

fn fields<const N: usize>(rows: [(&str, DataType); N]) -> Fields {
    rows.map(|(name, kind)| field(name, kind))
        .into_iter()
        .collect()
}

/// Returns the field for the items of a list, with the name that pyarrow and Spark use.
pub(crate) fn list_item(kind: DataType) -> FieldRef {
    Arc::new(Field::new("item", kind, true))
}

fn list(kind: DataType) -> DataType {
    DataType::List(list_item(kind))
}

pub(crate) fn call_fields() -> Fields {
    fields([
        ("part", DataType::Int32),
        ("call_id", DataType::Utf8),
        ("item_id", DataType::Utf8),
        ("name", DataType::Utf8),
        ("arguments", DataType::Utf8),
        ("state", DataType::Utf8),
        ("reason", DataType::Utf8),
        ("raw_arguments", DataType::Utf8),
        ("aliases", list(DataType::Utf8)),
        ("custom", DataType::Boolean),
        ("dispatchable", DataType::Boolean),
    ])
}

pub(crate) fn usage_fields() -> Fields {
    fields([
        ("input_tokens", DataType::Int64),
        ("output_tokens", DataType::Int64),
        ("total_tokens", DataType::Int64),
        ("cached_input_tokens", DataType::Int64),
        ("cache_write_tokens", DataType::Int64),
        ("reasoning_tokens", DataType::Int64),
        ("raw", DataType::Utf8),
    ])
}

pub(crate) fn diagnostic_fields() -> Fields {
    fields([
        ("code", DataType::Utf8),
        ("severity", DataType::Utf8),
        ("byte_offset", DataType::Int64),
        ("event_ordinal", DataType::Int64),
        ("part", DataType::Int32),
        ("detail", DataType::Utf8),
    ])
}

pub(crate) fn error_fields() -> Fields {
    fields([
        ("type", DataType::Utf8),
        ("rule", DataType::Utf8),
        ("message", DataType::Utf8),
        ("detail", DataType::Utf8),
        ("code", DataType::Utf8),
        ("kind", DataType::Utf8),
        ("retryable", DataType::Boolean),
        ("byte_offset", DataType::Int64),
        ("event_ordinal", DataType::Int64),
    ])
}

impl Column {
    pub(crate) fn field(self) -> Field {
        let kind = match self {
            Column::Created | Column::DiagnosticsDropped => DataType::Int64,
            Column::Choices => DataType::Int32,
            Column::ToolCalls | Column::ServerToolCalls => list(DataType::Struct(call_fields())),
            Column::Usage => DataType::Struct(usage_fields()),
            Column::Diagnostics => list(DataType::Struct(diagnostic_fields())),
            Column::Error => DataType::Struct(error_fields()),
            _ => DataType::Utf8,
        };
        field(self.name(), kind)
    }
}

/// Returns the columns for `events`. The output always has all of these columns.
pub(crate) fn event_fields() -> Fields {
    fields([
        ("row", DataType::Int64),
        ("position", DataType::Int32),
        ("type", DataType::Utf8),
        ("choice", DataType::Int32),
        ("part", DataType::Int32),
        ("text", DataType::Utf8),
        ("call_id", DataType::Utf8),
        ("item_id", DataType::Utf8),
        ("name", DataType::Utf8),
        ("arguments", DataType::Utf8),
        ("raw_arguments", DataType::Utf8),
        ("state", DataType::Utf8),
        ("kind", DataType::Utf8),
        ("reason", DataType::Utf8),
        ("raw_reason", DataType::Utf8),
        ("response_id", DataType::Utf8),
        ("model", DataType::Utf8),
        ("created", DataType::Int64),
        ("signature", DataType::Utf8),
        ("encrypted_content", DataType::Utf8),
        ("annotations", DataType::Utf8),
        ("output", DataType::Utf8),
        ("value", DataType::Utf8),
        ("url", DataType::Utf8),
        ("title", DataType::Utf8),
        ("document", DataType::Utf8),
        ("media_type", DataType::Utf8),
        ("data", DataType::Utf8),
        ("code", DataType::Utf8),
        ("severity", DataType::Utf8),
        ("message", DataType::Utf8),
        ("detail", DataType::Utf8),
        ("byte_offset", DataType::Int64),
        ("event_ordinal", DataType::Int64),
        ("provider_executed", DataType::Boolean),
        ("custom", DataType::Boolean),
        ("is_error", DataType::Boolean),
        ("aliases", list(DataType::Utf8)),
        ("usage", DataType::Struct(usage_fields())),
        ("event", DataType::Utf8),
        ("raw", DataType::Binary),
        ("provider_metadata", DataType::Utf8),
    ])
}

/// Returns an output's schema, including its version.
pub(crate) fn versioned(fields: impl IntoIterator<Item = FieldRef>) -> Schema {
    let fields: Fields = fields.into_iter().collect();
    let metadata = HashMap::from([(METADATA.to_owned(), VERSION.to_owned())]);
    Schema::new_with_metadata(fields, metadata)
}

/// Returns the type in the Spark SQL data definition language (DDL), or `None` if Spark does not have the type.
pub(crate) fn ddl(kind: &DataType) -> Option<String> {
    Some(match kind {
        DataType::Utf8 => "STRING".to_owned(),
        DataType::Binary => "BINARY".to_owned(),
        DataType::Int32 => "INT".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::List(item) => format!("ARRAY<{}>", ddl(item.data_type())?),
        DataType::Struct(fields) => {
            let members: Option<Vec<String>> = fields
                .iter()
                .map(|field| Some(format!("{}: {}", field.name(), ddl(field.data_type())?)))
                .collect();
            format!("STRUCT<{}>", members?.join(", "))
        }
        _ => return None,
    })
}
