//! Stores events by value, with their texts in a few shared buffers.
//!
//! A long read is parsed into a log, so that the interpreter can run other threads in the meantime. A response also
//! stores its events in a log until its members are read. This module does not use the interpreter or create Python
//! objects.

use std::mem;
use std::ops::{Deref, DerefMut, Range};
use std::slice;
use std::sync::{Mutex, MutexGuard, PoisonError};

use streamweld_core::model::event::Delta;
use streamweld_core::model::event::DeltaKind;
use streamweld_core::model::event::Deltas;
use streamweld_core::model::event::Event;
use streamweld_core::model::event::Mark;
use streamweld_core::model::event::Opened;
use streamweld_core::model::event::Parts;
use streamweld_core::model::event::Sink;
use streamweld_core::model::event::Usage;

use crate::delta::Kind;

/// Events in order. Deltas without metadata, the most frequent events, are stored separately from the others.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    pieces: Vec<Piece>,
    /// The texts of `pieces`, concatenated.
    piece_texts: String,
    others: Vec<StoredEvent>,
    /// The concatenated texts of `others`. `ends` contains the end of each text.
    texts: String,
    ends: Vec<usize>,
    bytes: Vec<u8>,
    names: Vec<String>,
}

/// A delta without metadata.
#[derive(Debug, Clone, Copy)]
struct Piece {
    kind: Kind,
    part: u32,
    choice: i32,
    /// Offset in `piece_texts` at which the delta's text ends.
    end: usize,
}

/// An event that is not a `Piece`. The log's buffers store the texts, bytes, and names of the event, so these values
/// are empty here.
///
/// An event has at most one value of type bytes and one list of names.
#[derive(Debug)]
struct StoredEvent {
    event: Event<'static>,
    /// Number of `Piece`s before this event.
    pieces: usize,
    /// Index of the event's first text in `ends`.
    first: usize,
    bytes: Range<usize>,
    names: Range<usize>,
}

/// Receives the events of a log.
pub(crate) trait Replay: Sink {
    /// Receives a delta without metadata.
    fn delta(&mut self, kind: Kind, part: u32, text: &str, choice: i32);
}

/// An unused log that the next call reuses to avoid memory allocation.
static SPARE: Mutex<Option<EventLog>> = Mutex::new(None);

/// Maximum size, in bytes, of a log to keep for reuse. A log for a 64 KiB read is smaller.
const SPARE_BYTES: usize = 1 << 19;

/// A log borrowed for one call.
#[derive(Debug)]
pub(crate) struct Borrowed(EventLog);

impl Deref for Borrowed {
    type Target = EventLog;

    fn deref(&self) -> &EventLog {
        &self.0
    }
}

impl DerefMut for Borrowed {
    fn deref_mut(&mut self) -> &mut EventLog {
        &mut self.0
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if self.0.capacity() <= SPARE_BYTES {
            self.0.clear();
            *spare() = Some(mem::take(&mut self.0));
        }
    }
}

