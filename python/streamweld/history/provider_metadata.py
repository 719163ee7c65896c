"""Read and write the provider metadata of AI SDK parts: item id, signature and encrypted content by provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

__all__ = [
    "ProviderMetadata",
    "cache_mark",
    "image_detail",
    "options_beside",
    "read_metadata",
    "text_signature",
    "write_detail",
    "write_metadata",
]


class ProviderMetadata(NamedTuple):
    """The issuer, item id, signature and encrypted content of a part."""

    issuer: str | None
    item_id: str | None
    signature: str | None
    encrypted: str | None


_METADATA: Final = ("itemId", "signature", "thoughtSignature", "reasoningEncryptedContent", "redactedData")
# The options that mark a cached prefix: https://ai-sdk.dev/providers/ai-sdk-providers/anthropic#cache-control,
# https://ai-sdk.dev/providers/ai-sdk-providers/amazon-bedrock#cache-points
_MARKS: Final = (
    ("anthropic", "cacheControl"),
    ("anthropic", "cache_control"),
    ("openrouter", "cacheControl"),
    ("bedrock", "cachePoint"),
)
# The provider and the option that hold an image's level of detail: https://ai-sdk.dev/providers/ai-sdk-providers/openai
_DETAIL: Final = ("openai", "imageDetail")
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


def options_beside(given: Any, read: ProviderMetadata) -> dict[str, Any]:
    """Return the options that a part has in addition to the metadata that was read; empty if there are none.

    >>> options_beside({"google": {"thoughtSignature": "s", "x": 1}}, ProviderMetadata("google", None, "s", None))
    {'google': {'x': 1}}
    """
    if not isinstance(given, Mapping):
        return {}
    known = [value for value in read[1:] if value is not None]
    made: dict[str, Any] = {}
    for issuer, raw in cast("Mapping[str, Any]", given).items():
        if not isinstance(raw, Mapping):
            made |= {} if raw is None else {issuer: raw}
            continue
        sent = cast("Mapping[str, Any]", raw)
        left = {
            name: value
            for name, value in sent.items()
            if value is not None and not (name in _METADATA and value in known)
        }
        if left:
            made[issuer] = left
    return made


def cache_mark(given: Any) -> tuple[Mapping[str, Any], Mapping[str, Any], tuple[str, str]] | None:
    """Return the mark of a cached prefix in the options of a part, the other options, and the path of the mark.

    The mark is in the form of Anthropic's `cache_control`. Return None if there is no mark.

    >>> cache_mark({"bedrock": {"cachePoint": {"type": "default"}, "x": 1}})
    ({'type': 'ephemeral'}, {'bedrock': {'x': 1}}, ('bedrock', 'cachePoint'))
    """
    options: Mapping[str, Any] = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}
    for issuer, name in _MARKS:
        sent = cast("Any", options.get(issuer))
        mark = cast("Mapping[str, Any]", sent).get(name) if isinstance(sent, Mapping) else None
        if not isinstance(mark, Mapping):
            continue
        own = {key: value for key, value in cast("Mapping[str, Any]", sent).items() if key != name}
        others = {key: value for key, value in options.items() if key != issuer}
        rest = {**others, issuer: own} if own else others
        return {**cast("Mapping[str, Any]", mark), "type": "ephemeral"}, rest, (issuer, name)
    return None


def image_detail(given: Any) -> tuple[str, Mapping[str, Any]] | None:
    """Return an image's level of detail, or None, and the options of the part without it.

    >>> image_detail({"openai": {"imageDetail": "low"}, "x": {"y": 1}})
    ('low', {'x': {'y': 1}})
    """
    issuer, name = _DETAIL
    options: Mapping[str, Any] = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}
    sent = cast("Any", options.get(issuer))
    level = _word(cast("Mapping[str, Any]", sent), name) if isinstance(sent, Mapping) else None
    if level is None:
        return None
    own = {key: value for key, value in cast("Mapping[str, Any]", sent).items() if key != name}
    others = {key: value for key, value in options.items() if key != issuer}
    return level, {**others, issuer: own} if own else others


def write_detail(detail: str | None) -> dict[str, Any]:
    """Return the options for an image with this level of detail. The default, `auto`, needs no option."""
    issuer, name = _DETAIL
    return {} if detail in (None, "auto") else {issuer: {name: detail}}


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
