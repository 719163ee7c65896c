"""Parses the shape `key_value`: the name of the call, then one element for each key and one for each value.

Keys of a family in `_spec/text_calls.json`: `key` and `value` contain the opener and closer of each element, and
`close` is the literal that ends the block. If the block contains several calls, `call` contains `open`, `close` and the
`separator` after the name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.text_calls.cursor import WHITE, Malformed
from streamweld._pure.text_calls.grammar.call import Argument, WrittenCall
from streamweld._pure.text_calls.grammar.xml import add

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.text_calls.cursor import Cursor, Steps

__all__ = ["parse"]


def parse(cursor: Cursor, data: Mapping[str, Any]) -> Steps[list[WrittenCall]]:
    call = data.get("call")
    if call is None:
        return [(yield from _call(cursor, data, None, data["close"]))]
    calls: list[WrittenCall] = []
    while True:
        yield from cursor.skip_space()
        if calls and (yield from cursor.take(data["close"])):
            return calls
        yield from cursor.expect(call["open"])
        calls.append((yield from _call(cursor, data, call.get("separator"), call["close"])))


def _call(cursor: Cursor, data: Mapping[str, Any], separator: str | None, close: str) -> Steps[WrittenCall]:
    yield from cursor.skip_space()
    name = yield from cursor.name()
    yield from cursor.skip_space()
    if separator is not None:
        yield from cursor.take(separator)  # optional, because later versions of the format do not have it
    key_open, key_close = data["key"]
    value_open, value_close = data["value"]
    found: dict[str, Argument] = {}
    while True:
        yield from cursor.skip_space()
        if (yield from cursor.take(close)):
            return WrittenCall(name, list(found.values()))
        yield from cursor.expect(key_open)
        key = (yield from cursor.until(key_close)).strip(WHITE)
        if not key or any(mark in key for mark in "<>\n"):
            raise Malformed
        yield from cursor.expect(value_open)
        text = yield from cursor.until(value_close)
        if key_open in text or value_open in text:
            raise Malformed  # the closing tag of this value is missing, so the text contains the next key or value
        add(found, Argument(key, text, "raw"))
