"""Frames written for Responses are what both published OpenResponses schemas say they are."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest
import streamweld as sw

from tests import corpus
from tests.backends import using
from tests.test_convert_matrix import sample

if TYPE_CHECKING:
    from tests.corpus import Recording

SCHEMAS = corpus.ROOT.parent / "data" / "openresponses"
VERSIONS = ("2026-01-15", "2026-04-24")
# OpenAI's own, which OpenResponses leaves to extensions.
BEYOND = ("custom_tool_call",)

pytestmark = pytest.mark.skipif(not SCHEMAS.is_dir(), reason=f"no published schemas at {SCHEMAS}")


@cache
def validators(version: str) -> dict[str, Any]:
    """Event type -> what checks one."""
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
