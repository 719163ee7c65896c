"""The judge applied to every agent history on every route, and to payloads that it must reject.

`known_faults.json` lists the remaining faults, by route and history. New faults fail the test; fixed faults must be
removed from the list.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from streamweld import requests

from tests.conftest import FULL
from tests.history.judge.agents import load
from tests.history.judge.matrix import Verdict, node_faults, plain, routes, verdict
from tests.history.judge.variations import BEDROCK
from tests.history.judge.vendors import RULES, judge

if TYPE_CHECKING:
    from tests.support.clients.node_side import Node

KNOWN = Path(__file__).with_name("known_faults.json")
AGENTS = {
    "claude-code",
    "codex",
    "opencode",
    "cline",
    "gemini-cli",
    "langgraph",
    "pydantic-ai",
    "agents-sdk",
    "use-chat",
}


def known() -> dict[str, list[str]]:
    """Return the codes of the known faults, keyed by `target/gateway <- history`."""
    return dict(json.loads(KNOWN.read_text("utf-8"))["faults"])


def codes(found: Verdict) -> set[str]:
    return {fault.split(" ", 1)[0] for fault in found.faults}


def test_there_are_enough_histories() -> None:
    histories = load()
    assert len(histories) >= 120
    assert {one.name.partition("/")[0] for one in histories} == AGENTS
    assert len({one.name for one in histories}) == len(histories)


@pytest.mark.parametrize("route", routes(), ids=lambda route: f"{route[0]}-{plain(route[1])}")
@pytest.mark.parametrize("whole", [False, True], ids=["history", "request"])
def test_every_history(route: tuple[str, str], whole: bool) -> None:
    target, gateway = route
    allowed = known()
    worse = []
    for history in load():
        found = verdict(history, target, gateway, whole=whole)
        more = codes(found) - set(allowed.get(f"{target}/{found.gateway} <- {history.name}", ()))
        if more:
            worse.append((history.name, [fault for fault in found.faults if fault.split(" ", 1)[0] in more]))
    assert not worse


def test_the_ai_sdk_takes_what_is_for_it(node: Node) -> None:
    allowed = known()
    ours = [route for route in routes() if route[0].startswith("ai-sdk")]
    found = [verdict(history, target, gateway) for target, gateway in ours for history in load()]
    for one in found:
        one.faults = []
    node_faults(node, found)
    worse = [
        (one.history.name, one.faults)
        for one in found
        if one.faults and "NODE" not in allowed.get(f"{one.target}/{one.gateway} <- {one.history.name}", ())
    ]
    assert not worse


ASKED: Any = {"role": "user", "content": "hi"}
CALL: Any = {"id": "call_1", "type": "function", "function": {"name": "get", "arguments": "{}"}}
CALLED: Any = {"role": "assistant", "content": None, "tool_calls": [CALL]}
SIGNED: Any = {"google": {"thought_signature": "c2ln"}}
THOUGHT: Any = {"type": "thinking", "thinking": "x", "signature": "s"}
TOLD: Any = {"role": "tool", "tool_call_id": "call_1", "content": "ok"}
USE: Any = {"type": "tool_use", "id": "toolu_1", "name": "get", "input": {}}
RESULT: Any = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}]}
ITEM: Any = {"type": "function_call", "call_id": "c1", "name": "get", "arguments": "{}"}
OUTPUT: Any = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
EASY: Any = {"type": "message", "role": "user", "content": "hi"}
SAID: Any = {"role": "user", "parts": [{"text": "hi"}]}
ASKS: Any = {"role": "model", "parts": [{"functionCall": {"name": "get", "args": {}}, "thoughtSignature": "c2ln"}]}
ANSWERS: Any = {"role": "user", "parts": [{"functionResponse": {"name": "get", "response": {"a": 1}}}]}
TURN: Any = {"role": "user", "content": [{"text": "hi"}]}


def picture(data: Any) -> dict[str, Any]:
    image = {"image": {"format": "png", "source": {"bytes": data}}}
    return {"messages": [{"role": "user", "content": [{"text": "hi"}, image]}]}


# Code, target, gateway, a payload that the vendor rejects, and one that it accepts.
WRONG: list[tuple[str, str, str, Any, Any]] = [
    ("TYPE", "openai-chat", "openai-chat", {"messages": [{**ASKED, "cache": 1}]}, {"messages": [ASKED]}),
    ("PAIR", "openai-chat", "openai-chat", {"messages": [ASKED, CALLED]}, {"messages": [ASKED, CALLED, TOLD]}),
    ("PAIR", "openai-chat", "openai-chat", {"messages": [ASKED, TOLD]}, {"messages": [ASKED, CALLED, TOLD]}),
    (
        "ID",
        "openai-chat",
        "openai-chat",
        {"messages": [ASKED, CALLED, TOLD, CALLED, TOLD]},
        {"messages": [ASKED, CALLED, TOLD]},
    ),
    (
        "NAME",
        "openai-chat",
        "openai-chat",
        {"messages": [ASKED, {**CALLED, "tool_calls": [{**CALL, "function": {"name": "a b", "arguments": ""}}]}, TOLD]},
        {"messages": [ASKED, CALLED, TOLD]},
    ),
    ("EMPTY", "openai-chat", "openai-chat", {"messages": [ASKED, {"role": "assistant"}]}, {"messages": [ASKED]}),
    (
        "REASON",
        "openai-chat",
        "deepseek",
        {"messages": [ASKED, CALLED, TOLD]},
        {"messages": [ASKED, {**CALLED, "reasoning_content": ""}, TOLD]},
    ),
    (
        "REASON",
        "openai-chat",
        "litellm",
        {"messages": [ASKED, {"role": "assistant", "content": "x", "thinking_blocks": [{**THOUGHT, "signature": ""}]}]},
        {"messages": [ASKED, {"role": "assistant", "content": "x", "thinking_blocks": [THOUGHT]}]},
    ),
    (
        "TYPE",
        "openai-chat",
        "litellm",
        {"messages": [ASKED, {"role": "assistant", "content": "x", "thinking_blocks": [{"type": "thinking"}]}]},
        {"messages": [ASKED, {"role": "assistant", "content": "x", "thinking_blocks": [THOUGHT]}]},
    ),
    (
        "SIGN",
        "openai-chat",
        "gemini-openai",
        {"messages": [ASKED, CALLED, TOLD]},
        {"messages": [ASKED, {**CALLED, "tool_calls": [{**CALL, "extra_content": SIGNED}]}, TOLD]},
    ),
    (
        "REASON",
        "openai-chat",
        "gemini-openai",
        {"messages": [ASKED, {"role": "assistant", "content": "x", "reasoning_content": "y"}]},
        {"messages": [ASKED, {"role": "assistant", "content": "x", "extra_content": SIGNED}]},
    ),
    ("ROLE", "openai-chat", "kimi", {"messages": [{"role": "developer", "content": "x"}]}, {"messages": [ASKED]}),
    (
        "KIND",
        "openai-chat",
        "deepseek",
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a"}}]}]},
        {"messages": [ASKED]},
    ),
    ("MISTRAL", "mistral", "mistral", {"messages": [{**ASKED, "extra": 1}]}, {"messages": [ASKED]}),
    ("PAIR", "responses", "openai-responses", {"input": [EASY, ITEM]}, {"input": [EASY, ITEM, OUTPUT]}),
    (
        "REASON",
        "responses",
        "openai-responses",
        {"input": [EASY, {"type": "reasoning", "id": "rs_1", "summary": []}]},
        {"input": [EASY, {"type": "reasoning", "id": "rs_1", "summary": []}, ITEM, OUTPUT]},
    ),
    (
        "STORE",
        "responses",
        "openai-responses",
        {"store": False, "input": [EASY, {"type": "reasoning", "id": "rs_1", "summary": []}, ITEM, OUTPUT]},
        {"store": True, "input": [EASY, {"type": "reasoning", "id": "rs_1", "summary": []}, ITEM, OUTPUT]},
    ),
    (
        "ITEM",
        "responses",
        "openai-responses",
        {"input": [EASY, {**ITEM, "id": "x_1"}, OUTPUT]},
        {"input": [EASY, {**ITEM, "id": "fc_1"}, OUTPUT]},
    ),
    (
        "TYPE",
        "responses",
        "vllm-responses",
        {"input": [EASY, {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}]},
        {
            "input": [
                EASY,
                {
                    "type": "message",
                    "id": "msg_1",
                    "status": "completed",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "x", "annotations": []}],
                },
            ]
        },
    ),
    (
        "SCHEMA",
        "responses",
        "openrouter",
        {"input": [EASY, {"type": "shell_call", "call_id": "c1", "action": {}}]},
        {"input": [EASY]},
    ),
    ("USER", "responses", "vercel-ai-gateway", {"input": [{**EASY, "role": "developer"}]}, {"input": [EASY]}),
    ("ORDER", "anthropic", "anthropic", {"messages": [{"role": "assistant", "content": "x"}]}, {"messages": [ASKED]}),
    (
        "PAIR",
        "anthropic",
        "anthropic",
        {"messages": [ASKED, {"role": "assistant", "content": [USE]}, ASKED]},
        {"messages": [ASKED, {"role": "assistant", "content": [USE]}, RESULT]},
    ),
    (
        "REASON",
        "anthropic",
        "anthropic",
        {
            "messages": [
                ASKED,
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": ""}]},
            ]
        },
        {
            "messages": [
                ASKED,
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": "s"}]},
            ]
        },
    ),
    (
        "PREFILL",
        "anthropic",
        "anthropic",
        {"model": "claude-opus-4-6", "messages": [ASKED, {"role": "assistant", "content": "x"}]},
        {"model": "claude-opus-4-5", "messages": [ASKED, {"role": "assistant", "content": "x"}]},
    ),
    (
        "SERVER",
        "anthropic",
        "anthropic",
        {
            "messages": [
                ASKED,
                {
                    "role": "assistant",
                    "content": [{"type": "web_search_tool_result", "tool_use_id": "s", "content": []}],
                },
            ]
        },
        {
            "messages": [
                ASKED,
                {
                    "role": "assistant",
                    "content": [
                        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
                        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
                    ],
                },
            ]
        },
    ),
    ("PAIR", "gemini", "gemini", {"contents": [SAID, ASKS]}, {"contents": [SAID, ASKS, ANSWERS]}),
    ("ORDER", "gemini", "gemini", {"contents": [ASKS, ANSWERS]}, {"contents": [SAID, ASKS, ANSWERS]}),
    (
        "SIGN",
        "gemini",
        "gemini",
        {"contents": [SAID, {"role": "model", "parts": [{"functionCall": {"name": "get", "args": {}}}]}, ANSWERS]},
        {"contents": [SAID, ASKS, ANSWERS]},
    ),
    ("MEDIA", "bedrock-converse", "bedrock-converse", picture("iVBO"), picture(b"\x89PNG")),
]


@pytest.mark.parametrize(("code", "target", "gateway", "wrong", "right"), WRONG)
def test_the_judge_tells_right_from_wrong(code: str, target: str, gateway: str, wrong: Any, right: Any) -> None:
    assert code in {fault.split(" ", 1)[0] for fault in judge(target, gateway, wrong)}
    assert judge(target, gateway, right) == []


def test_every_rule_has_its_case() -> None:
    assert {row[0] for row in WRONG} == set(RULES) - {"NODE"}  # tests/history/test_node.py tests NODE


def test_bedrocks_shapes() -> None:
    found = judge("bedrock-converse", "bedrock-converse", {"messages": [{"role": "user", "content": [{"txt": "hi"}]}]})
    assert any(fault.startswith("TYPE") for fault in found)
    assert judge("bedrock-converse", "bedrock-converse", {"messages": [TURN]}) == []


@pytest.mark.parametrize("name", BEDROCK)
def test_histories_of_bedrock(name: str) -> None:
    """Histories in the form that boto3 uses, with media as bytes. botocore's service model validates them."""
    given = BEDROCK[name]
    assert judge("bedrock-converse", "bedrock-converse", given) == []
    tokens = re.findall(r"tok[a-z]+", json.dumps(given["messages"], default=bytes.hex))
    for target, gateway in routes() if FULL else [("bedrock-converse", "bedrock-converse"), ("anthropic", "anthropic")]:
        done: Any = requests.convert(given, source="bedrock-converse", target=target, gateway=gateway)  # type: ignore[arg-type]
        assert judge(target, plain(gateway), done.payload) == [], (target, gateway)
        payload_of = json.dumps([one.to_dict() for one in (*done.edits, *done.losses)], default=str)
        body = json.dumps(done.payload, default=str)
        assert not [token for token in tokens if token not in body and token not in payload_of], (target, gateway)
        again: Any = requests.convert(done.payload, source=target, target=target, gateway=gateway)  # type: ignore[arg-type]
        assert (again.payload, again.edits, again.losses) == (done.payload, (), ()), (target, gateway)
