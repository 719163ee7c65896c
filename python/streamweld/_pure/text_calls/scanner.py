"""Finds blocks in the text of one choice: their markers, their ends, and their calls."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from streamweld._pure.assemble.rule_context import byte_length
from streamweld._pure.text_calls.cursor import INDENT, NOT_WHITE
from streamweld._pure.text_calls.grammar import Parsing
from streamweld._pure.text_calls.layout import Layout, MarkerPosition
from streamweld._pure.text_calls.values import BadValue, Tool, arguments_text, is_declaration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamweld._pure.text_calls.families import Family, Settings
    from streamweld._pure.text_calls.grammar.call import WrittenCall

__all__ = ["Block", "Scanner"]


class _State(Enum):
    TEXT = "text"  # the scanner is outside blocks
    BLOCK = "block"  # the scanner is inside a block
    AFTER = "after"  # only whitespace and end-of-turn literals have followed the last block
    NEXT_TURN = "next_turn"  # only whitespace has followed the token that begins another turn after the last block
    REST = "rest"  # all remaining content of the choice is text


class Block:
    """A block, from the first character of its marker.

    Positions are counted in characters of the choice's text.
    """

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
        self.has_matched = False  # a family that was dropped had matched more than a name
        self.closer = ""  # optional closing literal that may still follow
        self.gap = ""  # whitespace before that closing literal
        self.line = 0
        self.part = 0
        self.part_start = 0
        self.family = families[0]
        self.parsings: list[tuple[Parsing, int]] = []  # parser, and the number of marker characters that it was fed
        for family in families:
            parsing = Parsing(family)
            if family.unread:
                parsing.feed(marker[len(marker) - family.unread :])
            self.parsings.append((parsing, family.unread))
        self.pieces: list[str] = [marker]
        self.size = byte_length(marker)
        self.calls: list[tuple[str, str]] = []  # name and JSON text of the arguments of each call

    @property
    def text(self) -> str:
        """Text of the block, as written."""
        return "".join(self.pieces)

    def close_late(self) -> None:
        """Add the optional closing literal that followed the block."""
        closed = self.gap + self.closer
        self.pieces.append(closed)
        self.end += len(closed)
        self.closer = ""

    @property
    def span(self) -> str:
        """Start and end of the block in its part's text.

        If the block has no end, these are the start and end of its marker.
        """
        return f"{self.start - self.part_start}-{self.end - self.part_start}"


class Scanner:
    """Scans the text of one choice for blocks."""

    __slots__ = (
        "_before",
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
        self._unread: list[str] = []  # text that the layout has not read yet
        self._state = _State.TEXT
        self._carry = ""  # end of the text that may turn out to be a marker
        self._before = ""  # last character of the part before the carry, except spaces and tabs
        self._fresh = settings.fresh is not settings.markers  # a family without a marker may still begin
        self._block: Block | None = None
        self._part = 0
        self._part_start = 0
        self.pending: list[Block] = []
        self.total = 0  # number of characters read

    @property
    def has_block(self) -> bool:
        """True if a block is open or pending."""
        return bool(self.pending) or self._block is not None

    @property
    def safe(self) -> int:
        """Number of characters of the text that can no longer belong to a block."""
        if self.pending:
            return self.pending[0].start
        if self._block is not None:
            return self._block.start
        return self.total - len(self._carry)

    def begin_part(self, part: int, *, is_reasoning: bool) -> None:
        """Start reading the text of another part."""
        self._read_layout().begin_part(is_reasoning=is_reasoning)
        if self.pending:
            self.pending[-1].closer = ""  # a block cannot continue in another part
        self._part = part
        self._part_start = self.total
        self._before = ""

    def push(self, text: str) -> None:
        """Read more text of the part."""
        self.total += len(text)
        plain = self._state is _State.TEXT and not self._carry and not self._fresh
        if plain and self._settings.markers.firsts.search(text) is None:
            self._unread.append(text)
            self._note_last(text)
            return
        work, self._carry = self._carry + text, ""
        rest: tuple[str, int] | None = (work, 0)
        while rest is not None:
            work, at = rest
            rest = self._step(work, at)
        self._note_last(work[: len(work) - len(self._carry)])

    def _step(self, work: str, at: int) -> tuple[str, int] | None:
        """Read from `at` on. Return the text and the position at which to continue, or None if all text has been
        read.
        """
        if self._block is not None:
            return self._in_block(self._block, work, at)
        if self._state is _State.AFTER:
            return self._after_block(work, at)
        if self._state is _State.NEXT_TURN:
            return self._after_turn(work, at)
        return None if self._state is _State.REST else self._in_text(work, at)

    def end_part(self) -> None:
        """End the part. The possible beginning of a marker becomes text, and an open block is truncated."""
        if self._block is not None:
            self._give_up(self._block, "cut")
        carry, self._carry = self._carry, ""
        if carry:
            if self._state is _State.AFTER:
                self._follow()
            self._unread.append(carry)

    def turn_off(self) -> None:
        """Treat all remaining content of the choice as ordinary text."""
        self.refuse_pending("text_follows")
        self._state = _State.REST

    def refuse_pending(self, reason: str) -> None:
        """Refuse all pending blocks."""
        pending, self.pending = self.pending, []
        for block in pending:
            self._refuse(block, reason)

    # Internals

    def _read_layout(self) -> Layout:
        layout = self._layout
        if self._unread:
            layout.feed("".join(self._unread))
            self._unread.clear()
            self._fresh = self._fresh and layout.is_empty
        return layout

    def _note_last(self, text: str) -> None:
        self._before = text.rstrip(INDENT)[-1:] or self._before

    def _in_text(self, work: str, at: int) -> tuple[str, int] | None:
        """Search for a marker.

        Returns the text and the position at which to continue, or None if all text has been read.
        """
        settings, start = self._settings, at
        while True:
            markers = settings.fresh if self._fresh else settings.markers
            found = markers.find.search(work, at)
            held = markers.held(work, at)
            if held < len(work) and (found is None or found.start() >= held):
                self._unread.append(work[start:held])
                start = held
                if self._may_begin(work, held):
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

    def _may_begin(self, work: str, at: int) -> bool:
        """Return True if the text from `at` on has to be held, because it is the beginning of a marker.

        Whether a call is allowed there is determined only if the marker is complete, because the layout then has to
        read all text before it.
        """
        settings, text = self._settings, work[at:]
        if text in settings.token_prefixes:
            return True
        if text in settings.markers.prefixes:
            before = work[:at].rstrip(INDENT)[-1:] or self._before
            return not before or before in settings.line_ends
        marker_position = self._read_layout().marker_position(text[0])
        return marker_position is MarkerPosition.START and self._layout.is_empty

    def _allowed(
        self, family: Family, marker_position: MarkerPosition, repeatable_family: Family | None = None
    ) -> bool:
        if family.tier == "token":
            return marker_position is not MarkerPosition.NOWHERE
        is_first = self._layout.is_empty or family is repeatable_family
        return marker_position is MarkerPosition.START and (family.tier == "tag" or is_first)

    def _open(self, marker: str, left: int, repeatable_family: Family | None = None) -> bool:
        """Open the block whose marker begins `left` characters before the end of the text, if a call is allowed there.

        `repeatable_family`: a family without a marker, one of whose blocks may directly follow the previous block.
        """
        layout = self._read_layout()
        marker_position = layout.marker_position(marker[0])
        families = [
            family
            for family in self._settings.by_marker[marker]
            if self._allowed(family, marker_position, repeatable_family)
        ]
        if not families:
            return False
        block = Block(self.total - left, marker, families, after_prose=marker_position is MarkerPosition.AFTER_PROSE)
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
        if (block.after_prose or block.family.tier == "markerless") and not block.has_matched:
            # The text only mentions the marker, or only begins like a call of a family without a marker.
            self._block, self._state = None, _State.TEXT
            self._unread.append(block.marker)
            self._note_last(block.marker)
            return "".join(block.pieces[1:]) + chunk, 0
        self._give_up(block, "malformed")
        return None

    def _give_up(self, block: Block, reason: str) -> None:
        """Refuse a block whose end is unknown. Everything after its beginning remains ordinary text."""
        self._follow()
        self._block, self._state, self._carry = None, _State.REST, ""
        block.end = block.start + len(block.marker)
        self._refuse(block, reason)

    def _closed(self, block: Block, parsing: Parsing, end: int) -> None:
        """Handle a complete block: either make it pending or refuse it."""
        block.family, block.end = parsing.family, end
        block.parsings = []
        self._block, self._fresh = None, False
        if self._max_block is not None and block.size > self._max_block:
            self._give_up(block, "limit")
            return
        reason = self._check_block(block, parsing.calls or [])
        calls = sum(len(one.calls) for one in [*self.pending, block])
        if reason is None and self._max_calls is not None and calls > self._max_calls:
            reason = "limit"
        if reason in ("limit", "malformed"):
            self._give_up(block, reason)
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

    def _check_block(self, block: Block, calls: list[WrittenCall]) -> str | None:
        """Return the reason for refusing the block, or None.

        If one call cannot be promoted, none of the block's calls is promoted.
        """
        for call in calls:
            tool = None
            if self._tools is not None:
                tool = self._tools.get(call.name)
                if tool is None:
                    return "unknown_name" if self._tools else "no_tools"
                if not tool.is_promoted:
                    return "never"
            try:
                arguments = arguments_text(call, tool)
            except BadValue:
                return "bad_value"
            if is_declaration(arguments, tool):
                return "malformed"
            if block.family.tier == "markerless" and tool is not None and not tool.takes(arguments):
                return "bad_arguments"
            block.calls.append((call.name, arguments))
        return None

    def _after_block(self, work: str, at: int) -> tuple[str, int] | None:
        """Read whitespace, the optional closing literal, end-of-turn tokens, and further blocks after a block."""
        settings, block = self._settings, self.pending[-1]
        repeatable_family = block.family if block.family.following_markers else None
        markers = block.family.following_markers or settings.markers
        while True:
            found = NOT_WHITE.search(work, at)
            end = len(work) if found is None else found.start()
            self._layout.feed(work[at:end])
            block.gap += work[at:end] if block.closer else ""
            at = end
            if found is None:
                return None
            longest = max(markers.longest, settings.trailing.longest, len(block.closer))
            rest = work[at : at + longest]
            is_open = rest in markers.prefixes or rest in settings.trailing.prefixes
            if is_open or (rest != block.closer and block.closer.startswith(rest)):
                self._carry = work[at:]
                return None
            marker = markers.find.match(work, at)
            if marker is not None and self._open(marker[0], len(work) - at, repeatable_family):
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
            if token[0] in settings.next_turn:
                self._state = _State.NEXT_TURN
                return work, at

    def _after_turn(self, work: str, at: int) -> tuple[str, int] | None:
        """Read whitespace after the end of the model's turn.

        Any other text was not written by the model, so calls in it do not count.
        """
        found = NOT_WHITE.search(work, at)
        self._layout.feed(work[at : len(work) if found is None else found.start()])
        if found is not None:
            self._follow()
            self._state = _State.REST
        return None

    def _follow(self) -> None:
        """Handle text that is not a call but follows the pending blocks."""
        self._state = _State.TEXT
        if not self.pending:
            return
        if self._settings.after == "end":
            # The response quotes calls, so later calls may also be quoted.
            self.refuse_pending("text_follows")
            self._state = _State.REST
        else:
            line = self._layout.line if self._layout.is_line_open else None
            kept: list[Block] = []
            for block in self.pending:
                # A block without a marker counts only if it is the complete response.
                if block.after_prose or block.family.tier == "markerless" or block.line == line:
                    self._refuse(block, "text_follows")
                else:
                    kept.append(block)
            self.pending = kept
        if self._layout.is_line_open:
            self._layout.end_refused()
