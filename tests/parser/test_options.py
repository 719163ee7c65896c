"""Policy and Limits: validated once, frozen, hashable, and converted to the data that both backends accept."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from typing import Any, get_args

import pytest
from streamweld._spec import CODES, LIMITS, Base
from streamweld.errors import UsageError
from streamweld.options import Limits, Policy, to_config

BASES = get_args(Base)
SWITCHES: dict[str, tuple[Any, ...]] = {
    "same_index_new_id_same_name_empty": ("new", "merge"),
    "orphan_index": ("fifo", "latest"),
    "dup_id_parallel_headers": ("auto", "join", "split"),
    "dup_id_empty_header": ("drop", "keep"),
    "identical_idless_same_index": ("drop", "keep"),
    "on_overflow": ("flag", "split"),
    "duplicate_payload": ("keep", "drop"),
    "content_mode": ("delta", "auto", "cumulative"),
    "drop_restated_content": (True, False),
    "restart_on_new_stream_id": (False, True),
    "merge_choices": (False, True),
    "unstable_id": ("first", "last"),
    "empty_call_without_reason": ("cut", "run"),
}
DEFAULTS = {name: values[0] for name, values in SWITCHES.items()} | {"missing_terminal": "truncate"}


def test_the_config_is_whole() -> None:
    assert to_config() == {
        "base": "standard",
        "actions": {name: code.action("standard") for name, code in CODES.items()},
        "inline_reasoning": False,
        "close_calls_at": "done",
        "switches": DEFAULTS,
        "limits": dict(LIMITS),
        "text_calls": None,
        "text_call_tools": None,
        "tools": None,
        "tool_properties": {},
        "known_call_ids": [],
        "content_type": None,
        "seed": None,
    }


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in SWITCHES.items() for value in values])
def test_switches(name: str, value: Any) -> None:
    policy = Policy(**{name: value})
    assert getattr(policy, name) == value
    assert to_config(policy)["switches"] == DEFAULTS | {name: value}


def test_a_missing_terminal_is_a_cut_unless_salvaged() -> None:
    """The default comes from the base policy; an explicit value overrides it."""
    assert [Policy(base).missing_terminal for base in BASES] == ["truncate", "truncate", "assume"]
    for base in BASES:
        for value in ("truncate", "assume"):
            policy = Policy(base, missing_terminal=value)
            assert to_config(policy)["switches"]["missing_terminal"] == value
            assert pickle.loads(pickle.dumps(policy)) == policy
    assert Policy("salvage") == Policy("salvage", missing_terminal="assume")
    for wrong in ("nonsense", 1, "", []):
        with pytest.raises(UsageError, match="missing_terminal"):
            Policy(missing_terminal=wrong)


@pytest.mark.parametrize("name", ["base", "close_calls_at", "inline_reasoning", *SWITCHES])
@pytest.mark.parametrize("value", ["nonsense", 1, None, "", [], 0])
def test_a_value_that_does_not_exist(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=name):
        Policy(**{name: value})


@pytest.mark.parametrize("base", BASES)
def test_actions_of_a_base(base: Base) -> None:
    actions = to_config(base)["actions"]
    assert list(actions) == list(CODES)
    for name, code in CODES.items():
        expected = "raise" if base == "strict" and code.severity != "info" else "diagnose"
        assert actions[name] == code.actions.get(base, expected)
    assert (actions["malformed_json"], actions["truncated"], actions["upstream_error"]) == {
        "strict": ("raise", "raise", "raise"),
        "standard": ("raise", "raise", "raise"),
        "salvage": ("skip", "diagnose", "diagnose"),
    }[base]


def test_actions_of_the_caller_come_first() -> None:
    policy = Policy("strict", actions={"unstable_id": "diagnose", "malformed_json": "skip"})
    assert policy.action("unstable_id") == "diagnose"
    assert policy.action("malformed_json") == "skip"
    assert policy.action("name_conflict") == "raise"
    assert to_config(policy)["actions"]["malformed_json"] == "skip"


@pytest.mark.parametrize("code", CODES)
def test_skip_is_for_what_can_be_left_out(code: str) -> None:
    if CODES[code].skippable:
        assert Policy(actions={code: "skip"}).action(code) == "skip"
    else:
        with pytest.raises(UsageError, match=code):
            Policy(actions={code: "skip"})


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Policy(actions={"no_nam": "raise"}), "no_nam.*did you mean 'no_name'"),
        (lambda: Policy(actions={"no_name": "explode"}), "explode"),
        (lambda: Policy(actions=["unstable_id"]), "actions=.*mapping"),
        (lambda: Policy(actions="raise"), "actions='raise'.*mapping"),
        (lambda: Policy(actions=None), "actions=None.*mapping"),
        (lambda: Policy(actions={5: "raise"}), "unknown diagnostic code 5"),
        (lambda: Policy(actions={"no_name": ["raise"]}), "no_name.*one of"),
        (lambda: Policy(on_overflw="flag"), "on_overflw.*did you mean 'on_overflow'"),
        (lambda: Policy("strict", {}), "keywords"),
        (lambda: Policy().action("nonsense"), "nonsense"),
        (lambda: Limits(max_evnt_bytes=1), "did you mean 'max_event_bytes'"),
        (lambda: Limits(5), "options of Limits are keywords"),
        (lambda: Limits(max_event_bytes=-1), "max_event_bytes"),
        (lambda: Limits(max_event_bytes=1.5), "max_event_bytes"),
        (lambda: Limits(max_event_bytes=True), "max_event_bytes"),
        (lambda: Limits(max_event_bytes="1"), "max_event_bytes"),
        (lambda: Limits(max_event_bytes=2**63), "max_event_bytes"),
        (lambda: to_config("stritc"), "stritc"),
        (lambda: to_config(None), "policy"),
        (lambda: to_config(limits=5), "limits"),
        (lambda: to_config(tools="f"), "tools"),
        (lambda: to_config(tools=5), "tools"),
        (
            lambda: to_config(tools=[{"type": "function"}]),
            "tools contains .* no name; give the request's tools",
        ),
        (lambda: to_config(tools=[{"name": "f"}, {"name": "f", "parameters": {}}]), "'f' twice"),
        (lambda: to_config(tools={"f": 5}), "tools"),
        (lambda: to_config(tools={"f": {"required": "a"}}), "required"),
        (lambda: to_config(known_call_ids="a"), "known_call_ids"),
        (lambda: to_config(known_call_ids=[1]), "known_call_ids"),
        (lambda: to_config(content_type=b"text/html"), "content_type"),
        (lambda: to_config(tools=["\ud800"]), "tools.*unpaired surrogate"),
        (lambda: to_config(tools={"a\udfff": None}), "tools.*unpaired surrogate"),
        (lambda: to_config(tools={"a": {"required": ["\ud800"]}}), "required.*unpaired surrogate"),
        (lambda: to_config(known_call_ids=["a", "\ud800"]), "known_call_ids.*unpaired surrogate"),
        (lambda: to_config(content_type="text/\ud800"), "content_type.*unpaired surrogate"),
        (lambda: to_config(seed="\ud800"), "seed"),
        (lambda: to_config(seed=""), "seed"),
        (lambda: to_config(seed="a b"), "seed"),
        (lambda: to_config(seed=7), "seed"),
    ],
)
def test_what_cannot_be(make: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make()


def test_tools() -> None:
    assert to_config(tools=["a", "b"])["tools"] == {"a": None, "b": None}
    assert to_config(tools={"a": {"required": ["x"]}, "b": {}, "c": None})["tools"] == {"a": ["x"], "b": [], "c": None}
    schemas: dict[str, Any] = {
        "closed": {"properties": {"x": {}, "y": {}}},
        "none": {"properties": {}},
        "open": {"properties": {"x": {}}, "additionalProperties": {"type": "string"}},
        "combined": {"properties": {"x": {}}, "anyOf": [{"required": ["x"]}]},
        "unknown": {"required": ["x"]},
        "bare": None,
    }
    assert to_config(tools=schemas)["tool_properties"] == {"closed": ["x", "y"], "none": []}
    assert to_config(tools=[])["tools"] == {}
    assert to_config(known_call_ids=iter(["a"]), seed="s-1", content_type="text/html")["known_call_ids"] == ["a"]


SCHEMA = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}


@pytest.mark.parametrize(
    "definition",
    [
        {"type": "function", "function": {"name": "f", "parameters": SCHEMA}},
        {"type": "function", "name": "f", "parameters": SCHEMA},
        {"name": "f", "input_schema": SCHEMA},
        {"functionDeclarations": [{"name": "f", "parametersJsonSchema": SCHEMA}]},
        {"function_declarations": [{"name": "f", "parameters": SCHEMA}]},
        {"toolSpec": {"name": "f", "inputSchema": {"json": SCHEMA}}},
        {"type": "function", "name": "f", "inputSchema": SCHEMA},
    ],
    ids=["chat", "responses", "anthropic", "gemini", "gemini-python", "bedrock", "ai-sdk"],
)
def test_tools_are_accepted_as_the_request_defines_them(definition: dict[str, Any]) -> None:
    policy = Policy(text_calls="report")
    given = iter([definition, "g", {"googleSearch": {}}, {"type": "web_search_20250305", "name": "web_search"}])
    config = to_config(policy, tools=given)
    assert config["tools"] == {"f": ["x"], "g": None, "web_search": None}
    assert json.loads(config["text_call_tools"]["f"]) == SCHEMA
    assert to_config(tools=[definition, definition])["tools"] == {"f": ["x"]}


@pytest.mark.parametrize(
    "made", [Policy("strict", actions={"no_name": "diagnose"}, on_overflow="split"), Limits(max_events=5)]
)
def test_frozen_hashable_equal_and_copied(made: Any) -> None:
    assert dataclasses.is_dataclass(made)
    name = dataclasses.fields(made)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(made, name, getattr(made, name))
    for again in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made), dataclasses.replace(made)):
        assert again == made
        assert hash(again) == hash(made)
        assert to_config(again) == to_config(made) if isinstance(again, Policy) else True
    assert made != type(made)()


def test_a_policy_does_not_follow_the_mapping_it_was_made_from() -> None:
    actions: dict[str, Any] = {"no_name": "raise"}
    policy = Policy(actions=actions)
    actions["no_name"] = "diagnose"
    assert policy.action("no_name") == "raise"
    with pytest.raises(TypeError):
        policy.actions["no_name"] = "diagnose"  # type: ignore[index]


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name: str) -> None:
    assert getattr(Limits(), name) == LIMITS[name]
    assert to_config(limits=Limits(**{name: 5}))["limits"] == dict(LIMITS) | {name: 5}
    for off in (0, None):
        assert to_config(limits=Limits(**{name: off}))["limits"] == dict(LIMITS) | {name: None}
        assert Limits(**{name: off}) == Limits(**{name: None})
