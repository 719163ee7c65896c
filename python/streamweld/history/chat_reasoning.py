"""Read and write signed reasoning on Chat Completions messages.

LiteLLM puts Anthropic's blocks into `thinking_blocks` (https://docs.litellm.ai/docs/reasoning_content). OpenRouter and
MiniMax list texts, summaries, signatures and encrypted reasoning in `reasoning_details`
(https://openrouter.ai/docs/use-cases/reasoning-tokens); the `format` of each detail identifies the vendor that issued
it. Google's endpoint puts the signature of a call into its `extra_content`
(https://ai.google.dev/gemini-api/docs/thought-signatures).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streamweld.history.model import members_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streamweld.history.model import Call, Reasoning

__all__ = [
    "DETAILS",
    "EXTRA_CONTENT",
    "ISSUERS",
    "THINKING_BLOCKS",
    "call_signature",
    "detailed_proof",
    "is_only_signature",
    "whole_entries",
    "write_details",
]

Json: TypeAlias = Mapping[str, Any]
DETAILS: Final = "reasoning_details"
THINKING_BLOCKS: Final = "thinking_blocks"
EXTRA_CONTENT: Final = "extra_content"
ISSUERS: Final = {
    "anthropic-claude-v1": "anthropic",
    "openai-responses-v1": "openai",
    "azure-openai-responses-v1": "azure",
    "xai-responses-v1": "xai",
    "google-gemini-v1": "google",
    "MiniMax-response-v1": "minimax",
}
_FORMATS: Final[Mapping[str | None, str]] = {
    **{issuer: name for name, issuer in ISSUERS.items()},
    "bedrock": "anthropic-claude-v1",
    "vertex": "google-gemini-v1",
}
_UNKNOWN: Final = "unknown"
_SUMMARIZING: Final = frozenset({"openai", "azure", "xai"})  # vendors that send summaries, which have no signature
_FRAGMENTS: Final = {"reasoning.text": "text", "reasoning.summary": "summary"}


def call_signature(entry: Json) -> str | None:
    """Return the signature that Google's endpoint added to a call, or None."""
    found = members_of(members_of(entry.get(EXTRA_CONTENT)).get("google")).get("thought_signature")
    return found if isinstance(found, str) and found else None


def is_only_signature(entry: Json) -> bool:
    """Return whether the `extra_content` of a call contains nothing except the signature."""
    signature = call_signature(entry)
    return signature is not None and entry[EXTRA_CONTENT] == {"google": {"thought_signature": signature}}


def whole_entries(entries: Sequence[Json]) -> list[tuple[int, Json]]:
    """Join the fragments of streamed details. Return each complete detail with the index of its first fragment."""
    made: list[tuple[int, Json]] = []
    texts: list[str] = []
    for n, entry in enumerate(entries):
        name = _FRAGMENTS.get(str(entry.get("type")))
        last = made[-1][1] if made else {}
        if name is not None and made and _continues(entry, last):
            texts.append(str(entry.get(name) or ""))
            sent = {key: value for key, value in entry.items() if value is not None and key != name}
            made[-1] = (made[-1][0], {**last, **sent})
            continue
        _close(made, texts)
        made.append((n, entry))
    _close(made, texts)
    return made


def _continues(entry: Json, last: Json) -> bool:
    index = entry.get("index")
    same = index is not None and index == last.get("index") and entry.get("type") == last.get("type")
    return same and all(entry.get(name) in (None, last.get(name)) for name in ("id", "format"))


def _close(made: list[tuple[int, Json]], texts: list[str]) -> None:
    """Append the collected fragment texts to the last detail, and clear them."""
    if texts:
        n, entry = made[-1]
        name = _FRAGMENTS[str(entry.get("type"))]
        made[-1] = (n, {**entry, name: "".join((str(entry.get(name) or ""), *texts))})
        texts.clear()


def write_details(thoughts: Iterable[Reasoning], calls: Iterable[Call], *, every: bool = False) -> list[Any]:
    """Return the elements of `reasoning_details`, or an empty list if no reasoning is signed or encrypted.

    `every`: also write plain reasoning, because the target has no other member for it.
    """
    given = list(thoughts)
    signed = [call for call in calls if call.signature]
    if not every and not signed and not any(part.signature or part.encrypted for part in given):
        return []
    made: list[Any] = []
    for part in given:
        made += _entries(part)
    made += [
        {"type": "reasoning.encrypted", "data": call.signature, "id": call.call_id, "format": "google-gemini-v1"}
        for call in signed
    ]
    return [entry if "index" in entry else {**entry, "index": n} for n, entry in enumerate(made)]


def detailed_proof(part: Reasoning) -> tuple[str, ...]:
    """Return which proofs (`signature`, `encrypted`) of a reasoning part `write_details` can write."""
    return ("encrypted",) if part.issuer in _SUMMARIZING and not _has_details(part) else ("signature", "encrypted")


def _has_details(part: Reasoning) -> bool:
    """Return whether the details were read from the source and can be reused."""
    return part.member == DETAILS and not part.touched


def _entries(part: Reasoning) -> list[Any]:
    if _has_details(part):
        return list(part.raw)
    head = {"format": _FORMATS.get(part.issuer, _UNKNOWN), **({"id": part.item_id} if part.item_id else {})}
    if part.issuer in _SUMMARIZING:
        made: list[Any] = [{"type": "reasoning.summary", "summary": text, **head} for text in part.segments]
    else:
        signature = {"signature": part.signature} if part.signature else {}
        texts = [text for text in part.segments if text] or ([""] if part.signature else [])
        made = [{"type": "reasoning.text", "text": text, **head} for text in texts]
        if made:
            made[-1] |= signature
    if part.encrypted:
        made.append({"type": "reasoning.encrypted", "data": part.encrypted, **head})
    return made
