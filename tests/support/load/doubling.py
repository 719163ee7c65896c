"""Checks that four times as many elements take at most `DOUBLE` squared as long, up to 64,000 elements.

`python -m tests.support.load.doubling BACKEND SECONDS FILE` measures rows in a fixed order, one job for every shape
before the second job for any, and appends a line to the file for each row. It resumes after the last line, so that even
a machine that is idle only at times completes all rows.

Each row is first measured with a quarter of the elements. If work of the form an + bn² stays within `FEW` there, it
stays within `DOUBLE` squared for the full number. Otherwise, the row is measured again with the full number.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.limits.test_linear_time import ALL, in_reads, jobs
from tests.support.backends import using
from tests.support.load.linear import DOUBLE, growth

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.limits.test_linear_time import Job
    from tests.support.load.many import Shape

SIZES = {"native": (4000, 16_000, 64_000), "pure": (500, 2000, 8000)}
MOST = DOUBLE**2
# With x = bn/a at the smallest size, growth is (4 + 16x) / (1 + x) there, and the same with 4x one step later.
FEW = (4 + 16 * (share := (MOST - 4) / (16 - MOST) / 4)) / (1 + share)


def rows(backend: str) -> Iterator[tuple[Shape, str, Job]]:
    """Yield each shape with each job: first one job for every shape, then the next job for every shape."""
    shapes = list(ALL)
    random.Random(0).shuffle(shapes)
    found = [(shape, list(jobs(shape, backend).items())) for shape in shapes]
    for turn in range(max(len(some) for _, some in found)):
        for place, (shape, some) in enumerate(found):
            if turn < len(some):
                yield shape, *some[(place + turn) % len(some)]


def main(backend: str, seconds: str, results: str) -> None:
    file = Path(results)
    done = {line.split("\t")[0] for line in file.read_text().splitlines()} if file.exists() else set[str]()
    end = time.monotonic() + float(seconds)
    gc.collect()
    gc.freeze()  # each measurement begins with a collection, which skips frozen modules and tables
    for shape, name, job in rows(backend):
        if time.monotonic() > end:
            return
        if f"{shape.name}: {name}" in done:
            continue
        few, small, large = SIZES[backend]
        with using(backend):
            found, how = grown(shape, job, (few, small), FEW), "few"
            if found > FEW:
                found, how = grown(shape, job, (small, large), MOST), "many"
        with file.open("a") as out:
            out.write(f"{shape.name}: {name}\t{found:.2f}\t{how}\t{'SLOW' if found > MOST else 'ok'}\n")


def grown(shape: Shape, job: Job, sizes: tuple[int, int], most: float) -> float:
    small, large = [in_reads(shape.body(size)) for size in sizes]
    return growth(partial(job, small), partial(job, large), most, tries=5)


if __name__ == "__main__":
    main(*sys.argv[1:])
