"""Compares how the official Node.js clients read broken streams, without and with repair.

    python -m tests.testing.judges_node --seeds 1 --page docs/guides/testing-node-clients.md

Each operator, and chains of up to three operators, break streams with known expected results. openai-node,
@anthropic-ai/sdk and the AI SDK read them from a loopback server, as sent and after `StreamConverter(target="same")`,
without the proxy. `tests.testing.judges` defines when a client is correct. The page is generated from the counts, and
must not be edited by hand.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamweld as sw
from streamweld.testing import OPERATORS, build, operators_for
from streamweld.testing.mutate import chain, random_chain

from tests.support.clients.compare import NODE_AI, NODE_SDK, is_success, runnable
from tests.support.clients.node_side import HOME, Node, NodeError
from tests.support.servers.loopback import Loopback
from tests.testing.judges import PARTS, Held, Row, is_right, publish, value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamweld.testing import Stream
    from streamweld.testing.stream import Dialect

CHAINS = 10  # number of chains for each list of parts and seed
PACKAGES = ("openai", "@anthropic-ai/sdk", "ai", "@ai-sdk/openai", "@ai-sdk/openai-compatible", "@ai-sdk/anthropic")


def readers_of(dialect: str) -> tuple[str, ...]:
    """Return the readers of a dialect: the SDK of its vendor, and the AI SDK."""
    return (*NODE_SDK[dialect], *NODE_AI[dialect])


def held_of(record: dict[str, Any]) -> Held:
    """Return a client's record in the form of `tests.testing.judges`."""
    # Clients return an empty text for a call without arguments.
    calls = [
        {**call, "arguments": call["arguments"] or "{}"} if "arguments" in call else call
        for call in record["calls"]
        if call
    ]
    full = {"usage": None, **record, "calls": calls}
    error = record["error"]
    return Held(
        text=record["text"],
        calls=[
            (call["name"], value(call["arguments"] if "arguments" in call else call["input"]))
            for call in runnable(full)
        ],
        success=error is None and is_success(full),
        error=None if error is None else f"{error['name']}: {error['message']}",
    )


class Court:
    """Reads streams with the clients, without and with repair."""

    def __init__(self) -> None:
        self._server = Loopback()
        self._node = Node("node")

    def read(self, dialect: str, body: bytes, tools: list[str]) -> dict[str, Held]:
        """Return reader -> its result."""
        key = self._server.put([body])
        url = f"{self._server.origin}/{key}"
        held: dict[str, Held] = {}
        for reader in readers_of(dialect):
            args: dict[str, Any] = {"url": url, "clients": [reader]}
            if reader not in NODE_SDK[dialect]:
                args["tools"] = tools
            try:
                record = self._node.ask("ai.read" if "tools" in args else "sdk.read", **args)[reader]
            except NodeError as error:  # the client's result contains a call without a name or function
                held[reader] = Held(error=str(error))
            else:
                held[reader] = held_of(record)
        self._server.drop(key)
        return held

    def judge(self, stream: Stream, rows: dict[str, Row]) -> None:
        """Read one stream, and count the result of each reader in its row."""
        if stream.options or not all(OPERATORS[name].certain for name in stream.operators):
            return  # the correct result depends on an option that clients do not have
        converter = sw.StreamConverter(source=stream.dialect, target="same", seed="r")
        repaired = converter.feed(stream.body) + converter.close()
        tools = sorted({call.name for call in stream.expected.calls})
        without = self.read(stream.dialect, stream.body, tools)
        behind = self.read(stream.dialect, repaired, tools)
        for reader in readers_of(stream.dialect):
            row = rows[reader]
            plain, mended = (is_right(held[reader], stream.expected) for held in (without, behind))
            row.streams += 1
            row.without += plain
            row.behind += mended
            if plain and not mended:
                row.worse.append(f"{'+'.join(stream.operators)}: {behind[reader]}, not {stream.expected}")

    def close(self) -> None:
        self._node.close()
        self._server.close()


def broken(dialect: Dialect, seeds: int) -> Iterator[tuple[str, Stream]]:
    """Yield the streams of a dialect, each with its operator, or `chains` for a chain."""
    for parts in PARTS:
        for seed in range(seeds):
            built = build(dialect, parts, seed=seed or None)
            for operator in operators_for(dialect):
                stream = operator(built, seed)
                if stream is not None:
                    yield operator.name, stream
            for number in range(CHAINS):
                stream = chain(built, random_chain(dialect, 1000 * seed + number), seed)
                if stream is not None:
                    yield "chains", stream


def sample(seeds: int, dialects: tuple[Dialect, ...]) -> dict[str, dict[str, Row]]:
    """Return the counts by reader and operator."""
    court = Court()
    table: dict[str, dict[str, Row]] = {}
    try:
        for dialect in dialects:
            counted: dict[str, dict[str, Row]] = defaultdict(lambda: defaultdict(Row))
            for operator, stream in broken(dialect, seeds):
                court.judge(stream, counted[operator])
            for reader in readers_of(dialect):
                table[reader] = {name: rows[reader] for name, rows in counted.items() if rows[reader].streams}
    finally:
        court.close()
    return table


def page(table: dict[str, dict[str, Row]], versions: dict[str, str]) -> str:
    """Return the page of the documentation."""
    lines = [
        "# What breaks in Node.js clients",
        "",
        "<!-- Written by `python -m tests.testing.judges_node --page`. Do not edit. -->",
        "",
        "The streams come from [`streamweld.testing`](testing.md): each of its operators breaks a conformant stream,",
        "whose contents are known, in one way.",
        "The Node.js clients read each stream from a loopback server, once as sent and once as",
        '`StreamConverter(target="same")` writes it:',
        ", ".join(f"{name} {version}" for name, version in versions.items()) + ".",
        "A Node.js client is right under the same conditions as [a Python client](testing-clients.md). The",
        "tables list the operators whose streams a client does not always read correctly, even with streamweld.",
        "",
        "| client | streams | right without streamweld | right with streamweld | worse with streamweld |",
        "|---|---:|---:|---:|---:|",
    ]
    for reader, rows in table.items():
        counts = [sum(getattr(row, name) for row in rows.values()) for name in ("streams", "without", "behind")]
        worse = sum(len(row.worse) for row in rows.values())
        lines.append(f"| `{reader}` | {' | '.join(map(str, counts))} | {worse} |")
    for reader, rows in table.items():
        left = {name: row for name, row in sorted(rows.items()) if row.behind < row.streams}
        if left:
            lines += ["", f"## {reader}", "", "| operator | what it does | without | with |", "|---|---|---:|---:|"]
        for name, row in left.items():
            about = OPERATORS[name].about if name in OPERATORS else "Up to three operators at once."
            lines.append(f"| `{name}` | {about} | {row.without}/{row.streams} | {row.behind}/{row.streams} |")
    return "\n".join(lines) + "\n"


def installed() -> dict[str, str]:
    """Return the versions of the clients."""
    files = {name: HOME / "node_modules" / name / "package.json" for name in PACKAGES}
    return {name: str(json.loads(file.read_text("utf-8"))["version"]) for name, file in files.items()}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.testing.judges_node", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="how many streams of each operator and list of parts")
    parser.add_argument("--dialects", nargs="+", default=["chat", "responses", "anthropic"], help="which to read")
    parser.add_argument("--page", type=Path, help="write the page of the documentation to this file")
    chosen = parser.parse_args(arguments)
    table = sample(chosen.seeds, tuple(chosen.dialects))
    return publish(table, page(table, installed()), chosen.page)


if __name__ == "__main__":
    sys.exit(main())
