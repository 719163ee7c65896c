"""Parse a tool call's arguments into an object.

This module implements `ToolCall.parsed` and `ToolCallDelta.partial` for the Python and the native event classes.

Only the fields of a call are used. The JSON loader and the exceptions are imported on first use, because they are not
needed to read a stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from streamweld import ToolCall

__all__ = ["ArgumentSource", "parsed_arguments", "partial_arguments"]


class ArgumentSource(Protocol):
    """An object that reads a stream: a `StreamParser`, or the result of `iter_events` or one of its variants."""

    def arguments_so_far(self, part: int) -> str:
        """Return the argument text received so far for a call."""
        ...


class _OfPart(Protocol):
    @property
    def part(self) -> int: ...


def partial_arguments(self: _OfPart, stream: ArgumentSource) -> dict[str, Any] | None:
    """Return the arguments that `stream` has read so far for this call, including an unfinished string.

    Each call to this method parses the complete text again. A view from `StreamParser.partial` parses only new text.

    Args:
        stream: the parser or iterator that returned this event. An event has no reference to its parser or iterator.

    Returns:
        A new dict, or None if the JSON object has not begun or the call is `custom`.
    """
    from streamweld._json import loads_partial

    return loads_partial(stream.arguments_so_far(self.part))


def parsed_arguments(call: ToolCall) -> dict[str, Any]:
    """Return the object in `call.arguments`, or `{}` for an `empty` call.

    Raises ArgumentsError if `call.arguments` is not an object.
    """
    if call.custom:
        raise _error(call, call.state, "custom", None, kind="custom")
    if call.state == "complete":
        from streamweld._json import JsonFault, loads_arguments

        try:
            value = loads_arguments(call.arguments)
        except JsonFault as fault:
            raise _error(call, "invalid", "not_json", fault.pos) from None
        if not isinstance(value, dict):
            raise _error(call, "invalid", "not_object", None)
        return cast("dict[str, Any]", value)
    if call.state == "empty":
        return {}
    raise _error(call, call.state, call.reason, None)


def _error(call: ToolCall, state: str, reason: str | None, pos: int | None, *, kind: str | None = None) -> Exception:
    from streamweld.errors import ArgumentsError

    return ArgumentsError(
        rule=f"arguments_{kind or state}",
        state=state,
        reason=reason,
        part=call.part,
        call_id=call.call_id,
        pos=pos,
    )
