//! Implements `events`: converts one body into one row per event, with the fields of `streamweld.events` as columns.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Int32Builder, Int64Builder, StringBuilder,
};
use arrow_schema::ArrowError;

use super::nested::{Strings, Usages, long, number};
use super::schema::event_fields;
use super::{Config, Delta, Dialect, Event, Fault, InputEnd, Mark, Opened, Parser, Sink, Usage};
use crate::errors::guarded;

macro_rules! cells {
    (text: $($text:ident)+; int: $($int:ident)+; long: $($long:ident)+; flag: $($flag:ident)+;) => {
        /// The fields of one event. A field is null if the event does not have it.
        #[derive(Default)]
        struct Cells<'a> {
            $($text: Option<&'a str>,)+
            $($int: Option<i32>,)+
            $($long: Option<i64>,)+
            $($flag: Option<bool>,)+
            aliases: Option<&'a [String]>,
            usage: Option<Usage<'a>>,
            raw: Option<&'a [u8]>,
        }

        /// The column builders. The column `message` is added after the batch, from `EventRows::messages`.
        struct Columns {
            $($text: StringBuilder,)+
            $($int: Int32Builder,)+
            $($long: Int64Builder,)+
            $($flag: BooleanBuilder,)+
            aliases: Strings,
            usage: Usages,
            raw: BinaryBuilder,
        }

        impl Columns {
            fn new() -> Columns {
                Columns {
                    $($text: StringBuilder::new(),)+
                    $($int: Int32Builder::new(),)+
                    $($long: Int64Builder::new(),)+
                    $($flag: BooleanBuilder::new(),)+
                    aliases: Strings::new(),
                    usage: Usages::new(),
                    raw: BinaryBuilder::new(),
                }
            }

            fn append(&mut self, cells: &Cells<'_>) {
                $(self.$text.append_option(cells.$text);)+
                $(self.$int.append_option(cells.$int);)+
                $(self.$long.append_option(cells.$long);)+
                $(self.$flag.append_option(cells.$flag);)+
                self.aliases.append(cells.aliases);
                self.usage.append(cells.usage.as_ref());
                self.raw.append_option(cells.raw);
            }

            fn finish(mut self) -> Result<Vec<(&'static str, ArrayRef)>, ArrowError> {
                Ok(vec![
                    $((stringify!($text), Arc::new(self.$text.finish())),)+
                    $((stringify!($int), Arc::new(self.$int.finish())),)+
                    $((stringify!($long), Arc::new(self.$long.finish())),)+
                    $((stringify!($flag), Arc::new(self.$flag.finish())),)+
                    ("aliases", self.aliases.finish()?),
                    ("usage", self.usage.finish()?),
                    ("raw", Arc::new(self.raw.finish())),
                ])
            }
        }
    };
}

cells! {
    text: r#type text call_id item_id name arguments raw_arguments state kind reason raw_reason response_id model signature
        encrypted_content annotations output value url title document media_type data code severity detail event
        provider_metadata;
    int: position choice part;
    long: row created byte_offset event_ordinal;
    flag: provider_executed custom is_error;
}

/// A value of the column `message`.
pub(crate) enum Message {
    /// The message that the gateway sent.
    Sent(String),
    /// The reason why the row failed.
    Fault(Fault),
}

/// Builders of the columns for the events of some rows.
pub(crate) struct EventRows<'a> {
    dialect: Option<Dialect>,
    config: &'a Arc<Config>,
    columns: Columns,
    /// Number of the next input row.
    row: i64,
    position: i32,
    /// Number of events in each input row.
    pub(crate) counts: Vec<usize>,
    total: usize,
    /// The messages, with the indexes of their events.
    pub(crate) messages: Vec<(usize, Message)>,
}

