"""`streamweld convert`: one recorded stream, written in another dialect, or repaired in its own."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, cast

import click

from streamweld._show import printable
from streamweld.cli.console import FINDINGS, FINE, UNREADABLE, UnwritableError, read_each
from streamweld.convert import TARGETS, StreamConverter
from streamweld.options import DIALECTS

if TYPE_CHECKING:
    from typing import BinaryIO

    from streamweld.convert import Target
    from streamweld.options import Dialect

__all__ = ["convert"]

_READ = 65_536


def _written(converter: StreamConverter, _: str, source: BinaryIO) -> StreamConverter:
    while piece := source.read(_READ):
        _write(converter.feed(piece))
    _write(converter.close())
    return converter


def _write(data: bytes) -> None:
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        raise UnwritableError(error.strerror or str(error)) from error


@click.command(short_help="One recorded stream, written in another dialect.")
@click.argument("file", metavar="FILE|-")
@click.option(
    "--to",
    "target",
    type=click.Choice(TARGETS),
    required=True,
    help="The dialect to write; same: that of the source, repaired.",
)
@click.option(
    "--from",
    "source",
    type=click.Choice(DIALECTS),
    default="auto",
    show_default=True,
    help="The dialect to read; auto: what the first payloads show.",
)
@click.option("--seed", help="For ids that are the same in every run: 1 to 64 characters of A-Z a-z 0-9 _ -.")
def convert(file: str, target: str, source: str, seed: str | None) -> None:
    """One recorded stream FILE (- is standard input), written in another dialect to standard output.

    What was repaired, what the target has no place for, and a fault of the source are told on standard error; a fault
    is written as the target's own honest ending.

    Exit codes: 0 fine, 1 findings (a fault, or a diagnostic of severity warning or error), 2 usage, 3 the file could
    not be read.
    """
    unreadable: list[str] = []
    converter = StreamConverter(target=cast("Target", target), source=cast("Dialect", source), seed=seed)
    found = False
    for done in read_each([file], partial(_written, converter), unreadable):
        for diagnostic in done.diagnostics:
            found = found or diagnostic.severity != "info"
            text = diagnostic.message
            place = f"byte {diagnostic.byte_offset}, event {diagnostic.event_ordinal}"
            click.echo(f"streamweld: {diagnostic.severity}: {printable(text)} [{diagnostic.code} at {place}]", err=True)
        if done.error is not None:
            found = True
            click.echo(f"streamweld: {printable(str(done.error))}", err=True)
    sys.exit(UNREADABLE if unreadable else FINDINGS if found else FINE)
