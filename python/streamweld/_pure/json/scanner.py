"""The one door through which this backend's decoders read JSON payloads.

It gives Python values, the raw text of chosen members on demand, and what must be said about a payload: integers
outside 64 bits and keys that stand twice. It knows no dialect and no policy. The automaton gives the verdict; the
scanner of the standard library is used only for what both are known to read alike.
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

    `reason` is "incomplete", "syntax", "too_deep", "too_many" or "number_too_big"; `pos` is the automaton's, in bytes
    of UTF-8.
    """

    def __init__(self, reason: str, pos: int) -> None:
        super().__init__(reason, pos)
        self.reason = reason
        self.pos = pos

    def __str__(self) -> str:
        return f"{self.reason} at byte {self.pos}"


class BigInteger:
    """An integer outside [-2^63, 2^64-1] in a payload, as text: of what is read only an id may be one."""

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
    """The keys of lists whose entries are decoded one by one, and of the objects that hold such lists."""

    lists: frozenset[str]
    objects: frozenset[str]


class Payload:
    """One parsed payload. In `value`, strings keep surrogates that were escaped without their pair."""

    __slots__ = ("_duplicates_of", "_spans", "duplicates", "overflow", "text", "value")

    def __init__(self, text: str, value: Any, overflow: bool = False, duplicates: tuple[Path, ...] = ()) -> None:
        self.text = text
        self.value = value
        self.overflow = overflow  # there is a BigInteger in it
        self.duplicates = duplicates  # the path of each repeated key, itself last; of its members the last one won
        self._duplicates_of: dict[str | int, list[Path]] = {}  # by their first step, once they are asked for
        self._spans: dict[Path, dict[str | int, Span]] = {}  # of the containers that were asked about

    def raw(self, *path: str | int) -> str | None:
        """The text of the member at `path` as sent, or None. Of a repeated key it is the last, as in `value`."""
        span = self._span(path)
        return None if span is None else self.text[span[0] : span[1]]

    def duplicates_under(self, base: Path) -> Iterable[Path]:
        """The paths of the repeated keys below `base`, or at it."""
        if not (base and self.duplicates):
            return self.duplicates
        if not self._duplicates_of:
            for path in self.duplicates:
                self._duplicates_of.setdefault(path[0], []).append(path)
        return [path for path in self._duplicates_of.get(base[0], ()) if path[: len(base)] == base]

    def members(self, *path: str | int) -> dict[str, str]:
        """key -> text as sent, of every member of the object at `path` in wire order; {} if no object is there.

        A repeated key stands where its last value stands.
        """
        text = self.text
        return {key: text[start:end] for key, (start, end) in self._inside(path).items() if isinstance(key, str)}

    def elements(self, *path: str | int) -> list[str]:
        """The text as sent of every element of the array at `path`; [] if no array is there."""
        text = self.text
        return [text[start:end] for key, (start, end) in self._inside(path).items() if isinstance(key, int)]

    def _span(self, path: Path) -> Span | None:
        if path:
            return self._inside(path[:-1]).get(path[-1])
        start = _skip_space(self.text, 0)
        return start, value_end(self.text, start)

    def _inside(self, path: Path) -> dict[str | int, Span]:
        """The spans of the members or elements at `path`, found once."""
        known = self._spans.get(path)
        if known is None:
            span = self._span(path) if path else (_skip_space(self.text, 0), 0)
            known = self._spans[path] = {} if span is None else _spans(self.text, span[0])
        return known


def parse(
    data: bytes | str, max_depth: int | None = None, max_values: int | None = None, walked: Walked | None = None
) -> Payload:
    """Parse one whole payload (in bytes, broken UTF-8 is replaced) or raise JsonFault.

    `max_depth` can only lower the cap: what the other doors would not take does not come in here. `max_values` caps its
    commas and opening brackets, before anything is built, and the entries of the lists of `walked`, by their weight.
    """
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    if max_values is not None and len(text) > max_values and has_more_values(text, max_values):
        raise JsonFault("too_many", 0)
    payload = _parse_whole(data, text, max_depth)
    if max_values is not None and walked is not None:
        most = max_values // _WEIGHT
        # An entry takes two characters at least.
        if len(text) // 2 > most and (_repeats(payload, walked) or _entries(payload.value, walked) > most):
            raise JsonFault("too_many", 0)
    return payload


def _parse_whole(data: bytes | str, text: str, max_depth: int | None) -> Payload:
    depth = MAX_DEPTH if max_depth is None else min(max_depth, MAX_DEPTH)
    try:
        value = _parse_plain(text)
    except (_NotPlain, ValueError, RecursionError):
        return _parse_checked(data, text, depth)
    # No text is deeper than it has brackets, so that the usual payload need not be walked for its depth.
    if text.count("{") + text.count("[") > depth:
        _check(data, depth)
    return Payload(text, value)


