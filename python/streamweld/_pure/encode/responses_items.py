"""The output items of a Responses stream: each is added once, filled, and done once, under one id and one index.

Knows the frames of items. Which event belongs to which item, and when one is over, is the encoder's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from streamweld._pure.encode.same import is_value
from streamweld._pure.encode.told import Told
from streamweld._pure.encode.writer import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamweld._pure.encode.citations import Citation
    from streamweld._pure.encode.writer import Frames

__all__ = ["CALL", "CUSTOM", "OPENRESPONSES", "RAW", "REFUSAL", "SUMMARY", "TEXT", "CallItem", "TextItem", "Wire"]

ItemStatus: TypeAlias = Literal["completed", "incomplete"]


class Wire:
    """Events with their sequence numbers: from 0, by one."""

    __slots__ = ("_frames", "_next")

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._next = 0

    def event(self, kind: str, fields: str) -> None:
        """One event; `fields`: its members behind type and number."""
        self._frames.named(kind, f'{{"type":"{kind}","sequence_number":{self._next},{fields}}}')
        self._next += 1


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


class TextItem:
    """A message or a reasoning with its one part."""

    __slots__ = ("_at", "_id", "_place", "_shape", "_wire", "told", "whole")

    def __init__(self, wire: Wire, shape: Shape, identity: str, index: int) -> None:
        self._wire = wire
        self._shape = shape
        self._id = identity
        self._at = f'"output_index":{index}'
        self._place = f'"item_id":{quoted(identity)},{self._at},"{shape.index}":0'
        self.told = Told()
        self.whole: str | None = None  # the text as its end said it, where that is known
        wire.event("response.output_item.added", f'{self._at},"item":{self._item("in_progress", "")}')
        self._event(f"{shape.part}.added", f'"part":{self._part("", "")}')

    def delta(self, text: str) -> None:
        self.told.add(text)
        self._event(f"{self._shape.text}.delta", f'"delta":{quoted(text)}{self._shape.extra}')

    def close(self, status: ItemStatus, citations: Sequence[Citation] = ()) -> str:
        """The done events; the item as it is in the end. What its end said has authority over the deltas."""
        text = quoted(self.told.text() if self.whole is None else self.whole)
        shape = self._shape
        annotations = [_annotation(citation) for citation in citations]
        for number, annotation in enumerate(annotations):
            self._event(f"{shape.text}.annotation.added", f'"annotation_index":{number},"annotation":{annotation}')
        self._event(f"{shape.text}.done", f'"{shape.member}":{text}{shape.extra}')
        part = self._part(text[1:-1], ",".join(annotations))
        self._event(f"{shape.part}.done", f'"part":{part}')
        item = self._item(status, part)
        self._wire.event("response.output_item.done", f'{self._at},"item":{item}')
        return item

    def _event(self, kind: str, fields: str) -> None:
        self._wire.event(f"response.{kind}", f"{self._place},{fields}")

    def _part(self, text: str, annotations: str) -> str:
        shape = self._shape
        cited = f',"annotations":[{annotations}]' if shape is TEXT else ""
        return f'{{"type":"{shape.type}","{shape.member}":"{text}"{cited}{shape.part_extra}}}'

    def _item(self, status: str, parts: str) -> str:
        holder = self._shape.holder
        if holder is None:
            head = f'"type":"message","id":{quoted(self._id)},"status":"{status}"'
            return f'{{{head},"role":"assistant","content":[{parts}]}}'
        # The schema's reasoning has no status; only what is not whole must say so.
        tail = ',"status":"incomplete"' if status == "incomplete" else ""
        summary = "" if holder == "summary" else '"summary":[],'
        return f'{{"type":"reasoning","id":{quoted(self._id)},{summary}"{holder}":[{parts}]{tail}}}'


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

    def __init__(self, wire: Wire, shape: CallShape, identity: str, index: int, names: Mapping[str, str]) -> None:
        """`names`: its `call_id` and `name`."""
        self._wire = wire
        self._shape = shape
        self.call_id = names["call_id"]
        self.name = names["name"]
        self.custom = shape is CUSTOM
        self.corrected = False  # its deltas were taken back: no more of them, the close says the text
        self.told = Told()
        self.whole: str | None = None
        self._at = f'"output_index":{index}'
        self._place = f'"item_id":{quoted(identity)},{self._at}'
        self._head = (
            f'"type":"{shape.type}","id":{quoted(identity)},"call_id":{quoted(self.call_id)},"name":{quoted(self.name)}'
        )
        wire.event("response.output_item.added", f'{self._at},"item":{self._item("in_progress", quoted(""))}')

    def delta(self, text: str) -> None:
        if text and not self.corrected:
            self.told.add(text)
            self._wire.event(f"response.{self._shape.text}.delta", f'{self._place},"delta":{quoted(text)}')

    def could_be_run(self) -> bool:
        """Whether a reader that does not look at its status would: AI SDK takes no text for `{}`."""
        text = self._text()
        return self.custom or not text.strip() or is_value(text)

    def close(self, status: ItemStatus) -> str:
        """The done events, with the whole text; the item as it is in the end."""
        text = quoted(self._text())
        self._wire.event(f"response.{self._shape.text}.done", f'{self._place},"{self._shape.member}":{text}')
        item = self._item(status, text)
        self._wire.event("response.output_item.done", f'{self._at},"item":{item}')
        return item

    def _text(self) -> str:
        return self.told.text() if self.whole is None else self.whole

    def _item(self, status: str, text: str) -> str:
        return f'{{{self._head},"{self._shape.member}":{text},"status":"{status}"}}'
