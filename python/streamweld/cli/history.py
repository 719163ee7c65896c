"""`streamweld history`: check, convert or deduplicate a request history in a JSON file."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from streamweld._show import printable
from streamweld.cli.console import FINDINGS, FINE, UNREADABLE, console, emit, read_each, table
from streamweld.cli.names import AliasedOption, DialectChoice
from streamweld.errors import HistoryError, UsageError
from streamweld.history import HistoryPolicy, profiles
from streamweld.history import check as check_history
from streamweld.history import convert as convert_history
from streamweld.history import dedupe_reasoning as dedupe_history
from streamweld.history.dialects import FAMILIES
from streamweld.history.payload import items_of
from streamweld.history.read.detect import detect
from streamweld.response import Response

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import BinaryIO

    from rich.console import Console

    from streamweld.history import Edit, HistoryViolation, Loss, Source, Target

__all__ = ["history"]

_SHOWN = 160  # maximum number of characters shown of removed content
_TARGETS = DialectChoice([*profiles.TARGETS, "chat", "ai-sdk-parts"])


@click.group(short_help="Check, convert or deduplicate a request history.")
def history() -> None:
    """Check, convert or deduplicate a request history.

    The JSON file contains the list of messages, or a whole request payload.

    Exit codes: 0 success, 1 findings (for convert, only violations that it cannot fix), 2 usage error, 3 the file could
    not be read.
    """


def _load(file: str) -> Any:
    """Return the JSON value in the file, or end the process if it cannot be read."""
    unreadable: list[str] = []
    texts = list(read_each([file], _bytes, unreadable))
    if unreadable:
        sys.exit(UNREADABLE)
    try:
        return json.loads(texts[0])
    except (ValueError, RecursionError) as error:
        click.echo(f"streamweld: {printable(file)}: no JSON: {error}", err=True)
        sys.exit(UNREADABLE)


def _bytes(_: str, source: BinaryIO) -> bytes:
    return source.read()


def _gateway(name: str | None, profile: str | None) -> str | Mapping[str, Any] | None:
    if profile is None:
        return name
    if name is not None:
        raise UsageError("--gateway and --profile exclude each other: a profile may say `like`")
    loaded = _load(profile)
    if not isinstance(loaded, dict):
        raise UsageError("--profile: it must be a JSON object")
    return cast("dict[str, Any]", loaded)


def _gateways(command: Any) -> Any:
    names = ", ".join(profiles.names())
    command = click.option("--profile", metavar="FILE", help="Your own gateway profile, as a JSON file.")(command)
    return click.option(
        "--gateway",
        metavar="NAME",
        help=f"The gateway that gets the history: {names}. A name without a date selects the newest profile.",
    )(command)


@history.command(name="profiles", short_help="List the gateway profiles, their dates and their evidence.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with the profiles.")
def list_profiles(as_json: bool) -> None:
    """List the gateway profiles with their targets, the date of their facts, and the kind of evidence.

    Profiles whose facts are older than 60 days are marked as stale.
    """
    rows = [profiles.load(name) for name in profiles.names()]
    if as_json:
        emit({"profiles": [_profile_row(profile) for profile in rows]})
        return
    shown = table("profile", "date", "evidence", "targets", "")
    for profile in rows:
        row = _profile_row(profile)
        stale = f"stale ({row['age_days']} days)" if row["stale"] else ""
        shown.add_row(profile.name, profile.date, profile.evidence, ", ".join(profile.targets), stale)
    console().print(shown)


def _profile_row(profile: profiles.Profile) -> dict[str, Any]:
    age = profile.age()
    return {
        **{name: getattr(profile, name) for name in ("name", "date", "evidence", "targets")},
        "age_days": age,
        "stale": age is not None and age > profiles.STALE_DAYS,
        "sources": dict(profile.sources),
    }


@history.command(short_help="Check a history against the rules of its target.")
@click.argument("file", metavar="FILE|-")
@click.option(
    "--to",
    "target",
    cls=AliasedOption,
    aliases=("--target",),
    type=_TARGETS,
    required=True,
    help="The API that the history is for.",
)
@_gateways
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(file: str, target: Target, gateway: str | None, profile: str | None, as_json: bool) -> None:
    """Check a history against the rules of its target and its gateway. - is standard input.

    The history must be in the format of the target; use `history convert` to convert it. chat is an alias for
    openai-chat.
    """
    meant = profiles.resolve(_gateway(gateway, profile), target)
    history = _load(file)
    found = check_history(history, target=target, gateway=meant)
    seen = _dialect_of(history, meant.target)
    if found and seen != FAMILIES[meant.target]:
        hint = f"this looks like a history for {seen}: convert it first (streamweld history convert --to {target})"
        click.echo(f"streamweld: {printable(file)}: {hint}", err=True)
    if as_json:
        name = f"{meant.name}@{meant.date}" if meant.date else meant.name
        rows = [violation.to_dict() for violation in found]
        emit({"file": file, "target": meant.target, "gateway": name, "violations": rows})
    else:
        _show_violations(console(), found)
    sys.exit(FINDINGS if found else FINE)


def _dialect_of(history: Any, target: str) -> str:
    """Return the detected dialect of the history, or the dialect of the target if both match."""
    items, _ = items_of(history)
    payload = cast("Mapping[str, Any]", history) if isinstance(history, dict) else None
    return detect(() if isinstance(items, str | Response) else items, payload, FAMILIES[target])


@history.command(short_help="Convert a history to another API.")
@click.argument("file", metavar="FILE|-")
@click.option(
    "--to",
    "target",
    cls=AliasedOption,
    aliases=("--target",),
    type=_TARGETS,
    required=True,
    help="The API to write the history for.",
)
@click.option(
    "--from",
    "source",
    cls=AliasedOption,
    aliases=("--source",),
    type=DialectChoice(["auto", *profiles.TARGETS, "chat", "ai-sdk-parts"]),
    default="auto",
    show_default=True,
    help="The API that the history was written for; auto detects it.",
)
@_gateways
@click.option(
    "--provider", help="The vendor or gateway that generated the assistant turns, if the history does not name it."
)
@click.option("--store/--no-store", default=None, help="Responses: whether the server keeps the items.")
@click.option(
    "--policy", "words", multiple=True, metavar="NAME=WORD", help="How to fix faults, such as orphan_call=drop."
)
@click.option("-o", "--output", metavar="FILE|-", help="Write the payload to FILE, and the edits to standard output.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: payload, edits, ids, losses.")
def convert(
    file: str,
    target: Target,
    source: Source,
    gateway: str | None,
    profile: str | None,
    provider: str | None,
    store: bool | None,
    words: tuple[str, ...],
    output: str | None,
    as_json: bool,
) -> None:
    """Convert a history for another API, and fix what that API would reject. - is standard input.

    The payload is written to standard output, and each edit to standard error.
    """
    try:
        made = convert_history(
            _load(file),
            source=source,
            target=target,
            gateway=_gateway(gateway, profile),
            provider=provider,
            policy=_policy(words),
            store=store,
        )
    except HistoryError as error:
        click.echo(f"streamweld: {printable(file)}: {error}", err=True)
        if error.violations:
            _show_violations(console(stderr=True), error.violations)
        sys.exit(FINDINGS)
    if as_json:
        edits, losses = [edit.to_dict() for edit in made.edits], [loss.to_dict() for loss in made.losses]
        emit({"payload": made.payload, "edits": edits, "ids": [list(pair) for pair in made.ids], "losses": losses})
        return
    out = _write(made.payload, output)
    _show_edits(out, made.edits)
    _show_losses(out, made.losses)
    for old, new in made.ids:
        out.print(printable(f"id {old} -> {new}"), soft_wrap=True)


@history.command(short_help="Remove reasoning that a replayed stream repeated.")
@click.argument("file", metavar="FILE|-")
@click.option("--items", default="rs", show_default=True, help="Kinds of items, separated by commas: rs, fc, msg.")
@click.option("-o", "--output", metavar="FILE|-", help="Write the history to FILE, and the edits to standard output.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: messages, edits.")
def dedupe(file: str, items: str, output: str | None, as_json: bool) -> None:
    """Remove reasoning that a replayed stream repeated, from AI SDK messages or Responses items. - is standard input.

    The history is written to standard output, and each edit to standard error.
    """
    edits: list[Edit] = []
    done = dedupe_history(_load(file), items=tuple(items.split(",")), on_edit=edits.append)
    if as_json:
        emit({"messages": done, "edits": [edit.to_dict() for edit in edits]})
        return
    _show_edits(_write(done, output), edits)


def _policy(words: tuple[str, ...]) -> HistoryPolicy:
    switches: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in HistoryPolicy.__dataclass_fields__:
            raise UsageError(
                f"--policy {word}: it must be NAME=WORD, of {', '.join(HistoryPolicy.__dataclass_fields__)}"
            )
        switches[name] = value
    return HistoryPolicy(**switches)


def _base64(value: Any) -> str:
    """Encode bytes as base64: boto3 accepts bytes for media, but the API uses base64 on the wire."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} is not JSON")


