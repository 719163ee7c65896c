"""Summarize JSON payloads, so that they can be compared. Two payloads count as equal if they differ only in spacing,
escapes, the spelling of numbers, the order of members, and padding.

A short payload is parsed, because that is fast. A long payload is not parsed, because it may be as long as the limit
allows, and its values would take many times the memory of its text. Its tokens are found by position instead, and only
their hashes are kept.
"""

from __future__ import annotations

import json
import re
from array import array
from dataclasses import dataclass
from enum import Enum, auto
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["LONG", "Span", "Summary", "fingerprint", "fingerprint_of_text", "summarize"]

Span = tuple[int, int]
"""The start and end of a piece of the data."""

LONG: Final = 1 << 14
"""A payload with more bytes is not parsed."""
_LONGEST_VALUE: Final = 512  # a longer string is not stored as the value of a member
_TOKEN: Final = re.compile(
    rb"[ \t\r\n]*(?:([\[\]{}:,\"])|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null|NaN|-?Infinity)"
)
_BLANKS: Final = re.compile(rb"[ \t\r\n]*")
_PLAIN: Final = re.compile(rb'[^"\\\x00-\x1f]*')
# Applied to at most _WINDOW bytes, because a repeated group takes memory for each repetition.
_ESCAPED: Final = re.compile(rb'(?:\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])[^"\\\x00-\x1f]*)+')
_ESCAPES: Final = re.compile(rb"(?:\\u[0-9a-fA-F]{4})+|\\.")
# The first half of a surrogate pair, at the end and after complete escapes.
_OPEN_PAIR: Final = re.compile(rb"(?<!\\)(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2})\Z")
_WINDOW: Final = 4096
_LONGEST_NUMBER: Final = 1024  # a longer number is compared as it is spelled
_MASK: Final = (1 << 63) - 1
# Deeper payloads do not count as JSON, like payloads that Python's own parser cannot read.
_MOST_DEPTH: Final = 1000
# A member with random padding, which differs each time the same event is sent (OpenAI's
# `stream_options.include_obfuscation`).
_PADDING: Final = "obfuscation"
_READ: Final = frozenset({"type", "sequence_number", "choices", "id", "responseId"})
_QUOTE, _COLON, _COMMA, _BRACE, _BRACKET, _BRACE_END, _BRACKET_END = b'":,{[}]'


class _Next(Enum):
    """The tokens that may come next."""

    VALUE = auto()
    FIRST_VALUE = auto()
    """A value or the end of the array."""
    KEY = auto()
    FIRST_KEY = auto()
    """A key or the end of the object."""
    COLON = auto()
    REST = auto()
    """A comma or the end of the array or object."""
    NOTHING = auto()


@dataclass(frozen=True, slots=True)
class Summary:
    """A payload that is a JSON object or array."""

    members: Mapping[str, object]
    """The members of an object; of a long payload, only the members that are needed."""
    key: int
    """A hash by which the payload is compared with payloads of the same class: short or long."""


def summarize(data: memoryview, spans: Iterable[Span], size: int) -> Summary | None:
    """Return the summary of the payload that consists of these lines, or None if it is not a JSON object or array.

    `size`: the number of bytes in the lines and line endings.
    """
    if size > LONG:
        tokens = _Tokens()
        key = tokens.read(data, spans)
        return None if key is None else Summary(tokens.members, key)
    text = b"\n".join([data[start:end] for start, end in spans]).decode("utf-8", "replace")
    try:
        payload: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(payload, list):
        return Summary({}, hash(json.dumps(payload, sort_keys=True)))
    if not isinstance(payload, dict):
        return None
    members = cast("dict[str, object]", payload)
    compared = {name: value for name, value in members.items() if name != _PADDING}
    return Summary(members, hash(json.dumps(compared, sort_keys=True)))


def fingerprint(data: memoryview, spans: Iterable[Span]) -> int | None:
    """Return the key that a payload has if it counts as long, or None if it is not a JSON object or array."""
    return _Tokens().read(data, spans)


