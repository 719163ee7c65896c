"""Code that the commands share: exit codes, escaping of text, and the console.

rich is imported only if a table or a progress bar is drawn."""

from __future__ import annotations

import errno
import json
import os
import sys
import zlib
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from streamweld._messages import HEAD_BYTES, rows_hint
from streamweld._show import printable
from streamweld.testing.recording import MARK, parse_recording

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from typing import BinaryIO, TextIO

    from rich.console import Console
    from rich.table import Table

__all__ = [
    "FINDINGS",
    "FINE",
    "UNREADABLE",
    "USAGE",
    "ClosedPipeError",
    "UnwritableError",
    "console",
    "count_streams",
    "emit",
    "folder",
    "lines",
    "opened",
    "print_files",
    "progress",
    "read_each",
    "table",
]

_R = TypeVar("_R")

FINE: Final = 0
FINDINGS: Final = 1
USAGE: Final = 2
UNREADABLE: Final = 3
_CODES: Final = 40  # minimum width of a column of codes in a file, in characters
_PADDING: Final = 3  # characters between two columns


def console(*, stderr: bool = False, file: TextIO | None = None) -> Console:
    """Create a console without markup or highlighting, because its output contains text from streams."""
    from rich.console import Console

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            """Raise the error for a closed pipe, which `run` handles. On Windows, exit with 1, as rich does."""
            if sys.platform == "win32":
                super().on_broken_pipe()
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    made = Piped(file=file, stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = 120  # a file or a pipe has no width, and the default of 80 would wrap lines unnecessarily
    return made


def table(*columns: str, title: str | None = None, right: tuple[str, ...] = ()) -> Table:
    """Create an empty table with these columns; those in `right` contain numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return made


def print_files(out: Console, rows: Table) -> None:
    """Print a table whose first column contains file names, and whose last column contains lists of codes.

    If the output is a file or a pipe, lines are broken only between two codes, so that names and codes can be searched
    and copied.
    """
    if not out.is_terminal:
        *others, codes = rows.columns
        taken = 0
        for column in others:
            column.no_wrap = True
            column.min_width = max(len(str(cell)) for cell in (column.header, *column.cells))
            taken += column.min_width + _PADDING
        longest = max((len(code) for cell in codes.cells for code in str(cell).split()), default=0)
        out.width = max(out.width, taken + max(longest, _CODES))
    out.print(rows)


def count_streams(number: int, clean: int, unread: int = 0, what: str = "") -> str:
    """Return a summary of several streams. `what` describes the `unread` streams."""
    last = f", {unread} {what}" if unread else ""
    return f"{number} stream{'' if number == 1 else 's'}, {clean} without a finding{last}"


def lines(text: str, limit: int | None = None) -> str:
    """Escape multi-line text, so that each line is safe to print."""
    cut = limit is not None and len(text) > limit
    shown = text[:limit] if cut else text
    return "\n".join([printable(line) for line in shown.split("\n")]) + ("…" if cut else "")


def emit(line: dict[str, Any], file: TextIO | None = None) -> None:
    """Write one line of JSON Lines output. The line is ASCII, so text from a stream cannot control the terminal."""
    click.echo(json.dumps(line), file=file)


class ClosedPipeError(Exception):
    """The program that reads the output has exited; for example, `head` exits after its last line."""


class UnwritableError(Exception):
    """The output could not be written while an input file was being read. The error is not caused by the input file."""


@contextmanager
def opened(output: str | None) -> Generator[TextIO]:
    """Open the text file to write to, or standard output if `output` is None or `-`.

    Raises:
        UnwritableError: if the file cannot be opened or written.
    """
    if output is None or output == "-":
        yield sys.stdout
        return
    try:
        with Path(output).open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            yield file
    except OSError as error:
        raise UnwritableError(f"{printable(output)}: {error.strerror or error}") from error


@contextmanager
def _source(file: str) -> Generator[BinaryIO]:
    """Open an input file; `-` is standard input. Files that end in `.gz` are decompressed."""
    if file == "-":
        yield _body(sys.stdin.buffer)
        return
    with Path(file).open("rb") as source:
        if not file.endswith(".gz"):
            yield _body(source)
            return
        import gzip

        with gzip.GzipFile(fileobj=source) as plain:
            yield _body(plain)


def _body(source: Any) -> BinaryIO:
    """Return the source; if it is a streamweld recording, return the recorded body instead.

    Raises:
        OSError: if the recording is invalid, or if each line of the file contains a separate response.
    """
    head = source.peek(HEAD_BYTES)
    rows = rows_hint(head)
    if rows:
        raise OSError(f"this is {rows}")
    if head.startswith(MARK):
        try:
            return BytesIO(parse_recording(source.read().decode("utf-8")).body)
        except ValueError as error:
            raise OSError(str(error)) from None
    return cast("BinaryIO", source)


def read_each(files: Iterable[str], read: Callable[[str, BinaryIO], _R], unreadable: list[str]) -> Iterator[_R]:
    """Yield the result of `read` for each file.

    `-` is standard input, and `.gz` files are decompressed. Files that cannot be read are reported immediately and
    appended to `unreadable`.
    """
    for file in files:
        try:
            with _source(file) as source:
                made = read(file, source)
        except IsADirectoryError:
            unreadable.append(file)
            hint = "this is a folder; `streamweld scan` and `streamweld report` read folders"
            click.echo(f"streamweld: {printable(file)}: {hint}", err=True)
        except (OSError, EOFError, zlib.error) as error:
            unreadable.append(file)
            problem = error.strerror if isinstance(error, OSError) and error.strerror else error
            click.echo(f"streamweld: {printable(file)}: {problem}", err=True)
        else:
            yield made


def progress(files: tuple[str, ...], name: str) -> Iterable[str]:
    """Yield the files, and show a progress bar if there are many and standard error is a terminal."""
    if len(files) < 2 or not sys.stderr.isatty():
        return files
    from rich.progress import track

    return track(files, description=name, console=console(stderr=True), transient=True)


def folder(files: list[str]) -> str:
    """Return the folder that contains all files, with a trailing separator, or `""` if there is none."""
    try:
        common = os.path.commonpath([os.path.dirname(file) for file in files])  # noqa: PTH120 (as they were given)
    except ValueError:
        return ""
    shared = os.path.join(common, "") if common else ""  # noqa: PTH118
    return shared if all(file.startswith(shared) for file in files) else ""
