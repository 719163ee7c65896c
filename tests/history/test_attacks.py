"""Invalid histories: members of a wrong type at every place, unknown members, unusual objects. Either `convert` raises
a documented exception, or its result is valid, a second conversion does not change it, and every loss is reported.
"""

from __future__ import annotations

import copy
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
from streamweld.errors import HistoryError, UsageError
from streamweld.history import HistoryPolicy, check, convert, dedupe_reasoning
from streamweld.history.dialects import FAMILIES

from tests.conftest import FULL
from tests.history.jsonable import dumps
from tests.history.test_properties import all_routes
from tests.support.histories_of_agents import HISTORIES

if TYPE_CHECKING:
    from collections.abc import Iterator

KEEP = HistoryPolicy(on_unfixable="keep")
ROUTES = all_routes()
STEP = 3 if FULL else 5
TARGETS = sorted({target for target, _, _ in ROUTES})
# Members with user-defined objects, in which any member is allowed.
FREE = {"input", "arguments", "args", "value", "data", "output", "response", "json", "providerOptions"}
FREE |= {"providerMetadata", "tools", "action", "result", "metadata"}
WRONG: list[Any] = [None, 5, "", [], {}, [None], [5], ["x"], {"a": 1}, "str", True, float("nan"), "\ud800", [[]], [{}]]
MARK = "«lost»"

EVERY = pytest.mark.parametrize("name", list(HISTORIES))
TO_EVERY = pytest.mark.parametrize("target", TARGETS)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value, including objects and lists."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, held in inner:
        yield from places(held, (*path, step))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def some(n: int) -> list[tuple[str, str, dict[str, Any]]]:
    """Return some of the routes, different ones each time."""
    return ROUTES[n % STEP :: STEP]


@EVERY
def test_clean_as_it_is_and_read_as_what_it_is(name: str) -> None:
    source, given = HISTORIES[name]
    for target, gateway, options in ROUTES:
        made = convert(given, target=target, gateway=gateway, **options)
        assert made.payload == convert(given, source=source, target=target, gateway=gateway, **options).payload
        assert check({**made.payload, **options}, target=target, gateway=gateway) == [], gateway


@EVERY
def test_a_member_of_a_wrong_type(name: str) -> None:
    source, given = HISTORIES[name]
    cases = [(path, wrong) for path in places(given) if path for wrong in WRONG]
    for n, (path, wrong) in enumerate(cases[:: 4 if FULL else 7]):
        broken = copy.deepcopy(given)
        at(broken, path[:-1])[path[-1]] = wrong
        before = dumps(broken)
        for target, gateway, options in some(n):
            case = (path, wrong, target, gateway)
            try:
                convert(broken, source="auto", target=target, gateway=gateway, **options)
            except (HistoryError, UsageError):
                pass
            try:
                made = convert(broken, source=source, target=target, gateway=gateway, **options)
            except (HistoryError, UsageError):
                continue
            assert dumps(broken) == before, case
            assert check({**made.payload, **options}, target=target, gateway=gateway) == [], case
            again = convert(made.payload, source=target, target=target, gateway=gateway, **options)
            assert (again.edits, again.losses) == ((), ()), case
            assert dumps(again.payload) == dumps(made.payload), case


@EVERY
def test_a_member_that_no_model_has(name: str) -> None:
    source, given = HISTORIES[name]
    for n, path in enumerate(places(given)):
        if FREE.intersection(path) or not isinstance(at(given, path), dict):
            continue
        marked = copy.deepcopy(given)
        at(marked, path)["beyond"] = MARK
        for target, gateway, options in some(n):
            made = convert(marked, source=source, target=target, gateway=gateway, policy=KEEP, **options)
            entries = [entry.to_dict() for entry in (*made.edits, *made.losses)]
            held = dumps([made.payload, entries], ensure_ascii=False)
            assert MARK in held, (path, target, gateway)


def asked(given: Any) -> list[Any]:
    call = {"type": "tool_use", "id": "c1", "name": "f", "input": given}
    return [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]},
    ]


def endless() -> Any:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


def bottomless() -> Any:
    outer: dict[str, Any] = {}
    inner = outer
    for _ in range(100_000):
        inner["a"] = {}
        inner = inner["a"]
    return outer


