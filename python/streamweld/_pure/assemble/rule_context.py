"""The state that all choices of one stream share: the output, the settings, counters for the limits, and call ids in
use.

The counters enforce the limits on calls, parts, arguments and text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamweld._pure.assemble.part.object_merge import Growth
    from streamweld._pure.assemble.settings import Settings
    from streamweld._pure.model.output import Output

__all__ = ["RuleContext"]

# The memory in bytes that is counted, besides the text, for a value that is stored separately. Such values are
# annotations and members of merged metadata.
_ENTRY_BYTES = 640
# The number of separately stored values for which only the text is counted, so that ordinary metadata fits within a
# small `max_text_bytes`.
_FREE_ENTRIES = 512
# The memory in bytes that is counted for a part besides its text: its state, its copy in a converter, and its closing
# events at the end of the stream.
_PART_BYTES = 2560
# The memory in bytes that is counted for an item, besides its parts.
_ITEM_BYTES = 1024
# The number of parts, and of items, for which only the text is counted.
_FREE_PARTS = 256


class RuleContext:
    """The state that all choices of one stream share."""

    __slots__ = (
        "_argument_bytes",
        "_calls",
        "_choices",
        "_entries",
        "_items",
        "_next_part",
        "_next_suffix",
        "_text_bytes",
        "ids_given",
        "called_at",
        "counted_at",
        "documents",
        "ids_optional",
        "ids_seen",
        "out",
        "settings",
    )

    def __init__(self, settings: Settings, out: Output) -> None:
        self.settings = settings
        self.out = out
        self._next_part = 0
        self._items = 0
        self._choices = 0
        self._calls = 0
        self._argument_bytes = 0
        self._text_bytes = 0
        self._entries = 0  # number of values that are stored separately
        self.ids_seen: set[str] = set()  # the call ids that the stream has contained so far
        self.ids_given: set[str] = set()  # the call ids that final events have reported or that a call has reserved
        self._next_suffix: dict[str, int] = {}
        self.ids_optional = False  # calls may lack an id in this dialect
        self.documents = 0  # number of JSON documents so far; one payload may contain several
        # The payload ordinal and document number of the last call fragment.
        self.called_at: tuple[int, int] = (0, 0)
        # The payload ordinal and document number of the last token counts.
        self.counted_at: tuple[int, int] | None = None

    @property
    def is_counted(self) -> bool:
        """True if token counts arrived in a later document than the last call fragment.

        Such counts show that the response is complete, because gateways count tokens at the end of a response. Counts
        in the same document as a fragment do not show that the response is complete, because some gateways send counts
        in every chunk.
        """
        return self.counted_at is not None and self.counted_at > self.called_at

    @property
    def place(self) -> tuple[int, int]:
        """The ordinal of the current payload, and the number of the current document."""
        return self.out.ordinal, self.documents

    def next_part(self) -> int:
        """Return the number of a new part, and count the memory for it."""
        part = self.number_part()
        if part >= _FREE_PARTS:
            self.spend_text(_PART_BYTES)
        return part

    def number_part(self) -> int:
        """Return the number of a new part, without counting memory for it."""
        part = self._next_part
        limit = self.settings.limits.max_parts
        if limit is not None and part >= limit:
            raise self.out.limit("max_parts", limit)
        self._next_part = part + 1
        return part

    def count_item(self) -> None:
        """Count a new item and the memory for it."""
        limit = self.settings.limits.max_parts
        if limit is not None and self._items >= limit:
            raise self.out.limit("max_parts", limit)
        self._items += 1
        if self._items > _FREE_PARTS:
            self.spend_text(_ITEM_BYTES)

    @property
    def parts(self) -> int:
        """The number of parts created so far."""
        return self._next_part

    def count_choice(self) -> None:
        limit = self.settings.limits.max_choices
        if limit is not None and self._choices >= limit:
            raise self.out.limit("max_choices", limit)
        self._choices += 1

    def count_call(self) -> None:
        limit = self.settings.limits.max_tool_calls
        if limit is not None and self._calls >= limit:
            raise self.out.limit("max_tool_calls", limit)
        self._calls += 1

    def check_piece(self, size: int) -> None:
        """Check that a fragment alone does not exceed `max_arguments_bytes`, before any work is spent on it."""
        limit = self.settings.limits.max_arguments_bytes
        if limit is not None and size > limit:
            raise self.out.limit("max_arguments_bytes", limit)

    def count_arguments(self, before: int, after: int) -> None:
        """Check the limits on arguments after the size of a call's text has changed, and update the total of all
        calls.
        """
        limits = self.settings.limits
        limit = limits.max_arguments_bytes
        if limit is not None and after > limit:
            raise self.out.limit("max_arguments_bytes", limit)
        limit = limits.max_total_arguments_bytes
        if limit is not None and self._argument_bytes + after - before > limit:
            raise self.out.limit("max_total_arguments_bytes", limit)
        self._argument_bytes += after - before

    def spend_text(self, more: int) -> None:
        """Count `more` bytes of text, reasoning, refusal or metadata towards `max_text_bytes`. Called before the bytes
        are stored.
        """
        limit = self.settings.limits.max_text_bytes
        if limit is not None and self._text_bytes + more > limit:
            raise self.out.limit("max_text_bytes", limit)
        self._text_bytes += more

    def spend_growth(self, growth: Growth) -> None:
        """Count a change in the size of stored members towards `max_text_bytes`."""
        self.spend_entries(growth.entries)
        self.spend_text(growth.size)

    def spend_entries(self, more: int) -> None:
        """Count the fixed memory for `more` values that are stored separately. `spend_text` counts the text of these
        values.
        """
        before, after = self._entries, self._entries + more
        self.spend_text((max(0, after - _FREE_ENTRIES) - max(0, before - _FREE_ENTRIES)) * _ENTRY_BYTES)
        self._entries = after

    def check_id(self, identity: str) -> None:
        limit = self.settings.limits.max_id_bytes
        if limit is not None and byte_length(identity) > limit:
            raise self.out.limit("max_id_bytes", limit)

    def check_name(self, name: str) -> None:
        limit = self.settings.limits.max_name_bytes
        if limit is not None and byte_length(name) > limit:
            raise self.out.limit("max_name_bytes", limit)

    def is_taken(self, identity: str) -> bool:
        """Return True if a final event reported this id, a call reserved it, or a call of an earlier turn has it."""
        return identity in self.ids_given or identity in self.settings.known_call_ids

    def is_used(self, identity: str) -> bool:
        """Return True if any call has received or reported this id, in this stream or in an earlier turn."""
        return identity in self.ids_seen or self.is_taken(identity)

    def fresh_id(self, wanted: str, *, minted: bool) -> str:
        """Return `wanted` if this id is free. If it is not, return the first of `wanted__2`, `wanted__3` … that no call
        has used, in this stream or in an earlier turn.

        `minted`: the id is not from the wire, so it is free only if the stream has not contained it.
        """
        if not self.is_taken(wanted) and not (minted and wanted in self.ids_seen):
            return wanted
        number = self._next_suffix.get(wanted, 2)
        while True:
            candidate = f"{wanted}__{number}"
            number += 1
            if not (
                candidate in self.ids_given or candidate in self.ids_seen or candidate in self.settings.known_call_ids
            ):
                self._next_suffix[wanted] = number
                return candidate


def byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
