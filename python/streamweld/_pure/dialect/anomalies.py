"""Collects the anomalies in one payload: members of an undocumented type, duplicate keys, and lone surrogates.

Duplicate keys are reported immediately. A decoder records the other anomalies while it reads the payload, and reports
them after it has classified the payload. The same rules apply to every dialect.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Protocol

from streamweld._pure.json.kinds import is_object
from streamweld._pure.json.scanner import has_lone_surrogate, replace_lone_surrogates
from streamweld._pure.model.output import MAX_NOTES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamweld._pure.json.scanner import Path, Payload
    from streamweld._pure.model.output import Output

__all__ = ["Anomalies", "Reporter", "pointer"]


class Reporter(Protocol):
    """The assembler's method that emits unknown data."""

    def unknown(self, event: str | None, raw: bytes) -> None: ...


class Anomalies:
    """Collects the anomalies in one payload until `report` reports them."""

    __slots__ = ("_assembler", "_base", "_escapes", "_lone", "_out", "_payload", "_shapes", "_misread")

    def __init__(
        self, out: Output, assembler: Reporter, payload: Payload, base: Path, is_read: Callable[[Path], bool]
    ) -> None:
        """Report duplicate keys, and integers that exceed 64 bits.

        `base`: the path of the object that the dialect defines, which may be inside an envelope. `is_read` receives the
        path relative to `base`.
        """
        self._out = out
        self._assembler = assembler
        self._payload = payload
        self._base = len(base)
        self._escapes = "\\u" in payload.text
        self._lone = False
        self._misread = ""
        self._shapes: list[Path] = []
        if payload.overflow:
            out.diagnose("numeric_overflow")
        for path in payload.duplicates_under(base):
            if len(path) > len(base) and is_read(path[len(base) :]):
                out.diagnose("duplicate_key", detail=str(path[-1]))

    def apart(self) -> Anomalies:
        """Return a copy without recorded anomalies. The caller uses the copy for members whose anomalies are not
        reported.
        """
        other = copy(self)
        other.clear()
        return other

    def clear(self) -> None:
        """Discard all anomalies recorded since the last report."""
        self._lone, self._misread, self._shapes = False, "", []

    def mark_misread(self, why: str) -> None:
        """Record why official clients would misread the payload. Only the first reason is kept."""
        self._misread = self._misread or why

    def shape(self, path: Path) -> None:
        """Record a member of an undocumented type. `report` emits the member's JSON as unknown data."""
        if len(self._shapes) < MAX_NOTES:
            self._shapes.append(path)
        else:
            self._out.left_out += 2  # counts twice: as a diagnostic and as an event

    def report_read_shape(self, path: Path) -> None:
        """Report a member of an undocumented type whose value is nevertheless decoded."""
        self._out.diagnose("shape", detail=pointer(path[self._base :]))

    def report(self) -> None:
        """Report all anomalies recorded since the last call."""
        if self._shapes:
            shapes, self._shapes = self._shapes, []
            for path in shapes:
                self._out.diagnose("shape", detail=pointer(path[self._base :]))
                self._assembler.unknown(None, (self._payload.raw(*path) or "null").encode())
        if self._misread:
            self._out.mark_misread(self._misread)
            self._misread = ""
        if self._lone:
            self._lone = False
            self._out.diagnose("lone_surrogate")

    def an_object(self, holder: Mapping[str, Any], path: Path, key: str) -> dict[str, Any] | None:
        """Return the value of a member, or None if it is not an object.

        A value of another type, except null, is recorded as an anomaly.
        """
        value: object = holder.get(key)
        if is_object(value):
            return value
        if value is not None:
            self.shape((*path, key))
        return None

    def a_text(self, holder: Mapping[str, Any], path: Path, key: str) -> str:
        """Return the text of a string member, or an empty string.

        A value of another type, except null, is recorded as an anomaly.
        """
        value: object = holder.get(key)
        if isinstance(value, str):
            return value
        if value is not None:
            self.shape((*path, key))
        return ""

    def clean(self, text: str) -> str:
        """Replace lone surrogates, and record an anomaly if there were any.

        Use this function only for text that is complete, because a later piece could complete a surrogate pair.
        """
        if self._escapes and has_lone_surrogate(text):
            self._lone = True
            return replace_lone_surrogates(text)
        return text


def pointer(path: Path) -> str:
    """Return the JSON pointer (RFC 6901) of a member."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
