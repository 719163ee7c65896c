"""Writes metadata that only its provider can use, such as signatures, encrypted reasoning and item ids.

This metadata is written only to a field that a client sends back to the same provider: `providerMetadata` of the AI
SDK, under the provider's name. When an AI SDK stream is converted to the provider's own dialect, the metadata is
restored from `providerMetadata`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld._pure.encode.common.writer import compact_json
from streamweld._pure.json.kinds import is_object
from streamweld._spec import load_conversions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld.events import ReasoningDone, TextDone, TextStarted, ToolCall

__all__ = ["comes_with_text_end", "is_genuine", "provider_metadata"]

_PHASE: Final = "phase"  # member of a message of OpenAI; clients must send it back with the message
_AI_SDK: Final = ("ai-sdk-parts", "ai-sdk-ui")
# Members of `providerMetadata` that the provider requires in a later turn.
_HANDED_BACK: Final = frozenset(
    {"itemId", "signature", "thoughtSignature", "reasoningEncryptedContent", "redactedData"}
)
_SIGNATURE: Final = {"google": "thoughtSignature"}  # all other providers use `signature`
_ENCRYPTED: Final = {"anthropic": "redactedData"}  # all other providers use `reasoningEncryptedContent`


def is_genuine(context: EncodeContext, provider: str, metadata: Mapping[str, Any] | None) -> bool:
    """Return True if an AI SDK part has `providerMetadata` of this provider, which shows that the part came from this
    provider.
    """
    return context.source in _AI_SDK and metadata is not None and is_object(metadata.get(provider))


def provider_metadata(context: EncodeContext, event: ReasoningDone | TextDone | ToolCall) -> str | None:
    """Return the members of a part's metadata that belong in `providerMetadata`, as JSON, and record a loss for all
    others.
    """
    metadata: Mapping[str, Any] = event.provider_metadata or {}
    if context.source in _AI_SDK:
        kept = {
            name: value
            for name, value in metadata.items()
            if is_object(value) and (context.passed.own or not _HANDED_BACK.isdisjoint(value))
        }
        if len(kept) < len(metadata):
            context.losses.note("metadata")
        return compact_json(kept) if kept else None
    name: str = load_conversions()["provider_names"].get(context.source, context.source or "unknown")
    own = _own(context, name, event)
    signature = metadata.get("thoughtSignature") if name == "google" else None
    if isinstance(signature, str) and signature:
        own.setdefault("thoughtSignature", signature)
    phase = metadata.get(_PHASE) if context.source == "responses" and event.type == "text_done" else None
    if isinstance(phase, str):
        own[_PHASE] = phase
    if len(metadata) > isinstance(signature, str) + isinstance(phase, str):
        context.losses.note("metadata")
    return compact_json({name: own}) if own else None


def comes_with_text_end(context: EncodeContext, event: TextStarted) -> bool:
    """Return True if a text's start event has only metadata that is written at the end of the text."""
    metadata = event.provider_metadata or {}
    return context.source == "responses" and metadata.keys() == {_PHASE} and isinstance(metadata[_PHASE], str)


def _own(context: EncodeContext, name: str, event: ReasoningDone | TextDone | ToolCall) -> dict[str, str]:
    """Return the content of a reasoning part's closing event, under the names that the provider's namespace uses."""
    own: dict[str, str] = {}
    if event.type != "reasoning_done":
        return own
    if event.encrypted_content:
        # OpenAI requires that the encrypted content and the item id be sent back together.
        if context.source == "responses" and event.item_id:
            own["itemId"] = event.item_id
        own[_ENCRYPTED.get(name, "reasoningEncryptedContent")] = event.encrypted_content
    if event.signature:
        own[_SIGNATURE.get(name, "signature")] = event.signature
    return own
