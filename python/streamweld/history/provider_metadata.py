"""Read and write the provider metadata of AI SDK parts: item id, signature and encrypted content by provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

__all__ = ["ProviderMetadata", "read_metadata", "text_signature", "write_metadata"]


class ProviderMetadata(NamedTuple):
    """The issuer of a part, with item id, signature and encrypted content."""

    issuer: str | None
    item_id: str | None
    signature: str | None
    encrypted: str | None


def read_metadata(told: Any) -> ProviderMetadata:
    """Return the item id, signature and encrypted content of the first provider that has any of them.

    Examples of metadata: `{"openai": {"itemId": …, "reasoningEncryptedContent": …}}`,
    `{"anthropic": {"signature": …}}`.
    """
    if isinstance(told, Mapping):
        for issuer, raw in cast("Mapping[str, Any]", told).items():
            if not isinstance(raw, Mapping):
                continue
            said = cast("Mapping[str, Any]", raw)
            item_id = _word(said, "itemId")
            signature = _word(said, "signature") or _word(said, "thoughtSignature")
            encrypted = _word(said, "reasoningEncryptedContent") or _word(said, "redactedData")
            if item_id or signature or encrypted:
                return ProviderMetadata(str(issuer), item_id, signature, encrypted)
    return ProviderMetadata(None, None, None, None)


def text_signature(told: Any) -> tuple[str | None, bool]:
    """Return Google's signature of a text, and whether the metadata contains only that signature."""
    found = read_metadata(told)
    signed = found.issuer in ("google", "vertex") and found.signature is not None
    return (found.signature, told == {found.issuer: {"thoughtSignature": found.signature}}) if signed else (None, False)


def _word(said: Mapping[str, Any], name: str) -> str | None:
    value = said.get(name)
    return value if isinstance(value, str) and value else None


def write_metadata(
    issuer: str | None, item_id: str | None, signature: str | None, encrypted: str | None
) -> dict[str, Any]:
    """Return provider metadata with these values; empty if there are none."""
    said: dict[str, Any] = {}
    if item_id:
        said["itemId"] = item_id
    if signature:
        said["thoughtSignature" if issuer in ("google", "vertex") else "signature"] = signature
    if encrypted:
        said["redactedData" if issuer in ("anthropic", "bedrock") else "reasoningEncryptedContent"] = encrypted
    return {issuer or "unknown": said} if said else {}
