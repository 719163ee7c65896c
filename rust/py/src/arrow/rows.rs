//! Implements `parse`: converts one body into one row.
//!
//! For the fields that are columns, `Fold` corresponds to `streamweld.response.Response` and uses the same choice.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{Int32Builder, Int64Builder, StringBuilder};
use arrow_schema::ArrowError;

use super::nested::{Call, Calls, Diagnostics, Usages, long};
use super::schema::Column;
use super::{
    Code, Completeness, Config, Delta, Diagnostic, Dialect, Event, Extra, Fault, InputEnd, Parser,
    Silent, Sink, Usage, Where,
};
use crate::errors::guarded;

/// Maximum number of bytes that one row may add to a column. The number is limited because offsets have only 31 bits,
/// and a batch also contains other rows.
const LARGEST: usize = 1 << 29;

/// An error that the gateway sent, if the policy continues after errors.
#[derive(Debug)]
struct SentError {
    code: Option<String>,
    kind: Option<String>,
    message: String,
}

/// Accumulates one response. Buffers are reused from row to row.
#[derive(Debug, Default)]
struct Fold {
    /// The lowest index of a choice that has a part or a finish reason.
    first: Option<i32>,
    choices: Vec<i32>,
    text: String,
    reasoning: String,
    refusal: String,
    calls: Vec<Call>,
    answered: Vec<String>,
    finish: Option<(&'static str, Option<String>)>,
    id: Option<String>,
    model: Option<String>,
    created: Option<i64>,
    usage: Option<(Usage<'static>, Option<String>)>,
    sent: Option<SentError>,
}

impl Fold {
    fn clear(&mut self) {
        self.first = None;
        self.choices.clear();
        self.clear_choice();
        self.id = None;
        self.model = None;
        self.created = None;
        self.usage = None;
        self.sent = None;
    }

    fn clear_choice(&mut self) {
        self.text.clear();
        self.reasoning.clear();
        self.refusal.clear();
        self.calls.clear();
        self.answered.clear();
        self.finish = None;
    }

    /// Records a choice. Returns true if the columns contain the fields of this choice.
    fn enters(&mut self, choice: i32) -> bool {
        if !self.choices.contains(&choice) {
            self.choices.push(choice);
        }
        match self.first {
            Some(first) if first < choice => return false,
            Some(first) if first > choice => self.clear_choice(),
            _ => {}
        }
        self.first = Some(choice);
        true
    }

    /// Returns how many bytes this row adds to the largest of its string columns.
    fn size(&self) -> usize {
        let calls = self.calls.iter();
        let calls = calls.map(|call| {
            let raw = call.raw_arguments.as_ref().map_or(0, String::len);
            call.arguments.len().max(raw)
        });
        let texts = [self.text.len(), self.reasoning.len(), self.refusal.len()];
        texts.into_iter().chain([calls.sum()]).max().unwrap_or(0)
    }
}

fn owned(text: Option<&str>) -> Option<String> {
    text.map(str::to_owned)
}

impl Sink for Fold {
    fn event(&mut self, event: &Event<'_>) {
        match *event {
            Event::ResponseStarted {
                id, model, created, ..
            } => {
                self.id = owned(id);
                self.model = owned(model);
                self.created = created;
            }
            Event::TextDone {
                text,
                annotations,
                choice,
                metadata,
                ..
            } => {
                // The closing event of a retracted text part contains no text, and the part is not included in the
                // response.
                let empty = text.is_empty() && annotations.is_none() && metadata.is_none();
                if !empty && self.enters(choice) {
                    self.text.push_str(text);
                }
            }
            Event::ReasoningDone {
                text,
                item_id,
                signature,
                encrypted_content,
                choice,
                metadata,
                ..
            } => {
                let held = [item_id, signature, encrypted_content, metadata];
                let empty = text.is_empty() && held.iter().all(Option::is_none);
                if !empty && self.enters(choice) {
                    self.reasoning.push_str(text);
                }
            }
            Event::RefusalDone(Delta {
                text,
                choice,
                metadata,
                ..
            }) => {
                let empty = text.is_empty() && metadata.is_none();
                if !empty && self.enters(choice) {
                    self.refusal.push_str(text);
                }
            }
            Event::ToolCall {
                part,
                call_id,
                name,
                arguments,
                state,
                item_id,
                reason,
                raw_arguments,
                provider_executed,
                aliases,
                custom,
                choice,
                ..
            } => {
                if !self.enters(choice) {
                    return;
                }
                self.calls.push(Call {
                    part,
                    call_id: call_id.to_owned(),
                    item_id: owned(item_id),
                    name: name.to_owned(),
                    arguments: arguments.to_owned(),
                    state,
                    reason,
                    raw_arguments: owned(raw_arguments),
                    aliases: aliases.to_vec(),
                    custom,
                    provider_executed,
                });
            }
            Event::ToolResult {
                call_id, choice, ..
            } => {
                if !self.enters(choice) {
                    return;
                }
                self.answered.push(call_id.to_owned());
            }
            Event::Source { choice, .. }
            | Event::File { choice, .. }
            | Event::ProviderItem { choice, .. } => {
                self.enters(choice);
            }
            Event::Unknown { .. } => {
                self.enters(0);
            }
            Event::Finished {
                reason,
                raw_reason,
                choice,
                ..
            } => {
                if !self.enters(choice) {
                    return;
                }
                self.finish = Some((reason, owned(raw_reason)));
            }
            Event::Usage(usage) => {
                let counts = Usage {
                    input_tokens: usage.input_tokens,
                    output_tokens: usage.output_tokens,
                    total_tokens: usage.total_tokens,
                    cached_input_tokens: usage.cached_input_tokens,
                    cache_write_tokens: usage.cache_write_tokens,
                    reasoning_tokens: usage.reasoning_tokens,
                    raw: None,
                };
                self.usage = Some((counts, owned(usage.raw)));
            }
            Event::UpstreamError {
                code,
                kind,
                message,
                ..
            } => {
                self.sent = Some(SentError {
                    code: owned(code),
                    kind: owned(kind),
                    message: message.to_owned(),
                });
            }
            _ => {}
        }
    }
}

/// Builder of one column. The column `error` is added after the batch, from `Rows::faults`.
enum Builder {
    Text(StringBuilder),
    Int(Int32Builder),
    Long(Int64Builder),
    Calls(Box<Calls>),
    Usages(Box<Usages>),
    Diagnostics(Box<Diagnostics>),
    Error,
}

impl Builder {
    fn of(column: Column) -> Builder {
        match column {
            Column::Choices => Builder::Int(Int32Builder::new()),
            Column::Created | Column::DiagnosticsDropped => Builder::Long(Int64Builder::new()),
            Column::ToolCalls | Column::ServerToolCalls => Builder::Calls(Box::new(Calls::new())),
            Column::Usage => Builder::Usages(Box::new(Usages::new())),
            Column::Diagnostics => Builder::Diagnostics(Box::new(Diagnostics::new())),
            Column::Error => Builder::Error,
            _ => Builder::Text(StringBuilder::new()),
        }
    }

    fn append_null(&mut self) {
        match self {
            Builder::Text(column) => column.append_null(),
            Builder::Int(column) => column.append_null(),
            Builder::Long(column) => column.append_null(),
            Builder::Calls(column) => column.append_null(),
            Builder::Usages(column) => column.append(None),
            Builder::Diagnostics(column) => column.append(None),
            Builder::Error => {}
        }
    }

    fn append(&mut self, column: Column, fold: &Fold, parser: &Parser) {
        match self {
            Builder::Text(builder) => builder.append_option(text_of(column, fold, parser)),
            Builder::Int(builder) => {
                builder.append_value(i32::try_from(fold.choices.len()).unwrap_or(i32::MAX));
            }
            Builder::Long(builder) => match column {
                Column::Created => builder.append_option(fold.created),
                _ => builder.append_value(long(parser.diagnostics_dropped())),
            },
            Builder::Calls(builder) => {
                let by_server = column == Column::ServerToolCalls;
                let calls = fold.calls.iter();
                let calls = calls.filter(|call| call.provider_executed == by_server);
                builder.append(calls, &fold.answered);
            }
            Builder::Usages(builder) => {
                let usage = fold.usage.as_ref().map(|(counts, raw)| Usage {
                    raw: raw.as_deref(),
                    ..*counts
                });
                builder.append(usage.as_ref());
            }
            Builder::Diagnostics(builder) => builder.append(Some(parser.diagnostics())),
            Builder::Error => {}
        }
    }

    fn finish(self) -> Result<Option<ArrayRef>, ArrowError> {
        Ok(Some(match self {
            Builder::Text(mut column) => Arc::new(column.finish()),
            Builder::Int(mut column) => Arc::new(column.finish()),
            Builder::Long(mut column) => Arc::new(column.finish()),
            Builder::Calls(column) => column.finish()?,
            Builder::Usages(column) => column.finish()?,
            Builder::Diagnostics(column) => column.finish()?,
            Builder::Error => return Ok(None),
        }))
    }
}

fn text_of<'a>(column: Column, fold: &'a Fold, parser: &Parser) -> Option<&'a str> {
    let finish = fold.finish.as_ref();
    match column {
        Column::Id => fold.id.as_deref(),
        Column::Model => fold.model.as_deref(),
        Column::Dialect => parser.dialect().map(Dialect::name),
        Column::Completeness => Some(parser.completeness().name()),
        Column::FinishReason => finish.map(|(reason, _)| *reason),
        Column::RawFinishReason => finish.and_then(|(_, raw)| raw.as_deref()),
        Column::Text => Some(&fold.text),
        Column::Reasoning => Some(&fold.reasoning),
        Column::Refusal => Some(&fold.refusal),
        _ => None,
    }
}

