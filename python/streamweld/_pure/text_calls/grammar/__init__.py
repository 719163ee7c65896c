"""Parses the calls in a block. Each form in which calls are written (`shape`) has a parser.

A parser returns the calls with their arguments as written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld._pure.text_calls.cursor import Cursor, Malformed
from streamweld._pure.text_calls.grammar import braces, harmony, json_block, key_value, named_json, python_calls, xml

if TYPE_CHECKING:
    from streamweld._pure.text_calls.cursor import Steps
    from streamweld._pure.text_calls.families import Family
    from streamweld._pure.text_calls.grammar.call import WrittenCall

__all__ = ["Parsing"]

_SHAPES: Final = {
    "json": json_block.parse,
    "xml": xml.parse,
    "key_value": key_value.parse,
    "named_json": named_json.parse,
    "python": python_calls.parse,
    "braces": braces.parse,
    "harmony": harmony.parse,
}


class Parsing:
    """Parser of one block for one family."""

    __slots__ = ("_cursor", "_steps", "calls", "end", "failed", "family")

    def __init__(self, family: Family) -> None:
        self.family = family
        self._cursor = Cursor()
        self._steps: Steps[list[WrittenCall]] = _SHAPES[family.shape](self._cursor, family.data)
        self.calls: list[WrittenCall] | None = None
        self.end = 0  # end of the block, as a number of characters fed
        self.failed = False

    @property
    def has_matched(self) -> bool:
        """True if more than whitespace and a name matched after the marker, or if an object or a list begins there.

        In a family without a marker, the bracket itself opens the block. The block counts only if its contents begin
        like a call.
        """
        is_bare = self.family.tier == "markerless"
        return self._cursor.matched or (self._cursor.sees_bracket and not is_bare)

    def feed(self, text: str) -> None:
        self._cursor.feed(text)
        try:
            next(self._steps)
        except Malformed:
            self.failed = True
        except StopIteration as done:
            self.calls = done.value
            self.end = self._cursor.offset
