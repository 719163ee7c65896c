"""Histories as data: each vector in `tests/vectors/history/*.json` is converted and compared."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from streamweld.history import HistoryPolicy, convert
from streamweld.history.check import check
from streamweld.history.profiles import resolve
from streamweld.history.rules import edits as edit_rules

from tests.history.jsonable import marked
from tests.support.places import VECTORS

FOLDER = VECTORS / "history"
KEYS = {
    *("name", "why", "source", "target", "gateway", "provider", "policy", "tools", "store", "messages"),
    *("payload", "edits", "losses", "ids"),
}


def vectors() -> list[Any]:
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        payload_of = json.loads(path.read_text("utf-8"))
        assert payload_of.keys() == {"about", "format", "tests"}
        assert payload_of["format"] == 1
        found += [pytest.param(test, id=f"{path.stem}: {test['name']}") for test in payload_of["tests"]]
    return found


def converted(vector: dict[str, Any], messages: Any) -> Any:
    options = {name: vector[name] for name in ("source", "gateway", "provider", "tools", "store") if name in vector}
    if "policy" in vector:
        options["policy"] = HistoryPolicy(**vector["policy"])
    return convert(messages, target=vector["target"], **options)


@pytest.mark.parametrize("vector", vectors())
def test_vector(vector: dict[str, Any]) -> None:
    assert vector.keys() <= KEYS
    messages = copy.deepcopy(vector["messages"])
    made = converted(vector, messages)
    assert messages == vector["messages"]
    assert marked(made.payload) == vector["payload"]
    assert [[edit.rule, edit.path] for edit in made.edits] == vector["edits"]
    assert [[loss.feature, loss.path] for loss in made.losses] == vector.get("losses", [])
    assert [list(pair) for pair in made.ids] == vector.get("ids", [])
    profile = resolve(vector.get("gateway"), vector["target"]).with_options(store=vector.get("store"))
    assert check(made.payload, target=vector["target"], gateway=profile) == []


@pytest.mark.parametrize("vector", vectors())
def test_again_nothing_changes(vector: dict[str, Any]) -> None:
    made = converted(vector, vector["messages"])
    again = converted({**vector, "source": vector["target"], "provider": None}, made.payload)
    assert again.payload is made.payload
    assert not again.edits
    assert not again.losses


def test_names_are_unique_and_every_rule_is_shown() -> None:
    names = [param.id for param in vectors()]
    assert len(names) == len(set(names)) > 100
    shown = {rule for param in vectors() for rule, _ in param.values[0]["edits"]}
    of_dedupe = {"item_repeated", "item_result_repeated", "item_message_dropped", "item_blank_first"}
    assert set(edit_rules()) - shown == of_dedupe, "an edit rule without a vector"
