"""One call's argument text: appends what keeps it JSON, and repairs, only where a plain append would break it.

The rules A1 to A8. The text is bytes (UTF-8) beside an incremental automaton; nothing is ever scanned again. Every
comparison with the text so far costs at most the size of the fragment at hand, except the canonical form of a finished
value, which is made once. It knows one call's text and nothing of ids, names, indexes or events.

    A1   text + fragment is a prefix of JSON, or JSON            append      (conformant streams: only this)
    A2   the fragment says what the finished text says           keep
    A3   the text is a placeholder, the fragment an object       replace     (not for a header, nor after a second
                                                                              one; {} only out of one fragment)
    A4   the fragment begins with the text                       extend, and expect it from now on
    A4'  every fragment so far began with the one before         replace by the last one     (also at the end)
    A5   the fragment is the one before                          keep
    A5'  every fragment so far came exactly twice                replace by one of each      (also at the end)
    A6   the text begins with the fragment                       hold: a replay or a restart, the next fragments tell
    A7   the text is broken, the fragment is a whole object      replace     (not by {}, which says nothing)
    A8   the text is whole, and none of the above                overflow: the caller decides
         (also of the rest of a fragment in which the text became whole)

While several of these may still come true, only what all of them have in common is `settled`, and may be shown: a text
that may be a placeholder or double-encoded is none of the arguments yet.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from streamweld._pure.assemble.part.canonical_json import canonical
from streamweld._pure.json.automaton import Automaton

__all__ = ["ArgumentText", "Change", "Push"]

_NOTHING = (b"", b"null", b'""')
_PLACEHOLDERS = (b"{}", b"null", b'""', b'"{}"')
_LONGEST_PLACEHOLDER = 16  # with white space around it
_WHITE = b" \t\n\r"


class Change(Enum):
    """What became of a fragment."""

    GREW = "grew"  # the text has more at its end
    REPLACED = "replaced"  # the text is another one
    KEPT = "kept"  # nothing to add
    HELD = "held"  # not decided yet
    OVERFLOW = "overflow"  # it does not belong to a finished text


class Push(NamedTuple):
    change: Change
    code: str | None = None  # the diagnostic of the repair
    spill: bytes = b""  # OVERFLOW: the text that does not belong here


_GREW = Push(Change.GREW)
_HELD = Push(Change.HELD)
_KEPT = Push(Change.KEPT)


class ArgumentText:
    """The text of one call."""

    __slots__ = (
        "_canonical",
        "_count",
        "_cumulative",
        "_cumulative_said",
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
        "shadow",
        "shadow_has_header",
        "shown",
        "taken_back",
    )

    def __init__(self, *, plain: bool = False) -> None:
        self.data: bytearray = bytearray()
        self.automaton: Automaton = Automaton()
        self.plain = plain  # not JSON and never will be: only appended to
        self.overflow = bytearray()  # what came behind a whole value and belongs nowhere
        self.shadow = 0  # length of the beginning of the text that is arriving again
        self.shadow_has_header = False  # it began with a fragment that carried the call's name
        self.shown = 0  # number of bytes of the text that were emitted
        self.taken_back = False  # something else was: the text that was shown gave way to another one
        self._count = 0  # fragments seen
        self._first = 0  # length of the first one
        self._last = 0  # where the last one begins in the text
        self._cumulative = True  # A4': every fragment began with the one before ...
        self._grown = False  # ... and one of them was longer
        self._follows_growth = False  # A4 was seen: a fragment that begins with the text replaces it
        self._cumulative_said = False
        self._doubles = True  # A5': every fragment came twice
        self._doubled: _Single | None = None  # one of each, from the first pair on
        self._follows_doubling = False  # A5' was seen: the second of a pair is dropped
        self._canonical: str | None = None

    @property
    def empty(self) -> bool:
        return not self.data

    @property
    def complete(self) -> bool:
        """One whole JSON value (a number that stands alone never is: more digits may come)."""
        return not self.plain and self.automaton.verdict == "complete"

    @property
    def unfinished(self) -> bool:
        """A prefix of JSON, the empty text included."""
        return not self.plain and self.automaton.verdict == "prefix"

    @property
    def size(self) -> int:
        return len(self.data) + len(self.overflow)

    def text(self) -> str:
        return self.data.decode("utf-8", "replace")

    @property
    def settled(self) -> int:
        """How many bytes of a JSON text hold in every reading that is still possible."""
        size = len(self.data)
        if self.automaton.root != "object" or (size <= _LONGEST_PLACEHOLDER and self.gives_way()):
            return 0
        if self._doubled is not None and self._doubles:
            return self._first
        return self._first if self._cumulative and self._grown and self._last else size

    def is_placeholder(self) -> bool:
        return len(self.data) <= _LONGEST_PLACEHOLDER and bytes(self.data).strip(_WHITE) in _PLACEHOLDERS

    def gives_way(self) -> bool:
        """A placeholder that an object may replace: `{}` is one only where it came whole, in one fragment."""
        if not self.is_placeholder():
            return False
        return self.says_nothing() or self._last == 0

    def says_nothing(self) -> bool:
        """White space, null and "" stand for no arguments."""
        return not self.overflow and bytes(self.data).strip(_WHITE) in _NOTHING

    def is_blank(self) -> bool:
        return len(self.data) == 0 or (self.automaton.root is None and not self.plain and self.unfinished)

    def accepts(self, piece: bytes) -> bool:
        """Whether a plain append keeps it JSON."""
        return not (self.plain or self.overflow or self.shadow) and self.automaton.after(piece).verdict != "broken"

    def repeats(self, piece: bytes) -> bool:
        """A2: a whole fragment that says what the finished text says."""
        if not self.complete:
            return False
        if len(piece) == len(self.data) and self.data.startswith(piece):
            return True
        alone = Automaton()
        if alone.feed(piece) != "complete":
            return False
        return self.canonical() == canonical(piece.decode("utf-8", "replace"))

    def begins_with(self, piece: bytes) -> bool:
        """A6: the finished or unfinished text begins with the fragment, and goes on."""
        return 0 < len(piece) < len(self.data) and self.data.startswith(piece)

    def is_last(self, piece: bytes) -> bool:
        """A5: the fragment is the one before."""
        return len(piece) == len(self.data) - self._last and self.data.endswith(piece)

    def canonical(self) -> str:
        """Of a complete text; made once."""
        if self._canonical is None:
            self._canonical = canonical(self.text())
        return self._canonical

    def push(self, piece: bytes, *, header: bool = False) -> Push:
        """One non-empty fragment. `header`: it came with a name."""
        if self.plain:
            self.data += piece
            return _GREW
        if self.overflow:
            return Push(Change.OVERFLOW, None, piece)
        if self.shadow:
            return self._shadowed(piece)
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

    def begin_shadow(self, piece: bytes) -> None:
        """R1e: a header came again with the beginning of the finished text."""
        self._hold(len(piece), has_header=True)

    def replace(self, data: bytes | bytearray) -> None:
        """Another text, from outside: the close of a call, or a decision about two calls."""
        self._become(bytearray(data))
        self.overflow.clear()
        self.shadow = 0
        self._cumulative = self._doubles = False

    def undo(self, size: int) -> None:
        """A cap was passed: drop what is beyond `size`. The stream is over; only the text counts from here on."""
        del self.overflow[max(0, size - len(self.data)) :]
        del self.data[size:]
        self.shown = min(self.shown, len(self.data))

    def end(self) -> Push:
        """No more fragments: what the hypotheses still say about an unfinished text, and about one that was held."""
        single = self._doubled
        doubled = single is not None and self._count % 2 == 0 and single.pairs > 1 and single.is_object()
        if self.plain or self.complete or self.overflow or not self.data:
            if doubled:
                # As sent it is JSON too: kept, but said.
                return Push(Change.KEPT, "args_doubled")
            if self.shadow:
                self.shadow = 0
                return Push(Change.KEPT, "args_replay_dropped")
            return _KEPT
        if self.automaton.copy().finish() == "complete":
            return _KEPT
        if single is not None and doubled:
            self._become(single.data)
            return Push(Change.REPLACED, "args_doubled")
        if self._cumulative and self._grown and self._last:
            last = self.data[self._last :]
            if _is_object(last):
                self._become(last)
                return Push(Change.REPLACED, None if self._cumulative_said else "args_cumulative")
        if self.shadow:
            self.shadow = 0
            return Push(Change.KEPT, "args_restart")
        return _KEPT

    def _observe(self, piece: bytes) -> None:
        """Keep the two hypotheses up to date. A conformant stream drops both at its second fragment."""
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

    def _grow(self, piece: bytes) -> Push:
        """A4: the fragment is the text so far and more."""
        if len(piece) == len(self.data):
            return _KEPT
        self.automaton.feed(piece[len(self.data) :])
        self.data += piece[len(self.data) :]
        self._last = 0
        self._canonical = None
        self._follows_growth = True
        if self._cumulative_said:
            return _GREW
        self._cumulative_said = True
        return Push(Change.GREW, "args_cumulative")

    def _repair(self, piece: bytes, after: Automaton, *, header: bool) -> Push:
        """A2 to A8: a plain append would break the text."""
        if self.automaton.verdict == "broken":
            return self._broken(piece)
        if self.is_blank():
            head = self._whole_with(after)
            if head:
                return self._split(piece, head)
            # Not JSON from the first byte on: nothing to repair, ever.
            self.data += piece
            self.automaton = after
            self.plain = after.root is None
            return _GREW
        alone = Automaton()
        verdict = alone.feed(piece)
        whole = self.complete
        if whole and verdict == "complete" and self.canonical() == canonical(piece.decode("utf-8", "replace")):
            self._doubles = self._cumulative = False
            return Push(Change.KEPT, "args_replay_dropped")
        starts = verdict != "broken" and alone.root == "object"
        if starts and not header and self.gives_way():
            self._become(bytearray(piece))
            return Push(Change.REPLACED, "args_placeholder_replaced")
        if self._doubled is not None and self._take_singles(self._doubled, piece):
            return Push(Change.REPLACED, "args_doubled")
        if verdict != "broken" and len(piece) > len(self.data) and piece.startswith(self.data):
            return self._grow(piece)
        if starts and self._cumulative and self._grown:
            said, self._cumulative_said = self._cumulative_said, True
            self._become(bytearray(piece))
            self._follows_growth = True
            return Push(Change.REPLACED, None if said else "args_cumulative")
        if self.is_last(piece):
            return Push(Change.KEPT, "args_replay_dropped")
        if self.data.startswith(piece):
            self._hold(len(piece), has_header=False)
            return _HELD
        if whole:
            return Push(Change.OVERFLOW, None, piece)
        if starts and verdict == "complete" and not _is_empty_object(piece):
            self._become(bytearray(piece))
            return Push(Change.REPLACED, "args_restart")
        head = self._whole_with(after)
        if head:
            return self._split(piece, head)
        self._last = len(self.data)
        self.data += piece
        self.automaton = after
        return _GREW

    def _take_singles(self, single: _Single, piece: bytes) -> bool:
        """A5': the text holds every fragment twice, and one of each goes on where it does not."""
        if len(single.data) == len(self.data):
            return False  # the second of the only pair: A5 keeps it out
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
        """How many bytes of the fragment end the object or array, if it broke only behind that."""
        closed = after.depth == 0 and after.reason == "syntax" and after.root in ("object", "array")
        return after.pos - len(self.data) if closed else 0

    def _split(self, piece: bytes, head: int) -> Push:
        """The fragment ends the value and goes on: never is the first of two values just taken."""
        self._last = len(self.data)
        self.automaton.feed(piece[:head])
        self.data += piece[:head]
        self._cumulative = self._doubles = False
        self._doubled = None
        return Push(Change.OVERFLOW, None, piece[head:])

    def _broken(self, piece: bytes) -> Push:
        """A7: only a whole object helps a text that is broken."""
        if _is_object(piece) and not _is_empty_object(piece):
            self._become(bytearray(piece))
            return Push(Change.REPLACED, "args_restart")
        self._last = len(self.data)
        self.data += piece
        return _GREW

    def _hold(self, length: int, *, has_header: bool) -> None:
        self.shadow = length
        self.shadow_has_header = has_header
        self._cumulative = self._doubles = False
        self._doubled = None

    def _shadowed(self, piece: bytes) -> Push:
        """A6: the text so far is arriving a second time."""
        at = self.shadow
        rest = len(self.data) - at
        if len(piece) <= rest and self.data.startswith(piece, at):
            self.shadow = at + len(piece)
            if self.shadow < len(self.data):
                return _HELD
            self.shadow = 0
            self.shadow_has_header = False
            return Push(Change.KEPT, "args_replay_dropped" if self.complete else "args_restart")
        if len(piece) > rest and piece.startswith(self.data[at:]):
            more = piece[rest:]
            if self.automaton.after(more).verdict != "broken":
                self.shadow = 0
                self._last = len(self.data)
                self.data += more
                self.automaton.feed(more)
                return Push(Change.GREW, "args_restart")
        again = self.data[:at] + piece
        if self.complete:
            self.shadow = 0
            return Push(Change.OVERFLOW, None, bytes(again))
        if Automaton().feed(bytes(again)) == "broken":
            # Not even that: all of it, as it came.
            self.shadow = 0
            return self._append_broken(bytes(again))
        self._become(again)
        return Push(Change.REPLACED, "args_restart")

    def _append_broken(self, piece: bytes) -> Push:
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
        self.shadow = 0
        self._last = 0
        self._canonical = None


class _Single:
    """One of each pair of fragments."""

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
