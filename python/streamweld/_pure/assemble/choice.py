"""The state of one choice: its calls and their lookup tables, its text parts, and its finish reason.

Every lookup takes constant time. Other modules contain the rules that change a choice and emit its events.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeAlias

from streamweld._pure.assemble.part.call import Call
from streamweld._pure.assemble.part.canonical_json import is_whole
from streamweld._pure.assemble.part.object_merge import RawMembers
from streamweld._pure.assemble.part.text_parts import TextParts
from streamweld._pure.assemble.resolve.call_list import CallList
from streamweld._pure.assemble.resolve.item_index import ItemIndex

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamweld._pure.assemble.part.item import ItemPart
    from streamweld._pure.assemble.resolve.restatement import Restatement
    from streamweld._pure.assemble.rule_context import RuleContext
    from streamweld.events import FinishReason

__all__ = ["LEGACY_INDEX", "CallComparison", "Choice", "FinishState", "OpenCalls"]

LEGACY_INDEX = -1  # internal index of a call that arrives in the legacy member `function_call`
_MIRRORED = 64  # maximum number of calls with which a call in `function_call` is compared
_CANDIDATES = 8  # maximum number of unfinished calls that are tried for a fragment that does not identify its call


# How a call relates to the other calls of its choice. `unclear`: the call does not repeat another call, but may be a
# part of another call.
CallComparison: TypeAlias = Literal["repeated", "own", "unclear"]


class FinishState:
    """The finish reason of a choice."""

    __slots__ = ("concluded", "natural", "raw", "reason", "repeated")

    def __init__(self) -> None:
        self.raw: str | None = None
        self.reason: FinishReason | None = None  # the meaning of the finish reason
        self.natural = False  # the received reason can mean any normal end, `stop` or `tool_calls`
        self.repeated = False  # a second finish reason has already been reported
        self.concluded: FinishReason | None = None  # the reason in `Finished`; None until it is emitted


class OpenCalls:
    """The calls of one type (JSON or free-form) that more text may be appended to. A JSON call is open while its text
    is an incomplete JSON value. A free-form call is always open, because its text has no defined end.
    """

    __slots__ = ("unfinished", "waiting")

    def __init__(self) -> None:
        self.unfinished = CallList()
        self.waiting = CallList()  # the calls in `unfinished` that have a name but no argument text

    def set(self, call: Call, *, present: bool) -> None:
        self.unfinished.set(call.slot, present)
        self.waiting.set(call.slot, present and call.name != "" and call.empty and not call.tentative)


class Choice:
    """One choice of one stream."""

    __slots__ = (
        "_owners",
        "item_index",
        "by_id",
        "by_index",
        "calls",
        "changed",
        "closed",
        "finish",
        "index",
        "joins_names",
        "latest",
        "message_seen",
        "metadata",
        "multi",
        "open_json",
        "open_text",
        "pending_calls",
        "pending_parts",
        "payloads",
        "rebound",
        "restatement",
        "shared",
        "step",
        "textual",
        "unnamed",
        "unstarted",
    )

    def __init__(self, index: int, shared: RuleContext) -> None:
        self.index = index
        self.shared = shared
        shared.out.choices.add(index)
        self.textual = TextParts(index, shared)
        self.item_index = ItemIndex(shared)  # items that the stream opens and closes explicitly
        self.restatement: Restatement | None = None  # tables for matching a terminal list with streamed items
        self.calls: list[Call] = []  # calls in order of creation
        self._owners: dict[str, list[Call]] = {}  # calls by first id, current or former; in order of creation
        self.changed: dict[int, Call] = {}  # by slot: calls that have changed since the last complete message
        self.by_id: dict[str, Call] = {}  # the latest call with each id
        self.by_index: dict[int, Call] = {}  # the last call that a fragment with each index addressed
        self.latest: Call | None = None  # the call that was addressed last
        self.multi: dict[int, Call] = {}  # R3c3: the last call at each position of a list with several fragments
        # R1d, R3a3: the complete calls whose id or index now refers to a later call. Each entry contains that id or
        # index, and the name and canonical arguments of the complete call.
        self.payloads: dict[tuple[str | int, str, str], Call] = {}
        self.open_json = OpenCalls()
        self.open_text = OpenCalls()  # free-form calls; separate, because a call cannot mix JSON and free-form text
        self.unstarted: list[Call] = []  # calls that have a name but no start event yet
        self.joins_names = False  # a tool name has arrived in pieces, so later names may do so too
        self.unnamed: deque[Call] = deque()  # calls that were opened without a name, in order of creation
        self.pending_calls: set[int] = set()  # slots of the calls with argument text that has not been emitted yet
        self.rebound = False  # an index has moved between calls, so indexes do not determine their order
        self.finish = FinishState()
        self.metadata = RawMembers()
        self.message_seen = False
        self.closed = False  # the parts and calls of the choice have been closed
        self.step = 0  # part number of the first part in the current step
        self.pending_parts: set[ItemPart] = set()  # the open parts of items that hold back text

    @property
    def first_unnamed(self) -> int | None:
        """Position of the first call that has no name yet and is neither dropped nor final."""
        while self.unnamed:
            call = self.unnamed[0]
            if not (call.name or call.dropped or call.outcome is not None):
                return call.slot
            self.unnamed.popleft()
        return None

    @property
    def has_pending(self) -> bool:
        """True if input is still held back: a call has no start event yet, or no event has shown some of its text."""
        latest = self.latest
        if self.pending_calls:
            return True
        if self.finish.raw is not None and not self.closed and self.has_cut_call:
            return True  # clients parse the arguments when the finish reason arrives, and would ignore later fragments
        if (
            latest is not None
            and not latest.dropped
            and (latest.joiner.held or latest.text.replayed or not latest.started)
        ):
            return True
        waiting = any(not (call.started or call.dropped) for call in self.unstarted)
        return waiting or self.textual.has_pending or bool(self.pending_parts)

    @property
    def has_cut_call(self) -> bool:
        """True if the call that was addressed last has incomplete JSON arguments."""
        latest = self.latest
        if latest is None or latest.custom or latest.complete or latest.dropped:
            return False
        return latest.index != LEGACY_INDEX

    def update_pending_part(self, one: ItemPart) -> None:
        """Update `pending_parts` after a part of an item has changed."""
        if one.has_pending:
            self.pending_parts.add(one)
        else:
            self.pending_parts.discard(one)

    def create(self, *, custom: bool = False) -> Call:
        self.shared.count_call()
        call = Call(len(self.calls), self.shared.next_part(), custom=custom)
        self.calls.append(call)
        return call

    def set_first_id(self, call: Call, identity: str | None) -> None:
        """Set the first id that the call received."""
        call.id = identity
        if identity is not None:
            insort(self._owners.setdefault(identity, []), call, key=_slot)

    def owned(self, identity: str) -> Iterator[Call]:
        """Return the calls whose first received id is `identity`, in order of creation. Excludes dropped calls."""
        return (call for call in self._owners.get(identity, ()) if call.id == identity and not call.dropped)

    def owners(self, call: Call) -> dict[str | None, int]:
        """For each id of this call, return how many calls received it as their first id: 0, 1, or 2 for several."""
        names = [identity for identity in (call.id, *call.aliases) if identity is not None]
        return {identity: sum(1 for _ in islice(self.owned(identity), 2)) for identity in names}

    def take_changed(self, count: int) -> list[Call]:
        """Remove from `changed` the calls whose position is less than `count`, and return them in order of creation."""
        taken = sorted([slot for slot in self.changed if slot < count])
        return [self.changed.pop(slot) for slot in taken]

    def bind(self, call: Call, index: int | None) -> None:
        """Record that a fragment with this index addressed the call. Later fragments with the index address the same
        call.
        """
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
        """Update the lists of open calls after a change to this call."""
        self.changed[call.slot] = call
        self.open_json.set(call, present=call.text.unfinished and call.merge is None and not call.dropped)
        self.open_text.set(call, present=call.custom and not call.dropped)

    def update_pending_call(self, call: Call) -> None:
        """Add the call to `pending_calls` or remove it, depending on whether some of its text has not been emitted
        yet.
        """
        text = call.text
        if text.shown < len(text.data) and not call.dropped:
            self.pending_calls.add(call.slot)
        elif self.pending_calls:
            self.pending_calls.discard(call.slot)

    def open_calls(self, *, custom: bool) -> OpenCalls:
        return self.open_text if custom else self.open_json

    def latest_unfinished(self, *, custom: bool) -> Call | None:
        """R3c2: return the last addressed call if it is unfinished and of the given type. If it is not, return the call
        of this type that was added last to the open calls.
        """
        latest = self.latest
        if latest is not None and latest.custom == custom and not latest.complete and not latest.dropped:
            return latest
        slot = self.open_calls(custom=custom).unfinished.last()
        return None if slot is None else self.calls[slot]

    def accepting(self, piece: bytes, *, custom: bool = False, other_than: Call | None = None) -> Call | None:
        """Return the latest unfinished call to which the piece can be appended. Checks only the last `_CANDIDATES`
        unfinished calls.
        """
        for slot in self.open_calls(custom=custom).unfinished.latest(_CANDIDATES):
            call = self.calls[slot]
            if call is not other_than and call.takes(piece, custom=custom):
                return call
        return None

    def mirrors(self, name: str, arguments: bytes) -> bool:
        """Return True if a call in `function_call` repeats one of the last calls from `tool_calls`.

        No gateway sends some calls in `tool_calls` and others in `function_call`. A call with the same name is
        therefore a different call only if its complete arguments differ.
        """
        whole = is_whole(arguments)
        for call in reversed(self.calls[-_MIRRORED:]):
            if call.name != name or call.index == LEGACY_INDEX or call.dropped:
                continue
            if not whole or (call.repeats(arguments) if call.complete else arguments.startswith(call.text.data)):
                return True
        return False

    def compare(self, identity: str | None, name: str, arguments: bytes) -> CallComparison:
        """Compare a call that arrived outside a delta's `tool_calls` with the last calls of the choice.

        A call whose arguments are only the beginning of another call's arguments counts as a repetition, because some
        gateways repeat outside `tool_calls` the arguments that they have sent so far.
        """
        whole = is_whole(arguments)
        for call in reversed(self.calls[-_MIRRORED:]):
            is_same = identity is not None and call.has_id(identity)
            if call.dropped or (name and call.name != name and not is_same):
                continue
            goes_on = not call.complete and arguments.startswith(call.text.data)
            if call.text.data.startswith(arguments) or (
                whole and (call.repeats(arguments) if call.complete else goes_on)
            ):
                return "repeated"
            if is_same:
                return "unclear"
        is_call = bool(name) and (whole or not arguments)
        return "own" if is_call and len(self.calls) <= _MIRRORED else "unclear"

    def mark_ambiguous(self, chosen: Call, code: str) -> None:
        """Mark the other open calls as ambiguous, because the fragment that `chosen` received may belong to one of
        them.

        The next pieces of these calls may also be assigned to the wrong call.
        """
        for slot in self.open_calls(custom=chosen.custom).unfinished.latest(_CANDIDATES):
            call = self.calls[slot]
            if call is not chosen and call.pending_ambiguity is None:
                call.pending_ambiguity = code

    def next_waiting(self, *, custom: bool, latest: bool) -> Call | None:
        waiting = self.open_calls(custom=custom).waiting
        slot = waiting.last() if latest else waiting.first()
        return None if slot is None else self.calls[slot]

    def remember(self, call: Call, key: str | int) -> None:
        """Store the name and arguments of a complete call that loses its id or index to a later call, so that a replay
        of the complete call is still recognized.
        """
        if call.complete and call.merge is None:
            self.payloads.setdefault((key, call.name, call.canonical()), call)

    def is_replay(self, key: str | int, name: str, canonical: str) -> bool:
        return (key, name, canonical) in self.payloads

    def forget_calls(self) -> None:
        """AM10: remove all calls, because the response starts again."""
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
        self.pending_calls = set()
        self.rebound = False


def _slot(call: Call) -> int:
    return call.slot
