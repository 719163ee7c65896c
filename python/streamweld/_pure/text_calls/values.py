"""Converts the arguments of a call to the types in the tool's JSON schema, and writes the arguments as JSON.

A value whose schema allows only strings remains unchanged (`007`, `true`). For any other value, all allowed types
except string are tried first. If the value does not match any allowed type, the call is refused.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote

from streamweld._pure.assemble.part.canonical_json import canonical
from streamweld._pure.json.scanner import BigInteger, JsonFault
from streamweld._pure.json.scanner import parse as parse_json
from streamweld._pure.text_calls.cursor import WHITE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streamweld._pure.text_calls.grammar.call import Argument, WrittenCall

__all__ = ["BadValue", "Tool", "arguments_text", "comparable", "is_declaration"]

_MAX_SCHEMAS: Final = 256  # maximum number of schemas to visit for one parameter; references may form a cycle
_NAMES: Final = {
    "string": ("string", "str", "text", "varchar", "char", "enum"),
    "integer": ("integer", "int", "long", "short", "bigint"),
    "number": ("number", "float", "double", "decimal", "num"),
    "boolean": ("boolean", "bool"),
    "object": ("object", "dict", "map"),
    "array": ("array", "list", "tuple"),
    "null": ("null",),
}
_TYPES: Final = {name: kind for kind, names in _NAMES.items() for name in names}  # type names found in tool schemas
_KINDS: Final[tuple[tuple[type, str], ...]] = (
    (bool, "boolean"),
    (int, "integer"),
    (BigInteger, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
)
_INTEGER: Final = re.compile(r"([+-]?)([0-9]+)()")
_NUMBER: Final = re.compile(r"([+-]?)([0-9]+)((?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)")

_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,17}")  # of an element of an array in a JSON pointer

_NUMBER_OR_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"|(-?)([0-9]+)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?', re.DOTALL)
_MOST_EXPONENT: Final = 18  # maximum number of digits in an exponent that is compared by value


class BadValue(Exception):
    """Raised if a value does not match any of the types that the schema allows."""


class Tool:
    """One of the request's tools."""

    __slots__ = ("_schema", "is_promoted")

    def __init__(self, schema_text: str | None) -> None:
        schema: object = None if schema_text is None else json.loads(schema_text)
        self._schema: dict[str, Any] | None = cast("dict[str, Any]", schema) if isinstance(schema, dict) else None
        self.is_promoted = self._schema is None or self._schema.get("x-text-calls") is not False

    def types(self, key: str) -> set[str]:
        """Return the types that a parameter may have, or an empty set if the schema does not restrict it."""
        if self._schema is None:
            return set()
        rest = [_MAX_SCHEMAS]
        found = [one["properties"][key] for one in _visit(self._schema, self._schema, rest) if _describes(one, key)]
        types: set[str] = set()
        for one in found:
            for schema in _visit(one, self._schema, rest):
                types |= _declared(schema)
        return types

    def declares(self, key: str) -> bool:
        """Return True if the schema declares a parameter of this name."""
        return self._schema is not None and any(
            _describes(one, key) for one in _visit(self._schema, self._schema, [_MAX_SCHEMAS])
        )

    def takes(self, arguments: str) -> bool:
        """Return True if the object has all required members, no unknown members, and values of the declared types."""
        if self._schema is None:
            return False
        members = cast("dict[str, object]", parse_json(arguments).value)
        required = self._schema.get("required")
        wanted = cast("list[object]", required) if isinstance(required, list) else []
        if not all(key in members for key in wanted if isinstance(key, str)):
            return False
        for key, value in members.items():
            kind = _type_of(value)
            kinds = {kind, "number"} if kind == "integer" else {kind}
            types = self.types(key)
            if not self.declares(key) or (types and not types & kinds):
                return False
        return True


def arguments_text(call: WrittenCall, tool: Tool | None) -> str:
    """Return the JSON text of a call's arguments.

    Raises: BadValue: if a value does not match any of the types that the schema allows.
    """
    if isinstance(call.arguments, str):
        return call.arguments
    written = [f"{json.dumps(one.key, ensure_ascii=False)}:{_value(one, tool)}" for one in call.arguments]
    return "{" + ",".join(written) + "}"


