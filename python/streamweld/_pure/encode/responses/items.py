"""Writes the output items of a Responses stream. Each item is opened once, and keeps its id and index until it ends.

The encoder determines which item an event belongs to and when an item ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from streamweld._pure.encode.common.encode_context import could_be_run
from streamweld._pure.encode.common.extra_members import members_text
from streamweld._pure.encode.common.part_details import WrittenText
from streamweld._pure.encode.common.writer import quoted, spliced
from streamweld._pure.encode.responses.item_members import OtherPart, OtherParts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld._pure.encode.responses.item_members import ItemMembers, ListedPart, SentParts

__all__ = ["CALL", "CUSTOM", "OPENRESPONSES", "RAW", "REFUSAL", "SUMMARY", "TEXT"]
__all__ += ["CallItem", "Holder", "Key", "TextItem", "Wire"]

ItemStatus: TypeAlias = Literal["completed", "incomplete"]
# Key of an item: its index or id, whether it is a message, and the number of earlier items with the same index.
Key: TypeAlias = tuple[int | str, bool, int]


class Wire:
    """Writes events with sequence numbers that start at 0 or follow those that passed through."""

    __slots__ = ("_context",)

    def __init__(self, context: EncodeContext) -> None:
        self._context = context

    def event(self, kind: str, fields: str) -> None:
        """Write one event. `fields` contains the members that follow the type and the sequence number."""
        number = self._number()
        self._context.frames.named(kind, f'{{"type":"{kind}",{number}{fields}}}')

    def event_later(self, kind: str, fields: Callable[[], str]) -> None:
        """Write an event with long fields. The fields are created on demand, because the event may be dropped."""
        number = self._number()
        self._context.frames.named_later(kind, lambda: f'{{"type":"{kind}",{number}{fields()}}}')

    def _number(self) -> str:
        passed = self._context.passed
        number = passed.sequence
        if number is None:
            return ""
        passed.sequence = number + 1
        return f'"sequence_number":{number},'


@dataclass(frozen=True, slots=True)
class Shape:
    """The names of the item, its events and its members for one kind of text."""

    part: str  # part events are named `response.<part>.added` and `.done`
    index: str  # member that contains the part's index within the item
    text: str  # text events are named `response.<text>.delta` and `.done`
    type: str  # type of the part
    member: str  # member that contains the text, in the part and in the done event
    holder: str | None  # member of a reasoning item that contains the parts; None for a message


TEXT: Final = Shape("content_part", "content_index", "output_text", "output_text", "text", None)
REFUSAL: Final = Shape("content_part", "content_index", "refusal", "refusal", "refusal", None)
RAW: Final = Shape("content_part", "content_index", "reasoning_text", "reasoning_text", "text", "content")
OPENRESPONSES: Final = Shape("content_part", "content_index", "reasoning", "reasoning_text", "text", "content")
SUMMARY: Final = Shape(
    "reasoning_summary_part", "summary_index", "reasoning_summary_text", "summary_text", "text", "summary"
)


@dataclass(frozen=True, slots=True)
class ClosedPart:
    """A part whose closing event was written."""

    kind: str  # type of the part
    json: str  # the part without its closing brace
    place: int  # number of the item's earlier parts in the same list

    def whole(self, sent: SentParts) -> str:
        """Return the JSON of the part, with the unknown members of the source's part."""
        return f"{self.json}{members_text(sent.members(self.place, self.kind))}}}"


