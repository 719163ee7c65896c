"""`streamweld check`: report where recorded streams break the rules of their own dialect."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from streamweld._messages import HEAD_BYTES, help_url, input_hint
from streamweld._show import printable
from streamweld.check import DIALECTS, Checker
from streamweld.check.violation import rules
from streamweld.cli.console import (
    FINDINGS,
    FINE,
    UNREADABLE,
    console,
    count_streams,
    emit,
    folder,
    opened,
    print_files,
    progress,
    read_each,
    table,
)
from streamweld.cli.findings import (
    OutputFormat,
    Selection,
    finding_options,
    finding_table,
    write_github,
    write_sarif,
)
from streamweld.cli.names import DialectChoice, files_argument
from streamweld.errors import StreamError, UnknownDialect
from streamweld.options import Policy
from streamweld.report.finding import Finding, Lines
from streamweld.stream import StreamParser

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO, TextIO

    from rich.console import Console

    from streamweld._spec import Severity
    from streamweld.check import CheckDialect, Violation
    from streamweld.events import Diagnostic

__all__ = ["check"]

_READ = 65_536
_LEAKS = ("text_call_seen", "other_dialect")
_ROWS = 3  # maximum number of violations shown per rule and stream, without --verbose


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of one stream."""

    file: str
    size: int
    dialect: str | None
    violations: list[Violation]
    leaks: list[Diagnostic]
    dropped: int
    unknown: StreamError | None
    lines: Lines
    hint: str  # what the body seems to be, if it is not a stream
    selection: Selection

    @property
    def codes(self) -> list[str]:
        """The codes of the findings that appear in summaries."""
        return self.selection.codes(self.findings)

    @property
    def fails(self) -> bool:
        """Whether a finding is severe enough for exit code 1."""
        return self.selection.fails(self.findings)

    @property
    def findings(self) -> list[Finding]:
        found = [Finding.of_violation(violation, self.lines) for violation in self.violations]
        found += [Finding.of_diagnostic(leak, self.lines) for leak in self.leaks]
        return found if self.unknown is None else [*found, Finding.of_error(self.unknown, self.lines)]

    def to_dict(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "bytes": self.size,
            "dialect": self.dialect,
            "findings": self.codes,
            "violations": [
                {
                    **violation.to_dict(),
                    "line": self.lines[violation.where.byte_offset],
                    "help_url": help_url(violation.rule),
                }
                for violation in self.violations
            ],
            "diagnostics": [leak.to_dict() for leak in self.leaks],
            "violations_dropped": self.dropped,
            "error": None if self.unknown is None else self.unknown.to_dict(),
            "hint": self.hint or None,
        }


class _Leaks:
    """Finds content that no rule of the dialect forbids but that clients cannot read.

    For example, the model wrote a tool call into its text, or a payload is in a dialect other than the specified one.
    """

    def __init__(self, dialect: CheckDialect) -> None:
        self._parser = StreamParser(policy=Policy("salvage", text_calls="report"), dialect=dialect)
        self.error: StreamError | None = None

    def feed(self, piece: bytes) -> None:
        if self.error is None:
            try:
                self._parser.feed(piece)
            except StreamError as error:
                self.error = error

    def close(self) -> list[Diagnostic]:
        if self.error is None:
            try:
                self._parser.close()
            except StreamError as error:
                self.error = error
        return [one for one in self._parser.response.diagnostics if one.code in _LEAKS]


def _report(dialect: CheckDialect, selection: Selection, file: str, source: BinaryIO) -> Report:
    checker = Checker(dialect)
    leaks = _Leaks(dialect)
    lines = Lines()
    found: list[Violation] = []
    size = 0
    head = b""
    unknown: StreamError | None = None
    try:
        while piece := source.read(_READ):
            size += len(piece)
            head = head or piece[:HEAD_BYTES]
            lines.feed(piece)
            leaks.feed(piece)
            found += checker.feed(piece)
        found += checker.close()
    except UnknownDialect as error:
        unknown = error if selection.keeps(error.rule) else None
    leaked = [leak for leak in leaks.close() if selection.keeps(leak.code)]
    hint = input_hint(head) if checker.dialect is None or dialect != "auto" else ""
    problem = leaks.error or unknown
    if problem is not None and problem.rule == "line_ends_missing":
        hint = problem.hint
    if hint and problem is not None:  # not a stream, so there is nothing to check
        unknown = problem if selection.keeps(problem.rule) else None
        return Report(file, size, None, [], [], 0, unknown, lines, hint, selection)
    kept = sorted((one for one in found if selection.keeps(one.rule)), key=lambda one: one.where)
    return Report(file, size, checker.dialect, kept, leaked, checker.dropped, unknown, lines, hint, selection)


@click.command(short_help="Check recorded streams against the rules of their own dialect.")
@files_argument
@click.option(
    "--dialect",
    type=DialectChoice(DIALECTS),
    default="auto",
    show_default=True,
    help="The dialect whose rules apply; auto detects it.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show every violation of each stream.")
