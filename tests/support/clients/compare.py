"""Compares the result of a client with the expected result, and reports the differences that no listed loss explains.

For each client, the module lists the finish words and the parts of a response that the client cannot represent. It
refers to the losses in `conversions.json` by id.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.clients.expected import COUNTS, number, usage_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.clients.expected import Call, Expected

PYTHON = {
    "chat": ("openai chat.completions.stream", "openai chat.completions.create"),
    "responses": ("openai responses.stream", "openai responses.create"),
    "anthropic": ("anthropic messages.stream",),
    "gemini": ("google-genai generate_content_stream",),
}
NODE_SDK = {
    "chat": ("openai-node chat.completions.stream",),
    "responses": ("openai-node responses.stream",),
    "anthropic": ("@anthropic-ai/sdk messages.stream",),
}
NODE_AI = {
    "chat": ("@ai-sdk/openai chat", "@ai-sdk/openai-compatible"),
    "responses": ("@ai-sdk/openai responses", "@ai-sdk/open-responses"),
    "anthropic": ("@ai-sdk/anthropic",),
    "gemini": ("@ai-sdk/google",),
    "ai-sdk-parts": ("@ai-sdk/gateway", "streamText over our parts"),
    "ai-sdk-ui": ("useChat", "readUIMessageStream"),
}
PYTHON_NAMES = frozenset(name for names in PYTHON.values() for name in names)
TARGETS = tuple(NODE_AI)
# These clients drop reasoning from every stream, including streams of their own vendor.
NO_REASONING = frozenset({"@ai-sdk/openai chat"})
SUMMARIES_ALONE = "@ai-sdk/openai responses"
REASONING_TEXT_ALONE = "@ai-sdk/open-responses"
# These clients present a refusal as text, and some also change its finish reason.
REFUSAL_IS_TEXT = frozenset({"@ai-sdk/openai responses", "@ai-sdk/openai chat", "@ai-sdk/openai-compatible"})
NO_CUSTOM_CALLS = "@ai-sdk/open-responses"
CUSTOM_IS_TEXT = "@ai-sdk/openai responses"
# These clients use the first element of `choices` or `candidates` as the response, regardless of its index.
ONE_CHOICE = frozenset({"@ai-sdk/openai chat", "@ai-sdk/openai-compatible", "@ai-sdk/google"})
# `done` means that the client reports a successful end but not whether calls are pending.
WORDS = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    "completed": "done",
    "max_output_tokens": "length",
    "end_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
    "STOP": "done",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "OTHER": "other",
    "tool-calls": "tool_calls",
    "content-filter": "content_filter",
    "error": "error",
    "other": "other",
}
# These clients list calls in the order in which they began; all others list them in the order in which they completed.
IN_ORDER = frozenset((*PYTHON["chat"], *NODE_SDK["chat"]))
# These clients treat every item as complete, regardless of its status.
NO_STATUS = frozenset(NODE_AI["responses"])
ANTHROPIC = frozenset((*PYTHON["anthropic"], *NODE_SDK["anthropic"], *NODE_AI["anthropic"]))
RUNNABLE_STATES = ("input-available", "output-available", "output-error")  # states of the parts of a UIMessage


def finish_of(held: dict[str, Any]) -> str | None:
    word = held["finish"]
    return None if word is None else WORDS.get(word, "unfinished")


def is_success(held: dict[str, Any]) -> bool:
    """Return True if an application would continue: calls can run, or nothing was raised and the finish reason is a
    successful one."""
    if held.get("ran"):
        return True
    finish = finish_of(held)
    calls = runnable(held, custom=True)
    return held["error"] is None and (finish in ("stop", "done") or (finish == "tool_calls" and bool(calls)))


def number_of(digits: str) -> int | float:
    """Return the number as JavaScript represents it: a float above 53 bits."""
    value = int(digits)
    return value if abs(value) <= 2**53 else float(value)


def value_of(text: Any, *, exact: bool = False) -> Any:
    try:
        return json.loads(text, parse_int=int if exact else number_of)
    except (TypeError, ValueError):
        return None


def is_input(value: Any, custom: bool) -> bool:
    return isinstance(value, dict) or (custom and isinstance(value, str))


def runnable(held: dict[str, Any], *, custom: bool = False) -> list[dict[str, Any]]:
    """Return the calls that an application would run. With `custom`, a call whose input is a string is a free-form
    call.
    """
    return [
        call
        for call in held["calls"]
        if not (call.get("server") or call.get("invalid"))
        and call.get("status") in (None, "completed")
        and ("state" not in call or (call["state"] in RUNNABLE_STATES and "raw" not in call))
        and (
            call.get("custom")
            or is_input(value_of(call["arguments"]) if "arguments" in call else call["input"], custom)
        )
    ]


def usage_held(held: dict[str, Any]) -> dict[str, int | None] | None:
    raw = held["usage"]
    if raw is None:
        return None
    if "prompt_tokens" in raw:
        return usage_of("chat", raw)
    if any(name.endswith("_token_count") for name in raw):
        names = ("prompt", "candidates", "thoughts", "total", "cached_content")
        counted = {name: number(raw, f"{name}_token_count") for name in names}
        keys = ("prompt", "candidates", "thoughts", "total", "cachedContent")
        return usage_of("gemini", {f"{key}TokenCount": counted[name] for key, name in zip(keys, names, strict=True)})
    if "input_tokens" in raw:
        return usage_of("responses" if "total_tokens" in raw else "anthropic", raw)
    return usage_of("ai-sdk-ui", raw)


def due(call: Call, target: str) -> tuple[str, bool]:
    """Return the arguments that a client of the target must report, and whether their exact text is known."""
    if call.custom and target != "responses":
        return json.dumps({"input": call.arguments}, ensure_ascii=False, separators=(",", ":")), True
    return call.arguments, call.spelt


def calls_due(client: str, expected: Expected, source: str, losses: frozenset[str]) -> tuple[Call, ...]:
    calls = expected.calls
    if client == NO_CUSTOM_CALLS:
        calls = tuple(call for call in calls if not call.custom)
    if source == "ai-sdk-ui" and client in ANTHROPIC and "server_tool" in losses:
        # The application must not run a call that already has a result.
        calls = tuple(call for call in calls if call.id not in expected.answered)
    return calls


def differing_calls(
    client: str, held: dict[str, Any], expected: Expected, calls: tuple[Call, ...], target: str, losses: frozenset[str]
) -> Iterator[str]:
    there = [call for call in runnable(held, custom=client == CUSTOM_IS_TEXT) if call["id"] not in expected.refused]
    if client in NO_STATUS and expected.unfit and finish_of(held) not in ("stop", "tool_calls"):
        known = {call.id for call in calls}
        there = [call for call in there if call["id"] in known]  # the calls of a truncated response are not run
    if len(there) != len(calls):
        yield f"{len(there)} calls, not {len(calls)}: {held['calls']}"
        return
    if finish_of(held) == "tool_calls" and not expected.refused:
        ran = held.get("ran", [call["id"] for call in there])
        if sorted(ran) != sorted(call["id"] for call in there):
            yield f"ran {ran}, not {there}"
    seen = {call["id"] for call in there}
    if len(seen) != len(there) or not all(isinstance(name, str) and name.strip() for name in seen):
        yield f"ids {[call['id'] for call in there]}"
    if client not in IN_ORDER and all(call.id for call in calls):
        places = {call.id: at for at, call in enumerate(calls)}
        there.sort(key=lambda call: places.get(call["id"], -1))
    for call, wanted in zip(there, calls, strict=True):
        text, spelt = due(wanted, target)
        if call["name"] != wanted.name or (wanted.id is not None and call["id"] != wanted.id):
            yield f"call {call['id']} {call['name']}, not {wanted.id} {wanted.name}"
        free = wanted.custom and target == "responses"
        if "arguments" in call and spelt and "arguments_spelling" not in losses:
            if call["arguments"] != text:
                yield f"arguments {call['arguments']}, not {text}"
        elif "arguments" in call and (call["arguments"] if free else value_of(call["arguments"])) != (
            text if free else value_of(text)
        ):
            yield f"arguments {call['arguments']}, not {text} in value"
        exact = client in PYTHON_NAMES
        if "input" in call and call["input"] != (text if free else value_of(text, exact=exact)):
            yield f"input {call['input']}, not {text}"


def differing_finish(expected: Expected, held: dict[str, Any], losses: frozenset[str]) -> Iterator[str]:
    got = finish_of(held)
    if {"invalid_call", "nameless_call", "cut_call", "server_tool"} & losses or expected.unfit or expected.answered:
        return
    wanted = expected.finish
    if wanted == "other" and "finish" in losses:
        wanted = "stop"
    if wanted in ("stop", "tool_calls"):
        wanted = "tool_calls" if expected.calls else "stop"
        if got == "done":
            return
    if got != wanted:
        yield f"finish {held['finish']}, not {wanted}"


def differing_usage(expected: Expected, held: dict[str, Any], losses: frozenset[str]) -> Iterator[str]:
    got, wanted = usage_held(held), expected.usage
    if wanted is None or (got is None and not any(wanted.values())):
        if got is not None and any(got.values()):
            yield f"usage {got}, not none"
        return
    if got is None:
        yield f"no usage, not {wanted}"
        return
    if (wanted["reasoning"] or 0) > (wanted["output"] or 0) or (wanted["cached"] or 0) > (wanted["input"] or 0):
        return  # the total cannot be split into input and output
    for name in COUNTS:
        if (name == "reasoning" and "usage_detail" in losses) or (name == "total" and wanted[name] is None):
            continue
        if (got[name] or 0) != (wanted[name] or 0):
            yield f"usage {name} {got[name]}, not {wanted[name]}"


def may_raise(client: str, expected: Expected) -> bool:
    """Return True if the client may raise an exception: if a response ends with calls and none of them can be run, it
    may end in an error.
    """
    return expected.unfit and (client in ANTHROPIC or not expected.calls)


def differences(
    client: str, expected: Expected, held: dict[str, Any], *, source: str, target: str, losses: frozenset[str]
) -> Iterator[str]:
    """Yield a description of each difference for a stream that reached its end."""
    if client in ONE_CHOICE and expected.choices > 1:
        return
    if held["error"] is not None:
        if not may_raise(client, expected):
            yield f"raised {held['error']}"
        return
    if not (expected.restarted or "text_corrected" in losses):
        texts = {expected.text}
        if "refusal" in losses or client in REFUSAL_IS_TEXT:
            texts = {expected.text + expected.refusal, expected.refusal + expected.text}
        if held["text"] not in texts:
            yield f"text {held['text']!r}, not {expected.text!r}"
        if "refusal" in held and held["refusal"] != expected.refusal:
            yield f"refusal {held['refusal']!r}, not {expected.refusal!r}"
        shown = {expected.reasoning}
        if client in (SUMMARIES_ALONE, REASONING_TEXT_ALONE):
            shown.add("")
        elif client in NO_REASONING:
            shown = {""}
        if held["reasoning"] not in shown:
            yield f"reasoning {held['reasoning']!r}, not {expected.reasoning!r}"
    calls = calls_due(client, expected, source, losses)
    yield from differing_calls(client, held, expected, calls, target, losses)
    if not (expected.refusal and client in REFUSAL_IS_TEXT) and calls == expected.calls:
        yield from differing_finish(expected, held, losses)
    yield from differing_usage(expected, held, losses)
