"""Loads the tables of the Responses dialect from `_spec/dialects.json` and converts them to the form that the decoder
needs.

No other module of this dialect defines event or member tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.usage_counts import counts_of
from streamweld._pure.json.kinds import is_object
from streamweld._spec import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.assemble.part.text import Channel
    from streamweld._pure.json.scanner import Path
    from streamweld._pure.model.delta import ItemKind
    from streamweld.events import ReasoningKind

_FACTS: Mapping[str, Any] = DIALECTS["responses"]


@dataclass(frozen=True, slots=True)
class TextKind:
    """Classification of a piece of text: the kind of its item, its channel, and the kind of reasoning."""

    item: ItemKind
    channel: Channel
    reasoning: ReasoningKind


@dataclass(frozen=True, slots=True)
class TextEvent:
    """An event that contains text.

    `position`: the member that contains the index of the part in its item. `member`: the member that contains the text.
    """

    text_kind: TextKind
    position: str
    member: str


@dataclass(frozen=True, slots=True)
class CallType:
    """An item type that is a tool call. `name`: the tool's name, if the item type determines the name."""

    type: str
    name: str | None
    members: tuple[str, ...]  # members of the item that form the arguments
    wrapped: bool  # whether the arguments are an object that consists of these members
    custom: bool  # whether the arguments are free-form text
    provider: bool  # whether the provider runs the call
    modelled: frozenset[str]  # members of the item that are not kept as metadata
    results: tuple[str, ...]  # members of the item that contain the output and the error of its result


TEXT = TextKind("message", "text", "raw")
REFUSAL = TextKind("message", "refusal", "raw")
RAW = TextKind("reasoning", "reasoning", "raw")
SUMMARY = TextKind("reasoning", "reasoning", "summary")
_TEXT_KINDS = {"text": TEXT, "refusal": REFUSAL, "raw": RAW, "summary": SUMMARY}

COUNTS = counts_of(_FACTS["usage"])
OPENINGS = frozenset[str](_FACTS["opening_events"])
TERMINALS: Mapping[str, str] = _FACTS["terminal_events"]
STATUSES = frozenset[str](_FACTS["terminal_statuses"])
# Names that some gateways use instead of the documented arguments member, and instead of `delta`.
OTHER_ARGUMENTS: tuple[str, ...] = tuple(_FACTS["other_arguments"])
OTHER_DELTAS: tuple[str, ...] = tuple(_FACTS["other_deltas"])
FINISHED_STATUSES = frozenset[str](_FACTS["finished_statuses"])  # statuses of a call with complete arguments
CUT_STATUSES = frozenset[str](_FACTS["cut_statuses"])  # statuses of a call whose arguments were cut off
ERRORS = frozenset[str](_FACTS["error_events"])
KEEP_ALIVE = frozenset[str](_FACTS["keepalive_events"])
OFFICIAL_KEEP_ALIVE = "keepalive"  # OpenAI sends it, with a sequence number; openai-node rejects all other ones
TEXT_DELTAS = {
    name: TextEvent(_TEXT_KINDS[text_kind], position, "delta")
    for name, (text_kind, position) in _FACTS["text_deltas"].items()
}
TEXT_VALUES = {
    name: TextEvent(_TEXT_KINDS[text_kind], position, member)
    for name, (text_kind, position, member) in _FACTS["text_values"].items()
}
CONTENT = {name: (_TEXT_KINDS[text_kind], str(member)) for name, (text_kind, member) in _FACTS["content_types"].items()}
ARGUMENT_DELTAS: Mapping[str, str] = _FACTS["argument_deltas"]
ARGUMENT_VALUES: Mapping[str, str] = _FACTS["argument_values"]
PROVIDER_TOOLS = frozenset[str](_FACTS["provider_tools"])  # free-form tools that the provider runs (xAI)
RESPONSE_EVENTS = frozenset[str](
    _FACTS["answers"]
)  # item types with which a response may end, in addition to client calls
RESULTS = frozenset[str](_FACTS["result_types"])
RESULT_DELTAS = frozenset[str](_FACTS["result_deltas"])
RESULT_MEMBERS: Mapping[str, str] = _FACTS["result_members"]
PROGRESS = frozenset[str](_FACTS["progress_events"])
PROGRESS_ADDRESS = frozenset[str](_FACTS["progress_address"])
PROVIDER_ITEMS = frozenset[str](_FACTS["provider_items"])
AUDIO_DELTAS: Mapping[str, str] = _FACTS["audio_deltas"]
CONTENTLESS = frozenset[str](_FACTS["contentless_events"])
ABSENT_IDS = frozenset[str](_FACTS["absent_ids"])

EVENT_FIELDS = frozenset[str](_FACTS["event_fields"])
ECHOED_FIELDS = frozenset[str](_FACTS["echoed_fields"])
RESPONSE_FIELDS = frozenset[str](_FACTS["response_fields"]) | ECHOED_FIELDS
ITEM_FIELDS = frozenset[str](_FACTS["item_fields"]) | {"type"}
PART_FIELDS = frozenset[str](_FACTS["part_fields"])
_CALL_MEMBERS = frozenset(member for members in _FACTS["call_types"].values() for member in members)


_READ_OF_ITEM = frozenset({"status", "output", "error", "result", "tools"})


def _call_type(name: str, members: tuple[str, ...]) -> CallType:
    plain = name == "function_call"
    results: tuple[str, ...] = _FACTS["call_results"].get(name, ())
    return CallType(
        type=name,
        name=None if name in _FACTS["named_calls"] else name.removesuffix("_call"),
        members=members,
        wrapped=name in _FACTS["wrapped_calls"],
        custom=name in _FACTS["custom_calls"],
        provider=name in _FACTS["provider_calls"],
        # The type of any call except a plain function call is kept, because clients send the item back in a later turn.
        modelled=frozenset({"id", "call_id", "name", *members, *results, *({"type"} if plain else ())}),
        results=results,
    )


CALLS = {name: _call_type(name, members) for name, members in _FACTS["call_types"].items()}


def is_unmodelled_part(part: object) -> bool:
    """Return whether a content part has a type that no text has, so that no event can contain the part."""
    kind: object = part.get("type") if is_object(part) else None
    return isinstance(kind, str) and kind not in CONTENT


def is_read(path: Path) -> bool:
    """Return whether the decoder reads the member at `path` in an event.

    Only duplicates of members that the decoder reads are reported.
    """
    if path[0] == "response" and len(path) > 1:
        return is_read_of_response(path[1:])
    return _is_read(path, EVENT_FIELDS)


def is_read_unwrapped(path: Path) -> bool:
    """Return whether the decoder reads the member at `path` in an event that contains the members of the response."""
    return is_read(path) or is_read_of_response(path)


def is_read_of_response(path: Path) -> bool:
    """Return whether the decoder reads the member at `path` in a complete response."""
    if path[:1] == ("output",) and len(path) > 2:
        return _is_read(("item", *path[2:]), EVENT_FIELDS)
    return _is_read(path, RESPONSE_FIELDS)


def _is_read(path: Path, top: frozenset[str]) -> bool:
    key = path[-1]
    match path[:-1]:
        case ():
            return key in top
        case ("error",):
            return key in ("code", "type", "message", "detail")
        case ("incomplete_details",):
            return key == "reason"
        case ("item",):
            return key in ITEM_FIELDS or key in _CALL_MEMBERS or key in _READ_OF_ITEM
        case ("part",) | ("item", "content" | "summary", int()):
            return key in PART_FIELDS
        case _:
            return False
