"""JSON for the suites of the automaton and the value types: vectors, damaged texts, and an independent oracle.

The oracle consists of the standard library's parser and a search for a completion of a text.
"""

from __future__ import annotations

import json
import re
from functools import cache
from itertools import product
from typing import Any

import pytest
from hypothesis import strategies as st
from streamweld._pure.json.scanner import replace_lone_surrogates

from tests.support.places import VECTORS
from tests.support.vector_files import chunk_bytes

KEYS = {"name", "why", "input", "verdict", "pos", "reason", "root", "flags", "depth", "in_string", "value"}
FLAGS = ("big_integer", "lone_surrogate")


@cache
def vectors() -> list[dict[str, Any]]:
    out = []
    for path in sorted((VECTORS / "json").glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        names = [vector["name"] for vector in document["tests"]]
        assert document["format"] == 1
        assert len(set(names)) == len(names)
        for vector in document["tests"]:
            assert vector.keys() <= KEYS, vector
            assert vector["why"]
            out.append({**vector, "input": chunk_bytes(vector["input"])})
    return out


each_vector = pytest.mark.parametrize("vector", vectors(), ids=lambda vector: vector["name"])


class Refused(Exception):
    pass


def oracle(text: str, *, replace: bool = True, finite: bool = True) -> Any:
    """Parse a complete text by RFC 8259 and the number rules; raise Refused if it is invalid."""

    def constant(word: str) -> Any:
        raise Refused(word)

    def number(digits: str) -> float:
        if finite and float(digits) in (float("inf"), float("-inf")):
            raise Refused(digits)
        return float(digits)

    try:
        value = json.loads(text, parse_constant=constant, parse_float=number)
    except (ValueError, RecursionError) as error:
        raise Refused from error
    return replaced(value) if replace else value


def replaced(value: Any) -> Any:
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff]", "\ufffd", value)
    if isinstance(value, list):
        return [replaced(item) for item in value]
    if isinstance(value, dict):
        return {replaced(key): replaced(item) for key, item in value.items()}
    return value


def is_json(text: str, *, finite: bool = True) -> bool:
    try:
        oracle(text, finite=finite)
    except Refused:
        return False
    return True


_WORDS = ["true"[i:] for i in range(1, 5)] + ["false"[i:] for i in range(1, 5)] + ["null"[i:] for i in range(1, 4)]
_TOKEN_ENDS = ["", '"', '0"', '00"', '000"', '0000"', 'n"', 'u0000"', "0", *_WORDS]
_MEMBER_ENDS = ["", ":0", '"":0', "0"]


def can_become_json(text: str) -> bool:
    """Return True if a continuation makes the text valid: it ends the token and the member, and closes brackets."""
    outline = re.sub(r'"(?:[^"\\]|\\.)*("|\\?$)', "", text, flags=re.DOTALL)
    closers = ""
    for sign in outline:
        if sign in "{[":
            closers = ("}" if sign == "{" else "]") + closers
        elif sign in "}]":
            closers = closers[1:]
    return any(
        is_json(text + token + member + closers, finite=False) for token, member in product(_TOKEN_ENDS, _MEMBER_ENDS)
    )


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**25), 10**25),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=8),
    st.sampled_from(["\ud83d\ude00", '"', "\\", "\n", "{[]}", "\x7f"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


_PIECES = [*'{}[]",:0123456789.eE+-\\ \n\ttfnu', "\\ud800", "1e400", "\x00", "\\u", "é"]


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Generate JSON texts in several spellings, some of them damaged."""
    value = draw(values)
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, None, 1])))
    text = replace_lone_surrogates(text)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        kind = draw(st.sampled_from(["insert", "delete", "cut", "double"]))
        if kind == "insert":
            piece = draw(st.sampled_from(_PIECES))
            text = text[:at] + piece + text[at:]
        elif kind == "delete":
            text = text[:at] + text[at + 1 :]
        elif kind == "cut":
            text = text[:at]
        else:
            text = text[:at] + text[max(0, at - 3) :]
    return text
