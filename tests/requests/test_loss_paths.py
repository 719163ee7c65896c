"""Every loss is a JSON pointer to a member of the request that the caller passed.

Also if the request uses another name for a member than the API, as SDKs do, or if the lost option was derived from
another one.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamweld import requests
from streamweld.errors import HistoryError
from streamweld.history import Conversion, HistoryPolicy, convert

from tests.conftest import FULL
from tests.history.judge.agents import load
from tests.history.judge.matrix import plain, routes
from tests.requests.generate import SOURCES, request

SEEDS = range(60 if FULL else 8)
KEEP = HistoryPolicy(on_unfixable="keep")
ROUTES = pytest.mark.parametrize("route", routes(), ids=lambda route: f"{route[0]}-{plain(route[1])}")


def at(document: Any, pointer: str) -> Any:
    """Return the value that a JSON pointer (RFC 6901) refers to."""
    first, *steps = pointer.split("/")
    assert first == ""
    assert steps, "a pointer to the whole request does not show what was lost"
    for step in steps:
        name = step.replace("~1", "/").replace("~0", "~")
        document = document[int(name)] if isinstance(document, list) else document[name]
    return document


def dangling(given: Any, done: Conversion) -> list[str]:
    found = []
    for loss in done.losses:
        try:
            at(given, loss.path)
        except (AssertionError, KeyError, IndexError, ValueError, TypeError):
            found.append(f"{loss.feature} {loss.path}")
    return found


def snake(name: str) -> str:
    return "".join([f"_{letter.lower()}" if letter.isupper() else letter for letter in name])


def respelled(given: dict[str, Any], source: str, seed: int) -> dict[str, Any]:
    """Return the request with members and spellings that clients send beside the API's own."""
    made = json.loads(json.dumps(given, default=lambda blob: blob.hex()))
    if source == "gemini":
        generation = {snake(name): value for name, value in made.pop("generationConfig", {}).items()}
        own = ("systemInstruction", "tools", "toolConfig", "safetySettings")
        config = {snake(name): made.pop(name) for name in own if name in made}
        made["config"] = {**generation, "unheard_of": 1, "top_k": 1009, **config}
    elif source == "openai-chat":
        functions = [tool["function"] for tool in made.pop("tools", []) if "function" in tool]
        if functions and seed % 2:
            made |= {"functions": functions, "function_call": "auto"}
            del made["tool_choice"]
        elif functions:
            tools = [{"type": "function", "function": {**f, "unheard_of": 1}, "cache/ttl~": 1} for f in functions]
            made["tools"] = tools
    elif source == "ai-sdk-model":
        made |= {"system": "be brief", "prompt": "and now?"}
        if "tools" in made:
            made["tools"] = {tool["name"]: {**tool, "unheard/of": {"~": 1}} for tool in made["tools"]}
    elif source == "bedrock-converse" and "toolConfig" in made:
        made["toolConfig"]["tools"].insert(1, {"cachePoint": {"type": "default"}})
    elif source == "responses":
        made["tools"] = [*made.get("tools", []), {"type": "web_search", "filters": {"allowed_domains": ["a.example"]}}]
    elif source == "anthropic":
        made["tools"] = [*made.get("tools", []), {"type": "web_fetch_20250910", "name": "web_fetch", "max_uses": 3}]
    return made


@ROUTES
def test_random_requests(route: tuple[str, str]) -> None:
    target, gateway = route
    converted, losses = 0, 0
    for source in SOURCES:
        for seed in SEEDS:
            own, _ = request(seed, source, broken=seed % 2 == 1)
            for given in (own, respelled(own, source, seed)):
                try:
                    done = requests.convert(given, source=source, target=target, gateway=gateway, policy=KEEP)
                except HistoryError:
                    continue
                assert dangling(given, done) == [], (seed, source)
                converted, losses = converted + 1, losses + len(done.losses)
    assert converted > len(SEEDS)
    assert losses > len(SEEDS)


@ROUTES
def test_histories_of_agents(route: tuple[str, str]) -> None:
    target, gateway = route
    for history in load():
        source: Any = history.source
        whole = requests.convert(history.request, source=source, target=target, gateway=gateway, policy=KEEP)
        assert dangling(history.request, whole) == [], history.name
        alone = convert(history.request, source=source, target=target, gateway=gateway, policy=KEEP)
        assert dangling(history.request, alone) == [], history.name
