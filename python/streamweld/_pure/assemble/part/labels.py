"""Stores the sub-indexes ("labels") of the deltas of one text part, and the closing text of each label.

Some gateways number every delta; others use the numbers for parts that no event announced. The deltas are read as one
part in both cases, because only a closing event or the content list of the item shows which case it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Labels"]

_MAX_RUNS = 64  # maximum number of runs (consecutive deltas with the same label); with more, labels are ignored


class Labels:
    """The labels of the deltas of one part."""

    __slots__ = ("_aliases", "_closes", "_runs", "state")

    def __init__(self) -> None:
        self.state: Literal["one", "several", "too_many"] = "one"
        self._runs: list[tuple[int | None, int]] = []  # label of each run, and its start offset in the part's text
        self._closes: dict[int | None, str] = {}  # the closing text of each label, in order of arrival
        self._aliases: dict[int | None, int | None] = {}  # unknown label of a closing event -> known label

    def change(self, before: int | None, label: int | None, length: int) -> None:
        """Record that the label changes from `before` to `label` after `length` characters of the part's text."""
        if self.state == "one" and length > 0:
            self.state = "several"
            self._runs = [(before, 0), (label, length)]
        elif self.state == "several" and len(self._runs) < _MAX_RUNS:
            self._runs.append((label, length))
        elif self.state == "several":
            self.state = "too_many"
            self._runs, self._closes, self._aliases = [], {}, {}

    def has(self, label: int | None) -> bool:
        return label in self._aliases or any(known == label for known, _ in self._runs)

    def is_closed(self, label: int | None) -> bool:
        return self._aliases.get(label, label) in self._closes

    def closing_text(self, label: int | None) -> str | None:
        return self._closes.get(self._aliases.get(label, label))

    def is_own_text(self, label: int | None, text: str, value: str) -> bool:
        """Return True if `value` equals the closing text of the label or, if the label has no closing text, the text of
        the label's deltas. `text`: the text of the part.
        """
        label = self._aliases.get(label, label)
        if label in self._closes:
            return self._closes[label] == value
        return self.has(label) and self._streamed(label, text) == value

    def note_close(self, label: int | None, text: str, value: str) -> bool:
        """Store the closing text of a label. Return False and store nothing if no run has this label or this text.

        If no delta had this label, the closing text is stored for the first label that has the same text and no closing
        text yet.
        """
        if not self.has(label):
            open_labels = dict.fromkeys(known for known, _ in self._runs if known not in self._closes)
            same = next((known for known in open_labels if self.is_own_text(known, text, value)), label)
            if same == label:
                return False
            self._aliases[label] = same
        self._closes[self._aliases.get(label, label)] = value
        return True

    @property
    def has_closes(self) -> bool:
        return bool(self._closes)

    def closed_text(self, text: str) -> str | None:
        """Return the text of the part, in which closing texts replace the deltas with the same label.

        Return None if no closing text arrived. If only one closing text arrived, and the deltas with its label have
        another text, the closing text is the text of the whole part.
        """
        closes = self._closes
        if not closes:
            return None
        if len(closes) == 1:
            label, value = next(iter(closes.items()))
            if self._streamed(label, text) != value:
                return value
        pieces: list[str] = []
        written: set[int | None] = set()
        for label, piece in self._pieces(text):
            if label not in closes:
                pieces.append(piece)
            elif label not in written:
                written.add(label)
                pieces.append(closes[label])
        return "".join(pieces)

    def replaced(self, length: int) -> None:
        """Empty all runs, because the part's text was replaced. `length` is the length of the new text.

        The new text belongs to no label.
        """
        self._runs = [(label, length) for label, _ in self._runs]

    def _streamed(self, label: int | None, text: str) -> str:
        return "".join([piece for known, piece in self._pieces(text) if known == label])

    def _pieces(self, text: str) -> Iterator[tuple[int | None, str]]:
        starts = [start for _, start in self._runs]
        for (label, start), end in zip(self._runs, [*starts[1:], len(text)], strict=True):
            yield label, text[start:end]
