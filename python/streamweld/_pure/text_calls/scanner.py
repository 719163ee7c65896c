"""The text of one choice to blocks: where a marker stands, its family, where the block ends, and what it calls."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Final

from streamweld._pure.assemble.rule_context import byte_length
from streamweld._pure.text_calls.grammar import Parsing
from streamweld._pure.text_calls.layout import Layout, Place
from streamweld._pure.text_calls.values import BadValue, Tool, arguments_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamweld._pure.text_calls.families import Family, Settings
    from streamweld._pure.text_calls.grammar.call import WrittenCall

__all__ = ["Block", "Scanner"]

_NOT_WHITE: Final = re.compile(r"[^ \t\r\n]")


class _State(Enum):
    TEXT = "text"  # outside of blocks
    BLOCK = "block"  # inside of one
    AFTER = "after"  # only white space since the last one
    REST = "rest"  # text to the end


class Block:
    """A block, from the first character of its marker on. Places are characters of the choice's text."""

    __slots__ = (
        "after_prose",
        "calls",
        "closer",
        "end",
        "family",
        "gap",
        "has_matched",
        "line",
        "marker",
        "parsings",
        "part",
        "part_start",
        "pieces",
        "size",
        "start",
    )

    def __init__(self, start: int, marker: str, families: list[Family], *, after_prose: bool) -> None:
        self.start = start
        self.marker = marker
        self.end = start + len(marker)
        self.after_prose = after_prose
        self.has_matched = False  # a family that does not read it any more had read more than a name
        self.closer = ""  # what may still close it
        self.gap = ""  # the white space before that
        self.line = 0
        self.part = 0
        self.part_start = 0
        self.family = families[0]
        self.parsings: list[tuple[Parsing, int]] = []  # with the number of characters of the marker that it was fed
        for family in families:
            parsing = Parsing(family)
            if family.unread:
                parsing.feed(marker[len(marker) - family.unread :])
            self.parsings.append((parsing, family.unread))
        self.pieces: list[str] = [marker]
        self.size = byte_length(marker)
        self.calls: list[tuple[str, str]] = []  # name, JSON text of the arguments

    @property
    def text(self) -> str:
        """The block as written."""
        return "".join(self.pieces)

    def close_late(self) -> None:
        """The closer, which may be missing, is there."""
        closed = self.gap + self.closer
        self.pieces.append(closed)
        self.end += len(closed)
        self.closer = ""

    @property
    def span(self) -> str:
        """Its place in the text of its part; of a block without an end, that of its marker."""
        return f"{self.start - self.part_start}-{self.end - self.part_start}"


