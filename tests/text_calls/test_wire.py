"""Complete streams with text calls, compared event by event: fed as given, in one read, and byte by byte. The events
are also folded.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamweld.response import Response

from tests.parser.test_vectors import WAYS, check
from tests.support.backends import BACKENDS
from tests.support.harness import read
from tests.support.places import VECTORS
from tests.support.vector_files import chunks_of

STREAMS = json.loads((VECTORS / "text_calls" / "wire" / "streams.json").read_text())["tests"]


@pytest.mark.parametrize("reader", BACKENDS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("vector", STREAMS, ids=lambda vector: vector["name"])
def test_events(reader: str, vector: dict[str, Any], way: str) -> None:
    outcome = read(reader, WAYS[way](chunks_of(vector)), {"dialect": "chat", **vector["options"]})
    check(outcome, vector)
    folded = Response(outcome.events)
    assert folded.items == outcome.response.items
    assert folded.finish_reason == outcome.response.finish_reason
