"""Helpers for all readers: they validate values, and record each part's message, path and extra members."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from streamweld.errors import HistoryError
from streamweld.history.media_types import canonical, detected, is_concrete
from streamweld.history.model import EMPTY, Call, Media, NestedPath, Origin, Reasoning, Result, Text, Turn, pointer
from streamweld.history.provider_metadata import image_detail

if TYPE_CHECKING:
    from streamweld.history.model import Part, Path, Role

__all__ = [
    "Json",
    "as_data",
    "as_list",
    "as_mapping",
    "as_optional_text",
    "as_text",
    "extra_members",
    "free_form_input",
    "locate",
    "media_from_url",
    "media_kind",
    "new_origin",
    "split_data_url",
    "split_results",
    "text_part",
    "unknown_role",
    "with_detail",
    "with_inner_members",
]

Json: TypeAlias = Mapping[str, Any]
_MediaKind: TypeAlias = Literal["image", "audio", "video", "file"]


# The values of the fields that every part has, in the order of `_Part`.
CommonFields: TypeAlias = tuple["Origin | None", int, "Path", Any, Json]


def extra_members(raw: Any, known: frozenset[str]) -> Json:
    """Return the members of a message or block that are not in `known` and not null."""
    if type(raw) is not dict and not isinstance(raw, Mapping):
        return EMPTY
    told = cast("Json", raw)
    if known.issuperset(told):
        return EMPTY
    return {key: value for key, value in told.items() if key not in known and value is not None}


def new_origin(dialect: str, path: Path, raw: Any, known: frozenset[str]) -> Origin:
    """Return the origin that the parts of a message share."""
    return Origin(dialect, path, raw, 0, extra_members(raw, known))


def locate(origin: Origin, path: Path, raw: Any = None, known: frozenset[str] | None = None) -> CommonFields:
    """Return the common fields of the next part of a message."""
    at = origin.count
    origin.count = at + 1
    if known is None or (raw.__class__ is dict and known.issuperset(raw)):  # nearly always true; saves a function call
        return origin, at, path, raw, EMPTY
    return origin, at, path, raw, extra_members(raw, known)


def text_part(origin: Origin, path: Path, text: str) -> Text:
    """Return the next part for text that is a plain string in the message, not a block."""
    at = origin.count
    origin.count = at + 1
    return Text(origin, at, path, None, EMPTY, False, text)


def with_inner_members(common: CommonFields, *inner: tuple[str, Any, frozenset[str]]) -> CommonFields:
    """Return the common fields with the unknown members of nested objects added. `inner`: a tuple `(path, object, known
    members)` for each nested object.
    """
    found: dict[str, Any] = {}
    for way, told, known in inner:
        if told is None or (told.__class__ is dict and known.issuperset(told)):
            continue
        for name, value in extra_members(told, known).items():
            found[NestedPath(f"{way}/{name}")] = value
    return (*common[:4], {**common[4], **found}) if found else common


_KINDS: Final[tuple[tuple[type[Any], str], ...]] = (
    *((str, "text"), (bool, "a boolean"), (int, "a number"), (float, "a number"), (NoneType, "null")),
    *((Mapping, "an object"), (list, "a list"), (tuple, "a list")),
)


def _unusable(value: Any, required: str, path: Path) -> HistoryError:
    """Return the error for a value of the wrong type.

    The error message does not contain the value, which may be private.
    """
    other = f"a Python object of type {type(value).__name__}"
    found = next((name for kind, name in _KINDS if isinstance(value, kind)), other)
    return HistoryError("unreadable", pointer(path), detail=f"found {found} where {required} is required")


def unknown_role(role: Any, roles: Sequence[str], dialect: str, path: Path) -> HistoryError:
    """Return the error for a message with a role that the dialect does not have."""
    detail = f"{role!r} is not a role of {dialect}: {', '.join(roles)}"
    return HistoryError("unknown_role", pointer((*path, "role")), detail=detail)


def as_mapping(value: Any, path: Path) -> Json:
    """Return the value, which must be an object.

    Raises:
        HistoryError: if the value has another type.
    """
    if value.__class__ is dict:
        return value
    if isinstance(value, Mapping):
        return cast("Json", value)
    raise _unusable(value, "an object", path)


def as_list(value: Any, path: Path) -> Sequence[Any]:
    """Return the value, which must be a list; null counts as an empty list.

    Raises:
        HistoryError: if the value has another type.
    """
    if value.__class__ is list or isinstance(value, list | tuple):
        return cast("Sequence[Any]", value)
    if value is None:
        return ()
    raise _unusable(value, "a list", path)


def as_text(value: Any, path: Path) -> str:
    """Return a member that must be text; null counts as empty text.

    Raises:
        HistoryError: if the value has another type.
    """
    return value if value.__class__ is str else as_optional_text(value, path) or ""


def as_optional_text(value: Any, path: Path) -> str | None:
    """Return a member that must be text or null.

    Raises:
        HistoryError: if the value has another type.
    """
    if value is None or isinstance(value, str):
        return value
    raise _unusable(value, "text", path)


def free_form_input(call: Json, path: Path) -> str:
    """Return the input of a free-form call. The input must be text.

    Raises:
        HistoryError: if the value has another type.
    """
    text = call.get("input")
    if isinstance(text, str):
        return text
    raise _unusable(text, "text", (*path, "input"))


def as_data(value: Any, path: Path) -> str | None:
    """Return base64 data as text. SDKs such as boto3 and google-genai use bytes, which are encoded here.

    Raises:
        HistoryError: if the value has another type.
    """
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    return as_optional_text(value, path)


def split_data_url(url: str) -> tuple[str | None, str | None, str | None]:
    """Split a data URL into `(media type, data, None)`; return any other URL as `(None, None, URL)`."""
    if url[:5].lower() != "data:":
        return None, None, url
    head, comma, data = url[5:].partition(",")
    media_type, _, encoding = head.rpartition(";")
    if not comma or encoding.strip().lower() != "base64":
        return None, None, url
    return canonical(media_type) or None, data, None


def media_kind(media_type: str | None, default: _MediaKind = "file") -> _MediaKind:
    """Return the kind of a media type, such as `image` for `image/png`."""
    head = (media_type or "").partition("/")[0]
    return head if head in ("image", "audio", "video") else default  # type: ignore[return-value]


def media_from_url(
    common: CommonFields, url: str, media_type: str | None, *, kind: _MediaKind | None = None, **fields: Any
) -> Media:
    """Return the media part for a data URL or any other URL."""
    told, data, address = split_data_url(url)
    told = media_type or told
    kind = kind or media_kind(told)
    if data is not None and not is_concrete(told):
        told = detected(data) or told
    return Media(*common, kind=kind, media_type=told, data=data, url=address, **fields)


def with_detail(common: CommonFields, member: str) -> tuple[CommonFields, str | None]:
    """Return the common fields without an image's level of detail, and that level.

    `member`: the member with the AI SDK's options for the providers.
    """
    extra = common[4]
    found = image_detail(extra.get(member))
    if found is None:
        return common, None
    rest = {name: value for name, value in extra.items() if name != member}
    if found[1]:
        rest[member] = found[1]
    return (*common[:4], rest or EMPTY), found[0]


def split_results(parts: list[Part], origin: Origin) -> list[Turn]:
    """Split a user message that mixes results and other content, with one turn for each run of results or of other
    content.

    Raises:
        HistoryError: if the message has content that only an assistant message may have.
    """
    turns: list[Turn] = []
    run: list[Part] = []
    side: Role = "user"
    for part in parts:
        kind = type(part)
        if kind is Call or kind is Reasoning:  # only assistant messages may contain such a part
            detail = "a user message must not contain tool calls or reasoning"
            raise HistoryError("unreadable", pointer(part.path), detail=detail)
        own: Role = "tool" if kind is Result else "user"
        if own != side and run:
            turns.append(Turn(side, tuple(run), origin))
            run = []
        side = own
        run.append(part)
    if run or not turns:
        turns.append(Turn(side, tuple(run), origin))
    return turns
