"""The neutral history model: turns that contain parts.

Readers create this model, passes change it, and writers turn it into a target's messages. Each part keeps its source
object (`raw`) and its message (`origin`), so that an unchanged part is written as the object that was read.
"""

from __future__ import annotations

import json
import re
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
    "CACHE_POINT",
    "CONTENT_PARTS",
    "EMPTY",
    "MISSING",
    "ApprovalRequest",
    "ApprovalResponse",
    "Call",
    "Media",
    "NestedPath",
    "Opaque",
    "Origin",
    "Part",
    "Path",
    "ReadParts",
    "Reasoning",
    "Result",
    "Role",
    "SharedMember",
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
    """Hashable empty mapping, for use as a field default.

    Dataclasses reject an unhashable default, and a default factory would be called for every part.
    """

    __hash__ = object.__hash__  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]


def nothing() -> Mapping[str, Any]:
    """Return a new, hashable empty mapping. Use `is` to distinguish the result from other empty mappings."""
    return _Nothing()


MISSING: Final[Any] = _Missing()
EMPTY: Final[Mapping[str, Any]] = nothing()


class NestedPath(str):
    """Slash-separated path of a member nested in a block. A writer cannot write such a member without its parent."""

    __slots__ = ()


class SharedMember(str):
    """Name of an extra member that also exists in the target's dialect.

    The member is written even if the block comes from another dialect.
    """

    __slots__ = ()


# Bedrock's mark for the end of a cached prefix. Writers add this mark as a separate block after the part.
CACHE_POINT: Final = SharedMember("cachePoint")


@dataclass(slots=True, eq=False)
class Origin:
    """One message (or item) of the source.

    `count`: number of parts that were read from the message. `extra`: members for which the model has no field.
    `stale`: whether `raw` is outdated and must not be written back.
    """

    dialect: str
    path: Path
    raw: Any
    count: int = 0
    extra: Mapping[str, Any] = EMPTY
    stale: bool = False
    _bare: dict[frozenset[str], Origin] | None = None

    def without(self, names: frozenset[str]) -> Origin:
        """Return the origin without these members. All parts of the message share the returned object."""
        if self._bare is None:
            self._bare = {}
        found = self._bare.get(names)
        if found is None:
            extra = {key: value for key, value in self.extra.items() if key not in names}
            found = self._bare[names] = Origin(self.dialect, self.path, self.raw, self.count, extra, stale=True)
        return found

    def with_extra(self, extra: Mapping[str, Any]) -> Origin:
        """Return the origin with other extra members."""
        return Origin(self.dialect, self.path, self.raw, self.count, extra, stale=True)


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
def _part(cls: type[_T]) -> type[_T]:
    """Create a slotted dataclass that only type checkers treat as frozen.

    Creating a part would take three times as long if the class were frozen at run time. Readers also pass fields by
    position in hot paths, to save time.
    """
    return dataclass(slots=True, eq=False)(cls)


@_part
class _Part:
    """The fields that all parts have.

    `at`: index of the part in its origin. `raw`: the source object. `touched`: whether a pass changed the part, which
    makes `raw` stale. `extra`: members of `raw` for which the model has no field. Extra members are kept if the target
    has the same dialect, and lost otherwise. Members of nested objects have a `NestedPath` key and are lost whenever
    the block is rewritten. Members that also exist in the target's dialect have a `SharedMember` key.
    """

    origin: Origin | None = None
    at: int = 0
    path: Path = ()
    raw: Any = None
    extra: Mapping[str, Any] = EMPTY
    touched: bool = False


@_part
class Text(_Part):
    """Text, or a refusal. `signature`: a Gemini thought signature, which can be on any part."""

    text: str = ""
    refusal: bool = False
    signature: str | None = None


@_part
class Media(_Part):
    """An image, audio clip, video or file, given as base64 data, a URL, or a provider's file id.

    `detail`: how many tokens the model spends on it, in OpenAI's words. `medium` is a level that only Gemini has.
    """

    kind: Literal["image", "audio", "video", "file"] = "file"
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    filename: str | None = None
    detail: str | None = None


@_part
class Reasoning(_Part):
    """The reasoning of a model.

    `segments`: the texts of the reasoning, one per summary. `issuer`: the vendor that can verify the signature or
    decrypt the reasoning. `assumed`: whether `issuer` is the dialect's default, because the message does not identify
    the issuer. `member`: the member of a Chat message from which the reasoning was read; None if it was read from the
    content.
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
    """A tool call. The arguments are JSON text or an object, as in the source.

    `parsed`: the cached result of `arguments_object`, so that the text is parsed only once.
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


class ReadParts(tuple["Text | Media | Opaque", ...]):
    """The parts of a result as they were read. A pass that changes the content of the result replaces this tuple."""

    __slots__ = ()


@_part
class Result(_Part):
    """The result of a call: content (`parts`), or a JSON value. `denied`: the user did not allow the call to run."""

    call_id: str = ""
    parts: tuple[Text | Media | Opaque, ...] = ()
    value: Any = MISSING
    name: str | None = None
    is_error: bool = False
    item_id: str | None = None
    denied: bool = False


@_part
class ApprovalRequest(_Part):
    """A request to approve a call (AI SDK messages only). `details`: the `REQUEST_DETAILS` members, keyed by name."""

    approval_id: str = ""
    call_id: str = ""
    reason: str | None = None
    details: Mapping[str, Any] = EMPTY


@_part
class ApprovalResponse(_Part):
    """The user's response to an `ApprovalRequest`."""

    approval_id: str = ""
    approved: bool = False
    reason: str | None = None
    provider_executed: bool = False


