"""The argument text of one tool call: appends each fragment that keeps the text valid JSON, and otherwise repairs the
text.

This module implements the rules A1 to A8. The text is stored as UTF-8 bytes and checked with an incremental JSON
automaton, so text is not scanned again after it was appended. Comparing a fragment with the text takes time
proportional to the fragment, except that the canonical form of a complete value is computed once. Other modules handle
ids, names, indexes and events.

    A1   text + fragment is JSON, or the beginning of JSON      append      (conformant streams: only this)
    A2   the fragment repeats the finished text                 keep
    A3   the text is a placeholder, the fragment is an object   replace     (not if it has a header or follows a
                                                                             repeated header; `{}` counts only
                                                                             if it arrived in one fragment)
    A4   the fragment begins with the text so far               extend, and expect the same from later fragments
    A4'  every fragment so far began with the previous one      replace with the last one    (also at the end)
    A5   the fragment equals the previous one                   keep
    A5'  every fragment so far arrived exactly twice            replace with one of each     (also at the end)
    A6   the text begins with the fragment                      hold it back until later fragments decide
    A7   the text is broken, the fragment is a complete object  replace     (not if the fragment is `{}`)
    A8   the text is complete, and none of the above applies    overflow: the caller decides
         (also for the rest of a fragment that completes the text)

Text is settled, and may be emitted, only if it is the same under each rule that may still apply. Text that may be a
placeholder or double-encoded is not settled, because later fragments may replace it.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from streamweld._pure.assemble.part.canonical_json import canonical
from streamweld._pure.json.automaton import Automaton

__all__ = ["ArgumentText", "Change", "PushResult"]

_NOTHING = (b"", b"null", b'""')
_PLACEHOLDERS = (b"{}", b"null", b'""', b'"{}"')
_LONGEST_PLACEHOLDER = 16  # maximum length of a placeholder in bytes, including the whitespace around it
_WHITE = b" \t\n\r"


class Change(Enum):
    """The effect of a fragment on the argument text."""

    GREW = "grew"  # the fragment extended the text
    REPLACED = "replaced"  # the text was replaced
    KEPT = "kept"  # the text is unchanged
    HELD = "held"  # the fragment is held back until later fragments show whether it is a repetition
    OVERFLOW = "overflow"  # the text is complete, so the fragment, or the rest of it, does not belong to it


class PushResult(NamedTuple):
    change: Change
    code: str | None = None  # code of the diagnostic that reports the repair, if any
    spill: bytes = b""  # the part of the fragment that does not belong to the text (OVERFLOW only)


_GREW = PushResult(Change.GREW)
_HELD = PushResult(Change.HELD)
_KEPT = PushResult(Change.KEPT)


class ArgumentText:
    """The argument text of one call."""

    __slots__ = (
        "_canonical",
        "_count",
        "_cumulative",
        "_cumulative_reported",
        "_doubled",
        "_doubles",
        "_first",
        "_follows_doubling",
        "_follows_growth",
        "_grown",
        "_last",
        "automaton",
        "data",
        "overflow",
        "plain",
        "replayed",
        "replay_has_header",
        "shown",
        "taken_back",
    )

    def __init__(self, *, plain: bool = False) -> None:
        self.data: bytearray = bytearray()
        self.automaton: Automaton = Automaton()
        self.plain = plain  # the text is free-form or can no longer become JSON, so fragments are only appended
        self.overflow = bytearray()  # text that arrived after a complete value and belongs to no other call
        self.replayed = 0  # number of bytes at the start of the text that have arrived again and are held back (A6)
        self.replay_has_header = False  # the first fragment of the repetition contained the call's name
        self.shown = 0  # number of bytes of the text that have been emitted
        self.taken_back = False  # the text no longer begins with the emitted text, so a reset event must be emitted
        self._count = 0  # number of fragments received
        self._first = 0  # length of the first fragment
        self._last = 0  # byte offset in the text at which the last fragment begins
        self._cumulative = True  # A4': every fragment so far began with the previous one
        self._grown = False  # A4': at least one fragment was longer than the previous one
        self._follows_growth = False  # A4 applied; from now on, a fragment that begins with the text replaces it
        self._cumulative_reported = False
        self._doubles = True  # A5': every fragment so far arrived twice
        self._doubled: _Single | None = None  # text of one fragment of each pair, after the first pair
        self._follows_doubling = False  # A5' applied; from now on, the second fragment of each pair is dropped
        self._canonical: str | None = None

    @property
    def empty(self) -> bool:
        return not self.data

    @property
    def complete(self) -> bool:
        """True if the text is one complete JSON value.

        A bare number is never complete, because more digits may follow.
        """
        return not self.plain and self.automaton.verdict == "complete"

    @property
    def unfinished(self) -> bool:
        """True if the text is empty or the incomplete beginning of a JSON value."""
        return not self.plain and self.automaton.verdict == "prefix"

    @property
    def size(self) -> int:
        return len(self.data) + len(self.overflow)

    def text(self) -> str:
        return self.data.decode("utf-8", "replace")

    @property
    def settled(self) -> int:
        """How many bytes at the beginning of the text can no longer be changed by any rule."""
        size = len(self.data)
        if self.automaton.root != "object" or (size <= _LONGEST_PLACEHOLDER and self.gives_way()):
            return 0
        if self._doubled is not None and self._doubles:
            return self._first
        return self._first if self._cumulative and self._grown and self._last else size

    def is_placeholder(self) -> bool:
        return len(self.data) <= _LONGEST_PLACEHOLDER and bytes(self.data).strip(_WHITE) in _PLACEHOLDERS

    def gives_way(self) -> bool:
        """Return True if the text is a placeholder that an object may replace (A3). `{}` is a placeholder only if it
        arrived in a single fragment.
        """
        if not self.is_placeholder():
            return False
        return self.has_no_arguments() or self._last == 0

    def has_no_arguments(self) -> bool:
        """Return True for whitespace, null or "", which some gateways send for a call without arguments."""
        return not self.overflow and bytes(self.data).strip(_WHITE) in _NOTHING

    def is_blank(self) -> bool:
        return len(self.data) == 0 or (self.automaton.root is None and not self.plain and self.unfinished)

    def accepts(self, piece: bytes) -> bool:
        """Return True if no rule other than A1 is in progress, and the text followed by the piece is JSON or the
        beginning of JSON.
        """
        return not (self.plain or self.overflow or self.replayed) and self.automaton.after(piece).verdict != "broken"

    def repeats(self, piece: bytes) -> bool:
        """Return True if the text and the piece are complete JSON values with the same canonical form (A2)."""
        if not self.complete:
            return False
        if len(piece) == len(self.data) and self.data.startswith(piece):
            return True
        alone = Automaton()
        if alone.feed(piece) != "complete":
            return False
        return self.canonical() == canonical(piece.decode("utf-8", "replace"))

    def begins_with(self, piece: bytes) -> bool:
        """Return True if the text is longer than the fragment and begins with it (A6)."""
        return 0 < len(piece) < len(self.data) and self.data.startswith(piece)

    def is_last(self, piece: bytes) -> bool:
        """Return True if the fragment equals the previous one (A5)."""
        return len(piece) == len(self.data) - self._last and self.data.endswith(piece)

    def canonical(self) -> str:
        """Return the canonical form of the text, which must be a complete JSON value. The canonical form is computed
        only once.
        """
        if self._canonical is None:
            self._canonical = canonical(self.text())
        return self._canonical

    def push(self, piece: bytes, *, header: bool = False) -> PushResult:
        """Apply one non-empty fragment to the text and return its effect. `header`: the fragment has a name."""
        if self.plain:
            self.data += piece
            return _GREW
        if self.overflow:
            return PushResult(Change.OVERFLOW, None, piece)
        if self.replayed:
            return self._continue_replay(piece)
        if self._follows_doubling and self._count % 2 == 1:
            if self.is_last(piece):
                self._count += 1
                return _KEPT
            self._follows_doubling = False
        self._observe(piece)
        if self._follows_growth and len(piece) >= len(self.data) and piece.startswith(self.data):
            return self._grow(piece)
        after = self.automaton.after(piece)
        if after.verdict != "broken":
            self._last = len(self.data)
            self._first = self._first or len(piece)
            self.data += piece
            self.automaton = after
            return _GREW
        return self._repair(piece, after, header=header)

    def append(self, piece: bytes) -> None:
        """Append text that continues the arguments (`accepts`) and that no rule may change."""
        self.automaton.feed(piece)
        self.data += piece
        self._cumulative = self._doubles = False
        self._doubled = None
        self._canonical = None

    def begin_replay(self, piece: bytes) -> None:
        """Start to hold back text from a fragment that repeats the call's name, because the text begins like the call's
        complete arguments (R1e).
        """
        self._hold(len(piece), has_header=True)

    def replace(self, data: bytes | bytearray) -> None:
        """Replace the text with a value that the rules must not change, such as the arguments in a closing event."""
        self._become(bytearray(data))
        self.overflow.clear()
        self.replayed = 0
        self._cumulative = self._doubles = False

    def undo(self, size: int) -> None:
        """Remove the bytes beyond `size`, because a limit was exceeded.

        Other fields are not updated, because the stream has ended.
        """
        del self.overflow[max(0, size - len(self.data)) :]
        del self.data[size:]
        self.shown = min(self.shown, len(self.data))

    def end(self) -> PushResult:
        """End the text, because no more fragments follow. Apply A4' and A5' to text that is not complete JSON, and drop
        a repetition that was held back.
        """
        single = self._doubled
        doubled = single is not None and self._count % 2 == 0 and single.pairs > 1 and single.is_object()
        if self.plain or self.complete or self.overflow or not self.data:
            if doubled:
                # Every fragment arrived twice, but the text as received is valid JSON. Keep the text and report the
                # doubling.
                return PushResult(Change.KEPT, "args_doubled")
            return self.drop_replay()
        if self.automaton.copy().finish() == "complete":
            return _KEPT
        if single is not None and doubled:
            self._become(single.data)
            return PushResult(Change.REPLACED, "args_doubled")
        if self._cumulative and self._grown and self._last:
            last = self.data[self._last :]
            if _is_object(last):
                self._become(last)
                return PushResult(Change.REPLACED, None if self._cumulative_reported else "args_cumulative")
        return self.drop_replay()

    def drop_replay(self) -> PushResult:
        """Drop an incomplete repetition that was held back (A6)."""
        if not self.replayed:
            return _KEPT
        self.replayed = 0
        return PushResult(Change.KEPT, "args_replay_dropped" if self.complete else "args_restart")

    def _observe(self, piece: bytes) -> None:
        """Check whether A4' and A5' are still possible after this fragment. In a conformant stream, the second fragment
        rules out both.
        """
        if self._count:
            if self._cumulative:
                before = len(self.data) - self._last
                if len(piece) < before or not piece.startswith(self.data[self._last :]):
                    self._cumulative = False
                elif len(piece) > before:
                    self._grown = True
            if self._doubles and self._count % 2 == 1:
                if self.is_last(piece):
                    if self._doubled is None:
                        self._doubled = _Single()
                    self._doubled.add(piece)
                else:
                    self._doubles = False
                    self._doubled = None
        self._count += 1

    def _grow(self, piece: bytes) -> PushResult:
        """Extend the text with a fragment that begins with the text so far (A4)."""
        if len(piece) == len(self.data):
            return _KEPT
        self.automaton.feed(piece[len(self.data) :])
        self.data += piece[len(self.data) :]
        self._last = 0
        self._canonical = None
        self._follows_growth = True
        if self._cumulative_reported:
            return _GREW
        self._cumulative_reported = True
        return PushResult(Change.GREW, "args_cumulative")

    def _repair(self, piece: bytes, after: Automaton, *, header: bool) -> PushResult:
        """Apply the first of the rules A2 to A8 that matches a fragment. Called if appending the fragment would make
        the text invalid JSON.
        """
        if self.automaton.verdict == "broken":
            return self._broken(piece)
        if self.is_blank():
            head = self._whole_with(after)
            if head:
                return self._split(piece, head)
            # Even the first byte of the text is not valid JSON, so no rule can repair the text.
            self.data += piece
            self.automaton = after
            self.plain = after.root is None
            return _GREW
        alone = Automaton()
        verdict = alone.feed(piece)
        whole = self.complete
        if whole and verdict == "complete" and self.canonical() == canonical(piece.decode("utf-8", "replace")):
            self._doubles = self._cumulative = False
            return PushResult(Change.KEPT, "args_replay_dropped")
        starts = verdict != "broken" and alone.root == "object"
        if starts and not header and self.gives_way():
            self._become(bytearray(piece))
            return PushResult(Change.REPLACED, "args_placeholder_replaced")
        if self._doubled is not None and self._take_singles(self._doubled, piece):
            return PushResult(Change.REPLACED, "args_doubled")
        if verdict != "broken" and len(piece) > len(self.data) and piece.startswith(self.data):
            return self._grow(piece)
        if starts and self._cumulative and self._grown:
            reported, self._cumulative_reported = self._cumulative_reported, True
            self._become(bytearray(piece))
            self._follows_growth = True
            return PushResult(Change.REPLACED, None if reported else "args_cumulative")
        if self.is_last(piece):
            return PushResult(Change.KEPT, "args_replay_dropped")
        if self.data.startswith(piece):
            self._hold(len(piece), has_header=False)
            return _HELD
        if whole:
            return PushResult(Change.OVERFLOW, None, piece)
        if starts and verdict == "complete" and not _is_empty_object(piece):
            self._become(bytearray(piece))
            return PushResult(Change.REPLACED, "args_restart")
        head = self._whole_with(after)
        if head:
            return self._split(piece, head)
        self._last = len(self.data)
        self.data += piece
        self.automaton = after
        return _GREW

    def _take_singles(self, single: _Single, piece: bytes) -> bool:
        """A5': replace the text with one fragment of each pair if the piece can continue that text, and return True.
        Called when the piece would make the whole text invalid JSON.
        """
        if len(single.data) == len(self.data):
            return False  # the piece repeats the only pair's fragment; A5 drops it
        second = self._count % 2 == 0
        if (single.automaton if second else single.automaton.after(piece)).verdict == "broken":
            return False
        self._become(single.data if second else single.data + piece)
        self._last = len(self.data) - len(piece)
        self._doubles = False
        self._doubled = None
        self._follows_doubling = True
        return True

    def _whole_with(self, after: Automaton) -> int:
        """Return how many bytes of the fragment complete the object or array, if only the bytes after them make the
        text invalid. Otherwise, return 0. `after`: the state of the automaton after the whole fragment.
        """
        closed = after.depth == 0 and after.reason == "syntax" and after.root in ("object", "array")
        return after.pos - len(self.data) if closed else 0

    def _split(self, piece: bytes, head: int) -> PushResult:
        """Complete the value with the first `head` bytes of the fragment and return the rest as overflow.

        A4' and A5' are turned off, so that they cannot replace the complete value.
        """
        self._last = len(self.data)
        self.automaton.feed(piece[:head])
        self.data += piece[:head]
        self._cumulative = self._doubles = False
        self._doubled = None
        return PushResult(Change.OVERFLOW, None, piece[head:])

    def _broken(self, piece: bytes) -> PushResult:
        """Handle a fragment after the text has become invalid JSON (A7). A complete, non-empty object replaces the
        text; any other fragment is appended.
        """
        if _is_object(piece) and not _is_empty_object(piece):
            self._become(bytearray(piece))
            return PushResult(Change.REPLACED, "args_restart")
        self._last = len(self.data)
        self.data += piece
        return _GREW

    def _hold(self, length: int, *, has_header: bool) -> None:
        self.replayed = length
        self.replay_has_header = has_header
        self._cumulative = self._doubles = False
        self._doubled = None

    def _continue_replay(self, piece: bytes) -> PushResult:
        """Handle a fragment while the beginning of the text is being repeated (A6): compare it with the rest of the
        text.
        """
        at = self.replayed
        rest = len(self.data) - at
        if len(piece) <= rest and self.data.startswith(piece, at):
            self.replayed = at + len(piece)
            if self.replayed < len(self.data):
                return _HELD
            self.replayed = 0
            self.replay_has_header = False
            return PushResult(Change.KEPT, "args_replay_dropped" if self.complete else "args_restart")
        if len(piece) > rest and piece.startswith(self.data[at:]):
            more = piece[rest:]
            if self.automaton.after(more).verdict != "broken":
                self.replayed = 0
                self._last = len(self.data)
                self.data += more
                self.automaton.feed(more)
                return PushResult(Change.GREW, "args_restart")
        again = self.data[:at] + piece
        if self.complete:
            self.replayed = 0
            return PushResult(Change.OVERFLOW, None, bytes(again))
        if Automaton().feed(bytes(again)) == "broken":
            # The held-back text neither repeats the text nor is valid JSON on its own, so append it as received.
            self.replayed = 0
            return self._append_broken(bytes(again))
        self._become(again)
        return PushResult(Change.REPLACED, "args_restart")

    def _append_broken(self, piece: bytes) -> PushResult:
        self.automaton.feed(piece)
        self._last = len(self.data)
        self.data += piece
        return _GREW

    def _become(self, data: bytearray) -> None:
        if not data.startswith(self.data[: self.shown]):
            self.shown = 0
            self.taken_back = True
        self.data = data
        self.automaton = Automaton()
        self.automaton.feed(bytes(data))
        self.replayed = 0
        self._last = 0
        self._canonical = None


class _Single:
    """The text that consists of one fragment of each pair."""

    __slots__ = ("automaton", "data", "pairs")

    def __init__(self) -> None:
        self.data = bytearray()
        self.automaton = Automaton()
        self.pairs = 0

    def add(self, piece: bytes) -> None:
        self.data += piece
        self.automaton.feed(piece)
        self.pairs += 1

    def is_object(self) -> bool:
        return self.automaton.root == "object" and self.automaton.verdict == "complete"


def _is_object(piece: bytes | bytearray) -> bool:
    if not piece.lstrip(_WHITE).startswith(b"{"):
        return False
    alone = Automaton()
    return alone.feed(bytes(piece)) == "complete"


def _is_empty_object(piece: bytes) -> bool:
    inside = piece.strip(_WHITE)
    return inside.startswith(b"{") and inside[1:].lstrip(_WHITE) == b"}"
