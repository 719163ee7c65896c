"""The conformance suite: its package and its runners. streamweld's own reader passes every case."""

from __future__ import annotations

import asyncio
import gzip
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance import scoreboard
from tests.conformance.package import HERE, VERSION, cases, contents, write
from tests.conformance.readers import streamweld_reader
from tests.conftest import FULL, NIGHTLY
from tests.support.backends import using
from tests.support.vector_files import load

if TYPE_CHECKING:
    from pathlib import Path


def runner() -> Any:
    spec = importlib.util.spec_from_file_location("conformance_runner", HERE / "runners" / "conformance.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RUNNER = runner()
CATEGORIES = {
    *("stream", "sse", "conversion", "repair", "history", "history_check", "request", "check", "usage", "text_call"),
}
MEMBERS = {
    *("id", "category", "name", "why", "source", "quirk", "evidence", "reads", "end", "options", "dialect", "filled"),
    *("portable", "expect"),
}
BYTES = {"base64", "repeat", "times"}


def test_the_cases_have_the_documented_format() -> None:
    found = cases()
    readme = (HERE / "FORMAT.md").read_text("utf-8")
    assert len(found) >= 3000
    assert len({case["id"] for case in found}) == len(found)
    assert {case["category"] for case in found} == CATEGORIES
    for case in found:
        assert case.keys() <= MEMBERS, case["id"]
        assert case["why"], case["id"]
        assert case["expect"], case["id"]
        assert case.get("end", "clean") in ("clean", "broken")
        for read in case.get("reads", ()):
            parts = read if isinstance(read, list) else [read]
            assert all(isinstance(part, str) or part.keys() <= BYTES for part in parts), case["id"]
    for word in MEMBERS | CATEGORIES | BYTES:
        assert f"`{word}`" in readme or f'"{word}"' in readme, word


def test_every_quirk_of_a_case_has_evidence() -> None:
    shown = [case for case in cases() if "quirk" in case]
    assert len({case["quirk"] for case in shown}) > 150
    assert [case["id"] for case in shown if not case["evidence"]] == []


def test_reads_are_the_bytes_of_the_vectors() -> None:
    """The reads of each case are the bytes of its vector, unless an envelope was added."""
    from tests.support.vector_files import chunks_of

    vectors = {f"{v['layer']}/{v['file']}/{v['name']}": v for layer in ("chat", "sse", "repair") for v in load(layer)}
    compared = 0
    for case in cases():
        place = case["source"].removeprefix("tests/vectors/").removesuffix(".json")
        vector = vectors.get(f"{place}/{case['name']}")
        if vector is not None and not case.get("filled"):
            assert [RUNNER.bytes_of(read) for read in case["reads"]] == chunks_of(vector), case["id"]
            compared += 1
    assert compared > 500


@pytest.mark.parametrize("category", sorted(CATEGORIES))
def test_our_own_reader_passes_every_case(backend: str, category: str) -> None:
    chosen = [case for case in cases() if case["category"] == category]
    if not FULL:  # the source vectors run in their own suites
        chosen = [case for case in chosen if not any(isinstance(read, list | dict) for read in case.get("reads", ()))]
        chosen = chosen[:: 12 if backend == "pure" else 6]
    with using(backend):
        result = asyncio.run(RUNNER.run(streamweld_reader, chosen))
    assert result["failed"] == {}
    assert sum(row["of"] for row in result["groups"].values()) == len(chosen)


CALL = {"id": "a", "name": "f", "arguments": '{"x":1}'}
GOOD: dict[str, Any] = {"error": None, "calls": [CALL], "text": "hi"}
WHOLE = {"fault": False, "runnable": [CALL], "content": "hi"}
BROKEN = {"fault": True, "runnable": []}


@pytest.mark.parametrize(
    ("expect", "record", "reason"),
    [
        (WHOLE, GOOD, None),
        (WHOLE, GOOD | {"calls": [CALL | {"arguments": {"x": 1}}]}, None),
        (WHOLE, GOOD | {"calls": [CALL | {"arguments": '{"x":2}'}]}, "call 0: name or arguments differ"),
        (WHOLE, GOOD | {"calls": [CALL | {"id": "b"}]}, "call 0: id differs"),
        (WHOLE, GOOD | {"calls": []}, "0 calls instead of 1"),
        (WHOLE, GOOD | {"text": "ho"}, "text differs"),
        (WHOLE, GOOD | {"error": "no"}, "raises: no"),
        (WHOLE | {"runnable": [CALL | {"id": "*"}]}, GOOD | {"calls": [CALL | {"id": " "}]}, "call 0: id differs"),
        (BROKEN, GOOD | {"calls": []}, "the fault is not reported"),
        (BROKEN, GOOD | {"error": "cut"}, "returns an incomplete call: f"),
        (BROKEN, {"error": "cut", "calls": []}, None),
    ],
)
def test_the_verdict_on_a_record(expect: dict[str, Any], record: dict[str, Any], reason: str | None) -> None:
    assert RUNNER.judge({"category": "stream", "expect": expect}, record) == reason


def test_the_package_is_reproducible_and_complete(tmp_path: Path) -> None:
    place = write(tmp_path / "a")
    assert place.read_bytes() == write(tmp_path / "b").read_bytes()
    assert gzip.decompress(place.read_bytes())
    with tarfile.open(place) as archive:
        names = {name.removeprefix(f"streamweld-conformance-{VERSION}/") for name in archive.getnames()}
    assert {"README.md", "VERSION", "LICENSE", "manifest.json", "quirks.json", "runners/conformance.py"} <= names
    assert {"runners/conformance.mjs", "runners/rust/src/lib.rs", "runners/rust/Cargo.lock"} <= names
    manifest = json.loads(contents()["manifest.json"])
    assert sum(manifest["cases"].values()) == len(cases())
    assert manifest["version"] == VERSION
    assert "wpt" not in contents()["cases/sse.jsonl"].decode()


def test_the_scoreboard_is_of_these_results() -> None:
    found = scoreboard.results()
    assert len(found) >= 13
    assert {row["slug"] for row in found} == set(scoreboard.readers())
    own = found[0]
    assert own["slug"] == "streamweld"
    assert own["failed"] == {}
    known = {case["id"] for case in cases()}
    for name, text in scoreboard.pages().items():
        if name == "index.md":
            assert (scoreboard.PAGES / name).read_text("utf-8") == text, (
                "run `python -m tests.conformance.scoreboard page`"
            )
        assert (scoreboard.PAGES / name).is_file()
    for row in found:
        assert row["suite"] == VERSION
        # The results are a dated snapshot. A vector that has been renamed since then has no link until the next run.
        assert len(row["failed"].keys() - known) <= len(row["failed"]) // 20, row["slug"]
        assert sum(group["of"] - group["passed"] for group in row["groups"].values()) == len(row["failed"])


@pytest.mark.skipif(not FULL, reason="starts a process for each runner (STREAMWELD_FULL)")
@pytest.mark.parametrize("language", ["python", "javascript", *(["rust"] if NIGHTLY else [])])  # Rust: slow build
def test_the_runners_agree(tmp_path: Path, language: str) -> None:
    with tarfile.open(write(tmp_path)) as archive:
        archive.extractall(tmp_path, filter="data")
    suite = tmp_path / f"streamweld-conformance-{VERSION}"
    adapter = tmp_path / ("silent.mjs" if language == "javascript" else "silent.py")
    adapter.write_text(SILENT[adapter.suffix])
    out = tmp_path / "result.json"
    arguments = [str(adapter), "--cases", str(suite / "cases"), "--json", str(out)]
    if language == "rust":
        manifest = str(suite / "runners" / "rust" / "Cargo.toml")
        command = ["cargo", "run", "--quiet", "--offline", "--manifest-path", manifest, "--example", "eventsource"]
        target = {"CARGO_TARGET_DIR": str(HERE.parents[1] / "target" / "conformance")}
        done = subprocess.run(
            [*command, "--", str(suite / "cases")],
            env={**os.environ, **target},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.split() == ["sse", "184", "of", "184"], done.stderr
        return
    node = shutil.which("node")
    if language == "javascript" and node is None:
        pytest.skip("Node.js is not on PATH")
    start = [str(node)] if language == "javascript" else [sys.executable]
    subprocess.run([*start, str(suite / "runners" / f"conformance{adapter.suffix}"), *arguments], check=True)
    result = json.loads(out.read_text())
    portable = [case for case in cases() if case.get("portable")]
    passed = [case for case in portable if is_silent(case["expect"])]
    assert sum(group["of"] for group in result["groups"].values()) == len(portable)
    assert set(result["failed"]) == {case["id"] for case in portable} - {case["id"] for case in passed}


# A reader that returns nothing for every case.
SILENT = {
    ".py": "READER = {'name': 'silent', 'version': '1'}\ndef read(case, reads):\n"
    "    return {'error': None, 'calls': [], 'events': [], 'text': ''}\n",
    ".mjs": "export const reader = {name: 'silent', version: '1'};\n"
    "export async function read() { return {error: null, calls: [], events: [], text: ''}; }\n",
}


def is_silent(expect: dict[str, Any]) -> bool:
    if "fault" not in expect:
        return not expect["events"]
    return not expect["fault"] and not expect.get("runnable") and not expect.get("content")
