"""Invariants of `requests.convert`, on random requests from every API to every target and gateway.

The output passes streamweld's `check` and the official types; a second conversion does not change it; no part of the
source is dropped without a report; a longer conversation begins with the shorter one, byte for byte.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from streamweld import requests
from streamweld.errors import HistoryError
from streamweld.history import HistoryPolicy

from tests.conftest import FULL
from tests.history.judge.matrix import plain, routes
from tests.requests.generate import SOURCES, request
from tests.requests.official import complaints

SEEDS = range(120 if FULL else 10)
KEEP = requests.RequestPolicy(history=HistoryPolicy(on_unfixable="keep"))
ROUTES = [(target, gateway) for target, gateway in routes() if plain(gateway) != "vercel-ai-gateway@2026-01-29"]


def named(route: tuple[str, str]) -> str:
    return f"{route[0]}-{plain(route[1])}"


def entries(done: requests.Conversion) -> str:
    return json.dumps([entry.to_dict() for entry in (*done.edits, *done.losses)], default=str, ensure_ascii=False)


def as_text(value: Any) -> str:
    return json.dumps(value, default=lambda blob: blob.hex(), ensure_ascii=False)


@pytest.mark.parametrize("route", ROUTES, ids=named)
@pytest.mark.parametrize("source", SOURCES)
def test_the_invariant(source: str, route: tuple[str, str]) -> None:
    target, gateway = route
    seen = 0
    for seed in SEEDS:
        given, tokens = request(seed, source)
        before = copy.deepcopy(given)
        done = requests.convert(given, source=source, target=target, gateway=gateway, policy=KEEP)
        where = (seed, source, target, gateway)
        assert given == before, where
        payload_of = as_text(done.payload) + entries(done)
        assert not [token for token in tokens if token not in payload_of], where
        found = [one for one in requests.check(done.payload, target=target, gateway=gateway) if one.severity == "error"]
        assert not found, (where, found)
        assert not complaints(target, plain(gateway), done.payload), (
            where,
            complaints(target, plain(gateway), done.payload),
        )
        again = requests.convert(done.payload, source=target, target=target, gateway=gateway, policy=KEEP)
        assert again.payload == done.payload, where
        assert (again.edits, again.losses) == ((), ()), where
        seen += 1
    assert seen == len(SEEDS)


@pytest.mark.parametrize("source", SOURCES)
def test_nothing_unknown_reaches_another_api(source: str) -> None:
    for target in SOURCES:
        if target == source:
            continue
        given, _ = request(3, source)
        given["unheard_of"] = {"x": "tok1"}
        done = requests.convert(given, source=source, target=target, policy=KEEP)
        assert "tok1" not in as_text(done.payload), target
        (loss,) = [loss for loss in done.losses if loss.path == "/unheard_of"]
        assert loss.removed == {"x": "tok1"}


@pytest.mark.parametrize("source", SOURCES)
def test_what_is_unknown_stays_within_an_api(source: str) -> None:
    given, _ = request(3, source)
    sound = dict(requests.convert(given, source=source, target=source, policy=KEEP).payload)
    sound["unheard_of"] = 1
    done = requests.convert(sound, source=source, target=source, policy=KEEP)
    assert done.payload is sound


def test_the_source_is_found() -> None:
    """The API of a request is detected by the position of its messages, by the messages, or by its members."""
    wrong = []
    for source in SOURCES:
        for seed in SEEDS:
            given, _ = request(seed, source)
            found = requests.convert(given, target=source, policy=KEEP)
            named_source = requests.convert(given, source=source, target=source, policy=KEEP)
            if found.payload != named_source.payload:
                wrong.append((source, seed))
    # All members of a Chat Completions request may also be valid for Mistral.
    assert not [one for one in wrong if one[0] != "mistral"]


def test_broken_histories_end_in_a_request_or_a_documented_error() -> None:
    done = 0
    for source in SOURCES:
        for seed in SEEDS:
            given, _ = request(seed, source, broken=True)
            for target, gateway in ROUTES:
                try:
                    made = requests.convert(given, source=source, target=target, gateway=gateway)
                except HistoryError:
                    continue
                assert not complaints(target, plain(gateway), made.payload), (source, seed, target, gateway)
                done += 1
    assert done > len(ROUTES) * len(SEEDS)
