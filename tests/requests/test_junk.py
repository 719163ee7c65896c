"""Requests with arbitrary replaced members: the outcome is a result or a documented exception, and no other."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from streamweld import requests
from streamweld.errors import HistoryError, UsageError
from streamweld.history import HistoryPolicy

from tests.conftest import FULL
from tests.requests.generate import SOURCES, request

KEEP = requests.RequestPolicy(history=HistoryPolicy(on_unfixable="keep"))
SEEDS = range(300 if FULL else 20)
JUNK: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, "", "x", [], {}, [None], [[]], [{}], {"a": None}, {"type": None}, {"type": 7}),
    *(
        {"type": "function"},
        {"name": 5},
        [{"type": "custom"}],
        [{"function": 3}],
        {"function": {"name": None}},
        b"x",
        10**30,
    ),
)
HISTORY = {"messages", "input", "contents", "system", "systemInstruction", "instructions"}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        for name, member in value.items():
            if path or name not in HISTORY:
                found += places(member, (*path, name))
    elif isinstance(value, list):
        for n, item in enumerate(value):
            found += places(item, (*path, n))
    return found


def spoiled(seed: int, source: str) -> Any:
    """Return a request with one to three of its options replaced."""
    chance = random.Random(f"junk {seed} {source}")
    given, _ = request(seed, source)
    given = copy.deepcopy(given)
    for _ in range(1 + seed % 3):
        where = places(given)
        if not where:
            break
        *above, last = chance.choice(where)
        holder = given
        for step in above:
            holder = holder[step]
        holder[last] = copy.deepcopy(chance.choice(JUNK))
    return given


@pytest.mark.parametrize("source", SOURCES)
def test_junk(source: str) -> None:
    done = refused = 0
    for seed in SEEDS:
        given = spoiled(seed, source)
        before = repr(given)
        for target in SOURCES:
            try:
                made = requests.convert(given, source=source, target=target, policy=KEEP)
            except (HistoryError, UsageError):
                refused += 1
                continue
            finally:
                assert repr(given) == before
            requests.check(made.payload, target=target)
            again = requests.convert(made.payload, source=target, target=target, policy=KEEP)
            if source != target:
                assert again.payload == made.payload, (seed, source, target)
                assert json.dumps(made.payload, default=repr)
            done += 1
    assert done > 4 * len(SEEDS)
    assert refused < done


@pytest.mark.parametrize(
    ("source", "given"),
    [
        ("ai-sdk-model", {"system": "s", "messages": 1.5}),
        ("gemini", {"contents": 1.5}),
    ],
)
def test_messages_of_another_type_are_a_usage_error(source: Any, given: Any) -> None:
    for target in SOURCES:
        with pytest.raises(UsageError):
            requests.convert(given, source=source, target=target)


def test_python_functions_among_geminis_tools_are_losses() -> None:
    given = {"contents": "hi", "config": {"tools": [len, {"function_declarations": [{"name": "g"}]}]}}
    done = requests.convert(given, source="gemini", target="openai-chat")
    assert [loss.path for loss in done.losses] == ["/config/tools/0"]
    assert [tool["function"]["name"] for tool in done.payload["tools"]] == ["g"]


def test_names_of_members_that_are_not_text() -> None:
    given: Any = {"messages": [{"role": "user", "content": "q"}], 5: 6, "metadata": {None: 1}, "max_tokens": 9}
    for target in ("anthropic", "openai-chat", "mistral", "ai-sdk-model"):
        paths = [found.path for found in requests.check(given, target=target)]
        assert "/5" in paths, target


@pytest.mark.parametrize("source", SOURCES)
def test_junk_is_checked(source: str) -> None:
    found = 0
    for seed in SEEDS:
        found += len(requests.check(spoiled(seed, source), target=source))
    assert found or source == "ai-sdk-ui"


@pytest.mark.parametrize("target", ["anthropic", "responses", "openai-chat"])
def test_a_schema_that_contains_itself(target: Any) -> None:
    """Python objects may contain themselves. Such a schema is kept unless a part of it would have to become text."""
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "array"}}}
    schema["properties"]["b"] = schema
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    given = {"messages": [{"role": "user", "content": "q"}], "tools": [tool], "max_tokens": 99}
    requests.check(requests.convert(given, source="openai-chat", target=target).payload, target=target)
    schema["anyOf"] = [schema]
    with pytest.raises(HistoryError, match="unreadable"):
        requests.convert(given, source="openai-chat", target=target)
