"""The findings of `check` and `inspect`: one data type for diagnostics, rules and errors, and four output formats."""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import click

import streamweld
from streamweld._messages import RULES_PAGE
from streamweld._show import printable
from streamweld._spec import CODES, LIMITS, load_errors
from streamweld.check.violation import rules
from streamweld.cli.console import emit, table
from streamweld.errors import UsageError
from streamweld.report.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TextIO

    from click.shell_completion import CompletionItem
    from rich.table import Table

    from streamweld._spec import Severity

__all__ = [
    "ERRORS",
    "OutputFormat",
    "Selection",
    "complete_codes",
    "exit_zero_option",
    "fail_on_option",
    "fails",
    "finding_options",
    "finding_table",
    "write_github",
    "write_sarif",
]

OutputFormat: TypeAlias = Literal["text", "json", "github", "sarif"]

ERRORS: Final = (
    *load_errors()["rules"],
    *[f"limit_{name}" for name in LIMITS],
)
"""The rules of errors that are not diagnostic codes."""
_SEVERITIES: Final[tuple[Severity, ...]] = ("info", "warning", "error")
_LEVELS: Final[dict[Severity, str]] = {"error": "error", "warning": "warning", "info": "note"}
_COMMANDS: Final[dict[Severity, str]] = {"error": "error", "warning": "warning", "info": "notice"}
_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True, slots=True)
class Selection:
    """The codes to show (those that match `select` but not `ignore`), and the lowest severity for exit code 1.

    Raises:
        UsageError: if a pattern does not match any code.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: Severity = "warning"

    def __post_init__(self) -> None:
        for pattern in (*self.select, *self.ignore):
            known = _codes()
            if not any(fnmatchcase(code, pattern) for code in known):
                near = difflib.get_close_matches(pattern, known, 3)
                hint = f"; did you mean {', '.join(near)}?" if near else "; `streamweld explain` lists all"
                raise UsageError(f"{pattern!r} matches no code{hint}")

    @classmethod
    def of(cls, select: tuple[str, ...], ignore: tuple[str, ...], fail_on: Severity) -> Selection:
        """Create a selection from the values of the options; patterns may be separated by commas."""
        chosen, left = [
            tuple(code for value in values for code in value.split(",") if code) for values in (select, ignore)
        ]
        return cls(chosen, left, fail_on)

    def keeps(self, code: str) -> bool:
        chosen = not self.select or any(fnmatchcase(code, pattern) for pattern in self.select)
        return chosen and not any(fnmatchcase(code, pattern) for pattern in self.ignore)

    def codes(self, findings: Iterable[Finding]) -> list[str]:
        """Return the codes that summaries list, each once: warnings, errors and, if `fail_on` is `info`, infos."""
        listed = _SEVERITIES if self.fail_on == "info" else ("warning", "error")
        return list(dict.fromkeys(one.code for one in findings if one.severity in listed))

    def fails(self, findings: Iterable[Finding]) -> bool:
        """Return whether a finding is severe enough for exit code 1."""
        return fails((one.severity for one in findings), self.fail_on)


def fails(severities: Iterable[Severity], fail_on: Severity) -> bool:
    """Return whether a severity is at least `fail_on`."""
    failing = _SEVERITIES[_SEVERITIES.index(fail_on) :]
    return any(severity in failing for severity in severities)


def _codes() -> list[str]:
    return [*CODES, *rules(), *ERRORS]


def complete_codes(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the codes that begin with the text typed so far, for shell completion."""
    from click.shell_completion import CompletionItem

    texts = {name: code.text for name, code in CODES.items()} | {name: rule.text for name, rule in rules().items()}
    return [CompletionItem(name, help=texts.get(name)) for name in _codes() if name.startswith(incomplete)]


def fail_on_option(what: str) -> Callable[[Any], Any]:
    """Return the option `--fail-on`; `what` is what the command reports, such as `finding`."""
    return click.option(
        "--fail-on",
        type=click.Choice(_SEVERITIES),
        default="warning",
        show_default=True,
        help=f"The lowest severity of a {what} for which the exit code is 1.",
    )


def exit_zero_option() -> Callable[[Any], Any]:
    """Return the option `--exit-zero`."""
    return click.option("--exit-zero", is_flag=True, help="Exit with 0 even if there are findings.")


