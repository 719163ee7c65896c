"""Read and write the provider metadata of AI SDK parts: item id, signature and encrypted content by provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

__all__ = ["ProviderMetadata", "read_metadata", "text_signature", "write_metadata"]


class ProviderMetadata(NamedTuple):
    """The issuer, item id, signature and encrypted content of a part."""

    issuer: str | None
    item_id: str | None
    signature: str | None
    encrypted: str | None


_NOTHING: Final = ProviderMetadata(None, None, None, None)


def read_metadata(given: Any) -> ProviderMetadata:
    """Return the item id, signature and encrypted content of the first provider that sent any of them.

    Examples of metadata: `{"openai": {"itemId": …, "reasoningEncryptedContent": …}}`,
    `{"anthropic": {"signature": …}}`.
    """
    if given is not None and isinstance(given, Mapping):
        for issuer, raw in cast("Mapping[str, Any]", given).items():
            if not isinstance(raw, Mapping):
                continue
            sent = cast("Mapping[str, Any]", raw)
            item_id = _word(sent, "itemId")
            signature = _word(sent, "signature") or _word(sent, "thoughtSignature")
            encrypted = _word(sent, "reasoningEncryptedContent") or _word(sent, "redactedData")
            if item_id or signature or encrypted:
                return ProviderMetadata(str(issuer), item_id, signature, encrypted)
    return _NOTHING


def text_signature(given: Any) -> tuple[str | None, bool]:
    """Return Google's signature for a text part, and whether the signature is the only value in the metadata."""
    if given is None:
        return None, False
    found = read_metadata(given)
    signed = found.issuer in ("google", "vertex") and found.signature is not None
    return (
        (found.signature, given == {found.issuer: {"thoughtSignature": found.signature}}) if signed else (None, False)
    )


def _word(sent: Mapping[str, Any], name: str) -> str | None:
    value = sent.get(name)
    return value if isinstance(value, str) and value else None


def write_metadata(
    issuer: str | None, item_id: str | None, signature: str | None, encrypted: str | None
) -> dict[str, Any]:
    """Return provider metadata with these values, or an empty mapping if no value is set."""
    sent: dict[str, Any] = {}
    if item_id:
        sent["itemId"] = item_id
    if signature:
        sent["thoughtSignature" if issuer in ("google", "vertex") else "signature"] = signature
    if encrypted:
        sent["redactedData" if issuer in ("anthropic", "bedrock") else "reasoningEncryptedContent"] = encrypted
    return {issuer or "unknown": sent} if sent else {}
