"""Measures line and branch coverage of the Python package by area, and compares it with a minimum per area (row R20).

usage: coverage.py python [--minutes M] [FOLDER]...

The script runs the suites with their default settings under coverage.py, one test folder at a time. The minimum
coverage of each area is in `.ci/coverage.toml`. Slow suites that only repeat other suites with more inputs are skipped.
The coverage of each folder is stored in `.nightly/coverage` for this version of the sources, so that an interrupted run
can continue. The script fails until all folders have been measured. coverage.py is installed from
`.ci/locks/coverage.txt` into its own folder.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "python/streamweld/"
# These suites run the same code as other suites, but with so many inputs that they would take hours under a tracer.
LONG = (
    "test_linear_time", "test_memory_caps", "test_cut_silent", "test_cut_wire", "test_split", "test_costs",
    "test_twins", "test_twins_convert", "test_twins_items", "test_twins_repair", "test_proxy_soak",
    "test_memory_flat", "test_threads", "test_corruption", "test_concurrent",
)  # fmt: skip


def provided() -> Path:
    """Return a folder that contains coverage.py, installed from its lock file."""
    lock = ROOT / ".ci" / "locks" / "coverage.txt"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    home = ROOT / ".nightly" / f"coverage-{digest}"
    if not (home / "coverage").is_dir():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "--requirement", str(lock)]
        subprocess.run([*pip, "--target", str(home)], check=True)
    return home


def area_of(name: str) -> str:
    """Return the area of a module: `_pure`, `history` and so on.

    Modules outside any folder, and folders without a minimum, belong to the area `package`.
    """
    parts = name.removeprefix(PACKAGE).split("/")
    floors = tomllib.loads((ROOT / ".ci" / "coverage.toml").read_text(encoding="utf-8"))["python"]
    return parts[0] if len(parts) > 1 and parts[0] in floors else "package"


def folders() -> list[str]:
    """Return the folders that contain tests."""
    return sorted({path.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").glob("*/**/test_*.py")})


def sources() -> str:
    """Return a digest of the package and its tests in HEAD, including uncommitted changes."""
    git = ["git", "-C", str(ROOT)]
    outputs = [
        subprocess.run([*git, *command, "--", "python", "rust", "tests"], check=True, capture_output=True).stdout
        for command in (("ls-tree", "HEAD"), ("diff", "HEAD"))
    ]
    return hashlib.sha256(b"\0".join(outputs)).hexdigest()[:16]


def measure(folder: str, data: Path, environment: dict[str, str]) -> int:
    """Run the tests in a folder, store their coverage in `data`, and return pytest's exit status."""
    ignored = [f"--ignore={path.relative_to(ROOT)}" for name in LONG for path in (ROOT / "tests").rglob(f"{name}.py")]
    part = data.with_suffix(".part")
    run = [sys.executable, "-m", "coverage", "run", "--branch", f"--source={ROOT / PACKAGE}", "-m", "pytest"]
    options = ["-n", "0", "-q", "-p", "no:cacheprovider", "--timeout", "3000", *ignored, f"tests/{folder}"]
    done = subprocess.run([*run, *options], cwd=ROOT, env={**environment, "COVERAGE_FILE": str(part)}, check=False)
    if done.returncode == 0:
        part.rename(data)
    return done.returncode


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="coverage.py", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("language", choices=["python"])
    parser.add_argument(
        "--minutes", type=float, default=110, help="when to start no other folder; the next run continues"
    )
    parser.add_argument("folders", nargs="*", metavar="FOLDER", help="folders of tests/; all by default")
    options = parser.parse_intermixed_args(arguments)
    end = time.monotonic() + options.minutes * 60
    store = ROOT / ".nightly" / "coverage" / sources()
    store.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "python", ROOT, provided())))}
    every = options.folders or folders()
    failed = []
    for folder in every:
        data = store / f"{folder}.data"
        if not data.is_file() and time.monotonic() < end:
            print(f"{folder} ...", flush=True)
            if measure(folder, data, environment):
                failed.append(folder)
    left = [folder for folder in every if not (store / f"{folder}.data").is_file()]
    report = store / "coverage.json"
    environment["COVERAGE_FILE"] = str(store / "combined")
    coverage = [sys.executable, "-m", "coverage"]
    stored = [str(store / f"{folder}.data") for folder in every if folder not in left]
    if not stored:
        print(f"no folder of tests has passed: {', '.join(failed)} failed")
        return 1
    subprocess.run([*coverage, "combine", "-q", "--keep", *stored], cwd=ROOT, env=environment, check=True)
    subprocess.run([*coverage, "json", "-q", "-o", str(report)], cwd=ROOT, env=environment, check=True)
    files = json.loads(report.read_text(encoding="utf-8"))["files"]
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, found in files.items():
        summary = found["summary"]
        area = sums[area_of(name)]
        area[0] += summary["covered_lines"] + summary["covered_branches"]
        area[1] += summary["num_statements"] + summary["num_branches"]
    floors = tomllib.loads((ROOT / ".ci" / "coverage.toml").read_text(encoding="utf-8"))["python"]
    shares = {area: 100 * covered / count for area, (covered, count) in sorted(sums.items())}
    low = {area: share for area, share in shares.items() if share < floors[area]}
    print("".join(f"below its floor of {floors[area]}: {area} {share:.1f}\n" for area, share in low.items()), end="")
    print("".join(f"{folder}: {'failed' if folder in failed else 'not measured yet'}\n" for folder in left), end="")
    print("python: " + ", ".join(f"{area} {share:.1f} %" for area, share in shares.items()))
    return int(bool(low or left))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
