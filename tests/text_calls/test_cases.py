"""The 153 cases in ../shared/data/text_call_cases.json, with their own runner: promoted, rejected, duplicate."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import FULL, NIGHTLY
from tests.support.backends import BACKENDS
from tests.support.places import SHARED
from tests.text_calls.support import Cutter, calls_of, promoting

if TYPE_CHECKING:
    from types import ModuleType

CASES = SHARED / "data" / "text_call_cases.json"
ROWS = [row for row in json.loads(CASES.read_text(encoding="utf-8")) if row["id"] != "_header"]
MODES = ("chars", "random", "whole", "bytes")
# Nightly, every position with both backends; in CI, every position with the native backend.
STEP = {"native": 1 if FULL else 13, "pure": 1 if NIGHTLY else 7 if FULL else 199}
SHARDS = 4


def runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("text_call_runner", SHARED / "data" / "text_call_runner.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


RUNNER: Any = runner()


def test_all_cases_are_here() -> None:
    assert len(ROWS) == 153


def problems(reader: str, case: dict[str, Any], wire: list[bytes]) -> list[str]:
    """Describe what is wrong with a backend's result for a case."""
    tools = {tool["name"]: tool["parameters"] for tool in case["tools"]}
    parser = promoting(reader, tools=tools, text_call_markerless=True)
    for piece in wire:
        parser.feed(piece)
    parser.close()
    calls = [{"name": name, "arguments": arguments} for name, arguments in calls_of(parser)]
    return [f"{case['id']}: {problem}" for problem in RUNNER.verdict(case, parser.response.text, calls)]


@pytest.mark.parametrize("reader", BACKENDS)
@pytest.mark.parametrize("mode", MODES)
def test_the_cases(reader: str, mode: str) -> None:
    wrong: list[str] = []
    for case in ROWS:
        rnd = random.Random(f"{case['id']}/{mode}/0")
        pieces = RUNNER.cuts(case["text"], "random" if mode == "bytes" else mode, rnd)
        wire = RUNNER.sse(pieces, case.get("structured", ()))
        if mode == "bytes":
            wire = RUNNER.recut(wire, rnd)
        wrong += problems(reader, case, wire)
    assert wrong == []


@pytest.mark.parametrize("reader", BACKENDS)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_single_cuts(reader: str, shard: int) -> None:
    """Every text is split at every position into two deltas."""
    wrong: list[str] = []
    step = STEP[reader]
    for number, case in list(enumerate(ROWS))[shard::SHARDS]:
        text, structured = case["text"], case.get("structured", ())
        tools = {tool["name"]: tool["parameters"] for tool in case["tools"]}
        cutter = Cutter(reader, tools, structured=structured, text_call_markerless=True)
        for place in range(1 + number % step, len(text), step):
            remains, found = cutter.read(text, place)
            calls = [{"name": name, "arguments": arguments} for name, arguments in found]
            wrong += [f"{case['id']}, cut at {place}: {one}" for one in RUNNER.verdict(case, remains, calls)]
    assert wrong == []
