"""Applies the content list of an item, from the item's closing event or from a terminal list.

`resolve/listed_parts` matches all listed parts of one kind with the item's streamed parts at the same time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.assemble.late_text import settle_late_texts
from streamweld._pure.assemble.part.item_list import TextList
from streamweld._pure.assemble.resolve.by_address import known_item

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld._pure.assemble.choice import Choice
    from streamweld._pure.assemble.part.item import Item
    from streamweld._pure.assemble.part.text import Channel
    from streamweld._pure.model.delta import Address, ItemKind, ListedPart
    from streamweld.events import ReasoningKind

__all__ = ["Group", "grouped"]

_MAX_LISTS = 16  # maximum number of lists per item, because each takes time proportional to the item's text


class Group:
    """The listed parts that have the same item kind, channel and reasoning kind."""

    __slots__ = ("entries", "list", "next_entry")

    def __init__(self) -> None:
        self.entries: list[int] = []
        self.list: TextList | None = None  # None: the listed parts are applied one by one, or ignored
        self.next_entry = 0


def grouped(
    choice: Choice, entries: Sequence[ListedPart], texts: Sequence[str], *, again: bool
) -> tuple[list[Group], list[Group]]:
    """Group the listed parts by item kind, channel and reasoning kind. Return the groups, and the group of each listed
    part.
    """
    groups: dict[tuple[ItemKind, Channel, ReasoningKind], Group] = {}
    group_of: list[Group] = []
    for number, entry in enumerate(entries):
        group = groups.setdefault((entry.item, entry.channel, entry.kind), Group())
        group.entries.append(number)
        group_of.append(group)
    for group in groups.values():
        own = [texts[number] for number in group.entries]
        group.list = _list_of(choice, entries[group.entries[0]], own, again=again)
    return list(groups.values()), group_of


def _list_of(choice: Choice, first: ListedPart, texts: Sequence[str], *, again: bool) -> TextList | None:
    """Plan how the listed parts of one kind are applied to their item. Return None if the item is not found or had too
    many lists.

    Parts of a terminal list are then applied one by one; those of a closing event are ignored.
    """
    item_index = choice.item_index
    address = item_index.usable(first.address)
    if again:
        found = item_index.by_ids(first.item, address) or _same_text(choice, first, address, texts)
    else:
        found = item_index.find(first.item, address, "close")
    if found is None and (again or not any(texts)):
        return None
    item = known_item(choice, first.item, address, found)
    item.lists += 1
    if item.lists > _MAX_LISTS:
        return None
    settle_late_texts(choice, item, item.parts_of(first.channel, first.kind), texts)
    return TextList(item, first, texts, again=again)


def _same_text(choice: Choice, entry: ListedPart, address: Address, texts: Sequence[str]) -> Item | None:
    """Return the item whose parts have exactly the text of the listed parts, even if the item's id is not the listed
    id.

    Check the item at the listed index and the latest open item. Return None if neither item has this text, or if both
    the list and the item have only one part.
    """
    item_index = choice.item_index
    length = sum(map(len, texts))
    for item in (item_index.at(entry.item, address.index), item_index.latest(entry.item)):
        parts = [] if item is None else item.parts_of(entry.channel, entry.kind)
        several = len(texts) > 1 or len(parts) > 1
        fresh = several and length > 0 and not any(one.restated for one in parts)
        if fresh and length == sum([one.length for one in parts]):
            same = "".join([one.part.text() for one in parts]) == "".join(texts)
            if same:
                return item
    return None
