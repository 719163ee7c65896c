"""Converts every agent history for every target and gateway, and collects the faults that the judge finds.

    python -m tests.history.judge.matrix            # a table of the faults, by rule, target and gateway
    python -m tests.history.judge.matrix REASON     # the places of one rule

In addition to the vendors' rules: no content is dropped without a report (LOST, UNSIGNED), signed data return to their
vendor in some form (CUSTODY), only documented exceptions are raised (RAISED), a second conversion does not change
anything (AGAIN), and earlier messages are sent again byte for byte (PREFIX).
"""

from __future__ import annotations

import json
import re
import sys
from base64 import b64encode
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import streamweld.requests
from streamweld.errors import StreamweldError
from streamweld.history import HistoryPolicy, convert, profiles
from streamweld.history.dialects import CONTAINERS

from tests.history.judge.agents import AgentHistory, load
from tests.history.judge.vendors import judge

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Verdict", "routes", "verdicts"]

_SECRET: Final = re.compile(r"(?:EqQB|gAAAA|Q2lR|EmwK|CqQB)[A-Za-z0-9]*")


# History -> routes on which data that its vendor signed or encrypted must be in the payload, not only in a report. The
# forms: thinking_blocks (https://docs.litellm.ai/docs/reasoning_content), reasoning_details
# (https://openrouter.ai/docs/use-cases/reasoning-tokens), extra_content (https://ai.google.dev/gemini-api/docs/openai).
# Signatures of Claude are valid on every platform
# (https://platform.claude.com/docs/en/build-with-claude/extended-thinking).
_EVERY: Final = ("ai-sdk-ui/ai-sdk-ui", "ai-sdk-model/ai-sdk-model", "openai-chat/openrouter")
_LITELLM: Final = "openai-chat/litellm"
_GOOGLE: Final = "openai-chat/gemini-openai"
CUSTODY: Final = {
    "claude-code/thinking": ("anthropic/anthropic", "bedrock-converse/bedrock-converse", *_EVERY, _LITELLM),
    "claude-code/redacted-thinking": ("anthropic/anthropic", "bedrock-converse/bedrock-converse", _LITELLM),
    "codex/thinking": ("responses/openai-responses", *_EVERY),
    "gemini-cli/thinking": ("gemini/gemini", *_EVERY, _LITELLM, _GOOGLE),
    "gemini-cli/code-execution": ("gemini/gemini", "gemini/vertex", *_EVERY[:2], _GOOGLE),  # the signature is on a text
    "opencode/thinking": ("anthropic/anthropic", *_EVERY, _LITELLM),
    "opencode/openai-item": ("responses/openai-responses", *_EVERY),
    "use-chat/thinking": ("anthropic/anthropic", *_EVERY, _LITELLM),
    "cline/thinking": ("anthropic/anthropic", *_EVERY, _LITELLM),
    "cline/openrouter-encrypted": ("responses/openai-responses", *_EVERY),
    "langgraph/litellm-thinking-blocks": ("anthropic/anthropic", *_EVERY, _LITELLM),
    "langgraph/google-extra-content": ("gemini/gemini", *_EVERY, _LITELLM, _GOOGLE),
    "langgraph/new-google-parallel": ("gemini/gemini", _GOOGLE),  # also a signature of a message
    "langgraph/odd-litellm-custody": ("anthropic/anthropic", _LITELLM),
    "langgraph/fresh-provider-specific": ("gemini/gemini", _LITELLM, _GOOGLE),
}
# Histories that cannot be sent, with the path and rule of the error that reports this.
CLEAR: Final = {("agents-sdk/previous-response", "/input", "user_missing")}


@dataclass
class Verdict:
    """The result of one history on one route."""

    history: AgentHistory
    target: str
    gateway: str
    payload: Any = None
    faults: list[str] = field(default_factory=list)


def routes() -> list[tuple[str, str]]:
    """Return (target, gateway) of every profile."""
    return [(target, name) for name in profiles.names() for target in profiles.load(name).targets]


def plain(gateway: str) -> str:
    """Return the profile's name in the judge, with its date only if there are two profiles of that name."""
    return gateway if gateway.startswith("vercel-ai-gateway@2026-01-29") else gateway.partition("@")[0]


