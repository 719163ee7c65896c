"""Every operator, and random chains of operators, on streams with known expected results, with both backends.

`known.json` lists the streams that are still misread, and how: operators alone, and operators in chains or with rare
parts. A row that is no longer needed does not fail the test; it is removed with the change that fixes the stream.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
import streamweld as sw
from streamweld.testing import OPERATORS, Call, Reasoning, Refusal, Text, build, chain, operators_for, random_parts
from streamweld.testing.mutate import ASPECTS, random_chain
from streamweld.testing.stream import Dialect, Part, Stream

from tests.conftest import FULL, NIGHTLY
from tests.support.places import SHARED
from tests.testing.hunt import State, hunt, kind, minimal, recipe, report, wrong

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
KNOWN: dict[str, dict[str, str]] = json.loads((Path(__file__).parent / "known.json").read_text("utf-8"))
# The number of streams that a search reads in `make test`, in `make test-all`, and in nightly runs.
HUNTED = {"native": (20_000, 50_000, 2_000_000), "pure": (2000, 5000, 50_000)}

MIXED: list[list[Part]] = [
    [
        Reasoning("Oslo? Well, let me see"),
        Text("Let me look it up."),
        Call("get_weather", '{"city":"Oslo","n":1}'),
        Call("get_weather_now", '{"q":2,"x":{"q":2}}'),
    ],
    [Call("search_web", '{"a":1,"b":2}')],
    [Call("search", '{"a":1,"b":2}'), Call("search_web", '{"a":2,"b":[1]}')],
    [Text("Hello there friend")],
    [Reasoning("Let me think"), Text("Hello there")],
    [Text("one two three"), Reasoning("thinking"), Call("get_weather", "{}"), Call("get_weather", '{"a":"b"}')],
    [Reasoning("thinking"), Text("One."), Text("Two."), Call("run_tests", "")],
]


@cache
def streams_of(name: str) -> tuple[Stream, ...]:
    """Return the streams for an operator, one for each dialect and each list of parts."""
    made = []
    general = len(OPERATORS[name].dialects) > 4  # such operators need only a few streams per dialect
    for dialect in OPERATORS[name].dialects:
        for parts in (MIXED[:4:3] if general else MIXED) + (
            [[Refusal("I cannot do that")]] if dialect in ("chat", "responses") else []
        ):
            for seed in range(1 if general else 2):
                stream = OPERATORS[name](build(dialect, parts, seed=seed or None), seed)
                if stream is not None:
                    made.append(stream)
    return tuple(made)


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_is_read_correctly(backend: str, name: str) -> None:
    made = streams_of(name)
    assert made, "the operator applies to none of the streams"
    misread = {kind(found): (stream, found) for stream in made if (found := wrong(stream, backend))}
    if name in KNOWN["alone"]:
        assert set(misread) <= {"finish", "calls", "text", "reasoning"}  # the members that its row describes
        return
    for stream, found in misread.values():
        pytest.fail(f"{stream.dialect}: {found}\n{stream.body.decode('utf-8', 'replace')}")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_built_is_conformant(backend: str, dialect: Dialect) -> None:
    for seed in range(60):
        parts = [part for part in random_parts(dialect, seed) if not isinstance(part, Call) or part.arguments]
        stream = build(dialect, parts or [Text("ok")], seed=seed)
        assert wrong(stream, backend) == []
        # The streams include a call without arguments and a duplicate id. A conformant stream has neither.
        ids = [call.id for call in stream.calls]
        if len(set(ids)) == len(ids):
            broken = [found for found in sw.check(stream.body, dialect=dialect) if found.severity != "info"]
            assert broken == []


def test_a_truth_that_is_wrong_is_found(backend: str) -> None:
    """The comparison detects a difference in each member of the expected result."""
    stream = build("chat", [Reasoning("hm"), Text("ok"), Call("f", '{"a":1}')])
    other = stream.but(
        text="no", reasoning="no", refusal="no", calls=(Call("g", "{}", "x"),), finish="stop", usage=None
    )
    assert {found.split(":")[0] for found in wrong(other, backend)} == {
        "text",
        "reasoning",
        "refusal",
        "calls",
        "finish",
    }
    assert [f.split(":")[0] for f in wrong(stream.but(calls=(Call("f", '{"a":1}', "x"),)), backend)] == ["ids"]
    assert [f.split(":")[0] for f in wrong(stream.but(ending="assumed"), backend)] == ["ending"]
    assert wrong(stream.cut(4, "complete"), backend)[0].startswith("ending: truncated")
    assert wrong(stream.cut(4, "truncated"), backend) == []


@pytest.mark.timeout(4 * 3600)
def test_a_hunt_finds_nothing_new(backend: str) -> None:
    count = HUNTED[backend][2 if NIGHTLY else 1 if FULL else 0]
    state = State(backend)
    hunt(state, count)
    assert state.streams == count
    known = KNOWN["alone"].keys() | KNOWN["together"].keys()
    new = {name for name in state.found() if not known & set(name.split(" ")[1].split("+"))}
    assert new == set(), report(state)


def test_a_hunt_continues_where_it_stopped() -> None:
    whole, parts = State("native"), State("native")
    hunt(whole, 60)
    hunt(parts, 25)
    hunt(parts, 35)
    assert (parts.next, parts.streams, parts.disagreements) == (whole.next, whole.streams, whole.disagreements)


def test_a_minimal_stream_is_misread_in_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a comparison that rejects every call, the minimal stream has one call."""
    monkeypatch.setattr("tests.testing.hunt.differences", lambda expected, *_: ["calls: x"] if expected.calls else [])
    seed = next(n for n in range(500) if len(recipe(n).parts) == 5 and len(recipe(n).stream().expected.calls) > 2)
    small = minimal(recipe(seed), "native")
    assert len(small.parts) == 1
    assert isinstance(small.parts[0], Call)
    assert small.operators in ((), ("no_arguments",), ("twin_call",))


