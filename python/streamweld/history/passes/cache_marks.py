"""Convert cache marks, which state up to which block a request is cached, to the form of the target.

In Anthropic, LiteLLM and OpenRouter requests, the marked block has the member `cache_control`. In Bedrock requests, a
`cachePoint` block follows the marked block. A mark that the target cannot represent is not changed here, and is later
recorded as a loss, like any other member.

Constraints: `cache_marks`, `members`.
"""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from streamweld.history.model import (
    CACHE_POINT,
    Call,
    Media,
    Opaque,
    Result,
    SharedMember,
    Text,
    copied,
    members_of,
    with_parts,
)
from streamweld.history.provider_metadata import cache_mark

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from streamweld.history.context import Context
    from streamweld.history.model import Origin, Part, Turn

__all__ = ["applies", "run"]

_P = TypeVar("_P", Call, Result)
_CONTROL: Final = SharedMember("cache_control")
_NAME: Final = str(_CONTROL)
_NAMES: Final = frozenset({_NAME})
_OPTIONS: Final = "providerOptions"  # a member of AI SDK parts
_PAIRED: Final = (Call, Result)
_HOLDERS: Final = frozenset({_NAME, _OPTIONS})
_KINDS: Final[Mapping[type, str]] = {Text: "text", Call: "call", Result: "tool"}


def applies(constraints: Mapping[str, Any]) -> bool:
    """Return whether the target has cache marks."""
    return bool(_marked(constraints))


def _marked(constraints: Mapping[str, Any]) -> Collection[str]:
    """Return the kinds of parts that may have a mark, named as in the constraint `members`."""
    listed: Mapping[str, Collection[str]] = constraints.get("members") or {}
    own: Collection[str] | None = constraints.get("cache_marks")
    return [kind for kind, names in listed.items() if _NAME in names] if own is None else own


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns with the marks of other dialects in the form of the target."""
    found = context.survey(turns)
    if not found.beyond or found.dialects == {context.family}:
        return turns
    marked = [turn for turn in found.beyond if any(map(_is_marked, turn.parts))]
    if not marked:
        return turns
    marks = _Marks(context)
    made = marks.turns(turns, marked)
    if marks.kept:
        found.adopt(made, marks.swapped(found.calls), marks.swapped(found.results))
    return made


class _Marks:
    """Converts the marks of one history.

    `new`: the `id()` of a call or result -> the replacement that has a mark. `kept`: whether no part was removed or
    moved.
    """

    def __init__(self, context: Context) -> None:
        self.family = context.family
        self.kinds = _marked(context.constraints)
        self.nested = context.family != "bedrock-converse"  # Bedrock has no cache points within a result
        self.new: dict[int, Part] = {}
        self.kept = True

    def swapped(self, parts: list[_P]) -> list[_P]:
        """Return the calls or results, with replacements for those that got a mark."""
        if not self.new:
            return parts
        return [cast("_P", self.new.get(id(part), part)) for part in parts]

    def turns(self, turns: list[Turn], marked: list[Turn]) -> list[Turn]:
        """Return the turns. Only the turns in `marked` have marks."""
        out: list[Turn] = []
        done = 0
        for turn in marked:
            at = turns.index(turn, done)  # a turn equals only itself
            out += turns[done:at]
            done = at + 1
            parts = [self._of_part(part) for part in turn.parts]
            self._of_messages(parts)
            self._note(turn.parts, parts)
            points = self._of_points(parts, out)
            self.kept = self.kept and len(points) == len(parts) and all(map(is_, points, parts))
            if points or not turn.parts:
                same = len(points) == len(turn.parts) and all(map(is_, points, turn.parts))
                out.append(turn if same else with_parts(turn, points))
        return out + turns[done:]

    def _note(self, parts: Sequence[Part], made: list[Part]) -> None:
        for part, new in zip(parts, made, strict=True):
            if new is not part and isinstance(part, _PAIRED):
                self.new[id(part)] = new

    def _of_part(self, part: Part) -> Part:
        """Convert the mark of a block."""
        if isinstance(part, Result) and part.parts:
            inner = [self._of_part(one) if self.nested else _unmarked(one, self.family) for one in part.parts]
            if not all(map(is_, inner, part.parts)):
                found = [ttl for one in part.parts if (ttl := _ttl_of(one)) is not None]
                part = copied(part, parts=tuple(inner))
                if not self.nested:
                    part = self._marked(part, found[-1])
        ttl = _ttl_of(part) if part.extra and _is_foreign(part, self.family) else None
        if ttl is None or not self._takes(part):
            return part
        return self._marked(part, ttl)

    def _of_messages(self, parts: list[Part]) -> None:
        """Move the mark of a Chat message to the last part of the message that can have a mark."""
        seen: dict[int, Origin] = {}
        for part in parts:
            origin = part.origin
            if origin is not None and not _HOLDERS.isdisjoint(origin.extra) and origin.dialect != self.family:
                seen[id(origin)] = origin
        for origin in seen.values():
            ttl = _ttl_in(origin.extra)
            own = [n for n, part in enumerate(parts) if part.origin is origin]
            last = next((n for n in reversed(own) if self._takes(parts[n])), None)
            if ttl is None or last is None:
                continue
            bare = origin.without(_NAMES) if _NAME in origin.extra else origin.with_extra(_without(origin.extra))
            for n in own:
                parts[n] = copied(parts[n], origin=bare)
            parts[last] = self._marked(parts[last], ttl)

    def _of_points(self, parts: list[Part], before: list[Turn]) -> list[Part]:
        """Move each of Bedrock's cache points to the part before it, which may be the last result in the previous
        turn.
        """
        out: list[Part] = []
        for part in parts:
            ttl = _ttl_of_point(part) if type(part) is Opaque and part.dialect != self.family else None
            if ttl is not None and out and self._takes(out[-1]):
                out[-1] = self._marked(out[-1], ttl)
            elif ttl is not None and not out and before and self._continues(before[-1], part):
                *rest, last = before[-1].parts
                before[-1] = with_parts(before[-1], [*rest, self._marked(last, ttl)])
            else:
                out.append(part)
        return out

    def _continues(self, turn: Turn, part: Part) -> bool:
        """Return whether the last part of the turn can have a mark and was read from the same message as this part."""
        last = turn.parts[-1] if turn.parts else None
        return last is not None and last.origin is part.origin and self._takes(last)

    def _takes(self, part: Part) -> bool:
        """Return whether the target accepts a mark on this part."""
        kind = part.kind if isinstance(part, Media) else _KINDS.get(type(part))
        return kind in self.kinds and not (isinstance(part, Text) and not part.text.strip())

    def _marked(self, part: Part, ttl: str) -> Part:
        lasting = {"ttl": ttl} if ttl else {}
        mark: Mapping[str, Any]
        if self.family == "bedrock-converse":
            name, mark = CACHE_POINT, {"type": "default", **lasting}
        else:
            name, mark = _CONTROL, {"type": "ephemeral", **lasting}
        return copied(part, extra={**_without(part.extra), name: mark})


def _is_marked(part: Part) -> bool:
    """Return whether the part or its message may have a mark. This quick test rejects most parts."""
    if part.extra and not _HOLDERS.isdisjoint(part.extra):
        return True
    if part.origin is not None and part.origin.extra and not _HOLDERS.isdisjoint(part.origin.extra):
        return True
    if type(part) is Result:
        return any(inner.extra for inner in part.parts)
    return type(part) is Opaque and CACHE_POINT in members_of(part.raw)


def _is_foreign(part: Part, family: str) -> bool:
    return part.origin is None or part.origin.dialect != family


def _without(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members without the mark. Other provider options stay."""
    made = {name: value for name, value in extra.items() if name != _NAME}
    found = cache_mark(made.get(_OPTIONS)) if _OPTIONS in made and _NAME not in extra else None
    if found is not None:
        made[_OPTIONS] = found[1]
        if not found[1]:
            del made[_OPTIONS]
    return made


