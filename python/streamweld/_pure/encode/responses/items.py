"""The output items of a Responses stream: each is added once, filled, and done once, under one id and one index.

Knows the frames of items. Which event belongs to which item, and when one is over, is the encoder's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from streamweld._pure.encode.common.part_details import Told
from streamweld._pure.encode.common.same_json import is_value
from streamweld._pure.encode.common.writer import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from streamweld._pure.encode.common.citations import Citation
    from streamweld._pure.encode.common.encode_context import EncodeContext

__all__ = ["CALL", "CUSTOM", "OPENRESPONSES", "RAW", "REFUSAL", "SUMMARY", "TEXT"]
__all__ += ["CallItem", "Holder", "Key", "TextItem", "Wire"]

ItemStatus: TypeAlias = Literal["completed", "incomplete"]
Key: TypeAlias = tuple[int | str, bool]  # of an item: its index or its id, and whether it is a message


class Wire:
    """Events with their sequence numbers: from 0, or behind what passed, by one."""

    __slots__ = ("_job",)

    def __init__(self, job: EncodeContext) -> None:
        self._job = job

    def event(self, kind: str, fields: str) -> None:
        """One event; `fields`: its members behind type and number."""
        number = self._number()
        self._job.frames.named(kind, f'{{"type":"{kind}",{number}{fields}}}')

    def event_later(self, kind: str, fields: Callable[[], str]) -> None:
        """The same with fields that are long, and may be dropped before they are written."""
        number = self._number()
        self._job.frames.named_later(kind, lambda: f'{{"type":"{kind}",{number}{fields()}}}')

    def _number(self) -> str:
        passed = self._job.passed
        if passed.sequence is None:
            return ""
        number = f'"sequence_number":{passed.sequence},'
        passed.sequence += 1
        return number


@dataclass(frozen=True, slots=True)
class Shape:
    """How one sort of text is written."""

    part: str  # the family of its part's events
    index: str  # what a part's place is called
    text: str  # the family of its text's events
    type: str  # of the part
    member: str  # of the part and of the done event, which holds the text
    holder: str | None  # the member of a reasoning that holds the parts; None: a message
    extra: str = ""  # what the text's events have beside
    part_extra: str = ""


TEXT: Final = Shape(
    "content_part", "content_index", "output_text", "output_text", "text", None, ',"logprobs":[]', ',"logprobs":[]'
)
REFUSAL: Final = Shape("content_part", "content_index", "refusal", "refusal", "refusal", None)
RAW: Final = Shape("content_part", "content_index", "reasoning_text", "reasoning_text", "text", "content")
OPENRESPONSES: Final = Shape("content_part", "content_index", "reasoning", "reasoning_text", "text", "content")
SUMMARY: Final = Shape(
    "reasoning_summary_part", "summary_index", "reasoning_summary_text", "summary_text", "text", "summary"
)


class Holder:
    """A message or a reasoning, with its parts."""

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
        """`announced`: its opening went out before."""
        self.wire = wire
        self.identity = "null" if identity is None else quoted(identity)
        self.index = index
        self.numbers: set[int] = set()  # of its parts, where it may have several
        self.open: set[int] = set()  # those that are not over
        self.ended = False  # its close went out before
        self.resumed = False  # it continued after its close, which the encoder writes once more, at the end
        self.status: ItemStatus = "completed"  # of its last close
        self.key: Key = (index, True)  # the encoder's own: under which it is found, and when it came under that
        self.turn = 0
        self.at = f'"output_index":{index}'
        self.is_message = shape.holder is None
        self.encrypted: str | None = None
        self.parts: dict[str, dict[int, str]] = {shape.holder or "content": {}}  # by the member that holds them
        self._next: dict[str, int] = {}  # by the same, the place behind all of them
        if not announced:
            wire.event("response.output_item.added", f'{self.at},"item":{self._item("in_progress")}')

    def free_sub(self, shape: Shape, sent: int | None = None) -> int:
        """The place of a new part: as sent, unless another one has it."""
        member = shape.holder or "content"
        return sent if sent is not None and sent not in self.parts.get(member, ()) else self._next.get(member, 0)

    def put(self, shape: Shape, sub: int, part: str) -> None:
        """A part as it is so far, or in the end."""
        member = shape.holder or "content"
        self.parts.setdefault(member, {})[sub] = part
        self._next[member] = max(sub + 1, self._next.get(member, 0))

    def close(self, status: ItemStatus) -> Callable[[], str]:
        """The item as it is in the end, made when it is asked for: it may have many parts, and go on behind this."""
        self.status = status
        if not self.resumed:
            self.done()
        return lambda: self._item(status)

    def done(self) -> None:
        """Write the done event of the item, unless the source's own passed."""
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
        # The schema's reasoning has no status; only what is not whole must say so.
        tail = ',"status":"incomplete"' if status == "incomplete" else ""
        content = f',"content":[{lists["content"]}]' if "content" in lists else ""
        if self.encrypted is not None:
            content += f',"encrypted_content":{quoted(self.encrypted)}'
        return f'{{"type":"reasoning","id":{self.identity},"summary":[{lists.get("summary", "")}]{content}{tail}}}'


