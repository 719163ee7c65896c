"""Classifies a tool name that arrives for a call: the same name, a longer one, its next piece, or another name.

Considers only the names, the request's tool list, and how far the arguments have progressed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from streamweld._pure.assemble.settings import Tools

__all__ = ["Progress", "Relation", "relate"]

# late: the call has no name yet. same: the names are equal. grows: a longer name that begins with the call's name.
# fragment: the next piece of the call's name. other: the name of another tool.
Relation = Literal["late", "same", "grows", "fragment", "other"]

# Progress of the call's arguments when the name arrives. none: no text. started: some text. over: the text is a
# complete JSON value, or the fragment with the name starts another value.
Progress = Literal["none", "started", "over"]


def relate(current: str, arriving: str, tools: Tools, progress: Progress) -> Relation:
    """Classify the name `arriving` (not blank) relative to the call's name `current`.

    Without a tool list, a different name is treated as a fragment until argument text arrives, and as the name of
    another tool after that. A name that begins with the call's name belongs to the next call once the arguments are
    complete. The tool list takes precedence: at any time, a name that is not a tool's name can grow into the name of a
    tool, and the arriving name is a fragment if both names together begin a tool's name. Two names that are both in the
    list belong to two calls.
    """
    if not current:
        return "late"
    if arriving == current:
        return "same"
    if arriving.startswith(current) and _may_grow(current, arriving, tools, progress):
        return "grows"
    if tools.begins(current + arriving) and not (progress == "over" and tools.has(current)):
        return "fragment"
    if progress != "none" or tools.has(arriving):
        return "other"
    return "fragment"


def _may_grow(current: str, arriving: str, tools: Tools, progress: Progress) -> bool:
    """Return True if a longer name can belong to the call.

    The tool list determines this; without a tool list, the progress of the arguments does.
    """
    if progress == "none":
        return True
    if tools.has(arriving):
        return not tools.has(current)
    return progress == "started"
