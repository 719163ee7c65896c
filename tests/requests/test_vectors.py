"""The vectors of complete requests: the output, every edit and every loss. A second conversion does not change the
output.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from streamweld import requests

from tests.requests.official import complaints
from tests.support.places import VECTORS

HERE = VECTORS / "requests"
KEYS = {"name", "why", "source", "target", "gateway", "provider", "request", "options", "names", "edits", "losses"}
HISTORY = {"messages", "input", "contents", "system", "systemInstruction", "instructions"}


def vectors() -> list[Any]:
    found = []
    for path in sorted(HERE.glob("*.json")):
        document = json.loads(path.read_text("utf-8"))
        assert document["format"] == 1
        names = [vector["name"] for vector in document["tests"]]
        assert len(set(names)) == len(names), path
        for vector in document["tests"]:
            assert vector["why"], vector["name"]
            assert vector.keys() <= KEYS, (vector["name"], vector.keys() - KEYS)
            found.append(pytest.param(vector, id=f"{path.stem}:{vector['name']}"))
    return found


def convert(vector: dict[str, Any], request: Any, source: str) -> requests.Conversion:
    more = {name: vector[name] for name in ("gateway", "provider") if name in vector}
    return requests.convert(request, source=source, target=vector["target"], **more)


def options(payload: Any) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if name not in HISTORY}


@pytest.mark.parametrize("vector", vectors())
def test_vector(vector: dict[str, Any]) -> None:
    given = copy.deepcopy(vector["request"])
    done = convert(vector, given, vector["source"])
    assert given == vector["request"]
    written = json.dumps(options(done.payload))
    for name, stands_for in vector.get("names", {}).items():
        written = written.replace(json.dumps(done.tool_names[name]), json.dumps(stands_for))
    assert json.loads(written) == vector["options"]
    assert [[edit.rule, edit.path] for edit in done.edits] == vector["edits"]
    assert [[loss.feature, loss.path] for loss in done.losses] == vector["losses"]


@pytest.mark.parametrize("vector", vectors())
def test_what_is_written_is_sound_and_stays(vector: dict[str, Any]) -> None:
    done = convert(vector, vector["request"], vector["source"])
    gateway = vector.get("gateway")
    if "unheard_of" not in vector["options"]:
        assert requests.check(done.payload, target=vector["target"], gateway=gateway) == []
        assert complaints(vector["target"], gateway or vector["target"], done.payload) == []
    again = convert(vector, done.payload, vector["target"])
    assert again.payload == done.payload
    assert (again.edits, again.losses) == ((), ())
