"""Converters write token counts with the meaning that the target's documentation gives them.

Every stream of `tests/vectors/usage` to every target, in both backends. The counts of a stream (`normalized`) come from
public reports. The expected members of a target are derived here from the vendors' documentation, without functions of
streamweld:

- Chat Completions and Responses: cached tokens are part of the input, reasoning tokens part of the output
  (https://platform.openai.com/docs/api-reference/chat/object, ResponseUsage).
- Anthropic: `input_tokens` excludes what was read from the cache and written to it
  (https://platform.claude.com/docs/en/build-with-claude/prompt-caching).
- Gemini: `promptTokenCount` includes the cache, `candidatesTokenCount` excludes the thoughts
  (https://ai.google.dev/api/generate-content#UsageMetadata).
- AI SDK: `inputTokens.total` includes the cache, `noCache` does not; `outputTokens.total` includes reasoning, `text`
  does not (LanguageModelV3Usage); `inputTokens` and `outputTokens` of a UI message are totals (LanguageModelUsage).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw

from tests.support.backends import using
from tests.support.vector_files import chunks_of, load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Counts = dict[str, Any]
VECTORS = [vector for vector in load("usage") if "chunks" in vector and vector["normalized"] is not None]
TARGETS = ("chat", "responses", "anthropic", "gemini", "ai-sdk-parts", "ai-sdk-ui")


def payloads(body: bytes) -> Iterator[dict[str, Any]]:
    for line in body.decode().splitlines():
        if line.startswith("data:") and line != "data: [DONE]":
            yield json.loads(line[5:])


def at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def of_chat(body: bytes) -> Counts:
    usage = [found for one in payloads(body) if (found := one.get("usage"))][-1]
    return {
        "input": usage["prompt_tokens"],
        "cached_read": at(usage, "prompt_tokens_details", "cached_tokens"),
        "cache_write": at(usage, "prompt_tokens_details", "cache_write_tokens"),
        "output": usage["completion_tokens"],
        "reasoning": at(usage, "completion_tokens_details", "reasoning_tokens"),
        "total": usage["total_tokens"],
    }


def of_responses(body: bytes) -> Counts:
    usage = [found for one in payloads(body) if (found := at(one, "response", "usage"))][-1]
    return {
        "input": usage["input_tokens"],
        "cached_read": usage["input_tokens_details"]["cached_tokens"],
        "cache_write": usage["input_tokens_details"]["cache_write_tokens"],
        "output": usage["output_tokens"],
        "reasoning": usage["output_tokens_details"]["reasoning_tokens"],
        "total": usage["total_tokens"],
    }


def of_anthropic(body: bytes) -> Counts:
    """Return the counts of the last message_delta, which are cumulative; it has no total and no reasoning."""
    usage = [one["usage"] for one in payloads(body) if one["type"] == "message_delta"][-1]
    read, written = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    fresh = usage.get("input_tokens")
    return {
        "input": None if fresh is None else fresh + (read or 0) + (written or 0),
        "cached_read": read,
        "cache_write": written,
        "output": usage["output_tokens"],
    }


def of_gemini(body: bytes) -> Counts:
    """Return the counts of Gemini, which has no count for tokens that were written to the cache."""
    usage = [found for one in payloads(body) if (found := one.get("usageMetadata"))][-1]
    thoughts, answer = usage.get("thoughtsTokenCount"), usage.get("candidatesTokenCount")
    return {
        "input": usage.get("promptTokenCount"),
        "cached_read": usage.get("cachedContentTokenCount"),
        "output": None if answer is None else answer + (thoughts or 0),
        "reasoning": thoughts,
        "total": usage.get("totalTokenCount"),
    }


def of_parts(body: bytes) -> Counts:
    """Return the counts of AI SDK stream parts. LanguageModelV3Usage has no total of input and output."""
    usage = [one["usage"] for one in payloads(body) if one["type"] == "finish"][-1]
    given, made = usage["inputTokens"], usage["outputTokens"]
    if given.get("noCache") is not None:
        assert given["total"] == given["noCache"] + given.get("cacheRead", 0) + given.get("cacheWrite", 0)
    if made.get("text") is not None:
        assert made["total"] == made["text"] + made.get("reasoning", 0)
    return {
        "input": given.get("total"),
        "cached_read": given.get("cacheRead"),
        "cache_write": given.get("cacheWrite"),
        "output": made.get("total"),
        "reasoning": made.get("reasoning"),
    }


def of_ui(body: bytes) -> Counts:
    usage = [found for one in payloads(body) if (found := at(one, "messageMetadata", "usage"))][-1]
    return {
        "input": usage.get("inputTokens"),
        "cached_read": at(usage, "inputTokenDetails", "cacheReadTokens"),
        "cache_write": at(usage, "inputTokenDetails", "cacheWriteTokens"),
        "output": usage.get("outputTokens"),
        "reasoning": at(usage, "outputTokenDetails", "reasoningTokens"),
        "total": usage.get("totalTokens"),
    }


READ: dict[str, Callable[[bytes], Counts]] = {
    "chat": of_chat,
    "responses": of_responses,
    "anthropic": of_anthropic,
    "gemini": of_gemini,
    "ai-sdk-parts": of_parts,
    "ai-sdk-ui": of_ui,
}


@pytest.mark.parametrize("target", TARGETS)
def test_the_targets_own_meaning(target: str, backend: str) -> None:
    seen = 0
    for vector in VECTORS:
        if vector["dialect"] == target:
            continue
        name = f"{vector['file']}:{vector['name']}"
        with using(backend):
            body = sw.convert(b"".join(chunks_of(vector)), source=vector["dialect"], target=target)
        truth = vector["normalized"]
        found = READ[target](body)
        for count, value in found.items():
            # A count that the target requires is 0, or the sum of the known ones, if the source does not have it.
            unknown = (found["input"] or 0) + (found["output"] or 0) if count == "total" and value else 0
            wanted = unknown if truth[count] is None and value is not None else truth[count]
            assert value == wanted, (name, count, found, truth)
        seen += 1
    assert seen >= 20
