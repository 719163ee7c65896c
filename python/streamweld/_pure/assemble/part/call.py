"""State of one tool call in progress: its identity, its arguments, and how much of them has been emitted.

Contains only state and queries. `route_fragment` and `close_calls` change a call; `call_events` emits its events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.assemble.part.arguments import ArgumentText
from streamweld._pure.assemble.part.canonical_json import canonical
from streamweld._pure.assemble.part.surrogates import Joiner
from streamweld._pure.model.delta import CallEnding

if TYPE_CHECKING:
    from streamweld._pure.assemble.part.object_merge import ObjectMerge, RawMembers
    from streamweld._pure.assemble.part.shared_id import SharedId
    from streamweld._pure.assemble.resolve.names import Progress
    from streamweld.events import ToolCallState

__all__ = ["MAX_ALIASES", "Call", "Verdict"]

MAX_ALIASES = 64  # limits the memory for a stream with a new id in every delta


class Verdict:
    """Final result of a closed call."""

    __slots__ = ("aliases", "arguments", "call_id", "raw_arguments", "reason", "state")

    def __init__(
        self,
        call_id: str,
        arguments: str,
        state: ToolCallState,
        reason: str | None,
        raw_arguments: str | None,
        aliases: tuple[str, ...],
    ) -> None:
        self.call_id = call_id
        self.arguments = arguments
        self.state: ToolCallState = state
        self.reason = reason
        self.raw_arguments = raw_arguments
        self.aliases = aliases


class Call:
    """One tool call of one choice."""

    __slots__ = (
        "aliases",
        "announced_again",
        "answered",
        "conflict_reported",
        "pending_ambiguity",
        "custom",
        "dropped",
        "ended",
        "ending",
        "first",
        "shared_id",
        "guess_reported",
        "held_back",
        "id",
        "id_changed",
        "index",
        "indexes",
        "index_reported",
        "item_id",
        "joiner",
        "keeps_id",
        "last_id",
        "late",
        "merge",
        "metadata",
        "misses_arguments",
        "name",
        "name_conflict_reported",
        "object_arguments",
        "part",
        "provider_executed",
        "raw",
        "refused",
        "slot",
        "started",
        "displaced_empty",
        "tentative",
        "text",
        "unopened",
        "verdict",
    )

    def __init__(self, slot: int, part: int, *, custom: bool) -> None:
        self.slot = slot  # index among the calls of the choice
        self.part = part
        self.id: str | None = None  # first id received
        self.aliases: list[str] = []  # additional ids, in order of arrival
        self.last_id: str | None = None
        self.first: Call | None = None  # an earlier call that had the same id
        self.keeps_id = False  # a later call with the same id was closed first, so the id is reserved for this call
        self.id_changed = False
        self.item_id: str | None = None  # item id on the wire
        self.provider_executed = False  # the provider, not the client, executes the call
        self.name = ""
        self.index: int | None = None  # first index that addressed the call
        self.indexes: set[int] = set()
        self.custom = custom
        self.text = ArgumentText(plain=custom)
        self.joiner = Joiner()
        self.object_arguments = False  # the arguments were sent as an object, and the text is its JSON
        self.merge: ObjectMerge | None = None  # result of merging several object payloads, used instead of the text
        self.metadata: RawMembers | None = None
        self.shared_id: SharedId | None = None  # text received at each index while AM3 is undecided
        self.tentative = False  # the call is dropped unless arguments arrive (R1c)
        self.displaced_empty = False  # displaced from its index while still empty (AM1)
        self.answered = False  # the stream contains the result of the call, so the client must not execute it
        self.announced_again: set[int | None] = set()  # indexes at which a header was repeated (R1g)
        self.name_conflict_reported = False
        self.guess_reported: set[str] = set()  # ambiguities (AM…) already reported for this call
        self.conflict_reported = False  # a conflict with the terminal message was already reported
        self.pending_ambiguity: str | None = (
            None  # ambiguity to report if the next piece without an id is assigned to this call
        )
        self.misses_arguments = False  # a member that was not read may contain the arguments
        self.refused = False  # the sender marked the input as invalid for the tool
        self.ending = CallEnding.WHOLE  # what the last closing event stated about the end of the call
        self.late = False  # part of the call arrived after the finish reason
        self.index_reported = False
        self.dropped = False
        self.ended = False  # the stream closed the call explicitly
        self.unopened = False  # the first event of the call was its closing event
        self.started = False  # `ToolCallStarted` was emitted; `text.shown` is the number of emitted bytes
        self.held_back = False  # emit no text before the close, because more objects may be merged into the arguments
        self.raw: str | None = None  # text as received, if the close replaced it (null, "" or double-encoded JSON)
        self.verdict: Verdict | None = None

    @property
    def complete(self) -> bool:
        """True if the arguments are one complete JSON value."""
        return self.merge is not None or self.text.complete

    @property
    def empty(self) -> bool:
        return self.text.empty

    def is_cut(self, *, succeeded: bool) -> bool:
        """Return True if the sender reported that the call was cut off, and nothing shows that it is whole.

        The arguments show it if they are complete JSON. If the call was still in progress when its item closed, a
        successful end of the response shows it, too.
        """
        reported = self.ending is CallEnding.CUT or (self.ending is not CallEnding.WHOLE and not succeeded)
        return reported and (self.custom or not self.complete)

    @property
    def settled(self) -> int:
        """The number of bytes of the text that may be emitted. Later fragments can neither change them nor move them to
        another call.
        """
        if self.custom:
            return len(self.text.data)
        divides = self.shared_id is not None and not self.shared_id.closed
        return 0 if self.held_back or divides else self.text.settled

    def has_id(self, identity: str) -> bool:
        return identity == self.id or identity in self.aliases

    def repeats(self, piece: bytes) -> bool:
        """Return True if the payload repeats the arguments of the finished call."""
        if self.merge is not None:
            return self.merge.has_same_members(piece.decode("utf-8", "replace"))
        return self.text.repeats(piece)

    def accepts(self, piece: bytes) -> bool:
        """Return True if the arguments remain valid JSON, or a prefix of it, after appending the payload.

        True for an empty payload.
        """
        return self.merge is None and (not piece or self.text.accepts(piece))

    def suits(self, piece: bytes, *, custom: bool) -> bool:
        """Return True if the type of the piece allows it to belong to the call.

        Free-form text and JSON never mix; a call without text accepts either.
        """
        return not piece or self.custom == custom or (self.empty and not self.joiner.held)

    def settle_type(self, *, custom: bool) -> None:
        """Set the type of the call, JSON or free-form, from the first piece of its text."""
        if self.custom != custom and self.empty:
            self.custom = custom
            self.text = ArgumentText(plain=custom)
            self.shared_id = None

    def takes(self, piece: bytes, *, custom: bool) -> bool:
        """Return True if the piece can be the next piece of this call. Any free-form text can."""
        return not piece or (self.custom == custom and (custom or self.accepts(piece)))

    def progress(self, piece: bytes) -> Progress:
        """Return the progress of the arguments, used to classify a name that arrives with this payload."""
        if self.complete:
            return "over"
        if self.empty:
            return "none"
        starts = not self.custom and piece.lstrip(b" \t\n\r").startswith(b"{")
        return "over" if starts else "started"

    def canonical(self) -> str:
        """Return the canonical form of the arguments of a complete call."""
        return self.text.canonical() if self.merge is None else canonical(self.merge.text())

    def settle_merge(self) -> None:
        """Replace the text with the merged objects."""
        if self.merge is not None:
            self.text.replace(self.merge.text().encode())
            self.merge = None
            self.object_arguments = False