/// Builders of the columns, with one row for each body.
pub(crate) struct Rows<'a> {
    dialect: Option<Dialect>,
    config: &'a Arc<Config>,
    columns: &'a [Column],
    builders: Vec<Builder>,
    fold: Fold,
    row: usize,
    /// Faults of the failed rows, each with its row index.
    pub(crate) faults: Vec<(usize, Fault)>,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(
        dialect: Option<Dialect>,
        config: &'a Arc<Config>,
        columns: &'a [Column],
    ) -> Rows<'a> {
        Rows {
            dialect,
            config,
            columns,
            builders: columns.iter().map(|column| Builder::of(*column)).collect(),
            fold: Fold::default(),
            row: 0,
            faults: Vec::new(),
        }
    }

    /// Appends one row.
    pub(crate) fn read(&mut self, body: Option<&[u8]>) {
        match body {
            None => self.builders.iter_mut().for_each(Builder::append_null),
            Some(body) => self.read_body(body),
        }
        self.row += 1;
    }

    fn read_body(&mut self, body: &[u8]) {
        let mut parser = Parser::new(self.dialect, Arc::clone(self.config));
        self.fold.clear();
        let fold = &mut self.fold;
        let result = guarded(|| {
            let result = parser
                .feed(body, &mut Silent)
                .and_then(|()| parser.close(InputEnd::Clean, &mut Silent));
            parser.snapshot(fold);
            result
        });
        let mut fault = match result {
            Ok(result) => result.err(),
            Err(panic) => Some(super::internal(panic)),
        };
        if self.fold.size() > LARGEST {
            self.fold.clear();
            fault = Some(super::too_large(LARGEST));
        }
        let fault = fault
            .or_else(|| self.fold.sent.take().map(|sent| sent.fault(&parser)))
            .or_else(|| truncation(&parser));
        for (builder, column) in self.builders.iter_mut().zip(self.columns) {
            builder.append(*column, &self.fold, &parser);
        }
        self.faults.extend(fault.map(|fault| (self.row, fault)));
    }

    /// Returns the arrays in column order, with `None` for `error`.
    pub(crate) fn finish(self) -> Result<Vec<Option<ArrayRef>>, ArrowError> {
        self.builders.into_iter().map(Builder::finish).collect()
    }
}

