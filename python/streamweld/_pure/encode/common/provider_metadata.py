"""What only the provider that made it can use again: signatures, encrypted reasoning, ids of items.

It is passed on where the next reader hands it back to that provider, and nowhere else: under the provider's name in the
AI SDK's `providerMetadata`, and from there to the provider's own dialect. Knows these names; knows no frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld._pure.encode.common.writer import compact_json
from streamweld._pure.json.kinds import is_object
from streamweld._spec import load_conversions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld.events import ReasoningDone, TextDone, ToolCall

__all__ = ["is_genuine", "provider_metadata"]

_AI_SDK: Final = ("ai-sdk-parts", "ai-sdk-ui")
# What providers of the AI SDK ask back, inside of their namespace.
_HANDED_BACK: Final = frozenset(
    {"itemId", "signature", "thoughtSignature", "reasoningEncryptedContent", "redactedData"}
)
_SIGNATURE: Final = {"google": "thoughtSignature"}  # all others: `signature`
_ENCRYPTED: Final = {"anthropic": "redactedData"}  # all others: `reasoningEncryptedContent`


def is_genuine(job: EncodeContext, provider: str, metadata: Mapping[str, Any] | None) -> bool:
    """Whether a part comes from that provider, by the word of the AI SDK that read it."""
    return job.source in _AI_SDK and metadata is not None and is_object(metadata.get(provider))


def provider_metadata(job: EncodeContext, event: ReasoningDone | TextDone | ToolCall) -> str | None:
    """The `providerMetadata` of a part; of what is not in it the loss is noted."""
    metadata: Mapping[str, Any] = event.provider_metadata or {}
    if job.source in _AI_SDK:
        kept = {
            name: value
            for name, value in metadata.items()
            if is_object(value) and (job.passed.own or not _HANDED_BACK.isdisjoint(value))
        }
        if len(kept) < len(metadata):
            job.losses.note("metadata")
        return compact_json(kept) if kept else None
    name: str = load_conversions()["provider_names"].get(job.source, job.source or "unknown")
    own = _own(job, name, event)
    signature = metadata.get("thoughtSignature") if name == "google" else None
    if isinstance(signature, str) and signature:
        own.setdefault("thoughtSignature", signature)
    if len(metadata) > isinstance(signature, str):
        job.losses.note("metadata")
    return compact_json({name: own}) if own else None


def _own(job: EncodeContext, name: str, event: ReasoningDone | TextDone | ToolCall) -> dict[str, str]:
    """What a reasoning carries as fields of its own."""
    own: dict[str, str] = {}
    if event.type != "reasoning_done":
        return own
    if event.encrypted_content:
        # OpenAI asks the two back together.
        if job.source == "responses" and event.item_id:
            own["itemId"] = event.item_id
        own[_ENCRYPTED.get(name, "reasoningEncryptedContent")] = event.encrypted_content
    if event.signature:
        own[_SIGNATURE.get(name, "signature")] = event.signature
    return own
