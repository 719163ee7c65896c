"""Writes the output items of a Responses stream. Each item is opened once, and keeps its id and index until it ends.

The encoder determines which item an event belongs to and when an item ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from streamweld._pure.encode.common.part_details import WrittenText
from streamweld._pure.encode.common.same_json import is_value
from streamweld._pure.encode.common.writer import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from streamweld._pure.encode.common.citations import Citation
    from streamweld._pure.encode.common.encode_context import EncodeContext

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
        if passed.sequence is None:
            return ""
        number = f'"sequence_number":{passed.sequence},'
        passed.sequence += 1
        return number


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


class Holder:
    """A message or reasoning item, and its parts."""

    __slots__ = (
        "_next",
        "at",
        "encrypted",
        "ended",
        "identity",
        "index",
        "is_message",
        "key",
        "numbers",
        "open",
        "parts",
        "resumed",
        "status",
        "turn",
        "wire",
    )

    def __init__(self, wire: Wire, shape: Shape, identity: str | None, index: int, *, announced: bool = False) -> None:
        """Create an item. `announced` is true if the item's opening event was already written."""
        self.wire = wire
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
        self.encrypted: str | None = None
        self.parts: dict[str, dict[int, str]] = {shape.holder or "content": {}}  # part JSON, by member and index
        self._next: dict[str, int] = {}  # for each index member, one more than the highest part index
        if not announced:
            wire.event("response.output_item.added", f'{self.at},"item":{self._item("in_progress")}')

    def free_sub(self, shape: Shape, sent: int | None = None) -> int:
        """Return `sent` as the index of a new part, or the next free index if another part already has the index
        `sent`.
        """
        member = shape.holder or "content"
        return sent if sent is not None and sent not in self.parts.get(member, ()) else self._next.get(member, 0)

    def put(self, shape: Shape, sub: int, part: str) -> None:
        """Store the current form of a part."""
        member = shape.holder or "content"
        self.parts.setdefault(member, {})[sub] = part
        self._next[member] = max(sub + 1, self._next.get(member, 0))

    def close(self, status: ItemStatus) -> Callable[[], str]:
        """End the item and return a function that creates its final JSON.

        The JSON is created on demand, because the item may have many parts and may still continue.
        """
        self.status = status
        if not self.resumed:
            self.done()
        return lambda: self._item(status)

    def done(self) -> None:
        """Write the item's `output_item.done` event, unless the source's own event passed through."""
        if not self.ended:
            self.wire.event_later("response.output_item.done", lambda: f'{self.at},"item":{self._item(self.status)}')

    def _item(self, status: str) -> str:
        lists = {
            member: ",".join([part for _, part in sorted(parts.items()) if part])
            for member, parts in self.parts.items()
        }
        if self.is_message:
            head = f'"type":"message","id":{self.identity},"status":"{status}"'
            return f'{{{head},"role":"assistant","content":[{lists["content"]}]}}'
        # A reasoning item needs a status only if it is incomplete.
        tail = ',"status":"incomplete"' if status == "incomplete" else ""
        content = f',"content":[{lists["content"]}]' if "content" in lists else ""
        if self.encrypted is not None:
            content += f',"encrypted_content":{quoted(self.encrypted)}'
        return f'{{"type":"reasoning","id":{self.identity},"summary":[{lists.get("summary", "")}]{content}{tail}}}'


class TextItem:
    """One part of a message or reasoning item."""

    __slots__ = ("_location", "_shape", "_sub", "_wire", "holder", "logprobs", "written_text", "whole")

    def __init__(self, holder: Holder, shape: Shape, sub: int) -> None:
        self.holder = holder
        self._wire = holder.wire
        self._shape = shape
        self._sub = sub
        self._location = f'"item_id":{holder.identity},{holder.at},"{shape.index}":{sub}'
        self.written_text = WrittenText()
        self.whole: str | None = None  # the text in the part's final event, if it has arrived
        self.logprobs: list[str] = []  # log probabilities of the text so far
        holder.put(shape, sub, "")
        self._event(f"{shape.part}.added", f'"part":{self._part("", "")}')

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

    def close_part(self, citations: Sequence[Citation] = (), *, closed: bool = False) -> None:
        """Write the closing events of the part.

        The text in these events replaces the deltas. `closed` is true if these events were already written.
        """
        text = quoted(self.written_text.text() if self.whole is None else self.whole)
        shape = self._shape
        annotations = [_annotation(citation) for citation in citations]
        part = self._part(text[1:-1], ",".join(annotations))
        self.holder.put(shape, self._sub, part)
        if closed:
            return
        for number, annotation in enumerate(annotations):
            self._event(f"{shape.text}.annotation.added", f'"annotation_index":{number},"annotation":{annotation}')
        extra = self._extra(",".join(self.logprobs))
        self._event(f"{shape.text}.done", f'"{shape.member}":{text}{extra}')
        self._event(f"{shape.part}.done", f'"part":{part}')

    def close(self, status: ItemStatus, citations: Sequence[Citation] = ()) -> Callable[[], str]:
        """Write the closing events of the only part of an item, and return a function that creates the item's final
        JSON.
        """
        self.close_part(citations)
        return self.holder.close(status)

    def _event(self, kind: str, fields: str) -> None:
        self._wire.event(f"response.{kind}", f"{self._location},{fields}")

    def _part(self, text: str, annotations: str) -> str:
        shape = self._shape
        cited = f',"annotations":[{annotations}]' if shape is TEXT else ""
        extra = self._extra(",".join(self.logprobs))
        return f'{{"type":"{shape.type}","{shape.member}":"{text}"{cited}{extra}}}'


def _annotation(citation: Citation) -> str:
    span = f'"start_index":{citation.start or 0},"end_index":{citation.end or 0}'
    return f'{{"type":"url_citation","url":{quoted(citation.url)},{span},"title":{quoted(citation.title or "")}}}'


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
        "name",
        "written_text",
        "whole",
    )

    def __init__(
        self, wire: Wire, shape: CallShape, identity: str | None, index: int, names: Mapping[str, str]
    ) -> None:
        """Create a call. `names` contains the item's `call_id` and `name`."""
        item_id = "null" if identity is None else quoted(identity)
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

    def delta(self, text: str) -> None:
        if text and not self.corrected:
            self.written_text.add(text)
            self._wire.event(f"response.{self._shape.text}.delta", f'{self._location},"delta":{quoted(text)}')

    def could_be_run(self) -> bool:
        """Return True if a client that ignores the status would run the call. The AI SDK treats missing arguments as
        `{}`.
        """
        text = self._text()
        return self.custom or not text.strip() or is_value(text)

    def close(self, status: ItemStatus, *, closed: bool = False, ended: bool = False) -> Callable[[], str]:
        """Write the closing events, unless they were already written, and return a function that returns the item."""
        text = quoted(self._text())
        if not closed:
            self._wire.event(f"response.{self._shape.text}.done", f'{self._location},"{self._shape.member}":{text}')
        item = self._item(status, text)
        if not ended:
            self._wire.event("response.output_item.done", f'{self._at},"item":{item}')
        return lambda: item

    def _text(self) -> str:
        return self.written_text.text() if self.whole is None else self.whole

    def _item(self, status: str, text: str) -> str:
        return f'{{{self._head},"{self._shape.member}":{text},"status":"{status}"}}'
