"""Work is linear in the input, regardless of which element is repeated: every row of `scaling.txt`, in every order.

Each stream is parsed, folded into a response, repaired, written in every dialect and checked, with and without limits.
A usual run uses a fixed sample of the rows and jobs (`test_linear`).

STREAMWELD_NIGHTLY=1 runs every row and job with up to 64,000 elements (`test_doubling`), some 12,000 jobs for each
backend. Running each of them several times with each of several sizes takes a day. The test therefore selects suspects
by time, and decides by the number of instructions:

1. Each job runs once with the full number of elements and once with a quarter of it. If four times as many elements
   take at most 2 * `DOUBLE` times as long, neither of the two doublings takes more than `DOUBLE` times as long: the
   other one takes at least twice as long, because an element never becomes cheaper when there are more of them. Most
   jobs end here. A quotient that is too small shows that another process slowed down the smaller run, which is then
   repeated.
2. The other jobs are suspects, mostly because their data outgrow a cache of the processor. If Valgrind is installed, it
   counts their instructions, which depend neither on caches nor on other processes. The count begins with few elements,
   because most suspects are linear there already. Without Valgrind, suspects are measured several times.

`-k native-chat:` selects the rows of one backend and dialect, as the steps of the scorecard do.
"""

from __future__ import annotations

import gc
from functools import partial
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest
import streamweld as sw
from streamweld.check import Checker
from streamweld.convert import TARGETS
from streamweld.errors import StreamError
from streamweld.options import DIALECTS, Limits

from tests.conftest import NIGHTLY
from tests.support.backends import using
from tests.support.load.instructions import VALGRIND, Counter
from tests.support.load.linear import DOUBLE, growth, quadrupling
from tests.support.load.many import OFF, Shape, shapes, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Job = Callable[[list[bytes]], object]

READ = 4096
EVERY = 1 if NIGHTLY else 24  # the sample is one row in this many
ALL = shapes()
SHAPES = [shape for shape in ALL if crc32(shape.name.encode()) % EVERY == 0]
SIZES = {"native": 1500, "pure": 150}  # number of elements; also run with four times as many
FULL_SIZES = {"native": (16_000, 64_000), "pure": (1000, 4000)}
# Counting takes some 15 times as long as the work, so it begins with smaller sizes. Quadratic work that makes doubling
# to the full size cost `DOUBLE` times as much makes it cost more than `COUNTED` times as much here.
COUNTED_SIZES = {"native": (4000, 8000), "pure": (500, 1000)}
COUNTED = 2.03
LIMITS = {"off": OFF, "on": Limits()}
SALVAGE: dict[str, Any] = {"policy": "salvage", "seed": "t"}  # continues after faults, so more work is done


def read(shape: Shape, limits: Limits, pieces: list[bytes]) -> object:
    """Read the events and the final response."""
    parser = sw.StreamParser(dialect=shape.dialect, limits=limits, **SALVAGE)  # type: ignore[arg-type]
    try:
        for piece in pieces:
            parser.feed(piece)
        parser.close()
    except StreamError:
        pass
    return parser.response


def write(shape: Shape, limits: Limits, pieces: list[bytes], *, target: Any, hold: bool = False) -> object:
    """Convert to another dialect, or repair."""
    options = SALVAGE | {"limits": limits, "hold_arguments": hold}
    converter = sw.StreamConverter(source=shape.dialect, target=target, **options)  # type: ignore[arg-type]
    for piece in pieces:
        converter.feed(piece)
    converter.close()
    return converter.response


def check(shape: Shape, pieces: list[bytes]) -> object:
    checker = Checker(shape.dialect)  # type: ignore[arg-type]
    for piece in pieces:
        checker.feed(piece)
    return checker.close()


def jobs(shape: Shape, backend: str) -> dict[str, Job]:
    """Return the jobs for a stream, by name."""
    found: dict[str, Job] = {}
    for name, limits in LIMITS.items():
        found[f"read, limits {name}"] = partial(read, shape, limits)
        for target in TARGETS:
            if target != shape.dialect:
                found[f"to {target}, limits {name}"] = partial(write, shape, limits, target=target)
        found[f"to same, held, limits {name}"] = partial(write, shape, limits, target="same", hold=True)
    if backend == "pure":  # `check` is the same for both backends
        found["check"] = partial(check, shape)
    return found


