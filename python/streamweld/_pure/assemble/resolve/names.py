"""Determines how a tool name that arrives for a call relates to the call's name: it may be the same name, a longer
name, the next piece of the name, or the name of another tool.

The result depends only on the names, the request's tool list, and how far the arguments have progressed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from streamweld._pure.assemble.settings import Tools

__all__ = ["Progress", "Relation", "relate"]

# How the arriving name relates to the call's name. `late`: the call has no name yet. `same`: the names are equal.
# `grows`: the arriving name is longer and begins with the call's name. `fragment`: the arriving name is the next piece
# of the call's name. `other`: the arriving name is the name of another tool.
Relation = Literal["late", "same", "grows", "fragment", "other"]

# How far the call's arguments have progressed when the name arrives. `none`: no argument text has arrived. `started`:
# the argument text is incomplete. `over`: the argument text is a complete JSON value, or the fragment with the name
# starts another value.
Progress = Literal["none", "started", "over"]


def relate(current: str, arriving: str, tools: Tools, progress: Progress) -> Relation:
    """Return how the name `arriving`, which is not blank, relates to the call's name `current`.

    Without a tool list, a different name is a piece of the call's name until argument text arrives, and the name of
    another tool after that. A longer name that begins with the call's name replaces it until the arguments are
    complete. If the caller supplied a tool list, the list takes precedence over these rules. If both names together
    begin a tool's name, the arriving name is a piece. If only the longer name is in the list, it replaces the call's
    name at any time. If both names are in the list, they belong to two calls.
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
    """Return True if the call's name may be replaced with the longer name `arriving`.

    The tool list determines whether it may; without a tool list, the progress of the arguments does.
    """
    if progress == "none":
        return True
    if tools.has(arriving):
        return not tools.has(current)
    return progress == "started"
