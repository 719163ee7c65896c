"""Arguments that are read while they arrive: what one more delta costs, beside jiter's partial mode on the text so far.

Every reader's value is compared with `json.loads` of the completed text before it is timed.
"""

from __future__ import annotations

import json
import time
from statistics import median
from typing import TYPE_CHECKING, Any

import jiter
import pytest
from streamweld.events import ToolCallDelta
from streamweld.partial import PartialArguments

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (9_000, 36_000, 72_000)
LINE = "    return { 'a': [1, 2, 3] }  # a line of code\n"
RECORD = {"id": 17, "name": "Oslo", "tags": ["a", "b"], "at": [59.9, 10.7], "open": True}


def one_string(size: int) -> dict[str, Any]:
    return {"path": "a.py", "text": LINE * (size // len(LINE))}


def records(size: int) -> dict[str, Any]:
    return {"rows": [RECORD] * (size // 90)}


def pieces_of(text: str, size: int = 12) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def per_delta(read: Callable[[str], object], pieces: list[str]) -> float:
    """The median, in microseconds, of the last 200 deltas; all before them were read too."""
    took = []
    for piece in pieces:
        begin = time.perf_counter_ns()
        read(piece)
        took.append(time.perf_counter_ns() - begin)
    return median(took[-200:]) / 1000


class View:
    """The live view, which is asked for its changes after each delta."""

    def __init__(self) -> None:
        self.view = PartialArguments(0)

    def __call__(self, piece: str) -> object:
        self.view.apply(ToolCallDelta(0, piece))
        return self.view.changes()

    @property
    def value(self) -> object:
        return self.view.value


class OnDemand:
    """`ToolCallDelta.partial` after each delta."""

    def __init__(self) -> None:
        self.text = ""
        self.value: object = None

    def arguments_so_far(self, _part: int) -> str:
        return self.text

    def __call__(self, piece: str) -> object:
        self.text += piece
        self.value = ToolCallDelta(0, piece).partial(self)
        return self.value


class Jiter:
    """The text so far, read again with each delta."""

    def __init__(self) -> None:
        self.text = b""
        self.value: object = None

    def __call__(self, piece: str) -> object:
        self.text += piece.encode()
        self.value = jiter.from_json(self.text, partial_mode="trailing-strings")
        return self.value


@pytest.mark.parametrize("shape", [one_string, records])
def test_a_delta_of_long_arguments(shape: Callable[[int], dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    """The view's cost does not grow with the text; that of reading it again does."""
    rows = []
    for size in SIZES:
        whole = shape(size)
        pieces = pieces_of(json.dumps(whole))
        found = {}
        for reader in (View(), Jiter()):
            found[type(reader).__name__] = per_delta(reader, pieces)
            assert reader.value == whole
        last = OnDemand()
        last.text = "".join(pieces[:-200])
        found["OnDemand"] = per_delta(last, pieces[-200:])
        assert last.value == whole
        rows.append((size, found))
    with capsys.disabled():
        print(f"\n{shape.__name__}: µs a delta of 12 characters; jiter {jiter.__version__}")
        for size, found in rows:
            print(f"  {size:>7,} B  " + "  ".join(f"{name} {took:8.1f}" for name, took in found.items()))
    view = [found["View"] for _, found in rows]
    assert view[-1] < 2 * view[0]
    assert view[-1] * 4 < rows[-1][1]["Jiter"]
