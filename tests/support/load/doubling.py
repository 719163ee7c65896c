"""Checks that four times as many elements take at most `DOUBLE` squared as long, up to 64,000 elements.

`python -m tests.support.load.doubling BACKEND SECONDS FILE` measures shapes and jobs in a fixed random order, appends a
line to the file for each, and resumes after the last line, so that a machine that is idle only at times completes them
all.
"""

from __future__ import annotations

import random
import sys
import time
from functools import partial
from pathlib import Path

from tests.limits.test_linear_time import ALL, in_reads, jobs
from tests.support.backends import using
from tests.support.load.linear import DOUBLE, growth

SIZES = {"native": (16_000, 64_000), "pure": (1000, 4000)}


def main(backend: str, seconds: str, results: str) -> None:
    file = Path(results)
    done = {line.split("\t")[0] for line in file.read_text().splitlines()} if file.exists() else set[str]()
    end = time.monotonic() + float(seconds)
    shapes = list(ALL)
    random.Random(0).shuffle(shapes)
    for shape in shapes:
        left = {name: job for name, job in jobs(shape, backend).items() if f"{shape.name}: {name}" not in done}
        if time.monotonic() > end:
            return
        if not left:
            continue
        small, large = [in_reads(shape.body(size)) for size in SIZES[backend]]
        for name, job in left.items():
            if time.monotonic() > end:
                return
            with using(backend):
                found = growth(partial(job, small), partial(job, large), DOUBLE**2, tries=6)
            with file.open("a") as out:
                out.write(f"{shape.name}: {name}\t{found:.2f}\t{'SLOW' if found > DOUBLE**2 else 'ok'}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
