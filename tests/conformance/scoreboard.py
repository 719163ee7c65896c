"""Runs the portable cases of the suite over other readers, and writes the scoreboard.

usage: python -m tests.conformance.scoreboard run [READER]...
       python -m tests.conformance.scoreboard page

`run` packages the suite, runs each adapter of `readers/` in its environment (`make scoreboard` installs them), and
writes `results/<reader>.json`. `page` writes `docs/scoreboard/` from these results.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.conformance.package import HERE, VERSION, cases, write
from tests.support.places import REPOSITORY

RESULTS = HERE / "results"
PAGES = REPOSITORY / "docs" / "scoreboard"
BLOB = "https://github.com/streamweld/streamweld/blob/main"
GROUPS = ("sse", "chat", "responses", "anthropic", "gemini", "ai-sdk-parts", "ai-sdk-ui")
OWN = "streamweld"


def readers() -> dict[str, Path]:
    """Return every adapter by its name."""
    found = sorted([*(HERE / "readers").glob("*_reader.py"), *(HERE / "readers").glob("*_reader.mjs")])
    return {path.stem.removesuffix("_reader"): path for path in found}


def command(name: str, adapter: Path, cases_folder: Path, out: Path) -> list[str]:
    """Return the command for one adapter: Node.js, the interpreter of its environment, or, for streamweld, this
    interpreter.
    """
    arguments = [str(adapter), "--cases", str(cases_folder), "--json", str(out)]
    if adapter.suffix == ".mjs":
        node = shutil.which("node")
        if node is None:
            raise SystemExit("scoreboard: Node.js is not on PATH")
        return [node, str(HERE / "runners" / "conformance.mjs"), *arguments]
    environment = "litellm" if name == "litellm" else "readers"
    base = Path(os.environ.get("CONFORMANCE_ENVIRONMENTS", REPOSITORY / ".venv" / "conformance"))
    python = sys.executable if name == OWN else str(base / environment / "bin" / "python")
    return [python, "-W", "ignore", str(HERE / "runners" / "conformance.py"), *arguments]


def run(names: list[str]) -> None:
    RESULTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(write(Path(folder))) as archive:
            archive.extractall(folder, filter="data")
        suite = Path(folder, f"streamweld-conformance-{VERSION}", "cases")
        for name, adapter in readers().items():
            if names and name not in names:
                continue
            out = Path(folder, f"{name}.json")
            environment = {**os.environ, "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'python'}" if name == OWN else ""}
            subprocess.run(command(name, adapter, suite, out), check=True, env=environment)
            keep(name, json.loads(out.read_text(encoding="utf-8")))


def keep(name: str, result: dict[str, Any]) -> None:
    """Store a result with the date and the version of the suite."""
    date = dt.datetime.now(dt.UTC).date().isoformat()
    kept = {"reader": result["reader"], "date": date, "suite": VERSION, **result}
    text = json.dumps(kept, indent=1, ensure_ascii=False)
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


@cache
def lines() -> dict[str, str]:
    """Return the file and line of each case in the repository."""
    found: dict[str, str] = {}
    texts: dict[str, list[str]] = {}
    for case in cases():
        source = case["source"]
        rows = texts.setdefault(source, (REPOSITORY / source).read_text(encoding="utf-8").splitlines())
        name = json.dumps(case["name"], ensure_ascii=False)
        number = next((n for n, row in enumerate(rows, 1) if f'"name": {name}' in row), 1)
        found[case["id"]] = f"{BLOB}/{source}#L{number}"
    return found


def results() -> list[dict[str, Any]]:
    """Return all results, streamweld first, then by name."""
    found = [json.loads(path.read_text(encoding="utf-8")) | {"slug": path.stem} for path in RESULTS.glob("*.json")]
    return sorted(found, key=lambda row: (row["slug"] != OWN, row["reader"]["name"].lower()))


def cell(groups: dict[str, Any], group: str) -> str:
    return f"{groups[group]['passed']} / {groups[group]['of']}" if group in groups else ""


def pages() -> dict[str, str]:
    """Return the pages by file name."""
    table = [
        f"| Reader | Version | Date | {' | '.join(GROUPS)} |",
        f"| --- | --- | --- |{' ---: |' * len(GROUPS)}",
    ]
    made: dict[str, str] = {}
    for row in results():
        reader, groups = row["reader"], row["groups"]
        shown = f"[{reader['name']}]({row['slug']}.md)" if row["failed"] else reader["name"]
        cells = " | ".join(cell(groups, group) for group in GROUPS)
        table.append(f"| {shown} | {reader['version']} | {row['date']} | {cells} |")
        if row["failed"]:
            made[f"{row['slug']}.md"] = failing(row)
    made["index.md"] = INDEX.format(table="\n".join(table), version=VERSION)
    return made


def failing(row: dict[str, Any]) -> str:
    reader = row["reader"]
    head = [f"# {reader['name']} {reader['version']}", "", f"Failing cases of suite {row['suite']}, {row['date']}.", ""]
    rows = ["| Case | Result |", "| --- | --- |"]
    for case, reason in row["failed"].items():
        text = " ".join(reason.split()).replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
        place = lines().get(case)
        rows.append(f"| [{case}]({place}) | {text} |" if place else f"| {case} | {text} |")
    return "\n".join([*head, *rows, ""])


INDEX = """# Scoreboard

This page shows the results of other readers on the portable cases of the
[conformance suite](../conformance.md#the-conformance-suite), version {version}. `make scoreboard` installs the readers,
runs them, and writes the scoreboard. Each name links to the failing cases, and each case links to its bytes.

{table}

How to read it:

- The expected results are those of streamweld. Most cases are streams that break a rule of their API. A vendor's client
  is not designed for streams from other gateways. A failing case shows how the client handles such a stream; it is not
  a defect of the client.
- If a vector omits ids, timestamps, or roles, the suite adds them, so that a reader does not fail only because its
  data classes require them. The suite adds no such members if the case is about their absence or their value.
- A reader passes a case with a broken stream if it raises an error or reports the stream as incomplete, and returns no
  incomplete call. A missing finish reason alone does not count as a report.
- A reader passes any other case if it raises no error, and if its calls (id, name, arguments, order) and texts are
  equal to the expected ones. Text and members that a reader does not support are not compared.
- Each case runs three times: with the reads of its vector, in one read, and byte by byte.
- If a cell is empty, the reader does not support that format. httpx-sse and eventsource-parser read only event streams.
  linguafranca and llm-rosetta accept parsed payloads, so httpx-sse frames the streams for them.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Run other readers over the suite, or write the scoreboard.")
    parser.add_argument("action", choices=("run", "page"))
    parser.add_argument("names", nargs="*", metavar="READER")
    options = parser.parse_args()
    if options.action == "run":
        run(options.names)
        return
    PAGES.mkdir(exist_ok=True)
    for old in PAGES.glob("*.md"):
        old.unlink()
    for name, text in pages().items():
        (PAGES / name).write_text(text, encoding="utf-8")
    print(f"{PAGES}: {len(results())} readers")


if __name__ == "__main__":
    main()
