"""`make bench-bulk`: Arrow columns of recorded bodies, compared with other tools that can answer the same question.

    python -m benches.bulk [--rows N] [--rounds N]

The question is: what are the tool calls of all bodies, with their names and complete arguments? Every answer is checked
before it is timed. Contenders alternate; the results are medians of CPU time, or of wall time for threads and
processes.

- `orjson.loads`: the lower bound. It parses every payload, and does not answer the question.
- `Python loop`: splits lines, `orjson.loads` of each payload, joins Chat argument fragments by index. It is correct
  only for conformant Chat bodies, like any such loop.
- `DuckDB`, `Polars`: the same for Chat bodies, with the engine's own JSON functions, without Python code per row.
- `streamweld.arrow.parse`: every dialect, with repairs, diagnostics and truncation.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import streamweld
import streamweld.arrow

from tests.support.corpus import FOLDERS, recordings

if TYPE_CHECKING:
    from collections.abc import Callable

Calls = list[tuple[int, str, str]]
TARGET_ORJSON = 4.0
TARGET_THREADS = 0.9
TARGET_MEMORY = 2.0
ROOT = Path(__file__).resolve().parent.parent


def mixed(rows: int) -> tuple[list[bytes], str]:
    """Return recorded bodies of the four providers' dialects in turn, repeated; generated ones if there is no
    corpus."""
    found = [
        recording.body for folder in ("chat", "responses", "anthropic", "gemini") for recording in recordings(folder)
    ]
    name = "recorded, mixed (Chat, Responses, Messages, Gemini)"
    if not found:
        from tests.bulk.bodies import bodies

        found, name = bodies(500), "ours, mixed (no recorded streams here)"
    return [found[number * 7919 % len(found)] for number in range(rows)], name


def payloads(bodies: list[bytes]) -> list[bytes]:
    lines = [line[5:].strip() for body in bodies for line in body.splitlines() if line.startswith(b"data:")]
    kept = []
    for line in lines:
        try:
            orjson.loads(line)
        except ValueError:
            continue
        kept.append(line)
    return kept


def floor(lines: list[bytes]) -> None:
    """Parse every payload and discard the values, because it would take longer to keep them than to parse them."""
    for line in lines:
        orjson.loads(line)


def turn(number: int) -> bytes:
    """Return a Chat Completions response of the usual size: 20 pieces of text, followed by a call in 30 fragments."""
    arguments = json.dumps({"path": f"src/module_{number}.py", "content": "print('hello')\n" * 16})
    step = -(-len(arguments) // 30)
    call = {"index": 0, "id": f"call_{number}", "type": "function", "function": {"name": "write_file", "arguments": ""}}
    deltas: list[dict[str, Any]] = [{"content": f" word{number}"} for number in range(20)]
    deltas.append({"tool_calls": [call]})
    pieces = [arguments[at : at + step] for at in range(0, len(arguments), step)]
    deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces]
    head = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 1_763_712_000, "model": "m-1"}
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    chunks = [json.dumps(head | {"choices": [choice]}, separators=(",", ":")) for choice in choices]
    return "".join(f"data: {chunk}\n\n" for chunk in [*chunks, "[DONE]"]).encode()


def ours(bodies: Any) -> Calls:
    made = streamweld.arrow.parse(bodies, columns=["tool_calls"])
    calls = made["tool_calls"].combine_chunks()
    call = calls.flatten()
    columns = (pc.list_parent_indices(calls), call.field("name"), call.field("arguments"))
    return list(zip(*[column.to_pylist() for column in columns], strict=True))


def python_loop(bodies: list[bytes]) -> Calls:
    found: Calls = []
    for row, body in enumerate(bodies):
        calls: dict[int, list[str]] = {}
        for line in body.splitlines():
            if not line.startswith(b"data: ") or line == b"data: [DONE]":
                continue
            for choice in orjson.loads(line[6:]).get("choices") or ():
                for call in choice["delta"].get("tool_calls") or ():
                    function = call["function"]
                    known = calls.setdefault(call["index"], [""])
                    known[0] += function.get("name") or ""
                    known.append(function.get("arguments") or "")
        found += [(row, parts[0], "".join(parts[1:])) for parts in calls.values()]
    return found


SQL = """
with lines as (
    select id, generate_subscripts(parts, 1) as place, unnest(parts) as line
    from (select id, string_split(decode(body), chr(10)) as parts from captures)
), deltas as (
    select id, place, unnest(from_json(json_extract(substr(line, 7), '$.choices[0].delta.tool_calls'),
        '[{"index":"INTEGER","function":{"name":"VARCHAR","arguments":"VARCHAR"}}]')) as call
    from lines where starts_with(line, 'data: {')
)
select id, string_agg(call.function.name, '' order by place) as name,
       coalesce(string_agg(call.function.arguments, '' order by place), '') as arguments
