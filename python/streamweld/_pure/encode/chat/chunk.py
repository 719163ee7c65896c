"""Writes the members that every Chat chunk has before its choices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld._json import loads_raw
from streamweld._pure.dialect.upstream_error import reports_failed_base
from streamweld._pure.encode.common.extra_members import MAX_REPEATED_SIZE, joined, merged, size, writable
from streamweld._pure.encode.common.writer import quoted
from streamweld._pure.json.kinds import integer, is_object
from streamweld._pure.json.scanner import replace_lone_surrogates
from streamweld.events import ResponseStarted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld._pure.json.members import Raw
    from streamweld._pure.model.unmodelled import ChunkFacts

__all__ = ["ChunkHead"]

_UNKNOWN_MODEL: Final = "unknown"


class ChunkHead:
    """Writes the members before `choices`, and stores the unknown members of the source's chunks."""

    def __init__(self, context: EncodeContext) -> None:
        self._context = context
        self._start = ""  # the id, time and model, which every chunk repeats; empty before the first chunk
        self._started: ResponseStarted | None = None
        self._members: Raw = {}  # unknown members of the source's current chunk that are written in the next chunk
        self._names: frozenset[str] = frozenset()  # names of all unknown members of the source's current chunk
        # Unknown members of the source's chunks with a finish reason, and of its last chunk with token counts.
        self._finish_members: Raw = {}
        self._usage_members: Raw = {}
        self.has_unwritten = False  # whether no output chunk contains the unknown members of the current chunk
        self.usage_has_choice = False  # whether the last token counts came in a chunk with a choice

    def begin(self, started: ResponseStarted) -> None:
        """Record the opening event of the response. Later opening events are ignored."""
        self._started = self._started or started

    def record(self, chunk: ChunkFacts) -> None:
        """Record the members of the source's current chunk.

        A `base_resp` that reports a failure is not among the members that are written, because the error of the stream
        contains it.
        """
        members = writable(chunk.members)
        self._names = frozenset(members)
        self._members = {name: raw for name, raw in members.items() if not _is_failed_base(name, raw)}
        self.has_unwritten = bool(self._members) and not chunk.counts  # members sent with counts are written later
        if chunk.finishes:
            self._finish_members = merged(self._finish_members, self._members)
        if chunk.counts:
            self._usage_members = self._members
            self.usage_has_choice = chunk.has_choice

    def has_all(self, names: Iterable[str]) -> bool:
        """Return True if the source's current chunk contains all members of an event's metadata.

        Metadata from the source's current chunk is not lost, because it is written as members of the chunk.
        """
        return self._names.issuperset(names)

    def begin_finish(self) -> None:
        """Add the unknown members of the source's chunk with the finish reason to the next chunks."""
        self._members, self._finish_members = self._finish_members, {}

    def begin_usage(self, *, alone: bool) -> None:
        """Add the unknown members of the source's chunk with the token counts to the next chunk.

        `alone` is true if the chunk contains no other unknown members.
        """
        usage_members, self._usage_members = self._usage_members, {}
        kept = {} if alone else {name: raw for name, raw in self._members.items() if name not in usage_members}
        self._members = kept | usage_members

    def text(self) -> str:
        """Return the beginning of a chunk, up to its choices."""
        if not self._start:
            started = self._started or ResponseStarted()
            if self._context.passed.own:
                started = _completed(started, self._context.passed.payload)
            identity = started.id or self._context.mint.new("chatcmpl")
            model = started.model or _UNKNOWN_MODEL
            created = self._context.created if started.created is None else started.created
            self._start = (
                f'{{"id":{quoted(identity)},"object":"chat.completion.chunk","created":{created},'
                f'"model":{quoted(model)}}}'
            )
        start = joined(self._start, self._members)
        self.has_unwritten = False
        if size(self._members) > MAX_REPEATED_SIZE:
            written, self._members = self._members, {}
            if self._finish_members == written:
                self._finish_members = {}
            if self._usage_members == written:
                self._usage_members = {}
        return f'{start[:-1]},"choices":['


def _is_failed_base(name: str, raw: str) -> bool:
    return name == "base_resp" and reports_failed_base({name: loads_raw(raw)})


def _completed(started: ResponseStarted, payload: bytes) -> ResponseStarted:
    """If the first chunk left the id, model and time blank, as Azure's does, take them from the current chunk."""
    if started.id and started.model:
        return started
    try:
        chunk: object = loads_raw(payload.decode("utf-8", "replace"))
    except ValueError:
        return started
    if not is_object(chunk):
        return started
    created = chunk.get("created")
    number = None if isinstance(created, str) else integer(created)
    return ResponseStarted(
        id=started.id or _word(chunk.get("id")),
        model=started.model or _word(chunk.get("model")),
        created=started.created if started.created or number is None else number,
    )


def _word(value: object) -> str | None:
    return replace_lone_surrogates(value) if isinstance(value, str) and value.strip() else None
