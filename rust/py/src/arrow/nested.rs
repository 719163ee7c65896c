//! Builders for nested columns: lists, and structs whose members are in the order of `schema`.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Int32Builder, Int64Builder, StringBuilder,
};
use arrow_array::{ArrayRef, ListArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType};

use super::schema::{call_fields, diagnostic_fields, list_item, usage_fields};
use super::{Diagnostic, Usage};

pub(crate) type Built = Result<ArrayRef, ArrowError>;

/// Offsets and validity of a list column.
#[derive(Debug)]
pub(crate) struct Lists {
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl Lists {
    pub(crate) fn new() -> Lists {
        Lists {
            offsets: vec![0],
            nulls: NullBufferBuilder::new(0),
        }
    }

    /// Ends a list. `values` is the number of values in the whole column so far.
    pub(crate) fn close(&mut self, values: usize, valid: bool) {
        self.offsets.push(i32::try_from(values).unwrap_or(i32::MAX));
        self.nulls.append(valid);
    }

    pub(crate) fn finish(mut self, kind: DataType, values: ArrayRef) -> Built {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let lists = ListArray::try_new(list_item(kind), offsets, values, self.nulls.finish())?;
        Ok(Arc::new(lists))
    }
}

/// Builder for a column of string lists.
pub(crate) struct Strings {
    lists: Lists,
    values: StringBuilder,
}

impl Strings {
    pub(crate) fn new() -> Strings {
        Strings {
            lists: Lists::new(),
            values: StringBuilder::new(),
        }
    }

    pub(crate) fn append(&mut self, strings: Option<&[String]>) {
        for string in strings.unwrap_or_default() {
            self.values.append_value(string);
        }
        self.lists.close(self.values.len(), strings.is_some());
    }

    pub(crate) fn finish(mut self) -> Built {
        self.lists
            .finish(DataType::Utf8, Arc::new(self.values.finish()))
    }
}

/// A tool call, copied from its event.
#[derive(Debug, Default)]
pub(crate) struct Call {
    pub(crate) part: u32,
    pub(crate) call_id: String,
    pub(crate) item_id: Option<String>,
    pub(crate) name: String,
    pub(crate) arguments: String,
    pub(crate) state: &'static str,
    pub(crate) reason: Option<&'static str>,
    pub(crate) raw_arguments: Option<String>,
    pub(crate) aliases: Vec<String>,
    pub(crate) custom: bool,
    pub(crate) provider_executed: bool,
}

impl Call {
    /// Returns the value of `ToolCall.dispatchable`, assuming that the stream contains no result for the call.
    fn runs(&self) -> bool {
        let whole = matches!(self.state, "complete" | "empty");
        whole && !self.name.is_empty() && !self.call_id.is_empty() && !self.provider_executed
    }
}

/// Builder for a column of tool-call lists.
pub(crate) struct Calls {
    lists: Lists,
    part: Int32Builder,
    call_id: StringBuilder,
    item_id: StringBuilder,
    name: StringBuilder,
    arguments: StringBuilder,
    state: StringBuilder,
    reason: StringBuilder,
    raw_arguments: StringBuilder,
    aliases: Strings,
    custom: BooleanBuilder,
    dispatchable: BooleanBuilder,
}

impl Calls {
    pub(crate) fn new() -> Calls {
        Calls {
            lists: Lists::new(),
            part: Int32Builder::new(),
            call_id: StringBuilder::new(),
            item_id: StringBuilder::new(),
            name: StringBuilder::new(),
            arguments: StringBuilder::new(),
            state: StringBuilder::new(),
            reason: StringBuilder::new(),
            raw_arguments: StringBuilder::new(),
            aliases: Strings::new(),
            custom: BooleanBuilder::new(),
            dispatchable: BooleanBuilder::new(),
        }
    }

    /// Appends a list of calls. `answered` contains the ids of calls whose results are in the same stream.
    pub(crate) fn append<'a>(
        &mut self,
        calls: impl Iterator<Item = &'a Call>,
        answered: &[String],
    ) {
        for call in calls {
            self.part.append_value(number(call.part));
            self.call_id.append_value(&call.call_id);
            self.item_id.append_option(call.item_id.as_deref());
            self.name.append_value(&call.name);
            self.arguments.append_value(&call.arguments);
            self.state.append_value(call.state);
            self.reason.append_option(call.reason);
            self.raw_arguments
                .append_option(call.raw_arguments.as_deref());
            self.aliases.append(Some(&call.aliases));
            self.custom.append_value(call.custom);
            self.dispatchable
                .append_value(call.runs() && !answered.contains(&call.call_id));
        }
        self.lists.close(self.name.len(), true);
    }

