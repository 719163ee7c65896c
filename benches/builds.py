"""Compares two builds of the extension in one process: `python -m benches.builds BEFORE.so AFTER.so [DIALECT ...]`.

Use this for a change to the Rust core or the bindings: build before and after it with the same profile, copy both
libraries, and run this program. Both builds read the recorded streams (those of `recorded_like` if there are none) in
reads of 16 KiB, in interleaved rounds of one run, together with the httpx-sse + orjson loop. The events of both builds
are compared before they are timed. The columns `events` and `no events` are the time of the old build divided by that
of the new one, for `feed` and for `feed_silent`; the other columns are the loop's time divided by streamweld's. No
`Response` is built.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import partial
from importlib.machinery import ExtensionFileLoader
from typing import TYPE_CHECKING, Any

from streamweld.options import to_config

from benches.race import race
from benches.recorded_like import DIALECTS, recorded_like
from benches.test_recorded import each, frames_and_json, is_stream, reads_of
from tests.support.corpus import recordings

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 7


def _load(path: str) -> type[Any]:
    """Load the parser class of one library; each path is loaded as a separate module."""
    loader = ExtensionFileLoader("_native", path)
    spec = importlib.util.spec_from_file_location("_native", path, loader=loader)
    if spec is None:
        raise SystemExit(f"{path} is not an extension module")
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    parser: type[Any] = module.Parser
    return parser


def _events(parser: type[Any], dialect: str, reads: list[bytes]) -> list[Any]:
    stream = parser(dialect, to_config())
    events = [event for read in reads for event in stream.feed(read)]
    return [*events, *stream.close(), *stream.snapshot()[0]]


def _silent(parser: type[Any], dialect: str, reads: list[bytes]) -> None:
    stream = parser(dialect, to_config())
    for read in reads:
        stream.feed_silent(read)
    stream.close_silent()


def _compare(dialect: str, before: type[Any], after: type[Any]) -> str:
    bodies = [one.body for one in recordings(dialect) if is_stream(dialect, one.body)]
    bodies = bodies or [shape.body for shape in recorded_like(dialect)]
    inputs = [reads_of(body) for body in bodies]
    for reads in inputs:
        old, new = ([event.to_dict() for event in _events(one, dialect, reads)] for one in (before, after))
        if old != new:
            raise SystemExit(f"{dialect}: the builds disagree")
    runs: dict[str, Callable[[], object]] = {
        "before": partial(each, partial(_events, before, dialect), inputs),
        "after": partial(each, partial(_events, after, dialect), inputs),
        "before, silent": partial(each, partial(_silent, before, dialect), inputs),
        "after, silent": partial(each, partial(_silent, after, dialect), inputs),
        "loop": partial(each, frames_and_json, inputs),
    }
    laps = race(runs, rounds=ROUNDS)
    took = {name: lap.median for name, lap in laps.items()}
    cells = [
        took["before"] / took["after"],
        took["before, silent"] / took["after, silent"],
        took["loop"] / took["before"],
        took["loop"] / took["after"],
        took["loop"] / took["before, silent"],
        took["loop"] / took["after, silent"],
    ]
    return f"{dialect:10} {len(bodies):>7} " + " ".join(f"{cell:>13.2f}" for cell in cells)


def main(before: str, after: str, *dialects: str) -> None:
    builds = _load(before), _load(after)
    heads = ("events", "no events", "loop / before", "loop / after", "silent before", "silent after")
    sys.stdout.write(f"{'':10} streams " + " ".join(f"{head:>13}" for head in heads) + "\n")
    for dialect in dialects or DIALECTS:
        sys.stdout.write(_compare(dialect, *builds) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