from deltas group by id, call.index order by id, call.index
"""


def duckdb_json(captures: Any) -> Calls:
    import duckdb

    connection = duckdb.connect()
    connection.execute("set threads = 1")
    connection.register("captures", captures)
    return connection.execute(SQL).fetchall()


def polars_json(captures: Any) -> Calls:
    import polars as pl

    call = pl.Struct({"index": pl.Int64, "function": pl.Struct({"name": pl.String, "arguments": pl.String})})
    chunk = pl.Struct({"choices": pl.List(pl.Struct({"delta": pl.Struct({"tool_calls": pl.List(call)})}))})
    found = (
        captures.lazy()
        .select("id", line=pl.col("body").cast(pl.String).str.split("\n"))
        .explode("line")
        .filter(pl.col("line").str.starts_with("data: {"))
        .select("id", call=pl.col("line").str.slice(6).str.json_decode(chunk).struct.field("choices"))
        .explode("call")
        .select("id", call=pl.col("call").struct.field("delta").struct.field("tool_calls"))
        .explode("call")
        .filter(pl.col("call").is_not_null())
        .unnest("call")
        .unnest("function")
        .group_by("id", "index", maintain_order=True)
        .agg(pl.col("name").str.join(""), pl.col("arguments").str.join(""))
        .sort("id", "index")
        .collect()
    )
    return [(row["id"], row["name"], row["arguments"]) for row in found.to_dicts()]


def race(contenders: dict[str, Callable[[], object]], rounds: int, clock: Callable[[], float]) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            start = clock()
            run()
            times[name].append(clock() - start)
    return {name: statistics.median(taken) for name, taken in times.items()}


def show(title: str, size: int, times: dict[str, float], base: str) -> None:
    print(f"\n{title}, {size / 1e6:.1f} MB")
    for name, seconds in times.items():
        print(f"  {name:44} {seconds * 1e3:10.1f} ms {size / seconds / 1e6:10.0f} MB/s {seconds / times[base]:8.2f} x")


def one_core(rounds: int, rows: int) -> list[str]:
    bodies, name = mixed(rows)
    table = pa.table({"body": pa.array(bodies, pa.large_binary())})
    lines = payloads(bodies)
    responses = [streamweld.parse(body, policy="salvage") if body else None for body in bodies[:200]]
    read = streamweld.arrow.parse(table).to_pylist()
    for response, row in zip(responses, read, strict=False):
        assert response is None or (row["text"], len(row["tool_calls"])) == (response.text, len(response.tool_calls))
    contenders: dict[str, Callable[[], object]] = {
        "streamweld.arrow.parse": lambda: streamweld.arrow.parse(table),
        "streamweld.arrow.events": lambda: streamweld.arrow.events(table),
        "orjson.loads of each payload": lambda: floor(lines),
    }
    times = race(contenders, rounds, time.process_time)
    show(f"{name}: {rows} bodies, one core, CPU time", table.nbytes, times, "streamweld.arrow.parse")
    ratio = times["orjson.loads of each payload"] / times["streamweld.arrow.parse"]
    for folder in FOLDERS:
        found = [recording.body for recording in recordings(folder)]
        if found:
            one = pa.table({"body": pa.array(found, pa.large_binary())})
            parts = payloads(found)
            alone = race(
                {
                    "streamweld.arrow.parse": lambda one=one: streamweld.arrow.parse(one),
                    "orjson.loads of each payload": lambda parts=parts: floor(parts),
                },
                rounds,
                time.process_time,
            )
            show(f"recorded {folder}: {len(found)} bodies", one.nbytes, alone, "streamweld.arrow.parse")
    return [verdict("orjson.loads of the same payloads, one core", ratio, TARGET_ORJSON, "x")]


def verdict(what: str, found: float, target: float, unit: str, *, at_most: bool = False) -> str:
    right = found <= target if at_most else found >= target
    sign = "at most" if at_most else "at least"
    return f"{'met' if right else 'MISSED':6} {what}: {found:.2f} {unit} ({sign} {target} {unit})"


def same_question(rounds: int, rows: int) -> None:
    """Measure the extraction of all calls with their arguments from Chat bodies that the rivals can read."""
    import polars as pl

    bodies = [turn(number) for number in range(rows)]
    content = "print('hello')\\n" * 16
    truth: Calls = [
        (number, "write_file", f'{{"path": "src/module_{number}.py", "content": "{content}"}}')
        for number in range(rows)
    ]
    table = pa.table({"id": range(rows), "body": pa.array(bodies, pa.binary())})
    frame = pl.DataFrame(table)
    contenders: dict[str, Callable[[], Calls]] = {
        "streamweld.arrow.parse": lambda: ours(table),
        "Python loop with orjson": lambda: python_loop(bodies),
        "DuckDB's JSON functions": lambda: duckdb_json(table),
        "Polars' JSON functions": lambda: polars_json(frame),
    }
    for name, run in contenders.items():
        assert run() == truth, f"{name} answers wrong; nothing was timed"
    times = race(contenders, rounds, time.process_time)
    show(
        f"all calls with their arguments: {rows} conformant Chat bodies, CPU time",
        table.nbytes,
        times,
        "streamweld.arrow.parse",
    )


REPEATS = 3


def _worker(rows: int) -> float:
    """Return the seconds for one batch in its own process. The batch is created before the clock starts."""
    if rows not in _TABLES:
        _TABLES[rows] = pa.table({"body": pa.array(mixed(rows)[0], pa.large_binary())})
    return _seconds(lambda: streamweld.arrow.parse(_TABLES[rows]))


_TABLES: dict[int, Any] = {}


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    for _ in range(REPEATS):
        run()
    return (time.perf_counter() - start) / REPEATS


def threads(rounds: int, rows: int) -> list[str]:
    """Measure the wall time of two threads on one batch, and of two processes with a batch each: the best of all
    rounds.
    """
    bodies, name = mixed(rows)
    table = pa.table({"body": pa.array(bodies, pa.large_binary())})
    one: list[float] = []
    two: list[float] = []
    apart: list[float] = []
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(_worker, [rows, rows]))
        for _ in range(rounds):
            one.append(_seconds(lambda: streamweld.arrow.parse(table)))
            two.append(_seconds(lambda: streamweld.arrow.parse(table, threads=2)))
            apart.append(max(pool.map(_worker, [rows, rows])) / 2)
    times = {"one thread": min(one), "two threads, one batch": min(two), "two processes, for each batch": min(apart)}
    show(f"{name}: {rows} bodies, wall time, best of {rounds}", table.nbytes, times, "one thread")
    share = times["two processes, for each batch"] / times["two threads, one batch"]
    return [verdict("two threads against two processes", share, TARGET_THREADS, "x")]


def memory(rows: int) -> list[str]:
    """Measure peak memory relative to that of the batch, in a separate process."""
    code = (
        "import resource, sys, pyarrow as pa, streamweld.arrow\n"
        "from benches.bulk import mixed\n"
        f"bodies, _ = mixed({rows})\n"
        "table = pa.table({'body': pa.array(bodies, pa.large_binary())})\n"
        "del bodies\n"
        "streamweld.arrow.parse(table.slice(0, 100))\n"
        "open('/proc/self/clear_refs', 'w').write('5')\n"
        "def peak(): return [int(l.split()[1]) for l in open('/proc/self/status') if l.startswith('VmHWM')][0] * 1024\n"
        "before = peak()\n"
        "made = streamweld.arrow.parse(table)\n"
        "print(table.nbytes, peak() - before, made.nbytes)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), str(ROOT)])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    batch, more, made = (int(word) for word in done.stdout.split())
    print(f"\nmemory: batch {batch / 1e6:.1f} MB, output {made / 1e6:.1f} MB, growth of the peak {more / 1e6:.1f} MB")
    return [
        verdict("peak memory, the batch included", (batch + more) / batch, TARGET_MEMORY, "x the batch", at_most=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="columns of recorded bodies over Arrow")
    parser.add_argument("--rows", type=int, default=4_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    if streamweld.backend != "native":
        raise SystemExit("streamweld.arrow needs the native backend: make build")
    names = ("streamweld", "pyarrow", "orjson", "duckdb", "polars")
    print(", ".join(f"{name} {version(name) if name != 'streamweld' else streamweld.__version__}" for name in names))
    print(
        f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}, {os.cpu_count()} CPUs"
    )
    verdicts = one_core(options.rounds, options.rows)
    same_question(options.rounds, min(options.rows, 5_000))
    verdicts += threads(options.rounds, options.rows)
    verdicts += memory(options.rows)
    print("\n" + "\n".join(verdicts))
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    print(json.dumps({"missed": sum(line.startswith("MISSED") for line in verdicts)}))


if __name__ == "__main__":
    main()