def _repeats(payload: Payload, walked: Walked) -> bool:
    """Whether such a list, or what holds it, stands twice: only the last one would be counted."""
    keys = walked.lists | walked.objects
    return any(all(isinstance(step, int) or step in keys for step in path) for path in payload.duplicates)


def _entries(value: object, walked: Walked) -> int:
    """How many entries the lists have that are decoded one by one. `value` itself may be such a list."""
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
    """Whether more commas and opening brackets stand outside of strings; what is not JSON is counted too."""
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
    """Raise JsonFault unless the automaton finds one whole value; tells whether an integer is outside 64 bits."""
    automaton = examine(data, depth)
    if automaton.verdict != "complete":
        raise JsonFault(automaton.reason or "incomplete", automaton.pos)
    return automaton.big_integer


def _integer(digits: str) -> int | BigInteger:
    if len(digits) > 20:
        return BigInteger(digits)
    value = int(digits)
    return value if -(1 << 63) <= value < 1 << 64 else BigInteger(digits)


# The fast way: the C scanner, whose hooks give up wherever the rules above say more than it does.


class _NotPlain(Exception):
    """No error: it sends a payload the careful way."""


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


# The careful way, for a text that the automaton has found to be one value: no recursion, and it tells repeated keys.


class _Open:
    """A container whose end is not reached; `members` of an object, `items` of an array."""

    __slots__ = ("items", "key", "members")

    def __init__(self, is_object: bool) -> None:
        self.members: dict[str, Any] | None = {} if is_object else None
        self.items: list[Any] = []
        self.key = ""

    @property
    def place(self) -> str | int:
        return len(self.items) if self.members is None else self.key

    def put(self, value: Any) -> bool:
        """Whether the key was there already."""
        if self.members is None:
            self.items.append(value)
            return False
        repeated = self.key in self.members
        self.members[self.key] = value
        return repeated


def build(text: str, *, integer: Callable[[str], Any], duplicates: list[Path] | None = None) -> Any:
    """The value of a valid text. `integer` makes the value of an integer token."""
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
        # A value is whole: put it where it belongs, and close what it closes.
        while stack:
            if stack[-1].put(value) and duplicates is not None:
                duplicates.append(tuple(container.place for container in stack))
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
    """Where the next value in the container starts, its key noted."""
    if container.members is not None:
        container.key, at = _key(text, at)
    return at


def _key(text: str, at: int) -> tuple[str, int]:
    """The key that starts at `at`, and where its value starts."""
    key, at = _scan(text, at)
    return key, _skip_space(text, _skip_space(text, at) + 1)


# Spans of a valid text. The scanner builds what it skips: still much faster than walking here.

_scan: Final = json.JSONDecoder().raw_decode


def value_end(text: str, at: int) -> int:
    """Where the value ends that starts at `at`."""
    try:
        return _scan(text, at)[1]
    except (ValueError, RecursionError):  # an integer that int() refuses; a stack that is nearly full
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


def _spans(text: str, at: int) -> dict[str | int, Span]:
    """Where the members of the object at `at`, or the elements of the array, start and end; {} for another value."""
    if text[at] == "{":
        return _member_spans(text, at + 1)
    return _element_spans(text, at + 1) if text[at] == "[" else {}


def _member_spans(text: str, at: int) -> dict[str | int, Span]:
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
        found.pop(key, None)  # a repeated key stands where its last value stands
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
    """Whether a surrogate code point is in a str. A pair is never two of them: the scanner joins it."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def replace_lone_surrogates(text: str) -> str:
    """Halves that two pieces of text brought are joined; every other surrogate becomes U+FFFD."""
    if not has_lone_surrogate(text):
        return text
    joined = _PAIR.sub(_join, text)
    return _SURROGATE.sub("\ufffd", joined)


def between_halves(text: str) -> str:
    """The text without a low surrogate at its start and a high one at its end, which other texts may complete."""
    return split_halves(text)[1]


def split_halves(text: str) -> tuple[str, str, str]:
    """The half at its start, what stands between the two, and the half at its end."""
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
# A member of a valid object, behind the one before it: its key, and its value unless it is a container or has escapes.
_MEMBER: Final = re.compile(r'[ \t\n\r]*(?:,[ \t\n\r]*)?"([^"\\]*)"[ \t\n\r]*:[ \t\n\r]*("[^"\\]*"|[-+0-9.a-zE]+)?')
_WEIGHT: Final = 32  # values that an entry of such a list counts for: decoded, it takes far more than its text
_COUNTED: Final = re.compile(r'[,\[{]+|"[^"\\]*+(?:\\.?[^"\\]*+)*+"?', re.DOTALL)  # a string may have no end
_QUOTE_OR_BRACKET: Final = re.compile(r'["{}\[\]]')
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