def _unmarked(part: Text | Media | Opaque, family: str) -> Any:
    """Return a part of a tool result without the part's cache mark."""
    known = part.extra and _is_foreign(part, family) and _ttl_of(part) is not None
    return copied(part, extra=_without(part.extra)) if known else part


def _ttl_of(part: Part) -> str | None:
    return _ttl_in(part.extra) if part.extra else None


def _ttl_in(extra: Mapping[str, Any]) -> str | None:
    """Return the lifetime of the cache mark of a part or message. The mark may be among the given members or in the
    provider options.
    """
    if _NAME in extra:
        return _ttl(extra[_NAME])
    found = cache_mark(extra[_OPTIONS]) if _OPTIONS in extra else None
    return None if found is None else _ttl(found[0])


def _ttl(mark: Any) -> str | None:
    """Return the lifetime of a cache mark: an empty string for the default, or None if the value is not a cache
    mark.
    """
    return _lifetime(mark, "ephemeral")


def _ttl_of_point(part: Opaque) -> str | None:
    raw = members_of(part.raw)
    return _lifetime(raw[CACHE_POINT], "default") if list(raw) == [CACHE_POINT] else None


def _lifetime(mark: Any, kind: str) -> str | None:
    given = members_of(mark)
    ttl = given.get("ttl")
    if given.get("type") != kind or not (ttl is None or isinstance(ttl, str)) or not given.keys() <= {"type", "ttl"}:
        return None
    return ttl or ""
