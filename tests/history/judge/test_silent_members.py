"""Every member of a request is converted or reported: without it, the payload or the report is another.

The expected result comes from a second conversion, not from a rule: a member is silent if removing it changes nothing.
`silent.json` lists the members that may be silent, by source and by the `type` or `role` of their object, because
another member implies them or because they do not change the request.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from streamweld import requests
from streamweld.errors import StreamweldError
from streamweld.history import HistoryPolicy

from tests.history.judge.agents import load
from tests.history.judge.matrix import plain, routes

if TYPE_CHECKING:
    from collections.abc import Iterator

KNOWN: dict[str, str] = json.loads(Path(__file__).with_name("silent.json").read_text("utf-8"))["members"]
KEEP = HistoryPolicy(on_unfixable="keep")
OPAQUE = {"arguments", "input", "args", "parameters", "input_schema", "parametersJsonSchema", "inputSchema", "schema"}
SAMPLES = 3  # places of a member that are examined


def members(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield (*path, name)
            yield from members(inner, (*path, name)) if name not in OPAQUE else ()
    elif isinstance(value, list):
        for n, inner in enumerate(value):
            yield from members(inner, (*path, n))


def without(value: Any, path: tuple[Any, ...]) -> Any:
    """Return the value with the member at this path removed. Everything else is shared."""
    first, *rest = path
    if isinstance(value, list):
        return [without(inner, tuple(rest)) if n == first else inner for n, inner in enumerate(value)]
    if not rest:
        return {name: inner for name, inner in value.items() if name != first}
    return {**value, first: without(value[first], tuple(rest))}


def result(request: Any, source: Any, route: tuple[Any, str]) -> Any:
    try:
        done = requests.convert(request, source=source, target=route[0], gateway=route[1], policy=KEEP)
    except StreamweldError as error:
        return str(error)
    entries = [(one.path, str(one.removed)) for one in (*done.edits, *done.losses)]
    return done.payload, entries, [edit.what for edit in done.edits]


@pytest.mark.parametrize("route", routes(), ids=lambda route: f"{route[0]}-{plain(route[1])}")
def test_no_member_is_silent(route: tuple[str, str]) -> None:
    seen: Counter[str] = Counter()
    silent: dict[str, str] = {}
    for history in load():
        whole: Any = None
        for path in members(history.request):
            holder: Any = history.request
            for step in path[:-1]:
                holder = holder[step]
            value = holder[path[-1]]
            if path[-1] == "type" or value in (None, [], {}, ""):
                continue
            kind = holder.get("type") or holder.get("role") or "-"
            key = f"{history.source} {kind} {path[-1]}{' false' if value is False else ''}"
            seen[key] += 1
            if seen[key] > SAMPLES or key in KNOWN:
                continue
            whole = result(history.request, history.source, route) if whole is None else whole
            if result(without(history.request, path), history.source, route) == whole:
                silent[key] = f"{history.name}: {'/'.join(map(str, path))}"
    assert len(seen) > 100
    assert silent == {}
