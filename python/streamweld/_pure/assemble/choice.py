"""One choice: its calls and how to find them, its text parts, its finish reason.

Holds state and constant-time lookups. Implements no rules and creates no events.
"""

from __future__ import annotations

from bisect import insort
from itertools import islice
from typing import TYPE_CHECKING

from streamweld._pure.assemble.part.call import Call
from streamweld._pure.assemble.part.item import ItemIndex, ItemPart
from streamweld._pure.assemble.part.object_merge import RawMembers
from streamweld._pure.assemble.part.text_parts import TextParts
from streamweld._pure.assemble.resolve.call_list import CallList

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamweld._pure.assemble.resolve.restatement import Restatement
    from streamweld._pure.assemble.rule_context import RuleContext
    from streamweld.events import FinishReason

__all__ = ["LEGACY_INDEX", "Choice", "FinishState", "OpenCalls"]

LEGACY_INDEX = -1  # the private index of the one call of `function_call`
_CANDIDATES = 8  # how many unfinished calls a stray fragment is tried on


class FinishState:
    """How a choice ended, as far as the stream reported it."""

    __slots__ = ("concluded", "natural", "raw", "reason", "repeated")

    def __init__(self) -> None:
        self.raw: str | None = None
        self.reason: FinishReason | None = None  # mapped
        self.natural = False  # neither stop nor tool calls, but nothing forced the end
        self.repeated = False  # a second one was reported
        self.concluded: FinishReason | None = None  # as it was told at the end

    @property
    def is_success(self) -> bool:
        """Whether the stream sent a reason that means a finished answer."""
        return self.reason in ("stop", "tool_calls")


class OpenCalls:
    """Calls of one type that may go on: JSON that is a prefix of JSON, or free-form text, which has no end."""

    __slots__ = ("unfinished", "waiting")

    def __init__(self) -> None:
        self.unfinished = CallList()
        self.waiting = CallList()  # of these, the named ones without any argument text

    def set(self, call: Call, *, present: bool) -> None:
        self.unfinished.set(call.slot, present)
        self.waiting.set(call.slot, present and call.name != "" and call.empty and not call.tentative)


