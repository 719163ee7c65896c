"""Parse one JSON object while its text arrives. Provide the partial value, the open string, and the changes.

The automaton validates the text, so this module only finds tokens. Each character is examined a bounded number of
times, regardless of how the text is split. Incomplete values are not guessed. A number that may continue, a key without
its value, and an incomplete escape are omitted until they are complete.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, cast

from streamweld._pure.json.automaton import Automaton
from streamweld._pure.json.scanner import JsonFault, replace_lone_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Path: TypeAlias = tuple[str | int, ...]
"""Path of a value in the arguments: keys and list positions, from the outermost."""


class ArgumentsChange(NamedTuple):
    """One change of the arguments.

    The kind `fragment` means that text was appended to the unfinished string at `path`; the field `value` is that text.
    The kind `value` means that the value at `path` is finished, and changes only if a `reset` follows. The value of a
    string is the concatenation of its fragments. A list or an object is reported after its contents. The kind `reset`
    means that all earlier changes are invalid, and that the corrected arguments follow.
    """

    kind: Literal["fragment", "value", "reset"]
    path: Path
    value: Any = None


class OpenString(NamedTuple):
    """The unfinished string at the end of the arguments."""

    path: Path
    fragments: Sequence[str]

    @property
    def text(self) -> str:
        """The received text of the string, which is joined on each access."""
        return "".join(self.fragments)


class PartialObject:
    """Parse an object from text that arrives in pieces of any size and may end anywhere.

    Args:
        number: a function that parses a number token. If the function raises JsonFault, the parsing ends.
    """

    __slots__ = (
        "_automaton",
        "_held",
        "_is_key",
        "_key",
        "_number",
        "_paths",
        "_pieces",
        "_stack",
        "_state",
        "changes",
        "is_broken",
        "root",
        "tail",
    )

    def __init__(self, number: Callable[[str], Any]) -> None:
        self.root: dict[str, Any] | None = None
        self.tail: OpenString | None = None
        self.changes: list[ArgumentsChange] = []  # consumers remove the changes that they have read
        self.is_broken = False  # whether the text can no longer become an object
        self._number = number
        self._automaton = Automaton()
        self._state: Literal["between", "string", "scalar"] = "between"
        self._held = ""  # an incomplete escape: at most 12 characters, or 18 with a high surrogate before it
        self._pieces: list[str] = []  # pieces of the current key or scalar, or of a string since the last change
        self._is_key = False  # whether the string is a key
        self._key: str | None = None  # key of the member whose value comes next
        self._stack: list[dict[str, Any] | list[Any]] = []
        self._paths: list[Path] = []

    def feed(self, text: str) -> None:
        """Feed more text. Once the text is broken, the state no longer changes."""
        if self.is_broken:
            return
        automaton = self._automaton
        before = automaton.pos
        if automaton.feed(text) == "broken":
            self.is_broken = True
            text = text.encode("utf-8", "surrogatepass")[: automaton.pos - before].decode("utf-8", "surrogatepass")
        if automaton.root not in {None, "object"}:  # arguments are an object; those of a custom tool may be other text
            self.is_broken = True
            return
        try:
            self._read(text)
        except JsonFault:  # an integer with more digits than `.parsed` accepts
            self.is_broken = True

    def complete_tail(self) -> None:
        """Store the open string as if it ended here. Do not feed more text after this call."""
        if self.tail is not None:
            self._add(self.tail.text)

    def _read(self, text: str) -> None:
        at, end = 0, len(text)
        while at < end:
            if self._state == "string":
                if self._held:
                    text, at = self._held + text[at:], 0
                    end, self._held = len(text), ""
                at = self._string(text, at)
            elif self._state == "scalar":
                at = self._scalar(text, at)
            else:
                at = self._between(text, at)
        if self.tail is not None:
            self._show()

    def _between(self, text: str, at: int) -> int:
        separator = _SEPARATOR.match(text, at)
        at = at if separator is None else separator.end()
        if at == len(text):
            return at
        first = text[at]
        if first == '"':
            self._state = "string"
            self._is_key = self._key is None and isinstance(self._stack[-1], dict)
            if not self._is_key:
                self.tail = OpenString(self._here(), [])
        elif first == "{":
            self._open({})
        elif first == "[":
            self._open([])
        elif first in "}]":
            path = self._paths.pop()
            self.changes.append(ArgumentsChange("value", path, self._stack.pop()))
        else:
            self._state = "scalar"
            return at
        return at + 1

    def _string(self, text: str, at: int) -> int:
        run = _RUN.match(text, at)
        if run is not None:
            self._pieces.append(run[0])
            at = run.end()
        if at < len(text) and text[at] == '"':
            self._end_string()
            return at + 1
        # The piece of text ends here, possibly inside an escape or between the two halves of a surrogate pair.
        if run is not None:
            high = _HIGH_AT_END.search(run[0])
            if high is not None and not _is_escaped(run[0], high.start()):
                self._held = high[0]
                self._pieces[-1] = run[0][: high.start()]
        self._held += text[at:]
        return len(text)

    def _end_string(self) -> None:
        self._state = "between"
        if self._is_key:
            self._key = _unescape("".join(self._pieces))
            self._pieces.clear()
            return
        self._show()
        tail = cast("OpenString", self.tail)
        self.tail = None
        value = tail.text
        self._add(value)
        self.changes.append(ArgumentsChange("value", tail.path, value))

    def _show(self) -> None:
        """Report the text of the open string that has arrived since the last change."""
        text = _unescape("".join(self._pieces))
        self._pieces.clear()
        if text:
            path, fragments = cast("OpenString", self.tail)
            cast("list[str]", fragments).append(text)
            self.changes.append(ArgumentsChange("fragment", path, text))

    def _scalar(self, text: str, at: int) -> int:
        run = _SCALAR.match(text, at)
        if run is not None:
            self._pieces.append(run[0])
            at = run.end()
        # A number may still continue at the end of the text, but a literal is complete with its last letter.
        ended = at < len(text)
        token = "".join(self._pieces) if ended or self._pieces[0][0] in "tfn" else ""
        if not ended and token not in _WORDS:
            return at
        self._state = "between"
        self._pieces.clear()
        value = _WORDS[token] if token in _WORDS else self._number(token)
        path = self._here()
        self._add(value)
        self.changes.append(ArgumentsChange("value", path, value))
        return at

    def _open(self, container: dict[str, Any] | list[Any]) -> None:
        path = self._here()
        self._add(container)
        self._stack.append(container)
        self._paths.append(path)

    def _here(self) -> Path:
        """Return the path of the next value."""
        if not self._stack:
            return ()
        top = self._stack[-1]
        return (*self._paths[-1], len(top) if isinstance(top, list) else cast("str", self._key))

    def _add(self, value: Any) -> None:
        if not self._stack:
            self.root = cast("dict[str, Any]", value)
            return
        top = self._stack[-1]
        if isinstance(top, list):
            top.append(value)
        else:
            top[cast("str", self._key)] = value
            self._key = None


def _unescape(text: str) -> str:
    """Decode the text between the quotes of a JSON string."""
    if "\\" not in text:
        return text
    return replace_lone_surrogates(cast("str", json.loads(f'"{text}"')))


def _is_escaped(text: str, at: int) -> bool:
    """Return True if the backslash at `at` is escaped itself."""
    start = at
    while start and text[start - 1] == "\\":
        start -= 1
    return (at - start) % 2 == 1


_WORDS: Final = {"true": True, "false": False, "null": None}
_SEPARATOR: Final = re.compile(r"[ \t\n\r,:]*")
_SCALAR: Final = re.compile(r"[^ \t\n\r,\]}]+")
# A run of characters and complete escapes in a string. The quantifiers are possessive, so that the regex engine does
# not store backtracking positions.
_RUN: Final = re.compile(r'(?:[^"\\]++|\\(?:[^u]|u[0-9a-fA-F]{4}))++')
_HIGH_AT_END: Final = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