def is_declaration(arguments: str, tool: Tool | None) -> bool:
    """Return True if the arguments of a call are the JSON schema of a tool's parameters.

    A model that repeats the tools of its prompt does not call them.
    """
    members = cast("dict[str, object]", parse_json(arguments).value)
    is_schema = members.get("type") == "object" and isinstance(members.get("properties"), dict)
    return is_schema and not (tool is not None and (tool.declares("type") or tool.declares("properties")))


def comparable(arguments: str) -> str:
    """Return a text that is the same for all JSON texts of equal arguments. `5`, `5.0`, and `0.5e1` are equal."""
    return _NUMBER_OR_STRING.sub(_comparable_number, canonical(arguments))


def _comparable_number(found: re.Match[str]) -> str:
    sign, whole, fraction, exponent = found.groups("")
    if not whole or len(exponent.lstrip("+-")) > _MOST_EXPONENT:
        return found[0]
    digits = (whole + fraction).lstrip("0")
    bare = digits.rstrip("0")
    power = int(exponent or "0") - len(fraction) + len(digits) - len(bare)
    return f"{sign}{bare}e{power}" if bare else "0"


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
    # An integer of any number of digits is a number, but JSON readers turn a larger float into infinity.
    found = _NUMBER.fullmatch(bare) if "number" in types else None
    if found is not None and (not found[3] or abs(float(bare)) != float("inf")):
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
    """Return a number in JSON syntax, without a plus sign, leading zeros, or a negative zero."""
    digits = found[2].lstrip("0") or "0"
    sign = "" if digits + found[3] == "0" else found[1].removeprefix("+")
    return sign + digits + found[3]


def _json_text(text: str, kind: type) -> str:
    try:
        payload = parse_json(text)
    except JsonFault:
        raise BadValue from None
    if payload.duplicates or not isinstance(payload.value, kind):
        raise BadValue
    return text.strip(WHITE)


def _visit(schema: object, root: Mapping[str, Any], rest: list[int]) -> Iterator[dict[str, Any]]:
    """Yield the schema, the schemas that it refers to, and its alternatives."""
    waiting = [schema]
    while waiting and rest[0]:
        rest[0] -= 1
        one = waiting.pop()
        if not isinstance(one, dict):
            continue
        members = cast("dict[str, Any]", one)
        yield members
        reference = members.get("$ref")
        if isinstance(reference, str):
            waiting.append(_referred(reference, root))
        for word in ("anyOf", "oneOf", "allOf"):
            listed = members.get(word)
            if isinstance(listed, list):
                waiting += cast("list[object]", listed)


def _referred(reference: str, root: Mapping[str, Any]) -> object:
    """Return the value that a `$ref` refers to, or None if it is not a JSON pointer to a value of this schema.

    A pointer in a fragment is percent-encoded: https://www.rfc-editor.org/rfc/rfc6901#section-6
    """
    mark, *steps = reference.split("/")
    if mark != "#":
        return None
    node: object = root
    for step in steps:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict):
            node = cast("dict[str, object]", node).get(name)
        elif isinstance(node, list) and _INDEX.fullmatch(name) is not None:
            items = cast("list[object]", node)
            node = items[int(name)] if int(name) < len(items) else None
        else:
            return None
    return node


def _describes(schema: Mapping[str, Any], key: str) -> bool:
    properties = schema.get("properties")
    return isinstance(properties, dict) and key in properties


def _declared(members: Mapping[str, Any]) -> set[str]:
    """Return the types that a schema itself declares, without the types of schemas that it refers to."""
    types: set[str] = set()
    word = members.get("type")
    for one in cast("list[object]", word) if isinstance(word, list) else [word]:
        if isinstance(one, str):
            types.add(_TYPES.get(one.lower(), "string"))
    if not types:
        listed = members.get("enum")
        values = [*cast("list[object]", listed)] if isinstance(listed, list) else []
        types = {_type_of(value) for value in [*values, *([members["const"]] if "const" in members else [])]}
    if types and members.get("nullable") is True:
        types.add("null")
    return types


def _type_of(value: object) -> str:
    if value is None:
        return "null"
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return name
    return "object"
