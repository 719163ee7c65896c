"""Parses the shape `json`: a JSON object with a name and arguments, an array of such objects, or several of either.

Keys of a family in `_spec/text_calls.json`:

- `lead`: literals before the value
- `values`: the allowed values (`object`, `array`, `objects`, or `keyed`, which is an array of `{"name": {...}}`)
- `name`, `arguments`: the names of these members
- `unwrap`: false if the arguments must not be a JSON string that contains an object
- `close`: the literal that ends the block
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from streamweld._pure.json.scanner import JsonFault, Payload, has_lone_surrogate
from streamweld._pure.json.scanner import parse as parse_json
from streamweld._pure.text_calls.cursor import Malformed
from streamweld._pure.text_calls.grammar.call import WrittenCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.text_calls.cursor import Cursor, Steps

__all__ = ["checked_object", "parse"]

# Additional members that a call may contain. An object with any other member, such as `description`, is not a call.
_BESIDE: Final = frozenset({"id", "type", "index", "tool_call_id", "call_id"})


def parse(cursor: Cursor, data: Mapping[str, Any]) -> Steps[list[WrittenCall]]:
    values = data["values"]
    yield from cursor.expect(*data.get("lead", ()))
    first = yield from cursor.skip_space()
    calls: list[WrittenCall] = []
    if first == "{" and ("object" in values or "objects" in values):
        calls += _calls((yield from cursor.value(first='"')), data)
        while "objects" in values and (yield from cursor.skip_space()) == "{":
            calls += _calls((yield from cursor.value(first='"')), data)
    elif first == "[" and ("array" in values or "keyed" in values):
        calls += _calls((yield from cursor.value(first="{")), data)
    else:
        raise Malformed
    if data.get("close"):
        yield from cursor.expect(data["close"])
    return calls


def _calls(text: str, data: Mapping[str, Any]) -> list[WrittenCall]:
    payload = _whole(text)
    value = cast("object", payload.value)
    if isinstance(value, list):
        paths: list[tuple[int, ...]] = [(index,) for index in range(len(cast("list[object]", value)))]
    else:
        paths = [()]
    if not paths:
        raise Malformed
    read = _keyed if "keyed" in data["values"] else _named
    return [read(payload, path, data) for path in paths]


def _member(payload: Payload, path: tuple[int, ...]) -> dict[str, object]:
    value = payload.value
    for step in path:
        value = value[step]
    if not isinstance(value, dict):
        raise Malformed
    return cast("dict[str, object]", value)


def _named(payload: Payload, path: tuple[int, ...], data: Mapping[str, Any]) -> WrittenCall:
    members = _member(payload, path)
    name = members.get(data.get("name", "name"))
    keys = [key for key in data.get("arguments", ("arguments", "parameters")) if key in members]
    if not isinstance(name, str) or not name or has_lone_surrogate(name) or len(keys) != 1:
        raise Malformed
    if not members.keys() <= {data.get("name", "name"), keys[0]} | _BESIDE:
        raise Malformed
    arguments = members[keys[0]]
    if isinstance(arguments, dict):
        return WrittenCall(name, payload.raw(*path, keys[0]) or "{}")
    if isinstance(arguments, str) and data.get("unwrap", True) and not has_lone_surrogate(arguments):
        return WrittenCall(name, checked_object(arguments))
    raise Malformed


def _keyed(payload: Payload, path: tuple[int, ...], data: Mapping[str, Any]) -> WrittenCall:
    del data
    members = _member(payload, path)
    if len(members) != 1:
        raise Malformed
    [(name, arguments)] = members.items()
    if not name or not isinstance(arguments, dict):
        raise Malformed
    return WrittenCall(name, payload.raw(*path, name) or "{}")


def _whole(text: str) -> Payload:
    try:
        payload = parse_json(text)
    except JsonFault:
        raise Malformed from None
    if payload.duplicates:
        raise Malformed  # it is ambiguous which of the duplicate members applies
    return payload


def checked_object(text: str) -> str:
    """Return the text of a JSON object without surrounding whitespace. Raises Malformed if the text is not an
    object.
    """
    if not isinstance(_whole(text).value, dict):
        raise Malformed
    return text.strip(" \t\r\n")
