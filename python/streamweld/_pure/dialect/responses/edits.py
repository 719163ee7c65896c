"""Determines which members of an event must be added or replaced before clients accept the event.

@ai-sdk/openai validates the events that it reads and raises an exception if a member is missing. openai-node raises an
exception if an item in the opening event is announced again. The rest of the payload stays unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld._pure.dialect.responses.spec_tables import CUT_STATUSES
from streamweld._pure.json.kinds import is_array, is_object
from streamweld._pure.json.scanner import BigInteger
from streamweld._pure.model.output import CREATED, Edit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.json.scanner import Path, Payload
    from streamweld._pure.model.output import Output

__all__ = ["edit_event"]

_OPENINGS: Final = ("response.created", "response.in_progress")
_ITEM_DONE: Final = "response.output_item.done"
_STATUSES: Final = {
    "function_call": ("in_progress", "completed", "incomplete"),
    "custom_tool_call": ("completed",),
}  # the statuses that @ai-sdk/openai accepts in a completed call


def edit_event(kind: str, payload: Payload, out: Output) -> None:
    """Report the edits that the event needs."""
    event: Mapping[str, Any] = payload.value
    if kind in _OPENINGS:
        response = event.get("response")
        if is_object(response):
            if not _is_number(response.get("created_at")):
                _edit(payload, out, "response", "created_at", CREATED)
            if not isinstance(response.get("model"), str):
                _edit(payload, out, "response", "model", '"unknown"')
            if is_array(response.get("output")) and response["output"]:
                _replace(payload, out, "items_at_start", ("response", "output"), "[]")
    elif kind == _ITEM_DONE:
        item = event.get("item")
        if is_object(item):
            accepted = _STATUSES.get(item["type"], ()) if isinstance(item.get("type"), str) else ()
            status = item.get("status")
            if accepted and status not in accepted and not _is_cut(status):
                _edit(payload, out, "item", "status", '"completed"')


def _edit(payload: Payload, out: Output, holder: str, name: str, value: str) -> None:
    """Report that the member of an object gets this value. A missing member becomes the first member."""
    if name in payload.value[holder]:
        _replace(payload, out, "member_type", (holder, name), value)
    elif (span := payload.span(holder)) is not None:
        inside = span[0] + 1
        comma = "," if payload.value[holder] else ""
        out.edit(payload.text, "member_type", Edit(inside, inside, f'"{name}":{value}{comma}'))


def _replace(payload: Payload, out: Output, why: str, path: Path, value: str) -> None:
    span = payload.span(*path)
    if span is not None:
        out.edit(payload.text, why, Edit(*span, value))


def _is_cut(status: object) -> bool:
    return isinstance(status, str) and status.strip() in CUT_STATUSES


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | BigInteger) and not isinstance(value, bool)