/// Locks `SPARE`. The lock is held only while a log is taken or stored.
fn spare() -> MutexGuard<'static, Option<EventLog>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl EventLog {
    /// Borrows an empty log for one call.
    pub(crate) fn borrow() -> Borrowed {
        let spare = spare().take();
        Borrowed(spare.unwrap_or_default())
    }

    /// Removes all events but keeps the memory.
    fn clear(&mut self) {
        self.pieces.clear();
        self.piece_texts.clear();
        self.others.clear();
        self.texts.clear();
        self.ends.clear();
        self.bytes.clear();
        self.names.clear();
    }

    /// Returns the number of bytes that the buffers occupy.
    fn capacity(&self) -> usize {
        self.pieces.capacity() * size_of::<Piece>()
            + self.others.capacity() * size_of::<StoredEvent>()
            + self.ends.capacity() * size_of::<usize>()
            + self.names.capacity() * size_of::<String>()
            + self.piece_texts.capacity()
            + self.texts.capacity()
            + self.bytes.capacity()
    }

    /// Returns the number of events.
    pub(crate) fn len(&self) -> usize {
        self.pieces.len() + self.others.len()
    }

    /// Passes all events to the receiver, in order. Deltas without metadata are passed to the receiver's `delta`
    /// method.
    pub(crate) fn replay<S: Replay>(&self, sink: &mut S) {
        let mut start = 0;
        let mut passed = 0;
        let mut pass = |sink: &mut S, until: usize| {
            for piece in self.pieces.get(passed..until).unwrap_or_default() {
                let text = self.piece_texts.get(start..piece.end);
                start = piece.end;
                let Piece {
                    kind, part, choice, ..
                } = *piece;
                sink.delta(kind, part, text.unwrap_or_default(), choice);
            }
            passed = until;
        };
        for kept in &self.others {
            pass(sink, kept.pieces);
            sink.event(&self.restored(kept));
        }
        pass(sink, self.pieces.len());
    }

    /// Returns the event at this position. Positions do not count deltas without metadata.
    pub(crate) fn other(&self, position: usize) -> Option<Event<'_>> {
        self.others.get(position).map(|kept| self.restored(kept))
    }

    /// Yields the events, except deltas without metadata.
    pub(crate) fn others(&self) -> impl ExactSizeIterator<Item = Event<'_>> {
        self.others.iter().map(|kept| self.restored(kept))
    }

    fn restored<'a>(&'a self, kept: &'a StoredEvent) -> Event<'a> {
        let before = kept.first.checked_sub(1);
        let start = before.and_then(|before| self.ends.get(before));
        let mut reading = Reading {
            log: self,
            kept,
            start: start.copied().unwrap_or_default(),
            ends: self.ends.get(kept.first..).unwrap_or_default().iter(),
        };
        rebuilt(&kept.event, &mut reading)
    }
}

impl Sink for EventLog {
    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        let (kind, delta) = match event {
            Event::TextDelta(delta) => (Kind::Text, delta),
            Event::ToolCallDelta(delta) => (Kind::Arguments, delta),
            Event::ReasoningDelta(delta) => (Kind::Reasoning, delta),
            _ => return self.keep(event),
        };
        if delta.metadata.is_some() {
            return self.keep(event);
        }
        self.piece_texts.push_str(delta.text);
        self.pieces.push(Piece {
            kind,
            part: delta.part,
            choice: delta.choice,
            end: self.piece_texts.len(),
        });
    }

    fn deltas(&mut self, deltas: &Deltas<'_>) {
        let Deltas {
            kind,
            choice,
            parts,
            texts,
            ends,
        } = *deltas;
        let kind = match kind {
            DeltaKind::Text => Kind::Text,
            DeltaKind::Reasoning => Kind::Reasoning,
            DeltaKind::ToolCall => Kind::Arguments,
            DeltaKind::Refusal => return deltas.each(|event| self.event(event)),
        };
        let start = self.piece_texts.len();
        // `texts` may contain more than the texts that end at `ends`.
        let length = ends.last().copied().unwrap_or_default();
        self.piece_texts
            .push_str(texts.get(..length).unwrap_or_default());
        let piece = |part, end: usize| Piece {
            kind,
            part,
            choice,
            end: start + end,
        };
        match parts {
            Parts::One(part) => {
                let pieces = ends.iter().map(|end| piece(part, *end));
                self.pieces.extend(pieces);
            }
            Parts::Each(parts) => {
                let pieces = parts.iter().zip(ends);
                self.pieces
                    .extend(pieces.map(|(part, end)| piece(*part, *end)));
            }
        }
    }
}

impl EventLog {
    fn keep(&mut self, event: &Event<'_>) {
        let (first, bytes, names) = (self.ends.len(), self.bytes.len(), self.names.len());
        let event = rebuilt(event, &mut Writing { log: self });
        self.others.push(StoredEvent {
            event,
            pieces: self.pieces.len(),
            first,
            bytes: bytes..self.bytes.len(),
            names: names..self.names.len(),
        });
    }
}

/// Supplies replacements for an event's borrowed values, in the order in which `rebuilt` requests them.
trait Values<'b> {
    fn text(&mut self, text: &str) -> &'b str;
    fn bytes(&mut self, bytes: &[u8]) -> &'b [u8];
    fn names(&mut self, names: &[String]) -> &'b [String];

    #[inline]
    fn optional(&mut self, text: Option<&str>) -> Option<&'b str> {
        text.map(|text| self.text(text))
    }
}

