"""Determines how a tool name that arrives for a call relates to the call's name: it may be the same name, a longer
name, the next piece of the name, or the name of another tool. Also determines whether a text can be a tool name.

The relation depends only on the names, the request's tool list, and how far the arguments have progressed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from streamweld._pure.assemble.settings import Tools

__all__ = ["Progress", "Relation", "is_name", "relate"]

_NAME_LENGTH = 128  # in characters
_NAME_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:/-")
# The ranges of non-ASCII characters that a tool name must not contain: blanks, control, formatting and private-use
# characters, and the replacement character.
_UNPRINTED = (
    ("\u0080", "\u00a0"), ("\u00ad", "\u00ad"), ("\u1680", "\u1680"), ("\u2000", "\u200f"), ("\u2028", "\u202f"),
    ("\u205f", "\u206f"), ("\u3000", "\u3000"), ("\ue000", "\uf8ff"), ("\ufeff", "\ufeff"), ("\ufff0", "\uffff"),
    ("\U000e0000", "\U000e0fff"), ("\U000f0000", "\U0010ffff"),
)  # fmt: skip

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

    The decision depends on the tool list or, without a tool list, on the progress of the arguments.
    """
    if progress == "none":
        return True
    if tools.has(arriving):
        return not tools.has(current)
    return progress == "started"


def is_name(name: str) -> bool:
    """Return True if the text can be a tool name: 1 to 128 characters, each of them allowed.

    The allowed characters are ASCII letters and digits, `_.:/-`, and non-ASCII characters outside `_UNPRINTED`.
    """
    if not 0 < len(name) <= _NAME_LENGTH:
        return False
    if _NAME_CHARACTERS.issuperset(name):
        return True
    return all(one in _NAME_CHARACTERS if one.isascii() else not _is_unprinted(one) for one in name)


def _is_unprinted(one: str) -> bool:
    return any(first <= one <= last for first, last in _UNPRINTED)
