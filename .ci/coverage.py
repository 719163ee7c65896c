"""Line and branch coverage of the Python package by area, each with a minimum (row R20).

usage: coverage.py python [PYTEST ARGUMENT]...

Runs the usual form of the suites in one process under coverage.py, without the long suites that repeat others, and
compares each area with `.ci/coverage.toml`. coverage.py comes from `.ci/locks/coverage.txt`, in its own folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "python/streamweld/"
# These suites run the same code with more inputs, which takes hours under a tracer.
LONG = (
    "test_linear_time", "test_memory_caps", "test_cut_silent", "test_cut_wire", "test_split", "test_costs",
    "test_twins", "test_twins_convert", "test_twins_items", "test_twins_repair", "test_proxy_soak",
    "test_memory_flat", "test_threads", "test_corruption", "test_concurrent",
)  # fmt: skip


def provided() -> Path:
    """Return a folder with coverage.py, installed from its lock file."""
    lock = ROOT / ".ci" / "locks" / "coverage.txt"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    home = ROOT / ".nightly" / f"coverage-{digest}"
    if not (home / "coverage").is_dir():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "--requirement", str(lock)]
        subprocess.run([*pip, "--target", str(home)], check=True)
    return home


def area_of(name: str) -> str:
    """Return `_pure`, `history` and so on; `package` for modules outside any folder, and for folders without a
    minimum."""
    parts = name.removeprefix(PACKAGE).split("/")
    floors = tomllib.loads((ROOT / ".ci" / "coverage.toml").read_text(encoding="utf-8"))["python"]
    return parts[0] if len(parts) > 1 and parts[0] in floors else "package"


def main(arguments: list[str]) -> int:
    ignored = [f"--ignore={path.relative_to(ROOT)}" for name in LONG for path in (ROOT / "tests").rglob(f"{name}.py")]
    with tempfile.TemporaryDirectory() as work:
        report = Path(work, "coverage.json")
        environment = {
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'python'}{os.pathsep}{provided()}",
            "COVERAGE_FILE": str(Path(work, "data")),
        }
        coverage = [sys.executable, "-m", "coverage"]
        run = [
            *coverage,
            "run",
            "--branch",
            f"--source={ROOT / PACKAGE}",
            "-m",
            "pytest",
            "-n",
            "0",
            "-q",
            "--timeout",
            "3000",
        ]
        done = subprocess.run([*run, *ignored, *(arguments or ["tests"])], cwd=ROOT, env=environment, check=False)
        if done.returncode:
            return done.returncode
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
    print("python: " + ", ".join(f"{area} {share:.1f} %" for area, share in shares.items()))
    return int(bool(low))


if __name__ == "__main__":
    if sys.argv[1:2] != ["python"]:
        raise SystemExit(__doc__)
    sys.exit(main(sys.argv[2:]))
