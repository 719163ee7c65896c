"""Streams with many copies of one element, by dialect, from `scaling.txt`, the table that the Rust and Python suites
share.

`shapes()` returns a stream for every row of the table in every order of its elements. For each dialect that the package
can write, it adds the converted streams of `NEUTRAL`, so that a new dialect is covered before it has its own rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamweld as sw
from streamweld._spec import LIMITS
from streamweld.convert import TARGETS
from streamweld.options import DIALECTS, Limits

from tests.support.backends import using

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["OFF", "Shape", "Table", "shapes", "table"]

TABLE = Path(__file__).parent / "scaling.txt"
OFF = Limits(**dict.fromkeys(LIMITS, None))
SCATTER, SCATTERED = 7919, 1_000_003

# The order of passes over all elements: o(pen), f(ill), c(lose), C (close from the last to the first), t(hen).
ORDERS = {
    "one by one": ("ofc", "t"),
    "side by side": ("o", "f", "c", "t"),
    "closed backwards": ("o", "f", "C", "t"),
    "in two rounds": ("of", "fc", "t"),
    "never opened": ("f", "t"),
    "never closed": ("of", "t"),
    "closed alone": ("c", "t"),
}
PASSES = {"o": "open", "f": "fill", "c": "close", "C": "close", "t": "then"}
# Streams that are converted to every other dialect.
NEUTRAL = {
    "chat": ("text and reasoning in turn, one by one", "calls, side by side", "annotations, one by one"),
    "responses": ("messages with parts, one by one", "content parts, side by side", "reasoning, one by one"),
    "ai-sdk-parts": ("texts, side by side", "calls with results, one by one", "sources, one by one"),
}


@dataclass(frozen=True)
class Shape:
    """A stream of `dialect` with a variable number of elements."""

    dialect: str
    thing: str
    passes: tuple[str, ...] = ()  # the text of each pass; @ is the number of the element
    backwards: frozenset[int] = frozenset()  # passes that begin with the last element
    head: str = ""
    tail: str = ""
    joint: str = ""  # separator between two elements
    between: str = ""  # separator between two passes
    source: Shape | None = None  # the stream that is converted, if any

    @property
    def name(self) -> str:
        return f"{self.dialect}: {self.thing}"

    def body(self, n: int) -> bytes:
        if self.source is not None:
            return _converted(self.source, n, self.dialect)
        made: list[str] = []
        for place, text in enumerate(self.passes):
            numbers = range(n - 1, -1, -1) if place in self.backwards else range(n)
            made.append(self.joint.join([_numbered(text, number) for number in numbers]))
        return f"{self.head}{self.between.join(made)}{self.tail}".encode()


@cache
def _converted(source: Shape, n: int, dialect: Any) -> bytes:
    with using(sw.backend):
        return sw.convert(source.body(n), source=source.dialect, target=dialect, limits=OFF, seed="m")  # type: ignore[arg-type]


def _numbered(text: str, number: int) -> str:
    if "@" not in text:
        return text
    text = text.replace("@@", str(2 * number)).replace("@+", str(2 * number + 1))
    return text.replace("@%", str(number * SCATTER % SCATTERED)).replace("@", str(number))


@dataclass
class Row:
    """One row of the table, with its lines grouped by kind."""

    name: str = ""
    is_list: bool = False
    lines: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, kind: str, line: str) -> None:
        self.lines[kind] = self.lines.get(kind, "") + self._wire(line)

    def _wire(self, line: str) -> str:
        if self.is_list or not line:
            return line.replace("\\n", "\n")
        if line.startswith("="):
            return line[1:].replace("\\n", "\n")
        name, brace, rest = line.partition("{")
        if not brace:
            raise ValueError(line)
        event = f"event: {name.strip()}\n" if name else ""
        return f"{event}data: {brace}{rest}\n\n"


Table = dict[str, list[Shape]]


@cache
def table() -> Table:
    """Return every row of the file, in every order of its elements, by dialect."""
    found: Table = {}
    dialect, usual, rows = "", Row(), list[Row]()
    for line in [*TABLE.read_text("utf-8").splitlines(), "dialect"]:
        kind, _, rest = line.partition(" ")
        if not line or line.startswith("#"):
            continue
        if kind == "dialect":
            if dialect:
                found[dialect] = [shape for row in rows for shape in _arranged(dialect, usual, row)]
            dialect, usual, rows = rest, Row(), []
        elif kind in ("many", "list"):
            rows.append(Row(rest, kind == "list"))
        else:
            (rows[-1] if rows else usual).add(kind, rest)
    return found


def _arranged(dialect: str, usual: Row, row: Row) -> Iterator[Shape]:
    lines = row.lines
    if row.is_list:
        passes = tuple([lines[kind] for kind in ("one", "other") if kind in lines])
        head, between, tail = lines["before"], lines.get("between", ""), lines["behind"]
        yield Shape(dialect, row.name, passes, head=head, tail=tail, joint=",", between=between)
        return
    head, tail = [lines.get(kind, usual.lines.get(kind, "")) for kind in ("head", "tail")]
    seen: set[tuple[tuple[str, ...], frozenset[int]]] = set()
    for order, passes in ORDERS.items():
        sent = [(one, "".join([lines.get(PASSES[kind], "") for kind in one])) for one in passes]
        sent = [(one, text) for one, text in sent if text]
        texts = tuple([text for _, text in sent])
        backwards = frozenset([place for place, (one, _) in enumerate(sent) if one == "C"])
        begun = any(one != "t" for one, _ in sent)
        if begun and (texts, backwards) not in seen:
            seen.add((texts, backwards))
            yield Shape(dialect, f"{row.name}, {order}", texts, backwards, head, tail)


def shapes() -> list[Shape]:
    """Return every row, and the converted ones."""
    found = [shape for rows in table().values() for shape in rows]
    for source, things in NEUTRAL.items():
        known = {shape.thing: shape for shape in table()[source]}
        for dialect in (*TARGETS[:-1],):
            if dialect != source:
                found += [Shape(dialect, f"{source}'s {thing}", source=known[thing]) for thing in things]
    return found


if set(TARGETS[:-1]) != set(DIALECTS[1:]):
    raise AssertionError("a dialect is read that is not written, or the other way round")
