"""Replaces tool call ids that the target's API would reject in a history. The new id encodes the old id.

Some gateways generate ids such as `functions.add:0`. Such an id works in a stream, but a client of another API cannot
send it in its next request: Anthropic allows only letters, digits, `_` and `-`. With `tool_ids="target"`, a converter
writes `swid_functions_2eadd_3a0` instead: `swid_` followed by the old id, with `_` doubled and every UTF-8 byte that is
not a letter, a digit or `-` replaced by `_` and two hexadecimal digits. The old id can be decoded from the new one
without any state, so `history.convert` and `requests.convert` can restore it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from streamweld.events import ToolCall, ToolCallStarted, ToolResult

if TYPE_CHECKING:
    from streamweld._pure.encode.common.id_mint import IdMint
    from streamweld.events import Event

__all__ = ["PREFIX", "ToolIds", "escaped", "source_tool_id"]

PREFIX: Final = "swid_"
_PLAIN: Final = re.compile(rb"[^A-Za-z0-9-]")
_ESCAPE: Final = re.compile(rb"_(_|[0-9a-f]{2})")
_WORD: Final = re.compile(r"[A-Za-z0-9_-]*")


class ToolIds:
    """Stores the renamed ids of one stream.

    `word_only` is True if an id may contain only letters, digits, `_` and `-`. `most` is the maximum number of
    characters, or None if there is no limit.
    """

    __slots__ = ("_mint", "_most", "_target_ids", "_word_only")

    def __init__(self, mint: IdMint, word_only: bool, most: int | None) -> None:
        self._mint = mint
        self._word_only = word_only
        self._most = most
        self._target_ids: dict[str, str] = {}  # keyed by source id; only renamed calls

    def renamed(self) -> list[tuple[str, str]]:
        """Return the target id and the source id of every renamed call, in order."""
        return [(target, source) for source, target in self._target_ids.items()]

    def with_target_id(self, event: Event) -> Event:
        """Return the event with the call id that the target accepts. Other events are returned unchanged."""
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


def escaped(call_id: str) -> str:
    """Return the id in a form that consists only of letters, digits, `_` and `-`."""
    return PREFIX + _PLAIN.sub(_escape, call_id.encode("utf-8", "surrogatepass")).decode()


def source_tool_id(call_id: str) -> str:
    """Return the source's id for a tool call that a converter renamed (`tool_ids="target"`).

    Any other id is returned unchanged.

    If the old id was too long to be escaped, the new id does not contain it, and the old id must be looked up in
    `StreamConverter.tool_ids`.

    >>> source_tool_id("swid_functions_2eadd_3a0")
    'functions.add:0'
    >>> source_tool_id("call_1")
    'call_1'
    """
    if not call_id.startswith(PREFIX):
        return call_id
    try:
        found = _ESCAPE.sub(_unescape, call_id[len(PREFIX) :].encode()).decode()
    except UnicodeError:
        return call_id
    return found if escaped(found) == call_id else call_id


def _escape(found: re.Match[bytes]) -> bytes:
    byte = found.group()
    return b"__" if byte == b"_" else b"_%02x" % byte[0]


def _unescape(found: re.Match[bytes]) -> bytes:
    code = found.group(1)
    return b"_" if code == b"_" else bytes([int(code, 16)])
