"""A growing conversation: each request begins with the previous one, byte for byte, with any options, even if reasoning
first appears in the third turn.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamweld import requests
from streamweld.history import HistoryPolicy

from tests.history.judge.agents import AgentHistory, load
from tests.history.judge.matrix import plain, routes

KEEP = requests.RequestPolicy(history=HistoryPolicy(on_unfixable="keep"))
MEMBERS = {"responses": "input", "gemini": "contents"}
# Gateways with a rule that requires changes to earlier turns. Azure accepts only one reasoning item per request, the
# newest: https://github.com/NousResearch/hermes-agent/issues/101243
MOVES = {"azure-openai"}
GROWING = [one for one in load() if one.name.endswith(("/thinking-from-third-turn", "/loop", "/many-turns"))]
OPTIONS: Any = {
    "openai-chat": [{}, {"reasoning_effort": "high", "store": False}],
    "responses": [{}, {"reasoning": {"effort": "high"}, "store": False}],
    "anthropic": [{}, {"thinking": {"type": "adaptive"}, "max_tokens": 9000}],
}


def member(dialect: str) -> str:
    return MEMBERS.get(dialect, "messages")


def cuts(history: AgentHistory) -> list[int]:
    """Return the positions at which a request may end: after a user message or tool results."""
    items = history.request[member(history.source)]
    found = []
    for count in range(1, len(items)):
        last, after = items[count - 1], items[count]
        answers = after.get("role") in ("assistant", "model") or after.get("type") in ("reasoning", "function_call")
        shown = last.get("role") in ("user", "tool") or str(last.get("type")).endswith("_output")
        if shown and answers and last.get("role") != "assistant":
            found.append(count)
    return [*found, len(items)]


@pytest.mark.parametrize("route", routes(), ids=lambda route: f"{route[0]}-{plain(route[1])}")
def test_a_longer_request_begins_with_the_shorter_one(route: tuple[str, str]) -> None:
    target, gateway = route
    if plain(gateway) in MOVES and target == "responses":
        return
    compared = 0
    for history in GROWING:
        if history.source == "ai-sdk-ui":
            continue
        for more in OPTIONS.get(history.source, [{}]):
            items = history.request[member(history.source)]
            before: list[str] = []
            head = ""
            for count in cuts(history):
                given = {**history.request, **more, member(history.source): items[:count]}
                done = requests.convert(given, source=history.source, target=target, gateway=gateway, policy=KEEP)  # type: ignore[arg-type]
                body = [json.dumps(item, default=repr) for item in done.payload[member(target)]]
                lead = json.dumps(
                    [done.payload.get(name) for name in ("system", "instructions", "systemInstruction", "tools")]
                )
                kept = len(before) - (1 if target in ("anthropic", "bedrock-converse", "gemini", "ai-sdk-ui") else 0)
                assert body[: max(kept, 0)] == before[: max(kept, 0)], (history.name, count)
                assert not head or lead == head, (history.name, count)
                before, head = body, lead
                compared += 1
    assert compared > 60