/// Copies the values into the log's buffers, and returns empty values as replacements.
struct Writing<'l> {
    log: &'l mut EventLog,
}

impl Values<'static> for Writing<'_> {
    #[inline]
    fn text(&mut self, text: &str) -> &'static str {
        self.log.texts.push_str(text);
        self.log.ends.push(self.log.texts.len());
        ""
    }

    fn bytes(&mut self, bytes: &[u8]) -> &'static [u8] {
        self.log.bytes.extend_from_slice(bytes);
        &[]
    }

    #[inline]
    fn names(&mut self, names: &[String]) -> &'static [String] {
        self.log.names.extend_from_slice(names);
        &[]
    }
}

/// Returns the values from the log's buffers.
struct Reading<'l> {
    log: &'l EventLog,
    kept: &'l StoredEvent,
    /// The start of the next text, and the ends of that text and all later texts.
    start: usize,
    ends: slice::Iter<'l, usize>,
}

impl<'l> Values<'l> for Reading<'l> {
    #[inline]
    fn text(&mut self, _: &str) -> &'l str {
        let end = self.ends.next().copied().unwrap_or(self.start);
        let text = self.log.texts.get(self.start..end).unwrap_or_default();
        self.start = end;
        text
    }

    fn bytes(&mut self, _: &[u8]) -> &'l [u8] {
        let bytes = self.log.bytes.get(self.kept.bytes.clone());
        bytes.unwrap_or_default()
    }

    #[inline]
    fn names(&mut self, _: &[String]) -> &'l [String] {
        let names = self.log.names.get(self.kept.names.clone());
        names.unwrap_or_default()
    }
}

