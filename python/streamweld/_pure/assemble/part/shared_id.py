"""Determines whether a call id that is announced at several indexes (AM3) belongs to one call or to several.

The text of each index is collected in addition to the call's joined text. The id belongs to several calls if the joined
text is not valid JSON but the text of each index is. The id belongs to one call if the text of any index cannot be
JSON.
"""

from __future__ import annotations

from streamweld._pure.json.automaton import Automaton

__all__ = ["SharedId"]


class _IndexText:
    """The text received at one index."""

    __slots__ = ("automaton", "data")

    def __init__(self) -> None:
        self.data = bytearray()
        self.automaton = Automaton()


class SharedId:
    """The text of each index at which the id was announced, in order of announcement."""

    __slots__ = ("_filled", "_index_texts", "_whole", "closed")

    def __init__(self, index: int, text: bytes | bytearray) -> None:
        self._index_texts: dict[int, _IndexText] = {}
        self._filled = 0  # number of indexes with text
        self._whole = 0  # number of indexes whose text is a complete object
        self.closed = False  # one call got all text; from then on, text is not collected by index
        self.announce(index)
        self.add(index, bytes(text))

    def announce(self, index: int) -> None:
        self._index_texts.setdefault(index, _IndexText())

    def add(self, index: int | None, piece: bytes) -> None:
        if self.closed or not piece:
            return
        if index is None:
            self.close()
            return
        index_text = self._index_texts.setdefault(index, _IndexText())
        self._filled += not index_text.data
        self._whole -= index_text.automaton.verdict == "complete"
        index_text.data += piece
        verdict = index_text.automaton.feed(piece)
        self._whole += verdict == "complete"
        if verdict == "broken" or index_text.automaton.root not in ("object", None):
            self.close()

    def close(self) -> None:
        self.closed = True
        self._index_texts.clear()

    def divides(self) -> bool:
        """Return True if at least two indexes received text, and the text of each index is JSON or the beginning of
        JSON.
        """
        return not self.closed and self._filled > 1

    def divides_whole(self) -> bool:
        """Return True if at least two indexes received text, and the text of each of them is a complete object."""
        return self.divides() and self._whole == self._filled

    def divides_in_part(self) -> bool:
        """Return True if `divides` returns True, and the text of at least one index is a complete object."""
        return self.divides() and self._whole > 0

    def texts(self) -> list[tuple[int, bytes]]:
        return [(index, bytes(index_text.data)) for index, index_text in self._index_texts.items()]
