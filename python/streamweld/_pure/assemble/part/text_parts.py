"""The text, reasoning and refusal parts of one choice: opens, extends and closes them, and removes repeated text.

Only one part is open at a time. The open part closes when a piece for another channel or a tool call arrives. Parts
that the stream opens and closes explicitly are stored here too, in the order of their numbers, but `item_text` handles
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.assemble.part.content_mode import ContentMode
from streamweld._pure.assemble.part.surrogates import Joiner
from streamweld._pure.assemble.part.text import Channel, TextPart
from streamweld._pure.assemble.rule_context import byte_length
from streamweld._pure.json.scanner import has_lone_surrogate, replace_lone_surrogates, split_halves

if TYPE_CHECKING:
    from streamweld._pure.assemble.rule_context import RuleContext
    from streamweld.events import ReasoningKind

__all__ = ["Channel", "TextParts"]


class TextParts:
    """The text, reasoning and refusal parts of one choice."""

    __slots__ = (
        "_annotations",
        "_attributes",
        "_choice",
        "_joiners",
        "_mode",
        "_lengths",
        "_shared",
        "current",
        "parts",
    )

    def __init__(self, choice: int, shared: RuleContext) -> None:
        self._choice = choice
        self._shared = shared
        self._mode = _content_mode(shared)
        self._joiners: dict[Channel, Joiner] = {}
        self._annotations: list[str] = []  # annotations for the next text part
        self._attributes: list[tuple[str | None, str | None, str | None]] = []  # attributes for the next reasoning part
        self.current: TextPart | None = None
        self.parts: list[TextPart] = []
        self._lengths: dict[Channel, _ChannelLength] = {}

    def push(
        self, channel: Channel, text: str, metadata: str | None, kind: ReasoningKind = "raw", *, raw: bool = False
    ) -> str | None:
        """Add one piece of text, except for earlier text that the piece repeats (AM8). Return the metadata if no event
        was emitted for the piece.

        `raw`: the piece is known to be new, so it is not checked for repeated text.
        """
        lone = False
        if channel == "text" and self._mode is not None and not raw:
            low, inner, high = split_halves(text)
            lone = has_lone_surrogate(inner)
            text = self._by_mode(self._mode, low + replace_lone_surrogates(inner) + high)
        joiner = self._joiners.get(channel)
        if joiner is None:
            joiner = self._joiners[channel] = Joiner()
        text = joiner.push(text)
        if joiner.divides:
            self._shared.out.mark_misread("half_character")
        if joiner.lone or lone:
            self._shared.out.diagnose("lone_surrogate", self.current.part if self.current is not None else None)
        if not text:
            return metadata
        self._append(channel, kind, text, metadata)
        return None

    @property
    def has_pending(self) -> bool:
        """True if half of a surrogate pair is held back."""
        return any(joiner.held for joiner in self._joiners.values())

    def close_open(self) -> None:
        """Close the open part, if any, because other content arrives."""
        part = self.current
        if part is None:
            return
        self._flush_joiner(part)
        self._close(part)

    def open_parts(self) -> list[int]:
        return [part.part for part in self.parts if part.open]

    def restates(self, channel: Channel, text: str) -> bool:
        """Return True if `text` equals all earlier text of a channel, and the earlier text arrived in at least two
        pieces (AM9).
        """
        length = self._lengths.get(channel)
        return (
            length is not None
            and length.pieces > 1
            and length.length == len(text)
            and self.channel_text(channel) == text
        )

    def length(self, channel: Channel) -> int:
        """Return the number of characters received in a channel."""
        length = self._lengths.get(channel)
        return 0 if length is None else length.length

    def channel_text(self, channel: Channel) -> str:
        """Return all text received in a channel (text, reasoning or refusal). Takes time proportional to the length of
        that text.
        """
        return "".join([part.text() for part in self.parts if part.channel == channel and not part.void])

    def annotate(self, raw: str) -> None:
        self._shared.spend_text(byte_length(raw))
        self._shared.spend_entries(1)
        if self.current is not None and self.current.channel == "text":
            self.current.annotations.append(raw)
        else:
            self._annotations.append(raw)

    def attribute(self, signature: str | None, encrypted_content: str | None, details: str | None) -> None:
        self._shared.spend_text(byte_length((signature or "") + (encrypted_content or "") + (details or "")))
        self._shared.spend_entries(1)
        if self.current is not None and self.current.channel == "reasoning":
            _attach(self.current, signature, encrypted_content, details)
        else:
            self._attributes.append((signature, encrypted_content, details))

    def end_reasoning(self, signature: str | None, encrypted_content: str | None) -> None:
        """Close the open reasoning part with these attributes, or add a part that has the attributes but no text."""
        part = self.current
        if part is None or part.channel != "reasoning" or encrypted_content is not None:
            self.close_open()
        self.attribute(signature, encrypted_content, None)
        kind: ReasoningKind = "thinking" if encrypted_content is None else "redacted"
        part = self.current or self._open("reasoning", kind, None)
        part.kind = kind
        self.close_open()

    def correct(self, channel: Channel, text: str) -> bool:
        """Replace the text of a channel with the text of a complete message.

        Return False and change nothing unless the channel has only one part, which is open.
        """
        part, length = self.current, self._lengths.get(channel)
        if part is None or length is None or part.channel != channel or length.parts > 1:
            return False
        self._shared.spend_text(byte_length(text))
        part.pieces = [text]
        length.length = len(text)
        return True

    def retype(self) -> None:
        """Turn the open text part into reasoning: close it with empty text, and emit its text in a new reasoning
        part.
        """
        part = self.current
        if part is None or part.channel != "text":
            return
        self._flush_joiner(part)
        text = part.text()
        part.pieces = []
        part.void = True
        self._close(part)
        length = self._lengths["text"]
        length.length -= len(text)
        length.parts -= 1
        self._append("reasoning", "raw", text, None)

    def take_back(self) -> None:
        """AM10: discard all parts. An open part closes with empty text."""
        part = self.current
        if part is not None:
            part.pieces = []
            self._close(part)
        self.parts.clear()
        self._lengths = {}
        self._mode = _content_mode(self._shared)
        self._joiners = {}
        self._annotations = []
        self._attributes = []

    def take_back_from(self, first: int) -> None:
        """Mark the parts with number `first` or higher as retracted, so that they do not belong to the response."""
        for one in reversed(self.parts):
            if one.part < first:
                break
            one.void = True

    def end(self) -> dict[str, str]:
        """Close the open part at the end of the choice. A held-back half of a surrogate pair is emitted as U+FFFD, even
        if no part is open.

        Return the annotations and details that no part contains, as member names and texts of JSON arrays.
        """
        self.close_open()
        for channel in _CHANNELS:
            joiner = self._joiners.get(channel)
            if joiner is not None and joiner.held:
                self._shared.out.diagnose("lone_surrogate")
                self._append(channel, "raw", joiner.flush(), None)
        self.close_open()
        left: dict[str, str] = {}
        if self._attributes:
            details = [one[2] for one in self._attributes if one[2] is not None]
            if any(not self._was_attached(signature, encrypted) for signature, encrypted, _ in self._attributes):
                # Clients must send signed or encrypted reasoning back in the next turn, even without text.
                self._close(self._open("reasoning", "raw", None))
            elif details and not any(part.details for part in self.parts):
                left["reasoning_details"] = _joined(details)
            self._attributes = []
        if self._annotations:
            left["annotations"] = _joined(self._annotations)
            self._annotations = []
        return left

    def _was_attached(self, signature: str | None, encrypted_content: str | None) -> bool:
        """Return True if the parts already contain this signature and encrypted content, because a complete message
        repeated them.
        """
        if signature is not None and not any(part.signature == signature for part in self.parts):
            return False
        return encrypted_content is None or any(part.encrypted_content == encrypted_content for part in self.parts)

    def _by_mode(self, mode: ContentMode, text: str) -> str:
        part = None if self.current is None else self.current.part
        if mode.is_doubtful(text):
            self._shared.out.diagnose("ambiguous_cumulative", part, "appended")
        new = mode.read(text)
        if len(new) < len(text):
            self._shared.out.mark_misread("text_again")
        if len(new) < len(text) and not mode.reported:
            mode.reported = True
            self._shared.out.diagnose("content_cumulative", part)
        return new

    def _append(self, channel: Channel, kind: ReasoningKind, text: str, metadata: str | None) -> None:
        self._shared.spend_text(byte_length(text))
        part = self.current
        if part is None or part.channel != channel:
            self.close_open()
            part = self._open(channel, kind, metadata)
            metadata = None
        part.pieces.append(text)
        length = self._lengths[channel]
        length.pieces += 1
        length.length += len(text)
        out = self._shared.out
        if not out.silent:
            out.emit(part.delta(text, metadata))

    def _open(self, channel: Channel, kind: ReasoningKind, metadata: str | None) -> TextPart:
        part = TextPart(self._shared.next_part(), self._choice, channel, kind)
        self.parts.append(part)
        self.current = part
        length = self._lengths.get(channel)
        if length is None:
            length = self._lengths[channel] = _ChannelLength()
        length.parts += 1
        if channel == "text":
            part.annotations, self._annotations = self._annotations, []
        elif channel == "reasoning":
            for signature, encrypted_content, details in self._attributes:
                _attach(part, signature, encrypted_content, details)
            self._attributes = []
        out = self._shared.out
        if not out.silent:
            out.address = (None, None, None)
            out.emit(part.started(metadata))
        return part

    def _close(self, part: TextPart) -> None:
        part.open = False
        self.current = None
        if not self._shared.out.silent:
            self._shared.out.emit(part.done())

    def _flush_joiner(self, part: TextPart) -> None:
        joiner = self._joiners.get(part.channel)
        if joiner is not None and joiner.held:
            text = joiner.flush()
            self._shared.out.diagnose("lone_surrogate", part.part)
            self._append(part.channel, part.kind, text, None)


_CHANNELS: tuple[Channel, ...] = ("text", "reasoning", "refusal")


class _ChannelLength:
    """The amount of text received in one channel (text, reasoning or refusal). Texts of different lengths need not be
    compared.
    """

    __slots__ = ("length", "parts", "pieces")

    def __init__(self) -> None:
        self.parts = 0
        self.pieces = 0
        self.length = 0


def _content_mode(shared: RuleContext) -> ContentMode | None:
    mode = shared.settings.switches.content_mode
    return None if mode == "delta" else ContentMode(mode)


def _attach(part: TextPart, signature: str | None, encrypted_content: str | None, details: str | None) -> None:
    if signature is not None:
        part.signature = signature
    if encrypted_content is not None:
        part.encrypted_content = encrypted_content
    if details is not None:
        part.details.append(details)


def _joined(arrays: list[str]) -> str:
    """Join the texts of several JSON arrays into the text of one array."""
    insides = [raw.strip()[1:-1].strip() for raw in arrays]
    return "[" + ",".join([inside for inside in insides if inside]) + "]"
