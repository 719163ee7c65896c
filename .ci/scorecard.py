"""Runs the steps of the reliability scorecard and publishes their results.

usage: scorecard.py run [--short] [--fresh] [ROW | STEP]...
       scorecard.py assemble [--release]
       scorecard.py list

`run` executes steps from `.ci/scorecard.toml`, each within its time limit, and appends one record per step to
`.nightly/records.jsonl`. Steps that already passed for the same sources and the same command are skipped, so that an
interrupted run continues where it stopped; `--fresh` runs every step again. `--short` runs only the steps that
`.ci/run` needs and no test suite covers, each in its short form. `run --short` does not write records.

`assemble` writes `reliability.json` and `docs/reliability.md` from the newest record of each step, and fails if a step
has no record, a stale record or a failing record. A record is stale after MAX_AGE days, if its commit is not an
ancestor of HEAD, or if the step's command has changed. `--release` also requires that the records were made for the
product's sources at HEAD.

The script needs only the standard library and git.
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STEPS = ROOT / ".ci" / "scorecard.toml"
RECORDS = ROOT / ".nightly" / "records.jsonl"
LOGS = ROOT / ".nightly" / "logs"
SUMMARY = ROOT / "reliability.json"
PAGE = ROOT / "docs" / "reliability.md"
MAX_AGE = 14  # number of days after which a record is stale
PRODUCT = ("rust/core", "rust/py", "python", "Cargo.lock")
MEASURED = (*PRODUCT, "rust/fuzz", "tests", ".ci")
KEYS = {"row", "name", "title", "gate", "minutes", "long", "short", "figure", "hosted", "note"}


class State(Enum):
    """The outcome of a step."""

    PASSED = "passed"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    HOSTED = "hosted"
    MISSING = "missing"
    STALE = "stale"


GREEN = (State.PASSED, State.HOSTED)


@dataclass(frozen=True)
class Step:
    """One step in scorecard.toml: a command that proves part of a row."""

    row: str
    name: str
    title: str
    gate: str
    minutes: float
    long: str | None
    short: str | None
    figure: str | None
    hosted: str | None
    note: str

    @property
    def key(self) -> str:
        return f"{self.row}-{self.name}"


def load_steps(path: Path = STEPS) -> list[Step]:
    """Read the table; reject unknown keys, duplicate names, and steps without a command or a workflow."""
    steps = []
    for entry in tomllib.loads(path.read_text(encoding="utf-8"))["step"]:
        if entry.keys() - KEYS:
            raise SystemExit(f"{path.name}: unknown keys {sorted(entry.keys() - KEYS)}")
        step = Step(
            entry["row"],
            entry["name"],
            entry["title"],
            entry["gate"],
            entry.get("minutes", 10),
            entry.get("long"),
            entry.get("short"),
            entry.get("figure"),
            entry.get("hosted"),
            entry.get("note", ""),
        )
        if (step.long is None) == (step.hosted is None):
            raise SystemExit(f"{path.name}: {step.key} needs either `long` or `hosted`")
        if step.hosted and not (ROOT / step.hosted.split("#", maxsplit=1)[0]).is_file():
            raise SystemExit(f"{path.name}: {step.key} names a workflow that does not exist: {step.hosted}")
        steps.append(step)
    keys = [step.key for step in steps]
    if len(set(keys)) != len(keys):
        raise SystemExit(f"{path.name}: doubled names {sorted({key for key in keys if keys.count(key) > 1})}")
    return steps


def git(*arguments: str, check: bool = True) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], check=check, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def digest_of(paths: tuple[str, ...]) -> str:
    """Return a digest of these paths at HEAD, including uncommitted changes."""
    trees = git("ls-tree", "HEAD", "--", *paths)
    changes = git("diff", "HEAD", "--", *paths)
    return hashlib.sha256(f"{trees}\n{changes}".encode()).hexdigest()[:16]


def is_dirty() -> bool:
    return bool(git("status", "--porcelain", "--untracked-files=no", "--", *MEASURED))


def suite(name: str) -> str:
    """Return the path of a test module anywhere below tests/, except in tests/history and tests/requests."""
    places = sorted((ROOT / "tests").rglob(f"{name}.py"))
    found = [place for place in places if place.parent.name not in ("history", "requests")]
    if len(found) != 1:
        raise SystemExit(f"scorecard: {len(found)} test modules are called {name}")
    return str(found[0].relative_to(ROOT))


def expand(command: str) -> str:
    """Replace `{test_name}` with the path of that test module, and `{python}` with the environment's interpreter."""

    def place(match: re.Match[str]) -> str:
        return shlex.quote(sys.executable) if match[1] == "python" else suite(match[1])

    return re.sub(r"\{(python|test_\w+)\}", place, command)


