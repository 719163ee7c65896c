"""Find the history in the argument of `convert`, and add the kept request members to the payload."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# (the input is JSON from the caller, so the types inside its containers are unknown)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from operator import is_
from typing import TYPE_CHECKING, Any, Final, TypeGuard, cast

from streamweld._sdk_objects import is_absent, messages_in, plain
from streamweld._spec import load_requests
from streamweld.errors import UsageError
from streamweld.history.dialects import CONTAINERS
from streamweld.history.model import members_of
from streamweld.history.profiles import target_name
from streamweld.response import Response

if TYPE_CHECKING:
    from streamweld.history.context import Context
    from streamweld.history.model import Path
    from streamweld.history.places import Moved

__all__ = ["STORED", "items_of", "payload_of", "plain_items"]

_NAMES: Final = ("messages", "input", "contents")
_MODEL: Final = {"bedrock-converse": "modelId", "ai-sdk-ui": None}  # the member with the model's name, if not `model`
# Tuples, because Python builds a union anew each time it is evaluated.
_LISTED: Final = (Sequence, Response)
_LISTS: Final = (list, tuple)
_BYTES: Final = (bytes, bytearray)
_TEXTS: Final = (str, *_BYTES)
_NO_THINKING: Final = (
    "the current tool turn, or the beginning of the response, has no thinking block of this provider, and the API "
    "requires one while thinking is enabled"
)
STORED: Final = ("previous_response_id", "conversation")  # members that refer to turns stored by the server
_NOT_CONVERTED: Final = "history.convert converts only messages; use streamweld.requests.convert for complete requests"


def items_of(messages: Any) -> tuple[Sequence[Any] | str | Response, Path]:
    """Return the messages, and their path in the argument.

    Raises:
        UsageError: if the argument has no messages.
    """
    if isinstance(messages, Response):
        return messages, ()
    if messages.__class__ is dict or isinstance(messages, Mapping):
        entry = cast("Mapping[str, Any]", messages)
        for name in _NAMES:
            if name in entry:
                found: Any = entry[name]
                if not _is_listed(found):
                    raise UsageError(f"{name!r} must be a list")
                return found, (name,)
        raise UsageError("the mapping has no member messages, input or contents")
    if isinstance(messages, _TEXTS) or not isinstance(messages, Sequence):
        raise UsageError("messages must be a list, a mapping with a list in messages, input or contents, or a Response")
    return cast("Sequence[Any]", messages), ()  # type: ignore[redundant-cast]


def plain_items(messages: Any) -> tuple[Any, Moved]:
    """Return the argument with SDK objects converted to plain data, or the argument itself if it contains none.

    Also return the new path of each message that replaced an object or follows one, with its path in the argument. A
    value that contains itself or is nested too deeply is returned unchanged.
    """
    moved: Moved = {}
    try:
        return _plain(messages, moved), moved
    except RecursionError:
        return messages, {}


def _plain(messages: Any, moved: Moved) -> Any:
    if isinstance(messages, Mapping):
        entry = cast("Mapping[str, Any]", messages)
        made = {
            name: _plain_list(value, (name,), moved)
            if name in _NAMES and isinstance(value, list | tuple)
            else plain(value)
            for name, value in entry.items()
            if not is_absent(value)
        }
        return (
            messages if len(made) == len(entry) and all(made[name] is value for name, value in entry.items()) else made
        )
    return _plain_list(messages, (), moved) if isinstance(messages, list | tuple) else messages


def _plain_list(items: Any, base: tuple[str, ...], moved: Moved) -> Any:
    made: list[Any] = []
    for n, item in enumerate(items):
        if item.__class__ is dict:  # a dict is a message, never a response object
            found: list[tuple[Path, Any]] = [((), plain(item))]
        else:
            found = [((), item)] if isinstance(item, Response) else messages_in(item)
        for inner, message in found:
            if inner or len(made) != n:
                moved[(*base, str(len(made)))] = (*base, n, *inner)
            made.append(message)
    return items if len(made) == len(items) and all(map(is_, made, items)) else made


def _is_listed(value: object) -> TypeGuard[Sequence[Any] | Response]:
    if value.__class__ is list:  # nearly always true, and much faster than asking an abstract class
        return True
    return isinstance(value, _LISTED) and not isinstance(value, _BYTES)


def payload_of(
    given: Mapping[str, Any] | None,
    items: Any,
    source: str,
    source_family: str,
    written: dict[str, Any],
    context: Context,
) -> Mapping[str, Any]:
    """Return the payload: the written messages, and the request members that have the same meaning for the target.

    Every omitted member is recorded as a loss. If nothing changed, the request object itself is returned.
    """
    before, after = CONTAINERS[source_family], CONTAINERS[context.family]
    new, same_family = written[after.messages], source_family == context.family
    if same_family and (_same(items, new) or (isinstance(items, str) and len(new) == 1 and new[0] is items)):
        written[after.messages] = items
    elif isinstance(items, str) and same_family:  # there are other messages, so the string must become a message
        written[after.messages] = new = [
            {"type": "message", "role": "user", "content": item} if isinstance(item, str) else item for item in new
        ]
    if given is None:
        return written
    rest = {name: value for name, value in given.items() if name != before.messages and name != before.system}
    kept = _kept(rest, source, source_family, context)
    if "thinking" in kept and _lacks_thinking(kept["thinking"], new, context):
        context.lose("thinking", ("thinking",), _NO_THINKING, kept.pop("thinking"))
    unchanged = (
        same_family and len(kept) == len(rest) and all(given.get(name) is value for name, value in written.items())
    )
    if unchanged and len(given) == len(rest) + len(written):  # leave out a system prompt that is null
        return given
    if same_family:  # keep the order of the members
        return {name: written.get(name, given[name]) for name in given if name in kept or name in written} | written
    return {**kept, **written}


def _lacks_thinking(thinking: Any, messages: Sequence[Any], context: Context) -> bool:
    """Return whether thinking is enabled, but the final assistant message does not start with a thinking block.

    Only a message that will be continued, or whose tool results were just sent, needs a thinking block.

    The API rejects such requests: "a final assistant message must start with a thinking block". With adaptive thinking,
    the block is optional.
    """
    if members_of(thinking).get("type") != "enabled" or context.facts("reasoning").get("signed") != "required":
        return False
    last_assistant = next(
        (n for n in range(len(messages) - 1, -1, -1) if members_of(messages[n]).get("role") == "assistant"), None
    )
    if last_assistant is None:
        return False
    content: Any = messages[last_assistant].get("content")
    kinds = [members_of(block).get("type") for block in content] if isinstance(content, list) else []
    if last_assistant == len(messages) - 1:
        return "tool_use" not in kinds and kinds[:1] not in (["thinking"], ["redacted_thinking"])
    answers: Any = members_of(messages[-1]).get("content")
    answered = isinstance(answers, list) and any(members_of(block).get("type") == "tool_result" for block in answers)
    return answered and "tool_use" in kinds and kinds[0] not in ("thinking", "redacted_thinking")


def _kept(rest: Mapping[str, Any], source: str, source_family: str, context: Context) -> dict[str, Any]:
    """Return the members that have the same meaning for the target, and record the others as losses."""
    if not rest:
        return {}
    target = target_name(context.target)
    kept: dict[str, Any] = {}
    left: dict[str, Any] = {}
    if source_family == context.family:
        foreign = _foreign(target_name(source) if source != "auto" else source_family, target)
        if context.fact("stored_responses") is False:
            foreign |= frozenset(STORED)
        if foreign.isdisjoint(rest):
            return dict(rest)
        for name, value in rest.items():
            (left if name in foreign else kept)[name] = value
    else:
        common = _common(source_family, target)
        model = _MODEL.get(source_family, "model")
        for name, value in rest.items():
            new = _MODEL.get(target, "model") if name == model else name
            if new is None or (name != model and name not in common):
                left[name] = value
            else:
                kept[new] = value
    context.lose_members(left, (), _NOT_CONVERTED)
    return kept


@cache
def _foreign(source: str, target: str) -> frozenset[str]:
    """For APIs that share a dialect, return the members that the source API has and the target API lacks."""
    known = load_requests()["known"]
    return frozenset(known[source]) - frozenset(known[target]) if source != target else frozenset()


@cache
def _common(source: str, target: str) -> frozenset[str]:
    """Return the members with the same name and meaning in both APIs, from `options` in `_spec/requests.json`."""
    tables = load_requests()
    found: set[str] = set()
    for word, option in tables["options"].items():
        paths, words = option["paths"], tables["words"].get(word)
        if words is None or words.get(source) == words.get(target):
            found |= {path for path in paths.get(source, ()) if path in paths.get(target, ()) and "." not in path}
    return frozenset(found)


def _same(old: Any, new: Sequence[Any]) -> bool:
    """Return whether both lists contain the same objects, in which case the old list can be reused."""
    return isinstance(old, _LISTS) and len(old) == len(new) and all(map(is_, old, new))  # pyright: ignore[reportUnknownArgumentType]
