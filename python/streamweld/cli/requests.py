"""`streamweld requests`: check or convert a complete request in a JSON file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import click

from streamweld._show import printable
from streamweld.cli.findings import fail_on_option
from streamweld.cli.payloads import (
    POLICY_NAMES,
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
    source_option,
    target_option,
)
from streamweld.errors import UsageError
from streamweld.history import HistoryPolicy, profiles
from streamweld.requests import RequestPolicy
from streamweld.requests import check as check_request
from streamweld.requests import convert as convert_request
from streamweld.requests.spelling import detect

if TYPE_CHECKING:
    from streamweld._spec import Severity
    from streamweld.history import Source, Target

__all__ = ["requests"]


@click.group(short_help="Check or convert a complete request.")
def requests() -> None:
    """Check or convert a complete request: messages, tools and options.

    The JSON file contains the body of the request.

    Exit codes: 0 success, 1 findings (for convert, only violations that it cannot fix), 2 usage error, 3 the file could
    not be read. --fail-on sets the lowest severity for which check exits with 1.
    """


@requests.command(short_help="Check a request against the rules of its target.")
@file_argument
@target_option("The API that the request is for.")
@gateway_options("request")
@fail_on_option("violation")
@json_option("")
def check(
    file: str, target: Target, gateway: str | None, profile: str | None, fail_on: Severity, as_json: bool
) -> None:
    """Check a request against the rules of its target and its gateway. - is standard input.

    The request must be in the format of the target; use `requests convert` to convert it. chat is an alias for
    openai-chat.
    """
    meant = profiles.resolve(gateway_of(gateway, profile), target)
    request = load(file)
    try:
        found = check_request(request, target=target, gateway=meant)
    except UsageError:  # the request has no member with messages of the target's API
        _suggest_conversion(file, request, meant.target)
        raise
    if found:
        _suggest_conversion(file, request, meant.target)
    finish_check(file, found, meant, fail_on, as_json=as_json)


def _suggest_conversion(file: str, request: Any, target: str) -> None:
    """Print what to do if the request looks like a request for another API."""
    seen = detect(cast("dict[str, Any]", request), target) if isinstance(request, dict) else target
    if seen != target:
        hint = f"this looks like a request for {seen}: convert it first (streamweld requests convert --to {target})"
        click.echo(f"streamweld: {printable(file)}: {hint}", err=True)


@requests.command(short_help="Convert a request to another API.")
@file_argument
@target_option("The API to write the request for.")
@source_option("The API that the request was written for")
@gateway_options("request")
@provider_option("request")
@policy_option
@output_option
@json_option(": payload, edits, ids, losses, tool_names")
def convert(
    file: str,
    target: Target,
    source: Source,
    gateway: str | None,
    profile: str | None,
    provider: str | None,
    words: tuple[str, ...],
    output: str | None,
    as_json: bool,
) -> None:
    """Convert a request for another API, and fix what that API would reject. - is standard input.

    The request is written to standard output, and each edit and loss to standard error. `--policy vital=raise` rejects
    a request with an option that affects the response and that the target does not support.
    """
    switches = policy_words(words, ("vital", *POLICY_NAMES))
    vital = switches.pop("vital", "report")
    with refusals(file):
        made = convert_request(
            load(file),
            source=source,
            target=target,
            gateway=gateway_of(gateway, profile),
            provider=provider,
            policy=RequestPolicy(HistoryPolicy(**switches), vital),
        )
    finish_convert(made, output, as_json=as_json, tool_names=made.tool_names)
