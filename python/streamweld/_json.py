"""Load the JSON values that callers receive: provider metadata and parsed tool-call arguments.

Both backends use this module, so that edge cases are always handled the same way: integers are exact, unpaired
surrogates become U+FFFD, and the last of several equal keys is used. This module does not depend on events.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld._extension import extension
from streamweld._pure.json.automaton import MAX_DEPTH, examine
from streamweld._pure.json.numeral import exact_int
from streamweld._pure.json.scanner import JsonFault, build, replace_lone_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamweld._pure.json.partial import PartialObject

_fast: Callable[[str], Any] | None
try:
    from orjson import loads as _fast
except ModuleNotFoundError:  # orjson has no wheel for this interpreter (PyPy, Pyodide)
    _fast = None

__all__ = ["JsonFault", "loads_arguments", "loads_partial", "loads_raw", "pair_escapes", "partial_object"]


def loads_raw(text: str) -> Any:
    """Parse text that the core has validated as JSON, and return its value.

    An integer with more digits than MAX_INTEGER_DIGITS is returned as a str, because Python could not print it.
    """
    return _load(text, _integer_or_text)


def loads_arguments(text: str) -> Any:
    """Return the value of a tool call's argument text. Raises JsonFault (`reason`, `pos`)."""
    return _load(text, _integer)


def loads_partial(text: str) -> dict[str, Any] | None:
    """Return the object in text that may be truncated, including an unfinished string.

    Returns None if the object has not begun.
    """
    module = extension()
    if module is not None:
        whole: str | None = module.complete_object(text)
        try:
            return None if whole is None else cast("dict[str, Any]", _load(whole, _integer, shallow=True))
        except JsonFault:  # an integer has too many digits, so keep only the text before it
            pass
    found = partial_object()
    found.feed(text)
    found.complete_tail()
    return found.root


def partial_object() -> PartialObject:
    """Return a parser for the object in text that is still arriving."""
    from streamweld._pure.json.partial import PartialObject

    return PartialObject(loads_arguments)


def pair_escapes(text: str) -> str:
    """Return JSON text with its unpaired surrogate escapes replaced, and otherwise unchanged."""
    return _ESCAPE.sub(_paired, text) if "\\u" in text else text


def _load(text: str, integer: Callable[[str], Any], *, shallow: bool = False) -> Any:
    """Parse JSON text and return its value. `shallow`: whether the nesting depth has already been checked."""
    # orjson rejects everything that the automaton rejects, and also lone surrogates. Two checks remain: the depth, and
    # integers outside 64 bits, which orjson reads as floats. tests/json/test_json_door.py compares the two parsers.
    #
    # An integer outside 64 bits has at least 19 digits, and any run of 19 digits contains a character of each sample
    # text[n::19]. So if a sample contains no digits, the text contains no run of 19 digits. Two samples are tried,
    # because usually at least one of them has no digits.
    if _fast is not None and (
        _DIGITS.isdisjoint(text[18::19]) or _DIGITS.isdisjoint(text[9::19]) or _LONG_INTEGER.search(text) is None
    ):
        try:
            value = _fast(text)
        except ValueError:
            pass
        else:
            if (
                shallow
                or len(text) <= MAX_DEPTH
                or text.count("{") + text.count("[") <= MAX_DEPTH
                or not _is_too_deep(text)
            ):
                return value
    text = replace_lone_surrogates(text)
    automaton = examine(text)
    if automaton.verdict != "complete":
        raise JsonFault(automaton.reason or "incomplete", automaton.pos)
    if automaton.lone_surrogate:
        text = _ESCAPE.sub(_paired, text)
    return build(text, integer=integer)


def _is_too_deep(text: str) -> bool:
    """Return whether valid JSON text is nested too deeply.

    Counting brackets is not enough, because a list of many objects (`logprobs`) has many brackets but few levels.
    """
    outside = text.replace("\\\\", "").replace('\\"', "").split('"')[::2]
    brackets = "".join(outside).translate(_BRACKETS)
    for _ in range(MAX_DEPTH):
        if not brackets:
            return False
        brackets = brackets.replace("()", "")  # remove the innermost level
    return bool(brackets)


def _integer(digits: str) -> int:
    if _is_too_long(digits):
        raise JsonFault("number_too_big", 0)
    return exact_int(digits)


def _integer_or_text(digits: str) -> int | str:
    return digits if _is_too_long(digits) else exact_int(digits)


def _is_too_long(digits: str) -> bool:
    return len(digits) - digits.startswith("-") > MAX_INTEGER_DIGITS


def _paired(escape: re.Match[str]) -> str:
    return "\\ufffd" if escape["lone"] else escape[0]


# Beyond this length, parsing an exact integer takes more than linear time. Python refuses to print integers of 4,300
# digits or more.
MAX_INTEGER_DIGITS: Final = 16_384
_DIGITS: Final = frozenset("0123456789")
_BRACKETS: Final = dict.fromkeys(range(128)) | str.maketrans("[{]}", "(())")
# The pattern matches only at the start of a number, because fractions may have many digits (`logprob`). The pattern
# begins with a class of digits, for which `re` can search quickly.
_LONG_INTEGER: Final = re.compile(r"[0-9](?<![^-\[:, \t\n\r][0-9])[0-9]{18}")
_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
