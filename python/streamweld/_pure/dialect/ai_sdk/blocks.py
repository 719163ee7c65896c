"""Decodes text and reasoning blocks of an AI SDK stream.

The opening part, the deltas, and the closing part of a block have the same id, which is unique only within one step.

Blocks have the same form in provider-level parts and in UI message chunks. Providers number blocks within a step, so
the id `0` is reused in the next step. Provider metadata in any of these parts belongs to the whole block: providers
send `anthropic.signature` with an empty delta, and `openai.itemId` and `reasoningEncryptedContent` in the opening and
closing parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamweld._pure.model.delta import Address

if TYPE_CHECKING:
    from streamweld._pure.assemble import Assembler
    from streamweld._pure.assemble.part.text import Channel
    from streamweld._pure.dialect.ai_sdk.part import Provider, TypedPart
    from streamweld._pure.model.delta import ItemKind
    from streamweld._pure.model.output import Output
    from streamweld.events import ReasoningKind


@dataclass(slots=True)
class _Block:
    """The address of a block, and its provider metadata."""

    item: ItemKind
    address: Address
    channel: Channel
    kind: ReasoningKind
    identity: str | None
    provider: Provider
    redacted: bool

    @property
    def target(self) -> tuple[ItemKind, Address, Channel]:
        return self.item, self.address, self.channel


class BlockReader:
    """Decodes the text and reasoning blocks of one stream. `spellings`: the possible names of the member that
    contains the text.
    """

    __slots__ = ("_assembler", "_open", "_out", "_redacted", "_spellings")

    def __init__(self, assembler: Assembler, out: Output, spellings: tuple[str, ...]) -> None:
        self._assembler = assembler
        self._out = out
        self._spellings = spellings
        self._redacted: set[str] = set()  # ids of open reasoning blocks without readable text
        self._open: set[tuple[ItemKind, str]] = set()  # ids of the open blocks

    def forget(self) -> None:
        """Discard all ids, because the next step may reuse them."""
        self._redacted.clear()
        self._open.clear()

    def start(self, part: TypedPart) -> None:
        block = self._block(part)
        if block.redacted and block.identity is not None:
            self._redacted.add(block.identity)
        if block.identity is not None:
            self._open.add((block.item, block.identity))
        self._assembler.part_opened(0, *block.target, block.kind, None, block.provider.metadata)
        self._attributes(block, None)

    def delta(self, part: TypedPart) -> None:
        block = self._block(part)
        text = part.text(*self._spellings)
        if text:
            self._assembler.part_text(0, *block.target, block.kind, text, block.provider.metadata)
        self._attributes(block, block.provider.metadata)

    def end(self, part: TypedPart) -> None:
        block = self._block(part)
        if block.identity is not None:
            if (block.item, block.identity) not in self._open:
                self._out.leave_out("not_opened")  # clients raise at the end of a block that is not open
            self._open.discard((block.item, block.identity))
        self._attributes(block, None)
        self._assembler.part_closed(0, *block.target, block.kind, None, block.provider.metadata)
        self._assembler.item_closed(0, block.item, block.address, None, None)
        if block.identity is not None:
            self._redacted.discard(block.identity)

    def _block(self, part: TypedPart) -> _Block:
        identity, provider = part.identity("id"), part.provider()
        address = Address(item_id=identity, public_id=provider.item_id)
        if not part.kind.startswith("reasoning"):
            return _Block("message", address, "text", "raw", identity, provider, redacted=False)
        redacted = provider.redacted or identity in self._redacted
        kind: ReasoningKind = "redacted" if redacted else "raw"
        return _Block("reasoning", address, "reasoning", kind, identity, provider, redacted=redacted)

    def _attributes(self, block: _Block, metadata: str | None) -> None:
        """Emit the signature, the encrypted content, and the metadata of the block.

        A client must send these values back in a later turn.
        """
        signature = encrypted = None
        if block.item == "reasoning":
            signature, encrypted = block.provider.signature, block.provider.encrypted_content
        if signature is not None or encrypted is not None or metadata is not None:
            self._assembler.part_attributes(0, *block.target, None, signature, encrypted, metadata)
