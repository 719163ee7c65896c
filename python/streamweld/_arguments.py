"""A tool call's arguments as an object: what `ToolCall.parsed` of both sets of event classes does.

Layer 2. It knows a call's fields only. The JSON door and the exceptions are imported at the first use, because a stream
that is only read never needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from streamweld import ToolCall

__all__ = ["parsed_arguments"]


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
