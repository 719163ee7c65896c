"""The script that compares the types of the vendors' SDKs with `_spec`."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

from tests.support.places import REPOSITORY

if TYPE_CHECKING:
    from types import ModuleType


@pytest.fixture(scope="module")
def script() -> ModuleType:
    found = importlib.util.spec_from_file_location("sdk_types", REPOSITORY / ".ci" / "sdk_types.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_it_collects_what_the_sdks_define(script: ModuleType) -> None:
    sdk = script.defined()
    assert {"response.output_text.delta", "response.shell_call_command.delta"} <= sdk["openai: event"]
    assert {"message", "function_call", "program"} <= sdk["openai: item"]
    assert sdk["anthropic: delta"] >= {"text_delta", "thinking_delta", "input_json_delta"}
    assert {"text", "tool_use", "web_search_tool_result"} <= sdk["anthropic: block"]
    assert "end_turn" in sdk["anthropic: stop reason"]
    assert "MAX_TOKENS" in sdk["google-genai: finish reason"]
    assert "thoughtSignature" in sdk["google-genai: part field"]
    assert sdk.keys() == script.known().keys()


def test_it_prints_what_is_new_and_what_is_no_longer_missing(script: ModuleType) -> None:
    sdk = {"a: event": {"known", "x.delta", "new", "listed"}}
    spec = {"a: event": ["known", "x.*", "other"]}
    new, stale = script.compared(sdk, spec, {"a: event": {"listed": "why", "known": "why", "gone": "why"}})
    assert new == ["a: event new"]
    assert stale == ["a: event known", "a: event gone"]


def test_spec_names_the_types_of_the_installed_sdks(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main() == 0, capsys.readouterr().out
    assert "; 0 new, 0 stale entries" in capsys.readouterr().out
