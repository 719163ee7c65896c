"""The JSON automaton and the doors of the pure backend: the vectors at every cut, and an oracle that shares no code."""

from __future__ import annotations

import json
import re
import sys
import time
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamweld import _json
from streamweld._json import JsonFault, loads_arguments, loads_raw
from streamweld._pure import json_door
from streamweld._pure.automaton import Automaton, examine
from streamweld._pure.json_door import BigInteger, parse, replace_lone_surrogates
from streamweld._pure.numeral import exact_int

from tests.vector_files import chunk_bytes

if TYPE_CHECKING:
    import random

KEYS = {"name", "why", "input", "verdict", "pos", "reason", "root", "flags", "depth", "in_string", "value"}
FLAGS = ("big_integer", "lone_surrogate")


@cache
def vectors() -> list[dict[str, Any]]:
    out = []
    for path in sorted((Path(__file__).parent / "vectors" / "json").glob("*.json")):
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


def state(automaton: Automaton) -> dict[str, Any]:
    names = ("verdict", "reason", "pos", "root", "depth", "in_string", *FLAGS)
    return {name: getattr(automaton, name) for name in names}


def fed(*pieces: bytes | str) -> Automaton:
    automaton = Automaton()
    for piece in pieces:
        automaton.feed(piece)
    automaton.finish()
    return automaton


def cuts(data: bytes) -> list[int]:
    every = range(len(data) + 1)
    return list(every) if len(data) <= 400 else [*every[:150], *every[150:-150:97], *every[-150:]]


@each_vector
def test_vector(vector: dict[str, Any]) -> None:
    found = examine(vector["input"])
    assert found.verdict == vector["verdict"]
    assert found.root == vector["root"]
    assert [flag for flag in FLAGS if getattr(found, flag)] == vector.get("flags", [])
    if vector["verdict"] == "broken":
        assert (found.reason, found.pos) == (vector.get("reason", "syntax"), vector["pos"])
    else:
        assert (found.reason, found.pos) == (None, len(vector["input"]))
    for key in ("depth", "in_string"):
        assert getattr(found, key) == vector.get(key, getattr(found, key))


@each_vector
def test_vector_at_every_cut(vector: dict[str, Any]) -> None:
    data: bytes = vector["input"]
    whole = state(examine(data))
    assert state(fed(*(data[i : i + 1] for i in range(len(data))))) == whole
    for cut in cuts(data):
        assert state(fed(data[:cut], b"", data[cut:])) == whole, cut


@each_vector
def test_every_prefix_of_what_is_not_broken_is_not_broken(vector: dict[str, Any]) -> None:
    data: bytes = vector["input"]
    broken_at = vector["pos"] if vector["verdict"] == "broken" else len(data)
    growing = Automaton()
    for at in range(broken_at):
        assert growing.feed(data[at : at + 1]) != "broken", at
    if vector["verdict"] == "broken" and vector.get("reason") != "number_too_big":
        assert growing.feed(data[broken_at : broken_at + 1]) == "broken"
        assert growing.pos == broken_at


@each_vector
def test_a_number_that_stands_alone_is_whole_only_at_the_end(vector: dict[str, Any]) -> None:
    data: bytes = vector["input"].rstrip()
    automaton = Automaton()
    automaton.feed(data)
    if vector["root"] == "number" and vector["verdict"] == "complete":
        assert automaton.verdict == "prefix"
        assert automaton.final == "complete"
        assert automaton.verdict == "prefix"  # `final` changes nothing


