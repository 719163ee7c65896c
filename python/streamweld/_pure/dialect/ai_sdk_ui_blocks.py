"""Text and reasoning of a UI message stream, sources and files: what the message shows.

Text and reasoning are start, deltas and end, paired by an id that lives as long as the step (B 9.5). What providers
hang on any of the three belongs to the whole part. Knows no tools.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamweld._pure.ai_sdk_part import data_url
from streamweld._pure.delta import Address
from streamweld._pure.members import as_object

if TYPE_CHECKING:
    from streamweld._pure.ai_sdk_part import Provider, TypedPart
    from streamweld._pure.assemble import Assembler
    from streamweld._pure.assemble.textual import Channel
    from streamweld._pure.delta import ItemKind
    from streamweld.events import ReasoningKind

_DOCUMENT = ("sourceId", "mediaType", "title", "filename")


@dataclass(slots=True)
class _Block:
    """Whom one chunk speaks of, and what the provider says with it."""

    item: ItemKind
    address: Address
    channel: Channel
    kind: ReasoningKind
    identity: str | None
    provider: Provider
    redacted: bool

    @property
    def place(self) -> tuple[ItemKind, Address, Channel]:
        return self.item, self.address, self.channel


class BlockReader:
    """Hands on what one stream's message shows."""

    __slots__ = ("_assembler", "_redacted")

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler
        self._redacted: set[str] = set()  # ids of open reasoning parts that hold nothing to read

    def forget(self) -> None:
        """The ids may come again."""
        self._redacted.clear()

    def start(self, chunk: TypedPart) -> None:
        block = self._block(chunk)
        if block.redacted and block.identity is not None:
            self._redacted.add(block.identity)
        self._assembler.part_opened(0, *block.place, block.kind, None, block.provider.metadata)
        self._attributes(block, None)

    def delta(self, chunk: TypedPart) -> None:
        block = self._block(chunk)
        text = chunk.text("delta")
        if text:
            self._assembler.part_text(0, *block.place, block.kind, text, block.provider.metadata)
        self._attributes(block, block.provider.metadata)

    def end(self, chunk: TypedPart) -> None:
        block = self._block(chunk)
        self._attributes(block, None)
        self._assembler.part_closed(0, *block.place, block.kind, None, block.provider.metadata)
        self._assembler.item_closed(0, block.item, block.address, None, None)
        if block.identity is not None:
            self._redacted.discard(block.identity)

    def source_url(self, chunk: TypedPart) -> None:
        url = chunk.words("url")
        if url is None:
            self._assembler.unknown(chunk.event, chunk.raw)
        else:
            self._assembler.source(0, url, chunk.words("title"), None, chunk.metadata())

    def source_document(self, chunk: TypedPart) -> None:
        members = chunk.payload.members()
        document = as_object({key: members[key] for key in _DOCUMENT if key in members})
        self._assembler.source(0, None, chunk.words("title"), document, chunk.metadata())

    def file(self, chunk: TypedPart) -> None:
        """`file` and `reasoning-file`: a data URL is inline."""
        media_type, url = chunk.words("mediaType"), chunk.words("url")
        if url is None:
            self._assembler.unknown(chunk.event, chunk.raw)
            return
        metadata = chunk.metadata(("type", None if chunk.kind == "file" else '"reasoning-file"'))
        inline = data_url(url)
        if inline is None:
            self._assembler.file(0, media_type, None, url, metadata)
        else:
            self._assembler.file(0, media_type or inline[0], inline[1], None, metadata)

    def _block(self, chunk: TypedPart) -> _Block:
        identity, provider = chunk.identity("id"), chunk.provider()
        address = Address(item_id=identity, public_id=provider.item_id)
        if not chunk.kind.startswith("reasoning"):
            return _Block("message", address, "text", "raw", identity, provider, redacted=False)
        redacted = provider.redacted or identity in self._redacted
        kind: ReasoningKind = "redacted" if redacted else "raw"
        return _Block("reasoning", address, "reasoning", kind, identity, provider, redacted=redacted)

    def _attributes(self, block: _Block, metadata: str | None) -> None:
        """What a later turn must hand back."""
        signature = encrypted = None
        if block.item == "reasoning":
            signature, encrypted = block.provider.signature, block.provider.encrypted_content
        if signature is not None or encrypted is not None or metadata is not None:
            self._assembler.part_attributes(0, *block.place, None, signature, encrypted, metadata)
