"""Read the reasoning of Chat Completions messages from every member that may contain reasoning (see
`history.chat_reasoning`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from streamweld.history.chat_reasoning import (
    DETAILS,
    REASONING_ITEMS,
    THINKING_BLOCKS,
    call_signature,
    issuer_of,
    whole_entries,
)
from streamweld.history.model import NestedPath, Reasoning, members_of
from streamweld.history.read.common import (
    as_list,
    as_mapping,
    as_optional_text,
    as_text,
    extra_members,
    locate,
    with_inner_members,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamweld.history.model import Origin, Part, Path
    from streamweld.history.read.common import Json

__all__ = ["MessageReasoning", "read_reasoning", "thinking_block"]

_FIELDS: Final = ("reasoning_content", "reasoning")
_BLOCK: Final = frozenset({"type", "thinking", "signature", "data"})
_ITEM: Final = frozenset({"type", "id", "summary", "encrypted_content"})
_PIECE: Final = frozenset({"type", "text"})
_ENTRY: Final = frozenset({"type", "text", "summary", "data", "signature", "format", "id", "index"})


@dataclass(slots=True)
class MessageReasoning:
    """The reasoning of a message, and the signatures of its calls, keyed by call id."""

    parts: list[Part] = field(default_factory=list["Part"])
    signatures: dict[str, str] = field(default_factory=dict[str, str])


def read_reasoning(message: Json, origin: Origin, path: Path, issuer: str | None) -> MessageReasoning:
    """Return the reasoning of a message. Each text is returned only once.

    A plain member with the same text as signed reasoning is a copy for display and is skipped.

    Raises:
        HistoryError: if a member that must be a list of objects is not one.
    """
    found = MessageReasoning()
    copies: set[str] = set()
    if message.get(THINKING_BLOCKS) is not None:
        blocks = _blocks(message[THINKING_BLOCKS], origin, (*path, THINKING_BLOCKS))
        copies |= _texts_of(blocks)
        found.parts += blocks
    if message.get(REASONING_ITEMS) is not None:
        items = _items(message[REASONING_ITEMS], origin, (*path, REASONING_ITEMS), issuer)
        copies |= _texts_of(items)
        found.parts += items
    if message.get(DETAILS) is not None:
        calls: Any = message.get("tool_calls")
        signed: dict[Any, str | None] = {}
        if isinstance(calls, list | tuple):
            entries = [members_of(call) for call in cast("Sequence[Any]", calls)]
            signed = {entry.get("id"): call_signature(entry) for entry in entries}
        details = _details(message[DETAILS], origin, (*path, DETAILS), signed, found.signatures)
        copies |= _texts_of(details)
        found.parts += details
    for name in _FIELDS:
        thought = as_optional_text(message.get(name), (*path, name))
        if thought is not None:
            if not copies or _squeezed(thought) not in copies:
                common = locate(origin, (*path, name))
                mapping = Reasoning(*common, segments=(thought,), kind="raw", issuer=issuer, member=name)
                found.parts.append(mapping)
            break
    return found


def _texts_of(parts: list[Reasoning]) -> set[str]:
    """Return the texts that a plain reasoning member may repeat: the text of each part, and all texts joined."""
    texts = [_squeezed(part.text) for part in parts]
    return {*texts, "".join(texts)} if texts else set()


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _blocks(mapping: Any, origin: Origin, path: Path) -> list[Reasoning]:
    return [
        thinking_block(as_mapping(raw, (*path, n)), origin, (*path, n), member=THINKING_BLOCKS)
        for n, raw in enumerate(as_list(mapping, path))
    ]


def _items(mapping: Any, origin: Origin, path: Path, issuer: str | None) -> list[Reasoning]:
    """Return the reasoning items of the Responses API that a message contains."""
    found: list[Reasoning] = []
    for n, raw in enumerate(as_list(mapping, path)):
        item = as_mapping(raw, (*path, n))
        summary = [as_mapping(piece, (*path, n)) for piece in as_list(item.get("summary"), (*path, n))]
        pieces = [(f"summary/{at}", piece, _PIECE) for at, piece in enumerate(summary)]
        part = Reasoning(
            *with_inner_members(locate(origin, (*path, n), item, _ITEM), *pieces),
            segments=tuple([as_text(piece.get("text"), (*path, n)) for piece in summary]),
            kind="summary",
            item_id=as_optional_text(item.get("id"), (*path, n)),
            encrypted=as_optional_text(item.get("encrypted_content"), (*path, n)) or None,
            issuer=issuer or "openai",
            assumed=not issuer,
            member=REASONING_ITEMS,
        )
        found.append(part)
    return found


def thinking_block(block: Json, origin: Origin, path: Path, *, member: str | None) -> Reasoning:
    """Return the reasoning of an Anthropic block in a Chat message.

    Args:
        block: a `thinking` or `redacted_thinking` block.
        origin: the message that the block belongs to.
        path: the block's position in the history.
        member: the member of the message that contains the block; None for the content.
    """
    return Reasoning(
        *locate(origin, path, block, _BLOCK),
        segments=_texts(block.get("thinking"), path),
        kind="redacted" if block.get("type") == "redacted_thinking" else "thinking",
        signature=as_text(block.get("signature"), path) or None,
        encrypted=as_text(block.get("data"), path) or None,
        issuer="anthropic",
        member=member,
        touched=member is None,  # no Chat API accepts the block itself as content
    )


def _texts(value: Any, path: Path) -> tuple[str, ...]:
    text = as_text(value, path)
    return (text,) if text else ()


@dataclass(slots=True)
class _Item:
    """The `reasoning_details` entries of one reasoning item: first the summaries, then the encrypted content."""

    path: Path
    issuer: str | None
    entries: list[Json] = field(default_factory=list["Json"])
    texts: list[str] = field(default_factory=list[str])
    kind: Literal["summary", "raw", "thinking", "redacted"] = "thinking"
    item_id: str | None = None
    signature: str | None = None
    encrypted: str | None = None

    def takes(self, entry: Json, issuer: str | None) -> bool:
        """Return whether the detail continues this item. Only items of the Responses API have several details."""
        if issuer != self.issuer or issuer not in ("openai", "azure", "xai") or self.encrypted is not None:
            return False
        item_id = entry.get("id")
        return self.item_id is None or item_id is None or item_id == self.item_id


def _details(
    mapping: Any, origin: Origin, path: Path, signed: Mapping[Any, str | None], signatures: dict[str, str]
) -> list[Reasoning]:
    """Return the reasoning in the details, and add the signatures of calls to `signatures`.

    `signed`: the ids of the message's calls, with the signatures that the calls themselves have. If a call has a
    second, different signature, that signature is read as reasoning, so that its loss is reported.
    """
    items: list[_Item] = []
    given = [as_mapping(raw, (*path, n)) for n, raw in enumerate(as_list(mapping, path))]
    for n, entry in whole_entries(given):
        at = (*path, n)
        issuer = issuer_of(as_text(entry.get("format"), at))
        data = as_text(entry.get("data"), at)
        call_id: Any = entry.get("id")
        of_call = issuer == "google" and bool(data) and call_id in signed and _ENTRY.issuperset(entry)
        if of_call and (signed[call_id] or signatures.get(call_id, data)) == data:
            signatures[as_text(call_id, at)] = data
            continue
        if not (items and items[-1].takes(entry, issuer)):
            items.append(_Item(at, issuer))
        _add(items[-1], entry, at)
    parts: list[Reasoning] = []
    for item in items:
        beyond: dict[str, Any] = {}
        for n, entry in enumerate(item.entries):
            beyond |= {NestedPath(f"{n}/{name}"): value for name, value in extra_members(entry, _ENTRY).items()}
        where, number, common, _, _ = locate(origin, item.path)
        parts.append(
            Reasoning(
                *(where, number, common, item.entries, beyond),
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
