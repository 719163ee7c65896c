"""Read and write signed reasoning on Chat Completions messages.

LiteLLM puts Anthropic's blocks into `thinking_blocks` (https://docs.litellm.ai/docs/reasoning_content). OpenRouter and
MiniMax list texts, summaries, signatures and encrypted reasoning in `reasoning_details`
(https://openrouter.ai/docs/use-cases/reasoning-tokens); the `format` of each detail identifies the vendor that issued
it. Google's endpoint puts the signature of a call, or of the message's text, into `extra_content`
(https://ai.google.dev/gemini-api/docs/thought-signatures). LiteLLM puts the signature of a call into the
`provider_specific_fields` of the call, and lists the signatures of all parts in the `provider_specific_fields` of the
message (https://docs.litellm.ai/blog/gemini_3). LiteLLM puts the reasoning items of the Responses API into
`reasoning_items` (https://github.com/BerriAI/litellm/pull/24690).

A target accepts one of these members if the constraint `members` of its profile lists the member.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streamweld.history.model import members_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from streamweld.history.model import Call, Reasoning

__all__ = [
    "DETAILS",
    "EXTRA_CONTENT",
    "PROVIDER_FIELDS",
    "REASONING_ITEMS",
    "SIGNATURE_MEMBERS",
    "THINKING_BLOCKS",
    "call_signature",
    "detailed_proof",
    "holds_only",
    "is_in_place",
    "issuer_of",
    "lists_one_text",
    "member_signature",
    "reasoning_member",
    "signature_member",
    "signature_value",
    "text_signature_member",
    "text_signatures",
    "whole_entries",
    "write_details",
]

Json: TypeAlias = Mapping[str, Any]
DETAILS: Final = "reasoning_details"
THINKING_BLOCKS: Final = "thinking_blocks"
REASONING_ITEMS: Final = "reasoning_items"
EXTRA_CONTENT: Final = "extra_content"
PROVIDER_FIELDS: Final = "provider_specific_fields"
_SIGNATURES: Final = "thought_signatures"
# The members of a call that may contain its signature, in the order in which they are read. For each member, the paths
# to the signature inside the member; a new signature is written to the first path. `vertex`:
# https://github.com/8monkey-ai/hebo-gateway/issues/226
SIGNATURE_MEMBERS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    EXTRA_CONTENT: (("google", "thought_signature"), ("vertex", "thought_signature")),
    PROVIDER_FIELDS: (("thought_signature",),),
}
_ISSUERS: Final = {
    "anthropic-claude-v1": "anthropic",
    "openai-responses-v1": "openai",
    "azure-openai-responses-v1": "azure",
    "xai-responses-v1": "xai",
    "google-gemini-v1": "google",
    "MiniMax-response-v1": "minimax",
}
_FORMATS: Final[Mapping[str | None, str]] = {
    **{issuer: name for name, issuer in _ISSUERS.items()},
    "bedrock": "anthropic-claude-v1",
    "vertex": "google-gemini-v1",
}
_UNKNOWN: Final = "unknown"
_SIGNS_BLOCKS: Final = frozenset({"anthropic", "bedrock"})  # issuers of the signatures in `thinking_blocks`
_SUMMARIZING: Final = frozenset({"openai", "azure", "xai"})  # vendors that send summaries, which have no signature
_FRAGMENTS: Final = {"reasoning.text": "text", "reasoning.summary": "summary"}


def call_signature(entry: Json) -> str | None:
    """Return the signature that a gateway added to a call, or None."""
    found = [member_signature(entry, name) for name in SIGNATURE_MEMBERS if name in entry]
    return next(filter(None, found), None)


def member_signature(entry: Json, name: str) -> str | None:
    """Return the signature in this member of a call or message, or None."""
    for path in SIGNATURE_MEMBERS[name]:
        value: Any = entry.get(name)
        for step in path:
            value = members_of(value).get(step)
        if isinstance(value, str) and value:
            return value
    return None


def signature_value(name: str, signature: str) -> Any:
    """Return the value of a member that contains only this signature."""
    return _nested(SIGNATURE_MEMBERS[name][0], signature)


def holds_only(entry: Json, name: str, signature: str) -> bool:
    """Return whether a member of a call or message contains this signature and nothing else."""
    return any(entry.get(name) == _nested(path, signature) for path in SIGNATURE_MEMBERS[name])


def is_in_place(entry: Json, name: str) -> bool:
    """Return whether this member of a call or message contains a signature at the path where new signatures are
    written.
    """
    value: Any = entry.get(name)
    for step in SIGNATURE_MEMBERS[name][0]:
        value = members_of(value).get(step)
    return isinstance(value, str) and bool(value)


def _nested(path: tuple[str, ...], value: Any) -> Any:
    for step in reversed(path):
        value = {step: value}
    return value


def text_signatures(message: Json) -> list[str]:
    """Return the signatures that LiteLLM lists for a message, other than those of its calls."""
    found: Any = members_of(message.get(PROVIDER_FIELDS)).get(_SIGNATURES)
    sent: Any = message.get("tool_calls")
    listed: list[Any] = found if found.__class__ is list else []
    calls: list[Any] = sent if sent.__class__ is list else []
    signed = {call_signature(members_of(call)) for call in calls}
    return [one for one in listed if isinstance(one, str) and one and one not in signed]


def lists_one_text(message: Json) -> bool:
    """Return whether LiteLLM's `provider_specific_fields` contain only signatures, with at most one for a text."""
    return set(members_of(message.get(PROVIDER_FIELDS))) == {_SIGNATURES} and len(text_signatures(message)) < 2


