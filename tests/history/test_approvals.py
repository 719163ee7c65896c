"""Approvals of tool calls, checked with the AI SDK: its validation, its conversion, and the tools that it runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from streamweld.history import convert

from tests.support.places import VECTORS

if TYPE_CHECKING:
    from tests.support.clients.node_side import Node

CASES = json.loads((VECTORS / "history" / "approvals.json").read_text("utf-8"))
UI = {
    test["name"]: side["messages"]
    for test in CASES["tests"]
    for target, side in ((test.get("source"), test), (test["target"], test["payload"]))
    if target == "ai-sdk-ui"
}


def question(state: str, **approval: Any) -> list[Any]:
    part = {"type": "tool-pay", "toolCallId": "t1", "state": state, "input": {"eur": 5}}
    return [
        {"id": "u", "role": "user", "parts": [{"type": "text", "text": "pay"}]},
        {"id": "a", "role": "assistant", "parts": [{**part, "approval": {"id": "p1", **approval}}]},
    ]


def bare(messages: Any) -> Any:
    """Remove undefined members, and replace a content list that contains only a text with that text."""
    out = []
    for message in json.loads(json.dumps(messages)):
        content = message["content"]
        if isinstance(content, list) and len(content) == 1 and content[0].keys() == {"type", "text"}:
            message = {**message, "content": content[0]["text"]}
        out.append(message)
    return out


@pytest.mark.parametrize("name", UI)
def test_ui_messages_are_valid_and_mean_what_the_ai_sdk_reads(node: Node, name: str) -> None:
    """streamweld's ModelMessages equal those that `convertToModelMessages` creates from the same UIMessages."""
    made = convert(UI[name], source="ai-sdk-ui", target="ai-sdk-ui")
    theirs = node.ask("ui.model", messages=made.payload["messages"])
    superseded = "supersede" in name  # the AI SDK drops such a call, and streamweld adds a result; both can be sent
    if not superseded:
        ours = convert(UI[name], source="ai-sdk-ui", target="ai-sdk-model")
        assert bare(ours.payload["messages"]) == bare(theirs)


@pytest.mark.parametrize("route", ["ai-sdk-ui", "ai-sdk-model"])
@pytest.mark.parametrize("approved", [True, False])
def test_an_approved_tool_runs_and_a_denied_one_does_not(node: Node, route: str, approved: bool) -> None:
    given = convert(question("approval-responded", approved=approved), target=route)
    assert given.edits == ()
    messages = given.payload["messages"]
    if route == "ai-sdk-ui":
        messages = node.ask("ui.model", messages=messages)
    done = node.ask("approvals.run", messages=messages, toolName="pay")
    assert "error" not in done
    assert done["ran"] == ([{"eur": 5}] if approved else [])
    assert done["sent"][-1]["role"] == "tool"
    assert done["sent"][-1]["content"] == ("done" if approved else "Tool call execution denied.")


def test_there_and_back_an_approved_tool_still_runs(node: Node) -> None:
    there = convert(question("approval-responded", approved=True, reason="ok"), target="ai-sdk-model")
    back = convert(there.payload, source="ai-sdk-model", target="ai-sdk-ui")
    assert (
        back.payload["messages"][1]["parts"] == question("approval-responded", approved=True, reason="ok")[1]["parts"]
    )
    done = node.ask("approvals.run", messages=node.ask("ui.model", messages=back.payload["messages"]), toolName="pay")
    assert done["ran"] == [{"eur": 5}]


def test_a_request_waits(node: Node) -> None:
    given = question("approval-requested")
    assert convert(given, target="ai-sdk-ui").payload["messages"] is given
    made = convert(given, target="ai-sdk-model")
    assert made.edits == ()
    assert bare(made.payload["messages"]) == bare(node.ask("ui.model", messages=given))
