"""The event classes of both backends, with the same tests and compared with `_spec/events.json`."""

from __future__ import annotations

import importlib
import json
import pickle
import timeit
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from streamweld import events, iter_events, parse
from streamweld._spec import EVENTS, PLAIN_EVENTS, Field
from streamweld.errors import ArgumentsError

if TYPE_CHECKING:
    from types import ModuleType

NAMES = list(EVENTS)
VALUES: dict[str, Any] = {"str": "x", "int": 7, "bool": True, "tuple": ("a",), "bytes": b"\xff{}", "object": {"k": [1]}}
OTHERS: dict[str, Any] = {"str": "y", "int": 8, "bool": False, "tuple": ("b",), "bytes": b"", "object": None}


@pytest.fixture
def classes(backend: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The event classes of one backend; `streamweld.events` exports them during the test."""
    home = importlib.import_module("streamweld._events" if backend == "pure" else "streamweld._native")
    for name in NAMES:
        monkeypatch.setattr(events, name, getattr(home, name))
    return home


def fields_of(name: str) -> list[Field]:
    """Return all fields of a class, and whether each has a default. A field with a default can be omitted only if no
    later field is required.
    """
    fields = list(EVENTS[name])
    if name not in PLAIN_EVENTS:
        fields.append(Field("choice", "int", nullable=False, required=False, default=0))
        fields.append(Field("provider_metadata", "object", nullable=True, required=False, default=None))
    needed = max([place for place, field in enumerate(fields) if field.required], default=-1)
    return [replace(field, required=place <= needed) for place, field in enumerate(fields)]


def full(name: str) -> dict[str, Any]:
    """Return a value for every field."""
    return {field.name: VALUES[field.type] for field in fields_of(name)}


def required(name: str) -> dict[str, Any]:
    """Return a value for every required field."""
    return {field.name: VALUES[field.type] for field in fields_of(name) if field.required}


def snake(name: str) -> str:
    return "".join(["_" + c.lower() if c.isupper() else c for c in name]).lstrip("_")


@pytest.mark.parametrize("name", NAMES)
def test_a_class_is_what_the_file_says(classes: ModuleType, name: str) -> None:
    cls = getattr(classes, name)
    fields = fields_of(name)
    assert cls.__name__ == name
    assert cls.__module__ == "streamweld.events"
    assert cls.type == snake(name)
    assert cls.__match_args__ == tuple(field.name for field in fields)
    assert cls.__doc__


@pytest.mark.parametrize("name", NAMES)
def test_fields_in_order_by_name_and_by_default(classes: ModuleType, name: str) -> None:
    cls = getattr(classes, name)
    values = full(name)
    by_place, by_name = cls(*values.values()), cls(**values)
    assert by_place == by_name
    assert {field: getattr(by_name, field) for field in values} == values
    made = cls(**required(name))
    for field in fields_of(name):
        if not field.required:
            assert getattr(made, field.name) == field.default
    if required(name):
        with pytest.raises(TypeError):
            cls()
    with pytest.raises(TypeError):
        cls(**values, nonsense=1)


@pytest.mark.parametrize("name", NAMES)
def test_equality_and_hash(classes: ModuleType, name: str) -> None:
    cls = getattr(classes, name)
    one, same = cls(**full(name)), cls(**full(name))
    assert one == same
    assert one != full(name)
    for field in fields_of(name):
        assert one != cls(**full(name) | {field.name: OTHERS[field.type]})
    if any(isinstance(value, dict) for value in full(name).values()):
        with pytest.raises(TypeError, match="unhashable"):
            hash(one)
    flat = {field: None if isinstance(value, dict) else value for field, value in full(name).items()}
    assert len({cls(**flat), cls(**flat)}) == 1


def test_events_of_two_classes_differ(classes: ModuleType) -> None:
    assert classes.TextDelta(1, "a") != classes.RefusalDelta(1, "a")
    assert classes.TextDelta(1, "a") != (1, "a", 0, None)
    with pytest.raises(TypeError):
        classes.TextDelta(1, "a") < classes.TextDelta(2, "a")  # noqa: B015


@pytest.mark.parametrize("name", NAMES)
def test_repr_can_be_read_back(classes: ModuleType, name: str) -> None:
    event = getattr(classes, name)(**full(name))
    assert repr(event) == f"{name}({', '.join([f'{field}={value!r}' for field, value in full(name).items()])})"
    assert eval(repr(event), vars(events)) == event


@pytest.mark.parametrize("name", NAMES)
def test_to_dict_is_json(classes: ModuleType, name: str) -> None:
    made = getattr(classes, name)(**full(name)).to_dict()
    assert list(made) == ["type", *full(name)]
    assert made["type"] == snake(name)
    again = json.loads(json.dumps(made))
    assert again == made
    for field in fields_of(name):
        if field.type == "bytes":
            assert made[field.name] == "\N{REPLACEMENT CHARACTER}{}"
        if field.type == "tuple":
            assert made[field.name] == ["a"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(classes: ModuleType, name: str, protocol: int) -> None:
    event = getattr(classes, name)(**full(name))
    pickled = pickle.dumps(event, protocol)
    assert b"streamweld.events" in pickled
    again = pickle.loads(pickled)
    assert type(again) is type(event)
    assert again == event


def test_a_pickle_is_read_by_the_other_set(classes: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    pickled = pickle.dumps(classes.ToolCall(0, "call_1", "f", "{}", "complete", aliases=("call_2",)))
    for home in ("streamweld._events", "streamweld._native"):
        cls = getattr(importlib.import_module(home), "ToolCall", None)
        if cls is not None:
            monkeypatch.setattr(events, "ToolCall", cls)
            assert pickle.loads(pickled) == cls(0, "call_1", "f", "{}", "complete", aliases=("call_2",))


def test_match(classes: ModuleType) -> None:
    match classes.TextDelta(3, "Hi"):
        case classes.TextStarted():
            pytest.fail("another class")
        case classes.TextDelta(part, text, choice=0):
            assert (part, text) == (3, "Hi")
        case _:
            pytest.fail("no match")


def test_an_event_takes_no_further_attribute(classes: ModuleType) -> None:
    event = classes.TextDelta(1, "a")
    assert not hasattr(event, "__dict__")
    with pytest.raises(AttributeError):
        event.colour = "red"


def test_building_one_is_cheap(classes: ModuleType) -> None:
    """Building an event is compared with the cheapest possible Python class; a frozen dataclass takes four times as
    long."""

    class Least:
        __slots__ = ("choice", "part", "provider_metadata", "text")

        def __init__(self, part: int, text: str, choice: int = 0, provider_metadata: object = None) -> None:
            self.part = part
            self.text = text
            self.choice = choice
            self.provider_metadata = provider_metadata

    timers = [timeit.Timer("cls(1, 'x')", globals={"cls": cls}) for cls in (classes.TextDelta, Least)]
    turns = [[timer.timeit(2_000) for timer in timers] for _ in range(90)]  # alternating, because the speed drifts
    ours, least = (min(times) for times in zip(*turns, strict=True))
    assert ours < 2 * least


@pytest.mark.parametrize(
    ("state", "arguments", "reason", "expected"),
    [
        ("complete", '{"a":1}', None, {"a": 1}),
        ("complete", "{}", None, {}),
        ("complete", '{"n":123456789012345678901234567890}', None, {"n": 123456789012345678901234567890}),
        ("complete", '{"s":"\\ud800"}', None, {"s": "\N{REPLACEMENT CHARACTER}"}),
        ("complete", '{"k":1,"k":2}', None, {"k": 2}),
        ("empty", "", None, {}),
        ("incomplete", '{"a":', None, ("arguments_incomplete", "incomplete", None)),
        ("open", '{"a":1}', None, ("arguments_open", "open", None)),
        ("invalid", '{"a":1}', "no_name", ("arguments_invalid", "invalid", "no_name")),
        ("invalid", "{}{}", "overflow", ("arguments_invalid", "invalid", "overflow")),
        ("complete", "[1]", None, ("arguments_invalid", "invalid", "not_object")),
        ("complete", '{"a":NaN}', None, ("arguments_invalid", "invalid", "not_json")),
        ("complete", '{"a":1e999}', None, ("arguments_invalid", "invalid", "not_json")),
    ],
)
def test_parsed(
    classes: ModuleType, state: str, arguments: str, reason: str | None, expected: dict[str, Any] | tuple[str, ...]
) -> None:
    call = classes.ToolCall(4, "call_1", "f", arguments, state, reason=reason)
    if isinstance(expected, dict):
        assert call.parsed == expected
        assert call.parsed is not call.parsed
        return
    with pytest.raises(ArgumentsError) as raised:
        call.parsed  # noqa: B018
    error = raised.value
    assert (error.rule, error.state, error.reason) == expected
    assert (error.part, error.call_id) == (4, "call_1")
    assert isinstance(error, ValueError)
    assert arguments not in str(error)


@pytest.mark.parametrize("state", ["complete", "empty", "incomplete", "invalid", "open"])
def test_free_form_text_is_no_object(classes: ModuleType, state: str) -> None:
    call = classes.ToolCall(4, "call_1", "run", "{}", state, reason="no_name", custom=True)
    with pytest.raises(ArgumentsError, match="free-form text") as raised:
        call.parsed  # noqa: B018
    error = raised.value
    assert (error.rule, error.state, error.reason) == ("arguments_custom", state, "custom")
    assert (error.part, error.call_id) == (4, "call_1")
    assert call.dispatchable is (state in {"complete", "empty"})
    assert call.to_dict()["custom"] is True
    assert pickle.loads(pickle.dumps(call)) == call


@pytest.mark.parametrize(
    ("state", "call_id", "name", "server", "expected"),
    [
        ("complete", "a", "f", False, True),
        ("empty", "a", "f", False, True),
        ("incomplete", "a", "f", False, False),
        ("invalid", "a", "f", False, False),
        ("open", "a", "f", False, False),
        ("complete", "", "f", False, False),
        ("complete", "a", "", False, False),
        ("complete", "a", "f", True, False),
    ],
)
def test_dispatchable(classes: ModuleType, state: str, call_id: str, name: str, server: bool, expected: bool) -> None:
    call = classes.ToolCall(0, call_id, name, "{}" if state == "complete" else "", state, provider_executed=server)
    assert call.dispatchable is expected


def test_one_set_is_exported() -> None:
    assert isinstance(events.TextDelta(0, "a"), events.Event)
    for name in NAMES:
        assert getattr(events, name) in events.Event.__args__
        assert name in events.__all__
    assert len(events.Event.__args__) == len(NAMES)


@pytest.mark.usefixtures("backend")
def test_a_diagnostic_says_itself_in_a_sentence() -> None:
    body = b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"what"}]}\n\ndata: [DONE]\n\n'
    (found,) = [d for d in parse(body, dialect="chat").diagnostics if d.code == "finish_unknown"]
    assert found.message == "The finish reason is unknown; it was mapped to `other`: what"
    assert found.help_url.endswith("/docs/rules.md#finish_unknown")


def test_a_detail_of_a_fixed_set_is_explained() -> None:
    lost = events.Diagnostic("not_carried", "info", 0, 0, None, "choices").message
    assert lost.endswith(": choices (a second choice; the target has only one response per stream)")
    written = events.Diagnostic("rewritten", "info", 0, 0, None, "args_object").message
    assert written.endswith(": args_object (The arguments of a call are an object. Clients expect text)")


@pytest.mark.usefixtures("backend")
def test_finished_answers_to_its_former_name() -> None:
    body = b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    (end,) = [event for event in iter_events([body], dialect="chat") if event.type == "finished"]
    assert end.finish_reason == end.reason == "stop"
    assert end.to_dict()["finish_reason"] == "stop"
