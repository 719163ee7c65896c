"""The event classes in Python, as listed in `_spec/events.json`: names, fields, order, defaults.

`streamweld.events` exports these classes if the extension is not installed, and their native equivalents otherwise.
Events are plain data; this module does not depend on streams or dialects.

The classes are not frozen at run time, because creating an event would then take four times as long. Type checkers
treat every field as read-only, and the native classes reject assignment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, cast, dataclass_transform

from streamweld._arguments import parsed_arguments, partial_arguments
from streamweld._literals import DiagnosticCode, FinishReason, ReasoningKind, Severity, ToolCallState
from streamweld._messages import diagnostic_help_url, diagnostic_message
from streamweld.usage import NormalizedUsage, normalized

__all__ = [
    "Diagnostic",
    "DiagnosticCode",
    "Event",
    "File",
    "FinishReason",
    "Finished",
    "ReasoningDelta",
    "ReasoningDone",
    "ReasoningKind",
    "ReasoningStarted",
    "RefusalDelta",
    "RefusalDone",
    "RefusalStarted",
    "ResponseStarted",
    "Severity",
    "Source",
    "TextDelta",
    "TextDone",
    "TextStarted",
    "ToolCall",
    "ToolCallDelta",
    "ToolCallReset",
    "ToolCallRetracted",
    "ToolCallStarted",
    "ToolCallState",
    "ToolResult",
    "Unknown",
    "UpstreamErrorEvent",
    "Usage",
]

Metadata: TypeAlias = dict[str, Any] | None

_T = TypeVar("_T")


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, tuple):
        return list(cast("tuple[object, ...]", value))
    return value


class _Event:
    """Base class with the methods of all events. `__match_args__` lists the fields."""

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]] = ()
    type: ClassVar[Any] = ""

    def _values(self) -> tuple[object, ...]:
        return tuple([getattr(self, name) for name in self.__match_args__])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Event) or other.__class__ is not self.__class__:
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        """Hash all fields.

        Raises TypeError if the event contains a dict (provider metadata, annotations, raw usage).
        """
        return hash(self._values())

    def __repr__(self) -> str:
        fields = ", ".join([f"{name}={getattr(self, name)!r}" for name in self.__match_args__])
        return f"{self.__class__.__name__}({fields})"

    def __reduce__(self) -> tuple[Any, ...]:
        return self.__class__, self._values()

    def to_dict(self) -> dict[str, Any]:
        """Return the event as data that `json.dumps` accepts: `type` first, then the fields in constructor order.

        Tuples become lists. Bytes become text, with U+FFFD for invalid UTF-8. Use `.raw` to get the bytes.
        """
        return {"type": self.type} | {name: _plain(getattr(self, name)) for name in self.__match_args__}


@dataclass_transform(frozen_default=True)
def _event(cls: type[_T]) -> type[_T]:
    made = dataclass(slots=True, eq=False, repr=False)(cls)
    made.__module__ = "streamweld.events"
    return made


@_event
class ResponseStarted(_Event):
    """Id, model and creation time of the response. Emitted at most once, before any content."""

    type: ClassVar[Literal["response_started"]] = "response_started"
    id: str | None = None
    model: str | None = None
    created: int | None = None
    provider_metadata: Metadata = None


@_event
class TextStarted(_Event):
    """Start of a text part."""

    type: ClassVar[Literal["text_started"]] = "text_started"
    part: int
    item_id: str | None = None
    choice: int = 0
    provider_metadata: Metadata = None


@_event
class TextDelta(_Event):
    """A piece of text, as received in one wire frame."""

    type: ClassVar[Literal["text_delta"]] = "text_delta"
    part: int
    text: str
    choice: int = 0
    provider_metadata: Metadata = None


@_event
class TextDone(_Event):
    """The complete text of a part, with its annotations (citations) as sent by the gateway."""

    type: ClassVar[Literal["text_done"]] = "text_done"
    part: int
    text: str
    annotations: tuple[Any, ...] = ()
    choice: int = 0
    provider_metadata: Metadata = None


@_event
class ReasoningStarted(_Event):
    """Start of a reasoning part."""

    type: ClassVar[Literal["reasoning_started"]] = "reasoning_started"
    part: int
    kind: ReasoningKind
    item_id: str | None = None
    choice: int = 0
    provider_metadata: Metadata = None


@_event
class ReasoningDelta(_Event):
    """A piece of reasoning, as received in one wire frame."""

    type: ClassVar[Literal["reasoning_delta"]] = "reasoning_delta"
    part: int
    text: str
    choice: int = 0
    provider_metadata: Metadata = None


@_event
class ReasoningDone(_Event):
    """The complete reasoning of a part, with the values that a later turn must send back (`signature`,
    `encrypted_content`).
    """

    type: ClassVar[Literal["reasoning_done"]] = "reasoning_done"
    part: int
    text: str
    kind: ReasoningKind
    item_id: str | None = None
    signature: str | None = None
    encrypted_content: str | None = None
    choice: int = 0
    provider_metadata: Metadata = None


@_event
class RefusalStarted(_Event):
    """Start of a refusal."""

    type: ClassVar[Literal["refusal_started"]] = "refusal_started"
    part: int
    choice: int = 0
    provider_metadata: Metadata = None


@_event
class RefusalDelta(_Event):
    """A piece of a refusal, as received in one wire frame."""

    type: ClassVar[Literal["refusal_delta"]] = "refusal_delta"
    part: int
    text: str
    choice: int = 0
    provider_metadata: Metadata = None


@_event
class RefusalDone(_Event):
    """The complete refusal."""

    type: ClassVar[Literal["refusal_done"]] = "refusal_done"
    part: int
    text: str
    choice: int = 0
    provider_metadata: Metadata = None


@_event
class ToolCallStarted(_Event):
    """Start of a tool call. Emitted once the name is final; `call_id` may still be None."""

    type: ClassVar[Literal["tool_call_started"]] = "tool_call_started"
    part: int
    call_id: str | None = None
    item_id: str | None = None
    name: str = ""
    choice: int = 0
    provider_metadata: Metadata = None


@_event
class ToolCallDelta(_Event):
    """A piece of a call's arguments.

    The pieces since the last `ToolCallReset` for the part, concatenated, are the complete text.
    """

    type: ClassVar[Literal["tool_call_delta"]] = "tool_call_delta"
    part: int
    arguments: str
    choice: int = 0
    provider_metadata: Metadata = None

    partial = partial_arguments


@_event
class ToolCall(_Event):
    """The final form of a tool call. A `ToolCall` is never reset, retracted or repeated.

    `state` is `complete` (closed, the arguments are a JSON object), `empty` (closed, no argument text), `incomplete`
    (truncated), `invalid` (see `reason`: `no_name`, `bad_name`, `bad_id`, `overflow`, `not_json`, `not_object`, or
    `refused` by the sender), or `open` (only in the snapshot of an unfinished stream). `arguments` is the text as sent;
    after an `overflow`, it is only the first value, and `raw_arguments` is all of the text. `aliases` are other ids
    that the gateway used for the same call.

    `custom` is true for a call to a free-form tool: its `arguments` are text, not JSON, and `complete` means that all
    of the text has arrived. `origin` is "text" if the model wrote the call into its text
    (`Policy(text_calls="promote")`), in which case `raw_text` contains that text; `origin` is None for other calls.
    """

    type: ClassVar[Literal["tool_call"]] = "tool_call"
    part: int
    call_id: str
    name: str
    arguments: str
    state: ToolCallState
    item_id: str | None = None
    reason: str | None = None
    raw_arguments: str | None = None
    provider_executed: bool = False
    aliases: tuple[str, ...] = ()
    custom: bool = False
    origin: str | None = None
    raw_text: str | None = None
    choice: int = 0
    provider_metadata: Metadata = None

    @property
    def parsed(self) -> dict[str, Any]:
        """The arguments as an object, parsed on each access; `{}` for an `empty` call.

        Raises:
            ArgumentsError: if the state is neither `complete` nor `empty`, or if the call is `custom`, because its
                `arguments` are text. The exception has `state`, `reason` and `rule`.
        """
        return parsed_arguments(self)

    @property
    def dispatchable(self) -> bool:
        """Whether a client may run this call.

        True if its state is `complete` or `empty`, it has a name and an id, and the provider does not run it.

        The event does not show whether the call has already been run. A stream of AI SDK UI messages can continue after
        its tools have run, so the result may follow later. `response.dispatchable_calls` omits such calls once the
        stream has ended.
        """
        return self.state in {"complete", "empty"} and bool(self.name and self.call_id) and not self.provider_executed


@_event
class ToolCallReset(_Event):
    """A repair of a call's arguments: discard the deltas received for this part so far.

    The corrected text follows in full.
    """

    type: ClassVar[Literal["tool_call_reset"]] = "tool_call_reset"
    part: int
    choice: int = 0
    provider_metadata: Metadata = None


@_event
class ToolCallRetracted(_Event):
    """A tentative call was withdrawn: discard the part."""

    type: ClassVar[Literal["tool_call_retracted"]] = "tool_call_retracted"
    part: int
    choice: int = 0
    provider_metadata: Metadata = None


@_event
class ToolResultDelta(_Event):
    """A piece of the output of a tool that the provider runs, sent while the tool runs.

    `output` is the piece as sent. The `ToolResult` that follows for the part has the whole output.
    """

    type: ClassVar[Literal["tool_result_delta"]] = "tool_result_delta"
    part: int
    call_id: str
    output: Any
    choice: int = 0
    provider_metadata: Metadata = None


@_event
class ToolResult(_Event):
    """The result of a tool that the provider ran."""

    type: ClassVar[Literal["tool_result"]] = "tool_result"
    part: int
    call_id: str
    output: Any
    is_error: bool = False
    choice: int = 0
    provider_metadata: Metadata = None


@_event
class Source(_Event):
    """A source that the response cites."""

    type: ClassVar[Literal["source"]] = "source"
    part: int
    url: str | None = None
    title: str | None = None
    document: Any = None
    choice: int = 0
    provider_metadata: Metadata = None


@_event
class File(_Event):
    """A file or image in the response, as base64 `data` or a `url`."""

    type: ClassVar[Literal["file"]] = "file"
    part: int
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    choice: int = 0
    provider_metadata: Metadata = None


@_event
class ProviderItem(_Event):
    """An item or content block that only the provider reads and that a later turn has to send back unchanged, such as a
    compaction or a list of MCP tools.

    `kind` is its `type` on the wire, and `value` is the item or block as sent.
    """

    type: ClassVar[Literal["provider_item"]] = "provider_item"
    part: int
    kind: str
    value: Any
    item_id: str | None = None
    choice: int = 0
    provider_metadata: Metadata = None


@_event
class Usage(_Event):
    """Token counts as the gateway sent them; None for counts that it did not send. `raw` is the gateway's usage object.

    APIs count differently. For example, Anthropic's `input_tokens` exclude cached tokens, and Anthropic sends no total.
    Use `normalized()` to compare or add counts from several APIs.
    """

    type: ClassVar[Literal["usage"]] = "usage"
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    raw: dict[str, Any] | None = None

    def normalized(self, dialect: str | None = None) -> NormalizedUsage:
        """Return counts normalized across APIs: cached tokens are in the input, and reasoning tokens in the output.

        Args:
            dialect: the API that defines the counts; by default it is inferred from the members of `raw`.
        """
        return normalized(self, dialect)


@_event
class Finished(_Event):
    """End of a choice, emitted after all its parts. `raw_reason` is the finish reason as sent."""

    type: ClassVar[Literal["finished"]] = "finished"
    finish_reason: FinishReason
    raw_reason: str | None = None
    choice: int = 0
    provider_metadata: Metadata = None

    @property
    def reason(self) -> FinishReason:
        """Deprecated alias of `finish_reason`."""
        return self.finish_reason


@_event
class UpstreamErrorEvent(_Event):
    """An error that the gateway sent inside the stream.

    An `UpstreamErrorEvent` is the last event before `UpstreamError` is raised.
    """

    type: ClassVar[Literal["upstream_error_event"]] = "upstream_error_event"
    code: str | None
    kind: str | None
    message: str
    raw: bytes


@_event
class Diagnostic(_Event):
    """A repair or an anomaly.

    `code` is stable. If a stream ends with an error, the code of the last diagnostic that an `on_diagnostic` callback
    receives is the `rule` of that error, such as `unknown_dialect`. `severity` is `info` (the clients read the stream
    correctly, or the repair is certain), `warning` (a repair, or a fault of the gateway) or `error` (a call or content
    was lost, or the stream ended with an error). The offset and ordinal locate the diagnostic in the stream and do not
    depend on the chunk sizes.

    `message` is human-readable. `detail` is the part of the message that depends on the stream.
    """

    type: ClassVar[Literal["diagnostic"]] = "diagnostic"
    code: DiagnosticCode
    severity: Severity
    byte_offset: int
    event_ordinal: int
    part: int | None = None
    detail: str = ""

    @property
    def message(self) -> str:
        """A sentence that describes what happened and what streamweld did, followed by `detail`."""
        return diagnostic_message(self)

    @property
    def help_url(self) -> str:
        """The URL of the documentation for the code."""
        return diagnostic_help_url(self)


@_event
class Unknown(_Event):
    """A payload that no decoder recognizes, unchanged."""

    type: ClassVar[Literal["unknown"]] = "unknown"
    event: str | None
    raw: bytes


Event: TypeAlias = (
    ResponseStarted
    | TextStarted
    | TextDelta
    | TextDone
    | ReasoningStarted
    | ReasoningDelta
    | ReasoningDone
    | RefusalStarted
    | RefusalDelta
    | RefusalDone
    | ToolCallStarted
    | ToolCallDelta
    | ToolCall
    | ToolCallReset
    | ToolCallRetracted
    | ToolResultDelta
    | ToolResult
    | Source
    | File
    | ProviderItem
    | Usage
    | Finished
    | UpstreamErrorEvent
    | Diagnostic
    | Unknown
)
