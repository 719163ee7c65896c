"""Convert the schema of a tool or a response format from Gemini's `Schema` to JSON Schema."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# (the input is JSON from the caller, so the types inside its containers are unknown)

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld._spec import load_requests

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "EMPTY",
    "foreign_to_gemini",
    "from_gemini",
    "is_empty",
    "is_object",
    "is_strict",
    "lacks_properties",
    "of_object",
]

EMPTY: Final[Mapping[str, Any]] = {"type": "object", "properties": {}}
_COUNTS: Final = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_DROPPED: Final = ("propertyOrdering", "nullable")


def from_gemini(schema: Any) -> Any:
    """Convert a Gemini `Schema` (upper-case types, `nullable`, `propertyOrdering`, counts as strings) to JSON Schema.

    >>> from_gemini({"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True}}})
    {'type': 'object', 'properties': {'a': {'type': ['string', 'null']}}}
    """
    if isinstance(schema, list | tuple):
        return [from_gemini(item) for item in cast("Sequence[Any]", schema)]
    if not isinstance(schema, Mapping):
        return schema
    given = cast("Mapping[str, Any]", schema)
    made: dict[str, Any] = {}
    known = load_requests()["gemini_schema"]["members"]
    for key, value in given.items():
        name = camel if (camel := _camel(key)) in known else key
        if name in _DROPPED or (name == "enum" and not value) or (name == "format" and value == "enum"):
            continue
        if name == "type" and isinstance(value, str):
            made[name] = value.lower()
        elif name == "properties" and isinstance(value, Mapping):
            members = cast("Mapping[str, Any]", value)
            order = given.get("propertyOrdering", given.get("property_ordering"))
            first = [key for key in order if key in members] if isinstance(order, list | tuple) else []
            made[name] = {key: from_gemini(members[key]) for key in dict.fromkeys([*first, *members])}
        elif name in ("items", "anyOf", "additionalProperties"):
            made[name] = from_gemini(value)
        elif name in _COUNTS and isinstance(value, str) and value.isdecimal():
            made[name] = int(value)
        else:
            made[name] = value
    if given.get("nullable") is True and isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
    return made


def foreign_to_gemini(schema: Any, gateway: str) -> str | None:
    """Return why the schema is not one of Gemini's type `Schema`, or None if it is one.

    A `Schema` has fewer members than JSON Schema, a single type, `enum` only for strings, and `items` for arrays.
    """
    table = load_requests()["gemini_schema"]
    known = {*table["members"], *table["more"].get(gateway, ())}
    waiting: list[Any] = [schema]
    for given in _objects(waiting):
        kind = str(given.get("type")).upper()
        if (given.get("enum") or given.get("format") == "enum") and (kind != "STRING" or not given.get("enum")):
            return "accepts enum only for strings, and with values"
        if kind == "ARRAY" and given.get("items") is None:
            return "requires items for arrays"
        for name, value in given.items():
            camel = _camel(name)
            if camel not in known:
                return f"does not have {name}"
            if camel == "type" and isinstance(value, list | tuple):
                return "accepts only one type"
            if camel in ("properties", "defs") and isinstance(value, Mapping):
                waiting += cast("Mapping[str, Any]", value).values()
            elif camel in ("items", "anyOf", "additionalProperties"):
                waiting.append(value)
    return None


def _objects(waiting: list[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the objects in the list and in nested lists, until the list is empty.

    The caller may add values during the iteration.
    """
    while waiting:
        given = waiting.pop()
        if isinstance(given, list | tuple):
            waiting += cast("Sequence[Any]", given)
        elif isinstance(given, Mapping):
            yield cast("Mapping[str, Any]", given)


def _camel(name: str) -> str:
    """Return the name in camel case. The API also accepts snake case."""
    first, *rest = name.split("_")
    return first + "".join([word.capitalize() for word in rest])


def of_object(schema: Any, target: str) -> Mapping[str, Any] | None:
    """Return an object schema, with `type` and `properties` added if they are missing and the target requires them.

    Return None if the schema has another type, or if its properties are not an object.
    """
    if schema is None:
        return EMPTY
    if not isinstance(schema, Mapping):
        return None
    given = cast("Mapping[str, Any]", schema)
    kind = given.get("type")
    if kind not in (None, "object") or not isinstance(given.get("properties") or {}, Mapping):
        return None
    if kind is None:
        given = {"type": "object", **given}
    return {**given, "properties": {}} if lacks_properties(given, target) else given


def lacks_properties(schema: Any, target: str) -> bool:
    """Return whether the target rejects the schema because it has no `properties`."""
    given = cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}
    return target in load_requests()["tool_schemas"]["properties"] and given.get("properties") in (None, [], ())


def is_object(schema: Mapping[str, Any]) -> bool:
    """Return whether the schema accepts objects, that is, has the type `object` or properties."""
    kind = schema.get("type")
    return kind == "object" or (isinstance(kind, list | tuple) and "object" in kind) or bool(schema.get("properties"))


def is_strict(schema: Any) -> bool:
    """Return whether OpenAI accepts the schema in strict mode.

    Every object must require all of its properties and allow no others, the root must be one object, and no part may
    have a keyword that is rejected.
    """
    rejected = load_requests()["strict_schemas"]["openai"]["rejected"]
    if (
        not isinstance(schema, Mapping)
        or "anyOf" in schema
        or cast("Mapping[str, Any]", schema).get("type") != "object"
    ):
        return False
    waiting: list[Any] = [schema]
    for found in _objects(waiting):
        members = found.get("properties")
        properties = cast("Mapping[str, Any]", members) if isinstance(members, Mapping) else {}
        required = found.get("required")
        names = cast("Sequence[Any]", required) if isinstance(required, list | tuple) else ()
        if is_object(found) and (
            found.get("additionalProperties") is not False or any(name not in names for name in properties)
        ):
            return False
        if not found.keys().isdisjoint(rejected):
            return False
        waiting += properties.values()
        for name in ("$defs", "definitions"):
            definitions = found.get(name)
            waiting += cast("Mapping[str, Any]", definitions).values() if isinstance(definitions, Mapping) else ()
        waiting += [found[name] for name in ("items", "prefixItems", "anyOf") if name in found]
    return True


def is_empty(schema: Any) -> bool:
    """Return whether the schema defines neither properties nor other constraints."""
    given = cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}
    return not (
        {name for name, value in given.items() if value not in ({}, [], None, False)} - {"type", "$schema", "title"}
    )
