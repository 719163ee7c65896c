//! Wire deltas: the values that a decoder passes to the assembler, for any dialect.
//!
//! The values are borrowed for the duration of one call.

use crate::json::Text;
use std::borrow::Cow;

/// One fragment of a tool call: an element of a list of tool-call deltas. Absent, null and blank members are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// The index of the call. `None` if the fragment has no index or an unusable index.
    pub index: Option<u32>,
    /// The received text of an unusable index.
    pub index_raw: Option<&'a str>,
    /// The fragment has a member `index`, which may be null.
    pub has_index_key: bool,
    pub id: Option<Cow<'a, str>>,
    pub name: Option<Cow<'a, str>>,
    pub arguments: Option<Text<'a>>,
    /// The JSON text of arguments that were sent as an object instead of a string.
    pub object_arguments: Option<&'a str>,
    /// Position of the fragment in its list, which has `array_len` fragments.
    pub position: u32,
    pub array_len: u32,
    /// The fragment comes from the legacy member `function_call`.
    pub legacy: bool,
    /// The tool is a free-form (custom) tool, so the arguments of the call are plain text instead of JSON.
    pub custom: bool,
    /// An unknown member may contain the arguments of the call.
    pub misses_arguments: bool,
    /// Unmodeled members of the element, as the text of a JSON object.
    pub metadata: Option<Cow<'a, str>>,
}

/// A fragment that has only an index, plain argument text, and possibly an id and a name.
#[derive(Clone, Copy, Debug)]
pub struct CallPiece<'a> {
    pub index: u32,
    pub id: Option<&'a str>,
    pub name: Option<&'a str>,
    /// Argument text without escapes. The text neither begins nor ends with half of a surrogate pair.
    pub text: &'a str,
}

/// A complete message, which is the last payload of a stream or the whole body of a response that was not streamed.
#[derive(Clone, Debug, Default)]
pub struct Message<'a> {
    pub content: Option<Text<'a>>,
    pub reasoning: Option<Text<'a>>,
    pub refusal: Option<Text<'a>>,
    pub fragments: Vec<Fragment<'a>>,
}

/// The kind of content in a part that contains text.
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

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemKind {
    Message,
    Reasoning,
    Call,
}

/// The ids and indexes that a delta contains to identify its item. Blank values are `None`. An address may be wrong, so
/// the assembler also considers other evidence. Dialects that open and close their items use addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Address<'a> {
    /// Id of a Responses output item, or of an AI SDK text or reasoning block.
    pub item_id: Option<&'a str>,
    /// The call id: `call_id`, the id of a `tool_use` block, or `toolCallId`.
    pub call_id: Option<&'a str>,
    /// The index of the item: `output_index`, or the index of a content block.
    pub index: Option<i64>,
    /// The index inside the item: `content_index` or `summary_index`.
    pub sub: Option<i64>,
    /// Item id to report in events, if it differs from the id that links the deltas. The AI SDK numbers its blocks, and
    /// sends the item id of the provider separately. This reported id is not used to find the item.
    pub public_id: Option<&'a str>,
}

/// A reference to the part that a delta belongs to.
#[derive(Clone, Copy, Debug)]
pub struct PartAt<'a> {
    pub choice: i32,
    /// The kind of the item that contains the part.
    pub kind: ItemKind,
    pub address: Address<'a>,
    pub channel: Channel,
    /// Kind of reasoning: `summary`, `raw`, `thinking` or `redacted`.
    pub reasoning_kind: &'static str,
}

/// Attributes of a part. `annotations` is the text of a JSON array, and `metadata` is the text of a JSON object.
#[derive(Clone, Copy, Debug, Default)]
pub struct PartAttributes<'a> {
    pub annotations: Option<&'a str>,
    pub signature: Option<&'a str>,
    pub encrypted_content: Option<&'a str>,
    pub metadata: Option<&'a str>,
}

/// One part in the content list of an item. `at.address.sub` is the position of the part in the list.
#[derive(Clone, Debug)]
pub struct ListedPart<'a> {
    pub at: PartAt<'a>,
    pub text: Option<Text<'a>>,
    /// The annotations that no earlier event contained, as the text of a JSON array.
    pub annotations: Option<String>,
    pub metadata: Option<String>,
}

/// The fields of a tool call in an opening event, a closing event, or the terminal output.
#[derive(Clone, Debug, Default)]
pub struct CallFields<'a> {
    pub choice: i32,
    pub address: Address<'a>,
    pub name: Option<&'a str>,
    /// The arguments as JSON text, or the plain text for a free-form tool.
    pub arguments: Option<Text<'a>>,
    pub provider_executed: bool,
    /// The tool is a free-form (custom) tool, so the arguments of the call are plain text instead of JSON.
    pub custom: bool,
    /// True if the sender reported that the tool does not accept the arguments.
    pub refused: bool,
    /// An unknown member may contain the arguments of the call.
    pub misses_arguments: bool,
    pub ending: CallEnding,
    pub metadata: Option<&'a str>,
}

/// How complete a call is, according to the event that closes the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallEnding {
    /// The call is complete.
    #[default]
    Whole,
    /// The call was cut off. The call is complete only if its arguments are complete JSON.
    Cut,
    /// The call was still in progress. If the response ends with success, the call is complete. If the response does
    /// not end with success, the call is treated like `Cut`.
    Open,
    /// As `Open`. Like `Open`, but if the response ends with success, the closing brace is added to the arguments.
    OpenObject,
}

/// How the input of a stream ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputEnd {
    /// The transport ended normally.
    #[default]
    Clean,
    /// The transport failed, so bytes at the end of the input may be missing.
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

/// The unfinished data at the end of the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnfinishedInput {
    /// The last event was complete.
    #[default]
    Nothing,
    /// The input contained no payload.
    Empty,
    /// The input ended inside an event or line.
    MidEvent,
    /// The input ended inside a UTF-8 sequence.
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
