"""Every file that is mentioned in a comment, a docstring or ARCHITECTURE.md exists, as does every rule that code cites.

A name is a path in backticks. It may omit parent folders (`_pure/sse`, `_spec/limits.json`), and contain `*` or
`<name>` for any text. In the pages of `MAPS` it may omit the suffix (`assemble/finish_reason`).
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache

import pytest

from tests.support.imports import REPOSITORY, tracked_files

MAPS = ("ARCHITECTURE.md", "CONTRIBUTING.md")
PAGES = (*MAPS, "benches/README.md", "tests/vectors/README.md")
IN_BACKTICKS = re.compile(r"`([\w.<>*/-]+)`")
# A rule in text: one or two capitals and a number. Versions (V4) and hexadecimal digits do not match.
CODE = re.compile(r"(?<![\w\"'`\\+-])(?:[DEGMNPQR]|AM?)[1-9]\d?[a-z]?(?![\w\"'`])")
DEFINED = re.compile(r'<a id="([a-z]+\d+[a-z]?)">|^### ([A-Z]+\d+)$', re.MULTILINE)
# Text in backticks is a path in this repository if it matches this pattern.
PATH = re.compile(r"(_pure|_spec|python|rust|tests)/[\w.<>*/-]+|[\w<>*/-]+\.(py|rs|json)")


@cache
def known() -> frozenset[str]:
    """Return tracked files and folders, each with any number of its parent folders omitted, and files also without
    their suffix.
    """
    paths = {path for file in tracked_files() for path in (file, file.with_suffix(""), *file.parents)}
    return frozenset("/".join(path.parts[start:]) for path in paths for start in range(len(path.parts)))


def exists(name: str) -> bool:
    pattern = re.sub(r"<\w+>", "*", name.rstrip("/"))
    if "*" in pattern:
        return any(fnmatchcase(path, pattern) for path in known())
    return pattern in known()


def sources(*folders: str) -> list[str]:
    return [str(file) for file in tracked_files() if file.suffix in {".py", ".rs"} and file.parts[0] in folders]


def missing(page: str) -> list[str]:
    """Return the places in `page` that mention a file or folder that does not exist."""
    found = []
    for number, line in enumerate((REPOSITORY / page).read_text("utf-8").splitlines(), 1):
        for name in IN_BACKTICKS.findall(line):
            is_path = PATH.fullmatch(name) or (page in MAPS and "/" in name)
            if is_path and not exists(name):
                found.append(f"{page}:{number}: {name}")
    return found


def test_files_that_comments_name_exist() -> None:
    named = sources("python", "rust", "tests")
    assert len(named) > 500
    assert [place for source in named for place in missing(source)] == []


def test_rules_that_code_cites_are_defined() -> None:
    defined = {
        one or other.lower() for one, other in DEFINED.findall((REPOSITORY / "docs/rules.md").read_text("utf-8"))
    }
    assert {"r1a", "a8", "am12"} <= defined
    undefined = [
        f"{source}:{number}: {code}"
        for source in sources("python", "rust")
        for number, line in enumerate((REPOSITORY / source).read_text("utf-8").splitlines(), 1)
        for code in CODE.findall(line)
        if code.lower() not in defined
    ]
    assert undefined == []


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_names_exist(page: str) -> None:
    assert missing(page) == []


@pytest.mark.parametrize("name", ["_pure/assemble/identity.py", "rust/core/src/stage.rs", "check/<name>.rs", "sse/x"])
def test_a_file_that_does_not_exist_is_found(name: str) -> None:
    assert not exists(name)