impl<'a> EventRows<'a> {
    /// Creates builders. `row` is the number of the first input row.
    pub(crate) fn new(
        dialect: Option<Dialect>,
        config: &'a Arc<Config>,
        row: i64,
    ) -> EventRows<'a> {
        EventRows {
            dialect,
            config,
            columns: Columns::new(),
            row,
            position: 0,
            counts: Vec::new(),
            total: 0,
            messages: Vec::new(),
        }
    }

    /// Appends the events of one row. A null row has no events.
    pub(crate) fn read(&mut self, body: Option<&[u8]>) {
        let before = self.total;
        self.position = 0;
        if let Some(body) = body {
            let mut parser = Parser::new(self.dialect, Arc::clone(self.config));
            let result = guarded(|| {
                parser
                    .feed(body, self)
                    .and_then(|()| parser.close(InputEnd::Clean, self))
            });
            let fault = match result {
                Ok(result) => result.err(),
                Err(panic) => Some(super::internal(panic)),
            };
            if let Some(fault) = fault {
                self.fail(fault);
            }
        }
        self.counts.push(self.total - before);
        self.row += 1;
    }

    /// Ends a failed row with an event of type `error`, because no exception can be raised for a single row.
    fn fail(&mut self, fault: Fault) {
        let cells = Cells {
            r#type: Some("error"),
            code: Some(fault.rule),
            detail: Some(&fault.detail),
            byte_offset: fault.placed.then(|| long(fault.byte_offset)),
            event_ordinal: fault.placed.then(|| long(fault.event_ordinal)),
            ..Cells::default()
        };
        self.append(cells);
        self.messages.push((self.total - 1, Message::Fault(fault)));
    }

    fn append(&mut self, mut cells: Cells<'_>) {
        cells.row = Some(self.row);
        cells.position = Some(self.position);
        self.columns.append(&cells);
        self.position = self.position.saturating_add(1);
        self.total += 1;
    }

    /// Returns the arrays in schema order, with `None` for `message`.
    pub(crate) fn finish(self) -> Result<Vec<Option<ArrayRef>>, ArrowError> {
        let mut built = self.columns.finish()?;
        let fields = event_fields();
        let take = |field: &Arc<arrow_schema::Field>| {
            let named =
                |(name, _): &(&str, ArrayRef)| name.trim_start_matches("r#") == field.name();
            let column_position = built.iter().position(named)?;
            Some(built.swap_remove(column_position).1)
        };
        Ok(fields.iter().map(take).collect())
    }
}

fn delta<'a>(kind: &'static str, delta: &Delta<'a>) -> Cells<'a> {
    Cells {
        r#type: Some(kind),
        part: Some(number(delta.part)),
        choice: Some(delta.choice),
        text: Some(delta.text),
        provider_metadata: delta.metadata,
        ..Cells::default()
    }
}

fn mark<'a>(kind: &'static str, mark: &Mark<'a>) -> Cells<'a> {
    Cells {
        r#type: Some(kind),
        part: Some(number(mark.part)),
        choice: Some(mark.choice),
        provider_metadata: mark.metadata,
        ..Cells::default()
    }
}