class Holder:
    """A message or reasoning item, and its parts."""

    __slots__ = (
        "_next",
        "_others",
        "_texts",
        "at",
        "encrypted",
        "ended",
        "identity",
        "index",
        "is_message",
        "key",
        "kind",
        "members",
        "numbers",
        "open",
        "parts",
        "resumed",
        "status",
        "turn",
        "wire",
    )

    def __init__(
        self,
        wire: Wire,
        shape: Shape,
        identity: str | None,
        index: int,
        members: ItemMembers,
        *,
        announced: bool = False,
    ) -> None:
        """Create an item. `members` are the unknown members of the source's item. `announced` is true if the item's
        opening event was already written.
        """
        self.wire = wire
        self.members = members
        self.identity = "null" if identity is None else quoted(identity)
        self.index = index
        self.numbers: set[int] = set()  # numbers of the item's parts, if the item can have several
        self.open: set[int] = set()  # numbers of the open parts
        self.ended = False  # the closing event was already written
        self.resumed = False  # the item continued after its closing event; a second closing event is written at the end
        self.status: ItemStatus = "completed"  # status in the last closing event
        self.key: Key = (index, True, 0)  # the key and the turn; the encoder sets both
        self.turn = 0
        self.at = f'"output_index":{index}'
        self.is_message = shape.holder is None
        self.kind = "message" if self.is_message else "reasoning"
        self.encrypted: str | None = None
        # The parts by member and index. An open or retracted part is None.
        self.parts: dict[str, dict[int, ClosedPart | OtherPart | None]] = {shape.holder or "content": {}}
        self._next: dict[str, int] = {}  # for each index member, one more than the highest part index
        self._texts: dict[str, int] = {}  # for each index member, the number of parts written from events
        # The parts in `content` that are not written from events. Most items have none, and there may be many items.
        self._others: OtherParts | None = None
        self._list_others(members)
        if not announced:
            wire.event("response.output_item.added", f'{self.at},"item":{self._item("in_progress")}')

    def free_sub(self, shape: Shape, sent: int | None = None) -> int:
        """Return `sent` as the index of a new part, or the next free index if another part already has the index
        `sent`.
        """
        member = shape.holder or "content"
        return sent if sent is not None and sent not in self.parts.get(member, ()) else self._next.get(member, 0)

    def add_part(self, shape: Shape, sub: int) -> int:
        """Add an open part, and return the number of earlier parts in the same list that are written from events."""
        member = shape.holder or "content"
        place = self._texts.get(member, 0)
        self._texts[member] = place + 1
        self._take(member, sub, None)
        return place

    def _take(self, member: str, sub: int, part: OtherPart | None) -> None:
        self.parts.setdefault(member, {})[sub] = part
        self._next[member] = max(sub + 1, self._next.get(member, 0))

    def take_members(self, members: ItemMembers) -> None:
        """Take the members of the source's item, which may list other forms of the parts that were sent."""
        self.members = members
        self._list_others(members)

    def _list_others(self, members: ItemMembers) -> None:
        if self._others is not None or members.content.others:
            self._made_others().list(members.content.others)

    def _made_others(self) -> OtherParts:
        if self._others is None:
            self._others = OtherParts()
        return self._others

    def find_other(self, index: int | None, *, closes: bool) -> OtherPart | None:
        """Return the part with this index in the source, if it is written as it was sent."""
        return None if self._others is None else self._others.find(index, closes=closes)

    @property
    def has_open_others(self) -> bool:
        """Whether a part that is written as it was sent has not ended."""
        return self._others is not None and self._others.open > 0

    def add_other(self, sent: int | None, sub: int, raw: str, *, shows: bool = True) -> OtherPart:
        """Add a part that is written as it was sent. `sent` is its index in the source. If `shows` is false, only the
        item contains the part.
        """
        part = self._made_others().add(sent, sub, raw)
        self._take("content", sub, part)
        if shows:
            self._other_event("added", part)
        return part

    def end_other(self, part: OtherPart, *, shows: bool = True) -> None:
        """End a part that is written as it was sent."""
        if self._made_others().end(part) and shows:
            self._other_event("done", part)

    def end_others(self) -> None:
        """End the open parts that are written as they were sent."""
        if self._others is not None and self._others.open:
            for part in self._others.all:
                self.end_other(part)

    def next_other(self, shape: Shape | None) -> ListedPart | None:
        """Remove and return the next part that is not written yet and precedes the next text of a shape, or that
        precedes the end of the item.
        """
        waiting = None if self._others is None else self._others.waiting
        if not waiting or (shape is not None and waiting[-1].before > self._texts.get(shape.holder or "content", 0)):
            return None
        return waiting.pop()

    def _other_event(self, verb: str, part: OtherPart) -> None:
        fields = f'"item_id":{self.identity},{self.at},"content_index":{part.sub},"part":{spliced(part.json)}'
        self.wire.event(f"response.content_part.{verb}", fields)

    def sent_parts(self, shape: Shape) -> SentParts:
        """Return the unknown members of the parts in the list that contains parts of this shape."""
        return self.members.summary if shape is SUMMARY else self.members.content

    def close(self, status: ItemStatus) -> Callable[[], str]:
        """End the item and return a function that creates its final JSON.

        The JSON is created on demand, because the item may have many parts and may still continue.
        """
        self.status = status
        self.end_others()
        if not self.resumed:
            self.done()
        return lambda: self._item(status)

    def done(self) -> None:
        """Write the item's `output_item.done` event, unless the source's own event passed through."""
        if not self.ended:
            self.wire.event_later("response.output_item.done", lambda: f'{self.at},"item":{self._item(self.status)}')

    def _item(self, status: str) -> str:
        sent = self.members
        if status == "completed" and sent.is_incomplete:
            status = "incomplete"
        content = self._list("content", sent.content)
        if self.is_message:
            head = f'"type":"message","id":{self.identity},"status":"{status}"'
            return f'{{{head},"role":"assistant","content":[{content}]{members_text(sent.item)}}}'
        tail = f',"content":[{content}]' if "content" in self.parts else ""
        written = {"status"}
        if self.encrypted is not None:
            tail += f',"encrypted_content":{quoted(self.encrypted)}'
            written.add("encrypted_content")
        # A reasoning item needs a status only if it is incomplete.
        if status == "incomplete" or "status" in sent.item:
            tail += f',"status":"{status}"'
        tail += members_text({name: raw for name, raw in sent.item.items() if name not in written})
        summary = self._list("summary", sent.summary)
        return f'{{"type":"reasoning","id":{self.identity},"summary":[{summary}]{tail}}}'

    def _list(self, member: str, sent: SentParts) -> str:
        """Return the closed parts of a list."""
        closed = [part for _, part in sorted(self.parts.get(member, {}).items(), key=_index) if part is not None]
        return ",".join([part.whole(sent) for part in closed])


