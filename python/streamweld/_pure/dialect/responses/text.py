"""Decodes the text of a Responses stream: deltas, final values, content parts, summaries, and annotations.

This module finds the text in an event. The assembler determines which part the text belongs to.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.responses.content_index import ContentIndexes
from streamweld._pure.dialect.responses.spec_tables import (
    CONTENT,
    PART_FIELDS,
    SUMMARY,
    TEXT_DELTAS,
    TEXT_VALUES,
    is_unmodelled_part,
)
from streamweld._pure.json.kinds import is_array, is_object
from streamweld._pure.json.members import as_object
from streamweld._pure.model.delta import Address, ListedPart
from streamweld._pure.model.unmodelled import SentPart

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.dialect.responses.content_index import Purpose
    from streamweld._pure.dialect.responses.read import Reader
    from streamweld._pure.dialect.responses.spec_tables import TextKind
    from streamweld._pure.json.members import Raw
    from streamweld._pure.json.scanner import Path

_REMEMBERED = 4096  # maximum number of items for which annotation counts and closed parts are stored

_DELTA_MEMBERS = ("text", "content", "delta", "refusal")  # members that may contain the text if a delta is an object

_Key = int | str | None
_Part = str | dict[str, Any]  # some gateways send only a string


class TextReader:
    """Decodes the text of one stream."""

    __slots__ = (
        "_annotated",
        "_assembler",
        "_carried",
        "_closed",
        "_members",
        "_members_of",
        "_indexes",
        "_summary_indexes",
        "has_text",
    )

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler
        self._annotated: dict[_Key, dict[int | None, int]] = {}  # number of annotations received for each part
        self._closed: dict[_Key, set[int | None]] = {}  # parts that are closed
        # Unknown members of the last announced message (such as `phase`). These members become metadata of the
        # message's parts.
        self._members: Raw = {}
        self._members_of: _Key = None
        self._carried = True
        self._indexes = ContentIndexes()  # part positions by `content_index`
        self._summary_indexes = ContentIndexes()
        self.has_text = False  # whether text of a message has arrived

    # Text events

    def delta(self, event: Mapping[str, Any], reader: Reader) -> None:
        """Handle `response.output_text.delta` and the other text deltas."""
        facts = TEXT_DELTAS[reader.kind]
        text_kind = facts.text_kind
        text = _delta_text(event, facts.member, reader)
        if not text:
            return
        address = self._with_position(reader.address(event, facts.position), reader, text_kind, "delta")
        if not self._carried and self._members_of == _key(address) and text_kind.item == "message":
            # No event opened the part, so it is opened here with the members of the message. A delta does not contain
            # these members.
            self._carried = True
            members_sent = as_object(self._members)
            self._assembler.part_opened(
                0, text_kind.item, address, text_kind.channel, text_kind.reasoning, None, members_sent
            )
        metadata = reader.metadata(event)
        self._note(text_kind, text)
        self._assembler.part_text(0, text_kind.item, address, text_kind.channel, text_kind.reasoning, text, metadata)

    def recovered(self, event: Mapping[str, Any], reader: Reader, address: Address) -> None:
        """Append the message text of a delta that follows a broken document.

        The ids in the delta are ignored, because they may be wrong.
        """
        text_kind = TEXT_DELTAS[reader.kind].text_kind
        text = _delta_text(event, "delta", reader)
        if text and text_kind.item == "message":
            self._assembler.part_text(0, text_kind.item, address, text_kind.channel, text_kind.reasoning, text, None)

    def value(self, event: Mapping[str, Any], reader: Reader) -> None:
        """Handle `response.output_text.done` and similar events, which contain the complete text.

        The part closes later, when its content part or its item closes.
        """
        facts = TEXT_VALUES[reader.kind]
        text_kind = facts.text_kind
        address = self._with_position(reader.address(event, facts.position), reader, text_kind, "value")
        text = reader.text(event, (), facts.member)
        self._note(text_kind, text)
        self._assembler.part_value(0, text_kind.item, address, text_kind.channel, text_kind.reasoning, text)
        metadata = reader.metadata(event)
        if metadata is not None:
            self._assembler.part_attributes(0, text_kind.item, address, text_kind.channel, None, None, None, metadata)

    def part(self, event: Mapping[str, Any], reader: Reader, *, summary: bool, closes: bool) -> bool:
        """Handle `content_part` and `reasoning_summary_part` events (added and done).

        Return False if the part has an unknown type.
        """
        part = reader.notes.an_object(event, (), "part")
        if part is None:
            return True
        text_kind, member = _text_kind_of(part, SUMMARY if summary else None)
        sent = reader.address(event, "summary_index" if summary else "content_index")
        if text_kind is None:
            if not closes:
                self._indexes.skip(sent)
            if reader.out.on_unmodelled is not None:
                raw = reader.payload.raw("part") or "{}"
                reader.out.keep(SentPart(sent.item_id, sent.index, sent.sub, raw, closes))
            return False
        address = self._with_position(sent, reader, text_kind, "close" if closes else "open")
        text = reader.text(part, ("part",), member)
        self._note(text_kind, text)
        members = reader.extra_fields(part, ("part",), PART_FIELDS)
        if closes:
            self._annotations(part, ("part",), reader, address, text_kind)
            self._assembler.part_closed(
                0, text_kind.item, address, text_kind.channel, text_kind.reasoning, text, as_object(members)
            )
            self._close(address)
            return True
        if self._members_of == _key(address) and text_kind.item == "message":
            self._carried = True
            members = {**self._members, **members}
        self._assembler.part_opened(
            0, text_kind.item, address, text_kind.channel, text_kind.reasoning, text or None, as_object(members)
        )
        self._annotations(part, ("part",), reader, address, text_kind)
        return True

    def annotation(self, event: Mapping[str, Any], reader: Reader) -> None:
        """Handle `response.output_text.annotation.added`."""
        if event.get("annotation") is None:
            return
        text_kind, _ = CONTENT["output_text"]
        address = self._with_position(reader.address(event, "content_index"), reader, text_kind, "delta")
        raw = reader.payload.raw("annotation")
        self._assembler.part_attributes(0, text_kind.item, address, text_kind.channel, f"[{raw}]", None, None, None)
        self._count(address, 1)

    def _with_position(self, sent: Address, reader: Reader, text_kind: TextKind, purpose: Purpose) -> Address:
        """Return the address after replacing the part index with the position of the part in its item."""
        position = self._content_indexes(text_kind).of(sent, text_kind.channel, purpose)
        if position == sent.sub:
            return sent
        reader.mark_misread("index_taken")  # clients keep the parts of an item in a list
        return replace(sent, sub=position)

    def _content_indexes(self, text_kind: TextKind) -> ContentIndexes:
        return self._summary_indexes if text_kind.reasoning == "summary" else self._indexes

    def top_level(self, response: Mapping[str, Any], reader: Reader) -> None:
        """Emit the `output_text` member of a finished response, if the response has no other text."""
        text = response.get("output_text")
        if self.has_text or not isinstance(text, str) or not text:
            return
        reader.mark_misread("other_member")  # clients compute this member from the output
        text_kind, _ = CONTENT["output_text"]
        self._note(text_kind, text)
        self._assembler.part_text(0, text_kind.item, Address(), text_kind.channel, text_kind.reasoning, text, None)

    def _note(self, text_kind: TextKind, text: str | None) -> None:
        self.has_text = self.has_text or bool(text and text_kind.item == "message")

    # The content of an item

    def open_content(self, item: Mapping[str, Any], path: Path, reader: Reader, address: Address, members: Raw) -> None:
        """Open the parts of an announced item that already contain text. `members`: the unknown members of the item."""
        self._members = members
        self._carried = not members
        key = self._members_of = _key(address)
        self._annotated.pop(key, None)
        self._closed.pop(key, None)
        self._indexes.begin(address)
        self._summary_indexes.begin(address)
        unmodelled = _unmodelled_positions(item)
        skipped = 0
        for text_kind, part, here, position in _content(item, path, reader):
            while text_kind.reasoning != "summary" and skipped < len(unmodelled) and unmodelled[skipped] < position:
                self._indexes.skip_listed(replace(address, sub=unmodelled[skipped]))
                skipped += 1
            text = _text(part, here, text_kind, reader)
            self._note(text_kind, text)
            if text:
                at = replace(address, sub=position)
                self._content_indexes(text_kind).of(at, text_kind.channel, "open")
                members_sent = as_object({**members, **_extra_fields(part, here, reader)})
                self._carried = True
                self._assembler.part_opened(
                    0, text_kind.item, at, text_kind.channel, text_kind.reasoning, text, members_sent
                )
        for position in unmodelled[skipped:]:
            self._indexes.skip_listed(replace(address, sub=position))

    def close_content(
        self, item: Mapping[str, Any], path: Path, reader: Reader, address: Address, members: Raw, *, again: bool
    ) -> Raw:
        """Close the parts of a complete item.

        `again`: whether the item is in the terminal output, which repeats streamed items. `members`: the unknown
        members of the item.

        Return the members in `members` that were not reported when the item opened. If a message was never announced,
        its members become metadata of its first part instead.
        """
        announced = self._members_of == _key(address)
        entries: list[ListedPart] = []
        for text_kind, part, here, position in _content(item, path, reader):
            at = replace(address, sub=self._content_indexes(text_kind).listed(address, text_kind.channel, position))
            annotations = None
            if not isinstance(part, str) and not self._is_closed(at):
                annotations = self._new_annotations(part, here, reader, at)
            rest = _extra_fields(part, here, reader)
            if text_kind.item == "message" and not announced:
                rest, members = {**members, **rest}, {}
            self._close(at)
            text = _text(part, here, text_kind, reader)
            self._note(text_kind, text)
            entry = ListedPart(
                text_kind.item, at, text_kind.channel, text_kind.reasoning, text, annotations, as_object(rest)
            )
            entries.append(entry)
        self._assembler.parts_listed(0, entries, again=again)
        self._indexes.finish(address)
        self._summary_indexes.finish(address)
        if not announced:
            return members
        known = self._members if self._carried else {}
        self._members, self._members_of, self._carried = {}, None, True
        return {key: raw for key, raw in members.items() if known.get(key) != raw}

    def _annotations(
        self, part: Mapping[str, Any], path: Path, reader: Reader, address: Address, text_kind: TextKind
    ) -> None:
        """Emit the new annotations of a part, which have not been received before."""
        raw = self._new_annotations(part, path, reader, address)
        if raw is not None:
            self._assembler.part_attributes(0, text_kind.item, address, text_kind.channel, raw, None, None, None)

    def _new_annotations(self, part: Mapping[str, Any], path: Path, reader: Reader, address: Address) -> str | None:
        """Return the annotations of a part that have not been received before, as a JSON array. Return None if there
        are no new annotations.
        """
        listed = part.get("annotations")
        if not is_array(listed):
            if listed is not None:
                reader.notes.shape((*path, "annotations"))
            return None
        known = self._annotated.get(_key(address), {}).get(address.sub, 0)
        fresh = reader.payload.elements(*path, "annotations")[known:]
        if not fresh:
            return None
        self._count(address, len(fresh))
        return "[" + ",".join(fresh) + "]"

    def _count(self, address: Address, more: int) -> None:
        key = _key(address)
        if key in self._annotated or len(self._annotated) < _REMEMBERED:
            counts = self._annotated.setdefault(key, {})
            if address.sub in counts or len(counts) < _REMEMBERED:
                counts[address.sub] = counts.get(address.sub, 0) + more

    def _close(self, address: Address) -> None:
        for key in {_key(address), address.item_id}:
            if key in self._closed or len(self._closed) < _REMEMBERED:
                positions = self._closed.setdefault(key, set())
                if len(positions) < _REMEMBERED:
                    positions.add(address.sub)

    def _is_closed(self, address: Address) -> bool:
        return any(address.sub in self._closed.get(key, ()) for key in {_key(address), address.item_id})


def _key(address: Address) -> _Key:
    return address.item_id if address.index is None else address.index


def _text_kind_of(part: Mapping[str, Any], default: TextKind | None) -> tuple[TextKind | None, str]:
    """Return the `TextKind` of the part in a `content_part` or summary part event, and the name of the member that
    contains the part's text.

    If `default` is given, it is used instead of the `TextKind` that the part type implies. If `default` is None, the
    `TextKind` of an unknown type is None.
    """
    kind = part.get("type")
    if not isinstance(kind, str):
        kind = "output_text"
    known = CONTENT.get(kind)
    if known is None:
        return default, "text"
    return (default or known[0]), known[1]


def _content(item: Mapping[str, Any], path: Path, reader: Reader) -> Iterator[tuple[TextKind, _Part, Path, int]]:
    """For every part of an item that contains text, yield the `TextKind`, the part, its path, and its position."""
    reasons = item.get("type") == "reasoning"
    plain = {"summary": SUMMARY, "content": CONTENT["reasoning_text" if reasons else "output_text"][0]}
    for member, text_kind in plain.items():
        value = item.get(member)
        parts: list[Any] = value if is_array(value) else [value] if isinstance(value, str) else []
        if value is not None and not isinstance(value, str | list):
            reader.notes.shape((*path, member))
        for position, part in enumerate(parts):
            here = (*path, member, position)
            if isinstance(part, str):
                yield text_kind, part, (*path, member), position
            elif is_object(part):
                kind = part.get("type")
                if kind is None or (member == "summary" and isinstance(kind, str)):
                    yield text_kind, part, here, position
                elif isinstance(kind, str) and kind in CONTENT:
                    # Text inside a reasoning item is reasoning, regardless of the type of its part.
                    own = CONTENT[kind][0]
                    yield (text_kind if reasons and own.item == "message" else own), part, here, position
                elif not isinstance(kind, str):
                    reader.notes.shape((*here, "type"))
            elif part is not None:
                reader.notes.shape(here)


def _unmodelled_positions(item: Mapping[str, Any]) -> list[int]:
    """Return the positions of an item's parts of unknown type."""
    content = item.get("content")
    listed: list[Any] = content if is_array(content) else []
    return [position for position, part in enumerate(listed) if is_unmodelled_part(part)]


def _delta_text(event: Mapping[str, Any], member: str, reader: Reader) -> str | None:
    """Return the text of a delta. Some gateways send an object that contains the text, or send the text in the member
    `text`, which final events use.
    """
    if event.get(member) is None:
        member = "text"
    inner = event.get(member)
    if is_object(inner):
        reader.notes.shape((member,))
        text = next((inner[key] for key in _DELTA_MEMBERS if isinstance(inner.get(key), str)), None)
        return text if isinstance(text, str) else None
    return reader.text(event, (), member)


def _text(part: _Part, path: Path, text_kind: TextKind, reader: Reader) -> str | None:
    if isinstance(part, str):
        return part
    return reader.text(part, path, "refusal" if text_kind.channel == "refusal" else "text")


def _extra_fields(part: _Part, path: Path, reader: Reader) -> Raw:
    return {} if isinstance(part, str) else reader.extra_fields(part, path, PART_FIELDS)
