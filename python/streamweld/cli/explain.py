"""`streamweld explain`: explain a diagnostic code or a rule of the checker."""

from __future__ import annotations

import difflib
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from streamweld._messages import error_help_url, help_url
from streamweld._spec import CODES
from streamweld.check.violation import rules
from streamweld.cli.console import USAGE, emit
from streamweld.cli.findings import ERRORS, complete_codes
from streamweld.errors import LimitExceeded, StreamError

if TYPE_CHECKING:
    from streamweld._spec import Base

__all__ = ["explain"]

BASES: Final[tuple[Base, ...]] = ("strict", "standard", "salvage")


def _about_code(name: str) -> dict[str, Any]:
    code = CODES[name]
    return {
        "code": name,
        "kind": "diagnostic",
        "severity": code.severity,
        "message": code.text,
        "detail": code.detail or None,
        "details": dict(code.details),
        "raises": code.raises,
        "policy": {
            "strict": code.action("strict"),
            "standard": code.action("standard"),
            "salvage": code.action("salvage"),
        },
        "help_url": help_url(name),
    }


def _about_rule(name: str) -> dict[str, Any]:
    rule = rules()[name]
    return {
        "code": name,
        "kind": "rule",
        "severity": rule.severity,
        "message": rule.text,
        "source": rule.source,
        "breaks_client": [broken._asdict() for broken in rule.breaks_client],
        "help_url": help_url(name),
    }


def _about_error(name: str) -> dict[str, Any]:
    limit = name.removeprefix("limit_")
    error = StreamError(rule=name) if limit == name else LimitExceeded(limit_name=limit)
    message = str(error).partition(" [")[0].partition(": ")[0]
    return {"code": name, "kind": "error", "severity": "error", "message": message, "help_url": error_help_url(name)}


def _about(name: str) -> dict[str, Any]:
    return _about_code(name) if name in CODES else _about_rule(name) if name in rules() else _about_error(name)


def _print(about: dict[str, Any]) -> None:
    what = {"diagnostic": "diagnostic", "rule": "rule of `streamweld check`", "error": "error"}[about["kind"]]
    click.echo(f"{about['code']} ({what}, {about['severity']})")
    click.echo(about["message"])
    if about.get("detail"):
        click.echo(f"detail: {about['detail']}")
    for value, meaning in about.get("details", {}).items():
        click.echo(f"  {value}: {meaning}")
    if "policy" in about:
        actions = ", ".join(f"{base}: {action}" for base, action in about["policy"].items())
        click.echo(f"{actions} (`raise` raises {about['raises']})")
    if about.get("source"):
        click.echo(f"source: {about['source']}")
    for broken in about.get("breaks_client", ()):
        click.echo(f"breaks {broken['client']} {broken['version']}: {broken['effect']}")
    click.echo(about["help_url"])


@click.command(short_help="Explain diagnostic codes and rules.")
@click.argument("code", nargs=-1, shell_complete=complete_codes)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each code.")
def explain(code: tuple[str, ...], as_json: bool) -> None:
    """Explain diagnostic codes and rules; without CODE, list all of them.

    CODE is a diagnostic code that `inspect` shows, such as args_restart, or a rule that `check` shows, such as
    anthropic.message_start_missing.

    Exit codes: 0 explained, 2 a code is unknown.
    """
    known = [*CODES, *rules(), *ERRORS]
    unknown = [name for name in code if name not in known]
    for name in unknown:
        near = difflib.get_close_matches(name, known, 3)
        click.echo(
            f"streamweld: unknown code {name!r}" + (f"; did you mean {', '.join(near)}?" if near else ""), err=True
        )
    for number, name in enumerate([name for name in (code or known) if name not in unknown]):
        about = _about(name)
        if as_json:
            emit(about)
        elif code:
            if number:
                click.echo("")
            _print(about)
        else:
            click.echo(f"{name}: {about['message']}")
    if unknown:
        sys.exit(USAGE)