/// Returns the event with its texts, bytes, and names replaced by those of `values`.
fn rebuilt<'b>(event: &Event<'_>, values: &mut impl Values<'b>) -> Event<'b> {
    match *event {
        Event::TextStarted(opened) => Event::TextStarted(rebuilt_opened(opened, values)),
        Event::RefusalStarted(mark) => Event::RefusalStarted(rebuilt_mark(mark, values)),
        Event::ToolCallReset(mark) => Event::ToolCallReset(rebuilt_mark(mark, values)),
        Event::ToolCallRetracted(mark) => Event::ToolCallRetracted(rebuilt_mark(mark, values)),
        Event::TextDelta(delta) => Event::TextDelta(rebuilt_delta(delta, values)),
        Event::ReasoningDelta(delta) => Event::ReasoningDelta(rebuilt_delta(delta, values)),
        Event::RefusalDelta(delta) => Event::RefusalDelta(rebuilt_delta(delta, values)),
        Event::RefusalDone(delta) => Event::RefusalDone(rebuilt_delta(delta, values)),
        Event::ToolCallDelta(delta) => Event::ToolCallDelta(rebuilt_delta(delta, values)),
        Event::Usage(usage) => Event::Usage(Usage {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            total_tokens: usage.total_tokens,
            cached_input_tokens: usage.cached_input_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            reasoning_tokens: usage.reasoning_tokens,
            raw: values.optional(usage.raw),
        }),
        Event::ResponseStarted {
            id,
            model,
            created,
            metadata,
        } => Event::ResponseStarted {
            id: values.optional(id),
            model: values.optional(model),
            created,
            metadata: values.optional(metadata),
        },
        Event::TextDone {
            part,
            text,
            annotations,
            choice,
            metadata,
        } => Event::TextDone {
            part,
            text: values.text(text),
            annotations: values.optional(annotations),
            choice,
            metadata: values.optional(metadata),
        },
        Event::ReasoningStarted {
            part,
            kind,
            item_id,
            choice,
            metadata,
        } => Event::ReasoningStarted {
            part,
            kind,
            item_id: values.optional(item_id),
            choice,
            metadata: values.optional(metadata),
        },
        Event::ReasoningDone {
            part,
            text,
            kind,
            item_id,
            signature,
            encrypted_content,
            choice,
            metadata,
        } => Event::ReasoningDone {
            part,
            text: values.text(text),
            kind,
            item_id: values.optional(item_id),
            signature: values.optional(signature),
            encrypted_content: values.optional(encrypted_content),
            choice,
            metadata: values.optional(metadata),
        },
        Event::ToolCallStarted {
            part,
            call_id,
            item_id,
            name,
            provider_executed,
            custom,
            choice,
            metadata,
        } => Event::ToolCallStarted {
            part,
            call_id: values.optional(call_id),
            item_id: values.optional(item_id),
            name: values.text(name),
            provider_executed,
            custom,
            choice,
            metadata: values.optional(metadata),
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
            raw_text,
            choice,
            metadata,
        } => Event::ToolCall {
            part,
            call_id: values.text(call_id),
            name: values.text(name),
            arguments: values.text(arguments),
            state,
            item_id: values.optional(item_id),
            reason,
            raw_arguments: values.optional(raw_arguments),
            provider_executed,
            aliases: values.names(aliases),
            custom,
            raw_text: values.optional(raw_text),
            choice,
            metadata: values.optional(metadata),
        },
        Event::ToolResult {
            part,
            call_id,
            output,
            is_error,
            choice,
            metadata,
        } => Event::ToolResult {
            part,
            call_id: values.text(call_id),
            output: values.text(output),
            is_error,
            choice,
            metadata: values.optional(metadata),
        },
        Event::ToolResultDelta {
            part,
            call_id,
            output,
            choice,
        } => Event::ToolResultDelta {
            part,
            call_id: values.text(call_id),
            output: values.text(output),
            choice,
        },
        Event::Source {
            part,
            url,
            title,
            document,
            choice,
            metadata,
        } => Event::Source {
            part,
            url: values.optional(url),
            title: values.optional(title),
            document: values.optional(document),
            choice,
            metadata: values.optional(metadata),
        },
        Event::File {
            part,
            media_type,
            data,
            url,
            choice,
            metadata,
        } => Event::File {
            part,
            media_type: values.optional(media_type),
            data: values.optional(data),
            url: values.optional(url),
            choice,
            metadata: values.optional(metadata),
        },
        Event::ProviderItem {
            part,
            kind,
            value,
            item_id,
            choice,
        } => Event::ProviderItem {
            part,
            kind,
            value: values.text(value),
            item_id: values.optional(item_id),
            choice,
        },
        Event::Finished {
            reason,
            raw_reason,
            choice,
            metadata,
        } => Event::Finished {
            reason,
            raw_reason: values.optional(raw_reason),
            choice,
            metadata: values.optional(metadata),
        },
        Event::UpstreamError {
            code,
            kind,
            message,
            raw,
        } => Event::UpstreamError {
            code: values.optional(code),
            kind: values.optional(kind),
            message: values.text(message),
            raw: values.bytes(raw),
        },
        Event::Diagnostic {
            code,
            severity,
            byte_offset,
            event_ordinal,
            part,
            detail,
        } => Event::Diagnostic {
            code,
            severity,
            byte_offset,
            event_ordinal,
            part,
            detail: values.text(detail),
        },
        Event::Unknown { event, raw } => Event::Unknown {
            event: values.optional(event),
            raw: values.bytes(raw),
        },
    }
}

fn rebuilt_delta<'b>(delta: Delta<'_>, values: &mut impl Values<'b>) -> Delta<'b> {
    Delta {
        part: delta.part,
        text: values.text(delta.text),
        choice: delta.choice,
        metadata: values.optional(delta.metadata),
    }
}

fn rebuilt_mark<'b>(mark: Mark<'_>, values: &mut impl Values<'b>) -> Mark<'b> {
    Mark {
        part: mark.part,
        choice: mark.choice,
        metadata: values.optional(mark.metadata),
    }
}

fn rebuilt_opened<'b>(opened: Opened<'_>, values: &mut impl Values<'b>) -> Opened<'b> {
    Opened {
        part: opened.part,
        item_id: values.optional(opened.item_id),
        choice: opened.choice,
        metadata: values.optional(opened.metadata),
    }
}
