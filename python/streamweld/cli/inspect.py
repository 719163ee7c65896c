"""`streamweld inspect`: show the contents of recorded streams, their repairs, and the rules that they break."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import click

from streamweld._messages import HEAD_BYTES, help_url, input_hint, is_readable, label_text
from streamweld._show import printable
from streamweld.check import Checker
from streamweld.cli.console import (
    FINDINGS,
    FINE,
    UNREADABLE,
    console,
    count_streams,
    emit,
    folder,
    lines,
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
from streamweld.errors import NotAnEventStream, StreamError, UnknownDialect
from streamweld.events import ReasoningDone, ToolResult
from streamweld.options import DIALECTS, Base, Policy
from streamweld.report.finding import Finding, Lines
from streamweld.report.repairs import RepairCheck
from streamweld.stream import StreamParser

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO, TextIO

    from rich.console import Console

    from streamweld._spec import Severity
    from streamweld.check import Violation
    from streamweld.events import Diagnostic, ToolCall
    from streamweld.options import Dialect
    from streamweld.response import Item, Response

__all__ = ["inspect"]

_READ = 65_536
_TEXT = 2_000  # maximum number of characters of text in the readable view
_ARGUMENTS = 400
_FINISH = 60  # maximum number of characters of a finish reason in the list of many streams
_HEAD = 200  # maximum number of characters shown of a body that is not an event stream
_ROWS = 3  # maximum number of findings shown per rule in the readable view


@dataclass(frozen=True, slots=True)
class Report:
    """The findings and contents of one stream."""

    file: str
    size: int
    dialect: str | None
    response: Response
    raised: StreamError | None
    diagnostics: list[Diagnostic]
    violations: list[Violation]
    lines: Lines
    findings: list[Finding]  # diagnostics and violations in byte order, then the error
    codes: list[str]  # codes and rules of the findings that appear in summaries
    fails: bool  # whether a finding is severe enough for exit code 1
    is_stream: bool  # whether `repair` applies to the body
    repaired: bool  # whether `repair` changes the bytes of the stream
    repairs: list[str]  # reasons for these changes: codes, with a detail in parentheses

    @property
    def _items(self) -> list[Item]:
        return [item for choice in self.response.choices for item in choice.items]

    def to_dict(self) -> dict[str, Any]:
        """Return the output of `--json`.

        `reasoning` is the text; `reasoning_parts` are the data that a later turn must send back.
        """
        response = self.response
        return {
            "file": self.file,
            "bytes": self.size,
            "dialect": self.dialect,
            "id": response.id,
            "model": response.model,
            "completeness": response.completeness,
            "finish_reason": response.finish_reason,
            "raw_finish_reason": response.raw_finish_reason,
            "text": response.text,
            "reasoning": response.reasoning,
            "refusal": response.refusal,
            "tool_calls": [call.to_dict() | {"dispatchable": runnable} for call, runnable in _calls(response)],
            "tool_results": [item.to_dict() for item in self._items if isinstance(item, ToolResult)],
            "reasoning_parts": [_but_its_text(item) for item in self._items if isinstance(item, ReasoningDone)],
            "item_ids": {
                str(part): item_id for choice in response.choices for part, item_id in choice.item_ids.items()
            },
            "usage": None if response.usage is None else response.usage.to_dict(),
            "choices": len(response.choices),
            "findings": self.codes,
            "repaired": self.repaired,
            "repairs": self.repairs,
            "diagnostics": [
                {
                    **diagnostic.to_dict(),
                    "line": self.lines[diagnostic.byte_offset],
                    "message": diagnostic.message,
                    "help_url": diagnostic.help_url,
                }
                for diagnostic in self.diagnostics
            ],
            "diagnostics_dropped": response.diagnostics_dropped,
            "violations": [
                {
                    **violation.to_dict(),
                    "line": self.lines[violation.where.byte_offset],
                    "help_url": help_url(violation.rule),
                }
                for violation in self.violations
            ],
            "error": self._error(),
        }

    def _error(self) -> dict[str, Any] | None:
        """Return the error that ended the stream, or the gateway's error if the policy does not raise for it."""
        sent = self.response.error
        if self.raised is not None:
            return self.raised.to_dict()
        return None if sent is None else {name: value for name, value in sent.to_dict().items() if name != "raw"}

    @property
    def error_text(self) -> str | None:
        """The error as text."""
        sent = self.response.error
        if self.raised is not None:
            return str(self.raised)
        return None if sent is None else " ".join(filter(None, [sent.code, sent.kind, sent.message]))


def _calls(response: Response) -> list[tuple[ToolCall, bool]]:
    """Return the calls of each choice, those run by the provider last, and whether each call is dispatchable."""
    found: list[tuple[ToolCall, bool]] = []
    for choice in response.choices:
        runnable = {call.part for call in choice.dispatchable_calls}
        found += [(call, call.part in runnable) for call in (*choice.tool_calls, *choice.server_tool_calls)]
    return found