def chosen(shape: Shape, found: dict[str, Job]) -> dict[str, Job]:
    """Return the jobs of a usual run: parsing, repair or check, and a target that differs from row to row."""
    others = [name for name in found if name.startswith("to ") and not name.startswith("to same, limits off")]
    one = others[crc32(shape.name.encode()) % len(others)]
    usual = ("read, limits off", "to same, limits off", "check", one)
    return {name: job for name, job in found.items() if name in usual}


def in_reads(body: bytes) -> list[bytes]:
    return [body[at : at + READ] for at in range(0, len(body), READ)]


def slow_jobs(shape: Shape, backend: str, sizes: tuple[int, int], most: float, found: dict[str, Job]) -> list[str]:
    """Return the jobs that take more than `most` times as long for the larger stream, and again for the next step.

    If memory outgrows a processor cache, or a stage has to start rewriting, one step is slower; quadratic work slows
    every step, the later one more (see `assert_linear_work`).
    """
    small, large = [in_reads(shape.body(size)) for size in sizes]
    slow: list[str] = []
    for name, job in found.items():
        with using(backend):
            times = growth(partial(job, small), partial(job, large), most)
            if times <= most:
                continue
            next_size = sizes[1] * sizes[1] // sizes[0]
            again = growth(partial(job, large), partial(job, in_reads(shape.body(next_size))), most)
        if again > most:
            steps = f"{sizes[0]} to {sizes[1]} took {times:.2f} times as long, to {next_size} {again:.2f} times that"
            slow.append(f"{name}: {steps}")
    return slow


def test_every_dialect_has_rows() -> None:
    """A new dialect gets converted streams of other dialects, but also needs its own rows."""
    assert set(table()) == set(DIALECTS) - {"auto"}
    assert {shape.dialect for shape in ALL if shape.source is not None} == set(table())
    assert {shape.dialect for shape in SHAPES} == set(table())


@pytest.mark.parametrize("shape", SHAPES, ids=[shape.name for shape in SHAPES])
@pytest.mark.skipif(NIGHTLY, reason="test_doubling measures the same with more elements")
def test_linear(backend: str, shape: Shape) -> None:
    size = SIZES[backend]
    slow = slow_jobs(shape, backend, (size, 4 * size), DOUBLE**2, chosen(shape, jobs(shape, backend)))
    assert not slow, "\n".join(slow)


@pytest.fixture(scope="module")
def counter() -> Iterator[Counter]:
    with Counter() as made:
        yield made


def run(backend: str, job: Job, pieces: list[bytes]) -> None:
    with using(backend):
        job(pieces)


def slow_by_count(counter: Counter, shape: Shape, backend: str, found: dict[str, Job]) -> list[str]:
    """Return the jobs that need more than `DOUBLE` times as many instructions for twice the size."""
    slow: list[str] = []
    large_size = FULL_SIZES[backend][1]
    for name, job in found.items():
        for sizes, most in ((COUNTED_SIZES[backend], COUNTED), ((large_size // 2, large_size), DOUBLE)):
            small, large = [counter.count(partial(run, backend, job, in_reads(shape.body(size)))) for size in sizes]
            if large > DOUBLE * small:  # with more elements, the quotient would only be larger
                slow.append(f"{name}: {sizes[0]} elements take {small} instructions, {sizes[1]} take {large}")
            if large > DOUBLE * small or large <= most * small:
                break
    return slow


@pytest.fixture(scope="module")
def frozen() -> Iterator[None]:
    """Keep the collections that precede each measurement from visiting every object of the test suite."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize("shape", SHAPES, ids=[shape.name for shape in SHAPES])
@pytest.mark.skipif(not NIGHTLY, reason="takes hours: make nightly")
@pytest.mark.usefixtures("frozen")
def test_doubling(backend: str, shape: Shape, counter: Counter) -> None:
    """Work stays linear for large streams, up to 64,000 elements."""
    few, many = [in_reads(shape.body(size)) for size in FULL_SIZES[backend]]
    with using(backend):
        suspects = {
            name: job
            for name, job in jobs(shape, backend).items()
            if quadrupling(partial(job, few), partial(job, many)) > 2 * DOUBLE
        }
    if VALGRIND is not None:
        slow = slow_by_count(counter, shape, backend, suspects)
    else:
        half = FULL_SIZES[backend][1] // 2
        slow = slow_jobs(shape, backend, (half // 2, half), DOUBLE, suspects)
    assert not slow, "\n".join(slow)
