"""The place of a list in the delta of a Chat chunk, such as `provider_specific_fields/thinking_blocks`.

Clients merge the lists at one path of all deltas of a choice. Lists that are nested more deeply are not examined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["MAX_LISTS", "ListPath"]

MAX_LISTS: Final = 16  # maximum number of lists per choice that are stored
_MAX_NAMES: Final = 4  # maximum number of names in a path
_MAX_SIZE: Final = 256  # maximum size of the path of a stored list, in bytes


@dataclass(slots=True, frozen=True)
class ListPath:
    """The names of the members that lead to a value."""

    text: str
    names: int = 1

    def member(self, name: str) -> ListPath | None:
        """Return the path of a member of the value at this path, or None if it is not examined."""
        if self.names == _MAX_NAMES:
            return None
        # A long path is not extended, so that the time does not depend on the number of members.
        return ListPath(self.text if self.is_long() else f"{self.text}/{name}", self.names + 1)

    def is_long(self) -> bool:
        """Return True if a list at this path is not stored."""
        return len(self.text) > _MAX_SIZE or len(self.text.encode(errors="surrogatepass")) > _MAX_SIZE