@each_vector
@pytest.mark.parametrize("fast", [True, False], ids=["orjson", "no-orjson"])
def test_value_of_a_vector(vector: dict[str, Any], fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not fast:
        monkeypatch.setattr(_json, "_fast", None)
    text = vector["input"].decode("utf-8", "replace")
    if vector["verdict"] == "complete":
        value = loads_arguments(text)
        assert loads_raw(text) == value
        sys.set_int_max_str_digits(0)
        try:
            assert value == vector.get("value", oracle(text))
            assert type(value) is type(oracle(text))
            json.dumps(value, ensure_ascii=False).encode()  # whatever came can go out again
        finally:
            sys.set_int_max_str_digits(4300)
        return
    with pytest.raises(JsonFault) as caught:
        loads_arguments(text)
    if vector["verdict"] == "prefix":
        assert (caught.value.reason, caught.value.pos) == ("incomplete", len(text.encode()))
    else:
        assert (caught.value.reason, caught.value.pos) == (vector.get("reason", "syntax"), vector["pos"])


@each_vector
def test_payload_of_a_vector(vector: dict[str, Any]) -> None:
    if vector["verdict"] != "complete":
        with pytest.raises(JsonFault) as caught:
            parse(vector["input"])
        assert caught.value.reason == vector.get("reason", "syntax" if vector["verdict"] == "broken" else "incomplete")
        assert caught.value.pos == vector.get("pos", len(vector["input"]))
        return
    payload = parse(vector["input"])
    assert payload.overflow == ("big_integer" in vector.get("flags", []))
    assert payload.raw() == vector["input"].decode("utf-8", "replace").strip(" \t\r\n")
    if not payload.overflow:
        assert payload.value == oracle(payload.text, replace=False)


# An oracle made of the standard library's parser and a search for something that completes the text.


class Refused(Exception):
    pass


def oracle(text: str, *, replace: bool = True, finite: bool = True) -> Any:
    """What RFC 8259 and the rules for numbers make of a whole text; Refused if it is none."""

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
    """Whether some text behind this one makes it a value: end the token, end the member, close what is open."""
    skeleton = re.sub(r'"(?:[^"\\]|\\.)*("|\\?$)', "", text, flags=re.DOTALL)
    closers = ""
    for sign in skeleton:
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
    """JSON in several spellings, some of it damaged."""
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


@given(texts(), st.randoms(use_true_random=False))
def test_automaton_agrees_with_the_oracle(text: str, rng: random.Random) -> None:
    found = examine(text)
    if is_json(text):
        assert found.verdict == "complete"
    elif found.verdict == "broken" and found.reason == "number_too_big":
        assert "e" in text.lower()
    else:
        assert found.verdict == ("prefix" if can_become_json(text) else "broken")
    data = text.encode()
    if found.verdict == "broken" and found.reason == "syntax":
        good = data[: found.pos].decode("utf-8", "ignore")
        assert can_become_json(good)
    at = sorted(rng.randrange(len(data) + 1) for _ in range(5))
    pieces = [data[a:b] for a, b in zip([0, *at], [*at, len(data)], strict=True)]
    assert state(fed(*pieces)) == state(found)


@given(texts())
def test_doors_agree_with_the_oracle(text: str) -> None:
    try:
        expected = oracle(text)
    except Refused:
        with pytest.raises(JsonFault):
            loads_arguments(text)
        with pytest.raises(JsonFault):
            parse(text)
        return
    for value in (loads_arguments(text), loads_raw(text), json_door.build(escaped_halves_replaced(text), integer=int)):
        assert repr(value) == repr(expected)  # repr: 1 is not 1.0, 0.0 is not -0.0
    payload = parse(text)
    if not payload.overflow:
        assert repr(payload.value) == repr(oracle(text, replace=False))


def escaped_halves_replaced(text: str) -> str:
    return _json._ESCAPE.sub(_json._paired, text)


@given(texts())
def test_orjson_agrees_with_the_automaton(text: str) -> None:
    """What `_json` relies on: orjson takes exactly what is complete, but for lone surrogates and long integers."""
    found = examine(text)
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        assert found.verdict != "complete" or found.lone_surrogate or found.big_integer
    else:
        assert found.verdict == "complete"
        assert not found.lone_surrogate


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 400), st.integers(-400, 400))
def test_number_size_is_decided_as_python_decides(value: float, zeros: int, exponent: int) -> None:
    for text in (
        f"{value!r}{'0' * (zeros if 'e' not in repr(value) and '.' in repr(value) else 0)}",
        f"{abs(int(value)) if abs(value) < 1e300 else 7}{'0' * zeros}.0e{exponent}",
        f"0.{'0' * zeros}{str(abs(value)).replace('.', '').replace('-', '').partition('e')[0]}e{exponent + zeros}",
    ):
        overflows = float(text) in (float("inf"), float("-inf"))
        assert (examine(text).reason == "number_too_big") == overflows, text


