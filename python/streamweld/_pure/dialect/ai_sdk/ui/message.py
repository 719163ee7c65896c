"""Decodes the message id of a UI message stream, and the metadata that the application adds to the message.

The application defines the metadata. The metadata objects in `start`, `finish`, and `message-metadata` are merged. This
module merges only the top-level members of these objects. Many applications put the usage in this metadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.assemble.part.object_merge import RawMembers
from streamweld._pure.dialect.usage_counts import counts_of, read_counts
from streamweld._pure.json.kinds import is_object
from streamweld._pure.json.members import as_object
from streamweld._spec import DIALECTS

if TYPE_CHECKING:
    from streamweld._pure.assemble import Assembler
    from streamweld._pure.dialect.ai_sdk.part import TypedPart

_COUNTS = counts_of(DIALECTS["ai-sdk-ui"]["usage"])
_USAGE_MEMBERS: tuple[str, ...] = DIALECTS["ai-sdk-ui"]["usage_members"]


class MessageReader:
    """Collects the metadata of one message until the message ends."""

    __slots__ = ("_assembler", "_members", "_started")

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler
        self._members = RawMembers()  # metadata that arrived after the start event
        self._started = False

    def start(self, chunk: TypedPart) -> None:
        """Handle `start`. The first `start` causes the start event; any later `start` only adds metadata."""
        if self._started:
            self.metadata(chunk)
            return
        self._started = True
        sent = chunk.notes.an_object(chunk.value, (), "messageMetadata")
        raw = None if sent is None else chunk.payload.raw("messageMetadata")
        self._assembler.started(chunk.identity("messageId"), None, None, chunk.metadata(("messageMetadata", raw)))
        self._usage(chunk, sent)

    def emit_start(self) -> None:
        """Emit the start event if content arrives before any `start`."""
        if not self._started:
            self._started = True
            self._assembler.started(None, None, None, None)

    def metadata(self, chunk: TypedPart) -> None:
        """Merge the `messageMetadata` of a chunk. The last value of each metadata member is used."""
        sent = chunk.notes.an_object(chunk.value, (), "messageMetadata")
        if sent is None:
            return
        self._assembler.hold(self._members.add(chunk.payload.raw("messageMetadata") or "{}"))
        self._usage(chunk, sent)

    def flush(self) -> None:
        """Emit the metadata before the message ends."""
        members, self._members = self._members, RawMembers()
        self._assembler.hold(members.held().released())
        text = members.text()
        if text is not None:
            self._assembler.choice_metadata(0, as_object({"messageMetadata": text}) or text)

    def _usage(self, chunk: TypedPart, sent: dict[str, Any] | None) -> None:
        for key in _USAGE_MEMBERS:
            usage = None if sent is None else sent.get(key)
            if is_object(usage):
                counts = read_counts(usage, chunk.payload.raw("messageMetadata", key), _COUNTS)
                if not counts.is_blank():
                    self._assembler.merge_usage(counts)
