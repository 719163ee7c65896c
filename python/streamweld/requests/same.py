"""Convert a request whose source and target are the same API: change only what the gateway does not accept.

Members that streamweld does not know are kept, and objects that need no change are reused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from streamweld.requests import answer_format, options, thinking, tool_choice
from streamweld.requests import tools as tooling
from streamweld.requests.tables import is_list, object_of, put

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld.requests.names import Names
    from streamweld.requests.work import Work

__all__ = ["translate"]


def translate(work: Work, made: dict[str, Any], names: Names) -> dict[str, Any]:
    """Return the request, with members that the gateway rejects left out or replaced."""
    had = _has_tools(made)
    _tools(work, made, names)
    left = _has_tools(made)
    if had and not left:
        _choice_alone(work, made)
    options.translate(work, made, tools=left or not had)
    facts = work.facts
    if "formats" in facts:
        found = answer_format.read(work)
        if found is not None and found.kind not in facts["formats"]:
            made.pop("response_format", None)
            answer_format.translate(found, work, made)
    if "thinking" in facts:
        note = thinking.read(work)
        own = {facts["thinking"]["member"], facts["thinking"].get("effort", "")}
        if note is not None and not {path.partition(".")[0] for path in note.raw} <= own:
            for path in note.raw:
                made.pop(path.partition(".")[0], None)
            thinking.translate(note, work, made)
    if "efforts" in facts:
        note = thinking.read(work)
        if note is not None and note.effort is not None and facts["efforts"].get(note.effort) != note.effort:
            for path in note.raw:
                made.pop(path.partition(".")[0], None)
            thinking.translate(note, work, made)
    if "choices" in facts:
        _choice(work, made, names)
    return made


def _has_tools(made: dict[str, Any]) -> bool:
    return bool(made.get("tools") or object_of(made.get("toolConfig")).get("tools") or made.get("functions"))


def _choice_alone(work: Work, made: dict[str, Any]) -> None:
    choice = tool_choice.read(work)
    if choice is not None:
        tool_choice.translate(choice, (), work, cast("Names", None), made)
        made.pop("tool_choice", None)


def _choice(work: Work, made: dict[str, Any], names: Names) -> None:
    choice = tool_choice.read(work)
    if choice is not None and choice.mode not in work.facts["choices"]:
        del made["tool_choice"]
        tool_choice.translate(choice, tooling.read(work), work, names, made)


def _tools(work: Work, made: dict[str, Any], names: Names) -> None:
    """Drop tools of kinds that the gateway does not accept, and rename tools whose names the target rejects."""
    found = tooling.read(work)
    dropped: set[tuple[str | int, ...]] = set()
    replaced: dict[tuple[str | int, ...], Any] = {}
    for tool in found:
        if not tooling.takes(tool, work):
            (fit,) = tooling.accepted([tool], work) or (None,)
            if fit is None:
                dropped.add(tool.path)
            else:
                alone: dict[str, Any] = {}
                tooling.write([fit], work, names, alone)
                replaced[tool.path] = alone["tools"][0]
        elif tool.kind in ("function", "custom") and not names.fits(tool.name):
            replaced[tool.path] = _renamed(tool.raw, tool.name, names.fit(tool.name, tool.path))
    if not dropped and not replaced:
        return
    for member, listed in (
        ("tools", made.get("tools")),
        ("toolConfig.tools", object_of(made.get("toolConfig")).get("tools")),
    ):
        if is_list(listed):
            path = tuple(member.split("."))
            kept = [
                replaced.get((*path, n), raw)
                for n, raw in enumerate(cast("Sequence[Any]", listed))
                if (*path, n) not in dropped
            ]
            if kept:
                put(made, member, kept)
            else:
                made.pop(path[0])


def _renamed(raw: Any, old: str, new: str) -> Any:
    """Return the tool definition with the name replaced, also in nested `function`, `custom` or `toolSpec` objects."""
    if not hasattr(raw, "items"):
        return raw
    return {
        name: new
        if name == "name" and value == old
        else _renamed(value, old, new)
        if name in ("function", "custom", "toolSpec")
        else value
        for name, value in raw.items()
    }
