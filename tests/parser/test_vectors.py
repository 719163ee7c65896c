"""Every vector of a complete stream, with both backends, fed as given, in one read, and byte by byte."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from streamweld._spec import CODES
from streamweld.events import ToolResult

from tests.support.cases import case
from tests.support.harness import Outcome, bytewise, read
from tests.support.vector_files import chunks_of, is_broken, label, load, streams

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamweld.events import ToolCall
    from streamweld.response import Choice, Response

WAYS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "given": lambda c: c,
    "whole": lambda c: [b"".join(c)],
    "bytewise": lambda c: bytewise(b"".join(c)),
}
SHOWN = ("state", "reason", "raw_arguments")


def check_call(call: ToolCall, expected: dict[str, Any]) -> None:
    assert (call.name, call.arguments, call.state) == (expected["name"], expected["arguments"], expected["state"])
    if expected["id"] == "*":
        assert call.call_id.strip()
    else:
        assert call.call_id == expected["id"]
    for key in ("reason", "raw_arguments"):
        if key in expected:
            assert getattr(call, key) == expected[key], key
    if "aliases" in expected:
        assert list(call.aliases) == expected["aliases"]
    if "parsed" in expected:
        assert call.parsed == expected["parsed"]
    assert call.custom == expected.get("custom", False)
    assert call.dispatchable == expected.get("dispatchable", expected["state"] in {"complete", "empty"})
    if call.state == "complete" and not call.custom:
        assert call.parsed == json.loads(call.arguments)


def check_calls(holder: Choice | Response, expected: list[dict[str, Any]]) -> None:
    shown = [(c.call_id, c.name, c.arguments, c.state, c.reason) for c in holder.tool_calls]
    assert len(shown) == len(expected), shown
    for call, row in zip(holder.tool_calls, expected, strict=True):
        check_call(call, row)
    ids = [call.call_id for call in holder.tool_calls]
    assert len(set(ids)) == len(ids)
    answered = {item.call_id for item in holder.items if isinstance(item, ToolResult)}
    to_run = [call for call in holder.tool_calls if call.dispatchable and call.call_id not in answered]
    assert list(holder.dispatchable_calls) == ([] if holder.finish_reason == "error" else to_run)


def check_error(outcome: Outcome, expected: dict[str, Any] | None) -> None:
    if expected is None:
        if outcome.error is not None:
            raise outcome.error
        return
    error = outcome.error
    assert error is not None, "nothing was raised"
    assert type(error).__name__ == expected["class"], repr(error)
    for key, value in expected.items():
        if key != "class":
            assert getattr(error, key) == value, (key, repr(error))
    assert error.partial is not None
    assert error.partial == outcome.response


def check_diagnostics(outcome: Outcome, expected: list[Any], may: list[str]) -> None:
    allowed = set(may)
    for row in expected:
        if isinstance(row, dict):
            place = (row["code"], row["byte_offset"], row["event_ordinal"])
            assert place in [(d.code, d.byte_offset, d.event_ordinal) for d in outcome.diagnostics], outcome.diagnostics
            allowed.add(row["code"])
        else:
            codes = [row] if isinstance(row, str) else row
            assert outcome.codes & set(codes), (row, outcome.diagnostics)
            allowed |= set(codes)
    loud = {d.code for d in outcome.diagnostics if d.severity != "info"}
    assert loud <= allowed, [d for d in outcome.diagnostics if d.code in loud - allowed]
    for diagnostic in outcome.diagnostics:
        assert diagnostic.severity == CODES[diagnostic.code].severity


def check(outcome: Outcome, vector: dict[str, Any]) -> None:
    expect, response = vector["expect"], outcome.response
    check_error(outcome, expect.get("error"))
    for key in ("content", "reasoning", "refusal"):
        if key in expect:
            assert getattr(response, "text" if key == "content" else key) == expect[key], key
    if "calls" in expect:
        check_calls(response, expect["calls"])
    if "finish" in expect:
        assert response.finish_reason == expect["finish"]
    if "raw_finish" in expect:
        assert response.raw_finish_reason == expect["raw_finish"]
    if "choices" in expect:
        assert [c.index for c in response.choices] == [row["index"] for row in expect["choices"]]
        for choice, row in zip(response.choices, expect["choices"], strict=True):
            assert (choice.text, choice.finish_reason) == (row["content"], row["finish"])
            check_calls(choice, row["calls"])
    for key, value in expect.get("usage", {}).items():
        assert getattr(response.usage, key) == value, key
    for number, members in expect.get("provider_metadata", {}).items():
        metadata = response.tool_calls[int(number)].provider_metadata or {}
        assert {key: metadata.get(key) for key in members} == members
    if "completeness" in expect:
        wanted = expect["completeness"]
        assert response.completeness in ([wanted] if isinstance(wanted, str) else wanted)
    if "response_error" in expect:
        assert response.error is not None
        for key, value in expect["response_error"].items():
            assert getattr(response.error, key) == value, key
    if "diagnostics" in expect:
        check_diagnostics(outcome, expect["diagnostics"], expect.get("may", []))
    for code, count in expect.get("times", {}).items():
        assert sum(d.code == code for d in outcome.diagnostics) == count, (code, outcome.diagnostics)
    if "events" in vector:
        check_events(outcome, vector["events"])


def as_data(value: Any) -> Any:
    """Return a field of an event in the form used in vectors: bytes as text, a tuple as a list."""
    if isinstance(value, bytes):
        return value.decode()
    return list(value) if isinstance(value, tuple) else value


def check_events(outcome: Outcome, expected: list[Any]) -> None:
    events = [e for e in outcome.events if type(e).__name__ != "Diagnostic"]
    assert [type(e).__name__ for e in events] == [row[0] for row in expected], events
    shown = [
        [type(e).__name__, {key: as_data(getattr(e, key)) for key in row[1]}]
        for e, row in zip(events, expected, strict=True)
    ]
    assert shown == expected


@pytest.mark.parametrize("vector", streams(), ids=label)
def test_vector(backend: str, vector: dict[str, Any]) -> None:
    chunks = chunks_of(vector)
    for way, pieces_of in WAYS.items():
        with case(way):
            check(read(backend, pieces_of(chunks), vector.get("options"), broken=is_broken(vector)), vector)


def test_every_known_habit_is_a_vector() -> None:
    quirks = [vector["quirk"] for vector in load("chat") if "quirk" in vector]
    assert len(quirks) == len(set(quirks)) == 146
    assert sum(quirk.startswith("S") for quirk in quirks) == 28
    for layer, letter, count in (("responses", "P", 29), ("anthropic", "M", 17)):
        numbers = [vector["quirk"] for vector in load(layer) if "quirk" in vector]
        assert sorted(set(numbers), key=lambda one: int(one[1:])) == [f"{letter}{n}" for n in range(1, count + 1)]


def test_every_code_that_a_vector_names_exists() -> None:
    named: set[str] = set()
    for vector in streams():
        expect = vector["expect"]
        for row in (*expect.get("diagnostics", ()), *expect.get("may", ()), *expect.get("times", ())):
            named |= {row["code"]} if isinstance(row, dict) else {row} if isinstance(row, str) else set(row)
    assert named <= set(CODES)
