"""Compare the events of a stream before and after repair, and find the part of each event that differs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Excerpt", "changed_pairs", "compact", "excerpts"]

_STRING_OR_BLANK: Final = re.compile(rb'("(?:[^"\\]|\\.)*+(?:"|\\?\Z))|[ \t]++', re.DOTALL)
_ALIGNED: Final = 4_000  # up to this many events are aligned by content; more events are compared in order
_CONTEXT: Final = 60  # characters shown around a difference


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of an event: the text before the difference, the text that differs, and the text after it."""

    before: str
    changed: str
    after: str


def compact(event: bytes) -> bytes:
    """Remove the spaces and blank lines of an event that are not part of its content."""
    lines: list[bytes] = []
    for line in re.split(rb"\r\n|\r|\n", event):
        name, colon, value = line.partition(b":")
        value = value.strip(b" \t")
        if name.lstrip()[:1] in (b"{", b"["):  # a line of JSON, not a field
            name, colon, value = b"", b"", line.strip(b" \t")
        if value[:1] in (b"{", b"["):
            value = _STRING_OR_BLANK.sub(_kept, value)
        if line:
            lines.append(name + colon + value)
    return b"\n".join(lines)


def _kept(found: re.Match[bytes]) -> bytes:
    return found[1] or b""


def changed_pairs(before: Sequence[bytes], after: Sequence[bytes]) -> Iterator[tuple[int, int | None, int | None]]:
    """Pair the events of two streams, and yield the pairs that differ, in order.

    Args:
        before: the events before the change, as `compact` returns them.
        after: the events after the change.

    Yields:
        The position in `before`, and the numbers of the event in `before` and in `after`. A number is None if the event
        was added or removed.
    """
    for start, end, first, last in _differing(before, after):
        for old, new in zip_longest(range(start, end), range(first, last)):
            yield (end if old is None else old), old, new


def _differing(before: Sequence[bytes], after: Sequence[bytes]) -> Iterator[tuple[int, int, int, int]]:
    """Yield the ranges that differ.

    The equal events at the beginning of both streams, usually most of them, are skipped.
    """
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    end, last = len(before), len(after)
    while end > same and last > same and before[end - 1] == after[last - 1]:
        end, last = end - 1, last - 1
    if max(end, last) - same > _ALIGNED:
        for at in range(same, max(end, last)):
            old, new = min(at, end), min(at, last)
            if before[old : min(at + 1, end)] != after[new : min(at + 1, last)]:
                yield old, min(at + 1, end), new, min(at + 1, last)
        return
    matcher = SequenceMatcher(None, before[same:end], after[same:last], autojunk=True)
    for tag, start, stop, first, until in matcher.get_opcodes():
        if tag != "equal":
            yield start + same, stop + same, first + same, until + same


def excerpts(before: bytes, after: bytes, limit: int) -> tuple[Excerpt, Excerpt]:
    """Return the part in which two events differ, with a little of the text around it.

    Args:
        before: the event before the change, as `compact` returns it.
        after: the event after the change.
        limit: the maximum number of characters that are shown of each difference.
    """
    old, new = before.decode("utf-8", "replace"), after.decode("utf-8", "replace")
    shorter = min(len(old), len(new))
    start = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    end = next((at for at in range(shorter - start) if old[-1 - at] != new[-1 - at]), shorter - start)
    return _excerpt(old, start, end, limit), _excerpt(new, start, end, limit)


def _excerpt(text: str, start: int, end: int, limit: int) -> Excerpt:
    """Return the excerpt of a text whose first `start` and last `end` characters are equal in the other text."""
    stop = len(text) - end
    first, last = max(0, start - _CONTEXT), min(len(text), stop + _CONTEXT)
    changed = text[start:stop]
    if len(changed) > limit:
        changed = f"{changed[:limit]}… ({len(changed) - limit:,} more characters)"
    return Excerpt(
        f"{'…' if first else ''}{text[first:start]}", changed, f"{text[stop:last]}{'…' if end > _CONTEXT else ''}"
    )
