//! Content that no event type can contain. An encoder for the same dialect writes this content unchanged.
//!
//! The decoder creates these values only for repair. Strings in these values contain the received JSON text.

/// The Messages object that contained unknown members: the message, its usage, the `message_delta` event, the delta or
/// the usage in that event, or the `message_stop` event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MembersOf {
    Message,
    StartUsage,
    End,
    Delta,
    EndUsage,
    Stop,
}

/// The content of a Chat chunk that no event contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkFacts<'a> {
    /// The unknown members, as a JSON object.
    pub members: &'a str,
    pub has_choice: bool,
    /// A choice of the chunk has a finish reason.
    pub finishes: bool,
    /// The chunk contains token counts.
    pub counts: bool,
}

/// The form of the reasoning in a Chat delta. The text event does not contain this form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReasoningFacts<'a> {
    pub choice: i32,
    /// The members that contain the text. `None` if the members are unchanged, and empty if only `reasoning_details`
    /// contains the text.
    pub fields: Option<&'a [&'static str]>,
    /// The entries of `reasoning_details`, as a JSON array.
    pub details: Option<&'a str>,
    /// An event with the reasoning text follows.
    pub has_text: bool,
}

/// The unknown members of a Chat choice, as JSON objects, or empty strings if there are none. The members of the delta
/// include `annotations` and `images`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChoiceFacts<'a> {
    pub choice: i32,
    pub members: &'a str,
    pub delta: &'a str,
    /// The choice has a finish reason.
    pub finishes: bool,
}

/// Where a Responses stream contains an output item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemPlace {
    /// The event that announces the item.
    Added,
    /// The event that ends the item.
    Done,
    /// The output of the response object.
    Output,
}

/// An output item of a Responses stream, as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentItem<'a> {
    pub place: ItemPlace,
    /// The type that the decoder assumes if the item has none.
    pub kind: &'a str,
    pub index: Option<i64>,
    pub item: &'a str,
    /// The event that contains the item.
    pub payload: &'a str,
}

/// A content part of unknown type in a Responses stream, as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentPart<'a> {
    pub item_id: Option<&'a str>,
    pub index: Option<i64>,
    /// The part's index inside its item.
    pub sub: Option<i64>,
    pub part: &'a str,
    /// True if the event ends the part.
    pub closes: bool,
}

/// Content that no event type can contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmodelled<'a> {
    /// Unknown members in the `content_block_start` event of a block that has a part.
    BlockMembers {
        index: i64,
        members: &'a str,
    },
    /// A block without a part was opened: a tool result, or a block of unknown type. In a tool result, the call id is
    /// the id that events report.
    BlockOpened {
        index: i64,
        block: &'a str,
    },
    /// A delta contains data that no event type can contain. The block of the delta may have a part.
    BlockDelta {
        index: Option<i64>,
        delta: &'a str,
    },
    /// A block without a part was closed.
    BlockClosed {
        index: i64,
    },
    /// Annotations arrived for an open part. `annotations` is a JSON array. The closing event of the part contains the
    /// annotations again.
    Annotated {
        part: u32,
        annotations: &'a str,
    },
    /// A payload of unknown type was read. `event` is the name of the server-sent event that contained the payload.
    OtherEvent {
        event: Option<&'a str>,
        payload: &'a str,
    },
    /// A Responses output item was read. The item is reported before its events, which end with `ItemEnd`.
    Item(SentItem<'a>),
    /// A Responses event follows that does not concern text or the arguments of an ordinary call. The events that it
    /// causes end with `ItemEnd`.
    ItemEvent {
        event: Option<&'a str>,
        payload: &'a str,
    },
    /// A Responses event that opens or closes a content part of unknown type. Its other events end with `ItemEnd`.
    ContentPart(SentPart<'a>),
    ItemEnd,
    /// A Gemini part that no event contains, as JSON.
    Part {
        choice: i32,
        part: &'a str,
    },
    /// The members of a Gemini chunk that no event contains: a JSON list with those of its candidates, which is empty if
    /// there are none, and a JSON object with those next to the candidates.
    ChunkMembers {
        candidates: &'a str,
        members: &'a str,
    },
    /// The unknown members of one Messages object.
    Members {
        of: MembersOf,
        members: &'a str,
    },
    /// A Chat chunk was read. These facts are not reported if the chunk has the same unknown members as the previous
    /// chunk, and contains neither a finish reason nor token counts.
    Chunk(ChunkFacts<'a>),
    /// The form of the reasoning in a Chat delta. These facts are reported before the event with the reasoning text.
    Reasoning(ReasoningFacts<'a>),
    /// The unknown members of a Chat choice and its delta. The members are reported before the events of the chunk. The
    /// members are not reported if they are the same as in the previous chunk and the choice has no finish reason.
    ChoiceMembers(ChoiceFacts<'a>),
    /// No event from the rest of a Chat chunk can contain the unknown members of this choice and its delta, or the
    /// unknown members of a chunk with a finish reason.
    ChoiceWithoutEvent {
        choice: i32,
    },
}
