//! Wire deltas: the values that a decoder passes to the assembler, for any dialect.
//!
//! They are borrowed for the duration of one call.

use crate::json::Text;
use std::borrow::Cow;

/// One element of a list of tool-call deltas, normalized: absent, null and blank members are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// The index, if it is usable.
    pub index: Option<u32>,
    /// The index as received, if it is not usable.
    pub index_raw: Option<&'a str>,
    /// True if an index member was sent, even with the value null.
    pub has_index_key: bool,
    pub id: Option<Cow<'a, str>>,
    pub name: Option<Cow<'a, str>>,
    pub arguments: Option<Text<'a>>,
    /// Arguments sent as an object: its JSON text.
    pub object_arguments: Option<&'a str>,
    /// Position in the list of fragments; `array_len` is the length of that list.
    pub position: u32,
    pub array_len: u32,
    /// True if the fragment is the call in the legacy `function_call` member.
    pub legacy: bool,
    /// Whether the call is to a free-form tool: its input is text, not JSON.
    pub custom: bool,
    /// Unmodeled members of the element, as the text of a JSON object.
    pub metadata: Option<Cow<'a, str>>,
}

/// A fragment of a call that has only an index, plain argument text, and possibly an id and a name.
#[derive(Clone, Copy, Debug)]
pub struct CallPiece<'a> {
    pub index: u32,
    pub id: Option<&'a str>,
    pub name: Option<&'a str>,
    /// Text without escapes and without half a surrogate pair at either end.
    pub text: &'a str,
}

/// A complete message, which ends a stream or is the complete response.
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

/// Kind of a wire item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemKind {
    Message,
    Reasoning,
    Call,
}

/// Address of a delta, in dialects that open and close their items. It may be wrong, so it is only evidence. Blank
/// members are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Address<'a> {
    /// Id of a Responses output item, or of an AI SDK text or reasoning block.
    pub item_id: Option<&'a str>,
    /// `call_id`, `tool_use` id or `toolCallId`.
    pub call_id: Option<&'a str>,
    /// `output_index`, or the index of a content block.
    pub index: Option<i64>,
    /// `content_index` or `summary_index` inside the item.
    pub sub: Option<i64>,
    /// Id of the output item that events report, if the deltas are matched by a different id. It is not used as
    /// evidence. The AI SDK numbers its blocks and sends the provider's item id separately.
    pub public_id: Option<&'a str>,
}

/// The part that a delta addresses.
#[derive(Clone, Copy, Debug)]
pub struct PartAt<'a> {
    pub choice: i32,
    /// Kind of the part's item.
    pub kind: ItemKind,
    pub address: Address<'a>,
    pub channel: Channel,
    /// Kind of reasoning: `summary`, `raw`, `thinking` or `redacted`.
    pub reasoning_kind: &'static str,
}

/// Attributes of a part. `annotations` is the text of a JSON array, `metadata` that of a JSON object.
#[derive(Clone, Copy, Debug, Default)]
pub struct PartAttributes<'a> {
    pub annotations: Option<&'a str>,
    pub signature: Option<&'a str>,
    pub encrypted_content: Option<&'a str>,
    pub metadata: Option<&'a str>,
}

/// One part in an item's content list. `at.address.sub` is its position in that list.
#[derive(Clone, Debug)]
pub struct ListedPart<'a> {
    pub at: PartAt<'a>,
    pub text: Option<Text<'a>>,
    /// Annotations that have not been sent before, as the text of a JSON array.
    pub annotations: Option<String>,
    pub metadata: Option<String>,
}

/// The call members of an opening event, a closing event or a terminal list.
#[derive(Clone, Debug, Default)]
pub struct CallFields<'a> {
    pub choice: i32,
    pub address: Address<'a>,
    pub name: Option<&'a str>,
    /// JSON text, or the input of a free-form tool.
    pub arguments: Option<Text<'a>>,
    pub provider_executed: bool,
    /// Whether the call is to a free-form tool: its input is text, not JSON.
    pub custom: bool,
    /// The sender reports that the arguments are invalid for the tool.
    pub refused: bool,
    pub ending: CallEnding,
    pub metadata: Option<&'a str>,
}

/// What the event that closes a call states about its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallEnding {
    /// The call is whole.
    #[default]
    Whole,
    /// The call was cut off, unless its arguments are complete JSON.
    Cut,
    /// As `Cut`, unless the response ends with success: the call was still in progress.
    Open,
    /// As `Open`, and a successful end adds the brace that closes the arguments.
    OpenObject,
}

/// How the input ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputEnd {
    /// The transport reported a regular end.
    #[default]
    Clean,
    /// The transport failed: bytes may be missing at the end.
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

/// What kind of input was unfinished at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnfinishedInput {
    /// Nothing: the last event was complete.
    #[default]
    Nothing,
    /// There was no payload at all.
    Empty,
    /// An unfinished event or line.
    MidEvent,
    /// An unfinished event or line that ends inside a UTF-8 sequence.
    MidUtf8,
}

/// Whether the response is complete.
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