# Chains


def test_a_chain_has_one_operator_of_each_aspect() -> None:
    stream = build("chat", [Text("ok"), Call("f", '{"a":1}')])
    with pytest.raises(ValueError, match="same aspect"):
        chain(stream, ["index_is_a_string", "no_ids"])
    made = chain(stream, ["comments", "success_envelope", "index_is_a_string"])
    assert made is not None
    assert made.operators == ("index_is_a_string", "success_envelope", "comments")
    assert chain(stream, ["block_index_0"]) is None
    for dialect in DIALECTS:
        for seed in range(200):
            names = random_chain(dialect, seed)
            aspects = [OPERATORS[name].aspect for name in names]
            assert 1 <= len(set(aspects)) == len(aspects) <= 3


def test_a_single_name_or_text_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(TypeError, match=r"pass \['no_index'\]"):
        chain(build("chat", [Text("x")]), "no_index")
    with pytest.raises(TypeError, match="not a str"):
        build("chat", "hello")  # type: ignore[arg-type]


def test_a_seed_names_a_stream_for_good() -> None:
    for seed in range(40):
        assert recipe(seed).stream().body == recipe(seed).stream().body
    stream = build("responses", random_parts("responses", 3), seed=3)
    assert stream.body == build("responses", random_parts("responses", 3), seed=3).body


def test_operators_describe_themselves() -> None:
    for operator in OPERATORS.values():
        assert operator.about.endswith((".", "…")), operator.name
        assert operator.aspect in ASPECTS
        assert operator.name.isidentifier()
    assert {len(operators_for(dialect)) > 20 for dialect in DIALECTS} == {True}


def test_an_operator_rejects_a_recording() -> None:
    wrong_kind: Any = b"data: [DONE]\n\n"
    with pytest.raises(sw.errors.UsageError, match="an operator changes a stream of `build`"):
        OPERATORS["comments"](wrong_kind)


# The catalog of quirks: each quirk has an operator, or the builders produce it anyway.

QUIRKS: dict[str, str] = json.loads((Path(__file__).parent / "quirks.json").read_text("utf-8"))


def test_every_quirk_has_an_operator() -> None:
    assert len(QUIRKS) == 192
    assert set(QUIRKS.values()) <= set(OPERATORS)
    cases: list[dict[str, Any]] = json.loads((SHARED / "data" / "quirk_cases.json").read_text("utf-8"))
    assert [case["id"] for case in cases] == list(QUIRKS)
    for case in cases:
        dialect = "chat" if case["kind"] == "sse" else case["kind"]
        assert dialect in OPERATORS[QUIRKS[case["id"]]].dialects, case["id"]


FAULTS: dict[str, list[str]] = json.loads((Path(__file__).parent / "faults.json").read_text("utf-8"))


def test_every_fault_of_a_stream_has_an_operator() -> None:
    assert {name for names in FAULTS.values() for name in names} <= set(OPERATORS)
