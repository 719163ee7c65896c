"""Find the JSON documents in the data of one event, even if the data is not one JSON document.

Salvage is tried only if the data is not JSON and the policy is not strict. This module uses only the JSON parser and
the payload type, and does not depend on dialects, events, or policies.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from streamweld._pure.json.scanner import JsonFault, Payload, parse, reject_incomplete

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streamweld._pure.json.scanner import Walked

Caps = tuple["int | None", "int | None", "Walked | None"]  # limits for one payload: levels of nesting, values, lists

WHITE = b" \t\n\r\x0c"
MARKER = b"[DONE]"

_FIELDS = (b"data", b"event", b"id", b"retry")
_FIELD_NAMES = tuple([field + b":" for field in _FIELDS])
_BOM = b"\xef\xbb\xbf"
# The end of a document with a field name or a comment directly after it. Searching for this pattern needs no memory,
# whereas parsing a long document takes many times the memory of its text.
_FIELD_AFTER_DOCUMENT = re.compile(rb"[}\]][ \t]*(?:data|event|id|retry)?:")

# Maximum number of line endings that may be missing in one payload. If more line endings are missing, they were removed
# by the program that uses streamweld, not by a gateway.
MOST_JOINS = 16
# Maximum number of `data:` positions to try when looking for a second document that directly follows a broken document.
_TAIL_TRIES = 16


@dataclass(frozen=True, slots=True)
class Salvaged:
    """The result of salvage: documents, plain text, or nothing."""

    kind: Literal["json_lines", "lines_joined", "recovered_tail", "text", "none"]
    lines: bytes = b""  # json_lines: the text before the first broken line; read with `whole_lines`
    remainder: int | None = None  # json_lines: offset of the first broken line, from which other kinds of salvage start
    documents: tuple[
        Payload, ...
    ] = ()  # lines_joined: one document; recovered_tail: documents after the broken document


def salvage(text: bytes, caps: Caps, has_usable_data: Callable[[object], bool], *, finished: bool = True) -> Salvaged:
    """Try the kinds of salvage in order on trimmed text that is not JSON.

    `has_usable_data` returns whether a document after a broken document contains usable data. `finished`: whether the
    event was terminated; an unfinished event is never plain text.
    """
    if b"\n" in text:
        remainder = _first_broken_line(text, caps)
        lines = text[:remainder]
        if count_documents(lines) or (remainder is None and any(True for _ in whole_lines(lines))):
            return Salvaged("json_lines", lines=lines, remainder=remainder)
        joined = _whole(text.replace(b"\n", b""), caps)
        if joined is not None:
            return Salvaged("lines_joined", documents=(joined,))
    tails = tuple([tail for tail in _tails(text, caps) if has_usable_data(tail.value)])
    if tails:
        return Salvaged("recovered_tail", documents=tails)
    if finished and text[:1] not in (b"{", b"["):
        return Salvaged("text")
    return Salvaged("none")


def lines_in(text: bytes) -> Iterator[bytes]:
    """Yield the lines one by one: a list of short lines would take several times the memory of the text."""
    start = 0
    while (end := text.find(b"\n", start)) >= 0:
        yield text[start:end]
        start = end + 1
    yield text[start:]


def _first_broken_line(text: bytes, caps: Caps) -> int | None:
    """Return the offset of the first broken line, or None if no line is broken.

    A line is broken if it is not a complete document, the marker, null, or a comment.
    """
    start = 0
    for sent in lines_in(text):
        line = sent.strip(WHITE)
        if line and line[:1] != b":" and line not in (MARKER, b"null") and _whole(line, caps) is None:
            return start
        start += len(sent) + 1
    return None


def whole_lines(text: bytes) -> Iterator[bytes]:
    """Yield the trimmed lines one by one, without comments and blank lines."""
    for sent in lines_in(text):
        line = sent.strip(WHITE)
        if line and line[:1] != b":":
            yield line


def count_documents(text: bytes) -> int:
    """Return how many lines of the text are documents. No line of the text is broken."""
    return sum(line != MARKER and line[:1] in (b"{", b"[") for line in whole_lines(text))


def _tails(text: bytes, caps: Caps) -> Iterator[Payload]:
    """Yield the complete documents after a broken document: on later lines, and after a `data:` inside a line."""
    broken = False
    for sent in lines_in(text):
        line = sent.strip(WHITE)
        document = _whole(line, caps)
        if document is None:
            document, broken = _glued(line, caps), True
        if document is not None and broken:
            yield document


def _glued(line: bytes, caps: Caps) -> Payload | None:
    end = len(line)
    for _ in range(_TAIL_TRIES):
        at = line.rfind(b"data:", 0, end)
        if at <= 0:
            return None
        document = _whole(line[at + len(b"data:") :].lstrip(b" "), caps)
        if document is not None:
            return document
        end = at
    return None


def _whole(text: bytes, caps: Caps) -> Payload | None:
    """Return the document if the text is a complete object or array; otherwise return None."""
    if text[:1] not in (b"{", b"["):
        return None
    try:
        reject_incomplete(text, caps[0], caps[1])
        return parse(text, *caps)
    except JsonFault:
        return None


def joined_field(text: bytes, max_depth: int | None) -> int | None:
    """If `text` begins with a complete document or the marker, and a field name follows directly, return the position
    of that field name.

    No dialect sends a field name directly after a document. A field name there means that the line endings were removed
    before the input reached streamweld.
    """
    if text[:1] not in (b"{", b"[") or _FIELD_AFTER_DOCUMENT.search(text) is None:
        return None
    at = _document_end(text, max_depth)
    if at is None:
        return None
    line_end = text.find(b"\n", at)
    end = len(text) if line_end < 0 else line_end
    is_comment = text.startswith(b":", at) and text.find(b"data:", at, end) >= 0
    if not (is_comment or text.startswith(_FIELD_NAMES, at, end)):
        return None
    document = text[:at].rstrip(b" \t")  # copied only if a field name follows
    if document[-1:] not in (b"}", b"]"):
        return None
    return at if document == MARKER or _whole(document, (max_depth, None, None)) is not None else None


def _document_end(text: bytes, max_depth: int | None) -> int | None:
    """Return the position after the document or marker at the start of a text, and after the whitespace that follows
    it.
    """
    if text.startswith(MARKER):
        at = len(MARKER)
        while text[at : at + 1] in (b" ", b"\t"):
            at += 1
        return at
    try:
        reject_incomplete(text, max_depth)
    except JsonFault as fault:
        return fault.pos
    return None


@dataclass(frozen=True, slots=True)
class JoinedLine:
    """A document, and the data that follows it because a line ending is missing."""

    document: bytes
    event: bytes | None  # the name in an `event` field after the document
    remainder: (
        int  # offset of the data after the document: the value of a data field on the same line, or the next line
    )


def split_joined_line(text: bytes, at: int) -> JoinedLine:
    """Split a text in which an SSE field name directly follows a JSON document, at the position that `joined_field`
    returned."""
    line_end = text.find(b"\n", at)
    end = len(text) if line_end < 0 else line_end
    data = text.find(b"data:", at, end)
    own = text[at : end if data < 0 else data]
    event = own.removeprefix(b"event:").strip(WHITE) if own.startswith(b"event:") else None
    return JoinedLine(text[:at].strip(WHITE), event, end if data < 0 else data + len(b"data:"))


def has_joined_lines(head: bytes, max_depth: int | None, *, is_open: bool) -> bool:
    """Return True if a body without any payload contains a data line without a line ending before or after it.

    `is_open`: true if the body has no line ending after the last line of `head`.
    """
    lines = _lines_of(head)
    for number, line in enumerate(lines, start=1):
        name, colon, value = line.partition(b":")
        if not colon or (name and name not in _FIELDS):
            continue
        if name == b"data":
            found = joined_field(value.strip(WHITE), max_depth) is not None
        else:
            # A comment with a line ending may contain anything.
            may_be = bool(name) or (is_open and number == len(lines))
            found = may_be and any(data.lstrip(b" ")[:1] in (b"{", b"[") for data in value.split(b"data:")[1:])
        if found:
            return True
    return False


def _lines_of(head: bytes) -> list[bytes]:
    return head.removeprefix(_BOM).replace(b"\r", b"\n").split(b"\n")


def is_foreign(head: bytes) -> bool:
    """Return True if a body without any payload contains a line that cannot occur in an event stream."""
    lines = _lines_of(head)
    for number, line in enumerate(lines, start=1):
        name, colon, _ = line.partition(b":")
        if not line.strip() or line[:1] == b":" or name in _FIELDS:
            continue
        # The input may end inside the field name of the last line.
        if number == len(lines) and not colon and any(field.startswith(name) for field in _FIELDS):
            continue
        return True
    return False
