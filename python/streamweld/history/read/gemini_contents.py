"""Group the forms of `contents` that google-genai accepts in addition to a list of contents.

A text or a part may stand for a content, alone or in a list, and a list in the list is one content of the user. As in
`google.genai._transformers.t_contents`, consecutive parts form one content: of the model if they are function
calls, otherwise of the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld._sdk_objects import plain
from streamweld.history.dialects import FAMILIES
from streamweld.history.model import members_of
from streamweld.response import Response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld.history.model import Path
    from streamweld.history.places import Moved

__all__ = ["as_part", "grouped", "is_content"]

_MEMBER: Final = "contents"
_CALLS: Final = ("functionCall", "function_call")
_URIS: Final = ("fileUri", "file_uri", "uri")
_TYPES: Final = ("mimeType", "mime_type")
# Tuples, because Python builds a union anew each time it is evaluated. The most frequent types come first.
_LISTS: Final = (list, tuple)
_READABLE: Final = (*_LISTS, str, Mapping, Response)


def grouped(messages: Any, source: str) -> tuple[Any, Moved, list[Path]]:
    """Return the argument of `convert` with a list of contents.

    Also return the new path of each content and part that was moved, with its path in the argument, and the paths of
    the contents that were made from parts. An argument that has no such part, or that is not Gemini's, is returned
    unchanged.
    """
    nothing: Moved = {}
    unchanged: Any = messages
    entry: Mapping[str, Any] | None = None
    if messages.__class__ is dict or isinstance(messages, Mapping):
        entry = cast("Mapping[str, Any]", messages)
    whole = entry is not None and _MEMBER in entry
    if not (whole if source == "auto" else FAMILIES[source] == "gemini"):
        return unchanged, nothing, []
    base: tuple[str, ...] = () if entry is None else (_MEMBER,)
    given: Any = unchanged if entry is None else entry.get(_MEMBER)
    if given is not None and not isinstance(given, _READABLE):
        given = plain(given)  # an SDK object
    if isinstance(given, _LISTS):
        items = cast("Sequence[Any]", given)
        if all(map(is_content, items)) or not all(map(_is_readable, items)):
            return unchanged, nothing, []
        groups = _Groups(base)
        for n, item in enumerate(items):
            groups.add(item, (*base, n))
        groups.end()
    elif isinstance(given, Mapping):
        groups = _Groups(base)
        groups.add(given, base)
        groups.end()
    else:
        return unchanged, nothing, []
    made: Any = groups.contents if entry is None else {**entry, _MEMBER: groups.contents}
    return made, groups.moved, groups.formed


def is_content(item: Any) -> bool:
    """Return whether an element is a content, not a part: it has a role or parts."""
    if item.__class__ is dict or isinstance(item, Mapping):
        return "parts" in item or "role" in item or not item
    return isinstance(item, Response)


def _is_readable(item: Any) -> bool:
    return isinstance(item, _READABLE)


def as_part(item: Any) -> Any:
    """Return a part for a text, or for a file without the member that a part nests it in."""
    if isinstance(item, str):
        return {"text": item}
    if isinstance(item, Mapping):
        entry = cast("Mapping[str, Any]", item)
        uri = next((entry[name] for name in _URIS if name in entry), None)
        media_type = next((entry[name] for name in _TYPES if name in entry), None)
        if isinstance(uri, str):
            return {"fileData": {"fileUri": uri} | ({} if media_type is None else {"mimeType": media_type})}
    return cast("Any", item)


class _Groups:
    """Contents that are made from texts, parts and contents. `base`: the path of the list."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.contents: list[Any] = []
        self.moved: Moved = {}
        self.formed: list[Path] = []
        self._role = "user"
        self._parts: list[tuple[Any, Path]] = []  # the parts of the content that is not complete

    def add(self, item: Any, path: Path) -> None:
        """Add an element: a content, a list of parts, or a part."""
        if item.__class__ in (list, tuple):
            self.end()
            self._role = "user"
            self._parts = [(part, (*path, n)) for n, part in enumerate(item)]
            self.end()
        elif is_content(item):
            self.end()
            self._move((), path)
            self.contents.append(item)
        else:
            called = any(members_of(item).get(name) is not None for name in _CALLS)
            role = "model" if called else "user"
            if role != self._role:
                self.end()
            self._role = role
            self._parts.append((item, path))

    def end(self) -> None:
        """Complete the content of the parts that were added last."""
        if not self._parts:
            return
        self._move((), self._parts[0][1])
        self.formed.append(self._parts[0][1])
        for n, (part, path) in enumerate(self._parts):
            self._move(("parts", str(n)), path)
            if isinstance(part, str):
                self._move(("parts", str(n), "text"), path)
        self.contents.append({"role": self._role, "parts": [as_part(part) for part, _ in self._parts]})
        self._parts = []

    def _move(self, inner: tuple[str, ...], path: Path) -> None:
        self.moved[(*map(str, self.base), str(len(self.contents)), *inner)] = path
