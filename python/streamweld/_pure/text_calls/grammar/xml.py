"""Parses the shape `xml`: for each call, an element that contains an element for each parameter.

The form is not XML: a value is raw text up to its closer. Keys of a family in `_spec/text_calls.json`:

- `call`: the literals `open`, `named` (after the name) and `close`; `lead` and `tail` around the call; `counter`, a
  literal that may follow `named` and digits; `repeats`, if the name may also precede `open`
- `parameter`: the literals `open`, `named` and `close`, in which `{key}` is the name of the parameter
- `trim`: `newline` removes one line break, LF or CRLF, at each end of a value
- `typed`: `attribute` if the tag of a parameter declares whether its value is a string; otherwise, the schema
  determines the type. The keys `string` and `json` contain the two literals. The defaults of these literals are
  `string="true">` and `string="false">`. A call with such tags may also be a single JSON object, between the two
  literals of `object` if there are any, or a self-closing element
- `entities`: `&quot;` and `&amp;` in names are decoded
- `close`: the literal that ends the block, which may then contain several calls
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from streamweld._pure.text_calls.cursor import Malformed
from streamweld._pure.text_calls.grammar.call import Argument, WrittenCall
from streamweld._pure.text_calls.grammar.named_json import read_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streamweld._pure.text_calls.cursor import Cursor, Steps

__all__ = ["add", "parse"]

_FIRST_BREAK: Final = re.compile(r"\A\r?\n")
_LAST_BREAK: Final = re.compile(r"\r?\n\Z")


def parse(cursor: Cursor, data: Mapping[str, Any]) -> Steps[list[WrittenCall]]:
    calls: list[WrittenCall] = []
    close = data.get("close")
    call = data["call"]
    while True:
        yield from cursor.skip_space()
        if close and calls and (yield from cursor.take(close)):
            return calls
        yield from cursor.expect(*call.get("lead", ()))
        yield from cursor.skip_space()
        repeated = ""
        if not (yield from cursor.take(call["open"])):
            if not call.get("repeats"):
                raise Malformed
            repeated = yield from cursor.name()
            yield from cursor.expect(call["open"])
        calls.append((yield from _call(cursor, data, repeated)))
        yield from cursor.expect(*call.get("tail", ()))
        if not close:
            return calls


def _call(cursor: Cursor, data: Mapping[str, Any], repeated: str) -> Steps[WrittenCall]:
    call = data["call"]
    by_attribute = data.get("typed") == "attribute"
    before, after = data.get("object", ("", ""))
    name = yield from _name(cursor, data)
    if repeated not in ("", name):
        raise Malformed
    if by_attribute and (yield from cursor.take('"/>')):
        return WrittenCall(name, [])
    if not (yield from cursor.take(call["named"])):
        raise Malformed
    if call.get("counter"):
        yield from cursor.digits()
        if not (yield from cursor.take(call["counter"])):
            raise Malformed
    found: dict[str, Argument] = {}
    while True:
        first = yield from cursor.skip_space()
        has_object = not found and ((yield from cursor.take(before)) if before else by_attribute and first == "{")
        if has_object:
            text = yield from read_object(cursor)
            yield from cursor.expect(after, call["close"])
            return WrittenCall(name, text)
        if (yield from cursor.take(call["close"])):
            return WrittenCall(name, list(found.values()))
        add(found, (yield from _parameter(cursor, data, by_attribute=by_attribute)))


def _parameter(cursor: Cursor, data: Mapping[str, Any], *, by_attribute: bool) -> Steps[Argument]:
    parameter = data["parameter"]
    yield from cursor.expect(parameter["open"])
    key = yield from _name(cursor, data)
    if not (yield from cursor.take(parameter["named"])):
        raise Malformed
    is_string = False
    if by_attribute:
        yield from cursor.skip_space()
        is_string = yield from _take_any(cursor, data.get("string") or ('string="true">',))
        if not is_string and not (yield from _take_any(cursor, data.get("json") or ('string="false">',))):
            raise Malformed
    text = yield from cursor.until(parameter["close"].replace("{key}", key))
    if any(not piece.startswith("/") for piece in text.split(parameter["open"])[1:]):
        raise Malformed  # the closing tag is missing; an opening literal that ends in `<` also matches closing tags
    if data.get("trim") == "newline":
        text = _LAST_BREAK.sub("", _FIRST_BREAK.sub("", text))
    if not by_attribute:
        return Argument(key, text, "raw")
    return Argument(key, text, "string" if is_string else "json")


def _take_any(cursor: Cursor, literals: Iterable[str]) -> Steps[bool]:
    for literal in literals:
        if (yield from cursor.take(literal)):
            return True
    return False


def _name(cursor: Cursor, data: Mapping[str, Any]) -> Steps[str]:
    if not data.get("entities"):
        return (yield from cursor.name())
    return (yield from cursor.attribute()).replace("&quot;", '"').replace("&amp;", "&")


def add(found: dict[str, Argument], argument: Argument) -> None:
    """Add an argument to a call. Raises Malformed if the call already has an argument with that name."""
    if argument.key in found:
        raise Malformed
    found[argument.key] = argument
