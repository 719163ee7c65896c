"""Replaces tool call ids that the target's API would reject in a history.

`streamweld/tool_ids.py` describes the new ids.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from streamweld.events import ToolCall, ToolCallStarted, ToolResult
from streamweld.tool_ids import escaped

if TYPE_CHECKING:
    from streamweld._pure.encode.common.id_mint import IdMint
    from streamweld.events import Event

__all__ = ["ToolIds"]

_WORD: Final = re.compile(r"[A-Za-z0-9_-]*")


class ToolIds:
    """The renamed ids of one stream.

    `word_only`: ids consist of letters, digits, `_` and `-`; `most`: the largest number of characters.
    """

    __slots__ = ("_mint", "_most", "_target_ids", "_word_only")

    def __init__(self, mint: IdMint, word_only: bool, most: int | None) -> None:
        self._mint = mint
        self._word_only = word_only
        self._most = most
        self._target_ids: dict[str, str] = {}  # by source id, of renamed calls only

    def renamed(self) -> list[tuple[str, str]]:
        """Return (target id, source id) of every renamed call, in order."""
        return [(target, source) for source, target in self._target_ids.items()]

    def with_target_id(self, event: Event) -> Event:
        """Return the event, with the target's id of its call."""
        if (
            not isinstance(event, ToolCallStarted | ToolCall | ToolResult)
            or not event.call_id
            or self._fits(event.call_id)
        ):
            return event
        target_id = self._target_ids.get(event.call_id)
        if target_id is None:
            target_id = escaped(event.call_id)
            if not self._fits(target_id):
                target_id = self._mint.new("tc")
            self._target_ids[event.call_id] = target_id
        fields: dict[str, Any] = {name: getattr(event, name) for name in event.__match_args__}
        fields["call_id"] = target_id
        return type(event)(**fields)

    def _fits(self, call_id: str) -> bool:
        fits = self._most is None or len(call_id) <= self._most
        return fits and not (self._word_only and _WORD.fullmatch(call_id) is None)
