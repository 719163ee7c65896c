"""The recorded streams with `report` and `promote`: none of them changes."""

from __future__ import annotations

import pytest
import streamweld as sw

from tests.conftest import FULL
from tests.support.backends import BACKENDS, using
from tests.support.corpus import FOLDERS, Recording, absent, recordings

pytestmark = pytest.mark.skipif(absent() is not None, reason=absent() or "")

TOOLS = ("get_weather", "weather", "run_shell", "bash", "search", "calculator")
POLICIES = {
    "report": sw.Policy(text_calls="report"),
    "promote": sw.Policy(text_calls="promote"),
    # Responses that are JSON begin like a call without a marker. Their text must not change.
    "markerless": sw.Policy(text_calls="promote", text_call_markerless=True),
}


def read(recording: Recording, policy: sw.Policy, tools: tuple[str, ...]) -> tuple[list[object], list[str]]:
    """Return the content of a stream, and the codes of text calls."""
    parser = sw.StreamParser(dialect=recording.dialect, policy=policy, tools=tools)  # type: ignore[arg-type]
    shown: list[object] = []
    try:
        parser.feed(recording.body)
        parser.close()
    except sw.StreamError as fault:
        shown.append(type(fault).__name__)
    response = parser.response
    shown += [response.text, response.tool_calls, response.finish_reason, response.completeness]
    return shown, [found.code for found in response.diagnostics if found.code.startswith("text_call")]


@pytest.mark.parametrize("reader", BACKENDS)
@pytest.mark.parametrize("folder", FOLDERS)
def test_no_recorded_stream_changes(reader: str, folder: str) -> None:
    """No recording contains a text call.

    The test declares all tools that the recording called, and some common names.
    """
    every = recordings(folder)
    found: dict[str, list[str]] = {}
    with using(reader):
        for recording in every if FULL or reader == "native" else every[::20]:
            plain, _ = read(recording, sw.Policy(), TOOLS)
            called = {call.name for call in plain[-3]}  # type: ignore[attr-defined]
            tools = (*TOOLS, *sorted(called - set(TOOLS)))
            plain, _ = read(recording, sw.Policy(), tools)
            for name, policy in POLICIES.items():
                shown, codes = read(recording, policy, tools)
                assert shown == plain, (recording.name, name)
                if codes and name != "markerless":
                    found[f"{recording.name} {name}"] = codes
    assert found == {}
