"""Finds and shrinks streams on which the two backends differ: `python -m tests.support.twin_diff --seed S --count N`.

Streams are Chat streams, or streams of another dialect with `--dialect D`. The number of a stream determines whether it
is read at once, in random pieces, or without events (`parse`). Streams are grouped by the kind of their first
difference; for each kind, one reproducer is shrunk and printed.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

from streamweld import StreamError, parse

from tests.support.backends import using
from tests.support.generate import ai_sdk, anthropic, frames, gemini, noise, responses
from tests.support.generate.noise import random_pieces
from tests.support.harness import difference, policy_of, read

if TYPE_CHECKING:
    from collections.abc import Callable

Case = tuple[bytes, dict[str, Any]]
SOURCES = {
    source.dialect: source
    for source in (
        anthropic.SOURCE,
        gemini.SOURCE,
        responses.SOURCE,
        ai_sdk.PARTS,
        ai_sdk.UI,
    )
}


def random_case(seed: int, dialect: str = "chat") -> Case:
    """Return stream number `seed` of a dialect: (body, options)."""
    if dialect == "chat":
        return noise.random_case(seed)
    return frames.random_case(SOURCES[dialect], seed)


def facts_of(backend: str, body: bytes, options: dict[str, Any], way: int = 0) -> dict[str, Any]:
    """Return the `facts()` of one stream; an exception other than StreamError is included."""
    try:
        if way % 8 == 7:
            return silent_facts(backend, body, options)
        pieces = random_pieces(random.Random(way), body) if way % 2 else [body]
        outcome = read(backend, pieces, options)
        return outcome.facts() | {"events of each call": outcome.batches}
    except Exception as exc:  # noqa: BLE001 (a crash of one backend is a difference, too)
        place = traceback.extract_tb(exc.__traceback__)[-1]
        return {"crash": f"{backend}: {type(exc).__name__}: {exc} ({place.filename.rsplit('/', 1)[-1]}:{place.lineno})"}


def silent_facts(backend: str, body: bytes, options: dict[str, Any]) -> dict[str, Any]:
    """Return the results of a stream that is read without events."""
    with using(backend):
        try:
            return {"response": parse(body, **policy_of({"dialect": "chat"} | options))}
        except StreamError as exc:
            return {"error": exc.to_dict(include_raw=True) | {"str": str(exc)}, "response": exc.partial}


def twin_difference(body: bytes, options: dict[str, Any], way: int = 0) -> str | None:
    """Describe the difference between native and pure, including a crash of either. `way`: how the bytes are read."""
    native, pure = (facts_of(backend, body, options, way) for backend in ("native", "pure"))
    crashes = [side["crash"] for side in (native, pure) if "crash" in side]
    if crashes:
        return "; ".join(crashes)
    if native.keys() != pure.keys():
        return f"facts: {sorted(native)} / {sorted(pure)}"
    return difference(native, pure)


def kind_of(found: str) -> str:
    """Return the kind of a difference: its description without the values."""
    return re.sub(r"\d+", "#", re.sub(r"'[^']*'|\"[^\"]*\"|b'[^']*'", "_", found))[:100]


def shrink(body: bytes, options: dict[str, Any], still: Callable[[bytes, dict[str, Any]], bool]) -> Case:
    """Return a smaller case for which `still` returns true: fewer options, fewer events, fewer bytes."""
    deadline = time.monotonic() + 20
    for key in list(options):
        fewer = {k: v for k, v in options.items() if k != key}
        if still(body, fewer):
            options = fewer
    if isinstance(options.get("policy"), dict):
        for key in list(options["policy"]):
            policy = {k: v for k, v in options["policy"].items() if k != key}
            if still(body, options | {"policy": policy}):
                options = options | {"policy": policy}
    for pattern in (rb"(?<=\n\n)", rb"(?<=\n)", rb"(?<=[,{}\[\]])", b""):
        pieces = re.split(pattern, body) if pattern else [body[i : i + 1] for i in range(len(body))]
        body = b"".join(_fewest(pieces, lambda rest: still(b"".join(rest), options), deadline))
    return body, options


def _fewest(pieces: list[bytes], still: Callable[[list[bytes]], bool], deadline: float) -> list[bytes]:
    size = max(1, len(pieces) // 2)
    while size and time.monotonic() < deadline:
        at = 0
        while at < len(pieces) and time.monotonic() < deadline:
            rest = pieces[:at] + pieces[at + size :]
            if still(rest):
                pieces = rest
            else:
                at += size
        size //= 2
    return pieces


def reproducer(seed: int, kind: str, dialect: str) -> str:
    """Return the shrunk case as text that can be pasted into a shell or a vector."""

    def same(body: bytes, options: dict[str, Any], way: int) -> bool:
        found = twin_difference(body, options, way)
        return found is not None and kind_of(found) == kind

    body, options = random_case(seed, dialect)
    way = 0 if same(body, options, 0) else seed
    small, fewer = shrink(body, options, lambda b, o: same(b, o, way))
    return f"  {twin_difference(small, fewer, way)}\n  options {fewer}, way {way}\n  body {small!r}"


def scan(job: tuple[int, int]) -> list[tuple[int, str]]:
    """Compare the backends on `count` Chat streams, with seeds from `first`, and return (seed, difference) for each
    mismatch.
    """
    return scan_dialect((*job, "chat"))


def scan_dialect(job: tuple[int, int, str]) -> list[tuple[int, str]]:
    """Compare the backends on `count` streams of a dialect, and return (seed, difference) for each mismatch."""
    first, count, dialect = job
    out: list[tuple[int, str]] = []
    for seed in range(first, first + count):
        found = twin_difference(*random_case(seed, dialect), seed)
        if found:
            out.append((seed, found))
    return out


def report(rows: list[tuple[int, str]], most: int, dialect: str = "chat") -> str:
    """Return the differences grouped by kind, the most frequent first, each with one shrunk reproducer."""
    kinds: dict[str, list[tuple[int, str]]] = {}
    for seed, found in rows:
        kinds.setdefault(kind_of(found), []).append((seed, found))
    lines = [f"{len(rows)} streams differ, in {len(kinds)} ways"]
    for kind, group in sorted(kinds.items(), key=lambda item: -len(item[1]))[:most]:
        seed, found = group[0]
        lines.append(f"\n{len(group)} x, first seed {seed}: {found[:300]}")
        lines.append(reproducer(seed, kind, dialect))
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.support.twin_diff", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="number of the first stream")
    parser.add_argument("--count", type=int, default=5000, help="how many streams")
    parser.add_argument("--dialect", default="chat", choices=["chat", *SOURCES])
    parser.add_argument("--most", type=int, default=8, help="how many kinds of difference to shrink and print")
    chosen = parser.parse_args(arguments)
    started = time.monotonic()
    rows = scan_dialect((chosen.seed, chosen.count, chosen.dialect))
    print(
        report(rows, chosen.most, chosen.dialect) if rows else f"{chosen.count} streams: no difference", file=sys.stdout
    )
    print(f"{time.monotonic() - started:.1f} s")
    return 1 if rows else 0


if __name__ == "__main__":
    sys.exit(main())
