"""The place of a list in the delta of a Chat chunk, such as `provider_specific_fields/thinking_blocks`.

Clients merge all lists that have the same path in the deltas of a choice. Lists with more than four names in their path
are not examined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["MAX_LISTS", "ListPath"]

MAX_LISTS: Final = 16  # maximum number of stored lists per choice
_MAX_NAMES: Final = 4  # maximum number of names in a path
_MAX_SIZE: Final = 256  # maximum size of the path of a stored list, in bytes


@dataclass(slots=True, frozen=True)
class ListPath:
    """The names of the members that lead to a value."""

    text: str
    names: int = 1

    def member(self, name: str) -> ListPath | None:
        """Return the path of a member of the value at this path, or None if the member is too deep to be examined."""
        if self.names == _MAX_NAMES:
            return None
        # A path that is already too long is not extended, so that deep nesting of long names takes linear time.
        return ListPath(self.text if self.is_long() else f"{self.text}/{name}", self.names + 1)

    def is_long(self) -> bool:
        """Return True if the path is too long for a list at this path to be stored."""
        return len(self.text) > _MAX_SIZE or len(self.text.encode(errors="surrogatepass")) > _MAX_SIZE