class Scanner:
    """One choice."""

    __slots__ = (
        "_block",
        "_carry",
        "_fresh",
        "_layout",
        "_max_block",
        "_max_calls",
        "_part",
        "_part_start",
        "_refuse",
        "_settings",
        "_state",
        "_tools",
        "_unread",
        "pending",
        "total",
    )

    def __init__(
        self,
        settings: Settings,
        tools: Mapping[str, Tool] | None,
        max_block: int | None,
        max_calls: int | None,
        refuse: Callable[[Block, str], None],
    ) -> None:
        self._settings = settings
        self._tools = tools
        self._max_block = max_block
        self._max_calls = max_calls
        self._refuse = refuse
        self._layout = Layout(settings)
        self._unread: list[str] = []  # text that the layout has not read
        self._state = _State.TEXT
        self._carry = ""  # the end of the text, if it may be the beginning of a marker
        self._fresh = settings.fresh is not settings.markers  # a form without a marker may still begin
        self._block: Block | None = None
        self._part = 0
        self._part_start = 0
        self.pending: list[Block] = []
        self.total = 0  # characters taken

    @property
    def safe(self) -> int:
        """How many characters of the text cannot belong to a block any more."""
        if self.pending:
            return self.pending[0].start
        if self._block is not None:
            return self._block.start
        return self.total - len(self._carry)

    def begin_part(self, part: int) -> None:
        """What follows is text of another part."""
        self._read_layout().begin_part()
        self._part = part
        self._part_start = self.total

    def push(self, text: str) -> None:
        """More text of the part."""
        self.total += len(text)
        plain = self._state is _State.TEXT and not self._carry and not self._fresh
        if plain and self._settings.markers.firsts.search(text) is None:
            self._unread.append(text)
            return
        work, self._carry = self._carry + text, ""
        rest: tuple[str, int] | None = (work, 0)
        while rest is not None:
            rest = self._step(*rest)

    def _step(self, work: str, at: int) -> tuple[str, int] | None:
        """Read on from `at`. Returns where to go on, if there is more to read."""
        if self._block is not None:
            return self._in_block(self._block, work, at)
        if self._state is _State.AFTER:
            return self._after_block(work, at)
        return None if self._state is _State.REST else self._in_text(work, at)

    def end_part(self) -> None:
        """The part ends: what may have been the beginning of a marker is text, a block is cut."""
        if self._block is not None:
            self._give_up(self._block, "cut")
        carry, self._carry = self._carry, ""
        if carry:
            if self._state is _State.AFTER:
                self._follow()
            self._unread.append(carry)

    def turn_off(self) -> None:
        """What comes is text to the end of the choice."""
        self.refuse_pending("text_follows")
        self._state = _State.REST

    def refuse_pending(self, reason: str) -> None:
        """No call comes of the pending blocks."""
        pending, self.pending = self.pending, []
        for block in pending:
            self._refuse(block, reason)

    # Inside

    def _read_layout(self) -> Layout:
        layout = self._layout
        if self._unread:
            layout.feed("".join(self._unread))
            self._unread.clear()
            self._fresh = self._fresh and layout.is_empty
        return layout

    def _in_text(self, work: str, at: int) -> tuple[str, int] | None:
        """Look for a marker. Returns where to go on, if there is more to read."""
        settings, start = self._settings, at
        while True:
            markers = settings.fresh if self._fresh else settings.markers
            found = markers.find.search(work, at)
            held = markers.held(work, at)
            if held < len(work) and (found is None or found.start() >= held):
                self._unread.append(work[start:held])
                start = held
                if self._may_begin(work[held:]):
                    self._carry = work[held:]
                    return None
                if found is None or found.start() > held:
                    at = held + 1
                    continue
            if found is None:
                self._unread.append(work[start:])
                return None
            self._unread.append(work[start : found.start()])
            start = found.start()
            if self._open(found[0], len(work) - start):
                return work, found.end()
            at = found.end() if found[0] in settings.nesting else start + 1

    def _may_begin(self, text: str) -> bool:
        """Whether a marker that begins with the text may stand here, or hides another one."""
        place = self._read_layout().place()
        return any(
            marker in self._settings.nesting or self._allowed(family, place)
            for marker, families in self._settings.by_marker.items()
            if marker.startswith(text)
            for family in families
        )

    def _allowed(self, family: Family, place: Place) -> bool:
        if family.tier == "token":
            return place is not Place.NOWHERE
        return place is Place.START and (family.tier == "tag" or self._layout.is_empty)

    def _open(self, marker: str, left: int) -> bool:
        """Open a block whose marker stands `left` characters before the end of the text, if it may stand there."""
        layout = self._read_layout()
        place = layout.place()
        families = [family for family in self._settings.by_marker[marker] if self._allowed(family, place)]
        if not families:
            return False
        block = Block(self.total - left, marker, families, after_prose=place is Place.AFTER_PROSE)
        block.part, block.part_start, block.line = self._part, self._part_start, layout.line
        self._block, self._state = block, _State.BLOCK
        return True

    def _in_block(self, block: Block, work: str, at: int) -> tuple[str, int] | None:
        chunk = work[at:]
        if not chunk:
            return None
        ended: tuple[int, Parsing] | None = None
        live: list[tuple[Parsing, int]] = []
        before = self.total - len(chunk)
        block_size = block.size + byte_length(chunk)
        for parsing, unread in block.parsings:
            parsing.feed(chunk)
            if parsing.calls is None and not parsing.failed:
                live.append((parsing, unread))
            elif parsing.failed:
                block.has_matched = block.has_matched or parsing.has_matched
            else:
                end = block.start + len(block.marker) - unread + parsing.end
                if ended is None or end < ended[0]:
                    ended = end, parsing
        if ended is not None:
            end, parsing = ended
            used = end - before
            block.pieces.append(chunk[:used])
            block.size += byte_length(chunk[:used])
            self._closed(block, parsing, end)
            return work, at + used
        if live:
            block.pieces.append(chunk)
            block.size, block.parsings = block_size, live
            if self._max_block is not None and block.size > self._max_block:
                self._give_up(block, "limit")
            return None
        if block.after_prose and not block.has_matched:
            # Somebody wrote about the marker.
            self._block, self._state = None, _State.TEXT
            self._unread.append(block.marker)
            return "".join(block.pieces[1:]) + chunk, 0
        self._give_up(block, "malformed")
        return None

    def _give_up(self, block: Block, reason: str) -> None:
        """The block has no end that is known: everything after it is text."""
        self._follow()
        self._block, self._state, self._carry = None, _State.REST, ""
        block.end = block.start + len(block.marker)
        self._refuse(block, reason)

    def _closed(self, block: Block, parsing: Parsing, end: int) -> None:
        """The block is whole."""
        block.family, block.end = parsing.family, end
        block.parsings = []
        self._block, self._fresh = None, False
        if self._max_block is not None and block.size > self._max_block:
            self._give_up(block, "limit")
            return
        reason = self._judge(block, parsing.calls or [])
        calls = sum(len(one.calls) for one in [*self.pending, block])
        if reason is None and self._max_calls is not None and calls > self._max_calls:
            self._give_up(block, "limit")
            return
        if reason is None:
            block.closer = block.family.maybe_close
            self._state = _State.AFTER
            self.pending.append(block)
            self._layout.end_block()
            return
        self._follow()
        self._layout.end_refused()
        self._refuse(block, reason)

    def _judge(self, block: Block, calls: list[WrittenCall]) -> str | None:
        """Why the block is refused, if it is. A block is promoted whole, or not at all."""
        for call in calls:
            tool = None
            if self._tools is not None:
                tool = self._tools.get(call.name)
                if tool is None:
                    return "unknown_name"
                if not tool.is_promoted:
                    return "never"
            try:
                arguments = arguments_text(call, tool)
            except BadValue:
                return "bad_value"
            if block.family.tier == "markerless" and tool is not None and not tool.takes(arguments):
                return "bad_arguments"
            block.calls.append((call.name, arguments))
        return None

    def _after_block(self, work: str, at: int) -> tuple[str, int] | None:
        """White space, its closer, end-of-turn tokens and further blocks may follow a block."""
        settings, block = self._settings, self.pending[-1]
        while True:
            found = _NOT_WHITE.search(work, at)
            end = len(work) if found is None else found.start()
            self._layout.feed(work[at:end])
            block.gap += work[at:end] if block.closer else ""
            at = end
            if found is None:
                return None
            longest = max(settings.markers.longest, settings.trailing.longest, len(block.closer))
            rest = work[at : at + longest]
            is_open = rest in settings.markers.prefixes or rest in settings.trailing.prefixes
            if is_open or (rest != block.closer and block.closer.startswith(rest)):
                self._carry = work[at:]
                return None
            marker = settings.markers.find.match(work, at)
            if marker is not None and self._open(marker[0], len(work) - at):
                return work, marker.end()
            if block.closer and work.startswith(block.closer, at):
                at += len(block.closer)
                block.close_late()
                continue
            block.closer = ""
            token = settings.trailing.find.match(work, at)
            if token is None:
                self._follow()
                return work, at
            at = token.end()

    def _follow(self) -> None:
        """Something that is not a call follows the pending blocks."""
        self._state = _State.TEXT
        if not self.pending:
            return
        if self._settings.after == "end":
            # The answer shows calls; one that follows may be shown as well.
            self.refuse_pending("text_follows")
            self._state = _State.REST
        else:
            line = self._layout.line if self._layout.is_line_open else None
            kept: list[Block] = []
            for block in self.pending:
                if block.after_prose or block.line == line:
                    self._refuse(block, "text_follows")
                else:
                    kept.append(block)
            self.pending = kept
        if self._layout.is_line_open:
            self._layout.end_refused()
