"""Generates ids that the target requires but the source lacks: `<kind>_<prefix><n>`, numbered across all kinds in a
stream.

The caller provides the prefix (128 random bits, or the caller's seed). The prefix never contains upstream text, so no
stream can predict or choose an id.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

__all__ = ["IdMint", "Kind"]

Kind: TypeAlias = Literal["resp", "msg", "rs", "fc", "chatcmpl", "txt", "src", "tc", "item", "ws", "ig"]

_JOINT: Final = {"chatcmpl": "-"}  # OpenAI writes `chatcmpl-…` with a hyphen, and all other ids with an underscore


class IdMint:
    """Generates the ids of one stream."""

    __slots__ = ("_minted", "_prefix")

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._minted = 0

    def new(self, kind: Kind) -> str:
        """Return the next id. Ids of the kind `chatcmpl` contain a hyphen instead of the underscore."""
        self._minted += 1
        return f"{kind}{_JOINT.get(kind, '_')}{self._prefix}{self._minted}"
