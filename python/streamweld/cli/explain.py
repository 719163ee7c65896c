"""`streamweld explain`: explain a diagnostic code or a rule."""

from __future__ import annotations

import difflib
import re
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import click

from streamweld._messages import code_label, code_text, docs_url, error_help_url, help_url
from streamweld._spec import CODES, load_conversions, load_errors, load_history, load_numbered_rules, load_requests
from streamweld.check.violation import rules
from streamweld.cli.console import USAGE, emit
from streamweld.cli.findings import ERRORS, complete_codes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._spec import Base

__all__ = ["explain", "known_codes"]

BASES: Final[tuple[Base, ...]] = ("strict", "standard", "salvage")
_KINDS: Final = {
    "diagnostic": "diagnostic",
    "detail": "reason that a diagnostic reports",
    "loss": "conversion loss",
    "rule": "rule of `streamweld check`",
    "history": "edit of `streamweld history convert`",
    "history_check": "rule of `streamweld history check`",
    "requests": "rule of `streamweld.requests`",
    "ambiguity": "ambiguity",
    "identity": "identity rule: condition, then result",
    "arguments": "argument rule: condition, then action",
    "error": "error",
}
_PAGE: Final = re.compile(r"\bdocs/([\w/-]+\.md)")
_LINK: Final = re.compile(r"\[([^]]*)\]\([^)]*\)")


def _about_code(name: str) -> dict[str, Any]:
    code = CODES[name]
    return {
        "code": name,
        "kind": "diagnostic",
        "severity": code.severity,
        "message": code.text,
        "detail": _PAGE.sub(lambda page: docs_url(page[1]), code.detail) or None,
        "details": dict(code.details),
        "advice": code.advice,
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
        "advice": rule.advice,
        "source": rule.source,
        "breaks_client": [broken._asdict() for broken in rule.breaks_client],
        "help_url": help_url(name),
    }


def _about_error(name: str) -> dict[str, Any]:
    rule = load_errors()["rules"].get(name)
    limit_advice = load_errors()["limit_advice"].format(limit=name.removeprefix("limit_"))
    return {
        "code": name,
        "kind": "error",
        "severity": "error",
        "message": _sentence(code_text(name)),
        "advice": limit_advice if rule is None else rule["advice"],
        "raises": "LimitExceeded" if rule is None else rule["raises"],
        "help_url": error_help_url(name),
    }


@cache
def _other_rules() -> Mapping[str, dict[str, Any]]:
    """Return the documented rules other than diagnostics and rules of `check`, keyed by their documented names.

    Rules for histories and requests are named `history.NAME`, `history_check.NAME` and `requests.NAME`; numbered rules
    have no prefix.
    """
    found: dict[str, dict[str, Any]] = {}
    history, numbered = load_history("history_rules"), load_numbered_rules()
    for kind, table in (
        ("history", history["edits"]),
        ("history_check", history["checks"]),
        ("requests", load_requests()["rules"]),
    ):
        for name, rule in table.items():
            code = f"{kind}.{name}"
            about = {"code": code, "kind": kind, "severity": rule["severity"], "message": _sentence(rule["text"])}
            found[code] = about | {"source": rule["source"], "help_url": help_url(code)}
    texts = dict(numbered["ambiguities"]["rules"])
    for name, group in numbered["identity"]["groups"].items():
        texts[name] = " ".join([group["text"], *[f"{one}: {': '.join(row)}." for one, row in group["rules"].items()]])
        texts |= {one: f"{group['text']} {': '.join(row)}." for one, row in group["rules"].items()}
    texts |= {name: f"{': '.join(row)}." for name, row in numbered["arguments"]["rules"].items()}
    for name, text in texts.items():
        kind = "ambiguity" if name.startswith("AM") else "identity" if name.startswith("R") else "arguments"
        about = {"code": name, "kind": kind, "severity": None, "message": _LINK.sub(r"\1", text)}
        found[name] = about | {"help_url": help_url(name.lower())}
    return found


@cache
def _details() -> Mapping[str, dict[str, Any]]:
    """Return the documented details of diagnostics, keyed as in logs: `rewritten(header_again)`.

    The details of `not_carried` are conversion losses.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, code in CODES.items():
        about = {"severity": code.severity, "advice": code.advice, "help_url": help_url(name)}
        for detail, meaning in code.details.items():
            label = code_label(name, detail)
            found[label] = {"code": label, "kind": "detail", "message": meaning} | about
    lost = CODES["not_carried"]
    for loss in load_conversions()["losses"]:
        label = f"{lost.name}({loss['id']})"
        message = f"{_sentence(loss['feature'])} {_sentence(loss['reason'])}"
        about = {"severity": lost.severity, "advice": lost.advice, "help_url": docs_url("reference/losses.md")}
        found[label] = {"code": label, "kind": "loss", "message": message} | about
    return found


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def known_codes() -> list[str]:
    """Return all codes, in the order of the documentation."""
    return [*CODES, *_other_rules(), *rules(), *ERRORS]


def _meant(name: str) -> list[str]:
    """Return the codes that a name refers to.

    Case is ignored. The prefix `history.` or `requests.`, and the code before a detail in parentheses, may be missing.
    """
    known = [*known_codes(), *_details()]
    same = [code for code in known if code.lower() == name.lower()]
    return (
        same
        or [code for code in _other_rules() if code.partition(".")[2] == name]
        or [label for label in _details() if label.endswith(f"({name})")]
    )


def _about(name: str) -> dict[str, Any]:
    if name in CODES:
        return _about_code(name)
    if name in rules():
        return _about_rule(name)
    found = _other_rules().get(name) or _details().get(name)
    return _about_error(name) if found is None else found


def _print(about: dict[str, Any]) -> None:
    severity = f", {about['severity']}" if about["severity"] else ""
    click.echo(f"{about['code']} ({_KINDS[about['kind']]}{severity})")
    click.echo(about["message"])
    if about.get("detail"):
        click.echo(f"detail: {about['detail']}")
    for value, meaning in about.get("details", {}).items():
        click.echo(f"  {value}: {meaning}")
    if "advice" in about:
        click.echo(f"what to do: {about['advice']}")
    if "policy" in about:
        actions = ", ".join(f"{base}: {action}" for base, action in about["policy"].items())
        click.echo(actions if about["raises"] is None else f"{actions} (`raise` raises {about['raises']})")
    elif "raises" in about:
        click.echo(f"raised as {about['raises']}, with every policy")
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

    CODE is a diagnostic code that `inspect` shows (such as args_restart), a reason that follows a code in parentheses
    (such as header_again, or rewritten(header_again)), the id of a conversion loss (such as usage_detail), the rule of
    an error (such as unknown_dialect), a rule that `check` or `history check` shows (such as
    anthropic.message_start_missing), or a rule that the documentation cites by number (such as R1).

    Exit codes: 0 success, 2 a code is unknown.
    """
    meant = {name: _meant(name) for name in code}
    unknown = [name for name, codes in meant.items() if not codes]
    for name in unknown:
        near = difflib.get_close_matches(name, [*known_codes(), *_details()], 3)
        hint = f"did you mean {', '.join(near)}?" if near else "`streamweld explain` alone explains all codes"
        click.echo(f"streamweld: unknown code {name!r}; {hint}", err=True)
    chosen = [one for codes in meant.values() for one in codes] if code else known_codes()
    for number, name in enumerate(dict.fromkeys(chosen)):
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
