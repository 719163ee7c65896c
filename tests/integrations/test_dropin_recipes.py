"""Frameworks on top of the repaired clients, cell by cell: correct calls, or an error that describes the fault.
`dropin/recipes.py` runs each in its own environment. The wrong results without repair are checked, too.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from tests.integrations.dropin.environments import ROOT, python_of
from tests.integrations.dropin.streams import cells

APIS = {
    "langchain": ("chat", "responses", "messages"),
    "pydantic_ai": ("chat", "responses", "messages"),
    "openai_agents": ("chat", "responses"),
    "litellm": ("chat", "messages"),
}
HOMES = {"litellm": "old"}

pytestmark = pytest.mark.skipif(
    os.environ.get("STREAMWELD_FULL") != "1", reason="frameworks need environments of their own: make test-all"
)


def run(name: str, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [python_of(HOMES.get(name, "recipes")), "-m", "tests.integrations.dropin.recipes", name, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])  # litellm prints advice before the result
    return found


@pytest.mark.parametrize("name", APIS)
def test_a_framework_gets_right_calls_or_a_clear_error(name: str) -> None:
    found = run(name)
    wrong = []
    for api in APIS[name]:
        for cell in cells(api):
            got = found.pop(f"{name}/{api}-{cell['name']}")
            if "calls" in cell:
                right = got["calls"] == cell["calls"] and got["error"] is None
                if name == "openai_agents":
                    right = right and got["ran"] == [call[1:] for call in cell["calls"]]
            else:
                # Every client has its own message for a broken connection.
                shown = got["error"] is not None and (cell["error"] or "") in got["error"][1]
                right = shown and not got["calls"] and not got["ran"]
            if not right:
                wrong.append(f"{api}-{cell['name']}: {got}")
    assert not found
    assert not wrong, "\n" + "\n".join(wrong)


def test_without_repair_litellm_ends_a_cut_call_as_if_it_were_whole() -> None:
    found = run("litellm", "plain")
    for cell in ("litellm/chat-f", "litellm/messages-f"):
        assert found[cell]["error"] is None
        assert found[cell]["finish"] == "stop"
    assert [call[1] for call in found["litellm/chat-b"]["calls"]] == ["get_time"]
    assert len(found["litellm/messages-d"]["calls"]) == 2
