"""The expected result of a stream in a common form, from the corpus's `expected/` files or from the `expect` of a
vector.

Counts use one convention (`input` includes cached tokens, `output` includes reasoning tokens); finish reasons use
streamweld's words. Values that neither source contains come from streamweld's own result and are listed in `filled`.
This module does not depend on a client.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from streamweld.events import ToolResult

from tests.parser.test_corpus import REVIEWED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld.response import Response

    from tests.support.corpus import Recording

COUNTS = ("input", "output", "cached", "reasoning", "total")
# Raw finish words of the six dialects. For words that are not listed, streamweld's own result is used.
FINISH = {
    "chat": {
        "stop": "stop",
        "length": "length",
        "tool_calls": "tool_calls",
        "function_call": "tool_calls",
        "content_filter": "content_filter",
    },
    "responses": {"completed": "stop", "max_output_tokens": "length", "content_filter": "content_filter"},
    "anthropic": {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "max_tokens": "length",
        "tool_use": "tool_calls",
        "refusal": "content_filter",
    },
    "gemini": {
        "STOP": "stop",
        "MAX_TOKENS": "length",
        "SAFETY": "content_filter",
        "RECITATION": "content_filter",
    },
    "ai-sdk-parts": {
        "stop": "stop",
        "length": "length",
        "tool-calls": "tool_calls",
        "content-filter": "content_filter",
        "error": "error",
        "other": "other",
    },
}
FINISH["ai-sdk-ui"] = FINISH["ai-sdk-parts"]


class Call(NamedTuple):
    """A call that an application would run. `spelt`: whether the arguments are exactly as sent."""

    id: str | None
    name: str
    arguments: str
    custom: bool
    spelt: bool


@dataclass(frozen=True)
class Expected:
    """The expected result of the first choice."""

    text: str
    reasoning: str
    refusal: str
    calls: tuple[Call, ...]
    finish: str | None
    usage: Mapping[str, int | None] | None
    answered: frozenset[str]  # calls whose results are in the stream
    refused: frozenset[str]  # calls that the source application refused
    unfit: bool  # some calls cannot be run
    choices: int
    restarted: bool  # text was discarded when the stream restarted
    filled: frozenset[str]

    @property
    def is_success(self) -> bool:
        return self.finish in ("stop", "tool_calls")


def is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def number(members: Any, *path: str) -> int | None:
    for name in path:
        members = members.get(name) if isinstance(members, dict) else None
    return members if isinstance(members, int) else None


def added(rows: list[Any], name: str) -> int | None:
    counts = [count for row in rows if (count := number(row, name)) is not None]
    return sum(counts) if counts else None


def total_of(input_: int | None, output: int | None, total: int | None) -> int | None:
    return input_ + output if total is None and input_ is not None and output is not None else total


def usage_of(dialect: str, raw: Any) -> dict[str, int | None] | None:
    """Normalize a raw usage object according to each API's definition of its members."""
    if not isinstance(raw, dict):
        return None
    if dialect in ("chat", "responses"):
        first, second = ("prompt", "completion") if dialect == "chat" else ("input", "output")
        input_, output = number(raw, f"{first}_tokens"), number(raw, f"{second}_tokens")
        cached = number(raw, f"{first}_tokens_details", "cached_tokens")
        reasoning = number(raw, f"{second}_tokens_details", "reasoning_tokens")
        total = number(raw, "total_tokens")
        if None not in (input_, output, total) and reasoning and total == (input_ or 0) + (output or 0) + reasoning:
            output = (output or 0) + reasoning  # xAI does not include reasoning in the output count
        if dialect == "chat":
            cached = cached if cached is not None else number(raw, "prompt_cache_hit_tokens")
    elif dialect == "anthropic":
        # "The top-level input_tokens and output_tokens do not include compaction iteration usage":
        # https://platform.claude.com/docs/en/build-with-claude/compaction#understanding-usage
        rows = [raw, *(row for row in raw.get("iterations") or () if row.get("type") == "compaction")]
        cached = added(rows, "cache_read_input_tokens")
        input_, output, total = added(rows, "input_tokens"), added(rows, "output_tokens"), None
        if input_ is not None:
            input_ += (cached or 0) + (added(rows, "cache_creation_input_tokens") or 0)
        reasoning = number(raw, "output_tokens_details", "thinking_tokens")
    elif dialect == "gemini":
        input_, output = number(raw, "promptTokenCount"), number(raw, "candidatesTokenCount")
        tools, reasoning = number(raw, "toolUsePromptTokenCount"), number(raw, "thoughtsTokenCount")
        input_ = input_ + tools if input_ is not None and tools is not None else input_
        output = (output or 0) + reasoning if reasoning is not None else output
        cached, total = number(raw, "cachedContentTokenCount"), number(raw, "totalTokenCount")
    elif isinstance(raw.get("inputTokens"), dict):
        input_, output = number(raw, "inputTokens", "total"), number(raw, "outputTokens", "total")
        cached, reasoning = number(raw, "inputTokens", "cacheRead"), number(raw, "outputTokens", "reasoning")
        total = None
    else:
        input_, output, total = (number(raw, f"{name}Tokens") for name in ("input", "output", "total"))
        cached = number(raw, "inputTokenDetails", "cacheReadTokens")
        reasoning = number(raw, "outputTokenDetails", "reasoningTokens")
    if input_ is None and output is None and total is None:
        return None
    counted = (input_, output, cached, reasoning, total_of(input_, output, total))
    return dict(zip(COUNTS, counted, strict=True))


