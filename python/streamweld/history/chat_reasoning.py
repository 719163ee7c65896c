"""Read and write signed reasoning on Chat Completions messages.

LiteLLM carries Anthropic's blocks in `thinking_blocks` (https://docs.litellm.ai/docs/reasoning_content). OpenRouter and
MiniMax list text, summaries, signatures and ciphers in `reasoning_details`
(https://openrouter.ai/docs/use-cases/reasoning-tokens); the `format` of an entry names the vendor that issued it.
Google's endpoint puts the signature of a call into its `extra_content`
(https://ai.google.dev/gemini-api/docs/thought-signatures).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from streamweld.history.model import Inner, Reasoning, members_of
from streamweld.history.read.common import as_list, as_mapping, as_optional_text, as_text, extra_members, locate

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from streamweld.history.model import Call, Origin, Part, Path
    from streamweld.history.read.common import Json

__all__ = [
    "DETAILS",
    "EXTRA_CONTENT",
    "THINKING_BLOCKS",
    "MessageReasoning",
    "call_signature",
    "is_only_signature",
    "read_reasoning",
    "whole_entries",
    "write_details",
]

DETAILS: Final = "reasoning_details"
THINKING_BLOCKS: Final = "thinking_blocks"
EXTRA_CONTENT: Final = "extra_content"
_FIELDS: Final = ("reasoning_content", "reasoning")
_BLOCK: Final = frozenset({"type", "thinking", "signature", "data"})
_ENTRY: Final = frozenset({"type", "text", "summary", "data", "signature", "format", "id", "index"})
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
_FRAGMENTS: Final = {"reasoning.text": "text", "reasoning.summary": "summary"}


def call_signature(entry: Json) -> str | None:
    """Return the signature that Google's endpoint puts on a call."""
    found = members_of(members_of(entry.get(EXTRA_CONTENT)).get("google")).get("thought_signature")
    return found if isinstance(found, str) and found else None


def is_only_signature(entry: Json) -> bool:
    """Return whether the `extra_content` of a call holds its signature and nothing else."""
    signature = call_signature(entry)
    return signature is not None and entry[EXTRA_CONTENT] == {"google": {"thought_signature": signature}}


@dataclass(slots=True)
class MessageReasoning:
    """The reasoning of a message, and the signatures of its calls by call id."""

    parts: list[Part] = field(default_factory=list["Part"])
    signatures: dict[str, str] = field(default_factory=dict[str, str])


def read_reasoning(message: Json, origin: Origin, path: Path, issuer: str | None) -> MessageReasoning:
    """Return the reasoning of a message, each text once.

    A plain member of the same text as the signed form is that form's copy for display.

    Raises:
        HistoryError: a list of reasoning is not a list of objects.
    """
    found = MessageReasoning()
    copies: set[str] = set()
    if message.get(THINKING_BLOCKS) is not None:
        blocks = _blocks(message[THINKING_BLOCKS], origin, (*path, THINKING_BLOCKS))
        copies |= _texts_of(blocks)
        found.parts += blocks
    if message.get(DETAILS) is not None:
        calls = message.get("tool_calls")
        call_ids = {members_of(call).get("id") for call in calls} if isinstance(calls, list | tuple) else set()
        details = _details(message[DETAILS], origin, (*path, DETAILS), call_ids, found.signatures)
        copies |= _texts_of(details)
        found.parts += details
    for name in _FIELDS:
        thought = as_optional_text(message.get(name), (*path, name))
        if thought is not None:
            if _squeezed(thought) not in copies:
                place = locate(origin, (*path, name))
                told = Reasoning(*place, segments=(thought,), kind="raw", issuer=issuer, member=name)
                found.parts.append(told)
            break
    return found


def _texts_of(parts: list[Reasoning]) -> set[str]:
    """Return the texts that a plain member may repeat: that of each part, and that of all of them."""
    texts = [_squeezed(part.text) for part in parts]
    return {*texts, "".join(texts)} if texts else set()


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _blocks(told: Any, origin: Origin, path: Path) -> list[Reasoning]:
    parts: list[Reasoning] = []
    for n, raw in enumerate(as_list(told, path)):
        block, at = as_mapping(raw, (*path, n)), (*path, n)
        parts.append(
            Reasoning(
                *locate(origin, at, block, _BLOCK),
                segments=_texts(block.get("thinking"), at),
                kind="redacted" if block.get("type") == "redacted_thinking" else "thinking",
                signature=as_text(block.get("signature"), at) or None,
                encrypted=as_text(block.get("data"), at) or None,
                issuer="anthropic",
                member=THINKING_BLOCKS,
            )
        )
    return parts


def _texts(value: Any, path: Path) -> tuple[str, ...]:
    text = as_text(value, path)
    return (text,) if text else ()


