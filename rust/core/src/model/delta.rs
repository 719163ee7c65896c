//! What a decoder hands to the assembler, beside plain texts and numbers.
//!
//! Borrowed for the length of one call. Knows no dialect.

use crate::json::Text;
use std::borrow::Cow;

/// One entry of a list of tool-call deltas, normalised: what is absent, null or blank is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// The index, if it can be one.
    pub index: Option<u32>,
    /// The index as sent, if it cannot be one.
    pub index_raw: Option<&'a str>,
    /// Whether an index member was sent at all, null included.
    pub has_index_key: bool,
    pub id: Option<Cow<'a, str>>,
    pub name: Option<Cow<'a, str>>,
    pub arguments: Option<Text<'a>>,
    /// The arguments as an object: its text on the wire.
    pub object_arguments: Option<&'a str>,
    /// The place in its list, and the length of that list.
    pub position: u32,
    pub array_len: u32,
    /// The one call of the legacy `function_call` member.
    pub legacy: bool,
    /// A free-form tool: its input is text, not JSON.
    pub custom: bool,
    /// Unmodelled members of the entry: the text of a JSON object.
    pub metadata: Option<Cow<'a, str>>,
}

/// The next piece of a call, where nothing is said of it but plain text and who it is.
#[derive(Clone, Copy, Debug)]
pub struct CallPiece<'a> {
    pub index: u32,
    pub id: Option<&'a str>,
    pub name: Option<&'a str>,
    /// Not escaped, no half of a character at its ends.
    pub text: &'a str,
}

/// A whole message at the end of a stream, or the only thing in it.
#[derive(Clone, Debug, Default)]
pub struct Message<'a> {
    pub content: Option<Text<'a>>,
    pub reasoning: Option<Text<'a>>,
    pub refusal: Option<Text<'a>>,
    pub fragments: Vec<Fragment<'a>>,
}

/// The channel of a text-like part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    Text,
    Reasoning,
    Refusal,
}

impl Channel {
    pub fn name(self) -> &'static str {
        match self {
            Channel::Text => "text",
            Channel::Reasoning => "reasoning",
            Channel::Refusal => "refusal",
        }
    }
}

/// What an item of the wire holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemKind {
    Message,
    Reasoning,
    Call,
}

/// Whom a delta speaks of, where the wire itself opens and closes what it sends. Evidence, not proof; blank is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Address<'a> {
    /// Of a Responses output item; of an AI SDK text or reasoning.
    pub item_id: Option<&'a str>,
    /// `call_id`, `tool_use` id, `toolCallId`.
    pub call_id: Option<&'a str>,
    /// `output_index`, the index of a content block.
    pub index: Option<i64>,
    /// `content_index`, `summary_index` inside of the item.
    pub sub: Option<i64>,
    /// No evidence: the id of the output item that is told to readers, where what pairs the deltas is another one (the
    /// AI SDK numbers its blocks, and says beside that which item of the provider's API a block is).
    pub public_id: Option<&'a str>,
}

/// The part that a delta speaks of.
#[derive(Clone, Copy, Debug)]
pub struct PartAt<'a> {
    pub choice: i32,
    /// Of its item.
    pub kind: ItemKind,
    pub address: Address<'a>,
    pub channel: Channel,
    /// Of reasoning: `summary`, `raw`, `thinking`, `redacted`.
    pub reasoning_kind: &'static str,
}

/// What hangs on a part. `annotations` is the text of a JSON array, `metadata` of an object.
#[derive(Clone, Copy, Debug, Default)]
pub struct PartAttributes<'a> {
    pub annotations: Option<&'a str>,
    pub signature: Option<&'a str>,
    pub encrypted_content: Option<&'a str>,
    pub metadata: Option<&'a str>,
}

/// One entry of the list of an item. `at.address.sub`: its place there.
#[derive(Clone, Debug)]
pub struct ListedPart<'a> {
    pub at: PartAt<'a>,
    pub text: Option<Text<'a>>,
    /// The text of a JSON array: those that did not come before.
    pub annotations: Option<String>,
    pub metadata: Option<String>,
}

/// What an opening, a close or a terminal list says of a call.
#[derive(Clone, Debug, Default)]
pub struct CallSaid<'a> {
    pub choice: i32,
    pub address: Address<'a>,
    pub name: Option<&'a str>,
    /// JSON text; of a free-form tool its input.
    pub arguments: Option<Text<'a>>,
    pub provider_executed: bool,
    /// A free-form tool: its input is text, not JSON.
    pub custom: bool,
    /// The sender says that no tool takes the arguments.
    pub refused: bool,
    pub metadata: Option<&'a str>,
}

/// How the input ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputEnd {
    /// The transport reported a regular end.
    #[default]
    Clean,
    /// The transport failed: bytes may be missing after the last ones that came.
    Broken,
}

impl InputEnd {
    pub fn of(broken: bool) -> InputEnd {
        if broken {
            InputEnd::Broken
        } else {
            InputEnd::Clean
        }
    }
}

/// What was left over when the input ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnfinishedInput {
    /// Nothing: the last event was whole.
    #[default]
    Nothing,
    /// There was no payload at all.
    Empty,
    /// An unfinished event or line.
    MidEvent,
    /// Unfinished, and inside a UTF-8 sequence.
    MidUtf8,
}

/// How far the answer can be trusted to be all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Completeness {
    #[default]
    Open,
    Complete,
    Assumed,
    Truncated,
}

impl Completeness {
    pub fn name(self) -> &'static str {
        match self {
            Completeness::Open => "open",
            Completeness::Complete => "complete",
            Completeness::Assumed => "assumed",
            Completeness::Truncated => "truncated",
        }
    }
}
