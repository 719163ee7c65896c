"""The list of an item's parts, told as a whole: which entry is which streamed part, and what becomes of the rest.

The list has the last word on every text that is not closed yet, and on no other. A place in it is no label: parts leave
lists, move in them, or come joined to one entry. So a part whose text was confirmed takes an equal entry first, then
any other part an equal entry; an entry that begins with the next parts' texts is these parts joined; what remains goes
by order. A part that is left over is taken back; an entry that is left over is a part that nobody streamed.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from streamweld._pure.assemble.part.item_text import settle, tell_value
from streamweld._pure.json.scanner import replace_lone_surrogates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld._pure.assemble.choice import Choice
    from streamweld._pure.assemble.part.item import Item, ItemPart
    from streamweld._pure.assemble.part.text import Channel
    from streamweld._pure.model.delta import ListedPart
    from streamweld.events import ReasoningKind

__all__ = ["Placed", "match_list"]


class Placed(NamedTuple):
    """Where an entry of a list belongs."""

    sub: int | None  # the label of its part
    text: str | None  # what of it that part was not told yet


class _Unit:
    """A part, or the text of one label where several were read as one part (P28)."""

    __slots__ = ("now", "one", "sub", "text")

    def __init__(self, one: ItemPart, sub: int | None, text: str) -> None:
        self.one = one
        self.sub = sub
        self.text = text
        self.now: str | None = None  # what the list says of it; None: nothing

    @property
    def is_fixed(self) -> bool:
        """Its text was told with authority."""
        return self.one.valued or not self.one.part.open or self.sub in self.one.told


def match_list(choice: Choice, item: Item | None, entries: Sequence[ListedPart]) -> list[Placed]:
    """Corrects the parts of the item by the entries, and says where each entry belongs."""
    placed = [Placed(entry.sub, entry.text) for entry in entries]
    groups: dict[tuple[Channel, ReasoningKind], list[int]] = {}
    for place, entry in enumerate(entries):
        groups.setdefault((entry.channel, entry.kind), []).append(place)
    for (channel, kind), places in groups.items():
        parts = [] if item is None else item.parts_of(channel, kind)
        if not parts:
            continue
        texts = [replace_lone_surrogates(entries[place].text or "") for place in places]
        for place, found in zip(places, _match(choice, parts, texts), strict=True):
            placed[place] = found
    return placed


def _match(choice: Choice, parts: list[ItemPart], texts: list[str]) -> list[Placed]:
    units = [_Unit(one, sub, text) for one in parts for sub, text in _labelled(one)]
    owners: list[_Unit | None] = [None] * len(texts)
    if _says_the_same(units, parts, "".join(texts)):
        _place_by_length(units, texts, owners)
        told = [one for one in parts if one.part.open and not one.valued and one.part.pieces]
        for one in told:
            settle(choice, one, one.told_text() if one.told else one.part.text())
    else:
        _assign(units, texts, owners)
        if any(texts):
            for unit in units:
                if unit.now is None and unit.text and not unit.is_fixed:
                    unit.now = ""
        for one, own in groupby(units, lambda unit: unit.one):
            _correct(choice, one, list(own))
    return _places(units, texts, owners)


def _labelled(one: ItemPart) -> list[tuple[int | None, str]]:
    if one.units is None:
        return [(one.last_sub, one.part.text())]
    return [(sub, one.told.get(sub) or one.unit(sub)) for sub in one.units]


def _says_the_same(units: list[_Unit], parts: list[ItemPart], whole: str) -> bool:
    """Whether the list only cuts the text into other parts."""
    if len(whole) != sum(len(unit.text) for unit in units):
        return False
    return whole == "".join([one.told_text() if one.told else one.part.text() for one in parts])


def _place_by_length(units: list[_Unit], texts: list[str], owners: list[_Unit | None]) -> None:
    """Each entry belongs to the part in which it begins."""
    number, end, begin = 0, len(units[0].text), 0
    for place, text in enumerate(texts):
        while begin >= end and number + 1 < len(units):
            number += 1
            end += len(units[number].text)
        owners[place] = units[number]
        begin += len(text)


def _assign(units: list[_Unit], texts: list[str], owners: list[_Unit | None]) -> None:
    """Gives every entry its part."""
    free = dict.fromkeys(range(len(texts)))
    for fixed in (True, False):
        equal: dict[str, list[int]] = {}
        for place in reversed(free):
            equal.setdefault(texts[place], []).append(place)
        for unit in units:
            same = equal.get(unit.text)
            if unit.is_fixed is fixed and unit.now is None and unit.text and same:
                place = same.pop()
                owners[place] = unit
                unit.now = unit.text
                del free[place]
    left = [unit for unit in units if unit.now is None]
    left.reverse()
    for place in free:
        if left:
            owners[place] = left[-1]
            _join(left, texts[place])


def _join(left: list[_Unit], text: str) -> None:
    """One entry for the next part, or for as many as it begins with. An empty one says nothing of its part."""
    if not text:
        unit = left.pop()
        unit.now = unit.text
        return
    begin, joined = 0, None
    while left and left[-1].text and text.startswith(left[-1].text, begin):
        joined = left.pop()
        joined.now = joined.text
        begin += len(joined.text)
    if joined is None:
        left.pop().now = text
    elif begin == len(text):
        return
    elif joined.is_fixed and left and not left[-1].is_fixed:
        left.pop().now = text[begin:]
    else:
        joined.now = joined.text + text[begin:]


def _correct(choice: Choice, one: ItemPart, units: list[_Unit]) -> None:
    """What the list says of one part."""
    for unit in units:
        if unit.now is not None and unit.is_fixed:
            tell_value(choice, one, unit.now, unit.sub)
    if one.valued or not one.part.open:
        return
    told = {unit.sub: unit.now for unit in units if unit.now is not None and not unit.is_fixed}
    if told:
        settle(choice, one, "".join([told.get(unit.sub, unit.text) for unit in units]))


def _places(units: list[_Unit], texts: list[str], owners: list[_Unit | None]) -> list[Placed]:
    """The label of each entry's part; what has none gets a label of its own."""
    used = {unit.sub for unit in units}
    following = max([sub for sub in used if sub is not None], default=-1) + 1
    placed: list[Placed] = []
    for place, owner in enumerate(owners):
        if owner is not None:
            placed.append(Placed(owner.sub, None))
            continue
        placed.append(Placed(following, texts[place]))
        following += 1
    return placed
