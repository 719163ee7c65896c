"""Options for the AI SDK, checked with the AI SDK: its providers send the options of the source request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld import requests
from streamweld.history import HistoryPolicy

from tests.requests.generate import request

if TYPE_CHECKING:
    from tests.support.clients.node_side import Node

KEEP = requests.RequestPolicy(history=HistoryPolicy(on_unfixable="keep"))
SEEDS = range(40)
# Members of a Chat Completions request that have the same name in the request that the AI SDK sends.
SAME = ("temperature", "top_p", "seed", "frequency_penalty", "presence_penalty", "parallel_tool_calls")
NOT_OPTIONS = ("messages", "model")


def test_chat_completions_come_back(node: Node) -> None:
    """A request that is converted for the AI SDK, and sent by its provider for the source API, has the same options,
    tools and tool choice.
    """
    cases = []
    for seed in SEEDS:
        given, _ = request(seed, "openai-chat")
        given.pop("parallel_tool_calls", None)  # a provider option in the AI SDK
        done = requests.convert(given, source="openai-chat", target="ai-sdk-model", policy=KEEP)
        options = {name: value for name, value in done.payload.items() if name not in NOT_OPTIONS}
        cases.append((given, done, options))
    answers = node.ask("options.requests", provider="openai-chat", many=[options for _, _, options in cases])
    tools = 0
    for (given, done, _), answer in zip(cases, answers, strict=True):
        assert "body" in answer, answer
        body = answer["body"]
        assert {name: body.get(name) for name in SAME} == {name: given.get(name) for name in SAME}
        wanted = given.get("max_completion_tokens", given.get("max_tokens"))
        assert body.get("max_completion_tokens", body.get("max_tokens")) == wanted
        stop = given.get("stop")
        assert body.get("stop") == ([stop] if isinstance(stop, str) else stop)
        lost = {loss.path for loss in done.losses}
        for n, tool in enumerate(given.get("tools", ())):
            function = dict(tool.get("function", {}))
            if tool["type"] != "function":  # converted to a function, or dropped
                assert lost & {f"/tools/{n}/type", f"/tools/{n}"}
                continue
            sent = dict(body["tools"][n]["function"])
            sent.setdefault("strict", function.get("strict"))
            function.setdefault("strict", None)
            assert {name: sent[name] for name in function} == function
            tools += 1
        if "tool_choice" in given and "/tool_choice" not in lost:
            assert body.get("tool_choice") == given["tool_choice"]
    assert tools > len(SEEDS)


def test_anthropic_takes_the_same_options(node: Node) -> None:
    many: list[Any] = []
    for seed in SEEDS:
        given, _ = request(seed, "openai-chat")
        done = requests.convert(given, source="openai-chat", target="ai-sdk-model", policy=KEEP)
        many.append({name: value for name, value in done.payload.items() if name not in NOT_OPTIONS})
    for options, answer in zip(many, node.ask("options.requests", provider="anthropic", many=many), strict=True):
        assert "body" in answer, (options, answer)
        names = [tool["name"] for tool in options.get("tools", ())]
        sent = [tool["name"] for tool in answer["body"].get("tools", ())]
        choice = options.get("toolChoice", {})
        if choice.get("type") == "tool":  # the provider sends only the chosen tool
            names = [choice["toolName"]]
        if choice.get("type") != "none":
            assert [name for name in sent if name in names] == names
