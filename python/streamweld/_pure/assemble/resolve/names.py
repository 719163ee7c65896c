"""How a name that arrives relates to the name a call has: the same, more of it, a piece of it, or another one.

Pure questions on strings and the request's tool list. It changes nothing and knows no index, id or arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from streamweld._pure.assemble.settings import Tools

__all__ = ["Progress", "Relation", "relate"]

# late: the call had none. same: equal. grows: begins with the call's name. fragment: the next piece of it.
# other: another tool's name.
Relation = Literal["late", "same", "grows", "fragment", "other"]

# How far the arguments of the call are when the name arrives. none: no text. started: some text.
# over: the text is a whole value, or the fragment with the name starts another one.
Progress = Literal["none", "started", "over"]


def relate(current: str, arriving: str, tools: Tools, progress: Progress) -> Relation:
    """What `arriving` (not blank) is to `current`.

    Without a tool list a differing name is a fragment as long as no argument text was seen, and another name after
    that; and a name that begins with the current one belongs to the next call once the arguments are over. The tool
    list overrules: a name that is no tool's name grows to one at any time, and a concatenation that begins a tool's
    name is a fragment at any time; two names that are both tools are two calls.
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
    """Whether a longer name can be the call's own: the tool list decides, or how far the arguments are."""
    if progress == "none":
        return True
    if tools.has(arriving):
        return not tools.has(current)
    return progress == "started"