class Choice:
    """One choice of one stream."""

    __slots__ = (
        "_owners",
        "book",
        "by_id",
        "by_index",
        "calls",
        "changed",
        "closed",
        "finish",
        "index",
        "latest",
        "message_seen",
        "metadata",
        "multi",
        "open_json",
        "open_text",
        "owing",
        "owing_parts",
        "payloads",
        "rebound",
        "restatement",
        "shared",
        "step",
        "textual",
        "unstarted",
    )

    def __init__(self, index: int, shared: RuleContext) -> None:
        self.index = index
        self.shared = shared
        shared.out.choices.add(index)
        self.textual = TextParts(index, shared)
        self.book = ItemIndex(shared)  # what the wire itself opens and closes
        self.restatement: Restatement | None = None  # a terminal list is being told
        self.calls: list[Call] = []  # in order of creation
        self._owners: dict[str, list[Call]] = {}  # calls that have, or had, that id for their first one, in order
        self.changed: dict[int, Call] = {}  # those that changed since a message left them out, by slot
        self.by_id: dict[str, Call] = {}  # the latest call with that id
        self.by_index: dict[int, Call] = {}  # the last call addressed through that index
        self.latest: Call | None = None  # the last call addressed at all
        self.multi: dict[int, Call] = {}  # R3c3: by place in the last list of several
        # R1d, R3a3: what calls said that were displaced, by (id or index, name, canonical arguments).
        self.payloads: dict[tuple[str | int, str, str], Call] = {}
        self.open_json = OpenCalls()
        self.open_text = OpenCalls()  # free-form text and JSON share no call
        self.unstarted: list[Call] = []  # named, not shown yet
        self.owing: set[int] = set()  # calls, by slot, of whose text something was not shown
        self.rebound = False  # an index went from one call to another: it is no order
        self.finish = FinishState()
        self.metadata = RawMembers()
        self.message_seen = False
        self.closed = False  # its parts and calls are
        self.step = 0  # the first part of the step that it is in
        self.owing_parts: set[ItemPart] = set()  # open parts of items, of which something is held back

    @property
    def owes(self) -> bool:
        """A call was announced and not shown, or something of what is open is held back."""
        latest = self.latest
        if self.owing:
            return True
        if (
            latest is not None
            and not latest.dropped
            and (latest.joiner.held or latest.text.shadow or not latest.started)
        ):
            return True
        waiting = any(not (call.started or call.dropped) for call in self.unstarted)
        return waiting or self.textual.owes or bool(self.owing_parts)

    def weigh(self, one: ItemPart) -> None:
        """Keep `owing_parts` right after the part of an item has changed."""
        if one.owes:
            self.owing_parts.add(one)
        else:
            self.owing_parts.discard(one)

    def create(self, *, custom: bool = False) -> Call:
        self.shared.count_call()
        call = Call(len(self.calls), self.shared.next_part(), custom=custom)
        self.calls.append(call)
        return call

    def own(self, call: Call, identity: str | None) -> None:
        """That is the first id of the call."""
        call.id = identity
        if identity is not None:
            insort(self._owners.setdefault(identity, []), call, key=_slot)

    def owned(self, identity: str) -> Iterator[Call]:
        """The calls with that first id, in order."""
        return (call for call in self._owners.get(identity, ()) if call.id == identity and not call.dropped)

    def owners(self, call: Call) -> dict[str | None, int]:
        """How many calls have an id of this one for their first id: none, one, or several (2)."""
        names = [identity for identity in (call.id, *call.aliases) if identity is not None]
        return {identity: sum(1 for _ in islice(self.owned(identity), 2)) for identity in names}

    def take_changed(self, count: int) -> list[Call]:
        """Of the first `count` calls those that changed since the last time, in order."""
        taken = sorted([slot for slot in self.changed if slot < count])
        return [self.changed.pop(slot) for slot in taken]

    def bind(self, call: Call, index: int | None) -> None:
        """The call was addressed through that index."""
        self.latest = call
        if index is None:
            return
        before = self.by_index.get(index)
        if before is not None and before is not call:
            self.rebound = True
        self.by_index[index] = call
        if call.index is None:
            call.index = index
        call.indexes.add(index)

    def track(self, call: Call) -> None:
        """Keep the rosters right after the call has changed."""
        self.changed[call.slot] = call
        self.open_json.set(call, present=call.text.unfinished and call.merge is None and not call.dropped)
        self.open_text.set(call, present=call.custom and not call.dropped)

    def keep_account(self, call: Call) -> None:
        """Note whether something of the call's text is held back."""
        text = call.text
        if text.shown < len(text.data) and not call.dropped:
            self.owing.add(call.slot)
        elif self.owing:
            self.owing.discard(call.slot)

    def open_calls(self, *, custom: bool) -> OpenCalls:
        return self.open_text if custom else self.open_json

    def latest_unfinished(self, *, custom: bool) -> Call | None:
        """R3c2: of the calls of that type, the latest of all if it is unfinished, else the last that became so."""
        latest = self.latest
        if latest is not None and latest.custom == custom and not latest.complete and not latest.dropped:
            return latest
        slot = self.open_calls(custom=custom).unfinished.last()
        return None if slot is None else self.calls[slot]

    def accepting(self, piece: bytes, *, custom: bool = False, other_than: Call | None = None) -> Call | None:
        """The latest unfinished call that can take the payload. Only the last few are tried."""
        for slot in self.open_calls(custom=custom).unfinished.latest(_CANDIDATES):
            call = self.calls[slot]
            if call is not other_than and call.takes(piece, custom=custom):
                return call
        return None

    def contest(self, taker: Call, code: str) -> None:
        """One of the open calls was given what may have been another's: that holds for the others' next pieces too."""
        for slot in self.open_calls(custom=taker.custom).unfinished.latest(_CANDIDATES):
            call = self.calls[slot]
            if call is not taker and call.contested is None:
                call.contested = code

    def next_waiting(self, *, custom: bool, latest: bool) -> Call | None:
        waiting = self.open_calls(custom=custom).waiting
        slot = waiting.last() if latest else waiting.first()
        return None if slot is None else self.calls[slot]

    def remember(self, call: Call, key: str | int) -> None:
        """A complete call is displaced from its id or index: what it said must still be recognised."""
        if call.complete and call.merge is None:
            self.payloads.setdefault((key, call.name, call.canonical()), call)

    def said_before(self, key: str | int, name: str, canonical: str) -> bool:
        return (key, name, canonical) in self.payloads

    def forget_calls(self) -> None:
        """AM10: the answer starts again."""
        self.calls = []
        self._owners = {}
        self.changed = {}
        self.by_id = {}
        self.by_index = {}
        self.latest = None
        self.multi = {}
        self.payloads = {}
        self.open_json = OpenCalls()
        self.open_text = OpenCalls()
        self.unstarted = []
        self.owing = set()
        self.rebound = False


def _slot(call: Call) -> int:
    return call.slot
