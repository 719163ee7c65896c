"""Splits text with inline `<think>` tags into reasoning and visible text as it arrives.

The module is used only if `inline_reasoning` is set. A tag may be split across deltas. A `</think>` before any other
tag is an orphan. In this case, the prompt template contained the opening tag, so all text before the orphan is
reasoning. A block is dropped if it repeats the text of a separate reasoning field. Whitespace at both ends is ignored
in this comparison.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

from streamweld._pure.json.scanner import between_halves, has_lone_surrogate, replace_lone_surrogates, split_halves

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamweld._pure.assemble import Assembler

__all__ = ["Carrier", "ThinkSplitter", "split_whole"]


class Carrier(Protocol):
    """Supplies the metadata for the first event of a delta."""

    def take(self) -> str | None: ...


class _Nothing:
    def take(self) -> str | None:
        return None


NOTHING = _Nothing()
OPEN = "<think>"
CLOSE = "</think>"


def _held_length(text: str, at: int) -> int:
    """Return the number of characters at the end of `text`, from `at` on, that may be the beginning of a tag."""
    # Both tags contain a single "<", so only the last "<" can begin an incomplete tag.
    start = text.rfind("<", max(at, len(text) - len(CLOSE) + 1))
    if start < 0:
        return 0
    end = text[start:]
    return len(end) if OPEN.startswith(end) or CLOSE.startswith(end) else 0


class ThinkSplitter:
    """Splits the text of one choice.

    Emits every character outside tags exactly once, except the characters of a block that repeats a separate reasoning
    field.
    """

    __slots__ = ("_assembler", "_choice", "_diagnose", "_held", "_inside", "_seen_tag", "_twin")

    def __init__(self, choice: int, assembler: Assembler, diagnose: Callable[[str], None]) -> None:
        self._choice = choice
        self._assembler = assembler
        self._diagnose = diagnose
        self._held = ""
        self._inside = False
        self._seen_tag = False
        self._twin = _DuplicateReasoning()

    def field(self, text: str) -> None:
        """Record the text of a separate reasoning field. A block that repeats this text is dropped."""
        self._twin.expect(replace_lone_surrogates(between_halves(text)))

    def feed(self, text: str, carry: Carrier) -> None:
        """Split one piece of text. If the piece begins or ends with half of a surrogate pair, the half is emitted with
        the adjacent text.
        """
        low, text, high = split_halves(text)
        lone = has_lone_surrogate(text)
        if lone:
            text = replace_lone_surrogates(text)
        if self._held:
            if low:  # a low surrogate after held-back text cannot be completed
                text, low, lone = "\ufffd" + text, "", True
            text = self._held + text
            self._held = ""
        if lone:
            self._diagnose("lone_surrogate")
        at = 0
        while at < len(text) or low or high:
            tag, position = self._next_tag(text, at)
            if tag is None:
                # Hold back text that may be the beginning of a tag, unless half of a surrogate pair follows it.
                end = len(text) - (0 if high else _held_length(text, at))
                self._held = text[end:]
                self._emit_text(low + text[at:end] + high, carry)
                return
            before, low = low + text[at:position], ""
            at = position + len(tag)
            if tag is CLOSE and not self._inside:
                self._orphan(before, carry)
            else:
                self._emit_text(before, carry)
                if tag is CLOSE and self._twin.close():
                    self._diagnose("reasoning_repeated")
                self._inside = tag is OPEN
            self._seen_tag = True

    def flush(self) -> None:
        """Emit the held-back text.

        Other output of the choice follows, so the text cannot be the beginning of a tag.
        """
        held, self._held = self._held, ""
        self._emit_text(held, NOTHING)

    def end(self) -> None:
        """End the choice and emit the held-back text.

        An unclosed block that only repeats a reasoning field is dropped like a closed block.
        """
        self.flush()
        if self._inside and self._twin.close():
            self._diagnose("reasoning_repeated")

    def _next_tag(self, text: str, at: int) -> tuple[str | None, int]:
        if self._inside:
            closing = text.find(CLOSE, at)
            return (CLOSE, closing) if closing >= 0 else (None, -1)
        opening = text.find(OPEN, at)
        if not self._seen_tag:
            # Only a closing tag before any other tag is an orphan. Later closing tags are part of the visible text.
            closing = text.find(CLOSE, at)
            if closing >= 0 and (opening < 0 or closing < opening):
                return CLOSE, closing
        return (OPEN, opening) if opening >= 0 else (None, -1)

    def _emit_text(self, text: str, carry: Carrier) -> None:
        if not text:
            return
        if self._inside:
            text = self._twin.novel(text)
            if text:
                self._assembler.reasoning(self._choice, "raw", text, carry.take())
        else:
            self._assembler.text(self._choice, text, carry.take())

    def _orphan(self, before: str, carry: Carrier) -> None:
        self._emit_text(before, carry)
        self._assembler.retype_text(self._choice)
        self._diagnose("orphan_think_close")


def split_whole(text: str) -> tuple[str, str]:
    """Split a complete text. Return its reasoning and its visible text."""
    reasoning: list[str] = []
    rest: list[str] = []
    at = 0
    opening, closing = text.find(OPEN), text.find(CLOSE)
    if closing >= 0 and (opening < 0 or closing < opening):
        reasoning.append(text[:closing])
        at = closing + len(CLOSE)
    while True:
        opening = text.find(OPEN, at)
        if opening < 0:
            rest.append(text[at:])
            return "".join(reasoning), "".join(rest)
        rest.append(text[at:opening])
        start = opening + len(OPEN)
        closing = text.find(CLOSE, start)
        end = closing if closing >= 0 else len(text)
        reasoning.append(text[start:end])
        at = end + len(CLOSE)


class _DuplicateReasoning:
    """Compares the text of a `<think>` block with the text of a separate reasoning field. Whitespace at both ends is
    ignored.

    The comparison takes linear time, because each character of either text is examined once. The block is held back
    while it matches the field. At the first difference, the complete held-back text is released.
    """

    __slots__ = ("_expected", "_held", "_matched", "_offset", "_parted")

    def __init__(self) -> None:
        self._expected: deque[str] = deque()  # text of the field that no block has repeated yet
        self._offset = 0  # number of characters in the first expected text that have already been repeated
        self._held: list[str] = []  # held-back text of the block, which equals the beginning of the field
        self._matched = False  # the block has repeated more than whitespace
        self._parted = False  # this block differs from the field

    def expect(self, text: str) -> None:
        self._expected.append(text)

    def novel(self, text: str) -> str:
        """Return the text of the block that can be emitted now, which is empty while the block repeats the field."""
        if self._parted:
            return text
        # Text that begins or ends with half of a surrogate pair cannot be compared, because the other half may be in
        # the adjacent text.
        if between_halves(text) == text and self._repeats(replace_lone_surrogates(text)):
            self._held.append(text)
            return ""
        self._parted = True
        held = "".join(self._held)
        self._held.clear()
        return held + text

    def close(self) -> bool:
        """End the block. Return True if the block is dropped because it repeats earlier reasoning."""
        dropped = bool(self._held) and self._matched
        self._held.clear()
        self._matched = False
        self._parted = False
        return dropped

    def _repeats(self, text: str) -> bool:
        at = 0
        if not self._matched:
            at = len(text) - len(text.lstrip())
            self._skip_white()
        while at < len(text):
            if not self._expected:
                # Only whitespace may follow the repeated text. If other text follows, the block differs from the field.
                return not text[at:].strip() and self._matched
            first = self._expected[0]
            size = min(len(text) - at, len(first) - self._offset)
            if first[self._offset : self._offset + size] != text[at : at + size]:
                return False
            self._matched = True
            at += size
            self._offset += size
            if self._offset == len(first):
                self._expected.popleft()
                self._offset = 0
        return bool(self._expected) or self._matched

    def _skip_white(self) -> None:
        while self._expected:
            first = self._expected[0]
            while self._offset < len(first):
                if not first[self._offset].isspace():
                    return
                self._offset += 1
            self._expected.popleft()
            self._offset = 0
