"""A terminal list tells everything again: which streamed part or call each entry is, so that nothing is there twice.

By its address; else, under whatever id, one of the same channel with the same text, or of the same name with the same
arguments, that no entry before it meant; else what is still open there and can be what the entry tells. What is missing
is made by whoever asked. It changes no part and no call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.assemble.part.canonical_json import canonical, is_whole
from streamweld._pure.assemble.part.item_call import says
from streamweld._pure.assemble.part.item_text import find_part
from streamweld._pure.json.scanner import replace_lone_surrogates

if TYPE_CHECKING:
    from streamweld._pure.assemble.part.item import Item, ItemIndex, ItemPart
    from streamweld._pure.assemble.part.text import Channel
    from streamweld._pure.model.delta import Address, ItemKind
    from streamweld.events import ReasoningKind

__all__ = ["Restatement"]


class Restatement:
    """What was streamed, by what it says. Made once, when the list begins, so that no entry walks over all of it."""

    __slots__ = ("_book", "_calls", "_parts")

    def __init__(self, book: ItemIndex) -> None:
        self._book = book
        self._parts: dict[tuple[ItemKind, Channel, str], list[tuple[Item, ItemPart]]] = {}
        self._calls: dict[tuple[str, str], list[Item]] = {}
        for item in reversed(book.filled):  # so that the first one is the last of its list
            for one in reversed(item.parts):
                if not one.part.void:
                    key = (item.kind, one.part.channel, one.part.text())
                    self._parts.setdefault(key, []).append((item, one))
            call = item.call
            if call is not None and not call.dropped:
                said = call.canonical() if call.complete and not call.custom else call.text.text()
                self._calls.setdefault((call.name, said), []).append(item)

    def part(
        self, kind: ItemKind, address: Address, channel: Channel, reasoning_kind: ReasoningKind, text: str | None
    ) -> tuple[Item | None, ItemPart | None]:
        """The item and the part that an entry tells again, as far as they are there."""
        named = self._book.by_ids(kind, address)
        if named is not None:
            return named, find_part(named, channel, reasoning_kind, address.sub)
        whole = replace_lone_surrogates(text or "")
        same = self._parts.get((kind, channel, whole), [])
        while same:
            item, one = same.pop()
            if not one.restated:
                return item, one
        for candidate in (self._book.at(kind, address.index), self._book.latest(kind)):
            if candidate is None:
                continue
            found = find_part(candidate, channel, reasoning_kind, address.sub)
            if found is None and candidate.open:
                return candidate, None
            if found is not None and found.part.open and not found.restated and whole.startswith(found.part.text()):
                return candidate, found
        return None, None

    def call(self, address: Address, name: str | None, arguments: str | None) -> Item | None:
        """The item whose call an entry tells again."""
        named = self._book.by_ids("call", address)
        whole = replace_lone_surrogates(arguments or "")
        if named is not None and (not named.restated or _tells(named, name, arguments)):
            return named
        if named is not None:
            return None  # the list has two under one id
        said = canonical(whole) if is_whole(whole) else whole
        same = self._calls.get((name or "", said), [])
        while same:
            item = same.pop()
            if not item.restated:
                return item
        for candidate in (self._book.at("call", address.index), self._book.latest("call")):
            call = None if candidate is None else candidate.call
            if candidate is None or candidate.restated or call is None or call.verdict is not None:
                continue
            other_id = address.call_id is not None and call.id is not None and not call.has_id(address.call_id)
            if call.name in ("", name) and not other_id and whole.startswith(call.text.text()):
                return candidate
        return None


def _tells(item: Item, name: str | None, arguments: str | None) -> bool:
    call = item.call
    return call is not None and call.name in ("", name or call.name) and says(call, arguments)
