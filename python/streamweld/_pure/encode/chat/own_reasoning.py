"""Records which members contain the reasoning of a source of the same dialect, so that the encoder writes reasoning to
the same members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld._json import loads_raw
from streamweld._pure.encode.chat.list_indexes import ListIndexes
from streamweld._pure.encode.common.writer import compact_json, quoted

if TYPE_CHECKING:
    from streamweld._pure.model.unmodelled import ReasoningFacts

__all__ = ["OwnReasoning", "written_delta"]

_DEFAULT: Final = ("reasoning_content",)  # the member for reasoning if the source has not used one


class OwnReasoning:
    """The reasoning members that the source uses for one choice."""

    __slots__ = ("_details", "_fields", "_lists", "has_details", "is_lossy")

    def __init__(self) -> None:
        self._fields: tuple[str, ...] = ()  # members that contain the text
        self._details: str | None = None  # entries of `reasoning_details` that are written with the next text
        self._lists = ListIndexes()
        self.is_lossy = False  # whether entries of the last `reasoning_details` cannot be written
        # True if the source sent `reasoning_details`, which contain signatures and encrypted content.
        self.has_details = False

    def record(self, facts: ReasoningFacts) -> str | None:
        """Record the reasoning members of a delta.

        Returns a delta with the entries of `reasoning_details` if the source's delta has no text. If the delta has
        text, returns None, and the entries are written together with that text.
        """
        if facts.fields is not None:
            self._fields = facts.fields
        self._details, self.is_lossy = None, False
        if facts.details is not None:
            details = self._indexed(facts.details)
            self.has_details |= details is not None
            if details is not None and not facts.has_text:
                return written_delta((), "", details)
            self._details = details
        return None

    def next(self, text: str) -> str:
        """Return the delta with the next text."""
        details, self._details = self._details, None
        fields = self._fields if self._fields or details is not None else _DEFAULT
        return written_delta(fields, text, details)

    def _indexed(self, entries: str) -> str | None:
        """Return the entries, each with an index, or None if they cannot be written."""
        indexed = self._lists.index("reasoning_details", entries)
        self.is_lossy = indexed.is_lossy
        return None if indexed.json is None else compact_json(loads_raw(indexed.json))


def written_delta(fields: tuple[str, ...], text: str, details: str | None = None) -> str:
    """Return a delta with the text in each of `fields`, and with the entries of `reasoning_details`."""
    members = [f"{quoted(field)}:{quoted(text)}" for field in fields]
    if details is not None:
        members.append(f'"reasoning_details":{details}')
    return "{" + ",".join(members) + "}"