def text_signature_member(signature: str, listed: Collection[str]) -> dict[str, Any]:
    """Return the member for the signature of a message's text, or an empty dictionary if the target has no such member.

    `listed`: the members that the target's schema lists for an assistant message.
    """
    if EXTRA_CONTENT in listed:
        return {EXTRA_CONTENT: signature_value(EXTRA_CONTENT, signature)}
    return {PROVIDER_FIELDS: {_SIGNATURES: [signature]}} if PROVIDER_FIELDS in listed else {}


def signature_member(listed: Collection[str]) -> str | None:
    """Return the member for the signature of a call, or None if the target has no such member.

    `listed`: the members that the target's schema lists for a call.
    """
    return next((name for name in SIGNATURE_MEMBERS if name in listed), None)


def reasoning_member(part: Reasoning, facts: Json, listed: Collection[str]) -> str:
    """Return the member of a Chat message in which the target expects this reasoning.

    `facts`: the target's constraint `reasoning`. `listed`: the members that the target's schema lists for an assistant
    message.
    """
    signed = bool(part.signature or part.encrypted)
    if facts.get("details") and (signed or part.member == DETAILS):
        return DETAILS
    if REASONING_ITEMS in listed and part.member == REASONING_ITEMS and not part.touched:
        return REASONING_ITEMS
    if THINKING_BLOCKS in listed:
        kept = part.member == THINKING_BLOCKS and not part.touched
        if kept or (signed and part.issuer in _SIGNS_BLOCKS):
            return THINKING_BLOCKS
    return str(facts.get("field", "reasoning_content"))


def issuer_of(name: str) -> str | None:
    """Return the issuer of a detail with this `format`, or None if the format is unknown.

    openai-python joins the strings of streamed fragments, so an accumulated message contains the format several times
    in a row.
    """
    found = _ISSUERS.get(name)
    if found is None and name:
        found = next((issuer for one, issuer in _ISSUERS.items() if name == one * (len(name) // len(one))), None)
    return found


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
    """Append the collected fragment texts to the last detail, and clear the collection."""
    if texts:
        n, entry = made[-1]
        name = _FRAGMENTS[str(entry.get("type"))]
        made[-1] = (n, {**entry, name: "".join((str(entry.get(name) or ""), *texts))})
        texts.clear()


def write_details(thoughts: Iterable[Reasoning], calls: Iterable[Call], *, every: bool = False) -> list[Any]:
    """Return the elements of `reasoning_details` for these parts, or an empty list if no reasoning is signed or
    encrypted.

    `every`: also return plain reasoning, because the target has no other member for it.
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
