# ruff: noqa: SLF001 (the automaton copies its own private attributes)
"""Validate JSON text that arrives in pieces. Determine whether the text is a prefix of JSON, one complete value, or
broken.

This module does all JSON validation of this backend. The module defines which text is valid, and at which byte a text
becomes invalid. The input is UTF-8; other modules build the values. Each byte is examined a bounded number of times,
regardless of how the text is split.

A regular expression consumes each member, element, or run of string text that lies entirely within one piece. The
states handle tokens that span several pieces.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from streamweld._pure.json.numeral import Numeral
from streamweld._spec import LIMITS

Verdict = Literal["prefix", "complete", "broken"]
Root = Literal["object", "array", "string", "number", "literal"]
Reason = Literal["syntax", "too_deep", "number_too_big"]

MAX_DEPTH: Final = LIMITS["max_json_depth"] or 128


class Automaton:
    """Validates a text that arrives in pieces of any size. The final state does not depend on where the text is
    split.
    """

    __slots__ = (
        "_hex",
        "_hex_left",
        "_high",
        "_in_key",
        "_literal",
        "_number",
        "_stack",
        "_state",
        "big_integer",
        "depth",
        "lone_surrogate",
        "max_depth",
        "pos",
        "reason",
        "root",
    )

    def __init__(self, max_depth: int | None = None) -> None:
        self.max_depth: int = MAX_DEPTH if max_depth is None else max_depth
        # Number of bytes fed. If the text is broken, the offset of the first byte that cannot belong to the value. If a
        # number is too big, the offset of the byte after the number, because the number is not known to be complete
        # before that byte.
        self.pos: int = 0
        self.reason: Reason | None = None
        self.root: Root | None = None  # None until something other than whitespace has been seen
        self.depth: int = 0
        self.big_integer: bool = False  # an integer outside [-2^63, 2^64-1] has been seen
        self.lone_surrogate: bool = False  # an unpaired escaped surrogate has been seen
        self._state: int = _VALUE
        self._stack: int = 0  # one bit per level, innermost in the lowest bit; 1 is an object; an int is cheap to copy
        self._in_key: bool = False
        self._literal: bytes = b""  # rest of true, false or null
        self._hex: int = 0  # value of the \u escape digits that have been read
        self._hex_left: int = 0
        self._high: bool = False  # the preceding text is an escaped high surrogate
        self._number: Numeral = _NO_NUMBER

    @property
    def verdict(self) -> Verdict:
        """The verdict on the text that has been fed to the automaton.

        A number at the top level is a "prefix" until `finish` is called, because more digits may follow.
        """
        if self.reason is not None:
            return "broken"
        return "complete" if self._state == _END else "prefix"

    @property
    def final(self) -> Verdict:
        """The verdict that the text would have if it ended here."""
        return self.copy().finish()

    @property
    def in_string(self) -> bool:
        return _STRING <= self._state <= _HEX

    def copy(self) -> Automaton:
        twin = Automaton.__new__(Automaton)
        twin.max_depth = self.max_depth
        twin.pos = self.pos
        twin.reason = self.reason
        twin.root = self.root
        twin.depth = self.depth
        twin.big_integer = self.big_integer
        twin.lone_surrogate = self.lone_surrogate
        twin._state = self._state
        twin._stack = self._stack
        twin._in_key = self._in_key
        twin._literal = self._literal
        twin._hex = self._hex
        twin._hex_left = self._hex_left
        twin._high = self._high
        twin._number = self._number
        return twin

    def after(self, data: bytes | str) -> Automaton:
        """Return a copy to which `data` has been fed, so that callers can test whether `data` can follow."""
        twin = self.copy()
        twin.feed(data)
        return twin

    def finish(self) -> Verdict:
        """End the text. The end of the text completes a number at the top level. Unfinished text stays "prefix"."""
        if self.depth == 0 and self._state in _NUMBER_CAN_END:
            self._end_number(self.pos)
        return self.verdict

    def feed(self, data: bytes | str) -> Verdict:
        """Feed more bytes (a str is encoded as UTF-8) and return `verdict`. Once the text is broken, the state no
        longer changes.
        """
        if self.reason is not None:
            return "broken"
        if isinstance(data, str):
            data = data.encode("utf-8", "surrogatepass")
        base = self.pos
        at = 0
        end = len(data)
        while at < end:
            state = self._state
            if state == _STRING and not self._high:
                at = _skip(_BODY, data, at)
                if at == end:
                    break
                at = self._end_run(data[at], at)
            elif state == _KEY or state == _FIRST_KEY:  # noqa: SIM109 (a set is slower, in the hottest loop)
                whole = _MEMBER.match(data, at)
                if whole is None:
                    at = self._key(data, at)
                else:
                    at = whole.end()
                    if data[at - 1] == _COMMA:
                        self._state = _KEY
                        continue
                    self._land(data[at - 1], at)
            elif state <= _FIRST and self._stack & 1 == 0 and self.depth:
                whole = _ELEMENT.match(data, at)
                if whole is None:
                    at = self._value(data, at)
                else:
                    at = whole.end()
                    if data[at - 1] == _COMMA:
                        self._state = _VALUE
                        continue
                    self._land(data[at - 1], at)
            else:
                at = self._step(state, data, at)
            if self._state == _BROKEN:
                self.pos += base  # the helpers return offsets from the start of this piece
                return "broken"
        self.pos = base + end
        return self.verdict

    # Each of the following methods reads a token or a piece of a token. The argument `at` is the offset of the first
    # unparsed byte, and the method returns the offset of the next unparsed byte. If the text is invalid, the method
    # sets the state to broken.

    def _step(self, state: int, data: bytes, at: int) -> int:
        if _COLON <= state <= _END:
            return self._between(state, data, at)
        if state <= _FIRST:
            return self._value(data, at)
        if state >= _MINUS:
            return self._digits(state, data, at)
        if state == _LITERAL:
            return self._word(data, at)
        if state == _STRING:
            return self._after_high(data, at)
        if state == _ESCAPE:
            return self._escape(data, at)
        return self._hex_digits(data, at)

    def _between(self, state: int, data: bytes, at: int) -> int:
        at = _skip(_SPACE, data, at)
        if at == len(data):
            return at
        byte = data[at]
        if state == _COLON and byte == _COLON_SIGN:
            self._state = _VALUE
        elif state == _AFTER and byte == _COMMA:
            self._state = _KEY if self._stack & 1 else _VALUE
        elif state == _AFTER and byte == (_CLOSE_OBJECT if self._stack & 1 else _CLOSE_ARRAY):
            self._pop()
        else:
            self._break("syntax", at)
        return at + 1

    def _land(self, byte: int, at: int) -> None:
        """Update the state after the last member or element of a container, or after an opening bracket."""
        if byte == _OPEN_OBJECT:
            self._push(True, at - 1)
        elif byte == _OPEN_ARRAY:
            self._push(False, at - 1)
        else:
            self._pop()

    def _key(self, data: bytes, at: int) -> int:
        at = _skip(_SPACE, data, at)
        if at == len(data):
            return at
        byte = data[at]
        if byte == _QUOTE:
            self._in_key = True
            self._state = _STRING
        elif byte == _CLOSE_OBJECT and self._state == _FIRST_KEY:
            self._pop()
        else:
            self._break("syntax", at)
        return at + 1

    def _value(self, data: bytes, at: int) -> int:
        at = _skip(_SPACE, data, at)
        if at == len(data):
            return at
        byte = data[at]
        if byte == _CLOSE_ARRAY and self._state == _FIRST:
            self._pop()
            return at + 1
        kind = _KIND.get(byte)
        if kind is None:
            self._break("syntax", at)
            return at
        if self.root is None:
            self.root = kind
        if kind == "string":
            self._in_key = False
            self._state = _STRING
        elif kind == "literal":
            self._literal = _WORDS[byte]
            self._state = _LITERAL
        elif kind == "number":
            self._number = _NEGATIVE if byte == _MINUS_SIGN else _NO_NUMBER
            self._state = _MINUS if byte == _MINUS_SIGN else _ZERO if byte == _ZERO_SIGN else _INTEGER
            if self._state == _INTEGER:
                return at  # leave all digits to `_digits`, which counts them
        else:
            self._push(kind == "object", at)
        return at + 1

    def _push(self, is_object: bool, at: int) -> None:
        if self.depth >= self.max_depth:
            self._break("too_deep", at)
            return
        self.depth += 1
        self._stack = self._stack << 1 | is_object
        self._state = _FIRST_KEY if is_object else _FIRST

    def _pop(self) -> None:
        self.depth -= 1
        self._stack >>= 1
        self._state = _AFTER if self.depth else _END

    def _word(self, data: bytes, at: int) -> int:
        rest = self._literal
        piece = data[at : at + len(rest)]
        if not rest.startswith(piece):
            same = next(i for i, byte in enumerate(piece) if byte != rest[i])
            self._break("syntax", at + same)
        elif len(piece) == len(rest):
            self._state = _AFTER if self.depth else _END
        else:
            self._literal = rest[len(piece) :]
        return at + len(piece)

    def _end_run(self, byte: int, at: int) -> int:
        """Update the state after a run of string text."""
        if byte == _QUOTE:
            self._state = _COLON if self._in_key else _AFTER if self.depth else _END
        elif byte == _BACKSLASH:
            self._state = _ESCAPE
        else:
            self._break("syntax", at)
        return at + 1

    def _after_high(self, data: bytes, at: int) -> int:
        """Read the byte after an escaped high surrogate in a string. Only another escape can complete the surrogate
        pair.
        """
        if data[at] == _BACKSLASH:
            self._state = _ESCAPE
            return at + 1
        self._high = False
        self.lone_surrogate = True
        return at

    def _escape(self, data: bytes, at: int) -> int:
        byte = data[at]
        if byte == _U:
            self._hex = 0
            self._hex_left = 4
            self._state = _HEX
        elif byte in _SIMPLE_ESCAPES:
            self._unit(0)
        else:
            self._break("syntax", at)
        return at + 1

    def _hex_digits(self, data: bytes, at: int) -> int:
        piece = data[at : at + self._hex_left]
        valid = _skip(_HEX_DIGITS, piece, 0)
        if valid < len(piece):
            self._break("syntax", at + valid)
            return at
        self._hex = self._hex << 4 * len(piece) | int(piece, 16)
        self._hex_left -= len(piece)
        if self._hex_left == 0:
            self._unit(self._hex)
        return at + len(piece)

    def _unit(self, unit: int) -> None:
        """Process one complete escaped UTF-16 code unit."""
        is_low = 0xDC00 <= unit <= 0xDFFF
        if is_low != self._high:  # a low or high surrogate without its other half
            self.lone_surrogate = True
        self._high = 0xD800 <= unit <= 0xDBFF
        self._state = _STRING

    def _digits(self, state: int, data: bytes, at: int) -> int:
        """Read a part of a number: a run of digits, or the byte that starts the next part."""
        if state != _ZERO:
            stop = _skip(_DIGITS, data, at)
            if stop > at:
                return self._take_digits(state, data[at:stop], stop)
        byte = data[at]
        if state == _E and byte in b"+-":
            self._number = self._number.with_exponent_sign(negative=byte == _MINUS_SIGN)
            self._state = _E_SIGN
            return at + 1
        if state not in _NUMBER_CAN_END:
            self._break("syntax", at)
            return at
        if byte == _POINT and state in _WHOLE:
            self._state = _DOT
            return at + 1
        if byte in b"eE" and state != _EXPONENT:
            self._state = _E
            return at + 1
        self._end_number(at)
        return at  # the byte after the number belongs to the enclosing value

    def _take_digits(self, state: int, digits: bytes, stop: int) -> int:
        if state == _MINUS and digits.startswith(b"0"):
            self._state = _ZERO
            return stop - len(digits) + 1  # in the state ZERO, a following digit is an error
        if state in _INTEGER_PART:
            self._number = self._number.with_integer(digits)
            self._state = _INTEGER
        elif state in _FRACTION_PART:
            self._number = self._number.with_fraction(digits)
            self._state = _FRACTION
        else:
            self._number = self._number.with_exponent(digits)
            self._state = _EXPONENT
        return stop

    def _end_number(self, at: int) -> None:
        state = self._state
        self._state = _AFTER if self.depth else _END
        if state in _WHOLE:
            self.big_integer = self.big_integer or self._number.exceeds_64_bits()
        elif self._number.overflows_double():
            self._break("number_too_big", at)

    def _break(self, reason: Reason, pos: int) -> None:
        self._state = _BROKEN
        self.reason = reason
        self.pos = pos


def examine(data: bytes | str, max_depth: int | None = None) -> Automaton:
    """Return an automaton that has read the complete text."""
    automaton = Automaton(max_depth)
    automaton.feed(data)
    automaton.finish()
    return automaton


def _skip(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    """Return the end of a run of matching bytes, which may be empty."""
    run = pattern.match(data, at)
    return at if run is None else run.end()


# The states of the automaton, such as before a value, after `[`, after `{`, or after a comma in an object.
_VALUE, _FIRST, _FIRST_KEY, _KEY, _COLON, _AFTER, _END, _STRING, _ESCAPE, _HEX, _LITERAL = range(11)
_MINUS, _ZERO, _INTEGER, _DOT, _FRACTION, _E, _E_SIGN, _EXPONENT = range(11, 19)
_BROKEN: Final = 19
_WHOLE: Final = frozenset((_ZERO, _INTEGER))
_INTEGER_PART: Final = frozenset((_MINUS, _INTEGER))
_FRACTION_PART: Final = frozenset((_DOT, _FRACTION))
_NUMBER_CAN_END: Final = frozenset((_ZERO, _INTEGER, _FRACTION, _EXPONENT))

_QUOTE, _BACKSLASH, _U, _COMMA, _COLON_SIGN, _POINT, _MINUS_SIGN, _ZERO_SIGN = b'"\\u,:.-0'
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = b"{}[]"
_SIMPLE_ESCAPES: Final = frozenset(b'"\\/bfnrt')
_WORDS: Final = {word[0]: word[1:] for word in (b"true", b"false", b"null")}
_KIND: Final[dict[int, Root]] = {
    _QUOTE: "string",
    _OPEN_OBJECT: "object",
    _OPEN_ARRAY: "array",
    _MINUS_SIGN: "number",
    **dict.fromkeys(b"0123456789", "number"),
    **dict.fromkeys(_WORDS, "literal"),
}

_SPACE: Final = re.compile(rb"[ \t\n\r]*")
_DIGITS: Final = re.compile(rb"[0-9]*")
_HEX_DIGITS: Final = re.compile(rb"[0-9a-fA-F]*")
# String text with its escapes. An escaped surrogate matches only as part of a pair, so that the states handle every
# unpaired surrogate. The limited repetition count bounds the memory of the regex engine.
_BODY: Final = re.compile(
    rb'[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u(?:[0-9a-cA-CefEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}'
    rb'|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))[^"\\\x00-\x1f]*){0,64}'
)
# A number that matches is neither an integer outside 64 bits nor a float that overflows.
_SCALAR: Final = (
    rb'(?:"[^"\\\x00-\x1f]*"|-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,2})?|true|false|null)'
)
_MEMBER: Final = re.compile(
    rb'[ \t\n\r]*"[^"\\\x00-\x1f]*"[ \t\n\r]*:[ \t\n\r]*(?:[{\[]|' + _SCALAR + rb"[ \t\n\r]*[,}])"
)
_ELEMENT: Final = re.compile(rb"[ \t\n\r]*(?:[{\[]|" + _SCALAR + rb"[ \t\n\r]*[,\]])")

_NO_NUMBER: Final = Numeral()
_NEGATIVE: Final = Numeral(negative=True)
