//! The events of a stream as borrowed values, and where they go.
//!
//! Names, fields and order are those of `_spec/events.json`. An event lives only while it is handed to its sink:
//! what keeps it (a Python object, a test's record) copies what it needs. Knows no dialect and no JSON parser:
//! `metadata`, `raw` and the like are texts that were checked before they came here.

use crate::model::delta::Channel;
use crate::model::fault::Fault;

/// One event. `metadata` is the text of a JSON object: what the wire said beside the modelled members.
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
        /// As of now; the call says it for good. Not shown to readers of events, only to writers.
        provider_executed: bool,
        /// As of now, likewise.
        custom: bool,
        choice: i32,
        metadata: Option<&'a str>,
    },
    /// `text` is the piece of the arguments.
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
        /// The arguments are text, not JSON.
        custom: bool,
        /// The call was promoted from text: the block as the model wrote it.
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
    /// The choice that it speaks of.
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
            | Event::Source { choice, .. }
            | Event::File { choice, .. }
            | Event::Finished { choice, .. } => choice,
            _ => return None,
        })
    }

    /// What the wire said beside the modelled members.
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

/// A part that carries nothing but its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark<'a> {
    pub part: u32,
    pub choice: i32,
    pub metadata: Option<&'a str>,
}

/// A part that opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened<'a> {
    pub part: u32,
    pub item_id: Option<&'a str>,
    pub choice: i32,
    pub metadata: Option<&'a str>,
}

/// A piece of a part's text, or (`…Done`) the whole of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delta<'a> {
    pub part: u32,
    pub text: &'a str,
    pub choice: i32,
    pub metadata: Option<&'a str>,
}

/// Which event a piece of a text is.
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

/// Whose several deltas are.
#[derive(Debug, Clone, Copy)]
pub enum Parts<'a> {
    /// All of them.
    One(u32),
    /// Each its own.
    Each(&'a [u32]),
}

/// Several deltas in a row that are of one kind and one choice, without metadata.
#[derive(Debug, Clone, Copy)]
pub struct Deltas<'a> {
    pub kind: DeltaKind,
    pub choice: i32,
    pub parts: Parts<'a>,
    /// Their texts one after the other, nothing behind them, and where each ends.
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

    /// One by one.
    pub fn each(&self, mut give: impl FnMut(&Event<'_>)) {
        for (place, text) in self.texts().enumerate() {
            give(&self.kind.event(Delta {
                part: self.parts.of(place),
                text,
                choice: self.choice,
                metadata: None,
            }));
        }
    }
}

impl Parts<'_> {
    #[inline]
    pub fn of(&self, place: usize) -> u32 {
        match self {
            Parts::One(part) => *part,
            Parts::Each(parts) => parts.get(place).copied().unwrap_or_default(),
        }
    }

    /// Whether one of them is such a part.
    pub fn any(&self, mut such: impl FnMut(u32) -> bool) -> bool {
        match self {
            Parts::One(part) => such(*part),
            Parts::Each(parts) => parts.iter().any(|part| such(*part)),
        }
    }
}

/// Token counts, and the wire's own object as text.
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
    /// No number, or nothing but zeros: a placeholder that says nothing.
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

/// What no event says of the wire, and has to be known by who passes payloads on as they were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireFact<'a> {
    /// What is at hand, and the name of its event.
    Payload { event: &'a [u8], data: &'a [u8] },
    /// Readers of the dialect would not take the payload as it was taken here: a word of the code `rewritten` for it.
    Touched(&'static str),
    /// They would, if its event had that name. Said of payloads that tell their dialect: none that waited for another one.
    Named(&'static str),
    /// They would, if the opening of an answer stood before it: a word of the code `rewritten` for that.
    Unopened(&'static str),
    /// They would, if a chunk with the role stood before it: it is the first one of that choice.
    Roleless(i32),
    /// The payload is none that they expect, and brought nothing.
    Emptied,
    /// Likewise, and readers would refuse it, for that reason; no code says so.
    LeftOut(&'static str),
    /// A code says that they do not expect it; whether it brought nothing.
    Mended { emptied: bool },
    /// An element of an array was taken, which they do not expect. Others may follow before anything is passed on.
    Element,
    /// Of the part that opens next: its index, that inside of its item, and its item's id.
    Address {
        index: Option<i64>,
        sub: Option<i64>,
        item_id: Option<&'a str>,
    },
    /// The choice was spoken of.
    Choice(i32),
    /// The item of that index was opened without a part.
    Announced(i64),
    /// An item of the output was opened, as clients keep it: its index, type and id.
    ItemAdded {
        index: i64,
        kind: Option<&'a str>,
        id: Option<&'a str>,
    },
    /// The wire ends an item of the output: its index, and the item as it was sent.
    ItemEnded { index: i64, item: &'a str },
    /// The answer opened with a response of that id.
    Created(Option<&'a str>),
    /// The part was closed, or announced to have no more pieces.
    Closed(u32),
    /// Its item was closed.
    Ended(u32),
    /// The index of the block that is open, and no part; none is where another one is, or it was stopped.
    Standing(Option<i64>),
    /// The number of the event.
    Sequence(i128),
    /// The choice said why it ends.
    Reason(i32),
    /// Token counts were said.
    Counted,
}

/// Where events go: one call an event, in order.
pub trait Sink {
    fn event(&mut self, event: &Event<'_>);

    /// Why no more is to be read, where the sink has a reason; it says so once. Asked behind every payload that is more than
    /// one text like those before it.
    fn refusal(&mut self) -> Option<Fault> {
        None
    }

    /// What comes next is of the payload at that place. Not said of payloads that are alike but for one text.
    fn at(&mut self, _offset: u64, _ordinal: u64) {}

    /// What closes from here on closes only because nothing more comes.
    fn cut(&mut self) {}

    /// A fault is certain: what is found wrong from here on is recorded, not raised.
    fn doomed(&mut self) {}

    /// What no event says of the wire.
    fn sign(&mut self, _sign: WireFact<'_>) {}

    /// What readers of the dialect would misread matters.
    fn judges(&self) -> bool {
        false
    }

    /// The dialect was found out. Not said of one that was given.
    fn speaks(&mut self, _dialect: &'static str) {}

    /// Several deltas in a row.
    fn deltas(&mut self, deltas: &Deltas<'_>) {
        deltas.each(|event| self.event(event));
    }
}

/// For those who want the result only.
#[derive(Debug, Default, Clone, Copy)]
pub struct Silent;

impl Sink for Silent {
    fn event(&mut self, _: &Event<'_>) {}

    fn deltas(&mut self, _: &Deltas<'_>) {}
}