impl SentError {
    /// Returns the fault that a stricter policy would have raised for this error, with its position in the stream.
    fn fault(self, parser: &Parser) -> Fault {
        let fault = Fault::upstream(self.code, self.kind, self.message, Vec::new());
        match diagnostic_of(parser, Code::UPSTREAM_ERROR) {
            Some(found) => fault.at(found.byte_offset, found.event_ordinal),
            None => fault,
        }
    }
}

/// Returns the fault that a stricter policy would have raised for a truncated stream, with its position in the stream.
fn truncation(parser: &Parser) -> Option<Fault> {
    if parser.completeness() != Completeness::Truncated {
        return None;
    }
    // If the list of stored diagnostics was full, the diagnostic is missing.
    let found = diagnostic_of(parser, Code::TRUNCATED);
    let column_position = found.and_then(|found| Where::from_name(&found.detail));
    let column_position = column_position.unwrap_or(Where::BetweenEvents);
    let fault = Fault::truncated(Code::TRUNCATED, column_position, Vec::new());
    Some(match found {
        Some(found) => fault.at(found.byte_offset, found.event_ordinal),
        None => fault,
    })
}

fn diagnostic_of(parser: &Parser, code: Code) -> Option<&Diagnostic> {
    parser.diagnostics().iter().find(|found| found.code == code)
}

/// Returns the error code and type that the gateway sent, if the fault is an upstream error.
pub(crate) fn sent(fault: &Fault) -> (Option<&str>, Option<&str>) {
    match &fault.extra {
        Extra::Upstream { code, kind, .. } => (code.as_deref(), kind.as_deref()),
        _ => (None, None),
    }
}
