"""Reads from an output item what applications read from it, to compare the items that a stream repeats."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streamweld._pure.json.kinds import is_array, is_object
from streamweld._pure.json.scanner import JsonFault, parse, replace_lone_surrogates

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Content", "content_of", "has_content", "has_whole_arguments", "is_whole_call"]

Content: TypeAlias = tuple[str, ...]

# Types of calls that clients run, and the member with the arguments.
_CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
_BLANKS: Final = re.compile(r'("(?:[^"\\]|\\[\s\S])*"?)|[ \t\n\r]+')
_WITH_CONTENT: Final = ("message", "reasoning", *_CALLS)


def content_of(item: Mapping[str, Any]) -> Content | None:
    """Return the type of an item, followed by its texts, or by the ids and arguments of its call. Return None if a
    message or a reasoning item has no text.

    The content of any other item is only its type, because the forms of such an item may differ in a stream.
    """
    kind = _word(item, "type")
    if kind == "message":
        return _with_text(kind, _joined(item, "content", "text"), _joined(item, "content", "refusal"))
    if kind == "reasoning":
        return _with_text(kind, _joined(item, "summary", "text"), _joined(item, "content", "text"))
    if kind in _CALLS:
        text = _word(item, _CALLS[kind])
        arguments = _without_blanks(text) if kind == "function_call" else text
        return kind, _word(item, "call_id"), _word(item, "name"), arguments
    return (kind,)


def has_content(kind: str | None) -> bool:
    """Return whether the content of an item of this type is more than its type."""
    return kind in _WITH_CONTENT


def has_whole_arguments(call: Mapping[str, Any]) -> bool:
    """Return whether the arguments of a call of the client are complete: text of any kind, or a JSON object."""
    if call.get("type") == "custom_tool_call":
        return True
    try:
        return is_object(parse(_word(call, "arguments")).value)
    except JsonFault:
        return False


def is_whole_call(item: Mapping[str, Any]) -> bool:
    """Return whether the status of a call of the client shows that it is complete. A call without a status is
    complete.
    """
    return _word(item, "type") not in _CALLS or item.get("status") in (None, "completed")


def _with_text(kind: str, *texts: str) -> Content | None:
    return (kind, *texts) if any(texts) else None


def _without_blanks(text: str) -> str:
    """Return JSON text without the white space between its tokens: gateways spell arguments anew."""
    return _BLANKS.sub(lambda found: found[1] or "", text)


def _joined(item: Mapping[str, Any], member: str, text: str) -> str:
    parts = item.get(member)
    return "".join([_word(part, text) for part in parts if is_object(part)]) if is_array(parts) else ""


def _word(holder: Mapping[str, Any], key: str) -> str:
    value = holder.get(key)
    return replace_lone_surrogates(value) if isinstance(value, str) else ""
