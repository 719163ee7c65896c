"""Additional environments, for packages that conflict with the tests' own environment, pinned in `environments/*.txt`.

`make test` creates them, under `.venv`. This module only locates them.
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
    """Return the interpreter of an environment; fail if it was not created."""
    folder = ROOT / ".venv" / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (folder / "made").is_file():
        pytest.fail(f"{folder} is not there (make test makes it: make environments)", pytrace=False)
    return python
