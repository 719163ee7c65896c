"""Finds the streamed part or call that a part or call in a terminal list repeats, so that no content is duplicated.

A listed part or call is first looked up by its ids. If its ids are unknown, a part is matched by channel and text, and
a call by name and arguments. Each streamed part or call is matched at most once. As a last resort, an open part or call
matches if its text so far is the beginning of the listed text. The caller creates parts and calls that are not found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.assemble.part.canonical_json import canonical, is_whole
from streamweld._pure.assemble.part.item_call import is_same_or_empty
from streamweld._pure.assemble.part.item_text import find_whole
from streamweld._pure.json.scanner import replace_lone_surrogates

if TYPE_CHECKING:
    from streamweld._pure.assemble.part.item import Item, ItemPart
    from streamweld._pure.assemble.part.text import Channel
    from streamweld._pure.assemble.resolve.restatement import Restatement
    from streamweld._pure.model.delta import Address, ItemKind
    from streamweld.events import ReasoningKind

__all__ = ["restated_call", "restated_part"]


def restated_part(
    restatement: Restatement,
    kind: ItemKind,
    address: Address,
    channel: Channel,
    reasoning_kind: ReasoningKind,
    text: str | None,
) -> tuple[Item | None, ItemPart | None]:
    """Return the streamed item and the streamed part that a listed part repeats. The part, or both, may be None."""
    named = restatement.item_index.by_ids(kind, address)
    if named is not None:
        return named, find_whole(named, channel, reasoning_kind, address.sub, text)
    whole = replace_lone_surrogates(text or "")
    same = restatement.parts.get((kind, channel, whole), [])
    while same:
        item, one = same.pop()
        if not one.restated:
            return item, one
    for candidate in (restatement.item_index.at(kind, address.index), restatement.item_index.latest(kind)):
        if candidate is None:
            continue
        found = find_whole(candidate, channel, reasoning_kind, address.sub, text)
        if found is None and candidate.open:
            return candidate, None
        if found is not None and found.part.open and not found.restated and whole.startswith(found.part.text()):
            return candidate, found
    return None, None


def restated_call(restatement: Restatement, address: Address, name: str | None, arguments: str | None) -> Item | None:
    """Return the streamed item whose call a listed call repeats, or None."""
    named = restatement.item_index.by_ids("call", address)
    whole = replace_lone_surrogates(arguments or "")
    if named is not None and (not named.restated or _matches_call(named, name, arguments)):
        return named
    if named is not None:
        return None  # the list contains two calls with the same id
    arguments_text = canonical(whole) if is_whole(whole) else whole
    same = restatement.calls.get((name or "", arguments_text), [])
    while same:
        item = same.pop()
        if not item.restated:
            return item
    for candidate in (restatement.item_index.at("call", address.index), restatement.item_index.latest("call")):
        call = None if candidate is None else candidate.call
        if candidate is None or candidate.restated or call is None or call.outcome is not None:
            continue
        other_id = address.call_id is not None and call.id is not None and not call.has_id(address.call_id)
        if call.name in ("", name) and not other_id and whole.startswith(call.text.text()):
            return candidate
    return None


def _matches_call(item: Item, name: str | None, arguments: str | None) -> bool:
    call = item.call
    return call is not None and call.name in ("", name or call.name) and is_same_or_empty(call, arguments)
