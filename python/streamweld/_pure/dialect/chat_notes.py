"""What is to be said about a chat payload beside its content: wrong shapes, keys that stand twice, lone surrogates.

Knows which members of a chunk are read. One `Notes` lives as long as one payload.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.chat_kinds import is_object
from streamweld._pure.dialect.chat_metadata import (
    CALL_FIELDS,
    CHOICE_FIELDS,
    CHUNK_FIELDS,
    CUSTOM_FIELDS,
    DELTA_FIELDS,
    FUNCTION_FIELDS,
)
from streamweld._pure.json_door import has_lone_surrogate, replace_lone_surrogates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.json_door import Path, Payload
    from streamweld._pure.out import Out


class Notes:
    """Collects the complaints of one payload; `tell` passes on what has come together."""

    __slots__ = ("_assembler", "_base", "_escapes", "_lone", "_out", "_payload", "_shapes")

    def __init__(self, out: Out, assembler: Assembler, payload: Payload, base: Path) -> None:
        self._out = out
        self._assembler = assembler
        self._payload = payload
        self._base = len(base)
        self._escapes = "\\u" in payload.text
        self._lone = False
        self._shapes: list[Path] = []
        if payload.overflow:
            out.diagnose("numeric_overflow")
        for path in payload.duplicates:
            if path[: len(base)] == base and len(path) > len(base) and _is_read(path[len(base) :]):
                out.diagnose("duplicate_key", detail=str(path[-1]))

    def shape(self, path: Path) -> None:
        """A member has a type that no gateway documents: it stays reachable as it is."""
        self._shapes.append(path)

    def tell(self) -> None:
        """Say what was noticed since the last time."""
        if self._shapes:
            shapes, self._shapes = self._shapes, []
            for path in shapes:
                self._out.diagnose("shape", detail=pointer(path[self._base :]))
                self._assembler.unknown(None, (self._payload.raw(*path) or "null").encode())
        if self._lone:
            self._lone = False
            self._out.diagnose("lone_surrogate")

    def an_object(self, holder: Mapping[str, Any], path: Path, key: str) -> dict[str, Any] | None:
        """The member if it is an object."""
        value: object = holder.get(key)
        if is_object(value):
            return value
        if value is not None:
            self.shape((*path, key))
        return None

    def a_text(self, holder: Mapping[str, Any], path: Path, key: str) -> str:
        """The member if it is a string; absent is empty."""
        value: object = holder.get(key)
        if isinstance(value, str):
            return value
        if value is not None:
            self.shape((*path, key))
        return ""

    def clean(self, text: str) -> str:
        """A string that is no text channel: no surrogate stays alone in it."""
        if self._escapes and has_lone_surrogate(text):
            self._lone = True
            return replace_lone_surrogates(text)
        return text


def pointer(path: Path) -> str:
    """The JSON pointer (RFC 6901) of a member."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def _is_read(path: Path) -> bool:
    """Whether the decoder looks at the member at `path` of a chunk."""
    key = path[-1]
    match path[:-1]:
        case ():
            return key in CHUNK_FIELDS
        case ("choices", int()):
            return key in CHOICE_FIELDS
        case ("choices", int(), "delta" | "message"):
            return key in DELTA_FIELDS
        case ("choices", int(), "delta" | "message", "tool_calls") | (
            "choices",
            int(),
            "delta" | "message",
            "tool_calls",
            int(),
        ):
            return key in CALL_FIELDS
        case ("choices", int(), "delta" | "message", "tool_calls", "function") | (
            "choices",
            int(),
            "delta" | "message",
            "tool_calls",
            int(),
            "function",
        ):
            return key in FUNCTION_FIELDS
        case ("choices", int(), "delta" | "message", "function_call"):
            return key in FUNCTION_FIELDS
        case ("choices", int(), "delta" | "message", "tool_calls", int(), "custom"):
            return key in CUSTOM_FIELDS
        case _:
            return False
