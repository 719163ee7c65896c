"""Every Rust module of the core has a pure-Python module with the same folder and name, and vice versa.

`counterparts.json` lists the exceptions, each group with its reason. The test fails if an exception is missing from the
list, or if a listed one is no longer needed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.imports import CORE, PACKAGE

PURE = PACKAGE / "_pure"
LISTED: dict[str, Any] = json.loads(Path(__file__).with_name("counterparts.json").read_text("utf-8"))


def modules(root: Path, suffix: str, folder_file: str) -> set[str]:
    """Return the modules below `root` as paths without suffix; a package has the path of its folder."""
    found = set()
    for path in root.rglob(f"*{suffix}"):
        name = path.relative_to(root).with_suffix("")
        found.add((name.parent if path.name == folder_file else name).as_posix())
    return found


RUST_MODULES = {name for name in modules(CORE, ".rs", "mod.rs") if not name.endswith("/tests")}
PURE_MODULES = modules(PURE, ".py", "__init__.py") - {"."}


@pytest.mark.parametrize(
    ("listing", "own", "other"), [("rust", RUST_MODULES, PURE_MODULES), ("pure", PURE_MODULES, RUST_MODULES)]
)
def test_modules_without_a_counterpart_are_listed(listing: str, own: set[str], other: set[str]) -> None:
    listed = [f"{group['folder']}/{name}".strip("/") for group in LISTED[listing] for name in group["modules"]]
    assert len(listed) == len(set(listed)), "listed twice"
    assert sorted(own - other - set(listed)) == [], "give it the name of its counterpart, or list it with a reason"
    assert sorted(set(listed) - (own - other)) == [], "remove the entry: the module has a counterpart or is gone"


def test_every_group_has_a_reason() -> None:
    groups = [group for backend in ("rust", "pure") for group in LISTED[backend]]
    assert all(group["reason"].endswith(".") and group["modules"] for group in groups)
    reasons = [(group["folder"], group["reason"]) for group in groups]
    assert len(reasons) == len(set(reasons)), "merge groups that have the same reason"
