"""The neutral history model: turns that hold parts.

Readers create it, passes change it, writers turn it into a target's messages. Each part keeps its source object (`raw`)
and its message (`origin`), so a part that no pass changed is written back as the very object that was read.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar, cast, dataclass_transform

import orjson

from streamweld._json import JsonFault, loads_arguments
from streamweld.errors import HistoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "EMPTY",
    "MISSING",
    "ApprovalRequest",
    "ApprovalResponse",
    "Call",
    "Inner",
    "Media",
    "Opaque",
    "Origin",
    "Part",
    "Path",
    "Reasoning",
    "Result",
    "Role",
    "Text",
    "Turn",
    "arguments_object",
    "arguments_text",
    "changed",
    "copied",
    "custom_input",
    "decoded",
    "json_text",
    "members_of",
    "pointer",
    "removed_value",
    "result_text",
    "value_object",
    "with_parts",
]

_T = TypeVar("_T")
Path: TypeAlias = tuple[str | int, ...]
Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool"]


class _Missing:
    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


class _Nothing(dict[str, Any]):
    """The empty mapping as the default of a field: a hashable default needs no factory, which would be called for
    every part."""

    __hash__ = object.__hash__  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]


MISSING: Final[Any] = _Missing()
EMPTY: Final[Mapping[str, Any]] = _Nothing()


class Inner(str):
    """The path, with slashes, of a member nested in a block. Such a member cannot be written back alone."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class Origin:
    """One message (or item) of the source. `count`: how many parts were read from it. `extra`: its other members."""

    dialect: str
    path: Path
    raw: Any
    count: int = 0
    extra: Mapping[str, Any] = EMPTY
    stale: bool = False
    _bare: dict[frozenset[str], Origin] | None = None

    def without(self, names: frozenset[str]) -> Origin:
        """Return the origin without these members, as one object shared by all parts of the message."""
        if self._bare is None:
            self._bare = {}
        found = self._bare.get(names)
        if found is None:
            extra = {key: value for key, value in self.extra.items() if key not in names}
            found = self._bare[names] = Origin(self.dialect, self.path, self.raw, self.count, extra, stale=True)
        return found


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
def _part(cls: type[_T]) -> type[_T]:
    """Make a slotted dataclass that is frozen for type checkers only: at run time, freezing would make creating a part
    three times as slow. For the same reason, readers pass fields by position in hot places."""
    return dataclass(slots=True, eq=False)(cls)


@_part
class _Part:
    """`at`: which part of its origin. `raw`: the source's own object. `touched`: a pass changed it, `raw` is stale.

    `extra`: members of `raw` that the model has no word for. They go back to the same dialect, and are lost elsewhere;
    those of objects inside of it, under an `Inner` name, are lost wherever the block is written anew.
    """

    origin: Origin | None = None
    at: int = 0
    path: Path = ()
    raw: Any = None
    extra: Mapping[str, Any] = EMPTY
    touched: bool = False


@_part
class Text(_Part):
    """Text, or a refusal. `signature`: Gemini's, which it may put on any part."""

    text: str = ""
    refusal: bool = False
    signature: str | None = None


@_part
class Media(_Part):
    """An image, audio, video or file, given as base64 data, as a URL, or by a provider's id."""

    kind: Literal["image", "audio", "video", "file"] = "file"
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    filename: str | None = None
    detail: str | None = None


@_part
class Reasoning(_Part):
    """The reasoning of a model. `segments`: its texts, one per summary. `issuer`: who can read its signature or cipher.

    `assumed`: the issuer is that of the dialect, because the message does not name one. `member`: the member of a Chat
    message that held it; None for a part of the content.
    """

    segments: tuple[str, ...] = ()
    kind: Literal["summary", "raw", "thinking", "redacted"] = "thinking"
    item_id: str | None = None
    signature: str | None = None
    encrypted: str | None = None
    issuer: str | None = None
    assumed: bool = False
    model: str | None = None
    member: str | None = None

    @property
    def text(self) -> str:
        return "\n\n".join(self.segments)


@_part
class Call(_Part):
    """A tool call. Its arguments are JSON text or an object, as in the source.

    `parsed`: the result of `arguments_object`, kept so that the text is parsed only once.
    """

    call_id: str = ""
    name: str = ""
    arguments: str | None = None
    input: Any = MISSING
    item_id: str | None = None
    signature: str | None = None
    provider_executed: bool = False
    custom: bool = False
    parsed: Any = MISSING


@_part
class Result(_Part):
    """The result of a call: content (`parts`), or a JSON value. `denied`: the user refused to run the call."""

    call_id: str = ""
    parts: tuple[Text | Media | Opaque, ...] = ()
    value: Any = MISSING
    name: str | None = None
    is_error: bool = False
    item_id: str | None = None
    denied: bool = False


@_part
class ApprovalRequest(_Part):
    """The request to approve a call, in AI SDK messages only. `details`: members that the dialect adds, by name."""

    approval_id: str = ""
    call_id: str = ""
    reason: str | None = None
    details: Mapping[str, Any] = EMPTY


