"""Computes the canonical form of a JSON value: equal values have the same canonical text, however they are written.

The form does not depend on whitespace, escapes or the order of keys; numbers stay as they are written. A JSON string
that contains a JSON document has the canonical form of that document, because some gateways encode repeated arguments
twice.
"""

from __future__ import annotations

import json
from typing import Any, cast

from streamweld._pure.json.automaton import Automaton
from streamweld._pure.json.scanner import replace_lone_surrogates

__all__ = ["canonical", "is_whole"]


class _Number(str):
    """The text of a number, as written in the JSON."""

    __slots__ = ()


def is_whole(text: str | bytes | bytearray) -> bool:
    """Return True if the text is one complete JSON value."""
    automaton = Automaton()
    automaton.feed(text if isinstance(text, str) else bytes(text))
    return automaton.finish() == "complete"


def canonical(text: str) -> str:
    """Return the canonical form of the text, which must be a complete JSON value."""
    value = _load(text)
    if isinstance(value, str) and not isinstance(value, _Number):
        value = replace_lone_surrogates(value)
        if is_whole(value):
            value = _load(value)
    out: list[str] = []
    _write(value, out)
    return "".join(out)


def _load(text: str) -> Any:
    pairs = _cleaned if "\\u" in text else None
    return json.loads(text, parse_int=_Number, parse_float=_Number, object_pairs_hook=pairs)


def _cleaned(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Replace lone surrogates in the keys. Keys that differ only in lone surrogates become equal, as they do for
    clients.
    """
    return {replace_lone_surrogates(key): value for key, value in pairs}


def _write(value: object, out: list[str]) -> None:
    if isinstance(value, _Number):
        out.append(value)
    elif isinstance(value, dict):
        members = cast("dict[str, object]", value)
        out.append("{")
        for key in sorted(members):
            out.append(json.dumps(key))
            out.append(":")
            _write(members[key], out)
            out.append(",")
        out.append("}")
    elif isinstance(value, list):
        items = cast("list[object]", value)
        out.append("[")
        for item in items:
            _write(item, out)
            out.append(",")
        out.append("]")
    else:
        out.append(json.dumps(replace_lone_surrogates(value) if isinstance(value, str) else value))
