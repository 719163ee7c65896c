"""Replace values that JSON cannot represent: lone surrogates, and numbers that are not finite.

Lone surrogates cannot be encoded as UTF-8, so clients fail on them or servers reject the JSON.

Clients create lone surrogates when they split text in the middle of a character ("no low surrogate in string"). This
pass runs before calls and results are converted to text.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# (the input is JSON from the caller, so the types inside its containers are unknown)

from __future__ import annotations

import re
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

import orjson

from streamweld._pure.json.automaton import MAX_DEPTH
from streamweld.history.model import MISSING, Call, Media, Reasoning, Result, Text, changed, with_parts

if TYPE_CHECKING:
    from streamweld.history.context import Context
    from streamweld.history.model import Part, Turn

__all__ = ["run"]

_LONE: Final = re.compile("[\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns with texts and arguments that can be encoded."""
    found = context.survey(turns)
    if _can_be_encoded(found.values) if found.ascii else _can_be_encoded(_texts_and_values(turns)):
        return turns
    out: list[Turn] = []
    altered = False
    for turn in turns:
        parts: list[Part] | None = None
        for at, part in enumerate(turn.parts):
            fields = _fields(part)
            if fields:
                name = next(iter(fields))
                removed = part.raw if name == "parts" else getattr(part, name)
                value = part.input if isinstance(part, Call) else part.value if isinstance(part, Result) else None
                if _is_finite(value):
                    what = "replaced a lone surrogate (half of a UTF-16 pair)"
                    context.edit("text_surrogate", part.path, what, removed)
                else:
                    rule = "arguments_form" if isinstance(part, Call) else "result_form"
                    context.edit(rule, part.path, "replaced a number that is not finite with null", removed)
                parts = list(turn.parts) if parts is None else parts
                parts[at] = changed(part, **fields)
        altered = altered or parts is not None
        out.append(turn if parts is None else with_parts(turn, parts))
    return out if altered else turns


def _can_be_encoded(values: list[Any]) -> bool:
    """Return whether all values can be encoded.

    Testing all values in one call is much faster than one call per value.
    """
    if not values:
        return True
    try:
        written = orjson.dumps(values)
    except (TypeError, ValueError):
        return False
    return b"null" not in written or _is_finite(values)  # orjson writes a number that is not finite as null


def _is_finite(value: Any) -> bool:
    """Return whether a JSON value contains only finite numbers. Values nested too deeply are not examined."""
    rest = [value]
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for one in rest:
            if isinstance(one, float):
                if not isfinite(one):
                    return False
            elif isinstance(one, dict):
                inner += one.values()
            elif isinstance(one, list):
                inner += one
        if not inner:
            break
        rest = inner
    return True


def _texts_and_values(turns: list[Turn]) -> list[Any]:
    members_sent: list[Any] = []
    for turn in turns:
        for part in turn.parts:
            if type(part) is Text:
                members_sent.append(part.text)
            elif type(part) is Call:
                members_sent.append(part.input if part.arguments is None else part.arguments)
            elif type(part) is Result:
                if part.value is not MISSING:
                    members_sent.append(part.value)
                members_sent += [inner.text if type(inner) is Text else _name(inner) for inner in part.parts]
            else:
                members_sent.append(part.segments if type(part) is Reasoning else _name(part))
    return members_sent


def _name(part: Part) -> str:
    """Return the file name, or an empty string. A null would look like a number that is not finite."""
    return (part.filename or "") if isinstance(part, Media) else ""


def _fields(part: Part) -> dict[str, Any]:
    """Return the repaired values of the fields that contain lone surrogates, by field name."""
    if isinstance(part, Text):
        return {} if _is_sound(part.text) else {"text": _mended(part.text)}
    if isinstance(part, Call):
        if part.arguments is not None:
            return {} if _is_sound(part.arguments) else {"arguments": _mended(part.arguments)}
        return {} if _is_sound_value(part.input) else {"input": _mended_value(part.input)}
    if isinstance(part, Result):
        if not _is_sound_value(part.value):
            return {"value": _mended_value(part.value)}
        inner = tuple([changed(one, **fields) if (fields := _fields(one)) else one for one in part.parts])
        return {} if all(a is b for a, b in zip(inner, part.parts, strict=True)) else {"parts": inner}
    if isinstance(part, Reasoning):
        segments = part.segments
        return {} if all(map(_is_sound, segments)) else {"segments": tuple(map(_mended, segments))}
    if isinstance(part, Media) and part.filename is not None and not _is_sound(part.filename):
        return {"filename": _mended(part.filename)}
    return {}


def _is_sound(text: str) -> bool:
    return text.isascii() or _LONE.search(text) is None


def _mended(text: str) -> str:
    return _LONE.sub(_REPLACEMENT, text)


def _is_sound_value(value: Any) -> bool:
    """Return whether JSON can represent a value. Also returns True if the value is not JSON or is nested
    too deeply.
    """
    if value is MISSING or value is None:
        return True
    if isinstance(value, str):
        return _is_sound(value)
    try:
        if b"null" in orjson.dumps(value) and not _is_finite(value):
            return False
    except (TypeError, ValueError):
        try:
            return bool(_mended_value(value) == value)
        except RecursionError:
            return True
    return True


def _mended_value(value: Any) -> Any:
    if isinstance(value, str):
        return _mended(value)
    if isinstance(value, dict):
        return {_mended_value(name): _mended_value(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_mended_value(inner) for inner in value]
    if isinstance(value, float) and not isfinite(value):
        return None
    return value
