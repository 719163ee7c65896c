"""Packages `tests/vectors/` as the conformance suite: one format, which `FORMAT.md` describes, and the runners.

usage: python -m tests.conformance.package [--out DIR]

The program writes `streamweld-conformance-VERSION.tar.gz`, with the same bytes each time. Only the project's own cases
are included. `sse/wpt.json` and `sse/whatwg_examples.json` contain tests of other projects, which are better run from
their sources.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import io
import json
import re
import tarfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from tests.conformance.envelope import fill
from tests.convert.test_convert_vectors import expected as converted
from tests.repair.test_repair_vectors import expected as repaired
from tests.support.places import REPOSITORY, VECTORS
from tests.support.vector_files import DIALECTS, chunk_bytes, load

HERE = Path(__file__).resolve().parent
VERSION = (HERE / "VERSION").read_text(encoding="utf-8").strip()
NOT_OURS = {"sse/wpt.json", "sse/whatwg_examples.json"}
FILES = ("FORMAT.md", "VERSION", "runners")

Case = dict[str, Any]


LONGEST = 4096  # maximum length of a repetitive text that is written out


def spelled(chunk: Any) -> Any:
    """Return one read: a string if it is UTF-8, otherwise base64, or a list of parts if one of them is long and
    repetitive.
    """
    data = chunk_bytes(chunk)
    if len(data) > LONGEST and isinstance(chunk, list):
        return [spelled(part) for part in chunk]
    if len(data) > LONGEST and isinstance(chunk, dict) and "times" in chunk:
        return {"repeat": chunk["text"], "times": chunk["times"]}
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


@cache
def quirks() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / "quirks.json").read_text(encoding="utf-8"))["quirks"]
    return found


def envelope(path: Path, vector: dict[str, Any], category: str, **parts: Any) -> Case:
    """Return a case: the common members, and the members specific to this case."""
    place = path.relative_to(VECTORS).with_suffix("").as_posix()
    slug = re.sub(r"[^a-z0-9]+", "-", vector["name"].lower()).strip("-")
    case: Case = {"id": f"{place}/{slug}", "category": category, "name": vector["name"], "why": vector["why"]}
    case["source"] = f"tests/vectors/{path.relative_to(VECTORS).as_posix()}"
    quirk = vector.get("quirk")
    if quirk is not None:
        case["quirk"] = quirk
        case["evidence"] = quirks().get(quirk, {}).get("evidence", [])
    if "chunks" in vector:
        case["reads"] = [spelled(chunk) for chunk in vector["chunks"]]
        case["end"] = vector.get("end", "clean")
    return case | parts


def stream(path: Path, vector: dict[str, Any], dialect: str) -> Case:
    options = dict(vector.get("options", {}))
    dialect = options.pop("dialect", dialect)
    expect = dict(vector["expect"])
    calls = expect.get("calls")
    if calls is not None:
        expect["runnable"] = [
            {key: call[key] for key in ("id", "name", "arguments")}
            for call in calls
            if call.get("dispatchable", call["state"] in ("complete", "empty"))
        ]
    tells_error = any(name == "UpstreamErrorEvent" for name, *_ in vector.get("events", ()))
    expect["fault"] = expect.get("error") is not None or "response_error" in expect or tells_error
    if "events" in vector:
        expect["events"] = vector["events"]
    reads = [spelled(chunk) for chunk in vector["chunks"]]
    portable = not options.keys() - {"seed"} and dialect in DIALECTS and expect.get("completeness") != "open"
    parts = {"dialect": dialect, "options": options, "portable": portable, "expect": expect}
    filled = fill(dialect, path.stem, reads) if portable else reads
    if filled != reads:
        parts |= {"reads": filled, "filled": True}
    return envelope(path, vector, "stream", **parts)


def sse(path: Path, vector: dict[str, Any]) -> Case:
    keys = ("events", "events_after_chunk", "final", "unterminated", "not_compared")
    expect = {key: vector[key] for key in keys if key in vector}
    options = {"last_event_id": vector["last_event_id"]} if "last_event_id" in vector else {}
    return envelope(path, vector, "sse", options=options, portable=not options, expect=expect)


def conversion(path: Path, vector: dict[str, Any]) -> Case:
    wanted = vector["expect"]
    output = "".join(f"{frame}\n\n" for frame in converted(vector))
    options = {key: vector.get(key, {}) for key in ("source", "target", "options")}
    expect = {"output": output, "losses": wanted["losses"], "error": wanted["error"]}
    return envelope(path, vector, "conversion", options=options, expect=expect)


def repair(path: Path, vector: dict[str, Any]) -> Case:
    wanted = vector["expect"]
    expect = {"output": repaired(vector).decode(), **{key: wanted[key] for key in ("repaired", "error", "diagnostics")}}
    options = {"source": path.stem, "target": "same", "options": vector.get("options", {})}
    return envelope(path, vector, "repair", options=options, expect=expect)


def divided(path: Path, vector: dict[str, Any], category: str, results: tuple[str, ...]) -> Case:
    """Return a case for a vector whose results are members next to its input."""
    given = {key: value for key, value in vector.items() if key not in {"name", "why", "chunks", "end", *results}}
    expect = {key: vector[key] for key in results if key in vector}
    return envelope(path, vector, category, options=given, expect=expect)


def text_call(path: Path, vector: dict[str, Any], tools: Any) -> Case:
    given = {"tools": tools, **{key: value for key, value in vector.items() if key not in ("name", "why", "expect")}}
    return envelope(path, vector, "text_call", options=given, expect=vector["expect"])


RESULTS = {
    "history": ("history", ("payload", "edits", "losses", "ids")),
    "history_check": ("history_check", ("violations",)),
    "requests": ("request", ("options", "edits", "losses")),
    "check": ("check", ("violations",)),
    "usage": ("usage", ("normalized",)),
}


def of_file(path: Path) -> list[Case]:
    """Return the cases of one file of vectors; an empty list for a layer that is not in the suite."""
    layer = path.relative_to(VECTORS).parts[0]
    document = json.loads(path.read_text(encoding="utf-8"))
    if layer in DIALECTS or path.parent.name == "wire":
        dialect = layer if layer in DIALECTS else "chat"
        return [stream(path, vector, dialect) for vector in document["tests"]]
    if layer == "sse":
        return [sse(path, vector) for vector in document["tests"]]
    if layer in ("convert", "repair"):
        make = conversion if layer == "convert" else repair
        return [make(path, vector) for vector in load(layer) if vector["file"] == path.stem]
    if layer in RESULTS:
        return [divided(path, vector, *RESULTS[layer]) for vector in document["tests"]]
    if path.name == "promote.json":
        return [text_call(path, vector, document["tools"]) for vector in document["tests"]]
    if path.name == "families.json":
        made = {"why": "the grammar of this model family", "expect": {"calls": document["calls"]}}
        families = document["families"].items()
        return [text_call(path, {"name": name, "pieces": [text], **made}, document["tools"]) for name, text in families]
    return []


@cache
def cases() -> tuple[Case, ...]:
    """Return all cases in a stable order, with unique ids."""
    found: list[Case] = []
    for path in sorted(VECTORS.rglob("*.json")):
        if path.relative_to(VECTORS).as_posix() not in NOT_OURS:
            found += of_file(path)
    times = Counter[str]()
    for case in found:
        times[case["id"]] += 1
        if times[case["id"]] > 1:
            case["id"] += f"-{times[case['id']]}"
    return tuple(found)


def compact(case: Case) -> str:
    """Return one line of JSON. A lone surrogate, which UTF-8 cannot encode, is written as an escape."""
    line = json.dumps(case, ensure_ascii=False, separators=(",", ":"))
    try:
        line.encode()
    except UnicodeEncodeError:
        return json.dumps(case, separators=(",", ":"))
    return line.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("\x85", "\\u0085")


def contents() -> dict[str, bytes]:
    """Return every file of the package by its path."""
    made: dict[str, bytes] = {}
    by_category: dict[str, list[str]] = {}
    for case in cases():
        by_category.setdefault(case["category"], []).append(compact(case))
    for category, lines in by_category.items():
        made[f"cases/{category}.jsonl"] = ("\n".join(lines) + "\n").encode()
    for name in FILES:
        root = HERE / name
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if path.is_file() and not {"target", "__pycache__"} & set(path.parts):
                made[path.relative_to(HERE).as_posix().replace("FORMAT.md", "README.md")] = path.read_bytes()
    made["LICENSE"] = (REPOSITORY / "LICENSE").read_bytes()
    made["quirks.json"] = (HERE / "quirks.json").read_bytes()
    manifest = {
        "format": 1,
        "version": VERSION,
        "cases": {category: len(lines) for category, lines in by_category.items()},
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(made.items())},
    }
    made["manifest.json"] = (json.dumps(manifest, indent=1) + "\n").encode()
    return made


def write(out: Path) -> Path:
    """Write the archive; the same contents give the same bytes."""
    out.mkdir(parents=True, exist_ok=True)
    name = f"streamweld-conformance-{VERSION}"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, data in sorted(contents().items()):
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size = len(data)
            entry.mode = 0o644
            archive.addfile(entry, io.BytesIO(data))
    place = out / f"{name}.tar.gz"
    place.write_bytes(gzip.compress(packed.getvalue(), 9, mtime=0))
    return place


def main() -> None:
    parser = argparse.ArgumentParser(description="Package the conformance suite.")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "dist", help="the folder to write to")
    place = write(parser.parse_args().out)
    counts = Counter(case["category"] for case in cases())
    print(f"{place}: {sum(counts.values())} cases ({', '.join(f'{n} {c}' for c, n in counts.most_common())})")


if __name__ == "__main__":
    main()
