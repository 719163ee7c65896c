"""`xml`: an element per call, an element per parameter. Not XML: values are raw text, and end at their closer.

Keys: `call` with `open`, `named` (after the name), `close`, and the literals `lead` and `tail` around it; `parameter`
with `open`, `named`, `close`; `trim`: `newline` removes one newline at each end of a value; `typed`: `attribute` if a
parameter's tag has `string="true"` or `"false"` (else the schema decides), a call then may also be one JSON object, or
close itself; `close`: with it, several calls may stand before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.text_calls.cursor import Malformed
from streamweld._pure.text_calls.grammar.call import Argument, WrittenCall
from streamweld._pure.text_calls.grammar.named_json import read_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.text_calls.cursor import Cursor, Steps

__all__ = ["add", "parse"]


def parse(cursor: Cursor, data: Mapping[str, Any]) -> Steps[list[WrittenCall]]:
    calls: list[WrittenCall] = []
    close = data.get("close")
    call = data["call"]
    while True:
        yield from cursor.skip_space()
        if close and calls and (yield from cursor.take(close)):
            return calls
        yield from cursor.expect(*call.get("lead", ()), call["open"])
        calls.append((yield from _call(cursor, data)))
        yield from cursor.expect(*call.get("tail", ()))
        if not close:
            return calls


def _call(cursor: Cursor, data: Mapping[str, Any]) -> Steps[WrittenCall]:
    call = data["call"]
    by_attribute = data.get("typed") == "attribute"
    name = yield from cursor.name()
    if by_attribute and (yield from cursor.take('"/>')):
        return WrittenCall(name, [])
    if not (yield from cursor.take(call["named"])):
        raise Malformed
    found: dict[str, Argument] = {}
    while True:
        first = yield from cursor.skip_space()
        if by_attribute and first == "{" and not found:
            text = yield from read_object(cursor)
            yield from cursor.expect(call["close"])
            return WrittenCall(name, text)
        if (yield from cursor.take(call["close"])):
            return WrittenCall(name, list(found.values()))
        add(found, (yield from _parameter(cursor, data, by_attribute=by_attribute)))


def _parameter(cursor: Cursor, data: Mapping[str, Any], *, by_attribute: bool) -> Steps[Argument]:
    parameter = data["parameter"]
    yield from cursor.expect(parameter["open"])
    key = yield from cursor.name()
    if not (yield from cursor.take(parameter["named"])):
        raise Malformed
    is_string = False
    if by_attribute:
        yield from cursor.expect('string="')
        is_string = yield from cursor.take("true")
        if not is_string and not (yield from cursor.take("false")):
            raise Malformed
        if not (yield from cursor.take('">')):
            raise Malformed
    text = yield from cursor.until(parameter["close"])
    if parameter["open"] in text:
        raise Malformed  # the closer of this one is missing
    if data.get("trim") == "newline":
        text = text.removeprefix("\n").removesuffix("\n")
    if not by_attribute:
        return Argument(key, text, "raw")
    return Argument(key, text, "string" if is_string else "json")


def add(found: dict[str, Argument], argument: Argument) -> None:
    """One more argument of a call. Raises Malformed if there is one of that name."""
    if argument.key in found:
        raise Malformed
    found[argument.key] = argument
