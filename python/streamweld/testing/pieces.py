"""Random tool calls, texts and fragments for generated streams. This module does not parse anything."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

Entry = dict[str, Any]  # one element of `delta.tool_calls`


@dataclass
class Call:
    """A tool call that a correct reader finds.

    `id` is None if the stream has no usable id, so that any unique id is correct.
    """

    id: str | None
    name: str
    arguments: str


# --- fragments --------------------------------------------------------------------------------------------------------

WORDS = (
    "a",
    "city",
    "Oslo",
    "{",
    "}",
    '"',
    "\\",
    "[1,2",
    '{"a":1}',
    "é",
    "日本",
    "\U0001f600",
    " ",
    "\n",
    "</think>",
    "data: x",
    "0",
    "\u2028",
)
KEYS = ("a", "o", "city", "n", "items", "path", "q", "é", "x y", "{", '"')
NAMES = ("get_weather", "search", "run-sandbox", "web_search", "read_file")


def random_text(rng: Random, longest: int = 6) -> str:
    return "".join(rng.choice(WORDS) for _ in range(rng.randint(0, longest)))


def random_value(rng: Random, depth: int = 0) -> Any:
    kind = rng.randrange(7 if depth < 3 else 5)
    if kind == 0:
        return random_text(rng)
    if kind == 1:
        return rng.choice((0, 1, 11, -7, 12345678901, 0.5, -1e-7, 1e22))
    if kind == 2:
        return rng.choice((True, False, None))
    if kind in {3, 4}:
        return rng.choice(("Oslo", "Rome", "x", ""))
    if kind == 5:
        return [random_value(rng, depth + 1) for _ in range(rng.randint(0, 3))]
    return {rng.choice(KEYS): random_value(rng, depth + 1) for _ in range(rng.randint(0, 3))}


def random_arguments(rng: Random, least: int = 0) -> str:
    value = {rng.choice(KEYS): random_value(rng) for _ in range(rng.randint(least, 4))}
    separators = rng.choice(((",", ":"), (", ", ": "), (",", ":")))
    return json.dumps(value, ensure_ascii=rng.random() < 0.5, separators=separators)


def fragments_of(rng: Random, text: str, most: int = 8) -> list[str]:
    """Split `text` into at most `most` non-empty pieces."""
    if len(text) < 2:
        return [text] if text else []
    cuts = sorted(rng.sample(range(1, len(text)), min(rng.randint(0, most - 1), len(text) - 1)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def row_of(rng: Random, text: str) -> list[str]:
    """Split like `fragments_of`, but sometimes into so many pieces that many consecutive events have the same form."""
    return fragments_of(rng, text, 8 if rng.random() < 0.8 else 80)


def random_id(rng: Random) -> str:
    return rng.choice(("call_", "toolu_", "fc-", "")) + "".join(
        rng.choice("abcdefghijkXYZ0123456789") for _ in range(12)
    )


def random_calls(rng: Random, *, least: int = 0, distinct: bool = True, blank: bool = False) -> list[Call]:
    calls: list[Call] = []
    seen: set[str] = set()
    names = rng.sample(NAMES, rng.randint(1, 3))
    for _ in range(rng.randint(1, 4)):
        arguments = random_arguments(rng, least)
        if blank and rng.random() < 0.1:
            arguments = ""
        canonical = json.dumps(json.loads(arguments or "{}"), sort_keys=True)
        if distinct and canonical in seen:
            continue
        seen.add(canonical)
        calls.append(Call(random_id(rng), rng.choice(names), arguments))
    return calls


def entry(index: Any = None, call_id: Any = None, name: Any = None, arguments: Any = None, **more: Any) -> Entry:
    """Return one element of `tool_calls`. Members that are None are omitted."""
    out: Entry = {}
    if index is not None:
        out["index"] = index
    if call_id is not None:
        out["id"] = call_id
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    if function:
        out["function"] = function
    return out | more


def in_order(rows: list[list[Entry]]) -> list[Entry]:
    return [e for row in rows for e in row]


def interleave(rng: Random, rows: list[list[Entry]]) -> list[Entry]:
    """Interleave the elements of the calls.

    The order of elements within each call, and the order in which calls start, do not change.
    """
    if rng.random() < 0.4:
        return in_order(rows)
    queues = [list(row) for row in rows]
    out: list[Entry] = []
    opened = 0
    while any(queues):
        candidates = [i for i, q in enumerate(queues) if q and (i < opened or i == opened)]
        i = rng.choice(candidates)
        opened = max(opened, i + 1)
        out.append(queues[i].pop(0))
    return out


def pack(rng: Random, entries: list[Entry]) -> list[list[Entry]]:
    """Group the elements into chunks, sometimes several per chunk."""
    out: list[list[Entry]] = []
    for e in entries:
        if out and rng.random() < 0.2:
            out[-1].append(e)
        else:
            out.append([e])
    return out


def single(entries: list[Entry]) -> list[list[Entry]]:
    return [[e] for e in entries]
