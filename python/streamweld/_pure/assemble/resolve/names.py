"""How a name that arrives relates to the name a call has: the same, more of it, a piece of it, or another one.

Pure questions on strings and the request's tool list. It changes nothing and knows no index, id or arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from streamweld._pure.assemble.settings import Tools

__all__ = ["Relation", "relate"]

# late: the call had none. same: equal. grows: begins with the call's name. fragment: the next piece of it.
# other: another tool's name.
Relation = Literal["late", "same", "grows", "fragment", "other"]


def relate(current: str, arriving: str, tools: Tools, *, arguments_started: bool) -> Relation:
    """What `arriving` (not blank) is to `current`.

    Without a tool list a differing name is a fragment as long as no argument text was seen, and another name after
    that. The tool list overrules: a concatenation that begins a tool's name is a fragment at any time; two names that
    are both tools are two calls.
    """
    if not current:
        return "late"
    if arriving == current:
        return "same"
    both_are_tools = tools.has(current) and tools.has(arriving)
    if arriving.startswith(current) and not (both_are_tools and arguments_started):
        return "grows"
    if tools.begins(current + arriving):
        return "fragment"
    if arguments_started or tools.has(arriving):
        return "other"
    return "fragment"
