"""Decodes the function calls of one candidate: complete calls, and calls with streamed arguments.

A call ends with its part, unless the part has `willContinue`. A call that continues ends with the first later part that
does not have `willContinue`. Only one call can be in progress at a time, unless the calls have different ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.gemini.partial import PartialArguments, parse_path
from streamweld._pure.dialect.gemini.spec_tables import CALL_FIELDS, OTHER_ARGUMENTS, PART_FIELDS, a_word, an_id
from streamweld._pure.dialect.unread_arguments import may_hold_arguments
from streamweld._pure.json.kinds import is_array, is_object
from streamweld._pure.json.members import as_object, leftovers
from streamweld._pure.json.scanner import BigInteger
from streamweld._pure.model.delta import Address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.dialect.anomalies import Anomalies
    from streamweld._pure.json.members import Raw
    from streamweld._pure.json.scanner import Path, Payload
    from streamweld._pure.model.output import Output

_MAX_STEPS = 127  # maximum length of a path, one less than the maximum depth of JSON text


class CallReader:
    """Decodes the calls of one candidate."""

    __slots__ = (
        "_address",
        "_assembler",
        "_choice",
        "_others",
        "_out",
        "_partial",
        "_placeholder_reported",
        "_waiting",
        "failed",
    )

    def __init__(self, choice: int, assembler: Assembler, out: Output) -> None:
        self._choice = choice
        self._assembler = assembler
        self._out = out
        self._placeholder_reported = False
        self._address: Address | None = None  # address of the active call
        # Whether the active call ended without arguments. A part that contains only arguments then continues the call.
        self._waiting = False
        self._partial = PartialArguments()
        self._others: dict[str, tuple[Address, PartialArguments]] = {}  # other calls that have not ended, by id
        # Whether the candidate has a finish reason that means an error. The calls of such a candidate are not closed,
        # because their parts do not show that the calls are valid.
        self.failed = False

    def read(
        self, payload: Payload, part: Mapping[str, Any], path: Path, position: int, extra: Raw, notes: Anomalies
    ) -> None:
        """Decode the functionCall of a part. `position`: the position of the part in its candidate."""
        call = notes.an_object(part, path, "functionCall")
        if call is None:
            return
        path = (*path, "functionCall")
        identity, name = an_id(payload, call, path, notes), a_word(call, path, "name", notes)
        member = _arguments_member(call)
        if member != "args":
            notes.mark_misread("other_member")
        metadata = as_object(extra | leftovers(payload, path, call, CALL_FIELDS | {member}))
        goes_on = call.get("willContinue") is True
        partial = call.get("partialArgs")
        self._turn_to(identity, name)
        address = self._address
        if address is not None and (
            name is None if None in (identity, address.call_id) else identity == address.call_id
        ):
            if self._waiting:
                self._continue(address, _arguments(payload, call, path, member), notes)
            if self._address is not None:
                self._waiting = self._waiting and not is_array(partial)
                self._more(payload, partial, path, metadata, notes)
            if not goes_on:
                self._end()
            return
        if identity is None:
            self.finish()
        else:
            self._set_aside()
        arguments = _arguments(payload, call, path, member)
        if (payload.raw(*path, "args") or "").startswith('"{'):
            notes.mark_misread("args_text")  # google-genai raises unless the arguments are an object
        has_arguments = arguments is not None and bool(call.get(member))
        if not (name or identity or has_arguments or is_array(partial) or _misses_arguments(part, call)):
            self._placeholder(metadata, notes)
            return
        address = Address(call_id=identity, index=position)
        if not goes_on and not is_array(partial) and (arguments is not None or name is None or self.failed):
            self._assembler.call_opened(self._choice, address, name, arguments or "{}", False, False, metadata)
            self._close(address)
            return
        self._address = address
        self._waiting = not goes_on and not is_array(partial)
        self._partial = PartialArguments()
        self._assembler.call_opened(
            self._choice, address, name, arguments if arguments != "{}" else None, False, False, metadata
        )
        if arguments is None and not is_array(partial) and _misses_arguments(part, call):
            self._assembler.call_misses_arguments(self._choice, address)
            self._waiting = False
            self._address = None if not goes_on else address
            self._close(address)
            return
        self._more(payload, partial, path, None, notes)
        if not goes_on and not self._waiting:
            self._end()

    def _placeholder(self, metadata: str | None, notes: Anomalies) -> None:
        """Keep the extra members of a call without content. Some gateways write every member of a part."""
        notes.mark_misread("empty_entry")  # clients read a call without a name
        if metadata is not None:
            self._assembler.choice_metadata(self._choice, metadata)
        if not self._placeholder_reported:
            self._placeholder_reported = True
            self._out.diagnose("call_placeholder")

    def _continue(self, address: Address, arguments: str | None, notes: Anomalies) -> None:
        """Add the arguments from a part without a name to the preceding call."""
        if arguments is not None:
            self._waiting = False
            notes.mark_misread("no_name")  # clients would treat the part as another call
            self._push(address, arguments, None)
            self._close(address)
            self._address = None

    def end_waiting(self) -> None:
        """End the active call if it is still waiting for a part with its arguments."""
        if self._waiting:
            self._end()

    def finish(self) -> None:
        """End all open calls, because a part of another kind or the end of the stream follows.

        A call that was truncated within a string remains incomplete.
        """
        active = list(self._others.values())
        self._others = {}
        if self._address is not None:
            active.append((self._address, self._partial))
        for self._address, self._partial in sorted(active, key=lambda one: one[0].index or 0):
            self._end()

    def _set_aside(self) -> None:
        """Set the active call aside until a part with its id arrives. If the call has no id, end the call instead."""
        if self._address is None or self._address.call_id is None or self._waiting:
            self._end()
            return
        self._others[self._address.call_id] = self._address, self._partial
        self._address = None

    def _turn_to(self, identity: str | None, name: str | None) -> None:
        """Activate the call with this id, if it was set aside.

        If no call is active, a part with neither id nor name activates the call that was set aside last.
        """
        if identity is not None and identity in self._others:
            self._set_aside()
            self._address, self._partial = self._others.pop(identity)
        elif identity is None and name is None and self._address is None and self._others:
            self._address, self._partial = self._others.popitem()[1]

    def _end(self) -> None:
        address, self._address = self._address, None
        waited, self._waiting = self._waiting, False
        if address is None:
            return
        if self._partial.between:
            # Absent arguments mean empty arguments, because Protobuf omits empty objects.
            self._push(address, self._partial.close(), None)
        self._close(address, waited=waited)

    def _close(self, address: Address, *, waited: bool = False) -> None:
        if waited or not self.failed:
            self._assembler.item_closed(self._choice, "call", address, None, None)

    def _more(self, payload: Payload, partial: object, path: Path, metadata: str | None, notes: Anomalies) -> None:
        address = self._address
        if address is None:
            return
        if metadata is not None:
            self._push(address, "", metadata)
        if partial is None:
            return
        path = (*path, "partialArgs")
        if not is_array(partial):
            notes.shape(path)
            return
        for number, piece in enumerate(partial):
            here = (*path, number)
            text = self._piece(payload, piece, here, notes) if is_object(piece) else None
            if text is None:
                notes.shape(here)
                text = self._partial.spoil()
            self._push(address, text, None)

    def _piece(self, payload: Payload, piece: Mapping[str, Any], path: Path, notes: Anomalies) -> str | None:
        """Return the JSON text that an element of `partialArgs` adds, or None if the element cannot be added."""
        where = piece.get("jsonPath")
        steps = parse_path(notes.clean(where), _MAX_STEPS) if isinstance(where, str) else None
        if steps is None:
            return None
        partial = self._partial
        value = piece.get("stringValue")
        if isinstance(value, str):
            return partial.string(steps, value, goes_on=piece.get("willContinue") is True)
        number = piece.get("numberValue")
        if isinstance(number, int | float | BigInteger) and not isinstance(number, bool):
            return partial.leaf(steps, payload.raw(*path, "numberValue") or "0")
        flag = piece.get("boolValue")
        if isinstance(flag, bool):
            return partial.leaf(steps, "true" if flag else "false")
        return partial.leaf(steps, "null") if "nullValue" in piece else None

    def _push(self, address: Address, text: str, metadata: str | None) -> None:
        if text or metadata is not None:
            self._assembler.call_text(self._choice, address, text, None, metadata)


def _misses_arguments(part: Mapping[str, Any], call: Mapping[str, Any]) -> bool:
    """Return whether a call without arguments, or its part, has an unknown member that may contain the arguments."""
    return may_hold_arguments(call, CALL_FIELDS) or may_hold_arguments(part, PART_FIELDS)


def _arguments_member(call: Mapping[str, Any]) -> str:
    """Return the name of the member that contains the arguments: `args`, or another name that a gateway uses."""
    if call.get("args") is None:
        for member in OTHER_ARGUMENTS:
            value = call.get(member)
            if is_object(value) or (isinstance(value, str) and value.strip()):
                return member
    return "args"


def _arguments(payload: Payload, call: Mapping[str, Any], path: Path, member: str) -> str | None:
    """Return the arguments as JSON text. A value that is not an object is returned as text, and the assembler
    classifies it later.
    """
    value = call.get(member)
    if value is None:
        return None
    if isinstance(value, str):
        return value if value.strip() else None
    return payload.raw(*path, member)
