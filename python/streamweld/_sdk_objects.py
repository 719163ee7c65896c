"""Convert SDK objects to plain data: pydantic models, dataclasses, and responses used as messages.

The rest of the package processes requests as plain data. Values that are already plain are returned unchanged, so that
an unmodified prefix of a request stays byte-identical. Classes are recognized by their attributes; no vendor SDK is
imported.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# (JSON from callers: the types inside its containers are unknown)

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, TypeAlias, cast

__all__ = ["is_absent", "messages_in", "plain"]

Path: TypeAlias = tuple[str | int, ...]

# For each class of response objects, the members that a request message does not accept.
_ANSWER_ONLY: Final = {
    "Message": ("id", "type", "model", "stop_reason", "stop_sequence", "usage", "container", "context_management"),
    "BetaMessage": ("id", "type", "model", "stop_reason", "stop_sequence", "usage", "container", "context_management"),
    "ParsedMessage": ("id", "type", "model", "stop_reason", "stop_sequence", "usage", "container", "parsed_output"),
    "ParsedChatCompletionMessage": ("parsed",),
    "ParsedFunction": ("parsed_arguments",),
    "ParsedResponseOutputText": ("parsed",),
    "ParsedResponseFunctionToolCall": ("parsed_arguments",),
}

# The classes of placeholders for arguments that are not given: openai, anthropic, groq and others; mistralai.
_ABSENT: Final = frozenset({"NotGiven", "Omit", "Unset"})
_CONTAINERS: Final = (dict, list)
_ATOMS: Final = frozenset({str, int, float, bool, bytes, type(None)})


def is_absent(value: Any) -> bool:
    """Return whether the value is an SDK's placeholder for an argument that is not given, such as openai's `omit`."""
    return value.__class__.__name__ in _ABSENT


def plain(value: Any) -> Any:
    """Replace every model and dataclass in a value with a mapping, and omit members that are not given.

    Returns the same object if it contains no model, no dataclass and no placeholder.

    Members that were never set are omitted, because the SDKs themselves omit them from requests.
    """
    kind = value.__class__
    if kind in _ATOMS:
        return value
    if kind is dict:
        made: dict[Any, Any] | None = None
        for name, member in value.items():
            if member.__class__ in _ATOMS:
                continue
            new = plain(member)
            if new is not member:
                made = dict(value) if made is None else made
                made[name] = new
            elif member.__class__ not in _CONTAINERS and is_absent(member):
                made = dict(value) if made is None else made
                del made[name]
        return value if made is None else made
    if kind is list or kind is tuple:
        items: list[Any] | None = None
        for n, item in enumerate(value):
            if item.__class__ not in _ATOMS and (new := plain(item)) is not item:
                items = list(value) if items is None else items
                items[n] = new
        return value if items is None else items
    if hasattr(kind, "model_fields") and hasattr(value, "model_dump"):
        return _of_model(value)
    if is_dataclass(value) and not isinstance(value, type):
        found = {field.name: plain(getattr(value, field.name)) for field in fields(value)}
        return {name: member for name, member in found.items() if member is not None}
    if isinstance(value, Mapping):
        made = {name: plain(member) for name, member in value.items()}
        return value if all(made[name] is member for name, member in value.items()) else made
    return value


def messages_in(message: Any) -> list[tuple[Path, Any]]:
    """Return each message in a value as plain data, with its path in the value. The path of a message itself is empty.

    A response object (`ChatCompletion`, `Response`, `GenerateContentResponse`) is replaced with the messages or items
    that it contains.
    """
    if hasattr(message.__class__, "model_fields"):
        choices, output, candidates = (getattr(message, name, None) for name in ("choices", "output", "candidates"))
        if isinstance(choices, list) and choices:
            return [(("choices", 0, "message"), plain(cast("Any", choices[0]).message))]
        if isinstance(output, list) and getattr(message, "object", None) == "response":
            return [(("output", n), plain(item)) for n, item in enumerate(output)]
        if isinstance(candidates, list) and candidates:
            return [(("candidates", 0, "content"), plain(cast("Any", candidates[0]).content))]
    return [((), plain(message))]


def _of_model(value: Any) -> dict[str, Any]:
    kind = value.__class__
    left_out = _ANSWER_ONLY.get(kind.__name__.partition("[")[0], ())
    found: dict[str, Any] = {}
    names = kind.model_fields if _is_camel(kind) else value.model_fields_set
    for name, field in kind.model_fields.items():
        if name in names and name not in left_out:
            member = getattr(value, name)
            alias = getattr(field, "serialization_alias", None) or field.alias or name
            found[alias] = (
                getattr(member, "value", member) if hasattr(member.__class__, "__members__") else plain(member)
            )
    for name, member in (getattr(value, "model_extra", None) or {}).items():
        if name not in left_out:
            found[name] = plain(member)
    if _is_camel(kind):  # google-genai does not distinguish an unset member from None
        return {name: _as_text(member) for name, member in found.items() if member is not None}
    return found


def _as_text(value: Any) -> Any:
    """Encode bytes as base64 text, as the API does. Other values are returned unchanged."""
    return b64encode(value).decode() if isinstance(value, bytes) else value


def _is_camel(kind: Any) -> bool:
    return str(kind.__module__).startswith("google.genai")
