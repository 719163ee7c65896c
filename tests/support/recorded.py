"""Compares the result for a recorded stream with those of independent readers, and returns the fields that differ, per
dialect.

Other readers report raw finish reasons and write arguments in their own way (`{}` for none). For the usage, only the
values in the raw object are compared, because its members have different names in every dialect. Reads the corpus'
`expected/`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from streamweld.events import ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld.response import Choice, Response

__all__ = ["differing"]

ERROR_HEAD = 200  # number of characters of an error that the corpus stores
CHAT_NUMBERS = ("prompt_tokens", "completion_tokens", "total_tokens")


def said_of(value: Any) -> Any:
    """Return a usage object without its empty members. Other readers add such members."""
    if isinstance(value, dict):
        members = {key: said_of(member) for key, member in value.items()}
        return {key: member for key, member in members.items() if member is not None and member != {}}
    return value


def within(part: Any, whole: Any) -> bool:
    """Return True if `whole` contains every member of `part`. Other readers drop usage members that they do not
    support.
    """
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and within(member, whole[key]) for key, member in part.items())
    return bool(part == whole)


def calls_of(
    calls: Sequence[ToolCall], expected: list[dict[str, Any]], results: dict[str, Any], *, spelt: bool
) -> list[dict[str, Any]]:
    """Convert streamweld's calls to the form of `expected`. Data that the other readers omitted or had to invent are
    not compared.

    `spelt`: arguments are compared as sent; otherwise as JSON values.
    """
    rows: list[dict[str, Any]] = [{"id": c.call_id, "name": c.name, "arguments": c.arguments} for c in calls]
    for row, call, wanted in zip(rows, calls, expected, strict=False):
        if "id" not in wanted:
            del row["id"]
        if "arguments" not in wanted and (row["arguments"] == "" or not spelt):
            del row["arguments"]
        elif not spelt and "arguments" in wanted and means(call.arguments) == means(wanted["arguments"]):
            row["arguments"] = wanted["arguments"]
        if "item_id" in wanted:
            row["item_id"] = call.item_id
        if "state" in wanted:
            if wanted["state"] == "input-streaming":
                row["arguments"] = wanted["arguments"]  # repaired by the other reader
            row["state"] = wanted["state"]  # the state of the application's message, not of the call
        if "custom" in wanted:
            row["custom"] = call.custom
        if "providerExecuted" in wanted:
            row["providerExecuted"] = call.provider_executed
        for key in ("output", "errorText"):
            if key in wanted:
                row[key] = results.get(call.call_id)
    return rows


def means(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments) or {} if arguments.strip() else {}
    except ValueError:
        return arguments


def reason_of(expected: Any, response: Response) -> tuple[Any, Any]:
    """Return streamweld's finish reason and the expected one. AI SDK parts have two reasons: the SDK's word, and the
    provider's.
    """
    if isinstance(expected, dict):
        return response.raw_finish_reason, expected.get("unified")
    return response.raw_finish_reason, expected


def differing(dialect: str, response: Response, expected: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return field -> (ours, expected) for the fields that differ."""
    spelt = dialect == "chat"
    results = {item.call_id: item.output for item in response.items if isinstance(item, ToolResult)}
    pairs: dict[str, tuple[Any, Any]] = {
        "text": (response.text, expected.get("text")),
        "finish_reason": reason_of(expected.get("finish_reason"), response),
    }
    for key in ("tool_calls", "server_tool_calls"):
        if key in expected:
            calls: Sequence[ToolCall] = getattr(response, key)
            if dialect.startswith("ai-sdk"):  # AI SDK peers report both in one list
                calls = [item for item in response.items if isinstance(item, ToolCall)]
            pairs[key] = (calls_of(calls, expected[key], results, spelt=spelt), expected[key])
    for key in ("reasoning", "refusal"):
        if key in expected:
            pairs[key] = (getattr(response, key), expected[key])
    if "errors" in expected:
        # AI SDK readers continue after an error and derive a finish reason from it.
        del pairs["finish_reason"]
        head = slice(ERROR_HEAD)
        pairs["errors"] = ([response.error.message[head]] if response.error else [], expected["errors"][:1])
    elif said_of(expected.get("usage")):
        usage = response.usage
        raw, wanted = said_of(usage.raw if usage else None), said_of(expected["usage"])
        pairs["usage"] = (wanted if within(wanted, raw) else raw, wanted)
        if dialect == "chat":
            ours = [getattr(usage, key, None) for key in ("input_tokens", "output_tokens", "total_tokens")]
            pairs["numbers"] = (ours, [expected["usage"].get(key) for key in CHAT_NUMBERS])
    if "choices" in expected:
        rows = [choice_of(c, row, spelt=spelt) for c, row in zip(response.choices, expected["choices"], strict=False)]
        pairs["choices"] = (rows, expected["choices"])
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def choice_of(choice: Choice, expected: dict[str, Any], *, spelt: bool) -> dict[str, Any]:
    return {
        "index": choice.index,
        "text": choice.text,
        "finish_reason": choice.raw_finish_reason,
        "tool_calls": calls_of(choice.tool_calls, expected["tool_calls"], {}, spelt=spelt),
    }