def finding_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that `check` and `inspect` share."""
    options = (
        click.option(
            "--select",
            multiple=True,
            metavar="CODE,…",
            shell_complete=complete_codes,
            help="Report only these codes; * matches any characters, as in 'chat.*'.",
        ),
        click.option(
            "--ignore",
            multiple=True,
            metavar="CODE,…",
            shell_complete=complete_codes,
            help="Do not report these codes.",
        ),
        fail_on_option("finding"),
        exit_zero_option(),
        click.option(
            "--output-format",
            type=click.Choice(get_args(OutputFormat)),
            default="text",
            show_default=True,
            help="json: one object per stream (JSON Lines). github: workflow annotations. sarif: SARIF 2.1.0.",
        ),
        click.option("--json", "as_json", is_flag=True, help="Short for --output-format json."),
        click.option("-o", "--output", metavar="FILE", help="Write to FILE instead of standard output."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def finding_table(findings: Iterable[Finding], *, title: str | None = None, most: int | None = None) -> Table:
    """Return the findings as a table. `most` is the maximum number of rows per code; None shows all rows."""
    shown = table("severity", "code", "byte", "line", "event", "what", title=title, right=("byte", "line", "event"))
    counts: Counter[str] = Counter()
    for finding in findings:
        counts[finding.code] += 1
        if most is None or counts[finding.code] <= most:
            position = (finding.byte_offset, finding.line, finding.event_ordinal)
            cells = ["" if number is None else str(number) for number in position]
            shown.add_row(finding.severity, printable(finding.code), *cells, printable(finding.message))
    return shown


# GitHub: https://docs.github.com/actions/reference/workflow-commands-for-github-actions


def write_github(out: TextIO, file: str, findings: Iterable[Finding]) -> None:
    """Write one GitHub workflow command per finding. GitHub shows each finding as an annotation on the line."""
    for finding in findings:
        properties = {"file": file, "line": finding.line, "title": finding.code}
        fields = ",".join(
            [f"{name}={_property(str(value))}" for name, value in properties.items() if value is not None]
        )
        position = (
            "" if finding.byte_offset is None else f" (byte {finding.byte_offset}, event {finding.event_ordinal})"
        )
        text = _data(f"{printable(finding.message)}{position} {finding.help_url}")
        click.echo(f"::{_COMMANDS[finding.severity]} {fields}::{text}", file=out)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(printable(text)).replace(":", "%3A").replace(",", "%2C")


# The SARIF 2.1.0 specification: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html


@dataclass(slots=True)
class _Sarif:
    """Collects the rules and results of one run."""

    rules: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    results: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def add(self, file: str, finding: Finding) -> None:
        code = finding.code
        level = _LEVELS[finding.severity]
        if code not in self.rules:
            text = CODES[code].text if code in CODES else rules()[code].text if code in rules() else code
            self.rules[code] = {
                "id": code,
                "shortDescription": {"text": text},
                "helpUri": finding.help_url,
                "defaultConfiguration": {"level": level},
            }
        location: dict[str, Any] = {"artifactLocation": {"uri": _uri(file)}}
        if finding.line is not None:
            location["region"] = {"startLine": finding.line, "byteOffset": finding.byte_offset} | _length(finding)
        self.results.append(
            {
                "ruleId": code,
                "ruleIndex": list(self.rules).index(code),
                "level": level,
                "message": {"text": printable(finding.message)},
                "locations": [{"physicalLocation": location}],
                "properties": {"event": finding.event_ordinal},
            }
        )


def _uri(file: str) -> str:
    from pathlib import Path
    from urllib.parse import quote

    path = Path(file)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())  # SARIF viewers find files by their path in the repository
    return path.as_uri() if path.is_absolute() else quote(path.as_posix(), errors="surrogateescape")


def _length(finding: Finding) -> dict[str, int]:
    return {} if finding.byte_length is None else {"byteLength": finding.byte_length}


def write_sarif(out: TextIO, found: Iterable[tuple[str, Iterable[Finding]]], unreadable: Sequence[str]) -> None:
    """Write one SARIF log for all files.

    Each file in `unreadable` becomes a notification, because the run is incomplete. Each of these files also becomes a
    result, because a log without results would look as if everything had been checked.
    """
    run = _Sarif()
    for file, findings in found:
        for finding in findings:
            run.add(file, finding)
    notifications: list[dict[str, Any]] = []
    for file in unreadable:
        finding = Finding("error", "unreadable", "error", None, None, None, "the file could not be read", RULES_PAGE)
        run.add(file, finding)
        notifications.append(
            {"level": "error", "message": {"text": finding.message}, "locations": run.results[-1]["locations"]}
        )
    invocation = {"executionSuccessful": not unreadable, "toolExecutionNotifications": notifications}
    driver = {
        "name": "streamweld",
        "version": streamweld.__version__,
        "informationUri": RULES_PAGE,
        "rules": list(run.rules.values()),
    }
    one = {"tool": {"driver": driver}, "invocations": [invocation], "results": run.results}
    emit({"$schema": _SCHEMA, "version": "2.1.0", "runs": [one]}, out)
