"""The state of one tool call: its ids, name and arguments, and how much of the arguments has been emitted.

This module contains only state and queries. `route_fragment` and `close_calls` change calls; `call_events` emits their
events.
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

__all__ = ["MAX_ALIASES", "Call", "CallOutcome"]

MAX_ALIASES = 64  # maximum number of aliases of a call, because a stream may send a new id in every delta


class CallOutcome:
    """The final result of a closed call, as reported by its final event."""

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
    """One tool call of a choice."""

    __slots__ = (
        "aliases",
        "announced_again",
        "answered",
        "conflict_reported",
        "pending_ambiguity",
        "custom",
        "doubtful_piece",
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
        "outcome",
    )

    def __init__(self, slot: int, part: int, *, custom: bool) -> None:
        self.slot = slot  # position among the calls of the choice, in order of creation
        self.part = part
        self.id: str | None = None  # the first call id received
        self.aliases: list[str] = []  # the other ids received, in order of arrival
        self.last_id: str | None = None
        self.first: Call | None = None  # an earlier call that received the same id
        # The id is reserved for this call, even though a later call with the same id closed first.
        self.keeps_id = False
        self.id_changed = False
        self.item_id: str | None = None  # the item id that events report for the call
        self.provider_executed = False  # the provider executes the call, so the client must not execute it
        self.name = ""
        self.doubtful_piece: str | None = None  # the last piece of the name, if it has not been reported
        self.index: int | None = None  # the first index with which a fragment addressed the call
        self.indexes: set[int] = set()
        self.custom = custom
        self.text = ArgumentText(plain=custom)
        self.joiner = Joiner()
        self.object_arguments = False  # the arguments arrived as an object instead of a string
        self.merge: ObjectMerge | None = None  # the merged arguments, if they arrived as several objects
        self.metadata: RawMembers | None = None
        self.shared_id: SharedId | None = None  # the text received at each index, until AM3 is decided
        self.tentative = False  # the call will be dropped unless arguments arrive for it (R1c)
        self.displaced_empty = False  # a later call took the index of this call, which had no arguments (AM1)
        self.answered = False  # the stream contains the result of the call, so the client must not run the call
        self.announced_again: set[int | None] = set()  # indexes at which the call was announced again (R1g)
        self.name_conflict_reported = False
        self.guess_reported: set[str] = set()  # the ambiguities that have already been reported for this call
        self.conflict_reported = False  # a conflict with the terminal message has already been reported
        self.pending_ambiguity: str | None = (
            None  # the ambiguity to report when a piece without an id is next assigned to this call
        )
        self.misses_arguments = False  # a member that was not read may contain arguments of the call
        self.refused = False  # the sender reported that the tool does not accept the arguments
        self.ending = CallEnding.WHOLE  # how complete the call is, according to its last closing event
        self.late = False  # a fragment of the call arrived after the finish reason
        self.index_reported = False
        self.dropped = False
        self.ended = False  # the stream closed the call explicitly
        self.unopened = False  # the first event of the call was its closing event
        self.started = False  # `ToolCallStarted` was emitted; `text.shown` is the number of emitted bytes
        self.held_back = False  # the text may change until the call closes, so no text is emitted earlier
        self.raw: str | None = None  # the text as received, if it was replaced when the call closed
        self.outcome: CallOutcome | None = None

    @property
    def complete(self) -> bool:
        """True if the arguments are one complete JSON value. Always False for free-form text."""
        return self.merge is not None or self.text.complete

    @property
    def empty(self) -> bool:
        return self.text.empty

    def is_cut(self, *, succeeded: bool) -> bool:
        """Return True if the call is cut off: its closing event reported this, and its arguments are not complete JSON.

        A call that was still in progress when its item closed is cut off only if the response did not end with success
        (`succeeded`).
        """
        reported = self.ending is CallEnding.CUT or (self.ending is not CallEnding.WHOLE and not succeeded)
        return reported and (self.custom or not self.complete)

    @property
    def settled(self) -> int:
        """The length of the argument text, in bytes, that is safe to emit: later fragments cannot change it or move
        it to another call.
        """
        if self.custom:
            return len(self.text.data)
        divides = self.shared_id is not None and not self.shared_id.closed
        return 0 if self.held_back or divides else self.text.settled

    def has_id(self, identity: str) -> bool:
        return identity == self.id or identity in self.aliases

    def repeats(self, piece: bytes) -> bool:
        """Return True if the arguments are complete and the piece is an equal JSON value."""
        if self.merge is not None:
            return self.merge.has_same_members(piece.decode("utf-8", "replace"))
        return self.text.repeats(piece)

    def accepts(self, piece: bytes) -> bool:
        """Return True if the piece is empty, or if the arguments followed by the piece are JSON or the beginning of
        JSON.

        Return False if the arguments arrived as several objects.
        """
        return self.merge is None and (not piece or self.text.accepts(piece))

    def suits(self, piece: bytes, *, custom: bool) -> bool:
        """Return True if the piece and the call have the same type (JSON or free-form), or if either has no text."""
        return not piece or self.custom == custom or (self.empty and not self.joiner.held)

    def settle_type(self, *, custom: bool) -> None:
        """Set the type of the call, JSON or free-form, unless the call already has text."""
        if self.custom != custom and self.empty:
            self.custom = custom
            self.text = ArgumentText(plain=custom)
            self.shared_id = None

    def takes(self, piece: bytes, *, custom: bool) -> bool:
        """Return True if the piece can be appended to the arguments. Any free-form text can be appended to a free-form
        call.
        """
        return not piece or (self.custom == custom and (custom or self.accepts(piece)))

    def progress(self, piece: bytes) -> Progress:
        """Return how far the arguments have progressed, to classify a name that arrives together with this piece."""
        if self.complete:
            return "over"
        if self.empty:
            return "none"
        starts = not self.custom and piece.lstrip(b" \t\n\r").startswith(b"{")
        return "over" if starts else "started"

    def canonical(self) -> str:
        """Return the canonical form of the arguments, which must be a complete JSON value."""
        return self.text.canonical() if self.merge is None else canonical(self.merge.text())

    def settle_merge(self) -> None:
        """If the arguments arrived as several objects, replace the text with the merged object."""
        if self.merge is not None:
            self.text.replace(self.merge.text().encode())
            self.merge = None
            self.object_arguments = False
