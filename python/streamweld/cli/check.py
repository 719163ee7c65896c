"""`streamweld check`: which rules of their own dialect recorded streams break."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from streamweld._show import printable
from streamweld.check import DIALECTS, Checker
from streamweld.check.violation import rules
from streamweld.cli.console import FINDINGS, FINE, UNREADABLE, console, emit, folder, progress, read_each, table
from streamweld.errors import UnknownDialect

if TYPE_CHECKING:
    from typing import BinaryIO

    from rich.console import Console

    from streamweld._spec import Severity
    from streamweld.check import CheckDialect, Violation

__all__ = ["check"]

_READ = 65_536
_ROWS = 3  # of one rule in one stream, for people who did not ask for every violation


@dataclass(frozen=True, slots=True)
class Report:
    """One stream."""

    file: str
    size: int
    dialect: str | None
    violations: list[Violation]
    dropped: int
    unknown: UnknownDialect | None

    @property
    def findings(self) -> list[str]:
        """The rules of severity warning or error, each once; and that the dialect is none that is known."""
        broken = [violation.rule for violation in self.violations if violation.severity != "info"]
        if self.unknown is not None:
            broken.append(self.unknown.rule)
        return list(dict.fromkeys(broken))

    def to_dict(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "bytes": self.size,
            "dialect": self.dialect,
            "findings": self.findings,
            "violations": [violation.to_dict() for violation in self.violations],
            "violations_dropped": self.dropped,
            "error": None if self.unknown is None else self.unknown.to_dict(),
        }


def _report(dialect: CheckDialect, file: str, source: BinaryIO) -> Report:
    checker = Checker(dialect)
    found: list[Violation] = []
    size = 0
    unknown: UnknownDialect | None = None
    try:
        while piece := source.read(_READ):
            size += len(piece)
            found += checker.feed(piece)
        found += checker.close()
    except UnknownDialect as error:
        unknown = error
    return Report(file, size, checker.dialect, sorted(found, key=lambda one: one.where), checker.dropped, unknown)


@click.command(short_help="Which rules of their own dialect recorded streams break.")
@click.argument("files", nargs=-1, required=True, metavar="FILE…|-")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a stream (JSON Lines).")
@click.option(
    "--dialect",
    type=click.Choice(DIALECTS),
    default="auto",
    show_default=True,
    help="Whose rules; auto: those of the dialect that the first payloads show.",
)
@click.option("-v", "--verbose", is_flag=True, help="Every violation of each stream.")
def check(files: tuple[str, ...], as_json: bool, dialect: CheckDialect, verbose: bool) -> None:
    """Which rules of their own dialect recorded streams break: one stream a FILE, - is standard input.

    Each violation comes with its byte, its event and the document that the rule is from. The bytes are judged as sent:
    what inspect repairs or reads over counts, and so does a body that is no event stream but JSON lines or an array.

    Exit codes: 0 all clean, 1 findings (a violation of severity warning or error, or no dialect that is known),
    3 a file could not be read.
    """
    unreadable: list[str] = []
    found = False
    reports = read_each(progress(files, "check"), partial(_report, dialect), unreadable)
    if as_json:
        for report in reports:
            found = found or bool(report.findings)
            emit(report.to_dict())
    elif len(files) == 1 or verbose:
        out = console()
        for report in reports:
            found = found or bool(report.findings)
            _show(out, report, every=verbose)
    else:
        kept = list(reports)
        found = any(report.findings for report in kept)
        if kept:
            _show_many(console(), kept)
    sys.exit(UNREADABLE if unreadable else FINDINGS if found else FINE)


def _show(out: Console, report: Report, *, every: bool) -> None:
    out.print(f"{printable(report.file)}  {report.dialect or 'unknown'}", style="bold", soft_wrap=True)
    if report.unknown is not None:
        out.print(str(report.unknown), soft_wrap=True)
    if report.violations:
        shown = table("severity", "byte", "event", "what", "source", right=("byte", "event"))
        counts: Counter[str] = Counter()
        for violation in report.violations:
            counts[violation.rule] += 1
            if not every and counts[violation.rule] > _ROWS:
                continue
            place = (str(violation.where.byte_offset), str(violation.where.event_ordinal))
            what = f"{violation.rule}: {violation.message}"
            shown.add_row(violation.severity, *place, what, violation.source)
        out.print(shown)
        for name, count in counts.items():
            if not every and count > _ROWS:
                out.print(f"and {count - _ROWS} more {name}")
    if report.dropped:
        out.print(f"and {report.dropped} more violations, which are not listed")
    if not report.findings:
        out.print("clean: no finding")


def _show_many(out: Console, reports: list[Report]) -> None:
    """A line a stream, then the rules that were broken, the most frequent first."""
    levels: tuple[Severity, ...] = ("error", "warning", "info")
    shown = table("file", "dialect", *levels, "findings", right=levels)
    shared = folder([report.file for report in reports])
    if shared:
        out.print(printable(shared), style="bold", soft_wrap=True)
    streams: Counter[str] = Counter()
    for report in reports:
        counts = Counter(violation.severity for violation in report.violations)
        streams.update({violation.rule for violation in report.violations})
        shown.add_row(
            printable(report.file.removeprefix(shared)),
            report.dialect or "unknown",
            *[str(counts[level]) for level in levels],
            ", ".join(report.findings),
        )
    out.print(shown)
    clean = sum(not report.findings for report in reports)
    out.print(f"{len(reports)} streams, {clean} without a finding")
    if streams:
        broken = table("streams", "severity", "rule", "what", "source", right=("streams",))
        for name, count in streams.most_common():
            rule = rules()[name]
            broken.add_row(str(count), rule.severity, name, rule.text, rule.source)
        out.print(broken)