def _index(entry: tuple[int, object]) -> int:
    return entry[0]


class TextItem:
    """One part of a message or reasoning item."""

    __slots__ = (
        "_location",
        "_place",
        "_shape",
        "_sub",
        "_wire",
        "annotations",
        "holder",
        "logprobs",
        "whole",
        "written_text",
    )

    def __init__(self, holder: Holder, shape: Shape, sub: int) -> None:
        """Open a part. `sub` is its index."""
        self.holder = holder
        self.annotations: list[str] = []
        self._wire = holder.wire
        self._shape = shape
        self._sub = sub
        self._location = f'"item_id":{holder.identity},{holder.at},"{shape.index}":{sub}'
        self.written_text = WrittenText()
        self.whole: str | None = None  # the text in the part's final event, if it has arrived
        self.logprobs: list[str] = []  # log probabilities of the text so far
        self._place = holder.add_part(shape, sub)
        self._event(f"{shape.part}.added", f'"part":{self._part("")}}}')

    def delta(self, text: str, logprobs: str = "") -> None:
        self.written_text.add(text)
        self._event(f"{self._shape.text}.delta", f'"delta":{quoted(text)}{self._extra(logprobs)}')
        if logprobs:
            self.logprobs.append(logprobs)

    def _extra(self, logprobs: str) -> str:
        """Return the member that follows the text in text events and in the part."""
        return f',"logprobs":[{logprobs}]' if self._shape is TEXT else ""

    def is_retracted(self) -> bool:
        """Return True if text was streamed, but the final item does not contain it."""
        return self.whole == "" and bool(self.written_text.text())

    def annotate(self, annotations: Iterable[str], *, closed: bool = False) -> None:
        """Add annotations. `closed` is true if the closing events of the part, which contain the annotations, were
        already written.
        """
        for annotation in annotations:
            if not closed:
                self._event(
                    f"{self._shape.text}.annotation.added",
                    f'"annotation_index":{len(self.annotations)},"annotation":{annotation}',
                )
            self.annotations.append(annotation)

    def close_part(self, *, closed: bool = False) -> None:
        """Write the closing events of the part.

        The text in these events replaces the deltas. `closed` is true if these events were already written.
        """
        text = quoted(self.written_text.text() if self.whole is None else self.whole)
        shape = self._shape
        part = ClosedPart(shape.type, self._part(text[1:-1]), self._place)
        self.holder.parts[shape.holder or "content"][self._sub] = part
        if closed:
            return
        extra = self._extra(",".join(self.logprobs))
        self._event(f"{shape.text}.done", f'"{shape.member}":{text}{extra}')
        self._event(f"{shape.part}.done", f'"part":{part.whole(self.holder.sent_parts(shape))}')

    def close(self, status: ItemStatus) -> Callable[[], str]:
        """Write the closing events of the only part of an item, and return a function that creates the item's final
        JSON.
        """
        self.close_part()
        return self.holder.close(status)

    def _event(self, kind: str, fields: str) -> None:
        self._wire.event(f"response.{kind}", f"{self._location},{fields}")

    def _part(self, text: str) -> str:
        """Return the JSON of the part without its closing brace."""
        shape = self._shape
        cited = f',"annotations":[{",".join(self.annotations)}]' if shape is TEXT else ""
        return f'{{"type":"{shape.type}","{shape.member}":"{text}"{cited}{self._extra(",".join(self.logprobs))}'


