"""Paths of the repository, the tests, the vectors, and the third-party data next to the checkout."""

from __future__ import annotations

import os
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
REPOSITORY = TESTS.parent
VECTORS = TESTS / "vectors"
SHARED = Path(os.environ.get("STREAMWELD_SHARED") or REPOSITORY.parent / "shared")
CORPUS = Path(os.environ.get("STREAMWELD_CORPUS") or SHARED / "corpus")
