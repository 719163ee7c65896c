"""The one door for JSON values that a user sees: provider metadata and parsed tool-call arguments.

Values are built in Python for both backends, so that a number or a broken surrogate means the same everywhere: an
integer is exact, a surrogate without its pair is U+FFFD, of a repeated key the last one holds. It knows no events.
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
except ModuleNotFoundError:  # no wheel of it for this interpreter (PyPy, Pyodide)
    _fast = None

__all__ = ["JsonFault", "loads_arguments", "loads_partial", "loads_raw", "pair_escapes", "partial_object"]


def loads_raw(text: str) -> Any:
    """The value of a text that the core has found to be JSON.

    An integer of more digits than MAX_INTEGER_DIGITS comes as the str of its digits: nothing could print it.
    """
    return _load(text, _integer_or_text)


def loads_arguments(text: str) -> Any:
    """The value of a tool call's argument text, or JsonFault (`reason`, `pos`)."""
    return _load(text, _integer)


def loads_partial(text: str) -> dict[str, Any] | None:
    """The object of a text that may break off anywhere, with what there is of an open string; None before it began."""
    module = extension()
    if module is not None:
        whole: str | None = module.complete_object(text)
        try:
            return None if whole is None else cast("dict[str, Any]", _load(whole, _integer, shallow=True))
        except JsonFault:  # an integer of too many digits: what stands before it is kept
            pass
    found = partial_object()
    found.feed(text)
    found.complete_tail()
    return found.root


def partial_object() -> PartialObject:
    """What reads the object of a text that is still arriving."""
    from streamweld._pure.json.partial import PartialObject

    return PartialObject(loads_arguments)


def pair_escapes(text: str) -> str:
    """A JSON text in which no escaped surrogate is without its pair; it stays a text, with all else as it is."""
    return _ESCAPE.sub(_paired, text) if "\\u" in text else text


def _load(text: str, integer: Callable[[str], Any], *, shallow: bool = False) -> Any:
    """The value of a text; `shallow`: the core has checked how deep it is."""
    # orjson refuses what the automaton refuses, and lone surrogates too; only integers outside 64 bits (a float there)
    # and the depth need a look of their own. tests/json/test_json_door.py holds the two against each other.
    # A run of 19 digits shows at every 19th place, wherever one starts: mostly one of two such looks finds none.
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
    """Of a text that is JSON. Lists of many objects (`logprobs`) have more brackets than levels."""
    outside = text.replace("\\\\", "").replace('\\"', "").split('"')[::2]
    brackets = "".join(outside).translate(_BRACKETS)
    for _ in range(MAX_DEPTH):
        if not brackets:
            return False
        brackets = brackets.replace("()", "")  # the innermost level
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


# Beyond this an exact integer costs more than linear time, and Python itself refuses to print it (from 4,300 digits).
MAX_INTEGER_DIGITS: Final = 16_384
_DIGITS: Final = frozenset("0123456789")
_BRACKETS: Final = dict.fromkeys(range(128)) | str.maketrans("[{]}", "(())")
# Where a number begins: the digits behind a point may be many (`logprob`). What it looks for first is a digit.
_LONG_INTEGER: Final = re.compile(r"[0-9](?<![^-\[:, \t\n\r][0-9])[0-9]{18}")
_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