def test_copies_share_nothing() -> None:
    first = Automaton()
    first.feed('{"a":[1,"x')
    second = first.copy()
    assert state(second) == state(first)
    assert first.after('"]}').verdict == "complete"
    assert first.after('"}').verdict == "broken"
    assert first.verdict == "prefix"
    second.feed("\n")
    assert second.verdict == "broken"
    assert first.feed('"]}') == "complete"


def test_nothing_changes_once_broken() -> None:
    automaton = Automaton()
    automaton.feed("[1 2")
    before = state(automaton)
    automaton.feed("]")
    automaton.finish()
    assert state(automaton) == before == state(fed("[1 2]"))


def test_depth_can_be_chosen() -> None:
    assert examine("[[]]", 2).verdict == "complete"
    assert (examine("[[]]", 1).reason, examine("[[]]", 1).pos) == ("too_deep", 1)
    assert parse("[[]]", 2).value == [[]]
    with pytest.raises(JsonFault, match="too_deep at byte 1"):
        parse("[[]]", 1)
    wide = "[" + "[]," * 500 + "[]]"
    assert len(parse(wide).value) == 501
    deep = "[" * 1000 + "]" * 1000
    value = parse(deep, 1000).value
    levels = 1
    while value:
        (value,) = value
        levels += 1
    assert levels == 1000


def test_repeated_keys_are_told_with_their_place() -> None:
    payload = parse('{"a":1,"b":[0,{"c":{"d":1,"d":2,"d":3}}],"a":{"x":1,"\\u0078":2}}')
    assert payload.value == {"a": {"x": 2}, "b": [0, {"c": {"d": 3}}]}
    assert payload.duplicates == (("b", 1, "c", "d"), ("b", 1, "c", "d"), ("a", "x"), ("a",))
    assert payload.raw("a") == '{"x":1,"\\u0078":2}'
    assert payload.raw("b", 1, "c", "d") == "3"
    assert payload.members() == {"b": '[0,{"c":{"d":1,"d":2,"d":3}}]', "a": '{"x":1,"\\u0078":2}'}
    assert parse('{"a":{"k":1},"b":{"k":1}}').duplicates == ()


def test_raw_text_is_as_sent() -> None:
    text = ' {"n": 1.50e0 ,"s":"\\u00e9\\/", "o" : { "k" : [ 1, {"]": "}"} ] } , "e":[ ], "z":{}, '
    text += '"big":18446744073709551616} '
    for payload in (parse(text), parse(text.encode())):
        assert payload.raw("n") == "1.50e0"
        assert payload.raw("s") == '"\\u00e9\\/"'
        assert payload.raw("o", "k", 1) == '{"]": "}"}'
        assert payload.elements("o", "k") == ["1", '{"]": "}"}']
        assert payload.members("o") == {"k": '[ 1, {"]": "}"} ]'}
        assert payload.elements("e") == []
        assert payload.members("z") == {}
        assert (payload.overflow, payload.value["big"]) == (True, BigInteger("18446744073709551616"))
        for path in [("none",), ("o", 0), ("o", "k", 2), ("s", "x"), ("n", 0), ("e", 0)]:
            assert payload.raw(*path) is None
            assert payload.members(*path) == {}
            assert payload.elements(*path) == []
        assert payload.members("e") == {}
        assert payload.elements("o") == []


def test_bytes_that_are_no_utf8_are_replaced_and_positions_are_of_the_bytes() -> None:
    assert parse(b'{"a":"\xed\xa0\x80\xff"}').value == {"a": "\ufffd\ufffd\ufffd\ufffd"}
    with pytest.raises(JsonFault, match="syntax at byte 8"):
        parse(b'{"a":"\xff"!')


