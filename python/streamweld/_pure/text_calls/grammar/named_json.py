"""Parses the shape `named_json`: a name between tokens, followed by a JSON object.

Keys of a family in `_spec/text_calls.json`:

- `lead`: literals before the name
- `prefix`: an optional prefix of the name
- `counter`: set if the name ends in `:` and digits
- `call_id`: a literal and an id that may follow the name
- `maybe`: an optional literal after the name and the id
- `before`, `after`: literals around the object
- `close`: the literal that ends the block; if it is given, the block may contain several calls
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.text_calls.cursor import Malformed
from streamweld._pure.text_calls.grammar.call import WrittenCall
from streamweld._pure.text_calls.grammar.json_block import checked_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.text_calls.cursor import Cursor, Steps

__all__ = ["parse", "read_object"]


def parse(cursor: Cursor, data: Mapping[str, Any]) -> Steps[list[WrittenCall]]:
    calls: list[WrittenCall] = []
    close = data.get("close")
    while True:
        yield from cursor.skip_space()
        if close and calls and (yield from cursor.take(close)):
            return calls
        yield from cursor.expect(*data.get("lead", ()))
        yield from cursor.skip_space()
        name = _plain_name((yield from cursor.name()), data)
        if data.get("call_id") and (yield from cursor.take(data["call_id"])):
            yield from cursor.name()
        if data.get("maybe"):
            yield from cursor.take(data["maybe"])
        yield from cursor.expect(*data.get("before", ()))
        calls.append(WrittenCall(name, (yield from read_object(cursor))))
        yield from cursor.expect(*data.get("after", ()))
        if not close:
            return calls


def read_object(cursor: Cursor) -> Steps[str]:
    """Read a JSON object and return its text."""
    if (yield from cursor.skip_space()) != "{":
        raise Malformed
    return checked_object((yield from cursor.value()))


def _plain_name(name: str, data: Mapping[str, Any]) -> str:
    if data.get("counter"):
        name, colon, digits = name.rpartition(":")
        if not (colon and digits.isascii() and digits.isdigit()):
            raise Malformed
    name = name.removeprefix(data.get("prefix", ""))
    if not name:
        raise Malformed
    return name
