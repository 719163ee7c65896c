"""What the commands share: exit codes, safe text, a console. rich is imported where something is drawn."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

import click

from streamweld._show import printable
from streamweld._spec import CODES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console
    from rich.table import Table

    from streamweld.events import Diagnostic

__all__ = ["FINDINGS", "FINE", "UNREADABLE", "USAGE", "console", "diagnostic_table", "emit", "lines", "table"]

FINE: Final = 0
FINDINGS: Final = 1
USAGE: Final = 2
UNREADABLE: Final = 3


def console(*, stderr: bool = False) -> Console:
    """A console that reads no markup and marks no words: what it prints comes from streams."""
    from rich.console import Console

    made = Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = 120  # a file or a pipe has no width; 80 would fold for nobody
    return made


def table(*columns: str, title: str | None = None, right: tuple[str, ...] = ()) -> Table:
    """An empty table with those columns; those named in `right` hold numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return made


def diagnostic_table(diagnostics: Iterable[Diagnostic]) -> Table:
    """What was repaired, and where."""
    made = table("severity", "code", "byte", "event", "what", title="diagnostics", right=("byte", "event"))
    for diagnostic in diagnostics:
        text = CODES[diagnostic.code].text + (f": {diagnostic.detail}" if diagnostic.detail else "")
        place = (str(diagnostic.byte_offset), str(diagnostic.event_ordinal))
        made.add_row(diagnostic.severity, diagnostic.code, *place, printable(text))
    return made


def lines(text: str, limit: int | None = None) -> str:
    """Text of several lines, each made safe to print."""
    cut = limit is not None and len(text) > limit
    shown = text[:limit] if cut else text
    return "\n".join([printable(line) for line in shown.split("\n")]) + ("…" if cut else "")


def emit(line: dict[str, Any]) -> None:
    """One line of JSON Lines. It is ASCII, so no terminal is moved by what a stream holds."""
    click.echo(json.dumps(line))