def whole_entries(entries: Sequence[Json]) -> list[tuple[int, Json]]:
    """Return the entries with the number of each, and the fragments of a stream joined to the entry they belong to."""
    made: list[tuple[int, Json]] = []
    texts: list[str] = []
    for n, entry in enumerate(entries):
        name = _FRAGMENTS.get(str(entry.get("type")))
        last = made[-1][1] if made else {}
        if name is not None and made and _continues(entry, last):
            texts.append(str(entry.get(name) or ""))
            said = {key: value for key, value in entry.items() if value is not None and key != name}
            made[-1] = (made[-1][0], {**last, **said})
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
    """Put the texts of fragments behind that of their entry."""
    if texts:
        n, entry = made[-1]
        name = _FRAGMENTS[str(entry.get("type"))]
        made[-1] = (n, {**entry, name: "".join((str(entry.get(name) or ""), *texts))})
        texts.clear()


@dataclass(slots=True)
class _Item:
    """The entries of one reasoning item: its summaries, then its encrypted content."""

    path: Path
    issuer: str | None
    entries: list[Json] = field(default_factory=list["Json"])
    texts: list[str] = field(default_factory=list[str])
    kind: Literal["summary", "raw", "thinking", "redacted"] = "thinking"
    item_id: str | None = None
    signature: str | None = None
    encrypted: str | None = None

    def takes(self, entry: Json, issuer: str | None) -> bool:
        """Return whether the entry continues this item. Only the Responses API splits an item."""
        if issuer != self.issuer or issuer not in ("openai", "azure", "xai") or self.encrypted is not None:
            return False
        item_id = entry.get("id")
        return self.item_id is None or item_id is None or item_id == self.item_id


def _details(
    told: Any, origin: Origin, path: Path, call_ids: Collection[Any], signatures: dict[str, str]
) -> list[Reasoning]:
    items: list[_Item] = []
    given = [as_mapping(raw, (*path, n)) for n, raw in enumerate(as_list(told, path))]
    for n, entry in whole_entries(given):
        at = (*path, n)
        issuer = _ISSUERS.get(as_text(entry.get("format"), at))
        data = as_text(entry.get("data"), at)
        if issuer == "google" and data and entry.get("id") in call_ids and _ENTRY.issuperset(entry):
            signatures[as_text(entry.get("id"), at)] = data  # the signature of that call
            continue
        if not (items and items[-1].takes(entry, issuer)):
            items.append(_Item(at, issuer))
        _add(items[-1], entry, at)
    parts: list[Reasoning] = []
    for item in items:
        beyond: dict[str, Any] = {}
        for n, entry in enumerate(item.entries):
            beyond |= {Inner(f"{n}/{name}"): value for name, value in extra_members(entry, _ENTRY).items()}
        where, number, place, _, _ = locate(origin, item.path)
        parts.append(
            Reasoning(
                *(where, number, place, item.entries, beyond),
                segments=tuple(item.texts),
                kind=item.kind,
                item_id=item.item_id,
                signature=item.signature,
                encrypted=item.encrypted,
                issuer=item.issuer,
                member=DETAILS,
            )
        )
    return parts


def _add(item: _Item, entry: Json, path: Path) -> None:
    item.entries.append(entry)
    kind = entry.get("type")
    text = as_text(entry.get("summary" if kind == "reasoning.summary" else "text"), path)
    data = as_text(entry.get("data"), path) or None
    item.texts += [text] if text else []
    item.item_id = item.item_id or as_optional_text(entry.get("id"), path)
    item.signature = item.signature or as_text(entry.get("signature"), path) or None
    if item.issuer == "google":
        item.signature = item.signature or data
    else:
        item.encrypted = item.encrypted or data
    if kind == "reasoning.summary" or item.issuer in ("openai", "azure", "xai", "google"):
        item.kind = "summary"
    elif data is not None:
        item.kind = "redacted"


def write_details(thoughts: Iterable[Reasoning], calls: Iterable[Call], *, every: bool = False) -> list[Any]:
    """Return the entries of `reasoning_details`; an empty list if nothing is signed or encrypted.

    `every`: plain reasoning has no other member.
    """
    told = list(thoughts)
    signed = [call for call in calls if call.signature]
    if not every and not signed and not any(part.signature or part.encrypted for part in told):
        return []
    made: list[Any] = []
    for part in told:
        made += _entries(part)
    made += [
        {"type": "reasoning.encrypted", "data": call.signature, "id": call.call_id, "format": "google-gemini-v1"}
        for call in signed
    ]
    return [entry if "index" in entry else {**entry, "index": n} for n, entry in enumerate(made)]


def _entries(part: Reasoning) -> list[Any]:
    if part.member == DETAILS and not part.touched:
        return list(part.raw)
    head = {"format": _FORMATS.get(part.issuer, _UNKNOWN), **({"id": part.item_id} if part.item_id else {})}
    if part.issuer in ("openai", "azure", "xai"):
        made: list[Any] = [{"type": "reasoning.summary", "summary": text, **head} for text in part.segments]
    else:
        signature = {"signature": part.signature} if part.signature else {}
        texts = part.segments or (("",) if part.signature else ())
        made = [{"type": "reasoning.text", "text": text, **head} for text in texts]
        if made:
            made[-1] |= signature
    if part.encrypted:
        made.append({"type": "reasoning.encrypted", "data": part.encrypted, **head})
    return made
