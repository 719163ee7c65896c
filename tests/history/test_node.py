"""streamweld's AI SDK histories, checked with the AI SDK: how it converts UIMessages, and the requests that its
providers create from ModelMessages, recorded at their `fetch`. Expected values come from the script of the history or
from the recorded response, never from the conversion.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from streamweld.events import TextDone
from streamweld.history import HistoryPolicy, convert

from tests.conftest import FULL
from tests.history.test_corpus import answers, history
from tests.support.clients.node_side import NodeError
from tests.support.corpus import FOLDERS, absent
from tests.support.generate.history import DIALECTS, PIXEL, Event, Maker, payload_of
from tests.support.places import REPOSITORY
from tests.support.requests_of_providers import said, texts

if TYPE_CHECKING:
    from streamweld.history import Conversion

    from tests.support.clients.node_side import Node

PROVIDERS = ("openai-chat", "openai-responses", "open-responses", "anthropic", "google")
# With storage off, a request to OpenAI contains the full items and no references.
OPTIONS = {"openai": {"store": False}}
KEEP = HistoryPolicy(on_unfixable="keep")
SEEDS = range(200 if FULL else 24)
EVERY = 1 if FULL else 12
GOOGLE = "gemini"  # the gateway must be given, because Google's converter rejects input that the AI SDK accepts
GUIDE = REPOSITORY / "docs" / "guides" / "histories-and-requests.md"
AMID = "system messages are only supported at the beginning"

BROKEN = pytest.mark.parametrize("broken", [False, True], ids=["sound", "broken"])


class Case(NamedTuple):
    name: str
    script: list[Event]
    tokens: list[str]
    given: str
    made: Conversion

    @property
    def messages(self) -> list[Any]:
        messages: list[Any] = self.made.payload["messages"]
        return messages

    def kept(self) -> list[str]:
        """Return the given tokens, except reasoning and those that a report of the conversion contains."""
        entries = [entry.to_dict() for entry in (*self.made.edits, *self.made.losses)]
        gone = json.dumps(entries, ensure_ascii=False) + " ".join(e.reasoning or "" for e in self.script)
        return [token for token in self.tokens if token in self.given and token not in gone]


@cache
def generated(target: str, gateway: str, *, broken: bool) -> list[Case]:
    cases = []
    for seed in SEEDS:
        maker = Maker(seed, broken=broken)
        script = maker.script(1 + seed % 6)
        for dialect in DIALECTS if script else ():
            given = payload_of(script, dialect)
            made = convert(given, source=dialect, target=target, gateway=gateway or None, policy=KEEP)
            text = json.dumps(given, ensure_ascii=False)
            cases.append(Case(f"{seed} {dialect}", script, maker.tokens, text, made))
    return cases


def requests(node: Node, provider: str, histories: list[list[Any]]) -> list[Any]:
    done: list[Any] = node.ask("prompt.requests", provider=provider, histories=histories, options=OPTIONS)
    assert len(done) == len(histories)
    return done


def has_system_amid(messages: list[Any]) -> bool:
    roles = [message["role"] for message in messages]
    while roles and roles[0] == "system":
        roles.pop(0)
    return "system" in roles


@BROKEN
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_request_holds_all_of_a_history(node: Node, provider: str, broken: bool) -> None:
    cases = generated("ai-sdk-model", GOOGLE if provider == "google" else "", broken=broken)
    assert len(cases) > 100
    sent = requests(node, provider, [case.messages for case in cases])
    for case, request in zip(cases, sent, strict=True):
        if not any(message["role"] != "system" for message in case.messages):
            continue  # no message was left: `too_few`
        assert "body" in request, (case.name, request)
        body = json.dumps(request["body"], ensure_ascii=False)
        lost = [token for token in case.kept() if token not in body]
        assert not lost, (case.name, lost, body)
        found = said(provider, request["body"])
        called, answered = [call.call_id for call in found.calls], [call_id for call_id, _ in found.results]
        assert called == answered or (broken and sorted(map(str, called)) == sorted(map(str, answered))), case.name
        assert provider == "google" or len(set(called)) == len(called), case.name
        assert all(isinstance(call.arguments, dict) for call in found.calls), case.name
        if not broken:
            calls = [call for event in case.script for call in event.calls]
            wanted = [(call.name, json.loads(call.arguments)) for call in calls]
            assert [(call.name, call.arguments) for call in found.calls] == wanted, case.name
            outputs = [output for event in case.script for _, _, output, _ in event.results]
            for (_, text), output in zip(found.results, outputs, strict=True):
                assert output in text, case.name


def test_google_refuses_instructions_amid_the_turns(node: Node) -> None:
    """The AI SDK accepts instructions between turns, but its Google provider rejects them. Passing the gateway to
    `convert` fixes this.
    """
    assert f'gateway="{GOOGLE}"' in GUIDE.read_text("utf-8")
    cases = generated("ai-sdk-model", "", broken=True)
    refused = 0
    for case, request in zip(cases, requests(node, "google", [c.messages for c in cases]), strict=True):
        amid = has_system_amid(case.messages)
        assert amid == (AMID in request.get("error", {}).get("message", "")), (case.name, request)
        refused += amid
    assert refused


@BROKEN
def test_the_ai_sdk_reads_ui_messages(node: Node, broken: bool) -> None:
    cases = generated("ai-sdk-ui", "", broken=broken)
    assert len(cases) > 100
    read = node.ask("ui.models", histories=[case.messages for case in cases])
    for case, answer in zip(cases, read, strict=True):
        if not case.messages:
            continue
        assert "messages" in answer, (case.name, answer)
        body = json.dumps(answer["messages"], ensure_ascii=False)
        lost = [token for token in case.kept() if token not in body]
        assert not lost, (case.name, lost)
        parts = [p for m in answer["messages"] if isinstance(m["content"], list) for p in m["content"]]
        calls = [part for part in parts if part["type"] == "tool-call"]
        results = [part["toolCallId"] for part in parts if part["type"] == "tool-result"]
        assert [call["toolCallId"] for call in calls] == results, case.name
        assert all(isinstance(call["input"], dict) for call in calls), case.name
        if not broken:
            wanted = [(c.name, json.loads(c.arguments)) for event in case.script for c in event.calls]
            assert [(call["toolName"], call["input"]) for call in calls] == wanted, case.name


def test_the_ai_sdk_tells_right_from_wrong(node: Node) -> None:
    """The AI SDK that checks streamweld's histories detects invalid input."""
    requested = {"role": "user", "content": "hi"}
    call = {"type": "tool-call", "toolCallId": "c1", "toolName": "f", "input": {}}
    unanswered = [requested, {"role": "assistant", "content": [call]}]
    with pytest.raises(NodeError, match="c1") as caught:
        node.ask("prompt.request", provider="openai-chat", messages=unanswered)
    assert caught.value.name == "AI_MissingToolResultsError"
    with pytest.raises(NodeError) as caught:
        node.ask("prompt.request", provider="anthropic", messages=[{"role": "user", "content": 5}])
    assert caught.value.name == "ZodError"
    with pytest.raises(NodeError) as caught:
        node.ask("ui.model", messages=[{"id": "m1", "role": "user", "parts": [{"type": "text"}]}])
    assert caught.value.name == "AI_TypeValidationError"
    with pytest.raises(NodeError, match="no nothing"):
        node.ask("ui.nothing")
    sent = node.ask("prompt.request", provider="openai-chat", messages=[requested])
    assert sent["body"]["messages"] == [requested]


PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PDF = "JVBERi0xLjQKJcfs"


def file(kind: str, media_type: str, data: str) -> Any:
    return {"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}}


def with_files() -> list[Any]:
    """Return Anthropic messages with an image, a document, and an image returned by a tool."""
    user = [{"type": "text", "text": "look"}, file("image", "image/png", PNG), file("document", "application/pdf", PDF)]
    call = {"type": "tool_use", "id": "c1", "name": "f", "input": {}}
    payload_of = [{"type": "text", "text": "see"}, file("image", "image/png", PNG.replace("9awA", "9awB"))]
    return [
        {"role": "user", "content": user},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": payload_of}]},
    ]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_request_holds_the_files(node: Node, provider: str) -> None:
    made = convert(with_files(), source="anthropic", target="ai-sdk-model")
    sent = node.ask("prompt.request", provider=provider, messages=made.payload["messages"])
    assert sent["warnings"] == []
    body = json.dumps(sent["body"])
    for data in (PNG, PDF, PNG.replace("9awA", "9awB"), "look", "see"):
        assert data in body


@BROKEN
def test_what_the_ai_sdk_writes_is_read(node: Node, broken: bool) -> None:
    """If the AI SDK converts streamweld's UIMessages to ModelMessages, and these are converted for another API, no
    content is lost.
    """
    cases = generated("ai-sdk-ui", "", broken=broken)
    read = node.ask("ui.models", histories=[case.messages for case in cases])
    for case, answer in zip(cases, read, strict=True):
        onward = convert(answer["messages"], source="ai-sdk-model", target="anthropic", policy=KEEP)
        assert "file" not in {loss.feature for loss in onward.losses}, case.name
        held = json.dumps(onward.payload, ensure_ascii=False)
        removed = json.dumps([edit.to_dict() for edit in onward.edits], ensure_ascii=False)
        assert not [token for token in case.kept() if token not in held and token not in removed], case.name
        assert held.count('"type": "image"') == case.given.count(PIXEL), case.name
    ui = convert(with_files(), source="anthropic", target="ai-sdk-ui")
    onward = convert(node.ask("ui.model", messages=ui.payload["messages"]), target="anthropic")
    assert onward.payload["messages"][0] == with_files()[0]


# --- recorded responses


def holds(body: Any, text: str) -> bool:
    """Return True if the body contains a text, possibly without white space at its ends, which some APIs reject."""
    return any(text.strip() in found for found in texts(body))


RECORDED = pytest.mark.skipif(absent() is not None, reason=absent() or "")


def recorded(folder: str, target: str, gateway: Any) -> list[tuple[str, Any, Conversion]]:
    cases = []
    for name, response in answers(folder)[::EVERY]:
        messages, source = history(response, target)
        cases.append((name, response, convert(messages, source=source, target=target, gateway=gateway)))
    return cases


def missing(response: Any, made: Conversion, calls: list[tuple[str | None, str]], body: Any) -> list[Any]:
    """Return texts and calls of the response that are neither in the request nor in a report of the conversion."""
    entries = list(texts([json.loads(json.dumps(e.to_dict(), default=str)) for e in (*made.edits, *made.losses)]))
    said_ = [item.text for item in response.items if isinstance(item, TextDone) and item.text.strip()]
    lost: list[Any] = [
        text for text in said_ if not holds(body, text) and not any(text.strip() in entry for entry in entries)
    ]
    wanted = [(made.ids.to_target(call.call_id), call.name) for call in response.dispatchable_calls]
    if calls and all(call_id is None for call_id, _ in calls):  # Gemini's calls are identified by their names
        wanted = [(None, name) for _, name in wanted]
    left = list(calls)
    for call in wanted:
        if call in left:
            left.remove(call)
        else:
            lost.append(call)
    return lost


@RECORDED
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_request_holds_all_of_a_recorded_answer(node: Node, folder: str, provider: str) -> None:
    cases = recorded(folder, "ai-sdk-model", GOOGLE if provider == "google" else None)
    assert cases
    sent = requests(node, provider, [made.payload["messages"] for _, _, made in cases])
    for (name, response, made), request in zip(cases, sent, strict=True):
        assert "body" in request, (name, request)
        calls = [(call.call_id, call.name) for call in said(provider, request["body"]).calls]
        assert not missing(response, made, calls, request["body"]), name


@RECORDED
@pytest.mark.parametrize("folder", FOLDERS)
def test_the_ai_sdk_reads_a_recorded_answer(node: Node, folder: str) -> None:
    cases = recorded(folder, "ai-sdk-ui", None)
    assert cases
    read = node.ask("ui.models", histories=[made.payload["messages"] for _, _, made in cases])
    for (name, response, made), answer in zip(cases, read, strict=True):
        assert "messages" in answer, (name, answer)
        parts = [p for m in answer["messages"] if isinstance(m["content"], list) for p in m["content"]]
        calls = [(part["toolCallId"], part["toolName"]) for part in parts if part["type"] == "tool-call"]
        assert not missing(response, made, calls, answer["messages"]), name
