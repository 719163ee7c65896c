"""The tools that a request lets the model call: a text call of any other tool stays text."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import openai
import pytest
import streamweld as sw
from streamweld.integrations._tools import declared_tools
from streamweld.integrations.openai import repair

from tests.proxy.test_proxy_convert import in_turn
from tests.support.servers.proxying import between
from tests.support.servers.upstream import Upstream, running
from tests.text_calls.support import FAMILIES, TOOLS, events
from tests.text_calls.test_loops import application

NAMES = ["read", "write", "run"]
SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}
CHAT = {"tools": [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in NAMES]}
LEGACY = {"functions": [{"name": name, "parameters": SCHEMA} for name in NAMES]}
RESPONSES = {"tools": [{"type": "function", "name": name, "parameters": SCHEMA} for name in NAMES]}
ANTHROPIC = {"tools": [{"name": name, "input_schema": SCHEMA} for name in NAMES]}
GEMINI = {"tools": [{"functionDeclarations": [{"name": name, "parameters": SCHEMA} for name in NAMES]}]}
SNAKE = {"tools": [{"function_declarations": [{"name": name, "parameters": SCHEMA} for name in NAMES]}]}
SPECS = [{"toolSpec": {"name": name, "inputSchema": {"json": SCHEMA}}} for name in NAMES]


def chat_tools(*names: str) -> list[Any]:
    return [{"type": "function", "function": {"name": name}} for name in names]


def own_tools(*names: str) -> list[Any]:
    return [{"type": "function", "name": name} for name in names]


def calling(**members: Any) -> dict[str, Any]:
    return {"toolConfig": {"functionCallingConfig": members}}


def chat_allowed(mode: str, *names: str) -> dict[str, Any]:
    allowed = {"mode": mode, "tools": chat_tools(*names)}
    return {"tool_choice": {"type": "allowed_tools", "allowed_tools": allowed}}


def allowed(mode: str, *names: str) -> dict[str, Any]:
    return {"tool_choice": {"type": "allowed_tools", "mode": mode, "tools": own_tools(*names)}}


def bedrock(**choice: Any) -> dict[str, Any]:
    return {"toolConfig": {"tools": SPECS, "toolChoice": choice}}


REQUESTS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "chat": (CHAT, NAMES),
    "chat, auto": (CHAT | {"tool_choice": "auto"}, NAMES),
    "chat, required": (CHAT | {"tool_choice": "required"}, NAMES),
    "chat, none": (CHAT | {"tool_choice": "none"}, []),
    "chat, null": (CHAT | {"tool_choice": None}, NAMES),
    "chat, a function": (
        CHAT | {"tool_choice": {"type": "function", "function": {"name": "read"}}},
        ["read"],
    ),
    "chat, a function that is not declared": (
        CHAT | {"tool_choice": {"type": "function", "function": {"name": "send"}}},
        [],
    ),
    "chat, a custom tool": (CHAT | {"tool_choice": {"type": "custom", "custom": {"name": "grep"}}}, []),
    "chat, allowed": (CHAT | chat_allowed("auto", "read", "write"), ["read", "write"]),
    "chat, allowed and required": (CHAT | chat_allowed("required", "read"), ["read"]),
    "chat, none is allowed": (CHAT | chat_allowed("auto"), []),
    "chat, a malformed list": (CHAT | {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": 1}}}, []),
    "functions": (LEGACY, NAMES),
    "functions, auto": (LEGACY | {"function_call": "auto"}, NAMES),
    "functions, none": (LEGACY | {"function_call": "none"}, []),
    "functions, a function": (LEGACY | {"function_call": {"name": "run"}}, ["run"]),
    "functions, no tool choice": (LEGACY | {"function_call": "none", "tool_choice": None}, []),
    "responses, auto": (RESPONSES | {"tool_choice": "auto"}, NAMES),
    "responses, a function": (RESPONSES | {"tool_choice": {"type": "function", "name": "write"}}, ["write"]),
    "responses, allowed": (RESPONSES | allowed("auto", "read", "run"), ["read", "run"]),
    "responses, allowed and required": (RESPONSES | allowed("required", "run"), ["run"]),
    "responses, a hosted tool": (RESPONSES | {"tool_choice": {"type": "web_search_preview"}}, NAMES),
    "anthropic, auto": (ANTHROPIC | {"tool_choice": {"type": "auto"}}, NAMES),
    "anthropic, any": (ANTHROPIC | {"tool_choice": {"type": "any"}}, NAMES),
    "anthropic, none": (ANTHROPIC | {"tool_choice": {"type": "none"}}, []),
    "anthropic, a tool": (ANTHROPIC | {"tool_choice": {"type": "tool", "name": "run"}}, ["run"]),
    "gemini, AUTO": (GEMINI | calling(mode="AUTO"), NAMES),
    "gemini, ANY": (GEMINI | calling(mode="ANY"), NAMES),
    "gemini, NONE": (GEMINI | calling(mode="NONE"), []),
    "gemini, names": (GEMINI | calling(mode="ANY", allowedFunctionNames=["read", "run"]), ["read", "run"]),
    "gemini, no names": (GEMINI | calling(mode="ANY", allowedFunctionNames=[]), NAMES),
    "gemini, names that are validated": (GEMINI | calling(mode="VALIDATED", allowedFunctionNames=["run"]), ["run"]),
    "gemini, names without effect": (GEMINI | calling(mode="AUTO", allowedFunctionNames=["read"]), NAMES),
    "gemini, other spellings": (
        SNAKE | {"tool_config": {"function_calling_config": {"mode": "any", "allowed_function_names": ["run"]}}},
        ["run"],
    ),
    "bedrock": ({"toolConfig": {"tools": SPECS}}, NAMES),
    "bedrock, auto": (bedrock(auto={}), NAMES),
    "bedrock, any": (bedrock(any={}), NAMES),
    "bedrock, a tool": (bedrock(tool={"name": "write"}), ["write"]),
    "an unknown choice": (CHAT | {"tool_choice": 7}, NAMES),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_the_tools_of_a_request(name: str) -> None:
    request, names = REQUESTS[name]
    assert declared_tools(request) == dict.fromkeys(names, SCHEMA)


LEAK = list(events(["I look.\n\n", FAMILIES["families"]["hermes"]], finish="stop", reasoning=""))
FUNCTIONS: list[Any] = [
    {"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in TOOLS.items()
]
CHOICES = [
    (chat_allowed("auto", "refresh")["tool_choice"], []),
    ({"type": "function", "function": {"name": "refresh"}}, []),
    ({"type": "function", "function": {"name": "run_shell"}}, ["run_shell"]),
    ("required", ["run_shell"]),
]


@pytest.mark.parametrize(("choice", "called"), CHOICES)
def test_a_repaired_client_promotes_what_the_choice_permits(choice: Any, called: list[str]) -> None:
    upstream = Upstream(in_turn(LEAK))
    with upstream.serving():
        client = repair(openai.OpenAI(base_url=upstream.url, api_key="k", max_retries=0), text_calls="promote")
        asked: list[Any] = [{"role": "user", "content": "?"}]
        with client.chat.completions.stream(model="m", messages=asked, tools=FUNCTIONS, tool_choice=choice) as answer:
            message = answer.get_final_completion().choices[0].message
    assert [call.function.name for call in message.tool_calls or ()] == called


@pytest.mark.parametrize(("choice", "called"), CHOICES)
def test_the_middleware_and_the_proxy_promote_what_the_choice_permits(choice: Any, called: list[str]) -> None:
    asked = {"model": "m", "messages": [], "stream": True, "tools": FUNCTIONS, "tool_choice": choice}
    app, _ = application(LEAK, text_calls="promote")
    with running(app) as url:
        inside = httpx2.post(f"{url}/v1/chat/completions", content=json.dumps(asked).encode()).content
    with between(Upstream(in_turn(LEAK)), text_calls="promote") as url:
        outside = httpx2.post(f"{url}/v1/chat/completions", content=json.dumps(asked).encode()).content
    for body in (inside, outside):
        assert [call.name for call in sw.parse(body).tool_calls] == called
