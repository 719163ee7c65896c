"""Payloads for OpenResponses, validated against its published request schema, which is read from outside the checkout.

The body of a request is one schema; the schemas of its items show which item is invalid, and why.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest
from streamweld.history import HistoryPolicy, convert

from tests.conftest import FULL
from tests.history.test_corpus import answers, history
from tests.support.corpus import FOLDERS, absent
from tests.support.generate.history import DIALECTS, Maker, payload_of
from tests.support.places import SHARED

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMAS = SHARED / "data" / "openresponses"
VERSIONS = ("2026-04-24", "2026-01-15")
# Gateways that follow OpenResponses exactly. vLLM's reasoning and the calls of Vercel's gateway differ from it.
GATEWAYS = ("openresponses-2026-04-24", "openrouter")
KEEP = HistoryPolicy(on_unfixable="keep")
SEEDS = range(400 if FULL else 60)
# Item types that OpenAI's servers send but the specification does not define. They are sent back unchanged to the
# gateway they came from, like a gateway's own items, and dropped for any other gateway. streamweld never creates them.
EXTENSIONS = {
    *("apply_patch_call", "apply_patch_call_output", "code_interpreter_call", "file_search_call", "mcp_call"),
    *("custom_tool_call", "custom_tool_call_output", "image_generation_call", "mcp_approval_request", "mcp_list_tools"),
    *("program", "program_output", "shell_call", "shell_call_output", "tool_search_call", "tool_search_output"),
    *("web_search_call", "compaction"),
}

pytestmark = pytest.mark.skipif(
    not SCHEMAS.is_dir(), reason=f"the published OpenResponses schemas are not at {SCHEMAS}"
)


@cache
def validator(version: str, name: str = "CreateResponseBody") -> Any:
    document = json.loads((SCHEMAS / f"openapi-{version}.json").read_text("utf-8"))
    return jsonschema_rs.Draft202012Validator(
        {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    )


PARAMS = {
    "reasoning": "ReasoningItemParam",
    "function_call": "FunctionCallItemParam",
    "function_call_output": "FunctionCallOutputItemParam",
    "user": "UserMessageItemParam",
    "system": "SystemMessageItemParam",
    "developer": "DeveloperMessageItemParam",
    "assistant": "AssistantMessageItemParam",
}


def faults(payload: Any, version: str) -> list[Any]:
    """Return the items that the schema rejects, with the reasons, or the faults of the body."""
    body = validator(version)
    if body.is_valid(payload):
        return []
    found: list[Any] = []
    for item in payload["input"]:
        if body.is_valid({"input": [item]}):
            continue
        param = PARAMS.get(item.get("role") or item.get("type"), "ItemParam")
        reasons = [
            f"{error.instance_path}: {error.message[:200]}" for error in validator(version, param).iter_errors(item)
        ]
        found.append((item, reasons))
    return found or [error.message[:500] for error in body.iter_errors(payload)]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_schema_tells_right_from_wrong(version: str) -> None:
    message = {"type": "message", "role": "user", "content": "hi"}
    assert faults({"model": "m", "input": [message]}, version) == []
    for wrong in (
        {"role": "user", "content": "hi"},
        {"type": "message", "role": "user", "content": [{"type": "output_text", "text": "hi"}]},
        {"type": "function_call", "call_id": "c" * 65, "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": {}},
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
    ):
        assert len(faults({"model": "m", "input": [message, wrong]}, version)) == 1, wrong


def generated(*, broken: bool) -> Iterator[tuple[str, Any]]:
    for seed in SEEDS:
        script = Maker(seed, broken=broken).script(1 + seed % 6)
        for dialect in DIALECTS if script else ():
            yield dialect, payload_of(script, dialect)


@pytest.mark.parametrize("broken", [False, True], ids=["sound", "broken"])
@pytest.mark.parametrize("gateway", GATEWAYS)
def test_every_history(gateway: str, broken: bool) -> None:
    seen = 0
    for dialect, given in generated(broken=broken):
        made = convert(given, source=dialect, target="responses", gateway=gateway, policy=KEEP)
        for version in VERSIONS:
            assert faults(made.payload, version) == [], (dialect, given)
        seen += 1
    assert seen > 6 * len(SEEDS)


def plain(item: Any) -> Any:
    """Return a message without its annotations, because servers use their own kinds of annotations, and omit members
    that the schema requires.
    """
    if not isinstance(item.get("content"), list):
        return item
    blocks = [{name: value for name, value in block.items() if name != "annotations"} for block in item["content"]]
    return {**item, "content": blocks}


@pytest.mark.skipif(absent() is not None, reason=absent() or "")
@pytest.mark.parametrize("folder", FOLDERS)
def test_every_recorded_answer(folder: str) -> None:
    seen = 0
    for name, response in answers(folder):
        messages, source = history(response, "responses" if folder == "responses" else "openai-chat")
        made = convert(messages, source=source, target="responses", gateway=GATEWAYS[0])
        items = made.payload["input"]
        if folder == "responses":  # for its own API, data that only the server can create are kept
            items = [plain(item) for item in items if item.get("type") not in EXTENSIONS]
        for version in VERSIONS:
            assert faults({**made.payload, "input": items}, version) == [], name
        seen += 1
    assert seen