def usage_read(dialect: str, told: Any) -> dict[str, int | None] | None:
    """Normalize the usage of a vector or of a streamweld result to one set of names for the counts."""
    if told is None:
        return None
    names = ("input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens", "total_tokens")
    input_, output, cached, reasoning, total = (told.get(name) for name in names)
    if dialect == "anthropic" and input_ is not None:
        input_ += (cached or 0) + (told.get("cache_write_tokens") or 0)
    if reasoning and None not in (input_, output, total) and total == input_ + output + reasoning:
        output += reasoning
    if input_ is None and output is None and total is None:
        return None
    return dict(zip(COUNTS, (input_, output, cached, reasoning, total_of(input_, output, total)), strict=True))


def from_reading(dialect: str, response: Response) -> Expected:
    """Return the complete expectation from streamweld's own result. The other two functions replace the values that
    their source contains.
    """
    calls = tuple(
        Call(call.call_id, call.name, call.arguments or ("" if call.custom else "{}"), call.custom, spelt=True)
        for call in response.tool_calls
        if call.state in ("complete", "empty") and call.name and call.call_id
    )
    return Expected(
        text=response.text,
        reasoning=response.reasoning,
        refusal=response.refusal,
        calls=calls,
        finish=response.finish_reason,
        usage=usage_read(dialect, response.usage and response.usage.to_dict()),
        answered=frozenset(item.call_id for item in response.items if isinstance(item, ToolResult)),
        refused=frozenset(call.call_id for call in response.tool_calls if call.reason == "refused"),
        choices=len(response.choices),
        restarted="stream_restarted" in {found.code for found in response.diagnostics},
        unfit=any(call.state not in ("complete", "empty") or not call.name for call in response.tool_calls),
        filled=frozenset({"text", "reasoning", "refusal", "calls", "finish", "usage"}),
    )


def told(read: Expected, fields: dict[str, Any]) -> Expected:
    return Expected(**{**vars(read), **fields, "filled": read.filled - fields.keys()})


def from_vector(vector: dict[str, Any], response: Response) -> Expected:
    dialect, expect = vector["options"]["dialect"], vector["expect"]
    read = from_reading(dialect, response)
    fields: dict[str, Any] = {}
    for key, name in (("content", "text"), ("reasoning", "reasoning"), ("refusal", "refusal"), ("finish", "finish")):
        if key in expect:
            fields[name] = expect[key]
    if "calls" in expect:
        server = {call.call_id for call in response.server_tool_calls}
        fields["calls"] = tuple(
            Call(
                None if row["id"] == "*" else row["id"],
                row["name"],
                row["arguments"] or ("" if row.get("custom") else "{}"),
                row.get("custom", False),
                spelt=True,
            )
            for row in expect["calls"]
            if row["state"] in ("complete", "empty") and row["name"] and row["id"] not in server
        )
    if "usage" in expect and {"input_tokens", "output_tokens"} <= expect["usage"].keys():
        fields["usage"] = usage_read(dialect, expect["usage"])
    return told(read, fields)


def from_recording(recording: Recording, response: Response) -> Expected:
    dialect, expected = recording.dialect, recording.expected
    read = from_reading(dialect, response)
    fields: dict[str, Any] = {
        key: expected[key] or "" for key in ("text", "reasoning", "refusal") if expected.get(key) is not None
    }
    raw = expected.get("finish_reason")
    if isinstance(raw, dict):
        raw = raw["unified"]
    if raw == "incomplete":
        raw = (expected.get("incomplete_details") or {}).get("reason")
    if raw in FINISH[dialect] and "errors" not in expected:
        fields["finish"] = FINISH[dialect][raw]
    server = {call.call_id for call in response.server_tool_calls}
    fields["calls"] = tuple(
        Call(
            row.get("id"),
            row["name"],
            text,
            row.get("custom", False),
            spelt=dialect == "chat",
        )
        for row in expected["tool_calls"]
        for text in (row.get("arguments") or ("" if row.get("custom") else "{}"),)
        if row.get("id") not in server and not row.get("providerExecuted")
        if row.get("custom") or is_object(text)
        if row.get("arguments") or fields.get("finish") != "length"
    )
    counted = usage_of(dialect, expected.get("usage"))
    if counted is not None and response.usage is not None:
        fields["usage"] = counted
    reviewed = set(REVIEWED[recording.folder].get(recording.name, {}).get("fields", ()))
    for field, name in (("text", "text"), ("reasoning", "reasoning"), ("finish_reason", "finish"), ("usage", "usage")):
        if field in reviewed:
            fields.pop(name, None)
    if (
        "tool_calls" in reviewed or dialect == "ai-sdk-ui"
    ):  # these states belong to the application's message, not to the stream
        fields.pop("calls", None)
    return told(read, fields)
