"""Inputs of `convert` other than plain lists, and outputs other than the payload."""

from __future__ import annotations

import subprocess
import sys
import typing
from typing import Any

import pytest
import streamweld as sw
from streamweld import events
from streamweld._spec import load_history
from streamweld.errors import HistoryError, UsageError
from streamweld.history import Conversion, HistoryPolicy, Source, Target, check, convert, profiles
from streamweld.history.dialects import FAMILIES

USER = {"role": "user", "content": "hi"}


def answer(*items: Any) -> sw.Response:
    return sw.Response([events.ResponseStarted(id="r", model="m"), *items], "complete")


def asked(call_id: str = "call_1", **fields: Any) -> Any:
    return events.ToolCall(part=1, call_id=call_id, name="search", arguments='{"q":"x"}', state="complete", **fields)


def test_a_response_is_the_next_turn() -> None:
    response = answer(events.TextDone(part=0, text="let me see"), asked())
    made = convert(response, target="openai-chat")
    function = {"name": "search", "arguments": '{"q":"x"}'}
    call = {"id": "call_1", "type": "function", "function": function}
    assert made.payload == {"messages": [{"role": "assistant", "content": "let me see", "tool_calls": [call]}]}
    assert made.edits == ()  # its calls may still be waiting for their results


def test_messages_and_responses_side_by_side() -> None:
    response = answer(asked("call.1"))
    made = convert([USER, response, {"role": "tool", "tool_call_id": "call.1", "content": "found"}], target="anthropic")
    _, shown, result = made.payload["messages"]
    assert shown["content"][0]["id"] == result["content"][0]["tool_use_id"] == made.ids.to_target("call.1")
    assert made.ids.to_source(shown["content"][0]["id"]) == "call.1"
    assert check(made.payload, target="anthropic") == []


def test_every_recorded_kind_of_part_of_a_response() -> None:
    response = answer(
        events.ReasoningDone(part=0, text="hm", kind="summary", item_id="rs_1", encrypted_content="gAAA"),
        events.ToolCall(part=1, call_id="c1", name="sh", arguments="ls -l", state="complete", custom=True),
        events.ToolResult(part=2, call_id="c1", output="a b"),
        events.RefusalDone(part=3, text="no more"),
    )
    made = convert([USER, response], target="responses")
    kinds = [item.get("type") for item in made.payload["input"]]
    assert kinds[1:3] == ["reasoning", "custom_tool_call"]
    assert "custom_tool_call_output" in kinds
    assert made.payload["input"][1]["encrypted_content"] == "gAAA"


def test_encrypted_reasoning_of_a_response_stays_with_its_issuer() -> None:
    thought = events.ReasoningDone(part=0, text="hm", kind="summary", item_id="rs_1", encrypted_content="gAAA")
    made = convert(
        [USER, answer(thought, asked()), {"role": "tool", "tool_call_id": "call_1", "content": "ok"}],
        target="anthropic",
    )
    assert [edit.rule for edit in made.edits] == ["reasoning_custody", "reasoning_dropped"]
    assert made.edits[0].removed == {"encrypted": "gAAA", "item_id": "rs_1"}


def test_other_members_of_a_request_are_kept() -> None:
    request = {"model": "m", "messages": [{"role": "system", "content": "s"}, USER], "temperature": 0}
    made = convert(request, target="anthropic")
    assert made.payload == {"model": "m", "temperature": 0, "system": "s", "messages": [USER]}
    assert request["messages"][0]["role"] == "system"


def test_what_needs_no_change_is_the_same_object() -> None:
    request = {"model": "m", "messages": [USER]}
    assert convert(request, target="openai-chat").payload is request
    assert convert(request["messages"], target="openai-chat").payload["messages"] is request["messages"]
    text = {"input": "hello"}
    assert convert(text, target="responses").payload is text


def test_messages_that_stay_are_the_same_objects_beside_those_that_change() -> None:
    messages = [USER, {"role": "assistant", "content": "x"}, {"role": "tool", "tool_call_id": "c", "content": "late"}]
    made = convert(messages, target="openai-chat")
    assert made.payload["messages"][0] is USER
    assert made.payload["messages"][1] is messages[1]
    assert made.payload["messages"][-1]["content"] == "late"


def test_store_is_read_from_the_request() -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    request = {"store": False, "input": [USER, item, {"role": "assistant", "content": "x"}]}
    assert "id" not in convert(request, target="responses").payload["input"][1]
    assert convert(request | {"store": True}, target="responses").payload["input"][1] is item