@dataclass(frozen=True, slots=True)
class CallShape:
    """The names for one kind of call: the item type, the prefix of the event types, and the member that contains the
    text.
    """

    type: str
    text: str
    member: str


CALL: Final = CallShape("function_call", "function_call_arguments", "arguments")
CUSTOM: Final = CallShape("custom_tool_call", "custom_tool_call_input", "input")


class CallItem:
    """Writes the output item of a call that the client runs."""

    __slots__ = (
        "_at",
        "_head",
        "_location",
        "_shape",
        "_wire",
        "call_id",
        "corrected",
        "custom",
        "identity",
        "index",
        "members",
        "name",
        "written_text",
        "whole",
    )

    def __init__(
        self,
        wire: Wire,
        shape: CallShape,
        identity: str | None,
        index: int,
        names: Mapping[str, str],
        members: ItemMembers,
    ) -> None:
        """Create a call. `names` contains the item's `call_id` and `name`. `members` are the unknown members of the
        source's item.
        """
        self.index = index
        self.members = members
        item_id = self.identity = "null" if identity is None else quoted(identity)
        self._wire = wire
        self._shape = shape
        self.call_id = names["call_id"]
        self.name = names["name"]
        self.custom = shape is CUSTOM
        self.corrected = False  # the upstream reset the text, so only the closing events contain it
        self.written_text = WrittenText()
        self.whole: str | None = None
        self._at = f'"output_index":{index}'
        self._location = f'"item_id":{item_id},{self._at}'
        self._head = f'"type":"{shape.type}","id":{item_id},"call_id":{quoted(self.call_id)},"name":{quoted(self.name)}'
        wire.event("response.output_item.added", f'{self._at},"item":{self._item("in_progress", quoted(""))}')

    @property
    def kind(self) -> str:
        """The type of the item."""
        return self._shape.type

    def delta(self, text: str) -> None:
        if text and not self.corrected:
            self.written_text.add(text)
            self._wire.event(f"response.{self._shape.text}.delta", f'{self._location},"delta":{quoted(text)}')

    def could_be_run(self) -> bool:
        """Return True if a client that ignores the status would run the call."""
        return could_be_run(self._text(), self.custom)

    def close(self, status: ItemStatus, *, closed: bool = False, ended: bool = False) -> Callable[[], str]:
        """Write the closing events, unless they were already written, and return a function that returns the item."""
        text = quoted(self._text())
        if not closed:
            self._wire.event(f"response.{self._shape.text}.done", f'{self._location},"{self._shape.member}":{text}')
        if not ended:
            self._wire.event("response.output_item.done", f'{self._at},"item":{self._item(status, text)}')
        return lambda: self._item(status, text)

    def _text(self) -> str:
        return self.written_text.text() if self.whole is None else self.whole

    def _item(self, status: str, text: str) -> str:
        extra = members_text(self.members.item)
        return f'{{{self._head},"{self._shape.member}":{text},"status":"{status}"{extra}}}'