/// Returns the fields of an event, except `message`.
fn cells<'a>(event: &Event<'a>) -> Cells<'a> {
    match *event {
        Event::ResponseStarted {
            id,
            model,
            created,
            metadata,
        } => Cells {
            r#type: Some("response_started"),
            response_id: id,
            model,
            created,
            provider_metadata: metadata,
            ..Cells::default()
        },
        Event::TextStarted(Opened {
            part,
            item_id,
            choice,
            metadata,
        }) => Cells {
            r#type: Some("text_started"),
            part: Some(number(part)),
            item_id,
            choice: Some(choice),
            provider_metadata: metadata,
            ..Cells::default()
        },
        Event::TextDelta(ref text) => delta("text_delta", text),
        Event::TextDone {
            part,
            text,
            annotations,
            choice,
            metadata,
        } => Cells {
            r#type: Some("text_done"),
            part: Some(number(part)),
            text: Some(text),
            annotations,
            choice: Some(choice),
            provider_metadata: metadata,
            ..Cells::default()
        },
        Event::ReasoningStarted {
            part,
            kind,
            item_id,
            choice,
            metadata,
        } => Cells {
            r#type: Some("reasoning_started"),
            part: Some(number(part)),
            kind: Some(kind),
            item_id,
            choice: Some(choice),
            provider_metadata: metadata,
            ..Cells::default()
        },
        Event::ReasoningDelta(ref text) => delta("reasoning_delta", text),
        Event::ReasoningDone {
            part,
            text,
            kind,
            item_id,
            signature,
            encrypted_content,
            choice,
            metadata,
        } => Cells {
            r#type: Some("reasoning_done"),
            part: Some(number(part)),
            text: Some(text),
            kind: Some(kind),
            item_id,
            signature,
            encrypted_content,
            choice: Some(choice),
            provider_metadata: metadata,
            ..Cells::default()
        },
        Event::RefusalStarted(ref at) => mark("refusal_started", at),
        Event::RefusalDelta(ref text) => delta("refusal_delta", text),
        Event::RefusalDone(ref text) => delta("refusal_done", text),
        Event::ToolCallStarted {
            part,
            call_id,
            item_id,
            name,
            choice,
            metadata,
            ..
        } => Cells {
            r#type: Some("tool_call_started"),
            part: Some(number(part)),
            call_id,
            item_id,
            name: Some(name),
            choice: Some(choice),
            provider_metadata: metadata,
            ..Cells::default()
        },
        Event::ToolCallDelta(ref piece) => Cells {
            text: None,
            arguments: Some(piece.text),
            ..delta("tool_call_delta", piece)
        },
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
            metadata,
            ..
        } => Cells {
            r#type: Some("tool_call"),
            part: Some(number(part)),
            call_id: Some(call_id),
            name: Some(name),
            arguments: Some(arguments),
            state: Some(state),
            item_id,
            reason,
            raw_arguments,
            provider_executed: Some(provider_executed),
            aliases: Some(aliases),
            custom: Some(custom),
            choice: Some(choice),
            provider_metadata: metadata,
            ..Cells::default()
        },
        Event::ToolCallReset(ref at) => mark("tool_call_reset", at),
        Event::ToolCallRetracted(ref at) => mark("tool_call_retracted", at),
        Event::ToolResult {
            part,
            call_id,
            output,
            is_error,
            choice,
            metadata,
        } => Cells {
            r#type: Some("tool_result"),
            part: Some(number(part)),
            call_id: Some(call_id),
            output: Some(output),
            is_error: Some(is_error),
            choice: Some(choice),
            provider_metadata: metadata,
            ..Cells::default()
        },
        Event::ToolResultDelta {
            part,
            call_id,
            output,
            choice,
        } => Cells {
            r#type: Some("tool_result_delta"),
            part: Some(number(part)),
            call_id: Some(call_id),
            output: Some(output),
            choice: Some(choice),
            ..Cells::default()
        },
        Event::Source {
            part,
            url,
            title,
            document,
            choice,
            metadata,
        } => Cells {
            r#type: Some("source"),
            part: Some(number(part)),
            url,
            title,
            document,
            choice: Some(choice),
            provider_metadata: metadata,
            ..Cells::default()
        },
        Event::File {
            part,
            media_type,
            data,
            url,
            choice,
            metadata,
        } => Cells {
            r#type: Some("file"),
            part: Some(number(part)),
            media_type,
            data,
            url,
            choice: Some(choice),
            provider_metadata: metadata,
            ..Cells::default()
        },
        Event::ProviderItem {
            part,
            kind,
            value,
            item_id,
            choice,
        } => Cells {
            r#type: Some("provider_item"),
            part: Some(number(part)),
            kind: Some(kind),
            value: Some(value),
            item_id,
            choice: Some(choice),
            ..Cells::default()
        },
        Event::Usage(usage) => Cells {
            r#type: Some("usage"),
            usage: Some(usage),
            ..Cells::default()
        },
        Event::Finished {
            reason,
            raw_reason,
            choice,
            metadata,
        } => Cells {
            r#type: Some("finished"),
            reason: Some(reason),
            raw_reason,
            choice: Some(choice),
            provider_metadata: metadata,
            ..Cells::default()
        },
        Event::UpstreamError {
            code, kind, raw, ..
        } => Cells {
            r#type: Some("upstream_error_event"),
            code,
            kind,
            raw: Some(raw),
            ..Cells::default()
        },
        Event::Diagnostic {
            code,
            severity,
            byte_offset,
            event_ordinal,
            part,
            detail,
        } => Cells {
            r#type: Some("diagnostic"),
            code: Some(code),
            severity: Some(severity),
            byte_offset: Some(long(byte_offset)),
            event_ordinal: Some(long(event_ordinal)),
            part: part.map(number),
            detail: Some(detail),
            ..Cells::default()
        },
        Event::Unknown { event, raw } => Cells {
            r#type: Some("unknown"),
            event,
            raw: Some(raw),
            ..Cells::default()
        },
    }
}

impl Sink for EventRows<'_> {
    fn event(&mut self, event: &Event<'_>) {
        self.append(cells(event));
        if let Event::UpstreamError { message, .. } = event {
            let message = Message::Sent((*message).to_owned());
            self.messages.push((self.total - 1, message));
        }
    }
}
