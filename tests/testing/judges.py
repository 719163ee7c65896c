"""Compares how the official Python clients read broken streams, without and with `repair()`.

    python -m tests.testing.judges --seeds 3 --page docs/guides/testing-clients.md

For each operator, streams with known expected results are served by a loopback gateway. A client is correct if it
returns the text and the calls of a complete stream, and, if the stream is truncated or ends in an error, raises or does
not report success. `client_refusals.json` lists the streams for which a client raises because of a rule of its own. The
page is generated from the counts, and must not be edited by hand.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anthropic
import openai
from streamweld.integrations.anthropic import repair as repair_anthropic
from streamweld.integrations.openai import repair as repair_openai
from streamweld.testing import OPERATORS, BrokenGateway, Call, Expected, Reasoning, Reply, Text, build, operators_for
from streamweld.testing.mutate import chain, random_chain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld.testing import Stream
    from streamweld.testing.stream import Dialect, Part

ASKED: Any = [{"role": "user", "content": "hi"}]
NAMES = {
    "chat": "openai chat.completions.stream",
    "responses": "openai responses.stream",
    "anthropic": "anthropic messages.stream",
}
# What clients refuse by a rule of their own: the rule's name, the client, the exceptions, and the operators concerned.
REFUSALS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "client_refusals.json").read_text("utf-8"))[
    "refusals"
]
PARTS: list[list[Part]] = [
    [
        Reasoning("Oslo? Well"),
        Text("Let me look it up."),
        Call("get_weather", '{"city":"Oslo","n":1}'),
        Call("get_weather_now", '{"q":2,"x":{"q":2}}'),
    ],
    [Text("Hello there friend")],
    [Call("search", '{"a":1,"b":2}'), Call("search_web", '{"a":2,"b":[1]}')],
    [Call("search_web", '{"a":1,"b":2}')],
]


@dataclass
class Held:
    """The final result of a client."""

    text: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    success: bool = False
    error: str | None = None


def value(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def read(clients: dict[str, Any], stream: Stream, url: str) -> Held:
    """Read the gateway's response with the client of the stream's dialect."""
    held = Held()
    dialect = stream.dialect
    base = url if dialect == "anthropic" else url + "/v1"
    client = clients[dialect].with_options(base_url=base)
    try:
        if dialect == "chat":
            _chat(client, held, strict_tools(stream))
        elif dialect == "responses":
            _responses(client, held)
        else:
            _messages(client, held)
    except Exception as error:  # noqa: BLE001 (the exception is compared)
        held.error, held.success = type(error).__name__, False
    return held


def strict_tools(stream: Stream) -> list[dict[str, Any]]:
    """Return the tools that the stream calls. openai-python parses the arguments of strict tools while it streams."""
    names = {call.name for call in (*stream.parts, *stream.calls) if isinstance(call, Call)}
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    return [
        {"type": "function", "function": {"name": name, "strict": True, "parameters": schema}} for name in sorted(names)
    ]


def _chat(client: Any, held: Held, tools: list[dict[str, Any]]) -> None:
    with client.chat.completions.stream(model="m", messages=ASKED, tools=tools) as stream:
        choice = stream.get_final_completion().choices[0]
    held.text = choice.message.content or ""
    held.calls = [(c.function.name, value(c.function.arguments)) for c in choice.message.tool_calls or ()]
    held.success = choice.finish_reason in ("stop", "tool_calls")


def _responses(client: Any, held: Held) -> None:
    with client.responses.stream(model="m", input="hi") as stream:
        done = stream.get_final_response()
    held.text = done.output_text
    held.calls = [(item.name, value(item.arguments)) for item in done.output if item.type == "function_call"]
    held.success = done.status == "completed"


def _messages(client: Any, held: Held) -> None:
    with client.messages.stream(model="m", max_tokens=9, messages=ASKED) as stream:
        done = stream.get_final_message()
    held.text = "".join(block.text for block in done.content if block.type == "text")
    held.calls = [(block.name, value(block.input)) for block in done.content if block.type == "tool_use"]
    held.success = done.stop_reason in ("end_turn", "tool_use", "stop_sequence")


def is_right(held: Held, expected: Expected) -> bool:
    """Return True if the client's result equals the expected contents of the stream."""
    if expected.ending in ("truncated", "error") or expected.finish not in ("stop", "tool_calls"):
        return not held.success
    wanted = [(call.name, value(call.arguments)) for call in expected.calls]
    # A client does not report that a call's arguments are not JSON. An application detects that when it parses them.
    runnable = [call for call in held.calls if not isinstance(call[1], str)]
    return held.error is None and held.success and held.text == expected.text and runnable == wanted


def is_refused(held: Held, stream: Stream) -> bool:
    """Return True if the client raised because of a rule of its own, which `client_refusals.json` lists."""
    return any(
        NAMES[stream.dialect] == row["client"]
        and held.error in row["errors"]
        and not set(stream.operators).isdisjoint(row["operators"])
        for row in REFUSALS
    )


def made(repaired: bool) -> dict[str, Any]:
    """Create the clients of the three dialects."""
    one = openai.OpenAI(api_key="none", base_url="http://127.0.0.1", max_retries=0, timeout=5)
    other = anthropic.Anthropic(api_key="none", base_url="http://127.0.0.1", max_retries=0, timeout=5)
    if repaired:
        one, other = repair_openai(one), repair_anthropic(other)
    return {"chat": one, "responses": one, "anthropic": other}


@dataclass
class Row:
    """The counts of one operator, or of a chain."""

    streams: int = 0
    without: int = 0
    behind: int = 0
    worse: list[str] = field(default_factory=list)
    refused: int = 0  # repaired streams that the client refuses by a rule of its own; they are not worse