@TO_EVERY
@pytest.mark.parametrize("given", [endless(), bottomless()], ids=["endless", "bottomless"])
def test_arguments_that_are_no_json(target: str, given: Any) -> None:
    """Arguments that are not JSON cannot be written where arguments are text; other targets keep the user's own
    object."""
    if FAMILIES[target] in ("openai-chat", "responses"):
        with pytest.raises(HistoryError, match="/1/content/0: unreadable"):
            convert(asked(given), source="anthropic", target=target)
    else:
        made = convert(asked(given), source="anthropic", target=target)
        assert [edit.rule for edit in made.edits if edit.rule != "signature_dummy"] == []


@TO_EVERY
@pytest.mark.parametrize(
    "value",
    [float("nan"), 10**400, "\ud800", object(), b"x", {1: 2}, {("a",): 2}],
    ids=["nan", "huge", "surrogate", "object", "bytes", "integer-key", "tuple-key"],
)
def test_odd_values_inside_of_arguments(target: str, value: Any) -> None:
    if FAMILIES[target] in ("openai-chat", "responses") and value == {("a",): 2}:
        with pytest.raises(HistoryError, match="unreadable"):
            convert(asked({"v": value}), source="anthropic", target=target)
    else:
        made = convert(asked({"v": value}), source="anthropic", target=target)
        assert check(made.payload, target=target) == []


@TO_EVERY
def test_tuples_and_mappings_that_are_no_dicts(target: str) -> None:
    source, given = HISTORIES["chat"]
    frozen = tuple([MappingProxyType(message) for message in given])
    assert convert(frozen, source=source, target=target).edits == convert(given, source=source, target=target).edits


@TO_EVERY
def test_one_object_in_many_places(target: str) -> None:
    question, *turn = [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "r"},
    ]
    made = convert([question, *turn, question, *turn, question], source="openai-chat", target=target)
    assert check(made.payload, target=target) == []
    assert {made.ids.to_source(made.ids.to_target("a", n)) for n in (0, 1)} == {"a"}


@pytest.mark.parametrize(
    "given",
    [None, 5, "hi", b"hi", {"messages": None}, {"input": 5}, {}, iter([])],
    ids=["none", "number", "text", "bytes", "messages-none", "input-number", "empty", "iterator"],
)
def test_what_is_no_history(given: Any) -> None:
    with pytest.raises(UsageError):
        convert(given, target="anthropic")


@pytest.mark.parametrize("tools", [5, "f", b"f"])
def test_what_are_no_tools(tools: Any) -> None:
    with pytest.raises(UsageError, match="tools"):
        convert([], target="anthropic", tools=tools)


def test_a_payload_is_its_own() -> None:
    """A converted payload does not change when the user's messages change, and vice versa."""
    _, given = HISTORIES["chat"]
    messages = copy.deepcopy(given)
    made = convert(messages, target="anthropic")
    before = dumps(made.payload)
    messages[2]["tool_calls"][0]["function"]["arguments"] = "{}"
    messages[1]["content"][0]["text"] = "changed"
    assert dumps(made.payload) == before


def test_dedupe_takes_anything() -> None:
    odd = [
        5,
        None,
        "x",
        {},
        {"role": [], "parts": 5},
        {"role": "assistant", "parts": [None, 5]},
        {"type": [], "id": []},
    ]
    assert dedupe_reasoning(odd) is odd


def test_bytes_as_packages_have_them() -> None:
    """boto3 and google-genai use bytes for members that contain base64 on the wire."""
    image = {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}
    made = convert(
        [{"role": "user", "content": [{"text": "see"}, image]}], source="bedrock-converse", target="anthropic"
    )
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}
    assert made.payload["messages"][0]["content"][1] == {"type": "image", "source": source}
    blob = {"inlineData": {"mimeType": "image/png", "data": b"\x89PNG"}}
    made = convert([{"role": "user", "parts": [{"text": "see"}, blob]}], source="gemini", target="openai-chat")
    url = made.payload["messages"][0]["content"][1]["image_url"]["url"]
    assert url == "data:image/png;base64,iVBORw=="
