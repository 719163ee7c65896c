"""The state of one choice: its calls and their lookup tables, its text parts and its finish reason.

Every lookup takes constant time. The rules that change a choice are in other modules, which also emit its events.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

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

__all__ = ["LEGACY_INDEX", "Choice", "FinishState", "OpenCalls"]

LEGACY_INDEX = -1  # internal index of the call that arrives as `function_call`
_MIRRORED = 64  # maximum number of calls that a `function_call` call is compared with
_CANDIDATES = 8  # maximum number of unfinished calls to check for a fragment without a usable index


class FinishState:
    """The finish reason of a choice."""

    __slots__ = ("concluded", "natural", "raw", "reason", "repeated")

    def __init__(self) -> None:
        self.raw: str | None = None
        self.reason: FinishReason | None = None  # the mapped reason
        self.natural = False  # the wire value only means a normal end; it does not distinguish `stop` from `tool_calls`
        self.repeated = False  # a second finish reason was already reported
        self.concluded: FinishReason | None = None  # the reason in the `Finished` event, once emitted


class OpenCalls:
    """Calls of one type that can continue: unfinished JSON, or any free-form text, which has no defined end."""

    __slots__ = ("unfinished", "waiting")

    def __init__(self) -> None:
        self.unfinished = CallList()
        self.waiting = CallList()  # subset of `unfinished`: named calls without any argument text

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
        self.restatement: Restatement | None = None  # lookup tables for the terminal list in progress
        self.calls: list[Call] = []  # calls in order of creation
        self._owners: dict[str, list[Call]] = {}  # by first received id (current or former), in order of creation
        self.changed: dict[int, Call] = {}  # by slot: changed since the last complete message that omitted them
        self.by_id: dict[str, Call] = {}  # the latest call with each id
        self.by_index: dict[int, Call] = {}  # the last call addressed through each index
        self.latest: Call | None = None  # the call that was addressed last
        self.multi: dict[int, Call] = {}  # R3c3: the call at each position of the last list with several calls
        # R1d, R3a3: calls that lost their id or index, by (id or index, name, canonical arguments).
        self.payloads: dict[tuple[str | int, str, str], Call] = {}
        self.open_json = OpenCalls()
        self.open_text = OpenCalls()  # separate, because a call cannot mix JSON and free-form text
        self.unstarted: list[Call] = []  # calls that have a name but no start event yet
        self.joins_names = False  # set once a tool name has arrived in pieces
        self.unnamed: deque[Call] = deque()  # calls that were opened without a name, in order of creation
        self.pending_calls: set[int] = set()  # slots of the calls with argument text that no event has shown yet
        self.rebound = False  # an index has moved between calls, so indexes do not determine the order of calls
        self.finish = FinishState()
        self.metadata = RawMembers()
        self.message_seen = False
        self.closed = False  # the parts and calls of the choice are closed
        self.step = 0  # number of the first part in the current step
        self.pending_parts: set[ItemPart] = set()  # open item parts that hold back accepted text

    @property
    def first_unnamed(self) -> int | None:
        """The slot of the first open call that has no name yet."""
        while self.unnamed:
            call = self.unnamed[0]
            if not (call.name or call.dropped or call.verdict is not None):
                return call.slot
            self.unnamed.popleft()
        return None

    @property
    def has_pending(self) -> bool:
        """True if accepted input is still held back: a call without a start event, or text that no event has shown."""
        latest = self.latest
        if self.pending_calls:
            return True
        if self.finish.raw is not None and not self.closed and self.has_cut_call:
            return True  # clients parse the arguments at the finish reason; fragments that follow would come too late
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
        """True if the arguments of the latest call are JSON that is not complete yet."""
        latest = self.latest
        if latest is None or latest.custom or latest.complete or latest.dropped:
            return False
        return latest.index != LEGACY_INDEX

    def update_pending_part(self, one: ItemPart) -> None:
        """Update `pending_parts` after the part of an item has changed."""
        if one.has_pending:
            self.pending_parts.add(one)
        else:
            self.pending_parts.discard(one)

    def create(self, *, custom: bool = False) -> Call:
        self.shared.count_call()
        call = Call(len(self.calls), self.shared.next_part(), custom=custom)
        self.calls.append(call)
        return call

    def own(self, call: Call, identity: str | None) -> None:
        """Set `id`, the first id that the call received."""
        call.id = identity
        if identity is not None:
            insort(self._owners.setdefault(identity, []), call, key=_slot)

    def owned(self, identity: str) -> Iterator[Call]:
        """Return the calls that are not dropped and whose first received id is `identity`, in order of creation."""
        return (call for call in self._owners.get(identity, ()) if call.id == identity and not call.dropped)

    def owners(self, call: Call) -> dict[str | None, int]:
        """For each id of this call, return how many calls received this id first: 0, 1, or 2 for several."""
        names = [identity for identity in (call.id, *call.aliases) if identity is not None]
        return {identity: sum(1 for _ in islice(self.owned(identity), 2)) for identity in names}

    def take_changed(self, count: int) -> list[Call]:
        """Remove the first `count` calls from the changed calls, and return those that were removed, in order."""
        taken = sorted([slot for slot in self.changed if slot < count])
        return [self.changed.pop(slot) for slot in taken]

    def bind(self, call: Call, index: int | None) -> None:
        """Record that the call was addressed, and through which index."""
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
        """Update the lists of open calls after the call has changed."""
        self.changed[call.slot] = call
        self.open_json.set(call, present=call.text.unfinished and call.merge is None and not call.dropped)
        self.open_text.set(call, present=call.custom and not call.dropped)

    def update_pending_call(self, call: Call) -> None:
        """Update `pending_calls`, the set of calls with held-back text."""
        text = call.text
        if text.shown < len(text.data) and not call.dropped:
            self.pending_calls.add(call.slot)
        elif self.pending_calls:
            self.pending_calls.discard(call.slot)

    def open_calls(self, *, custom: bool) -> OpenCalls:
        return self.open_text if custom else self.open_json

    def latest_unfinished(self, *, custom: bool) -> Call | None:
        """R3c2: return the last addressed call of that type if it is unfinished, otherwise the latest unfinished call
        of the type.
        """
        latest = self.latest
        if latest is not None and latest.custom == custom and not latest.complete and not latest.dropped:
            return latest
        slot = self.open_calls(custom=custom).unfinished.last()
        return None if slot is None else self.calls[slot]

    def accepting(self, piece: bytes, *, custom: bool = False, other_than: Call | None = None) -> Call | None:
        """Return the latest unfinished call that can accept the payload. Only the last few calls are checked."""
        for slot in self.open_calls(custom=custom).unfinished.latest(_CANDIDATES):
            call = self.calls[slot]
            if call is not other_than and call.takes(piece, custom=custom):
                return call
        return None

    def mirrors(self, name: str, arguments: bytes) -> bool:
        """Return True if a `function_call` call repeats one of the last calls from `tool_calls`.

        A call with the same name is treated as different only if its complete arguments differ, because no gateway
        sends some calls in `tool_calls` and others as `function_call`.
        """
        whole = is_whole(arguments)
        for call in reversed(self.calls[-_MIRRORED:]):
            if call.name != name or call.index == LEGACY_INDEX or call.dropped:
                continue
            if not whole or (call.repeats(arguments) if call.complete else arguments.startswith(call.text.data)):
                return True
        return False

    def mark_ambiguous(self, chosen: Call, code: str) -> None:
        """Mark the other open calls as ambiguous after one call received a fragment that may belong to one of them.

        Their next pieces may also be assigned to the wrong call.
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
        """Remember a complete call that loses its id or index, to recognize a later replay of its arguments."""
        if call.complete and call.merge is None:
            self.payloads.setdefault((key, call.name, call.canonical()), call)

    def is_replay(self, key: str | int, name: str, canonical: str) -> bool:
        return (key, name, canonical) in self.payloads

    def forget_calls(self) -> None:
        """AM10: remove all calls, because the response restarts."""
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