def test_an_id_that_recurs_is_counted() -> None:
    def turn(n: int) -> list[Any]:
        call = {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        result = {"role": "tool", "tool_call_id": "call_0", "content": str(n)}
        return [USER, {"role": "assistant", "content": None, "tool_calls": [call]}, result]

    ids = convert([*turn(1), *turn(2), *turn(3)], target="openai-chat").ids
    assert [ids.to_target("call_0", n) for n in range(3)] == ["call_0", "call_0__2", "call_0__3"]
    assert {ids.to_source(made) for _, made in ids} == {"call_0"}
    assert ids.to_target("never") == ids.to_source("never") == "never"


def test_a_gateway_of_ones_own() -> None:
    own = {"name": "mine", "like": "openai-chat", "constraints": {"tool_id": {"chars": "a-z", "min": 1, "max": 12}}}
    call = {"id": "CALL-1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    history = [USER, {"role": "assistant", "content": None, "tool_calls": [call]}]
    with pytest.raises(UsageError):
        convert(history, target="openai-chat", gateway={"constraint": {}})
    made = convert(
        history, target="openai-chat", gateway=own | {"constraints": {"tool_id": {"chars": "a-zA-Z", "max": 12}}}
    )
    assert [edit.rule for edit in made.edits] == ["call_unanswered", "tool_id"]


@pytest.mark.parametrize(
    "options",
    [{"target": "cobol"}, {"target": "anthropic", "source": "cobol"}, {"target": "anthropic", "gateway": "nobody"}],
)
def test_names_that_do_not_exist(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        convert([USER], **options)


@pytest.mark.parametrize("given", ["hi", 5, {"prompt": "x"}])
def test_what_is_no_history(given: Any) -> None:
    with pytest.raises(UsageError):
        convert(given, target="anthropic")


@pytest.mark.parametrize(
    "word", sorted(word for words in load_history("gateways")["providers"].values() for word in words)
)
def test_a_provider_has_many_names(word: str) -> None:
    assert profiles.provider(word.upper()) in load_history("gateways")["providers"]


def test_every_gateway_is_a_provider() -> None:
    assert {profiles.provider(name.partition("@")[0]) for name in profiles.names()} >= {"azure", "google", "bedrock"}
    issuers = [
        issuer
        for name in profiles.names()
        for target in profiles.load(name).targets
        for issuer in (profiles.load(name, target).constraints.get("reasoning") or {}).get("issuers") or ()
    ]
    assert {profiles.provider(issuer) for issuer in issuers} == set(issuers)


def test_the_types_name_every_source_and_target() -> None:
    assert sorted(typing.get_args(Target)) == sorted(FAMILIES)
    assert sorted(word for part in typing.get_args(Source) for word in typing.get_args(part) or (part,)) == sorted(
        (*FAMILIES, "auto")
    )


def test_a_provider_by_another_name_keeps_its_own() -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    history = [USER, item, {"role": "assistant", "content": "x"}]
    for word in ("Azure-OpenAI", "azure"):
        made = convert(history, source="responses", target="responses", gateway="azure-openai", provider=word)
        assert made.payload["input"][1] is item
    made = convert(history, source="responses", target="responses", gateway="azure-openai", provider="openai")
    assert [edit.rule for edit in made.edits] == ["reasoning_custody", "reasoning_dropped"]
    own = {"like": "openai-responses", "constraints": {"reasoning": {"accept": "items", "issuers": ["mine"]}}}
    assert convert(history, source="responses", target="responses", gateway=own, provider="mine").edits == ()


UNUSABLE: list[tuple[Any, str, str]] = [
    ([USER, 5], "openai-chat", "/1: unreadable: found a number where an object is required"),
    ([USER, {"role": "user", "content": [None]}], "openai-chat", "/1/content/0: unreadable: found null "),
    ({"messages": [{"role": "user", "content": 5}]}, "anthropic", "/messages/0/content: unreadable: found a number "),
    (
        [USER, {"role": "frog"}],
        "openai-chat",
        "/1/role: unknown_role: 'frog' is not a role of openai-chat: system, ",
    ),
    ([{"role": "tool", "content": "x"}], "anthropic", "/0/role: unknown_role: 'tool' is not a role of anthropic: s"),
    ([{"type": "reasoning", "summary": [5]}], "responses", "/0: unreadable: found a number where an object is "),
    ([{"role": "user", "content": "x"}], "ai-sdk-ui", "/0/parts: unreadable: a UI message must have parts"),
    ({"messages": []}, "openai-chat", "/messages: too_few: the history has no messages"),
]


@pytest.mark.parametrize(("history", "source", "message"), UNUSABLE)
def test_the_message_says_what_is_wrong_and_where(history: Any, source: Any, message: str) -> None:
    with pytest.raises(HistoryError) as caught:
        convert(history, source=source, target="anthropic")
    assert str(caught.value).startswith(message), str(caught.value)


def test_a_provider_that_nobody_knows() -> None:
    with pytest.raises(UsageError, match=r"provider='acme': it must be one of .*anthropic.*openai"):
        convert([USER], target="anthropic", provider="acme")


def test_paths_resolve_in_what_was_given() -> None:
    late = {"role": "assistant", "content": "welcome"}
    for given, path in (
        ([late, USER], "/0"),
        ({"messages": [late, USER]}, "/messages/0"),
        ({"input": [late, USER]}, "/input/0"),
    ):
        made = convert(given, target="anthropic")
        assert [edit.path for edit in made.edits] == [path]
    lone = convert(answer(asked("a.b")), target="anthropic", policy=HistoryPolicy(on_unfixable="keep"))
    assert {edit.rule: edit.path for edit in lone.edits}["tool_id"] == "/items/0"


def test_one_turn_more_takes_what_was_made_before() -> None:
    call = {"id": "call.1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    payload_of = {"role": "tool", "tool_call_id": "call.1", "content": "ok"}
    shown = {"role": "assistant", "content": "so"}
    first = [USER, {"role": "assistant", "content": None, "tool_calls": [call]}, payload_of, shown, USER, shown]
    before = convert(first, target="anthropic")
    more = [*first, {"role": "user", "content": "more"}]
    again = convert(more, target="anthropic", previous=before)
    assert again == convert(more, target="anthropic")
    assert again.payload["messages"][1] is before.payload["messages"][1]
    same = convert(more, target="openai-chat", previous=convert(first, target="openai-chat"))
    assert same.payload["messages"] is more
    other = convert(more, target="anthropic", tools=["f"], previous=before)
    assert other.payload["messages"][1] is not before.payload["messages"][1]


def test_a_policy_has_its_words() -> None:
    with pytest.raises(UsageError, match="orphan_call='guess'"):
        HistoryPolicy(orphan_call="guess")  # type: ignore[arg-type]


def test_what_cannot_be_mended() -> None:
    with pytest.raises(HistoryError) as caught:
        convert([{"role": "user", "content": " "}], target="anthropic")
    assert caught.value.rule == "too_few"
    assert [found.rule for found in caught.value.violations] == ["too_few"]
    kept = convert([{"role": "user", "content": " "}], target="anthropic", policy=HistoryPolicy(on_unfixable="keep"))
    assert kept.payload == {"messages": []}
    assert isinstance(kept, Conversion)


@pytest.mark.parametrize("own", [{"tools": []}, {"toolConfig": {"tools": []}}])
def test_calls_of_a_request_that_says_to_have_no_tools(own: dict[str, Any]) -> None:
    asked = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f"}}]}
    given = {"messages": [{"role": "user", "content": "?"}, asked, {"role": "tool", "tool_call_id": "c"}], **own}
    with pytest.raises(HistoryError, match="tools_missing"):
        convert(given, target="bedrock-converse")
    assert convert(given["messages"], target="bedrock-converse").payload["messages"][1]["role"] == "assistant"


def test_a_ui_message_without_parts() -> None:
    with pytest.raises(HistoryError, match="/0/parts: unreadable"):
        convert([{"id": "m", "role": "user", "content": "hi"}], source="ai-sdk-ui", target="openai-chat")


def test_edits_say_why_and_are_data() -> None:
    made = convert([{"role": "assistant", "content": "welcome"}, USER], target="anthropic")
    assert made.edits[0].to_dict() == {
        "rule": "first_role",
        "path": "/0",
        "what": "added a user message at the start",
        "why": made.edits[0].why,
        "removed": None,
    }
    assert "platform.claude.com" in made.edits[0].why


def test_the_package_is_imported_when_it_is_asked_for() -> None:
    code = "import sys, streamweld; assert 'streamweld.history' not in sys.modules; print(streamweld.history.convert)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("<function convert"), done.stderr


@pytest.mark.parametrize("target", ["openai-chat", "gemini", "anthropic", "bedrock-converse"])
def test_numbers_that_are_not_finite_become_null(target: Any) -> None:
    """JSON has no NaN. Its encoders write null, or text that the server rejects."""
    call = {"type": "tool_use", "id": "a", "name": "f", "input": {"x": float("nan"), "y": [float("-inf"), None, 1.5]}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "r"}
    history = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    made = convert(history, source="anthropic", target=target)
    assert [edit.path for edit in made.edits if edit.rule == "arguments_form"] == ["/1/content/0"]
    back = convert(made.payload, target="anthropic", source=target)
    assert back.payload["messages"][1]["content"][0]["input"] == {"x": None, "y": [None, None, 1.5]}


def test_a_dumped_content_of_google_genai() -> None:
    """`Content.model_dump()` returns bytes for data and signatures."""
    parts = [{"inline_data": {"data": b"\x89PNG", "mime_type": "image/png"}}]
    said = [{"text": "a", "thought_signature": b"abc"}]
    history = [{"role": "user", "parts": parts}, {"role": "model", "parts": said}]
    assert convert(history, source="gemini", target="gemini").payload["contents"] is history
    made = convert(history, source="gemini", target="ai-sdk-model")
    assert made.payload["messages"][1]["content"][0]["providerOptions"] == {"google": {"thoughtSignature": "YWJj"}}
