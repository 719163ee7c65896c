"""`streamweld convert`: write a recorded stream in another dialect, or repair it in its own dialect."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from streamweld._show import printable
from streamweld.cli.console import FINDINGS, FINE, UNREADABLE, UnwritableError, read_each
from streamweld.cli.findings import exit_zero_option, fail_on_option, fails
from streamweld.cli.names import AliasedOption, DialectChoice
from streamweld.convert import TARGETS, StreamConverter
from streamweld.options import DIALECTS

if TYPE_CHECKING:
    from typing import BinaryIO

    from streamweld._spec import Severity
    from streamweld.convert import Target
    from streamweld.options import Dialect

__all__ = ["convert"]

_READ = 65_536


class _Sink:
    """The output for the converted stream: standard output, or a file that is created with the first bytes."""

    def __init__(self, output: str | None) -> None:
        self._path = None if output is None or output == "-" else Path(output)
        self._file: BinaryIO | None = None

    def write(self, data: bytes) -> None:
        try:
            file = self._file
            if file is None:
                file = self._file = sys.stdout.buffer if self._path is None else self._path.open("wb")
            file.write(data)
            file.flush()
        except OSError as error:
            position = "" if self._path is None else f"{printable(str(self._path))}: "
            raise UnwritableError(f"{position}{error.strerror or error}") from error

    def close(self) -> None:
        if self._file is not None and self._path is not None:
            self._file.close()


def _written(converter: StreamConverter, sink: _Sink, _: str, source: BinaryIO) -> StreamConverter:
    while piece := source.read(_READ):
        sink.write(converter.feed(piece))
    sink.write(converter.close())
    return converter


@click.command(short_help="Write a recorded stream in another dialect.")
@click.argument("file", metavar="FILE|-")
@click.option(
    "--to",
    "target",
    cls=AliasedOption,
    aliases=("--target",),
    type=DialectChoice(TARGETS),
    required=True,
    help="The dialect to write; same repairs the stream in its own dialect.",
)
@click.option(
    "--from",
    "source",
    cls=AliasedOption,
    aliases=("--source",),
    type=DialectChoice(DIALECTS),
    default="auto",
    show_default=True,
    help="The dialect to read; auto detects it.",
)
@click.option(
    "--seed", help="Seed for generated ids, to make them the same in every run: 1 to 64 characters of A-Z a-z 0-9 _ -."
)
@click.option("-o", "--output", metavar="FILE", help="Write to FILE instead of standard output.")
@fail_on_option("finding")
@exit_zero_option()
def convert(
    file: str,
    target: str,
    source: str,
    seed: str | None,
    output: str | None,
    fail_on: Severity,
    exit_zero: bool,
) -> None:
    """Write the recorded stream FILE (- is standard input) in another dialect, or repair it in its own dialect.

    Repairs, content that the target cannot represent, and any fault in the source are reported on standard error. If
    there is a fault, the output ends with an error in the format of the target dialect.

    Repairs count as findings, so the exit code of a successful conversion may be 1. With --fail-on error, only a fault
    or a diagnostic with severity error counts.

    Exit codes: 0 success, 1 findings (a fault, or a diagnostic with severity warning or error), 2 usage error, 3 the
    file could not be read. --fail-on sets the lowest severity for exit code 1.
    """
    unreadable: list[str] = []
    converter = StreamConverter(target=cast("Target", target), source=cast("Dialect", source), seed=seed)
    found: list[Severity] = []
    sink = _Sink(output)
    for done in read_each([file], partial(_written, converter, sink), unreadable):
        sink.close()
        for diagnostic in done.diagnostics:
            found.append(diagnostic.severity)
            text = diagnostic.message
            position = f"byte {diagnostic.byte_offset}, event {diagnostic.event_ordinal}"
            click.echo(
                f"streamweld: {diagnostic.severity}: {printable(text)} [{diagnostic.code} at {position}]", err=True
            )
        if done.error is not None:
            found.append("error")
            click.echo(f"streamweld: {printable(str(done.error))}", err=True)
    sys.exit(UNREADABLE if unreadable else FINDINGS if fails(found, fail_on) and not exit_zero else FINE)
