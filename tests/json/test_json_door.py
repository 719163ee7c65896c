"""Parsing of JSON values: payloads of the pure backend, and the values that users see from either backend."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import given
from streamweld import _json
from streamweld._json import JsonFault, loads_arguments, loads_raw
from streamweld._pure.json import scanner
from streamweld._pure.json.automaton import examine
from streamweld._pure.json.numeral import exact_digits, exact_int
from streamweld._pure.json.scanner import BigInteger, parse, replace_lone_surrogates

from tests.support.json_texts import Refused, each_vector, oracle, texts

if TYPE_CHECKING:
    from collections.abc import Callable


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
            json.dumps(value, ensure_ascii=False).encode()  # every parsed value can be encoded again
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
    for value in (loads_arguments(text), loads_raw(text), scanner.build(escaped_halves_replaced(text), integer=int)):
        assert repr(value) == repr(expected)  # repr distinguishes 1 from 1.0 and 0.0 from -0.0
    payload = parse(text)
    if not payload.overflow:
        assert repr(payload.value) == repr(oracle(text, replace=False))


def escaped_halves_replaced(text: str) -> str:
    return _json._ESCAPE.sub(_json._paired, text)


@given(texts())
def test_orjson_agrees_with_the_automaton(text: str) -> None:
    """`_json` relies on this: orjson accepts exactly the complete texts, except for lone surrogates and long
    integers."""
    found = examine(text)
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        assert found.verdict != "complete" or found.lone_surrogate or found.big_integer
    else:
        assert found.verdict == "complete"
        assert not found.lone_surrogate


def test_depth_can_be_chosen() -> None:
    assert examine("[[]]", 2).verdict == "complete"
    assert (examine("[[]]", 1).reason, examine("[[]]", 1).pos) == ("too_deep", 1)
    assert parse("[[]]", 2).value == [[]]
    with pytest.raises(JsonFault, match="too_deep at byte 1"):
        parse("[[]]", 1)
    wide = "[" + "[]," * 500 + "[]]"
    assert len(parse(wide).value) == 501
    assert parse("[" * 128 + "]" * 128, 1000).text
    with pytest.raises(JsonFault, match="too_deep at byte 128"):
        parse("[" * 129 + "]" * 129, 1000)
    assert examine("[" * 1000 + "]" * 1000, 1000).verdict == "complete"


@pytest.mark.parametrize("read", [loads_raw, loads_arguments])
def test_what_is_wide_is_not_deep(read: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded Responses streams contain `logprobs` with hundreds of objects. Such texts do not need the slow path."""
    wide = '[{"token":"[[\\\\","top":[{},{"t":"\\"]"}]}' + ',{"top":[{"token":"{{"}]}' * 200 + "]"
    expected = [{"token": "[[\\", "top": [{}, {"t": '"]'}]}, *[{"top": [{"token": "{{"}]}] * 200]
    for deep in ('{"a":[{}],"b":' * 128 + "[]" + "}" * 128, "[[]," + "[" * 128 + "]" * 128 + "]"):
        with pytest.raises(JsonFault, match="too_deep"):
            read(deep)
    most = "[" * 127 + "[],{}" + "]" * 127
    assert json.dumps(read(most), separators=(",", ":")) == most
    monkeypatch.setattr(_json, "examine", None)
    assert read(wide) == expected


@pytest.mark.parametrize("read", [loads_raw, loads_arguments])
def test_only_long_integers_need_the_slow_way(read: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenAI's `logprob` values have twenty digits, and ids in addresses have nineteen."""
    digits = "12345678901234567890123456"
    for text in ("%s", "-%s", "[%s]", "[1,%s]", "[1, -%s]", '{"a":%s}', '{"a":\t%s}', '{"a":\n%s}', '{"a":\r-%s}'):
        assert read(text % digits) == json.loads(text % digits), text
    monkeypatch.setattr(_json, "examine", None)
    text = '[-0.00046033994294703007,{"url":"https://x.com/i/status/1990530503129391571","n":"' + digits + '"},9.25]'
    assert read(text) == json.loads(text)


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


def test_raw_text_of_what_the_scanner_refuses() -> None:
    big = "9" * 6000
    payload = parse(f'{{"a":{big},"b":[{big},{{"c":-{big}}}],"d\\u0041":1 , "e":{{"f" : "\\"}}" }}}}')
    assert payload.raw("a") == payload.raw("b", 0) == big
    assert payload.raw("b", 1, "c") == f"-{big}"
    assert payload.members("e") == {"f": '"\\"}"'}
    assert payload.raw("dA") == "1"
    assert list(payload.members()) == ["a", "b", "dA", "e"]


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
        assert exact_digits(10**size - 1) == digits
        assert exact_digits(-(10**size)) == "-1" + "0" * size
        assert loads_arguments(f"[{digits}]") == [10**size - 1]
        assert loads_arguments(f"[-{digits}]") == [1 - 10**size]


def test_integers_that_nothing_could_print() -> None:
    """Above some size, an exact integer takes more than linear time. Arguments reject it; metadata keep the digits."""
    digits = "9" * (_json.MAX_INTEGER_DIGITS + 1)
    assert loads_raw(f'{{"n":{digits}}}') == {"n": digits}
    with pytest.raises(JsonFault, match="number_too_big"):
        loads_arguments(f'{{"n":{digits}}}')