@finding_options
def check(
    files: tuple[str, ...],
    dialect: CheckDialect,
    verbose: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: Severity,
    exit_zero: bool,
    output_format: OutputFormat,
    as_json: bool,
    output: str | None,
) -> None:
    """Check recorded streams against the rules of their own dialect.

    Each FILE contains one stream; - is standard input.

    Each violation is reported with its byte, line and event, and with the document that defines the rule. The command
    checks the bytes as they were sent. It also reports faults that inspect repairs or tolerates, and a body of JSON
    lines or a JSON array instead of an event stream.

    Tool calls that a model wrote into its text are reported as text_call_seen, and a stream in a dialect other than
    --dialect as other_dialect.

    Exit codes: 0 no findings, 1 findings (a violation with severity warning or error, a tool call in the text, or an
    unknown dialect), 2 usage error, 3 a file could not be read. --fail-on sets the lowest severity for exit code 1.
    """
    unreadable: list[str] = []
    read = partial(_report, dialect, Selection.of(select, ignore, fail_on))
    reports = read_each(progress(files, "check"), read, unreadable)
    with opened(output) as out:
        fails = _write(
            out, reports, unreadable, "json" if as_json else output_format, verbose=verbose, many=len(files) > 1
        )
    sys.exit(UNREADABLE if unreadable else FINDINGS if fails and not exit_zero else FINE)


def _write(
    out: TextIO, reports: Iterable[Report], unreadable: list[str], form: OutputFormat, *, verbose: bool, many: bool
) -> bool:
    """Write the reports, and return True if any stream fails.

    While the reports are consumed, the names of unreadable files are added to `unreadable`.
    """
    fails = False
    match form:
        case "json":
            for report in reports:
                fails = fails or report.fails
                emit(report.to_dict(), out)
        case "github":
            for report in reports:
                fails = fails or report.fails
                write_github(out, report.file, report.findings)
        case "sarif":
            kept = list(reports)
            fails = any(report.fails for report in kept)
            write_sarif(out, ((report.file, report.findings) for report in kept), unreadable)
        case "text" if many and not verbose:
            fails = _show_many(console(file=out), reports)
        case "text":
            for report in reports:
                fails = fails or report.fails
                _show(console(file=out), report, every=verbose)
    return fails


def _show(out: Console, report: Report, *, every: bool) -> None:
    out.print(f"{printable(report.file)}  {report.dialect or 'unknown'}", style="bold", soft_wrap=True)
    if report.unknown is not None:
        out.print(str(report.unknown), soft_wrap=True)
    if report.hint and report.hint not in str(report.unknown):
        out.print(report.hint, soft_wrap=True)
    found = [Finding.of_violation(violation, report.lines) for violation in report.violations]
    found += [Finding.of_diagnostic(leak, report.lines) for leak in report.leaks]
    if found:
        out.print(finding_table(found, most=None if every else _ROWS))
        for name, count in Counter(violation.rule for violation in report.violations).items():
            if not every and count > _ROWS:
                out.print(f"and {count - _ROWS} more {name}")
    if report.dropped:
        out.print(f"and {report.dropped} more violations, which are not listed")
    if report.dialect is None:
        out.print("not checked: the dialect is unknown")
    elif not report.codes:
        out.print("clean: no finding")


def _show_many(out: Console, reports: Iterable[Report]) -> bool:
    """Write one line for each stream with a finding, then the broken rules, most frequent first.

    Returns True if any stream fails.
    """
    fails = False
    levels: tuple[Severity, ...] = ("error", "warning", "info")
    rows: list[tuple[str, ...]] = []
    streams: Counter[str] = Counter()
    number = unchecked = 0
    for report in reports:
        number += 1
        unchecked += report.dialect is None and not report.codes
        fails = fails or report.fails
        streams.update({violation.rule for violation in report.violations})
        if report.codes:
            counts = Counter(finding.severity for finding in report.findings if finding.kind != "error")
            numbers = [str(counts[level]) for level in levels]
            rows.append((report.file, report.dialect or "unknown", *numbers, ", ".join(report.codes)))
    shared = folder([row[0] for row in rows]) if rows else ""
    if rows:
        if shared:
            out.print(printable(shared), style="bold", soft_wrap=True)
        shown = table("file", "dialect", *levels, "findings", right=levels)
        for file, *cells in rows:
            shown.add_row(printable(file.removeprefix(shared)), *cells)
        print_files(out, shown)
    out.print(count_streams(number, number - len(rows) - unchecked, unchecked, "not checked (unknown dialect)"))
    if streams:
        broken = table("streams", "severity", "rule", "what", "source", right=("streams",))
        for name, count in streams.most_common():
            rule = rules()[name]
            broken.add_row(str(count), rule.severity, name, rule.text, rule.source)
        out.print(broken)
    return fails
