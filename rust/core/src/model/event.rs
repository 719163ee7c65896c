//! The events of a stream as borrowed values, and the `Sink` trait that receives them.
//!
//! The names, the fields, and their order are those of `_spec/events.json`. An event is valid only during the call to
//! its sink. A receiver that stores an event must copy it. `metadata`, `raw` and similar fields are JSON text that has
//! already been validated.

use crate::json::Raw;
use crate::model::delta::Channel;
use crate::model::fault::Fault;
use crate::model::unmodelled::Unmodelled;

/// One event. `metadata` is the text of a JSON object with the unmodeled members of the payload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event<'a> {
    ResponseStarted {
        id: Option<&'a str>,
        model: Option<&'a str>,
        created: Option<i64>,
        metadata: Option<&'a str>,
    },
    TextStarted(Opened<'a>),
    TextDelta(Delta<'a>),
    TextDone {
        part: u32,
        text: &'a str,
        /// The text of a JSON array.
        annotations: Option<&'a str>,
        choice: i32,
        metadata: Option<&'a str>,
    },
    ReasoningStarted {
        part: u32,
        kind: &'static str,
        item_id: Option<&'a str>,
        choice: i32,
        metadata: Option<&'a str>,
    },
    ReasoningDelta(Delta<'a>),
    ReasoningDone {
        part: u32,
        text: &'a str,
        kind: &'static str,
        item_id: Option<&'a str>,
        signature: Option<&'a str>,
        encrypted_content: Option<&'a str>,
        choice: i32,
        metadata: Option<&'a str>,
    },
    RefusalStarted(Mark<'a>),
    RefusalDelta(Delta<'a>),
    RefusalDone(Delta<'a>),
    ToolCallStarted {
        part: u32,
        call_id: Option<&'a str>,
        item_id: Option<&'a str>,
        name: &'a str,
        /// The value that is known when the event is emitted. `ToolCall` contains the final value. Only encoders use
        /// this field, and the public event does not have it.
        provider_executed: bool,
        /// The value that is known when the event is emitted. Only encoders use this field.
        custom: bool,
        choice: i32,
        metadata: Option<&'a str>,
    },
    /// `text` is a piece of the arguments.
    ToolCallDelta(Delta<'a>),
    ToolCall {
        part: u32,
        call_id: &'a str,
        name: &'a str,
        arguments: &'a str,
        state: &'static str,
        item_id: Option<&'a str>,
        reason: Option<&'static str>,
        raw_arguments: Option<&'a str>,
        provider_executed: bool,
        aliases: &'a [String],
        /// The arguments are free-form text, not JSON.
        custom: bool,
        /// The original text of the block, if the call was found in text.
        raw_text: Option<&'a str>,
        choice: i32,
        metadata: Option<&'a str>,
    },
    ToolCallReset(Mark<'a>),
    ToolCallRetracted(Mark<'a>),
    ToolResult {
        part: u32,
        call_id: &'a str,
        /// JSON text.
        output: &'a str,
        is_error: bool,
        choice: i32,
        metadata: Option<&'a str>,
    },
    ToolResultDelta {
        part: u32,
        call_id: &'a str,
        /// The piece as sent, as JSON text.
        output: &'a str,
        choice: i32,
    },
    Source {
        part: u32,
        url: Option<&'a str>,
        title: Option<&'a str>,
        /// JSON text.
        document: Option<&'a str>,
        choice: i32,
        metadata: Option<&'a str>,
    },
    File {
        part: u32,
        media_type: Option<&'a str>,
        data: Option<&'a str>,
        url: Option<&'a str>,
        choice: i32,
        metadata: Option<&'a str>,
    },
    ProviderItem {
        part: u32,
        /// The type of the item or block on the wire.
        kind: &'static str,
        /// The item or block as sent, as JSON text.
        value: &'a str,
        item_id: Option<&'a str>,
        choice: i32,
    },
    Usage(Usage<'a>),
    Finished {
        reason: &'static str,
        raw_reason: Option<&'a str>,
        choice: i32,
        metadata: Option<&'a str>,
    },
    UpstreamError {
        code: Option<&'a str>,
        kind: Option<&'a str>,
        message: &'a str,
        raw: &'a [u8],
    },
    Diagnostic {
        code: &'static str,
        severity: &'static str,
        byte_offset: u64,
        event_ordinal: u64,
        part: Option<u32>,
        detail: &'a str,
    },
    Unknown {
        event: Option<&'a str>,
        raw: &'a [u8],
    },
}

impl<'a> Event<'a> {
    /// Returns true if the event is a piece of a part's content.
    #[inline]
    pub fn is_delta(&self) -> bool {
        matches!(
            self,
            Event::TextDelta(_)
                | Event::ReasoningDelta(_)
                | Event::RefusalDelta(_)
                | Event::ToolCallDelta(_)
                | Event::ToolResultDelta { .. }
        )
    }

    /// Returns the index of the choice that the event belongs to, or `None` if the event concerns the whole stream.
    #[inline]
    pub fn choice(&self) -> Option<i32> {
        Some(match *self {
            Event::TextStarted(Opened { choice, .. })
            | Event::TextDelta(Delta { choice, .. })
            | Event::TextDone { choice, .. }
            | Event::ReasoningStarted { choice, .. }
            | Event::ReasoningDelta(Delta { choice, .. })
            | Event::ReasoningDone { choice, .. }
            | Event::RefusalStarted(Mark { choice, .. })
            | Event::RefusalDelta(Delta { choice, .. })
            | Event::RefusalDone(Delta { choice, .. })
            | Event::ToolCallStarted { choice, .. }
            | Event::ToolCallDelta(Delta { choice, .. })
            | Event::ToolCall { choice, .. }
            | Event::ToolCallReset(Mark { choice, .. })
            | Event::ToolCallRetracted(Mark { choice, .. })
            | Event::ToolResult { choice, .. }
            | Event::ToolResultDelta { choice, .. }
            | Event::Source { choice, .. }
            | Event::File { choice, .. }
            | Event::ProviderItem { choice, .. }
            | Event::Finished { choice, .. } => choice,
            _ => return None,
        })
    }

    /// Returns the unmodeled members of the payload, as the text of a JSON object.
    #[inline]
    pub fn metadata(&self) -> Option<&'a str> {
        match *self {
            Event::ResponseStarted { metadata, .. }
            | Event::TextStarted(Opened { metadata, .. })
            | Event::TextDelta(Delta { metadata, .. })
            | Event::TextDone { metadata, .. }
            | Event::ReasoningStarted { metadata, .. }
            | Event::ReasoningDelta(Delta { metadata, .. })
            | Event::ReasoningDone { metadata, .. }
            | Event::RefusalStarted(Mark { metadata, .. })
            | Event::RefusalDelta(Delta { metadata, .. })
            | Event::RefusalDone(Delta { metadata, .. })
            | Event::ToolCallStarted { metadata, .. }
            | Event::ToolCallDelta(Delta { metadata, .. })
            | Event::ToolCall { metadata, .. }
            | Event::ToolCallReset(Mark { metadata, .. })
            | Event::ToolCallRetracted(Mark { metadata, .. })
            | Event::ToolResult { metadata, .. }
            | Event::Source { metadata, .. }
            | Event::File { metadata, .. }
            | Event::Finished { metadata, .. } => metadata,
            _ => None,
        }
    }
}

/// The fields of an event that concerns a part but contains no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark<'a> {
    pub part: u32,
    pub choice: i32,
    pub metadata: Option<&'a str>,
}

/// The fields of an event that opens a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened<'a> {
    pub part: u32,
    pub item_id: Option<&'a str>,
    pub choice: i32,
    pub metadata: Option<&'a str>,
}

/// The fields of an event with text. The text is a piece of the part's text or, in `…Done` events, the whole text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delta<'a> {
    pub part: u32,
    pub text: &'a str,
    pub choice: i32,
    pub metadata: Option<&'a str>,
}

/// The type of a delta event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeltaKind {
    Text,
    Reasoning,
    Refusal,
    ToolCall,
}

impl From<Channel> for DeltaKind {
    #[inline]
    fn from(channel: Channel) -> DeltaKind {
        match channel {
            Channel::Text => DeltaKind::Text,
            Channel::Reasoning => DeltaKind::Reasoning,
            Channel::Refusal => DeltaKind::Refusal,
        }
    }
}

impl DeltaKind {
    #[inline]
    pub fn event(self, delta: Delta<'_>) -> Event<'_> {
        match self {
            DeltaKind::Text => Event::TextDelta(delta),
            DeltaKind::Reasoning => Event::ReasoningDelta(delta),
            DeltaKind::Refusal => Event::RefusalDelta(delta),
            DeltaKind::ToolCall => Event::ToolCallDelta(delta),
        }
    }
}

/// The part numbers of several consecutive deltas.
#[derive(Debug, Clone, Copy)]
pub enum Parts<'a> {
    /// All deltas belong to this part.
    One(u32),
    /// Each number is the part number of the delta at the same position.
    Each(&'a [u32]),
}

/// Several consecutive deltas of the same kind and choice, without metadata.
#[derive(Debug, Clone, Copy)]
pub struct Deltas<'a> {
    pub kind: DeltaKind,
    pub choice: i32,
    pub parts: Parts<'a>,
    /// The concatenated texts of all deltas. `ends` contains the end offset of each text.
    pub texts: &'a str,
    pub ends: &'a [usize],
}

impl<'a> Deltas<'a> {
    #[inline]
    pub fn texts(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let (texts, mut start) = (self.texts, 0);
        self.ends.iter().map(move |end| {
            let text = texts.get(start..*end).unwrap_or_default();
            start = *end;
            text
        })
    }

    /// Calls `give` with the event of each delta, in the order of the deltas.
    pub fn each(&self, mut give: impl FnMut(&Event<'_>)) {
        for (position, text) in self.texts().enumerate() {
            give(&self.kind.event(Delta {
                part: self.parts.of(position),
                text,
                choice: self.choice,
                metadata: None,
            }));
        }
    }
}

impl Parts<'_> {
    #[inline]
    pub fn of(&self, position: usize) -> u32 {
        match self {
            Parts::One(part) => *part,
            Parts::Each(parts) => parts.get(position).copied().unwrap_or_default(),
        }
    }

    /// Returns true if the predicate holds for at least one of the parts.
    pub fn any(&self, mut such: impl FnMut(u32) -> bool) -> bool {
        match self {
            Parts::One(part) => such(*part),
            Parts::Each(parts) => parts.iter().any(|part| such(*part)),
        }
    }
}

/// Token counts. `raw` is the JSON text of the received usage object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage<'a> {
    pub input_tokens: Option<i64>,
    pub output_tokens: Option<i64>,
    pub total_tokens: Option<i64>,
    pub cached_input_tokens: Option<i64>,
    pub cache_write_tokens: Option<i64>,
    pub reasoning_tokens: Option<i64>,
    pub raw: Option<&'a str>,
}

impl Usage<'_> {
    /// Returns true if every count is absent or zero. Counts that are all absent or zero never replace earlier counts.
    pub fn is_blank(&self) -> bool {
        let numbers = [
            self.input_tokens,
            self.output_tokens,
            self.total_tokens,
            self.cached_input_tokens,
            self.cache_write_tokens,
            self.reasoning_tokens,
        ];
        numbers.iter().flatten().all(|number| *number == 0)
    }
}

/// Stands for the creation time in the new text of an edit, because only the repair stage knows the time. JSON cannot
/// contain this character.
pub(crate) const CREATED: &str = "\0";

/// A range of the text of a payload that must be replaced before clients accept the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edit<'a> {
    pub payload: &'a str,
    /// One of the reasons defined for the code `rewritten`.
    pub why: &'static str,
    pub start: usize,
    pub end: usize,
    /// The new text, which may contain `CREATED`.
    pub new: &'a str,
}

/// Facts about the received payloads that no event contains. Repair uses these facts to decide which payloads pass
/// through unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireFact<'a> {
    /// The decoder starts to read this payload. `event` is the name of the server-sent event that contained the
    /// payload.
    Payload { event: &'a [u8], data: &'a [u8] },
    /// Clients of the dialect would misread the payload. The string is one of the reasons defined for the code
    /// `rewritten`.
    Misread(&'static str),
    /// Clients would interpret the payload correctly if its event had this name. This fact is reported only for
    /// payloads that were not buffered while the dialect was detected.
    Named(&'static str),
    /// Clients would interpret the payload correctly if the missing opening event came before it. The string is one of
    /// the reasons defined for the code `rewritten`.
    Unopened(&'static str),
    /// The payload contains the first delta of this choice.
    Begun(i32),
    /// The payload contains the first delta of this choice, but no role. Clients would interpret the payload correctly
    /// after a chunk that contains the role.
    Roleless(i32),
    /// Clients would interpret the chunk correctly if it had the member `object`.
    Untyped,
    /// Clients would interpret the payload correctly after this edit.
    Edited(Edit<'a>),
    /// Clients do not expect the payload, and it produced no events.
    Emptied,
    /// Clients would reject the payload for this reason. The payload contains no data that an event or a diagnostic
    /// reports.
    LeftOut(&'static str),
    /// A diagnostic reports that clients do not expect the payload. `emptied` is true if the payload produced no
    /// events.
    Mended { emptied: bool },
    /// The payload is an element of an array, which clients do not expect. More elements may follow before repair
    /// decides which bytes pass through.
    Element,
    /// Wire address of the part that the next event opens: index of the item, index inside the item, and item id.
    Address {
        index: Option<i64>,
        sub: Option<i64>,
        item_id: Option<&'a str>,
    },
    /// A payload contained this choice for the first time.
    Choice(i32),
    /// The item with this index was opened without a part.
    Announced(i64),
    /// An output item was opened. Clients store the index, type, and id of the item.
    ItemAdded {
        index: i64,
        kind: Option<&'a str>,
        id: Option<&'a str>,
        /// The number of earlier items that had the same index.
        before: usize,
    },
    /// An output item was closed. `item` is the JSON of the complete received item.
    ItemEnded { index: i64, item: &'a str },
    /// The response opened with this id.
    Created(Option<&'a str>),
    /// The part with this number was closed, or the stream indicated that its text is complete.
    Closed(u32),
    /// The item that contains the part with this number was closed.
    Ended(u32),
    /// The payload has content that no event contains.
    Unmodelled(Unmodelled<'a>),
    /// The response repeats the tools of its request.
    RequestTools(Raw<'a>),
    /// The last event that was read has this sequence number.
    Sequence(i128),
    /// The finish reason of this choice was received.
    Reason(i32),
    /// Token counts were received.
    Counted,
}

/// A receiver of events. The methods are called once per event, in the order of the events.
pub trait Sink {
    fn event(&mut self, event: &Event<'_>);

    /// Returns a fault if the sink rejects further input. Each fault is returned only once. The method is called after
    /// each payload, but not after payloads that are processed together because they differ only in their text.
    fn refusal(&mut self) -> Option<Fault> {
        None
    }

    /// Sets the byte offset and ordinal of the payload that the next events belong to. The method is not called for
    /// payloads that are processed together because they differ only in their text.
    fn at(&mut self, _offset: u64, _ordinal: u64) {}

    /// Reports that the input was truncated. The closing events that follow are a consequence of the truncation.
    fn cut(&mut self) {}

    /// Reports that a fault will follow, so that later diagnostics are recorded instead of raised.
    fn faulted(&mut self) {}

    /// Receives a fact that no event contains.
    fn record_fact(&mut self, _fact: WireFact<'_>) {}

    /// Returns true if the sink uses the facts passed to `record_fact`. If the result is false, decoders do not check
    /// for misread payloads.
    fn wants_wire_facts(&self) -> bool {
        false
    }

    /// Reports the detected dialect. The method is not called if the caller specified the dialect.
    fn dialect_detected(&mut self, _dialect: &'static str) {}

    /// Receives several consecutive deltas.
    fn deltas(&mut self, deltas: &Deltas<'_>) {
        deltas.each(|event| self.event(event));
    }
}

/// A sink that discards all events, for callers that need only the final response.
#[derive(Debug, Default, Clone, Copy)]
pub struct Silent;

impl Sink for Silent {
    fn event(&mut self, _: &Event<'_>) {}

    fn deltas(&mut self, _: &Deltas<'_>) {}
}
