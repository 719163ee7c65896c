"""The Node process in which a test session runs JavaScript clients on payloads; see `tests/node/serve.mjs`.

Starts the process and sends requests to it; the operations are defined in `tests/node/ops/`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.places import TESTS

if TYPE_CHECKING:
    from collections.abc import Iterator

HOME = TESTS / "node"
RAN: set[str] = set()  # tests that used Node


class NodeError(Exception):
    """An exception in an operation: the name of the JavaScript error and its message."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name


class Node:
    """One Node process; it handles one request at a time."""

    def __init__(self, program: str) -> None:
        self._process = subprocess.Popen(
            [program, "serve.mjs"], cwd=HOME, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )
        self._asked = 0

    def ask(self, op: str, **args: Any) -> Any:
        """Call an operation of `ops/`, named `file.function`, and return its value."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._asked += 1
        self._process.stdin.write(json.dumps({"id": self._asked, "op": op, "args": args}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"node ended with {self._process.wait(10)}"
        answer = json.loads(line)
        assert answer["id"] == self._asked
        if "error" in answer:
            raise NodeError(answer["error"]["name"], answer["error"]["message"])
        return answer["value"]

    def close(self) -> None:
        """Close the input, so that Node exits, and kill the process if it does not exit."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


@pytest.fixture(scope="session")
def node_process() -> Iterator[Node]:
    """The Node process of this session (one per worker).

    Tests that need Node are skipped only if it is not installed.
    """
    program = shutil.which("node")
    if program is None:
        pytest.skip("Node.js is not on PATH: what JavaScript clients make of payloads is not tested")
    if not (HOME / "node_modules" / ".package-lock.json").is_file():
        pytest.fail("the JavaScript clients are not installed (make test does it: npm ci in tests/node)", pytrace=False)
    process = Node(program)
    yield process
    process.close()


@pytest.fixture
def node(node_process: Node, request: pytest.FixtureRequest) -> Node:
    """The session's Node process. The test that requests it is counted as a test that used Node."""
    RAN.add(request.node.nodeid)
    return node_process
