"""Records in which members a source of the same dialect sends reasoning, so that it is written in these members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld._json import loads_raw
from streamweld._pure.encode.common.writer import compact_json, quoted
from streamweld._pure.json.kinds import is_array, is_object

if TYPE_CHECKING:
    from streamweld._pure.model.unmodelled import ReasoningFacts

__all__ = ["OwnReasoning", "written_delta"]

_DEFAULT: Final = ("reasoning_content",)  # the member for reasoning if the source has not used one
_LAST: Final = 2**63 - 1


class OwnReasoning:
    """Records the reasoning members of one choice."""

    __slots__ = ("_details", "_fields", "_next_index", "has_details")

    def __init__(self) -> None:
        self._fields: tuple[str, ...] = ()  # members that contain the text
        self._details: str | None = None  # entries of `reasoning_details` that are written with the next text
        self._next_index = 0  # index for the next entry that has no index
        # True if the source sent `reasoning_details`, which contain signatures and encrypted content.
        self.has_details = False

    def record(self, facts: ReasoningFacts) -> str | None:
        """Record the reasoning members of a delta.

        Returns a delta that can be written now, or None if an event with the text follows.
        """
        if facts.fields is not None:
            self._fields = facts.fields
        self._details = None
        if facts.details is not None:
            self.has_details = True
            details = self._indexed(facts.details)
            if not facts.has_text:
                return written_delta((), "", details)
            self._details = details
        return None

    def next(self, text: str) -> str:
        """Return the delta with the next text."""
        details, self._details = self._details, None
        fields = self._fields if self._fields or details is not None else _DEFAULT
        return written_delta(fields, text, details)

    def _indexed(self, entries: str) -> str:
        """Return the entries, each with an index. openai-python raises an exception for an entry without one."""
        listed: object = loads_raw(entries)
        indexed: list[Any] = []
        for entry in listed if is_array(listed) else []:
            if not is_object(entry):
                indexed.append(entry)
                continue
            index = entry.get("index")
            if isinstance(index, int) and not isinstance(index, bool) and 0 <= index <= _LAST:
                indexed.append(entry)
            else:
                index = self._next_index
                indexed.append({name: value for name, value in entry.items() if name != "index"} | {"index": index})
            self._next_index = max(self._next_index, min(index + 1, _LAST))
        return compact_json(indexed)


def written_delta(fields: tuple[str, ...], text: str, details: str | None = None) -> str:
    """Return a delta with the text in each of `fields`, and with the entries of `reasoning_details`."""
    members = [f"{quoted(field)}:{quoted(text)}" for field in fields]
    if details is not None:
        members.append(f'"reasoning_details":{details}')
    return "{" + ",".join(members) + "}"
