"""Parse JSON payloads for the decoders, and provide values, the raw text of members, big integers, and duplicate keys.

This module parses all payloads of this backend. The automaton defines which text is valid. The scanner of the standard
library is used only for input that it treats exactly like the automaton.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from streamweld._pure.json.automaton import MAX_DEPTH, examine
from streamweld._pure.json.kinds import is_array, is_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Path = tuple[str | int, ...]
Span = tuple[int, int]


class JsonFault(ValueError):
    """The text is not one JSON value.

    `reason` is "incomplete", "syntax", "too_deep", "too_many", or "number_too_big". `pos` is the byte offset that the
    automaton reports, counted in the UTF-8 text.
    """

    def __init__(self, reason: str, pos: int) -> None:
        super().__init__(reason, pos)
        self.reason = reason
        self.pos = pos

    def __str__(self) -> str:
        return f"{self.reason} at byte {self.pos}"


class BigInteger:
    """An integer outside [-2^63, 2^64-1] in a payload, as text. A `BigInteger` is accepted only as an id."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"BigInteger({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BigInteger) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


class Walked(NamedTuple):
    """Keys of the lists whose elements are decoded individually, and of the objects that contain these lists."""

    lists: frozenset[str]
    objects: frozenset[str]


class Payload:
    """One parsed payload. The strings in `value` may contain unpaired surrogates."""

    __slots__ = ("_duplicates_of", "_spans", "duplicates", "overflow", "text", "value")

    def __init__(self, text: str, value: Any, overflow: bool = False, duplicates: tuple[Path, ...] = ()) -> None:
        self.text = text
        self.value = value
        self.overflow = overflow  # whether the payload contains a BigInteger
        self.duplicates = duplicates  # path of each duplicate key, ending in the key; the last value is used
        # The duplicate keys, grouped by the first step of their path. The dictionary is filled on demand.
        self._duplicates_of: dict[str | int, list[Path]] = {}
        self._spans: dict[Path, dict[str | int, Span]] = {}  # spans of the containers that were queried

    def raw(self, *path: str | int) -> str | None:
        """Return the raw text of the member at `path`, or None if it is absent.

        If a key is repeated, the last value is returned.
        """
        span = self._span(path)
        return None if span is None else self.text[span[0] : span[1]]

    def span(self, *path: str | int) -> Span | None:
        """Return the start and end of the raw text of the member at `path`, or None if it is absent."""
        return self._span(path)

    def duplicates_under(self, base: Path) -> Iterable[Path]:
        """Return the paths of the repeated keys at or below `base`."""
        if not (base and self.duplicates):
            return self.duplicates
        if not self._duplicates_of:
            for path in self.duplicates:
                self._duplicates_of.setdefault(path[0], []).append(path)
        return [path for path in self._duplicates_of.get(base[0], ()) if path[: len(base)] == base]

    def members(self, *path: str | int) -> dict[str, str]:
        """Return the key and the raw text of each member of the object at `path`, in wire order.

        Return {} if the value is not an object. A repeated key has the position of its last value.
        """
        text = self.text
        return {key: text[start:end] for key, (start, end) in self._inside(path).items() if isinstance(key, str)}

    def elements(self, *path: str | int) -> list[str]:
        """Return the raw text of each element of the array at `path`, or [] if the value is not an array."""
        text = self.text
        return [text[start:end] for key, (start, end) in self._inside(path).items() if isinstance(key, int)]

    def _span(self, path: Path) -> Span | None:
        if path:
            return self._inside(path[:-1]).get(path[-1])
        start = _skip_space(self.text, 0)
        return start, value_end(self.text, start)

    def _inside(self, path: Path) -> dict[str | int, Span]:
        """Return the spans of the members or elements at `path`. The spans are computed only once."""
        known = self._spans.get(path)
        if known is None:
            span = self._span(path) if path else (_skip_space(self.text, 0), 0)
            known = self._spans[path] = {} if span is None else _spans(self.text, span[0])
        return known


def parse(
    data: bytes | str, max_depth: int | None = None, max_values: int | None = None, walked: Walked | None = None
) -> Payload:
    """Parse one complete payload, or raise JsonFault. Invalid UTF-8 in bytes is replaced.

    `max_depth` can only lower the depth limit, so that all parsers of this backend have the same upper limit.
    `max_values` limits two numbers. The first is the number of commas and opening brackets, which is checked before any
    value is built. The second is the weighted number of elements in the lists of `walked`.
    """
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    if max_values is not None and len(text) > max_values and has_more_values(text, max_values):
        raise JsonFault("too_many", 0)
    payload = _parse_whole(data, text, max_depth)
    if max_values is not None and walked is not None:
        most = max_values // _WEIGHT
        # An element, with its separator, takes at least two characters.
        if len(text) // 2 > most and (_repeats(payload, walked) or _entries(payload.value, walked) > most):
            raise JsonFault("too_many", 0)
    return payload


def reject_incomplete(data: bytes, max_depth: int | None = None, max_values: int | None = None) -> None:
    """Raise the JsonFault that `parse` raises for a text that is not one complete value, without building values.

    The values of a truncated text are useless, and may take many times the memory of the text.
    """
    if max_values is not None and len(data) > max_values:
        text = data.decode("utf-8", "replace")
        if len(text) > max_values and has_more_values(text, max_values):
            raise JsonFault("too_many", 0)
    _check(data, MAX_DEPTH if max_depth is None else min(max_depth, MAX_DEPTH))


def _parse_whole(data: bytes | str, text: str, max_depth: int | None) -> Payload:
    depth = MAX_DEPTH if max_depth is None else min(max_depth, MAX_DEPTH)
    try:
        value = _parse_plain(text)
    except (_NotPlain, ValueError, RecursionError):
        return _parse_checked(data, text, depth)
    # The depth of a text cannot exceed its number of opening brackets, so the depth of most payloads is not computed.
    if text.count("{") + text.count("[") > depth:
        _check(data, depth)
    return Payload(text, value)


def _repeats(payload: Payload, walked: Walked) -> bool:
    """Return True if the key of a list in `walked`, or of an object that contains such a list, is duplicated.

    A text with such a duplicate key must be rejected, because only the last value of the key would be counted.
    """
    keys = walked.lists | walked.objects
    return any(all(isinstance(step, int) or step in keys for step in path) for path in payload.duplicates)


def _entries(value: object, walked: Walked) -> int:
    """Count the elements of the lists whose elements are decoded individually. `value` itself may be such a list."""
    if is_array(value):
        return len(value) + sum([_entries(item, walked) for item in value if is_object(item)])
    if not is_object(value):
        return 0
    return sum(
        [
            _entries(item, walked)
            for key, item in value.items()
            if key in (walked.lists if is_array(item) else walked.objects if is_object(item) else ())
        ]
    )


def has_more_values(text: str, most: int) -> bool:
    """Return True if there are more than `most` commas and opening brackets outside strings. The text may be invalid
    JSON.
    """
    count = 0
    for token in _COUNTED.finditer(text):
        if token[0][0] != '"':
            count += len(token[0])
            if count > most:
                return True
    return False


def _parse_checked(data: bytes | str, text: str, depth: int) -> Payload:
    overflow = _check(data, depth)
    duplicates: list[Path] = []
    value = build(text, integer=_integer, duplicates=duplicates)
    return Payload(text, value, overflow, tuple(duplicates))


def _check(data: bytes | str, depth: int) -> bool:
    """Raise JsonFault unless the text is one complete value. Return True if the value contains an integer outside 64
    bits.
    """
    automaton = examine(data, depth)
    if automaton.verdict != "complete":
        raise JsonFault(automaton.reason or "incomplete", automaton.pos)
    return automaton.big_integer


def _integer(digits: str) -> int | BigInteger:
    if len(digits) > 20:
        return BigInteger(digits)
    value = int(digits)
    return value if -(1 << 63) <= value < 1 << 64 else BigInteger(digits)


# The fast path uses the C scanner of the standard library. The hooks of this scanner abort if the payload contains
# something that the automaton may reject or must record.


class _NotPlain(Exception):
    """Raised if a payload requires the slow path."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _NotPlain
    return members


def _small_integer(digits: str) -> int:
    if len(digits) > 18:
        raise _NotPlain
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if value in _INFINITIES:
        raise _NotPlain
    return value


def _no_constant(_: str) -> None:
    raise _NotPlain


_INFINITIES: Final = (float("inf"), float("-inf"))
_parse_plain: Final[Callable[[str], Any]] = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_small_integer, parse_float=_finite, parse_constant=_no_constant
).decode


# The slow path parses text that the automaton has validated as one value. The slow path is not recursive, and it
# reports duplicate keys.


class _Open:
    """An unfinished object or array. `members` is used for an object, and `items` for an array."""

    __slots__ = ("items", "key", "members")

    def __init__(self, is_object: bool) -> None:
        self.members: dict[str, Any] | None = {} if is_object else None
        self.items: list[Any] = []
        self.key = ""

    @property
    def path_step(self) -> str | int:
        return len(self.items) if self.members is None else self.key

    def put(self, value: Any) -> bool:
        """Store the next value of the container. Return True if the key of the value is a duplicate."""
        if self.members is None:
            self.items.append(value)
            return False
        repeated = self.key in self.members
        self.members[self.key] = value
        return repeated


def build(text: str, *, integer: Callable[[str], Any], duplicates: list[Path] | None = None) -> Any:
    """Build the value of a valid text. `integer` converts an integer token."""
    at = _skip_space(text, 0)
    stack: list[_Open] = []
    while True:
        sign = text[at]
        value: Any
        if sign == '"':
            value, at = _scan(text, at)
        elif sign in "{[":
            at = _skip_space(text, at + 1)
            if text[at] not in "}]":
                stack.append(_Open(sign == "{"))
                at = _next_key(text, at, stack[-1])
                continue
            value = {} if sign == "{" else []
            at += 1
        elif sign in "tfn":
            value = _WORDS[sign]
            at += 5 if sign == "f" else 4
        else:
            token = _take(_NUMBER, text, at)
            value = integer(token) if _INTEGER.fullmatch(token) else float(token)
            at += len(token)
        # The value is complete. Store the value in its container, and close the containers that end here.
        while stack:
            if stack[-1].put(value) and duplicates is not None:
                duplicates.append(tuple(container.path_step for container in stack))
            at = _skip_space(text, at)
            if text[at] == ",":
                at = _next_key(text, _skip_space(text, at + 1), stack[-1])
                break
            at += 1
            closed = stack.pop()
            value = closed.items if closed.members is None else closed.members
        else:
            return value


def _next_key(text: str, at: int, container: _Open) -> int:
    """Return the offset of the next value in the container, and store its key."""
    if container.members is not None:
        container.key, at = _key(text, at)
    return at


def _key(text: str, at: int) -> tuple[str, int]:
    """Return the key that starts at `at`, and the offset of its value."""
    key, at = _scan(text, at)
    return key, _skip_space(text, _skip_space(text, at) + 1)


# The following functions find spans in a valid text. The scanner builds the values that it skips, but this is still
# much faster than a loop in Python.

_scan: Final = json.JSONDecoder().raw_decode


def value_end(text: str, at: int) -> int:
    """Return the end of the value that starts at `at`."""
    try:
        return _scan(text, at)[1]
    except (ValueError, RecursionError):  # an integer that int() rejects, or not enough stack left
        pass
    if text[at] not in "{[":
        return at + len(_take(_NUMBER, text, at))
    depth = 0
    while True:
        token = _QUOTE_OR_BRACKET.search(text, at)
        if token is None:
            return len(text)
        if token[0] == '"':
            at = _scan(text, token.start())[1]
            continue
        depth += 1 if token[0] in "{[" else -1
        at = token.end()
        if depth == 0:
            return at


def ordered_members(text: str) -> dict[str, str]:
    """Return the key and the raw text of each member of an object, in wire order.

    A repeated key has its first position and its last value, as in a parsed dictionary.
    """
    spans = _member_spans(text, _skip_space(text, 0) + 1, moves_repeated=False)
    return {key: text[start:end] for key, (start, end) in spans.items() if isinstance(key, str)}


def _spans(text: str, at: int) -> dict[str | int, Span]:
    """Return the spans of the members or elements of the container at `at`, or {} if the value is not a container."""
    if text[at] == "{":
        return _member_spans(text, at + 1)
    return _element_spans(text, at + 1) if text[at] == "[" else {}


def _member_spans(text: str, at: int, *, moves_repeated: bool = True) -> dict[str | int, Span]:
    found: dict[str | int, Span] = {}
    while True:
        member = _MEMBER.match(text, at)
        if member is not None:
            key = member[1]
            start, end = member.span(2)
            if end < 0:
                start = member.end()
                end = value_end(text, start)
        else:  # the end, or a key with escapes
            at = _skip_comma(text, at)
            if text[at] == "}":
                return found
            key, start = _key(text, at)
            end = value_end(text, start)
        if moves_repeated:
            found.pop(key, None)  # a duplicate key has the position of its last value
        found[key] = start, end
        at = end


def _element_spans(text: str, at: int) -> dict[str | int, Span]:
    found: dict[str | int, Span] = {}
    at = _skip_comma(text, at)
    while text[at] != "]":
        end = value_end(text, at)
        found[len(found)] = at, end
        at = _skip_comma(text, end)
    return found


def _skip_comma(text: str, at: int) -> int:
    at = _skip_space(text, at)
    return _skip_space(text, at + 1) if text[at] == "," else at


def _take(pattern: re.Pattern[str], text: str, at: int) -> str:
    found = pattern.match(text, at)
    return "" if found is None else found[0]


def _skip_space(text: str, at: int) -> int:
    return at + len(_take(_SPACE, text, at)) if text[at : at + 1] in _BLANK else at


# Surrogates


def has_lone_surrogate(text: str) -> bool:
    """Return True if the text contains an unpaired surrogate. The scanner has already joined pairs into one code
    point.
    """
    return not text.isascii() and _SURROGATE.search(text) is not None


def replace_lone_surrogates(text: str) -> str:
    """Join surrogate halves that arrived in two pieces of text. Every other surrogate becomes U+FFFD."""
    if not has_lone_surrogate(text):
        return text
    joined = _PAIR.sub(_join, text)
    return _SURROGATE.sub("\ufffd", joined)


def between_halves(text: str) -> str:
    """Return the text without surrogate halves at its ends, because adjacent text may complete their pairs."""
    return split_halves(text)[1]


def split_halves(text: str) -> tuple[str, str, str]:
    """Split the text into the low surrogate at its start, the text in between, and the high surrogate at its end."""
    start = 1 if "\udc00" <= text[:1] <= "\udfff" else 0
    end = len(text) - 1 if "\ud800" <= text[-1:] <= "\udbff" else len(text)
    return text[:start], text[start:end], text[end:]


def _join(pair: re.Match[str]) -> str:
    return chr(0x10000 + (ord(pair[0][0]) - 0xD800 << 10) + ord(pair[0][1]) - 0xDC00)


_WORDS: Final[dict[str, bool | None]] = {"t": True, "f": False, "n": None}
_BLANK: Final = frozenset(" \t\n\r")
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_NUMBER: Final = re.compile(r"[-+0-9.eE]+")
_INTEGER: Final = re.compile(r"-?[0-9]+")
# Matches a member of a valid object, with the comma before it. Captures the key, and the value unless it is a container
# or has escapes.
_MEMBER: Final = re.compile(r'[ \t\n\r]*(?:,[ \t\n\r]*)?"([^"\\]*)"[ \t\n\r]*:[ \t\n\r]*("[^"\\]*"|[-+0-9.a-zE]+)?')
_WEIGHT: Final = 32  # number of values that one element counts as; an element takes far more memory than its text
_COUNTED: Final = re.compile(r'[,\[{]+|"[^"\\]*+(?:\\.?[^"\\]*+)*+"?', re.DOTALL)  # a string may be unterminated
_QUOTE_OR_BRACKET: Final = re.compile(r'["{}\[\]]')
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
