"""`streamweld inspect`: what recorded streams say, and what had to be repaired in them."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast, get_args

import click

from streamweld._backend import backend, reads_text_calls
from streamweld._show import printable
from streamweld.cli.console import (
    FINDINGS,
    FINE,
    UNREADABLE,
    console,
    diagnostic_table,
    emit,
    folder,
    lines,
    progress,
    read_each,
    table,
)
from streamweld.errors import NotAnEventStream, StreamError
from streamweld.events import ReasoningDone, ToolResult
from streamweld.options import DIALECTS, Base, Policy
from streamweld.stream import StreamParser

if TYPE_CHECKING:
    from typing import BinaryIO

    from rich.console import Console

    from streamweld.events import ToolCall
    from streamweld.response import Item, Response

__all__ = ["inspect"]

_READ = 65_536
_TEXT = 2_000  # characters of a text that the view for people shows
_ARGUMENTS = 400
_HEAD = 200  # characters of a body that is no event stream


@dataclass(frozen=True, slots=True)
class Report:
    """One stream."""

    file: str
    size: int
    dialect: str | None
    response: Response
    raised: StreamError | None

    @property
    def findings(self) -> list[str]:
        """The codes of severity warning or error, and the rule that ended the stream, each once."""
        codes = [d.code for d in self.response.diagnostics if d.severity != "info"]
        if self.raised is not None:
            codes.append(self.raised.rule)
        return list(dict.fromkeys(codes))

    @property
    def _items(self) -> list[Item]:
        return [item for choice in self.response.choices for item in choice.items]

    def to_dict(self) -> dict[str, Any]:
        """What `--json` shows. `reasoning_parts` is what a later turn must hand back of each, `reasoning` the text."""
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
            "tool_calls": [
                call.to_dict() | {"dispatchable": call.part in runnable}
                for choice in response.choices
                for runnable in [{call.part for call in choice.dispatchable_calls}]
                for call in (*choice.tool_calls, *choice.server_tool_calls)
            ],
            "tool_results": [item.to_dict() for item in self._items if isinstance(item, ToolResult)],
            "reasoning_parts": [_but_its_text(item) for item in self._items if isinstance(item, ReasoningDone)],
            "item_ids": {
                str(part): item_id for choice in response.choices for part, item_id in choice.item_ids.items()
            },
            "usage": None if response.usage is None else response.usage.to_dict(),
            "choices": len(response.choices),
            "findings": self.findings,
            "diagnostics": [
                {**diagnostic.to_dict(), "message": diagnostic.message, "help_url": diagnostic.help_url}
                for diagnostic in response.diagnostics
            ],
            "diagnostics_dropped": response.diagnostics_dropped,
            "error": self._error(),
        }

    def _error(self) -> dict[str, Any] | None:
        """What ended the stream, or what the gateway said where the policy reads on behind it."""
        sent = self.response.error
        if self.raised is not None:
            return self.raised.to_dict()
        return None if sent is None else {name: value for name, value in sent.to_dict().items() if name != "raw"}

    @property
    def error_text(self) -> str | None:
        """The same in words."""
        sent = self.response.error
        if self.raised is not None:
            return str(self.raised)
        return None if sent is None else " ".join(filter(None, [sent.code, sent.kind, sent.message]))


def _but_its_text(item: ReasoningDone) -> dict[str, Any]:
    return {name: value for name, value in item.to_dict().items() if name != "text"}


def _reporting(policy: str) -> Policy:
    """The policy that also reports tool calls in the text, if the backend reads them."""
    reads = reads_text_calls(backend)
    return Policy(cast("Base", policy), text_calls="report" if reads else "off")


def _report(options: dict[str, Any], file: str, source: BinaryIO) -> Report:
    parser = StreamParser(**options)
    size = 0
    raised: StreamError | None = None
    try:
        while piece := source.read(_READ):
            size += len(piece)
            parser.feed(piece)
        parser.close()
    except StreamError as error:
        raised = error
    return Report(file, size, parser.dialect, parser.response, raised)


@click.command(short_help="What recorded streams say, and what had to be repaired.")
@click.argument("files", nargs=-1, required=True, metavar="FILE…|-")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a stream (JSON Lines).")
@click.option(
    "--policy",
    type=click.Choice(get_args(Base)),
    default="standard",
    show_default=True,
    help="What to do about a fault: strict stops at every repair, salvage at next to nothing.",
)
@click.option(
    "--dialect",
    type=click.Choice(DIALECTS),
    default="auto",
    show_default=True,
    help="The wire format; auto: what the first payloads show.",
)
@click.option("-v", "--verbose", is_flag=True, help="The whole view of each stream, also where there are many.")
def inspect(files: tuple[str, ...], as_json: bool, policy: str, dialect: str, verbose: bool) -> None:
    """What recorded streams say, and what had to be repaired: one stream a FILE, - is standard input.

    A stream is an event stream, JSON lines, a JSON array of events or one plain JSON answer, of any of the dialects.

    Exit codes: 0 all clean, 1 findings (a diagnostic of severity warning or error), 3 a file could not be read.
    """
    unreadable: list[str] = []
    found = False
    reports = read_each(
        progress(files, "inspect"), partial(_report, {"policy": _reporting(policy), "dialect": dialect}), unreadable
    )
    if as_json:
        for report in reports:
            found = found or bool(report.findings)
            emit(report.to_dict())
    elif len(files) == 1 or verbose:
        out = console()
        for report in reports:
            found = found or bool(report.findings)
            _show(out, report)
    else:
        kept = list(reports)
        found = any(report.findings for report in kept)
        if kept:
            _show_many(console(), kept)
    sys.exit(UNREADABLE if unreadable else FINDINGS if found else FINE)


def _show(out: Console, report: Report) -> None:
    response = report.response
    out.print(printable(report.file), style="bold", soft_wrap=True)
    facts = table("", "")
    facts.show_header = False
    rows = {
        "dialect": report.dialect or "unknown",
        "model": response.model,
        "completeness": response.completeness,
        "finish": _finish(response),
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
    calls = [call for choice in response.choices for call in (*choice.tool_calls, *choice.server_tool_calls)]
    if calls:
        shown = table("name", "id", "state", "arguments", title="tool calls")
        for call in calls:
            arguments = printable(call.arguments, _ARGUMENTS)
            shown.add_row(printable(call.name), printable(call.call_id), _state(call), arguments)
        out.print(shown)
    if response.diagnostics:
        out.print(diagnostic_table(response.diagnostics))
    if response.diagnostics_dropped:
        out.print(f"and {response.diagnostics_dropped} more diagnostics")
    if not report.findings:
        out.print("clean: no finding")


def _body(raised: StreamError | None) -> str | None:
    """How the body begins that is no event stream: most often it says itself what it is."""
    return lines(raised.body_head.decode("utf-8", "replace"), _HEAD) if isinstance(raised, NotAnEventStream) else None


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


def _show_many(out: Console, reports: list[Report]) -> None:
    shown = table("file", "dialect", "text", "calls", "finish", "completeness", "findings", right=("text", "calls"))
    codes: Counter[str] = Counter()
    shared = folder([report.file for report in reports])
    if shared:
        out.print(printable(shared), style="bold", soft_wrap=True)
    for report in reports:
        response = report.response
        codes.update(report.findings)
        calls = sum(len(choice.tool_calls) + len(choice.server_tool_calls) for choice in response.choices)
        shown.add_row(
            printable(report.file.removeprefix(shared)),
            report.dialect or "unknown",
            str(len(response.text)),
            str(calls),
            printable(_finish(response)),
            response.completeness,
            ", ".join(report.findings),
        )
    out.print(shown)
    clean = sum(not report.findings for report in reports)
    out.print(f"{len(reports)} streams, {clean} without a finding")
    for code, count in codes.most_common():
        out.print(f"{count:6}  {code}")
