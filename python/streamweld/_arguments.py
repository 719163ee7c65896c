"""A tool call's arguments as an object: what `ToolCall.parsed` and `ToolCallDelta.partial` of both sets of classes do.

It uses only a call's fields. The JSON door and the exceptions are imported at the first use, because a stream
that is only read never needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from streamweld import ToolCall

__all__ = ["ArgumentSource", "parsed_arguments", "partial_arguments"]


class ArgumentSource(Protocol):
    """What reads a stream: a `StreamParser`, or what `iter_events` and its variants return."""

    def arguments_so_far(self, part: int) -> str:
        """The argument text of a call as far as the deltas showed it."""
        ...


class _OfPart(Protocol):
    @property
    def part(self) -> int: ...


def partial_arguments(self: _OfPart, stream: ArgumentSource) -> dict[str, Any] | None:
    """The arguments of this call as far as `stream` has read them, with what there is of an open string.

    Each call reads the whole text. A view of `StreamParser.partial` reads only what is new.

    Args:
        stream: the parser or iterator that returned this event. An event holds no reference to it.

    Returns:
        A new dict; None before the object began, and for a `custom` call.
    """
    from streamweld._json import loads_partial

    return loads_partial(stream.arguments_so_far(self.part))


def parsed_arguments(call: ToolCall) -> dict[str, Any]:
    """The object that `call.arguments` holds; `{}` for an `empty` call, ArgumentsError where there is none."""
    if call.custom:
        raise _error(call, call.state, "custom", None, rule="custom")
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


def _error(call: ToolCall, state: str, reason: str | None, pos: int | None, *, rule: str | None = None) -> Exception:
    from streamweld.errors import ArgumentsError

    return ArgumentsError(
        rule=f"arguments_{rule or state}",
        state=state,
        reason=reason,
        part=call.part,
        call_id=call.call_id,
        pos=pos,
    )
