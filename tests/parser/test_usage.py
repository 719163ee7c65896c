"""`Usage.normalized()`: token counts with one meaning for every API.

The expected counts of the vectors come from public reports and documentation. The AI SDK is an independent check: its
providers normalized the recorded usage objects that the corpus contains.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import streamweld
from streamweld.errors import StreamError, UsageError
from streamweld.events import Usage
from streamweld.usage import NormalizedUsage, normalized

from tests.support.backends import make_parser
from tests.support.corpus import absent, recordings
from tests.support.vector_files import chunks_of, load

if TYPE_CHECKING:
    from collections.abc import Iterator

VECTORS = load("usage")
STREAMS = [vector for vector in VECTORS if "chunks" in vector]
OBJECTS = [vector for vector in VECTORS if "usage" in vector]


def named(vector: dict[str, Any]) -> str:
    return f"{vector['file']}:{vector['name']}"


@pytest.mark.parametrize("vector", STREAMS, ids=named)
def test_streams(vector: dict[str, Any], backend: str) -> None:
    whole = b"".join(chunks_of(vector))
    for pieces in ([whole], [whole[at : at + 1] for at in range(len(whole))]):
        with make_parser(backend, vector["dialect"]) as parser:
            for piece in pieces:
                parser.feed(piece)
        usage = parser.response.usage
        if vector["normalized"] is None:
            assert usage is None
        else:
            assert usage is not None
            assert usage.normalized().to_dict() == vector["normalized"]
            assert normalized(usage, vector["dialect"]).to_dict() == vector["normalized"]


@pytest.mark.parametrize("vector", OBJECTS, ids=named)
def test_objects(vector: dict[str, Any]) -> None:
    assert normalized(vector["usage"], vector.get("dialect")).to_dict() == vector["normalized"]


def test_the_counts_add_up() -> None:
    for vector in VECTORS:
        counts = vector["normalized"]
        if counts and counts["input"] is not None and counts["output"] is not None:
            assert counts["total"] >= counts["input"] + counts["output"]
            assert (counts["cached_read"] or 0) + (counts["cache_write"] or 0) <= counts["input"]
            assert (counts["reasoning"] or 0) <= counts["output"]


def test_without_the_gateways_object_the_fields_count() -> None:
    usage = Usage(input_tokens=10, output_tokens=5, cached_input_tokens=100)
    assert usage.normalized("anthropic") == NormalizedUsage(input=110, cached_read=100, output=5, total=115)
    assert Usage(input_tokens=200, output_tokens=5).normalized() == NormalizedUsage(input=200, output=5, total=205)
    assert Usage().normalized() == NormalizedUsage()


def test_counts_fit_in_64_bits() -> None:
    largest = 2**63 - 1
    assert normalized({"prompt_tokens": largest + 1, "completion_tokens": 1}) == NormalizedUsage(output=1)
    whole = normalized({"prompt_tokens": largest, "completion_tokens": 1})
    assert whole == NormalizedUsage(input=largest, output=1, total=largest)


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(UsageError, match="klingon"):
        Usage().normalized("klingon")


def test_usage_is_frozen() -> None:
    with pytest.raises(AttributeError):
        NormalizedUsage(input=1).input = 2  # type: ignore[misc]


# Gemini: the AI SDK excludes the prompt tokens of the provider's tools from the input, but the total includes them.
TOOL_PROMPTS = "toolUsePromptTokenCount"


def recorded() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield usage as the AI SDK reports it, with the provider's own object as `raw`."""
    for folder in ("aisdk-parts", "aisdk-ui"):
        for recording in recordings(folder):
            for line in recording.body.decode("utf-8").splitlines():
                if line.startswith("data: {"):
                    for usage in usages(json.loads(line[6:])):
                        yield recording.name, usage


def usages(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if isinstance(value.get("raw"), dict) and isinstance(value.get("inputTokens"), dict):
            yield value
        for inner in value.values():
            yield from usages(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from usages(inner)


@pytest.mark.skipif(absent() is not None, reason=absent() or "")
def test_the_ai_sdk_counts_likewise() -> None:
    seen = 0
    for name, usage in recorded():
        raw, counts = usage["raw"], normalized(usage["raw"])
        tokens_in, tokens_out = usage["inputTokens"], usage["outputTokens"]
        if (tokens_in.get("noCache") or 0) < 0:  # Azure's Grok: more cached tokens than prompt tokens
            assert counts.input == tokens_in["total"] + tokens_in["cacheRead"], name
            continue
        tool_prompts = raw.get(TOOL_PROMPTS, 0)
        assert (counts.input or 0) - tool_prompts == (tokens_in.get("total") or 0), name
        assert (counts.output or 0) == (tokens_out.get("total") or 0), name
        assert (counts.cached_read or 0) == (tokens_in.get("cacheRead") or 0), name
        assert (counts.cache_write or 0) == (tokens_in.get("cacheWrite") or 0), name
        assert (counts.reasoning or 0) == (tokens_out.get("reasoning") or 0), name
        seen += 1
    assert seen > 50


@pytest.mark.skipif(absent() is not None, reason=absent() or "")
def test_every_recorded_total_is_explained() -> None:
    """For every recorded stream with a total, the normalized total is the sum of input and output."""
    seen = 0
    for folder in ("chat", "responses", "anthropic", "gemini"):
        for recording in recordings(folder):
            try:
                response = streamweld.parse(recording.body, dialect=recording.dialect)
            except StreamError as error:
                response = error.partial
            if response is None or response.usage is None or not response.usage.total_tokens:
                continue
            counts = response.usage.normalized()
            assert counts.input is not None, recording.name
            assert counts.output is not None or counts.total == counts.input, recording.name
            assert counts.total == counts.input + (counts.output or 0), recording.name
            seen += 1
    assert seen > 300
