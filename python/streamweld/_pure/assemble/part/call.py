"""One tool call under way: who it is, what it says, and what of it was shown.

A record with questions about itself. The rules that change it stand in `by_evidence`, `route_fragment` and
`close_calls`; its events in `call_events`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.assemble.part.arguments import ArgumentText
from streamweld._pure.assemble.part.canonical_json import canonical
from streamweld._pure.assemble.part.surrogates import Joiner

if TYPE_CHECKING:
    from streamweld._pure.assemble.part.object_merge import ObjectMerge, RawMembers
    from streamweld._pure.assemble.part.shared_id import SharedId
    from streamweld._pure.assemble.resolve.names import Progress
    from streamweld.events import ToolCallState

__all__ = ["MAX_ALIASES", "Call", "Verdict"]

MAX_ALIASES = 64  # a new id in every delta must not fill the memory; the index or the order still finds the call


class Verdict:
    """What a closed call came to."""

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
    """One call of one choice."""

    __slots__ = (
        "aliases",
        "announced_again",
        "answered",
        "conflict_said",
        "contested",
        "custom",
        "dropped",
        "ended",
        "first",
        "fork",
        "guess_said",
        "held_back",
        "id",
        "id_changed",
        "index",
        "indexes",
        "index_said",
        "item_id",
        "joiner",
        "keeps_id",
        "last_id",
        "late",
        "merge",
        "metadata",
        "name",
        "name_conflict_said",
        "object_arguments",
        "part",
        "provider_executed",
        "raw",
        "refused",
        "slot",
        "started",
        "suspect",
        "tentative",
        "text",
        "unopened",
        "verdict",
    )

    def __init__(self, slot: int, part: int, *, custom: bool) -> None:
        self.slot = slot  # its number among the calls of the choice
        self.part = part
        self.id: str | None = None  # the first one on the wire
        self.aliases: list[str] = []  # further ids, in order
        self.last_id: str | None = None
        self.first: Call | None = None  # the call that had its id before
        self.keeps_id = False  # a later call with its id was told before it: the id is nobody else's
        self.id_changed = False
        self.item_id: str | None = None  # what the wire calls its item
        self.provider_executed = False  # the provider runs it, not the client
        self.name = ""
        self.index: int | None = None  # the first index that it was addressed by
        self.indexes: set[int] = set()
        self.custom = custom
        self.text = ArgumentText(plain=custom)
        self.joiner = Joiner()
        self.object_arguments = False  # the text is that of an object payload
        self.merge: ObjectMerge | None = None  # several object payloads: this is the text
        self.metadata: RawMembers | None = None
        self.fork: SharedId | None = None  # AM3 is open
        self.tentative = False  # dropped unless arguments come (R1c)
        self.suspect = False  # displaced from its index while still empty (AM1)
        self.answered = False  # its result came in the same stream: nobody is to run it any more
        self.announced_again: set[int | None] = set()  # R1g: indexes under which a header came again
        self.name_conflict_said = False
        self.guess_said: set[str] = set()  # named ambiguities that were said of it
        self.conflict_said = False  # a terminal message left it out
        self.contested: str | None = None  # the named ambiguity that the next piece without an id stands in
        self.refused = False  # the sender itself says that its input is none that the tool takes
        self.late = False  # something of it came behind the finish reason
        self.index_said = False
        self.dropped = False
        self.ended = False  # the wire closed it
        self.unopened = False  # its close was the first that was seen of it
        self.started = False  # it was shown; how much of its text was, the text keeps
        self.held_back = False  # show none of the text before the close: object payloads may yet be merged
        self.raw: str | None = None  # the text on the wire, where the close replaced it by what it stands for
        self.verdict: Verdict | None = None

    @property
    def complete(self) -> bool:
        """Its arguments are one whole JSON value."""
        return self.merge is not None or self.text.complete

    @property
    def empty(self) -> bool:
        return self.text.empty

    @property
    def settled(self) -> int:
        """How many bytes of its text may be shown: nothing that comes can make them another call's, or others."""
        if self.custom:
            return len(self.text.data)
        divides = self.fork is not None and not self.fork.closed
        return 0 if self.held_back or divides else self.text.settled

    def has_id(self, identity: str) -> bool:
        return identity == self.id or identity in self.aliases

    def repeats(self, piece: bytes) -> bool:
        """The payload says what the finished call says."""
        if self.merge is not None:
            return self.merge.says(piece.decode("utf-8", "replace"))
        return self.text.repeats(piece)

    def accepts(self, piece: bytes) -> bool:
        """The payload, appended, keeps the arguments JSON (or it has nothing to break)."""
        return self.merge is None and (not piece or self.text.accepts(piece))

    def suits(self, piece: bytes, *, custom: bool) -> bool:
        """Free-form text and JSON share no call; one without text yet can be of either type."""
        return not piece or self.custom == custom or (self.empty and not self.joiner.held)

    def settle_type(self, *, custom: bool) -> None:
        """The first piece of its text says of which type it is."""
        if self.custom != custom and self.empty:
            self.custom = custom
            self.text = ArgumentText(plain=custom)
            self.fork = None

    def takes(self, piece: bytes, *, custom: bool) -> bool:
        """A piece of that type can be the call's next one. Free-form text has nothing that could break."""
        return not piece or (self.custom == custom and (custom or self.accepts(piece)))

    def progress(self, piece: bytes) -> Progress:
        """How far the arguments are for a name that arrives with that payload."""
        if self.complete:
            return "over"
        if self.empty:
            return "none"
        starts = not self.custom and piece.lstrip(b" \t\n\r").startswith(b"{")
        return "over" if starts else "started"

    def canonical(self) -> str:
        """Of a complete call."""
        return self.text.canonical() if self.merge is None else canonical(self.merge.text())

    def settle_merge(self) -> None:
        """Make the merged objects the text."""
        if self.merge is not None:
            self.text.replace(self.merge.text().encode())
            self.merge = None
            self.object_arguments = False
