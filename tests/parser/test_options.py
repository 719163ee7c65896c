"""Policy and Limits: validated once, frozen, hashable, and converted to the data that both backends accept."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import re
from array import array
from types import MappingProxyType
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


REPORT = Policy(text_calls="report")


def _shared(tools: Any) -> Any:
    """Return the object that contains the schemas. Streams with equal tools share it."""
    return to_config(REPORT, tools=tools)["text_call_tools"]


def test_streams_with_equal_tools_share_their_schemas() -> None:
    definition = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
    shared = _shared({"f": SCHEMA})
    assert _shared({"f": copy.deepcopy(SCHEMA)}) is shared
    assert _shared([json.loads(json.dumps(definition))]) is shared
    assert _shared({"f": SCHEMA, "g": None}) is not shared
    assert _shared({"g": SCHEMA}) is not shared


def test_changed_tools_are_read_again() -> None:
    tools: dict[str, Any] = {"f": copy.deepcopy(SCHEMA)}
    before = to_config(REPORT, tools=tools)
    for change, required, properties in [
        (lambda schema: schema["properties"]["x"].update(type="integer"), ["x"], ["x"]),
        (lambda schema: schema["properties"].update(y={}), ["x"], ["x", "y"]),
        (lambda schema: schema["required"].append("y"), ["x", "y"], ["x", "y"]),
    ]:
        change(tools["f"])
        config = to_config(REPORT, tools=tools)
        assert json.loads(config["text_call_tools"]["f"]) == tools["f"]
        assert config["tools"] == {"f": required}
        assert config["tool_properties"] == {"f": properties}
    assert json.loads(before["text_call_tools"]["f"]) == SCHEMA
    assert before["tools"] == {"f": ["x"]}


class _Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (1, "1"),
        (1.0, "1.0"),
        (0, "0"),
        (False, "false"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        ("1", '"1"'),
        (_Text("1"), '"1"'),
        (2**70, str(2**70)),
        (None, "null"),
        ([], "[]"),
        ((), "[]"),
        ({}, "{}"),
        (MappingProxyType({}), "{}"),
        ({1: 2}, '{"1": 2}'),
        ({"1": 2}, '{"1": 2}'),
        ("\ud800", '"\ud800"'),
        ("\u4f60", '"\u4f60"'),
        (float("inf"), "Infinity"),
    ],
)
def test_tools_that_python_considers_equal_can_have_different_schemas(value: Any, text: str) -> None:
    for _ in range(2):
        assert _shared({"f": {"const": value}}) == {"f": f'{{"const": {text}}}'}


def _circular() -> dict[str, Any]:
    schema: dict[str, Any] = {}
    schema["self"] = schema
    return schema


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"const": b"ab"}, r"tools\['f'\] is not a JSON schema: .*"),
        ({"const": bytearray(b"ab")}, r"tools\['f'\] is not a JSON schema: .*"),
        ({"const": {1}}, r"tools\['f'\] is not a JSON schema: .*"),
        ({"const": 1j}, r"tools\['f'\] is not a JSON schema: .*"),
        ({"const": object()}, r"tools\['f'\] is not a JSON schema: .*"),
        ({("a", "b"): 1}, r"tools\['f'\] is not a JSON schema: .*"),
        (_circular(), r"tools\['f'\] is not a JSON schema: Circular reference detected"),
        (5, r"tools\['f'\] is not a JSON schema; give .*"),
        ("text", r"tools\['f'\] is not a JSON schema; give .*"),
        ([], r"tools\['f'\] is not a JSON schema; give .*"),
        ({"required": "a"}, r"tools\['f'\]\['required'\]='a': it must be a list of strings"),
        ({"required": [1]}, r"tools\['f'\]\['required'\] contains 1, which is not a string"),
        ({"properties": {1: {}}}, r"tools\['f'\]\['properties'\] contains 1, which is not a string"),
        ({"properties": {"\ud800": {}}}, r"tools\['f'\]\['properties'\]: .* contains an unpaired surrogate.*"),
    ],
)
def test_schemas_are_checked_for_every_stream(schema: Any, said: str) -> None:
    for _ in range(2):
        with pytest.raises(UsageError) as raised:
            to_config(REPORT, tools={"f": schema})
        assert re.fullmatch(said, str(raised.value))


def test_objects_with_the_same_buffer_are_not_confused() -> None:
    empty = _shared({"f": {"const": b""}})  # `dict(b"")` is an empty mapping
    assert empty == {"f": '{"const": {}}'}
    assert _shared({"f": {"const": array("b")}}) is not empty


class _Name(str):
    """A string with a buffer, such as those of NumPy. Python reads the buffer of such a class since version 3.12."""

    __slots__ = ()

    def __buffer__(self, _: int) -> memoryview:
        return memoryview(self.encode())


def test_names_with_a_buffer_remain_names() -> None:
    for _ in range(2):
        config = to_config(REPORT, tools={_Name("f"): {"required": [_Name("x")]}, _Name("g"): None})
        assert config["tools"] == {"f": ["x"], "g": None}
        assert config["text_call_tools"] == {"f": '{"required": ["x"]}', "g": None}
        assert to_config(REPORT, tools={_Name("g"): None})["tools"] == {"g": None}
        assert _shared({_Name("g"): None}) == {"g": None}


def test_large_tools_are_not_kept() -> None:
    large = {"f": {"description": "x" * 200_000}}
    assert _shared(large) == _shared(large)
    assert _shared(large) is not _shared(large)


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