def _but_its_text(item: ReasoningDone) -> dict[str, Any]:
    return {name: value for name, value in item.to_dict().items() if name != "text"}


class _Rules:
    """Collects the violations in a stream of any dialect. If the dialect is unknown, the parser reports it."""

    def __init__(self, dialect: Dialect) -> None:
        self._checker: Checker | None = Checker(dialect)
        self.found: list[Violation] = []

    def feed(self, piece: bytes | None) -> None:
        """Feed the next chunk; None ends the stream."""
        if self._checker is None:
            return
        try:
            self.found += self._checker.close() if piece is None else self._checker.feed(piece)
        except UnknownDialect:
            self._checker = None


def _report(policy: Base, dialect: Dialect, selection: Selection, file: str, source: BinaryIO) -> Report:
    parser = StreamParser(policy=Policy(policy, text_calls="report"), dialect=dialect)
    rules = _Rules(dialect)
    repair = RepairCheck(policy, dialect)
    positions = Lines()
    size = 0
    head = b""
    raised: StreamError | None = None
    while piece := source.read(_READ):
        size += len(piece)
        head = head or piece[:HEAD_BYTES]
        positions.feed(piece)
        rules.feed(piece)
        repair.feed(piece)
        if raised is None:
            try:
                parser.feed(piece)
            except StreamError as error:
                raised = error
    rules.feed(None)
    repair.close()
    if raised is None:
        try:
            parser.close()
        except StreamError as error:
            raised = error
    response = parser.response
    is_stream = raised is None or not input_hint(head)  # otherwise, the error is the only finding
    diagnostics = [one for one in response.diagnostics if is_stream and selection.keeps(one.code)]
    broken = (one for one in rules.found if is_stream and selection.keeps(one.rule))
    violations = sorted(broken, key=lambda one: one.where)
    findings = [Finding.of_diagnostic(one, positions) for one in diagnostics]
    findings += [Finding.of_violation(one, positions) for one in violations]
    findings.sort(key=lambda one: (one.byte_offset or 0, one.event_ordinal or 0))
    if raised is not None and selection.keeps(raised.rule) and all(raised.rule != one.code for one in findings):
        findings.append(Finding.of_error(raised, positions))
    verdict = (selection.codes(findings), selection.fails(findings))
    applies = is_stream and not isinstance(raised, NotAnEventStream)
    reasons = [one for one in repair.reasons if selection.keeps(one.partition("(")[0])] if applies else []
    effect = (applies, applies and repair.changed)
    seen = (diagnostics, violations, positions, findings)
    return Report(file, size, parser.dialect, response, raised, *seen, *verdict, *effect, reasons)


@click.command(short_help="Show what recorded streams contain, and what had to be repaired.")
@files_argument
@click.option(
    "--policy",
    type=click.Choice(get_args(Base)),
    default="standard",
    show_default=True,
    help="What to do about a fault: strict stops at every repair, salvage reads as much as possible.",
)
@click.option(
    "--dialect",
    type=DialectChoice(DIALECTS),
    default="auto",
    show_default=True,
    help="The wire format; auto detects it.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show all details of each stream, even if there are many.")
@finding_options
def inspect(
    files: tuple[str, ...],
    policy: Base,
    dialect: Dialect,
    verbose: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: Severity,
    exit_zero: bool,
    output_format: OutputFormat,
    as_json: bool,
    output: str | None,
) -> None:
    """Show what recorded streams contain and what had to be repaired.

    Each FILE contains one stream; - is standard input.

    A stream is an event stream, JSON lines, a JSON array of events, or a single JSON response, in any of the dialects.
    The output also shows the rules of `check` that the stream breaks, and why a repair (`convert --to same`, or a
    repaired client) would change the bytes of the stream.

    Exit codes: 0 no findings, 1 findings (a diagnostic or a broken rule with severity warning or error), 2 usage error,
    3 a file could not be read. --fail-on sets the lowest severity for exit code 1. Codes excluded with --ignore do not
    affect the exit code.
    """
    unreadable: list[str] = []
    read = partial(_report, policy, dialect, Selection.of(select, ignore, fail_on))
    reports = read_each(progress(files, "inspect"), read, unreadable)
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
            kept: list[tuple[str, list[Finding]]] = []
            for report in reports:
                fails = fails or report.fails
                kept.append((report.file, report.findings))
            write_sarif(out, kept, unreadable)
        case "text" if many and not verbose:
            fails = _show_many(console(file=out), reports)
        case "text":
            for report in reports:
                fails = fails or report.fails
                _show(console(file=out), report)
    return fails


