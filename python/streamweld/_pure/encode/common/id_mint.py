"""Ids of what the source has no id for: `<kind>_<prefix><n>`, the numbers running over all kinds of one stream.

Knows no dialect and no randomness: the prefix comes from outside (128 random bits, or the caller's seed), never from
upstream text, so that no stream can foresee or choose an id.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

__all__ = ["IdMint", "Kind"]

Kind: TypeAlias = Literal["resp", "msg", "rs", "fc", "chatcmpl", "txt", "src"]

_JOINT: Final = {"chatcmpl": "-"}  # OpenAI writes `chatcmpl-…`, and everything else with an underscore


class IdMint:
    """The ids of one stream."""

    __slots__ = ("_minted", "_prefix")

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._minted = 0

    def new(self, kind: Kind) -> str:
        """The next id."""
        self._minted += 1
        return f"{kind}{_JOINT.get(kind, '_')}{self._prefix}{self._minted}"
