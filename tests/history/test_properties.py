"""Invariants of every history, valid or broken, from every dialect to every target and gateway."""

from __future__ import annotations

import copy
import os
import random
import time
from typing import Any

import pytest
from streamweld.errors import HistoryError
from streamweld.history import HistoryPolicy, convert, profiles
from streamweld.history.check import check
from streamweld.history.dialects import FAMILIES
from streamweld.history.model import Call, Result, Text, arguments_object, result_text
from streamweld.history.read import read

from tests.history.jsonable import dumps
from tests.support.generate.history import DIALECTS, Maker, payload_of

SEEDS = range(400 if os.environ.get("STREAMWELD_FULL") else 40)
CONTAINERS = {"responses": "input", "gemini": "contents"}
SYSTEM = {
    "responses": "instructions",
    "anthropic": "system",
    "gemini": "systemInstruction",
    "bedrock-converse": "system",
}


def all_routes() -> list[tuple[str, str, dict[str, Any]]]:
    """Return every gateway with every target that it supports: target, gateway, options."""
    routes: list[tuple[str, str, dict[str, Any]]] = []
    for name in profiles.names():
        routes += [(target, name, {}) for target in profiles.load(name).targets]
    routes.append(("responses", "openai-responses", {"store": False}))
    routes.append(("responses", "github-copilot", {"store": False}))
    return routes


ROUTES = pytest.mark.parametrize(
    ("target", "gateway", "options"),
    [pytest.param(*r, id=f"{r[1]}-{r[0]}-{r[2].get('store', '')}") for r in all_routes()],
)


def histories(*, broken: bool) -> list[tuple[str, list[str], Any, list[Any]]]:
    out = []
    for seed in SEEDS:
        maker = Maker(seed, broken=broken)
        script = maker.script(1 + seed % 6)
        if not script:
            continue
        dialect = DIALECTS[seed % len(DIALECTS)]
        out.append((dialect, maker.tokens, payload_of(script, dialect), script))
    return out


HISTORIES = {broken: histories(broken=broken) for broken in (False, True)}


KEEP = HistoryPolicy(on_unfixable="keep")
UNFIXABLE = {"too_few", "user_missing", "last_role"}


def converted(payload: Any, source: str, target: str, gateway: str, **options: Any) -> Any:
    return convert(payload, source=source, target=target, gateway=gateway, policy=KEEP, **options)


def violations(payload: Any, target: str, gateway: str, options: dict[str, Any]) -> set[str]:
    return {found.rule for found in check({**payload, **options}, target=target, gateway=gateway)}


@ROUTES
@pytest.mark.parametrize("broken", [False, True], ids=["sound", "broken"])
def test_every_history(target: str, gateway: str, options: dict[str, Any], broken: bool) -> None:
    for dialect, tokens, payload, _ in HISTORIES[broken]:
        before = copy.deepcopy(payload)
        once = converted(payload, dialect, target, gateway, **options)
        assert payload == before, "the input was changed"
        held = dumps(
            [once.payload, [e.to_dict() for e in once.edits], [x.to_dict() for x in once.losses]], ensure_ascii=False
        )
        given = dumps(payload, ensure_ascii=False)
        lost = [token for token in tokens if token in given and token not in held]
        assert not lost, f"{lost} of {given}"
        broken_rules = violations(once.payload, target, gateway, options)
        assert broken_rules <= UNFIXABLE, (broken_rules, payload, once.payload)
        if broken_rules:
            with pytest.raises(HistoryError) as caught:
                convert(payload, source=dialect, target=target, gateway=gateway, **options)
            assert caught.value.rule in broken_rules
            assert caught.value.rule in {found.rule for found in caught.value.violations}
        if dialect == FAMILIES[target] and once.payload is not payload:
            assert once.edits, (payload, once.payload)
        for source in (target, "auto"):
            twice = converted(once.payload, source, target, gateway, **options)
            assert not twice.edits, (source, twice.edits, payload, once.payload)
            assert twice.payload is once.payload, (source, payload, once.payload, twice.payload)
            assert not twice.losses
        for old, new in once.ids:
            assert once.ids.to_source(new) == old
        assert len({new for _, new in once.ids}) == len(once.ids) or profiles_keep(gateway, target)


