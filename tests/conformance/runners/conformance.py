"""Runs the conformance suite over one reader. It needs only the standard library. README.md describes cases and
records.

usage: conformance.py ADAPTER.py [--cases DIR] [--category NAME]... [--all] [--json FILE] [--fail]

ADAPTER.py defines `READER = {"name": ..., "version": ...}` and `read(case, reads)`, which returns the record of the
case, or None if the reader does not support it. Without `--all`, only portable cases of the categories `stream` and
`sse` run.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import importlib.util
import inspect
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

SECONDS = 20.0
COMPARED = ("stream", "sse")
WAYS = ("as given", "in one read", "by byte")
LONGEST = 1 << 16  # maximum length of a body that is read byte by byte


def bytes_of(entry: Any) -> bytes:
    """Return the bytes of one read, or of a part of it."""
    if isinstance(entry, str):
        return entry.encode()
    if isinstance(entry, list):
        return b"".join([bytes_of(part) for part in entry])
    return base64.b64decode(entry["base64"]) if "base64" in entry else bytes(entry["repeat"].encode() * entry["times"])


def ways_of(reads: list[bytes]) -> list[tuple[str, list[bytes]]]:
    """Return the same bytes, chunked in three ways; for long bodies, in two."""
    body = b"".join(reads)
    ways = [reads, [body]] + ([[body[n : n + 1] for n in range(len(body))]] if len(body) <= LONGEST else [])
    return list(zip(WAYS, ways, strict=False))


def value_of(arguments: Any) -> Any:
    """Return arguments as a value: the parsed JSON, or the text itself if it is invalid."""
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    try:
        return json.loads(arguments) if arguments.strip() else {}
    except ValueError:
        return arguments


def is_same_call(found: dict[str, Any], wanted: dict[str, Any], *, ids: bool) -> bool:
    if found["name"] != wanted["name"]:
        return False
    if found["arguments"] != wanted["arguments"] and value_of(found["arguments"]) != value_of(wanted["arguments"]):
        return False
    if not ids:
        return True
    return bool(str(found["id"] or "").strip()) if wanted["id"] == "*" else found["id"] == wanted["id"]


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def judge_stream(expect: dict[str, Any], record: dict[str, Any]) -> str | None:
    """Return why the record is wrong, or None."""
    wanted, calls = expect.get("runnable"), record.get("calls", [])
    if expect["fault"]:
        if record.get("error") is None:
            return "the fault is not reported"
        allowed = wanted if wanted is not None else calls
        extra = [call for call in calls if not any(is_same_call(call, one, ids=False) for one in allowed)]
        return f"returns an incomplete call: {extra[0]['name']}" if extra else None
    if record.get("error") is not None:
        return f"raises: {record['error']}"
    if wanted is not None:
        if len(calls) != len(wanted):
            return f"{counted(len(calls), 'call')} instead of {len(wanted)}"
        for number, (call, one) in enumerate(zip(calls, wanted, strict=True)):
            if not is_same_call(call, one, ids=False):
                return f"call {number}: name or arguments differ"
            if not is_same_call(call, one, ids=True):
                return f"call {number}: id differs"
    for key, member in (("content", "text"), ("reasoning", "reasoning"), ("refusal", "refusal")):
        if key in expect and record.get(member) is not None and record[member] != expect[key]:
            return f"{member} differs"
    for key in ("finish", "completeness"):
        if key in expect and key in record:
            allowed = expect[key] if isinstance(expect[key], list) else [expect[key]]
            if record[key] not in allowed:
                return f"{key} differs"
    return None


def judge_sse(expect: dict[str, Any], record: dict[str, Any]) -> str | None:
    if record.get("error") is not None:
        return f"raises: {record['error']}"
    events, wanted = record["events"], expect["events"]
    if len(events) != len(wanted):
        return f"{counted(len(events), 'event')} instead of {len(wanted)}"
    names = ("event", "data", "id", "retry")
    for number, (event, one) in enumerate(zip(events, wanted, strict=True)):
        for name, found, requested in zip(names, event, one, strict=False):
            if name not in expect.get("not_compared", ()) and found != requested:
                return f"event {number}: {name} differs"
    final = record.get("final")
    if final is not None and final != expect.get("final", final):
        return "final state differs"
    return None


def judge(case: dict[str, Any], record: dict[str, Any]) -> str | None:
    """Return why the record of this case is wrong, or None."""
    if case["category"] == "stream":
        return judge_stream(case["expect"], record)
    if case["category"] == "sse":
        return judge_sse(case["expect"], record)
    for key, wanted in case["expect"].items():
        if key in record and record[key] != wanted:
            return f"{key} differs"
    return None


def load(folder: Path, categories: list[str]) -> list[dict[str, Any]]:
    """Return the cases of these categories, or all."""
    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        raise SystemExit(f"{folder}: no cases")
    rows = [json.loads(line) for path in paths for line in path.read_bytes().splitlines()]
    return [row for row in rows if not categories or row["category"] in categories]


async def outcome(read: Any, case: dict[str, Any]) -> tuple[str, str | None]:
    """Return `passed`, `failed` or `unsupported`, and why."""
    reads = [bytes_of(entry) for entry in case.get("reads", [])]
    for way, pieces in ways_of(reads) if "reads" in case else [("", [])]:
        try:
            record = read(case, pieces)
            if inspect.isawaitable(record):
                record = await asyncio.wait_for(record, SECONDS)
        except Exception as fault:  # noqa: BLE001 (a failure of the adapter counts as one of the reader)
            return "failed", f"{type(fault).__name__}: {str(fault)[:120]}"
        if record is None:
            return "unsupported", None
        reason = judge(case, record)
        if reason is not None:
            return "failed", reason[:160] if way == WAYS[0] else f"{way}: {reason[:140]}"
    return "passed", None


async def run(adapter: Any, cases: list[dict[str, Any]]) -> dict[str, Any]:
    """Return counts by category and dialect, and the failing cases with their reasons."""
    counts: dict[str, Counter[str]] = {}
    failed: dict[str, str] = {}
    for case in cases:
        state, reason = await outcome(adapter.read, case)
        if state == "unsupported":
            continue
        group = case.get("dialect") or case["category"]
        counts.setdefault(group, Counter())[state] += 1
        if state == "failed":
            failed[case["id"]] = str(reason)
    groups = {group: {"passed": n["passed"], "of": n.total()} for group, n in sorted(counts.items())}
    return {"reader": adapter.READER, "groups": groups, "failed": failed}


def load_adapter(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("adapter", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))
    spec.loader.exec_module(module)
    return module


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the conformance suite over one reader.")
    parser.add_argument("adapter", type=Path)
    parser.add_argument("--cases", type=Path, default=Path(__file__).resolve().parent.parent / "cases")
    parser.add_argument("--category", action="append", default=[])
    parser.add_argument("--all", action="store_true", help="cases with options, and all categories, too")
    parser.add_argument("--json", type=Path, help="write the result here")
    parser.add_argument("--fail", action="store_true", help="exit with 1 if a case fails")
    options = parser.parse_args()
    found = load(options.cases, options.category)
    if not options.all:
        found = [case for case in found if case.get("portable") and case["category"] in COMPARED]
    result = asyncio.run(run(load_adapter(options.adapter), found))
    reader = result["reader"]
    print(f"{reader['name']} {reader['version']}")
    for group, row in result["groups"].items():
        print(f"  {group:14} {row['passed']:5} of {row['of']}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return int(options.fail and bool(result["failed"]))


if __name__ == "__main__":
    sys.exit(main())
