"""docs/conformance.md contains every decision on cases that the standards leave open, with its reason and its cases."""

from __future__ import annotations

import json
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "conformance.md"


def names(cases: list[str]) -> str:
    return ", ".join(f"`{case.removesuffix('.json')}`" for case in cases)


def test_the_page_lists_the_decisions() -> None:
    json_cases = json.loads((HERE / "json_decisions.json").read_text("utf-8"))["decisions"]
    sse_cases = json.loads((HERE / "sse_decisions.json").read_text("utf-8"))["decisions"]
    rows = [
        f"| {verdict}ed | {why} | {names(cases)} |"
        for verdict, rules in json_cases.items()
        for why, cases in rules.items()
    ]
    rows += [f"| {why} | {names(cases)} |" for why, cases in sse_cases.items()]
    section = PAGE.read_text("utf-8").split("## What the standards leave open\n")[1].split("\n## ")[0]
    listed = [line for line in section.splitlines() if line.startswith("| ")]
    heads = ("| Decision", "| ---")
    assert [line for line in listed if not line.startswith(heads)] == rows
