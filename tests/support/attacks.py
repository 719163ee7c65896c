"""Attacks that try to make a reader exhaust memory, and their measured cost.

`python -m tests.support.attacks BACKEND NAME` runs one of them.

An attack is a practically endless source of byte chunks, together with the limit that must stop it. It has no limit if
the parser must not keep any of the input.
"""

from __future__ import annotations

import os
import sys
import tracemalloc
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamweld.errors import StreamError

from tests.support.backends import make_parser
from tests.support.harness import policy_of, read
from tests.support.servers.wire import call, chunk, event, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

KIB = 1024
MIB = 1024 * KIB
PIECE = 64 * KIB


@dataclass
class Attack:
    """`pieces()` yields at least `size` bytes; `error` is the expected exception, or None if only the missing response
    is reported.
    """

    pieces: Callable[[], Iterable[bytes]]
    limits: dict[str, int] = field(default_factory=dict)
    error: str | None = None
    offset: int | None = 0
    kept: int = 0  # the limit on bytes that may be kept


def flood(unit: bytes, total: int, head: bytes = b"") -> Iterable[bytes]:
    """Yield `head`, then `unit` repeated to about `total` bytes, in pieces of 64 KiB."""
    block = unit * max(1, PIECE // len(unit))
    return chain((head,), repeat(block, max(1, total // len(block))))


CALLS = call(0, "a", "f", '{"x":"')
OPEN = text("hi")

CAP = {"max_event_bytes": MIB}
FULL = os.environ.get("STREAMWELD_FULL") == "1"
LINES = MIB if FULL else 128 * KIB  # memory tracing makes many lines slow
LINES_CAP = {"max_event_bytes": LINES}
EVENT, FIELD, DEPTH = "limit_max_event_bytes", "limit_max_field_bytes", "limit_max_json_depth"
MANY = range(1_000_000)
SOME = range(400)
LONG = "x" * 16 * KIB

ATTACKS: dict[str, Attack] = {
    "a1_line_without_end": Attack(lambda: flood(b"x", 16 * MIB, b"data: "), CAP, EVENT, 0, MIB),
    "a1_in_64_byte_reads": Attack(lambda: chain((b"data: ",), repeat(b"x" * 64, 40_000)), CAP, EVENT, 0, MIB),
    "a1_after_an_event": Attack(lambda: flood(b"x", 16 * MIB, OPEN + b"data: "), CAP, EVENT, len(OPEN), MIB),
    "a2_lines_without_end": Attack(lambda: flood(b"data:\n", 16 * MIB), LINES_CAP, EVENT, 0, LINES),
    "a3_comment_without_end": Attack(lambda: flood(b"x", 32 * MIB, b":")),
    "a3_heartbeats": Attack(lambda: flood(b": hb\n\n", 8 * LINES)),
    "a4_field_name_without_end": Attack(lambda: flood(b"x", 64 * MIB)),
    "a4_field_name_like_data": Attack(lambda: flood(b"x", 64 * MIB, b"data")),
    "a4_unknown_field_with_value": Attack(lambda: flood(b"x", 64 * MIB, b"foo: ")),
    "a5_event_name": Attack(lambda: flood(b"x", 10 * MIB, b"event: "), {}, FIELD, 0, 8 * KIB),
    "a5_id": Attack(lambda: flood(b"x", 10 * MIB, b"id: "), {}, FIELD, 0, 8 * KIB),
    "a5_retry": Attack(lambda: flood(b"9", 10 * MIB, b"retry: ")),
    "stray_body_without_end": Attack(lambda: flood(b"x", 16 * MIB, b"{"), CAP, EVENT, 0, MIB),
    "stray_lines_without_end": Attack(lambda: flood(b"x\n", 16 * MIB, b"{\n"), LINES_CAP, EVENT, 0, LINES),
    "one_huge_read": Attack(lambda: (b"data: " + b"x" * (8 * MIB),), CAP, EVENT, 0, MIB),
    "b1_depth_bomb": Attack(lambda: (b"data: " + b"[" * 100_000 + b"\n\n",), {}, DEPTH, 0, 100 * KIB),
    "b1_depth_bomb_in_a_skipped_member": Attack(
        lambda: (b'data: {"choices":[],"x":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001 + b"\n\n",),
        {},
        DEPTH,
        0,
        600 * KIB,
    ),
    "b7_text": Attack(lambda: repeat(text(LONG), 400), {"max_text_bytes": MIB}, "limit_max_text_bytes", None, MIB),
    "c2_huge_index": Attack(lambda: (call(10**9, "a", "f", '{"x":1'), chunk({}, "tool_calls", index=10**9))),
    "c3_calls": Attack(
        lambda: (call(n, f"i{n}", "f", "{") for n in MANY),
        {"max_tool_index": 10_000_000},
        "limit_max_tool_calls",
        None,
        MIB,
    ),
    "c4_arguments": Attack(
        lambda: chain((CALLS,), repeat(call(0, None, None, LONG), 400)),
        {"max_arguments_bytes": MIB},
        "limit_max_arguments_bytes",
        None,
        MIB,
    ),
    "c4_total_arguments": Attack(
        lambda: (call(n, f"i{n}", "f", '{"x":"' + LONG) for n in SOME),
        {"max_total_arguments_bytes": MIB},
        "limit_max_total_arguments_bytes",
        None,
        MIB,
    ),
    "c17_choices": Attack(
        lambda: (chunk({"content": "x"}, index=n * 7) for n in MANY), {}, "limit_max_choices", None, MIB
    ),
    "diagnostics": Attack(lambda: repeat(event("null"), LINES // 10), {"max_diagnostics": 4}),
    "stream_bytes": Attack(
        lambda: flood(b": hb\n\n", 16 * MIB), {"max_stream_bytes": LINES}, "limit_max_stream_bytes", None, 0
    ),
    "events": Attack(lambda: repeat(OPEN, 1000), {"max_events": 10}, "limit_max_events", 10 * len(OPEN), 0),
}


Result = tuple["str | None", "int | None", "int | None"]


def prepare(backend: str, name: str) -> Callable[[], Result]:
    """Return a function that runs the attack and returns (rule, byte_offset, observed) of the exception.

    Memory that the caller holds anyway is not counted: the read that is passed as one object, the events, and the
    Response on the exception.
    """
    attack = ATTACKS[name]
    options: dict[str, Any] = {"policy": "salvage"}
    if attack.limits:
        options["limits"] = attack.limits
    parser = make_parser(backend, **policy_of(options))._parser
    pieces = attack.pieces()

    def work() -> Result:
        try:
            for piece in pieces:
                parser.feed(piece)
            parser.close()
        except StreamError as exc:
            return exc.rule, exc.byte_offset, getattr(exc, "observed", None)
        return None, None, None

    return work


def peak_of_process() -> int:
    """Return the largest resident set of this process so far, in bytes (Linux: since the last reset)."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(row for row in status.read_text().splitlines() if row.startswith("VmHWM"))
        return int(line.split()[1]) * KIB
    import resource

    unit = 1 if sys.platform == "darwin" else KIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def reset_peak() -> None:
    refs = Path("/proc/self/clear_refs")
    if refs.exists():
        refs.write_text("5")


def measure(backend: str, name: str) -> tuple[Result, int]:
    """Return the exception's data and the peak memory growth: that of Python objects for the pure backend, that of the
    process for the native backend.
    """
    read(backend, [text("x", "stop")])
    prepare(backend, "a5_id")()  # warm up: imports, caches, exception classes
    work = prepare(backend, name)
    if backend == "pure":
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        result = work()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return result, peak - before
    reset_peak()
    before = peak_of_process()
    result = work()
    return result, peak_of_process() - before


if __name__ == "__main__":
    raised, grown = measure(sys.argv[1], sys.argv[2])
    print(*raised, grown)
