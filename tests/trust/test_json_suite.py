"""JSONTestSuite in both backends, as a payload and as the arguments of a tool call.

The cases are third-party data outside the repository (../shared/data, or $STREAMWELD_SHARED). json_decisions.json
contains streamweld's decisions on the cases that RFC 8259 leaves open.
"""

from __future__ import annotations

import base64
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from streamweld.errors import ChunkDecodeError, LimitExceeded

from tests.support.harness import read
from tests.support.places import SHARED

if TYPE_CHECKING:
    from collections.abc import Callable

SUITE = SHARED / "data" / "json_test_suite.json"
DECISIONS = json.loads(Path(__file__).with_name("json_decisions.json").read_text(encoding="utf-8"))["decisions"]
DONE = b"data: [DONE]\n\n"

pytestmark = pytest.mark.skipif(not SUITE.is_file(), reason=f"no JSONTestSuite at {SUITE} (set STREAMWELD_SHARED)")


@cache
def cases() -> dict[str, bytes]:
    """Return the texts of test_parsing/ by name."""
    found = {}
    for case in json.loads(SUITE.read_text(encoding="utf-8"))["cases"]:
        folder, _, name = case["name"].partition("/")
        if folder == "test_parsing":
            if "base64" in case:
                found[name] = base64.b64decode(case["base64"])
            else:
                text, times, suffix = case["repeat"]
                found[name] = (text * times + suffix).encode()
    return found


def data_lines(payload: bytes) -> bytes:
    return b"".join(b"data: " + line + b"\n" for line in payload.split(b"\n")) + b"\n"


def payload_is_accepted(backend: str, text: bytes) -> bool:
    """Return True if a chunk whose unknown member has this value is accepted unchanged.

    Data lines are joined by LF. If the result is not JSON, the parser joins them without LF and reports `lines_joined`,
    which means that the text as sent was rejected.
    """
    chunk = b'{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"extra":' + text + b"}"
    outcome = read(backend, [data_lines(chunk), DONE], {"dialect": "chat"})
    assert outcome.error is None or isinstance(outcome.error, ChunkDecodeError | LimitExceeded), outcome.error
    if outcome.error is None:
        assert outcome.response.text == "x"
    return outcome.error is None and "lines_joined" not in outcome.codes


def arguments_are_accepted(backend: str, text: bytes) -> bool:
    """Return True if a call with this value in its arguments is complete, and the value can be encoded."""
    arguments = '{"extra":' + text.decode("utf-8", "replace") + "}"
    function = {"name": "f", "arguments": arguments}
    call = {"index": 0, "id": "call_1", "type": "function", "function": function}
    choice = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}
    outcome = read(backend, [data_lines(json.dumps({"choices": [choice]}).encode()), DONE], {"dialect": "chat"})
    assert outcome.error is None
    (found,) = outcome.response.tool_calls
    assert found.state in ("complete", "invalid", "incomplete"), found.state
    if found.state == "complete":
        json.dumps(found.parsed, ensure_ascii=False).encode()
    return found.state == "complete"


def decided() -> dict[str, bool]:
    return {
        name: verdict == "accept" for verdict, rules in DECISIONS.items() for names in rules.values() for name in names
    }


def test_every_open_case_has_a_decision() -> None:
    assert decided().keys() == {name for name in cases() if name.startswith("i_")}


@pytest.mark.parametrize("verdict_of", [payload_is_accepted, arguments_are_accepted], ids=["payload", "arguments"])
def test_json_test_suite(
    backend: str, verdict_of: Callable[[str, bytes], bool], figure: Callable[[str, str], None]
) -> None:
    expected = {name: name.startswith("y_") for name in cases()} | decided()
    wrong = [
        f"{name}: {'rejected' if accept else 'accepted'}"
        for name, accept in expected.items()
        if verdict_of(backend, cases()[name]) is not accept
    ]
    assert wrong == []
    assert len(expected) == 318
    figure(f"{verdict_of.__name__.split('_')[0]}, {backend}", f"{len(expected)} of 318 as decided")
