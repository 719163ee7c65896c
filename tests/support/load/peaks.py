"""Prints the peak memory growth of each stage and integration for each filler, as a table with tabs.

`STREAMWELD_NIGHTLY=1 python -m tests.support.load.peaks [STAGE | INTEGRATION ...]` sends 128 MiB of each filler to the
native backend. The last line has the highest peak. The command fails if a peak is above the allowed growth.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.integrations.test_flood import allowed as allowed_of_integration
from tests.limits.test_memory_caps import allowed as allowed_of_stage
from tests.support.attacks import MIB
from tests.support.load.fillers import STAGES
from tests.support.load.flood import INTEGRATIONS
from tests.support.places import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator


def lines(module: str, *arguments: str) -> Iterator[str]:
    """Run a module of this folder, and yield its output line by line."""
    command = [sys.executable, "-m", f"tests.support.load.{module}", *arguments]
    with subprocess.Popen(command, cwd=REPOSITORY, env=os.environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield from process.stdout
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")


def rows(name: str) -> Iterator[tuple[str, str, int, int]]:
    """Yield the filler, how it was sent, the growth and the allowed growth, in bytes."""
    if name in STAGES:
        for line in lines("fillers", "native", name):
            filler, way, _, grown = line.split()
            yield filler, way, int(grown), allowed_of_stage("native", name)
        return
    for line in lines("flood", name):
        row = json.loads(line)
        way = f"{'begun' if row['begun'] else 'fresh'} {row['how']}"
        yield row["filler"], way, row["growth"], allowed_of_integration(name, row["how"])


def main(*names: str) -> int:
    over = count = most = 0
    for name in names or (*STAGES, *INTEGRATIONS):
        for filler, way, grown, allowed in rows(name):
            mark = "\tOVER" if grown > allowed else ""
            print(name, filler, way, f"{grown / MIB:.2f} MiB of {allowed / MIB:.2f}{mark}", sep="\t", flush=True)
            over, count, most = over + bool(mark), count + 1, max(most, grown)
    print(f"{count} rows, peak at most {most / MIB:.2f} MiB over the base, {over} above the allowed growth")
    return over > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
