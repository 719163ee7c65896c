"""Arguments by JSON schema: which type a raw text has, and the JSON text of a call's arguments.

A text whose schema allows only strings stays as it is (`007`, `true`). Otherwise the other types are tried first; a
text that fits no allowed type refuses the call.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld._pure.json.scanner import JsonFault
from streamweld._pure.json.scanner import parse as parse_json
from streamweld._pure.text_calls.cursor import WHITE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamweld._pure.text_calls.grammar.call import Argument, WrittenCall

__all__ = ["BadValue", "Tool", "arguments_text"]

_DEPTH: Final = 16
_NAMES: Final = {
    "string": ("string", "str", "text", "varchar", "char", "enum"),
    "integer": ("integer", "int", "long", "short", "bigint"),
    "number": ("number", "float", "double", "decimal", "num"),
    "boolean": ("boolean", "bool"),
    "object": ("object", "dict", "map"),
    "array": ("array", "list", "tuple"),
    "null": ("null",),
}
_TYPES: Final = {name: kind for kind, names in _NAMES.items() for name in names}  # tools spell types in many ways
_INTEGER: Final = re.compile(r"([+-]?)([0-9]+)()")
_NUMBER: Final = re.compile(r"([+-]?)([0-9]+)((?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)")


class BadValue(Exception):
    """A text fits no type that the schema allows."""


class Tool:
    """One tool of the request."""

    __slots__ = ("_schema", "is_promoted")

    def __init__(self, schema_text: str | None) -> None:
        schema: object = None if schema_text is None else json.loads(schema_text)
        self._schema: dict[str, Any] | None = cast("dict[str, Any]", schema) if isinstance(schema, dict) else None
        self.is_promoted = self._schema is None or self._schema.get("x-text-calls") is not False

    def types(self, key: str) -> set[str]:
        """The types that a parameter may have; empty if the schema does not restrict it."""
        if self._schema is None:
            return set()
        found: list[object] = []
        _find(self._schema, key, self._schema, found, 0)
        types: set[str] = set()
        for one in found:
            types |= _types(one, self._schema, 0)
        return types

    def takes(self, keys: Sequence[str]) -> bool:
        """Whether the schema has all of these parameters, and requires no other."""
        if self._schema is None:
            return False
        properties = self._schema.get("properties")
        required = self._schema.get("required", [])
        known = set(cast("dict[str, object]", properties)) if isinstance(properties, dict) else set[str]()
        wanted = set(cast("list[str]", required)) if isinstance(required, list) else set[str]()
        return set(keys) <= known and wanted <= set(keys)


def arguments_text(call: WrittenCall, tool: Tool | None) -> str:
    """The JSON text of a call's arguments.

    Raises:
        BadValue: a text fits no type that the schema allows.
    """
    if isinstance(call.arguments, str):
        return call.arguments
    written = [f"{json.dumps(one.key, ensure_ascii=False)}:{_value(one, tool)}" for one in call.arguments]
    return "{" + ",".join(written) + "}"


def _value(argument: Argument, tool: Tool | None) -> str:
    if argument.kind == "string":
        return json.dumps(argument.text, ensure_ascii=False)
    if argument.kind == "json":
        return _json_text(argument.text, object)
    return _typed(argument.text, set() if tool is None else tool.types(argument.key))


def _typed(text: str, types: set[str]) -> str:
    if types <= {"string"} or types == {"string", "null"}:
        return json.dumps(text, ensure_ascii=False)
    bare = text.strip(WHITE)
    if "null" in types and bare.lower() == "null":
        return "null"
    if "integer" in types and (found := _INTEGER.fullmatch(bare)) is not None:
        return _plain_number(found)
    if "number" in types and (found := _NUMBER.fullmatch(bare)) is not None and abs(float(bare)) != float("inf"):
        return _plain_number(found)
    if "boolean" in types and bare.lower() in ("true", "false"):
        return bare.lower()
    for name, kind in (("object", dict), ("array", list)):
        if name in types:
            try:
                return _json_text(bare, kind)
            except BadValue:
                continue
    if "string" in types:
        return json.dumps(text, ensure_ascii=False)
    raise BadValue


def _plain_number(found: re.Match[str]) -> str:
    """A number as JSON spells it: no plus sign, no zeros in front."""
    return found[1].removeprefix("+") + (found[2].lstrip("0") or "0") + found[3]


def _json_text(text: str, kind: type) -> str:
    try:
        payload = parse_json(text)
    except JsonFault:
        raise BadValue from None
    if payload.duplicates or not isinstance(payload.value, kind):
        raise BadValue
    return text.strip(WHITE)


def _followed(schema: object, root: Mapping[str, Any]) -> object:
    """What a local `$ref` refers to."""
    for _ in range(_DEPTH):
        if not isinstance(schema, dict):
            return schema
        reference = cast("dict[str, object]", schema).get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#"):
            return cast("dict[str, object]", schema)
        place: object = root
        for step in reference[1:].split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            place = cast("dict[str, object]", place).get(name) if isinstance(place, dict) else None
        schema = place
    return None


def _alternatives(schema: Mapping[str, object]) -> list[object]:
    found: list[object] = []
    for word in ("anyOf", "oneOf", "allOf"):
        listed = schema.get(word)
        if isinstance(listed, list):
            found += cast("list[object]", listed)
    return found


def _find(schema: object, key: str, root: Mapping[str, Any], found: list[object], depth: int) -> None:
    schema = _followed(schema, root)
    if not isinstance(schema, dict) or depth > _DEPTH:
        return
    members = cast("dict[str, object]", schema)
    properties = members.get("properties")
    if isinstance(properties, dict) and key in properties:
        found.append(cast("dict[str, object]", properties)[key])
    for one in _alternatives(members):
        _find(one, key, root, found, depth + 1)


def _types(schema: object, root: Mapping[str, Any], depth: int) -> set[str]:
    schema = _followed(schema, root)
    if not isinstance(schema, dict) or depth > _DEPTH:
        return set()
    members = cast("dict[str, object]", schema)
    types: set[str] = set()
    word = members.get("type")
    for one in cast("list[object]", word) if isinstance(word, list) else [word]:
        if isinstance(one, str):
            types.add(_TYPES.get(one.lower(), "string"))
    listed = members.get("enum")
    values = cast("list[object]", listed) if isinstance(listed, list) and not types else []
    if "const" in members and not types:
        values = [*values, members["const"]]
    types |= {_type_of(value) for value in values}
    for one in _alternatives(members):
        types |= _types(one, root, depth + 1)
    if types and members.get("nullable") is True:
        types.add("null")
    return types


def _type_of(value: object) -> str:
    if value is None:
        return "null"
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "object"
