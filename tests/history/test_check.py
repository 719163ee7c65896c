"""The checker of request histories: its vectors, its table of rules, its profiles.

A vector in `vectors/history_check/` contains a history in the wire format of its target, and the expected violations as
[rule, path].
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import streamweld as sw
from click.testing import CliRunner
from streamweld._spec import load_history
from streamweld.cli.history import history as history_command
from streamweld.errors import UsageError
from streamweld.history import check, convert, profiles
from streamweld.history.rules import checks

from tests.support.load.linear import assert_linear
from tests.support.places import TESTS

HERE = TESTS
KEYS = {"name", "why", "target", "gateway", "messages", "tools", "violations", "source"}
OPENRESPONSES = HERE.parent.parent / "shared" / "data" / "openresponses" / "openapi-2026-04-24.json"


@cache
def vectors() -> tuple[dict[str, Any], ...]:
    found = []
    for path in sorted((HERE / "vectors" / "history_check").glob("*.json")):
        document = json.loads(path.read_text("utf-8"))
        names = [vector["name"] for vector in document["tests"]]
        assert document["format"] == 1
        assert len(set(names)) == len(names), path
        for vector in document["tests"]:
            assert vector.keys() <= KEYS, vector["name"]
            assert vector["why"], vector["name"]
            found.append({**vector, "file": path.stem})
    return tuple(found)


def label(vector: dict[str, Any]) -> str:
    return f"{vector['file']}-{vector['name']}"


def found_in(vector: dict[str, Any]) -> list[Any]:
    return check(vector["messages"], target=vector["target"], gateway=vector.get("gateway"), tools=vector.get("tools"))


def resolves(messages: Any, pointer: str) -> bool:
    """Return True if a JSON pointer resolves."""
    value = messages
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            value = value[int(key)]
        elif key in value:
            value = value[key]
        else:
            return False
    return True


@pytest.mark.parametrize("vector", vectors(), ids=label)
def test_vector(vector: dict[str, Any]) -> None:
    before = copy.deepcopy(vector)
    found = found_in(vector)
    assert [[v.rule, v.path] for v in found] == vector["violations"]
    assert vector == before
    for violation in found:
        rule = checks()[violation.rule]
        assert violation.message.startswith(rule.text)
        assert violation.severity == rule.severity
        assert violation.source
        assert json.loads(json.dumps(violation.to_dict()))["path"] == violation.path
        assert resolves(vector["messages"], violation.path)


@pytest.mark.parametrize("vector", [v for v in vectors() if "source" in v], ids=label)
def test_a_broken_shape_is_mended(vector: dict[str, Any]) -> None:
    """Invalid input that other converters pass on unchanged is converted without a violation, and the edits are
    reported.
    """
    made = convert(vector["source"], source="openai-chat", target=vector["target"])
    assert check(made.payload, target=vector["target"]) == []
    assert made.edits


def test_there_are_twelve_broken_shapes() -> None:
    assert sum("source" in vector for vector in vectors()) == 12


def test_every_rule_has_a_vector() -> None:
    shown = {rule for vector in vectors() for rule, _ in vector["violations"]}
    assert shown == set(checks())


def test_every_profile_has_a_vector_that_is_clean_and_one_that_is_not() -> None:
    clean, broken = set(), set()
    for vector in vectors():
        profile = profiles.resolve(vector.get("gateway"), vector["target"])
        (broken if vector["violations"] else clean).add((profile.name, profile.date, profile.target))
    every = {(p.name, p.date, t) for p in map(profiles.load, profiles.names()) for t in p.targets}
    assert every - clean == set()
    assert every - broken == set()


# Constraints that are not visible in a request, or that only describe how a converter fixes something.
ONLY_FOR_CONVERTERS = {
    *("text_embedding", "text_embedding.call", "text_embedding.result", "text_embedding.join"),
    *("system.lead", "system.developer", "system.keep_developer_message", "tool_id.keep", "result_empty.text"),
    *("reasoning.issuers", "reasoning.same_model", "reasoning.unsigned", "reasoning.when"),
    "reasoning.details",
    *(
        "reasoning.roles",
        "reasoning.item_ids",
        "inline",
    ),  # they equal the default, or apply only with `store: false`
    "tool_types",  # a constraint on requests: `requests.check`
    *("url_types", "url_types.file", "url_types.image"),  # a block with a URL has no media type
    "cache_marks",  # where a converter may write the marks of other APIs
}


def without(constraints: Any, name: str, member: str | None) -> dict[str, Any]:
    """Return the constraints without one of them, or without a member of one."""
    left = dict(constraints)
    if member is None:
        del left[name]
    else:
        left[name] = {key: value for key, value in left[name].items() if key != member}
    return left


def test_every_constraint_is_enforced() -> None:
    """Without the constraint, or without one of its members, at least one vector gives another result."""
    every, enforced = set(), set()
    for vector in vectors():
        profile = profiles.resolve(vector.get("gateway"), vector["target"])
        for name, value in profile.constraints.items():
            members = [None, *value] if isinstance(value, Mapping) else [None]
            for member in members:
                label_of = name if member is None else f"{name}.{member}"
                every.add(label_of)
                if label_of in enforced:
                    continue
                other = replace(profile, constraints=without(profile.constraints, name, member))
                if found_in({**vector, "gateway": other}) != found_in(vector):
                    enforced.add(label_of)
    assert sorted(every - enforced - ONLY_FOR_CONVERTERS) == []
    assert sorted(ONLY_FOR_CONVERTERS & enforced) == []


def test_the_code_names_every_rule_and_no_other() -> None:
    package = Path(sw.__file__).parent / "history"
    code = "\n".join(path.read_text("utf-8") for path in package.glob("check/*.py"))
    named = set(re.findall(r'"([a-z]+(?:_[a-z]+)*)"', code))
    assert set(checks()) <= named
    output_text = set(re.findall(r'\.add\(\s*"(\w+)"', code))
    assert output_text <= set(checks())


def test_the_judge_is_independent() -> None:
    """The checker shares rules, profiles and errors with the converter, but no code that reads, plans or writes."""
    package = Path(sw.__file__).parent / "history"
    # `payload` and `places` convert objects of vendors' packages; `models` parses the version in a model's name.
    shared = {"profiles", "rules", "payload", "places", "models"}
    for path in package.glob("check/*.py"):
        used = set(re.findall(r"from streamweld\.history\.(\w+)", path.read_text("utf-8")))
        assert used - {"check"} <= shared, path


# Profiles


def test_every_constraint_has_its_source() -> None:
    for name in profiles.names():
        for target in profiles.load(name).targets:
            profile = profiles.load(name, target)
            assert profile.constraints.keys() == profile.sources.keys()
            assert all(profile.sources.values())
            assert re.fullmatch(r"20\d\d-\d\d-\d\d", profile.date)
            for option, values in profile.options.items():
                for value in values:
                    chosen = profile.with_options(**{option: value})
                    assert chosen.constraints.keys() == chosen.sources.keys()


def test_the_gateways_that_there_are() -> None:
    assert {name.partition("@")[0] for name in profiles.names()} == {
        *("vercel-ai-gateway", "openai-chat", "openai-responses", "azure-openai", "openresponses-2026-04-24"),
        *("anthropic", "bedrock-converse", "gemini", "mistral", "deepseek", "kimi", "openrouter", "vllm-responses"),
        *("github-copilot", "ai-sdk-ui", "ai-sdk-model"),
        *("groq", "cerebras", "zai", "minimax", "xai", "bedrock-mantle", "vertex", "volcengine"),
        *("litellm", "gemini-openai"),
    }


def test_the_plain_name_means_the_newest_date() -> None:
    assert profiles.load("vercel-ai-gateway") == profiles.load("vercel-ai-gateway@2026-01-31")
    old = profiles.load("vercel-ai-gateway@2026-01-29")
    assert old.constraints["function_calls"] is False
    assert old.constraints["text_embedding"]["call"] == "[Tool Call: {name}({arguments}) -> call_id: {call_id}]"
    assert "text_embedding" not in profiles.load("vercel-ai-gateway").constraints


def test_every_target_has_its_own_profile() -> None:
    for target in profiles.TARGETS:
        assert profiles.default(target).target == target
    assert profiles.default("chat") == profiles.load("openai-chat")
    assert profiles.default("ai-sdk-parts") == profiles.load("ai-sdk-model")


def test_a_gateway_speaks_what_it_speaks() -> None:
    assert profiles.load("deepseek").target == "openai-chat"
    assert profiles.load("deepseek", "anthropic").constraints["tool_id"]["keep"] is True
    for wrong in ("nobody", "anthropic@2020-01-01"):
        with pytest.raises(UsageError, match="gateway="):
            profiles.load(wrong)
    with pytest.raises(UsageError, match="does not support"):
        profiles.resolve("anthropic", "responses")
    with pytest.raises(UsageError, match="is for anthropic"):
        profiles.resolve(profiles.load("anthropic"), "responses")
    with pytest.raises(UsageError, match="target="):
        profiles.resolve(None, "smoke-signals")


def test_options() -> None:
    profile = profiles.load("openai-responses")
    assert profile.with_options() == profile
    assert profile.with_options(store=None) == profile
    assert profile.with_options(store=True) == profile
    assert profile.with_options(family="llama") == profile
    assert profile.with_options(store=False).constraints["reasoning"]["group"] is True
    assert profile.with_options(store=False).constraints["reasoning"]["item_ids"] is False
    with pytest.raises(UsageError, match="family='gpt'"):
        profiles.load("bedrock-converse").with_options(family="gpt")
    assert "chars" not in profiles.load("mistral").with_options(tokenizer="v13").constraints["tool_id"]


def test_profiles_of_a_user() -> None:
    mine = {"name": "mine", "date": "2030-01-01", "like": "anthropic", "constraints": {"first_role": None}}
    profile = profiles.resolve(mine, "anthropic")
    assert (profile.name, profile.date) == ("mine", "2030-01-01")
    assert "first_role" not in profile.constraints
    assert profile.constraints["tool_id"] == profiles.load("anthropic").constraints["tool_id"]
    bare = {"like": None, "constraints": {"min_items": 2}, "sources": {"min_items": "our own server"}}
    assert profiles.resolve(bare, "responses").constraints == {"min_items": 2}
    assert [v.source for v in check([], target="responses", gateway=bare)] == ["our own server"]
    for wrong in ({"constraint": {}}, {"targets": ["gemini"]}):
        with pytest.raises(UsageError):
            profiles.resolve(wrong, "anthropic")


def test_gateways_are_data() -> None:
    """No module contains the name of a gateway, except names that are also targets."""
    names = {entry["name"] for entry in load_history("gateways")["profiles"]} - set(profiles.TARGETS)
    package = Path(sw.__file__).parent / "history"
    for path in [package / "profiles.py", *package.glob("check/*.py")]:
        code = re.sub(r'"""[\s\S]*?"""|#[^\n]*', "", path.read_text("utf-8"))
        assert not [name for name in names if f'"{name}"' in code], path


# check


def test_what_is_no_history_is_refused() -> None:
    for wrong in ({"contents": []}, {"messages": "hi"}, "hi"):
        with pytest.raises(UsageError, match="messages"):
            check(wrong, target="anthropic")
    with pytest.raises(UsageError):
        check([], target="anthropic", gateway="nobody")


def test_input_may_be_a_text() -> None:
    assert check({"input": "hi"}, target="responses") == []


def test_members_of_the_payload_count() -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": []}
    output_text = {"type": "message", "role": "assistant", "content": "A"}
    assert check({"input": [item, output_text]}, target="responses") == []
    unstored = check({"store": False, "input": [item, output_text]}, target="responses")
    assert [v.rule for v in unstored] == ["reasoning_not_encrypted", "reasoning_id_sent"]
    output = {"type": "function_call_output", "call_id": "c", "output": "1"}
    assert [v.rule for v in check({"input": [output]}, target="responses")] == ["result_unmatched"]
    assert check({"previous_response_id": "resp_1", "input": [output]}, target="responses") == []


@pytest.mark.parametrize("target", profiles.TARGETS)
@pytest.mark.parametrize("junk", [None, 1, "x", [], {}, {"role": 5}, {"role": "user", "content": [None, 1, {}]}])
def test_junk_is_judged_and_never_raises(target: str, junk: Any) -> None:
    assert check([junk], target=target)
    check([{"role": "assistant", "content": junk, "parts": junk, "tool_calls": junk}], target=target)
    check([{"role": "user", "parts": [junk, {"functionCall": junk}, {"toolUse": junk}]}], target=target)
    check([{"type": "reasoning", "summary": junk}, {"type": "function_call", "arguments": junk}], target=target)


LOOPS: dict[str, Any] = {
    "openai-chat": lambda k: [
        {
            "role": "assistant",
            "tool_calls": [{"id": f"c{k}", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": f"c{k}", "content": "1"},
    ],
    "ai-sdk-model": lambda k: [
        {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": f"c{k}", "toolName": "f", "input": {}}]},
        {"role": "tool", "content": [{"type": "tool-result", "toolCallId": f"c{k}", "output": {"type": "text"}}]},
    ],
    "gemini": lambda k: [
        {"role": "model", "parts": [{"functionCall": {"name": f"f{k}"}, "thoughtSignature": "s"}]},
        {"role": "user", "parts": [{"functionResponse": {"name": f"f{k}", "response": {}}}]},
    ],
}


@pytest.mark.parametrize("target", LOOPS)
def test_cost_of_an_agent_that_never_stops(target: str) -> None:
    def history(n: int) -> list[Any]:
        first: dict[str, Any] = {"role": "user", "content": "hi"}
        if target in ("gemini", "ai-sdk-ui"):
            first = {"role": "user", "parts": [{"type": "text", "text": "hi"}]}
        return [first, *[message for k in range(n) for message in LOOPS[target](k)]]

    assert check(history(20), target=target) == []
    assert_linear(lambda: lambda data: check(history(len(data)), target=target), bytes, 1 << 20, 1000)


def test_cost_of_one_message_with_many_calls() -> None:
    def history(n: int) -> list[Any]:
        part = {"type": "tool-f", "state": "output-available", "input": {}, "output": 1}
        return [{"role": "assistant", "parts": [part | {"toolCallId": f"c{k}"} for k in range(n)]}]

    assert check(history(20), target="ai-sdk-ui") == []
    assert_linear(lambda: lambda data: check(history(len(data)), target="ai-sdk-ui"), bytes, 1 << 20, 2000)


def test_cost_grows_with_the_history() -> None:
    def history(n: int) -> list[Any]:
        made: list[Any] = []
        for k in range(n):
            call = {"type": "function_call", "call_id": f"c{k % 7}", "name": "f", "arguments": "{}"}
            made += [call, {"type": "function_call_output", "call_id": f"c{k % 7}", "output": "1"}]
        return made

    assert len(check(history(50), target="responses")) == 43
    # `assert_linear` measures in bytes; here, each byte represents a call with its result.
    assert_linear(lambda: lambda data: check(history(len(data)), target="responses"), bytes, 1 << 20, 2000)


@pytest.mark.skipif(not OPENRESPONSES.exists(), reason="the published OpenResponses schema is not beside this checkout")
def test_clean_responses_vectors_keep_the_published_schema() -> None:
    """A history that passes the checker for the OpenResponses specification has the members that its schema
    requires."""
    schemas = json.loads(OPENRESPONSES.read_text("utf-8"))["components"]["schemas"]
    names = {"function_call": "FunctionCallItemParam", "function_call_output": "FunctionCallOutputItemParam"}
    names |= {"reasoning": "ReasoningItemParam"}
    seen = 0
    for vector in vectors():
        if vector["target"] != "responses" or vector["violations"]:
            continue
        items = vector["messages"]["input"] if isinstance(vector["messages"], dict) else vector["messages"]
        for item in [] if isinstance(items, str) else items:
            schema = schemas.get(names.get(item.get("type"), ""))
            if schema is not None:
                assert set(schema["required"]) <= item.keys(), vector["name"]
                assert item.keys() <= schema["properties"].keys(), vector["name"]
                seen += 1
    assert seen > 10


def test_every_profile_has_a_grade_of_evidence_and_an_age() -> None:
    assert {profiles.load(name).evidence for name in profiles.names()} == {"tested", "documented", "reported"}
    profile = profiles.load("groq")
    assert profile.age(date(2026, 12, 3)) == 10
    mine = profiles.resolve({"name": "mine", "constraints": {}}, "openai-chat")
    assert profiles.resolve({"like": None, "constraints": {}}, "openai-chat").age() is None
    assert mine.evidence == profiles.load("openai-chat").evidence


def test_the_command_lists_the_profiles_and_marks_old_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles.Profile, "age", lambda self: 61 if self.name == "groq" else 60)
    done = CliRunner().invoke(history_command, ["profiles", "--json"])
    assert done.exit_code == 0
    rows = json.loads(done.output)["profiles"]
    assert [f"{row['name']}@{row['date']}" for row in rows] == list(profiles.names())
    assert [row["name"] for row in rows if row["stale"]] == ["groq"]
    assert all(row["sources"] for row in rows)
    shown = CliRunner().invoke(history_command, ["profiles"])
    assert shown.exit_code == 0
    assert "stale (61 days)" in shown.output
