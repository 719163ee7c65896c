"""The 153 cases of ../shared/data/text_call_cases.json, with their own runner: promoted, rejected, duplicate."""

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
from tests.text_calls.support import calls_of, promoting

if TYPE_CHECKING:
    from types import ModuleType

CASES = SHARED / "data" / "text_call_cases.json"
ROWS = [row for row in json.loads(CASES.read_text(encoding="utf-8")) if row["id"] != "_header"]
MODES = ("chars", "random", "whole", "bytes")
STEP = 1 if NIGHTLY else 41 if FULL else 199


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
def test_single_cuts(reader: str) -> None:
    """Nightly, the text is split at every position."""
    wrong: list[str] = []
    for number, case in enumerate(ROWS):
        text = case["text"]
        for place in range(1 + number % STEP, len(text), STEP):
            wire = RUNNER.sse([text[:place], text[place:]], case.get("structured", ()))
            wrong += [f"cut at {place}: {problem}" for problem in problems(reader, case, wire)]
    assert wrong == []
