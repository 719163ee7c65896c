"""What every reader does: remembers the message, the place and the members that the model has no word for.

It knows no dialect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from streamweld.errors import HistoryError
from streamweld.history.model import NOTHING, Media, Origin, Result, Text, Turn, pointer

if TYPE_CHECKING:
    from streamweld.history.model import Part, Path, Role

__all__ = [
    "Json",
    "as_list",
    "as_mapping",
    "as_text",
    "began",
    "beside",
    "file_of",
    "kind_of",
    "placed",
    "split_data",
    "split_results",
    "text_of",
]

Json: TypeAlias = Mapping[str, Any]
_MediaKind: TypeAlias = Literal["image", "audio", "video", "file"]


# The fields that every part has, in their order.
Place: TypeAlias = tuple["Origin", int, "Path", Any, Json]


def beside(raw: Any, known: frozenset[str]) -> Json:
    """The members of a message or block beyond the known ones; null says nothing."""
    if type(raw) is not dict and not isinstance(raw, Mapping):
        return NOTHING
    told = cast("Json", raw)
    if known.issuperset(told):
        return NOTHING
    return {key: value for key, value in told.items() if key not in known and value is not None}


def began(dialect: str, path: Path, raw: Any, known: frozenset[str]) -> Origin:
    """The message that the next parts are read from."""
    return Origin(dialect, path, raw, 0, beside(raw, known))


def placed(origin: Origin, path: Path, raw: Any = None, known: frozenset[str] | None = None) -> Place:
    """The common fields of the next part of a message."""
    at = origin.count
    origin.count = at + 1
    extra = NOTHING if known is None else beside(raw, known)
    return origin, at, path, raw, extra


def text_of(origin: Origin, path: Path, text: str) -> Text:
    """A text that is the whole content of its message, or a member of it."""
    at = origin.count
    origin.count = at + 1
    return Text(origin, at, path, None, NOTHING, False, text)


def as_mapping(value: Any, path: Path) -> Json:
    """The value, which must be an object.

    Raises:
        HistoryError: it is none.
    """
    if value.__class__ is dict:
        return value
    if isinstance(value, Mapping):
        return cast("Json", value)
    raise HistoryError("unreadable", pointer(path))


def as_list(value: Any, path: Path) -> Sequence[Any]:
    """The value, which must be a list.

    Raises:
        HistoryError: it is none.
    """
    if isinstance(value, list | tuple):
        return cast("Sequence[Any]", value)
    raise HistoryError("unreadable", pointer(path))


def as_text(value: Any) -> str:
    """A member that should be text; what is none counts as absent."""
    return value if isinstance(value, str) else ""


def split_data(url: str) -> tuple[str | None, str | None, str | None]:
    """`data:image/png;base64,AAAA` -> media type, data, None; an address -> None, None, address."""
    head, comma, data = url.partition(";base64,")
    if comma and head.startswith("data:"):
        return head[5:] or None, data, None
    return None, None, url


def kind_of(media_type: str | None, default: _MediaKind = "file") -> _MediaKind:
    """`image/png` -> `image`."""
    head = (media_type or "").partition("/")[0]
    return head if head in ("image", "audio", "video") else default  # type: ignore[return-value]


def file_of(place: Place, url: str, media_type: str | None, *, kind: _MediaKind | None = None, **fields: Any) -> Media:
    """A medium that is given by a data URL or an address."""
    told, data, address = split_data(url)
    told = media_type or told
    return Media(*place, kind=kind or kind_of(told), media_type=told, data=data, url=address, **fields)


def split_results(parts: list[Part], origin: Origin) -> list[Turn]:
    """A user message whose dialect keeps results among the user's words: runs of results, runs of the rest."""
    turns: list[Turn] = []
    run: list[Part] = []
    side: Role = "user"
    for part in parts:
        own: Role = "tool" if isinstance(part, Result) else "user"
        if own != side and run:
            turns.append(Turn(side, tuple(run), origin))
            run = []
        side = own
        run.append(part)
    if run or not turns:
        turns.append(Turn(side, tuple(run), origin))
    return turns
