"""Encodes signatures and encrypted reasoning as opaque text (a carrier) that clients of another dialect send back. Only
the provider that created a signature or encrypted reasoning can use it.

The text is the base64 form of a JSON object that begins with `{"streamweld":1`. A carrier is decoded by
`history/passes/carriers.py`. The carrier contains all of the reasoning, because clients may change or drop the text
next to it. The carrier for the signature of a text part contains the part's offsets in the text of the whole choice, in
characters.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final

from streamweld._pure.encode.common.writer import compact_json, members, quoted
from streamweld._pure.json.kinds import is_object
from streamweld.events import ReasoningDone, ReasoningStarted, TextDone, ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld.events import Event

__all__ = ["CARRYING", "Carriers"]

# Targets that have no member for content that another provider signed or encrypted.
CARRYING: Final = frozenset({"chat", "responses", "anthropic", "gemini"})
_LAST_PART: Final = 2**32 - 1  # carriers are numbered downward from here, unlike the source's parts
_NO_METADATA: Final[Mapping[str, Any]] = {}


class Carriers:
    """Creates the carriers of one stream."""

    __slots__ = ("_ends", "_made", "_target")

    def __init__(self, target: str) -> None:
        self._target = target
        self._made = 0  # number of carriers for signatures of text parts and calls; each is a separate part
        self._ends: dict[int, int] = {}  # choice -> number of characters in its text so far

    def carried(self, source: str, event: Event) -> list[Event] | None:
        """Return the events that replace an event with data that only one provider can use, or None for any other
        event.
        """
        if isinstance(event, ReasoningDone):
            carrier = _of_reasoning(source, event)
            return None if carrier is None else [self._reasoning(event, carrier)]
        if not isinstance(event, TextDone | ToolCall):
            return None
        metadata = event.provider_metadata or _NO_METADATA
        signature = _signature(source, metadata)
        if isinstance(event, TextDone):
            start = self._ends.get(event.choice, 0)
            end = self._ends[event.choice] = start + len(event.text)
            if signature is None:
                return None
            carrier = _text(source, start=str(start), end=str(end), signature=quoted(signature))
            left = None if len(metadata) == 1 else event.provider_metadata
            text = TextDone(event.part, event.text, event.annotations, event.choice, left)
            return [text, *self._alone(event.choice, carrier)]
        if signature is None:
            return None
        carrier = _text(source, call_id=quoted(event.call_id), signature=quoted(signature))
        return [*self._alone(event.choice, carrier), _bare(event) if len(metadata) == 1 else event]

    def _alone(self, choice: int, carrier: str) -> list[Event]:
        """Return the events of a reasoning part that consists only of the carrier."""
        self._made += 1
        part = _LAST_PART - self._made
        bare = ReasoningDone(part, "", "summary", choice=choice)
        return [ReasoningStarted(part, "summary", choice=choice), self._reasoning(bare, carrier)]

    def _reasoning(self, event: ReasoningDone, carrier: str) -> ReasoningDone:
        encrypts = self._target == "responses" or (self._target == "anthropic" and not event.text)
        return ReasoningDone(
            event.part,
            event.text,
            event.kind if event.text else "summary",
            event.item_id,
            signature=None if encrypts else carrier,
            encrypted_content=carrier if encrypts else None,
            choice=event.choice,
        )


def _bare(call: ToolCall) -> ToolCall:
    """Return the call without its metadata."""
    return ToolCall(
        *(call.part, call.call_id, call.name, call.arguments, call.state),
        item_id=call.item_id,
        reason=call.reason,
        raw_arguments=call.raw_arguments,
        provider_executed=call.provider_executed,
        aliases=call.aliases,
        custom=call.custom,
        origin=call.origin,
        raw_text=call.raw_text,
        choice=call.choice,
    )


def _of_reasoning(source: str, event: ReasoningDone) -> str | None:
    if not event.signature and not event.encrypted_content:
        return None
    return _text(
        source,
        kind=quoted(event.kind),
        text=quoted(event.text),
        item_id=_quoted(event.item_id),
        signature=_quoted(event.signature),
        encrypted_content=_quoted(event.encrypted_content),
        metadata=compact_json(event.provider_metadata) if event.provider_metadata is not None else None,
    )


def _signature(source: str, metadata: Mapping[str, Any]) -> str | None:
    found = metadata.get("thoughtSignature") if source == "gemini" else None
    if source == "chat":
        extra = metadata.get("extra_content")
        google = extra.get("google") if is_object(extra) else None
        found = google.get("thought_signature") if is_object(google) else None
    return found if isinstance(found, str) and found else None


def _quoted(text: str | None) -> str | None:
    return quoted(text) if text else None


def _text(source: str, **fields: str | None) -> str:
    made = members(streamweld="1", **{"from": quoted(source)}, **fields)
    return b64encode(made.encode()).decode()