def _show(out: Console, report: Report) -> None:
    response = report.response
    out.print(printable(report.file), style="bold", soft_wrap=True)
    facts = table("", "")
    facts.show_header = False
    is_unknown = isinstance(report.raised, NotAnEventStream | UnknownDialect)
    rows = {
        "dialect": report.dialect or "unknown",
        "model": response.model,
        "completeness": None if is_unknown else response.completeness,
        "finish": None if is_unknown else _finish(response),
        "usage": _usage(response),
        "reasoning": lines(response.reasoning, _TEXT),
        "text": lines(response.text, _TEXT),
        "refusal": lines(response.refusal, _TEXT),
        "error": report.error_text,
        "body": _body(report.raised),
    }
    for name, value in rows.items():
        if value:
            facts.add_row(name, value if name in ("reasoning", "text", "refusal", "body") else printable(value))
    out.print(facts)
    calls = _calls(response)
    if calls:
        shown = table("name", "id", "state", "dispatchable", "arguments", title="tool calls")
        for call, runnable in calls:
            arguments = printable(call.arguments, _ARGUMENTS)
            cells = (printable(call.name), printable(call.call_id), _state(call))
            shown.add_row(*cells, "yes" if runnable else "no", arguments)
        out.print(shown)
    if report.diagnostics:
        found = [Finding.of_diagnostic(diagnostic, report.lines) for diagnostic in report.diagnostics]
        out.print(finding_table(found, title="diagnostics"))
    if response.diagnostics_dropped:
        out.print(f"and {response.diagnostics_dropped} more diagnostics")
    if report.violations:
        found = [Finding.of_violation(violation, report.lines) for violation in report.violations]
        out.print(finding_table(found, title="rules that the stream breaks (streamweld check)", most=_ROWS))
    if report.diagnostics or report.violations:
        out.print("`streamweld explain CODE` shows what a code means and what to do")
    if not report.findings and report.raised is None:
        out.print("clean: no finding")
    if not report.is_stream:
        out.print("`repair` does not apply, because this is not a stream")
    elif report.repaired:
        out.print("`repair` changes the bytes of this stream" + (" for these reasons:" if report.repairs else ""))
        for reason in report.repairs:
            out.print(f"  {reason}: {label_text(reason)}", soft_wrap=True)
    elif report.dialect is not None:
        out.print("`repair` passes this stream through unchanged")


def _body(raised: StreamError | None) -> str | None:
    """Return the beginning of a body that is text but not an event stream, to show what the body is."""
    if not isinstance(raised, NotAnEventStream) or not is_readable(raised.body_head):
        return None
    return lines(raised.body_head.decode("utf-8", "replace"), _HEAD)


def _finish(response: Response) -> str:
    reason = response.finish_reason
    if reason is None:
        return "none"
    if response.raw_finish_reason is None:
        return f"{reason} (none sent)"
    return reason if response.raw_finish_reason == reason else f"{reason} (sent: {response.raw_finish_reason})"


def _usage(response: Response) -> str | None:
    usage = response.usage
    if usage is None:
        return None
    counts = {name: value for name, value in usage.to_dict().items() if isinstance(value, int)}
    return ", ".join([f"{name.removesuffix('_tokens').replace('_', ' ')} {value}" for name, value in counts.items()])


def _state(call: ToolCall) -> str:
    state = call.state if call.reason is None else f"{call.state} ({call.reason})"
    if call.custom:
        state += ", free-form text"
    return f"{state}, run by the provider" if call.provider_executed else state


def _show_many(out: Console, reports: Iterable[Report]) -> bool:
    """Write one line for each stream with a finding, then the number of streams with each code and each repair.

    Returns True if any stream fails.
    """
    fails = False
    rows: list[tuple[str, ...]] = []
    codes: Counter[str] = Counter()
    repairs: Counter[str] = Counter()
    number = ignored = repaired = 0
    for report in reports:
        number += 1
        ignored += report.raised is not None and not report.codes
        fails = fails or report.fails
        response = report.response
        codes.update(report.codes)
        repaired += report.repaired
        repairs.update(report.repairs)
        if report.codes:
            calls = _calls(response)
            counts = (str(len(response.text)), str(len(calls)), str(sum(runnable for _, runnable in calls)))
            facts = (report.dialect or "unknown", *counts, printable(_finish(response), _FINISH))
            rows.append((report.file, *facts, response.completeness, ", ".join(report.codes)))
    if rows:
        shared = folder([row[0] for row in rows])
        if shared:
            out.print(printable(shared), style="bold", soft_wrap=True)
        numbers = ("text", "calls", "dispatchable")
        shown = table("file", "dialect", *numbers, "finish", "completeness", "findings", right=numbers)
        for file, *cells in rows:
            shown.add_row(printable(file.removeprefix(shared)), *cells)
        print_files(out, shown)
    out.print(count_streams(number, number - len(rows) - ignored, ignored, "with an ignored error"))
    if codes:
        out.print("streams with a finding, by code")
        for code, count in codes.most_common():
            out.print(f"{count:6}  {code}")
    if repaired:
        out.print(f"streams that `repair` changes: {repaired}, by reason")
        for reason, count in repairs.most_common():
            out.print(f"{count:6}  {reason}")
    return fails
