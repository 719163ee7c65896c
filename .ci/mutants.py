"""Runs mutation tests of the Rust core with cargo-mutants, on a seeded sample (row R19).

usage: mutants.py [--count N] [--minutes M]

The script draws N mutants with a fixed seed, and tests them one by one in a clone of HEAD below `.nightly`. The build
folder is kept between mutants, so that only one crate is compiled for each mutant. Outcomes are stored in
`.nightly/mutants.jsonl` with the version of the sources, so that an interrupted run can continue. Each mutant that no
test detects must be listed in `.ci/mutants.toml` with an explanation. The script fails if such a mutant is not listed,
or if not all N mutants have been tested yet. Requires cargo-mutants on PATH (`cargo install --locked cargo-mutants`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / ".nightly" / "mutants.jsonl"
TREE = ROOT / ".nightly" / "mutants"
EXPLAINED = ROOT / ".ci" / "mutants.toml"
SEED = 19
CARGO = ("cargo", "mutants", "--package", "streamweld-core", "--no-shuffle", "--colors", "never")


def listed() -> list[str]:
    done = subprocess.run([*CARGO, "--list"], cwd=TREE, check=True, capture_output=True, text=True)
    return [re.sub(r":\d+:\d+: ", ": ", line) for line in done.stdout.splitlines() if line]


def sources() -> str:
    done = subprocess.run(
        ["git", "ls-tree", "HEAD", "rust/core", "tests/vectors", "python/streamweld/_spec"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return hashlib.sha256(done.stdout.encode()).hexdigest()[:16]


def lay_out() -> None:
    """Update the clone to HEAD."""
    if not TREE.is_dir():
        subprocess.run(["git", "clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(TREE)], check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    # --force also reverts a mutant that an interrupted run left in place.
    subprocess.run(["git", "checkout", "--quiet", "--force", "--detach", head.strip()], cwd=TREE, check=True)


def tested(position: int, count: int, *, baseline: bool) -> str:
    """Return the outcome for the mutant at this position in the list.

    The mutant cannot be selected with `--re`, because cargo-mutants 27 then also tests every deletion of a field.
    Instead, there are as many shards as mutants, so that each shard is one mutant.
    """
    with tempfile.TemporaryDirectory() as out:
        command = [*CARGO, "--shard", f"{position}/{count}", "--in-place", "--output", out]
        command += [
            "--baseline",
            "run" if baseline else "skip",
            "--timeout",
            "300",
            "--cargo-arg=--locked",
            "--",
            "--quiet",
        ]
        done = subprocess.run(command, cwd=TREE, check=False, capture_output=True, text=True)
        found = Path(out, "mutants.out", "outcomes.json")
        if done.returncode not in (0, 2, 3) or not found.is_file():
            raise SystemExit(f"mutants: cargo mutants ended with {done.returncode}\n{done.stdout}{done.stderr}")
        outcomes = json.loads(found.read_text(encoding="utf-8"))["outcomes"]
    mutants = [outcome for outcome in outcomes if outcome["scenario"] != "Baseline"]
    return str(mutants[0]["summary"]) if mutants else "Unviable"


def main() -> int:
    parser = argparse.ArgumentParser(prog="mutants.py", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=200, help="how many mutants are drawn")
    parser.add_argument("--minutes", type=float, default=230, help="when to stop; the next run continues")
    options = parser.parse_args()
    end, of = time.monotonic() + options.minutes * 60, sources()
    lay_out()
    mutants = listed()
    every = sorted(set(mutants))
    chosen = random.Random(SEED).sample(every, min(options.count, len(every)))
    KEPT.parent.mkdir(exist_ok=True)
    known: dict[str, str] = {}
    if KEPT.is_file():
        rows = map(json.loads, KEPT.read_text(encoding="utf-8").splitlines())
        known = {row["mutant"]: row["outcome"] for row in rows if row["sources"] == of}
    left = [name for name in chosen if name not in known]
    first = True
    while left and time.monotonic() < end:
        name = left.pop(0)
        known[name] = tested(mutants.index(name), len(mutants), baseline=first)
        first = False
        with KEPT.open("a", encoding="utf-8") as out:
            out.write(json.dumps({"sources": of, "mutant": name, "outcome": known[name]}) + "\n")
        print(f"{known[name]:14} {name}", flush=True)
    explained = {row["mutant"]: row["why"] for row in tomllib.loads(EXPLAINED.read_text(encoding="utf-8"))["survivor"]}
    counts = Counter(known[name] for name in chosen if name in known)
    missed = [name for name in chosen if known.get(name) == "MissedMutant"]
    open_ones = [name for name in missed if name not in explained]
    print("".join(f"not caught: {name}\n" for name in open_ones), end="")
    print(
        f"{counts.total()} mutants of {len(every)} tested: {counts['CaughtMutant']} caught, "
        f"{counts['Timeout']} timed out, {counts['Unviable']} do not compile, "
        f"{len(missed)} missed, {len(missed) - len(open_ones)} of them explained; "
        f"{len(left)} left"
    )
    return int(bool(open_ones or left))


if __name__ == "__main__":
    sys.exit(main())
