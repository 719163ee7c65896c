"""Responses frames, including those that a repair writes, conform to both published OpenResponses schemas."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest
import streamweld as sw

from tests.convert.test_convert_matrix import sample
from tests.support import corpus
from tests.support.backends import using
from tests.support.harness import policy_of
from tests.support.vector_files import chunks_of, label, load

if TYPE_CHECKING:
    from tests.support.corpus import Recording

SCHEMAS = corpus.ROOT.parent / "data" / "openresponses"
VERSIONS = ("2026-01-15", "2026-04-24")
# Types of OpenAI that OpenResponses leaves to extensions. A repair writes all but the first as the source sent them.
BEYOND = (
    "custom_tool_call",
    "shell_call",
    "shell_call_output",
    "apply_patch_call",
    "computer_call",
    "local_shell_call",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_list_tools",
    "mcp_approval_request",
    "function_call_output",
    "compaction",
    "of_tomorrow",
    "file_citation",
    "output_hologram",
    "acme:tool",
)

pytestmark = pytest.mark.skipif(not SCHEMAS.is_dir(), reason=f"no published schemas at {SCHEMAS}")


@cache
def validators(version: str) -> dict[str, Any]:
    """Return a validator for each event type."""
    document = json.loads((SCHEMAS / f"openapi-{version}.json").read_text(encoding="utf-8"))
    components = {"components": document["components"]}
    found = {}
    for name, schema in document["components"]["schemas"].items():
        if name.endswith("StreamingEvent"):
            (kind,) = schema["properties"]["type"]["enum"]
            found[kind] = jsonschema_rs.Draft202012Validator({"$ref": f"#/components/schemas/{name}", **components})
    return found


def bodies(made: bytes) -> list[dict[str, Any]]:
    lines = [line[6:] for line in made.decode().split("\n") if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "recording", [pytest.param(r, id=f"{r.folder}-{r.name}") for r in sample() if r.dialect != "responses"]
)
def test_every_frame_is_in_the_schema(backend: str, recording: Recording, version: str) -> None:
    known = validators(version)
    assert len(known) == 24
    with using(backend):
        made = sw.convert(
            recording.body, source=recording.dialect, target="responses", seed="s", reasoning_events="openresponses"
        )
    checked = 0
    for body in bodies(made):
        text = json.dumps(body)
        if any(f'"{kind}"' in text or body["type"].startswith(f"response.{kind}") for kind in BEYOND):
            continue
        faults = [f"{error.instance_path}: {error.message[:200]}" for error in known[body["type"]].iter_errors(body)]
        assert not faults, (body["type"], faults)
        checked += 1
    assert checked > 1


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("vector", [v for v in load("repair") if v["file"] == "responses"], ids=label)
def test_every_frame_that_a_repair_writes_is_in_the_schema(backend: str, vector: dict[str, Any], version: str) -> None:
    """Members of the response that the source sent remain unchanged; missing members are added.

    Events are numbered only if those of the source are.
    """
    known = validators(version)
    sent = [line for line in b"".join(chunks_of(vector)).decode().splitlines() if line.startswith("data: {")]
    shown = {name for line in sent for name in json.loads(line[6:]).get("response", ())}
    options = {"seed": "s", **policy_of(vector.get("options", {}))}
    with using(backend):
        made = sw.convert(
            b"".join(chunks_of(vector)),
            source="responses",
            target="same",
            reasoning_events="openresponses",
            **options,
        )
    lines = [line for line in made.decode().splitlines() if line.startswith("data: {") and line not in sent]
    assert bool(lines) == any(isinstance(one, list) for one in vector["expect"].get("out", ()))
    numbered = any("sequence_number" in json.loads(line[6:]) for line in sent)
    for line in lines:
        body = json.loads(line[6:])
        if not numbered:
            body["sequence_number"] = 0
        if any(f'"{kind}"' in line or body["type"].startswith(f"response.{kind}") for kind in BEYOND):
            continue
        if body["type"] == "response.cancelled":
            body["type"] = "response.incomplete"  # the specification has no event for a canceled response
        faults = [
            f"{error.instance_path}: {error.message[:200]}"
            for error in known[body["type"]].iter_errors(body)
            if not (
                error.instance_path[:1] == ["response"] and error.instance_path[1:2] and error.instance_path[1] in shown
            )
        ]
        assert not faults, (body["type"], faults)