def verdicts(*, whole: bool = False) -> Iterator[Verdict]:
    """Yield all verdicts. `whole`: convert complete requests with `streamweld.requests`, not only the messages."""
    for target, gateway in routes():
        for history in load():
            yield verdict(history, target, gateway, whole=whole)


def verdict(history: AgentHistory, target: str, gateway: str, *, whole: bool = False) -> Verdict:
    """Convert one history on one route and return the verdict."""
    out = Verdict(history, target, plain(gateway))
    given = json.loads(json.dumps(history.request))
    try:
        if whole:
            done: Any = streamweld.requests.convert(given, source=history.source, target=target, gateway=gateway)
        else:
            kept = {name: given[name] for name in _members(history.source) if name in given}
            if "model" in given and target == history.source:
                kept["model"] = given["model"]  # some rules apply to some models only
            done = convert(
                kept,
                source=history.source,
                target=target,
                gateway=gateway,
                tools=given.get("tools"),
                store=given.get("store"),
            )
    except StreamweldError as error:
        if (history.name, getattr(error, "path", None), getattr(error, "rule", None)) not in CLEAR:
            out.faults = [f"RAISED {type(error).__name__}: {error}"]
        return out
    out.payload = {
        **done.payload,
        **({"store": given["store"]} if target == "responses" and "store" in given and not whole else {}),
    }
    if "model" in given and target == history.source:
        out.payload.setdefault("model", given["model"])
    out.faults = judge(target, out.gateway, out.payload)
    sent = given if whole else {name: given[name] for name in _members(history.source) if name in given}
    out.faults += _lost(history, sent, done, f"{target}/{out.gateway}")
    out.faults += _again(done.payload, target, gateway, given, whole=whole)
    if not whole:
        out.faults += _prefix(history, given, target, gateway)
    return out


def _prefix(history: AgentHistory, given: Any, target: str, gateway: str) -> Iterator[str]:
    """Check that all messages of earlier requests in the conversation, except the last, are in the later request."""
    container = CONTAINERS[_family(history.source)]
    items = given[container.messages]
    if history.source == "ai-sdk-ui" or not isinstance(items, list):
        return

    def made(count: int) -> list[str]:
        part = {name: given[name] for name in _members(history.source) if name in given}
        part[container.messages] = items[:count]
        done = convert(
            part,
            source=history.source,
            target=target,
            gateway=gateway,
            tools=given.get("tools"),
            store=given.get("store"),
            policy=HistoryPolicy(on_unfixable="keep"),
        )
        return [json.dumps(item, default=_readable) for item in done.payload[CONTAINERS[_family(target)].messages]]

    try:
        whole = made(len(items))
        for count in range(1, len(items)):
            if _may_be_sent(items[count - 1], items[count]):
                part = made(count)
                kept = max(0, len(part) - (2 if target in ("anthropic", "bedrock-converse", "gemini") else 1))
                if part[:kept] != whole[:kept]:
                    yield f"PREFIX cut at {count}"
                    return
    except StreamweldError as error:
        yield f"PREFIX raised {error}"


def _family(target: str) -> str:
    return "openai-chat" if target == "mistral" else target


def _may_be_sent(last: Any, after: Any) -> bool:
    """Return True if a request may end here: with a user message or a tool result that the assistant follows."""
    role, kind = last.get("role"), last.get("type", "message")
    if kind.endswith("_output"):
        return str(after.get("type", "message")) not in ("custom_tool_call_output", "function_call_output")
    return role in ("user", "tool", "function") and after.get("role") in ("assistant", "model", None)


def _members(source: str) -> list[str]:
    family = "openai-chat" if source == "mistral" else source
    container = CONTAINERS[family]
    return [name for name in (container.messages, container.system) if name]


def _lost(history: AgentHistory, given: Any, done: Any, route: str) -> Iterator[str]:
    entries = [entry.to_dict() for entry in (*done.edits, *done.losses)]
    payload_of = json.dumps(entries, default=str, ensure_ascii=False)
    body = json.dumps(done.payload, default=_readable, ensure_ascii=False)
    held = json.dumps(given, ensure_ascii=False)
    for token in history.tokens:
        if token in held and token not in body and token not in payload_of:
            yield f"LOST {token.lstrip('tok')[-5:]}"
    for secret in set(_SECRET.findall(json.dumps(given))):
        if route in CUSTODY.get(history.name, ()) and secret not in body:
            yield f"CUSTODY {secret[:6]}"
        if secret not in body and secret not in payload_of:
            yield f"UNSIGNED {secret[:6]}"


