"""Match the list of parts that closes an item with the parts that were streamed.

The list decides the text of every part that is still open, and of no other part. A position in the list is not a label:
gateways drop parts from the list, reorder them, or join several into one entry. So parts with a confirmed text take
equal entries first, then other parts take equal entries; an entry that begins with the texts of the next parts stands
for these parts joined; the rest is matched in order. A part without an entry is retracted; an entry without a part is a
part that was not streamed.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from streamweld._pure.assemble.part.item_text import say_conflict, settle, tell_value
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
        """Its text was told with authority, and cannot be taken back."""
        return not self.one.part.open


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
    units = [_Unit(one, sub, text) for one in parts for sub, text in one.unit_texts]
    owners: list[_Unit | None] = [None] * len(texts)
    whole = "".join(texts)
    if _is_whole(parts, whole):
        told = [one for one in parts if one.part.open and not one.valued and one.part.pieces]
        for one in told:
            settle(choice, one, one.told_text())
        _place_by_length(units, texts, owners)
        return _places(units, texts, owners)
    only = parts[0] if len(parts) == 1 else None
    if only is not None and only.units is not None and only.part.open and all(texts):
        # The labels of one part: the list is its text.
        settle(choice, only, whole)
        return [Placed(only.last_sub, None) for _ in texts]
    _assign(units, texts, owners)
    if whole:
        for unit in units:
            if unit.now is None and unit.text and not unit.is_fixed:
                unit.now = ""
    for one, own in groupby(units, lambda unit: unit.one):
        _correct(choice, one, list(own))
    placed = _places(units, texts, owners)
    rest = "".join([one.text or "" for one, owner in zip(placed, owners, strict=True) if owner is None])
    said = any(one.conflict_said for one in parts)
    whole = "".join([text or (owner.text if owner else "") for text, owner in zip(texts, owners, strict=True)])
    if any(texts) and not said and not _is_whole(parts, whole.removesuffix(rest)):
        say_conflict(choice, parts[-1])
    return placed


def _is_whole(parts: list[ItemPart], whole: str) -> bool:
    """Whether the parts say that together; the list may still cut it into other ones."""
    return whole == "".join([one.told_text() for one in parts])


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
    free = list(range(len(texts)))
    equal: dict[str, list[int]] = {}
    for place in reversed(free):
        equal.setdefault(texts[place], []).append(place)
    fixed = [(at, unit) for at, unit in enumerate(units) if unit.text and unit.is_fixed]
    for at, unit in fixed:
        if at < len(texts) and texts[at] == unit.text:
            owners[at] = unit
            unit.now = unit.text
    for _, unit in fixed:
        same = equal.get(unit.text, [])
        while same and owners[same[-1]] is not None:
            same.pop()
        if unit.now is None and same:
            owners[same.pop()] = unit
            unit.now = unit.text
    free = [place for place in free if owners[place] is None]
    left = [unit for unit in units if unit.now is None and (unit.text or not unit.is_fixed)]
    anchors = [] if len(free) == len(left) else _in_order(left, texts, free)
    before: _Unit | None = None
    # Behind all parts an entry is a new one, unless the last part went on under several labels.
    last = units[-1] if units[-1].one.units is not None else None
    units_from = entries_from = 0
    for unit_at, entry_at in [*anchors, (len(left), len(free))]:
        gap = left[units_from:unit_at]
        after = left[unit_at] if unit_at < len(left) else None
        if after is not None:
            after.now = after.text
            owners[free[entry_at]] = after
        entries = [(place, texts[place]) for place in free[entries_from:entry_at]]
        before = _fill(gap, entries, owners, before, after, last)
        before = after or before
        units_from, entries_from = unit_at + 1, entry_at + 1


def _in_order(left: list[_Unit], texts: list[str], free: list[int]) -> list[tuple[int, int]]:
    """Parts and entries that are equal, in one order."""
    equal: dict[str, list[int]] = {}
    for at in reversed(range(len(free))):
        equal.setdefault(texts[free[at]], []).append(at)
    found: list[tuple[int, int]] = []
    last = -1
    for unit_at, unit in enumerate(left):
        same = equal.get(unit.text, []) if unit.text else []
        while same and same[-1] <= last:
            same.pop()
        if same:
            last = same.pop()
            found.append((unit_at, last))
    return found


def _fill(
    gap: list[_Unit],
    entries: list[tuple[int, str]],
    owners: list[_Unit | None],
    before: _Unit | None,
    after: _Unit | None,
    last: _Unit | None,
) -> _Unit | None:
    """Parts and entries between two equal ones. Gives back the last part that got something."""
    gap.reverse()
    ends = 0  # how far entries go on with the last part
    for number, (place, text) in enumerate(entries):
        if number < ends:
            owners[place] = before
        elif gap:
            owners[place] = before = gap[-1]
            ends = _cut(gap[-1].text, entries, number)
            if ends:
                before.now = gap.pop().text
            else:
                _join(gap, text)
        elif before is not None and not before.is_fixed and (after is not None or before is last):
            owners[place] = before
            before.now = (before.now or "") + text
        elif after is None:
            return before  # behind parts that are closed: they are new ones
        elif not after.is_fixed:
            owners[place] = after
            after.now = (after.now or "")[: -len(after.text)] + text + after.text
    return before


def _cut(text: str, entries: list[tuple[int, str]], number: int) -> int:
    """Behind which entry the text of a part ends, if several entries together are that text; else 0."""
    at = 0
    while at < len(text) and number < len(entries) and entries[number][1] and text.startswith(entries[number][1], at):
        at += len(entries[number][1])
        number += 1
    return number if at == len(text) and text else 0


def _join(left: list[_Unit], text: str) -> None:
    """One entry for the next part, or for as many as it begins with. An empty one says nothing of its part."""
    if not text:
        unit = left.pop()
        unit.now = unit.text
        return
    begin, joined = 0, None
    while left:
        skips = len(left) > 1 and left[-2].is_fixed and not left[-1].is_fixed
        if skips and not text.startswith(left[-1].text, begin) and text.startswith(left[-2].text, begin):
            left.pop().now = ""
        if not left[-1].text or not text.startswith(left[-1].text, begin):
            break
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
    if not one.part.open:
        return
    told = {unit.sub: unit.now for unit in units if unit.now is not None and not unit.is_fixed}
    if told:
        if one.units is not None:
            one.told = {unit.sub: told.get(unit.sub, unit.text) for unit in units}
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