    pub(crate) fn append_null(&mut self) {
        self.lists.close(self.name.len(), false);
    }

    pub(crate) fn finish(mut self) -> Built {
        let members: Vec<ArrayRef> = vec![
            Arc::new(self.part.finish()),
            Arc::new(self.call_id.finish()),
            Arc::new(self.item_id.finish()),
            Arc::new(self.name.finish()),
            Arc::new(self.arguments.finish()),
            Arc::new(self.state.finish()),
            Arc::new(self.reason.finish()),
            Arc::new(self.raw_arguments.finish()),
            self.aliases.finish()?,
            Arc::new(self.custom.finish()),
            Arc::new(self.dispatchable.finish()),
        ];
        let calls = StructArray::try_new(call_fields(), members, None)?;
        self.lists
            .finish(DataType::Struct(call_fields()), Arc::new(calls))
    }
}

/// Builder for a column of token counts.
pub(crate) struct Usages {
    nulls: NullBufferBuilder,
    counts: [Int64Builder; 6],
    raw: StringBuilder,
}

impl Usages {
    pub(crate) fn new() -> Usages {
        Usages {
            nulls: NullBufferBuilder::new(0),
            counts: Default::default(),
            raw: StringBuilder::new(),
        }
    }

    pub(crate) fn append(&mut self, usage: Option<&Usage<'_>>) {
        self.nulls.append(usage.is_some());
        let counts = usage.map(|usage| {
            [
                usage.input_tokens,
                usage.output_tokens,
                usage.total_tokens,
                usage.cached_input_tokens,
                usage.cache_write_tokens,
                usage.reasoning_tokens,
            ]
        });
        for (column, count) in self.counts.iter_mut().zip(counts.unwrap_or_default()) {
            column.append_option(count);
        }
        self.raw.append_option(usage.and_then(|usage| usage.raw));
    }

    pub(crate) fn finish(mut self) -> Built {
        let counts = self.counts.iter_mut();
        let mut members: Vec<ArrayRef> = counts
            .map(|column| Arc::new(column.finish()) as ArrayRef)
            .collect();
        members.push(Arc::new(self.raw.finish()));
        let usages = StructArray::try_new(usage_fields(), members, self.nulls.finish())?;
        Ok(Arc::new(usages))
    }
}

/// Builder for a column of diagnostic lists.
pub(crate) struct Diagnostics {
    lists: Lists,
    code: StringBuilder,
    severity: StringBuilder,
    byte_offset: Int64Builder,
    event_ordinal: Int64Builder,
    part: Int32Builder,
    detail: StringBuilder,
}

impl Diagnostics {
    pub(crate) fn new() -> Diagnostics {
        Diagnostics {
            lists: Lists::new(),
            code: StringBuilder::new(),
            severity: StringBuilder::new(),
            byte_offset: Int64Builder::new(),
            event_ordinal: Int64Builder::new(),
            part: Int32Builder::new(),
            detail: StringBuilder::new(),
        }
    }

    pub(crate) fn append(&mut self, diagnostics: Option<&[Diagnostic]>) {
        for diagnostic in diagnostics.unwrap_or_default() {
            self.code.append_value(diagnostic.code.name());
            self.severity
                .append_value(diagnostic.code.severity().name());
            self.byte_offset.append_value(long(diagnostic.byte_offset));
            self.event_ordinal
                .append_value(long(diagnostic.event_ordinal));
            self.part.append_option(diagnostic.part.map(number));
            self.detail.append_value(&diagnostic.detail);
        }
        self.lists.close(self.code.len(), diagnostics.is_some());
    }

    pub(crate) fn finish(mut self) -> Built {
        let members: Vec<ArrayRef> = vec![
            Arc::new(self.code.finish()),
            Arc::new(self.severity.finish()),
            Arc::new(self.byte_offset.finish()),
            Arc::new(self.event_ordinal.finish()),
            Arc::new(self.part.finish()),
            Arc::new(self.detail.finish()),
        ];
        let diagnostics = StructArray::try_new(diagnostic_fields(), members, None)?;
        self.lists
            .finish(DataType::Struct(diagnostic_fields()), Arc::new(diagnostics))
    }
}

/// Converts a part number. The result is signed, because Spark has no unsigned integers.
pub(crate) fn number(part: u32) -> i32 {
    i32::try_from(part).unwrap_or(i32::MAX)
}

/// Converts an offset or ordinal. The result is signed, because Spark has no unsigned integers.
pub(crate) fn long(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
