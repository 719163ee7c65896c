"""Rejects wheels that have missing or unexpected contents.

Run this script on every wheel before the wheel is installed or published.

usage: check_wheels.py WHEEL...

A wheel must contain exactly the package files that git tracks, at most one extension module, and its own metadata, but
no tests, caches, .pth files or stray builds. A wheel must not exceed 4 MB. The hashes and sizes in RECORD must match
the files. orjson must be the only dependency of a plain install. The name of a native wheel for Linux must contain its
manylinux or musllinux version. This script needs only the standard library and git.
"""

import base64
import csv
import hashlib
import re
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
# A tracked file of any other type is rejected. Add a type here when the package starts to read such files.
PACKAGE_SUFFIXES = {".css", ".html", ".json", ".py", ".pyi", ".typed"}
EXTENSION = re.compile(r"streamweld/_native\.[A-Za-z0-9_.-]*(so|pyd)")
METADATA_FILES = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
RUNTIME_DEPENDENCIES = {"orjson"}
MOST_BYTES = 4_000_000


def tracked_package_files() -> set[str]:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--", "python/streamweld"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return {name.removeprefix("python/") for name in listed.split("\0") if name}


def name_problems(names: list[str], dist_info: str, pure: bool, tracked: set[str]) -> list[str]:
    problems = [f"twice: {name}" for name in sorted({n for n in names if names.count(n) > 1})]
    extensions = [name for name in names if EXTENSION.fullmatch(name)]
    if len(extensions) != (0 if pure else 1):
        problems.append(f"extension modules: {extensions}")
    package = {name for name in names if name.startswith("streamweld/")} - set(extensions)
    problems += [f"not in git: {name}" for name in sorted(package - tracked)]
    problems += [f"missing: {name}" for name in sorted(tracked - package)]
    problems += [f"unexpected type: {n}" for n in sorted(package) if PurePosixPath(n).suffix not in PACKAGE_SUFFIXES]
    for name in sorted(set(names) - package - set(extensions)):
        inner = name.removeprefix(f"{dist_info}/")
        sbom = not pure and inner.startswith("sboms/") and inner.endswith(".json")
        if inner == name or not (inner in METADATA_FILES or sbom):
            problems.append(f"unexpected: {name}")
    missing = {f"{dist_info}/{name}" for name in METADATA_FILES} - set(names)
    return problems + [f"missing: {name}" for name in sorted(missing)]


def record_problems(wheel: zipfile.ZipFile, dist_info: str) -> list[str]:
    rows = {row[0]: row[1:] for row in csv.reader(wheel.read(f"{dist_info}/RECORD").decode().splitlines())}
    problems = [f"RECORD names no file: {name}" for name in sorted(set(rows) - set(wheel.namelist()))]
    for name in wheel.namelist():
        data = wheel.read(name)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        expected = ["", ""] if name == f"{dist_info}/RECORD" else [f"sha256={digest}", str(len(data))]
        if rows.get(name) != expected:
            problems.append(f"RECORD is wrong for {name}")
    return problems


def metadata_problems(metadata: Message, tags: Message, filename: str, pure: bool) -> list[str]:
    problems = []
    required = {
        re.split(r"[^A-Za-z0-9_.-]", line, maxsplit=1)[0]
        for line in metadata.get_all("Requires-Dist", [])
        if "extra ==" not in line
    }
    if required != RUNTIME_DEPENDENCIES:
        problems.append(f"a plain install needs {sorted(required)}, not {sorted(RUNTIME_DEPENDENCIES)}")
    if metadata["Requires-Python"] != ">=3.11":
        problems.append(f"Requires-Python: {metadata['Requires-Python']}")
    if metadata["License-Expression"] != "Apache-2.0":
        problems.append(f"License-Expression: {metadata['License-Expression']}")
    if tags["Root-Is-Purelib"] != ("true" if pure else "false"):
        problems.append(f"Root-Is-Purelib: {tags['Root-Is-Purelib']}")
    # The name of a manylinux wheel may contain several tags joined by dots; each tag has its own line in the WHEEL
    # file.
    python, abi, platforms = filename.removesuffix(".whl").split("-")[-3:]
    named = {f"{python}-{a}-{p}" for a in abi.split(".") for p in platforms.split(".")}
    if set(tags.get_all("Tag", [])) != named:
        problems.append(f"tags inside {tags.get_all('Tag')} differ from the name's {sorted(named)}")
    return problems


def check(path: Path, tracked: set[str]) -> list[str]:
    pure = path.name.endswith("-py3-none-any.whl")
    if path.stat().st_size > MOST_BYTES:
        return [f"{path.stat().st_size} bytes, more than {MOST_BYTES}"]
    if "-linux_" in path.name:
        return ["the platform tag promises no version of the C library"]
    distribution, version = path.name.split("-")[:2]
    dist_info = f"{distribution}-{version}.dist-info"
    with zipfile.ZipFile(path) as wheel:
        if wheel.testzip() is not None:
            return ["damaged archive"]
        names = [name for name in wheel.namelist() if not name.endswith("/")]
        problems = name_problems(names, dist_info, pure, tracked)
        if problems:
            return problems
        metadata = HeaderParser().parsestr(wheel.read(f"{dist_info}/METADATA").decode())
        tags = HeaderParser().parsestr(wheel.read(f"{dist_info}/WHEEL").decode())
        return record_problems(wheel, dist_info) + metadata_problems(metadata, tags, path.name, pure)


def main(paths: list[str]) -> int:
    if not paths:
        raise SystemExit(__doc__)
    tracked = tracked_package_files()
    failed = False
    for path in map(Path, paths):
        problems = check(path, tracked)
        print(f"{'bad' if problems else 'ok '} {path.name} ({path.stat().st_size} bytes)")
        for problem in problems:
            print(f"    {problem}")
        failed |= bool(problems)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
