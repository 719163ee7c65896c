"""Parts and calls that the wire itself opens and closes: the wire deltas of every dialect but Chat.

An item is what the wire addresses: a Responses output item, an Anthropic content block, an AI SDK id. It holds one call
or text-like parts. Every method is one wire delta; `Assembler` inherits them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamweld._pure.assemble.textual import Channel
    from streamweld._pure.delta import Address, ItemKind, Usage
    from streamweld.events import ReasoningKind

__all__ = ["ItemSurface"]


class ItemSurface:
    """The half of the assembler that knows items. `metadata` is the text of a JSON object, everywhere."""

    __slots__ = ()

    def item_opened(self, choice: int, kind: ItemKind, address: Address) -> None:
        """An item that has no part yet."""
        raise NotImplementedError

    def part_opened(
        self,
        choice: int,
        kind: ItemKind,
        address: Address,
        channel: Channel,
        reasoning_kind: ReasoningKind,
        text: str | None,
        metadata: str | None,
    ) -> None:
        """A part opens. `text`: what the opening carries already, a snapshot."""
        raise NotImplementedError

    def part_text(
        self,
        choice: int,
        kind: ItemKind,
        address: Address,
        channel: Channel,
        reasoning_kind: ReasoningKind,
        text: str,
        metadata: str | None,
    ) -> None:
        """A piece of a part's text; opens what is not known."""
        raise NotImplementedError

    def part_value(
        self,
        choice: int,
        kind: ItemKind,
        address: Address,
        channel: Channel,
        reasoning_kind: ReasoningKind,
        text: str | None,
    ) -> None:
        """The whole text of a part, said with authority; it is not closed by that."""
        raise NotImplementedError

    def part_attributes(
        self,
        choice: int,
        kind: ItemKind,
        address: Address,
        channel: Channel,
        annotations: str | None,
        signature: str | None,
        encrypted_content: str | None,
        metadata: str | None,
    ) -> None:
        """What hangs on a part. `annotations`: the text of a JSON array."""
        raise NotImplementedError

    def part_closed(
        self,
        choice: int,
        kind: ItemKind,
        address: Address,
        channel: Channel,
        reasoning_kind: ReasoningKind,
        text: str | None,
        metadata: str | None,
    ) -> None:
        """A part is whole. `text` None: as it was streamed."""
        raise NotImplementedError

    def item_closed(
        self,
        choice: int,
        kind: ItemKind | None,
        address: Address,
        encrypted_content: str | None,
        metadata: str | None,
    ) -> None:
        """An item is whole, with all that is in it. `kind` None: whatever is open there."""
        raise NotImplementedError

    def call_opened(
        self,
        choice: int,
        address: Address,
        name: str | None,
        arguments: str | None,
        provider_executed: bool,
        custom: bool,
        metadata: str | None,
    ) -> None:
        """A call is announced. `arguments`: what the opening carries already, a snapshot."""
        raise NotImplementedError

    def call_text(self, choice: int, address: Address, text: str, name: str | None, metadata: str | None) -> None:
        """A piece of a call's arguments."""
        raise NotImplementedError

    def call_value(self, choice: int, address: Address, arguments: str | None) -> None:
        """The whole arguments of a call, said with authority; it is not closed by that."""
        raise NotImplementedError

    def call_closed(
        self,
        choice: int,
        address: Address,
        name: str | None,
        arguments: str | None,
        provider_executed: bool,
        custom: bool,
        metadata: str | None,
    ) -> None:
        """A call is whole; it is created if nobody announced it. `arguments` None: as they were streamed."""
        raise NotImplementedError

    def restate_part(
        self,
        choice: int,
        kind: ItemKind,
        address: Address,
        channel: Channel,
        reasoning_kind: ReasoningKind,
        text: str | None,
        metadata: str | None,
    ) -> None:
        """A terminal list tells a part again: what is missing is made, what is open closes, nothing is appended."""
        raise NotImplementedError

    def restate_call(
        self,
        choice: int,
        address: Address,
        name: str | None,
        arguments: str | None,
        provider_executed: bool,
        custom: bool,
        metadata: str | None,
    ) -> None:
        """A terminal list tells a call again."""
        raise NotImplementedError

    def result(self, choice: int, call_id: str, output: str, is_error: bool, metadata: str | None) -> None:
        """What a tool gave that the provider ran. `output`: JSON text. The same call again is the same part."""
        raise NotImplementedError

    def source(
        self, choice: int, url: str | None, title: str | None, document: str | None, metadata: str | None
    ) -> None:
        """A source of the answer. `document`: the text of a JSON object."""
        raise NotImplementedError

    def kept_unknown(self, choice: int, event: str | None, raw: bytes) -> None:
        """An item that nobody models but that a later turn must hand back."""
        raise NotImplementedError

    def merge_usage(self, usage: Usage) -> None:
        """Token counts, field by field: the last that says something holds; they are never summed."""
        raise NotImplementedError

    def forget_addresses(self, choice: int) -> None:
        """Ids and indexes may be used again for other items."""
        raise NotImplementedError

    def speak(self, dialect: str) -> None:
        """Whose finish table holds, and whether ids are optional there."""
        raise NotImplementedError
