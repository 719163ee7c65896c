"""The recipes of `docs/bulk.md` on Polars, DuckDB, Daft, Spark and Ray return the same rows as one local call.

`engines.py` runs each recipe in the environment `engines`, and kills a worker of Spark and of Ray. 5,000 rows in `make
test-all`, 200,000 in `make nightly`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any

import pytest

from tests.integrations.dropin.environments import ROOT, python_of

NIGHTLY = os.environ.get("STREAMWELD_NIGHTLY") == "1"
ROWS = 200_000 if NIGHTLY else 5_000

pytestmark = [
    pytest.mark.skipif(
        not NIGHTLY and os.environ.get("STREAMWELD_FULL") != "1",
        reason="engines need an environment of their own: make test-all",
    ),
    pytest.mark.timeout(1800 if NIGHTLY else 300),
]


@pytest.mark.parametrize("name", ["polars", "duckdb", "daft", "spark", "ray"])
def test_an_engine_makes_the_rows_of_a_local_call(name: str) -> None:
    if name == "spark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    done = subprocess.run(
        [python_of("engines"), "-m", "tests.bulk.engines", name, str(ROWS)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=1700 if NIGHTLY else 280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["wrong"] == []
    assert found["equal"]
    assert (found["rows"], found["bad"]) == (ROWS, ROWS // 1000)
