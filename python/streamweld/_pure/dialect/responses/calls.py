"""Decodes the names, ids, and arguments of tool call items, for every item type of the API.

This module determines which members of an item contain the arguments. The assembler determines which call an event
addresses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.responses.spec_tables import (
    ARGUMENT_DELTAS,
    ARGUMENT_VALUES,
    CALLS,
    CUT_STATUSES,
    EVENT_FIELDS,
    FINISHED_STATUSES,
    OTHER_ARGUMENTS,
    OTHER_DELTAS,
    PROVIDER_TOOLS,
)
from streamweld._pure.dialect.unread_arguments import may_hold_arguments
from streamweld._pure.json.kinds import is_object
from streamweld._pure.json.members import as_object
from streamweld._pure.model.delta import Address, CallEnding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.dialect.responses.read import Reader
    from streamweld._pure.dialect.responses.spec_tables import CallType
    from streamweld._pure.json.scanner import Path


_FUNCTION_MEMBERS = frozenset({"name"})  # members of a Chat call inside an item, apart from its arguments
_PIECE_MEMBERS = ("arguments", "partial_json")  # members that may contain the text if a delta is an object


@dataclass(frozen=True, slots=True)
class CallItem:
    """A call item in the form that the assembler accepts."""

    address: Address
    name: str | None
    arguments: str | None
    provider: bool
    custom: bool
    metadata: str | None
    ending: CallEnding
    misses_arguments: bool  # the item has no arguments, but an unknown member may contain them
    modelled: frozenset[str]  # members that are not kept as metadata


def call_type(item: Mapping[str, Any]) -> CallType | None:
    """Return the type of a call item, or None if the item is not a call.

    An item without a type is a function call if it has a call id and a name.
    """
    kind = item.get("type")
    if isinstance(kind, str) and kind.strip():
        return CALLS.get(kind)
    has = all(isinstance(item.get(key), str) and item[key] for key in ("call_id", "name"))
    return CALLS["function_call"] if has else None


def read_call(
    item: Mapping[str, Any], path: Path, reader: Reader, kind: CallType, item_id: str | None, index: int | None
) -> CallItem:
    """Read a call item. `item_id`: the item id in the event, which is used if the item itself has no id."""
    item_id = reader.identity(item, path, "id") or item_id
    call_id = reader.identity(item, path, "call_id")
    name = reader.name(item, path) if kind.name is None else kind.name
    # Some gateways send a call in Chat format: the member `function` of the item contains the name and the arguments.
    function = item.get("function") if kind.type == "function_call" and name is None else None
    holder, here = (function, (*path, "function")) if is_object(function) else (item, path)
    if holder is not item:
        name = reader.name(holder, here)
    # A tool of the client may have the same name as a tool of the provider. If the request lists the tool, the client
    # runs the call.
    its_own = kind.type == "custom_tool_call" and name in PROVIDER_TOOLS and name not in reader.tools
    provider = kind.provider or its_own or _is_hosted(item)
    member = _arguments_member(holder, kind)
    if holder is not item or (member is not None and member not in kind.members):
        reader.mark_misread("other_member")
    modelled = kind.modelled
    if member is not None:
        modelled |= {member if holder is item else "function"}
    ending = _ending(item, kind, provider=provider)
    arguments = _wrapped(item, path, reader, kind, ending) if kind.wrapped else _text(holder, here, reader, member)
    misses_arguments = (
        arguments is None
        and bool(kind.members)
        and not provider
        and (
            may_hold_arguments(item, modelled) or (holder is not item and may_hold_arguments(holder, _FUNCTION_MEMBERS))
        )
    )
    return CallItem(
        # A call that the provider runs has no call id, so the item id pairs the call with its result.
        Address(item_id, item_id if call_id is None and provider else call_id, index),
        name,
        arguments,
        provider,
        kind.custom,
        as_object(reader.extra_fields(item, path, modelled)),
        ending,
        misses_arguments,
        modelled,
    )


def _ending(item: Mapping[str, Any], kind: CallType, *, provider: bool) -> CallEnding:
    """Return the state of an item's arguments that its status indicates: complete, cut off, or still open.

    If the provider runs the call, a status other than `incomplete` is ignored, because the status may describe the
    execution instead of the arguments.
    """
    status = item.get("status")
    status = status.strip() if isinstance(status, str) else ""
    if provider:
        return CallEnding.CUT if status == "incomplete" else CallEnding.WHOLE
    if status in CUT_STATUSES:
        return CallEnding.CUT
    if status == "" or status in FINISHED_STATUSES:
        return CallEnding.WHOLE
    return CallEnding.OPEN_OBJECT if kind.wrapped else CallEnding.OPEN


def open_call(assembler: Assembler, call: CallItem, kind: CallType) -> None:
    """Handle `output_item.added`.

    Ignore the arguments of a wrapped call (a call whose arguments consist of several members), because its members are
    complete only when the item is done.
    """
    arguments = None if kind.wrapped or call.arguments in ("", "{}") else call.arguments
    assembler.call_opened(0, call.address, call.name, arguments, call.provider, call.custom, call.metadata)
    if call.misses_arguments:
        assembler.call_misses_arguments(0, call.address)


class ArgumentReader:
    """Decodes events with arguments."""

    __slots__ = ("_assembler",)

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler

    def delta(self, event: Mapping[str, Any], reader: Reader) -> None:
        text = reader.text(event, (), "delta")
        if text is None and is_object(event.get("delta")):
            text = _piece(event["delta"], reader)
        elif event.get("delta") is None:
            text = next((event[key] for key in OTHER_DELTAS if isinstance(event.get(key), str)), None)
            if text is not None:
                reader.mark_misread("other_member")
            elif may_hold_arguments(event, EVENT_FIELDS):
                self._assembler.call_misses_arguments(0, reader.address(event))
        if text:
            name = ARGUMENT_DELTAS[reader.kind] or reader.name(event, ())
            self._assembler.call_text(0, reader.address(event), text, name, reader.metadata(event))

    def value(self, event: Mapping[str, Any], reader: Reader) -> None:
        member = ARGUMENT_VALUES[reader.kind]
        text = _text(event, (), reader, member)
        self._assembler.call_value(0, reader.address(event), text)
        if text is None and may_hold_arguments(event, EVENT_FIELDS):
            self._assembler.call_misses_arguments(0, reader.address(event))


def _arguments_member(item: Mapping[str, Any], kind: CallType) -> str | None:
    """Return the name of the member that contains the arguments of an item.

    This is the documented member, unless that member is empty and a gateway uses another member.
    """
    if kind.wrapped or not kind.members:
        return None
    own = kind.members[0]
    if item.get(own) in (None, ""):
        for member in OTHER_ARGUMENTS:
            value = item.get(member)
            if member != own and (is_object(value) or (isinstance(value, str) and value)):
                return member
    return own


def _wrapped(item: Mapping[str, Any], path: Path, reader: Reader, kind: CallType, ending: CallEnding) -> str | None:
    """Return the members that form the arguments, as a JSON object.

    The closing brace is omitted unless the arguments are complete.
    """
    members = {key: reader.payload.raw(*path, key) or "null" for key in kind.members if item.get(key) is not None}
    text = as_object(members)
    return text[:-1] if text is not None and ending is not CallEnding.WHOLE else text


def _piece(delta: Mapping[str, Any], reader: Reader) -> str | None:
    """Return the arguments in a `delta` that is an object. If the object has only one member, which contains text,
    return this text. Otherwise, return the JSON of the object.
    """
    if len(delta) == 1:
        member, value = next(iter(delta.items()))
        if member in _PIECE_MEMBERS and isinstance(value, str):
            return value
    return reader.payload.raw("delta")


def _text(holder: Mapping[str, Any], path: Path, reader: Reader, member: str | None) -> str | None:
    """Return the text of the arguments. The JSON of a value that is not a string is returned as text, and the assembler
    classifies it later.
    """
    if member is None:
        return None
    value = holder.get(member)
    return value if value is None or isinstance(value, str) else reader.payload.raw(*path, member)


def _is_hosted(item: Mapping[str, Any]) -> bool:
    """Return whether the call is a shell call in a container of the provider, or a tool search on the provider's
    servers.

    The client does not send a result for either kind of call.
    """
    environment = item.get("environment")
    if is_object(environment):
        kind = environment.get("type")
        return isinstance(kind, str) and kind.startswith("container")
    return item.get("execution") == "server"
