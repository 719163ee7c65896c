"""Compare the results of two checkouts for the recorded streams, because a rename or a move must not change a result.

    PYTHONPATH=OLD/python python tests/support/same_results.py record old.jsonl
    PYTHONPATH=NEW/python python tests/support/same_results.py record new.jsonl
    python tests/support/same_results.py compare old.jsonl new.jsonl --renames tests/support/renames.json

`record` reads every stream of the corpus (`$STREAMWELD_CORPUS`, default ../shared/corpus) with both backends and writes
one JSON line per stream, backend and operation: the events, the repaired bytes, and the bytes in every other dialect.
Human-readable text is left out, because it may change. `compare` applies the rename map to the first file and prints
every difference; the exit code is 1 if there is one.

The rename map is `{"fields": {old: new}, "codes": {old: new}, "classes": {old: new}}`; every key is optional.
Only the public API is used, so that any two versions can be compared.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(os.environ.get("STREAMWELD_CORPUS") or Path(__file__).resolve().parents[3] / "shared" / "corpus")
FOLDERS = {
    "chat": "chat",
    "responses": "responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "aisdk-parts": "ai-sdk-parts",
    "aisdk-ui": "ai-sdk-ui",
}
TARGETS = ("same", *FOLDERS.values())
TEXT_FIELDS = {"message", "help_url"}  # human-readable fields of a Diagnostic, which may change
CHUNK = 1460  # bytes; an Ethernet segment, so that events are split across reads


def plain(value: Any) -> Any:
    """Convert `value` to JSON types."""
    if isinstance(value, bytes | bytearray):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {str(key): plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain(member) for member in value]
    return value


def fault_of(error: BaseException | None) -> Any:
    """Return class, rule and position of an exception, without its message."""
    if error is None:
        return None
    return [type(error).__name__, *(getattr(error, key, None) for key in ("rule", "byte_offset", "event_ordinal"))]


def event_of(event: Any) -> Any:
    fields = event.to_dict()
    if type(event).__name__ == "Diagnostic":
        fields = {key: value for key, value in fields.items() if key not in TEXT_FIELDS}
    return plain(fields)


def parsed(body: bytes, dialect: Any) -> Any:
    from streamweld import StreamError, StreamParser

    parser = StreamParser(dialect=dialect, seed="same")
    events: list[Any] = []
    fault = None
    try:
        for at in range(0, len(body), CHUNK):
            events += parser.feed(body[at : at + CHUNK])
        events += parser.close()
    except StreamError as error:
        events += error.events
        fault = error
    return {"events": [event_of(e) for e in events], "fault": fault_of(fault), "how": parser.response.completeness}


def converted(body: bytes, dialect: Any, target: Any) -> Any:
    from streamweld import StreamConverter, UsageError

    try:
        converter = StreamConverter(source=dialect, target=target, seed="same")
        out = b"".join(converter.feed(body[at : at + CHUNK]) for at in range(0, len(body), CHUNK)) + converter.close()
    except UsageError as error:
        return {"refused": type(error).__name__}
    codes = [(d.code, d.byte_offset, d.detail) for d in converter.diagnostics]
    return {"bytes": out.decode("utf-8", "surrogateescape"), "fault": fault_of(converter.error), "codes": codes}


def rows_of(file: str) -> list[str]:
    """Return all results for one stream, as JSON lines."""
    import streamweld

    folder = Path(file).parts[1]
    dialect = FOLDERS.get(folder, "auto")
    body = (ROOT / file).read_bytes()
    rows = [("events", parsed(body, dialect)), ("events of auto", parsed(body, "auto"))]
    if folder in FOLDERS:
        rows += [(f"to {target}", converted(body, dialect, target)) for target in TARGETS if target != dialect]
    key = {"stream": file, "backend": streamweld.backend}
    return [json.dumps({**key, "what": what, "result": result}) for what, result in rows]


def record(out: Path) -> int:
    """Write the results of both backends; each runs in its own process."""
    if "STREAMWELD_BACKEND" in os.environ:
        manifest = (ROOT / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
        files = sorted(json.loads(line)["file"] for line in manifest)
        with ProcessPoolExecutor() as pool, out.open("a", encoding="utf-8") as sink:
            for rows in pool.map(rows_of, files, chunksize=16):
                sink.writelines(row + "\n" for row in rows)
        return 0
    out.write_text("")
    for backend in ("native", "pure"):
        environment = {**os.environ, "STREAMWELD_BACKEND": backend}
        subprocess.run([sys.executable, __file__, "record", str(out)], env=environment, check=True)
    return 0


def renamed(value: Any, renames: dict[str, dict[str, str]]) -> Any:
    """Return `value` with the rename map applied."""
    fields, words = renames.get("fields", {}), {**renames.get("codes", {}), **renames.get("classes", {})}
    if isinstance(value, dict):
        return {fields.get(key, key): renamed(member, renames) for key, member in value.items()}
    if isinstance(value, list):
        return [renamed(member, renames) for member in value]
    return words.get(value, value) if isinstance(value, str) else value


def loaded(path: Path, renames: dict[str, dict[str, str]]) -> dict[tuple[str, str, str], Any]:
    out = {}
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            out[row["stream"], row["backend"], row["what"]] = hash(json.dumps(renamed(row["result"], renames)))
    return out


def compare(old: Path, new: Path, renames: dict[str, dict[str, str]]) -> int:
    """Print the differences; return 1 if there are any."""
    before, after = loaded(old, renames), loaded(new, {})
    different = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    for key in different:
        print(*key, sep="\t")
    print(f"{len(before)} results before, {len(after)} after, {len(different)} differ")
    return bool(different) or not before


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare what two checkouts make of the recorded streams.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("record").add_argument("out", type=Path)
    comparing = commands.add_parser("compare")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    comparing.add_argument("--renames", type=Path)
    options = parser.parse_args()
    if options.command == "record":
        return record(options.out)
    renames = json.loads(options.renames.read_text(encoding="utf-8")) if options.renames else {}
    return compare(options.old, options.new, renames)


if __name__ == "__main__":
    sys.exit(main())