def _write(value: Any, output: str | None) -> Console:
    """Write the result to the output, and return the console to use for all other messages."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=_base64) + "\n"
    if output is None or output == "-":
        click.echo(text.encode("utf-8", "backslashreplace"), nl=False)
        return console(stderr=True)
    Path(output).write_text(text, encoding="utf-8", errors="backslashreplace")
    return console()


def _show_violations(out: Console, found: Iterable[HistoryViolation]) -> None:
    shown = table("severity", "where", "what", "source")
    for violation in found:
        what = f"{violation.rule}: {violation.message}"
        shown.add_row(violation.severity, printable(violation.path) or "/", what, violation.source)
    out.print(shown if shown.row_count else "clean: no violation")


def _show_edits(out: Console, edits: Iterable[Edit]) -> None:
    """Write each edit with its place and rule, the removed content (-), the replacement (+), and the reason."""
    edits = list(edits)
    for edit in edits:
        out.print(printable(f"@@ {edit.path or '/'} {edit.rule}"), style="cyan", soft_wrap=True)
        if edit.removed is not None:
            out.print(f"- {_short(edit.removed)}", style="red", soft_wrap=True)
        out.print(f"+ {printable(edit.what)}", style="green", soft_wrap=True)
        out.print(f"  {printable(edit.why)}", style="dim", soft_wrap=True)
    out.print(f"{len(edits)} edits")


def _show_losses(out: Console, losses: Iterable[Loss]) -> None:
    for loss in losses:
        out.print(printable(f"lost {loss.path or '/'} {loss.feature}: {loss.why}"), style="yellow", soft_wrap=True)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return printable(text, _SHOWN)
