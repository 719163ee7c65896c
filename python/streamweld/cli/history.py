"""`streamweld history`: check, convert or deduplicate a request history in a JSON file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import click

from streamweld._show import printable
from streamweld.cli.console import console, emit, table
from streamweld.cli.findings import fail_on_option
from streamweld.cli.payloads import (
    file_argument,
    finish_check,
    finish_convert,
    gateway_of,
    gateway_options,
    json_option,
    load,
    output_option,
    policy_option,
    policy_words,
    provider_option,
    refusals,
    show_edits,
    source_option,
    target_option,
    write,
)
from streamweld.history import HistoryPolicy, profiles
from streamweld.history import check as check_history
from streamweld.history import convert as convert_history
from streamweld.history import dedupe_reasoning as dedupe_history
from streamweld.history.dialects import FAMILIES
from streamweld.history.payload import items_of
from streamweld.history.read.detect import detect
from streamweld.response import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._spec import Severity
    from streamweld.history import Edit, Source, Target

__all__ = ["history"]


@click.group(short_help="Check, convert or deduplicate a request history.")
def history() -> None:
    """Check, convert or deduplicate a request history.

    The JSON file contains the list of messages, or a complete request payload.

    Exit codes: 0 success, 1 findings (for convert, only violations that it cannot fix), 2 usage error, 3 the file could
    not be read. --fail-on sets the lowest severity for which check exits with 1.
    """


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
@file_argument
@target_option("The API that the history is for.")
@gateway_options("history")
@fail_on_option("violation")
@json_option("")
def check(
    file: str, target: Target, gateway: str | None, profile: str | None, fail_on: Severity, as_json: bool
) -> None:
    """Check a history against the rules of its target and its gateway. - is standard input.

    The history must be in the format of the target; use `history convert` to convert it. chat is an alias for
    openai-chat.
    """
    meant = profiles.resolve(gateway_of(gateway, profile), target)
    history = load(file)
    found = check_history(history, target=target, gateway=meant)
    seen = _dialect_of(history, meant.target)
    if found and seen != FAMILIES[meant.target]:
        hint = f"this looks like a history for {seen}: convert it first (streamweld history convert --to {target})"
        click.echo(f"streamweld: {printable(file)}: {hint}", err=True)
    finish_check(file, found, meant, fail_on, as_json=as_json)


def _dialect_of(history: Any, target: str) -> str:
    """Return the detected dialect of the history.

    If the history also matches the target's dialect, return the target's dialect.
    """
    items, _ = items_of(history)
    payload = cast("Mapping[str, Any]", history) if isinstance(history, dict) else None
    return detect(() if isinstance(items, str | Response) else items, payload, FAMILIES[target])


@history.command(short_help="Convert a history to another API.")
@file_argument
@target_option("The API to write the history for.")
@source_option("The API that the history was written for")
@gateway_options("history")
@provider_option("history")
@click.option("--store/--no-store", default=None, help="Responses: whether the server keeps the items.")
@policy_option
@output_option
@json_option(": payload, edits, ids, losses")
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
    with refusals(file):
        made = convert_history(
            load(file),
            source=source,
            target=target,
            gateway=gateway_of(gateway, profile),
            provider=provider,
            policy=HistoryPolicy(**policy_words(words)),
            store=store,
        )
    finish_convert(made, output, as_json=as_json)


@history.command(short_help="Remove reasoning that a replayed stream repeated.")
@file_argument
@click.option("--items", default="rs", show_default=True, help="Kinds of items, separated by commas: rs, fc, msg.")
@click.option("-o", "--output", metavar="FILE|-", help="Write the history to FILE, and the edits to standard output.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: messages, edits.")
def dedupe(file: str, items: str, output: str | None, as_json: bool) -> None:
    """Remove reasoning that a replayed stream repeated, from AI SDK messages or Responses items. - is standard input.

    The history is written to standard output, and each edit to standard error.
    """
    edits: list[Edit] = []
    done = dedupe_history(load(file), items=tuple(items.split(",")), on_edit=edits.append)
    if as_json:
        emit({"messages": done, "edits": [edit.to_dict() for edit in edits]})
        return
    show_edits(write(done, output), edits)