@_part
class ApprovalResponse(_Part):
    """The user's answer to an `ApprovalRequest`."""

    approval_id: str = ""
    approved: bool = False
    reason: str | None = None
    provider_executed: bool = False


@_part
class Opaque(_Part):
    """Content that only its own dialect can represent: a server tool's block, an item reference, a cache point."""

    kind: str = ""
    dialect: str = ""


Part: TypeAlias = Text | Media | Reasoning | Call | Result | ApprovalRequest | ApprovalResponse | Opaque
_P = TypeVar("_P", bound=_Part)


@dataclass(slots=True, eq=False)
class Turn:
    """What one side said. `top`: it is outside the messages (a system prompt). `origin`: set if there are no parts.

    `marks`: members that the message must have in the target regardless of its source (`prefix`).
    """

    role: Role
    parts: tuple[Part, ...]
    origin: Origin | None = None
    top: bool = False
    marks: Mapping[str, Any] = EMPTY

    @property
    def path(self) -> Path:
        if self.origin is not None:
            return self.origin.path
        for part in self.parts:
            if part.path:
                return part.path
        return ()


def with_parts(turn: Turn, parts: Iterable[Part], **fields: Any) -> Turn:
    """Return a copy of the turn with other parts."""
    made = Turn(turn.role, tuple(parts), turn.origin, turn.top, turn.marks)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def copied(part: _P, **fields: Any) -> _P:
    """Return a copy of the part with another origin; `raw` stays valid."""
    made = _twin(part)
    for name, value in fields.items():
        setattr(made, name, value)
    return cast("_P", made)


def changed(part: _P, **fields: Any) -> _P:
    """Return a copy of the part with other content; `raw` is then stale."""
    made = _twin(part)
    made.touched = True
    for name, value in fields.items():
        setattr(made, name, value)
    if "arguments" in fields or "input" in fields:
        made.parsed = MISSING
    return cast("_P", made)


def _twin(part: _Part) -> Any:
    kind: Any = type(part)
    return kind(*_fields(kind)(part))


@cache
def _fields(kind: type[_Part]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a getter of all fields of a kind of part, in their order."""
    return attrgetter(*kind.__dataclass_fields__)


def pointer(path: Path) -> str:
    """Return a JSON pointer (RFC 6901)."""
    told = "/%s" * len(path) % path
    if told.count("/") == len(path) and "~" not in told:
        return told
    return "".join(["/" + str(step).replace("~", "~0").replace("/", "~1") for step in path])


def json_text(value: Any, path: Path) -> str:
    """Return a JSON value as compact text; integers beyond 64 bits stay exact.

    Raises:
        HistoryError: the value is not JSON: it contains itself, or is nested too deeply.
    """
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError):
        import json

        try:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
        except (TypeError, ValueError, RecursionError):
            raise HistoryError("unreadable", pointer(path)) from None


def arguments_text(call: Call) -> str:
    """Return the arguments as JSON text."""
    if call.arguments is not None:
        return call.arguments
    return "{}" if call.input is MISSING or call.input is None else json_text(call.input, call.path)


def arguments_object(call: Call) -> dict[str, Any] | None:
    """Return the arguments as an object; None if they are not a JSON object."""
    value = call.input
    if value is MISSING:
        value = call.parsed
        if value is MISSING:
            known: Any = call  # frozen for type checkers alone
            value = known.parsed = _read(call.arguments or "")
    elif value is None:
        return {}
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType]


def _read(text: str) -> Any:
    if not text or text.isspace():
        return {}
    try:
        return loads_arguments(text)
    except JsonFault:
        return None


def custom_input(call: Call) -> str:
    """Return the input of a free-form tool, which is text and not JSON."""
    given = arguments_object(call) or {}
    text = given.get("input", "")
    return text if isinstance(text, str) else json_text(text, call.path)


def value_object(result: Result) -> dict[str, Any] | None:
    """Return the result if it is a JSON object, otherwise None."""
    value: Any = result.value
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def decoded(data: str) -> bytes | None:
    """Return the bytes of base64 text, with or without line breaks and padding; None if it is not base64."""
    for text in (data, "".join(data.split()).rstrip("=")):
        try:
            return b64decode(text + "=" * (-len(text) % 4), validate=True)
        except ValueError:
            continue
    return None


def members_of(value: Any) -> Mapping[str, Any]:
    """Return the members of a JSON object; an empty mapping for any other value."""
    if value.__class__ is dict:
        return value
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else EMPTY


def removed_value(part: Part) -> Any:
    """Return what an edit reports as removed: the source object, or its text if it was a text there."""
    if part.raw is not None:
        return part.raw
    if isinstance(part, Text | Reasoning):
        return part.text
    return result_text(part) if isinstance(part, Result) else None


def result_text(result: Result) -> str:
    """Return the result as text, without media and opaque parts."""
    if result.value is not MISSING:
        return result.value if isinstance(result.value, str) else json_text(result.value, result.path)
    return "".join([part.text for part in result.parts if isinstance(part, Text)])
