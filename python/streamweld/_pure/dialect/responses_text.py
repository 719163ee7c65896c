"""Text of every kind in a Responses stream: deltas, their closing values, content parts, summaries, annotations.

Knows where in an event a text stands. Which part it belongs to is the assembler's business, but for the one habit that
only shows here: a content index that grows with every delta (P28).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.responses_facts import CONTENT, PART_FIELDS, SUMMARY, TEXT_DELTAS, TEXT_VALUES
from streamweld._pure.kinds import is_array, is_object
from streamweld._pure.members import as_object

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.delta import Address
    from streamweld._pure.dialect.responses_facts import Sort
    from streamweld._pure.dialect.responses_read import Reader
    from streamweld._pure.json_door import Path

_ANNOTATED = 4096  # open parts whose annotations are counted

_Key = tuple[int | str | None, int | None]


class TextReader:
    """The texts of one stream."""

    __slots__ = ("_annotated", "_assembler", "_current", "_item", "_opened")

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler
        self._item: tuple[int | str | None, Sort] | None = None  # whose text came last
        self._opened: set[int | None] = set()  # its places that an event of their own opened
        self._current: int | None = None  # the place that is being written
        self._annotated: dict[_Key, int] = {}  # how many annotations of an open part have come

    # Events of their own

    def delta(self, event: Mapping[str, Any], reader: Reader, metadata: str | None) -> None:
        """`response.output_text.delta` and its kin."""
        facts = TEXT_DELTAS[reader.kind]
        text = reader.text(event, (), facts.member)
        if text:
            address = self._placed(reader.address(event, facts.place), facts.sort)
            sort = facts.sort
            self._assembler.part_text(0, sort.item, address, sort.channel, sort.reasoning, text, metadata)

    def recovered(self, event: Mapping[str, Any], reader: Reader, address: Address) -> None:
        """A delta behind a broken document: its text, and no id of it."""
        sort = TEXT_DELTAS[reader.kind].sort
        text = reader.text(event, (), "delta")
        if text and sort.item == "message":
            self._assembler.part_text(0, sort.item, address, sort.channel, sort.reasoning, text, None)

    def value(self, event: Mapping[str, Any], reader: Reader) -> None:
        """`response.output_text.done` and its kin: the whole text. The part closes with its content part or item."""
        facts = TEXT_VALUES[reader.kind]
        sort = facts.sort
        address = self._placed(reader.address(event, facts.place), sort)
        text = reader.text(event, (), facts.member)
        metadata = reader.metadata(event)
        if metadata is not None:
            self._assembler.part_attributes(0, sort.item, address, sort.channel, None, None, None, metadata)
        self._assembler.part_value(0, sort.item, address, sort.channel, sort.reasoning, text)
        self._over(address, sort)

    def part(self, event: Mapping[str, Any], reader: Reader, *, summary: bool, closes: bool) -> bool:
        """`content_part` and `reasoning_summary_part`, added and done. False: it is of a type that nobody models."""
        place = "summary_index" if summary else "content_index"
        part = reader.notes.an_object(event, (), "part")
        if part is None:
            return True
        sort, member = _sorted(part, SUMMARY if summary else None)
        if sort is None:
            return False
        address = reader.address(event, place)
        text = reader.text(part, ("part",), member)
        metadata = as_object(reader.rest(part, ("part",), PART_FIELDS))
        if closes:
            address = self._placed(address, sort)
            self._annotations(part, ("part",), reader, address, sort)
            self._assembler.part_closed(0, sort.item, address, sort.channel, sort.reasoning, text, metadata)
            self._closed(address, sort)
            return True
        self._open(address, sort)
        self._assembler.part_opened(0, sort.item, address, sort.channel, sort.reasoning, text or None, metadata)
        self._annotations(part, ("part",), reader, address, sort)
        return True

    def annotation(self, event: Mapping[str, Any], reader: Reader) -> None:
        """`response.output_text.annotation.added`."""
        if event.get("annotation") is None:
            return
        sort, _ = CONTENT["output_text"]
        address = self._placed(reader.address(event, "content_index"), sort)
        raw = reader.payload.raw("annotation")
        self._assembler.part_attributes(0, sort.item, address, sort.channel, f"[{raw}]", None, None, None)
        key = _key(address)
        if key in self._annotated or len(self._annotated) < _ANNOTATED:
            self._annotated[key] = self._annotated.get(key, 0) + 1

    # The content of an item

    def open_content(self, item: Mapping[str, Any], path: Path, reader: Reader, address: Address) -> None:
        """What the announcement of an item carries already."""
        for sort, part, here, place in _content(item, path, reader):
            text = _text(part, here, sort, reader)
            if text:
                at = replace(address, sub=place)
                metadata = as_object(reader.rest(part, here, PART_FIELDS)) if is_object(part) else None
                self._open(at, sort)
                self._assembler.part_opened(0, sort.item, at, sort.channel, sort.reasoning, text, metadata)

    def close_content(
        self, item: Mapping[str, Any], path: Path, reader: Reader, address: Address, *, again: bool
    ) -> None:
        """The content of a whole item. `again`: in the terminal output, which only repeats."""
        tell = self._assembler.restate_part if again else self._assembler.part_closed
        for sort, part, here, place in _content(item, path, reader):
            at = replace(address, sub=place)
            metadata = None
            if is_object(part):
                self._annotations(part, here, reader, at, sort)
                metadata = as_object(reader.rest(part, here, PART_FIELDS))
            tell(0, sort.item, at, sort.channel, sort.reasoning, _text(part, here, sort, reader), metadata)
            self._closed(at, sort)

    def _annotations(self, part: Mapping[str, Any], path: Path, reader: Reader, address: Address, sort: Sort) -> None:
        """A list of annotations that repeats those that came one by one, and maybe brings more."""
        listed = part.get("annotations")
        if not is_array(listed):
            if listed is not None:
                reader.notes.shape((*path, "annotations"))
            return
        known = self._annotated.get(_key(address), 0)
        fresh = reader.payload.elements(*path, "annotations")[known:]
        if fresh:
            raw = "[" + ",".join(fresh) + "]"
            self._assembler.part_attributes(0, sort.item, address, sort.channel, raw, None, None, None)
            if known or len(self._annotated) < _ANNOTATED:
                self._annotated[_key(address)] = known + len(fresh)

    # P28

    def _open(self, address: Address, sort: Sort) -> None:
        key = _key(address)[0], sort
        if self._item != key:
            self._item = key
            self._opened.clear()
        self._opened.add(address.sub)
        self._current = address.sub

    def _placed(self, address: Address, sort: Sort) -> Address:
        """A place that no event opened, while another of the item is being written, is that other one."""
        key = _key(address)[0], sort
        if self._item != key:
            self._item = key
            self._opened.clear()
            self._current = None
        if self._current is None or address.sub is None or address.sub in self._opened:
            self._current = address.sub
        elif address.sub != self._current:
            return replace(address, sub=self._current)
        return address

    def _over(self, address: Address, sort: Sort) -> None:
        """A text is whole: what comes at another place is another one."""
        if self._item == (_key(address)[0], sort):
            self._current = None

    def _closed(self, address: Address, sort: Sort) -> None:
        self._annotated.pop(_key(address), None)
        self._over(address, sort)


def _key(address: Address) -> _Key:
    return address.item_id if address.index is None else address.index, address.sub


def _sorted(part: Mapping[str, Any], default: Sort | None) -> tuple[Sort | None, str]:
    """What a content part is, and where its text stands. None: a type that nobody models."""
    kind = part.get("type")
    if not isinstance(kind, str):
        kind = "output_text"
    known = CONTENT.get(kind)
    if known is None:
        return default, "text"
    return (default or known[0]), known[1]


def _content(item: Mapping[str, Any], path: Path, reader: Reader) -> Sequence[tuple[Sort, object, Path, int]]:
    """Every part of an item that holds text: what it is, the part, where it stands, its place."""
    found: list[tuple[Sort, object, Path, int]] = []
    for member, plain in (("summary", "summary_text"), ("content", "output_text")):
        parts = item.get(member)
        if item.get("type") == "reasoning" and member == "content":
            plain = "reasoning_text"
        if isinstance(parts, str) and parts:
            found.append((CONTENT[plain][0], parts, (*path, member), 0))
        elif is_array(parts):
            for place, part in enumerate(parts):
                here = (*path, member, place)
                sort = CONTENT[plain][0]
                if is_object(part):
                    kind = part.get("type")
                    if isinstance(kind, str) and kind not in CONTENT:
                        continue  # kept with its item
                    sort = CONTENT[kind][0] if isinstance(kind, str) and member == "content" else sort
                elif not isinstance(part, str):
                    if part is not None:
                        reader.notes.shape(here)
                    continue
                found.append((_of_item(item, sort), part, here, place))
        elif parts is not None and not isinstance(parts, str):
            reader.notes.shape((*path, member))
    return found


def _of_item(item: Mapping[str, Any], sort: Sort) -> Sort:
    """Text inside of a reasoning item is reasoning, whatever its part calls itself."""
    if item.get("type") == "reasoning" and sort.item == "message":
        return CONTENT["reasoning_text"][0]
    return sort


def _text(part: object, path: Path, sort: Sort, reader: Reader) -> str | None:
    if is_object(part):
        return reader.text(part, path, "refusal" if sort.channel == "refusal" else "text")
    return part if isinstance(part, str) else None
