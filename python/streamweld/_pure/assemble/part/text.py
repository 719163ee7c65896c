"""Stores one text, reasoning or refusal part with its annotations and attributes, and creates its events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from streamweld._json import loads_raw
from streamweld.events import (
    ReasoningDelta,
    ReasoningDone,
    ReasoningStarted,
    RefusalDelta,
    RefusalDone,
    RefusalStarted,
    TextDelta,
    TextDone,
    TextStarted,
)

if TYPE_CHECKING:
    from streamweld._pure.assemble.part.object_merge import RawMembers
    from streamweld.events import ReasoningKind

__all__ = ["Channel", "TextPart"]

Channel = Literal["text", "reasoning", "refusal"]


class TextPart:
    """One text, reasoning or refusal part."""

    __slots__ = (
        "annotations",
        "channel",
        "choice",
        "details",
        "encrypted_content",
        "item_id",
        "kind",
        "metadata",
        "open",
        "part",
        "pieces",
        "signature",
        "void",
    )

    def __init__(
        self, part: int, choice: int, channel: Channel, kind: ReasoningKind, item_id: str | None = None
    ) -> None:
        self.part = part
        self.choice = choice
        self.channel: Channel = channel
        self.kind: ReasoningKind = kind  # kind of reasoning; not used in other channels
        self.item_id = item_id
        self.pieces: list[str] = []
        self.annotations: list[str] = []  # the texts of JSON arrays
        self.signature: str | None = None
        self.encrypted_content: str | None = None
        self.details: list[str] = []  # the texts of JSON arrays
        self.metadata: RawMembers | None = None  # the metadata in the closing event
        self.open = True
        self.void = False  # the part was retracted, so it does not belong to the response

    def text(self) -> str:
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""

    def started(self, metadata: str | None) -> TextStarted | ReasoningStarted | RefusalStarted:
        value = None if metadata is None else loads_raw(metadata)
        if self.channel == "text":
            return TextStarted(self.part, self.item_id, choice=self.choice, provider_metadata=value)
        if self.channel == "reasoning":
            return ReasoningStarted(self.part, self.kind, self.item_id, choice=self.choice, provider_metadata=value)
        return RefusalStarted(self.part, choice=self.choice, provider_metadata=value)

    def delta(self, text: str, metadata: str | None) -> TextDelta | ReasoningDelta | RefusalDelta:
        value = None if metadata is None else loads_raw(metadata)
        if self.channel == "text":
            return TextDelta(self.part, text, choice=self.choice, provider_metadata=value)
        if self.channel == "reasoning":
            return ReasoningDelta(self.part, text, choice=self.choice, provider_metadata=value)
        return RefusalDelta(self.part, text, choice=self.choice, provider_metadata=value)

    def done(self) -> TextDone | ReasoningDone | RefusalDone:
        """Return the closing event of the part. If the part is still open, the event contains its current text."""
        metadata = self._metadata()
        if self.channel == "text":
            annotations = tuple(entry for raw in self.annotations for entry in loads_raw(raw))
            return TextDone(self.part, self.text(), annotations, choice=self.choice, provider_metadata=metadata)
        if self.channel == "refusal":
            return RefusalDone(self.part, self.text(), choice=self.choice, provider_metadata=metadata)
        return ReasoningDone(
            self.part,
            self.text(),
            self.kind,
            self.item_id,
            self.signature,
            self.encrypted_content,
            choice=self.choice,
            provider_metadata=metadata,
        )

    def _metadata(self) -> dict[str, Any] | None:
        raw = None if self.metadata is None else self.metadata.text()
        value: dict[str, Any] = {} if raw is None else loads_raw(raw)
        if self.details:
            value["reasoning_details"] = [entry for one in self.details for entry in loads_raw(one)]
            if not value["reasoning_details"]:
                del value["reasoning_details"]
        return value or None
