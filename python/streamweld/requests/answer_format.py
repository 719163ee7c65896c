"""Convert the response format (`response_format`, `text.format`, `responseSchema`) between APIs."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from streamweld.requests import schemas, strict_schemas
from streamweld.requests.tables import at, object_of, put, remove, spec, steps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld.requests.context import RequestContext

__all__ = ["AnswerFormat", "read", "refit", "translate"]

Kind: TypeAlias = Literal["text", "json_object", "json_schema", "other"]
_PLACES = {
    "openai-chat": ("response_format",),
    "mistral": ("response_format",),
    "responses": ("text.format",),
    "anthropic": ("output_config.format", "output_format"),
    "gemini": (
        "generationConfig.responseJsonSchema",
        "generationConfig.responseSchema",
        "generationConfig.responseMimeType",
    ),
    "bedrock-converse": ("outputConfig.textFormat",),
    "ai-sdk-model": ("responseFormat",),
}


_MIME: Final = "generationConfig.responseMimeType"
_ENUM: Final = "text/x.enum"  # the response is one of the values of an enum, as plain text
_PROPERTY: Final = "answer"
# For each target, the members of a response format that it does not support. `strict` is not listed, because Anthropic
# and Gemini are always strict.
_UNNAMED = {
    "anthropic": ("name", "description"),
    "gemini": ("name", "description"),
}


@dataclass(frozen=True, slots=True)
class AnswerFormat:
    """The response format that the request asks for.

    `inner`: the path, relative to `path`, of the object that contains the members of the format. `place`: the path,
    relative to `path`, of the schema.
    """

    kind: Kind
    path: str
    raw: Any
    inner: tuple[str, ...] = ()
    place: tuple[str, ...] = ()
    name: str | None = None
    description: str | None = None
    schema: Any = None
    strict: bool | None = None


def read(context: RequestContext) -> AnswerFormat | None:
    """Return the format that the request asks for, or None, and mark its members as used."""
    paths = _PLACES.get(context.source, ())
    context.used.update(steps(path) for path in paths)
    path = next((path for path in paths if at(context.request, path) is not None), None)
    if path is None:
        return None
    raw = at(context.request, path)
    for other in paths[paths.index(path) + 1 :]:
        second = at(context.request, other)
        if second is not None and other != _MIME and not context.same:
            why = f"{path} sets the same option and takes precedence"
            context.lose("response_format", steps(other), why, second, vital=True)
    given = object_of(raw)
    kind = given.get("type")
    match context.source:
        case "gemini":
            return _of_gemini(context, path, raw)
        case "bedrock-converse":
            inner = object_of(object_of(given.get("structure")).get("jsonSchema"))
            made = _of_schema(path, raw, inner, "schema", ("structure", "jsonSchema"))
            return replace(made, schema=_parsed(made.schema))
        case "ai-sdk-model":
            if kind == "json":
                return _of_schema(path, raw, given) if given.get("schema") else AnswerFormat("json_object", path, raw)
        case _:
            if kind == "json_schema":
                inner = object_of(given.get("json_schema")) or given
                member = "schema" if "schema" in inner else "schema_definition"
                return _of_schema(path, raw, inner, member, () if inner is given else ("json_schema",))
            if kind == "json_object":
                return AnswerFormat("json_object", path, raw)
    return AnswerFormat("text" if kind == "text" else "other", path, raw)


def _of_gemini(context: RequestContext, path: str, raw: Any) -> AnswerFormat:
    mime = at(context.request, _MIME)
    if path.endswith("MimeType"):
        kind: Kind = "json_object" if mime == "application/json" else "text" if mime == "text/plain" else "other"
        return AnswerFormat(kind, path, raw)
    schema = schemas.from_gemini(raw) if path.endswith("eSchema") else raw
    if mime == _ENUM and not context.same:
        why = "other APIs return the value as JSON, not as plain text"
        context.lose("responseMimeType", steps(_MIME), why, mime, vital=True)
    return AnswerFormat("json_schema", path, raw, schema=schema)


def _of_schema(
    path: str, raw: Any, inner: Mapping[str, Any], member: str = "schema", holder: tuple[str, ...] = ()
) -> AnswerFormat:
    name, description, strict = inner.get("name"), inner.get("description"), inner.get("strict")
    return AnswerFormat(
        "json_schema",
        path,
        raw,
        holder,
        (*holder, member),
        name if isinstance(name, str) else None,
        description if isinstance(description, str) else None,
        inner.get(member),
        strict if isinstance(strict, bool) else None,
    )


def _is_schema(schema: Any) -> bool:
    """Return whether the schema is a non-empty object that can be written as JSON."""
    try:
        return bool(object_of(schema)) and bool(json.dumps(schema))
    except (TypeError, ValueError, RecursionError):
        return False


def _parsed(schema: Any) -> Any:
    """Return a schema as an object, even if the schema is written as text, as in Bedrock."""
    if not isinstance(schema, str):
        return schema
    try:
        return json.loads(schema)
    except ValueError:
        return None


def translate(found: AnswerFormat | None, context: RequestContext, made: dict[str, Any]) -> None:
    """Write the format into `made`, the request for the target."""
    if found is None:
        return
    path = steps(found.path)
    if found.kind == "text":
        context.edit("option_implied", path, "dropped, because text is the default", found.raw)
        return
    formats = context.facts.get("formats", ("json_object", "json_schema", "text"))
    if found.kind == "json_schema" and "json_schema" not in formats and "json_object" in formats:
        context.lose(
            "response_format",
            path,
            f"the gateway {context.profile.name} does not accept a JSON schema",
            found.raw,
            vital=True,
        )
        put(made, "response_format", {"type": "json_object"})
        return
    found = _with_object(found, context)
    fit = _fitted(found, context)
    value = None if found.kind == "other" or fit is None else _written(fit, context)
    if value is None:
        context.lose(
            "response_format", path, f"{context.target} does not support this answer format", found.raw, vital=True
        )
        return
    for path_in_target, member in value.items():
        put(made, path_in_target, member)
    for name in _UNNAMED.get(context.target, ()):
        if getattr(found, name):
            context.lose(
                name,
                (*path, *found.inner, name),
                f"{context.target} does not have this member in an answer format",
                getattr(found, name),
            )


def _with_object(found: AnswerFormat, context: RequestContext) -> AnswerFormat:
    """Return the format with its schema as the property of an object, if the target accepts only objects."""
    schema = object_of(found.schema)
    if context.target not in spec("strict_schemas")["object_roots"] or not _is_other_value(schema):
        return found
    what = f"put the schema into an object with the property {_PROPERTY}, because the response must be an object"
    context.edit("format_schema", (*steps(found.path), *found.place), what, found.schema)
    wrapped = {"type": "object", "properties": {_PROPERTY: schema}, "required": [_PROPERTY]}
    return replace(found, schema={**wrapped, "additionalProperties": False})


def _is_other_value(schema: Mapping[str, Any]) -> bool:
    """Return whether the schema certainly describes no object: a text, number, boolean or list, or an enum."""
    kind = schema.get("type")
    return isinstance(kind, str) and kind != "object"


def refit(context: RequestContext, made: dict[str, Any]) -> None:
    """Replace the schema in `made`, a request whose source and target are the same API, if the API rejects it."""
    found = read(context)
    if found is None or found.kind != "json_schema":
        return
    fit = _fitted(found, context)
    if fit is None:
        why = f"{context.target} does not support this answer format"
        context.lose("response_format", steps(found.path), why, found.raw, vital=True)
        remove(made, found.path)
        return
    base = ".".join((found.path, *found.inner))
    if fit.strict != found.strict:
        remove(made, f"{base}.strict")
    if fit.schema is not found.schema:
        text = isinstance(at(made, ".".join((found.path, *found.place))), str)
        put(made, ".".join((found.path, *found.place)), _dumped(fit.schema) if text else fit.schema)


def _fitted(found: AnswerFormat, context: RequestContext) -> AnswerFormat | None:
    """Return the format with a schema that the gateway accepts, or None if there is none.

    OpenAI restricts the schema only in strict mode, so `strict` is dropped instead.
    """
    subset = strict_schemas.subset_of(context)
    if subset is None or found.kind != "json_schema" or not _is_schema(found.schema):
        return found
    if subset == "openai" and not found.strict:
        return found
    fit = strict_schemas.fitted(found.schema, subset)
    if fit is not None:
        strict_schemas.report(fit, "format_schema", (*steps(found.path), *found.place), context)
        return replace(found, schema=fit.schema)
    if subset != "openai":
        return None
    context.lose("strict", (*steps(found.path), *found.inner, "strict"), strict_schemas.why_not(subset), True)
    return replace(found, strict=None)


def _dumped(schema: Any) -> str:
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def _written(found: AnswerFormat, context: RequestContext) -> dict[str, Any] | None:
    """Return the members to write, keyed by dotted path, or None if the target does not support this format."""
    plain = found.kind == "json_object"
    if not plain and not _is_schema(found.schema):
        return None
    named: dict[str, Any] = {"name": found.name} if found.name else {}
    if found.description:
        named["description"] = found.description
    match context.target:
        case "openai-chat" | "mistral" | "responses":
            if plain:
                form: dict[str, Any] = {"type": "json_object"}
            else:
                inner = {"name": "answer", **named, "schema": found.schema}
                if found.strict is not None:
                    inner["strict"] = found.strict
                flat = context.target == "responses"
                form = {"type": "json_schema", **inner} if flat else {"type": "json_schema", "json_schema": inner}
            return {_PLACES[context.target][0]: form}
        case "anthropic":
            return None if plain else {"output_config.format": {"type": "json_schema", "schema": found.schema}}
        case "gemini":
            made = {"generationConfig.responseMimeType": "application/json"}
            return made if plain else {**made, "generationConfig.responseJsonSchema": found.schema}
        case "bedrock-converse":
            inner = {**named, "schema": _dumped(found.schema)}
            return (
                None
                if plain
                else {"outputConfig.textFormat": {"type": "json_schema", "structure": {"jsonSchema": inner}}}
            )
        case "ai-sdk-model":
            return {"responseFormat": {"type": "json"} if plain else {"type": "json", **named, "schema": found.schema}}
        case _:
            return None