def _readable(value: Any) -> Any:
    return b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _again(payload: Any, target: str, gateway: str, given: Any, *, whole: bool) -> Iterator[str]:
    try:
        if whole:
            done: Any = streamweld.requests.convert(payload, source=target, target=target, gateway=gateway)
        else:
            done = convert(
                payload,
                source=target,
                target=target,
                gateway=gateway,
                tools=given.get("tools"),
                store=given.get("store"),
            )
    except StreamweldError as error:
        yield f"AGAIN raised {type(error).__name__}: {error}"
        return
    if done.payload != payload:
        yield "AGAIN another payload"
    if done.edits or done.losses:
        yield f"AGAIN {sorted({entry.rule for entry in done.edits} | {loss.feature for loss in done.losses})}"


def node_faults(node: Any, found: list[Verdict]) -> None:
    """Add the faults that the AI SDK finds, queried for all histories of a target at once."""
    for target, op in (("ai-sdk-ui", "ui.models"), ("ai-sdk-model", "prompt.requests")):
        of_target = [one for one in found if one.target == target and one.payload is not None]
        of_target = [one for one in of_target if not _waits(one) and not _is_unsupported(one)]
        lists = [one.payload["messages"] for one in of_target]
        more: dict[str, Any] = {} if op == "ui.models" else {"provider": "anthropic", "options": {}}
        for one, answer in zip(of_target, node.ask(op, histories=lists, **more), strict=True):
            if "error" in answer:
                one.faults.append(f"NODE {answer['error']['name']}: {answer['error']['message'][:120]}")


def _waits(one: Verdict) -> bool:
    """Return True if a call waits for its approval or execution; generateText does not send it without the tool; see
    tests/history/test_approvals.py.
    """
    return one.history.name in WAITING


def _is_unsupported(one: Verdict) -> bool:
    """Return True if the AI SDK's provider for Anthropic, which creates the requests, rejects the media type."""
    return one.target == "ai-sdk-model" and one.history.name in AUDIO


AUDIO: Final = {
    *("langgraph/odd-audio", "agents-sdk/fresh-input-audio", "langgraph/fresh-media", "langgraph/odd-files-and-audio"),
    *("langgraph/new-audio-answer", "gemini-cli/new-media-responses"),
}
WAITING: Final = {
    *(
        "use-chat/requested",
        "use-chat/approved",
        "use-chat/approved-with-reason",
        "use-chat/dynamic",
        "use-chat/denied",
    ),
    *("opencode/approved", "opencode/denied", "use-chat/fresh-multi-approvals"),
    *(
        f"use-chat/approval-{state}-{kind}"
        for state in ("requested", "yes", "no")
        for kind in ("tool-pay", "dynamic-tool")
    ),
}


def main(argv: list[str]) -> None:
    """Print the table."""
    from tests.support.clients.node_side import Node

    whole = "--whole" in argv
    argv = [word for word in argv if not word.startswith("--")]
    found = list(verdicts(whole=whole))
    node = Node("node")
    node_faults(node, found)
    node.close()
    table: dict[str, Counter[str]] = defaultdict(Counter)
    places: dict[str, list[str]] = defaultdict(list)
    for one in found:
        for fault in one.faults:
            code = fault.split(" ", 1)[0]
            table[code][f"{one.target}/{one.gateway}"] += 1
            places[code].append(f"{one.target}/{one.gateway} <- {one.history.name}: {fault}")
    bad = sum(bool(one.faults) for one in found)
    print(f"{len(found)} routes, {bad} with faults; {len(load())} histories")
    if argv:
        for code in argv:
            print("\n".join(places[code]))
        return
    for code, counts in sorted(table.items(), key=lambda row: -sum(row[1].values())):
        print(f"{code}: {sum(counts.values())}: " + ", ".join(f"{k} {n}" for k, n in counts.most_common()))


if __name__ == "__main__":
    main(sys.argv[1:])
