"""Fit cache marks, which state up to which block a request is cached, to the target: their number and lifetimes.

`history.convert` converts the marks of messages, and `requests.tools` those of tools. The marks are counted before the
conversion, so that the path of a loss refers to the caller's request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from streamweld.history.provider_metadata import cache_mark
from streamweld.requests.tables import is_list, listed, object_of, spec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streamweld.history.places import Moved
    from streamweld.requests.context import RequestContext
    from streamweld.requests.tables import Json, Path

__all__ = ["limit", "order"]

_Tree: TypeAlias = "dict[str | int, _Tree]"  # one level for each step of a path; an empty dict at its end
_MEMBER: Final = "cache_control"
_BLOCK: Final = "cachePoint"
_OPTIONS: Final = "providerOptions"
_TOP: Final = ("tools", "toolConfig", "system", "messages")  # in the order in which the prefix is built
_INNER: Final = ("content", "function", "tools")


def limit(context: RequestContext) -> None:
    """Remove cache marks from `context.request` if it has more than the target accepts.

    The last marks are kept, because each mark covers everything before it.
    """
    most = spec("cache_marks")["max"].get(context.target)
    if most is None:
        return
    if context.same and _MEMBER in context.request:  # Anthropic then adds a mark to the last block
        most -= 1
    few = [place for name in _TOP[:-1] for place in _marks(context.request.get(name), (name,))]
    counts = context.source != "ai-sdk-model"  # the AI SDK's marks are in options, which only `_marks` reads
    if counts and len(few) + _number(context.request.get("messages")) <= most:
        return
    places = [*few, *_marks(context.request.get("messages"), ("messages",))]
    surplus: _Tree = {}
    why = f"{context.target} accepts at most {spec('cache_marks')['max'][context.target]} marks of a cached prefix"
    for path in places[: len(places) - most]:
        found: Any = context.request
        branch: Any = surplus
        for step in path:
            found = found[step]
            branch = branch.setdefault(step, {})
        context.lose(str(path[-1]), path, why, found)
    moved: Moved = {}
    context.request = cast("Json", _without(context.request, surplus, (), moved))
    context.moved |= moved


def order(context: RequestContext) -> None:
    """Shorten the lifetime of cache marks that follow a mark with a shorter one, which the target rejects.

    Also remove Anthropic's top-level mark if the last block has its own mark with another lifetime.
    """
    if context.target not in spec("cache_marks")["max"]:
        return
    brief = False
    for path in [place for name in _TOP for place in _marks(context.request.get(name), (name,))]:
        whole, mark = _mark_at(context.request, path)
        brief = brief or _is_brief(mark)
        if brief and not _is_brief(mark):
            _shorten(context, whole, mark)
    top = object_of(context.request.get(_MEMBER))
    if not (context.same and top):
        return
    last = listed(object_of((listed(context.request.get("messages")) or (None,))[-1]).get("content"))
    own = object_of(object_of(last[-1] if last else None).get(_MEMBER))
    if own and _is_brief(own) != _is_brief(top):
        what = "dropped the mark of the request, because its last block has a mark with another lifetime"
        context.edit("cache_lifetime", (_MEMBER,), what, top)
        context.request = {name: value for name, value in context.request.items() if name != _MEMBER}
    elif brief and not _is_brief(top):
        _shorten(context, (_MEMBER,), top)


def _is_brief(mark: Json) -> bool:
    """Return whether a mark has the default lifetime, 5 minutes."""
    return mark.get("ttl") in (None, "5m")


def _mark_at(request: Json, path: Path) -> tuple[Path, Json]:
    """Return the mark at this path, and its path. In provider options, the mark may be nested in other members."""
    value: Any = request
    for step in path:
        value = value[step]
    mark = object_of(value)
    while len(mark) == 1 and "type" not in mark:
        ((name, inner),) = mark.items()
        path, mark = (*path, name), object_of(inner)
    return path, mark


def _shorten(context: RequestContext, path: Path, mark: Json) -> None:
    what = "shortened the lifetime of a cache mark to that of an earlier mark"
    context.edit("cache_lifetime", path, what, mark.get("ttl"))
    new = {name: value for name, value in mark.items() if name != "ttl"}
    context.request = cast("Json", _with(context.request, path, new))


def _with(value: Any, path: Path, new: Any) -> Any:
    """Return the value with the member at this path replaced. Only the objects and lists on the path are copied."""
    if not path:
        return new
    step, *rest = path
    if isinstance(value, Mapping):
        given = cast("Json", value)
        return {name: _with(member, rest, new) if name == step else member for name, member in given.items()}
    return [_with(item, rest, new) if n == step else item for n, item in enumerate(cast("Sequence[Any]", value))]


def _number(messages: Any) -> int:
    """Return the number of marks in the messages. Counting is faster than `_marks`, which also returns the paths."""
    count = 0
    for message in listed(messages):
        members = object_of(message)
        count += _MEMBER in members
        content: Any = members.get("content")
        if content.__class__ is list:
            count += _number_in(content)
    return count


def _number_in(content: list[Any]) -> int:
    count = 0
    for block in content:
        if block.__class__ is dict:
            if _MEMBER in block or _BLOCK in block:
                count += 1
            inner = block.get("content")
            if inner.__class__ is list:
                count += _number_in(inner)
    return count


def _marks(value: Any, path: tuple[str | int, ...]) -> Iterator[Path]:
    """Yield the paths of the marks in a part of the request, in order."""
    if is_list(value):
        for n, item in enumerate(listed(value)):
            if item.__class__ is not str:
                yield from _marks(item, (*path, n))
    elif isinstance(value, Mapping):
        for name in _INNER:
            if name in value:
                yield from _marks(value[name], (*path, name))
        for name in (_MEMBER, _BLOCK):
            if name in value:
                yield (*path, name)
        if _OPTIONS in value:
            yield from _mark_of_options(value[_OPTIONS], (*path, _OPTIONS))


def _mark_of_options(options: Any, path: tuple[str | int, ...]) -> Iterator[Path]:
    """Yield the path of the mark in the AI SDK's provider options, or the path of the options if they contain nothing
    else.
    """
    found = cache_mark(options)
    if found is not None:
        _, rest, (issuer, name) = found
        yield path if not rest else (*path, issuer, name) if issuer in rest else (*path, issuer)


def _without(value: Any, surplus: _Tree, path: tuple[str | int, ...], moved: Moved) -> Any:
    """Return the value without these marks. Objects without marks are not copied.

    `moved`: the function adds the new and old paths of elements that follow a removed block in a list.
    """
    if isinstance(value, Mapping):
        given = cast("Mapping[str, Any]", value)
        return {
            name: _without(member, surplus[name], (*path, name), moved) if name in surplus else member
            for name, member in given.items()
            if name not in surplus or surplus[name]
        }
    made: list[Any] = []
    for n, item in enumerate(cast("Sequence[Any]", value)):
        if n in surplus and list(object_of(item)) == [_BLOCK]:
            continue
        if len(made) != n:
            moved[(*map(str, path), str(len(made)))] = (*path, n)
        made.append(_without(item, surplus[n], (*path, n), moved) if n in surplus else item)
    return made
