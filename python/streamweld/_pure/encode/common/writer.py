"""Writes frames of an event stream and compact JSON into a buffer that the converter empties.

The JSON has the same bytes in both backends, including the order of members, the escapes and the floats.
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
from streamweld._pure.json.scanner import Payload

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Frames", "compact_json", "members", "members_of", "quoted", "spliced"]

_EMPTY = "{}"


class Frames:
    """Buffers the output of one stream."""

    __slots__ = ("_unwritten_calls", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        # Payloads that are created only when the output is taken, by their position in the output.
        self._unwritten_calls: dict[int, Callable[[], str]] = {}

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def data(self, payload: str) -> None:
        """Write an event without a name."""
        self._pieces.append(f"data: {payload}\n\n")

    def named(self, event: str, payload: str) -> None:
        """Write an event with a name.

        The name must be a constant or come from an event, because other upstream text could contain a line end.
        """
        self._pieces.append(f"event: {event}\ndata: {payload}\n\n")

    def named_later(self, event: str, payload: Callable[[], str]) -> None:
        """Write an event with a long payload. The payload is created on demand, because the event may be dropped."""
        self._pieces.append(f"event: {event}\ndata: ")
        self._unwritten_calls[len(self._pieces)] = payload
        self._pieces.append("\n\n")

    def done(self) -> None:
        """Write the terminal marker `[DONE]`, which three dialects use."""
        self._pieces.append("data: [DONE]\n\n")

    def shown(self) -> bytes:
        """Return all bytes written since the last `take`, without removing them."""
        for position, payload in self._unwritten_calls.items():
            self._pieces[position] = payload() + self._pieces[position]
        self._unwritten_calls.clear()
        return "".join(self._pieces).encode()

    def take(self) -> bytes:
        """Return all bytes written since the last call to `take`, and remove them from the buffer."""
        taken = self.shown()
        self._pieces.clear()
        return taken

    def drop(self) -> None:
        """Discard the bytes written since the last `take`."""
        self._pieces.clear()
        self._unwritten_calls.clear()


def quoted(text: str) -> str:
    """Return a JSON string. U+2028 and U+2029 are escaped, because many clients treat them as line ends."""
    made: str = encode_basestring(text)
    return made if made.isascii() else _separated(made)


def compact_json(value: Any) -> str:
    """Return a value in canonical form: no whitespace, members in order, floats as `repr`, infinity as null."""
    try:
        made = dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        made = _spelled(value)
    return made if made.isascii() else _separated(made)


def members(**fields: str | None) -> str:
    """Return an object built from members that are already JSON. Members that are None are omitted."""
    return "{" + ",".join([f'"{name}":{text}' for name, text in fields.items() if text is not None]) + "}"


def members_of(text: str) -> dict[str, str]:
    """Return the members of an object that is given as JSON text, each with its JSON as sent."""
    return Payload(text, None).members()


def spliced(arguments: str) -> str:
    """Return the text of an arguments object without whitespace between its tokens.

    Numbers and escapes are kept as sent, except that an unpaired surrogate becomes U+FFFD.
    """
    made = compact(pair_escapes(arguments)) or _EMPTY
    return made if made.isascii() else _separated(made)


def _separated(text: str) -> str:
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _spelled(value: object) -> str:
    """Format a value as `dumps` does, including values that `dumps` rejects: an infinite float, and an integer that
    Python cannot print.
    """
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