@pytest.mark.parametrize("text", ['{"a":1,"a":2}', "[" * 100 + "]" * 100, '{"a":[{"b":"c"}],"n":99999999999999999999}'])
def test_a_nearly_full_stack_changes_nothing(text: str) -> None:
    payload = parse(text)

    def deep(frames: int) -> tuple[Any, ...]:
        if frames:
            return deep(frames - 1)
        again = parse(text)
        return again.text, again.raw(), again.duplicates, again.overflow, again.value, loads_raw(text)

    limit = sys.getrecursionlimit()
    depth = len(json_depth())
    sys.setrecursionlimit(depth + 160)
    try:
        found = deep(100)
    finally:
        sys.setrecursionlimit(limit)
    assert found == (text, payload.raw(), payload.duplicates, payload.overflow, payload.value, loads_raw(text))


def json_depth() -> list[Any]:
    frames = []
    frame = sys._getframe()
    while frame:
        frames.append(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return frames


def test_surrogates() -> None:
    assert replace_lone_surrogates("a\ud83d\ude00b") == "a😀b"
    assert replace_lone_surrogates("\ude00\ud83dé\ud83d") == "\ufffd\ufffdé\ufffd"
    assert replace_lone_surrogates("\ud83d\ud83d\ude00") == "\ufffd😀"
    assert loads_raw('{"\ud83d":"\ude00"}') == {"\ufffd": "\ufffd"}
    plain = "no surrogate, é😀"
    assert replace_lone_surrogates(plain) is plain


def test_integers_of_any_length() -> None:
    for size in (1, 18, 19, 639, 640, 641, 4300, 4301, 9999, 16384):
        digits = "9" * size
        assert exact_int(digits) == 10**size - 1
        assert exact_int("-" + digits) == 1 - 10**size
        assert loads_arguments(f"[{digits}]") == [10**size - 1]
        assert loads_arguments(f"[-{digits}]") == [1 - 10**size]


def test_integers_that_nothing_could_print() -> None:
    """Beyond a size an exact integer costs more than linear time: arguments refuse it, metadata keep the digits."""
    digits = "9" * (_json.MAX_INTEGER_DIGITS + 1)
    assert loads_raw(f'{{"n":{digits}}}') == {"n": digits}
    with pytest.raises(JsonFault, match="number_too_big"):
        loads_arguments(f'{{"n":{digits}}}')


def seconds(pieces: list[bytes]) -> float:
    best = 1e9
    for _ in range(3):
        automaton = Automaton()
        begin = time.perf_counter()
        for piece in pieces:
            automaton.feed(piece)
        best = min(best, time.perf_counter() - begin)
    return best


@pytest.mark.parametrize(
    "make",
    [
        lambda n: b'{"a":"' + b"x" * n,
        lambda n: b'{"a":"' + b'\\"' * (n // 2),
        lambda n: b'{"a":"' + b"\\u0041" * (n // 6),
        lambda n: b"[" + b"1," * (n // 2),
        lambda n: b"[" + b" " * n,
        lambda n: b"[" + b"7" * n,
        lambda n: b"[0." + b"7" * n,
        lambda n: b"[1e" + b"7" * n,
        lambda n: b"[" + b"[]," * (n // 3),
        lambda n: b"{" + b'"k":{},' * (n // 7),
    ],
    ids=[
        "text",
        "escapes",
        "unicode-escapes",
        "elements",
        "space",
        "digits",
        "fraction",
        "exponent",
        "empty",
        "members",
    ],
)
@pytest.mark.parametrize("read", [7, 64, 1 << 30], ids=["7-byte reads", "64-byte reads", "one read"])
def test_linear_time(make: Any, read: int) -> None:
    times = []
    for size in (30_000, 120_000):
        data = make(size)
        times.append(seconds([data[i : i + read] for i in range(0, len(data), read)]))
    assert times[1] < 4 * 2.5 * times[0] + 0.005, times