def execute(step: Step, command: str, log: Path) -> dict[str, Any]:
    """Run one command within its time limit, and write its output to `log`."""
    started = time.monotonic()
    with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as figures, log.open("w", encoding="utf-8") as out:
        environment = {**os.environ, "STREAMWELD_FIGURES": figures.name, "PYTHONUTF8": "1"}
        # Use a new session, so that a step that exceeds its time limit is stopped together with all its child
        # processes.
        process = subprocess.Popen(
            ["bash", "-c", expand(command)], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            code = process.wait(step.minutes * 60)
            state = State.PASSED if code == 0 else State.FAILED
        except subprocess.TimeoutExpired:
            code, state = None, State.TIMED_OUT
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        measured: dict[str, Any] = {}
        for line in figures.read().splitlines():
            measured.update(json.loads(line))
    figure = found_figure(step, log.read_text(encoding="utf-8", errors="replace"))
    if state is State.PASSED and not (figure or measured):
        state, figure = State.FAILED, "the output has no figure"
    return {
        "step": step.key,
        "state": state.value,
        "exit": code,
        "figure": "; ".join([*([figure] if figure else []), *(f"{key}: {value}" for key, value in measured.items())]),
        "command": command,
        "seconds": round(time.monotonic() - started, 1),
    }


def found_figure(step: Step, output: str) -> str:
    """Return the last match of the step's pattern in the output or, without a pattern, pytest's counts."""
    matches = list(re.finditer(step.figure or r"\b(\d+ passed[^=\n]*?) in [\d.]+s", output))
    return " ".join(group for group in matches[-1].groups() if group) if matches else ""


def read_records() -> dict[str, dict[str, Any]]:
    """Return the newest record of each step, from this checkout and from the committed `reliability.json`."""
    rows: list[dict[str, Any]] = []
    if SUMMARY.is_file():
        rows += json.loads(SUMMARY.read_text(encoding="utf-8"))["records"]
    if RECORDS.is_file():
        rows += [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()]
    newest: dict[str, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: str(row["date"])):
        newest[row["step"]] = row
    return newest


def chosen(steps: list[Step], names: list[str]) -> list[Step]:
    known = {step.key for step in steps} | {step.row for step in steps}
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"scorecard: no such row or step: {', '.join(unknown)}")
    return [step for step in steps if not names or step.key in names or step.row in names]