def profiles_keep(gateway: str, target: str) -> bool:
    return not (profiles.load(gateway, target).constraints.get("tool_id") or {}).get("unique")


@ROUTES
def test_a_longer_history_begins_as_the_shorter_one(target: str, gateway: str, options: dict[str, Any]) -> None:
    member = CONTAINERS.get(target, "messages")
    for dialect, _, payload, script in HISTORIES[False]:
        full = converted(payload, dialect, target, gateway, **options).payload[member]
        for cut in range(1, len(script)):
            if script[cut].kind != "user" or script[cut - 1].kind == "user":
                continue
            if target == "mistral" and script[cut - 1].kind == "assistant":
                continue  # its last message is marked as a prefix of the response
            part = converted(payload_of(script[:cut], dialect), dialect, target, gateway, **options).payload[member]
            short = part[:-1] if script[cut - 1].kind == "results" else part
            if target in ("anthropic", "bedrock-converse") and short and short[-1]["role"] == "assistant":
                short = short[:-1]  # the last text has no trailing white space
            assert dumps(short) == dumps(full[: len(short)])


def test_linear() -> None:
    """Four times as many messages take at most eight times as long, in the best of several tries."""
    payloads = [payload_of(Maker(7, broken=True).script(n), "openai-chat") for n in (500, 2000)]
    for target in ("anthropic", "responses", "ai-sdk-ui"):
        times: list[float] = []
        for _ in range(4):
            times = [min(seconds(payload, target) for _ in range(3)) for payload in payloads]
            if times[1] <= 8 * times[0]:
                break
        else:
            pytest.fail(f"{target}: {times}")


def seconds(payload: Any, target: str) -> float:
    begin = time.process_time()
    convert(payload, source="openai-chat", target=target)
    return time.process_time() - begin


def test_unreadable_messages_are_named() -> None:
    with pytest.raises(HistoryError, match="/1: unreadable"):
        convert([{"role": "user", "content": "x"}, 5], target="anthropic")
    with pytest.raises(HistoryError, match="/0/role: unknown_role"):
        convert([{"role": "narrator", "content": "x"}], target="anthropic")


@pytest.mark.parametrize(
    "target", ["openai-chat", "responses", "anthropic", "gemini", "bedrock-converse", "ai-sdk-model"]
)
def test_there_and_back(target: str) -> None:
    """A round trip returns the input, except for changes and losses that either conversion reported."""
    same = 0
    for dialect, tokens, payload, _ in HISTORIES[False]:
        there = convert(payload, source=dialect, target=target, policy=KEEP)
        back = convert(there.payload, source=target, target=dialect, policy=KEEP)
        entries = [entry.to_dict() for one in (there, back) for entry in (*one.edits, *one.losses)]
        held = dumps([back.payload, entries], ensure_ascii=False)
        given = dumps(payload, ensure_ascii=False)
        lost = [token for token in tokens if token in given and token not in held]
        assert not lost, (dialect, lost, given)
        if not entries:
            same += 1
            assert said(back.payload, dialect) == said(payload, dialect)
    assert same


def said(payload: Any, dialect: str) -> list[Any]:
    """Return texts, calls and results in order: the content of a history in any dialect."""
    container = CONTAINERS.get(dialect, "messages")
    system = payload.get(SYSTEM.get(dialect))
    turns = read(FAMILIES[dialect], payload[container], system, (container,), None)
    found: list[Any] = []
    for turn in turns:
        # System and developer messages count as one role, because most dialects have a single place for instructions.
        role = "instructions" if turn.role in ("system", "developer") else turn.role
        for part in turn.parts:
            if isinstance(part, Text) and role == "instructions" and found and found[-1][0] == role:
                found[-1] = (role, f"{found[-1][1]}\n\n{part.text}")  # a dialect may have a single text for all of them
            elif isinstance(part, Text):
                found.append((role, part.text))
            elif isinstance(part, Call):
                found.append(("call", part.name, arguments_object(part)))
            elif isinstance(part, Result):
                found.append(("result", result_text(part)))
    return found


