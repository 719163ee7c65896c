"""The JSON automaton: its vectors at every split, an independent oracle, and linear time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamweld._pure.json.automaton import Automaton, examine

from tests.support.json_texts import FLAGS, can_become_json, each_vector, is_json, texts
from tests.support.load.linear import assert_linear

if TYPE_CHECKING:
    import random
    from collections.abc import Callable


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
        assert automaton.verdict == "prefix"  # `final` does not change the state


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
    ids=["text", "escapes", "unicode", "elements", "space", "digits", "fraction", "exponent", "empty", "members"],
)
@pytest.mark.parametrize("read", [7, 64, 1 << 30], ids=["7-byte reads", "64-byte reads", "one read"])
def test_linear_time(make: Callable[[int], bytes], read: int) -> None:
    assert_linear(lambda: Automaton().feed, make, read, size=5_000 if read < 64 else 30_000)