class TextItem:
    """One part of a message or a reasoning."""

    __slots__ = ("_place", "_shape", "_sub", "_wire", "holder", "told", "whole")

    def __init__(self, holder: Holder, shape: Shape, sub: int) -> None:
        self.holder = holder
        self._wire = holder.wire
        self._shape = shape
        self._sub = sub
        self._place = f'"item_id":{holder.identity},{holder.at},"{shape.index}":{sub}'
        self.told = Told()
        self.whole: str | None = None  # the text as its end said it, where that is known
        holder.put(shape, sub, "")
        self._event(f"{shape.part}.added", f'"part":{self._part("", "")}')

    def delta(self, text: str) -> None:
        self.told.add(text)
        self._event(f"{self._shape.text}.delta", f'"delta":{quoted(text)}{self._shape.extra}')

    def is_retracted(self) -> bool:
        """Whether the text was streamed, and its item does not have it."""
        return self.whole == "" and bool(self.told.text())

    def close_part(self, citations: Sequence[Citation] = (), *, closed: bool = False) -> None:
        """The done events of the part. What its end said has authority over the deltas. `closed`: they went out."""
        text = quoted(self.told.text() if self.whole is None else self.whole)
        shape = self._shape
        annotations = [_annotation(citation) for citation in citations]
        part = self._part(text[1:-1], ",".join(annotations))
        self.holder.put(shape, self._sub, part)
        if closed:
            return
        for number, annotation in enumerate(annotations):
            self._event(f"{shape.text}.annotation.added", f'"annotation_index":{number},"annotation":{annotation}')
        self._event(f"{shape.text}.done", f'"{shape.member}":{text}{shape.extra}')
        self._event(f"{shape.part}.done", f'"part":{part}')

    def close(self, status: ItemStatus, citations: Sequence[Citation] = ()) -> Callable[[], str]:
        """The done events of a part that is all of its item; the item as it is in the end."""
        self.close_part(citations)
        return self.holder.close(status)

    def _event(self, kind: str, fields: str) -> None:
        self._wire.event(f"response.{kind}", f"{self._place},{fields}")

    def _part(self, text: str, annotations: str) -> str:
        shape = self._shape
        cited = f',"annotations":[{annotations}]' if shape is TEXT else ""
        return f'{{"type":"{shape.type}","{shape.member}":"{text}"{cited}{shape.part_extra}}}'


def _annotation(citation: Citation) -> str:
    place = f'"start_index":{citation.start or 0},"end_index":{citation.end or 0}'
    return f'{{"type":"url_citation","url":{quoted(citation.url)},{place},"title":{quoted(citation.title or "")}}}'


@dataclass(frozen=True, slots=True)
class CallShape:
    """How one sort of call is written: its type, the family of its text's events, and the member that holds it."""

    type: str
    text: str
    member: str


CALL: Final = CallShape("function_call", "function_call_arguments", "arguments")
CUSTOM: Final = CallShape("custom_tool_call", "custom_tool_call_input", "input")


class CallItem:
    """A call of the client."""

    __slots__ = ("_at", "_head", "_place", "_shape", "_wire", "call_id", "corrected", "custom", "name", "told", "whole")

    def __init__(
        self, wire: Wire, shape: CallShape, identity: str | None, index: int, names: Mapping[str, str]
    ) -> None:
        """`names`: its `call_id` and `name`."""
        item_id = "null" if identity is None else quoted(identity)
        self._wire = wire
        self._shape = shape
        self.call_id = names["call_id"]
        self.name = names["name"]
        self.custom = shape is CUSTOM
        self.corrected = False  # its deltas were taken back: no more of them, the close says the text
        self.told = Told()
        self.whole: str | None = None
        self._at = f'"output_index":{index}'
        self._place = f'"item_id":{item_id},{self._at}'
        self._head = f'"type":"{shape.type}","id":{item_id},"call_id":{quoted(self.call_id)},"name":{quoted(self.name)}'
        wire.event("response.output_item.added", f'{self._at},"item":{self._item("in_progress", quoted(""))}')

    def delta(self, text: str) -> None:
        if text and not self.corrected:
            self.told.add(text)
            self._wire.event(f"response.{self._shape.text}.delta", f'{self._place},"delta":{quoted(text)}')

    def could_be_run(self) -> bool:
        """Whether a reader that does not look at its status would: AI SDK takes no text for `{}`."""
        text = self._text()
        return self.custom or not text.strip() or is_value(text)

    def close(self, status: ItemStatus, *, closed: bool = False, ended: bool = False) -> Callable[[], str]:
        """The done events, with the whole text, unless they went out; the item as it is in the end."""
        text = quoted(self._text())
        if not closed:
            self._wire.event(f"response.{self._shape.text}.done", f'{self._place},"{self._shape.member}":{text}')
        item = self._item(status, text)
        if not ended:
            self._wire.event("response.output_item.done", f'{self._at},"item":{item}')
        return lambda: item

    def _text(self) -> str:
        return self.told.text() if self.whole is None else self.whole

    def _item(self, status: str, text: str) -> str:
        return f'{{{self._head},"{self._shape.member}":{text},"status":"{status}"}}'
