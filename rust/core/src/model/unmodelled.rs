//! Content that no event type can hold. An encoder for the same dialect writes it as it was sent.
//!
//! The decoder creates these values only for repair. Strings contain JSON as sent.

/// The object that contained unknown members: the message and its usage, `message_delta`, its delta and its usage, or
/// `message_stop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MembersOf {
    Message,
    StartUsage,
    End,
    Delta,
    EndUsage,
    Stop,
}

/// What no event contains about a Chat chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkFacts<'a> {
    /// The unknown members, as a JSON object.
    pub members: &'a str,
    pub has_choice: bool,
    /// True if a choice has a finish reason.
    pub finishes: bool,
    /// True if the chunk has token counts.
    pub counts: bool,
}

/// What no event contains about the reasoning of a Chat delta.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReasoningFacts<'a> {
    pub choice: i32,
    /// The members that contain the text, if they changed. Empty if only `reasoning_details` contains it.
    pub fields: Option<&'a [&'static str]>,
    /// The entries of `reasoning_details`, as a JSON array.
    pub details: Option<&'a str>,
    /// True if an event with the text follows.
    pub has_text: bool,
}

/// Content that no event type can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmodelled<'a> {
    /// Unknown members at the start of a block that has a part.
    BlockMembers { index: i64, members: &'a str },
    /// The start of a block without a part: a tool result, or a block of unknown type. A tool result has the call id
    /// that is used in events.
    BlockOpened { index: i64, block: &'a str },
    /// A delta with content that no event type can hold. Its block may have a part.
    BlockDelta { index: Option<i64>, delta: &'a str },
    /// The stop of a block without a part.
    BlockClosed { index: i64 },
    /// Annotations of an open part, as a JSON array. They are repeated when the part closes.
    Annotated { part: u32, annotations: &'a str },
    /// A payload of unknown type, and the name of its event.
    OtherEvent {
        event: Option<&'a str>,
        payload: &'a str,
    },
    /// Unknown members of one object.
    Members { of: MembersOf, members: &'a str },
    /// A Chat chunk. Not repeated for a chunk that has the same members as the chunk before it and neither a finish
    /// reason nor token counts.
    Chunk(ChunkFacts<'a>),
    /// The reasoning of a Chat delta; precedes its text.
    Reasoning(ReasoningFacts<'a>),
    /// Unknown members of a Chat choice that no event of their chunk contains.
    ChoiceMembers,
}
