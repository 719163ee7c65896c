"""`streamweld report`: write one HTML page about recorded streams."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

import click

from streamweld._show import printable
from streamweld.cli.console import FINE, UNREADABLE, opened, progress
from streamweld.cli.names import DialectChoice
from streamweld.errors import UsageError
from streamweld.options import DIALECTS, Base
from streamweld.report import Recorded, read, render

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamweld.options import Dialect

__all__ = ["report"]

_DEFAULT_OUTPUT: Final = "report.html"


@click.command(short_help="Write an HTML report about recorded streams.")
@click.argument("paths", nargs=-1, required=True, metavar="FILE|FOLDER…", type=click.Path())
@click.option("-o", "--output", metavar="FILE", help=f"Write to FILE.  [default: {_DEFAULT_OUTPUT}]")
@click.option("--diff", is_flag=True, help="Compare two streams.")
@click.option("--title", metavar="TEXT", help="Title of the page.  [default: the names or number of the streams]")
@click.option(
    "--policy",
    type=click.Choice(get_args(Base)),
    default="standard",
    show_default=True,
    help="What to do about a fault: strict stops at every repair, salvage reads as much as possible.",
)
@click.option("--dialect", type=DialectChoice(DIALECTS), default="auto", show_default=True, help="The wire format.")
def report(
    paths: tuple[str, ...], output: str | None, diff: bool, title: str | None, policy: Base, dialect: Dialect
) -> None:
    """Write an HTML page about recorded streams: parts, tool calls, findings with the bytes concerned, and repairs.

    The page contains no scripts and loads nothing. A FILE contains the body of one response, or a recording that
    includes the arrival times of its chunks. All files in a FOLDER and its subfolders are read, and the page includes a
    table of gateways and codes, and a table of gateways and the reasons why `repair` changes their streams. The name of
    the folder that contains a file is the name of its gateway.

    Exit codes: 0 success, 2 usage error, 3 a file could not be read or the page could not be written.
    """
    unreadable = False
    recorded: list[Recorded] = []
    found = list(_found(paths))
    if diff and len(found) != 2:
        raise UsageError("--diff takes two files")
    shown = progress(tuple(str(path) for path, _, _ in found), "report")
    for _, (path, name, gateway) in zip(shown, found, strict=True):
        try:
            recorded.append(read(path, name, gateway))
        except (OSError, ValueError) as error:
            unreadable = True
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            click.echo(f"streamweld: {printable(str(path))}: {reason}", err=True)
    if diff and unreadable:
        sys.exit(UNREADABLE)
    if recorded:
        with opened(output or _DEFAULT_OUTPUT) as out:
            out.write(render(recorded, policy=policy, dialect=dialect, diff=diff, title=title))
        if output is None:
            click.echo(f"streamweld: wrote {_DEFAULT_OUTPUT}", err=True)
    elif not unreadable:
        raise UsageError("there is nothing to report: the folder is empty")
    sys.exit(UNREADABLE if unreadable else FINE)


def _found(paths: tuple[str, ...]) -> Iterator[tuple[Path, str, str]]:
    """Yield each file, with its name in the report and its gateway."""
    for given in paths:
        root = Path(given)
        if not root.is_dir():
            yield root, given, root.absolute().parent.name
            continue
        for path in sorted(root.rglob("*")):
            inside = path.relative_to(root)
            if path.is_file() and not any(part.startswith(".") for part in inside.parts):
                yield path, str(inside), inside.parts[0] if len(inside.parts) > 1 else root.absolute().name
