"""Split event streams into raw blocks, so that two streams can be compared event by event and joined byte by byte."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld._pure.json.automaton import examine
from streamweld._pure.json.scanner import has_more_values
from streamweld.errors import LimitExceeded
from streamweld.options import Limits
from streamweld.sse import FrameReader

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Block",
    "BlockReader",
    "blocks_of",
    "data_of",
    "has_same_shape",
    "is_event",
    "is_text",
    "lines_of",
    "raw_blocks",
    "response_id_of",
    "starts_inside_line",
    "terminator_of",
]

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
# Matches at the start of a line that is blank, a comment, or a field.
_NO_TEXT: Final = re.compile(rb"(?:data|event|id|retry)?(?:[:\r\n]|\Z)")
_WORD: Final = re.compile(rb"\S")
_BLANK_LINES: Final = (b"\n", b"\r\n", b"\r")
_FIELDS: Final = (b"data", b"event", b"id", b"retry")
_BOM: Final = b"\xef\xbb\xbf"
_UNLIMITED: Final = Limits(max_event_bytes=None, max_field_bytes=None)
# A member with random padding, which differs each time the same event is sent (OpenAI's
# `stream_options.include_obfuscation`).
_PADDING: Final = "obfuscation"
# A payload with more values than this is compared as text, because a parsed value takes up to 22 times the memory of
# its text.
_MOST_VALUES: Final = 8192
_QUOTE_OR_BRACKET: Final = re.compile(r'["{}\[\]]')
_DECODER: Final = json.JSONDecoder()
_COLON: Final = re.compile(r"\s*:\s*(?=[-\"0-9])")


@dataclass(frozen=True, slots=True)
class Block:
    """The bytes up to and including a blank line."""

    raw: bytes
    offset: int
    """Offset of the first byte in the body that contains the block."""
    key: tuple[str, str] | None
    """Key for comparing events: name and payload. None if the block does not contain an event, or contains only a ping.
    """
    number: int | None
    """The `sequence_number` of the payload."""
    id: str | None
    """The SSE id that this event sets; None if it sets none."""
    is_json: bool
    """Whether the payload is a JSON object or array, or the terminal marker `[DONE]`."""


class BlockReader:
    """Reads chunks of any size, and yields the blocks that each chunk completes.

    Blocks are yielded one by one, not as a list, because a chunk of blank lines contains as many blocks as bytes.
    """

    __slots__ = ("_buffer", "_last_id", "_line", "_max", "_offset", "_reader", "_scanned", "_start")

    def __init__(self, limits: Limits | None = None) -> None:
        caps = limits or Limits()
        self._max: Final = caps.max_event_bytes
        self._reader = FrameReader(limits=limits)
        self._buffer = bytearray()  # the blocks that have not been yielded yet, and the incomplete block
        self._start: int = 0  # start of the next block, in the buffer
        self._offset: int = 0  # offset of the buffer in the body
        self._line: int = 0  # start of the incomplete line in the buffer
        self._scanned: int = 0  # the buffer contains no line end between `_line` and this position
        self._last_id = ""

    @property
    def tail(self) -> bytes:
        """Return the bytes after the last block that was yielded."""
        return bytes(memoryview(self._buffer)[self._start :])

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[Block]:
        """Accept the next bytes and yield the blocks that they complete.

        The caller must exhaust the result before the next call.

        A CR at the end of the data is kept until the next byte shows whether the CR is half of a CRLF.
        """
        self._buffer += data
        return self._blocks(is_end=False)

    def finish(self) -> Iterator[Block]:
        """End the body. A CR at the end counts as a line ending."""
        return self._blocks(is_end=True)

    def take_unterminated(self) -> Block | None:
        """Treat the tail as a block if only the blank line is missing.

        Call this method after the result of `finish` was exhausted.
        """
        tail = self.tail
        if not tail.strip(b"\r\n"):
            return None
        block = self._block(tail + terminator_of(tail), self._offset)
        if block.key is None or not block.is_json:
            return None
        self._buffer.clear()
        return replace(block, raw=tail)

    def _blocks(self, *, is_end: bool) -> Iterator[Block]:
        for match in _LINE_END.finditer(self._buffer, self._scanned):
            if not is_end and match[0] == b"\r" and match.end() == len(self._buffer):
                self._scanned = match.start()
                break
            is_only_bom = (
                self._offset == self._line == 0 and self._buffer.startswith(_BOM) and match.start() == len(_BOM)
            )
            is_blank = match.start() == self._line or is_only_bom
            self._line = self._scanned = match.end()
            if is_blank:
                start, self._start = self._start, self._line
                with memoryview(self._buffer) as view:
                    raw = bytes(view[start : self._line])
                yield self._block(raw, self._offset + start)
                del raw
        else:
            self._scanned = len(self._buffer)
        del self._buffer[: self._start]
        self._offset += self._start
        self._line -= self._start
        self._scanned -= self._start
        self._start = 0
        if self._max is not None and len(self._buffer) > self._max:
            raise LimitExceeded(limit_name="max_event_bytes", limit=self._max, observed=len(self._buffer))

    def _block(self, raw: bytes, offset: int) -> Block:
        if offset and raw in _BLANK_LINES:
            return Block(raw, offset, None, None, None, is_json=False)
        frames = self._reader.feed(raw)
        # The frame reader is now between two blocks. Complete the CRLF, so that the reader does not skip an LF that
        # belongs to the next block.
        if raw.endswith(b"\r"):
            frames += self._reader.feed(b"\n")
        if not frames:
            return Block(raw, offset, None, None, None, is_json=False)
        frame = frames[0]
        own_id, self._last_id = (frame.id if frame.id != self._last_id else None), frame.id
        payload = _summary(frame.data)
        if payload is None:
            return Block(raw, offset, (frame.event, frame.data), None, own_id, is_json=frame.data.strip() == "[DONE]")
        kind, number = payload.members.get("type"), payload.members.get("sequence_number")
        if kind == "ping" or (frame.event == "ping" and kind is None):
            return Block(raw, offset, None, None, own_id, is_json=True)
        number = number if type(number) is int else None
        return Block(raw, offset, (frame.event, payload.text), number, own_id, is_json=True)


@dataclass(frozen=True, slots=True)
class _Summary:
    """A payload that is a JSON object or array."""

    members: dict[str, Any]
    """The members that are needed; empty for an array."""
    text: str
    """Text by which the payload is compared."""


def _summary(data: str) -> _Summary | None:
    """Return what is needed of a payload, or None if it is not a JSON object or array."""
    if _is_large(data):
        found = examine(data)
        is_whole = found.final == "complete" and found.root in ("object", "array")
        return _Summary(_scalars(data), data) if is_whole else None
    payload = _payload(data)
    if payload is None:
        return None
    return _Summary(payload if isinstance(payload, dict) else {}, _canonical(payload))


def _is_large(data: str) -> bool:
    return len(data) > _MOST_VALUES and has_more_values(data, _MOST_VALUES)


def _scalars(data: str) -> dict[str, Any]:
    """Return the strings and numbers among the members of a JSON object, without building its other values."""
    members: dict[str, Any] = {}
    depth = at = 0
    while (token := _QUOTE_OR_BRACKET.search(data, at)) is not None:
        if token[0] != '"':
            at = token.end()
            depth += 1 if token[0] in "{[" else -1
            continue
        name, at = _DECODER.raw_decode(data, token.start())
        value = _COLON.match(data, at) if depth == 1 and name in ("type", "sequence_number") else None
        if value is not None:
            members[name], at = _DECODER.raw_decode(data, value.end())
    return members


def _payload(data: str) -> dict[str, Any] | list[Any] | None:
    try:
        payload = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any] | list[Any]", payload) if isinstance(payload, dict | list) else None


def _canonical(payload: dict[str, Any] | list[Any]) -> str:
    if isinstance(payload, dict):
        payload = {name: value for name, value in payload.items() if name != _PADDING}
    return json.dumps(payload, sort_keys=True)


def blocks_of(reader: BlockReader, body: bytes) -> Iterator[Block]:
    """Yield the complete blocks of a body. Afterwards, `reader.tail` contains the bytes after the last block."""
    yield from reader.feed(body)
    yield from reader.finish()


def raw_blocks(data: bytes) -> Iterator[bytes]:
    """Yield the bytes of each block, for data that a reader has already accepted."""
    for block in blocks_of(BlockReader(_UNLIMITED), data):
        yield block.raw


def is_event(data: bytes) -> bool:
    """Return True if these bytes are exactly one complete event with a usable payload."""
    reader = BlockReader()
    blocks = list(islice(blocks_of(reader, data), 2))
    return len(blocks) == 1 and not reader.tail and blocks[0].key is not None and blocks[0].is_json


def lines_of(data: bytes) -> Iterator[bytes]:
    """Yield the lines without their line endings, one by one, because a list of short lines takes many times their
    size. The last line is empty if the data ends with a line ending.
    """
    start = 0
    for match in _LINE_END.finditer(data):
        yield data[start : match.start()]
        start = match.end()
    yield data[start:]


def is_text(data: bytes) -> bool:
    """Return True if the bytes contain text, but no comment and no field. The last line may be incomplete."""
    has_text = False
    complete = 0
    data = data.removeprefix(_BOM)
    for match in _LINE_END.finditer(data):
        start, complete = complete, match.end()
        if start < match.start() and _NO_TEXT.match(data, start) is not None:
            return False
        has_text = has_text or _WORD.search(data, start, complete) is not None
    last = data[complete:]
    if last:
        name, colon, _ = last.partition(b":")
        return not (name in _FIELDS or not name or (not colon and any(field.startswith(name) for field in _FIELDS)))
    return has_text


def data_of(lines: bytes) -> bytes:
    """Return the data of an event that may be incomplete."""
    data = bytearray()
    for line in lines_of(lines):
        if line.startswith(b"data"):
            data += line.partition(b":")[2].removeprefix(b" ") + b"\n"
    return bytes(data[:-1])


def terminator_of(tail: bytes) -> bytes:
    """Return the line endings that terminate an event whose last bytes are `tail`."""
    ends = _LINE_END.search(tail)
    line_end = ends[0] if ends else b"\n"
    if tail.endswith(b"\r") and line_end == b"\r\n":
        return b"\n\r\n"
    return line_end if tail.endswith((b"\r", b"\n")) else 2 * line_end


def has_same_shape(block: bytes, other: bytes) -> bool:
    """Return True if two blocks have the same field names, in order, without comments and blank lines."""
    return all(one == another for one, another in zip_longest(_names(block), _names(other)))


def _names(block: bytes) -> Iterator[bytes]:
    names = (line.partition(b":")[0] for line in lines_of(block))
    return (name for name in names if name)


def starts_inside_line(data: bytes) -> bool:
    """Return True if the bytes start in the middle of a line.

    The first line is then neither blank, a comment nor a field.
    """
    return _NO_TEXT.match(data.removeprefix(_BOM)) is None


def response_id_of(block: Block) -> str | None:
    """Return the id of the response that an event belongs to, if every event of its format contains it.

    These formats are Chat Completions chunks (`id`) and Gemini chunks (`responseId`). The id of a payload that is too
    large to be parsed is not returned.
    """
    if block.key is None or not block.is_json or _is_large(block.key[1]):
        return None
    try:
        payload: object = json.loads(block.key[1])
    except ValueError:
        return None
    if not isinstance(payload, dict):
        return None
    members = cast("dict[str, object]", payload)
    found = members.get("id") if "choices" in members else members.get("responseId")
    return found if isinstance(found, str) else None