class Court:
    """Reads streams with both sets of clients, without and with repair."""

    def __init__(self) -> None:
        self._clients = {repaired: made(repaired) for repaired in (False, True)}
        self._stream: Stream | None = None
        self._gateway = BrokenGateway(lambda _: Reply.of(self._stream))  # type: ignore[arg-type]

    def judge(self, stream: Stream, row: Row) -> None:
        """Read one stream, without and with repair."""
        if stream.options or not all(OPERATORS[name].certain for name in stream.operators):
            return  # the correct result depends on an option that clients do not have
        self._stream = stream
        right = {repaired: read(clients, stream, self._gateway.url) for repaired, clients in self._clients.items()}
        plain, behind = (is_right(right[repaired], stream.expected) for repaired in (False, True))
        row.streams += 1
        row.without += plain
        row.behind += behind
        if not behind and is_refused(right[True], stream):
            row.refused += 1
        elif plain and not behind:
            row.worse.append(f"{'+'.join(stream.operators)}: {right[True]}, not {stream.expected}")

    def close(self) -> None:
        self._gateway.close()
        for clients in self._clients.values():
            for client in {id(client): client for client in clients.values()}.values():
                client.close()


def sample(seeds: int, dialects: tuple[Dialect, ...] = ("chat", "responses", "anthropic")) -> dict[str, dict[str, Row]]:
    """Return the counts by dialect and operator, for `seeds` streams of each list of parts. The key of chains is
    `chains`.
    """
    court = Court()
    table: dict[str, dict[str, Row]] = {}
    try:
        for dialect in dialects:
            rows: dict[str, Row] = defaultdict(Row)
            for parts in PARTS:
                for seed in range(seeds):
                    built = build(dialect, parts, seed=seed or None)
                    for operator in operators_for(dialect):
                        stream = operator(built, seed)
                        if stream is not None:
                            court.judge(stream, rows[operator.name])
                    for number in range(10):
                        broken = chain(built, random_chain(dialect, 1000 * seed + number), seed)
                        if broken is not None:
                            court.judge(broken, rows["chains"])
            table[dialect] = {name: row for name, row in rows.items() if row.streams}
    finally:
        court.close()
    return table


def page(table: dict[str, dict[str, Row]]) -> str:
    """Return the page of the documentation."""
    lines = [
        "# What breaks without repair",
        "",
        "<!-- Written by `python -m tests.testing.judges --page`. Do not edit. -->",
        "",
        "The streams come from [`streamweld.testing`](testing.md): each of its operators breaks a conformant stream,",
        "whose contents are known, in one way.",
        "The official Python clients read the broken streams from a loopback server:",
        f"openai {openai.__version__} and anthropic {anthropic.__version__}.",
        "A client is right if it returns the expected text and calls. After a stream that is truncated or ends in an",
        "error, a client is right if it raises an exception or does not report success. Operators whose streams a",
        "client reads correctly both without and with repair are counted but not listed. A stream is refused if the",
        "client raises because of [a rule of its own](#what-clients-refuse).",
        "",
        "| client | streams | right without streamweld | right with streamweld | refused | worse with streamweld |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for dialect, rows in table.items():
        total: Counter[str] = Counter()
        for row in rows.values():
            total.update(streams=row.streams, without=row.without, behind=row.behind)
            total.update(refused=row.refused, worse=len(row.worse))
        totals = (total[name] for name in ("streams", "without", "behind", "refused", "worse"))
        lines.append(f"| `{NAMES[dialect]}` | {' | '.join(map(str, totals))} |")
    for dialect, rows in table.items():
        lines += ["", f"## {NAMES[dialect]}", "", "| operator | what it does | without | with |", "|---|---|---:|---:|"]
        for name, row in sorted(rows.items(), key=lambda item: (item[1].without / item[1].streams, item[0])):
            if row.without < row.streams or row.behind < row.streams:
                about = OPERATORS[name].about if name in OPERATORS else "Up to three operators at once."
                refused = f", {row.refused} refused" if row.refused else ""
                counts = f"{row.without}/{row.streams} | {row.behind}/{row.streams}{refused}"
                lines.append(f"| `{name}` | {about} | {counts} |")
        fine = sum(row.without == row.streams == row.behind for row in rows.values())
        lines += ["", f"Operators not listed, because the client always reads their streams correctly: {fine}."]
    lines += [
        "",
        "## What clients refuse",
        "",
        "These exceptions are rules of the clients. A client raises them for well-formed streams too, so repair cannot",
        "prevent them: repair does not change what a model wrote.",
        "",
        "| client | the client raises | for | reason |",
        "|---|---|---|---|",
    ]
    for row in REFUSALS:
        errors = " or ".join(f"`{error}`" for error in row["errors"])
        lines.append(f"| `{row['client']}` | {errors} | {row['for']} | {row['why']} [Source]({row['source']}) |")
    return "\n".join(lines) + "\n"


def publish(table: Mapping[str, Mapping[str, Row]], text: str, file: Path | None) -> int:
    """Print the page, and write it to the file if one is given. Return 1 if a client has a worse result than without
    streamweld.
    """
    if file is not None:
        file.write_text(text, "utf-8")
    print(text)
    worse = [f"{name} {line}" for name, rows in table.items() for row in rows.values() for line in row.worse]
    print("\n".join(worse), file=sys.stderr)
    return 1 if worse else 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.testing.judges", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="how many streams of each operator and list of parts")
    parser.add_argument("--page", type=Path, help="write the page of the documentation to this file")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # pydantic warns about values that gateways send instead of strings
    table = sample(chosen.seeds)
    return publish(table, page(table), chosen.page)


if __name__ == "__main__":
    sys.exit(main())