@ROUTES
@pytest.mark.parametrize("broken", [False, True], ids=["sound", "broken"])
def test_one_turn_more_is_the_same_as_all_anew(
    target: str, gateway: str, options: dict[str, Any], broken: bool
) -> None:
    for dialect, _, payload, _ in HISTORIES[broken][::3]:
        container = CONTAINERS.get(dialect, "messages")
        items = payload[container]
        before: Any = None
        for end in range(1, len(items) + 1):
            given = {**payload, container: items[:end]}
            anew = converted(given, dialect, target, gateway, **options)
            again = converted(given, dialect, target, gateway, previous=before, **options)
            assert dumps(again.payload) == dumps(anew.payload)
            assert sorted(map(repr, again.edits)) == sorted(map(repr, anew.edits))
            assert sorted(map(repr, again.losses)) == sorted(map(repr, anew.losses))
            assert again.ids == anew.ids
            before = again


_CLIENT_TOOLS = {
    "shell_call": ("shell_call_output", {"action": {"commands": ["ls"]}}, {"output": []}),
    "local_shell_call": (
        "local_shell_call_output",
        {"id": "lsh_1", "action": {"type": "exec", "command": ["ls"], "env": {}}},
        {"output": "x"},
    ),
    "apply_patch_call": ("apply_patch_call_output", {"operation": {"type": "delete_file", "path": "a"}}, {}),
    "computer_call": (
        "computer_call_output",
        {"id": "cu_1", "action": {"type": "screenshot"}, "pending_safety_checks": []},
        {"output": {"type": "computer_screenshot", "file_id": "file-1"}},
    ),
    "tool_search_call": ("tool_search_output", {"arguments": {}, "execution": "client"}, {"tools": []}),
    "custom_tool_call": ("custom_tool_call_output", {"name": "f", "input": "x"}, {"output": "x"}),
    "function_call": ("function_call_output", {"name": "f", "arguments": "{}"}, {"output": "x"}),
}
# `item_as_call`: OpenAI accepts every kind of item, so the pass converts only items that are not in a pair.
_PAIR_EDITS = {"call_unanswered", "result_unasked", "result_repeated", "result_moved", "call_repeated", "tool_id"} | {
    "item_as_call"
}


@pytest.mark.parametrize("seed", range(300))
def test_the_checker_reports_every_broken_pair_that_convert_repairs(seed: int) -> None:
    """Of calls and outputs of every tool that the client runs, with some lost, repeated or moved."""
    rng = random.Random(seed)
    items: list[dict[str, Any]] = []
    for n in range(rng.randint(1, 5)):
        kind = rng.choice(sorted(_CLIENT_TOOLS))
        output, call, result = _CLIENT_TOOLS[kind]
        call_id = f"c{rng.choice([n, n, n, 0])}"
        named = "id" if kind == "local_shell_call" else "call_id"
        items.append({"type": kind, "call_id": call_id, "status": "completed", **call})
        items.append({"type": output, named: call_id, **result})
        fate = rng.choice(["pair", "pair", "call", "output", "twice", "early"])
        if fate == "call":
            items.pop()
        elif fate == "output":
            del items[-2]
        elif fate == "twice":
            items.append(dict(items[-1]))
        elif fate == "early":
            items[-2:] = items[:-3:-1]
    for n, item in enumerate(items):
        if item["type"] in ("local_shell_call", "computer_call"):
            item["id"] += str(n)
    items.insert(0, {"type": "message", "role": "user", "content": "hi"})
    found = check(items, target="responses")
    made = convert(items, source="responses", target="responses")
    assert bool(found) == any(edit.rule in _PAIR_EDITS for edit in made.edits), (found, made.edits)
    assert check(made.payload, target="responses") == []
    again = convert(made.payload, source="responses", target="responses")
    assert (again.payload, again.edits) == (made.payload, ())
