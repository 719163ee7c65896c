"""Rejects a source distribution if files for the build or the tests are missing, or if it contains untracked files.

usage: check_sdist.py SDIST
"""

import subprocess
import sys
import tarfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 4_000_000
GENERATED = {"PKG-INFO"}
NEEDED = {
    "LICENSE",
    "README.md",
    "Cargo.toml",
    "Cargo.lock",
    "pyproject.toml",
    "rust/core/Cargo.toml",
    "rust/py/Cargo.toml",
}
SUFFIXES = {".css", ".html", ".json", ".py", ".rs"}  # suffixes of files below python/ and rust/


def main(path: Path) -> int:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z"], check=True, capture_output=True, text=True
    ).stdout
    tracked = set(filter(None, listed.split("\0")))
    with tarfile.open(path) as archive:
        members = archive.getmembers()
    names = {str(PurePosixPath(*PurePosixPath(member.name).parts[1:])) for member in members if member.isfile()}
    sources = {name for name in tracked if name.startswith(("python/", "rust/core/src/", "rust/py/src/"))}
    wanted = NEEDED | {name for name in sources if PurePosixPath(name).suffix in SUFFIXES}
    problems = [f"not in git: {name}" for name in sorted(names - tracked - GENERATED)]
    problems += [f"missing: {name}" for name in sorted(wanted - names)]
    problems += [
        f"neither file nor folder: {member.name}" for member in members if not (member.isfile() or member.isdir())
    ]
    if path.stat().st_size > MOST_BYTES:
        problems.append(f"{path.stat().st_size} bytes, more than {MOST_BYTES}")
    print(f"{'bad' if problems else 'ok '} {path.name} ({path.stat().st_size} bytes, {len(names)} files)")
    print("".join(f"    {problem}\n" for problem in problems), end="")
    return int(bool(problems))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
