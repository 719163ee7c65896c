"""Every cell of `vectors/dropin` with the official clients, in their newest release and in their last release based on
httpx.

`dropin/clients.py` runs both over the loopback interface, in their own interpreters; this module checks the results.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.dropin.environments import ROOT, python_of
from tests.integrations.dropin.streams import APIS, cells

FINISH = {"chat": "tool_calls", "responses": "completed", "messages": "tool_use"}
# The client's own exception for a broken connection, which is the same with and without streamweld.
BROKEN = {
    ("new", "chat"): "APIConnectionError",
    ("new", "responses"): "APIConnectionError",
    ("new", "messages"): "RemoteProtocolError",
    ("old", "chat"): "RemoteProtocolError",
    ("old", "responses"): "RemoteProtocolError",
    ("old", "messages"): "RemoteProtocolError",
}
RAISED = {"chat": "APIError", "responses": "APIError", "messages": "APIStatusError"}
MAJORS = {"new": [3, 2], "old": [2, 0]}


def run(environment: str, backend: str, *arguments: str) -> dict[str, Any]:
    python = Path(sys.executable) if environment == "new" else python_of(environment)
    done = subprocess.run(
        [python, "-W", "error", "-m", "tests.integrations.dropin.clients", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "STREAMWELD_BACKEND": backend},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    # No task is left, and everything is closed. Without handlers, Python writes warnings of loggers to stderr.
    others = [line for line in done.stderr.splitlines() if not line.startswith("a stream ended with an error: ")]
    assert others == []
    found: dict[str, Any] = json.loads(done.stdout)
    assert [int(version.split(".")[0]) for version in found["versions"]] == MAJORS[environment]
    return found["cells"]  # type: ignore[no-any-return]


def expected(environment: str, api: str, cell: dict[str, Any], way: str, got: dict[str, Any]) -> str | None:
    """Describe what is wrong with a result; None if it is correct."""
    if "calls" in cell:
        right = got["calls"] == cell["calls"] and got["error"] is None and got["finish"] == FINISH[api]
        return None if right and got["told"] is None else f"calls {cell['calls']}, finish {FINISH[api]}"
    kind, message = got["error"] or ("nothing", "")
    if cell.get("end") == "reset":
        return None if kind == BROKEN[environment, api] else BROKEN[environment, api]
    if cell.get("own"):
        # OpenAI's own error event in Responses: a loop receives the event; the helper does not support it.
        if way == "iter":
            return None if got["told"] == cell["error"] and kind == "nothing" else f"the event of {cell['error']!r}"
        return None if kind == "RuntimeError" else "RuntimeError"
    return None if kind == RAISED[api] and cell["error"] in message else f"{RAISED[api]} with {cell['error']!r}"


@pytest.mark.parametrize("environment", ["new", "old"])
def test_every_cell_is_right_or_a_clear_error(environment: str, backend: str) -> None:
    found = run(environment, backend)
    wrong, count = [], 0
    for api in APIS:
        for cell in cells(api):
            for mode in ("sync", "async"):
                for way in ("helper", "iter"):
                    name = f"{api}/{cell['name']}/{mode}/{way}"
                    wanted = expected(environment, api, cell, way, found[name])
                    count += 1
                    if wanted:
                        wrong.append(f"{name}: wanted {wanted}, got {found[name]}")
    assert count == len(found) > 90
    assert not wrong, "\n" + "\n".join(wrong)


def test_without_repair_they_are_wrong() -> None:
    """Without repair, the newest clients misread these cells, mostly silently, so the cells are meaningful tests."""
    found = run("new", "native", "plain")
    assert found["chat/a/sync/helper"]["calls"][0][0] == "call_1call_1call_1call_1"
    assert found["chat/b/async/helper"]["calls"][0][1] == "run_sandboxget_time"
    assert found["chat/b3/sync/helper"]["error"][0] == "TypeError"
    assert found["responses/c/async/helper"]["error"][0] == "RuntimeError"
    assert len(found["messages/d/sync/helper"]["calls"]) == 2
    for name in ("chat/f/sync/helper", "messages/f/async/helper", "messages/f3/sync/iter", "responses/f/sync/iter"):
        assert found[name]["error"] is None
