"""Environments beside the one that the tests run in: packages that cannot live in it, pinned in `environments/*.txt`.

`make test` makes them, under `.venv`. This module knows where they are, and nothing of what is in them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.support.places import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

ROOT = REPOSITORY


def python_of(name: str) -> Path:
    """The interpreter of an environment; a failure where it was not made."""
    folder = ROOT / ".venv" / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (folder / "made").is_file():
        pytest.fail(f"{folder} is not there (make test makes it: make environments)", pytrace=False)
    return python