class _Tokens:
    """Reads the tokens of one payload."""

    __slots__ = ("_hashes", "_is_object", "_key", "_keys", "_next", "members")

    def __init__(self) -> None:
        self.members: dict[str, object] = {}
        """The members of the object that are needed. A value other than null, an integer or a short string is
        represented by its type.
        """
        self._next = _Next.VALUE
        self._is_object = bytearray()  # one byte per open array (0) or object (1)
        self._hashes = array("q")  # per open array or object: the hash of its content so far
        self._keys = array("q")  # per open array or object: the hash of the last key
        self._key = ""  # the key in the outermost object, if it is compared or read in a special way

    def read(self, data: memoryview, spans: Iterable[Span]) -> int | None:
        """Return the hash of the payload that consists of these lines, or None if it is not a JSON object or array. No
        token of a JSON document extends beyond a line.
        """
        self._hashes.append(0)
        self._keys.append(0)
        for at, end in spans:
            if not self._read_line(data, at, end):
                return None
        return self._hashes[0] if self._next is _Next.NOTHING else None

    def _read_line(self, data: memoryview, at: int, end: int) -> bool:
        while (token := _TOKEN.match(data, at, end)) is not None:
            at = token.end()
            mark = token[1]
            if mark is None:
                if not self._is_object or not self._may_add():
                    return False
                self._add_number_or_word(data, at, token)
            elif mark == b'"':
                if not self._is_object:
                    return False
                text = _read_string(data, at, end)
                if text is None or not self._add_string(data[at - 1 : text[0]], text[1]):
                    return False
                at = text[0]
            elif not self._add_mark(mark[0]):
                return False
        blanks = _BLANKS.match(data, at, end)
        return blanks is not None and blanks.end() == end

    def _may_add(self) -> bool:
        return self._next in (_Next.VALUE, _Next.FIRST_VALUE)

    def _add_mark(self, mark: int) -> bool:
        if mark in (_BRACE, _BRACKET):
            if not self._may_add() or len(self._is_object) == _MOST_DEPTH:
                return False
            self._note(list)
            self._is_object.append(mark == _BRACE)
            self._hashes.append(mark)
            self._keys.append(0)
            self._next = _Next.FIRST_KEY if mark == _BRACE else _Next.FIRST_VALUE
        elif mark == _COMMA:
            if self._next is not _Next.REST:
                return False
            self._next = _Next.KEY if self._is_object[-1] else _Next.VALUE
        elif mark == _COLON:
            if self._next is not _Next.COLON:
                return False
            self._next = _Next.VALUE
        else:
            ends = (_Next.REST, _Next.FIRST_KEY if mark == _BRACE_END else _Next.FIRST_VALUE)
            if self._next not in ends or not self._is_object or self._is_object[-1] != (mark == _BRACE_END):
                return False
            self._is_object.pop()
            self._keys.pop()
            self._add(hash((mark, self._hashes.pop())))
        return True

    def _add_string(self, quoted: memoryview, digest: bytes) -> bool:
        if self._next in (_Next.KEY, _Next.FIRST_KEY):
            self._keys[-1] = hash(digest)
            if len(self._is_object) == 1:
                self._key = _short(quoted)
            self._next = _Next.COLON
            return True
        if not self._may_add():
            return False
        if self._is_read():
            self._note(_short(quoted))
        self._add(hash(digest))
        return True

    def _add_number_or_word(self, data: memoryview, end: int, token: re.Match[bytes]) -> None:
        start = token.start()
        blanks = _BLANKS.match(data, start, end)
        start = blanks.end() if blanks is not None else start
        if end - start > _LONGEST_NUMBER:
            value: int | float | bytes = blake2b(data[start:end]).digest()
        else:
            text = bytes(data[start:end])
            value = text if text.isalpha() else json.loads(text)
        self._note(None if value == b"null" else value if type(value) is int else float)
        self._add(hash((type(value).__name__, repr(value))))

    def _is_read(self) -> bool:
        return len(self._is_object) == 1 and self._is_object[0] == 1 and self._key in _READ

    def _note(self, value: object) -> None:
        """Store the value of a member of the payload, if the member is needed."""
        if self._is_read():
            self.members[self._key] = value

    def _add(self, value: int) -> None:
        """Add a value to the array or object that contains it."""
        if not self._is_object:
            self._hashes[0] = value
            self._next = _Next.NOTHING
            return
        self._next = _Next.REST
        if not self._is_object[-1]:
            self._hashes[-1] = hash((self._hashes[-1], value))
        elif len(self._is_object) > 1 or self._key != _PADDING:
            self._hashes[-1] = (self._hashes[-1] + hash((self._keys[-1], value))) & _MASK  # in any order


def _read_string(data: memoryview, start: int, end: int) -> tuple[int, bytes] | None:
    """Return the end of the string that starts after a quotation mark, and its hash. None if the string is invalid."""
    found = blake2b(digest_size=16)
    at = start
    while True:
        plain = _PLAIN.match(data, at, end)
        at, begin = (plain.end() if plain is not None else at), at
        found.update(data[begin:at])
        if at == end:
            return None
        if data[at] == _QUOTE:
            return at + 1, found.digest()
        run = _ESCAPED.match(data, at, min(end, at + _WINDOW))
        if run is None:
            return None
        text = run[0]
        pair = _OPEN_PAIR.search(text)
        if pair is not None and pair.start(1) > 0 and at + len(text) < end:
            text = text[: pair.start(1)]  # the other half of the pair may follow
        at += len(text)
        found.update(_unescaped(text))


def _unescaped(text: bytes) -> bytes:
    """Replace the escapes in a part of a string. The part may start or end inside a character."""
    try:
        value: str = json.loads('"' + text.decode("utf-8", "surrogateescape") + '"')
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a surrogate pair
        return _ESCAPES.sub(_unescaped_run, text)


def _unescaped_run(escapes: re.Match[bytes]) -> bytes:
    value: str = json.loads(b'"%b"' % escapes[0])
    return value.encode("utf-8", "surrogatepass")


def _short(quoted: memoryview) -> str:
    """Return the value of a short string, or an empty string."""
    if len(quoted) > _LONGEST_VALUE:
        return ""
    value: str = json.loads(bytes(quoted).decode("utf-8", "replace"))
    return value


def fingerprint_of_text(data: memoryview, spans: Iterable[Span]) -> int:
    """Return the fingerprint of a payload that is compared as text: its lines."""
    found = blake2b(digest_size=16)
    for start, end in spans:
        found.update(data[start:end])
        found.update(b"\n")
    return hash(found.digest())
