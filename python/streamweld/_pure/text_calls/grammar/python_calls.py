"""Parses the shape `python`: calls with keyword arguments, either `[f(k='v'), g()]` or one per line.

Values are Python literals or the JSON words `true`, `false` and `null`. Keys of a family in `_spec/text_calls.json`:
`form` is `list` or `lines`, and `close` is the literal that ends the block.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from streamweld._pure.text_calls.cursor import WHITE, Malformed
from streamweld._pure.text_calls.grammar.call import Argument, WrittenCall
from streamweld._pure.text_calls.grammar.xml import add

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.text_calls.cursor import Cursor, Steps

__all__ = ["parse"]

_DEPTH: Final = 64
_BLANK: Final = re.compile(r"[ \t\r\n]*")
_DOTTED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_KEYWORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER: Final = re.compile(r"([+-]?)([0-9]*)(\.[0-9]*)?([eE][+-]?[0-9]+)?(?![0-9A-Za-z._+-])")
_WORD: Final = re.compile(r"[A-Za-z]+")
_WORDS: Final = {"True": "true", "true": "true", "False": "false", "false": "false", "None": "null", "null": "null"}
_ESCAPES: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "a": "\a",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "\n": "",
}
_OCTAL: Final = re.compile(r"[0-7]{1,3}")
_HEX: Final = {"x": 2, "u": 4, "U": 8}
_PLAIN: Final = {"'": re.compile(r"[^'\\]*"), '"': re.compile(r'[^"\\]*')}


def parse(cursor: Cursor, data: Mapping[str, Any]) -> Steps[list[WrittenCall]]:
    close = data.get("close")
    calls: list[WrittenCall] = []
    if data["form"] == "list":
        if (yield from cursor.skip_space()) != "[":
            raise Malformed
        calls = _Reader((yield from cursor.value("\"'", first="("))).listed()
        if close:
            yield from cursor.expect(close)
        return calls
    while True:
        yield from cursor.skip_space()
        if calls and (yield from cursor.take(close or "")):
            return calls
        name = yield from cursor.name()
        if not (yield from cursor.sees("(")):
            raise Malformed
        calls.append(_Reader(name + (yield from cursor.value("\"'"))).alone())


class _Reader:
    """Parses the complete text of one or several calls."""

    __slots__ = ("_at", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def listed(self) -> list[WrittenCall]:
        self._take("[")
        calls = [self._call()]
        while self._sees(","):
            if self._sees("]"):
                self._end()
                return calls
            calls.append(self._call())
        self._take("]")
        self._end()
        return calls

    def alone(self) -> WrittenCall:
        call = self._call()
        self._end()
        return call

    def _end(self) -> None:
        if self._text[self._at :].strip(WHITE):
            raise Malformed

    def _space(self) -> None:
        found = _BLANK.match(self._text, self._at)
        self._at = self._at if found is None else found.end()

    def _sees(self, mark: str) -> bool:
        self._space()
        if not self._text.startswith(mark, self._at):
            return False
        self._at += len(mark)
        return True

    def _take(self, mark: str) -> None:
        if not self._sees(mark):
            raise Malformed

    def _match(self, pattern: re.Pattern[str]) -> str:
        self._space()
        found = pattern.match(self._text, self._at)
        if found is None:
            raise Malformed
        self._at = found.end()
        return found[0]

    def _call(self) -> WrittenCall:
        name = self._match(_DOTTED)
        found: dict[str, Argument] = {}
        self._take("(")
        while not self._sees(")"):
            if found:
                self._take(",")
                if self._sees(")"):
                    break
            key = self._match(_KEYWORD)
            self._take("=")
            add(found, Argument(key, self._value(0), "json"))
        return WrittenCall(name, list(found.values()))

    def _value(self, depth: int) -> str:
        """Read a literal and return it as JSON text."""
        self._space()
        mark = self._text[self._at : self._at + 1]
        if depth > _DEPTH or not mark:
            raise Malformed
        if mark in "'\"":
            return json.dumps(self._string(mark), ensure_ascii=False)
        if mark == "[":
            return self._items("[", "]", depth)
        if mark == "(":
            return self._items("(", ")", depth)
        if mark == "{":
            return self._mapping(depth)
        if mark in "+-.0123456789":
            return self._number()
        word = _WORDS.get(self._match(_WORD))
        if word is None:
            raise Malformed
        return word

    def _number(self) -> str:
        """Return a decimal number as JSON. `.5`, `5.` and `+1` are rewritten; other bases are refused."""
        found = _NUMBER.match(self._text, self._at)
        if found is None:
            raise Malformed
        self._at = found.end()
        sign, whole, fraction, exponent = found.groups("")
        if not (whole or fraction.strip(".")) or (len(whole) > 1 and whole[0] == "0"):
            raise Malformed
        fraction = ".0" if fraction == "." else fraction
        return f"{sign.removeprefix('+')}{whole or '0'}{fraction}{exponent}"

    def _items(self, opener: str, closer: str, depth: int) -> str:
        self._take(opener)
        items: list[str] = []
        commas = 0
        while not self._sees(closer):
            if items:
                self._take(",")
                commas += 1
                if self._sees(closer):
                    break
            items.append(self._value(depth + 1))
        if closer == ")" and len(items) == 1 and not commas:
            raise Malformed  # a value in parentheses, not a tuple
        return f"[{','.join(items)}]"

    def _mapping(self, depth: int) -> str:
        self._take("{")
        members: dict[str, str] = {}
        while not self._sees("}"):
            if members:
                self._take(",")
                if self._sees("}"):
                    break
            self._space()
            mark = self._text[self._at : self._at + 1]
            if not mark or mark not in "'\"":
                raise Malformed
            key = self._string(mark)
            if key in members:
                raise Malformed
            self._take(":")
            members[key] = self._value(depth + 1)
        written = [f"{json.dumps(key, ensure_ascii=False)}:{value}" for key, value in members.items()]
        return "{" + ",".join(written) + "}"

    def _string(self, quote: str) -> str:
        self._at += 1
        pieces: list[str] = []
        while True:
            pieces.append(self._run(_PLAIN[quote]))
            mark = self._text[self._at : self._at + 1]
            if not mark:
                raise Malformed
            self._at += 1
            if mark == quote:
                return "".join(pieces)
            pieces.append(self._escape())

    def _run(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return found[0]

    def _escape(self) -> str:
        mark = self._text[self._at : self._at + 1]
        self._at += 1
        if mark in _ESCAPES:
            return _ESCAPES[mark]
        if mark == "N":
            raise Malformed
        octal = _OCTAL.match(self._text, self._at - 1)
        if octal is not None:
            self._at = octal.end()
            return chr(int(octal[0], 8))
        digits = _HEX.get(mark)
        if digits is None:
            return "\\" + mark
        number = self._hex(digits)
        if mark == "u" and 0xD800 <= number < 0xDC00 and self._text.startswith("\\u", self._at):
            self._at += 2
            low = self._hex(4)
            if not 0xDC00 <= low < 0xE000:
                raise Malformed
            number = 0x10000 + ((number - 0xD800) << 10) + (low - 0xDC00)
        if number > 0x10FFFF or 0xD800 <= number < 0xE000:
            raise Malformed
        return chr(number)

    def _hex(self, digits: int) -> int:
        written = self._text[self._at : self._at + digits]
        self._at += digits
        if len(written) != digits or not all(one in "0123456789abcdefABCDEF" for one in written):
            raise Malformed
        return int(written, 16)
