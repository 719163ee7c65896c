"""`streamweld demo`: parse a stream that breaks naive readers."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from streamweld import backend
from streamweld._show import printable
from streamweld.cli.console import console, emit, lines
from streamweld.cli.findings import finding_table
from streamweld.cli.sample import recordings, sample
from streamweld.report.finding import Finding, Lines
from streamweld.stream import StreamParser

__all__ = ["demo"]

_READ = 1_460  # bytes of one TCP segment
_SECONDS = 0.3


def _naive(body: bytes) -> list[dict[str, Any]]:
    """Parse the stream as a naive reader does, starting a new call at each call id.

    Such a reader is correct only if every call id is sent once.
    """
    calls: list[dict[str, Any]] = []
    for line in body.split(b"\n"):
        if not line.startswith(b"data: ") or line == b"data: [DONE]":
            continue
        for choice in json.loads(line[6:])["choices"]:
            for delta in choice["delta"].get("tool_calls", ()):
                function = delta["function"]
                if delta.get("id"):
                    calls.append({"name": function["name"], "arguments": function["arguments"]})
                else:
                    calls[-1]["arguments"] += function["arguments"]
    return calls


def _read(body: bytes) -> tuple[StreamParser, int]:
    parser = StreamParser()
    count = 0
    for at in range(0, len(body), _READ):
        count += len(parser.feed(body[at : at + _READ]))
    return parser, count + len(parser.close())


def _speed(body: bytes) -> tuple[int, float]:
    """Return the number of events in the stream, and the events per second in the best of many runs."""
    best = float("inf")
    events = 0
    end = perf_counter() + _SECONDS
    while perf_counter() < end:
        start = perf_counter()
        _, events = _read(body)
        best = min(best, perf_counter() - start)
    return events, events / best


@click.command(short_help="Parse a bundled sample stream that breaks naive readers.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--raw", is_flag=True, help="Print the raw stream, as received from the network.")
@click.option(
    "--recordings",
    "folder",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the sample recordings that the documentation uses to DIR: this stream, one without faults, and a "
    "truncated one.",
)
def demo(as_json: bool, raw: bool, folder: Path | None) -> None:
    """Parse a bundled recording of a DeepSeek model, in which every chunk repeats the id of the tool call."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, recorded in recordings().items():
            (folder / name).write_bytes(recorded)
            click.echo(folder / name)
        return
    body = sample()
    if raw:
        click.echo(body, nl=False)
        return
    naive = _naive(body)
    response = _read(body)[0].response
    events, a_second = _speed(body)
    if as_json:
        emit(
            {
                "backend": backend,
                "bytes": len(body),
                "naive_calls": len(naive),
                "calls": [call.to_dict() for call in response.tool_calls],
                "completeness": response.completeness,
                "diagnostics": [diagnostic.to_dict() for diagnostic in response.diagnostics],
                "events": events,
                "events_per_second": round(a_second),
            }
        )
        return
    out = console()
    say = partial(out.print, soft_wrap=True)
    nameless = sum(not call["name"] for call in naive)
    say(f"stream      {len(body):,} bytes in reads of {_READ:,}, as sent by DeepSeek through a router")
    say(f"naive       {len(naive)} tool calls, {nameless} of them without a name")
    say(f"streamweld  {len(response.tool_calls)} tool call, {len(response.dispatchable_calls)} to run")
    for call in response.dispatchable_calls:
        say(f"\n{printable(call.name)}  id {printable(call.call_id)}  {call.state}", style="bold")
        if call.custom:
            say("  " + lines(call.arguments).rstrip("\n").replace("\n", "\n  "))
            continue
        for name, value in call.parsed.items():
            shown = lines(value) if isinstance(value, str) else printable(json.dumps(value))
            say(f"  {printable(name)}: " + shown.rstrip("\n").replace("\n", "\n    "))
    say()
    positions = Lines()
    positions.feed(body)
    found = [Finding.of_diagnostic(diagnostic, positions) for diagnostic in response.diagnostics]
    out.print(finding_table(found, title="diagnostics"))
    say(f"finish      {response.finish_reason} (sent: {response.raw_finish_reason}), {response.completeness}")
    say(f"backend     {backend}, {events:,} events, {a_second:,.0f} events per second")
