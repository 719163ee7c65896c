"""Payloads with one long array: every array in the payloads of the vectors, filled with copies of one element.

`python -m tests.support.load.arrays BACKEND [COUNT] [JOB ...]` prints, for each, the peak memory growth and the size of
the body in KiB.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import streamweld as sw
from streamweld.check import Checker
from streamweld.errors import StreamError

from tests.support.attacks import peak_of_process, reset_peak
from tests.support.backends import using
from tests.support.vector_files import DIALECTS, chunks_of, load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Path = tuple[str | int, ...]
# The elements that fill an array, in addition to its own first element.
ELEMENTS = ("1", '""', "{}", "[]", "null")
SALVAGE: dict[str, Any] = {"policy": "salvage", "seed": "a"}


@dataclass(frozen=True)
class Place:
    """An array of a payload, and the stream up to that payload."""

    dialect: str
    name: str  # the type of the payload, and the path of the array
    before: bytes
    head: str  # the frame up to the first element of the array
    own: str  # the array's own first element
    tail: str

    def body(self, element: str, count: int) -> bytes:
        """Return the stream with `count` elements."""
        return self.before + (self.head + ",".join([element] * count) + self.tail).encode()


def arrays_in(value: object, path: Path = ()) -> Iterator[tuple[Path, list[Any]]]:
    if isinstance(value, list):
        yield path, value
        for item in value[:1]:
            yield from arrays_in(item, (*path, 0))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from arrays_in(item, (*path, key))


def _with(value: Any, path: Path, new: object) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _with(value[path[0]], path[1:], new)
    return copy


def _places(dialect: str, body: bytes) -> Iterator[Place]:
    before = ""
    for frame in body.decode("utf-8", "replace").split("\n\n"):
        name, _, data = frame.rpartition("data: ")
        with suppress(ValueError):
            value = json.loads(data)
            kind = value.get("type", "") if isinstance(value, dict) else ""
            for path, items in arrays_in(value):
                mark = "@@"
                head, _, tail = json.dumps(_with(value, path, [mark])).partition(f'"{mark}"')
                where = "/".join("*" if isinstance(step, int) else step for step in path)
                own = json.dumps(items[0]) if items else "1"
                yield Place(dialect, f"{kind} {where}", before.encode(), f"{name}data: {head}", own, f"{tail}\n\n")
        before += f"{frame}\n\n"


@cache
def places() -> tuple[Place, ...]:
    """Return one array in a payload for each dialect, type and path."""
    found: dict[tuple[str, str], Place] = {}
    for dialect in DIALECTS:
        for vector in load(dialect):
            for place in _places(dialect, b"".join(chunks_of(vector))):
                found.setdefault((dialect, place.name), place)
    return tuple(found.values())


def parse(dialect: Any, body: bytes) -> None:
    parser = sw.StreamParser(dialect=dialect, **SALVAGE)
    with suppress(StreamError):
        parser.feed(body)
        parser.close()


def write(target: Any) -> Callable[[Any, bytes], None]:
    def run(dialect: Any, body: bytes) -> None:
        converter = sw.StreamConverter(source=dialect, target=target, **SALVAGE)
        converter.feed(body)
        converter.close()

    return run


def check(dialect: Any, body: bytes) -> None:
    checker = Checker(dialect)
    checker.feed(body)
    checker.close()


JOBS: dict[str, Callable[[Any, bytes], None]] = {
    "parse": parse,
    "same": write("same"),
    "responses": write("responses"),
    "chat": write("chat"),
    "check": check,
}


def growth(job: Callable[[Any, bytes], None], dialect: str, body: bytes) -> int:
    """Return the peak memory growth of the job in its own process."""
    job(dialect, b"")  # warm up: imports and caches
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        gc.freeze()  # a garbage collection would copy the pages of all objects
        reset_peak()
        before = peak_of_process()
        job(dialect, body)
        os.write(send, str(peak_of_process() - before).encode())
        os._exit(0)
    os.close(send)
    with os.fdopen(receive) as found:
        grown = int(found.read())
    os.waitpid(child, 0)
    return grown


def elements(place: Place) -> list[str]:
    return list(dict.fromkeys([*ELEMENTS, place.own]))


def main(backend: Any, count: str = "16000", *names: str) -> None:
    with using(backend):
        for place in places():
            for element in elements(place):
                body = place.body(element, int(count))
                for name in names or JOBS:
                    if name != place.dialect:
                        grown = growth(JOBS[name], place.dialect, body)
                        print(
                            grown // 1024, len(body) // 1024, name, place.dialect, place.name, element[:60], flush=True
                        )


if __name__ == "__main__":
    main(*sys.argv[1:])
