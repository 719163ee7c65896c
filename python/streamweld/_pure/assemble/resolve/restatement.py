"""Lookup tables that find the streamed part or call whose content equals that of a part or call in a terminal list."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamweld._pure.assemble.part.item import Item, ItemPart
    from streamweld._pure.assemble.part.text import Channel
    from streamweld._pure.assemble.resolve.item_index import ItemIndex
    from streamweld._pure.model.delta import ItemKind

__all__ = ["Restatement"]


class Restatement:
    """The streamed parts and calls, by content. The tables are built once, when a terminal list begins, so that a
    listed part or call can be found without scanning all streamed parts and calls.
    """

    __slots__ = ("item_index", "calls", "parts")

    def __init__(self, item_index: ItemIndex) -> None:
        self.item_index = item_index
        self.parts: dict[tuple[ItemKind, Channel, str], list[tuple[Item, ItemPart]]] = {}
        self.calls: dict[tuple[str, str], list[Item]] = {}
        for item in reversed(item_index.filled):  # reversed: `pop` then returns the earliest match
            for one in reversed(item.parts):
                if not one.part.void:
                    key = (item.kind, one.part.channel, one.part.text())
                    self.parts.setdefault(key, []).append((item, one))
            call = item.call
            if call is not None and not call.dropped:
                arguments = call.canonical() if call.complete and not call.custom else call.text.text()
                self.calls.setdefault((call.name, arguments), []).append(item)