def run(names: list[str], *, short: bool, fresh: bool) -> int:
    LOGS.mkdir(parents=True, exist_ok=True)
    records, sources, dirty = read_records(), digest_of(MEASURED), is_dirty()
    failed = []
    for step in chosen(load_steps(), names):
        command = step.short if short else step.long
        if command is None:
            if not short:
                print(f"{step.key}: runs in {step.hosted}", flush=True)
            continue
        before = records.get(step.key)
        done = before is not None and before["state"] == "passed" and before["command"] == command
        if not (short or fresh) and done and before is not None and before.get("sources") == sources:
            print(f"{step.key}: passed {before['date']} for these sources", flush=True)
            continue
        print(f"{step.key}: {command}", flush=True)
        log = LOGS / f"{step.key}{'.short' if short else ''}.log"
        record = execute(step, command, log)
        record |= {
            "commit": git("rev-parse", "HEAD"),
            "dirty": dirty,
            "sources": sources,
            "product": digest_of(PRODUCT),
            "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        }
        if not short:
            with RECORDS.open("a", encoding="utf-8") as out:
                out.write(json.dumps(record) + "\n")
        print(f"{step.key}: {record['state']} in {record['seconds']} s: {record['figure'] or '-'}", flush=True)
        if record["state"] != "passed":
            failed.append(step.key)
            print("\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-40:]), flush=True)
    if failed:
        print(f"scorecard: failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


def state_of(step: Step, record: dict[str, Any] | None, *, release: bool) -> tuple[State, str]:
    """Return the published state of a step, and the reason if the state is not green."""
    if step.hosted:
        return State.HOSTED, ""
    if record is None:
        return State.MISSING, "no record: run `make nightly`"
    if record["state"] != "passed":
        return State(record["state"]), record["figure"] or f"exit status {record['exit']}"
    age = dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(record["date"])
    if age > dt.timedelta(days=MAX_AGE):
        return State.STALE, f"the record is {age.days} days old"
    if record["command"] != step.long:
        return State.STALE, "the command has changed since"
    if git("merge-base", record["commit"], "HEAD", check=False) != record["commit"]:
        return State.STALE, f"commit {record['commit'][:9]} is not an ancestor of HEAD"
    if release and (record["dirty"] or record["product"] != digest_of(PRODUCT)):
        return State.STALE, "the product's sources have changed since"
    return State.PASSED, ""


def assemble(*, release: bool) -> int:
    steps, records = load_steps(), read_records()
    lines, rows, kept, problems = [], [], [], []
    for step in steps:
        record = records.get(step.key)
        state, reason = state_of(step, record, release=release)
        if state not in GREEN:
            problems.append(f"{step.key}: {state.value}: {reason}")
        measured = None if step.hosted else record
        if measured is not None:
            kept.append(measured)
        rows.append(
            {
                "row": step.row,
                "step": step.key,
                "title": step.title,
                "gate": step.gate,
                "state": state.value,
                "figure": measured["figure"] if measured else None,
                "command": step.long or f"workflow {step.hosted}",
                "short": step.short or ("" if step.hosted else "make test-all"),
                "commit": measured["commit"] if measured else None,
                "date": measured["date"] if measured else None,
                "note": step.note,
            }
        )
        figure = measured["figure"] if measured else f"runs in `{step.hosted}`" if step.hosted else reason
        commit = measured["commit"][:9] + ("+" if measured["dirty"] else "") if measured else ""
        date = measured["date"][:10] if measured else ""
        shown = state.value if state is not State.STALE else f"stale: {reason}"
        lines.append(f"| {step.row} | {step.title} | {step.gate} | {shown} | {figure} | {date} | {commit} |")
    passed = sum(row["state"] == "passed" for row in rows)
    hosted = sum(row["state"] == "hosted" for row in rows)
    summary = {"format": 1, "passed": passed, "hosted": hosted, "problems": problems, "rows": rows, "records": kept}
    SUMMARY.write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(lines, steps, passed, hosted, problems), encoding="utf-8")
    print(f"{passed} steps passed, {hosted} run only in hosted workflows, {len(problems)} not green")
    print("\n".join(problems))
    return int(bool(problems))


def page(lines: list[str], steps: list[Step], passed: int, hosted: int, problems: list[str]) -> str:
    notes = [f"- **{step.key}**: {step.note}" for step in steps if step.note]
    commands = [f"- **{step.key}**: `{step.long}`" for step in steps if step.long]
    return "\n".join(
        [
            "# Reliability",
            "",
            "<!-- Written by `make reliability` from the records of `make nightly`. Do not edit. -->",
            "",
            "Each row describes a property, the requirement for it, and the figure that was measured at a commit.",
            "`make nightly` measures the figures; `make reliability` writes this page and `reliability.json`.",
            f"It fails if a row has no record, a failing record, or a record older than {MAX_AGE} days.",
            "A `+` after a commit indicates uncommitted changes. A row in the state *hosted* cannot run on the",
            "maintainers' machine: the given workflow runs it, and this page makes no claim about its result.",
            "",
            f"**{passed} steps passed, {hosted} hosted, {len(problems)} not green.**",
            "",
            "| Row | Property | Gate | State | Figure | Date | Commit |",
            "| --- | --- | --- | --- | --- | --- | --- |",
            *lines,
            "",
            "## Notes",
            "",
            *notes,
            "",
            "## Commands",
            "",
            "In these commands, `{test_name}` is the file of the test module `test_name`, and `{python}` is the",
            "interpreter of `.venv`.",
            "",
            *commands,
            "",
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scorecard.py", description=__doc__.splitlines()[0] if __doc__ else None)
    actions = parser.add_subparsers(dest="action", required=True)
    runner = actions.add_parser("run", help="execute steps and record what they measured")
    runner.add_argument("--short", action="store_true", help="the short forms of .ci/run; records nothing")
    runner.add_argument("--fresh", action="store_true", help="run steps again that passed for these sources")
    runner.add_argument("names", nargs="*", metavar="ROW|STEP")
    assembler = actions.add_parser("assemble", help="write reliability.json and docs/reliability.md")
    assembler.add_argument("--release", action="store_true", help="records must be of HEAD's sources")
    actions.add_parser("list", help="print the steps")
    options = parser.parse_args(arguments)
    if options.action == "run":
        return run(options.names, short=options.short, fresh=options.fresh)
    if options.action == "assemble":
        return assemble(release=options.release)
    for step in load_steps():
        print(f"{step.key:24} {step.minutes:4g} min  {step.title}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