@_part
class Opaque(_Part):
    """Content that only its own dialect can represent, such as a server tool's block or a cache point."""

    kind: str = ""
    dialect: str = ""


# The kinds of parts that a result may contain. A tuple, because Python builds a union anew each time it is evaluated.
CONTENT_PARTS: Final = (Text, Media, Opaque)
Part: TypeAlias = Text | Media | Reasoning | Call | Result | ApprovalRequest | ApprovalResponse | Opaque
_P = TypeVar("_P", bound=_Part)


@dataclass(slots=True, eq=False)
class Turn:
    """One turn: consecutive parts with the same role.

    `top`: whether the turn is outside the list of messages, as a system prompt can be. `origin`: the source message, if
    the turn has no parts. `marks`: members, such as `prefix`, that the written message must have, even if the source
    message did not have them.
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
    """Return a copy of the turn with these parts."""
    made = Turn(turn.role, tuple(parts), turn.origin, turn.top, turn.marks)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def copied(part: _P, **fields: Any) -> _P:
    """Return a copy of the part with some fields replaced but the same content; `raw` stays valid."""
    made = _twin(part)
    for name, value in fields.items():
        setattr(made, name, value)
    return cast("_P", made)


def changed(part: _P, **fields: Any) -> _P:
    """Return a copy of the part with different content; its `raw` is stale."""
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
    entry = "/%s" * len(path) % path
    if entry.count("/") == len(path) and "~" not in entry:
        return entry
    return "".join(["/" + str(step).replace("~", "~0").replace("/", "~1") for step in path])


def json_text(value: Any, path: Path) -> str:
    """Return a JSON value as compact text. Integers of more than 64 bits stay exact.

    Raises:
        HistoryError: if the value contains itself or is nested too deeply.
    """
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError):
        import json

        try:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
        except (TypeError, ValueError, RecursionError):
            detail = "the value contains itself, or is nested too deeply"
            raise HistoryError("unreadable", pointer(path), detail=detail) from None


def arguments_text(call: Call) -> str:
    """Return the arguments as JSON text."""
    if call.arguments is not None:
        return call.arguments
    is_empty = call.input is MISSING or call.input is None or call.input == []
    return "{}" if is_empty else json_text(call.input, call.path)


def arguments_object(call: Call) -> dict[str, Any] | None:
    """Return the arguments as an object, or None if they are not a JSON object.

    An empty list is an empty object: PHP writes both as `[]` (https://github.com/prism-php/prism/issues/659).
    """
    value: Any = call.input
    if value is MISSING:
        value = call.parsed
        if value is MISSING:
            text = call.arguments
            try:
                value = {} if not text or text.isspace() else loads_arguments(text)
            except JsonFault:
                value = None
            known: Any = call  # the field is frozen only for type checkers
            known.parsed = value
    if (value is None and call.input is None) or value == []:
        return {}
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType]


_KEY_END: Final = re.compile(r'"\s*:')


def repeats_keys(text: str, value: dict[str, Any]) -> bool:
    """Return whether any object in JSON text has a repeated key. `value`: the parsed text."""
    # A quote and a colon follow every key, so the text has at least as many such pairs as keys. If the parsed value has
    # as many keys as the text has pairs, no key is repeated. Strings may also contain such pairs, so a greater number
    # of pairs does not prove that a key is repeated.
    if len(_KEY_END.findall(text)) == _key_count(value):
        return False
    try:
        _UNIQUE_KEYS.decode(text)
    except _RepeatedKey:
        return True
    except (ValueError, RecursionError):
        return False  # a more lenient parser has already accepted and repaired this text
    return False


def _key_count(value: dict[str, Any] | list[Any]) -> int:
    """Return the number of keys in a JSON object or list, at all depths."""
    own = len(value) if isinstance(value, dict) else 0
    inner: Iterable[Any] = value.values() if isinstance(value, dict) else value
    return own + sum(
        [_key_count(cast("dict[str, Any] | list[Any]", one)) for one in inner if isinstance(one, dict | list)]
    )


class _RepeatedKey(Exception):
    """Raised if an object has a repeated key."""


def _unique(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        raise _RepeatedKey


# Numbers are kept as text, because `int` raises an exception if there are too many digits.
_UNIQUE_KEYS: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_int=str, parse_float=str, strict=False)


def custom_input(call: Call) -> str:
    """Return the input of a call to a free-form tool. This input is plain text, not JSON."""
    given = arguments_object(call) or {}
    text = given.get("input", "")
    return text if isinstance(text, str) else json_text(text, call.path)


def value_object(result: Result) -> dict[str, Any] | None:
    """Return the result if it is a JSON object, otherwise None."""
    value: Any = result.value
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def decoded(data: str) -> bytes | None:
    """Decode base64 text, with or without line breaks and padding; return None if it is not base64."""
    for text in (data, "".join(data.split()).rstrip("=")):
        try:
            return b64decode(text + "=" * (-len(text) % 4), validate=True)
        except ValueError:
            continue
    return None


def members_of(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a JSON object, otherwise an empty mapping."""
    if value.__class__ is dict:
        return value
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else EMPTY


def removed_value(part: Part) -> Any:
    """Return the value that an edit reports as removed: the source object if there is one, otherwise the text."""
    if part.raw is not None:
        return part.raw
    if isinstance(part, Text | Reasoning):
        return part.text
    return result_text(part) if isinstance(part, Result) else None


def result_text(result: Result) -> str:
    """Return the result as text, omitting media and opaque parts."""
    if result.value is not MISSING:
        return result.value if isinstance(result.value, str) else json_text(result.value, result.path)
    return "".join([part.text for part in result.parts if isinstance(part, Text)])
