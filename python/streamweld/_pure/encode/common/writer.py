"""Writes frames of an event stream and compact JSON, into a buffer that the converter empties.

Knows bytes and JSON, no dialect: which names and members there are comes from outside. The form of the JSON (members in
the order they are given, what is escaped, how floats look) is the same in both backends, byte for byte.
"""

from __future__ import annotations

from json import dumps
from json.encoder import encode_basestring
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

from streamweld._json import pair_escapes
from streamweld._pure.json.kinds import is_array, is_object
from streamweld._pure.json.members import compact
from streamweld._pure.json.numeral import exact_digits

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Frames", "compact_json", "members", "quoted", "spliced"]

_EMPTY = "{}"


class Frames:
    """The output of one stream so far."""

    __slots__ = ("_later", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._later: dict[int, Callable[[], str]] = {}  # payloads that are made when they are taken, by their place

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def data(self, payload: str) -> None:
        """An event without a name."""
        self._pieces.append(f"data: {payload}\n\n")

    def named(self, event: str, payload: str) -> None:
        """An event with a name: a constant of ours, never upstream text, which could end the line."""
        self._pieces.append(f"event: {event}\ndata: {payload}\n\n")

    def named_later(self, event: str, payload: Callable[[], str]) -> None:
        """The same with a payload that is long, and may be dropped before it is written."""
        self._pieces.append(f"event: {event}\ndata: ")
        self._later[len(self._pieces)] = payload
        self._pieces.append("\n\n")

    def done(self) -> None:
        """The marker that three dialects end with."""
        self._pieces.append("data: [DONE]\n\n")

    def shown(self) -> bytes:
        """All bytes since they were taken last; they stay."""
        for place, payload in self._later.items():
            self._pieces[place] = payload() + self._pieces[place]
        self._later.clear()
        return "".join(self._pieces).encode()

    def take(self) -> bytes:
        """All bytes since the last call."""
        taken = self.shown()
        self._pieces.clear()
        return taken

    def drop(self) -> None:
        """They are not written after all."""
        self._pieces.clear()
        self._later.clear()


def quoted(text: str) -> str:
    """A JSON string. The two line separators are escaped too: many readers still split at them."""
    made: str = encode_basestring(text)
    return made if made.isascii() else _separated(made)


def compact_json(value: Any) -> str:
    """A value in canonical form: no blanks, members in their order, floats as `repr`, an infinite one as null."""
    try:
        made = dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        made = _spelled(value)
    return made if made.isascii() else _separated(made)


def members(**fields: str | None) -> str:
    """An object of members that are JSON already; one that is None is left out."""
    return "{" + ",".join([f'"{name}":{text}' for name, text in fields.items() if text is not None]) + "}"


def spliced(arguments: str) -> str:
    """The text of an argument object, to stand as an object: its own tokens, without the blanks between them.

    Numbers keep their digits and escapes stay escapes; only half a surrogate pair becomes U+FFFD, as elsewhere.
    """
    made = compact(pair_escapes(arguments)) or _EMPTY
    return made if made.isascii() else _separated(made)


def _separated(text: str) -> str:
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _spelled(value: object) -> str:
    """As `dumps` writes it, and what it refuses: an infinite float, an integer longer than Python prints."""
    if isinstance(value, float) and not isfinite(value):
        return "null"
    if isinstance(value, int) and not isinstance(value, bool):
        return exact_digits(value)
    if is_object(value):
        named = cast("dict[str, object]", value).items()
        return "{" + ",".join([f"{encode_basestring(key)}:{_spelled(member)}" for key, member in named]) + "}"
    if is_array(value):
        return "[" + ",".join([_spelled(item) for item in cast("list[object]", value)]) + "]"
    return dumps(value, ensure_ascii=False)
