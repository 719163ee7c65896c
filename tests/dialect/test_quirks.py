"""The vectors of the catalogued quirks expect the calls of the catalogue: the same names and arguments.

The order of the calls counts. The catalogue decides cases with more than one reasonable result, so a vector must not be
changed against it.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.places import SHARED
from tests.support.vector_files import streams

CASES: list[dict[str, Any]] = json.loads((SHARED / "data" / "quirk_cases.json").read_text("utf-8"))
# The vectors have the chunks of the catalogue, except those of SSE framing, which the catalogue describes otherwise.
VECTORS = {(vector["quirk"], "".join(map(str, vector["chunks"]))): vector for vector in streams() if "quirk" in vector}
STATED = [case for case in CASES if "calls" in case["expect"] and (case["id"], "".join(case["chunks"])) in VECTORS]


def test_the_quirks_with_calls_have_vectors() -> None:
    assert len(STATED) == 117


@pytest.mark.parametrize("case", STATED, ids=lambda case: case["id"])
def test_a_vector_expects_what_the_catalogue_states(case: dict[str, Any]) -> None:
    vector = VECTORS[case["id"], "".join(case["chunks"])]
    # A call without arguments has the text "" in the response, and {} in the catalogue.
    found = [(call["name"], call["arguments"] or "{}") for call in vector["expect"].get("calls", ())]
    assert found == [(name, arguments or "{}") for _, name, arguments in case["expect"]["calls"]]
